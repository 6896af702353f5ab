/* Remote devices by address: identity, credentials, health, and how many there can be. */
#include "client/devgate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/registry.h"
#include "tests/fakes/fake_scene.h"
#include "tests/test.h"

/* Identity. */

static void test_same_hardware__across_two_names_of_one_gateway(void)
{
	dg_fake_scene s;
	char other_name[64];
	bool same = false;
	dg_device other, second;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	snprintf(other_name, sizeof(other_name), "https://localhost:%u",
		(unsigned)dg_fake_gateway_port(s.model.gateway));
	CU_ASSERT_EQUAL(dg_device_remote(other_name, 0, &s.call, &other, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg_device_remote(other_name, 1, &s.call, &second, NULL), DG_OK);
	CU_ASSERT_FALSE(dg_device_equal(s.device, other));
	CU_ASSERT_EQUAL(dg_same_hardware(s.device, other, &s.call, &same, &s.error), DG_OK);
	CU_ASSERT(same);
	CU_ASSERT_EQUAL(dg_same_hardware(s.device, second, &s.call, &same, &s.error), DG_OK);
	CU_ASSERT_FALSE(same);
	CU_ASSERT_EQUAL(dg_same_hardware(other, other, &s.call, &same, &s.error), DG_OK);
	CU_ASSERT(same);
	dg_fake_scene_finish(&s);
}

static void test_same_hardware__never_across_two_hosts(void)
{
	dg_fake_scene a, b;
	bool same = true;
	dg_fake_scene_init(&a, DG_FAKE_PLAIN);
	dg_fake_scene_init(&b, DG_FAKE_PLAIN);
	snprintf(b.model.entries[0].info.hardware, sizeof(b.model.entries[0].info.hardware),
		"host:fedcba9876543210/0");
	CU_ASSERT_EQUAL(dg_same_hardware(a.device, b.device, NULL, &same, &a.error), DG_OK);
	CU_ASSERT_FALSE(same);
	dg_fake_scene_finish(&a);
	dg_fake_scene_finish(&b);
}

static void test_address__of_a_remote_device(void)
{
	dg_device device, wrapped;
	char text[DG_DEVICE_TEXT_MAX];
	uint32_t index = 0;
	CU_ASSERT_EQUAL(dg_device_remote("WSS://Node7", 12, NULL, &device, NULL), DG_OK);
	CU_ASSERT(dg_device_remote_address(device, text, sizeof(text), &index));
	CU_ASSERT_STRING_EQUAL(text, "https://node7:8443");
	CU_ASSERT_EQUAL(index, 12);
	CU_ASSERT_EQUAL(dg_device_autodiff(device, DG_STRATEGY_NONE, &wrapped, NULL), DG_OK);
	CU_ASSERT(dg_device_remote_address(wrapped, text, sizeof(text), NULL));
	CU_ASSERT_FALSE(dg_device_remote_address((dg_device){ 0 }, text, sizeof(text), &index));
	CU_ASSERT_EQUAL(dg_device_remote("https://node7", 65536, NULL, &device, NULL), DG_ERANGE);
	CU_ASSERT_EQUAL(dg_device_remote("node7", 0, NULL, &device, NULL), DG_EADDRESS);
}

static void test_equal__named_and_parsed_are_one_device(void)
{
	dg_device named, parsed, own;
	dg_call call = DG_CALL_INIT;
	call.pin = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
	CU_ASSERT_EQUAL(dg_device_remote("https://node8", 1, NULL, &named, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg_device_parse("https://node8:8443#1", &parsed, NULL), DG_OK);
	CU_ASSERT(dg_device_equal(named, parsed));
	CU_ASSERT_EQUAL(dg_device_remote("https://node8", 1, &call, &own, NULL), DG_OK);
	CU_ASSERT_FALSE(dg_device_equal(named, own));
}

/* Credentials. */

static bool any_authorization(dg_fake_gateway *gateway)
{
	dg_fake_request request;
	char value[256];
	for (size_t i = 0; dg_fake_gateway_request(gateway, i, &request); i++)
		if (dg_fake_request_header(&request, "Authorization", value, sizeof(value)))
			return true;
	return false;
}

static void test_credentials__the_environments_go_to_named_gateways_only(void)
{
	dg_fake_scene s;
	dg_device parsed;
	dg_device_info info;
	char text[DG_DEVICE_TEXT_MAX], *token = dg_fake_token_file();
	dg_call call = DG_CALL_INIT;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.token = "the-token";
	setenv("DEVGATE_TOKEN_FILE", token, 1);
	setenv("DEVGATE_PIN", dg_fake_gateway_pin(s.model.gateway), 1);
	snprintf(text, sizeof(text), "%s#0", dg_fake_gateway_url(s.model.gateway));
	CU_ASSERT_EQUAL_FATAL(dg_device_parse(text, &parsed, NULL), DG_OK);
	/* A text from anywhere is no reason to send the token: nor is there trust in the peer. */
	CU_ASSERT_EQUAL(dg_describe(parsed, NULL, &info, &s.error), DG_ETLS);
	call.pin = dg_fake_gateway_pin(s.model.gateway);
	CU_ASSERT_EQUAL(dg_describe(parsed, &call, &info, &s.error), DG_EUNAUTHORIZED);
	CU_ASSERT_FALSE(any_authorization(s.model.gateway));
	/* Naming it is. */
	CU_ASSERT_EQUAL(
		dg_device_remote(dg_fake_gateway_url(s.model.gateway), 0, NULL, &parsed, NULL),
		DG_OK);
	CU_ASSERT_EQUAL(dg_describe(parsed, NULL, &info, &s.error), DG_OK);
	CU_ASSERT(any_authorization(s.model.gateway));
	unsetenv("DEVGATE_TOKEN_FILE");
	unsetenv("DEVGATE_PIN");
	dg_fake_scene_finish(&s);
	free(token);
}

static void test_credentials__the_default_remote_gets_the_environments(void)
{
	dg_fake_scene s;
	dg_device device;
	dg_device_info info;
	char *token = dg_fake_token_file();
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.token = "the-token";
	setenv("DEVGATE_TOKEN_FILE", token, 1);
	setenv("DEVGATE_PIN", dg_fake_gateway_pin(s.model.gateway), 1);
	setenv("DEVGATE_REMOTE_ADDRESS", dg_fake_gateway_url(s.model.gateway), 1);
	setenv("BURN_DEVICE", "remote", 1);
	CU_ASSERT_EQUAL_FATAL(dg_default_device(NULL, &device, &s.error), DG_OK);
	CU_ASSERT_EQUAL(dg_fake_gateway_connections(s.model.gateway), 0);
	CU_ASSERT_EQUAL(dg_describe(device, NULL, &info, &s.error), DG_OK);
	unsetenv("BURN_DEVICE");
	unsetenv("DEVGATE_REMOTE_ADDRESS");
	unsetenv("DEVGATE_TOKEN_FILE");
	unsetenv("DEVGATE_PIN");
	dg_fake_scene_finish(&s);
	free(token);
}

static void test_credentials__none_goes_over_plain_http(void)
{
	dg_fake_scene s;
	dg_device_info info;
	char *token = dg_fake_token_file();
	dg_fake_scene_init(&s, DG_FAKE_PLAIN);
	s.call.token_file = token;
	CU_ASSERT_EQUAL(dg_describe(s.device, &s.call, &info, &s.error), DG_OK);
	CU_ASSERT_FALSE(any_authorization(s.model.gateway));
	dg_fake_scene_finish(&s);
	free(token);
}

static void twist_redirect(const dg_fake_request *request, dg_fake_reply *reply, void *user)
{
	(void)request;
	reply->status = 307;
	reply->headers = user;
}

static void test_credentials__do_not_follow_a_redirect(void)
{
	dg_fake_scene s, other;
	dg_device_info info;
	char header[200], *token = dg_fake_token_file();
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	dg_fake_scene_init(&other, DG_FAKE_TLS);
	snprintf(header, sizeof(header), "Location: %s/v1/devices/0\r\n",
		dg_fake_gateway_url(other.model.gateway));
	s.model.twist = twist_redirect;
	s.model.user = header;
	s.call.token_file = token;
	CU_ASSERT_EQUAL(dg_describe(s.device, &s.call, &info, &s.error), DG_EREDIRECT);
	CU_ASSERT_EQUAL(dg_fake_gateway_connections(other.model.gateway), 0);
	dg_fake_scene_finish(&s);
	dg_fake_scene_finish(&other);
	free(token);
}

static void test_plain_http__beyond_loopback_is_refused(void)
{
	dg_device device;
	dg_device_info info;
	dg_error error;
	CU_ASSERT_EQUAL(dg_device_remote("http://192.0.2.7:80", 0, NULL, &device, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg_describe(device, NULL, &info, &error), DG_EPLAINHTTP);
}

/* Health. */

static void test_health__tells_version_and_host(void)
{
	dg_fake_scene s;
	dg_gateway_health health;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	CU_ASSERT_EQUAL_FATAL(dg_gateway_health_read(dg_fake_gateway_url(s.model.gateway), &s.call,
				      &health, &s.error),
		DG_OK);
	CU_ASSERT(health.alive && health.ready);
	CU_ASSERT_STRING_EQUAL(health.version, "9.9.9");
	CU_ASSERT(health.host[0] != '\0' && health.seconds >= 0);
	/* One who may not read it is still told that it lives. */
	s.model.token = "other";
	CU_ASSERT_EQUAL(dg_gateway_health_read(
				dg_fake_gateway_url(s.model.gateway), &s.call, &health, &s.error),
		DG_OK);
	CU_ASSERT(health.alive && health.ready);
	CU_ASSERT_STRING_EQUAL(health.version, "");
	dg_fake_scene_finish(&s);
}

static void twist_not_ready(const dg_fake_request *request, dg_fake_reply *reply, void *user)
{
	(void)user;
	if (strcmp(request->path, "/readyz") == 0)
		reply->status = 503;
}

static void test_health__alive_but_not_ready(void)
{
	dg_fake_scene s;
	dg_gateway_health health;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.twist = twist_not_ready;
	CU_ASSERT_EQUAL(dg_gateway_health_read(
				dg_fake_gateway_url(s.model.gateway), &s.call, &health, &s.error),
		DG_OK);
	CU_ASSERT(health.alive && !health.ready);
	dg_fake_scene_finish(&s);
}

static void test_health__of_nobody_is_unreachable(void)
{
	dg_gateway_health health;
	dg_error error;
	CU_ASSERT_EQUAL(dg_gateway_health_read("https://127.0.0.1:1", NULL, &health, &error),
		DG_EUNREACHABLE);
	CU_ASSERT_EQUAL(dg_gateway_health_read("nonsense", NULL, &health, &error), DG_EADDRESS);
}

/* The registry fills up last, as nothing can be registered afterwards. */
static void test_registry__holds_65536_remote_devices(void)
{
	char url[64];
	dg_device device = { 0 };
	dg_error error;
	size_t had = dg__registry_count();
	unsigned wrong = 0;
	for (size_t i = had; i < 65536; i++) {
		snprintf(url, sizeof(url), "https://node%zu.example:8443", i);
		if (dg_device_remote(url, (uint32_t)(i & 7), NULL, &device, &error) ||
			device.index != i)
			wrong++;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(
		dg_device_remote("https://onemore.example", 0, NULL, &device, &error), DG_ERANGE);
	for (size_t i = had; i < 65536; i++) {
		char address[DG_DEVICE_TEXT_MAX];
		uint32_t index = 99;
		dg_id id = { DG_REMOTE << 8, (uint16_t)i };
		snprintf(url, sizeof(url), "https://node%zu.example:8443", i);
		if (dg_device_from_id(id, &device, &error) ||
			!dg_device_remote_address(device, address, sizeof(address), &index) ||
			strcmp(address, url) != 0 || index != (i & 7))
			wrong++;
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static const dg_test_case cases[] = {
	DG_TEST(test_same_hardware__across_two_names_of_one_gateway),
	DG_TEST(test_same_hardware__never_across_two_hosts),
	DG_TEST(test_address__of_a_remote_device),
	DG_TEST(test_equal__named_and_parsed_are_one_device),
	DG_TEST(test_credentials__the_environments_go_to_named_gateways_only),
	DG_TEST(test_credentials__the_default_remote_gets_the_environments),
	DG_TEST(test_credentials__none_goes_over_plain_http),
	DG_TEST(test_credentials__do_not_follow_a_redirect),
	DG_TEST(test_plain_http__beyond_loopback_is_refused),
	DG_TEST(test_health__tells_version_and_host),
	DG_TEST(test_health__alive_but_not_ready),
	DG_TEST(test_health__of_nobody_is_unreachable),
	DG_TEST(test_registry__holds_65536_remote_devices),
};

DG_TEST_MAIN("client/remote_device", cases)
