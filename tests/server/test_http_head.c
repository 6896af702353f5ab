/* How heads and chunks of requests are read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CUnit/CUnit.h>

#include "server/http_head.h"
#include "tests/test.h"

#define LINE "GET / HTTP/1.1\r\n"

static char text[65536];

static dg_err read_head(const char *head, dg__head *ret_head, dg_error *why)
{
	snprintf(text, sizeof(text), "%s", head);
	size_t length = dg__head_end(text, strlen(text), 0);
	CU_ASSERT(length > 0);
	return dg__head_read(text, length, ret_head, why);
}

static void test_head__is_taken_apart(void)
{
	dg__head head;
	dg_error why;
	dg_err err =
		read_head("POST /v1/x?y=1 HTTP/1.1\r\nHost: a\r\nX-Empty:\r\nX-Blank:  b c \t\r\n"
			  "content-length: 12\r\n\r\nbody",
			&head, &why);
	CU_ASSERT_EQUAL(err, DG_OK);
	CU_ASSERT_STRING_EQUAL(head.method, "POST");
	CU_ASSERT_STRING_EQUAL(head.target, "/v1/x?y=1");
	CU_ASSERT_EQUAL(head.field_count, 4);
	CU_ASSERT_STRING_EQUAL(dg__head_field(&head, "host"), "a");
	CU_ASSERT_STRING_EQUAL(dg__head_field(&head, "x-empty"), "");
	CU_ASSERT_STRING_EQUAL(dg__head_field(&head, "X-BLANK"), "b c");
	CU_ASSERT_PTR_NULL(dg__head_field(&head, "Hos"));
	CU_ASSERT(head.has_length && head.length == 12);
	CU_ASSERT(head.keep && !head.chunked && !head.expects);
	CU_ASSERT_EQUAL(head.minor, 1);
}

static void test_head__says_what_becomes_of_the_connection(void)
{
	static const struct {
		const char *head;
		bool keep, expects, chunked;
	} cases[] = {
		{ LINE "\r\n", true, false, false },
		{ LINE "Connection: keep-alive\r\n\r\n", true, false, false },
		{ LINE "Connection: Close\r\n\r\n", false, false, false },
		{ LINE "Connection: upgrade, close\r\n\r\n", false, false, false },
		{ LINE "Connection: closed\r\n\r\n", true, false, false },
		{ LINE "Connection: x\r\nConnection: close\r\n\r\n", false, false, false },
		{ "GET / HTTP/1.0\r\n\r\n", false, false, false },
		{ "GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n", false, false, false },
		{ LINE "Expect: 100-Continue\r\n\r\n", true, true, false },
		{ LINE "Transfer-Encoding: Chunked\r\n\r\n", true, false, true },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		dg__head head;
		dg_error why;
		CU_ASSERT_EQUAL(read_head(cases[i].head, &head, &why), DG_OK);
		CU_ASSERT_EQUAL(head.keep, cases[i].keep);
		CU_ASSERT_EQUAL(head.expects, cases[i].expects);
		CU_ASSERT_EQUAL(head.chunked, cases[i].chunked);
	}
}

static void test_head__what_two_readers_could_differ_on_is_refused(void)
{
	static const struct {
		const char *head;
		dg_err err;
		const char *says;
	} cases[] = {
		{ "GET /\r\n\r\n", DG_EBADREQUEST, "request line" },
		{ "GET  / HTTP/1.1\r\n\r\n", DG_EBADREQUEST, "request line" },
		{ "GET / / HTTP/1.1\r\n\r\n", DG_EBADREQUEST, "request line" },
		{ "GET\t/ HTTP/1.1\r\n\r\n", DG_EBADREQUEST, "request line" },
		{ " GET / HTTP/1.1\r\n\r\n", DG_EBADREQUEST, "method" },
		{ "G(T / HTTP/1.1\r\n\r\n", DG_EBADREQUEST, "method" },
		{ "GET /\x7f HTTP/1.1\r\n\r\n", DG_EBADREQUEST, "request line" },
		{ "GET / http/1.1\r\n\r\n", DG_EBADREQUEST, "request line" },
		{ "GET / HTTP/1.1 \r\n\r\n", DG_EBADREQUEST, "request line" },
		{ "GET / HTTP/1.10\r\n\r\n", DG_EBADREQUEST, "request line" },
		{ "GET / HTTP/2.0\r\n\r\n", DG_EHTTPVERSION, "HTTP/1.1" },
		{ "GET / HTTP/0.9\r\n\r\n", DG_EHTTPVERSION, "HTTP/1.1" },
		{ "GET / HTTP/1.1\n\n", DG_EBADREQUEST, "CR LF" },
		{ LINE "A: b\n\n", DG_EBADREQUEST, "CR LF" },
		{ LINE "A: b\n\r\n", DG_EBADREQUEST, "CR LF" },
		{ LINE "A: b\rc\r\n\r\n", DG_EBADREQUEST, "control" },
		{ LINE "A : b\r\n\r\n", DG_EBADREQUEST, "colon" },
		{ LINE "A\r\n\r\n", DG_EBADREQUEST, "colon" },
		{ LINE ": b\r\n\r\n", DG_EBADREQUEST, "name" },
		{ LINE "A: b\r\n c\r\n\r\n", DG_EBADREQUEST, "continued" },
		{ LINE " A: b\r\n\r\n", DG_EBADREQUEST, "continued" },
		{ LINE "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", DG_EBADREQUEST, "twice" },
		{ LINE "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", DG_EBADREQUEST,
			"twice" },
		{ LINE "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
			DG_EBADREQUEST, "twice" },
		{ LINE "Content-Length: -1\r\n\r\n", DG_EBADREQUEST, "number" },
		{ LINE "Content-Length: +1\r\n\r\n", DG_EBADREQUEST, "number" },
		{ LINE "Content-Length: 1, 1\r\n\r\n", DG_EBADREQUEST, "number" },
		{ LINE "Content-Length:\r\n\r\n", DG_EBADREQUEST, "number" },
		{ LINE "Content-Length: 1000000000000000000\r\n\r\n", DG_ETOOLARGE, "large" },
		{ LINE "Transfer-Encoding: gzip, chunked\r\n\r\n", DG_ENOTSUP, "gzip" },
		{ LINE "Transfer-Encoding: \r\n\r\n", DG_ENOTSUP, "chunked" },
		{ "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", DG_EBADREQUEST,
			"HTTP/1.0" },
		{ LINE "Expect: tea\r\n\r\n", DG_EEXPECTATION, "tea" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		dg__head head;
		dg_error why = { .code = DG_OK };
		dg_err err = read_head(cases[i].head, &head, &why);
		if (err != cases[i].err || !strstr(why.text, cases[i].says))
			printf("\n    case %zu: %s: %s\n", i, dg_err_code(err), why.text);
		CU_ASSERT_EQUAL(err, cases[i].err);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, cases[i].says));
	}
}

static void test_head__a_nul_is_refused_wherever_it_stands(void)
{
	static const char whole[] = "GET /abc HTTP/1.1\r\nHost: abc\r\n\r\n";
	for (size_t i = 0; i + 4 < sizeof(whole) - 1; i++) {
		dg__head head;
		dg_error why;
		memcpy(text, whole, sizeof(whole));
		if (text[i] == '\r' || text[i] == '\n')
			continue;
		text[i] = '\0';
		CU_ASSERT_EQUAL(
			dg__head_read(text, sizeof(whole) - 1, &head, &why), DG_EBADREQUEST);
	}
}

static void test_head_end__is_found_however_the_bytes_come(void)
{
	static const char whole[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
	size_t head = strlen(whole) - 4;
	for (size_t step = 1; step <= 8; step++) {
		size_t seen = 0, end = 0, have = 0;
		while (end == 0 && have < strlen(whole)) {
			have += step;
			have = have < strlen(whole) ? have : strlen(whole);
			end = dg__head_end(whole, have, seen);
			CU_ASSERT(end == 0 || have >= head);
			seen = have;
		}
		CU_ASSERT_EQUAL(end, head);
	}
}

static void test_head__has_limits(void)
{
	dg__head head;
	dg_error why;
	size_t n = (size_t)snprintf(text, sizeof(text), "GET /");
	memset(text + n, 'a', DG__TARGET_MAX);
	memcpy(text + n + DG__TARGET_MAX, " HTTP/1.1\r\n\r\n", 14);
	CU_ASSERT_EQUAL(dg__head_read(text, strlen(text), &head, &why), DG_EURITOOLONG);
	n = (size_t)snprintf(text, sizeof(text), LINE);
	for (unsigned i = 0; i <= DG__FIELDS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "A: b\r\n");
	snprintf(text + n, sizeof(text) - n, "\r\n");
	CU_ASSERT_EQUAL(dg__head_read(text, strlen(text), &head, &why), DG_EHEADERS);
	/* Also before they have ended. */
	memset(text, 'a', sizeof(text));
	CU_ASSERT_EQUAL(dg__head_room(text, DG__TARGET_MAX, &why), DG_OK);
	CU_ASSERT_EQUAL(dg__head_room(text, DG__TARGET_MAX + 100, &why), DG_EURITOOLONG);
	memcpy(text, LINE, strlen(LINE));
	CU_ASSERT_EQUAL(dg__head_room(text, DG__HEADERS_MAX, &why), DG_OK);
	CU_ASSERT_EQUAL(dg__head_room(text, DG__HEADERS_MAX + 100, &why), DG_EHEADERS);
}

static void test_room__tls_is_recognised(void)
{
	dg_error why;
	CU_ASSERT_EQUAL(dg__head_room("\x16\x03\x01", 3, &why), DG_EBADREQUEST);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "TLS"));
}

/* Take a body in pieces of `step` bytes; what came out of it, or NULL. */
static char *take_chunks(const char *body, size_t step, size_t *ret_used)
{
	static char out[1024];
	dg__chunks chunks = { 0 };
	dg_error why;
	size_t have = 0, at = 0, all = strlen(body);
	while (at < all && !chunks.ended) {
		char piece[64];
		size_t length = all - at < step ? all - at : step, used;
		memcpy(piece, body + at, length);
		if (dg__chunks_take(&chunks, piece, &length, &used, &why) != DG_OK)
			return NULL;
		memcpy(out + have, piece, length);
		have += length;
		at += used;
	}
	out[have] = '\0';
	*ret_used = at;
	return chunks.ended ? out : NULL;
}

static void test_chunks__give_the_body_however_they_come(void)
{
	static const char body[] = "3\r\nabc\r\n00A;name=\"v\"\r\n0123456789\r\n1 \r\nz\r\n0\r\n"
				   "Trailer: x\r\n\r\nNEXT";
	for (size_t step = 1; step < 64; step++) {
		size_t used = 0;
		const char *out = take_chunks(body, step, &used);
		CU_ASSERT(out && strcmp(out, "abc0123456789z") == 0);
		CU_ASSERT_EQUAL(used, strlen(body) - 4);
	}
}

static void test_chunks__malformed_ones_are_refused(void)
{
	static const char *const bodies[] = {
		"\r\n",
		"g\r\n",
		"-1\r\n",
		"0x1\r\na\r\n",
		" 1\r\na\r\n",
		";\r\n",
		"1\na\r\n0\r\n\r\n",
		"1\r\nab\r\n",
		"1\r\na\n0\r\n\r\n",
		"1\r\na0\r\n\r\n",
		"ffffffffffffffff\r\n",
		"1;\x01\r\na\r\n",
		"0\r\nA: b\n\r\n",
		"0\r\n\n",
		"0\r\n\rx\r\n",
	};
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		for (size_t step = 1; step < 20; step += 18) {
			dg__chunks chunks = { 0 };
			dg_error why;
			dg_err err = DG_OK;
			for (size_t at = 0; at < strlen(bodies[i]) && err == DG_OK;) {
				char piece[64];
				size_t length = strlen(bodies[i]) - at, used = 1;
				length = length < step ? length : step;
				memcpy(piece, bodies[i] + at, length);
				err = dg__chunks_take(&chunks, piece, &length, &used, &why);
				at += used;
			}
			if (err != DG_EBADREQUEST)
				printf("\n    body %zu was taken\n", i);
			CU_ASSERT_EQUAL(err, DG_EBADREQUEST);
		}
}

static const dg_test_case cases[] = {
	DG_TEST(test_head__is_taken_apart),
	DG_TEST(test_head__says_what_becomes_of_the_connection),
	DG_TEST(test_head__what_two_readers_could_differ_on_is_refused),
	DG_TEST(test_head__a_nul_is_refused_wherever_it_stands),
	DG_TEST(test_head_end__is_found_however_the_bytes_come),
	DG_TEST(test_head__has_limits),
	DG_TEST(test_room__tls_is_recognised),
	DG_TEST(test_chunks__give_the_body_however_they_come),
	DG_TEST(test_chunks__malformed_ones_are_refused),
};

DG_TEST_MAIN("heads and chunks of requests", cases)
