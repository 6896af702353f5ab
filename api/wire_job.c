/* Problems, jobs, ids and the small documents. See wire.h. */
#include "api/wire_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const job_states[] = { "queued", "running", "done", "failed", "cancelled",
	NULL };

json_t *dg__put_problem(const dg_error *error)
{
	json_t *o = json_object();
	dg__put_text(&o, "type", "about:blank");
	dg__put_text(&o, "title", dg_err_title(error->code));
	dg__put_uint(&o, "status", (uint64_t)dg_err_status(error->code));
	dg__put_text(&o, "detail", *error->text ? error->text : dg_err_title(error->code));
	dg__put_text(&o, "code", dg_err_code(error->code));
	if (*error->origin)
		dg__put_text(&o, "origin", error->origin);
	if (error->native_code)
		dg__put_take(&o, "native_code", json_integer(error->native_code));
	return o;
}

dg_err dg__wire_encode_problem(const dg_error *error, dg__json_text *ret_text)
{
	return dg__put_end_take(dg__put_problem(error), ret_text);
}

/* Texts are cut to size rather than refused: a problem is told as well as it can be. */
void dg__in_problem(dg__in *in, json_t *object, dg_error *ret_error)
{
	if (in->err != DG_OK)
		return;
	char code[64];
	dg_error error = { .code = DG_OK };
	json_int_t status = json_integer_value(json_object_get(object, "status"));
	dg__in_cut(object, "code", code, sizeof(code));
	error.code = dg_err_from_code(code);
	if (error.code == DG_OK)
		error.code = dg_err_from_status(status >= 0 && status < 1000 ? (int)status : 0);
	dg__in_cut(object, "detail", error.text, sizeof(error.text));
	if (!*error.text)
		dg__in_cut(object, "title", error.text, sizeof(error.text));
	dg__in_cut(object, "origin", error.origin, sizeof(error.origin));
	json_int_t native = json_integer_value(json_object_get(object, "native_code"));
	if (native >= INT32_MIN && native <= INT32_MAX)
		error.native_code = (int32_t)native;
	*ret_error = error;
}

void dg__wire_decode_problem(int status, const char *body, size_t length, dg_error *ret_error)
{
	dg__in in;
	dg_error error = { .code = DG_OK };
	json_t *root = dg__in_open(&in, body, length, NULL);
	if (json_is_object(root) && json_is_string(json_object_get(root, "code"))) {
		dg__in_problem(&in, root, &error);
		if (dg_err_from_code(json_string_value(json_object_get(root, "code"))) == DG_OK)
			error.code = dg_err_from_status(status);
	} else {
		char kept[201];
		size_t n = 0;
		for (size_t i = 0; i < length && n < sizeof(kept) - 1; i++)
			if (body[i] >= 0x20 && body[i] < 0x7f)
				kept[n++] = body[i];
		kept[n] = '\0';
		dg_error_native(&error, dg_err_from_status(status), "gateway", status,
			"status %d without a problem document%s%s", status, n ? ": " : "", kept);
	}
	json_decref(root);
	*ret_error = error;
}

void dg__job_finish(dg__job *job)
{
	free(job->result.text);
	job->result = (dg__json_text){ NULL, 0 };
}

dg_err dg__wire_encode_job(const dg__job *job, dg__json_text *ret_text)
{
	json_t *o = json_object();
	bool failed = job->state == DG__JOB_FAILED || job->state == DG__JOB_CANCELLED;
	dg__put_text(&o, "id", job->id);
	dg__put_text(&o, "kind", job->kind);
	dg__put_text_or_null(&o, "device", job->device);
	dg__put_text_or_null(&o, "state", dg__word(job_states, job->state));
	dg__put_uint(&o, "done", job->done);
	dg__put_uint(&o, "total", job->total);
	dg__put_text_or_null(&o, "current", job->current);
	dg__put_time(&o, "created_at", job->created_at_ms);
	dg__put_time(&o, "finished_at", job->finished_at_ms);
	dg__put_take(&o, "error",
		failed && job->error.code != DG_OK ? dg__put_problem(&job->error) : json_null());
	dg__put_take(&o, "result",
		job->result.text ? json_loadb(job->result.text, job->result.length, 0, NULL)
				 : json_null());
	return dg__put_end_take(o, ret_text);
}

static void in_job(dg__in *in, json_t *root, dg__job *job)
{
	dg__in_text(in, root, "id", DG__IN_REQUIRED, job->id, sizeof(job->id));
	dg__in_text(in, root, "kind", DG__IN_REQUIRED, job->kind, sizeof(job->kind));
	dg__in_text(in, root, "device", DG__IN_OPTIONAL, job->device, sizeof(job->device));
	job->state = (dg__job_state)dg__in_word(in, root, "state", DG__IN_REQUIRED, 0, job_states);
	dg__in_u32(in, root, "done", DG__IN_REQUIRED, 0, UINT32_MAX, &job->done);
	dg__in_u32(in, root, "total", DG__IN_REQUIRED, 0, UINT32_MAX, &job->total);
	dg__in_text(in, root, "current", DG__IN_OPTIONAL, job->current, sizeof(job->current));
	dg__in_time(in, root, "created_at", DG__IN_OPTIONAL, &job->created_at_ms);
	dg__in_time(in, root, "finished_at", DG__IN_OPTIONAL, &job->finished_at_ms);
	json_t *error = dg__in_object(in, root, "error", DG__IN_OPTIONAL);
	if (error)
		dg__in_problem(in, error, &job->error);
	json_t *result = dg__in_object(in, root, "result", DG__IN_OPTIONAL);
	if (in->err != DG_OK || !result)
		return;
	in->err = dg__dump(result, &job->result);
	if (in->err != DG_OK)
		dg_error_set(in->reterr, in->err, NULL);
}

dg_err dg__wire_decode_job(const char *json, size_t length, dg__job *ret_job, dg_error *reterr)
{
	dg__in in;
	json_t *root = dg__in_open(&in, json, length, reterr);
	dg__job job;
	memset(&job, 0, sizeof(job));
	dg__in_expect_object(&in, root);
	in_job(&in, root, &job);
	if (in.err == DG_OK)
		*ret_job = job;
	else
		dg__job_finish(&job);
	json_decref(root);
	return in.err;
}

void dg__text_list_finish(dg__text_list *list)
{
	for (size_t i = 0; list->texts && i < list->count; i++)
		free(list->texts[i]);
	free(list->texts);
	list->texts = NULL;
	list->count = 0;
}

dg_err dg__wire_encode_texts(const dg__text_list *list, dg__json_text *ret_text)
{
	json_t *array = json_array();
	for (size_t i = 0; i < list->count; i++)
		dg__add_take(&array, dg__json_string(list->texts[i]));
	return dg__put_end_take(array, ret_text);
}

/* The root as an array within the limit on items. */
static size_t root_items(dg__in *in, const json_t *root, const char *what)
{
	if (in->err == DG_OK && !json_is_array(root))
		dg__in_fault(in, DG_EFIELD, NULL, "expected a JSON array of %s", what);
	if (in->err == DG_OK && json_array_size(root) > DG__IDS_MAX)
		dg__in_fault(in, DG_ETOOMANY, NULL, "%zu items; at most %d are taken",
			json_array_size(root), DG__IDS_MAX);
	return in->err == DG_OK ? json_array_size(root) : 0;
}

static void in_texts(dg__in *in, const json_t *root, dg__text_list *list)
{
	size_t count = root_items(in, root, "texts");
	list->texts = count ? calloc(count, sizeof(*list->texts)) : NULL;
	for (size_t i = 0; i < count && in->err == DG_OK; i++) {
		const json_t *item = json_array_get(root, i);
		list->count = i + 1;
		if (list->texts && !json_is_string(item)) {
			dg__in_enter(in, NULL, i);
			dg__in_fault(in, DG_EFIELD, NULL, "expected a string");
		} else if (!list->texts || !(list->texts[i] = strdup(json_string_value(item)))) {
			in->err = dg_error_set(in->reterr, DG_ENOMEM, NULL);
		}
	}
}

dg_err dg__wire_decode_texts(
	const char *json, size_t length, dg__text_list *ret_list, dg_error *reterr)
{
	dg__in in;
	json_t *root = dg__in_open(&in, json, length, reterr);
	dg__text_list list = { 0, NULL };
	in_texts(&in, root, &list);
	if (in.err == DG_OK)
		*ret_list = list;
	else
		dg__text_list_finish(&list);
	json_decref(root);
	return in.err;
}

dg_err dg__wire_encode_ids(const dg_id *ids, size_t count, dg__json_text *ret_text)
{
	json_t *array = json_array();
	for (size_t i = 0; i < count; i++)
		dg__add_take(&array, dg__put_id(ids[i]));
	return dg__put_end_take(array, ret_text);
}

static void in_id(dg__in *in, json_t *object, dg_id *ret_id)
{
	uint32_t type = 0, index = 0;
	if (in->err == DG_OK && !json_is_object(object))
		dg__in_fault(in, DG_EFIELD, NULL, "expected {\"type_id\":N,\"index_id\":N}");
	dg__in_u32(in, object, "type_id", DG__IN_REQUIRED, 0, UINT16_MAX, &type);
	dg__in_u32(in, object, "index_id", DG__IN_REQUIRED, 0, UINT16_MAX, &index);
	*ret_id = (dg_id){ (uint16_t)type, (uint16_t)index };
}

dg_err dg__wire_decode_ids(
	const char *json, size_t length, dg_id *ret_ids, size_t *ret_count, dg_error *reterr)
{
	dg__in in;
	json_t *root = dg__in_open(&in, json, length, reterr);
	size_t count = root_items(&in, root, "ids");
	for (size_t i = 0; i < count; i++) {
		size_t mark = dg__in_enter(&in, NULL, i);
		in_id(&in, json_array_get(root, i), &ret_ids[i]);
		dg__in_leave(&in, mark);
	}
	if (in.err == DG_OK)
		*ret_count = count;
	json_decref(root);
	return in.err;
}

static json_t *put_id_item(const dg__id_item *item)
{
	json_t *o = json_object();
	if (item->code == DG_OK) {
		dg__put_text(&o, "device", item->device);
		dg__put_text(&o, "debug", item->debug);
		dg__put_take(&o, "id", dg__put_id(item->id));
		return o;
	}
	json_t *error = json_object();
	dg__put_text(&error, "code", dg_err_code(item->code));
	dg__put_text(&error, "detail", *item->detail ? item->detail : dg_err_title(item->code));
	dg__put_take(&o, "error", error);
	return o;
}

dg_err dg__wire_encode_id_items(const dg__id_item *items, size_t count, dg__json_text *ret_text)
{
	json_t *array = json_array();
	for (size_t i = 0; i < count; i++)
		dg__add_take(&array, put_id_item(&items[i]));
	return dg__put_end_take(array, ret_text);
}

dg_err dg__wire_encode_id_item(const dg__id_item *item, dg__json_text *ret_text)
{
	return dg__put_end_take(put_id_item(item), ret_text);
}

static void in_id_item(dg__in *in, json_t *object, dg__id_item *item)
{
	json_t *error = dg__in_object(in, object, "error", DG__IN_OPTIONAL);
	if (error) {
		char code[64] = "";
		dg__in_text(in, error, "code", DG__IN_REQUIRED, code, sizeof(code));
		dg__in_cut(error, "detail", item->detail, sizeof(item->detail));
		item->code = dg_err_from_code(code);
		if (item->code == DG_OK)
			item->code = DG_EINVALID;
		return;
	}
	dg__in_text(in, object, "device", DG__IN_REQUIRED, item->device, sizeof(item->device));
	dg__in_text(in, object, "debug", DG__IN_REQUIRED, item->debug, sizeof(item->debug));
	json_t *id = dg__in_object(in, object, "id", DG__IN_REQUIRED);
	in_id(in, id, &item->id);
}

dg_err dg__wire_decode_id_items(const char *json, size_t length, dg__id_item *ret_items,
	size_t *ret_count, dg_error *reterr)
{
	dg__in in;
	json_t *root = dg__in_open(&in, json, length, reterr);
	size_t count = root_items(&in, root, "results");
	for (size_t i = 0; i < count && in.err == DG_OK; i++) {
		size_t mark = dg__in_enter(&in, NULL, i);
		memset(&ret_items[i], 0, sizeof(ret_items[i]));
		in_id_item(&in, json_array_get(root, i), &ret_items[i]);
		dg__in_leave(&in, mark);
	}
	if (in.err == DG_OK)
		*ret_count = count;
	json_decref(root);
	return in.err;
}

dg_err dg__wire_encode_health(const char *status, dg__json_text *ret_text)
{
	json_t *o = json_object();
	dg__put_text(&o, "status", status);
	return dg__put_end_take(o, ret_text);
}

dg_err dg__wire_encode_ready(const char *url, const char *pin, dg__json_text *ret_text)
{
	json_t *o = json_object();
	dg__put_text(&o, "url", url);
	dg__put_text_or_null(&o, "pin", pin);
	return dg__put_end_take(o, ret_text);
}
