/* The REST interface of a running gateway, as a program that speaks HTTPS sees it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <CUnit/CUnit.h>
#include <jansson.h>

#include "tests/gateway.h"
#include "tests/test.h"

static dg_test_gateway gateway;

static const char *const as_json[] = { "Content-Type: application/json", NULL };

static json_t *body_of(const dg_test_reply *reply)
{
	json_error_t why;
	json_t *root = json_loads(reply->body, JSON_REJECT_DUPLICATES, &why);
	if (!root) {
		printf("\n    no JSON (status %d): %.200s\n", reply->status, reply->body);
		CU_FAIL("the reply is no JSON");
	}
	return root;
}

static const char *text_at(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "";
}

static json_t *ask_json(const char *method, const char *path, const char *body, int status)
{
	dg_test_reply reply = dg_test_ask(&gateway, method, path, body ? as_json : NULL, body);
	if (reply.status != status)
		printf("\n    %s %s: status %d, expected %d: %.300s\n", method, path, reply.status,
			status, reply.body);
	CU_ASSERT_EQUAL(reply.status, status);
	json_t *root = body_of(&reply);
	dg_test_reply_finish(&reply);
	return root;
}

static void expect_problem(const char *method, const char *path, const char *const *headers,
	const char *body, int status, const char *code)
{
	dg_test_reply reply = dg_test_ask(&gateway, method, path, headers, body);
	json_t *root = body_of(&reply);
	if (reply.status != status || strcmp(text_at(root, "code"), code) != 0)
		printf("\n    %s %.80s: %d %s, expected %d %s: %.300s\n", method, path,
			reply.status, text_at(root, "code"), status, code, reply.body);
	CU_ASSERT_EQUAL(reply.status, status);
	CU_ASSERT_STRING_EQUAL(text_at(root, "code"), code);
	CU_ASSERT_STRING_EQUAL(reply.content_type, "application/problem+json");
	CU_ASSERT(strlen(text_at(root, "detail")) > 10 || strcmp(code, "ok") == 0);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(root, "status")), status);
	json_decref(root);
	dg_test_reply_finish(&reply);
}

static void test_health__needs_no_credential_and_is_quick(void)
{
	dg_test_reply reply = dg_test_ask(&gateway, "GET", "/healthz", NULL, NULL);
	CU_ASSERT_EQUAL(reply.status, 200);
	CU_ASSERT(reply.elapsed_ms < 1000);
	dg_test_reply_finish(&reply);
	json_decref(ask_json("GET", "/readyz", NULL, 200));
}

static void test_devices__lists_the_cpu_with_names_and_settings(void)
{
	json_t *root = ask_json("GET", "/v1/devices", NULL, 200);
	json_t *devices = json_object_get(root, "devices");
	CU_ASSERT(json_array_size(devices) >= 1);
	const json_t *cpu = NULL;
	for (size_t i = 0; i < json_array_size(devices); i++)
		if (strcmp(text_at(json_array_get(devices, i), "variant"), "Cpu") == 0)
			cpu = json_array_get(devices, i);
	CU_ASSERT_PTR_NOT_NULL_FATAL(cpu);
	CU_ASSERT_STRING_EQUAL(text_at(cpu, "device"), "cpu");
	CU_ASSERT_STRING_EQUAL(text_at(cpu, "debug"), "Cpu(CpuDevice)");
	CU_ASSERT_STRING_EQUAL(text_at(cpu, "state"), "ok");
	CU_ASSERT_STRING_EQUAL(text_at(json_object_get(cpu, "settings"), "int_dtype"), "I32");
	CU_ASSERT(strncmp(text_at(cpu, "hardware"), "host:", 5) == 0);
	CU_ASSERT_EQUAL(
		json_integer_value(json_object_get(json_object_get(cpu, "id"), "type_id")), 0);
	json_decref(root);
}

static void test_devices__an_etag_saves_the_body(void)
{
	dg_test_reply first = dg_test_ask(&gateway, "GET", "/v1/devices", NULL, NULL);
	const char *etag = dg_test_reply_header(&first, "ETag");
	char header[128];
	CU_ASSERT_PTR_NOT_NULL_FATAL(etag);
	snprintf(header, sizeof(header), "If-None-Match: %s", etag);
	const char *const headers[] = { header, NULL };
	dg_test_reply second = dg_test_ask(&gateway, "GET", "/v1/devices", headers, NULL);
	CU_ASSERT_EQUAL(second.status, 304);
	CU_ASSERT_EQUAL(strlen(second.body), 0);
	dg_test_reply_finish(&first);
	dg_test_reply_finish(&second);
}

static void test_devices__filters_and_refuses_unknown_words(void)
{
	json_t *none = ask_json("GET", "/v1/devices?state=lost", NULL, 200);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(none, "devices")), 0);
	json_decref(none);
	json_decref(ask_json("GET", "/v1/devices?backend=cpu&state=ok", NULL, 200));
	expect_problem("GET", "/v1/devices?state=well", NULL, NULL, 400, "invalid_field");
	expect_problem("GET", "/v1/devices?backend=abacus", NULL, NULL, 400, "invalid_field");
}

static void test_device__is_found_by_index_text_and_wrapped_text(void)
{
	static const char *const paths[] = { "/v1/devices/0", "/v1/devices/cpu", "/v1/devices/CPU",
		"/v1/devices/autodiff(cpu)", "/v1/devices/autodiff%28cpu%2Cbalanced%29" };
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		json_decref(ask_json("GET", paths[i], NULL, 200));
}

static void test_device__without_hardware_has_its_variants_settings(void)
{
	json_t *flex = ask_json("GET", "/v1/devices/flex", NULL, 200);
	CU_ASSERT_STRING_EQUAL(text_at(json_object_get(flex, "settings"), "bool_dtype"), "Native");
	CU_ASSERT(json_is_null(json_object_get(flex, "index")));
	json_decref(flex);
}

static void test_device__errors_tell_absent_from_wrong(void)
{
	expect_problem("GET", "/v1/devices/cuda:7", NULL, NULL, 404, "no_such_device");
	expect_problem("GET", "/v1/devices/999", NULL, NULL, 404, "no_such_device");
	expect_problem("GET", "/v1/devices/70000", NULL, NULL, 400, "index_out_of_range");
	expect_problem("GET", "/v1/devices/cuda:65536", NULL, NULL, 400, "index_out_of_range");
	expect_problem("GET", "/v1/devices/abacus", NULL, NULL, 400, "invalid_device");
	expect_problem("GET", "/v1/devices/capture:0", NULL, NULL, 400, "not_local");
	expect_problem(
		"GET", "/v1/devices/remote:https%3A%2F%2Fh:1%230", NULL, NULL, 400, "not_local");
}

static void test_default__is_the_cpu_here(void)
{
	json_t *device = ask_json("GET", "/v1/devices/default", NULL, 200);
	CU_ASSERT(*text_at(device, "device") != '\0');
	json_decref(device);
}

static void test_paths__unknown_ones_and_methods(void)
{
	expect_problem("GET", "/", NULL, NULL, 404, "not_found");
	expect_problem("GET", "/v1", NULL, NULL, 404, "not_found");
	expect_problem("GET", "/v1/devices/cpu/nothing", NULL, NULL, 404, "not_found");
	expect_problem("GET", "/v1/devices/%zz", NULL, NULL, 400, "bad_request");
	expect_problem("GET", "/v1/devices/%00", NULL, NULL, 400, "bad_request");
	expect_problem("GET", "/a/b/c/d/e/f/g/h/i/j", NULL, NULL, 404, "not_found");
	dg_test_reply reply = dg_test_ask(&gateway, "DELETE", "/v1/devices", NULL, NULL);
	CU_ASSERT_EQUAL(reply.status, 405);
	const char *allow = dg_test_reply_header(&reply, "Allow");
	CU_ASSERT_PTR_NOT_NULL(allow);
	CU_ASSERT(allow && strstr(allow, "GET"));
	dg_test_reply_finish(&reply);
}

static void test_types__wrong_ones_are_refused(void)
{
	static const char *const xml[] = { "Content-Type: text/xml", NULL };
	static const char *const want_html[] = { "Accept: text/html", NULL };
	static const char *const want_any[] = { "Accept: text/html, */*;q=0.1", NULL };
	expect_problem("POST", "/v1/ids/encode", xml, "[]", 415, "unsupported_media_type");
	expect_problem("GET", "/v1/devices", want_html, NULL, 406, "not_acceptable");
	dg_test_reply reply = dg_test_ask(&gateway, "GET", "/v1/devices", want_any, NULL);
	CU_ASSERT_EQUAL(reply.status, 200);
	dg_test_reply_finish(&reply);
}

static void test_host_and_origin__foreign_ones_are_refused(void)
{
	static const char *const host[] = { "Host: evil.example", NULL };
	static const char *const origin[] = { "Origin: https://evil.example", NULL };
	static const char *const localhost[] = { "Host: localhost", NULL };
	expect_problem("GET", "/v1/devices", host, NULL, 421, "misdirected_host");
	expect_problem("GET", "/v1/devices", origin, NULL, 403, "foreign_origin");
	dg_test_reply reply = dg_test_ask(&gateway, "GET", "/v1/devices", localhost, NULL);
	CU_ASSERT_EQUAL(reply.status, 200);
	dg_test_reply_finish(&reply);
}

static void test_token__a_wrong_one_is_refused_on_loopback_too(void)
{
	static const char *const wrong[] = { "Authorization: Bearer dgt_nothing", NULL };
	static const char *const basic[] = { "Authorization: Basic YTpi", NULL };
	expect_problem("GET", "/v1/devices", wrong, NULL, 401, "unauthorized");
	expect_problem("GET", "/v1/devices", basic, NULL, 401, "unauthorized");
}

static void test_bodies__faults_name_the_place(void)
{
	static const struct {
		const char *path, *body;
		const char *code;
		const char *names;
	} cases[] = {
		{ "/v1/devices/cpu/throughput", "", "invalid_json", "empty" },
		{ "/v1/devices/cpu/throughput", "{", "invalid_json", "line" },
		{ "/v1/devices/cpu/throughput", "[]", "invalid_field", "object" },
		{ "/v1/devices/cpu/throughput", "{}", "invalid_field", "keys" },
		{ "/v1/devices/cpu/throughput", "{\"keys\":7}", "invalid_field", "keys" },
		{ "/v1/devices/cpu/throughput", "{\"keys\":[\"compute:f99\"]}", "invalid_key",
			"keys[0]" },
		{ "/v1/devices/cpu/throughput", "{\"keys\":[{\"mode\":\"Speed\"}]}",
			"invalid_field", "keys[0].mode" },
		{ "/v1/devices/cpu/throughput",
			"{\"keys\":[{\"mode\":{\"MemoryWorkingSet\":{\"access\":\"Read\",\"bytes\":"
			"-1}}}]}",
			"invalid_field", "bytes" },
		{ "/v1/devices/cpu/throughput", "{\"keys\":[],\"refresh\":1}", "invalid_field",
			"refresh" },
		{ "/v1/devices/cpu/memory-curve", "{\"access\":\"sideways\"}", "invalid_field",
			"access" },
		{ "/v1/devices/cpu/roofline", "{\"flops\":1}", "invalid_field", "bytes" },
		{ "/v1/devices/cpu/roofline", "{\"flops\":-1,\"bytes\":1,\"dtype\":\"f32\"}",
			"invalid_field", "flops" },
		{ "/v1/devices/cpu/roofline", "{\"flops\":1,\"bytes\":1,\"dtype\":\"f99\"}",
			"unsupported_dtype", "dtype" },
		{ "/v1/ids/encode", "{}", "invalid_field", "array" },
		{ "/v1/ids/encode", "[1]", "invalid_field", "[0]" },
		{ "/v1/ids/decode", "[{\"type_id\":65536,\"index_id\":0}]", "invalid_field",
			"type_id" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		dg_test_reply reply =
			dg_test_ask(&gateway, "POST", cases[i].path, as_json, cases[i].body);
		json_t *root = body_of(&reply);
		if (reply.status != 400 || strcmp(text_at(root, "code"), cases[i].code) != 0 ||
			!strstr(text_at(root, "detail"), cases[i].names))
			printf("\n    %s: %d %s\n", cases[i].body, reply.status, reply.body);
		CU_ASSERT_EQUAL(reply.status, 400);
		CU_ASSERT_STRING_EQUAL(text_at(root, "code"), cases[i].code);
		CU_ASSERT_PTR_NOT_NULL(strstr(text_at(root, "detail"), cases[i].names));
		json_decref(root);
		dg_test_reply_finish(&reply);
	}
}

static char *repeat(const char *text, size_t times)
{
	size_t length = strlen(text);
	char *all = malloc(length * times + 1);
	for (size_t i = 0; i < times; i++)
		memcpy(all + i * length, text, length);
	all[length * times] = '\0';
	return all;
}

static void test_limits__size_depth_and_counts(void)
{
	char *deep = repeat("[", 5000), *large = repeat("          ", 200000),
	     *many = repeat("\"cpu\",", 2000);
	char *path = repeat("a", 9000), *list = malloc(strlen(many) + 16);
	path[0] = '/';
	snprintf(list, strlen(many) + 16, "[%s\"cpu\"]", many);
	expect_problem("POST", "/v1/ids/encode", as_json, deep, 400, "invalid_json");
	expect_problem("POST", "/v1/ids/encode", as_json, large, 413, "body_too_large");
	expect_problem("POST", "/v1/ids/encode", as_json, list, 400, "too_many");
	expect_problem("GET", path, NULL, NULL, 414, "uri_too_long");
	free(deep);
	free(large);
	free(many);
	free(path);
	free(list);
}

static void test_ids__encode_and_decode_item_by_item(void)
{
	json_t *ids = ask_json("POST", "/v1/ids/encode",
		"[\"cuda:3\",\"vulkan\",\"nonsense\",\"capture:1\",\"https://h#1\"]", 200);
	CU_ASSERT_EQUAL(json_array_size(ids), 5);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(
				json_object_get(json_array_get(ids, 0), "id"), "index_id")),
		3);
	CU_ASSERT_STRING_EQUAL(text_at(json_array_get(ids, 1), "debug"), "Vulkan(DefaultDevice)");
	static const char *const codes[] = { "invalid_device", "not_local", "not_local" };
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT_STRING_EQUAL(
			text_at(json_object_get(json_array_get(ids, 2 + i), "error"), "code"),
			codes[i]);
	json_decref(ids);
	json_t *devices = ask_json("POST", "/v1/ids/decode",
		"[{\"type_id\":256,\"index_id\":3},{\"type_id\":2560,\"index_id\":0},"
		"{\"type_id\":2561,\"index_id\":0},{\"type_id\":65535,\"index_id\":0}]",
		200);
	CU_ASSERT_STRING_EQUAL(text_at(json_array_get(devices, 0), "device"), "cuda:3");
	static const char *const faults[] = { "unregistered_remote", "invalid_type_for_backend",
		"unknown_backend" };
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT_STRING_EQUAL(
			text_at(json_object_get(json_array_get(devices, 1 + i), "error"), "code"),
			faults[i]);
	json_decref(devices);
	json_t *one = ask_json("GET", "/v1/ids/2048/5", NULL, 200);
	CU_ASSERT_STRING_EQUAL(text_at(one, "device"), "vulkan:discrete:5");
	json_decref(one);
	expect_problem("GET", "/v1/ids/2560/0", NULL, NULL, 400, "unregistered_remote");
	expect_problem("GET", "/v1/ids/65536/0", NULL, NULL, 400, "index_out_of_range");
	expect_problem("GET", "/v1/ids/x/0", NULL, NULL, 400, "invalid_argument");
}

static void test_throughput__gives_one_value_a_key_in_order(void)
{
	json_t *root = ask_json("POST", "/v1/devices/cpu/throughput",
		"{\"keys\":[\"launch\",{\"mode\":{\"ComputeDirect\":{\"dtype\":{\"Float\":\"F32\"}}"
		"}},"
		"\"compute:e4m3\"]}",
		200);
	json_t *values = json_object_get(root, "values");
	CU_ASSERT_EQUAL(json_array_size(values), 3);
	CU_ASSERT_STRING_EQUAL(text_at(json_array_get(values, 0), "name"), "launch");
	CU_ASSERT_STRING_EQUAL(text_at(json_array_get(values, 1), "name"), "compute:f32");
	for (size_t i = 0; i < 2; i++) {
		const json_t *v = json_array_get(values, i);
		CU_ASSERT_STRING_EQUAL(text_at(v, "status"), "ok");
		CU_ASSERT(json_integer_value(json_object_get(v, "ops_count")) > 0);
		CU_ASSERT(json_number_value(json_object_get(v, "ops_per_s")) > 0);
		CU_ASSERT(json_integer_value(
				  json_object_get(json_object_get(v, "evidence"), "samples")) > 0);
	}
	const json_t *unsupported = json_array_get(values, 2);
	CU_ASSERT_STRING_EQUAL(text_at(unsupported, "status"), "unsupported");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(unsupported, "ops_count")), 0);
	CU_ASSERT(json_is_null(json_object_get(unsupported, "ops_per_s")));
	CU_ASSERT(strlen(text_at(unsupported, "reason")) > 10);
	json_decref(root);
	json_t *known = ask_json("GET", "/v1/devices/cpu/throughput", NULL, 200);
	CU_ASSERT(json_array_size(json_object_get(known, "values")) >= 2);
	json_decref(known);
}

static void test_throughput__devices_without_kernels_have_no_values(void)
{
	json_t *root =
		ask_json("POST", "/v1/devices/ndarray/throughput", "{\"keys\":[\"launch\"]}", 200);
	CU_ASSERT(json_is_array(json_object_get(root, "values")));
	CU_ASSERT_EQUAL(json_array_size(json_object_get(root, "values")), 0);
	json_decref(root);
	expect_problem("POST", "/v1/devices/flex/memory-curve", as_json, "{}", 501, "no_kernels");
}

static void test_get__never_starts_a_measurement(void)
{
	expect_problem("GET", "/v1/devices/cpu/memory-curve?access=write", NULL, NULL, 409,
		"not_measured");
	expect_problem(
		"GET", "/v1/devices/cpu/memory-curve?access=up", NULL, NULL, 400, "invalid_field");
}

static void test_job__asynchronous_with_progress_and_end(void)
{
	static const char *const async[] = { "Content-Type: application/json",
		"Prefer: respond-async", NULL };
	dg_test_reply reply = dg_test_ask(&gateway, "POST", "/v1/devices/cpu/throughput", async,
		"{\"keys\":[\"compute:i32\",\"compute:f64\"],\"refresh\":true}");
	CU_ASSERT_EQUAL(reply.status, 202);
	char location[256];
	const char *at = dg_test_reply_header(&reply, "Location");
	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	snprintf(location, sizeof(location), "%s", at);
	at = dg_test_reply_header(&reply, "Preference-Applied");
	CU_ASSERT(at && strcmp(at, "respond-async") == 0);
	dg_test_reply_finish(&reply);
	char events[300];
	snprintf(events, sizeof(events), "%s/events", location);
	reply = dg_test_ask(&gateway, "GET", events, NULL, NULL);
	CU_ASSERT_EQUAL(reply.status, 200);
	CU_ASSERT_STRING_EQUAL(reply.content_type, "text/event-stream");
	CU_ASSERT_PTR_NOT_NULL(strstr(reply.body, "event: progress\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(reply.body, "event: end\n"));
	dg_test_reply_finish(&reply);
	json_t *job = ask_json("GET", location, NULL, 200);
	CU_ASSERT_STRING_EQUAL(text_at(job, "state"), "done");
	CU_ASSERT_EQUAL(
		json_array_size(json_object_get(json_object_get(job, "result"), "values")), 2);
	json_decref(job);
	expect_problem(
		"GET", "/v1/jobs/00000000000000000000000000000000", NULL, NULL, 404, "no_such_job");
}

static void test_job__cancelled_ends_at_once(void)
{
	static const char *const async[] = { "Content-Type: application/json",
		"Prefer: respond-async", NULL };
	dg_test_reply reply = dg_test_ask(&gateway, "POST", "/v1/devices/cpu/memory-curve", async,
		"{\"access\":\"copy\",\"refresh\":true}");
	CU_ASSERT_EQUAL(reply.status, 202);
	char location[256];
	const char *at = dg_test_reply_header(&reply, "Location");
	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	snprintf(location, sizeof(location), "%s", at);
	dg_test_reply_finish(&reply);
	json_t *job = ask_json("DELETE", location, NULL, 200);
	CU_ASSERT_STRING_EQUAL(text_at(job, "state"), "cancelled");
	CU_ASSERT_STRING_EQUAL(text_at(json_object_get(job, "error"), "code"), "cancelled");
	json_decref(job);
	/* The hardware is free again: another measurement does not wait for the cancelled one's
	 * end. */
	long long before = dg_test_now_ms();
	json_decref(ask_json("POST", "/v1/devices/cpu/throughput",
		"{\"keys\":[\"launch\"],\"refresh\":true}", 200));
	CU_ASSERT(dg_test_now_ms() - before < 5000);
}

/* More than a second's work however short each sample is. Owned. */
static char *long_request(void)
{
	char *body = malloc(16384);
	size_t length = (size_t)snprintf(body, 16384, "{\"keys\":[");
	for (unsigned i = 0; i < 250; i++)
		length += (size_t)snprintf(body + length, 16384 - length, "%s\"memory:copy:%u\"",
			i ? "," : "", 4096 * (i + 1));
	snprintf(body + length, 16384 - length, "],\"refresh\":true,\"sustained\":true}");
	return body;
}

static void test_wait__too_short_gives_the_job(void)
{
	static const char *const wait[] = { "Content-Type: application/json", "Prefer: wait=1",
		NULL };
	char *body = long_request();
	dg_test_reply reply =
		dg_test_ask(&gateway, "POST", "/v1/devices/cpu/throughput", wait, body);
	free(body);
	CU_ASSERT_EQUAL(reply.status, 202);
	CU_ASSERT(reply.elapsed_ms >= 900 && reply.elapsed_ms < 4000);
	char location[256] = "";
	const char *at = dg_test_reply_header(&reply, "Location");
	if (at)
		snprintf(location, sizeof(location), "%s", at);
	json_t *job = body_of(&reply);
	CU_ASSERT_STRING_EQUAL(text_at(job, "state"), "running");
	json_decref(job);
	dg_test_reply_finish(&reply);
	json_decref(ask_json("DELETE", location, NULL, 200));
}

static void test_roofline__tells_the_binding_resource(void)
{
	json_t *root = ask_json("POST", "/v1/devices/cpu/roofline",
		"{\"flops\":1e15,\"bytes\":4,\"dtype\":\"f32\",\"seconds\":1e9}", 200);
	CU_ASSERT_STRING_EQUAL(text_at(root, "bound"), "compute");
	CU_ASSERT(json_number_value(json_object_get(root, "seconds")) > 0);
	json_decref(root);
}

static void test_openapi__is_served(void)
{
	dg_test_reply reply = dg_test_ask(&gateway, "GET", "/openapi.yaml", NULL, NULL);
	CU_ASSERT_EQUAL(reply.status, 200);
	CU_ASSERT_STRING_EQUAL(reply.content_type, "application/yaml");
	CU_ASSERT_PTR_NOT_NULL(strstr(reply.body, "openapi: 3.1"));
	dg_test_reply_finish(&reply);
}

static void test_gateway__tells_itself(void)
{
	json_t *root = ask_json("GET", "/v1/gateway", NULL, 200);
	CU_ASSERT_EQUAL(strlen(text_at(root, "host")), 32);
	CU_ASSERT(json_is_true(json_object_get(root, "ready")));
	CU_ASSERT(json_array_size(json_object_get(root, "backends")) >= 1);
	json_decref(root);
}

static void test_start(void)
{
	gateway = dg_test_gateway_start(NULL, NULL);
	CU_ASSERT(*gateway.pin);
}

static void test_stop__ends_by_itself_with_status_0(void)
{
	int status = -1;
	CU_ASSERT(dg_test_gateway_stop(&gateway, &status) < 2500);
	CU_ASSERT_EQUAL(status, 0);
}

static const dg_test_case cases[] = {
	DG_TEST(test_start),
	DG_TEST(test_health__needs_no_credential_and_is_quick),
	DG_TEST(test_devices__lists_the_cpu_with_names_and_settings),
	DG_TEST(test_devices__an_etag_saves_the_body),
	DG_TEST(test_devices__filters_and_refuses_unknown_words),
	DG_TEST(test_device__is_found_by_index_text_and_wrapped_text),
	DG_TEST(test_device__without_hardware_has_its_variants_settings),
	DG_TEST(test_device__errors_tell_absent_from_wrong),
	DG_TEST(test_default__is_the_cpu_here),
	DG_TEST(test_paths__unknown_ones_and_methods),
	DG_TEST(test_types__wrong_ones_are_refused),
	DG_TEST(test_host_and_origin__foreign_ones_are_refused),
	DG_TEST(test_token__a_wrong_one_is_refused_on_loopback_too),
	DG_TEST(test_bodies__faults_name_the_place),
	DG_TEST(test_limits__size_depth_and_counts),
	DG_TEST(test_ids__encode_and_decode_item_by_item),
	DG_TEST(test_throughput__gives_one_value_a_key_in_order),
	DG_TEST(test_throughput__devices_without_kernels_have_no_values),
	DG_TEST(test_get__never_starts_a_measurement),
	DG_TEST(test_job__asynchronous_with_progress_and_end),
	DG_TEST(test_job__cancelled_ends_at_once),
	DG_TEST(test_wait__too_short_gives_the_job),
	DG_TEST(test_roofline__tells_the_binding_resource),
	DG_TEST(test_openapi__is_served),
	DG_TEST(test_gateway__tells_itself),
	DG_TEST(test_stop__ends_by_itself_with_status_0),
};

DG_TEST_MAIN("the REST interface of a running gateway", cases)
