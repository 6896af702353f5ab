/*
 * See worker.h. Calls on a handle follow one another; cancel and stop only leave word, which the
 * call under way looks for every few milliseconds.
 */
#include "backends/worker/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/core/clock.h"
#include "backends/worker/channel.h"
#include "backends/worker/spawn.h"

#define MS 1000000ull
#define SLICE_NS (10 * MS) /* how often word of cancelling is looked for */
#define TURN_NS (50 * MS) /* how often a waiting call looks at its deadline at least */
#define CANCEL_NS (150 * MS) /* a child may take so long to listen */
#define GRACE_NS (300 * MS) /* beyond a deadline that the child keeps itself */
#define CANCEL_REAP_MS 20
#define KILL_REAP_MS 100
#define GONE_REAP_MS 50 /* of a child that has closed its socket */
#define ASKED_REAP_MS 200 /* of a child that is asked to end */
#define ABANDONED_MAX 3 /* killed children that have not ended; more are not made */
#define BACKOFF_FIRST_MS 100
#define BACKOFF_LAST_MS 30000

struct dg__worker {
	char backend[16];
	char path[1024];
	dg__worker_options options;
	/* Process that made it, and whose child the worker is; negative: about to be. */
	_Atomic(pid_t) owner;
	pthread_mutex_t lock;
	pthread_cond_t freed;
	bool busy; /* under lock; the rest is the call's that has its turn */
	/*
	 * Number of the call under way, 0 for none, and of the last one to be cancelled. No number
	 * comes twice, so that a cancel which comes too late for its call does not hit the next.
	 */
	_Atomic(uint64_t) in_call, cancelled;
	uint64_t calls;
	atomic_bool stopped;
	_Atomic(int64_t) pid; /* 0: no child */
	dg__channel channel;
	uint64_t request;
	unsigned failures; /* in a row */
	uint64_t not_before_ns;
	pid_t abandoned[ABANDONED_MAX];
	size_t abandoned_count;
};

/* A call under way. */
typedef struct call {
	uint64_t number;
	uint64_t deadline_ns;
	uint64_t grace_ns; /* after it, for a child that keeps the deadline itself */
	uint64_t cancelled_ns; /* when the child was asked to stop; 0: was not */
	bool fresh; /* the child was started for this call */
	bool broken; /* a frame to the child went out in part */
	bool answered; /* a frame of it has come */
	dg__device_list *devices; /* NULL: none are asked for */
	bool listed; /* devices have come */
	const dg__measure_request *measure; /* NULL: no values are asked for */
	const dg__worker_watch *watch;
	dg_value *values;
	size_t valued; /* values that have come */
	dg__frame *last; /* the frame received last */
} call;

/* Waiting for one's turn does not depend on the time of day, where the system can do that. */
static int init_turns(dg__worker *w)
{
	pthread_condattr_t attributes;
	int err = pthread_condattr_init(&attributes);
	if (err)
		return err;
#ifndef __APPLE__
	err = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
	if (!err)
		err = pthread_mutex_init(&w->lock, NULL);
	if (!err) {
		err = pthread_cond_init(&w->freed, &attributes);
		if (err)
			pthread_mutex_destroy(&w->lock);
	}
	pthread_condattr_destroy(&attributes);
	return err;
}

static void wait_freed(dg__worker *w, uint64_t at_most_ns)
{
	struct timespec until;
#ifdef __APPLE__
	clock_gettime(CLOCK_REALTIME, &until);
#else
	clock_gettime(CLOCK_MONOTONIC, &until);
#endif
	uint64_t ns = (uint64_t)until.tv_nsec + at_most_ns;
	until.tv_sec += (time_t)(ns / (1000 * MS));
	until.tv_nsec = (long)(ns % (1000 * MS));
	pthread_cond_timedwait(&w->freed, &w->lock, &until);
}

static bool take_turn(dg__worker *w, uint64_t deadline_ns)
{
	pthread_mutex_lock(&w->lock);
	while (w->busy && dg__clock_ns() < deadline_ns && !atomic_load(&w->stopped))
		wait_freed(w, TURN_NS);
	bool mine = !w->busy;
	w->busy = true;
	pthread_mutex_unlock(&w->lock);
	return mine;
}

static void give_turn(dg__worker *w)
{
	pthread_mutex_lock(&w->lock);
	w->busy = false;
	pthread_cond_signal(&w->freed);
	pthread_mutex_unlock(&w->lock);
}

static bool good_name(const char *name)
{
	size_t length = name ? strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789") : 0;
	return length > 0 && length < 16 && !name[length];
}

dg_err dg__worker_create(
	const dg__worker_options *options, dg__worker **ret_worker, dg_error *reterr)
{
	if (!good_name(options->backend))
		return dg_error_set(
			reterr, DG_EINVALID, "a backend's name is 1 to 15 letters and digits");
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
	if (err == DG_OK && init_turns(w) != 0)
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

/*
 * Close the socket, which ends a child that can end; kill it after grace_ms; leave one in an
 * uninterruptible call behind. Its status, or DG__STATUS_UNKNOWN, also where it had to be killed.
 */
static int end_child(dg__worker *w, unsigned grace_ms, unsigned reap_ms)
{
	pid_t pid = (pid_t)atomic_load(&w->pid);
	int status = DG__STATUS_UNKNOWN;
	dg__channel_finish(&w->channel);
	if (pid == 0)
		return DG__STATUS_UNKNOWN;
	/* Looked at even without grace: a number that somebody else reaped may be a stranger's. */
	if (!dg__spawn_reap(pid, grace_ms, &status)) {
		kill(pid, SIGKILL);
		if (!dg__spawn_reap(pid, reap_ms, &status) && w->abandoned_count < ABANDONED_MAX)
			w->abandoned[w->abandoned_count++] = pid;
		status = DG__STATUS_UNKNOWN;
	}
	atomic_store(&w->pid, 0);
	return status;
}

/*
 * In a child of fork() the process of the worker belongs to the parent, and a thread that is not
 * here may have been in a call: nothing of that is used or given back, only our copy of its socket
 * closed.
 */
static void adopt(dg__worker *w)
{
	pid_t self = getpid(), owner = atomic_load(&w->owner);
	while (owner != self) {
		if (owner == -self) {
			dg__clock_sleep_ns(MS);
			owner = atomic_load(&w->owner);
		} else if (atomic_compare_exchange_strong(&w->owner, &owner, -self)) {
			int fd = w->channel.fd;
			w->channel = (dg__channel){ .fd = -1 };
			if (fd >= 0)
				close(fd);
			w->busy = init_turns(w) != 0;
			atomic_store(&w->in_call, 0);
			atomic_store(&w->pid, 0);
			w->abandoned_count = 0;
			w->failures = 0;
			w->not_before_ns = 0;
			atomic_store(&w->owner, self);
			return;
		}
	}
}

void dg__worker_destroy(dg__worker *worker)
{
	if (!worker)
		return;
	adopt(worker);
	end_child(worker, ASKED_REAP_MS, KILL_REAP_MS);
	for (size_t i = 0; i < worker->abandoned_count; i++)
		dg__spawn_leave(worker->abandoned[i]);
	pthread_cond_destroy(&worker->freed);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
}

/* The first start after a failure waits for nothing; then 100 ms, doubled up to 30 s. */
static void note_failure(dg__worker *w)
{
	w->failures++;
	if (w->failures < 2)
		return;
	unsigned doublings = w->failures - 2 < 9 ? w->failures - 2 : 9;
	uint64_t wait_ms = (uint64_t)BACKOFF_FIRST_MS << doublings;
	w->not_before_ns =
		dg__clock_ns() + (wait_ms < BACKOFF_LAST_MS ? wait_ms : BACKOFF_LAST_MS) * MS;
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
			"%d earlier workers of %s cannot be ended; no further one is started",
			ABANDONED_MAX, w->backend);
	if (now < w->not_before_ns)
		return dg_error_set(reterr, DG_EWORKER,
			"the worker of %s failed %u times in a row; it is tried again in %llu ms",
			w->backend, w->failures,
			(unsigned long long)((w->not_before_ns - now) / MS + 1));
	pid_t pid;
	int fd;
	dg_err err = dg__spawn(w->path, &w->options, &pid, &fd, reterr);
	if (err == DG_OK) {
		c->fresh = true;
		atomic_store(&w->pid, pid);
		err = dg__channel_init_take(&w->channel, fd, reterr);
		if (err != DG_OK) {
			w->channel = (dg__channel){ .fd = -1 };
			end_child(w, 0, KILL_REAP_MS);
		}
	}
	if (err != DG_OK)
		note_failure(w);
	return err;
}

/* The status of a child whose end of the socket is closed; it had not to be told by ours. */
static int reap_gone(dg__worker *w)
{
	int status;
	if (!dg__spawn_reap((pid_t)atomic_load(&w->pid), GONE_REAP_MS, &status))
		return end_child(w, 0, GONE_REAP_MS);
	atomic_store(&w->pid, 0);
	dg__channel_finish(&w->channel);
	return status;
}

/* The child is gone: how, in words. One that had been told to end when idle did nothing wrong. */
static dg_err child_gone(dg__worker *w, const call *c, dg_error *reterr)
{
	char how[48];
	int status = reap_gone(w);
	if (status != 0 || c->answered || c->fresh)
		note_failure(w);
	if (status == DG__STATUS_UNKNOWN)
		return dg_error_native(reterr, DG_EWORKER, w->backend, 0,
			"the worker of %s closed its socket", w->backend);
	int number = dg__spawn_describe(status, how, sizeof(how));
	return dg_error_native(
		reterr, DG_EWORKER, w->backend, number, "the worker of %s %s", w->backend, how);
}

/* The child sent what it must not, or nothing can be sent to it. */
static dg_err give_up(dg__worker *w, dg_err err)
{
	end_child(w, 0, KILL_REAP_MS);
	note_failure(w);
	return err;
}

static dg_err nonsense(dg__worker *w, const char *what, dg_error *reterr)
{
	return give_up(w, dg_error_set(reterr, DG_EPROTOCOL, "it %s", what));
}

static bool is_cancelled(const dg__worker *w, const call *c)
{
	return atomic_load(&w->stopped) || atomic_load(&w->cancelled) == c->number;
}

static dg_err tell_cancelled(dg_error *reterr)
{
	return dg_error_set(reterr, DG_ECANCELLED, "the work was cancelled");
}

static dg_err cancelled(dg__worker *w, dg_error *reterr)
{
	end_child(w, 0, CANCEL_REAP_MS);
	return tell_cancelled(reterr);
}

/* Whether the call may go on; ends the child where not. */
static dg_err check_time(dg__worker *w, const call *c, dg_error *reterr)
{
	uint64_t now = dg__clock_ns();
	if (c->cancelled_ns)
		return now > c->cancelled_ns + CANCEL_NS ? cancelled(w, reterr) : DG_OK;
	if (now <= c->deadline_ns + c->grace_ns)
		return DG_OK;
	return give_up(w, dg_error_set(reterr, DG_ETIMEOUT,
				  "%s did not answer in time; its worker was ended", w->backend));
}

/* Ask the child to stop, once, when the call is to end. */
static void pass_cancel(dg__worker *w, call *c)
{
	if (c->cancelled_ns || !is_cancelled(w, c))
		return;
	c->cancelled_ns = dg__clock_ns();
	dg__frame *frame = calloc(1, sizeof(*frame));
	if (frame) {
		frame->kind = DG__FRAME_CANCEL;
		frame->request = w->request;
		c->broken = dg__channel_send(
				    &w->channel, frame, c->cancelled_ns + SLICE_NS, NULL) != DG_OK;
	}
	free(frame);
}

static dg_err receive(dg__worker *w, call *c, dg_error *reterr)
{
	memset(c->last, 0, sizeof(*c->last));
	for (;;) {
		pass_cancel(w, c);
		dg_err err = check_time(w, c, reterr);
		if (err != DG_OK)
			return err;
		err = dg__channel_receive(&w->channel, dg__clock_ns() + SLICE_NS, c->last, reterr);
		if (err == DG_OK) {
			c->answered = true;
			return DG_OK;
		}
		if (err == DG_EWORKER)
			return c->cancelled_ns ? cancelled(w, reterr) : child_gone(w, c, reterr);
		if (err != DG_ETIMEOUT)
			return give_up(w, err);
	}
}

static dg_err take_devices(dg__worker *w, call *c, dg_error *reterr)
{
	dg__device_list *list = &c->last->devices;
	bool good = c->devices && !c->listed;
	for (size_t i = 0; good && i < list->count; i++)
		good = strcmp(list->entries[i].info.backend, w->backend) == 0;
	if (!good) {
		dg__frame_finish(c->last);
		return nonsense(w, "sent devices that were not asked for", reterr);
	}
	*c->devices = *list;
	*list = (dg__device_list){ .count = 0 };
	c->listed = true;
	return DG_OK;
}

static dg_err take_value(dg__worker *w, call *c, dg_error *reterr)
{
	const dg__frame *frame = c->last;
	bool value = frame->kind == DG__FRAME_VALUE;
	const dg__measure_request *m = c->measure;
	if (!m || frame->done >= m->count || frame->total != m->count || frame->done != c->valued ||
		!dg_key_equal(value ? &frame->value.key : &frame->key, &m->keys[frame->done]))
		return nonsense(w, "told of a key that was not asked for", reterr);
	if (value) {
		c->values[c->valued++] = frame->value;
		if (c->watch && c->watch->value)
			c->watch->value(frame->done, &frame->value, c->watch->user);
	} else if (c->watch && c->watch->progress) {
		c->watch->progress(frame->done, frame->total, &frame->key, c->watch->user);
	}
	return DG_OK;
}

static dg_err take_end(dg__worker *w, const call *c, dg_error *reterr)
{
	if (c->devices && !c->listed)
		return nonsense(w, "sent no devices", reterr);
	if (c->measure && c->valued < c->measure->count)
		return nonsense(w, "left values out", reterr);
	return DG_OK;
}

static dg_err take_error(const call *c, dg_error *reterr)
{
	if (reterr)
		*reterr = c->last->error;
	return c->last->error.code;
}

/* Receive until the request ends, well or with the child's own error. */
static dg_err converse(dg__worker *w, call *c, dg_error *reterr)
{
	for (;;) {
		dg_err err = receive(w, c, reterr);
		if (err != DG_OK)
			return err;
		if (c->last->request != w->request) {
			dg__frame_finish(c->last);
			return nonsense(w, "answered what was not asked", reterr);
		}
		switch (c->last->kind) {
		case DG__FRAME_END:
			return take_end(w, c, reterr);
		case DG__FRAME_ERROR:
			return take_error(c, reterr);
		case DG__FRAME_DEVICES:
			err = take_devices(w, c, reterr);
			break;
		case DG__FRAME_VALUE:
		case DG__FRAME_PROGRESS:
			err = take_value(w, c, reterr);
			break;
		default:
			err = nonsense(w, "sent a request", reterr);
		}
		if (err != DG_OK)
			return err;
	}
}

static dg_err ask(dg__worker *w, call *c, dg__frame *request, dg_error *reterr)
{
	dg_err err = w->channel.fd < 0 ? start_child(w, c, reterr) : DG_OK;
	if (err != DG_OK)
		return err;
	uint64_t now = dg__clock_ns();
	/* Some of it may have gone by waiting for a turn. */
	request->timeout_ms = now < c->deadline_ns ? (c->deadline_ns - now) / MS + 1 : 1;
	request->request = ++w->request;
	err = dg__channel_send(&w->channel, request, c->deadline_ns, reterr);
	if (err == DG_EWORKER)
		return child_gone(w, c, reterr);
	return err == DG_OK ? DG_OK : give_up(w, err);
}

/* A child that ended since the last call, for being idle or by mishap, is no fault of this one. */
static void drop_ended(dg__worker *w)
{
	if (w->channel.fd < 0 || !dg__channel_is_closed(&w->channel))
		return;
	int status = reap_gone(w);
	if (status != 0 && status != DG__STATUS_UNKNOWN)
		note_failure(w);
}

/*
 * One request. A child kept from an earlier call may be on its way out already, for being idle or
 * killed: where it said nothing at all, another one is asked.
 */
static dg_err exchange(dg__worker *w, call *c, dg__frame *request, dg_error *reterr)
{
	drop_ended(w);
	if (is_cancelled(w, c))
		return tell_cancelled(reterr);
	bool kept = w->channel.fd >= 0;
	dg_err err = ask(w, c, request, reterr);
	if (err == DG_OK)
		err = converse(w, c, reterr);
	bool again = err == DG_EWORKER && kept && !c->answered && !is_cancelled(w, c) &&
		     dg__clock_ns() >= w->not_before_ns;
	if (!again)
		return err;
	err = ask(w, c, request, reterr);
	return err == DG_OK ? converse(w, c, reterr) : err;
}

/* To who calls, a worker that cannot be understood is as good as a dead one. */
static dg_err tell_nonsense(const dg__worker *w, dg_error *reterr)
{
	if (!reterr)
		return DG_EWORKER;
	const dg_error how = *reterr;
	return dg_error_native(reterr, DG_EWORKER, w->backend, 0,
		"the worker of %s broke its protocol: %.350s", w->backend, how.text);
}

/* What becomes of the child after a call. */
static void settle(dg__worker *w, const call *c, dg_err err)
{
	if (w->channel.fd < 0)
		return;
	if (err == DG_OK || c->last->kind == DG__FRAME_ERROR)
		note_success(w);
	if (c->broken)
		end_child(w, 0, KILL_REAP_MS);
	else if (w->options.idle_ms == 0)
		end_child(w, ASKED_REAP_MS, KILL_REAP_MS);
}

static dg_err run_call(dg__worker *w, call *c, dg__frame *request, dg_error *reterr)
{
	adopt(w);
	if (!take_turn(w, c->deadline_ns))
		return atomic_load(&w->stopped)
			       ? tell_cancelled(reterr)
			       : dg_error_set(reterr, DG_ETIMEOUT,
					 "earlier calls on the worker of %s took all of the time",
					 w->backend);
	c->number = ++w->calls;
	atomic_store(&w->in_call, c->number);
	/* Drivers look at the hardware once. */
	if (request->kind == DG__FRAME_DETECT)
		end_child(w, GONE_REAP_MS, KILL_REAP_MS);
	dg_err err = exchange(w, c, request, reterr);
	settle(w, c, err);
	atomic_store(&w->in_call, 0);
	give_turn(w);
	return err == DG_EPROTOCOL ? tell_nonsense(w, reterr) : err;
}

/* A call with its frames, which are too large for a small stack. */
static dg_err call_with(dg__worker *w, call *c, dg__frame_kind kind, uint32_t device,
	dg_telemetry *ret_telemetry, dg_error *reterr)
{
	dg__frame *frames = calloc(2, sizeof(*frames));
	if (!frames)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	frames[0].kind = kind;
	frames[0].device = device;
	if (c->measure)
		frames[0].measure = *c->measure;
	c->last = &frames[1];
	dg_err err = run_call(w, c, &frames[0], reterr);
	if (err == DG_OK && ret_telemetry)
		*ret_telemetry = c->last->telemetry;
	free(frames);
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
	dg__device_list devices = { .count = 0 };
	call c = { .deadline_ns = deadline_after(timeout_ms), .devices = &devices };
	err = call_with(worker, &c, DG__FRAME_DETECT, 0, NULL, reterr);
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
		snprintf(v->reason, sizeof(v->reason), "%.199s",
			*why->text ? why->text : dg_err_title(err));
	}
}

dg_err dg__worker_measure(dg__worker *worker, uint32_t device, const dg__measure_request *request,
	uint32_t timeout_ms, const dg__worker_watch *watch, dg_value *ret_values, dg_error *reterr)
{
	dg_error why = { .code = DG_OK };
	call c = { .measure = request, .watch = watch, .values = ret_values };
	dg_err err = check_timeout(timeout_ms, 3600000, &why);
	if (err == DG_OK) {
		/* The child stops by itself in time and says so; only one that hangs is ended. */
		c.deadline_ns = deadline_after(timeout_ms);
		c.grace_ns = GRACE_NS;
		err = call_with(worker, &c, DG__FRAME_MEASURE, device, NULL, &why);
	}
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
	return call_with(worker, &c, DG__FRAME_TELEMETRY, device, ret_telemetry, reterr);
}

void dg__worker_cancel(dg__worker *worker)
{
	uint64_t number = atomic_load(&worker->in_call), last = atomic_load(&worker->cancelled);
	/* Only upwards: one that is late must not take back one that is in time. */
	while (last < number && !atomic_compare_exchange_weak(&worker->cancelled, &last, number))
		continue;
}

void dg__worker_stop(dg__worker *worker)
{
	atomic_store(&worker->stopped, true);
}

int64_t dg__worker_pid(const dg__worker *worker)
{
	dg__worker *w = (dg__worker *)(uintptr_t)worker;
	return atomic_load(&w->owner) == getpid() ? atomic_load(&w->pid) : 0;
}
