/* Lists from many gateways at once. */
#include "client/devgate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakes/fake_scene.h"
#include "tests/test.h"

static dg_err list_of(
	const char *const *urls, size_t count, const dg_call *call, dg_device_list **ret_list)
{
	dg_error error = { 0 };
	const dg_enumerate_request request = {
		.no_local = true, .gateways = urls, .gateway_count = count
	};
	*ret_list = NULL;
	dg_err err = dg_enumerate(&request, call, ret_list, &error);
	CU_ASSERT_EQUAL(error.code, err);
	return err;
}

static void test_enumerate__lists_a_gateways_devices(void)
{
	dg_fake_scene s;
	dg_device_list *list;
	dg_device_info info;
	uint32_t index = 9;
	char url[DG_DEVICE_TEXT_MAX];
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	const char *gateway = dg_fake_gateway_url(s.model.gateway);
	CU_ASSERT_EQUAL_FATAL(list_of(&gateway, 1, &s.call, &list), DG_OK);
	CU_ASSERT_EQUAL(list->problem_count, 0);
	CU_ASSERT_EQUAL_FATAL(list->count, 2);
	CU_ASSERT_STRING_EQUAL(list->devices[1].gateway, gateway);
	CU_ASSERT_STRING_EQUAL(list->devices[1].info.name, "Fake Processor 1");
	CU_ASSERT_EQUAL(list->devices[1].settings.float_dtype, DG_F32);
	CU_ASSERT(dg_device_remote_address(list->devices[1].device, url, sizeof(url), &index));
	CU_ASSERT_EQUAL(index, 1);
	CU_ASSERT(dg_device_equal(list->devices[0].device, s.device));
	/* The devices remember the credentials. */
	CU_ASSERT_EQUAL(dg_describe(list->devices[1].device, NULL, &info, NULL), DG_OK);
	dg_device_list_free(list);
	dg_fake_scene_finish(&s);
}

static void test_enumerate__who_cannot_be_reached_is_a_problem(void)
{
	dg_fake_scene s;
	dg_device_list *list;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	dg_fake_gateway *silent = dg_fake_gateway_create(DG_FAKE_SILENT, NULL, NULL);
	const char *urls[] = { "https://127.0.0.1:1", dg_fake_gateway_url(s.model.gateway),
		"http://192.0.2.1", dg_fake_gateway_url(silent) };
	s.call.timeout_ms = 1500;
	long long start = dg_test_now_ms();
	CU_ASSERT_EQUAL_FATAL(list_of(urls, 4, &s.call, &list), DG_OK);
	CU_ASSERT(dg_test_now_ms() - start < 8000);
	CU_ASSERT_EQUAL(list->count, 2);
	CU_ASSERT_EQUAL_FATAL(list->problem_count, 3);
	CU_ASSERT_STRING_EQUAL(list->problems[0].source, "https://127.0.0.1:1");
	CU_ASSERT(list->problems[0].is_gateway);
	CU_ASSERT_EQUAL(list->problems[0].error.code, DG_EUNREACHABLE);
	CU_ASSERT_EQUAL(list->problems[1].error.code, DG_EPLAINHTTP);
	CU_ASSERT_EQUAL(list->problems[2].error.code, DG_ETIMEOUT);
	dg_device_list_free(list);
	dg_fake_gateway_destroy(silent);
	dg_fake_scene_finish(&s);
}

static void test_enumerate__many_gateways(void)
{
	enum { COUNT = 600, ALIVE = 20 };
	static dg_fake_scene scenes[ALIVE];
	static char names[COUNT][64];
	const char *urls[COUNT];
	dg_device_list *list;
	dg_call call = DG_CALL_INIT;
	call.timeout_ms = 20000;
	for (int i = 0; i < ALIVE; i++)
		dg_fake_scene_init(&scenes[i], DG_FAKE_PLAIN);
	for (int i = 0; i < COUNT; i++) {
		/* Ports that nobody listens at, but for every thirtieth. */
		snprintf(names[i], sizeof(names[i]), "http://127.0.0.1:%d", 1 + i);
		urls[i] = i % 30 ? names[i] : dg_fake_gateway_url(scenes[i / 30].model.gateway);
	}
	CU_ASSERT_EQUAL_FATAL(list_of(urls, COUNT, &call, &list), DG_OK);
	CU_ASSERT_EQUAL(list->problem_count, COUNT - ALIVE);
	CU_ASSERT_EQUAL_FATAL(list->count, 2 * ALIVE);
	/* In the order of the request. */
	for (int i = 0; i < ALIVE; i++)
		CU_ASSERT_STRING_EQUAL(list->devices[2 * i].gateway, urls[30 * i]);
	dg_device_list_free(list);
	for (int i = 0; i < ALIVE; i++)
		dg_fake_scene_finish(&scenes[i]);
}

static void test_enumerate__named_twice_is_asked_once(void)
{
	dg_fake_scene s;
	dg_device_list *list;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	const char *urls[] = { dg_fake_gateway_url(s.model.gateway),
		dg_fake_gateway_url(s.model.gateway) };
	CU_ASSERT_EQUAL_FATAL(list_of(urls, 2, &s.call, &list), DG_OK);
	CU_ASSERT_EQUAL(list->count, 2);
	CU_ASSERT_EQUAL(dg_fake_gateway_requests(s.model.gateway), 1);
	dg_device_list_free(list);
	dg_fake_scene_finish(&s);
}

static void test_enumerate__a_backend_being_detected_is_told(void)
{
	dg_fake_scene s;
	dg_device_list *list;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.detecting = "cpu";
	const char *gateway = dg_fake_gateway_url(s.model.gateway);
	CU_ASSERT_EQUAL_FATAL(list_of(&gateway, 1, &s.call, &list), DG_OK);
	CU_ASSERT_EQUAL(list->count, 2);
	CU_ASSERT_EQUAL_FATAL(list->problem_count, 1);
	CU_ASSERT_EQUAL(list->problems[0].error.code, DG_EDETECTING);
	dg_device_list_free(list);
	dg_fake_scene_finish(&s);
}

static void test_enumerate__lies_are_a_problem_and_list_nothing(void)
{
	static const struct {
		const char *from, *to;
	} lies[] = {
		{ "\"devices\"", "\"gadgets\"" },
		{ "\"index\":1", "\"index\":70000" },
		{ "\"index\":1", "\"index\":null" },
		{ "\"index\":1", "\"Index\":1" },
		{ "}]", "}" },
	};
	dg_fake_scene s;
	dg_fake_lie lie;
	dg_device_list *list;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.twist = dg_fake_lie_twist;
	s.model.user = &lie;
	const char *gateway = dg_fake_gateway_url(s.model.gateway);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		lie.from = lies[i].from;
		lie.to = lies[i].to;
		lie.body[0] = '\0';
		CU_ASSERT_EQUAL_FATAL(list_of(&gateway, 1, &s.call, &list), DG_OK);
		CU_ASSERT(lie.body[0] != '\0');
		CU_ASSERT_EQUAL(list->count, 0);
		CU_ASSERT_EQUAL_FATAL(list->problem_count, 1);
		if (list->problems[0].error.code != DG_EPROTOCOL)
			printf("\n    lie %zu: %s", i, list->problems[0].error.text);
		CU_ASSERT_EQUAL(list->problems[0].error.code, DG_EPROTOCOL);
		dg_device_list_free(list);
	}
	dg_fake_scene_finish(&s);
}

static void test_enumerate__an_unauthorized_list_is_a_problem(void)
{
	dg_fake_scene s;
	dg_device_list *list;
	char *token = dg_fake_token_file();
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.token = "the-token";
	const char *gateway = dg_fake_gateway_url(s.model.gateway);
	CU_ASSERT_EQUAL_FATAL(list_of(&gateway, 1, &s.call, &list), DG_OK);
	CU_ASSERT_EQUAL_FATAL(list->problem_count, 1);
	CU_ASSERT_EQUAL(list->problems[0].error.code, DG_EUNAUTHORIZED);
	dg_device_list_free(list);
	s.call.token_file = token;
	CU_ASSERT_EQUAL_FATAL(list_of(&gateway, 1, &s.call, &list), DG_OK);
	CU_ASSERT_EQUAL(list->problem_count, 0);
	dg_device_list_free(list);
	dg_fake_scene_finish(&s);
	free(token);
}

static void write_gateways(char *path, size_t size, const char *text)
{
	char *folder = dg_test_temp_dir();
	snprintf(path, size, "%s/gateways", folder);
	FILE *f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
	setenv("DEVGATE_GATEWAYS", path, 1);
	free(folder);
}

static void test_enumerate__configured_gateways_with_their_own_credentials(void)
{
	dg_fake_scene a, b;
	dg_device_list *list = NULL;
	dg_device_info info;
	dg_device parsed;
	char path[600], text[2048], device[DG_DEVICE_TEXT_MAX], *token = dg_fake_token_file();
	const dg_enumerate_request request = { .no_local = true };
	dg_fake_scene_init(&a, DG_FAKE_TLS);
	dg_fake_scene_init(&b, DG_FAKE_TLS);
	a.model.token = "the-token";
	snprintf(text, sizeof(text), "%s %s %s\n%s %s\n", dg_fake_gateway_url(a.model.gateway),
		dg_fake_gateway_pin(a.model.gateway), token, dg_fake_gateway_url(b.model.gateway),
		dg_fake_gateway_pin(b.model.gateway));
	write_gateways(path, sizeof(path), text);
	CU_ASSERT_EQUAL_FATAL(dg_enumerate(&request, NULL, &list, &a.error), DG_OK);
	CU_ASSERT_EQUAL(list->problem_count, 0);
	CU_ASSERT_EQUAL(list->count, 4);
	/* The text of a listed device names that device, credentials included. */
	dg_device_format(list->devices[0].device, device, sizeof(device));
	CU_ASSERT_EQUAL(dg_device_parse(device, &parsed, NULL), DG_OK);
	CU_ASSERT(dg_device_equal(parsed, list->devices[0].device));
	CU_ASSERT_EQUAL(dg_describe(parsed, NULL, &info, NULL), DG_OK);
	dg_device_list_free(list);
	/* The second one never saw the first one's token. */
	dg_fake_request seen;
	char value[64];
	for (size_t i = 0; dg_fake_gateway_request(b.model.gateway, i, &seen); i++)
		CU_ASSERT_FALSE(
			dg_fake_request_header(&seen, "Authorization", value, sizeof(value)));
	unsetenv("DEVGATE_GATEWAYS");
	dg_fake_scene_finish(&a);
	dg_fake_scene_finish(&b);
	free(token);
}

static void test_enumerate__a_token_that_cannot_be_read_is_one_gateways_problem(void)
{
	dg_fake_scene s;
	dg_device_list *list = NULL;
	char path[600], text[2048];
	const dg_enumerate_request request = { .no_local = true };
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	snprintf(text, sizeof(text), "https://127.0.0.1:1 - /nonexistent/token\n%s %s\n",
		dg_fake_gateway_url(s.model.gateway), dg_fake_gateway_pin(s.model.gateway));
	write_gateways(path, sizeof(path), text);
	CU_ASSERT_EQUAL_FATAL(dg_enumerate(&request, NULL, &list, &s.error), DG_OK);
	CU_ASSERT_EQUAL(list->count, 2);
	CU_ASSERT_EQUAL_FATAL(list->problem_count, 1);
	CU_ASSERT_EQUAL(list->problems[0].error.code, DG_ECREDENTIAL);
	dg_device_list_free(list);
	unsetenv("DEVGATE_GATEWAYS");
	dg_fake_scene_finish(&s);
}

static void test_enumerate__wrong_configuration_and_arguments_fail(void)
{
	dg_device_list *list = NULL;
	char path[600];
	dg_error error;
	dg_enumerate_request request = { .no_local = true };
	write_gateways(path, sizeof(path), "https://a\nnonsense\n");
	CU_ASSERT_EQUAL(dg_enumerate(&request, NULL, &list, &error), DG_ECONFIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "line 2"));
	request.no_configured = true;
	CU_ASSERT_EQUAL(dg_enumerate(&request, NULL, &list, &error), DG_OK);
	CU_ASSERT(list && list->count == 0 && list->problem_count == 0);
	dg_device_list_free(list);
	unsetenv("DEVGATE_GATEWAYS");
	const char *url = "nonsense";
	list = NULL;
	CU_ASSERT_EQUAL(list_of(&url, 1, NULL, &list), DG_EADDRESS);
	CU_ASSERT_EQUAL(list_of(&url, 1025, NULL, &list), DG_EINVALID);
	CU_ASSERT_EQUAL(list_of(NULL, 1, NULL, &list), DG_EINVALID);
	CU_ASSERT_PTR_NULL(list);
	dg_device_list_free(NULL);
}

static const dg_test_case cases[] = {
	DG_TEST(test_enumerate__lists_a_gateways_devices),
	DG_TEST(test_enumerate__who_cannot_be_reached_is_a_problem),
	DG_TEST(test_enumerate__many_gateways),
	DG_TEST(test_enumerate__named_twice_is_asked_once),
	DG_TEST(test_enumerate__a_backend_being_detected_is_told),
	DG_TEST(test_enumerate__lies_are_a_problem_and_list_nothing),
	DG_TEST(test_enumerate__an_unauthorized_list_is_a_problem),
	DG_TEST(test_enumerate__configured_gateways_with_their_own_credentials),
	DG_TEST(test_enumerate__a_token_that_cannot_be_read_is_one_gateways_problem),
	DG_TEST(test_enumerate__wrong_configuration_and_arguments_fail),
};

DG_TEST_MAIN("client/enumerate", cases)
