/* See local_engine.h. */
#include "client/local_engine.h"

#include "backends/core/clock.h"
#include "backends/core/engine.h"
#include "backends/core/registry.h"

#define STEP_NS 2000000u

/* A flag and no mutex: a wait for a mutex cannot be bounded everywhere. */
static atomic_bool busy[DG_BACKENDS_MAX];

static dg_err enter(size_t backend, const dg__call *call, dg_error *reterr)
{
	bool idle = false;
	while (!atomic_compare_exchange_strong(&busy[backend], &idle, true)) {
		if (dg__call_left_ms(call) == 0)
			return dg_error_set(reterr, DG_ETIMEOUT,
				"the deadline passed while another thread used the device");
		dg__clock_sleep_ns(STEP_NS);
		idle = false;
	}
	return DG_OK;
}

static void leave(size_t backend)
{
	atomic_store(&busy[backend], false);
}

void dg__local_engine_forget(void)
{
	for (size_t i = 0; i < DG_BACKENDS_MAX; i++)
		leave(i);
}

static const dg__backend *backend_at(size_t i)
{
	size_t count = 0;
	const dg__backend *const *all = dg__registry_all(&count);
	return i < count ? all[i] : NULL;
}

dg_err dg__local_engine_detect(
	size_t backend, const dg__call *call, dg__device_list *ret_list, dg_error *reterr)
{
	dg_err err = enter(backend, call, reterr);
	if (err)
		return err;
	err = dg__engine_detect(backend_at(backend), ret_list, reterr);
	leave(backend);
	return err;
}

typedef struct watch {
	const dg__call *call;
	atomic_bool cancel;
} watch;

static void on_progress(uint32_t done, uint32_t total, const dg_key *key, void *user)
{
	watch *w = user;
	char text[DG_KEY_TEXT_MAX];
	dg_key_format(key, text, sizeof(text));
	if (!dg__call_progress(w->call, done, total, text))
		atomic_store(&w->cancel, true);
}

dg_err dg__local_engine_measure(size_t backend, uint32_t position,
	const dg__measure_request *request, const dg__call *call, dg_value *ret_values,
	dg_error *reterr)
{
	dg_err err = enter(backend, call, reterr);
	if (err)
		return err;
	watch w = { .call = call };
	const dg__engine_options options = {
		.sustained = request->sustained,
		.deadline_ns = dg__clock_ns() + dg__call_left_ms(call) * UINT64_C(1000000),
		.cancel = &w.cancel,
		.progress = on_progress,
		.user = &w,
	};
	err = dg__engine_measure(backend_at(backend), position, request->keys, request->count,
		&options, ret_values, reterr);
	leave(backend);
	return err;
}

dg_err dg__local_engine_telemetry(size_t backend, uint32_t position, const dg__call *call,
	dg_telemetry *ret_telemetry, dg_error *reterr)
{
	const dg__backend *b = backend_at(backend);
	dg_err err = enter(backend, call, reterr);
	if (err)
		return err;
	err = b->telemetry(b, position, ret_telemetry, reterr);
	leave(backend);
	return err;
}
