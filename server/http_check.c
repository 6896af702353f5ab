/*
 * What the HTTP library lets pass and we do not: see http_internal.h. RFC 9112, section 6.3: two
 * ways to tell a body's length, or two lengths, are an attack on whoever stands between.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/http_internal.h"

typedef struct counts {
	unsigned hosts, lengths, encodings, authorizations;
	size_t bytes;
} counts;

static enum MHD_Result count_header(
	void *cls, enum MHD_ValueKind kind, const char *key, const char *value)
{
	counts *n = cls;
	(void)kind;
	n->hosts += strcasecmp(key, "Host") == 0;
	n->lengths += strcasecmp(key, "Content-Length") == 0;
	n->encodings += strcasecmp(key, "Transfer-Encoding") == 0;
	n->authorizations += strcasecmp(key, "Authorization") == 0;
	n->bytes += strlen(key) + (value ? strlen(value) : 0) + 4;
	return MHD_YES;
}

/* The host part of "HOST[:PORT]" or "[V6][:PORT]", in lower case; false where it is none. */
static bool host_part(const char *value, char *buf, size_t size)
{
	bool bracketed = *value == '[';
	const char *host = value + bracketed;
	size_t length = bracketed ? strcspn(host, "]") : strcspn(host, ":");
	const char *rest = host + length;
	if (bracketed && *rest++ != ']')
		return false;
	if (*rest == ':') {
		size_t digits = strspn(rest + 1, "0123456789");
		if (digits > 5 || rest[1 + digits])
			return false;
	} else if (*rest) {
		return false;
	}
	if (length == 0 || length >= size)
		return false;
	for (size_t i = 0; i < length; i++)
		buf[i] = (char)(host[i] >= 'A' && host[i] <= 'Z' ? host[i] + 32 : host[i]);
	buf[length] = '\0';
	return true;
}

static bool is_any(const char *host)
{
	return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

/*
 * A name that this gateway is known by. A listener on every address is known by the very address
 * that the connection came to: the caller gives it.
 */
static bool is_ours(const dg__config *config, const char *host, const char *local)
{
	if (strcmp(host, "localhost") == 0 || strcmp(host, local) == 0)
		return true;
	for (size_t i = 0; i < config->listen_count; i++)
		if (!is_any(config->listen[i].host) &&
			strcasecmp(config->listen[i].host, host) == 0)
			return true;
	for (size_t i = 0; i < config->name_count; i++)
		if (strcasecmp(config->names[i], host) == 0)
			return true;
	return strcasecmp(config->node_name, host) == 0;
}

static dg_err check_host(exchange *x, const char *value, dg_error *reterr)
{
	char host[256], local[64];
	if (!host_part(value, host, sizeof(host)))
		return dg_error_set(reterr, DG_EBADREQUEST, "the Host header is no HOST[:PORT]");
	dg__conn_local(x->c, local, sizeof(local));
	if (is_ours(x->c->http->context->config, host, local))
		return DG_OK;
	return dg_error_set(reterr, DG_EMISDIRECTED,
		"this gateway is not called %.100s; --name makes a further name known", host);
}

/* A page of another site must not speak for who looks at it. */
static dg_err check_origin(exchange *x, const char *origin, const char *host, dg_error *reterr)
{
	const char *scheme = x->c->http->tls ? "https://" : "http://";
	size_t length = strlen(scheme);
	if (!origin || (strncasecmp(origin, scheme, length) == 0 &&
			       strcasecmp(origin + length, host) == 0))
		return DG_OK;
	return dg_error_set(reterr, DG_EORIGIN, "requests of pages from elsewhere are refused");
}

static dg_err check_length(exchange *x, const char *value, dg_error *reterr)
{
	uint32_t most = x->c->http->context->config->max_body_bytes;
	size_t digits = strspn(value, "0123456789");
	if (digits == 0 || value[digits])
		return dg_error_set(reterr, DG_EBADREQUEST, "Content-Length is no number");
	x->request.has_body = digits > 12 || strtoull(value, NULL, 10) > 0;
	if (digits > 12 || strtoull(value, NULL, 10) > most)
		return dg_error_set(reterr, DG_ETOOLARGE, "the body has more than %lu bytes",
			(unsigned long)most);
	return DG_OK;
}

dg_err dg__http_check(exchange *x, dg_error *reterr)
{
	counts n = { 0 };
	MHD_get_connection_values(x->c->mhd, MHD_HEADER_KIND, count_header, &n);
	const char *host = dg__request_header(&x->request, "Host");
	const char *length = dg__request_header(&x->request, "Content-Length");
	x->request.has_body = n.encodings > 0 || n.lengths > 0;
	if (n.bytes > DG__HEADERS_MAX)
		return dg_error_set(reterr, DG_EHEADERS, "the headers have more than %u bytes",
			DG__HEADERS_MAX);
	if (n.hosts != 1 || !host)
		return dg_error_set(
			reterr, DG_EBADREQUEST, "expected one Host header, not %u", n.hosts);
	if (n.lengths > 1 || (n.lengths && n.encodings))
		return dg_error_set(reterr, DG_EBADREQUEST, "the body's length is told twice");
	if (n.authorizations > 1)
		return dg_error_set(reterr, DG_EBADREQUEST, "more than one Authorization header");
	dg_err err = check_host(x, host, reterr);
	if (err == DG_OK)
		err = check_origin(x, dg__request_header(&x->request, "Origin"), host, reterr);
	x->request.has_body = n.encodings > 0;
	if (err == DG_OK && length)
		err = check_length(x, length, reterr);
	return err;
}
