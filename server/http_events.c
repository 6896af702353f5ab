/*
 * Server-sent events of a job's progress (WHATWG HTML, section 9.2): a comment at once, an event
 * `progress` at each change, an event `end` at the end, and a comment now and then meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/http_internal.h"

#define HEARTBEAT_MS 15000
#define FRAME_ROOM 64u /* beside the data: its event's name, and the chunk's frame */

struct dg__stream {
	dg__jobs *jobs;
	dg__subscription *subscription;
	bool chunked; /* else the end of the connection is the end of the stream */
	bool begun, ended, last_sent;
};

/* Hand over a piece to send. */
static bool say(conn *c, const char *event, const char *data, size_t length)
{
	size_t room = length + FRAME_ROOM * 2;
	char *text = malloc(room), *piece = malloc(room);
	if (text && piece) {
		int n = *event ? snprintf(piece, room, "event: %s\ndata: %.*s\n\n", event,
					 (int)length, data)
			       : snprintf(piece, room, "%s\n\n", data);
		n = c->x->stream->chunked ? snprintf(text, room, "%x\r\n%s\r\n", (unsigned)n, piece)
					  : snprintf(text, room, "%s", piece);
		free(c->out);
		c->out = text;
		c->out_length = (size_t)n;
		c->out_sent = 0;
	} else {
		free(text);
	}
	free(piece);
	return text && piece;
}

/* False where memory is short or the job is not to be seen any more. */
static bool say_state(conn *c)
{
	exchange *x = c->x;
	dg__job job;
	dg__json_text json;
	if (dg__jobs_get(x->stream->jobs, x->request.job, &x->request.principal, &job, NULL) !=
		DG_OK)
		return false;
	x->stream->ended = job.state >= DG__JOB_DONE;
	dg_err err = dg__wire_encode_job(&job, &json);
	dg__job_finish(&job);
	if (err != DG_OK)
		return false;
	bool said = say(c, x->stream->ended ? "end" : "progress", json.text, json.length);
	free(json.text);
	return said;
}

static bool say_last(conn *c)
{
	static const char last[] = "0\r\n\r\n";
	c->x->stream->last_sent = true;
	if (!c->x->stream->chunked)
		return true;
	free(c->out);
	c->out = strdup(last);
	c->out_length = c->out ? sizeof(last) - 1 : 0;
	c->out_sent = 0;
	return c->out != NULL;
}

/* What is said next; *ret_nothing: nothing yet. */
static bool say_next(conn *c, bool *ret_nothing)
{
	dg__stream *s = c->x->stream;
	*ret_nothing = false;
	if (!s->begun) {
		s->begun = true;
		atomic_store(&c->rang, true); /* the state it begins with */
		return say(c, "", ": devgate", 0);
	}
	if (s->ended || atomic_load(&c->loop->http->stopping))
		return say_last(c);
	if (atomic_exchange(&c->rang, false))
		return say_state(c);
	if (c->expired)
		return say(c, "", ":", 0);
	*ret_nothing = true;
	return true;
}

step dg__events_step(conn *c)
{
	for (;;) {
		bool nothing;
		step next = dg__io_flush(c);
		if (next != STEP_ON || c->x->stream->last_sent)
			return next;
		if (!say_next(c, &nothing))
			return STEP_CLOSE;
		if (nothing)
			break;
		/* From here to the next comment; what cannot be sent in this time is given up. */
		dg__conn_deadline(c, HEARTBEAT_MS);
	}
	c->events = EV_READ;
	return STEP_IDLE;
}

void dg__events_close(dg__stream *stream)
{
	if (!stream)
		return;
	dg__jobs_unsubscribe(stream->subscription);
	free(stream);
}

dg_err dg__events_open(exchange *x, const char *job, dg_error *reterr)
{
	conn *c = x->c;
	dg__stream *s = calloc(1, sizeof(*s));
	if (!s)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	s->jobs = c->loop->http->context->jobs;
	s->chunked = x->head.minor > 0;
	memmove(x->request.job, job, strlen(job) + 1);
	atomic_store(&c->rang, false);
	dg_err err = dg__jobs_subscribe(s->jobs, x->request.job, &x->request.principal,
		dg__conn_ring, c, &s->subscription, reterr);
	if (err != DG_OK) {
		free(s);
		return err;
	}
	x->stream = s;
	if (!s->chunked)
		c->last = true;
	return DG_OK;
}
