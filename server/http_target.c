/* Targets of requests: path segments and query parameters. See http_internal.h. */
#include <string.h>
#include <strings.h>

#include "server/http_internal.h"

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decode percent escapes in place. False: a bad one, or one of NUL or another control character. */
static bool decode(char *text, bool plus)
{
	char *out = text;
	for (const char *in = text; *in; in++) {
		char c = *in;
		if (c == '%') {
			int high = hex(in[1]), low = high < 0 ? -1 : hex(in[2]);
			if (low < 0)
				return false;
			c = (char)(high << 4 | low);
			in += 2;
		} else if (plus && c == '+') {
			c = ' ';
		}
		if ((unsigned char)c < 0x20 || c == 0x7f)
			return false;
		*out++ = c;
	}
	*out = '\0';
	return true;
}

static dg_err bad(const char *what, dg_error *reterr)
{
	return dg_error_set(reterr, DG_EBADREQUEST, "%s", what);
}

static dg_err parse_query(char *query, dg__request *request, dg_error *reterr)
{
	while (query && *query) {
		char *next = strchr(query, '&');
		if (next)
			*next++ = '\0';
		char *value = strchr(query, '=');
		if (value)
			*value++ = '\0';
		if (!decode(query, true) || (value && !decode(value, true)))
			return bad("the query has a bad percent escape", reterr);
		if (*query) {
			if (request->query_count == DG__QUERIES_MAX)
				return bad("the query has more than 16 parameters", reterr);
			request->queries[request->query_count].name = query;
			request->queries[request->query_count++].value = value ? value : "";
		}
		query = next;
	}
	return DG_OK;
}

const char *dg__target_authority(char **target)
{
	static char root[] = "/";
	bool tls = strncasecmp(*target, "https://", 8) == 0;
	if (!tls && strncasecmp(*target, "http://", 7) != 0)
		return NULL;
	/* It moves to where its scheme was, to leave the path its slash. */
	char *authority = *target + 7 + tls, *to = *target;
	size_t length = strcspn(authority, "/?#");
	char *rest = authority + length;
	memmove(to, authority, length);
	to[length] = '\0';
	*target = *rest ? rest : root;
	return to;
}

dg_err dg__target_parse(char *target, dg__request *request, dg_error *reterr)
{
	if (strlen(target) > DG__TARGET_MAX)
		return dg_error_set(reterr, DG_EURITOOLONG, "the target has more than %u bytes",
			DG__TARGET_MAX);
	if (*target != '/')
		return bad("the request's target is no path", reterr);
	char *query = strchr(target, '?');
	if (query)
		*query++ = '\0';
	for (char *at = target + 1, *next; at; at = next) {
		next = strchr(at, '/');
		if (next)
			*next++ = '\0';
		if (!*at && !next && request->segment_count == 0)
			break;
		if (!decode(at, false))
			return bad("the path has a bad percent escape", reterr);
		if (request->segment_count == DG__SEGMENTS_MAX)
			return dg_error_set(reterr, DG_ENOTFOUND, "the path has more than %d parts",
				DG__SEGMENTS_MAX);
		request->segments[request->segment_count++] = at;
	}
	return parse_query(query, request, reterr);
}
