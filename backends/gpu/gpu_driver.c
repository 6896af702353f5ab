/* Opening a driver and understanding its errors. See gpu.h. */
#include "backends/gpu/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

dg_err dg__gpu_failed(const dg__gpu *gpu, int code, const char *what, dg_error *reterr)
{
	const dg__gpu_vendor *v = gpu->vendor;
	const char *name = v->error_name ? v->error_name(gpu, code) : NULL;
	dg_err err = code == DG__GPU_NOMEM    ? DG_ENOMEM
		     : code == DG__GPU_NOTSUP ? DG_ENOTSUP
					      : DG_EDRIVER;
	return dg_error_native(reterr, err, v->driver, code, "%s: the driver says %s (%d)", what,
		name ? name : "an error it has no name for", code);
}

static dg_err open_library(dg__gpu *gpu, dg_error *reterr)
{
	const dg__gpu_vendor *v = gpu->vendor;
	dg_err err = DG_OK;
	if (gpu->library)
		return DG_OK;
	err = dg__dynlib_open(v->libraries, &gpu->library, reterr);
	if (!err)
		err = dg__dynlib_load(gpu->library, v->calls, v->call_count, &gpu->calls, reterr);
	if (!err)
		err = v->load(gpu, reterr);
	if (err) {
		dg__dynlib_close(gpu->library);
		gpu->library = NULL;
		return err;
	}
	gpu->has_graph = dg__dynlib_load(gpu->library, v->graph_calls, v->graph_call_count,
				 &gpu->graph, NULL) == DG_OK;
	return DG_OK;
}

static dg_err init(dg__gpu *gpu, bool *ret_none, dg_error *reterr)
{
	int code = gpu->calls.init(0), count = 0;
	/* HIP without a device: its count tells that there is none. */
	if (code == DG__GPU_NO_DEVICE ||
		(code == DG__GPU_BAD_DEVICE &&
			gpu->calls.device_count(&count) == DG__GPU_NO_DEVICE)) {
		*ret_none = true;
		return DG_OK;
	}
	if (code)
		return dg__gpu_failed(gpu, code, "starting the driver", reterr);
	if (gpu->calls.driver_version(&gpu->version))
		gpu->version = 0;
	gpu->ready = true;
	return DG_OK;
}

dg_err dg__gpu_ready(dg__gpu *gpu, bool *ret_none, dg_error *reterr)
{
	dg_err err = DG_OK;
	*ret_none = false;
	pthread_mutex_lock(&gpu->lock);
	if (!gpu->ready)
		err = open_library(gpu, reterr);
	if (!err && !gpu->ready)
		err = init(gpu, ret_none, reterr);
	pthread_mutex_unlock(&gpu->lock);
	return err;
}

dg_err dg__gpu_rtc_ready(dg__gpu *gpu, dg_error *reterr)
{
	const dg__gpu_vendor *v = gpu->vendor;
	pthread_mutex_lock(&gpu->lock);
	if (!gpu->rtc_tried) {
		gpu->rtc_tried = true;
		dg_err err = dg__dynlib_open(v->rtc_libraries, &gpu->rtc_library, &gpu->rtc_error);
		if (!err)
			err = dg__dynlib_load(gpu->rtc_library, v->rtc_calls, v->rtc_call_count,
				&gpu->rtc, &gpu->rtc_error);
		gpu->rtc_error.code = err;
	}
	dg_error error = gpu->rtc_error;
	pthread_mutex_unlock(&gpu->lock);
	if (!error.code)
		return DG_OK;
	return dg_error_set(
		reterr, DG_ENOTSUP, "no run-time compiler: %.300s; %s", error.text, v->rtc_missing);
}

void dg__gpu_finish(dg__gpu *gpu)
{
	dg__dynlib_close(gpu->side_library);
	dg__dynlib_close(gpu->rtc_library);
	dg__dynlib_close(gpu->library);
	free(gpu->own);
	*gpu = (dg__gpu)DG__GPU_INIT(gpu->vendor);
}
