/* See local.h. */
#include "client/local.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/variant.h"
#include "backends/core/names.h"
#include "backends/worker/worker.h"
#include "client/local_engine.h"

/* A worker keeps its driver loaded for so long, for the next call; then the device is idle. */
#define WORKER_IDLE_MS 5000u
/* So long the place of a device in its driver's order is believed. */
#define FRESH_MS 10000u
#define DETECT_MAX_MS 300000u
#define MEASURE_MAX_MS 3600000u

typedef struct backend {
	dg__worker *worker; /* made on first need, kept for the life of the process */
	dg__device_list known; /* as last found */
	uint64_t known_ms; /* when; 0: never */
} backend;

static struct {
	pthread_mutex_t lock; /* never held while waiting for a worker */
	backend backends[DG_BACKENDS_MAX];
	dg__worker *abandoned[DG_BACKENDS_MAX]; /* a parent's; kept reachable, never touched */
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	pthread_mutex_lock(&state.lock);
}

static void unlock_state(void)
{
	pthread_mutex_unlock(&state.lock);
}

/* The workers of a parent answer the parent. */
static void forget_workers(void)
{
	for (size_t i = 0; i < DG_BACKENDS_MAX; i++) {
		if (state.backends[i].worker)
			state.abandoned[i] = state.backends[i].worker;
		state.backends[i].worker = NULL;
	}
	dg__local_engine_forget();
	pthread_mutex_unlock(&state.lock);
}

static void watch_forks(void)
{
	/* Where memory is too short for this, a child of fork gets errors from its devices. */
	(void)pthread_atfork(before_fork, unlock_state, forget_workers);
}

static void lock_state(void)
{
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&state.lock);
}

static size_t backend_count(void)
{
	size_t count = 0;
	(void)dg__backend_names(&count);
	return count < DG_BACKENDS_MAX ? count : DG_BACKENDS_MAX;
}

static const char *backend_name(size_t i)
{
	size_t count = 0;
	return dg__backend_names(&count)[i];
}

static uint32_t left_ms(const dg__call *call, uint32_t most)
{
	uint32_t left = dg__call_left_ms(call);
	return left < most ? left : most;
}

static dg_err late(dg_error *reterr)
{
	return dg_error_set(reterr, DG_ETIMEOUT, "the deadline passed before the device was asked");
}

static dg_err worker_of(size_t i, dg__worker **ret_worker, dg_error *reterr)
{
	dg_err err = DG_OK;
	lock_state();
	if (!state.backends[i].worker) {
		const dg__worker_options options = { .backend = backend_name(i),
			.idle_ms = WORKER_IDLE_MS };
		err = dg__worker_create(&options, &state.backends[i].worker, reterr);
	}
	if (!err)
		*ret_worker = state.backends[i].worker;
	unlock_state();
	return err;
}

static bool list_copy(const dg__device_list *list, dg__device_list *ret_copy)
{
	dg__device_list copy = *list;
	copy.entries = malloc((list->count ? list->count : 1) * sizeof(*copy.entries));
	if (!copy.entries)
		return false;
	if (list->count)
		memcpy(copy.entries, list->entries, list->count * sizeof(*copy.entries));
	*ret_copy = copy;
	return true;
}

static void remember(size_t i, const dg__device_list *list)
{
	dg__device_list copy, old;
	if (!list_copy(list, &copy))
		return;
	lock_state();
	old = state.backends[i].known;
	state.backends[i].known = copy;
	state.backends[i].known_ms = dg__now_ms() + 1;
	unlock_state();
	dg__device_list_finish(&old);
}

static void forget(size_t i)
{
	lock_state();
	state.backends[i].known_ms = 0;
	unlock_state();
}

static dg_err detect(size_t i, const dg__call *call, dg__device_list *ret_list, dg_error *reterr)
{
	dg__worker *worker = NULL;
	dg_err err;
	if (dg__call_left_ms(call) == 0)
		return late(reterr);
	if (call->flags & DG_LOCAL_IN_PROCESS) {
		err = dg__local_engine_detect(i, call, ret_list, reterr);
	} else {
		err = worker_of(i, &worker, reterr);
		if (!err)
			err = dg__worker_detect(
				worker, left_ms(call, DETECT_MAX_MS), ret_list, reterr);
	}
	if (err)
		forget(i);
	else
		remember(i, ret_list);
	return err;
}

/* All at once. */

typedef struct look {
	size_t backend;
	const dg__call *call;
	dg__local_found *found;
	pthread_t thread;
	bool started;
} look;

static void *look_for(void *user)
{
	look *l = user;
	uint64_t start_ms = dg__now_ms();
	l->found->code = detect(l->backend, l->call, &l->found->list, &l->found->error);
	l->found->elapsed_ms = dg__now_ms() - start_ms;
	return NULL;
}

void dg__local_detect_all(const dg__call *call, dg__local_found *ret_found, size_t *ret_count)
{
	look looks[DG_BACKENDS_MAX];
	size_t count = backend_count();
	for (size_t i = 0; i < count; i++) {
		memset(&ret_found[i], 0, sizeof(ret_found[i]));
		ret_found[i].backend = backend_name(i);
		looks[i] = (look){ .backend = i, .call = call, .found = &ret_found[i] };
		/* The last one, and any that gets no thread, is looked for on this one. */
		looks[i].started = i + 1 < count &&
				   pthread_create(&looks[i].thread, NULL, look_for, &looks[i]) == 0;
	}
	for (size_t i = 0; i < count; i++)
		if (!looks[i].started)
			look_for(&looks[i]);
	for (size_t i = 0; i < count; i++)
		if (looks[i].started)
			pthread_join(looks[i].thread, NULL);
	*ret_count = count;
}

void dg__local_found_finish(dg__local_found *found, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!found[i].code)
			dg__device_list_finish(&found[i].list);
}

dg_variant_set dg__local_variants(const dg__device_list *list)
{
	dg_variant_set set = 0;
	for (size_t i = 0; i < list->count; i++) {
		const dg_device_info *info = &list->entries[i].info;
		if (info->present & DG_HAS_DEVICE && !info->software)
			set |= DG_VARIANT_BIT(info->device.variant);
	}
	return set;
}

/* One device. */

typedef struct place {
	size_t backend;
	uint32_t position; /* in its driver's order */
	dg_device_info info;
} place;

/* The backend whose name is the variant's; the two variants of the portable API share one. */
static bool backend_of(unsigned variant, size_t *ret_backend)
{
	for (size_t i = 0; i < backend_count(); i++) {
		if (strcmp(backend_name(i), dg__variants[variant].text) == 0 ||
			(variant == DG_WGPU &&
				strcmp(backend_name(i), dg__variants[DG_WEBGPU].text) == 0)) {
			*ret_backend = i;
			return true;
		}
	}
	return false;
}

static bool is_default(dg_device device)
{
	return dg__variants[device.variant].form == DG__FORM_ADAPTER &&
	       device.kind == DG_KIND_DEFAULT;
}

static bool matches(const dg_device_info *info, dg_device device)
{
	if (!(info->present & DG_HAS_DEVICE))
		return false;
	if (is_default(device))
		return info->device.variant == device.variant && !info->software;
	return dg_device_equal(info->device, device);
}

static bool find_in(const dg__device_list *list, dg_device device, place *ret_place)
{
	for (size_t i = 0; i < list->count; i++) {
		if (matches(&list->entries[i].info, device)) {
			ret_place->position = (uint32_t)i;
			ret_place->info = list->entries[i].info;
			return true;
		}
	}
	return false;
}

static dg_err not_found(const dg__device_list *list, dg_device device, dg_error *reterr)
{
	char text[DG_DEVICE_TEXT_MAX], there[300] = "";
	size_t n = 0;
	for (size_t i = 0; i < list->count && n + 48 < sizeof(there); i++) {
		if (!(list->entries[i].info.present & DG_HAS_DEVICE))
			continue;
		if (n) {
			there[n++] = ',';
			there[n++] = ' ';
		}
		n += dg_device_format(list->entries[i].info.device, there + n, sizeof(there) - n);
	}
	dg_device_format(device, text, sizeof(text));
	return dg_error_set(reterr, DG_ENODEVICE, "there is no %.100s on this machine; there is %s",
		text, n ? there : "none of its backend");
}

static bool find_known(dg_device device, place *ret_place)
{
	backend *b = &state.backends[ret_place->backend];
	lock_state();
	bool found = b->known_ms && dg__now_ms() < b->known_ms + FRESH_MS &&
		     find_in(&b->known, device, ret_place);
	unlock_state();
	return found;
}

static dg_err find(dg_device device, const dg__call *call, place *ret_place, dg_error *reterr)
{
	dg__device_list list = { 0 };
	char text[DG_DEVICE_TEXT_MAX];
	if (!backend_of(device.variant, &ret_place->backend)) {
		dg_device_format(device, text, sizeof(text));
		return dg_error_set(
			reterr, DG_ENOTENABLED, "this build has no backend for %.100s", text);
	}
	if (find_known(device, ret_place))
		return DG_OK;
	dg_err err = detect(ret_place->backend, call, &list, reterr);
	if (err)
		return err;
	if (!find_in(&list, device, ret_place))
		err = not_found(&list, device, reterr);
	dg__device_list_finish(&list);
	return err;
}

bool dg__local_has(dg_variant variant, const dg__call *call)
{
	dg__device_list list = { 0 };
	size_t i;
	if (!backend_of(variant, &i) || detect(i, call, &list, NULL))
		return false;
	bool has = dg__local_variants(&list) & DG_VARIANT_BIT(variant);
	dg__device_list_finish(&list);
	return has;
}

dg_err dg__local_describe(
	dg_device device, const dg__call *call, dg_device_info *ret_info, dg_error *reterr)
{
	place p = { 0 };
	dg_err err = find(device, call, &p, reterr);
	if (!err)
		*ret_info = p.info;
	return err;
}

typedef struct watch {
	const dg__call *call;
	dg__worker *worker;
} watch;

static void on_progress(uint32_t done, uint32_t total, const dg_key *key, void *user)
{
	watch *w = user;
	char text[DG_KEY_TEXT_MAX];
	dg_key_format(key, text, sizeof(text));
	if (!dg__call_progress(w->call, done, total, text))
		dg__worker_cancel(w->worker);
}

static dg_err measure_in_worker(const place *p, const dg__measure_request *request,
	const dg__call *call, dg_value *ret_values, dg_error *reterr)
{
	watch w = { .call = call };
	const dg__worker_watch hooks = { .progress = on_progress, .user = &w };
	dg_err err = worker_of(p->backend, &w.worker, reterr);
	if (err)
		return err;
	if (dg__call_left_ms(call) == 0)
		return late(reterr);
	return dg__worker_measure(w.worker, p->position, request, left_ms(call, MEASURE_MAX_MS),
		&hooks, ret_values, reterr);
}

dg_err dg__local_measure(dg_device device, const dg__measure_request *request, const dg__call *call,
	dg_value *ret_values, dg_error *reterr)
{
	place p = { 0 };
	dg_err err = find(device, call, &p, reterr);
	if (err)
		return err;
	err = call->flags & DG_LOCAL_IN_PROCESS
		      ? dg__local_engine_measure(
				p.backend, p.position, request, call, ret_values, reterr)
		      : measure_in_worker(&p, request, call, ret_values, reterr);
	if (err == DG_ENODEVICE || err == DG_ELOST || err == DG_EDRIVER || err == DG_EWORKER)
		forget(p.backend);
	return err;
}

dg_err dg__local_telemetry(
	dg_device device, const dg__call *call, dg_telemetry *ret_telemetry, dg_error *reterr)
{
	place p = { 0 };
	dg__worker *worker = NULL;
	dg_err err = find(device, call, &p, reterr);
	if (!err && call->flags & DG_LOCAL_IN_PROCESS)
		return dg__local_engine_telemetry(
			p.backend, p.position, call, ret_telemetry, reterr);
	if (!err)
		err = worker_of(p.backend, &worker, reterr);
	if (err)
		return err;
	if (dg__call_left_ms(call) == 0)
		return late(reterr);
	return dg__worker_telemetry(
		worker, p.position, left_ms(call, DETECT_MAX_MS), ret_telemetry, reterr);
}
