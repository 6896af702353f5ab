/*
 * Server-sent events of a job's progress (WHATWG HTML, section 9.2): a comment at once, an event
 * `progress` at each change, an event `end` at the end, and a comment now and then meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "backends/core/clock.h"
#include "server/http_internal.h"

#define HEARTBEAT_NS (15ull * 1000000000)

typedef struct stream {
	conn *c;
	dg__jobs *jobs;
	dg__principal who;
	char job[40];
	dg__subscription *subscription;
	char *text; /* owned; what is not sent yet */
	size_t length, sent;
	bool begun, ended;
} stream;

static bool set_text(stream *s, const char *event, const dg__json_text *data)
{
	size_t room = data->length + 64;
	s->text = malloc(room);
	if (!s->text)
		return false;
	s->length = (size_t)snprintf(s->text, room, "event: %s\ndata: %s\n\n", event, data->text);
	s->sent = 0;
	return true;
}

static bool set_comment(stream *s, const char *comment)
{
	s->text = strdup(comment);
	s->length = s->text ? strlen(s->text) : 0;
	s->sent = 0;
	return s->text != NULL;
}

/* The next piece: false where memory is short or the job is not to be seen any more. */
static bool next_event(stream *s)
{
	dg__job job;
	dg__json_text json;
	if (dg__jobs_get(s->jobs, s->job, &s->who, &job, NULL) != DG_OK)
		return false;
	s->ended = job.state >= DG__JOB_DONE;
	dg_err err = dg__wire_encode_job(&job, &json);
	dg__job_finish(&job);
	if (err != DG_OK)
		return false;
	bool set = set_text(s, s->ended ? "end" : "progress", &json);
	free(json.text);
	return set;
}

static ssize_t read_stream(void *cls, uint64_t position, char *buf, size_t size)
{
	stream *s = cls;
	(void)position;
	if (s->sent == s->length) {
		free(s->text);
		s->text = NULL;
		s->length = s->sent = 0;
		if (s->ended || atomic_load(&s->c->http->stopping))
			return MHD_CONTENT_READER_END_OF_STREAM;
		bool rang = atomic_exchange(&s->c->rang, false);
		bool late = dg__clock_ns() >= atomic_load(&s->c->wake_ns);
		bool made = true;
		if (!s->begun)
			made = set_comment(s, ": devgate\n\n");
		else if (rang)
			made = next_event(s);
		else if (late)
			made = set_comment(s, ":\n\n");
		if (!made)
			return MHD_CONTENT_READER_END_WITH_ERROR;
		if (!s->begun)
			atomic_store(&s->c->rang, true); /* the state it begins with */
		s->begun = true;
	}
	if (s->sent == s->length) {
		dg__conn_suspend(s->c, dg__clock_ns() + HEARTBEAT_NS);
		return 0;
	}
	size_t n = s->length - s->sent < size ? s->length - s->sent : size;
	memcpy(buf, s->text + s->sent, n);
	s->sent += n;
	return (ssize_t)n;
}

static void free_stream(void *cls)
{
	stream *s = cls;
	dg__jobs_unsubscribe(s->subscription);
	free(s->text);
	free(s);
}

dg_err dg__events_make(
	exchange *x, const char *job, struct MHD_Response **ret_response, dg_error *reterr)
{
	stream *s = calloc(1, sizeof(*s));
	if (!s)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	s->c = x->c;
	s->jobs = x->c->http->context->jobs;
	s->who = x->request.principal;
	snprintf(s->job, sizeof(s->job), "%s", job);
	atomic_store(&x->c->wake_ns, dg__clock_ns() + HEARTBEAT_NS);
	dg_err err = dg__jobs_subscribe(
		s->jobs, job, &s->who, dg__conn_ring, x->c, &s->subscription, reterr);
	if (err != DG_OK) {
		free(s);
		return err;
	}
	struct MHD_Response *response = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, 4096, read_stream, s, free_stream);
	if (!response) {
		free_stream(s);
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	}
	*ret_response = response;
	return DG_OK;
}
