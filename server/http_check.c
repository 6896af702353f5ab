/* What must hold of a request before it is looked at: see http_internal.h. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/http_internal.h"

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
	/* A name's final dot says that it is whole. */
	length -= !bracketed && length > 1 && host[length - 1] == '.';
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
 * that the connection came to.
 */
static bool is_ours(const conn *c, const char *host)
{
	const dg__config *config = c->loop->http->context->config;
	char local[64];
	if (strcmp(host, "localhost") == 0)
		return true;
	for (size_t i = 0; i < config->listen_count; i++)
		if (!is_any(config->listen[i].host) &&
			strcasecmp(config->listen[i].host, host) == 0)
			return true;
	for (size_t i = 0; i < config->name_count; i++)
		if (strcasecmp(config->names[i], host) == 0)
			return true;
	if (strcasecmp(config->node_name, host) == 0)
		return true;
	dg__conn_local(c, local, sizeof(local));
	return strcmp(host, local) == 0;
}

static dg_err check_host(exchange *x, const char *value, dg_error *reterr)
{
	char host[256];
	if (!host_part(value, host, sizeof(host)))
		return dg_error_set(reterr, DG_EBADREQUEST, "the Host header is no HOST[:PORT]");
	if (is_ours(x->c, host))
		return DG_OK;
	return dg_error_set(reterr, DG_EMISDIRECTED,
		"this gateway is not called %.100s; --name makes a further name known", host);
}

/* A page of another site must not speak for who looks at it. */
static dg_err check_origin(exchange *x, const char *origin, const char *host, dg_error *reterr)
{
	const char *scheme = x->c->ssl ? "https://" : "http://";
	size_t length = strlen(scheme);
	if (!origin || (strncasecmp(origin, scheme, length) == 0 &&
			       strcasecmp(origin + length, host) == 0))
		return DG_OK;
	return dg_error_set(reterr, DG_EORIGIN, "requests of pages from elsewhere are refused");
}

dg_err dg__http_check(exchange *x, dg_error *reterr)
{
	uint32_t most = x->c->loop->http->context->config->max_body_bytes;
	size_t hosts = dg__head_count(&x->head, "Host");
	const char *host = x->authority ? x->authority : dg__head_field(&x->head, "Host");
	if (hosts != 1)
		return dg_error_set(
			reterr, DG_EBADREQUEST, "expected one Host header, not %zu", hosts);
	if (dg__head_count(&x->head, "Authorization") > 1)
		return dg_error_set(reterr, DG_EBADREQUEST, "more than one Authorization header");
	dg_err err = check_host(x, host, reterr);
	if (err == DG_OK)
		err = check_origin(x, dg__head_field(&x->head, "Origin"), host, reterr);
	if (err == DG_OK && x->head.length > most)
		return dg_error_set(reterr, DG_ETOOLARGE, "the body has more than %lu bytes",
			(unsigned long)most);
	return err;
}
