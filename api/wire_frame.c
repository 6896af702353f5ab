/* Frames between a process and its worker. See wire.h. */
#include "api/wire_json.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	dg__frame_kind kind;
	const char *word;
} kinds[] = {
	{ DG__FRAME_DETECT, "detect" },
	{ DG__FRAME_MEASURE, "measure" },
	{ DG__FRAME_CANCEL, "cancel" },
	{ DG__FRAME_TELEMETRY, "telemetry" },
	{ DG__FRAME_DEVICES, "devices" },
	{ DG__FRAME_PROGRESS, "progress" },
	{ DG__FRAME_VALUE, "value" },
	{ DG__FRAME_END, "end" },
	{ DG__FRAME_ERROR, "error" },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const struct {
	const char *name;
	uint32_t bit;
	size_t offset;
} figures[] = {
	{ "load", DG_TELEMETRY_LOAD, offsetof(dg_telemetry, load) },
	{ "temperature_celsius", DG_TELEMETRY_TEMPERATURE,
		offsetof(dg_telemetry, temperature_celsius) },
	{ "power_w", DG_TELEMETRY_POWER, offsetof(dg_telemetry, power_w) },
	{ "clock_hz", DG_TELEMETRY_CLOCK, offsetof(dg_telemetry, clock_hz) },
	{ "memory_clock_hz", DG_TELEMETRY_MEMORY_CLOCK, offsetof(dg_telemetry, memory_clock_hz) },
};

#define FIGURES (sizeof(figures) / sizeof(figures[0]))

static json_t *put_telemetry(const dg_telemetry *t)
{
	json_t *o = json_object();
	dg__put_uint_if(
		&o, "memory_used_bytes", t->present & DG_TELEMETRY_USED, t->memory_used_bytes);
	dg__put_uint_if(
		&o, "memory_total_bytes", t->present & DG_TELEMETRY_TOTAL, t->memory_total_bytes);
	for (size_t i = 0; i < FIGURES; i++) {
		double value;
		memcpy(&value, (const char *)t + figures[i].offset, sizeof(value));
		dg__put_real_if(&o, figures[i].name, t->present & figures[i].bit, value);
	}
	dg__put_text_or_null(&o, "throttle_reason",
		t->present & DG_TELEMETRY_THROTTLE ? t->throttle_reason : NULL);
	dg__put_time(&o, "at", t->at_ms);
	return o;
}

static void in_telemetry(dg__in *in, json_t *o, dg_telemetry *t)
{
	const int may = DG__IN_OPTIONAL;
	if (dg__in_uint(in, o, "memory_used_bytes", may, 0, INT64_MAX, &t->memory_used_bytes))
		t->present |= DG_TELEMETRY_USED;
	if (dg__in_uint(in, o, "memory_total_bytes", may, 0, INT64_MAX, &t->memory_total_bytes))
		t->present |= DG_TELEMETRY_TOTAL;
	for (size_t i = 0; i < FIGURES; i++) {
		double value;
		if (!dg__in_real(in, o, figures[i].name, may, &value))
			continue;
		memcpy((char *)t + figures[i].offset, &value, sizeof(value));
		t->present |= figures[i].bit;
	}
	if (dg__in_text(
		    in, o, "throttle_reason", may, t->throttle_reason, sizeof(t->throttle_reason)))
		t->present |= DG_TELEMETRY_THROTTLE;
	dg__in_time(in, o, "at", may, &t->at_ms);
}

void dg__frame_finish(dg__frame *frame)
{
	dg__device_list_finish(&frame->devices);
}

static void put_measure(json_t **o, const dg__frame *frame)
{
	json_t *keys = json_array();
	for (size_t i = 0; i < frame->measure.count; i++)
		dg__add_take(&keys, dg__put_key(&frame->measure.keys[i]));
	dg__put_uint(o, "device", frame->device);
	dg__put_uint(o, "timeout_ms", frame->timeout_ms);
	dg__put_take(o, "keys", keys);
	dg__put_bool(o, "sustained", frame->measure.sustained);
}

static void put_payload(json_t **o, const dg__frame *frame)
{
	switch (frame->kind) {
	case DG__FRAME_DETECT:
		dg__put_uint(o, "timeout_ms", frame->timeout_ms);
		break;
	case DG__FRAME_MEASURE:
		put_measure(o, frame);
		break;
	case DG__FRAME_TELEMETRY:
		dg__put_uint(o, "device", frame->device);
		break;
	case DG__FRAME_DEVICES:
		dg__put_take(o, "list", dg__put_devices(&frame->devices));
		break;
	case DG__FRAME_PROGRESS:
	case DG__FRAME_VALUE:
		dg__put_uint(o, "done", frame->done);
		dg__put_uint(o, "total", frame->total);
		if (frame->kind == DG__FRAME_VALUE)
			dg__put_take(o, "value", dg__put_value(&frame->value));
		else
			dg__put_take(o, "key", dg__put_key(&frame->key));
		break;
	case DG__FRAME_END:
		dg__put_take(o, "telemetry", put_telemetry(&frame->telemetry));
		break;
	case DG__FRAME_ERROR:
		dg__put_take(o, "problem", dg__put_problem(&frame->error));
		break;
	default:
		break;
	}
}

dg_err dg__wire_encode_frame(const dg__frame *frame, dg__json_text *ret_text)
{
	if (frame->kind == DG__FRAME_VALUE && dg__check_values(&frame->value, 1) != DG_OK)
		return DG_EINTERNAL;
	json_t *o = json_object();
	size_t i = 0;
	while (i + 1 < KINDS && kinds[i].kind != frame->kind)
		i++;
	dg__put_text(&o, "frame", kinds[i].word);
	dg__put_uint(&o, "request", frame->request);
	put_payload(&o, frame);
	return dg__put_end_take(o, ret_text);
}

static void in_measure(dg__in *in, json_t *root, dg__frame *frame)
{
	dg__in_u32(in, root, "device", DG__IN_REQUIRED, 0, UINT32_MAX, &frame->device);
	dg__in_uint(in, root, "timeout_ms", DG__IN_REQUIRED, 0, INT64_MAX, &frame->timeout_ms);
	dg__in_bool(in, root, "sustained", DG__IN_REQUIRED, &frame->measure.sustained);
	json_t *keys = dg__in_array(in, root, "keys", DG__IN_REQUIRED, DG_KEYS_MAX);
	frame->measure.count = json_array_size(keys);
	for (size_t i = 0; i < frame->measure.count; i++) {
		size_t mark = dg__in_item(in, "keys", i);
		dg__in_key(in, json_array_get(keys, i), &frame->measure.keys[i]);
		dg__in_leave(in, mark);
	}
}

static void in_value_frame(dg__in *in, json_t *root, dg__frame *frame)
{
	dg__in_u32(in, root, "done", DG__IN_REQUIRED, 0, DG_KEYS_MAX, &frame->done);
	dg__in_u32(in, root, "total", DG__IN_REQUIRED, 0, DG_KEYS_MAX, &frame->total);
	if (frame->kind == DG__FRAME_PROGRESS)
		dg__in_key(in, json_object_get(root, "key"), &frame->key);
	else
		dg__in_value(in, json_object_get(root, "value"), &frame->value);
}

static void in_payload(dg__in *in, json_t *root, dg__frame *frame)
{
	switch (frame->kind) {
	case DG__FRAME_DETECT:
		dg__in_uint(
			in, root, "timeout_ms", DG__IN_REQUIRED, 0, INT64_MAX, &frame->timeout_ms);
		break;
	case DG__FRAME_MEASURE:
		in_measure(in, root, frame);
		break;
	case DG__FRAME_TELEMETRY:
		dg__in_u32(in, root, "device", DG__IN_REQUIRED, 0, UINT32_MAX, &frame->device);
		break;
	case DG__FRAME_DEVICES:
		dg__in_devices(
			in, dg__in_object(in, root, "list", DG__IN_REQUIRED), &frame->devices);
		break;
	case DG__FRAME_PROGRESS:
	case DG__FRAME_VALUE:
		in_value_frame(in, root, frame);
		break;
	case DG__FRAME_END:
		in_telemetry(in, dg__in_object(in, root, "telemetry", DG__IN_OPTIONAL),
			&frame->telemetry);
		break;
	case DG__FRAME_ERROR:
		dg__in_problem(
			in, dg__in_object(in, root, "problem", DG__IN_REQUIRED), &frame->error);
		break;
	default:
		break;
	}
}

static void in_frame(dg__in *in, json_t *root, dg__frame *frame)
{
	const char *words[KINDS + 1] = { NULL };
	for (size_t i = 0; i < KINDS; i++)
		words[i] = kinds[i].word;
	unsigned place = dg__in_word(in, root, "frame", DG__IN_REQUIRED, 0, words);
	frame->kind = kinds[place].kind;
	dg__in_uint(in, root, "request", DG__IN_REQUIRED, 0, INT64_MAX, &frame->request);
	if (in->err == DG_OK)
		in_payload(in, root, frame);
}

dg_err dg__wire_decode_frame(
	const char *json, size_t length, dg__frame *ret_frame, dg_error *reterr)
{
	dg__in in;
	json_t *root = dg__in_open(&in, json, length, reterr);
	dg__frame *frame = calloc(1, sizeof(*frame));
	if (in.err == DG_OK && !frame)
		in.err = dg_error_set(reterr, DG_ENOMEM, NULL);
	if (in.err == DG_OK)
		in_frame(&in, root, frame);
	if (in.err == DG_OK)
		*ret_frame = *frame;
	else if (frame)
		dg__frame_finish(frame);
	free(frame);
	json_decref(root);
	return in.err;
}
