/*
 * Devices of this machine, each backend in a worker process of its own, or in the caller's process
 * where the call asks for that.
 */
#ifndef DEVGATE_CLIENT_LOCAL_H
#define DEVGATE_CLIENT_LOCAL_H

#include "api/wire.h"
#include "client/call.h"

/** What became of looking for a backend's devices. */
typedef struct dg__local_found {
	const char *backend; /* its name; static */
	dg_err code;
	dg_error error; /* where code is not DG_OK */
	dg__device_list list; /* where code is DG_OK; dg__local_found_finish() */
	uint64_t elapsed_ms;
} dg__local_found;

/**
 * Look for the devices of every backend, all at once, in fresh workers.
 *
 * @param[out] ret_found  Room for DG_BACKENDS_MAX; in registry order.
 * @param[out] ret_count  How many.
 * Threads: safe. Blocks: until the call's deadline, and half a second for ending workers. (So for
 * the calls below.)
 */
void dg__local_detect_all(const dg__call *call, dg__local_found *ret_found, size_t *ret_count);
void dg__local_found_finish(dg__local_found *found, size_t count);

/**
 * Whether a variant has a device here that is no software adapter. Looks for those of its backend
 * only. Not to be found out is no.
 */
bool dg__local_has(dg_variant variant, const dg__call *call);

/** Variants of a list's devices that are no software adapters. */
dg_variant_set dg__local_variants(const dg__device_list *list);

/**
 * Describe a device; "default" is the first of its variant that is no software adapter.
 *
 * @param device  Of a variant with kernels, not Remote, without autodiff wrapper.
 * @return DG_OK, DG_ENODEVICE (says what there is), DG_ENOTENABLED (no such backend in this build),
 *         and what dg__worker_detect() returns.
 */
dg_err dg__local_describe(dg_device device, const dg__call *call, dg_device_info *ret_info,
	dg_error *reterr) DG_MUST_CHECK;

/** Measure; one value per key. Returns besides what dg__worker_measure() does. */
dg_err dg__local_measure(dg_device device, const dg__measure_request *request, const dg__call *call,
	dg_value *ret_values, dg_error *reterr) DG_MUST_CHECK;

/** What it does now. */
dg_err dg__local_telemetry(dg_device device, const dg__call *call, dg_telemetry *ret_telemetry,
	dg_error *reterr) DG_MUST_CHECK;

#endif
