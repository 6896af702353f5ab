/* See fake_model.h. */
#include "tests/fakes/fake_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

static void give(dg_fake_model *model, dg_fake_reply *reply, dg_err encoded, dg__json_text *text)
{
	reply->status = reply->status ? reply->status : encoded ? 500 : 200;
	reply->body = "{}";
	if (encoded)
		return;
	char **more = realloc(model->kept, (model->kept_count + 1) * sizeof(char *));
	if (!more) {
		free(text->text);
		return;
	}
	model->kept = more;
	more[model->kept_count++] = text->text;
	reply->body = text->text;
	reply->body_length = text->length;
}

static void give_problem(dg_fake_model *model, dg_fake_reply *reply, dg_err code, const char *text)
{
	dg_error error;
	dg__json_text body = { 0 };
	dg_error_set(&error, code, "%s", text);
	reply->status = dg_err_status(code);
	reply->content_type = "application/problem+json";
	give(model, reply, dg__wire_encode_problem(&error, &body), &body);
}

static void give_list(dg_fake_model *model, dg_fake_reply *reply)
{
	dg__device_list list = { .count = model->count, .entries = model->entries };
	dg__json_text body = { 0 };
	if (model->detecting) {
		list.detecting_count = 1;
		snprintf(list.detecting[0], sizeof(list.detecting[0]), "%s", model->detecting);
	}
	give(model, reply, dg__wire_encode_devices(&list, &body), &body);
}

static void give_job(dg_fake_model *model, dg_fake_reply *reply)
{
	dg__json_text body = { 0 };
	give(model, reply, dg__wire_encode_job(&model->job, &body), &body);
}

static void fill_value(dg_value *value, const dg_key *key, size_t i)
{
	memset(value, 0, sizeof(*value));
	value->key = *key;
	value->ops_count = 1000 * (i + 1);
	value->duration_ns = 1000;
	value->evidence.samples = 20;
	value->evidence.iterations = 1;
	value->evidence.best_ns = value->evidence.median_ns = 1000;
	snprintf(value->evidence.clock_source, sizeof(value->evidence.clock_source), "host");
	snprintf(value->evidence.engine, sizeof(value->evidence.engine), "1");
}

static dg_err make_values(
	dg_fake_model *model, const dg_key *keys, size_t count, dg__values *values)
{
	snprintf(values->device, sizeof(values->device), "cpu");
	values->count = model->no_values ? 0 : count;
	dg_value *filled = calloc(count ? count : 1, sizeof(*filled));
	if (!filled)
		return DG_ENOMEM;
	for (size_t i = 0; i < values->count; i++)
		fill_value(&filled[i], &keys[i], i);
	values->values = filled;
	return DG_OK;
}

static dg_err make_throughput(
	dg_fake_model *model, const dg_fake_request *request, dg__json_text *ret_text)
{
	dg__values values = { 0 };
	dg_err err = dg__wire_decode_measure_request(
		request->body, request->body_length, &model->asked, NULL);
	if (!err)
		err = make_values(model, model->asked.keys, model->asked.count, &values);
	if (!err)
		err = dg__wire_encode_values(&values, ret_text);
	dg__values_finish(&values);
	return err;
}

static dg_err make_curve(
	dg_fake_model *model, const dg_fake_request *request, dg__json_text *ret_text)
{
	dg__curve_request asked;
	dg__curve_reply curve = { 0 };
	dg_key keys[DG_CURVE_MAX];
	dg_err err =
		dg__wire_decode_curve_request(request->body, request->body_length, &asked, NULL);
	if (err)
		return err;
	size_t count = dg_curve_keys(asked.access, keys);
	snprintf(curve.device, sizeof(curve.device), "cpu");
	err = make_values(model, keys, count, &curve.values);
	if (!err) {
		dg_curve points;
		dg_curve_from_values(
			asked.access, curve.values.values, curve.values.count, &points);
		curve.curve = points;
		err = dg__wire_encode_curve(&curve, ret_text);
	}
	dg__curve_reply_finish(&curve);
	return err;
}

static dg_err make_roofline(const dg_fake_request *request, dg__json_text *ret_text)
{
	dg__roofline_request asked;
	dg__roofline_reply reply = { 0 };
	dg_err err =
		dg__wire_decode_roofline_request(request->body, request->body_length, &asked, NULL);
	if (err)
		return err;
	snprintf(reply.device, sizeof(reply.device), "cpu");
	reply.input = (dg_roofline_input){ asked.flops, asked.bytes, 1e9, 1e8, asked.seconds };
	err = dg_roofline_compute(&reply.input, &reply.roofline, NULL);
	return err ? err : dg__wire_encode_roofline(&reply, ret_text);
}

static void start_job(dg_fake_model *model, dg_fake_reply *reply, dg__json_text *result)
{
	if (model->at_once) {
		give(model, reply, DG_OK, result);
		return;
	}
	dg__job_finish(&model->job);
	memset(&model->job, 0, sizeof(model->job));
	snprintf(model->job.id, sizeof(model->job.id), "%032x", ++model->jobs);
	snprintf(model->job.kind, sizeof(model->job.kind), "throughput");
	snprintf(model->job.device, sizeof(model->job.device), "cpu");
	snprintf(model->job.current, sizeof(model->job.current), "compute:f32");
	model->job.total = 3;
	model->job.created_at_ms = 1;
	model->job.result = *result;
	model->polls = 0;
	dg__json_text kept = model->job.result;
	model->job.result = (dg__json_text){ 0 };
	reply->status = 202;
	give_job(model, reply);
	model->job.result = kept;
	model->job.state = DG__JOB_RUNNING;
}

static void measure(dg_fake_model *model, const dg_fake_request *request, const char *what,
	dg_fake_reply *reply)
{
	dg__json_text result = { 0 };
	dg_err err = DG_ENOTFOUND;
	if (strcmp(what, "/throughput") == 0)
		err = make_throughput(model, request, &result);
	else if (strcmp(what, "/memory-curve") == 0)
		err = make_curve(model, request, &result);
	else if (strcmp(what, "/roofline") == 0)
		err = make_roofline(request, &result);
	if (err)
		give_problem(model, reply, err, "the fake gateway did not understand this");
	else
		start_job(model, reply, &result);
}

static void end_job(dg_fake_model *model)
{
	model->job.state = model->outcome ? model->outcome : DG__JOB_DONE;
	model->job.error = model->outcome_error;
	model->job.finished_at_ms = 2;
	model->job.current[0] = '\0';
	model->job.done = model->job.total;
	if (model->job.state != DG__JOB_DONE) {
		free(model->job.result.text);
		model->job.result = (dg__json_text){ 0 };
	}
}

static void answer_job(dg_fake_model *model, const dg_fake_request *request, dg_fake_reply *reply)
{
	if (strcmp(request->path + strlen("/v1/jobs/"), model->job.id) != 0) {
		give_problem(model, reply, DG_ENOJOB, "no such job");
		return;
	}
	if (strcmp(request->method, "DELETE") == 0) {
		model->deletes++;
	} else if (model->job.state == DG__JOB_RUNNING && !model->never_done &&
		   model->polls++ >= model->polls_until_done) {
		end_job(model);
	}
	dg__json_text kept = model->job.result;
	if (model->job.state == DG__JOB_RUNNING)
		model->job.result = (dg__json_text){ 0 };
	give_job(model, reply);
	model->job.result = kept;
}

static void answer_device(
	dg_fake_model *model, const dg_fake_request *request, dg_fake_reply *reply)
{
	char *what = NULL;
	unsigned long index = strtoul(request->path + strlen("/v1/devices/"), &what, 10);
	dg__json_text body = { 0 };
	if (index >= model->count)
		give_problem(model, reply, DG_ENODEVICE, "no device has this index");
	else if (strcmp(request->method, "POST") == 0)
		measure(model, request, what, reply);
	else
		give(model, reply, dg__wire_encode_device(&model->entries[index], &body), &body);
}

static bool is_allowed(const dg_fake_model *model, const dg_fake_request *request)
{
	char given[256] = "", wanted[256];
	if (!model->token || strcmp(request->path, "/healthz") == 0 ||
		strcmp(request->path, "/readyz") == 0)
		return true;
	snprintf(wanted, sizeof(wanted), "Bearer %s", model->token);
	dg_fake_request_header(request, "Authorization", given, sizeof(given));
	return strcmp(given, wanted) == 0;
}

static void answer(const dg_fake_request *request, dg_fake_reply *reply, void *user)
{
	dg_fake_model *model = user;
	dg__json_text body = { 0 };
	if (!is_allowed(model, request))
		give_problem(model, reply, DG_EUNAUTHORIZED, "no valid token was given");
	else if (strcmp(request->path, "/healthz") == 0 || strcmp(request->path, "/readyz") == 0)
		give(model, reply, dg__wire_encode_health("ok", &body), &body);
	else if (strcmp(request->path, "/v1/gateway") == 0)
		give(model, reply, dg__wire_encode_gateway(&model->about, &body), &body);
	else if (strcmp(request->path, "/v1/devices") == 0)
		give_list(model, reply);
	else if (strncmp(request->path, "/v1/devices/", 12) == 0)
		answer_device(model, request, reply);
	else if (strncmp(request->path, "/v1/jobs/", 9) == 0)
		answer_job(model, request, reply);
	else
		give_problem(model, reply, DG_ENOTFOUND, "there is nothing here");
	if (model->twist)
		model->twist(request, reply, model->user);
}

static void fill_entry(dg__device_entry *entry, unsigned index)
{
	dg_device_info *info = &entry->info;
	memset(entry, 0, sizeof(*entry));
	entry->settings = (dg_settings)DG_SETTINGS_INIT;
	info->present = DG_HAS_GATEWAY_INDEX | DG_HAS_DEVICE | DG_HAS_HARDWARE | DG_HAS_TOTAL;
	info->gateway_index = index;
	info->total_bytes = 1 << 30;
	info->dtypes = (uint64_t)1 << DG_F32 | (uint64_t)1 << DG_F64 | (uint64_t)1 << DG_I32;
	snprintf(info->backend, sizeof(info->backend), "cpu");
	snprintf(info->name, sizeof(info->name), "Fake Processor %u", index);
	snprintf(info->hardware, sizeof(info->hardware), "host:0123456789abcdef/%u", index);
	snprintf(info->host, sizeof(info->host), "0123456789abcdef0123456789abcdef");
}

void dg_fake_model_init(dg_fake_model *model, dg_fake_mode mode)
{
	memset(model, 0, sizeof(*model));
	model->count = 2;
	for (unsigned i = 0; i < DG_FAKE_DEVICES_MAX; i++)
		fill_entry(&model->entries[i], i);
	snprintf(model->about.id, sizeof(model->about.id), "0123456789abcdef0123456789abcdef");
	snprintf(model->about.host, sizeof(model->about.host), "0123456789abcdef0123456789abcdef");
	snprintf(model->about.node, sizeof(model->about.node), "fake");
	snprintf(model->about.version, sizeof(model->about.version), "9.9.9");
	model->about.ready = true;
	model->gateway = dg_fake_gateway_create(mode, answer, model);
}

void dg_fake_model_finish(dg_fake_model *model)
{
	dg_fake_gateway_destroy(model->gateway);
	dg__job_finish(&model->job);
	for (size_t i = 0; i < model->kept_count; i++)
		free(model->kept[i]);
	free(model->kept);
	memset(model, 0, sizeof(*model));
}
