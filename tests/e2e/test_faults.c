/* Backends that hang, crash, talk nonsense or lose devices, behind a running gateway. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CUnit/CUnit.h>

#include "tests/gateway.h"
#include "tests/test.h"
#include "tests/tool.h"

#define DEVICES "/v1/devices"
#define MEASURE "/v1/devices/0/throughput"
#define REFRESH "{\"keys\":[\"launch\"],\"refresh\":true}"
#define HEALTH_MAX_MS 50

static char *folder;
static char script_path[600], body[65536];
static dg_test_gateway gateway;

/* What the fake worker does from now on; it reads the file anew at each call. */
static void script(const char *text)
{
	char next[620];
	snprintf(next, sizeof(next), "%s.next", script_path);
	FILE *f = fopen(next, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
	CU_ASSERT_EQUAL(rename(next, script_path), 0);
}

static void start(const char *text, const char *const *more)
{
	char worker[700], fake[700];
	const char *args[16] = { "--plain-http", "--loopback-scopes", "read,measure",
		"--measure-timeout-ms", "3000", "--detect-timeout-ms", "1000" };
	size_t n = 7;
	snprintf(worker, sizeof(worker), "DEVGATE_WORKER=%s",
		dg_test_built("tests/fakes/main_fake_worker"));
	snprintf(fake, sizeof(fake), "DG_FAKE=@%s", script_path);
	const char *const env[] = { worker, fake, "DG_ENGINE_QUICK=1", NULL };
	for (size_t i = 0; more && more[i]; i++)
		args[n++] = more[i];
	script(text);
	gateway = dg_test_gateway_start(args, env);
}

static void stop(void)
{
	int status = -1;
	CU_ASSERT(dg_test_gateway_stop(&gateway, &status) < 2500);
	CU_ASSERT_EQUAL(status, 0);
}

static int ask(const char *method, const char *path, const char *text)
{
	static const char *const json[] = { "Content-Type: application/json", NULL };
	dg_test_reply reply = dg_test_ask(&gateway, method, path, text ? json : NULL, text);
	int status = reply.status;
	snprintf(body, sizeof(body), "%s", reply.body);
	dg_test_reply_finish(&reply);
	return status;
}

static void check_health(void)
{
	dg_test_reply reply = dg_test_ask(&gateway, "GET", "/healthz", NULL, NULL);
	CU_ASSERT_EQUAL(reply.status, 200);
	CU_ASSERT(reply.elapsed_ms < HEALTH_MAX_MS);
	dg_test_reply_finish(&reply);
}

/* Until the reply to a GET has the words, for 10 s at most. */
static bool becomes(const char *path, const char *words)
{
	long long until = dg_test_now_ms() + 10000;
	while (dg_test_now_ms() < until) {
		(void)ask("GET", path, NULL);
		if (strstr(body, words))
			return true;
		dg_test_sleep_ms(50);
	}
	printf("\n    %s has no %s: %.400s\n    ", path, words, body);
	return false;
}

static const char *const cuda[] = { "--backend", "cuda", NULL };

static void test_start(void)
{
	folder = dg_test_temp_dir();
	snprintf(script_path, sizeof(script_path), "%s/script", folder);
}

static void test_launch__each_fault_costs_its_request_alone(void)
{
	static const struct {
		const char *script;
		int status;
		const char *code;
	} faults[] = {
		{ "gpus=A;do=segv@launch", 503, "worker_died" },
		{ "gpus=A;do=abort@launch", 503, "worker_died" },
		{ "gpus=A;do=exit:3@launch", 503, "worker_died" },
		{ "gpus=A;do=close@launch", 503, "worker_died" },
		{ "gpus=A;do=hang@launch", 504, "timeout" },
		{ "gpus=A;do=spin@launch;ignore_term=1", 504, "timeout" },
		{ "gpus=A;do=stop@launch", 504, "timeout" },
		{ "gpus=A;do=bytes@launch", 503, "worker_died" },
		{ "gpus=A;do=json@launch", 503, "worker_died" },
		{ "gpus=A;do=oversize@launch", 503, "worker_died" },
		{ "gpus=A;do=cut@launch", 503, "worker_died" },
	};
	start("gpus=A", cuda);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		script(faults[i].script);
		int status = ask("POST", MEASURE, REFRESH);
		if (status != faults[i].status || !strstr(body, faults[i].code))
			printf("\n    %s: %d %.300s\n    ", faults[i].script, status, body);
		CU_ASSERT_EQUAL(status, faults[i].status);
		CU_ASSERT_PTR_NOT_NULL(strstr(body, faults[i].code));
		check_health();
		script("gpus=A");
		/* It has been looked at again, and measures again at once. */
		CU_ASSERT(becomes(DEVICES "/0", "\"state\":\"ok\""));
		CU_ASSERT_EQUAL(ask("POST", MEASURE, REFRESH), 200);
	}
	stop();
}

static void test_values__that_make_no_sense_are_not_given(void)
{
	static const char *const outputs[] = { "gpus=A;output=wrong", "gpus=A;output=short",
		"gpus=A;output=lazy" };
	start("gpus=A", cuda);
	for (size_t i = 0; i < 3; i++) {
		script(outputs[i]);
		CU_ASSERT_EQUAL(
			ask("POST", MEASURE, "{\"keys\":[\"compute:f32\"],\"refresh\":true}"), 200);
		CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"status\":\"failed\""));
		CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"ops_per_s\":null"));
	}
	stop();
}

static void test_repeated_deaths__are_answered_with_a_pause(void)
{
	unsigned tries = 0;
	int status;
	start("gpus=A;do=exit:3@launch", cuda);
	/* One failure is forgiven: the second is a measurement again. */
	CU_ASSERT_EQUAL(ask("POST", MEASURE, REFRESH), 503);
	CU_ASSERT_PTR_NOT_NULL(strstr(body, "worker_died"));
	CU_ASSERT_EQUAL(ask("POST", MEASURE, REFRESH), 503);
	CU_ASSERT_PTR_NOT_NULL(strstr(body, "worker_died"));
	static const char *const json[] = { "Content-Type: application/json", NULL };
	dg_test_reply reply = dg_test_ask(&gateway, "POST", MEASURE, json, REFRESH);
	CU_ASSERT_EQUAL(reply.status, 503);
	CU_ASSERT_PTR_NOT_NULL(strstr(reply.body, "\"unavailable\""));
	CU_ASSERT_PTR_NOT_NULL(dg_test_reply_header(&reply, "Retry-After"));
	dg_test_reply_finish(&reply);
	script("gpus=A");
	do {
		dg_test_sleep_ms(100);
		status = ask("POST", MEASURE, REFRESH);
	} while (status == 503 && ++tries < 60);
	CU_ASSERT_EQUAL(status, 200);
	stop();
}

static void test_detection__that_fails_is_told_and_recovers_by_itself(void)
{
	static const char *const faults[] = { "gpus=A;do=hang@enumerate",
		"gpus=A;do=segv@enumerate", "gpus=A;do=hang@describe", "gpus=A;do=bytes@enumerate",
		"gpus=A;enumerate=failed" };
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		start(faults[i], cuda);
		check_health();
		CU_ASSERT(becomes("/v1/gateway", "\"state\":\"failed\""));
		CU_ASSERT_PTR_NULL(strstr(body, "\"reason\":null"));
		check_health();
		script("gpus=A");
		CU_ASSERT(becomes("/v1/gateway", "\"state\":\"ready\""));
		CU_ASSERT_PTR_NULL(strstr(body, "\"recovered_at\":null"));
		CU_ASSERT(becomes(DEVICES "/0", "\"state\":\"ok\""));
		stop();
	}
}

static void test_one_backend__that_hangs_does_not_hold_up_the_others(void)
{
	static const char *const both[] = { "--backend", "cuda", "--backend", "vulkan", NULL };
	start("[cuda]\ngpus=A\ndo=hang@launch\n[vulkan]\ngpus=B\n", both);
	static const char *const async[] = { "Content-Type: application/json",
		"Prefer: respond-async", NULL };
	dg_test_reply job =
		dg_test_ask(&gateway, "POST", "/v1/devices/cuda/throughput", async, REFRESH);
	CU_ASSERT_EQUAL(job.status, 202);
	dg_test_reply_finish(&job);
	long long before = dg_test_now_ms();
	CU_ASSERT_EQUAL(ask("POST", "/v1/devices/vulkan:discrete:0/throughput", REFRESH), 200);
	CU_ASSERT(dg_test_now_ms() - before < 2500);
	check_health();
	stop();
}

static void test_one_card__through_two_apis_is_measured_by_one_at_a_time(void)
{
	static const char *const both[] = { "--backend", "cuda", "--backend", "vulkan",
		"--loopback-scopes", "read,measure,lease", NULL };
	start("gpus=A\n[vulkan]\nvariant=vulkan\n", both);
	CU_ASSERT_EQUAL(ask("POST", "/v1/devices/cuda/lease", "{}"), 201);
	CU_ASSERT_EQUAL(ask("POST", "/v1/devices/vulkan:discrete:0/lease", "{}"), 409);
	CU_ASSERT_EQUAL(ask("POST", "/v1/devices/vulkan:discrete:0/throughput", REFRESH), 409);
	stop();
}

static void test_device__that_goes_is_lost_and_keeps_its_number(void)
{
	start("gpus=A,B", cuda);
	CU_ASSERT_EQUAL(ask("GET", DEVICES "/1", NULL), 200);
	dg_test_reply before = dg_test_ask(&gateway, "GET", DEVICES, NULL, NULL);
	char etag[80];
	const char *tag = dg_test_reply_header(&before, "ETag");
	CU_ASSERT_PTR_NOT_NULL_FATAL(tag);
	snprintf(etag, sizeof(etag), "%s", tag);
	dg_test_reply_finish(&before);
	script("gpus=B;do=exit:3@launch");
	/* The failure makes the gateway look again: the first is gone, the second has moved up. */
	(void)ask("POST", DEVICES "/1/throughput", REFRESH);
	script("gpus=B");
	CU_ASSERT(becomes(DEVICES "?state=lost", "\"index\":0"));
	CU_ASSERT_EQUAL(ask("GET", DEVICES "/0", NULL), 410);
	CU_ASSERT_EQUAL(ask("POST", MEASURE, REFRESH), 410);
	CU_ASSERT(becomes(DEVICES "/1", "\"state\":\"ok\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"device\":\"cuda:0\""));
	dg_test_reply after = dg_test_ask(&gateway, "GET", DEVICES, NULL, NULL);
	tag = dg_test_reply_header(&after, "ETag");
	CU_ASSERT(tag && strcmp(tag, etag) != 0);
	dg_test_reply_finish(&after);
	stop();
}

static void test_equal_keys__are_measured_once(void)
{
	char log[640], line[8192], text[800];
	unsigned launches[2] = { 0, 0 };
	start("gpus=A", cuda);
	for (unsigned round = 0; round < 2; round++) {
		snprintf(log, sizeof(log), "%s/calls%u", folder, round);
		snprintf(text, sizeof(text), "gpus=A;log=%s", log);
		script(text);
		CU_ASSERT_EQUAL(ask("POST", MEASURE,
					round ? "{\"keys\":[\"launch\",\"launch\",\"launch\","
						"\"launch\"],\"refresh\":true}"
					      : REFRESH),
			200);
		unsigned values = 0;
		for (const char *at = body; (at = strstr(at, "\"ops_count\"")); at++)
			values++;
		CU_ASSERT_EQUAL(values, round ? 4 : 1);
		FILE *f = fopen(log, "r");
		while (f && fgets(line, sizeof(line), f))
			launches[round] += strstr(line, "open") != NULL;
		if (f)
			fclose(f);
	}
	CU_ASSERT(launches[0] > 0);
	CU_ASSERT_EQUAL(launches[0], launches[1]);
	stop();
}

static void test_client__that_leaves_frees_the_hardware(void)
{
	start("gpus=A;do=hang@launch", cuda);
	static const char *const json[] = { "Content-Type: application/json", NULL };
	dg_test_reply gone = dg_test_ask_within(&gateway, "POST", MEASURE, json, REFRESH, 300);
	CU_ASSERT_EQUAL(gone.status, 0);
	dg_test_reply_finish(&gone);
	script("gpus=A");
	/* Well before the three seconds that the measurement itself may take. */
	long long before = dg_test_now_ms();
	CU_ASSERT_EQUAL(ask("POST", MEASURE, REFRESH), 200);
	CU_ASSERT(dg_test_now_ms() - before < 2000);
	stop();
}

static void test_end(void)
{
	free(folder);
}

static const dg_test_case cases[] = {
	DG_TEST(test_start),
	DG_TEST(test_launch__each_fault_costs_its_request_alone),
	DG_TEST(test_values__that_make_no_sense_are_not_given),
	DG_TEST(test_repeated_deaths__are_answered_with_a_pause),
	DG_TEST(test_detection__that_fails_is_told_and_recovers_by_itself),
	DG_TEST(test_one_backend__that_hangs_does_not_hold_up_the_others),
	DG_TEST(test_one_card__through_two_apis_is_measured_by_one_at_a_time),
	DG_TEST(test_device__that_goes_is_lost_and_keeps_its_number),
	DG_TEST(test_equal_keys__are_measured_once),
	DG_TEST(test_client__that_leaves_frees_the_hardware),
	DG_TEST(test_end),
};

DG_TEST_MAIN("faults of backends", cases)
