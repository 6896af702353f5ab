/*
 * See host.h. The first thread reads the socket, so that a closed one ends the process even while a
 * driver call hangs; a second one runs the backend, one request after the other.
 */
#include "backends/worker/host.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/core/clock.h"
#include "backends/core/engine.h"
#include "backends/core/registry.h"
#include "backends/worker/channel.h"
#include "backends/worker/confine.h"

/* Who reads nothing for so long is as good as gone. */
#define SEND_NS (30ull * 1000000000)
/* How often the parent and the idle time are looked at, at least. */
#define SLICE_MS 250u
#define FIRST_MS 60000u

typedef struct host {
	const dg__backend *backend;
	dg__channel in, out; /* one socket; each thread has a descriptor of its own */
	uint32_t idle_ms;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool busy; /* under lock: a request waits or runs; request is then the second thread's */
	uint64_t idle_since_ns; /* under lock */
	bool served; /* under lock: a request has been answered */
	dg__frame request;
	atomic_bool cancel;
	uint64_t number; /* of the running request; the second thread's */
	dg_value values[DG_KEYS_MAX];
	dg__frame incoming; /* the first thread's */
} host;

typedef struct host_options {
	const char *backend;
	unsigned long long fd, idle_ms, memory_bytes;
} host_options;

static void reply(host *h, dg__frame *frame)
{
	frame->request = h->number;
	if (dg__channel_send(&h->out, frame, dg__clock_ns() + SEND_NS, NULL) != DG_OK)
		_exit(1);
}

static void reply_end(host *h, dg_err err, const dg_error *why, const dg_telemetry *telemetry)
{
	dg__frame *frame = calloc(1, sizeof(*frame));
	if (!frame)
		_exit(1);
	frame->kind = err == DG_OK ? DG__FRAME_END : DG__FRAME_ERROR;
	if (telemetry)
		frame->telemetry = *telemetry;
	if (err != DG_OK) {
		frame->error = *why;
		frame->error.code = err;
	}
	reply(h, frame);
	free(frame);
}

static void on_progress(uint32_t done, uint32_t total, const dg_key *key, void *user)
{
	dg__frame frame = { .kind = DG__FRAME_PROGRESS, .done = done, .total = total, .key = *key };
	reply(user, &frame);
}

static void on_value(uint32_t done, const dg_value *value, void *user)
{
	host *h = user;
	dg__frame frame = { .kind = DG__FRAME_VALUE, .done = done, .value = *value };
	frame.total = (uint32_t)h->request.measure.count;
	reply(h, &frame);
}

static void serve_detect(host *h)
{
	dg__frame frame = { .kind = DG__FRAME_DEVICES };
	dg_error why = { .code = DG_OK };
	dg_err err = dg__engine_detect(h->backend, &frame.devices, &why);
	if (err == DG_OK)
		reply(h, &frame);
	dg__frame_finish(&frame);
	reply_end(h, err, &why, NULL);
}

static void serve_measure(host *h)
{
	const dg__measure_request *measure = &h->request.measure;
	dg__engine_options options = {
		.sustained = measure->sustained,
		.deadline_ns = dg__clock_ns() + h->request.timeout_ms * 1000000,
		.cancel = &h->cancel,
		.progress = on_progress,
		.value = on_value,
		.user = h,
	};
	dg_error why = { .code = DG_OK };
	dg_err err = dg__engine_measure(h->backend, h->request.device, measure->keys,
		measure->count, &options, h->values, &why);
	reply_end(h, err, &why, NULL);
}

static void serve_telemetry(host *h)
{
	dg_telemetry telemetry = { .present = 0 };
	dg_error why = { .code = DG_OK };
	dg_err err = h->backend->telemetry(h->backend, h->request.device, &telemetry, &why);
	reply_end(h, err, &why, &telemetry);
}

static void serve(host *h)
{
	h->number = h->request.request;
	if (h->request.kind == DG__FRAME_DETECT)
		serve_detect(h);
	else if (h->request.kind == DG__FRAME_MEASURE)
		serve_measure(h);
	else
		serve_telemetry(h);
}

static void *run(void *user)
{
	host *h = user;
	for (;;) {
		pthread_mutex_lock(&h->lock);
		while (!h->busy)
			pthread_cond_wait(&h->changed, &h->lock);
		pthread_mutex_unlock(&h->lock);
		serve(h);
		if (h->idle_ms == 0)
			_exit(0);
		pthread_mutex_lock(&h->lock);
		h->busy = false;
		h->served = true;
		h->idle_since_ns = dg__clock_ns();
		pthread_mutex_unlock(&h->lock);
	}
	return NULL;
}

static bool is_busy(host *h)
{
	pthread_mutex_lock(&h->lock);
	bool busy = h->busy;
	pthread_mutex_unlock(&h->lock);
	return busy;
}

/* A request while another runs, or one that only a worker sends, is a fault of the other end. */
static void take(host *h, const dg__frame *frame)
{
	if (frame->kind == DG__FRAME_CANCEL) {
		atomic_store(&h->cancel, true);
		return;
	}
	bool known = frame->kind == DG__FRAME_DETECT || frame->kind == DG__FRAME_MEASURE ||
		     frame->kind == DG__FRAME_TELEMETRY;
	/* The answer is read before its thread is back from sending it. */
	for (unsigned i = 0; i < 1000 && is_busy(h); i++)
		dg__clock_sleep_ns(1000000);
	if (!known || frame->timeout_ms > 86400000 || is_busy(h))
		_exit(3);
	pthread_mutex_lock(&h->lock);
	atomic_store(&h->cancel, false);
	h->request = *frame;
	h->busy = true;
	pthread_cond_signal(&h->changed);
	pthread_mutex_unlock(&h->lock);
}

/* Before the first request, which is on its way, a short idle time must not end the process. */
static bool idle_too_long(host *h)
{
	pthread_mutex_lock(&h->lock);
	uint64_t most_ns = (uint64_t)(h->served && h->idle_ms ? h->idle_ms : FIRST_MS) * 1000000;
	bool over = !h->busy && dg__clock_ns() - h->idle_since_ns >= most_ns;
	pthread_mutex_unlock(&h->lock);
	return over;
}

/*
 * A copy of the other end may be left in a child of who started us, and keep the socket open after
 * his death: hence the look at the parent.
 */
static void read_requests(host *h, pid_t parent)
{
	dg__frame *frame = &h->incoming;
	uint64_t slice_ns = h->idle_ms && h->idle_ms < SLICE_MS ? h->idle_ms : SLICE_MS;
	slice_ns *= 1000000;
	for (;;) {
		memset(frame, 0, sizeof(*frame));
		dg_err err = dg__channel_receive(&h->in, dg__clock_ns() + slice_ns, frame, NULL);
		if (err == DG_OK)
			take(h, frame);
		else if (err != DG_ETIMEOUT)
			_exit(err == DG_EWORKER ? 0 : 3);
		if (getppid() != parent || (err != DG_OK && idle_too_long(h)))
			_exit(0);
	}
}

static bool init_channels(host *h, int fd)
{
	int copy = dup(fd);
	return copy >= 0 && dg__channel_init_take(&h->in, fd, NULL) == DG_OK &&
	       dg__channel_init_take(&h->out, copy, NULL) == DG_OK;
}

static int start(const host_options *options, const dg__backend *backend, pid_t parent)
{
	pthread_t thread;
	host *h = calloc(1, sizeof(*h));
	if (!h)
		return 1;
	h->backend = backend;
	h->idle_ms = (uint32_t)options->idle_ms;
	h->idle_since_ns = dg__clock_ns();
	if (!init_channels(h, (int)options->fd) || pthread_mutex_init(&h->lock, NULL) != 0 ||
		pthread_cond_init(&h->changed, NULL) != 0 ||
		pthread_create(&thread, NULL, run, h) != 0) {
		free(h);
		return 1;
	}
	read_requests(h, parent);
	return 0;
}

static bool number(const char *text, unsigned long long most, unsigned long long *ret_number)
{
	char *end;
	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno != 0 || *end || value > most)
		return false;
	*ret_number = value;
	return true;
}

static bool read_options(int argc, char **argv, host_options *options)
{
	for (int i = 1; i < argc; i += 2) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;
		if (strcmp(argv[i], "--backend") == 0)
			options->backend = value;
		else if (strcmp(argv[i], "--fd") == 0 ? !number(value, 65535, &options->fd)
			 : strcmp(argv[i], "--idle-ms") == 0
				 ? !number(value, UINT32_MAX, &options->idle_ms)
			 : strcmp(argv[i], "--memory-bytes") == 0
				 ? !number(value, UINT64_MAX, &options->memory_bytes)
				 : true)
			return false;
	}
	return options->backend && options->fd >= 3;
}

static bool is_socket(int fd)
{
	int type;
	socklen_t size = sizeof(type);
	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

static void list_backends(const dg__backend *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		dprintf(STDOUT_FILENO, "%s\n", list[i]->name);
}

int dg__host_main(int argc, char **argv, const dg__backend *const *list, size_t count)
{
	host_options options = { .fd = 0 };
	pid_t parent = getppid();
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		dprintf(STDOUT_FILENO, "devgate-worker %s\n", DG_VERSION);
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		list_backends(list, count);
		return 0;
	}
	if (!read_options(argc, argv, &options) || !is_socket((int)options.fd)) {
		dprintf(STDERR_FILENO,
			"devgate-worker is started by devgated and libdevgate, with --backend "
			"NAME --fd N; by hand it knows --list and --version.\n");
		return 2;
	}
	const dg__backend *backend = dg__backend_find(list, count, options.backend);
	if (!backend || dg__backend_check(backend, NULL) != DG_OK) {
		dprintf(STDERR_FILENO, "devgate-worker: no backend '%.40s'; see --list\n",
			options.backend);
		return 2;
	}
	dg__confine((int)options.fd, options.memory_bytes);
	return start(&options, backend, parent);
}
