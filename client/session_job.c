/* Measurements at a gateway: see dg__session_measure() of session.h. */
#include "client/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_MIN_MS 10u
#define POLL_MAX_MS 250u
#define CANCEL_MS 500u

/* The id goes into a path: nothing that could lead elsewhere. */
static bool id_is_plain(const char *id)
{
	size_t n = strspn(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_");
	return n > 0 && id[n] == '\0';
}

static void cancel(const dg__session *session, const char *id)
{
	dg__exchange x = { .method = "DELETE",
		.address = session->address,
		.identity = &session->identity,
		.deadline_ms = dg__now_ms() + CANCEL_MS };
	snprintf(x.path, sizeof(x.path), "/v1/jobs/%s", id);
	/* The caller has the reason why it gave up; that it could not say so changes nothing. */
	if (dg__transport_run(&x, NULL) == DG_OK)
		dg__exchange_finish(&x);
}

static dg_err decode_job(
	dg__session *session, const dg__exchange *x, dg__job *ret_job, dg_error *reterr)
{
	dg_error why = { 0 };
	dg__job job = { 0 };
	if (dg__wire_decode_job(x->reply ? x->reply : "", x->reply_length, &job, &why))
		return dg__session_bad_reply(session->url, &why, reterr);
	if (!id_is_plain(job.id)) {
		dg__job_finish(&job);
		return dg_error_native(reterr, DG_EPROTOCOL, "gateway", 0,
			"%.150s: the reply holds a job id with other than letters and digits",
			session->url);
	}
	session->done = job.done;
	session->total = job.total;
	memcpy(session->current, job.current, sizeof(session->current));
	*ret_job = job;
	return DG_OK;
}

/* The outcome of a job that has ended. */
static dg_err take_outcome(
	const dg__session *session, dg__job *job, dg__json_text *ret_text, dg_error *reterr)
{
	if (job->state == DG__JOB_DONE && job->result.text) {
		*ret_text = job->result;
		job->result = (dg__json_text){ 0 };
		return DG_OK;
	}
	if (job->state != DG__JOB_DONE && job->error.code)
		return dg_error_native(reterr, job->error.code, "gateway", job->error.native_code,
			"%.120s: %.340s", session->url, job->error.text);
	return dg_error_native(reterr, DG_EPROTOCOL, "gateway", 0, "%.150s: a job ended without %s",
		session->url, job->state == DG__JOB_DONE ? "its result" : "a reason");
}

static bool has_ended(const dg__job *job)
{
	return job->state != DG__JOB_QUEUED && job->state != DG__JOB_RUNNING;
}

static dg_err poll_job(dg__session *session, dg__job *job, dg_error *reterr)
{
	char path[80], id[sizeof(job->id)];
	dg__exchange x;
	memcpy(id, job->id, sizeof(id));
	snprintf(path, sizeof(path), "/v1/jobs/%s", id);
	const dg__question question = { .method = "GET", .path = path };
	dg_err err = dg__session_ask(session, &question, &x, reterr);
	if (err)
		return err;
	dg__job next = { 0 };
	err = decode_job(session, &x, &next, reterr);
	dg__exchange_finish(&x);
	if (err)
		return err;
	if (strcmp(next.id, id) != 0) {
		dg__job_finish(&next);
		return dg_error_native(reterr, DG_EPROTOCOL, "gateway", 0,
			"%.150s: the reply is about another job than was asked for", session->url);
	}
	dg__job_finish(job);
	*job = next;
	return DG_OK;
}

static dg_err cancelled(const dg__session *session, dg_error *reterr)
{
	return dg_error_native(reterr, DG_ECANCELLED, "caller", 0,
		"%.150s: the measurement was cancelled by the caller", session->url);
}

static dg_err late(const dg__session *session, dg_error *reterr)
{
	return dg_error_native(reterr, DG_ETIMEOUT, "caller", 0,
		"%.150s: the deadline passed while key %u of %u (%.60s) was measured; allow more "
		"time",
		session->url, session->done, session->total,
		session->current[0] ? session->current : "none yet");
}

static dg_err follow(dg__session *session, dg__job *job, dg_error *reterr)
{
	uint32_t wait_ms = POLL_MIN_MS;
	dg_err err = DG_OK;
	while (!err && !has_ended(job)) {
		uint32_t left_ms = dg__call_left_ms(session->call);
		if (!dg__call_progress(
			    session->call, session->done, session->total, session->current) ||
			!dg__session_sleep(session, wait_ms < left_ms ? wait_ms : left_ms))
			err = cancelled(session, reterr);
		else if (dg__call_left_ms(session->call) == 0)
			err = late(session, reterr);
		else
			err = poll_job(session, job, reterr);
		wait_ms = wait_ms * 3 / 2 < POLL_MAX_MS ? wait_ms * 3 / 2 : POLL_MAX_MS;
	}
	if (err == DG_ECANCELLED || err == DG_ETIMEOUT)
		cancel(session, job->id);
	return err;
}

static dg_err follow_to_result(
	dg__session *session, const dg__exchange *x, dg__json_text *ret_text, dg_error *reterr)
{
	dg__job job = { 0 };
	dg_err err = decode_job(session, x, &job, reterr);
	if (err)
		return err;
	err = follow(session, &job, reterr);
	if (!err)
		err = take_outcome(session, &job, ret_text, reterr);
	dg__job_finish(&job);
	return err;
}

dg_err dg__session_measure(dg__session *session, const char *path, const dg__json_text *body,
	uint32_t total, dg__json_text *ret_text, dg_error *reterr)
{
	const dg__question question = { "POST", path, body->text, body->length, "respond-async",
		dg__call_lease(session->call) };
	dg__exchange x;
	session->measuring = true;
	session->total = total;
	dg_err err = dg__session_ask(session, &question, &x, reterr);
	if (err)
		return err;
	if (x.status == 202) {
		err = follow_to_result(session, &x, ret_text, reterr);
	} else if (x.reply) {
		*ret_text = (dg__json_text){ x.reply, x.reply_length };
		x.reply = NULL;
	} else {
		err = dg_error_native(reterr, DG_EPROTOCOL, "gateway", x.status,
			"%.150s: the reply is empty", session->url);
	}
	dg__exchange_finish(&x);
	return err;
}
