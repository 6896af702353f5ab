/* See figures.h. */
#include "server/figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/core/version.h"

#define MARKS (DG_FLAG_THROTTLED | DG_FLAG_DISTURBED | DG_FLAG_UNSTABLE)

bool dg__figure_is_good(const dg_value *value)
{
	return value->status == DG_STATUS_OK && !(value->evidence.flags & MARKS);
}

static dg__value_key store_key(const dg__device_entry *entry, const char *key)
{
	return (dg__value_key){ entry->info.backend, entry->info.hardware, entry->info.driver,
		DG__ENGINE_VERSION, key };
}

/* Without an identity nothing tells this device's figures from another's. */
static bool has_identity(const dg__device_entry *entry)
{
	return (entry->info.present & DG_HAS_HARDWARE) && *entry->info.hardware;
}

/* A kept text, taken back as a value; false where a later version would write it otherwise. */
static bool read_value(const char *json, dg_value *ret_value)
{
	dg__values values = { .count = 0 };
	if (dg__wire_decode_values(json, strlen(json), &values, NULL) != DG_OK)
		return false;
	bool one = values.count == 1;
	if (one)
		*ret_value = values.values[0];
	dg__values_finish(&values);
	return one;
}

dg_err dg__figure_get(dg__store *store, const dg__device_entry *entry, const dg_key *key,
	dg_value *ret_value, dg_error *reterr)
{
	char name[DG_KEY_TEXT_MAX], *json;
	dg_key_format(key, name, sizeof(name));
	if (!has_identity(entry))
		return dg_error_set(reterr, DG_ENOTFOUND, "figures of this device are not kept");
	dg__value_key where = store_key(entry, name);
	dg_err err = dg__store_get_value(store, &where, &json, reterr);
	if (err != DG_OK)
		return err;
	bool read = read_value(json, ret_value);
	free(json);
	return read ? DG_OK
		    : dg_error_set(
			      reterr, DG_ENOTFOUND, "the kept figure of %s is not readable", name);
}

dg_err dg__figure_put(
	dg__store *store, const dg__device_entry *entry, const dg_value *value, dg_error *reterr)
{
	char name[DG_KEY_TEXT_MAX];
	dg_value kept;
	if (value->status != DG_STATUS_OK || !has_identity(entry))
		return DG_OK;
	if (!dg__figure_is_good(value) &&
		dg__figure_get(store, entry, &value->key, &kept, NULL) == DG_OK &&
		dg__figure_is_good(&kept))
		return DG_OK;
	dg_key_format(&value->key, name, sizeof(name));
	dg__value_key where = store_key(entry, name);
	dg_value copy = *value;
	dg__values one = { .count = 1, .values = &copy };
	dg__json_text json;
	if (dg__wire_encode_values(&one, &json) != DG_OK)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dg_err err = dg__store_put_value(store, &where, json.text, reterr);
	free(json.text);
	return err;
}

typedef struct gathering {
	dg_value *values;
	size_t count;
} gathering;

static void gather(const char *json, void *user)
{
	gathering *g = user;
	if (g->count < DG_KEYS_MAX && read_value(json, &g->values[g->count]))
		g->count++;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_key(const void *a, const void *b)
{
	const dg_key *x = &((const dg_value *)a)->key, *y = &((const dg_value *)b)->key;
	const uint64_t fields[][2] = { { x->mode, y->mode }, { x->dtype, y->dtype },
		{ x->accumulator, y->accumulator }, { x->access, y->access },
		{ x->bytes, y->bytes }, { x->m, y->m }, { x->n, y->n }, { x->k, y->k } };
	int order = 0;
	for (size_t i = 0; order == 0 && i < sizeof(fields) / sizeof(fields[0]); i++)
		order = compare_u64(fields[i][0], fields[i][1]);
	return order;
}

static void name_device(const dg__device_entry *entry, char *buf, size_t size)
{
	*buf = '\0';
	if (entry->info.present & DG_HAS_DEVICE)
		dg_device_format(entry->info.device, buf, size);
}

dg_err dg__figure_all(
	dg__store *store, const dg__device_entry *entry, dg__values *ret_values, dg_error *reterr)
{
	gathering g = { calloc(DG_KEYS_MAX, sizeof(*g.values)), 0 };
	dg__value_key where = store_key(entry, "");
	if (!g.values)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dg_err err = has_identity(entry) ? dg__store_each_value(store, &where, gather, &g, reterr)
					 : DG_OK;
	if (err != DG_OK) {
		free(g.values);
		return err;
	}
	qsort(g.values, g.count, sizeof(*g.values), by_key);
	name_device(entry, ret_values->device, sizeof(ret_values->device));
	ret_values->values = g.values;
	ret_values->count = g.count;
	return DG_OK;
}

size_t dg__figure_keys(const dg__job_request *request, dg_key ret_keys[DG_KEYS_MAX])
{
	if (request->kind == DG__JOB_CURVE)
		return dg_curve_keys(request->curve.access, ret_keys);
	if (request->kind == DG__JOB_ROOFLINE) {
		ret_keys[0] = (dg_key){ .mode = DG_MODE_COMPUTE, .dtype = request->roofline.dtype };
		ret_keys[1] = (dg_key){ .mode = DG_MODE_MEMORY, .access = DG_COPY };
		return 2;
	}
	memcpy(ret_keys, request->measure.keys, request->measure.count * sizeof(*ret_keys));
	return request->measure.count;
}

dg_err dg__figure_curve(const dg__device_entry *entry, const dg__curve_request *request,
	const dg_value *values, size_t count, dg__curve_reply *ret_reply, dg_error *reterr)
{
	dg__curve_reply reply = { .has_ceiling = false };
	name_device(entry, reply.device, sizeof(reply.device));
	memcpy(reply.values.device, reply.device, sizeof(reply.device));
	dg_curve_from_values(request->access, values, count, &reply.curve);
	reply.bytes = request->bytes;
	reply.has_ceiling = request->has_bytes && dg_curve_ceiling(&reply.curve, request->bytes,
							  &reply.ceiling_bytes_per_s);
	reply.values.values = count ? malloc(count * sizeof(*values)) : NULL;
	if (count && !reply.values.values)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	if (count)
		memcpy(reply.values.values, values, count * sizeof(*values));
	reply.values.count = count;
	*ret_reply = reply;
	return DG_OK;
}

/* A peak that a roofline stands on; without it there is no roofline. */
static dg_err peak(const dg_value *value, bool memory, double *ret_per_s, dg_error *reterr)
{
	char name[DG_KEY_TEXT_MAX];
	dg_key_format(&value->key, name, sizeof(name));
	bool has = value->status == DG_STATUS_OK && (memory ? dg_value_bytes_rate(value, ret_per_s)
							    : dg_value_rate(value, ret_per_s));
	if (has)
		return DG_OK;
	return dg_error_set(reterr, value->code == DG_OK ? DG_EFAILED : value->code, "%s: %s", name,
		*value->reason ? value->reason : "has no rate");
}

dg_err dg__figure_roofline(const dg__device_entry *entry, const dg__roofline_request *request,
	const dg_value *values, size_t count, dg__roofline_reply *ret_reply, dg_error *reterr)
{
	dg__roofline_reply reply = { .input = { .flops = request->flops,
					     .bytes = request->bytes,
					     .seconds = request->seconds } };
	if (count != 2)
		return dg_error_set(reterr, DG_EINTERNAL, "a roofline needs two peaks");
	name_device(entry, reply.device, sizeof(reply.device));
	dg_err err = peak(&values[0], false, &reply.input.flops_per_s, reterr);
	if (err == DG_OK)
		err = peak(&values[1], true, &reply.input.bytes_per_s, reterr);
	if (err == DG_OK)
		err = dg_roofline_compute(&reply.input, &reply.roofline, reterr);
	if (err == DG_OK)
		*ret_reply = reply;
	return err;
}

static dg_err encode_curve(const dg__device_entry *entry, const dg__curve_request *request,
	const dg_value *values, size_t count, dg__json_text *ret_text, dg_error *reterr)
{
	dg__curve_reply reply;
	dg_err err = dg__figure_curve(entry, request, values, count, &reply, reterr);
	if (err != DG_OK)
		return err;
	err = dg__wire_encode_curve(&reply, ret_text);
	dg__curve_reply_finish(&reply);
	return err == DG_OK ? err : dg_error_set(reterr, err, NULL);
}

dg_err dg__figure_reply(const dg__device_entry *entry, const dg__job_request *request,
	const dg_value *values, size_t count, dg__json_text *ret_text, dg_error *reterr)
{
	dg_err err;
	if (request->kind == DG__JOB_CURVE)
		return encode_curve(entry, &request->curve, values, count, ret_text, reterr);
	if (request->kind == DG__JOB_ROOFLINE) {
		dg__roofline_reply reply;
		err = dg__figure_roofline(entry, &request->roofline, values, count, &reply, reterr);
		if (err != DG_OK)
			return err;
		err = dg__wire_encode_roofline(&reply, ret_text);
	} else {
		dg__values all = { .count = count, .values = (dg_value *)(uintptr_t)values };
		name_device(entry, all.device, sizeof(all.device));
		err = dg__wire_encode_values(&all, ret_text);
	}
	return err == DG_OK ? err : dg_error_set(reterr, err, NULL);
}
