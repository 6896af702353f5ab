/* The default device: the reference's vectors, priority lists and variables. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <devgate/default.h>

static dg_variant_set words(const char *list)
{
	dg_variant_set set = 0;
	CU_ASSERT_EQUAL(dg_default_parse_words(list, &set, NULL), DG_OK);
	return set;
}

static void check_case(json_t *c)
{
	char list[256] = "", debug[DG_DEVICE_TEXT_MAX];
	dg_device device = { 0 };
	dg_error error = { 0 };
	json_t *word;
	size_t i;
	json_array_foreach(json_object_get(c, "enabled"), i, word)
	{
		size_t used = strlen(list);
		snprintf(list + used, sizeof(list) - used, "%s%s", i ? "," : "",
			json_string_value(word));
	}
	dg_default_request request = { .enabled = words(list),
		.burn_device = json_string_value(json_object_get(c, "BURN_DEVICE")) };
	dg_err err = dg_default_choose(&request, &device, &error);
	const char *failure = json_string_value(json_object_get(c, "error"));
	if (failure) {
		CU_ASSERT(err == DG_ENOTENABLED || err == DG_EOVERRIDE);
		CU_ASSERT_STRING_EQUAL(error.text, failure);
		return;
	}
	const char *expected = json_string_value(json_object_get(c, "device"));
	CU_ASSERT_EQUAL(err, DG_OK);
	dg_device_debug(device, debug, sizeof(debug));
	/* The vectors name the variant alone. */
	if (strcmp(expected, "Remote") == 0)
		expected = "Remote(https://127.0.0.1:8443#0)";
	CU_ASSERT_STRING_EQUAL(debug, expected);
}

static void test_vectors__every_case_chooses_as_the_reference_does(void)
{
	json_error_t error;
	json_t *root = json_load_file(dg_test_fixture("vectors/default_device.json"), 0, &error),
	       *c;
	size_t i;
	CU_ASSERT_PTR_NOT_NULL_FATAL(root);
	CU_ASSERT(json_array_size(json_object_get(root, "cases")) > 0);
	json_array_foreach(json_object_get(root, "cases"), i, c) check_case(c);
	json_decref(root);
}

static const char *choose(dg_default_request request)
{
	static char text[DG_DEVICE_TEXT_MAX + 512];
	dg_device device;
	dg_error error;
	if (dg_default_choose(&request, &device, &error))
		snprintf(text, sizeof(text), "%s", error.text);
	else
		dg_device_format(device, text, DG_DEVICE_TEXT_MAX);
	return text;
}

static void test_choose__flex_stands_in_where_nothing_local_is_enabled(void)
{
	CU_ASSERT_STRING_EQUAL(choose((dg_default_request){ .enabled = 0 }), "flex");
	CU_ASSERT_STRING_EQUAL(
		choose((dg_default_request){ .enabled = words("remote,capture") }), "flex");
	CU_ASSERT_STRING_EQUAL(choose((dg_default_request){ .burn_device = "FLEX" }), "flex");
	CU_ASSERT_STRING_EQUAL(
		choose((dg_default_request){ .enabled = words("ndarray"), .burn_device = "flex" }),
		"BURN_DEVICE=flex requested, but the 'flex' feature is not enabled.");
}

static void test_choose__priority_words_come_before_the_built_in_order(void)
{
	dg_variant_set enabled = words("cuda,vulkan,cpu,flex");
	CU_ASSERT_STRING_EQUAL(choose((dg_default_request){ .enabled = enabled }), "cuda:0");
	CU_ASSERT_STRING_EQUAL(
		choose((dg_default_request){ .enabled = enabled, .priority = "cpu,cuda" }), "cpu");
	CU_ASSERT_STRING_EQUAL(
		choose((dg_default_request){ .enabled = enabled, .priority = "ROCM , Vulkan" }),
		"vulkan:default");
	CU_ASSERT_STRING_EQUAL(
		choose((dg_default_request){ .enabled = enabled, .priority = "rocm,rocm" }),
		"cuda:0");
	CU_ASSERT_STRING_EQUAL(
		choose((dg_default_request){ .enabled = enabled, .priority = " " }), "cuda:0");
	CU_ASSERT_STRING_EQUAL(
		choose((dg_default_request){ .enabled = words("tch,flex"), .priority = "tch" }),
		"libtorch:cpu");
}

static void test_choose__a_wrong_priority_word_names_the_known_ones(void)
{
	dg_default_request request = { .enabled = words("cpu"), .priority = "cpu,opencl" };
	dg_device device;
	dg_error error;
	CU_ASSERT_EQUAL(dg_default_choose(&request, &device, &error), DG_EINVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "\"opencl\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "cuda, metal, rocm"));
	request.priority = "cpu,,flex";
	CU_ASSERT_EQUAL(dg_default_choose(&request, &device, &error), DG_EINVALID);
	request.priority = "capture";
	CU_ASSERT_EQUAL(dg_default_choose(&request, &device, &error), DG_EINVALID);
}

static void test_choose__devgate_device_wins_and_takes_any_text(void)
{
	CU_ASSERT_STRING_EQUAL(
		choose((dg_default_request){ .enabled = words("cuda"),
			.burn_device = "cuda",
			.devgate_device = "autodiff(vulkan:integrated:1,balanced)" }),
		"autodiff(vulkan:integrated:1,balanced)");
	CU_ASSERT_STRING_EQUAL(choose((dg_default_request){ .enabled = words("cuda"),
				       .burn_device = "nonsense",
				       .devgate_device = "cpu" }),
		"cpu");
	CU_ASSERT_STRING_EQUAL(
		choose((dg_default_request){ .enabled = words("cuda"), .devgate_device = "" }),
		"cuda:0");
	dg_default_request request = { .devgate_device = "cudo" };
	dg_device device;
	dg_error error;
	CU_ASSERT_EQUAL(dg_default_choose(&request, &device, &error), DG_EDEVICE);
	CU_ASSERT_EQUAL(strncmp(error.text, "DEVGATE_DEVICE: ", 16), 0);
}

static void test_choose__an_unknown_override_keeps_its_spelling_within_limits(void)
{
	char many[2000];
	CU_ASSERT_STRING_EQUAL(choose((dg_default_request){ .burn_device = "OpenCL" }),
		"Unknown BURN_DEVICE override: 'OpenCL'.");
	CU_ASSERT_STRING_EQUAL(choose((dg_default_request){ .burn_device = "gpu\xc3\xa4" }),
		"Unknown BURN_DEVICE override: 'gpu\xc3\xa4'.");
	CU_ASSERT_STRING_EQUAL(choose((dg_default_request){ .burn_device = "x\xff\xed\xa0\x80" }),
		"Unknown BURN_DEVICE override: "
		"'x\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd'.");
	memset(many, 'y', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	const char *text = choose((dg_default_request){ .burn_device = many });
	CU_ASSERT(strlen(text) < 400);
	CU_ASSERT_STRING_EQUAL(text + strlen(text) - 5, "...'.");
}

static void test_words__are_a_set_and_know_capture_and_autodiff(void)
{
	dg_variant_set set = 77;
	dg_error error;
	CU_ASSERT_EQUAL(words(""), 0);
	CU_ASSERT_EQUAL(words("cuda,flex"), DG_VARIANT_BIT(DG_CUDA) | DG_VARIANT_BIT(DG_FLEX));
	CU_ASSERT_EQUAL(words("TCH, autodiff ,capture"),
		DG_VARIANT_BIT(DG_LIBTORCH) | DG_VARIANT_BIT(DG_CAPTURE));
	CU_ASSERT_EQUAL(dg_default_parse_words("cuda,libtorch", &set, &error), DG_EINVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "\"libtorch\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "tch"));
	CU_ASSERT_EQUAL(dg_default_parse_words("cuda,", &set, NULL), DG_EINVALID);
	CU_ASSERT_EQUAL(dg_default_parse_words(",", &set, NULL), DG_EINVALID);
	CU_ASSERT_EQUAL(dg_default_parse_words("cu\x01"
					       "da\xff",
				&set, &error),
		DG_EINVALID);
	CU_ASSERT_EQUAL(set, 77);
}

static void test_variant_default__is_its_own(void)
{
	static const char *const expected[DG_VARIANT_COUNT] = { "cpu", "cuda:0", "wgpu:default",
		"rocm:0", "flex", "libtorch:cpu", "ndarray", "metal:default", "vulkan:default",
		"webgpu:default", "remote:https://127.0.0.1:8443#0", NULL };
	dg_device device, other;
	char text[DG_DEVICE_TEXT_MAX];
	for (unsigned i = 0; i < DG_VARIANT_COUNT; i++) {
		CU_ASSERT_EQUAL(dg_variant_default((dg_variant)i, &device, NULL), DG_OK);
		dg_device_format(device, text, sizeof(text));
		if (expected[i])
			CU_ASSERT_STRING_EQUAL(text, expected[i]);
	}
	CU_ASSERT_EQUAL(dg_variant_default(DG_CAPTURE, &other, NULL), DG_OK);
	CU_ASSERT_FALSE(dg_device_equal(device, other));
	CU_ASSERT_EQUAL(dg_variant_default((dg_variant)12, &device, NULL), DG_EINVALID);
}

static void test_environment__devgate_names_come_before_their_aliases(void)
{
	dg_default_request request = { .enabled = 5 };
	setenv("BURN_DEVICE_PRIORITY", "vulkan", 1);
	dg_default_from_environment(&request);
	CU_ASSERT_PTR_NULL(request.burn_device);
	CU_ASSERT_PTR_NULL(request.devgate_device);
	CU_ASSERT_STRING_EQUAL(request.priority, "vulkan");
	setenv("DEVGATE_DEVICE_PRIORITY", "cpu", 1);
	setenv("BURN_DEVICE", "", 1);
	setenv("DEVGATE_DEVICE", "flex", 1);
	dg_default_from_environment(&request);
	CU_ASSERT_STRING_EQUAL(request.priority, "cpu");
	CU_ASSERT_STRING_EQUAL(request.burn_device, "");
	CU_ASSERT_STRING_EQUAL(request.devgate_device, "flex");
	CU_ASSERT_EQUAL(request.enabled, 5);
}

static void test_environment__a_wrong_remote_address_is_named(void)
{
	dg_device device;
	dg_error error;
	setenv("BURN_REMOTE_ADDRESS", "ws://far:3000", 1);
	CU_ASSERT_STRING_EQUAL(choose((dg_default_request){ .enabled = words("remote,ndarray"),
				       .burn_device = "remote" }),
		"remote:http://far:3000#0");
	setenv("DEVGATE_REMOTE_ADDRESS", "ftp://x", 1);
	CU_ASSERT_EQUAL(dg_variant_default(DG_REMOTE, &device, &error), DG_EADDRESS);
	CU_ASSERT_EQUAL(strncmp(error.text, "DEVGATE_REMOTE_ADDRESS: ", 24), 0);
	setenv("DEVGATE_REMOTE_ADDRESS", "", 1);
	CU_ASSERT_EQUAL(dg_variant_default(DG_REMOTE, &device, &error), DG_OK);
}

static const dg_test_case cases[] = {
	DG_TEST(test_vectors__every_case_chooses_as_the_reference_does),
	DG_TEST(test_choose__flex_stands_in_where_nothing_local_is_enabled),
	DG_TEST(test_choose__priority_words_come_before_the_built_in_order),
	DG_TEST(test_choose__a_wrong_priority_word_names_the_known_ones),
	DG_TEST(test_choose__devgate_device_wins_and_takes_any_text),
	DG_TEST(test_choose__an_unknown_override_keeps_its_spelling_within_limits),
	DG_TEST(test_words__are_a_set_and_know_capture_and_autodiff),
	DG_TEST(test_variant_default__is_its_own),
	DG_TEST(test_environment__devgate_names_come_before_their_aliases),
	DG_TEST(test_environment__a_wrong_remote_address_is_named),
};

/* The variables that this program itself sets must not come from outside. */
int main(void)
{
	static const char *const variables[] = { "BURN_DEVICE", "DEVGATE_DEVICE",
		"BURN_DEVICE_PRIORITY", "DEVGATE_DEVICE_PRIORITY", "BURN_REMOTE_ADDRESS",
		"DEVGATE_REMOTE_ADDRESS" };
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	return dg_test_run("api/default", cases, sizeof(cases) / sizeof(cases[0]));
}
