/* Exchanges with gateways that are fast, slow, broken or hostile. */
#include "client/transport.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/call.h"
#include "tests/fakes/fake_gateway.h"
#include "tests/test.h"

#define BODY "{\"status\":\"ok\",\"text\":\"a body of a few dozen bytes\"}"

/* The reply that the running case wants. */
static void answer_fixed(const dg_fake_request *request, dg_fake_reply *reply, void *user)
{
	(void)request;
	*reply = *(const dg_fake_reply *)user;
}

typedef struct scene {
	dg_fake_gateway *gateway;
	dg_fake_reply reply;
	dg__identity identity;
	dg__exchange exchange;
} scene;

static void scene_init(scene *s, dg_fake_mode mode)
{
	memset(s, 0, sizeof(*s));
	s->reply.body = BODY;
	s->gateway = dg_fake_gateway_create(mode, answer_fixed, &s->reply);
	/* A set number of its own for each gateway, so that no connection is shared by chance. */
	s->identity.set = dg_fake_gateway_port(s->gateway);
	s->identity.credentials.pin = dg_fake_gateway_pin(s->gateway);
}

static void scene_finish(scene *s)
{
	dg__exchange_finish(&s->exchange);
	dg_fake_gateway_destroy(s->gateway);
}

static void prepare(scene *s, const char *method, unsigned timeout_ms)
{
	dg__exchange_finish(&s->exchange);
	memset(&s->exchange, 0, sizeof(s->exchange));
	s->exchange.method = method;
	CU_ASSERT_EQUAL_FATAL(
		dg__address_parse(dg_fake_gateway_url(s->gateway), &s->exchange.address, NULL),
		DG_OK);
	snprintf(s->exchange.path, sizeof(s->exchange.path), "/v1/devices");
	s->exchange.identity = &s->identity;
	s->exchange.deadline_ms = dg__now_ms() + timeout_ms;
	if (strcmp(method, "POST") == 0) {
		s->exchange.body = "{\"keys\":[]}";
		s->exchange.body_length = strlen(s->exchange.body);
	}
}

static dg_err run(scene *s, const char *method, unsigned timeout_ms)
{
	dg_error error = { 0 };
	prepare(s, method, timeout_ms);
	dg_err err = dg__transport_run(&s->exchange, &error);
	CU_ASSERT_EQUAL(err, s->exchange.code);
	if (err) {
		CU_ASSERT_EQUAL(error.code, err);
		CU_ASSERT(error.text[0] != '\0');
		CU_ASSERT_PTR_NULL(s->exchange.reply);
	}
	return err;
}

static void test_run__gives_status_type_and_body(void)
{
	scene s;
	scene_init(&s, DG_FAKE_TLS);
	s.reply.status = 503;
	s.reply.content_type = "Application/Problem+JSON; charset=utf-8";
	s.reply.headers = "Retry-After: 7\r\n";
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_OK);
	CU_ASSERT_EQUAL(s.exchange.status, 503);
	CU_ASSERT_STRING_EQUAL(s.exchange.content_type, "application/problem+json");
	CU_ASSERT(s.exchange.has_retry_after && s.exchange.retry_after_s == 7);
	CU_ASSERT_STRING_EQUAL_FATAL(s.exchange.reply, BODY);
	CU_ASSERT_EQUAL(s.exchange.reply_length, strlen(BODY));
	scene_finish(&s);
}

static void test_run__sends_what_was_asked(void)
{
	scene s;
	dg_fake_request request;
	char value[128];
	scene_init(&s, DG_FAKE_TLS);
	snprintf(s.identity.token, sizeof(s.identity.token), "secret-token");
	prepare(&s, "POST", 5000);
	s.exchange.prefer = "respond-async";
	CU_ASSERT_EQUAL(dg__transport_run(&s.exchange, NULL), DG_OK);
	CU_ASSERT_FATAL(dg_fake_gateway_request(s.gateway, 0, &request));
	CU_ASSERT_STRING_EQUAL(request.method, "POST");
	CU_ASSERT_STRING_EQUAL(request.path, "/v1/devices");
	CU_ASSERT_STRING_EQUAL(request.body, "{\"keys\":[]}");
	CU_ASSERT(dg_fake_request_header(&request, "Authorization", value, sizeof(value)));
	CU_ASSERT_STRING_EQUAL(value, "Bearer secret-token");
	CU_ASSERT(dg_fake_request_header(&request, "Prefer", value, sizeof(value)));
	CU_ASSERT_STRING_EQUAL(value, "respond-async");
	CU_ASSERT(dg_fake_request_header(&request, "Content-Type", value, sizeof(value)));
	CU_ASSERT_STRING_EQUAL(value, "application/json");
	CU_ASSERT_FALSE(dg_fake_request_header(&request, "Expect", value, sizeof(value)));
	CU_ASSERT_FALSE(dg_fake_request_header(&request, "Cookie", value, sizeof(value)));
	scene_finish(&s);
}

static void test_run__keeps_the_connection(void)
{
	scene s;
	scene_init(&s, DG_FAKE_TLS);
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_OK);
	CU_ASSERT_EQUAL(dg_fake_gateway_connections(s.gateway), 1);
	scene_finish(&s);
}

static void test_run__shares_no_connection_between_credentials(void)
{
	scene s;
	scene_init(&s, DG_FAKE_TLS);
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_OK);
	s.identity.set += 1u << 16;
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_OK);
	CU_ASSERT_EQUAL(dg_fake_gateway_connections(s.gateway), 2);
	scene_finish(&s);
}

static void test_run__get_survives_a_kept_connection_that_was_closed(void)
{
	scene s;
	scene_init(&s, DG_FAKE_TLS);
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_OK);
	s.reply.close = true;
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_OK);
	CU_ASSERT_EQUAL(dg_fake_gateway_open(s.gateway, 0), 0);
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_OK);
	scene_finish(&s);
}

/* Answers the first request on each connection, and closes at the second without a word. */
static void answer_first_only(const dg_fake_request *request, dg_fake_reply *reply, void *user)
{
	unsigned *last = user;
	reply->body = BODY;
	reply->cut_at_once = request->connection == *last;
	*last = request->connection;
}

static void test_run__post_is_never_sent_twice(void)
{
	scene s;
	unsigned last = 0;
	dg_fake_request request;
	scene_init(&s, DG_FAKE_TLS);
	dg_fake_gateway_destroy(s.gateway);
	s.gateway = dg_fake_gateway_create(DG_FAKE_TLS, answer_first_only, &last);
	s.identity.credentials.pin = dg_fake_gateway_pin(s.gateway);
	s.identity.set = dg_fake_gateway_port(s.gateway);
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_OK);
	/* The GET is asked again on a new connection, where it is the first and answered. */
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_OK);
	CU_ASSERT_EQUAL(dg_fake_gateway_requests(s.gateway), 3);
	dg_fake_gateway_forget_requests(s.gateway);
	CU_ASSERT_EQUAL(run(&s, "POST", 5000), DG_OK);
	CU_ASSERT_EQUAL(dg_fake_gateway_requests(s.gateway), 1);
	CU_ASSERT(dg_fake_gateway_request(s.gateway, 0, &request));
	CU_ASSERT_STRING_EQUAL(request.method, "POST");
	scene_finish(&s);
}

static void test_run__post_lost_in_the_middle_is_an_error(void)
{
	scene s;
	scene_init(&s, DG_FAKE_TLS);
	s.reply.cut_at_once = true;
	CU_ASSERT_EQUAL(run(&s, "POST", 5000), DG_EUNREACHABLE);
	CU_ASSERT_EQUAL(dg_fake_gateway_requests(s.gateway), 1);
	scene_finish(&s);
}

static void test_run__every_truncation_ends_in_an_error(void)
{
	scene s;
	scene_init(&s, DG_FAKE_TLS);
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_OK);
	size_t whole = strlen("HTTP/1.1 200 Status\r\nContent-Type: application/json\r\n"
			      "Content-Length: 52\r\n\r\n") +
		       strlen(BODY);
	for (int reset = 0; reset < 2; reset++) {
		s.reply.reset = reset;
		for (size_t cut = 0; cut < whole - 2; cut++) {
			s.reply.cut = cut;
			s.reply.cut_at_once = cut == 0;
			dg_err err = run(&s, "GET", 10000);
			if (!(err == DG_EUNREACHABLE || err == DG_EPROTOCOL))
				printf("\n    cut at %zu: %s", cut, dg_err_code(err));
			CU_ASSERT(err == DG_EUNREACHABLE || err == DG_EPROTOCOL);
		}
	}
	scene_finish(&s);
}

static void test_run__flipped_bits_never_crash(void)
{
	scene s;
	unsigned fine = 0, refused = 0;
	scene_init(&s, DG_FAKE_PLAIN);
	s.reply.close = true;
	for (size_t byte = 0; byte < 140; byte++) {
		for (unsigned bit = 0; bit < 8; bit += 3) {
			s.reply.flip_byte = byte;
			s.reply.flip_mask = (unsigned char)(1u << bit);
			dg_err err = run(&s, "GET", 10000);
			CU_ASSERT(err != DG_EINTERNAL && err != DG_ETIMEOUT);
			if (err)
				refused++;
			else
				fine++;
		}
	}
	/* The status line was hit, too, and so was the body, which is not looked into here. */
	CU_ASSERT(fine > 0 && refused > 0);
	scene_finish(&s);
}

static void test_run__reply_that_is_no_http_is_refused(void)
{
	static const char *const replies[] = { "hello\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
		"HTTP/1.1 banana\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n", "\r\n\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nx",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n",
		"HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n" };
	scene s;
	scene_init(&s, DG_FAKE_PLAIN);
	s.reply.raw = s.reply.close = true;
	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		s.reply.body = replies[i];
		dg_err err = run(&s, "GET", 5000);
		if (!(err == DG_EPROTOCOL || err == DG_EUNREACHABLE || err == DG_EREPLYSIZE))
			printf("    reply %zu: %s\n", i, dg_err_code(err));
		CU_ASSERT(err == DG_EPROTOCOL || err == DG_EUNREACHABLE || err == DG_EREPLYSIZE);
	}
	scene_finish(&s);
}

static void test_run__interim_replies_are_passed_over(void)
{
	scene s;
	scene_init(&s, DG_FAKE_PLAIN);
	s.reply.raw = s.reply.close = true;
	s.reply.body = "HTTP/1.1 103 Early\r\nRetry-After: 9\r\n\r\nHTTP/1.1 200 OK\r\n"
		       "Content-Length: 2\r\n\r\n{}";
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_OK);
	CU_ASSERT_FALSE(s.exchange.has_retry_after);
	CU_ASSERT_EQUAL(s.exchange.status, 200);
	scene_finish(&s);
}

static void test_run__too_large_replies_are_refused(void)
{
	scene s;
	scene_init(&s, DG_FAKE_PLAIN);
	s.reply.has_declared = true;
	s.reply.declared_length = DG__REPLY_MAX + 1;
	s.reply.close = true;
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_EREPLYSIZE);
	s.reply.has_declared = false;
	s.reply.endless = true;
	CU_ASSERT_EQUAL(run(&s, "GET", 20000), DG_EREPLYSIZE);
	s.reply.endless = false;
	s.reply.endless_header = true;
	CU_ASSERT_EQUAL(run(&s, "GET", 20000), DG_EREPLYSIZE);
	scene_finish(&s);
}

static void test_run__endless_small_headers_are_refused(void)
{
	scene s;
	char *headers = malloc(DG__REPLY_HEADERS_MAX + 1024);
	size_t n = 0;
	CU_ASSERT_PTR_NOT_NULL_FATAL(headers);
	n += (size_t)snprintf(headers, 64, "HTTP/1.1 200 OK\r\n");
	while (n < DG__REPLY_HEADERS_MAX + 500)
		n += (size_t)snprintf(headers + n, 64, "X-Filler-%06zu: some value\r\n", n);
	snprintf(headers + n, 64, "Content-Length: 0\r\n\r\n");
	scene_init(&s, DG_FAKE_PLAIN);
	s.reply.raw = s.reply.close = true;
	s.reply.body = headers;
	CU_ASSERT_EQUAL(run(&s, "GET", 20000), DG_EREPLYSIZE);
	scene_finish(&s);
	free(headers);
}

static void ends_by_deadline(scene *s, dg_err expected)
{
	long long start = dg_test_now_ms();
	CU_ASSERT_EQUAL(run(s, "GET", 300), expected);
	long long took = dg_test_now_ms() - start;
	CU_ASSERT(took >= 250 && took < 3000);
}

static void test_run__a_dripping_gateway_ends_by_the_deadline(void)
{
	scene s;
	scene_init(&s, DG_FAKE_TLS);
	s.reply.drip_ms = 40;
	ends_by_deadline(&s, DG_ETIMEOUT);
	scene_finish(&s);
}

static void test_run__a_stalled_gateway_ends_by_the_deadline(void)
{
	scene s;
	scene_init(&s, DG_FAKE_TLS);
	s.reply.delay_ms = 10000;
	ends_by_deadline(&s, DG_ETIMEOUT);
	scene_finish(&s);
}

static void test_run__a_silent_handshake_ends_by_the_deadline(void)
{
	scene s;
	scene_init(&s, DG_FAKE_SILENT);
	s.identity.credentials.pin = NULL;
	ends_by_deadline(&s, DG_ETIMEOUT);
	scene_finish(&s);
}

static void test_run__a_passed_deadline_sends_nothing(void)
{
	scene s;
	scene_init(&s, DG_FAKE_TLS);
	CU_ASSERT_EQUAL(run(&s, "GET", 0), DG_ETIMEOUT);
	CU_ASSERT_EQUAL(dg_fake_gateway_connections(s.gateway), 0);
	scene_finish(&s);
}

static bool stop_at_once(void *user)
{
	++*(unsigned *)user;
	return false;
}

static void test_run__keep_going_ends_it(void)
{
	scene s;
	unsigned asked = 0;
	scene_init(&s, DG_FAKE_TLS);
	s.reply.delay_ms = 20000;
	prepare(&s, "GET", 20000);
	s.exchange.keep_going = stop_at_once;
	s.exchange.user = &asked;
	long long start = dg_test_now_ms();
	CU_ASSERT_EQUAL(dg__transport_run(&s.exchange, NULL), DG_ECANCELLED);
	CU_ASSERT(asked > 0 && dg_test_now_ms() - start < 5000);
	scene_finish(&s);
}

static void test_run__nobody_listening_is_unreachable(void)
{
	scene s;
	scene_init(&s, DG_FAKE_TLS);
	dg__address address;
	prepare(&s, "GET", 5000);
	address = s.exchange.address;
	dg_fake_gateway_destroy(s.gateway);
	s.gateway = NULL;
	s.exchange.address = address;
	s.identity.credentials.pin = NULL;
	dg_error error;
	CU_ASSERT_EQUAL(dg__transport_run(&s.exchange, &error), DG_EUNREACHABLE);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "https://127.0.0.1:"));
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "check that the gateway runs"));
	scene_finish(&s);
}

static void test_run__plain_http_beyond_loopback_is_refused(void)
{
	dg_error error;
	dg__exchange x = { .method = "GET", .path = "/", .deadline_ms = dg__now_ms() + 5000 };
	/* The address is one for documentation: were a packet sent, no answer would come. */
	CU_ASSERT_EQUAL_FATAL(dg__address_parse("http://192.0.2.1:8080", &x.address, NULL), DG_OK);
	long long start = dg_test_now_ms();
	CU_ASSERT_EQUAL(dg__transport_run(&x, &error), DG_EPLAINHTTP);
	CU_ASSERT(dg_test_now_ms() - start < 1000);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "http://192.0.2.1:8080"));
}

/* Trust. */

static void test_trust__another_key_does_not_match_the_pin(void)
{
	scene s, other;
	scene_init(&s, DG_FAKE_TLS);
	scene_init(&other, DG_FAKE_TLS);
	s.identity.credentials.pin = dg_fake_gateway_pin(other.gateway);
	snprintf(s.identity.token, sizeof(s.identity.token), "secret-token");
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_EPIN);
	CU_ASSERT_EQUAL(dg_fake_gateway_requests(s.gateway), 0);
	scene_finish(&s);
	scene_finish(&other);
}

static void test_trust__any_of_several_pins_matches(void)
{
	scene s, other;
	char pins[200];
	scene_init(&s, DG_FAKE_TLS);
	scene_init(&other, DG_FAKE_TLS);
	snprintf(pins, sizeof(pins), "%s;%s", dg_fake_gateway_pin(other.gateway),
		dg_fake_gateway_pin(s.gateway));
	s.identity.credentials.pin = pins;
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_OK);
	scene_finish(&s);
	scene_finish(&other);
}

static void test_trust__without_any_an_unknown_certificate_is_refused(void)
{
	scene s;
	scene_init(&s, DG_FAKE_TLS);
	s.identity.credentials.pin = NULL;
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_ETLS);
	CU_ASSERT_PTR_NOT_NULL(strstr(s.exchange.error.text, "pin"));
	CU_ASSERT_EQUAL(dg_fake_gateway_requests(s.gateway), 0);
	scene_finish(&s);
}

static void test_trust__ca_file(void)
{
	scene s, other;
	char *folder = dg_test_temp_dir(), path[512], wrong[512];
	scene_init(&s, DG_FAKE_TLS);
	scene_init(&other, DG_FAKE_TLS);
	snprintf(path, sizeof(path), "%s/ca.pem", folder);
	snprintf(wrong, sizeof(wrong), "%s/other.pem", folder);
	dg_fake_gateway_write_ca(s.gateway, path);
	dg_fake_gateway_write_ca(other.gateway, wrong);
	s.identity.credentials.pin = NULL;
	s.identity.credentials.ca_file = path;
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_OK);
	s.identity.set += 1u << 16;
	s.identity.credentials.ca_file = wrong;
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_ETLS);
	/* A pin does not make up for a CA that was asked for as well. */
	s.identity.credentials.pin = dg_fake_gateway_pin(s.gateway);
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_ETLS);
	s.identity.credentials.ca_file = "/nonexistent/ca.pem";
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_ECREDENTIAL);
	scene_finish(&s);
	scene_finish(&other);
	free(folder);
}

static void test_trust__client_certificate(void)
{
	scene s;
	char *folder = dg_test_temp_dir(), path[512];
	scene_init(&s, DG_FAKE_TLS);
	dg_fake_gateway_want_certificate(s.gateway);
	snprintf(path, sizeof(path), "%s/client.pem", folder);
	dg_fake_write_client_certificate(path);
	dg_err without = run(&s, "GET", 5000);
	CU_ASSERT(without == DG_ETLS || without == DG_EUNREACHABLE);
	s.identity.credentials.cert_file = path;
	s.identity.set += 1u << 16;
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_OK);
	s.identity.credentials.cert_file = "/nonexistent/client.pem";
	s.identity.set += 1u << 16;
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_ECREDENTIAL);
	scene_finish(&s);
	free(folder);
}

static void test_trust__tls_spoken_to_a_plain_server_is_refused(void)
{
	scene s;
	scene_init(&s, DG_FAKE_PLAIN);
	prepare(&s, "GET", 5000);
	s.exchange.address.tls = true;
	s.identity.credentials.pin = NULL;
	s.reply.close = true;
	dg_err err = dg__transport_run(&s.exchange, NULL);
	CU_ASSERT(err == DG_ETLS || err == DG_EUNREACHABLE || err == DG_ETIMEOUT);
	scene_finish(&s);
}

/* Redirects. */

typedef struct redirect {
	const char *location; /* "" with status 302: no Location at all */
	const char *target; /* path that is answered */
	char headers[600];
} redirect;

static void answer_redirect(const dg_fake_request *request, dg_fake_reply *reply, void *user)
{
	redirect *r = user;
	reply->body = BODY;
	if (strcmp(request->path, r->target) == 0)
		return;
	reply->status = 302;
	snprintf(r->headers, sizeof(r->headers), "Location: %s\r\n", r->location);
	reply->headers = *r->location ? r->headers : NULL;
}

static dg_err run_redirect(
	const char *method, const char *location, const char *target, unsigned *ret_requests)
{
	scene s;
	redirect r = { location, target, "" };
	char absolute[256];
	scene_init(&s, DG_FAKE_TLS);
	dg_fake_gateway_destroy(s.gateway);
	s.gateway = dg_fake_gateway_create(DG_FAKE_TLS, answer_redirect, &r);
	s.identity.set = dg_fake_gateway_port(s.gateway);
	s.identity.credentials.pin = dg_fake_gateway_pin(s.gateway);
	if (strncmp(location, "SELF", 4) == 0) {
		snprintf(absolute, sizeof(absolute), "%s%s", dg_fake_gateway_url(s.gateway),
			location + 4);
		r.location = absolute;
	}
	dg_err err = run(&s, method, 5000);
	*ret_requests = (unsigned)dg_fake_gateway_requests(s.gateway);
	scene_finish(&s);
	return err;
}

static void test_redirect__within_the_gateway_is_followed(void)
{
	unsigned requests;
	CU_ASSERT_EQUAL(run_redirect("GET", "/elsewhere", "/elsewhere", &requests), DG_OK);
	CU_ASSERT_EQUAL(requests, 2);
	CU_ASSERT_EQUAL(run_redirect("GET", "SELF/elsewhere", "/elsewhere", &requests), DG_OK);
	CU_ASSERT_EQUAL(requests, 2);
}

static void test_redirect__to_another_host_is_refused(void)
{
	static const char *const locations[] = { "https://192.0.2.1:8443/v1/devices",
		"http://127.0.0.1:1/", "//192.0.2.1/v1/devices", "https://127.0.0.1:1/", "ftp://x/",
		"file:///etc/passwd", "relative", "https://user@127.0.0.1/", "" };
	unsigned requests;
	for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); i++) {
		CU_ASSERT_EQUAL(run_redirect("GET", locations[i], "/x", &requests), DG_EREDIRECT);
		CU_ASSERT_EQUAL(requests, 1);
	}
}

static void test_redirect__of_a_post_is_refused(void)
{
	unsigned requests;
	CU_ASSERT_EQUAL(run_redirect("POST", "/elsewhere", "/elsewhere", &requests), DG_EREDIRECT);
	CU_ASSERT_EQUAL(requests, 1);
}

static void test_redirect__in_a_circle_ends(void)
{
	unsigned requests;
	CU_ASSERT_EQUAL(run_redirect("GET", "/again", "/never", &requests), DG_EREDIRECT);
	CU_ASSERT(requests <= 5);
}

/* Several at once. */

static void test_run_all__one_dead_gateway_leaves_the_others_alone(void)
{
	enum { COUNT = 300 };
	scene s;
	dg__exchange *x = calloc(COUNT, sizeof(*x));
	CU_ASSERT_PTR_NOT_NULL_FATAL(x);
	if (!x)
		return;
	scene_init(&s, DG_FAKE_PLAIN);
	prepare(&s, "GET", 20000);
	for (int i = 0; i < COUNT; i++) {
		x[i] = s.exchange;
		if (i % 100 == 50)
			x[i].address.port = 1;
		if (i == 7)
			snprintf(x[i].address.host, sizeof(x[i].address.host), "192.0.2.1");
	}
	CU_ASSERT_EQUAL(dg__transport_run_all(x, COUNT, NULL), DG_OK);
	for (int i = 0; i < COUNT; i++) {
		dg_err expected = i % 100 == 50 ? DG_EUNREACHABLE : i == 7 ? DG_EPLAINHTTP : DG_OK;
		CU_ASSERT_EQUAL(x[i].code, expected);
		CU_ASSERT(expected || (x[i].reply && strcmp(x[i].reply, BODY) == 0));
		dg__exchange_finish(&x[i]);
	}
	CU_ASSERT_EQUAL(dg_fake_gateway_requests(s.gateway), COUNT - 4);
	/* None is kept: a thousand would be more than many processes may have open. */
	CU_ASSERT_EQUAL(dg_fake_gateway_open(s.gateway, 0), 0);
	scene_finish(&s);
	free(x);
}

static void test_run_all__silent_gateways_end_by_the_deadline(void)
{
	enum { COUNT = 200 };
	scene s;
	dg__exchange *x = calloc(COUNT, sizeof(*x));
	CU_ASSERT_PTR_NOT_NULL_FATAL(x);
	if (!x)
		return;
	scene_init(&s, DG_FAKE_SILENT);
	prepare(&s, "GET", 1000);
	s.identity.credentials.pin = NULL;
	for (int i = 0; i < COUNT; i++)
		x[i] = s.exchange;
	long long start = dg_test_now_ms();
	CU_ASSERT_EQUAL(dg__transport_run_all(x, COUNT, NULL), DG_OK);
	CU_ASSERT(dg_test_now_ms() - start < 8000);
	for (int i = 0; i < COUNT; i++)
		CU_ASSERT_EQUAL(x[i].code, DG_ETIMEOUT);
	scene_finish(&s);
	free(x);
}

static void test_run_all__redirects_are_refused(void)
{
	scene s;
	scene_init(&s, DG_FAKE_TLS);
	s.reply.status = 301;
	s.reply.headers = "Location: /x\r\n";
	prepare(&s, "GET", 5000);
	CU_ASSERT_EQUAL(dg__transport_run_all(&s.exchange, 1, NULL), DG_OK);
	CU_ASSERT_EQUAL(s.exchange.code, DG_EREDIRECT);
	scene_finish(&s);
}

/* Threads and fork. */

typedef struct worker {
	scene *scene;
	pthread_t thread;
	unsigned failures;
} worker;

static void *ask_many_times(void *user)
{
	worker *w = user;
	for (int i = 0; i < 50; i++) {
		dg__exchange x = { .method = "GET",
			.address = w->scene->exchange.address,
			.path = "/v1/devices",
			.identity = &w->scene->identity,
			.deadline_ms = dg__now_ms() + 30000 };
		if (dg__transport_run(&x, NULL) || x.status != 200 || strcmp(x.reply, BODY) != 0)
			w->failures++;
		dg__exchange_finish(&x);
	}
	return NULL;
}

static void test_threads__share_the_pool(void)
{
	enum { THREADS = 8 };
	scene s;
	worker workers[THREADS] = { 0 };
	scene_init(&s, DG_FAKE_TLS);
	prepare(&s, "GET", 5000);
	for (int i = 0; i < THREADS; i++) {
		workers[i].scene = &s;
		CU_ASSERT_FATAL(
			pthread_create(&workers[i].thread, NULL, ask_many_times, &workers[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		CU_ASSERT_EQUAL(workers[i].failures, 0);
	}
	CU_ASSERT(dg_fake_gateway_connections(s.gateway) <= THREADS);
	scene_finish(&s);
}

/* The child asks on its own connection and leaves the parent's as it is. */
static void test_fork__child_asks_anew_and_parent_goes_on(void)
{
	scene s;
	scene_init(&s, DG_FAKE_TLS);
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_OK);
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_OK);
	CU_ASSERT_EQUAL(dg_fake_gateway_connections(s.gateway), 1);
	pid_t child = fork();
	if (child == 0) {
		prepare(&s, "GET", 20000);
		dg_err err = dg__transport_run(&s.exchange, NULL);
		_exit(err ? 1 : 0);
	}
	CU_ASSERT_FATAL(child > 0);
	int status = -1;
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CU_ASSERT_EQUAL(dg_fake_gateway_connections(s.gateway), 2);
	CU_ASSERT_EQUAL(run(&s, "GET", 5000), DG_OK);
	CU_ASSERT_EQUAL(dg_fake_gateway_connections(s.gateway), 2);
	scene_finish(&s);
}

/* Name resolution that hangs: this stands in for the system's. */
#include <netdb.h>

static atomic_bool resolver_hangs;

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
	struct addrinfo **result)
{
	(void)node;
	(void)service;
	(void)hints;
	(void)result;
	for (int i = 0; i < 300 && atomic_load(&resolver_hangs); i++)
		dg_test_sleep_ms(10);
	return EAI_NONAME;
}

static void test_run__a_hanging_resolver_ends_by_the_deadline(void)
{
	dg_error error;
	dg__exchange x = { .method = "GET", .path = "/" };
	CU_ASSERT_EQUAL_FATAL(
		dg__address_parse("https://slow.example:8443", &x.address, NULL), DG_OK);
	atomic_store(&resolver_hangs, true);
	x.deadline_ms = dg__now_ms() + 300;
	long long start = dg_test_now_ms();
	CU_ASSERT_EQUAL(dg__transport_run(&x, &error), DG_ETIMEOUT);
	CU_ASSERT(dg_test_now_ms() - start < 2000);
	atomic_store(&resolver_hangs, false);
	x.deadline_ms = dg__now_ms() + 5000;
	CU_ASSERT_EQUAL(dg__transport_run(&x, &error), DG_EUNREACHABLE);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "check the host's name"));
	/* The resolver's thread is left to itself; let it end before the program does. */
	dg_test_sleep_ms(100);
}

static const dg_test_case cases[] = {
	DG_TEST(test_run__gives_status_type_and_body),
	DG_TEST(test_run__sends_what_was_asked),
	DG_TEST(test_run__keeps_the_connection),
	DG_TEST(test_run__shares_no_connection_between_credentials),
	DG_TEST(test_run__get_survives_a_kept_connection_that_was_closed),
	DG_TEST(test_run__post_is_never_sent_twice),
	DG_TEST(test_run__post_lost_in_the_middle_is_an_error),
	DG_TEST(test_run__every_truncation_ends_in_an_error),
	DG_TEST(test_run__flipped_bits_never_crash),
	DG_TEST(test_run__reply_that_is_no_http_is_refused),
	DG_TEST(test_run__interim_replies_are_passed_over),
	DG_TEST(test_run__too_large_replies_are_refused),
	DG_TEST(test_run__endless_small_headers_are_refused),
	DG_TEST(test_run__a_dripping_gateway_ends_by_the_deadline),
	DG_TEST(test_run__a_stalled_gateway_ends_by_the_deadline),
	DG_TEST(test_run__a_silent_handshake_ends_by_the_deadline),
	DG_TEST(test_run__a_passed_deadline_sends_nothing),
	DG_TEST(test_run__keep_going_ends_it),
	DG_TEST(test_run__nobody_listening_is_unreachable),
	DG_TEST(test_run__plain_http_beyond_loopback_is_refused),
	DG_TEST(test_run__a_hanging_resolver_ends_by_the_deadline),
	DG_TEST(test_trust__another_key_does_not_match_the_pin),
	DG_TEST(test_trust__any_of_several_pins_matches),
	DG_TEST(test_trust__without_any_an_unknown_certificate_is_refused),
	DG_TEST(test_trust__ca_file),
	DG_TEST(test_trust__client_certificate),
	DG_TEST(test_trust__tls_spoken_to_a_plain_server_is_refused),
	DG_TEST(test_redirect__within_the_gateway_is_followed),
	DG_TEST(test_redirect__to_another_host_is_refused),
	DG_TEST(test_redirect__of_a_post_is_refused),
	DG_TEST(test_redirect__in_a_circle_ends),
	DG_TEST(test_run_all__one_dead_gateway_leaves_the_others_alone),
	DG_TEST(test_run_all__silent_gateways_end_by_the_deadline),
	DG_TEST(test_run_all__redirects_are_refused),
	DG_TEST(test_threads__share_the_pool),
	DG_TEST(test_fork__child_asks_anew_and_parent_goes_on),
};

DG_TEST_MAIN("client/transport", cases)
