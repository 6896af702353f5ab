/* Values with their evidence, and the replies made of them. See wire.h. */
#include "api/wire_json.h"

#include <stdlib.h>
#include <string.h>

static const char *const status_names[] = { "ok", "unsupported", "failed", "refused", NULL };
static const char *const access_words[] = { "copy", "read", "write", NULL };
static const char *const bound_names[] = { "none", "compute", "memory", NULL };

static const struct {
	const char *name;
	uint32_t flag;
} flag_names[] = {
	{ "throttled", DG_FLAG_THROTTLED },
	{ "disturbed", DG_FLAG_DISTURBED },
	{ "unstable", DG_FLAG_UNSTABLE },
	{ "clocks_disagree", DG_FLAG_CLOCKS_DISAGREE },
};

static json_t *put_evidence(const dg_evidence *evidence)
{
	json_t *o = json_object();
	uint32_t has = evidence->present;
	dg__put_uint(&o, "samples", evidence->samples);
	dg__put_uint(&o, "iterations", evidence->iterations);
	dg__put_uint(&o, "best_ns", evidence->best_ns);
	dg__put_uint(&o, "median_ns", evidence->median_ns);
	dg__put_real_if(&o, "spread", true, evidence->spread);
	dg__put_text_or_null(&o, "clock_source", evidence->clock_source);
	dg__put_uint_if(&o, "working_set_bytes", evidence->working_set_bytes > 0,
		evidence->working_set_bytes);
	dg__put_text_or_null(&o, "traffic", evidence->traffic);
	dg__put_text_or_null(&o, "shape", evidence->shape);
	dg__put_real_if(&o, "clock_hz", has & DG_HAS_CLOCK, evidence->clock_hz);
	dg__put_real_if(&o, "power_w", has & DG_HAS_POWER, evidence->power_w);
	dg__put_real_if(
		&o, "temperature_celsius", has & DG_HAS_TEMPERATURE, evidence->temperature_celsius);
	dg__put_real_if(&o, "sustained_per_s", has & DG_HAS_SUSTAINED, evidence->sustained_per_s);
	dg__put_real_if(&o, "streaming_per_s", has & DG_HAS_STREAMING, evidence->streaming_per_s);
	dg__put_real_if(&o, "busy_fraction", true, evidence->busy_fraction);
	for (size_t i = 0; i < sizeof(flag_names) / sizeof(flag_names[0]); i++)
		dg__put_bool(&o, flag_names[i].name, (evidence->flags & flag_names[i].flag) != 0);
	dg__put_bool(&o, "device_time", (has & DG_HAS_DEVICE_TIME) != 0);
	dg__put_text_or_null(&o, "throttle_reason", evidence->throttle_reason);
	dg__put_text_or_null(&o, "driver", evidence->driver);
	dg__put_text_or_null(&o, "engine", evidence->engine);
	dg__put_time(&o, "measured_at", evidence->measured_at_ms);
	dg__put_uint(&o, "elapsed_ms", evidence->elapsed_ms);
	return o;
}

static void in_figure(
	dg__in *in, json_t *o, const char *name, uint32_t bit, double *ret_value, uint32_t *present)
{
	if (dg__in_real(in, o, name, DG__IN_OPTIONAL, ret_value))
		*present |= bit;
}

static void in_evidence_texts(dg__in *in, json_t *o, dg_evidence *e)
{
	const int may = DG__IN_OPTIONAL;
	dg__in_text(in, o, "clock_source", may, e->clock_source, sizeof(e->clock_source));
	dg__in_text(in, o, "traffic", may, e->traffic, sizeof(e->traffic));
	dg__in_text(in, o, "shape", may, e->shape, sizeof(e->shape));
	dg__in_text(in, o, "throttle_reason", may, e->throttle_reason, sizeof(e->throttle_reason));
	dg__in_text(in, o, "driver", may, e->driver, sizeof(e->driver));
	dg__in_text(in, o, "engine", may, e->engine, sizeof(e->engine));
}

static void in_evidence(dg__in *in, json_t *o, dg_evidence *e)
{
	const int may = DG__IN_OPTIONAL;
	dg__in_u32(in, o, "samples", may, 0, UINT32_MAX, &e->samples);
	dg__in_u32(in, o, "iterations", may, 0, UINT32_MAX, &e->iterations);
	dg__in_uint(in, o, "best_ns", may, 0, INT64_MAX, &e->best_ns);
	dg__in_uint(in, o, "median_ns", may, 0, INT64_MAX, &e->median_ns);
	dg__in_amount(in, o, "spread", may, &e->spread);
	dg__in_uint(in, o, "working_set_bytes", may, 0, INT64_MAX, &e->working_set_bytes);
	in_figure(in, o, "clock_hz", DG_HAS_CLOCK, &e->clock_hz, &e->present);
	in_figure(in, o, "power_w", DG_HAS_POWER, &e->power_w, &e->present);
	in_figure(in, o, "temperature_celsius", DG_HAS_TEMPERATURE, &e->temperature_celsius,
		&e->present);
	in_figure(in, o, "sustained_per_s", DG_HAS_SUSTAINED, &e->sustained_per_s, &e->present);
	in_figure(in, o, "streaming_per_s", DG_HAS_STREAMING, &e->streaming_per_s, &e->present);
	if (dg__in_amount(in, o, "busy_fraction", may, &e->busy_fraction) && e->busy_fraction > 1)
		dg__in_fault(in, DG_EFIELD, "busy_fraction", "expected a share from 0 to 1");
	bool set = false;
	for (size_t i = 0; i < sizeof(flag_names) / sizeof(flag_names[0]); i++)
		if (dg__in_bool(in, o, flag_names[i].name, may, &set) && set)
			e->flags |= flag_names[i].flag;
	if (dg__in_bool(in, o, "device_time", may, &set) && set)
		e->present |= DG_HAS_DEVICE_TIME;
	in_evidence_texts(in, o, e);
	dg__in_time(in, o, "measured_at", may, &e->measured_at_ms);
	dg__in_uint(in, o, "elapsed_ms", may, 0, INT64_MAX, &e->elapsed_ms);
}

json_t *dg__put_value(const dg_value *value)
{
	json_t *o = json_object(), *duration = json_object();
	char name[DG_KEY_TEXT_MAX], text[DG_RATE_TEXT_MAX];
	double rate = 0, bytes = 0;
	bool ok = value->status == DG_STATUS_OK;
	bool has_rate = ok && dg_value_rate(value, &rate);
	bool has_bytes = ok && dg_value_bytes_rate(value, &bytes);
	dg_key_format(&value->key, name, sizeof(name));
	dg_value_format(value, text, sizeof(text));
	dg__put_uint(&duration, "secs", ok ? value->duration_ns / 1000000000u : 0);
	dg__put_uint(&duration, "nanos", ok ? value->duration_ns % 1000000000u : 0);
	dg__put_take(&o, "key", dg__put_key(&value->key));
	dg__put_text(&o, "name", name);
	dg__put_text(&o, "status", dg_status_name(value->status));
	dg__put_text_or_null(&o, "code", ok ? NULL : dg_err_code(value->code));
	dg__put_text_or_null(&o, "reason", value->reason);
	dg__put_uint(&o, "ops_count", ok ? value->ops_count : 0);
	dg__put_take(&o, "duration", duration);
	dg__put_real_if(&o, "ops_per_s", has_rate, rate);
	dg__put_real_if(&o, "bytes_per_s", has_bytes, bytes);
	dg__put_text_or_null(&o, "text", has_rate ? text : NULL);
	dg__put_take(&o, "evidence",
		ok || value->evidence.samples ? put_evidence(&value->evidence) : json_null());
	return o;
}

static void in_duration(dg__in *in, json_t *object, uint64_t *ret_ns)
{
	uint64_t secs = 0;
	uint32_t nanos = 0;
	json_t *duration = dg__in_object(in, object, "duration", DG__IN_REQUIRED);
	size_t mark = dg__in_enter(in, "duration", 0);
	dg__in_uint(in, duration, "secs", DG__IN_REQUIRED, 0, INT64_MAX / 1000000000 - 1, &secs);
	dg__in_u32(in, duration, "nanos", DG__IN_REQUIRED, 0, 999999999, &nanos);
	dg__in_leave(in, mark);
	*ret_ns = secs * 1000000000u + nanos;
}

/* A status that is not ok needs a code; for one not known here, the status's own stands. */
static dg_err in_code(dg__in *in, json_t *o, dg_status status)
{
	char code[64] = "";
	dg__in_text(in, o, "code", DG__IN_OPTIONAL, code, sizeof(code));
	if (status == DG_STATUS_OK)
		return DG_OK;
	dg_err err = dg_err_from_code(code);
	if (err != DG_OK)
		return err;
	return status == DG_STATUS_UNSUPPORTED ? DG_ENOTSUP
	       : status == DG_STATUS_REFUSED   ? DG_EIMPLAUSIBLE
					       : DG_EFAILED;
}

void dg__in_value(dg__in *in, json_t *object, dg_value *ret_value)
{
	dg_value v;
	memset(&v, 0, sizeof(v));
	if (in->err == DG_OK && !json_is_object(object))
		dg__in_fault(in, DG_EFIELD, NULL, "expected a value: an object");
	json_t *key = json_object_get(object, "key");
	bool named = !key || json_is_null(key);
	size_t mark = dg__in_enter(in, named ? "name" : "key", 0);
	dg__in_key(in, named ? json_object_get(object, "name") : key, &v.key);
	dg__in_leave(in, mark);
	v.status = (dg_status)dg__in_word(in, object, "status", DG__IN_REQUIRED, 0, status_names);
	v.code = in_code(in, object, v.status);
	dg__in_text(in, object, "reason", DG__IN_OPTIONAL, v.reason, sizeof(v.reason));
	dg__in_uint(in, object, "ops_count", DG__IN_REQUIRED, 0, INT64_MAX, &v.ops_count);
	in_duration(in, object, &v.duration_ns);
	if (v.status != DG_STATUS_OK)
		v.ops_count = v.duration_ns = 0;
	json_t *evidence = dg__in_object(in, object, "evidence", DG__IN_OPTIONAL);
	mark = dg__in_enter(in, "evidence", 0);
	if (evidence)
		in_evidence(in, evidence, &v.evidence);
	dg__in_leave(in, mark);
	if (in->err == DG_OK)
		*ret_value = v;
}

json_t *dg__put_values(const dg_value *values, size_t count)
{
	json_t *array = json_array();
	for (size_t i = 0; i < count; i++)
		dg__add_take(&array, dg__put_value(&values[i]));
	return array;
}

dg_err dg__check_values(const dg_value *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (values[i].status == DG_STATUS_OK && values[i].ops_count > INT64_MAX)
			return DG_EINTERNAL;
	return DG_OK;
}

void dg__in_values(dg__in *in, json_t *array, dg_value **ret_values, size_t *ret_count)
{
	size_t count = json_array_size(array);
	dg_value *values = in->err == DG_OK && count ? calloc(count, sizeof(*values)) : NULL;
	if (in->err == DG_OK && count && !values)
		in->err = dg_error_set(in->reterr, DG_ENOMEM, NULL);
	for (size_t i = 0; i < count && in->err == DG_OK; i++) {
		size_t mark = dg__in_item(in, "values", i);
		dg__in_value(in, json_array_get(array, i), &values[i]);
		dg__in_leave(in, mark);
	}
	if (in->err != DG_OK) {
		free(values);
		return;
	}
	*ret_values = values;
	*ret_count = count;
}

void dg__values_finish(dg__values *values)
{
	free(values->values);
	values->values = NULL;
	values->count = 0;
}

dg_err dg__wire_encode_values(const dg__values *values, dg__json_text *ret_text)
{
	if (dg__check_values(values->values, values->count) != DG_OK)
		return DG_EINTERNAL;
	json_t *o = json_object();
	dg__put_text_or_null(&o, "device", values->device);
	dg__put_take(&o, "values", dg__put_values(values->values, values->count));
	return dg__put_end_take(o, ret_text);
}

dg_err dg__wire_decode_values(
	const char *json, size_t length, dg__values *ret_values, dg_error *reterr)
{
	dg__in in;
	json_t *root = dg__in_open(&in, json, length, reterr);
	dg__values values = { .count = 0 };
	dg__in_expect_object(&in, root);
	dg__in_text(&in, root, "device", DG__IN_OPTIONAL, values.device, sizeof(values.device));
	json_t *array = dg__in_array(&in, root, "values", DG__IN_REQUIRED, DG_KEYS_MAX);
	dg__in_values(&in, array, &values.values, &values.count);
	if (in.err == DG_OK)
		*ret_values = values;
	json_decref(root);
	return in.err;
}

json_t *dg__put_curve(
	const char *device, const dg_curve *curve, bool has_ceiling, uint64_t bytes, double ceiling)
{
	json_t *o = json_object(), *points = json_array();
	for (size_t i = 0; i < curve->count; i++) {
		json_t *point = json_object();
		dg__put_uint(&point, "bytes", curve->points[i].bytes);
		dg__put_real_if(&point, "bytes_per_s", true, curve->points[i].bytes_per_s);
		dg__add_take(&points, point);
	}
	dg__put_text_or_null(&o, "device", device);
	dg__put_text_or_null(&o, "access", dg__word(access_words, curve->access));
	dg__put_take(&o, "points", points);
	if (has_ceiling) {
		json_t *at = json_object();
		dg__put_uint(&at, "bytes", bytes);
		dg__put_real_if(&at, "bytes_per_s", true, ceiling);
		dg__put_take(&o, "ceiling", at);
	} else {
		dg__put_null(&o, "ceiling");
	}
	return o;
}

void dg__curve_reply_finish(dg__curve_reply *reply)
{
	dg__values_finish(&reply->values);
}

dg_err dg__wire_encode_curve(const dg__curve_reply *reply, dg__json_text *ret_text)
{
	if (dg__check_values(reply->values.values, reply->values.count) != DG_OK)
		return DG_EINTERNAL;
	json_t *o = dg__put_curve(reply->device, &reply->curve, reply->has_ceiling, reply->bytes,
		reply->ceiling_bytes_per_s);
	dg__put_take(&o, "values", dg__put_values(reply->values.values, reply->values.count));
	return dg__put_end_take(o, ret_text);
}

static void in_points(dg__in *in, json_t *root, dg_curve *curve)
{
	json_t *points = dg__in_array(in, root, "points", DG__IN_REQUIRED, DG_CURVE_MAX);
	for (size_t i = 0; i < json_array_size(points); i++) {
		dg_curve_point *point = &curve->points[i];
		json_t *item = json_array_get(points, i);
		size_t mark = dg__in_item(in, "points", i);
		dg__in_uint(in, item, "bytes", DG__IN_REQUIRED, 1, INT64_MAX, &point->bytes);
		if (dg__in_real(in, item, "bytes_per_s", DG__IN_REQUIRED, &point->bytes_per_s) &&
			point->bytes_per_s <= 0)
			dg__in_fault(in, DG_EFIELD, "bytes_per_s", "expected a rate above 0");
		if (i && in->err == DG_OK && point->bytes <= curve->points[i - 1].bytes)
			dg__in_fault(
				in, DG_EFIELD, "bytes", "expected more than at the point before");
		dg__in_leave(in, mark);
	}
	curve->count = json_array_size(points);
}

dg_err dg__wire_decode_curve(
	const char *json, size_t length, dg__curve_reply *ret_reply, dg_error *reterr)
{
	dg__in in;
	json_t *root = dg__in_open(&in, json, length, reterr);
	dg__curve_reply reply = { .has_ceiling = false };
	dg__in_expect_object(&in, root);
	dg__in_text(&in, root, "device", DG__IN_OPTIONAL, reply.device, sizeof(reply.device));
	reply.curve.access =
		(dg_access)dg__in_word(&in, root, "access", DG__IN_REQUIRED, 0, access_words);
	in_points(&in, root, &reply.curve);
	json_t *ceiling = dg__in_object(&in, root, "ceiling", DG__IN_OPTIONAL);
	if (ceiling) {
		size_t mark = dg__in_enter(&in, "ceiling", 0);
		dg__in_uint(&in, ceiling, "bytes", DG__IN_REQUIRED, 0, INT64_MAX, &reply.bytes);
		reply.has_ceiling = dg__in_amount(
			&in, ceiling, "bytes_per_s", DG__IN_REQUIRED, &reply.ceiling_bytes_per_s);
		dg__in_leave(&in, mark);
	}
	memcpy(reply.values.device, reply.device, sizeof(reply.device));
	json_t *array = dg__in_array(&in, root, "values", DG__IN_OPTIONAL, DG_KEYS_MAX);
	dg__in_values(&in, array, &reply.values.values, &reply.values.count);
	if (in.err == DG_OK)
		*ret_reply = reply;
	json_decref(root);
	return in.err;
}

json_t *dg__put_roofline(const dg__roofline_reply *reply)
{
	const dg_roofline_input *input = &reply->input;
	const dg_roofline *line = &reply->roofline;
	json_t *o = json_object();
	dg__put_text_or_null(&o, "device", reply->device);
	dg__put_real_if(&o, "flops", true, input->flops);
	dg__put_real_if(&o, "bytes", true, input->bytes);
	dg__put_real_if(&o, "flops_per_s", true, input->flops_per_s);
	dg__put_real_if(&o, "bytes_per_s", true, input->bytes_per_s);
	dg__put_real_if(&o, "measured_seconds", input->seconds > 0, input->seconds);
	dg__put_real_if(&o, "compute_seconds", true, line->compute_seconds);
	dg__put_real_if(&o, "memory_seconds", true, line->memory_seconds);
	dg__put_real_if(&o, "seconds", true, line->seconds);
	dg__put_text_or_null(&o, "bound", dg__word(bound_names, line->bound));
	dg__put_real_if(&o, "fraction", input->seconds > 0, line->fraction);
	return o;
}

dg_err dg__wire_encode_roofline(const dg__roofline_reply *reply, dg__json_text *ret_text)
{
	return dg__put_end_take(dg__put_roofline(reply), ret_text);
}

dg_err dg__wire_decode_roofline(
	const char *json, size_t length, dg__roofline_reply *ret_reply, dg_error *reterr)
{
	dg__in in;
	json_t *o = dg__in_open(&in, json, length, reterr);
	dg__roofline_reply reply;
	memset(&reply, 0, sizeof(reply));
	dg_roofline *line = &reply.roofline;
	dg__in_expect_object(&in, o);
	dg__in_text(&in, o, "device", DG__IN_OPTIONAL, reply.device, sizeof(reply.device));
	dg__in_amount(&in, o, "flops", DG__IN_REQUIRED, &reply.input.flops);
	dg__in_amount(&in, o, "bytes", DG__IN_REQUIRED, &reply.input.bytes);
	dg__in_amount(&in, o, "flops_per_s", DG__IN_REQUIRED, &reply.input.flops_per_s);
	dg__in_amount(&in, o, "bytes_per_s", DG__IN_REQUIRED, &reply.input.bytes_per_s);
	dg__in_amount(&in, o, "measured_seconds", DG__IN_OPTIONAL, &reply.input.seconds);
	dg__in_amount(&in, o, "compute_seconds", DG__IN_REQUIRED, &line->compute_seconds);
	dg__in_amount(&in, o, "memory_seconds", DG__IN_REQUIRED, &line->memory_seconds);
	dg__in_amount(&in, o, "seconds", DG__IN_REQUIRED, &line->seconds);
	dg__in_amount(&in, o, "fraction", DG__IN_OPTIONAL, &line->fraction);
	line->bound = (dg_bound)dg__in_word(&in, o, "bound", DG__IN_REQUIRED, 0, bound_names);
	if (in.err == DG_OK)
		*ret_reply = reply;
	json_decref(o);
	return in.err;
}
