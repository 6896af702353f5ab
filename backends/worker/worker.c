/*
 * See worker.h. Calls on a handle follow one another under its mutex; cancel only sets a flag, which
 * the call under way looks at every few milliseconds.
 */
#include "backends/worker/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/core/clock.h"
#include "backends/worker/channel.h"
#include "backends/worker/spawn.h"

#define MS 1000000ull
#define SLICE_NS (10 * MS) /* how often the cancel flag is looked at */
#define CANCEL_NS (150 * MS) /* a child may take so long to listen */
#define GRACE_NS (400 * MS) /* beyond a deadline that the child keeps itself */
#define REAP_MS 200
#define ABANDONED_MAX 3 /* killed children that have not ended; more are not made */
#define BACKOFF_FIRST_MS 100
#define BACKOFF_LAST_MS 30000

struct dg__worker {
	char backend[16];
	char path[1024];
	dg__worker_options options;
	pthread_mutex_t lock;
	_Atomic(pid_t) owner; /* process that made it: a child of fork() starts anew */
	atomic_bool in_call, cancel;
	_Atomic(int64_t) pid; /* 0: no child */
	dg__channel channel;
	uint64_t request;
	unsigned failures; /* in a row */
	bool left; /* the last child that was found gone had ended well, for being idle */
	uint64_t not_before_ns;
	pid_t abandoned[ABANDONED_MAX];
	size_t abandoned_count;
};

/* A call under way. */
typedef struct call {
	uint64_t deadline_ns;
	uint64_t cancelled_ns; /* when the child was asked to stop; 0: was not */
	bool fresh; /* the child was started for this call */
	bool answered; /* a frame of it has come */
	const dg__measure_request *measure;
	const dg__worker_watch *watch;
	dg_value *values;
	size_t valued; /* values that have come */
} call;

static bool good_name(const char *name)
{
	size_t length = name ? strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789") : 0;
	return length > 0 && length < 16 && !name[length];
}

dg_err dg__worker_create(
	const dg__worker_options *options, dg__worker **ret_worker, dg_error *reterr)
{
	if (!good_name(options->backend))
		return dg_error_set(reterr, DG_EINVALID, "a backend's name is 1 to 15 letters and digits");
	dg__worker *w = calloc(1, sizeof(*w));
	if (!w)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dg_err err = DG_OK;
	if (options->path) {
		int n = snprintf(w->path, sizeof(w->path), "%s", options->path);
		if (n < 0 || (size_t)n >= sizeof(w->path))
			err = dg_error_set(reterr, DG_EINVALID, "the worker's path is too long");
	} else {
		err = dg__worker_find(w->path, sizeof(w->path), reterr);
	}
	if (err == DG_OK && pthread_mutex_init(&w->lock, NULL) != 0)
		err = dg_error_set(reterr, DG_ENOMEM, NULL);
	if (err != DG_OK) {
		free(w);
		return err;
	}
	snprintf(w->backend, sizeof(w->backend), "%s", options->backend);
	w->options = *options;
	w->options.backend = w->backend;
	w->channel.fd = -1;
	atomic_store(&w->owner, getpid());
	*ret_worker = w;
	return DG_OK;
}

/* Reap what has ended meanwhile of those that did not want to. */
static void sweep(dg__worker *w)
{
	size_t kept = 0;
	int status;
	for (size_t i = 0; i < w->abandoned_count; i++)
		if (!dg__spawn_reap(w->abandoned[i], 0, &status))
			w->abandoned[kept++] = w->abandoned[i];
	w->abandoned_count = kept;
}

/* Kill and reap; a child in an uninterruptible call is left behind. Its status, or -1. */
static int end_child(dg__worker *w, bool kill_it)
{
	pid_t pid = (pid_t)atomic_load(&w->pid);
	int status = -1;
	dg__channel_finish(&w->channel);
	if (pid == 0)
		return -1;
	if (kill_it)
		kill(pid, SIGKILL);
	bool ended = dg__spawn_reap(pid, REAP_MS, &status);
	if (!ended && !kill_it) {
		kill(pid, SIGKILL);
		ended = dg__spawn_reap(pid, REAP_MS, &status);
	}
	if (!ended && w->abandoned_count < ABANDONED_MAX)
		w->abandoned[w->abandoned_count++] = pid;
	atomic_store(&w->pid, 0);
	return ended ? status : -1;
}

void dg__worker_destroy(dg__worker *worker)
{
	if (!worker)
		return;
	if (atomic_load(&worker->owner) == getpid()) {
		end_child(worker, true);
		sweep(worker);
	} else {
		dg__channel_finish(&worker->channel);
	}
	pthread_mutex_destroy(&worker->lock);
	free(worker);
}

/* In a child of fork() the mutex may be held by a thread that is not there, and the process of the
 * worker belongs to the parent. */
static void adopt(dg__worker *w)
{
	pid_t owner = atomic_load(&w->owner), self = getpid();
	if (owner == self || !atomic_compare_exchange_strong(&w->owner, &owner, self))
		return;
	pthread_mutex_init(&w->lock, NULL);
	atomic_store(&w->in_call, false);
	atomic_store(&w->pid, 0);
	dg__channel_finish(&w->channel);
	w->abandoned_count = 0;
}

/* The first start after a failure waits for nothing; then 100 ms, doubled up to 30 s. */
static void note_failure(dg__worker *w)
{
	w->failures++;
	if (w->failures < 2)
		return;
	unsigned doublings = w->failures - 2 < 9 ? w->failures - 2 : 9;
	uint64_t wait_ms = (uint64_t)BACKOFF_FIRST_MS << doublings;
	w->not_before_ns = dg__clock_ns() + (wait_ms < BACKOFF_LAST_MS ? wait_ms : BACKOFF_LAST_MS) * MS;
}

static void note_success(dg__worker *w)
{
	w->failures = 0;
	w->not_before_ns = 0;
}

static dg_err start_child(dg__worker *w, call *c, dg_error *reterr)
{
	uint64_t now = dg__clock_ns();
	sweep(w);
	if (w->abandoned_count == ABANDONED_MAX)
		return dg_error_set(reterr, DG_EWORKER,
			"%d earlier workers of %s cannot be ended; no further one is started", ABANDONED_MAX,
			w->backend);
	if (now < w->not_before_ns)
		return dg_error_set(reterr, DG_EWORKER,
			"the worker of %s failed %u times in a row; it is tried again in %llu ms", w->backend,
			w->failures, (unsigned long long)((w->not_before_ns - now) / MS + 1));
	pid_t pid;
	int fd;
	dg_err err = dg__spawn(w->path, &w->options, &pid, &fd, reterr);
	if (err == DG_OK) {
		err = dg__channel_init_take(&w->channel, fd, reterr);
		atomic_store(&w->pid, pid);
		c->fresh = true;
		if (err != DG_OK)
			w->channel.fd = -1;
	}
	if (err != DG_OK)
		note_failure(w);
	return err;
}

/* The child is gone: how, in words. One that had been told to end when idle did nothing wrong. */
static dg_err child_gone(dg__worker *w, dg_error *reterr)
{
	char how[48];
	int status = end_child(w, false);
	w->left = status == 0;
	note_failure(w);
	if (status < 0)
		return dg_error_set(reterr, DG_EWORKER, "the worker of %s closed its socket", w->backend);
	dg__spawn_describe(status, how, sizeof(how));
	return dg_error_native(reterr, DG_EWORKER, w->backend, status, "the worker of %s %s", w->backend, how);
}

static dg_err cancelled(dg_error *reterr)
{
	return dg_error_set(reterr, DG_ECANCELLED, "the work was cancelled");
}

/* What a failed receive means for the call; DG_OK: go on waiting. */
static dg_err after_wait(dg__worker *w, call *c, dg_err err, dg_error *reterr)
{
	uint64_t now = dg__clock_ns();
	if (err == DG_EWORKER)
		return c->cancelled_ns ? (end_child(w, true), cancelled(reterr)) : child_gone(w, reterr);
	if (err != DG_ETIMEOUT) {
		end_child(w, true);
		note_failure(w);
		return err;
	}
	if (c->cancelled_ns && now > c->cancelled_ns + CANCEL_NS) {
		end_child(w, true);
		return cancelled(reterr);
	}
	if (!c->cancelled_ns && now > c->deadline_ns) {
		end_child(w, true);
		note_failure(w);
		return dg_error_set(reterr, DG_ETIMEOUT, "%s did not answer in time; its worker was ended",
			w->backend);
	}
	return DG_OK;
}

/* Ask the child to stop, once, when the flag is up. */
static void pass_cancel(dg__worker *w, call *c)
{
	if (c->cancelled_ns || !atomic_load(&w->cancel))
		return;
	c->cancelled_ns = dg__clock_ns();
	dg__frame frame = { .kind = DG__FRAME_CANCEL, .request = w->request };
	/* A child that takes nothing any more is killed when its time is over. */
	dg_err err = dg__channel_send(&w->channel, &frame, c->cancelled_ns + SLICE_NS, NULL);
	(void)err;
}

static dg_err nonsense(dg__worker *w, const char *what, dg_error *reterr)
{
	end_child(w, true);
	note_failure(w);
	return dg_error_set(reterr, DG_EPROTOCOL, "the worker of %s %s", w->backend, what);
}

static dg_err receive(dg__worker *w, call *c, dg__frame *ret_frame, dg_error *reterr)
{
	for (;;) {
		pass_cancel(w, c);
		dg_err err = dg__channel_receive(&w->channel, dg__clock_ns() + SLICE_NS, ret_frame, reterr);
		if (err == DG_OK) {
			c->answered = true;
			if (ret_frame->request == w->request)
				return DG_OK;
			dg__frame_finish(ret_frame);
			return nonsense(w, "answered what was not asked", reterr);
		}
		err = after_wait(w, c, err, reterr);
		if (err != DG_OK)
			return err;
	}
}

static dg_err take_value(dg__worker *w, call *c, const dg__frame *frame, dg_error *reterr)
{
	bool value = frame->kind == DG__FRAME_VALUE;
	const dg__measure_request *m = c->measure;
	if (!m || frame->done >= m->count || frame->total != m->count ||
		(value && frame->done != c->valued) ||
		!dg_key_equal(value ? &frame->value.key : &frame->key, &m->keys[frame->done]))
		return nonsense(w, "told of a key that was not asked for", reterr);
	if (value) {
		c->values[frame->done] = frame->value;
		c->valued = frame->done + 1u;
		if (c->watch && c->watch->value)
			c->watch->value(frame->done, &frame->value, c->watch->user);
	} else if (c->watch && c->watch->progress) {
		c->watch->progress(frame->done, frame->total, &frame->key, c->watch->user);
	}
	return DG_OK;
}

/* Receive until the request ends. last is the frame that ended it, or that a detection waits for. */
static dg_err converse(dg__worker *w, call *c, dg__device_list *devices, dg__frame *last, dg_error *reterr)
{
	for (;;) {
		memset(last, 0, sizeof(*last));
		dg_err err = receive(w, c, last, reterr);
		if (err != DG_OK)
			return err;
		switch (last->kind) {
		case DG__FRAME_END:
			return DG_OK;
		case DG__FRAME_ERROR:
			if (reterr)
				*reterr = last->error;
			return last->error.code != DG_OK ? last->error.code : DG_EINTERNAL;
		case DG__FRAME_DEVICES:
			if (!devices || devices->entries) {
				dg__frame_finish(last);
				return nonsense(w, "sent devices that were not asked for", reterr);
			}
			*devices = last->devices;
			break;
		case DG__FRAME_VALUE:
		case DG__FRAME_PROGRESS:
			err = take_value(w, c, last, reterr);
			if (err != DG_OK)
				return err;
			break;
		default:
			return nonsense(w, "sent a request", reterr);
		}
	}
}

static dg_err ask(dg__worker *w, call *c, dg__frame *request, dg_error *reterr)
{
	dg_err err = w->channel.fd < 0 ? start_child(w, c, reterr) : DG_OK;
	if (err != DG_OK)
		return err;
	request->request = ++w->request;
	err = dg__channel_send(&w->channel, request, c->deadline_ns, reterr);
	if (err == DG_EWORKER)
		return child_gone(w, reterr);
	if (err != DG_OK) {
		end_child(w, true);
		note_failure(w);
	}
	return err;
}

/*
 * One request. A child kept from an earlier call may have ended for being idle just now: then it said
 * nothing, and another one is asked.
 */
static dg_err exchange(dg__worker *w, call *c, dg__frame *request, dg__device_list *devices,
	dg__frame *last, dg_error *reterr)
{
	bool kept = w->channel.fd >= 0;
	dg_err err = ask(w, c, request, reterr);
	if (err == DG_OK)
		err = converse(w, c, devices, last, reterr);
	if (err != DG_EWORKER || !kept || !w->left || c->answered || atomic_load(&w->cancel))
		return err;
	note_success(w);
	err = ask(w, c, request, reterr);
	return err == DG_OK ? converse(w, c, devices, last, reterr) : err;
}

/* The mutex, a fresh flag, and the whole call; a child that may not stay idle ends here. */
static dg_err run_call(dg__worker *w, call *c, bool fresh, dg__frame *request, dg__device_list *devices,
	dg_telemetry *telemetry, dg_error *reterr)
{
	dg__frame *last = calloc(1, sizeof(*last));
	if (!last)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	adopt(w);
	pthread_mutex_lock(&w->lock);
	atomic_store(&w->cancel, false);
	atomic_store(&w->in_call, true);
	if (fresh && w->channel.fd >= 0)
		end_child(w, true);
	dg_err err = exchange(w, c, request, devices, last, reterr);
	bool alive = w->channel.fd >= 0;
	if (alive && (err == DG_OK || last->kind == DG__FRAME_ERROR))
		note_success(w);
	if (alive && w->options.idle_ms == 0)
		end_child(w, false);
	if (err == DG_OK && telemetry)
		*telemetry = last->telemetry;
	atomic_store(&w->in_call, false);
	pthread_mutex_unlock(&w->lock);
	free(last);
	return err;
}

static uint64_t deadline_after(uint32_t timeout_ms)
{
	return dg__clock_ns() + timeout_ms * MS;
}

static dg_err check_timeout(uint32_t timeout_ms, uint32_t most, dg_error *reterr)
{
	if (timeout_ms >= 1 && timeout_ms <= most)
		return DG_OK;
	return dg_error_set(reterr, DG_EINVALID, "a time limit of %lu ms is out of range 1..%lu",
		(unsigned long)timeout_ms, (unsigned long)most);
}

dg_err dg__worker_detect(
	dg__worker *worker, uint32_t timeout_ms, dg__device_list *ret_devices, dg_error *reterr)
{
	dg_err err = check_timeout(timeout_ms, 300000, reterr);
	if (err != DG_OK)
		return err;
	call c = { .deadline_ns = deadline_after(timeout_ms) };
	dg__frame request = { .kind = DG__FRAME_DETECT, .timeout_ms = timeout_ms };
	dg__device_list devices = { .count = 0 };
	err = run_call(worker, &c, true, &request, &devices, NULL, reterr);
	if (err == DG_OK)
		*ret_devices = devices;
	else
		dg__device_list_finish(&devices);
	return err;
}

/* Keys that a failed run did not come to. */
static void fill_rest(const call *c, dg_err err, const dg_error *why)
{
	for (size_t i = c->valued; i < c->measure->count; i++) {
		dg_value *v = &c->values[i];
		memset(v, 0, sizeof(*v));
		v->key = c->measure->keys[i];
		v->status = DG_STATUS_FAILED;
		v->code = err;
		snprintf(v->reason, sizeof(v->reason), "%.199s", *why->text ? why->text : dg_err_title(err));
	}
}

dg_err dg__worker_measure(dg__worker *worker, uint32_t device, const dg__measure_request *request,
	uint32_t timeout_ms, const dg__worker_watch *watch, dg_value *ret_values, dg_error *reterr)
{
	dg_error why = { .code = DG_OK };
	call c = { .measure = request, .watch = watch, .values = ret_values };
	dg_err err = check_timeout(timeout_ms, 3600000, &why);
	dg__frame *frame = err == DG_OK ? calloc(1, sizeof(*frame)) : NULL;
	if (err == DG_OK && !frame)
		err = dg_error_set(&why, DG_ENOMEM, NULL);
	if (err == DG_OK) {
		/* The child stops by itself at its limit and says so; only one that hangs is ended. */
		c.deadline_ns = deadline_after(timeout_ms) + GRACE_NS;
		frame->kind = DG__FRAME_MEASURE;
		frame->device = device;
		frame->timeout_ms = timeout_ms;
		frame->measure = *request;
		err = run_call(worker, &c, false, frame, NULL, NULL, &why);
	}
	free(frame);
	if (err == DG_OK && c.valued < request->count)
		err = dg_error_set(&why, DG_EPROTOCOL, "the worker of %s left values out", worker->backend);
	if (err != DG_OK) {
		fill_rest(&c, err, &why);
		if (reterr)
			*reterr = why;
	}
	return err;
}

dg_err dg__worker_telemetry(dg__worker *worker, uint32_t device, uint32_t timeout_ms,
	dg_telemetry *ret_telemetry, dg_error *reterr)
{
	dg_err err = check_timeout(timeout_ms, 300000, reterr);
	if (err != DG_OK)
		return err;
	call c = { .deadline_ns = deadline_after(timeout_ms) };
	dg__frame request = { .kind = DG__FRAME_TELEMETRY, .device = device };
	return run_call(worker, &c, false, &request, NULL, ret_telemetry, reterr);
}

void dg__worker_cancel(dg__worker *worker)
{
	if (atomic_load(&worker->in_call))
		atomic_store(&worker->cancel, true);
}

int64_t dg__worker_pid(const dg__worker *worker)
{
	return atomic_load(&((dg__worker *)(uintptr_t)worker)->pid);
}
