/*
 * HTTP over TLS: requests in, responses out. The only code that knows the HTTP library.
 */
#ifndef DEVGATE_SERVER_HTTP_H
#define DEVGATE_SERVER_HTTP_H

#include "server/auth.h"
#include "server/jobs.h"
#include "server/leases.h"
#include "server/tls.h"

typedef struct dg__http dg__http;

/** What the routes need; borrowed for the life of the server. */
typedef struct dg__context {
	const dg__config *config;
	dg__store *store;
	dg__auth *auth;
	dg__fleet *fleet;
	dg__jobs *jobs;
	dg__leases *leases;
} dg__context;

#define DG__SEGMENTS_MAX 8
#define DG__QUERIES_MAX 16

/** A request. Everything is borrowed until the response is made. */
typedef struct dg__request {
	const char *method;
	const char
		*segments[DG__SEGMENTS_MAX]; /* of the path, percent-decoded: "v1", "devices", … */
	size_t segment_count;
	struct {
		const char *name, *value; /* percent-decoded */
	} queries[DG__QUERIES_MAX];
	size_t query_count;
	const char *body; /* NULL until it has come */
	size_t body_length;
	bool has_body; /* there is one, or one is to come */
	dg__credential credential;
	dg__principal principal; /* filled by dg__routes_check() */
	char job[40]; /* "" or the job that an earlier answer waits for */
	void *connection; /* of http.c */
} dg__request;

/** A decoded query parameter, or a header; NULL where absent. Borrowed. */
const char *dg__request_query(const dg__request *request, const char *name);
const char *dg__request_header(const dg__request *request, const char *name);

/** A response in the making. Zero-initialised; http.c frees what it owns. */
typedef struct dg__response {
	int status;
	const char *content_type; /* static text; NULL: application/json */
	dg__json_text body; /* owned, unless snapshot or borrowed */
	const dg__snapshot *snapshot; /* body belongs to it: sent without a copy, then released */
	bool borrowed; /* body is static */
	struct {
		char name[32];
		char value[256];
	} headers[8];
	size_t header_count;
	/* Where not "", the request waits: for this job's end or wait_ms, then it is asked again.
	 * */
	char wait_job[40];
	uint32_t wait_ms;
	bool events; /* stream the progress of wait_job as server-sent events instead */
} dg__response;

/**
 * Look at a request whose headers have come: path, method, credential, scope, types. Fills the
 * principal.
 *
 * @return true: go on and take its body; false: response says why not.
 * Threads: safe. Blocks: no. (So for the next.)
 */
bool dg__routes_check(const dg__context *context, dg__request *request, dg__response *response);

/** Answer a request whose body has come; resumed: the wait of an earlier answer is over. */
void dg__routes_answer(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response);

/** Turn an error into a problem document with its status and the headers that go with it. */
void dg__response_problem(dg__response *response, const dg_error *error);
void dg__response_header(dg__response *response, const char *name, const char *value);

/**
 * Listen and serve. Everything in context and the pair is borrowed; the pair until replaced.
 *
 * @param pair  NULL: plain HTTP (config says plain_http).
 * @return DG_OK, DG_ECONFIG (address in use, not ours, …: says which), DG_ENOMEM.
 */
dg_err dg__http_create(const dg__context *context, const dg__tls_pair *pair, dg__http **ret_http,
	dg_error *reterr) DG_MUST_CHECK;
/** Port that listener number i was given. */
uint16_t dg__http_port(const dg__http *http, size_t i);
/** New connections get this pair. */
dg_err dg__http_reload(dg__http *http, const dg__tls_pair *pair, dg_error *reterr) DG_MUST_CHECK;
/** Stop accepting, end waits, let requests under way end within grace_ms, close, free. */
void dg__http_destroy(dg__http *http, uint32_t grace_ms);

#endif
