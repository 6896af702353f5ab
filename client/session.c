/* See session.h. */
#include "client/session.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SLICE_MS 100u
#define RETRY_DEFAULT_MS 1000u
#define RETRY_MIN_MS 50u

dg_err dg__session_begin(const dg__address *address, uint32_t registered, const dg__call *call,
	dg__session *ret_session, dg_error *reterr)
{
	uint32_t number = 0;
	dg_err err = dg__credentials_of_call(call->options, &number, reterr);
	if (err)
		return err;
	memset(ret_session, 0, sizeof(*ret_session));
	ret_session->call = call;
	ret_session->address = *address;
	dg__address_format(address, ret_session->url, sizeof(ret_session->url));
	return dg__credentials_identify(
		number ? number : registered, address, &ret_session->identity, reterr);
}

static bool keep_going(void *user)
{
	const dg__session *s = user;
	return dg__call_progress(s->call, s->done, s->total, s->current);
}

bool dg__session_sleep(dg__session *session, uint32_t ms)
{
	while (ms) {
		uint32_t n = ms < SLICE_MS ? ms : SLICE_MS;
		struct timespec ts = { 0, (long)n * 1000000L };
		nanosleep(&ts, NULL);
		ms -= n;
		if (session->measuring && !keep_going(session))
			return false;
	}
	return true;
}

dg_err dg__session_bad_reply(const char *url, const dg_error *why, dg_error *reterr)
{
	if (why->code == DG_ENOMEM)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	return dg_error_native(reterr, DG_EPROTOCOL, "gateway", 0,
		"%.150s: the reply is not one of a devgate gateway: %.280s", url, why->text);
}

dg_err dg__session_problem(const char *url, const dg__exchange *exchange, dg_error *reterr)
{
	dg_error why = { 0 };
	dg__wire_decode_problem(exchange->status, exchange->reply ? exchange->reply : "",
		exchange->reply_length, &why);
	return dg_error_native(reterr, why.code ? why.code : DG_EPROTOCOL, "gateway",
		why.native_code ? why.native_code : exchange->status, "%.120s: %.340s", url,
		why.text);
}

static dg_err ask_once(
	dg__session *session, const dg__question *question, dg__exchange *x, dg_error *reterr)
{
	memset(x, 0, sizeof(*x));
	x->method = question->method;
	x->address = session->address;
	snprintf(x->path, sizeof(x->path), "%s", question->path);
	x->body = question->body;
	x->body_length = question->body_length;
	x->prefer = question->prefer;
	x->lease = question->lease;
	x->identity = &session->identity;
	x->deadline_ms = session->call->deadline_ms;
	if (session->measuring) {
		x->keep_going = keep_going;
		x->user = session;
	}
	return dg__transport_run(x, reterr);
}

dg_err dg__session_ask_any(dg__session *session, const dg__question *question,
	dg__exchange *ret_exchange, dg_error *reterr)
{
	return ask_once(session, question, ret_exchange, reterr);
}

/* Wait where the gateway says that asking again later helps; false: it does not, or not in time. */
static bool wait_to_retry(dg__session *session, const dg__exchange *x, dg_err err)
{
	if (err != DG_EDETECTING && err != DG_ERATE)
		return false;
	uint64_t wait_ms = x->has_retry_after ? x->retry_after_s * 1000ull : RETRY_DEFAULT_MS;
	if (wait_ms < RETRY_MIN_MS)
		wait_ms = RETRY_MIN_MS;
	return wait_ms < dg__call_left_ms(session->call) &&
	       dg__session_sleep(session, (uint32_t)wait_ms);
}

dg_err dg__session_ask(dg__session *session, const dg__question *question,
	dg__exchange *ret_exchange, dg_error *reterr)
{
	dg__exchange x;
	for (;;) {
		dg_err err = ask_once(session, question, &x, reterr);
		if (err)
			return err;
		if (x.status < 300)
			break;
		err = dg__session_problem(session->url, &x, reterr);
		bool again = wait_to_retry(session, &x, err);
		dg__exchange_finish(&x);
		if (!again)
			return err;
	}
	if (strcmp(x.content_type, "application/json") != 0) {
		dg_err err = dg_error_native(reterr, DG_EPROTOCOL, "gateway", x.status,
			"%.150s: the reply is '%.80s', expected application/json; check that it is "
			"a "
			"devgate gateway",
			session->url, x.content_type);
		dg__exchange_finish(&x);
		return err;
	}
	if (!x.reply)
		x.reply_length = 0;
	*ret_exchange = x;
	return DG_OK;
}
