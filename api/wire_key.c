/* Keys in both spellings, and requests to measure them. See wire.h. */
#include "api/wire_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const access_names[] = { "Copy", "Read", "Write", NULL };
static const char *const access_words[] = { "copy", "read", "write", NULL };
static const char *const family_names[] = { "Float", "Int", "UInt", NULL };

static json_t *put_dtype(dg_dtype dtype)
{
	json_t *object = json_object();
	dg__put_text(&object, family_names[dg_dtype_family_of(dtype)], dg_dtype_name(dtype));
	return object;
}

static json_t *put_cmma(const dg_key *key)
{
	json_t *dims = json_object(), *config = json_object(), *mode = json_object();
	dg__put_uint(&dims, "m", key->m);
	dg__put_uint(&dims, "n", key->n);
	dg__put_uint(&dims, "k", key->k);
	dg__put_take(&config, "accumulator_type", put_dtype(key->accumulator));
	dg__put_take(&config, "cmma_dims", dims);
	dg__put_take(&mode, "dtype", put_dtype(key->dtype));
	dg__put_take(&mode, "config", config);
	return mode;
}

static json_t *put_mode(const dg_key *key)
{
	static const char *const memory[] = { "Memory", "MemoryRead", "MemoryWrite" };
	json_t *mode = json_object(), *inner = json_object();
	const char *name = "ComputeDirect";
	switch (key->mode) {
	case DG_MODE_COMPUTE:
		dg__put_take(&inner, "dtype", put_dtype(key->dtype));
		break;
	case DG_MODE_CMMA:
		name = "ComputeCmma";
		json_decref(inner);
		inner = put_cmma(key);
		break;
	case DG_MODE_WORKING_SET:
	case DG_MODE_RESIDENT:
		name = key->mode == DG_MODE_RESIDENT ? "MemoryResident" : "MemoryWorkingSet";
		dg__put_text(&inner, "access", access_names[key->access]);
		dg__put_uint(&inner, "bytes", key->bytes);
		break;
	default:
		json_decref(inner);
		json_decref(mode);
		return json_string(key->mode == DG_MODE_LAUNCH ? "Launch" : memory[key->access]);
	}
	dg__put_take(&mode, name, inner);
	return mode;
}

json_t *dg__put_key(const dg_key *key)
{
	json_t *object = json_object();
	dg__put_take(
		&object, "mode", dg_key_check(key, NULL) == DG_OK ? put_mode(key) : json_null());
	return object;
}

/* {"Float":"F32"} */
static void in_dtype(dg__in *in, json_t *object, const char *name, dg_dtype *ret_dtype)
{
	json_t *value = dg__in_object(in, object, name, DG__IN_REQUIRED);
	size_t mark = dg__in_enter(in, name, 0);
	char text[16] = "";
	unsigned family = 0;
	while (value && family_names[family] && !json_object_get(value, family_names[family]))
		family++;
	if (value && !family_names[family])
		dg__in_fault(
			in, DG_EFIELD, NULL, "expected {\"Float\":…}, {\"Int\":…} or {\"UInt\":…}");
	else if (value && dg__in_text(in, value, family_names[family], DG__IN_REQUIRED, text,
				  sizeof(text))) {
		dg_dtype dtype = dg_dtype_parse(text);
		if (dtype == DG_DTYPE_NONE || dg_dtype_family_of(dtype) != family)
			dg__in_fault(in, DG_EFIELD, family_names[family],
				"is not the name of such a dtype");
		else
			*ret_dtype = dtype;
	}
	dg__in_leave(in, mark);
}

static void in_cmma(dg__in *in, json_t *object, dg_key *key)
{
	key->mode = DG_MODE_CMMA;
	in_dtype(in, object, "dtype", &key->dtype);
	json_t *config = dg__in_object(in, object, "config", DG__IN_REQUIRED);
	size_t mark = dg__in_enter(in, "config", 0);
	in_dtype(in, config, "accumulator_type", &key->accumulator);
	json_t *dims = dg__in_object(in, config, "cmma_dims", DG__IN_REQUIRED);
	dg__in_enter(in, "cmma_dims", 0);
	dg__in_u32(in, dims, "m", DG__IN_REQUIRED, 1, 65535, &key->m);
	dg__in_u32(in, dims, "n", DG__IN_REQUIRED, 1, 65535, &key->n);
	dg__in_u32(in, dims, "k", DG__IN_REQUIRED, 1, 65535, &key->k);
	dg__in_leave(in, mark);
}

static void in_working_set(dg__in *in, json_t *object, dg_mode mode, dg_key *key)
{
	key->mode = mode;
	key->access =
		(dg_access)dg__in_word(in, object, "access", DG__IN_REQUIRED, 0, access_names);
	dg__in_uint(in, object, "bytes", DG__IN_REQUIRED, DG_WORKING_SET_MIN_BYTES,
		DG_WORKING_SET_MAX_BYTES, &key->bytes);
}

static const char mode_help[] = "expected \"Memory\", \"MemoryRead\", \"MemoryWrite\", \"Launch\", "
				"or an object with one of "
				"ComputeDirect, ComputeCmma, MemoryWorkingSet, MemoryResident";

static void in_mode_object(dg__in *in, json_t *mode, dg_key *key)
{
	static const char *const names[] = { "ComputeDirect", "ComputeCmma", "MemoryWorkingSet",
		"MemoryResident" };
	for (unsigned i = 0; i < 4; i++) {
		if (!json_object_get(mode, names[i]))
			continue;
		json_t *inner = dg__in_object(in, mode, names[i], DG__IN_REQUIRED);
		size_t mark = dg__in_enter(in, names[i], 0);
		if (i == 0)
			in_dtype(in, inner, "dtype", &key->dtype);
		else if (i == 1)
			in_cmma(in, inner, key);
		else
			in_working_set(
				in, inner, i == 2 ? DG_MODE_WORKING_SET : DG_MODE_RESIDENT, key);
		dg__in_leave(in, mark);
		return;
	}
	dg__in_fault(in, DG_EFIELD, NULL, "%s", mode_help);
}

static void in_mode(dg__in *in, json_t *mode, dg_key *key)
{
	static const char *const names[] = { "Memory", "MemoryRead", "MemoryWrite", "Launch" };
	if (json_is_object(mode)) {
		in_mode_object(in, mode, key);
		return;
	}
	for (unsigned i = 0; json_is_string(mode) && i < 4; i++) {
		if (strcmp(json_string_value(mode), names[i]) != 0)
			continue;
		key->mode = i == 3 ? DG_MODE_LAUNCH : DG_MODE_MEMORY;
		key->access = i == 3 ? DG_COPY : (dg_access)i;
		return;
	}
	dg__in_fault(in, DG_EFIELD, NULL, "%s", mode_help);
}

void dg__in_key(dg__in *in, json_t *value, dg_key *ret_key)
{
	if (in->err != DG_OK)
		return;
	dg_key key = { .mode = DG_MODE_COMPUTE };
	dg_error why = { .code = DG_OK };
	if (json_is_string(value)) {
		if (strlen(json_string_value(value)) != json_string_length(value) ||
			dg_key_parse(json_string_value(value), &key, &why) != DG_OK)
			dg__in_fault(in, DG_EKEY, NULL, "%s", why.text);
	} else if (json_is_object(value) && json_object_get(value, "mode")) {
		size_t mark = dg__in_enter(in, "mode", 0);
		in_mode(in, json_object_get(value, "mode"), &key);
		dg__in_leave(in, mark);
		if (in->err == DG_OK && dg_key_check(&key, &why) != DG_OK)
			dg__in_fault(in, DG_EKEY, NULL, "%s", why.text);
	} else {
		dg__in_fault(in, DG_EFIELD, NULL,
			"expected a key: {\"mode\":…} or a short text like \"compute:f32\"");
	}
	if (in->err == DG_OK)
		*ret_key = key;
}

static json_t *put_measure_request(const dg__measure_request *request)
{
	json_t *object = json_object(), *keys = json_array();
	for (size_t i = 0; i < request->count; i++)
		dg__add_take(&keys, dg__put_key(&request->keys[i]));
	dg__put_take(&object, "keys", keys);
	dg__put_bool(&object, "refresh", request->refresh);
	dg__put_bool(&object, "sustained", request->sustained);
	return object;
}

dg_err dg__wire_encode_measure_request(const dg__measure_request *request, dg__json_text *ret_text)
{
	return dg__put_end_take(put_measure_request(request), ret_text);
}

static void in_measure_request(dg__in *in, json_t *object, dg__measure_request *request)
{
	json_t *keys = dg__in_array(in, object, "keys", DG__IN_REQUIRED, DG_KEYS_MAX);
	request->count = json_array_size(keys);
	for (size_t i = 0; i < request->count; i++) {
		size_t mark = dg__in_item(in, "keys", i);
		dg__in_key(in, json_array_get(keys, i), &request->keys[i]);
		dg__in_leave(in, mark);
	}
	dg__in_bool(in, object, "refresh", DG__IN_OPTIONAL, &request->refresh);
	dg__in_bool(in, object, "sustained", DG__IN_OPTIONAL, &request->sustained);
}

dg_err dg__wire_decode_measure_request(
	const char *json, size_t length, dg__measure_request *ret_request, dg_error *reterr)
{
	dg__in in;
	json_t *root = dg__in_open(&in, json, length, reterr);
	dg__measure_request *request = calloc(1, sizeof(*request));
	if (in.err == DG_OK && !request)
		in.err = dg_error_set(reterr, DG_ENOMEM, NULL);
	dg__in_expect_object(&in, root);
	if (request && in.err == DG_OK)
		in_measure_request(&in, root, request);
	if (request && in.err == DG_OK)
		*ret_request = *request;
	free(request);
	json_decref(root);
	return in.err;
}

dg_err dg__wire_encode_curve_request(const dg__curve_request *request, dg__json_text *ret_text)
{
	json_t *object = json_object();
	dg__put_text_or_null(&object, "access", dg__word(access_words, request->access));
	if (request->has_bytes)
		dg__put_uint(&object, "bytes", request->bytes);
	dg__put_bool(&object, "refresh", request->refresh);
	return dg__put_end_take(object, ret_text);
}

dg_err dg__wire_decode_curve_request(
	const char *json, size_t length, dg__curve_request *ret_request, dg_error *reterr)
{
	dg__in in;
	json_t *root = dg__in_open(&in, json, length, reterr);
	dg__curve_request request = { .access = DG_READ };
	dg__in_expect_object(&in, root);
	request.access =
		(dg_access)dg__in_word(&in, root, "access", DG__IN_OPTIONAL, DG_READ, access_words);
	request.has_bytes = dg__in_uint(&in, root, "bytes", DG__IN_OPTIONAL,
		DG_WORKING_SET_MIN_BYTES, DG_WORKING_SET_MAX_BYTES, &request.bytes);
	dg__in_bool(&in, root, "refresh", DG__IN_OPTIONAL, &request.refresh);
	if (in.err == DG_OK)
		*ret_request = request;
	json_decref(root);
	return in.err;
}

dg_err dg__wire_encode_roofline_request(
	const dg__roofline_request *request, dg__json_text *ret_text)
{
	json_t *object = json_object();
	dg__put_real_if(&object, "flops", true, request->flops);
	dg__put_text_or_null(&object, "dtype", dg_dtype_text(request->dtype));
	dg__put_real_if(&object, "bytes", true, request->bytes);
	if (request->seconds > 0)
		dg__put_real_if(&object, "seconds", true, request->seconds);
	return dg__put_end_take(object, ret_text);
}

dg_err dg__wire_decode_roofline_request(
	const char *json, size_t length, dg__roofline_request *ret_request, dg_error *reterr)
{
	dg__in in;
	json_t *root = dg__in_open(&in, json, length, reterr);
	dg__roofline_request request = { .flops = 0 };
	char dtype[16] = "";
	dg__in_expect_object(&in, root);
	dg__in_amount(&in, root, "flops", DG__IN_REQUIRED, &request.flops);
	dg__in_amount(&in, root, "bytes", DG__IN_REQUIRED, &request.bytes);
	dg__in_amount(&in, root, "seconds", DG__IN_OPTIONAL, &request.seconds);
	dg__in_text(&in, root, "dtype", DG__IN_REQUIRED, dtype, sizeof(dtype));
	request.dtype = dg_dtype_parse(dtype);
	if (request.dtype == DG_DTYPE_NONE)
		dg__in_fault(&in, DG_EDTYPE, "dtype", "is not the name of a dtype, like \"f32\"");
	if (in.err == DG_OK)
		*ret_request = request;
	json_decref(root);
	return in.err;
}
