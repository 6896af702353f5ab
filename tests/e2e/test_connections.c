/* Connections of a running gateway: their order, their number, their ends. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CUnit/CUnit.h>

#include "tests/gateway.h"
#include "tests/test.h"
#include "tests/tool.h"

#define HOST "Host: localhost\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"
#define IDLE 1000
#define ASKERS 8
#define ASKED 125

static dg_test_gateway gateway;
static char *folder;

static void test_start(void)
{
	char worker[700], fake[1400];
	static const char *const args[] = { "--plain-http", "--backend", "cuda",
		"--loopback-scopes", "read,measure", "--request-timeout-ms", "3000", NULL };
	folder = dg_test_temp_dir();
	snprintf(worker, sizeof(worker), "DEVGATE_WORKER=%s",
		dg_test_built("tests/fakes/main_fake_worker"));
	snprintf(fake, sizeof(fake), "DG_FAKE=gpus=A,B,C,D,E,F,G,H;launch_ms=10;log=%s/calls",
		folder);
	const char *const env[] = { worker, fake, "DG_ENGINE_QUICK=1", NULL };
	gateway = dg_test_gateway_start(args, env);
}

/* Send, and read until the words came or the peer closed or two seconds have passed. */
static bool answers(int fd, const char *bytes, const char *words, char *buf, size_t size)
{
	size_t have = 0;
	long long until = dg_test_now_ms() + 5000;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	if (*bytes && send(fd, bytes, strlen(bytes), MSG_NOSIGNAL) != (ssize_t)strlen(bytes))
		return false;
	*buf = '\0';
	while (!strstr(buf, words) && have + 1 < size && dg_test_now_ms() < until) {
		if (poll(&p, 1, 50) <= 0)
			continue;
		ssize_t n = recv(fd, buf + have, size - 1 - have, 0);
		if (n <= 0)
			break;
		have += (size_t)n;
		buf[have] = '\0';
	}
	return strstr(buf, words) != NULL;
}

static void test_pipeline__behind_a_measurement_is_answered_after_it(void)
{
	static char buf[65536];
	static const char bytes[] =
		"POST /v1/devices/0/throughput HTTP/1.1\r\n" HOST
		"Content-Type: application/json\r\nContent-Length: 35\r\n\r\n"
		"{\"keys\":[\"launch\"], \"refresh\":true}" GET("/healthz") GET("/nothing");
	int fd = dg_test_connect(&gateway);
	CU_ASSERT(answers(fd, bytes, "not_found", buf, sizeof(buf)));
	const char *values = strstr(buf, "\"values\"");
	const char *health = strstr(buf, "{\"status\":\"ok\"}");
	CU_ASSERT(values && health && values < health);
	close(fd);
}

/* However many come before it: its turn may end just when its wait begins. */
static void test_pipeline__a_wait_behind_many_requests_is_a_wait(void)
{
	static char buf[262144], bytes[65536];
	static const char measure[] = "POST /v1/devices/0/throughput HTTP/1.1\r\n" HOST
				      "Content-Type: application/json\r\nContent-Length: 35\r\n\r\n"
				      "{\"keys\":[\"launch\"], \"refresh\":true}" GET("/nothing");
	for (unsigned count = 28; count < 48; count++) {
		size_t n = 0;
		int fd = dg_test_connect(&gateway);
		for (unsigned i = 0; i < count; i++)
			n += (size_t)snprintf(bytes + n, sizeof(bytes) - n, "%s", GET("/healthz"));
		snprintf(bytes + n, sizeof(bytes) - n, "%s", measure);
		CU_ASSERT(answers(fd, bytes, "not_found", buf, sizeof(buf)));
		CU_ASSERT_PTR_NULL(strstr(buf, "202 Accepted"));
		CU_ASSERT_PTR_NOT_NULL(strstr(buf, "\"values\""));
		close(fd);
	}
}

static void test_half_closed__peer_still_gets_its_answer(void)
{
	char buf[4096];
	int fd = dg_test_connect(&gateway);
	static const char bytes[] = GET("/healthz");
	CU_ASSERT(send(fd, bytes, sizeof(bytes) - 1, MSG_NOSIGNAL) > 0);
	CU_ASSERT_EQUAL(shutdown(fd, SHUT_WR), 0);
	CU_ASSERT(answers(fd, "", "{\"status\":\"ok\"}", buf, sizeof(buf)));
	close(fd);
}

static void test_expectation__is_met_before_the_body_comes(void)
{
	char buf[4096];
	int fd = dg_test_connect(&gateway);
	CU_ASSERT(answers(fd,
		"POST /v1/ids/encode HTTP/1.1\r\n" HOST "Content-Type: application/json\r\n"
		"Content-Length: 7\r\nExpect: 100-continue\r\n\r\n",
		"100 Continue\r\n\r\n", buf, sizeof(buf)));
	CU_ASSERT(answers(fd, "[\"cpu\"]", "\"type_id\"", buf, sizeof(buf)));
	CU_ASSERT(answers(fd, GET("/healthz"), "{\"status\":\"ok\"}", buf, sizeof(buf)));
	close(fd);
	/* What is refused anyway is not invited. */
	fd = dg_test_connect(&gateway);
	CU_ASSERT(answers(fd,
		"POST /nothing HTTP/1.1\r\n" HOST "Content-Length: 7\r\n"
		"Expect: 100-continue\r\n\r\n",
		"not_found", buf, sizeof(buf)));
	CU_ASSERT_PTR_NULL(strstr(buf, "100 Continue"));
	close(fd);
}

static void test_refused_body__keeps_the_connection(void)
{
	char buf[4096];
	int fd = dg_test_connect(&gateway);
	CU_ASSERT(answers(fd, "POST /nothing HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello",
		"not_found", buf, sizeof(buf)));
	CU_ASSERT(answers(fd,
		"POST /nothing HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
		"5\r\nhello\r\n0\r\n\r\n",
		"not_found", buf, sizeof(buf)));
	CU_ASSERT(answers(fd, GET("/healthz"), "{\"status\":\"ok\"}", buf, sizeof(buf)));
	close(fd);
}

static void test_version_1_0__is_answered_and_closed(void)
{
	char buf[4096];
	int fd = dg_test_connect(&gateway);
	CU_ASSERT(answers(fd, "GET /healthz HTTP/1.0\r\n" HOST "\r\n", "{\"status\":\"ok\"}", buf,
		sizeof(buf)));
	CU_ASSERT_PTR_NOT_NULL(strstr(buf, "Connection: close"));
	CU_ASSERT_EQUAL(recv(fd, buf, sizeof(buf), 0), 0);
	close(fd);
}

/* Answers pile up in the kernel; whoever does not read them is not waited for by the others. */
static void test_slow_reader__holds_nobody_up(void)
{
	char buf[4096];
	static const char request[] = GET("/openapi.yaml");
	int slow = dg_test_connect(&gateway);
	for (unsigned i = 0; i < 200; i++)
		if (send(slow, request, sizeof(request) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
	long long before = dg_test_now_ms();
	for (unsigned i = 0; i < 50; i++) {
		int fd = dg_test_connect(&gateway);
		CU_ASSERT(answers(fd, GET("/healthz"), "{\"status\":\"ok\"}", buf, sizeof(buf)));
		close(fd);
	}
	CU_ASSERT(dg_test_now_ms() - before < 2500);
	close(slow);
}

static void test_idle__connections_cost_little(void)
{
	static int held[IDLE];
	char buf[4096];
	struct rlimit limit;
	CU_ASSERT_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < IDLE + 100) {
		dg_test_skip("descriptors", "a thousand connections need a thousand descriptors");
		return;
	}
	long before = dg_test_rss_kib(gateway.pid);
	for (unsigned i = 0; i < IDLE; i++) {
		held[i] = dg_test_connect(&gateway);
		CU_ASSERT(
			answers(held[i], GET("/healthz"), "{\"status\":\"ok\"}", buf, sizeof(buf)));
	}
	long each = (dg_test_rss_kib(gateway.pid) - before) * 1024 / IDLE;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	CU_ASSERT(each < 32768);
#endif
	(void)each;
	/* All of them are still served. */
	for (unsigned i = 0; i < IDLE; i++) {
		CU_ASSERT(
			answers(held[i], GET("/healthz"), "{\"status\":\"ok\"}", buf, sizeof(buf)));
		close(held[i]);
	}
}

static void *ask_often(void *user)
{
	atomic_uint *good = user;
	for (unsigned i = 0; i < ASKED; i++) {
		dg_test_reply reply = dg_test_ask(&gateway, "GET", "/v1/devices", NULL, NULL);
		atomic_fetch_add(good, reply.status == 200);
		dg_test_reply_finish(&reply);
	}
	return NULL;
}

static void test_askers__start_no_driver(void)
{
	pthread_t threads[ASKERS];
	atomic_uint good = 0;
	char path[700];
	size_t length;
	for (size_t i = 0; i < ASKERS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, ask_often, &good), 0);
	for (size_t i = 0; i < ASKERS; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_EQUAL(atomic_load(&good), ASKERS * ASKED);
	snprintf(path, sizeof(path), "%s/calls", folder);
	char *calls = dg_test_read_file(path, &length);
	unsigned enumerated = 0;
	for (const char *at = calls; (at = strstr(at, "enumerate")); at++)
		enumerated++;
	/* Once to find the devices, and once by each measurement of the other cases. */
	CU_ASSERT(enumerated >= 1 && enumerated <= 25);
	free(calls);
}

static void test_limit__of_connections_is_kept(void)
{
	static const char *const args[] = { "--plain-http", "--backend", "none",
		"--max-connections", "16", NULL };
	dg_test_gateway small = dg_test_gateway_start(args, NULL);
	char buf[4096];
	int held[16], status = -1;
	for (size_t i = 0; i < 16; i++) {
		held[i] = dg_test_connect(&small);
		CU_ASSERT(
			answers(held[i], GET("/healthz"), "{\"status\":\"ok\"}", buf, sizeof(buf)));
	}
	int more = dg_test_connect(&small);
	CU_ASSERT_FALSE(answers(more, GET("/healthz"), "{\"status\":\"ok\"}", buf, sizeof(buf)));
	close(more);
	close(held[0]);
	dg_test_sleep_ms(100);
	more = dg_test_connect(&small);
	CU_ASSERT(answers(more, GET("/healthz"), "{\"status\":\"ok\"}", buf, sizeof(buf)));
	close(more);
	for (size_t i = 1; i < 16; i++)
		close(held[i]);
	(void)dg_test_gateway_stop(&small, &status);
	CU_ASSERT_EQUAL(status, 0);
}

static void test_stop__with_everything_open(void)
{
	int status = -1, open[4];
	char buf[4096];
	static const char *const async[] = { "Content-Type: application/json",
		"Prefer: respond-async", NULL };
	static const char measure[] = "POST /v1/devices/1/throughput HTTP/1.1\r\n" HOST
				      "Content-Type: application/json\r\nContent-Length: 24\r\n\r\n"
				      "{\"keys\":[\"compute:f32\"]}";
	char events[160];
	dg_test_reply job = dg_test_ask(&gateway, "POST", "/v1/devices/0/throughput", async,
		"{\"keys\":[\"compute:f32\",\"memory:read\"],\"refresh\":true}");
	CU_ASSERT_EQUAL(job.status, 202);
	snprintf(events, sizeof(events), "GET %s/events HTTP/1.1\r\n" HOST "\r\n",
		dg_test_reply_header(&job, "Location"));
	dg_test_reply_finish(&job);
	for (size_t i = 0; i < 4; i++)
		open[i] = dg_test_connect(&gateway);
	CU_ASSERT(answers(open[0], events, "event: progress", buf, sizeof(buf)));
	CU_ASSERT(send(open[1], measure, sizeof(measure) - 1, MSG_NOSIGNAL) > 0);
	CU_ASSERT(send(open[2], "GET /he", 7, MSG_NOSIGNAL) == 7);
	dg_test_sleep_ms(100);
	CU_ASSERT(dg_test_gateway_stop(&gateway, &status) < 2500);
	CU_ASSERT_EQUAL(status, 0);
	for (size_t i = 0; i < 4; i++)
		close(open[i]);
	free(folder);
}

static const dg_test_case cases[] = {
	DG_TEST(test_start),
	DG_TEST(test_pipeline__behind_a_measurement_is_answered_after_it),
	DG_TEST(test_pipeline__a_wait_behind_many_requests_is_a_wait),
	DG_TEST(test_half_closed__peer_still_gets_its_answer),
	DG_TEST(test_expectation__is_met_before_the_body_comes),
	DG_TEST(test_refused_body__keeps_the_connection),
	DG_TEST(test_version_1_0__is_answered_and_closed),
	DG_TEST(test_slow_reader__holds_nobody_up),
	DG_TEST(test_idle__connections_cost_little),
	DG_TEST(test_askers__start_no_driver),
	DG_TEST(test_limit__of_connections_is_kept),
	DG_TEST(test_stop__with_everything_open),
};

DG_TEST_MAIN("connections of a running gateway", cases)
