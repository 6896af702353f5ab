/* See dispatch.h; the calls of devgate.h that concern one device. */
#include "client/dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "client/identity.h"
#include "client/local.h"
#include "client/remote.h"

const char *dg_version(void)
{
	return DG_VERSION;
}

dg_err dg__device_check(dg_device device, dg_error *reterr)
{
	if (!dg_variant_name(device.variant))
		return dg_error_set(reterr, DG_EINVALID, "a device has no variant numbered %u",
			(unsigned)device.variant);
	return DG_OK;
}

dg_err dg__describe(
	dg_device device, const dg__call *call, dg__device_entry *ret_entry, dg_error *reterr)
{
	device = dg_device_inner(device);
	if (device.variant == DG_REMOTE)
		return dg__remote_describe(device, call, ret_entry, reterr);
	dg__device_entry entry = { .driver_index = 0 };
	dg_err err = dg_settings_defaults(device, &entry.settings, reterr);
	if (err)
		return err;
	if (dg_variant_has_kernels(device.variant))
		err = dg__local_describe(device, call, &entry.info, reterr);
	else
		dg__identity_describe(device, &entry.info);
	if (!err)
		*ret_entry = entry;
	return err;
}

dg_err dg_describe(
	dg_device device, const dg_call *call, dg_device_info *ret_info, dg_error *reterr)
{
	dg__call c;
	dg__device_entry entry = { 0 };
	dg_err err = dg__device_check(device, reterr);
	if (!err)
		err = dg__call_begin(call, DG__QUESTION_MS, &c, reterr);
	if (!err)
		err = dg__describe(device, &c, &entry, reterr);
	if (!err)
		*ret_info = entry.info;
	return err;
}

static dg_err check_keys(const dg_key *keys, size_t count, dg_error *reterr)
{
	if (count > DG_KEYS_MAX)
		return dg_error_set(reterr, DG_ETOOMANY,
			"%zu keys were given, at most %d are measured "
			"at once",
			count, DG_KEYS_MAX);
	for (size_t i = 0; i < count; i++) {
		dg_err err = dg_key_check(&keys[i], reterr);
		if (err)
			return err;
	}
	return DG_OK;
}

static dg_err measure_local(dg_device device, const dg_key *keys, size_t count,
	const dg__call *call, dg_value *ret_values, dg_error *reterr)
{
	dg__measure_request request = { .count = count,
		.refresh = call->flags & DG_REFRESH,
		.sustained = call->flags & DG_SUSTAINED };
	/* A measurement that fails leaves its own marks among the values. */
	dg_value *values = calloc(count, sizeof(*values));
	if (!values)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	memcpy(request.keys, keys, count * sizeof(*keys));
	dg_err err = dg__local_measure(device, &request, call, values, reterr);
	if (!err)
		memcpy(ret_values, values, count * sizeof(*values));
	free(values);
	return err;
}

/* keys are valid and count is 1 at least. */
static dg_err measure(dg_device device, const dg_key *keys, size_t count, const dg__call *call,
	dg_value *ret_values, size_t *ret_count, dg_error *reterr)
{
	if (device.variant == DG_REMOTE)
		return dg__remote_measure(device, keys, count, call, ret_values, ret_count, reterr);
	dg_err err = measure_local(device, keys, count, call, ret_values, reterr);
	if (!err)
		*ret_count = count;
	return err;
}

dg_err dg_performance_stats(dg_device device, const dg_key *keys, size_t count, const dg_call *call,
	dg_value *ret_values, size_t *ret_count, dg_error *reterr)
{
	dg__call c;
	dg_err err = dg__device_check(device, reterr);
	if (!err)
		err = check_keys(keys, count, reterr);
	if (!err)
		err = dg__call_begin(call, DG__MEASURE_MS, &c, reterr);
	if (err)
		return err;
	if (count == 0 || !dg_variant_has_kernels(device.variant)) {
		*ret_count = 0;
		return DG_OK;
	}
	return measure(dg_device_inner(device), keys, count, &c, ret_values, ret_count, reterr);
}

static dg_err no_kernels(dg_device device, dg_error *reterr)
{
	return dg_error_set(reterr, DG_ENOMEASURE, "%s has no kernels to measure with",
		dg_variant_name(device.variant));
}

/* The first reason why there is no figure. */
static dg_err no_figure(const dg_value *values, size_t count, dg_error *reterr)
{
	for (size_t i = 0; i < count; i++) {
		if (values[i].status == DG_STATUS_OK)
			continue;
		char text[DG_KEY_TEXT_MAX];
		dg_key_format(&values[i].key, text, sizeof(text));
		return dg_error_set(reterr, values[i].code ? values[i].code : DG_EFAILED,
			"%s could not be measured: %.300s", text, values[i].reason);
	}
	return dg_error_set(reterr, DG_EFAILED, "no rate could be measured");
}

static dg_err local_curve(dg_device device, dg_access access, const dg__call *call,
	dg_curve *ret_curve, dg_error *reterr)
{
	dg_key keys[DG_CURVE_MAX];
	dg_curve curve;
	size_t count = dg_curve_keys(access, keys);
	dg_value *values = calloc(count, sizeof(*values));
	if (!values)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dg_err err = measure_local(device, keys, count, call, values, reterr);
	if (!err) {
		dg_curve_from_values(access, values, count, &curve);
		if (curve.count)
			*ret_curve = curve;
		else
			err = no_figure(values, count, reterr);
	}
	free(values);
	return err;
}

dg_err dg_memory_curve(dg_device device, dg_access access, const dg_call *call, dg_curve *ret_curve,
	dg_error *reterr)
{
	dg__call c;
	dg_err err = dg__device_check(device, reterr);
	if (!err && (unsigned)access > DG_WRITE)
		err = dg_error_set(reterr, DG_EINVALID,
			"%u is no access, expected DG_COPY, DG_READ or "
			"DG_WRITE",
			(unsigned)access);
	if (!err)
		err = dg__call_begin(call, DG__MEASURE_MS, &c, reterr);
	if (err)
		return err;
	if (!dg_variant_has_kernels(device.variant))
		return no_kernels(device, reterr);
	device = dg_device_inner(device);
	return device.variant == DG_REMOTE ? dg__remote_curve(device, access, &c, ret_curve, reterr)
					   : local_curve(device, access, &c, ret_curve, reterr);
}

static dg_err local_roofline(dg_device device, const dg__roofline_request *request,
	const dg__call *call, dg_roofline_input *ret_input, dg_roofline *ret_roofline,
	dg_error *reterr)
{
	const dg_key keys[2] = { { .mode = DG_MODE_COMPUTE, .dtype = request->dtype },
		{ .mode = DG_MODE_MEMORY, .access = DG_COPY } };
	dg_value values[2] = { 0 };
	dg_roofline_input input = {
		.flops = request->flops, .bytes = request->bytes, .seconds = request->seconds
	};
	dg_err err = measure_local(device, keys, 2, call, values, reterr);
	if (err)
		return err;
	if (values[0].status || values[1].status ||
		!dg_value_rate(&values[0], &input.flops_per_s) ||
		!dg_value_bytes_rate(&values[1], &input.bytes_per_s))
		return no_figure(values, 2, reterr);
	err = dg_roofline_compute(&input, ret_roofline, reterr);
	if (!err)
		*ret_input = input;
	return err;
}

/* What is wrong with the amounts is told before minutes are spent on the peaks. */
static dg_err check_work(const dg__roofline_request *work, dg_error *reterr)
{
	const dg_key key = { .mode = DG_MODE_COMPUTE, .dtype = work->dtype };
	const dg_roofline_input input = { work->flops, work->bytes, 1, 1, work->seconds };
	dg_roofline unused;
	dg_err err = dg_key_check(&key, reterr);
	return err ? err : dg_roofline_compute(&input, &unused, reterr);
}

dg_err dg_device_roofline(dg_device device, double flops, dg_dtype dtype, double bytes,
	double seconds, const dg_call *call, dg_roofline_input *ret_input,
	dg_roofline *ret_roofline, dg_error *reterr)
{
	const dg__roofline_request work = {
		.flops = flops, .bytes = bytes, .dtype = dtype, .seconds = seconds
	};
	dg__call c;
	dg_roofline_input input;
	dg_err err = dg__device_check(device, reterr);
	if (!err)
		err = check_work(&work, reterr);
	if (!err)
		err = dg__call_begin(call, DG__MEASURE_MS, &c, reterr);
	if (err)
		return err;
	if (!dg_variant_has_kernels(device.variant))
		return no_kernels(device, reterr);
	device = dg_device_inner(device);
	err = device.variant == DG_REMOTE
		      ? dg__remote_roofline(device, &work, &c, &input, ret_roofline, reterr)
		      : local_roofline(device, &work, &c, &input, ret_roofline, reterr);
	if (!err && ret_input)
		*ret_input = input;
	return err;
}

dg_err dg_telemetry_read(
	dg_device device, const dg_call *call, dg_telemetry *ret_telemetry, dg_error *reterr)
{
	dg__call c;
	dg_err err = dg__device_check(device, reterr);
	if (!err)
		err = dg__call_begin(call, DG__QUESTION_MS, &c, reterr);
	if (err)
		return err;
	device = dg_device_inner(device);
	if (device.variant == DG_REMOTE || !dg_variant_has_kernels(device.variant))
		return dg_error_set(reterr, DG_ENOTSUP, "%s devices tell no telemetry",
			dg_variant_name(device.variant));
	return dg__local_telemetry(device, &c, ret_telemetry, reterr);
}

dg_err dg_same_hardware(
	dg_device a, dg_device b, const dg_call *call, bool *ret_same, dg_error *reterr)
{
	dg__call c;
	dg__device_entry first, second;
	dg_err err = dg__device_check(a, reterr);
	if (!err)
		err = dg__device_check(b, reterr);
	if (!err)
		err = dg__call_begin(call, DG__QUESTION_MS, &c, reterr);
	if (!err)
		err = dg__describe(a, &c, &first, reterr);
	if (err)
		return err;
	if (dg_device_equal(a, b)) {
		*ret_same = true;
		return DG_OK;
	}
	err = dg__describe(b, &c, &second, reterr);
	if (!err)
		*ret_same = dg_info_same_hardware(&first.info, &second.info);
	return err;
}
