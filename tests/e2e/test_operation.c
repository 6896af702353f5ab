/* A gateway as its operator runs it: configuration, tokens, faults, ends. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CUnit/CUnit.h>
#include <jansson.h>
#include <pthread.h>

#include "tests/gateway.h"
#include "tests/test.h"

static const char measure_long[] =
	"{\"keys\":[\"compute:f32\",\"compute:f64\",\"compute:i32\",\"compute:i64\",\"compute:"
	"i16\","
	"\"memory\",\"memory:read\",\"memory:write\"],\"refresh\":true,\"sustained\":true}";
static const char *const as_json[] = { "Content-Type: application/json", NULL };

static void expect_refusal(const char *const *args, const char *phrase)
{
	char said[2048];
	int status = dg_test_gateway_run(args, NULL, said, sizeof(said));
	if (status != 2 || !strstr(said, phrase))
		printf("\n    status %d, expected 2 and '%s': %s\n", status, phrase, said);
	CU_ASSERT_EQUAL(status, 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, phrase));
}

static void test_configuration__wrong_values_are_refused_at_start(void)
{
	static const char *const open[] = { "bare", "--ephemeral", "--listen", "0.0.0.0:0", NULL };
	static const char *const plain[] = { "bare", "--ephemeral", "--listen", "0.0.0.0:0",
		"--plain-http", "--no-auth", NULL };
	static const char *const unknown[] = { "bare", "--ephemeral", "--lisen", "x", NULL };
	static const char *const address[] = { "bare", "--ephemeral", "--listen", "nowhere:1",
		NULL };
	static const char *const port[] = { "bare", "--ephemeral", "--listen", "127.0.0.1:99999",
		NULL };
	static const char *const number[] = { "bare", "--ephemeral", "--max-queue", "many", NULL };
	static const char *const scope[] = { "bare", "--ephemeral", "--loopback-scopes", "write",
		NULL };
	static const char *const half[] = { "bare", "--ephemeral", "--cert", "/nowhere", NULL };
	static const char *const operand[] = { "bare", "--ephemeral", "serve", NULL };
	expect_refusal(open, "--no-auth");
	expect_refusal(plain, "loopback");
	expect_refusal(unknown, "did you mean 'listen'");
	expect_refusal(address, "ADDRESS:PORT");
	expect_refusal(port, "ADDRESS:PORT");
	expect_refusal(number, "1 to 10000");
	expect_refusal(scope, "write");
	expect_refusal(half, "--key");
	expect_refusal(operand, "serve");
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CU_ASSERT(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void test_file__faults_name_line_and_expectation(void)
{
	char *directory = dg_test_temp_dir(), path[512];
	snprintf(path, sizeof(path), "%s/devgated.conf", directory);
	const char *const args[] = { "bare", "--config", path, "--check-config", NULL };
	write_file(path, "[devgated]\nephemeral = true\nmax-queue = 0\n");
	expect_refusal(args, "line 3");
	write_file(path, "ephemeral = true\nlisten\n");
	expect_refusal(args, "line 2");
	write_file(path, "ephemeral = true\n[elsewhere]\nlisten = 127.0.0.1:1\n");
	expect_refusal(args, "[elsewhere]");
	write_file(
		path, "; a comment\n[devgated]\nephemeral = yes\nlisten = 127.0.0.1:0, [::1]:0\n");
	char said[512];
	CU_ASSERT_EQUAL(dg_test_gateway_run(args, NULL, said, sizeof(said)), 0);
	free(directory);
}

static void test_variables__are_read_below_flags(void)
{
	static const char *const env[] = { "DEVGATE_MAX_QUEUE=none", NULL };
	static const char *const args[] = { "bare", "--ephemeral", "--check-config", NULL };
	char said[1024];
	CU_ASSERT_EQUAL(dg_test_gateway_run(args, env, said, sizeof(said)), 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "DEVGATE_MAX_QUEUE"));
}

static void test_state__damaged_newer_and_unwritable_are_told_apart(void)
{
	char *directory = dg_test_temp_dir(), path[512], said[2048];
	const char *const args[] = { "bare", "--state-dir", directory, "--check-config", NULL };
	snprintf(path, sizeof(path), "%s/state.db", directory);
	write_file(path,
		"this is no database, but long enough to be taken for one at a first glance......."
		"................................................................................");
	CU_ASSERT_EQUAL(dg_test_gateway_run(args, NULL, said, sizeof(said)), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "move the damaged file"));
	const char *const nowhere[] = { "bare", "--state-dir", "/proc/nowhere", "--check-config",
		NULL };
	CU_ASSERT_EQUAL(dg_test_gateway_run(nowhere, NULL, said, sizeof(said)), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "/proc/nowhere"));
	free(directory);
}

static void make_token(
	const char *directory, const char *name, const char *scopes, char *token, size_t size)
{
	const char *const args[] = { "bare", "token", "create", "--name", name, "--scopes", scopes,
		"--state-dir", directory, NULL };
	CU_ASSERT_EQUAL(dg_test_gateway_run(args, NULL, token, size), 0);
	token[strcspn(token, "\n")] = '\0';
	CU_ASSERT(strncmp(token, "dgt_", 4) == 0 && strlen(token) > 40);
}

static int ask_as(const dg_test_gateway *g, const char *token, const char *method, const char *path,
	const char *body)
{
	char header[160];
	snprintf(header, sizeof(header), "Authorization: Bearer %s", token);
	const char *const headers[] = { header, "Content-Type: application/json", NULL };
	dg_test_reply reply = dg_test_ask(g, method, path, headers, body);
	int status = reply.status;
	dg_test_reply_finish(&reply);
	return status;
}

/* Not in the state either, which keeps hashes. */
static bool is_nowhere(const char *directory, const char *secret)
{
	static const char *const files[] = { "state.db", "state.db-wal" };
	bool found = false;
	for (size_t i = 0; i < 2; i++) {
		char path[600];
		size_t length = 0;
		snprintf(path, sizeof(path), "%s/%s", directory, files[i]);
		char *bytes = dg_test_read_file(path, &length);
		CU_ASSERT(length > 0);
		found = found || memmem(bytes, length, secret, strlen(secret));
		free(bytes);
	}
	return !found;
}

static void test_tokens__scopes_and_revocation_while_running(void)
{
	char *directory = dg_test_temp_dir(), reader[128], measurer[128];
	make_token(directory, "reader", "read", reader, sizeof(reader));
	const char *const args[] = { "bare", "--state-dir", directory, "--listen", "127.0.0.1:0",
		"--print-ready", "--loopback-scopes", "", NULL };
	dg_test_gateway g = dg_test_gateway_start(args, NULL);
	dg_test_reply reply = dg_test_ask(&g, "GET", "/v1/devices", NULL, NULL);
	CU_ASSERT_EQUAL(reply.status, 401);
	CU_ASSERT_PTR_NOT_NULL(dg_test_reply_header(&reply, "WWW-Authenticate"));
	dg_test_reply_finish(&reply);
	CU_ASSERT_EQUAL(ask_as(&g, reader, "GET", "/v1/devices", NULL), 200);
	CU_ASSERT_EQUAL(
		ask_as(&g, reader, "POST", "/v1/devices/cpu/throughput", "{\"keys\":[\"launch\"]}"),
		403);
	CU_ASSERT_EQUAL(ask_as(&g, reader, "POST", "/v1/devices/cpu/roofline",
				"{\"flops\":1,\"bytes\":1,\"dtype\":\"f32\"}"),
		409);
	make_token(directory, "measurer", "read,measure", measurer, sizeof(measurer));
	dg_test_sleep_ms(1200);
	CU_ASSERT_EQUAL(ask_as(&g, measurer, "POST", "/v1/devices/cpu/throughput",
				"{\"keys\":[\"launch\"]}"),
		200);
	const char *const revoke[] = { "bare", "token", "revoke", "reader", "--state-dir",
		directory, NULL };
	char said[512];
	CU_ASSERT_EQUAL(dg_test_gateway_run(revoke, NULL, said, sizeof(said)), 0);
	dg_test_sleep_ms(1200);
	CU_ASSERT_EQUAL(ask_as(&g, reader, "GET", "/v1/devices", NULL), 401);
	CU_ASSERT_EQUAL(ask_as(&g, measurer, "GET", "/v1/devices", NULL), 200);
	char *log = dg_test_read_file(g.log, NULL);
	CU_ASSERT_PTR_NULL(strstr(log, reader));
	CU_ASSERT_PTR_NULL(strstr(log, measurer));
	free(log);
	CU_ASSERT(is_nowhere(directory, reader) && is_nowhere(directory, measurer));
	dg_test_gateway_stop(&g, NULL);
	free(directory);
}

static void test_jobs__are_seen_by_their_creator_alone(void)
{
	char *directory = dg_test_temp_dir(), one[128], other[128], admin[128], path[128] = "";
	make_token(directory, "one", "read,measure", one, sizeof(one));
	make_token(directory, "other", "read,measure", other, sizeof(other));
	make_token(directory, "admin", "admin", admin, sizeof(admin));
	const char *const args[] = { "bare", "--state-dir", directory, "--listen", "127.0.0.1:0",
		"--print-ready", NULL };
	dg_test_gateway g = dg_test_gateway_start(args, NULL);
	char header[160];
	snprintf(header, sizeof(header), "Authorization: Bearer %s", one);
	const char *const headers[] = { header, "Content-Type: application/json",
		"Prefer: respond-async", NULL };
	dg_test_reply reply =
		dg_test_ask(&g, "POST", "/v1/devices/cpu/throughput", headers, measure_long);
	CU_ASSERT_EQUAL(reply.status, 202);
	const char *location = dg_test_reply_header(&reply, "Location");
	snprintf(path, sizeof(path), "%s", location ? location : "");
	dg_test_reply_finish(&reply);
	CU_ASSERT_EQUAL(ask_as(&g, other, "GET", path, NULL), 404);
	CU_ASSERT_EQUAL(ask_as(&g, other, "DELETE", path, NULL), 404);
	CU_ASSERT_EQUAL(ask_as(&g, one, "GET", path, NULL), 200);
	CU_ASSERT_EQUAL(ask_as(&g, admin, "DELETE", path, NULL), 200);
	dg_test_gateway_stop(&g, NULL);
	free(directory);
}

static void test_values_and_ids__stay_over_a_restart(void)
{
	char *directory = dg_test_temp_dir();
	const char *const args[] = { "bare", "--state-dir", directory, "--listen", "127.0.0.1:0",
		"--print-ready", "--loopback-scopes", "read,measure", NULL };
	dg_test_gateway g = dg_test_gateway_start(args, NULL);
	char pin[80];
	snprintf(pin, sizeof(pin), "%s", g.pin);
	dg_test_reply reply = dg_test_ask(
		&g, "POST", "/v1/devices/cpu/throughput", as_json, "{\"keys\":[\"compute:f32\"]}");
	CU_ASSERT_EQUAL(reply.status, 200);
	dg_test_reply_finish(&reply);
	CU_ASSERT_EQUAL(kill(g.pid, SIGKILL), 0);
	dg_test_gateway_stop(&g, NULL);
	g = dg_test_gateway_start(args, NULL);
	CU_ASSERT_STRING_EQUAL(g.pin, pin);
	reply = dg_test_ask(&g, "GET", "/v1/devices/0/throughput", NULL, NULL);
	CU_ASSERT_EQUAL(reply.status, 200);
	CU_ASSERT_PTR_NOT_NULL(strstr(reply.body, "\"name\":\"compute:f32\""));
	dg_test_reply_finish(&reply);
	dg_test_gateway_stop(&g, NULL);
	free(directory);
}

typedef struct question {
	const dg_test_gateway *gateway;
	const char *body;
	int status;
	char said[2048];
	long long elapsed_ms;
} question;

static void *ask_in_thread(void *user)
{
	question *q = user;
	dg_test_reply reply =
		dg_test_ask(q->gateway, "POST", "/v1/devices/cpu/throughput", as_json, q->body);
	q->status = reply.status;
	q->elapsed_ms = reply.elapsed_ms;
	snprintf(q->said, sizeof(q->said), "%s", reply.body);
	dg_test_reply_finish(&reply);
	return NULL;
}

static pid_t wait_for_worker(const dg_test_gateway *g)
{
	pid_t worker = 0;
	for (unsigned i = 0; i < 2000 && !worker; i++) {
		dg_test_sleep_ms(5);
		worker = dg_test_child_of(g->pid, "--backend cpu");
	}
	return worker;
}

static void test_worker__killed_in_a_measurement_costs_that_request_only(void)
{
	dg_test_gateway g = dg_test_gateway_start(NULL, NULL);
	question q = { &g, measure_long, 0, "", 0 };
	pthread_t thread;
	pthread_create(&thread, NULL, ask_in_thread, &q);
	pid_t worker = wait_for_worker(&g);
	CU_ASSERT(worker > 0);
	dg_test_sleep_ms(300);
	CU_ASSERT_EQUAL(kill(worker, SIGKILL), 0);
	dg_test_reply health = dg_test_ask(&g, "GET", "/healthz", NULL, NULL);
	CU_ASSERT_EQUAL(health.status, 200);
	dg_test_reply_finish(&health);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(q.status, 503);
	CU_ASSERT_PTR_NOT_NULL(strstr(q.said, "\"worker_died\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(q.said, "signal 9"));
	dg_test_reply next = dg_test_ask(&g, "POST", "/v1/devices/cpu/throughput", as_json,
		"{\"keys\":[\"launch\"],\"refresh\":true}");
	CU_ASSERT_EQUAL(next.status, 200);
	CU_ASSERT_PTR_NOT_NULL(strstr(next.body, "\"status\":\"ok\""));
	dg_test_reply_finish(&next);
	dg_test_reply list = dg_test_ask(&g, "GET", "/v1/devices?state=ok", NULL, NULL);
	CU_ASSERT_PTR_NOT_NULL(strstr(list.body, "\"device\":\"cpu\""));
	dg_test_reply_finish(&list);
	dg_test_gateway_stop(&g, NULL);
}

static void test_equal_requests__share_one_run(void)
{
	dg_test_gateway g = dg_test_gateway_start(NULL, NULL);
	question q[3];
	pthread_t thread[3];
	long long before = dg_test_now_ms();
	for (unsigned i = 0; i < 3; i++) {
		q[i] = (question){ &g,
			"{\"keys\":[\"compute:f32\",\"compute:f64\"],\"refresh\":true,"
			"\"sustained\":true}",
			0, "", 0 };
		pthread_create(&thread[i], NULL, ask_in_thread, &q[i]);
	}
	for (unsigned i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(q[i].status, 200);
		/* One run's figures, to the last digit. */
		CU_ASSERT_STRING_EQUAL(q[i].said, q[0].said);
	}
	printf("(%lld ms) ", dg_test_now_ms() - before);
	dg_test_gateway_stop(&g, NULL);
}

static void test_sigterm__ends_within_two_seconds_while_measuring(void)
{
	dg_test_gateway g = dg_test_gateway_start(NULL, NULL);
	question q = { &g, measure_long, 0, "", 0 };
	pthread_t thread;
	pthread_create(&thread, NULL, ask_in_thread, &q);
	pid_t worker = wait_for_worker(&g);
	dg_test_sleep_ms(200);
	int status = -1;
	CU_ASSERT(dg_test_gateway_stop(&g, &status) < 2800);
	CU_ASSERT_EQUAL(status, 0);
	pthread_join(thread, NULL);
	CU_ASSERT(q.status == 0 || q.status >= 400);
	CU_ASSERT(worker > 0 && dg_test_ends_within(worker, 5000));
}

static void test_sigkill__leaves_no_worker(void)
{
	dg_test_gateway g = dg_test_gateway_start(NULL, NULL);
	question q = { &g, measure_long, 0, "", 0 };
	pthread_t thread;
	pthread_create(&thread, NULL, ask_in_thread, &q);
	pid_t worker = wait_for_worker(&g);
	dg_test_sleep_ms(200);
	kill(g.pid, SIGKILL);
	dg_test_gateway_stop(&g, NULL);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(q.status, 0);
	CU_ASSERT(worker > 0 && dg_test_ends_within(worker, 5000));
}

static void test_sighup__keeps_the_last_good_certificate(void)
{
	char *directory = dg_test_temp_dir(), cert[512], key[512], made[1600];
	snprintf(cert, sizeof(cert), "%s/cert.pem", directory);
	snprintf(key, sizeof(key), "%s/key.pem", directory);
	snprintf(made, sizeof(made),
		"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
		"-subj /CN=a "
		"-keyout %s -out %s 2>/dev/null",
		key, cert);
	if (system(made) != 0) {
		dg_test_skip("openssl", "the openssl program is needed to make certificates");
		free(directory);
		return;
	}
	const char *const args[] = { "--cert", cert, "--key", key, NULL };
	dg_test_gateway g = dg_test_gateway_start(args, NULL);
	write_file(cert, "-----BEGIN CERTIFICATE-----\nhalf");
	kill(g.pid, SIGHUP);
	dg_test_sleep_ms(300);
	dg_test_reply reply = dg_test_ask(&g, "GET", "/healthz", NULL, NULL);
	CU_ASSERT_EQUAL(reply.status, 200);
	dg_test_reply_finish(&reply);
	CU_ASSERT_EQUAL(system(made), 0);
	kill(g.pid, SIGHUP);
	dg_test_sleep_ms(500);
	/* A new key has a new pin: the old one is refused, which is what a reload is for. */
	reply = dg_test_ask(&g, "GET", "/healthz", NULL, NULL);
	CU_ASSERT_EQUAL(reply.status, 0);
	dg_test_reply_finish(&reply);
	*g.pin = '\0';
	dg_test_gateway_stop(&g, NULL);
	free(directory);
}

static void test_backend_none__starts_no_worker(void)
{
	static const char *const args[] = { "--backend", "none", NULL };
	dg_test_gateway g = dg_test_gateway_start(args, NULL);
	dg_test_reply reply = dg_test_ask(&g, "GET", "/v1/devices", NULL, NULL);
	CU_ASSERT_STRING_EQUAL(reply.body, "{\"devices\":[],\"detecting\":[]}");
	dg_test_reply_finish(&reply);
	CU_ASSERT_EQUAL(dg_test_child_of(g.pid, "--backend"), 0);
	dg_test_gateway_stop(&g, NULL);
}

static const dg_test_case cases[] = {
	DG_TEST(test_configuration__wrong_values_are_refused_at_start),
	DG_TEST(test_file__faults_name_line_and_expectation),
	DG_TEST(test_variables__are_read_below_flags),
	DG_TEST(test_state__damaged_newer_and_unwritable_are_told_apart),
	DG_TEST(test_tokens__scopes_and_revocation_while_running),
	DG_TEST(test_jobs__are_seen_by_their_creator_alone),
	DG_TEST(test_values_and_ids__stay_over_a_restart),
	DG_TEST(test_worker__killed_in_a_measurement_costs_that_request_only),
	DG_TEST(test_equal_requests__share_one_run),
	DG_TEST(test_sigterm__ends_within_two_seconds_while_measuring),
	DG_TEST(test_sigkill__leaves_no_worker),
	DG_TEST(test_sighup__keeps_the_last_good_certificate),
	DG_TEST(test_backend_none__starts_no_worker),
};

DG_TEST_MAIN("a gateway as its operator runs it", cases)
