/* See transport.h. */
#include "client/transport.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>

#include "client/call.h"
#include "client/transport_error.h"
#include "client/transport_pool.h"

#define REDIRECTS_MAX 3
#define URL_MAX (DG__HOST_MAX * 3 + 32)

/* An exchange under way. */
typedef struct run {
	dg__exchange *exchange;
	dg__slot *slot;
	struct curl_slist *headers;
	char *authorization;
	size_t header_bytes, room;
	dg_err code; /* why a callback stopped the transfer */
	bool headed; /* all headers of the reply have come */
	uint64_t started_ms;
	char url[URL_MAX]; /* of the gateway */
} run;

void dg__exchange_finish(dg__exchange *exchange)
{
	free(exchange->reply);
	exchange->reply = NULL;
	exchange->reply_length = 0;
}

static void forget_reply(dg__exchange *exchange)
{
	dg__exchange_finish(exchange);
	exchange->status = 0;
	exchange->content_type[0] = '\0';
	exchange->location[0] = '\0';
	exchange->has_retry_after = false;
	exchange->retry_after_s = 0;
}

/* As the URL standard wants it: a zone's '%' is escaped. */
static void write_url(const dg__address *address, char *buf, size_t size)
{
	const char *scheme = address->tls ? "https" : "http";
	const char *zone = strchr(address->host, '%');
	if (!strchr(address->host, ':'))
		snprintf(buf, size, "%s://%s:%u", scheme, address->host, (unsigned)address->port);
	else if (!zone)
		snprintf(buf, size, "%s://[%s]:%u", scheme, address->host, (unsigned)address->port);
	else
		snprintf(buf, size, "%s://[%.*s%%25%s]:%u", scheme, (int)(zone - address->host),
			address->host, zone + 1, (unsigned)address->port);
}

static size_t stop(run *r, dg_err code)
{
	r->code = code;
	return 0;
}

static size_t on_body(char *data, size_t size, size_t count, void *user)
{
	run *r = user;
	dg__exchange *x = r->exchange;
	size_t n = size * count;
	if (n > DG__REPLY_MAX - x->reply_length)
		return stop(r, DG_EREPLYSIZE);
	if (x->reply_length + n >= r->room) {
		size_t room = r->room ? r->room * 2 : 4096;
		while (room <= x->reply_length + n)
			room *= 2;
		char *more = realloc(x->reply, room);
		if (!more)
			return stop(r, DG_ENOMEM);
		x->reply = more;
		r->room = room;
	}
	memcpy(x->reply + x->reply_length, data, n);
	x->reply_length += n;
	x->reply[x->reply_length] = '\0';
	return n;
}

/* Value of a header of that name; false where the line is another. Cut where it does not fit. */
static bool header_value(const char *line, size_t length, const char *name, char *buf, size_t size)
{
	size_t n = strlen(name);
	if (length <= n || line[n] != ':' || strncasecmp(line, name, n) != 0)
		return false;
	line += n + 1;
	length -= n + 1;
	while (length && (*line == ' ' || *line == '\t')) {
		line++;
		length--;
	}
	while (length && isspace((unsigned char)line[length - 1]))
		length--;
	if (length >= size)
		length = size - 1;
	/* Parts of these end up in error texts, and those on terminals. */
	for (size_t i = 0; i < length; i++)
		buf[i] = line[i] >= 0x20 && line[i] < 0x7f ? line[i] : '?';
	buf[length] = '\0';
	return true;
}

static void read_content_type(dg__exchange *x)
{
	x->content_type[strcspn(x->content_type, "; \t")] = '\0';
	for (char *p = x->content_type; *p; p++)
		*p = (char)tolower((unsigned char)*p);
}

/* Dates are not read: a gateway of ours gives seconds. */
static void read_retry_after(dg__exchange *x, const char *text)
{
	size_t digits = strspn(text, "0123456789");
	if (digits == 0 || digits > 6 || text[digits])
		return;
	x->retry_after_s = (uint32_t)strtoul(text, NULL, 10);
	x->has_retry_after = true;
}

static size_t on_header(char *data, size_t size, size_t count, void *user)
{
	run *r = user;
	dg__exchange *x = r->exchange;
	size_t n = size * count;
	char text[32];
	if (n > DG__REPLY_HEADERS_MAX - r->header_bytes)
		return stop(r, DG_EREPLYSIZE);
	r->header_bytes += n;
	if (n > 5 && strncmp(data, "HTTP/", 5) == 0) {
		/* What came before was an interim reply. */
		forget_reply(x);
		r->room = 0;
		r->headed = false;
	} else if (n <= 2) {
		r->headed = true;
	} else if (header_value(data, n, "Content-Type", x->content_type, sizeof(x->content_type)))
		read_content_type(x);
	else if (header_value(data, n, "Retry-After", text, sizeof(text)))
		read_retry_after(x, text);
	else
		header_value(data, n, "Location", x->location, sizeof(x->location));
	return n;
}

static int on_progress(
	void *user, curl_off_t dltotal, curl_off_t dlnow, curl_off_t ultotal, curl_off_t ulnow)
{
	run *r = user;
	(void)dltotal;
	(void)dlnow;
	(void)ultotal;
	(void)ulnow;
	return !r->exchange->keep_going(r->exchange->user);
}

static bool add_header(run *r, const char *line)
{
	struct curl_slist *more = curl_slist_append(r->headers, line);
	if (more)
		r->headers = more;
	return more;
}

static bool make_headers(run *r)
{
	const dg__exchange *x = r->exchange;
	char prefer[64], lease[64];
	/* "Expect:" turns off a handshake that could only add a wait. */
	bool ok = add_header(r, "Accept: application/json, application/problem+json") &&
		  add_header(r, "Expect:");
	if (ok && x->body)
		ok = add_header(r, "Content-Type: application/json");
	if (ok && x->prefer) {
		snprintf(prefer, sizeof(prefer), "Prefer: %s", x->prefer);
		ok = add_header(r, prefer);
	}
	if (ok && x->lease) {
		snprintf(lease, sizeof(lease), "Devgate-Lease: %s", x->lease);
		ok = add_header(r, lease);
	}
	if (ok && x->identity && x->identity->token[0]) {
		size_t size = strlen(x->identity->token) + sizeof("Authorization: Bearer ");
		if (!(r->authorization = malloc(size)))
			return false;
		snprintf(r->authorization, size, "Authorization: Bearer %s", x->identity->token);
		ok = add_header(r, r->authorization);
	}
	return ok;
}

#define SET(option, value) \
	(code = code ? code : curl_easy_setopt(r->slot->easy, CURLOPT_##option, value))

static CURLcode set_request(run *r, const char *url)
{
	dg__exchange *x = r->exchange;
	CURLcode code = CURLE_OK;
	SET(URL, url);
	SET(HTTPHEADER, r->headers);
	if (x->body) {
		SET(POST, 1L);
		SET(POSTFIELDS, x->body);
		SET(POSTFIELDSIZE_LARGE, (curl_off_t)x->body_length);
		/* On a kept connection that turns out to be closed the library would send again. */
		SET(FRESH_CONNECT, 1L);
	}
	SET(CUSTOMREQUEST, x->method);
	SET(WRITEFUNCTION, on_body);
	SET(WRITEDATA, r);
	SET(HEADERFUNCTION, on_header);
	SET(HEADERDATA, r);
	if (x->keep_going) {
		SET(NOPROGRESS, 0L);
		SET(XFERINFOFUNCTION, on_progress);
		SET(XFERINFODATA, r);
	}
	return code;
}

static CURLcode set_limits(run *r, uint64_t left_ms)
{
	const dg__exchange *x = r->exchange;
	CURLcode code = CURLE_OK;
	SET(NOSIGNAL, 1L);
	SET(TIMEOUT_MS, (long)left_ms);
	SET(CONNECTTIMEOUT_MS, (long)left_ms);
	/* Else giving up waits for a resolver that does not answer. */
	SET(QUICK_EXIT, 1L);
	SET(MAXFILESIZE_LARGE, (curl_off_t)DG__REPLY_MAX);
	SET(PROTOCOLS_STR, x->address.tls ? "https" : "http");
	SET(FOLLOWLOCATION, 0L);
	SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(HTTP09_ALLOWED, 0L);
	SET(MAXCONNECTS, 2L);
	/* A proxy never sees the token, and nobody means one for loopback. */
	SET(HEADEROPT, (long)CURLHEADER_SEPARATE);
	SET(SUPPRESS_CONNECT_HEADERS, 1L);
	if (dg__address_is_loopback(&x->address))
		SET(NOPROXY, "*");
	return code;
}

static CURLcode set_trust(run *r)
{
	const dg__credentials *who = r->exchange->identity ? &r->exchange->identity->credentials
							   : &(dg__credentials){ 0 };
	CURLcode code = CURLE_OK;
	SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (who->pin) {
		SET(PINNEDPUBLICKEY, who->pin);
		/* The pin alone is trust: it names the key, whoever signed a certificate for it. */
		SET(SSL_VERIFYPEER, who->ca_file ? 1L : 0L);
		SET(SSL_VERIFYHOST, who->ca_file ? 2L : 0L);
	}
	if (who->ca_file) {
		SET(CAINFO, who->ca_file);
		/* The library's own folder of system CAs would be trusted beside the file. */
		SET(CAPATH, NULL);
	}
	if (who->cert_file) {
		SET(SSLCERT, who->cert_file);
		SET(SSLKEY, who->key_file ? who->key_file : who->cert_file);
		/* Without one, an encrypted key would make OpenSSL ask on the terminal. */
		SET(KEYPASSWD, "");
	}
	return code;
}

static dg_err fail(run *r, dg_err err, const char *text)
{
	return dg_error_native(
		&r->exchange->error, err, "transport", 0, "%.200s: %s", r->url, text);
}

static dg_err fail_memory(run *r)
{
	return dg_error_set(&r->exchange->error, DG_ENOMEM, NULL);
}

static dg_err prepare(run *r, uint64_t deadline_ms)
{
	dg__exchange *x = r->exchange;
	char url[URL_MAX + DG__PATH_MAX];
	write_url(&x->address, r->url, sizeof(r->url));
	forget_reply(x);
	if (!x->address.tls && !dg__address_is_loopback(&x->address))
		return fail(r, DG_EPLAINHTTP,
			"plain HTTP is spoken to loopback only; use the gateway's https address");
	r->started_ms = dg__now_ms();
	if (r->started_ms >= deadline_ms)
		return fail(r, DG_ETIMEOUT, "the deadline passed before it was asked");
	dg_err err = dg__pool_acquire(
		&x->address, x->identity ? x->identity->set : 0, &r->slot, &x->error);
	if (err)
		return err;
	snprintf(url, sizeof(url), "%s%s", r->url, x->path);
	if (!make_headers(r))
		return fail_memory(r);
	CURLcode code = set_request(r, url);
	code = code ? code : set_limits(r, deadline_ms - r->started_ms);
	if (!code && (code = set_trust(r)) && code != CURLE_OUT_OF_MEMORY)
		return fail(r, DG_ETLS, "the HTTP library here cannot check what was asked for");
	return code ? fail_memory(r) : DG_OK;
}

/* The library gives up on a header line without end as if memory had run out. */
static bool is_endless_header(const run *r, CURLcode code)
{
	curl_off_t first_byte_us = 0;
	curl_easy_getinfo(r->slot->easy, CURLINFO_STARTTRANSFER_TIME_T, &first_byte_us);
	return code == CURLE_OUT_OF_MEMORY && first_byte_us > 0 && !r->headed;
}

/* Turn the end of a transfer into the exchange's outcome. */
static dg_err conclude(run *r, CURLcode code)
{
	dg__exchange *x = r->exchange;
	long status = 0;
	if (r->code == DG_EREPLYSIZE || is_endless_header(r, code))
		return fail(r, DG_EREPLYSIZE, "the reply is longer than a gateway's can be");
	if (r->code == DG_ENOMEM)
		return fail_memory(r);
	if (code)
		return dg__transport_error(code, r->slot->detail, r->url, x->identity, &x->error);
	/* The library takes a connection that ends among the headers for a reply without a body. */
	if (!r->headed)
		return fail(
			r, DG_EUNREACHABLE, "the connection was lost in the middle of the reply");
	curl_easy_getinfo(r->slot->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status < 200 || status > 599)
		return fail(r, DG_EPROTOCOL, "the reply has no status of HTTP");
	x->status = (int)status;
	return DG_OK;
}

static void clean_up(run *r)
{
	if (r->exchange->code)
		forget_reply(r->exchange);
	curl_slist_free_all(r->headers);
	free(r->authorization);
}

static void run_once(dg__exchange *exchange)
{
	run r = { .exchange = exchange };
	exchange->code = prepare(&r, exchange->deadline_ms);
	if (!exchange->code)
		exchange->code = conclude(&r, curl_easy_perform(r.slot->easy));
	if (r.slot)
		dg__pool_release(r.slot);
	clean_up(&r);
}

static bool is_redirect(const dg__exchange *x)
{
	return x->code == DG_OK && x->status >= 300 && x->status < 400;
}

/* Path of a location at the same gateway; NULL for any other. */
static const char *local_path(const dg__exchange *x)
{
	const char *path = x->location;
	if (strpbrk(path, " ?\\") || strlen(path) + 1 == sizeof(x->location))
		return NULL;
	if (path[0] == '/' && path[1] != '/')
		return path;
	const char *host = strstr(path, "://");
	const char *end = host ? host + 3 + strcspn(host + 3, "/?#") : NULL;
	if (!end || *end != '/')
		return NULL;
	char text[DG__PATH_MAX];
	snprintf(text, sizeof(text), "%.*s", (int)(end - path), path);
	dg__address there;
	if (dg__address_parse(text, &there, NULL) || !dg__address_equal(&there, &x->address))
		return NULL;
	return end;
}

static void refuse_redirect(dg__exchange *x)
{
	char url[URL_MAX];
	write_url(&x->address, url, sizeof(url));
	x->code = dg_error_native(&x->error, DG_EREDIRECT, "transport", x->status,
		"%.150s redirects to '%.150s', which is refused; ask that address itself if it is "
		"meant",
		url, x->location);
	forget_reply(x);
}

dg_err dg__transport_run(dg__exchange *exchange, dg_error *reterr)
{
	run_once(exchange);
	for (int i = 0; is_redirect(exchange); i++) {
		const char *path = local_path(exchange);
		if (!path || i == REDIRECTS_MAX || strcmp(exchange->method, "GET") != 0) {
			refuse_redirect(exchange);
			break;
		}
		memmove(exchange->path, path, strlen(path) + 1);
		run_once(exchange);
	}
	if (exchange->code && reterr)
		*reterr = exchange->error;
	return exchange->code;
}

/* Several at once. */

typedef struct batch {
	CURLM *multi;
	run *runs;
	size_t count, next, in_flight;
	uint64_t share_ms; /* most time for each */
} batch;

static void batch_start_next(batch *b)
{
	run *r = &b->runs[b->next++];
	uint64_t deadline_ms = dg__now_ms() + b->share_ms;
	if (deadline_ms > r->exchange->deadline_ms)
		deadline_ms = r->exchange->deadline_ms;
	r->exchange->code = prepare(r, deadline_ms);
	if (r->exchange->code)
		return;
	/* Up to a thousand kept connections would be more than many processes may have open. */
	if (curl_easy_setopt(r->slot->easy, CURLOPT_FORBID_REUSE, 1L) ||
		curl_easy_setopt(r->slot->easy, CURLOPT_PRIVATE, r) ||
		curl_multi_add_handle(b->multi, r->slot->easy))
		r->exchange->code = fail_memory(r);
	else
		b->in_flight++;
}

static void batch_take_finished(batch *b)
{
	CURLMsg *message;
	int left;
	while ((message = curl_multi_info_read(b->multi, &left))) {
		if (message->msg != CURLMSG_DONE)
			continue;
		CURLcode code = message->data.result;
		CURL *easy = message->easy_handle;
		run *r = NULL;
		curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&r);
		r->exchange->code = conclude(r, code);
		curl_multi_remove_handle(b->multi, easy);
		b->in_flight--;
	}
}

/* The library failed in the middle; each transfer ends as if its connection had. */
static void batch_abandon(batch *b)
{
	for (size_t i = 0; i < b->count; i++) {
		run *r = &b->runs[i];
		if (i >= b->next)
			write_url(&r->exchange->address, r->url, sizeof(r->url));
		else if (r->exchange->code || r->exchange->status)
			continue;
		else
			curl_multi_remove_handle(b->multi, r->slot->easy);
		r->exchange->code = fail(r, DG_EUNREACHABLE, "the HTTP library failed");
	}
}

static void batch_run(batch *b)
{
	int running;
	while (b->next < b->count || b->in_flight) {
		while (b->next < b->count && b->in_flight < DG__IN_FLIGHT_MAX)
			batch_start_next(b);
		if (curl_multi_perform(b->multi, &running)) {
			batch_abandon(b);
			return;
		}
		batch_take_finished(b);
		if (b->in_flight && curl_multi_poll(b->multi, NULL, 0, 200, NULL)) {
			batch_abandon(b);
			return;
		}
	}
}

static uint64_t share_of_time(const dg__exchange *exchanges, size_t count)
{
	uint64_t latest = 0, now = dg__now_ms();
	for (size_t i = 0; i < count; i++)
		if (exchanges[i].deadline_ms > latest)
			latest = exchanges[i].deadline_ms;
	size_t waves = (count + DG__IN_FLIGHT_MAX - 1) / DG__IN_FLIGHT_MAX;
	uint64_t left = latest > now ? latest - now : 0;
	return left / (waves ? waves : 1);
}

dg_err dg__transport_run_all(dg__exchange *exchanges, size_t count, dg_error *reterr)
{
	batch b = { .count = count };
	dg_err err = DG_OK;
	if (count == 0)
		return DG_OK;
	if ((err = dg__pool_start(reterr)))
		return err;
	b.runs = calloc(count, sizeof(*b.runs));
	b.multi = curl_multi_init();
	if (!b.runs || !b.multi) {
		err = dg_error_set(reterr, DG_ENOMEM, NULL);
		goto out;
	}
	for (size_t i = 0; i < count; i++)
		b.runs[i].exchange = &exchanges[i];
	b.share_ms = share_of_time(exchanges, count);
	batch_run(&b);
	for (size_t i = 0; i < count; i++) {
		clean_up(&b.runs[i]);
		if (is_redirect(&exchanges[i]))
			refuse_redirect(&exchanges[i]);
	}
out:
	/* The connections are the multi handle's; they name their slots until it is gone. */
	if (b.multi)
		curl_multi_cleanup(b.multi);
	for (size_t i = 0; b.runs && i < count; i++)
		if (b.runs[i].slot)
			dg__pool_discard(b.runs[i].slot);
	free(b.runs);
	return err;
}
