/* Jobs, and how a request waits for one. See routes.h. */
#include "server/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WAIT_DEFAULT_S 30u

/* Prefer (RFC 7240): how long to wait in seconds; *ret_applied is what Preference-Applied says. */
static unsigned preferred_wait(const dg__request *request, char *applied, size_t size)
{
	const char *at = dg__request_header(request, "Prefer");
	unsigned wait = WAIT_DEFAULT_S;
	*applied = '\0';
	while (at && *at) {
		at += strspn(at, " \t,;");
		size_t length = strcspn(at, ",;");
		if (strncasecmp(at, "wait=", 5) == 0 && at[5] >= '0' && at[5] <= '9') {
			unsigned long seconds = strtoul(at + 5, NULL, 10);
			wait = seconds < DG__WAIT_MAX_S ? (unsigned)seconds : DG__WAIT_MAX_S;
			snprintf(applied, size, "wait=%u", wait);
		} else if (length >= 13 && strncasecmp(at, "respond-async", 13) == 0) {
			snprintf(applied, size, "respond-async");
			return 0;
		}
		at += length;
	}
	return wait;
}

/* The job has not ended in time: it goes on, and is found at its address. */
static void respond_accepted(const dg__job *job, const char *applied, dg__response *response)
{
	char location[64];
	dg__json_text text = { NULL, 0 };
	dg__respond(response, dg__wire_encode_job(job, &text), &text);
	if (response->status != 200)
		return;
	response->status = 202;
	snprintf(location, sizeof(location), "/v1/jobs/%s", job->id);
	dg__response_header(response, "Location", location);
	if (*applied)
		dg__response_header(response, "Preference-Applied", applied);
}

void dg__respond_job(const dg__context *context, dg__request *request, bool resumed, const char *id,
	dg__response *response)
{
	char applied[32];
	dg__job job;
	dg_error why;
	unsigned wait_s = preferred_wait(request, applied, sizeof(applied));
	if (dg__jobs_get(context->jobs, id, &request->principal, &job, &why) != DG_OK) {
		dg__response_problem(response, &why);
		return;
	}
	if (job.state == DG__JOB_DONE) {
		dg__respond(response, DG_OK, &job.result);
		job.result.text = NULL;
		if (*applied)
			dg__response_header(response, "Preference-Applied", applied);
	} else if (job.state > DG__JOB_DONE) {
		dg__response_problem(response, &job.error);
	} else if (resumed || wait_s == 0) {
		respond_accepted(&job, applied, response);
	} else {
		memcpy(response->wait_job, job.id, sizeof(job.id));
		response->wait_ms = wait_s * 1000;
	}
	dg__job_finish(&job);
}

static void respond_with(dg_err err, dg__job *job, const dg_error *why, dg__response *response)
{
	dg__json_text text = { NULL, 0 };
	if (err != DG_OK) {
		dg__response_problem(response, why);
		return;
	}
	dg__respond(response, dg__wire_encode_job(job, &text), &text);
	dg__job_finish(job);
}

void dg__answer_job(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	dg__job job;
	dg_error why;
	(void)resumed;
	dg_err err =
		dg__jobs_get(context->jobs, request->segments[2], &request->principal, &job, &why);
	respond_with(err, &job, &why, response);
}

void dg__answer_cancel(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	dg__job job;
	dg_error why;
	(void)resumed;
	dg_err err = dg__jobs_cancel(
		context->jobs, request->segments[2], &request->principal, &job, &why);
	respond_with(err, &job, &why, response);
}

void dg__answer_events(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	dg__job job;
	dg_error why;
	(void)resumed;
	if (dg__jobs_get(context->jobs, request->segments[2], &request->principal, &job, &why) !=
		DG_OK) {
		dg__response_problem(response, &why);
		return;
	}
	response->status = 200;
	response->content_type = "text/event-stream";
	response->events = true;
	memcpy(response->wait_job, job.id, sizeof(job.id));
	dg__response_header(response, "Cache-Control", "no-store");
	dg__job_finish(&job);
}
