/* A request and its response, on a connection: see http_internal.h. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backends/core/clock.h"
#include "server/http_internal.h"

#define FIRST_BODY 4096u

const char *dg__request_query(const dg__request *request, const char *name)
{
	for (size_t i = 0; i < request->query_count; i++)
		if (strcmp(request->queries[i].name, name) == 0)
			return request->queries[i].value;
	return NULL;
}

const char *dg__request_header(const dg__request *request, const char *name)
{
	const exchange *x = request->connection;
	return dg__head_field(&x->head, name);
}

static void free_response(exchange *x)
{
	dg__response *r = &x->response;
	if (!x->has_response)
		return;
	if (r->snapshot)
		dg__snapshot_release(r->snapshot);
	else if (!r->borrowed)
		free(r->body.text);
	x->has_response = false;
}

static void abandon_job(exchange *x)
{
	dg__job job;
	dg__jobs *jobs = x->c->loop->http->context->jobs;
	if (dg__jobs_cancel(jobs, x->request.job, &x->request.principal, &job, NULL) == DG_OK)
		dg__job_finish(&job);
}

void dg__exchange_end(conn *c)
{
	exchange *x = c->x;
	if (!x)
		return;
	bool unanswered = c->phase == PHASE_WAIT && *x->request.job;
	dg__jobs_unsubscribe(x->subscription);
	dg__events_close(x->stream);
	/* Who asked for a job has left without having learned its name: nobody can want it. */
	if (unanswered && strcmp(x->request.method, "POST") == 0)
		abandon_job(x);
	free_response(x);
	free(x->body);
	free(x);
	c->x = NULL;
}

static exchange *open_exchange(conn *c, size_t text_length)
{
	exchange *x = calloc(1, sizeof(*x) + text_length + 1);
	if (!x)
		return NULL;
	x->c = c;
	x->request.connection = x;
	x->head.method = x->head.target = x->request.method = "";
	c->x = x;
	return x;
}

/* Send what has been made; from here the response has as long as an idle connection. */
static step respond(conn *c)
{
	exchange *x = c->x;
	x->has_response = true;
	if (!x->head.keep || atomic_load(&c->loop->http->stopping))
		c->last = true;
	if (!dg__send_start(c))
		return STEP_CLOSE;
	c->phase = x->stream ? PHASE_STREAM : PHASE_WRITE;
	if (!x->stream)
		dg__conn_deadline(c, c->loop->http->context->config->idle_timeout_ms);
	return STEP_ON;
}

static bool has_body(const exchange *x)
{
	return x->head.chunked || x->head.length > 0;
}

/*
 * A body that nobody reads is read and forgotten where that is bearable, so that the connection can
 * be used again; else, and where the peer waits to be told, the answer comes at once and is the
 * last.
 */
static step refuse_made(conn *c)
{
	exchange *x = c->x;
	const dg__config *config = c->loop->http->context->config;
	bool bearable = x->head.chunked || x->head.length <= config->max_body_bytes;
	x->refused = true;
	x->has_response = true;
	if (!has_body(x))
		return respond(c);
	if (bearable && !x->head.expects) {
		c->phase = PHASE_BODY;
		return STEP_ON;
	}
	c->last = c->linger = true;
	return respond(c);
}

static step refuse(conn *c, const dg_error *error)
{
	dg__response_problem(&c->x->response, error);
	return refuse_made(c);
}

step dg__exchange_refuse(conn *c, const dg_error *error)
{
	if (!c->x && !open_exchange(c, 0))
		return STEP_CLOSE;
	free_response(c->x);
	memset(&c->x->response, 0, sizeof(c->x->response));
	c->last = c->linger = true;
	c->x->refused = true;
	dg__response_problem(&c->x->response, error);
	return respond(c);
}

/* Wait for a job; the answer is asked for again when it has ended, or when time is over. */
static step wait_for_job(conn *c)
{
	exchange *x = c->x;
	dg_error why;
	memcpy(x->request.job, x->response.wait_job, sizeof(x->request.job));
	uint32_t wait_ms = x->response.wait_ms;
	x->has_response = true;
	free_response(x);
	memset(&x->response, 0, sizeof(x->response));
	x->waiting = true;
	atomic_store(&c->rang, false);
	dg_err err = dg__jobs_subscribe(c->loop->http->context->jobs, x->request.job,
		&x->request.principal, dg__conn_ring_at_end, x, &x->subscription, &why);
	if (err != DG_OK)
		return refuse(c, &why);
	c->phase = PHASE_WAIT;
	dg__conn_deadline(c, wait_ms);
	return STEP_ON;
}

static step unavailable(conn *c)
{
	dg_error why;
	dg_error_set(&why, DG_EUNAVAILABLE, "the gateway is ending");
	return dg__exchange_refuse(c, &why);
}

static step answer(conn *c)
{
	exchange *x = c->x;
	dg_error why;
	bool stopping = atomic_load(&c->loop->http->stopping);
	dg__response *r = &x->response;
	x->request.body = x->body ? x->body : "";
	x->request.body_length = x->head.chunked || x->head.has_length ? x->received : 0;
	dg__routes_answer(c->loop->http->context, &x->request, x->waiting, r);
	x->has_response = true;
	bool waits = *r->wait_job && !r->events;
	if (waits && !x->waiting && !stopping)
		return wait_for_job(c);
	/* Nobody will be there to ask for the job. */
	if (stopping && (waits || r->status == 202))
		return unavailable(c);
	if (r->events && !x->bodiless && dg__events_open(x, r->wait_job, &why) != DG_OK)
		return dg__exchange_refuse(c, &why);
	return respond(c);
}

step dg__exchange_resume(conn *c)
{
	dg__jobs_unsubscribe(c->x->subscription);
	c->x->subscription = NULL;
	return answer(c);
}

static void fill_credential(exchange *x)
{
	conn *c = x->c;
	dg__credential *credential = &x->request.credential;
	const dg__config *config = c->loop->http->context->config;
	if (!c->certificate_checked && c->ssl && *config->client_ca_file)
		c->certificate_name = dg__http_tls_name(config, c->ssl);
	c->certificate_checked = true;
	credential->authorization = dg__head_field(&x->head, "Authorization");
	credential->certificate_name = c->certificate_name;
	credential->loopback = c->listener->loopback;
	memcpy(credential->peer, c->peer, sizeof(credential->peer));
}

/* What can be refused before a body has come is refused then. */
static step on_head(conn *c)
{
	exchange *x = c->x;
	dg_error why;
	char *target = (char *)(uintptr_t)x->head.target;
	x->bodiless = strcmp(x->head.method, "HEAD") == 0;
	x->request.method = x->bodiless ? "GET" : x->head.method;
	x->request.has_body = has_body(x);
	x->authority = dg__target_authority(&target);
	dg_err err = dg__http_check(x, &why);
	if (err == DG_OK)
		err = dg__target_parse(target, &x->request, &why);
	if (err != DG_OK)
		return refuse(c, &why);
	fill_credential(x);
	if (!dg__routes_check(c->loop->http->context, &x->request, &x->response))
		return refuse_made(c);
	if (!has_body(x))
		return answer(c);
	c->phase = PHASE_BODY;
	return STEP_ON;
}

/* RFC 9110, section 10.1.1: who waits to be told is told. A socket that takes not even this line
 * has a peer that does not read. */
static bool invite(conn *c)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	c->x->head.expects = false;
	if (c->in_length)
		return true;
	c->out = strdup(go_on);
	c->out_length = c->out ? sizeof(go_on) - 1 : 0;
	c->out_sent = 0;
	bool sent = c->out && dg__io_flush(c) == STEP_ON;
	free(c->out);
	c->out = NULL;
	c->out_length = c->out_sent = 0;
	return sent;
}

step dg__exchange_begin(conn *c, size_t length)
{
	dg_error why;
	exchange *x = open_exchange(c, length);
	if (!x)
		return STEP_CLOSE;
	memcpy(x->text, c->in, length);
	c->in_length -= length;
	c->in_seen = 0;
	memmove(c->in, c->in + length, c->in_length);
	/* Where a head cannot be understood, nobody knows where the next one begins. */
	if (dg__head_read(x->text, length, &x->head, &why) != DG_OK)
		return dg__exchange_refuse(c, &why);
	step next = on_head(c);
	if (next == STEP_ON && c->phase == PHASE_BODY && x->head.expects && !invite(c))
		return STEP_CLOSE;
	return next;
}

static bool keep_body(exchange *x, const char *bytes, size_t length)
{
	size_t whole = x->received + length;
	if (whole + 1 > x->body_room) {
		size_t room = x->body_room ? x->body_room : FIRST_BODY;
		while (room < whole + 1)
			room *= 2;
		char *body = realloc(x->body, room);
		if (!body)
			return false;
		x->body = body;
		x->body_room = room;
	}
	memcpy(x->body + x->received, bytes, length);
	x->body[whole] = '\0';
	return true;
}

/* Take what is there of the body out of what came; *ret_whole: it is all there. */
static dg_err take_body(conn *c, bool *ret_whole, dg_error *reterr)
{
	exchange *x = c->x;
	size_t most = c->loop->http->context->config->max_body_bytes;
	size_t length = c->in_length, used = 0;
	if (x->head.chunked) {
		dg_err err = dg__chunks_take(&x->chunks, c->in, &length, &used, reterr);
		if (err != DG_OK)
			return err;
	} else {
		uint64_t left = x->head.length - x->received;
		length = used = length < left ? length : (size_t)left;
	}
	if (length > most - x->received)
		return dg_error_set(reterr, DG_ETOOLARGE, "the body has more than %zu bytes", most);
	if (!x->refused && length && !keep_body(x, c->in, length))
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	x->received += length;
	c->in_length -= used;
	memmove(c->in, c->in + used, c->in_length);
	*ret_whole = x->head.chunked ? x->chunks.ended : x->received == x->head.length;
	return DG_OK;
}

step dg__exchange_body(conn *c)
{
	dg_error why;
	bool whole = false;
	if (c->in_length && take_body(c, &whole, &why) != DG_OK)
		return dg__exchange_refuse(c, &why);
	if (!whole)
		return dg__io_fill(c);
	return c->x->refused ? respond(c) : answer(c);
}
