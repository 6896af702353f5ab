/* What a running gateway does with bytes that no proper client sends. Plain HTTP, so that they can
 * be written by hand. */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CUnit/CUnit.h>

#include "tests/gateway.h"
#include "tests/test.h"

/* A sanitizer keeps freed memory for a while, to notice its use. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GROWTH_MAX_KIB (512 * 1024)
#else
#define GROWTH_MAX_KIB 4096
#endif

#define HOST "Host: localhost\r\n"
#define POST "POST /v1/ids/encode HTTP/1.1\r\n" HOST

static dg_test_gateway gateway;

static void test_start(void)
{
	static const char *const args[] = { "--plain-http", "--request-timeout-ms", "1500",
		"--idle-timeout-ms", "4000", NULL };
	gateway = dg_test_gateway_start(args, NULL);
	CU_ASSERT_STRING_EQUAL(gateway.pin, "");
}

/* The status of the first reply; 0: the connection was closed without one; -1: a reply of no HTTP.
 * */
static int status_of(const char *reply)
{
	if (!*reply)
		return 0;
	return strncmp(reply, "HTTP/1.", 7) == 0 ? (int)strtol(reply + 9, NULL, 10) : -1;
}

static void test_malformed__each_has_its_answer(void)
{
	static const struct {
		const char *what, *bytes;
		int status; /* 0: closed */
		const char *says;
	} cases[] = {
		{ "no host", "GET /healthz HTTP/1.1\r\n\r\n", 400, "bad_request" },
		{ "two hosts",
			"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400,
			"bad_request" },
		{ "foreign host", "GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421,
			"misdirected_host" },
		{ "foreign host in the target",
			"GET http://evil.example/healthz HTTP/1.1\r\n" HOST "\r\n", 421,
			"misdirected_host" },
		{ "whole target", "GET http://localhost/healthz HTTP/1.1\r\n" HOST "\r\n", 200,
			"ok" },
		{ "dot after the host", "GET /healthz HTTP/1.1\r\nHost: localhost.\r\n\r\n", 200,
			"ok" },
		{ "odd host", "GET /healthz HTTP/1.1\r\nHost: local host:x\r\n\r\n", 400,
			"bad_request" },
		{ "two lengths", POST "Content-Length: 2\r\nContent-Length: 3\r\n\r\n[]x", 400,
			"told twice" },
		{ "length and encoding",
			POST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
			     "2\r\n[]\r\n0\r\n\r\n",
			400, "told twice" },
		{ "length behind a blank", POST "Content-Length : 2\r\n\r\n[]", 400,
			"bad_request" },
		{ "negative length", POST "Content-Length: -2\r\n\r\n[]", 400, "bad_request" },
		{ "large length", POST "Content-Length: 99999999999\r\n\r\n[]", 413,
			"body_too_large" },
		{ "huge length", POST "Content-Length: 99999999999999999999\r\n\r\n[]", 413,
			"body_too_large" },
		{ "unknown encoding", POST "Transfer-Encoding: gzip\r\n\r\n[]", 501,
			"unsupported" },
		{ "bad chunk", POST "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400,
			"bad_request" },
		{ "unknown expectation", POST "Expect: tea\r\nContent-Length: 2\r\n\r\n[]", 417,
			"expectation_failed" },
		{ "other charset",
			POST "Content-Type: application/json; charset=utf-16\r\n"
			     "Content-Length: 2\r\n\r\n[]",
			415, "unsupported_media_type" },
		{ "no path", "GET nowhere HTTP/1.1\r\n" HOST "\r\n", 400, "bad_request" },
		{ "no version", "GET /healthz\r\n\r\n", 400, "bad_request" },
		{ "other version", "GET /healthz HTTP/2.0\r\n" HOST "\r\n", 505, "http_version" },
		{ "bare line ends", "GET /healthz HTTP/1.1\nHost: localhost\n\n", 400,
			"bad_request" },
		{ "no colon", "GET /healthz HTTP/1.1\r\n" HOST "garbage\r\n\r\n", 400,
			"bad_request" },
		{ "continued header", "GET /healthz HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n", 400,
			"bad_request" },
		{ "unknown method", "BREW /healthz HTTP/1.1\r\n" HOST "\r\n", 405,
			"method_not_allowed" },
		{ "escape to nothing", "GET /v1/%c HTTP/1.1\r\n" HOST "\r\n", 400, "bad_request" },
		{ "two credentials",
			"GET /v1/devices HTTP/1.1\r\n" HOST "Authorization: Bearer a\r\n"
			"Authorization: Bearer b\r\n\r\n",
			400, "bad_request" },
		{ "hello of TLS", "\x16\x03\x01\x02\x01\x01\x01\x01", 400, "TLS" },
		{ "blank lines before", "\r\n\r\nGET /healthz HTTP/1.1\r\n" HOST "\r\n", 200,
			"ok" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *reply = dg_test_raw(&gateway, cases[i].bytes, strlen(cases[i].bytes), 400);
		int status = status_of(reply);
		if (status != cases[i].status || !strstr(reply, cases[i].says))
			printf("\n    %s: status %d, expected %d: %.200s\n", cases[i].what, status,
				cases[i].status, reply);
		CU_ASSERT_EQUAL(status, cases[i].status);
		CU_ASSERT_PTR_NOT_NULL(strstr(reply, cases[i].says));
		CU_ASSERT(status < 400 || strstr(reply, "application/problem+json"));
		free(reply);
	}
}

static void send_bytes(const char *bytes, size_t length, int timeout_ms)
{
	char *reply = dg_test_raw(&gateway, bytes, length, timeout_ms);
	int status = status_of(reply);
	CU_ASSERT(status == 0 || status == 100 || (status >= 200 && status < 506));
	CU_ASSERT(status != 500 && (status < 400 || strstr(reply, "application/problem+json")));
	free(reply);
}

/* Bytes changed, dropped and doubled, as the fuzzer would. */
static void send_mutated(const char *bytes, size_t length, unsigned *seed)
{
	char changed[8300];
	memcpy(changed, bytes, length);
	for (unsigned n = 0; n < 4 && length > 1; n++) {
		*seed = *seed * 1103515245 + 12345;
		size_t at = (*seed >> 8) % length;
		if (*seed >> 30 == 0)
			changed[at] = (char)(*seed >> 20);
		else if (*seed >> 30 == 1)
			memmove(changed + at, changed + at + 1, --length - at);
		else if (*seed >> 30 == 2 && length + 1 < sizeof(changed))
			memmove(changed + at + 1, changed + at, length++ - at);
		else
			changed[at] ^= (char)(1 << (*seed >> 16 & 7));
	}
	send_bytes(changed, length, 3);
}

/* What the fuzzer starts from, and has found worth keeping, goes to the whole server too. */
static void send_file(const char *path, unsigned *seed)
{
	char bytes[8192];
	FILE *f = fopen(path, "rb");
	size_t length = f ? fread(bytes, 1, sizeof(bytes), f) : 0;
	CU_ASSERT_PTR_NOT_NULL(f);
	if (f)
		fclose(f);
	send_bytes(bytes, length, 50);
	for (unsigned i = 0; i < 100; i++)
		send_mutated(bytes, length, seed);
}

static void test_corpus__is_answered_with_problems(void)
{
	const char *root = getenv("DG_CORPORA");
	char path[1024];
	snprintf(path, sizeof(path), "%s/http", root ? root : "tests/fuzz/corpora");
	DIR *folder = opendir(path);
	if (!folder && !root) {
		printf("no corpus here ");
		return;
	}
	CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
	size_t count = 0;
	unsigned seed = 20260102;
	for (const struct dirent *e; (e = readdir(folder));) {
		char file[2048];
		if (e->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		send_file(file, &seed);
		count++;
	}
	closedir(folder);
	CU_ASSERT(count > 5);
	dg_test_reply reply = dg_test_ask(&gateway, "GET", "/healthz", NULL, NULL);
	CU_ASSERT_EQUAL(reply.status, 200);
	dg_test_reply_finish(&reply);
}

static void test_rubbish__is_never_an_answer_of_success(void)
{
	unsigned seed = 20260101;
	for (unsigned i = 0; i < 200; i++) {
		char bytes[300];
		size_t length = 1 + i;
		for (size_t b = 0; b < length; b++) {
			seed = seed * 1103515245 + 12345;
			bytes[b] = (char)(seed >> 16);
		}
		memcpy(bytes + length, "\r\n\r\n", 4);
		char *reply = dg_test_raw(&gateway, bytes, length + 4, 100);
		int status = status_of(reply);
		CU_ASSERT(status == 0 || (status >= 400 && status != 500));
		free(reply);
	}
	dg_test_reply reply = dg_test_ask(&gateway, "GET", "/healthz", NULL, NULL);
	CU_ASSERT_EQUAL(reply.status, 200);
	dg_test_reply_finish(&reply);
}

static void test_headers__too_many_bytes_are_431(void)
{
	char *bytes = malloc(40000);
	size_t n = (size_t)snprintf(bytes, 40000, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n");
	for (unsigned i = 0; i < 300; i++)
		n += (size_t)snprintf(bytes + n, 40000 - n, "X-%u: %s\r\n", i,
			"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			"aaaaaaaaaaaaaaaaaa");
	n += (size_t)snprintf(bytes + n, 40000 - n, "\r\n");
	char *reply = dg_test_raw(&gateway, bytes, n, 500);
	int status = status_of(reply);
	CU_ASSERT_EQUAL(status, 431);
	CU_ASSERT_PTR_NOT_NULL(strstr(reply, "headers_too_large"));
	free(reply);
	free(bytes);
}

static void test_pipelined__requests_are_answered_in_order(void)
{
	static const char bytes[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
				    "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
				    "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n";
	char *reply = dg_test_raw(&gateway, bytes, sizeof(bytes) - 1, 500);
	const char *ok = strstr(reply, "200 OK"), *missing = ok ? strstr(ok, "404") : NULL;
	CU_ASSERT_PTR_NOT_NULL(missing);
	CU_ASSERT(missing && strstr(missing, "200 OK"));
	free(reply);
}

static void test_head__has_no_body(void)
{
	static const char bytes[] =
		"HEAD /v1/devices HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	char *reply = dg_test_raw(&gateway, bytes, sizeof(bytes) - 1, 1000);
	CU_ASSERT_EQUAL(status_of(reply), 200);
	const char *end = strstr(reply, "\r\n\r\n");
	CU_ASSERT(end && end[4] == '\0');
	free(reply);
}

/* One byte now and then is no silence, and is no request either. */
static long long drip(const char *bytes, unsigned pause_ms)
{
	long long before = dg_test_now_ms();
	int fd = dg_test_connect(&gateway);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c;
	for (size_t i = 0; dg_test_now_ms() - before < 8000; i++) {
		if (bytes[i] && send(fd, bytes + i, 1, MSG_NOSIGNAL) != 1)
			break;
		i -= !bytes[i];
		if (poll(&p, 1, (int)pause_ms) > 0 && recv(fd, &c, 1, 0) <= 0)
			break;
	}
	close(fd);
	return dg_test_now_ms() - before;
}

static void test_late__is_told_so(void)
{
	static const char half[] = POST "Content-Length: 9\r\n\r\n[";
	char *reply = dg_test_raw(&gateway, half, sizeof(half) - 1, 3000);
	CU_ASSERT_EQUAL(status_of(reply), 408);
	CU_ASSERT_PTR_NOT_NULL(strstr(reply, "request_timeout"));
	free(reply);
}

static void test_slow__a_deadline_covers_the_whole_request(void)
{
	long long head = drip(
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaa",
		100);
	CU_ASSERT(head >= 1200 && head < 3500);
	long long body = drip("POST /v1/ids/encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
			      "90\r\n\r\n[[[[[[[[[",
		50);
	CU_ASSERT(body >= 1200 && body < 7500);
	long long nothing = drip("", 100);
	CU_ASSERT(nothing >= 1200 && nothing < 3500);
}

static void test_vanished_clients__leave_nothing_behind(void)
{
	static const char whole[] =
		"POST /v1/ids/encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n"
		"Content-Type: application/json\r\n\r\n[\"cpu\"]\n";
	long before_rss = 0;
	long before_fds = dg_test_descriptors(gateway.pid);
	/* The first third shows how many there are at once; from then on nothing may grow. */
	for (unsigned i = 0; i < 15000; i++) {
		int fd = dg_test_connect(&gateway);
		size_t length = 1 + i % (sizeof(whole) - 1);
		CU_ASSERT(fd >= 0);
		(void)!send(fd, whole, length, MSG_NOSIGNAL);
		close(fd);
		if (i == 5000)
			before_rss = dg_test_rss_kib(gateway.pid);
	}
	dg_test_sleep_ms(300);
	long grown = dg_test_rss_kib(gateway.pid) - before_rss;
	CU_ASSERT(grown < GROWTH_MAX_KIB);
	CU_ASSERT(dg_test_descriptors(gateway.pid) <= before_fds + 4);
	dg_test_reply reply = dg_test_ask(&gateway, "GET", "/healthz", NULL, NULL);
	CU_ASSERT_EQUAL(reply.status, 200);
	dg_test_reply_finish(&reply);
}

static void test_stop(void)
{
	int status = -1;
	/* Connections that do nothing do not hold it up. */
	int idle[3] = { dg_test_connect(&gateway), dg_test_connect(&gateway),
		dg_test_connect(&gateway) };
	CU_ASSERT(dg_test_gateway_stop(&gateway, &status) < 2500);
	CU_ASSERT_EQUAL(status, 0);
	for (size_t i = 0; i < 3; i++)
		close(idle[i]);
}

static const dg_test_case cases[] = {
	DG_TEST(test_start),
	DG_TEST(test_malformed__each_has_its_answer),
	DG_TEST(test_corpus__is_answered_with_problems),
	DG_TEST(test_rubbish__is_never_an_answer_of_success),
	DG_TEST(test_headers__too_many_bytes_are_431),
	DG_TEST(test_pipelined__requests_are_answered_in_order),
	DG_TEST(test_head__has_no_body),
	DG_TEST(test_late__is_told_so),
	DG_TEST(test_slow__a_deadline_covers_the_whole_request),
	DG_TEST(test_vanished_clients__leave_nothing_behind),
	DG_TEST(test_stop),
};

DG_TEST_MAIN("bytes that no proper client sends", cases)
