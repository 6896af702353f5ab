/* The head of a response: see http_internal.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/http_internal.h"

#define HEAD_ROOM 512u /* status line and the headers that every response has */

static const char *reason(int status)
{
	static const struct {
		int status;
		const char *reason;
	} known[] = {
		{ 200, "OK" },
		{ 201, "Created" },
		{ 202, "Accepted" },
		{ 204, "No Content" },
		{ 304, "Not Modified" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" },
		{ 408, "Request Timeout" },
		{ 409, "Conflict" },
		{ 410, "Gone" },
		{ 413, "Content Too Large" },
		{ 414, "URI Too Long" },
		{ 415, "Unsupported Media Type" },
		{ 417, "Expectation Failed" },
		{ 421, "Misdirected Request" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" },
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].status == status)
			return known[i].reason;
	return "";
}

/* RFC 9110, section 5.6.7; the same for all responses of a second. */
static const char *date(loop *l)
{
	static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul",
		"Aug", "Sep", "Oct", "Nov", "Dec" };
	time_t now = time(NULL);
	struct tm t;
	if ((uint64_t)now == l->date_s || !gmtime_r(&now, &t))
		return l->date;
	l->date_s = (uint64_t)now;
	snprintf(l->date, sizeof(l->date), "%s, %02d %s %04d %02d:%02d:%02d GMT",
		days[t.tm_wday % 7], t.tm_mday, months[t.tm_mon % 12], t.tm_year + 1900, t.tm_hour,
		t.tm_min, t.tm_sec);
	return l->date;
}

typedef struct writer {
	char *text;
	size_t length, room;
} writer;

/* There is room for all: it was counted before. */
static void put(writer *w, const char *text)
{
	size_t length = strlen(text);
	if (length > w->room - w->length)
		return;
	memcpy(w->text + w->length, text, length);
	w->length += length;
}

static void put_header(writer *w, const char *name, const char *value)
{
	put(w, name);
	put(w, ": ");
	put(w, value);
	put(w, "\r\n");
}

static void put_number(writer *w, const char *name, size_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%zu", value);
	put_header(w, name, text);
}

static void put_status(writer *w, int status)
{
	char text[] = "HTTP/1.1 000 ";
	text[9] = (char)('0' + status / 100 % 10);
	text[10] = (char)('0' + status / 10 % 10);
	text[11] = (char)('0' + status % 10);
	put(w, text);
	put(w, reason(status));
	put(w, "\r\n");
}

static size_t needed(const dg__response *r)
{
	size_t n = HEAD_ROOM;
	for (size_t i = 0; i < r->header_count; i++)
		n += strlen(r->headers[i].name) + strlen(r->headers[i].value) + 4;
	return n;
}

bool dg__send_start(conn *c)
{
	const exchange *x = c->x;
	const dg__response *r = &x->response;
	writer w = { .room = needed(r) };
	w.text = malloc(w.room);
	if (!w.text)
		return false;
	put_status(&w, r->status);
	put_header(&w, "Date", date(c->loop));
	if (r->body.length || x->stream)
		put_header(
			&w, "Content-Type", r->content_type ? r->content_type : "application/json");
	if (x->stream && x->head.minor > 0)
		put_header(&w, "Transfer-Encoding", "chunked");
	else if (!x->stream && r->status != 304 && r->status != 204)
		put_number(&w, "Content-Length", r->body.length);
	put_header(&w, "X-Content-Type-Options", "nosniff");
	for (size_t i = 0; i < r->header_count; i++)
		put_header(&w, r->headers[i].name, r->headers[i].value);
	if (c->last)
		put_header(&w, "Connection", "close");
	put(&w, "\r\n");
	c->out = w.text;
	c->out_length = w.length;
	c->out_sent = c->body_sent = 0;
	return true;
}
