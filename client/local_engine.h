/*
 * Local devices in the caller's own process, where it asks for that.
 */
#ifndef DEVGATE_CLIENT_LOCAL_ENGINE_H
#define DEVGATE_CLIENT_LOCAL_ENGINE_H

#include "api/wire.h"
#include "client/call.h"

/*
 * backend is a place in the list of dg__backend_names(). Calls on one backend wait for each other,
 * at most until the call's deadline (DG_ETIMEOUT). Threads: safe. Block: as the driver does.
 */

/** As dg__engine_detect(). */
dg_err dg__local_engine_detect(size_t backend, const dg__call *call, dg__device_list *ret_list,
	dg_error *reterr) DG_MUST_CHECK;

/** As dg__engine_measure(), with the call's deadline and progress. */
dg_err dg__local_engine_measure(size_t backend, uint32_t position,
	const dg__measure_request *request, const dg__call *call, dg_value *ret_values,
	dg_error *reterr) DG_MUST_CHECK;

/** What the device does now, as far as its backend tells. */
dg_err dg__local_engine_telemetry(size_t backend, uint32_t position, const dg__call *call,
	dg_telemetry *ret_telemetry, dg_error *reterr) DG_MUST_CHECK;

/** In a child of fork: no call is under way. */
void dg__local_engine_forget(void);

#endif
