/* A device asked locally and through a gateway is one device: libdevgate against a running gateway.
 * */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <CUnit/CUnit.h>
#include <devgate/devgate.h>
#include <pthread.h>

#include "tests/gateway.h"
#include "tests/test.h"
#include "tests/tool.h"

static dg_test_gateway gateway;
static dg_call call = DG_CALL_INIT;

static void test_start(void)
{
	static const char *const args[] = { "--listen", "[::1]:0", NULL };
	gateway = dg_test_gateway_start(args, NULL);
	call.pin = gateway.pin;
	setenv("DEVGATE_WORKER", dg_test_built("libexec/devgate/devgate-worker"), 1);
}

static dg_device remote_device(const char *url, uint32_t index)
{
	dg_device device = { .variant = DG_FLEX };
	dg_error why = { .code = DG_OK };
	CU_ASSERT_EQUAL_FATAL(dg_device_remote(url, index, &call, &device, &why), DG_OK);
	return device;
}

static void expect_ok(dg_err err, const dg_error *why)
{
	if (err != DG_OK)
		printf("\n    %s: %s\n", dg_err_code(err), why->text);
	CU_ASSERT_EQUAL_FATAL(err, DG_OK);
}

/* What the gateway numbers 0 is what this machine has first, in the default order. */
static dg_device first_device(void)
{
	static dg_device first;
	static bool known;
	dg_error why = { .code = DG_OK };
	dg_device_info *info = calloc(1, sizeof(*info));
	if (!known) {
		expect_ok(dg_describe(remote_device(gateway.url, 0), &call, info, &why), &why);
		CU_ASSERT(info->present & DG_HAS_DEVICE);
		first = info->device;
		known = true;
	}
	free(info);
	return first;
}

static void test_description__is_the_same_locally_and_remotely(void)
{
	dg_device local = first_device(), remote = remote_device(gateway.url, 0);
	dg_device_info *here = calloc(2, sizeof(*here)), *there = here + 1;
	dg_error why = { .code = DG_OK };
	char text[2][DG_DEVICE_TEXT_MAX];
	expect_ok(dg_describe(local, NULL, here, &why), &why);
	expect_ok(dg_describe(remote, &call, there, &why), &why);
	CU_ASSERT_EQUAL(here->device.variant, there->device.variant);
	CU_ASSERT_STRING_EQUAL(here->name, there->name);
	CU_ASSERT_STRING_EQUAL(here->driver, there->driver);
	CU_ASSERT_STRING_EQUAL(here->hardware, there->hardware);
	CU_ASSERT_STRING_EQUAL(here->host, there->host);
	dg_device_format(here->device, text[0], sizeof(text[0]));
	dg_device_format(there->device, text[1], sizeof(text[1]));
	CU_ASSERT_STRING_EQUAL(text[0], text[1]);
	dg_id a = dg_device_to_id(here->device), b = dg_device_to_id(there->device);
	CU_ASSERT_EQUAL(dg_id_compare(a, b), 0);
	CU_ASSERT(dg_info_same_hardware(here, there));
	bool same = false;
	expect_ok(dg_same_hardware(local, remote, &call, &same, &why), &why);
	CU_ASSERT(same);
	CU_ASSERT_FALSE(dg_device_equal(local, remote));
	free(here);
}

static void test_settings__are_the_far_devices(void)
{
	dg_device local = first_device(), remote = remote_device(gateway.url, 0);
	dg_settings here, there;
	dg_error why = { .code = DG_OK };
	expect_ok(dg_settings_show(local, NULL, &here, &why), &why);
	expect_ok(dg_settings_get(remote, &call, &there, &why), &why);
	CU_ASSERT_EQUAL(here.float_dtype, there.float_dtype);
	CU_ASSERT_EQUAL(here.int_dtype, there.int_dtype);
	CU_ASSERT_EQUAL(here.bool_store, there.bool_store);
	CU_ASSERT_EQUAL(here.quant_store, there.quant_store);
	CU_ASSERT_EQUAL(dg_settings_configure(remote, &there, &call, &why), DG_EINITIALIZED);
}

static void test_throughput__one_value_a_key_in_order_with_its_evidence(void)
{
	dg_device local = first_device(), remote = remote_device(gateway.url, 0);
	dg_key keys[4];
	dg_value *here = calloc(8, sizeof(*here)), *there = here + 4;
	dg_error why = { .code = DG_OK };
	static const char *const names[] = { "compute:f32", "launch", "compute:e2m1",
		"memory:read" };
	size_t count = 0;
	for (size_t i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(dg_key_parse(names[i], &keys[i], NULL), DG_OK);
	expect_ok(dg_performance_stats(remote, keys, 4, &call, there, &count, &why), &why);
	CU_ASSERT_EQUAL(count, 4);
	expect_ok(dg_performance_stats(local, keys, 4, NULL, here, &count, &why), &why);
	CU_ASSERT_EQUAL(count, 4);
	for (size_t i = 0; i < 4; i++) {
		double a = 0, b = 0;
		CU_ASSERT(dg_key_equal(&there[i].key, &keys[i]));
		CU_ASSERT_EQUAL(here[i].status, there[i].status);
		CU_ASSERT_STRING_EQUAL(here[i].evidence.engine, there[i].evidence.engine);
		if (i == 2) {
			CU_ASSERT_EQUAL(there[i].status, DG_STATUS_UNSUPPORTED);
			continue;
		}
		CU_ASSERT(dg_value_rate(&here[i], &a) && dg_value_rate(&there[i], &b));
		CU_ASSERT(a > 0 && b > 0);
		CU_ASSERT_STRING_EQUAL(here[i].evidence.driver, there[i].evidence.driver);
		CU_ASSERT_STRING_EQUAL(here[i].evidence.traffic, there[i].evidence.traffic);
	}
	free(here);
}

static void test_autodiff__measures_the_device_it_wraps(void)
{
	dg_device wrapped, remote = remote_device(gateway.url, 0);
	dg_key key;
	dg_value *value = calloc(1, sizeof(*value));
	dg_error why = { .code = DG_OK };
	size_t count = 0;
	CU_ASSERT_EQUAL(dg_key_parse("launch", &key, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg_device_autodiff(remote, DG_STRATEGY_BALANCED, &wrapped, NULL), DG_OK);
	expect_ok(dg_performance_stats(wrapped, &key, 1, &call, value, &count, &why), &why);
	CU_ASSERT_EQUAL(count, 1);
	CU_ASSERT_EQUAL(value->status, DG_STATUS_OK);
	free(value);
}

static void test_curve_and_roofline__through_the_gateway(void)
{
	dg_device remote = remote_device(gateway.url, 0);
	dg_curve *curve = calloc(1, sizeof(*curve));
	dg_roofline roofline;
	dg_error why = { .code = DG_OK };
	double ceiling = 0;
	expect_ok(dg_memory_curve(remote, DG_READ, &call, curve, &why), &why);
	CU_ASSERT(curve->count > 0);
	CU_ASSERT(dg_curve_ceiling(curve, 1 << 20, &ceiling) && ceiling > 0);
	expect_ok(
		dg_device_roofline(remote, 1e12, DG_F32, 1, 0, &call, NULL, &roofline, &why), &why);
	CU_ASSERT_EQUAL(roofline.bound, DG_BOUND_COMPUTE);
	free(curve);
}

static void test_two_addresses_of_one_gateway__differ_and_are_one_hardware(void)
{
	char other[128];
	snprintf(other, sizeof(other), "https://localhost:%u", gateway.port);
	dg_device a = remote_device(gateway.url, 0), b = remote_device(other, 0);
	dg_error why = { .code = DG_OK };
	bool same = false;
	CU_ASSERT_FALSE(dg_device_equal(a, b));
	expect_ok(dg_same_hardware(a, b, &call, &same, &why), &why);
	CU_ASSERT(same);
}

static void test_list__names_gateways_and_their_problems(void)
{
	const char *const urls[] = { gateway.url, "https://127.0.0.1:1" };
	dg_enumerate_request request = { .gateways = urls, .gateway_count = 2 };
	dg_device_list *list = NULL;
	dg_error why = { .code = DG_OK };
	expect_ok(dg_enumerate(&request, &call, &list, &why), &why);
	bool local = false, remote = false;
	for (size_t i = 0; i < list->count; i++) {
		local = local || !*list->devices[i].gateway;
		remote = remote || strcmp(list->devices[i].gateway, gateway.url) == 0;
	}
	CU_ASSERT(local && remote);
	CU_ASSERT_EQUAL(list->problem_count, 1);
	CU_ASSERT_EQUAL(list->problems[0].error.code, DG_EUNREACHABLE);
	dg_device_list_free(list);
}

static void test_trust__a_wrong_pin_and_no_trust_are_told(void)
{
	dg_call wrong = DG_CALL_INIT, none = DG_CALL_INIT;
	wrong.pin = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
	dg_gateway_health health;
	dg_error why;
	CU_ASSERT_EQUAL(dg_gateway_health_read(gateway.url, &wrong, &health, &why), DG_EPIN);
	CU_ASSERT_EQUAL(dg_gateway_health_read(gateway.url, &none, &health, &why), DG_ETLS);
	expect_ok(dg_gateway_health_read(gateway.url, &call, &health, &why), &why);
	CU_ASSERT(health.alive && health.ready);
}

static void test_errors__have_the_gateways_codes(void)
{
	dg_device absent = remote_device(gateway.url, 77);
	dg_device_info *info = calloc(1, sizeof(*info));
	dg_error why = { .code = DG_OK };
	CU_ASSERT_EQUAL(dg_describe(absent, &call, info, &why), DG_ENODEVICE);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "77"));
	free(info);
}

static bool stop_at_once(uint32_t done, uint32_t total, const char *key, void *user)
{
	(void)done;
	(void)total;
	(void)key;
	*(unsigned *)user += 1;
	return false;
}

static void test_progress__can_cancel(void)
{
	dg_device remote = remote_device(gateway.url, 0);
	dg_key keys[DG_CURVE_MAX];
	size_t n = dg_curve_keys(DG_WRITE, keys), count = 0;
	dg_value *values = calloc(n, sizeof(*values));
	dg_error why;
	unsigned asked = 0;
	dg_call stop = call;
	stop.progress = stop_at_once;
	stop.user = &asked;
	stop.flags = DG_REFRESH | DG_SUSTAINED;
	long long before = dg_test_now_ms();
	CU_ASSERT_EQUAL(
		dg_performance_stats(remote, keys, n, &stop, values, &count, &why), DG_ECANCELLED);
	CU_ASSERT(asked > 0);
	CU_ASSERT(dg_test_now_ms() - before < 3000);
	free(values);
}

typedef struct asking {
	dg_device device;
	dg_err err;
	long long elapsed_ms;
} asking;

static void *measure_long(void *user)
{
	asking *a = user;
	enum { KEYS = 200 };
	dg_key keys[KEYS];
	dg_value *values = calloc(KEYS, sizeof(*values));
	dg_call refresh = call;
	size_t count;
	dg_error why;
	refresh.flags = DG_REFRESH | DG_SUSTAINED;
	long long before = dg_test_now_ms();
	for (unsigned i = 0; i < KEYS; i++)
		keys[i] = (dg_key){
			.mode = DG_MODE_WORKING_SET, .access = DG_COPY, .bytes = 4096 * (i + 1)
		};
	a->err = dg_performance_stats(a->device, keys, KEYS, &refresh, values, &count, &why);
	a->elapsed_ms = dg_test_now_ms() - before;
	free(values);
	return NULL;
}

/* At different moments of a call: while connecting, while it measures, while it is asked again. */
static void test_gateway_killed__leaves_an_error_value(void)
{
	for (unsigned i = 0; i < 8; i++) {
		dg_test_gateway g = dg_test_gateway_start(NULL, NULL);
		const char *kept = call.pin;
		call.pin = g.pin;
		asking a = { remote_device(g.url, 0), DG_OK, 0 };
		pthread_t thread;
		pthread_create(&thread, NULL, measure_long, &a);
		dg_test_sleep_ms(i * i * 12);
		kill(g.pid, SIGKILL);
		dg_test_gateway_stop(&g, NULL);
		pthread_join(thread, NULL);
		if (a.err != DG_EUNREACHABLE && a.err != DG_ETLS && a.err != DG_EPROTOCOL)
			printf("\n    killed after %u ms: %s\n", i * i * 12, dg_err_code(a.err));
		CU_ASSERT(a.err == DG_EUNREACHABLE || a.err == DG_ETLS || a.err == DG_EPROTOCOL);
		CU_ASSERT(a.elapsed_ms < 5000);
		call.pin = kept;
	}
}

static void test_default_remote__comes_from_each_variable(void)
{
	static const char *const names[] = { "DEVGATE_REMOTE_ADDRESS", "BURN_REMOTE_ADDRESS" };
	for (size_t i = 0; i < 2; i++) {
		char text[DG_DEVICE_TEXT_MAX], expected[160];
		dg_device device;
		dg_device_info *info = calloc(1, sizeof(*info));
		dg_error why = { .code = DG_OK };
		setenv(names[i], gateway.url, 1);
		setenv("BURN_DEVICE", "remote", 1);
		setenv("DEVGATE_PIN", gateway.pin, 1);
		expect_ok(dg_default_device(NULL, &device, &why), &why);
		dg_device_format(device, text, sizeof(text));
		snprintf(expected, sizeof(expected), "remote:%s#0", gateway.url);
		CU_ASSERT_STRING_EQUAL(text, expected);
		expect_ok(dg_describe(device, NULL, info, &why), &why);
		unsetenv(names[i]);
		unsetenv("BURN_DEVICE");
		unsetenv("DEVGATE_PIN");
		free(info);
	}
}

static void test_tool__asks_the_gateway_as_a_user_would(void)
{
	const char *const devices[] = { "devices", "--gateway", gateway.url, "--pin", gateway.pin,
		"--json", NULL };
	const char *const measured[] = { "throughput", "cpu", "launch", "--gateway", gateway.url,
		"--pin", gateway.pin, "--json", NULL };
	const char *const health[] = { "health", gateway.url, "--pin", gateway.pin, NULL };
	const char *const *const runs[] = { devices, measured, health };
	static const char *const phrases[] = { "\"device\":\"cpu\"", "\"status\":\"ok\"", "ready" };
	for (size_t i = 0; i < 3; i++) {
		dg_test_tool_request request = { .args = runs[i] };
		dg_test_tool tool = dg_test_tool_run(&request);
		if (tool.status != 0 || !strstr(tool.out, phrases[i]))
			printf("\n    %s: status %d: %s%s\n", runs[i][0], tool.status, tool.out,
				tool.err);
		CU_ASSERT_EQUAL(tool.status, 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(tool.out, phrases[i]));
		dg_test_tool_finish(&tool);
	}
}

static void test_stop(void)
{
	CU_ASSERT(dg_test_gateway_stop(&gateway, NULL) < 2500);
}

static const dg_test_case cases[] = {
	DG_TEST(test_start),
	DG_TEST(test_description__is_the_same_locally_and_remotely),
	DG_TEST(test_settings__are_the_far_devices),
	DG_TEST(test_throughput__one_value_a_key_in_order_with_its_evidence),
	DG_TEST(test_autodiff__measures_the_device_it_wraps),
	DG_TEST(test_curve_and_roofline__through_the_gateway),
	DG_TEST(test_two_addresses_of_one_gateway__differ_and_are_one_hardware),
	DG_TEST(test_list__names_gateways_and_their_problems),
	DG_TEST(test_trust__a_wrong_pin_and_no_trust_are_told),
	DG_TEST(test_errors__have_the_gateways_codes),
	DG_TEST(test_progress__can_cancel),
	DG_TEST(test_gateway_killed__leaves_an_error_value),
	DG_TEST(test_default_remote__comes_from_each_variable),
	DG_TEST(test_tool__asks_the_gateway_as_a_user_would),
	DG_TEST(test_stop),
};

DG_TEST_MAIN("one device, asked locally and through a gateway", cases)
