/* The public documents: what the tool prints, and what a program gets. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tests/test.h"

#include <devgate/json.h>

static void expect(char *text, const char *expected)
{
	CU_ASSERT_STRING_EQUAL(text ? text : "", expected);
	dg_free(text);
}

static dg_device device_of(const char *text)
{
	dg_device device = { .variant = 0 };
	CU_ASSERT_EQUAL(dg_device_parse(text, &device, NULL), DG_OK);
	return device;
}

static void test_identity__has_four_members(void)
{
	dg_settings settings;
	dg_device device = device_of("vulkan:discrete:1");
	CU_ASSERT_EQUAL(dg_settings_defaults(device, &settings, NULL), DG_OK);
	expect(dg_json_identity(device, &settings),
		"{\"device\":\"vulkan:discrete:1\",\"debug\":\"Vulkan(DiscreteGpu(1))\","
		"\"id\":{\"type_id\":2048,\"index_id\":1},\"settings\":{\"float_dtype\":\"F32\","
		"\"int_dtype\":\"I32\",\"bool_dtype\":\"U8\",\"quantization\":{\"value\":\"Q8F\","
		"\"store\":\"PackedU32(0)\",\"mode\":\"Symmetric\",\"propagation\":\"Inhibit\"}}}");
	expect(dg_json_identity(device_of("cpu"), NULL),
		"{\"device\":\"cpu\",\"debug\":\"Cpu(CpuDevice)\",\"id\":{\"type_id\":0,"
		"\"index_id\":0},\"settings\":null}");
}

/* The cases of the reference, as the tool prints them. */
static void test_identity__is_the_reference_s(void)
{
	json_t *root = json_load_file(dg_test_fixture("vectors/device_ids.json"), 0, NULL);
	json_t *list = json_object_get(root, "cases");
	size_t checked = 0;
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *c = json_array_get(list, i);
		if (json_object_get(c, "error"))
			continue; /* an index that no device has */
		dg_id id = { (uint16_t)json_integer_value(json_object_get(c, "type_id")),
			(uint16_t)json_integer_value(json_object_get(c, "index_id")) };
		dg_device device;
		dg_settings settings;
		if (dg_device_from_id(id, &device, NULL) != DG_OK)
			continue;
		CU_ASSERT_EQUAL(dg_settings_defaults(device, &settings, NULL), DG_OK);
		char *text = dg_json_identity(device, &settings);
		json_t *o = json_loads(text ? text : "", 0, NULL);
		static const char *const names[] = { "debug", "settings" };
		for (size_t k = 0; k < 2; k++)
			CU_ASSERT(json_equal(
				json_object_get(o, names[k]), json_object_get(c, names[k])));
		CU_ASSERT_EQUAL(
			json_integer_value(json_object_get(json_object_get(o, "id"), "type_id")),
			id.type_id);
		json_decref(o);
		dg_free(text);
		checked++;
	}
	CU_ASSERT(checked > 40);
	json_decref(root);
}

static void test_device__tells_its_gateway_where_asked(void)
{
	static dg_device_info info;
	static const struct {
		bool with;
		const char *gateway, *ends;
	} cases[] = { { false, "https://h:1", "\"settings\":null}" },
		{ true, NULL, "\"gateway\":null}" },
		{ true, "https://h:1", "\"gateway\":\"https://h:1\"}" } };
	for (size_t i = 0; i < 3; i++) {
		char *text = dg_json_device(&info, NULL, cases[i].with, cases[i].gateway);
		CU_ASSERT_PTR_NOT_NULL_FATAL(text);
		size_t length = strlen(text), tail = strlen(cases[i].ends);
		CU_ASSERT(length > tail && strcmp(text + length - tail, cases[i].ends) == 0);
		dg_free(text);
	}
}

/* Settings of a caller who knows nothing of their size. */
static void test_device__shows_settings_of_any_size(void)
{
	static dg_device_info info;
	dg_settings settings = DG_SETTINGS_INIT;
	settings.size = 0;
	char *text = dg_json_device(&info, &settings, false, NULL);
	CU_ASSERT_PTR_NOT_NULL(strstr(text ? text : "", "\"float_dtype\":\"F32\""));
	dg_free(text);
}

static void test_values__may_be_none(void)
{
	expect(dg_json_values("ndarray", NULL, 0), "{\"device\":\"ndarray\",\"values\":[]}");
	expect(dg_json_values(NULL, NULL, 0), "{\"device\":null,\"values\":[]}");
}

static void test_values__beyond_json_integers_give_none(void)
{
	dg_value value = { .ops_count = UINT64_MAX, .key = { .mode = DG_MODE_LAUNCH } };
	CU_ASSERT_PTR_NULL(dg_json_values("cpu", &value, 1));
}

static void test_curve__has_a_ceiling_where_asked(void)
{
	dg_curve curve = { .access = DG_READ, .count = 1, .points = { { 8192, 2e9 } } };
	expect(dg_json_curve("cpu", &curve, 0),
		"{\"device\":\"cpu\",\"access\":\"read\",\"points\":[{\"bytes\":8192,"
		"\"bytes_per_s\":2000000000.0}],\"ceiling\":null}");
	expect(dg_json_curve("cpu", &curve, 4096),
		"{\"device\":\"cpu\",\"access\":\"read\",\"points\":[{\"bytes\":8192,"
		"\"bytes_per_s\":2000000000.0}],\"ceiling\":{\"bytes\":4096,"
		"\"bytes_per_s\":2000000000.0}}");
	curve.count = 0;
	expect(dg_json_curve("cpu", &curve, 4096),
		"{\"device\":\"cpu\",\"access\":\"read\",\"points\":[],\"ceiling\":null}");
}

static void test_roofline__has_amounts_peaks_and_times(void)
{
	dg_roofline_input input = { 100, 10, 50, 10, 4 };
	dg_roofline line;
	CU_ASSERT_EQUAL(dg_roofline_compute(&input, &line, NULL), DG_OK);
	expect(dg_json_roofline("cpu", &input, &line),
		"{\"device\":\"cpu\",\"flops\":100.0,\"bytes\":10.0,\"flops_per_s\":50.0,"
		"\"bytes_per_s\":10.0,\"measured_seconds\":4.0,\"compute_seconds\":2.0,"
		"\"memory_seconds\":1.0,\"seconds\":2.0,\"bound\":\"compute\",\"fraction\":0.5}");
}

static void test_error__is_a_problem_document(void)
{
	dg_error error;
	dg_error_set(&error, DG_ENODEVICE, "no cuda:7 here");
	expect(dg_json_error(&error),
		"{\"type\":\"about:blank\",\"title\":\"there is no such device\",\"status\":404,"
		"\"detail\":\"no cuda:7 here\",\"code\":\"no_such_device\"}");
}

static void test_string__is_quoted_and_always_text(void)
{
	expect(dg_json_string(""), "\"\"");
	expect(dg_json_string("a\"\\\n\x01\x1b"), "\"a\\\"\\\\\\n\\u0001\\u001B\"");
	expect(dg_json_string("\xe2\x98\x83"), "\"\xe2\x98\x83\"");
	expect(dg_json_string("\xe2\x98"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	dg_free(NULL);
}

static const dg_test_case cases[] = {
	DG_TEST(test_identity__has_four_members),
	DG_TEST(test_identity__is_the_reference_s),
	DG_TEST(test_device__tells_its_gateway_where_asked),
	DG_TEST(test_device__shows_settings_of_any_size),
	DG_TEST(test_values__may_be_none),
	DG_TEST(test_values__beyond_json_integers_give_none),
	DG_TEST(test_curve__has_a_ceiling_where_asked),
	DG_TEST(test_roofline__has_amounts_peaks_and_times),
	DG_TEST(test_error__is_a_problem_document),
	DG_TEST(test_string__is_quoted_and_always_text),
};

DG_TEST_MAIN("public JSON documents", cases)
