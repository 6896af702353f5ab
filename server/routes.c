/*
 * Which path with which method is answered by what, and what a request needs for it. See http.h.
 */
#include "server/routes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PUBLIC 0u

typedef struct route {
	const char *method;
	const char *path; /* segments; "*" matches any one */
	unsigned scope; /* of the credential; PUBLIC: none is needed */
	const char *type; /* of a success */
	dg__answer *answer;
} route;

static const char json[] = "application/json";

static const route routes[] = {
	{ "GET", "healthz", PUBLIC, json, dg__answer_health },
	{ "GET", "readyz", PUBLIC, json, dg__answer_ready },
	{ "GET", "openapi.yaml", DG__SCOPE_READ, "application/yaml", dg__answer_openapi },
	{ "GET", "v1/gateway", DG__SCOPE_READ, json, dg__answer_gateway },
	{ "GET", "v1/devices", DG__SCOPE_READ, json, dg__answer_devices },
	{ "GET", "v1/devices/default", DG__SCOPE_READ, json, dg__answer_default },
	{ "GET", "v1/devices/*", DG__SCOPE_READ, json, dg__answer_device },
	{ "GET", "v1/devices/*/throughput", DG__SCOPE_READ, json, dg__answer_known_values },
	{ "POST", "v1/devices/*/throughput", DG__SCOPE_MEASURE, json, dg__answer_measure },
	{ "GET", "v1/devices/*/memory-curve", DG__SCOPE_READ, json, dg__answer_known_curve },
	{ "POST", "v1/devices/*/memory-curve", DG__SCOPE_MEASURE, json, dg__answer_curve },
	{ "POST", "v1/devices/*/roofline", DG__SCOPE_READ, json, dg__answer_roofline },
	{ "POST", "v1/devices/*/lease", DG__SCOPE_LEASE, json, dg__answer_take_lease },
	{ "PUT", "v1/devices/*/lease", DG__SCOPE_LEASE, json, dg__answer_renew_lease },
	{ "DELETE", "v1/devices/*/lease", DG__SCOPE_LEASE, json, dg__answer_give_lease },
	{ "GET", "v1/devices/*/lease", DG__SCOPE_READ, json, dg__answer_lease },
	{ "GET", "v1/jobs/*", DG__SCOPE_READ, json, dg__answer_job },
	{ "DELETE", "v1/jobs/*", DG__SCOPE_READ, json, dg__answer_cancel },
	{ "GET", "v1/jobs/*/events", DG__SCOPE_READ, "text/event-stream", dg__answer_events },
	{ "POST", "v1/ids/encode", DG__SCOPE_READ, json, dg__answer_encode },
	{ "POST", "v1/ids/decode", DG__SCOPE_READ, json, dg__answer_decode },
	{ "GET", "v1/ids/*/*", DG__SCOPE_READ, json, dg__answer_id },
};

#define ROUTES (sizeof(routes) / sizeof(routes[0]))

/* 0: no match; a literal path beats one with a wildcard, since it stands before it. */
static bool matches(const route *r, const dg__request *request)
{
	const char *at = r->path;
	for (size_t i = 0; i < request->segment_count; i++) {
		size_t length = strcspn(at, "/");
		bool any = length == 1 && *at == '*';
		bool same = strlen(request->segments[i]) == length &&
			    memcmp(request->segments[i], at, length) == 0;
		if (length == 0 || (any ? !*request->segments[i] : !same))
			return false;
		at += length + (at[length] == '/');
	}
	return !*at && request->segment_count > 0;
}

/* The route; where the path has others only, *ret_allow lists their methods. */
static const route *find(const dg__request *request, char *allow, size_t size)
{
	size_t length = 0;
	const char *path = NULL;
	*allow = '\0';
	for (size_t i = 0; i < ROUTES; i++) {
		const route *r = &routes[i];
		if (!matches(r, request) || (path && strcmp(path, r->path) != 0))
			continue;
		path = r->path;
		if (strcmp(r->method, request->method) == 0)
			return r;
		const char *more = strcmp(r->method, "GET") == 0 ? "GET, HEAD" : r->method;
		length += (size_t)snprintf(
			allow + length, size - length, "%s%s", length ? ", " : "", more);
	}
	return NULL;
}

void dg__response_header(dg__response *response, const char *name, const char *value)
{
	if (response->header_count == sizeof(response->headers) / sizeof(response->headers[0]))
		return;
	snprintf(response->headers[response->header_count].name, sizeof(response->headers[0].name),
		"%s", name);
	snprintf(response->headers[response->header_count].value,
		sizeof(response->headers[0].value), "%s", value);
	response->header_count++;
}

static const char out_of_memory[] =
	"{\"type\":\"about:blank\",\"title\":\"out of memory\",\"status\":503,"
	"\"detail\":\"out of memory\",\"code\":\"no_memory\"}";

void dg__response_problem(dg__response *response, const dg_error *error)
{
	response->status = dg_err_status(error->code);
	response->content_type = "application/problem+json";
	response->snapshot = NULL;
	if (dg__wire_encode_problem(error, &response->body) != DG_OK) {
		response->status = 503;
		response->body.text = (char *)(uintptr_t)out_of_memory;
		response->body.length = sizeof(out_of_memory) - 1;
		response->borrowed = true;
	}
	dg__response_header(response, "Cache-Control", "no-store");
	if (response->status == 401)
		dg__response_header(response, "WWW-Authenticate", "Bearer");
	if (response->status == 429)
		dg__response_header(response, "Retry-After", error->code == DG_ERATE ? "60" : "5");
	if (error->code == DG_EUNAVAILABLE)
		dg__response_header(response, "Retry-After", "5");
	if (error->code == DG_EDETECTING)
		dg__response_header(response, "Retry-After", "1");
}

void dg__respond_error(dg__response *response, dg_err code, const char *format, ...)
{
	char text[400];
	dg_error error;
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	dg_error_set(&error, code, "%s", text);
	dg__response_problem(response, &error);
}

void dg__respond(dg__response *response, dg_err encoded, const dg__json_text *text)
{
	if (encoded != DG_OK) {
		dg__respond_error(response, encoded, "%s", dg_err_title(encoded));
		return;
	}
	response->status = 200;
	response->body = *text;
	dg__response_header(response, "Cache-Control", "no-store");
}

/* Whether a media range of Accept covers type; q=0 refuses it (RFC 9110, section 12.5.1). */
static bool accepts(const char *accept, const char *type)
{
	size_t major = strcspn(type, "/") + 1;
	while (accept && *accept) {
		accept += strspn(accept, " \t,");
		size_t length = strcspn(accept, ","), name = strcspn(accept, ";, \t");
		const char *quality = memchr(accept, ';', length);
		const char *q = quality ? strstr(quality, "q=0") : NULL;
		bool zero =
			q && q < accept + length && strspn(q + 3, ".0") == strcspn(q + 3, ", \t;");
		bool covers = (name == 3 && strncmp(accept, "*/*", 3) == 0) ||
			      (name == strlen(type) && strncasecmp(accept, type, name) == 0) ||
			      (name == major + 1 && strncasecmp(accept, type, major) == 0 &&
				      accept[major] == '*');
		if (covers && !zero)
			return true;
		accept += length;
	}
	return false;
}

static bool check_types(const route *r, const dg__request *request, dg__response *response)
{
	const char *accept = dg__request_header(request, "Accept");
	const char *type = dg__request_header(request, "Content-Type");
	if (accept && *accept && !accepts(accept, r->type)) {
		dg__respond_error(response, DG_ENOTACCEPTABLE, "this gives %s only", r->type);
		return false;
	}
	size_t length = type ? strcspn(type, "; \t") : 0;
	const char *charset = type ? strcasestr(type + length, "charset=") : NULL;
	bool utf8 = !charset || strncasecmp(charset + 8 + (charset[8] == '"'), "utf-8", 5) == 0;
	if (*r->method == 'P' && type &&
		(length != strlen(json) || strncasecmp(type, json, length) != 0 || !utf8)) {
		dg__respond_error(response, DG_EMEDIATYPE,
			"expected a body of type application/json in UTF-8, not %.60s", type);
		return false;
	}
	return true;
}

static bool check_scope(
	const dg__context *context, const route *r, dg__request *request, dg__response *response)
{
	dg_error why;
	if (r && r->scope == PUBLIC)
		return true;
	if (dg__auth_admit(context->auth, &request->credential, &request->principal, &why) !=
		DG_OK) {
		dg__response_problem(response, &why);
		return false;
	}
	if (!r || (request->principal.scopes & r->scope))
		return true;
	char needed[64];
	dg__scopes_format(r->scope, needed, sizeof(needed));
	dg__respond_error(response, DG_EFORBIDDEN, "this needs the scope %s", needed);
	return false;
}

bool dg__routes_check(const dg__context *context, dg__request *request, dg__response *response)
{
	char allow[64];
	const route *r = find(request, allow, sizeof(allow));
	/* Who may not ask does not learn what there is to ask. */
	if (!check_scope(context, r, request, response))
		return false;
	if (!r && *allow) {
		dg__respond_error(response, DG_EMETHOD, "%.20s is not offered here; %s is",
			request->method, allow);
		dg__response_header(response, "Allow", allow);
		return false;
	}
	if (!r) {
		dg__respond_error(response, DG_ENOTFOUND,
			"there is nothing at this path; /openapi.yaml lists what there is");
		return false;
	}
	return check_types(r, request, response);
}

void dg__routes_answer(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	char allow[64];
	const route *r = find(request, allow, sizeof(allow));
	if (r)
		r->answer(context, request, resumed, response);
	else
		dg__respond_error(response, DG_ENOTFOUND, "there is nothing at this path");
}
