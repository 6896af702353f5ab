/* Leases over REST: who has one measures, who has none does not. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CUnit/CUnit.h>

#include "tests/gateway.h"
#include "tests/test.h"

#define LEASE "/v1/devices/cpu/lease"
#define MEASURE "/v1/devices/cpu/throughput"
#define KEY "{\"keys\":[\"launch\"],\"refresh\":true}"

static dg_test_gateway gateway;

static void test_start(void)
{
	static const char *const args[] = { "--plain-http", "--backend", "cpu", "--loopback-scopes",
		"read,measure,lease", NULL };
	static const char *const env[] = { "DG_ENGINE_QUICK=1", NULL };
	gateway = dg_test_gateway_start(args, env);
}

/* Ask, presenting a lease where there is one; the status. The reply's body in buf. */
static int ask(const char *method, const char *path, const char *lease, const char *body, char *buf,
	size_t size)
{
	char header[80];
	snprintf(header, sizeof(header), "Devgate-Lease: %s", lease ? lease : "");
	const char *const headers[] = { "Content-Type: application/json", lease ? header : NULL,
		NULL };
	dg_test_reply reply = dg_test_ask(&gateway, method, path, headers, body);
	int status = reply.status;
	snprintf(buf, size, "%s", reply.body);
	dg_test_reply_finish(&reply);
	return status;
}

static bool read_id(const char *body, char id[33])
{
	const char *at = strstr(body, "\"lease\":\"");
	if (!at || strspn(at + 9, "0123456789abcdef") != 32)
		return false;
	memcpy(id, at + 9, 32);
	id[32] = '\0';
	return true;
}

static void test_lease__is_taken_shown_renewed_and_given_back(void)
{
	char body[1024], id[33];
	CU_ASSERT_EQUAL(ask("GET", LEASE, NULL, NULL, body, sizeof(body)), 404);
	CU_ASSERT_PTR_NOT_NULL(strstr(body, "no_such_lease"));
	CU_ASSERT_EQUAL(ask("POST", LEASE, NULL, "{\"ttl_s\":30}", body, sizeof(body)), 201);
	CU_ASSERT_FATAL(read_id(body, id));
	CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"holder\":\"loopback\""));
	CU_ASSERT_EQUAL(ask("POST", LEASE, NULL, "{}", body, sizeof(body)), 409);
	CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"leased\""));
	CU_ASSERT_PTR_NULL(strstr(body, id));
	CU_ASSERT_EQUAL(ask("GET", LEASE, NULL, NULL, body, sizeof(body)), 200);
	CU_ASSERT_PTR_NULL(strstr(body, id));
	CU_ASSERT_EQUAL(ask("PUT", LEASE, NULL, "{}", body, sizeof(body)), 400);
	CU_ASSERT_EQUAL(ask("PUT", LEASE, "no", "{}", body, sizeof(body)), 404);
	CU_ASSERT_EQUAL(ask("PUT", LEASE, id, "{\"ttl_s\":90}", body, sizeof(body)), 200);
	CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"ttl_s\":90"));
	CU_ASSERT_EQUAL(ask("DELETE", LEASE, "no", NULL, body, sizeof(body)), 404);
	CU_ASSERT_EQUAL(ask("DELETE", LEASE, id, NULL, body, sizeof(body)), 200);
	CU_ASSERT_EQUAL(ask("DELETE", LEASE, id, NULL, body, sizeof(body)), 404);
}

static void test_time_to_live__has_limits(void)
{
	static const char *const bodies[] = { "{\"ttl_s\":0}", "{\"ttl_s\":-1}",
		"{\"ttl_s\":86401}", "{\"ttl_s\":1.5}", "{\"ttl_s\":\"60\"}", "[]", "{" };
	char body[1024];
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		CU_ASSERT_EQUAL(ask("POST", LEASE, NULL, bodies[i], body, sizeof(body)), 400);
	CU_ASSERT_EQUAL(ask("GET", LEASE, NULL, NULL, body, sizeof(body)), 404);
}

static void test_devices__without_hardware_are_not_leased(void)
{
	char body[1024];
	CU_ASSERT_EQUAL(ask("POST", "/v1/devices/flex/lease", NULL, "{}", body, sizeof(body)), 404);
	CU_ASSERT_EQUAL(
		ask("POST", "/v1/devices/cuda:7/lease", NULL, "{}", body, sizeof(body)), 404);
}

static void test_measuring__is_for_the_holder(void)
{
	char body[8192], id[33];
	CU_ASSERT_EQUAL(ask("POST", MEASURE, NULL, KEY, body, sizeof(body)), 200);
	CU_ASSERT_EQUAL(ask("POST", LEASE, NULL, NULL, body, sizeof(body)), 201);
	CU_ASSERT_FATAL(read_id(body, id));
	CU_ASSERT_EQUAL(ask("POST", MEASURE, NULL, KEY, body, sizeof(body)), 409);
	CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"leased\""));
	CU_ASSERT_EQUAL(ask("POST", MEASURE, "no", KEY, body, sizeof(body)), 409);
	CU_ASSERT_EQUAL(ask("POST", MEASURE, id, KEY, body, sizeof(body)), 200);
	/* What is measured already disturbs nobody. */
	CU_ASSERT_EQUAL(ask("GET", MEASURE, NULL, NULL, body, sizeof(body)), 200);
	CU_ASSERT_EQUAL(ask("DELETE", LEASE, id, NULL, body, sizeof(body)), 200);
	CU_ASSERT_EQUAL(ask("POST", MEASURE, NULL, KEY, body, sizeof(body)), 200);
}

static void test_measuring__keeps_a_lease_from_being_taken(void)
{
	static const char *const async[] = { "Prefer: respond-async",
		"Content-Type: application/json", NULL };
	char body[8192], path[128];
	dg_test_reply job = dg_test_ask(&gateway, "POST", MEASURE, async,
		"{\"keys\":[\"compute:f32\",\"memory:read\",\"memory:write\"],\"refresh\":true}");
	CU_ASSERT_EQUAL(job.status, 202);
	int status = ask("POST", LEASE, NULL, "{}", body, sizeof(body));
	CU_ASSERT_EQUAL(status, 429);
	CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"busy\""));
	const char *location = dg_test_reply_header(&job, "Location");
	CU_ASSERT_PTR_NOT_NULL_FATAL(location);
	snprintf(path, sizeof(path), "%s", location);
	CU_ASSERT_EQUAL(ask("DELETE", path, NULL, NULL, body, sizeof(body)), 200);
	dg_test_reply_finish(&job);
}

#define TURNS 400
static atomic_int inside;
static atomic_uint collisions, had;

static void *orchestrate(void *user)
{
	(void)user;
	for (unsigned i = 0; i < TURNS; i++) {
		char body[1024], id[33];
		int status = ask("POST", LEASE, NULL, "{\"ttl_s\":60}", body, sizeof(body));
		if (status == 409)
			continue;
		if (status != 201 || !read_id(body, id)) {
			atomic_fetch_add(&collisions, 1);
			continue;
		}
		atomic_fetch_add(&collisions, atomic_fetch_add(&inside, 1) != 0);
		atomic_fetch_add(&had, 1);
		atomic_fetch_sub(&inside, 1);
		if (ask("DELETE", LEASE, id, NULL, body, sizeof(body)) != 200)
			atomic_fetch_add(&collisions, 1);
	}
	return NULL;
}

static void test_orchestrators__that_race_are_never_in_at_once(void)
{
	pthread_t threads[3];
	char body[1024];
	/* A run that was cancelled a moment ago may still be ending. */
	for (unsigned i = 0; i < 100 && ask("GET", LEASE, NULL, NULL, body, sizeof(body)) != 404;
		i++)
		dg_test_sleep_ms(20);
	for (unsigned i = 0; i < 100; i++) {
		char id[33];
		int status = ask("POST", LEASE, NULL, "{}", body, sizeof(body));
		if (status == 201 && read_id(body, id)) {
			CU_ASSERT_EQUAL(ask("DELETE", LEASE, id, NULL, body, sizeof(body)), 200);
			break;
		}
		dg_test_sleep_ms(50);
	}
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, orchestrate, NULL), 0);
	for (size_t i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_EQUAL(atomic_load(&collisions), 0);
	CU_ASSERT(atomic_load(&had) > 0);
}

static void test_scope__is_needed(void)
{
	static const char *const args[] = { "--plain-http", "--backend", "cpu", NULL };
	dg_test_gateway other = dg_test_gateway_start(args, NULL);
	static const char *const methods[] = { "POST", "PUT", "DELETE" };
	int status = -1;
	for (size_t i = 0; i < 3; i++) {
		dg_test_reply reply = dg_test_ask(&other, methods[i], LEASE, NULL, NULL);
		CU_ASSERT(reply.status == 401 || reply.status == 403);
		dg_test_reply_finish(&reply);
	}
	(void)dg_test_gateway_stop(&other, &status);
	CU_ASSERT_EQUAL(status, 0);
}

static void expect_run(const char *const *args, int status, const char *said)
{
	char text[4096];
	CU_ASSERT_EQUAL(dg_test_gateway_run(args, NULL, text, sizeof(text)), status);
	if (!strstr(text, said))
		printf("\n    expected '%s' in: %s\n", said, text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, said));
}

/* Who took it and gave it back is on record. */
static void expect_audit(const char *folder)
{
	const char *const lines[] = { "bare", "audit", "--state-dir", folder, NULL };
	const char *const last[] = { "bare", "audit", "--last", "1", "--json", "--state-dir",
		folder, NULL };
	const char *const none[] = { "bare", "audit", "--last", "0", NULL };
	const char *const word[] = { "bare", "audit", "all", NULL };
	expect_run(lines, 0, " loopback                 take lease                       cpu\n");
	expect_run(last, 0,
		"\",\"who\":\"loopback\",\"what\":\"give lease back\",\"device\":\"cpu\"}]}");
	expect_run(none, 2, "--last needs a number from 1 to 100000");
	expect_run(word, 2, "usage: devgated audit");
}

static void test_restart__keeps_the_lease(void)
{
	char *folder = dg_test_temp_dir();
	char body[1024], id[33];
	int status = -1;
	const char *const args[] = { "bare", "--state-dir", folder, "--listen", "127.0.0.1:0",
		"--print-ready", "--plain-http", "--backend", "cpu", "--loopback-scopes",
		"read,measure,lease", NULL };
	(void)dg_test_gateway_stop(&gateway, &status);
	CU_ASSERT_EQUAL(status, 0);
	gateway = dg_test_gateway_start(args, NULL);
	CU_ASSERT_EQUAL(ask("POST", LEASE, NULL, "{\"ttl_s\":300}", body, sizeof(body)), 201);
	CU_ASSERT_FATAL(read_id(body, id));
	(void)dg_test_gateway_stop(&gateway, &status);
	gateway = dg_test_gateway_start(args, NULL);
	CU_ASSERT_EQUAL(ask("POST", LEASE, NULL, "{}", body, sizeof(body)), 409);
	CU_ASSERT_EQUAL(ask("PUT", LEASE, id, "{}", body, sizeof(body)), 200);
	CU_ASSERT_EQUAL(ask("DELETE", LEASE, id, NULL, body, sizeof(body)), 200);
	(void)dg_test_gateway_stop(&gateway, &status);
	expect_audit(folder);
	free(folder);
}

static const dg_test_case cases[] = {
	DG_TEST(test_start),
	DG_TEST(test_lease__is_taken_shown_renewed_and_given_back),
	DG_TEST(test_time_to_live__has_limits),
	DG_TEST(test_devices__without_hardware_are_not_leased),
	DG_TEST(test_measuring__is_for_the_holder),
	DG_TEST(test_measuring__keeps_a_lease_from_being_taken),
	DG_TEST(test_orchestrators__that_race_are_never_in_at_once),
	DG_TEST(test_scope__is_needed),
	DG_TEST(test_restart__keeps_the_lease),
};

DG_TEST_MAIN("leases over REST", cases)
