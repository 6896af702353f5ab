/* Throughput, memory curve, roofline. See routes.h. */
#include "server/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The encoder of a document, given what it encodes. */
static void respond_values(const char *device, dg__values *values, dg__response *response)
{
	dg__json_text text = { NULL, 0 };
	if (device)
		snprintf(values->device, sizeof(values->device), "%s", device);
	dg__respond(response, dg__wire_encode_values(values, &text), &text);
	dg__values_finish(values);
}

/* A device without kernels has no values. */
static void respond_no_values(dg_device identity, dg__response *response)
{
	char device[DG_DEVICE_TEXT_MAX];
	dg__values none = { .count = 0 };
	dg_device_format(identity, device, sizeof(device));
	respond_values(device, &none, response);
}

static void no_kernels(dg_device identity, dg__response *response)
{
	dg__respond_error(response, DG_ENOMEASURE, "a %s device has no kernels to measure",
		dg_variant_name(identity.variant));
}

void dg__answer_known_values(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	(void)resumed;
	const dg__snapshot *snapshot = dg__fleet_snapshot(context->fleet);
	size_t position;
	dg_device identity;
	dg_error why;
	dg__values values = { .count = 0 };
	int found = dg__find_device(snapshot, request, &position, &identity, response);
	if (found == 0)
		respond_no_values(identity, response);
	else if (found > 0 && dg__jobs_known_values(context->jobs,
				      &snapshot->list.entries[position], &values, &why) != DG_OK)
		dg__response_problem(response, &why);
	else if (found > 0)
		respond_values(NULL, &values, response);
	dg__snapshot_release(snapshot);
}

/* Start the job of a request that is filled but for its position, and respond with it. */
static void start(const dg__context *context, dg__request *request, const dg__snapshot *snapshot,
	dg__job_request *ask, dg__response *response)
{
	char id[40];
	dg_error why;
	if (dg__jobs_start(context->jobs, snapshot, ask, &request->principal, id, &why) != DG_OK)
		dg__response_problem(response, &why);
	else
		dg__respond_job(context, request, false, id, response);
}

/* Reads the body into ask; false: response says why not. */
typedef bool read_body(const dg__request *request, dg__job_request *ask, dg__response *response);

static void measure(const dg__context *context, dg__request *request, bool resumed, read_body *read,
	bool values, dg__response *response)
{
	if (resumed) {
		dg__respond_job(context, request, true, request->job, response);
		return;
	}
	dg__job_request *ask = calloc(1, sizeof(*ask));
	if (!ask) {
		dg__respond_error(response, DG_ENOMEM, "out of memory");
		return;
	}
	const dg__snapshot *snapshot = dg__fleet_snapshot(context->fleet);
	dg_device identity;
	int found = dg__find_device(snapshot, request, &ask->position, &identity, response);
	snprintf(ask->lease, sizeof(ask->lease), "%s", dg__request_lease(request));
	if (found >= 0 && read(request, ask, response)) {
		if (found > 0)
			start(context, request, snapshot, ask, response);
		else if (values)
			respond_no_values(identity, response);
		else
			no_kernels(identity, response);
	}
	dg__snapshot_release(snapshot);
	free(ask);
}

static bool read_measure(const dg__request *request, dg__job_request *ask, dg__response *response)
{
	dg_error why;
	ask->kind = DG__JOB_THROUGHPUT;
	if (dg__wire_decode_measure_request(
		    request->body, request->body_length, &ask->measure, &why) == DG_OK)
		return true;
	dg__response_problem(response, &why);
	return false;
}

void dg__answer_measure(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	measure(context, request, resumed, read_measure, true, response);
}

static bool read_curve(const dg__request *request, dg__job_request *ask, dg__response *response)
{
	dg_error why;
	const char *body = request->body_length ? request->body : "{}";
	size_t length = request->body_length ? request->body_length : 2;
	ask->kind = DG__JOB_CURVE;
	if (dg__wire_decode_curve_request(body, length, &ask->curve, &why) == DG_OK)
		return true;
	dg__response_problem(response, &why);
	return false;
}

void dg__answer_curve(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	measure(context, request, resumed, read_curve, false, response);
}

/* GET has its request in the query. */
static bool read_curve_query(
	const dg__request *request, dg__curve_request *ret_curve, dg__response *response)
{
	static const char *const words[] = { "copy", "read", "write" };
	const char *access = dg__request_query(request, "access");
	unsigned i = access ? 0 : DG_READ;
	while (access && i < 3 && strcmp(access, words[i]) != 0)
		i++;
	if (i == 3) {
		dg__respond_error(response, DG_EFIELD,
			"access: expected copy, read or write, not '%.40s'", access);
		return false;
	}
	*ret_curve = (dg__curve_request){ .access = (dg_access)i };
	return true;
}

void dg__answer_known_curve(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	(void)resumed;
	dg__curve_request ask;
	if (!read_curve_query(request, &ask, response))
		return;
	const dg__snapshot *snapshot = dg__fleet_snapshot(context->fleet);
	size_t position;
	dg_device identity;
	dg_error why;
	dg__curve_reply *reply = calloc(1, sizeof(*reply));
	int found = dg__find_device(snapshot, request, &position, &identity, response);
	if (found == 0) {
		no_kernels(identity, response);
	} else if (found > 0 && !reply) {
		dg__respond_error(response, DG_ENOMEM, "out of memory");
	} else if (found > 0 &&
		   dg__jobs_known_curve(context->jobs, &snapshot->list.entries[position], &ask,
			   reply, &why) != DG_OK) {
		dg__response_problem(response, &why);
	} else if (found > 0) {
		dg__json_text text = { NULL, 0 };
		dg__respond(response, dg__wire_encode_curve(reply, &text), &text);
		dg__curve_reply_finish(reply);
	}
	free(reply);
	dg__snapshot_release(snapshot);
}

static bool read_roofline(const dg__request *request, dg__job_request *ask, dg__response *response)
{
	dg_error why;
	ask->kind = DG__JOB_ROOFLINE;
	if (dg__wire_decode_roofline_request(
		    request->body, request->body_length, &ask->roofline, &why) == DG_OK)
		return true;
	dg__response_problem(response, &why);
	return false;
}

/* Who may not measure gets what the kept figures give. */
static void known_roofline(
	const dg__context *context, const dg__request *request, dg__response *response)
{
	dg__job_request *ask = calloc(1, sizeof(*ask));
	const dg__snapshot *snapshot = dg__fleet_snapshot(context->fleet);
	dg_device identity;
	dg_error why;
	dg__roofline_reply reply;
	size_t position;
	int found = dg__find_device(snapshot, request, &position, &identity, response);
	if (found >= 0 && !ask) {
		dg__respond_error(response, DG_ENOMEM, "out of memory");
	} else if (found >= 0 && read_roofline(request, ask, response)) {
		dg__json_text text = { NULL, 0 };
		if (found == 0)
			no_kernels(identity, response);
		else if (dg__jobs_known_roofline(context->jobs, &snapshot->list.entries[position],
				 &ask->roofline, &reply, &why) != DG_OK)
			dg__response_problem(response, &why);
		else
			dg__respond(response, dg__wire_encode_roofline(&reply, &text), &text);
	}
	free(ask);
	dg__snapshot_release(snapshot);
}

void dg__answer_roofline(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	if (request->principal.scopes & DG__SCOPE_MEASURE)
		measure(context, request, resumed, read_roofline, false, response);
	else
		known_roofline(context, request, response);
}
