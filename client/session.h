/*
 * Questions put to one gateway within one call of the library: who asks, until when, and what a
 * reply that is no success means.
 */
#ifndef DEVGATE_CLIENT_SESSION_H
#define DEVGATE_CLIENT_SESSION_H

#include "api/wire.h"
#include "client/call.h"
#include "client/transport.h"

#define DG__URL_MAX 320

typedef struct dg__session {
	const dg__call *call; /* borrowed */
	dg__address address;
	dg__identity identity;
	char url[DG__URL_MAX]; /* of the gateway */
	bool measuring; /* tell progress while waiting */
	uint32_t done, total; /* last known progress */
	char current[DG_KEY_TEXT_MAX];
} dg__session;

/**
 * Get ready to ask. Sends nothing. Where the call's own options hold credentials these are used,
 * else the registered set.
 *
 * @param registered  Number of a set of credentials; 0: ambient.
 * @return DG_OK, DG_ECREDENTIAL, DG_ECONFIG, DG_EADDRESS, DG_ENOMEM.
 */
dg_err dg__session_begin(const dg__address *address, uint32_t registered, const dg__call *call,
	dg__session *ret_session, dg_error *reterr) DG_MUST_CHECK;

/** What is asked; texts are borrowed. */
typedef struct dg__question {
	const char *method; /* static */
	const char *path;
	const char *body; /* NULL: none */
	size_t body_length;
	const char *prefer; /* NULL: none */
	const char *lease; /* id of the one presented; NULL: none */
} dg__question;

/**
 * Ask, and take nothing but success for an answer: any other reply becomes the error that the
 * gateway named. A backend still being detected, and too many questions, are waited for as long as
 * the gateway says and the deadline allows; both mean that nothing was done.
 *
 * @param[out] ret_exchange  A reply of status 2xx and JSON; dg__exchange_finish().
 * @return DG_OK, what dg__transport_run() returns, DG_EPROTOCOL (a success that is no JSON), or the
 *         gateway's error.
 * Blocks: until the deadline at most.
 */
dg_err dg__session_ask(dg__session *session, const dg__question *question,
	dg__exchange *ret_exchange, dg_error *reterr) DG_MUST_CHECK;

/** As dg__session_ask(), but any status is an answer. */
dg_err dg__session_ask_any(dg__session *session, const dg__question *question,
	dg__exchange *ret_exchange, dg_error *reterr) DG_MUST_CHECK;

/**
 * Start a measurement and follow it to its end, telling progress. It is cancelled, with half a
 * second for that beyond the deadline, when the caller does not want it any more or the deadline
 * passes.
 *
 * @param path           That takes the POST.
 * @param total          Keys that it measures, until the gateway says so itself.
 * @param[out] ret_text  The result document; owned, free() its text.
 * @return As dg__session_ask(), and what the job ended with.
 */
dg_err dg__session_measure(dg__session *session, const char *path, const dg__json_text *body,
	uint32_t total, dg__json_text *ret_text, dg_error *reterr) DG_MUST_CHECK;

/** Sleep; false where the caller wants the work cancelled. */
bool dg__session_sleep(dg__session *session, uint32_t ms);

/** Error of a reply that could not be read: DG_ENOMEM stays, all else is DG_EPROTOCOL. */
dg_err dg__session_bad_reply(const char *url, const dg_error *why, dg_error *reterr);
/** Error that a reply of another status than 2xx stands for. */
dg_err dg__session_problem(const char *url, const dg__exchange *exchange, dg_error *reterr);

#endif
