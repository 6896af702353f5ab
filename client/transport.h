/*
 * HTTP exchanges with gateways: bounded in time and size, on kept connections. The only code that
 * knows the HTTP library.
 *
 * Connections are shared only between exchanges with the same address and the same set of
 * credentials. A child of fork starts with none, and leaves those of its parent alone.
 */
#ifndef DEVGATE_CLIENT_TRANSPORT_H
#define DEVGATE_CLIENT_TRANSPORT_H

#include "client/credentials.h"

/** Longest body and longest headers of a reply, in bytes. */
#define DG__REPLY_MAX ((size_t)8 << 20)
#define DG__REPLY_HEADERS_MAX ((size_t)64 << 10)
#define DG__PATH_MAX 512

/** A request and what became of it. Zero-initialise, then fill the first part. */
typedef struct dg__exchange {
	const char *method; /* "GET", "POST", "PUT" or "DELETE"; static */
	dg__address address;
	char path[DG__PATH_MAX]; /* begins with '/' */
	const char *body; /* JSON, borrowed; NULL for none */
	size_t body_length;
	const char *prefer; /* value of Prefer; NULL for none */
	const char *lease; /* value of Devgate-Lease, at most 39 characters; NULL for none */
	const dg__identity *identity; /* borrowed; NULL for nobody */
	uint64_t deadline_ms; /* dg__now_ms() at which to give up */
	/* Asked about once a second while the exchange runs; false gives it up. May be NULL. */
	bool (*keep_going)(void *user);
	void *user;

	/* The reply. */
	dg_err code; /* DG_OK: there is one, whatever its status */
	dg_error error; /* where code is not DG_OK */
	int status;
	char content_type[80]; /* without parameters, lower case; "" for none */
	char location[DG__PATH_MAX]; /* "" for none */
	bool has_retry_after;
	uint32_t retry_after_s;
	char *reply; /* owned; dg__exchange_finish(); NUL-terminated; NULL for none */
	size_t reply_length;
} dg__exchange;

/** Free the reply. */
void dg__exchange_finish(dg__exchange *exchange);

/**
 * Run an exchange. Redirects of a GET that stay with the gateway are followed, three at most. A
 * request that may have been carried out is never sent again, unless it is a GET or DELETE on a
 * kept connection that the gateway had closed.
 *
 * @return exchange->code: DG_OK, DG_EUNREACHABLE, DG_ETIMEOUT, DG_ETLS, DG_EPIN, DG_ECREDENTIAL,
 *         DG_EPROTOCOL, DG_EREPLYSIZE, DG_EREDIRECT, DG_EPLAINHTTP (nothing was sent),
 *         DG_ECANCELLED (keep_going), DG_ENOMEM.
 * Threads: safe. Blocks: until the deadline at most, name resolution included.
 */
dg_err dg__transport_run(dg__exchange *exchange, dg_error *reterr) DG_MUST_CHECK;

/**
 * Run several at once, at most DG__IN_FLIGHT_MAX of them at a time; each has its own outcome in
 * code and error. Where there are more than that, each gets its share of the time, so that hosts
 * that do not answer do not keep others from being asked. Redirects are refused.
 *
 * @return DG_OK, DG_ENOMEM (nothing was run).
 * Threads: safe. Blocks: until the latest deadline at most.
 */
dg_err dg__transport_run_all(dg__exchange *exchanges, size_t count, dg_error *reterr) DG_MUST_CHECK;
#define DG__IN_FLIGHT_MAX 128u

#endif
