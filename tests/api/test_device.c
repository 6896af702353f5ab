/* Devices: ids, equality, autodiff; every case of the reference's vectors. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <devgate/device.h>
#include <devgate/settings.h>

#include "api/registry.h"

static json_t *load(const char *name)
{
	json_error_t error;
	json_t *root = json_load_file(dg_test_fixture(name), 0, &error);
	if (!root)
		CU_FAIL_FATAL("a file of vectors cannot be read");
	return root;
}

static const char *text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

static unsigned number_of(json_t *object, const char *key)
{
	return (unsigned)json_integer_value(json_object_get(object, key));
}

static dg_variant variant_named(const char *name)
{
	for (unsigned i = 0; i < DG_VARIANT_COUNT; i++)
		if (strcmp(dg_variant_name(i), name) == 0)
			return (dg_variant)i;
	CU_FAIL_FATAL("a vector names an unknown variant");
	return DG_CPU;
}

static dg_kind kind_named(dg_variant variant, const char *name)
{
	static const char *const adapters[] = { "DiscreteGpu", "IntegratedGpu", "VirtualGpu", "Cpu",
		"DefaultDevice", "Existing" };
	static const char *const torch[] = { "Cuda", "Mps", "Cpu", "Vulkan" };
	const char *const *names = variant == DG_LIBTORCH ? torch : adapters;
	size_t count = variant == DG_LIBTORCH ? 4 : 6;
	for (size_t i = 0; *name && i < count; i++)
		if (strcmp(names[i], name) == 0)
			return (dg_kind)i;
	return DG_KIND_NONE;
}

static void check_settings(dg_device device, json_t *expected)
{
	dg_settings s = DG_SETTINGS_INIT;
	json_t *quantization = json_object_get(expected, "quantization");
	CU_ASSERT_EQUAL(dg_settings_defaults(device, &s, NULL), DG_OK);
	CU_ASSERT_STRING_EQUAL(dg_dtype_name(s.float_dtype), text_of(expected, "float_dtype"));
	CU_ASSERT_STRING_EQUAL(dg_dtype_name(s.int_dtype), text_of(expected, "int_dtype"));
	CU_ASSERT_STRING_EQUAL(dg_bool_store_name(s.bool_store), text_of(expected, "bool_dtype"));
	CU_ASSERT_STRING_EQUAL(dg_quant_store_name(s.quant_store), text_of(quantization, "store"));
	CU_ASSERT_STRING_EQUAL(text_of(quantization, "value"), "Q8F");
	CU_ASSERT_STRING_EQUAL(text_of(quantization, "mode"), "Symmetric");
	CU_ASSERT_STRING_EQUAL(text_of(quantization, "propagation"), "Inhibit");
}

static void check_debug(dg_device device, const char *expected)
{
	char debug[DG_DEVICE_TEXT_MAX];
	CU_ASSERT_EQUAL(dg_device_debug(device, debug, sizeof(debug)), strlen(expected));
	CU_ASSERT_STRING_EQUAL(debug, expected);
}

static void check_made(json_t *c)
{
	dg_device device = { 0 }, back = { 0 };
	dg_variant variant = variant_named(text_of(c, "variant"));
	dg_kind kind = kind_named(variant, text_of(c, "kind"));
	dg_err err = dg_device_make(variant, kind, number_of(c, "index"), &device, NULL);
	if (json_object_get(c, "error")) {
		CU_ASSERT_STRING_EQUAL(dg_err_code(err), text_of(c, "error"));
		return;
	}
	CU_ASSERT_EQUAL(err, DG_OK);
	dg_id id = dg_device_to_id(device);
	CU_ASSERT_EQUAL(id.type_id, number_of(c, "type_id"));
	CU_ASSERT_EQUAL(id.index_id, number_of(c, "index_id"));
	CU_ASSERT_EQUAL(dg_device_from_id(id, &back, NULL), DG_OK);
	CU_ASSERT(dg_device_equal_strict(device, back));
	check_debug(device, text_of(c, "debug"));
	check_settings(device, json_object_get(c, "settings"));
}

static void test_vectors__devices_encode_decode_print_and_have_their_settings(void)
{
	json_t *root = load("vectors/device_ids.json"), *c;
	size_t i;
	CU_ASSERT(json_array_size(json_object_get(root, "cases")) > 0);
	json_array_foreach(json_object_get(root, "cases"), i, c) check_made(c);
	json_decref(root);
}

static void test_vectors__ids_decode(void)
{
	json_t *root = load("vectors/decode.json"), *c;
	size_t i;
	CU_ASSERT(json_array_size(json_object_get(root, "cases")) > 0);
	json_array_foreach(json_object_get(root, "cases"), i, c)
	{
		dg_device device = { 0 };
		dg_id id = { (uint16_t)number_of(c, "type_id"),
			(uint16_t)number_of(c, "index_id") };
		dg_err err = dg_device_from_id(id, &device, NULL);
		if (json_object_get(c, "error")) {
			CU_ASSERT_STRING_EQUAL(dg_err_code(err), text_of(c, "error"));
			continue;
		}
		CU_ASSERT_EQUAL(err, DG_OK);
		check_debug(device, text_of(c, "debug"));
		id = dg_device_to_id(device);
		CU_ASSERT_EQUAL(id.type_id, number_of(json_object_get(c, "reencoded"), "type_id"));
		CU_ASSERT_EQUAL(
			id.index_id, number_of(json_object_get(c, "reencoded"), "index_id"));
	}
	json_decref(root);
}

static dg_strategy strategy_of(json_t *value)
{
	const char *name = json_string_value(value);
	if (!name)
		return DG_STRATEGY_NONE;
	return strcmp(name, "Balanced") == 0 ? DG_STRATEGY_BALANCED : DG_STRATEGY_DISABLED;
}

static void test_vectors__strategies_merge(void)
{
	json_t *root = load("vectors/checkpointing.json"), *c;
	size_t i;
	CU_ASSERT(json_array_size(json_object_get(root, "cases")) > 0);
	json_array_foreach(json_object_get(root, "cases"), i, c)
	{
		dg_error error;
		dg_strategy merged = (dg_strategy)77;
		dg_err err = dg_strategy_merge(strategy_of(json_object_get(c, "lhs")),
			strategy_of(json_object_get(c, "rhs")), &merged, &error);
		if (json_object_get(c, "error")) {
			CU_ASSERT_EQUAL(err, DG_ESTRATEGY);
			CU_ASSERT_STRING_EQUAL(error.text, text_of(c, "error"));
			CU_ASSERT_EQUAL((int)merged, 77);
		} else {
			CU_ASSERT_EQUAL(err, DG_OK);
			CU_ASSERT_EQUAL(merged, strategy_of(json_object_get(c, "result")));
		}
	}
	json_decref(root);
}

static dg_err expected_error(unsigned type_id, unsigned index_id, size_t remotes)
{
	unsigned backend = type_id >> 8, type = type_id & 255;
	if (backend > 11)
		return DG_EBACKEND;
	if ((backend == 10 && type != 0) || (backend == 11 && type != 255))
		return DG_ETYPE;
	return backend == 10 && index_id >= remotes ? DG_EUNREGISTERED : DG_OK;
}

static void test_from_id__every_type_decodes_or_is_one_named_error(void)
{
	static const uint16_t samples[] = { 0, 1, 2, 3, 7, 255, 256, 4095, 32767, 32768, 65534,
		65535 };
	dg_device remote;
	unsigned wrong = 0;
	CU_ASSERT_EQUAL(dg_device_parse("https://node1:8443#3", &remote, NULL), DG_OK);
	size_t remotes = dg__registry_count();
	for (unsigned type_id = 0; type_id <= 65535; type_id++) {
		for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
			dg_device device = { 9, 9, 999, 9, 9, { 0, 0 } }, again;
			dg_id id = { (uint16_t)type_id, samples[i] };
			dg_err err = dg_device_from_id(id, &device, NULL);
			wrong += err != expected_error(type_id, samples[i], remotes);
			if (err) {
				wrong += device.index != 999;
				continue;
			}
			dg_id canonical = dg_device_to_id(device);
			wrong += dg_device_from_id(canonical, &again, NULL) != DG_OK;
			wrong += !dg_device_equal_strict(device, again);
			wrong += dg_id_compare(dg_device_to_id(again), canonical) != 0;
			wrong += canonical.type_id >> 8 != type_id >> 8;
		}
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void test_from_id__says_what_is_wrong(void)
{
	dg_error error;
	dg_device device;
	CU_ASSERT_EQUAL(dg_device_from_id((dg_id){ 12 << 8, 0 }, &device, &error), DG_EBACKEND);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "12"));
	CU_ASSERT_EQUAL(dg_device_from_id((dg_id){ 10 << 8 | 4, 0 }, &device, &error), DG_ETYPE);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "Remote"));
	CU_ASSERT_EQUAL(
		dg_device_from_id((dg_id){ 10 << 8, 65535 }, &device, &error), DG_EUNREGISTERED);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "65535"));
}

static void test_ids__order_by_type_then_index(void)
{
	CU_ASSERT_EQUAL(dg_id_compare((dg_id){ 1, 9 }, (dg_id){ 2, 0 }), -1);
	CU_ASSERT_EQUAL(dg_id_compare((dg_id){ 2, 0 }, (dg_id){ 1, 9 }), 1);
	CU_ASSERT_EQUAL(dg_id_compare((dg_id){ 2, 1 }, (dg_id){ 2, 3 }), -1);
	CU_ASSERT_EQUAL(dg_id_compare((dg_id){ 2, 3 }, (dg_id){ 2, 1 }), 1);
	CU_ASSERT_EQUAL(dg_id_compare((dg_id){ 2, 3 }, (dg_id){ 2, 3 }), 0);
}

static void test_make__refuses_what_no_device_holds(void)
{
	dg_device device = { 9, 9, 9, 9, 9, { 9, 9 } };
	CU_ASSERT_EQUAL(
		dg_device_make((dg_variant)12, DG_KIND_NONE, 0, &device, NULL), DG_EINVALID);
	CU_ASSERT_EQUAL(dg_device_make(DG_REMOTE, DG_KIND_NONE, 0, &device, NULL), DG_EINVALID);
	CU_ASSERT_EQUAL(dg_device_make(DG_CAPTURE, DG_KIND_NONE, 0, &device, NULL), DG_EINVALID);
	CU_ASSERT_EQUAL(dg_device_make(DG_VULKAN, (dg_kind)6, 0, &device, NULL), DG_ETYPE);
	CU_ASSERT_EQUAL(dg_device_make(DG_LIBTORCH, (dg_kind)4, 0, &device, NULL), DG_ETYPE);
	CU_ASSERT_EQUAL(dg_device_make(DG_VULKAN, DG_KIND_DEFAULT, 1, &device, NULL), DG_EINVALID);
	CU_ASSERT_EQUAL(dg_device_make(DG_CPU, DG_KIND_NONE, 1, &device, NULL), DG_EINVALID);
	CU_ASSERT_EQUAL(
		dg_device_make(DG_CUDA, DG_KIND_NONE, 0xffffffffu, &device, NULL), DG_ERANGE);
	CU_ASSERT_EQUAL(device.index, 9);
	CU_ASSERT_EQUAL(dg_device_make(DG_CUDA, DG_KIND_EXISTING, 1, &device, NULL), DG_OK);
	CU_ASSERT_EQUAL(device.kind, 0);
}

static dg_device parsed(const char *text)
{
	dg_device device = { 0 };
	CU_ASSERT_EQUAL(dg_device_parse(text, &device, NULL), DG_OK);
	return device;
}

static void test_equal__is_address_of_hardware_and_ignores_autodiff(void)
{
	dg_device cuda = parsed("cuda:1"), wrapped, balanced;
	CU_ASSERT_EQUAL(dg_device_autodiff(cuda, DG_STRATEGY_NONE, &wrapped, NULL), DG_OK);
	CU_ASSERT_EQUAL(wrapped.strategy, DG_STRATEGY_DISABLED);
	CU_ASSERT_EQUAL(dg_device_autodiff(cuda, DG_STRATEGY_BALANCED, &balanced, NULL), DG_OK);
	CU_ASSERT(dg_device_equal(cuda, wrapped) && dg_device_equal(wrapped, cuda));
	CU_ASSERT(dg_device_equal(balanced, wrapped));
	CU_ASSERT_FALSE(dg_device_equal_strict(balanced, wrapped));
	CU_ASSERT_FALSE(dg_device_equal_strict(cuda, wrapped));
	CU_ASSERT(dg_device_equal_strict(cuda, dg_device_inner(balanced)));
	CU_ASSERT(dg_device_equal_strict(cuda, dg_device_inner(cuda)));
	CU_ASSERT_EQUAL(dg_id_compare(dg_device_to_id(cuda), dg_device_to_id(balanced)), 0);
	CU_ASSERT_FALSE(dg_device_equal(cuda, parsed("cuda:0")));
	CU_ASSERT_FALSE(dg_device_equal(parsed("vulkan:discrete:0"), parsed("wgpu:discrete:0")));
	CU_ASSERT_FALSE(dg_device_equal(parsed("vulkan"), parsed("vulkan:discrete:0")));
	CU_ASSERT_FALSE(dg_device_equal(parsed("flex"), parsed("cpu")));
}

static void test_equal__remote_devices_by_endpoint_and_index(void)
{
	CU_ASSERT(dg_device_equal(parsed("https://NODE1#2"), parsed("wss://node1:8443/#2")));
	CU_ASSERT(dg_device_equal(parsed("http://node1"), parsed("ws://node1:8443#0")));
	CU_ASSERT_FALSE(dg_device_equal(parsed("https://node1"), parsed("http://node1")));
	CU_ASSERT_FALSE(dg_device_equal(parsed("https://node1#2"), parsed("https://node1#3")));
	CU_ASSERT_FALSE(dg_device_equal(parsed("https://node1:1#2"), parsed("https://node1:2#2")));
	CU_ASSERT_FALSE(dg_device_equal(parsed("https://node1#2"), parsed("https://node2#2")));
}

static void test_autodiff__twice_is_refused(void)
{
	dg_device device = parsed("autodiff(cuda:0)"), kept = device;
	CU_ASSERT_EQUAL(
		dg_device_autodiff(device, DG_STRATEGY_BALANCED, &device, NULL), DG_EAUTODIFF);
	CU_ASSERT(dg_device_equal_strict(device, kept));
	CU_ASSERT_EQUAL(
		dg_device_autodiff(parsed("cpu"), (dg_strategy)3, &device, NULL), DG_EINVALID);
}

static void test_capture__each_differs_until_all_are_taken(void)
{
	dg_device first, last, device;
	unsigned count = 1;
	CU_ASSERT_EQUAL(dg_device_capture(&first, NULL), DG_OK);
	last = first;
	while (dg_device_capture(&device, NULL) == DG_OK) {
		CU_ASSERT_FALSE_FATAL(
			dg_device_equal(device, last) || dg_device_equal(device, first));
		last = device;
		count++;
	}
	CU_ASSERT_EQUAL(count, 65536);
	CU_ASSERT_EQUAL(dg_device_capture(&device, NULL), DG_ERANGE);
	CU_ASSERT_EQUAL(dg_device_to_id(last).type_id, 11 << 8 | 255);
}

static void test_names__are_null_for_what_is_none(void)
{
	CU_ASSERT_STRING_EQUAL(dg_variant_name(1), "Cuda");
	CU_ASSERT_PTR_NULL(dg_variant_name(12));
	CU_ASSERT_STRING_EQUAL(dg_kind_name(DG_VULKAN, DG_KIND_VIRTUAL), "virtual");
	CU_ASSERT_STRING_EQUAL(dg_kind_name(DG_LIBTORCH, DG_KIND_TORCH_MPS), "mps");
	CU_ASSERT_PTR_NULL(dg_kind_name(DG_LIBTORCH, 4));
	CU_ASSERT_PTR_NULL(dg_kind_name(DG_CUDA, 0));
	CU_ASSERT_PTR_NULL(dg_kind_name((dg_variant)99, 0));
	CU_ASSERT_PTR_NULL(dg_kind_name(DG_VULKAN, 99));
	CU_ASSERT(dg_variant_has_kernels(DG_CPU) && dg_variant_has_kernels(DG_WEBGPU));
	CU_ASSERT_FALSE(dg_variant_has_kernels(DG_FLEX) || dg_variant_has_kernels(DG_NDARRAY) ||
			dg_variant_has_kernels(DG_LIBTORCH) || dg_variant_has_kernels(DG_CAPTURE) ||
			dg_variant_has_kernels((dg_variant)99));
}

static const dg_test_case cases[] = {
	DG_TEST(test_vectors__devices_encode_decode_print_and_have_their_settings),
	DG_TEST(test_vectors__ids_decode),
	DG_TEST(test_vectors__strategies_merge),
	DG_TEST(test_from_id__every_type_decodes_or_is_one_named_error),
	DG_TEST(test_from_id__says_what_is_wrong),
	DG_TEST(test_ids__order_by_type_then_index),
	DG_TEST(test_make__refuses_what_no_device_holds),
	DG_TEST(test_equal__is_address_of_hardware_and_ignores_autodiff),
	DG_TEST(test_equal__remote_devices_by_endpoint_and_index),
	DG_TEST(test_autodiff__twice_is_refused),
	DG_TEST(test_capture__each_differs_until_all_are_taken),
	DG_TEST(test_names__are_null_for_what_is_none),
};

DG_TEST_MAIN("api/device", cases)
