/* Devices, their lists and the gateway on the wire. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "api/wire.h"
#include "tests/test.h"

static json_t *write_device(const dg__device_entry *entry)
{
	dg__json_text text = { NULL, 0 };
	CU_ASSERT_EQUAL(dg__wire_encode_device(entry, &text), DG_OK);
	json_t *root = json_loads(text.text ? text.text : "", 0, NULL);
	free(text.text);
	return root;
}

static bool is_null(const json_t *object, const char *name)
{
	/* Absent is not null, which has but one value. */
	return json_object_get(object, name) == json_null();
}

static void test_device__what_is_absent_is_null(void)
{
	static const char *const names[] = { "index", "device", "debug", "id", "backend", "name",
		"vendor", "driver", "architecture", "uuid", "pci_address", "parent", "hardware",
		"host", "units", "reason", "settings" };
	static const char *const figures[] = { "total_bytes", "free_bytes", "usable_bytes",
		"max_alloc_bytes" };
	static dg__device_entry entry;
	entry.info.units = 7; /* without its bit it is unknown */
	json_t *o = write_device(&entry);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!is_null(o, names[i]))
			printf("\n    %s is not null\n", names[i]);
		CU_ASSERT(is_null(o, names[i]));
	}
	for (size_t i = 0; i < 4; i++)
		CU_ASSERT(is_null(json_object_get(o, "memory"), figures[i]));
	CU_ASSERT_EQUAL(json_array_size(json_object_get(o, "dtypes")), 0);
	CU_ASSERT(json_is_array(json_object_get(o, "matrix_shapes")));
	CU_ASSERT(json_is_false(json_object_get(o, "software")));
	json_decref(o);
}

/* The reference's cases: Debug text, id and settings of every variant. */
static void test_device__is_spelled_as_the_reference_spells_it(void)
{
	json_t *root = json_load_file(dg_test_fixture("vectors/device_ids.json"), 0, NULL);
	json_t *list = json_object_get(root, "cases");
	size_t checked = 0;
	CU_ASSERT(json_array_size(list) > 10);
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *c = json_array_get(list, i);
		if (json_object_get(c, "error"))
			continue; /* an index that no device has */
		static dg__device_entry entry;
		dg_id id = { (uint16_t)json_integer_value(json_object_get(c, "type_id")),
			(uint16_t)json_integer_value(json_object_get(c, "index_id")) };
		memset(&entry, 0, sizeof(entry));
		entry.info.present = DG_HAS_DEVICE;
		if (dg_device_from_id(id, &entry.info.device, NULL) != DG_OK)
			continue; /* a Remote, of which there is none here */
		CU_ASSERT_EQUAL(
			dg_settings_defaults(entry.info.device, &entry.settings, NULL), DG_OK);
		json_t *o = write_device(&entry);
		CU_ASSERT(json_equal(json_object_get(o, "debug"), json_object_get(c, "debug")));
		CU_ASSERT(json_equal(json_object_get(o, "variant"), json_object_get(c, "variant")));
		CU_ASSERT(
			json_equal(json_object_get(o, "settings"), json_object_get(c, "settings")));
		json_decref(o);
		checked++;
	}
	CU_ASSERT(checked > 40);
	json_decref(root);
}

static void test_device__bytes_that_are_no_text_are_replaced(void)
{
	static const struct {
		const char *is, *becomes;
	} cases[] = {
		{ "a\xff"
		  "b",
			"a\xef\xbf\xbd"
			"b" },
		{ "\xc3", "\xef\xbf\xbd" },
		{ "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xf0\x9f\x98\x80 \xe2\x98\x83", "\xf0\x9f\x98\x80 \xe2\x98\x83" },
		{ "tab\t\"quoted\" \x1b[31m", "tab\t\"quoted\" \x1b[31m" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static dg__device_entry entry;
		memset(&entry, 0, sizeof(entry));
		snprintf(entry.info.name, sizeof(entry.info.name), "%s", cases[i].is);
		json_t *o = write_device(&entry);
		const char *name = json_string_value(json_object_get(o, "name"));
		CU_ASSERT_STRING_EQUAL(name ? name : "", cases[i].becomes);
		json_decref(o);
	}
}

static void test_device__numbers_out_of_their_enumeration_are_null(void)
{
	static dg__device_entry entry;
	entry.info.device.variant = 77;
	entry.info.shape_count = 1;
	entry.info.shapes[0] = (dg_matrix_shape){ (dg_dtype)99, DG_F32, 1, 1, 1 };
	entry.settings = (dg_settings)DG_SETTINGS_INIT;
	entry.settings.bool_store = (dg_bool_store)9;
	json_t *o = write_device(&entry);
	CU_ASSERT(is_null(o, "variant"));
	CU_ASSERT(is_null(json_object_get(o, "settings"), "bool_dtype"));
	CU_ASSERT(is_null(json_array_get(json_object_get(o, "matrix_shapes"), 0), "dtype"));
	json_decref(o);
}

static void test_device__dtypes_of_later_versions_are_left_out(void)
{
	static const char json[] =
		"{\"variant\":\"Cuda\",\"state\":\"ok\",\"dtypes\":[\"F32\",\"F4096\",\"I8\"],"
		"\"matrix_shapes\":[{\"dtype\":\"F4096\",\"accumulator\":\"F32\",\"m\":1,\"n\":1,"
		"\"k\":1},{\"dtype\":\"F16\",\"accumulator\":\"F32\",\"m\":1,\"n\":2,\"k\":3}]}";
	static dg__device_entry entry;
	CU_ASSERT_EQUAL_FATAL(dg__wire_decode_device(json, strlen(json), &entry, NULL), DG_OK);
	CU_ASSERT_EQUAL(entry.info.dtypes, (uint64_t)1 << DG_F32 | (uint64_t)1 << DG_I8);
	CU_ASSERT_EQUAL(entry.info.shape_count, 1);
	CU_ASSERT(entry.info.shapes[0].dtype == DG_F16 && entry.info.shapes[0].n == 2);
	CU_ASSERT_EQUAL(entry.info.present, 0);
	CU_ASSERT_EQUAL(entry.settings.size, 0);
}

static void test_device__faults_name_the_place(void)
{
	static const struct {
		const char *json, *says;
	} cases[] = {
		{ "7", "expected a device" },
		{ "{}", "variant: missing" },
		{ "{\"variant\":\"Abacus\"}", "variant: is no variant" },
		{ "{\"variant\":\"Cpu\"}", "state: missing" },
		{ "{\"variant\":\"Cpu\",\"state\":\"well\"}",
			"state: unknown word; expected one of ok" },
		{ "{\"variant\":\"Cpu\",\"state\":\"ok\",\"index\":65536}", "index: 65536" },
		{ "{\"variant\":\"Cpu\",\"state\":\"ok\",\"device\":\"cuda:0\"}",
			"device: is no local" },
		{ "{\"variant\":\"Remote\",\"state\":\"ok\",\"device\":\"remote:https://h:1#0\"}",
			"device: is no local" },
		{ "{\"variant\":\"Cpu\",\"state\":\"ok\",\"device\":\"abacus\"}", "device: " },
		{ "{\"variant\":\"Cpu\",\"state\":\"ok\",\"memory\":7}",
			"memory: expected an object" },
		{ "{\"variant\":\"Cpu\",\"state\":\"ok\",\"memory\":{\"free_bytes\":-1}}",
			"memory.free_bytes: -1" },
		{ "{\"variant\":\"Cpu\",\"state\":\"ok\",\"dtypes\":[7]}", "dtypes: item 0" },
		{ "{\"variant\":\"Cpu\",\"state\":\"ok\",\"matrix_shapes\":[{}]}",
			"matrix_shapes[0].dtype: missing" },
		{ "{\"variant\":\"Cpu\",\"state\":\"ok\",\"settings\":{}}",
			"settings.float_dtype: missing" },
		{ "{\"variant\":\"Cpu\",\"state\":\"ok\",\"settings\":{\"float_dtype\":\"I32\"}}",
			"settings.float_dtype: is not the name of a float" },
		{ "{\"variant\":\"Cpu\",\"state\":\"ok\",\"uuid\":\"0123456789012345678901234567890"
		  "1234567890123456789012345678901234567890\"}",
			"uuid: has 71 bytes" },
		{ "{\"variant\":\"Cpu\",\"state\":\"ok\",\"software\":\"no\"}", "software: " },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static dg__device_entry entry;
		dg_error error = { .code = DG_OK };
		dg_err err = dg__wire_decode_device(
			cases[i].json, strlen(cases[i].json), &entry, &error);
		if (err != DG_EFIELD || !strstr(error.text, cases[i].says))
			printf("\n    %s: %s: %s\n", cases[i].json, dg_err_code(err), error.text);
		CU_ASSERT_EQUAL(err, DG_EFIELD);
		CU_ASSERT_PTR_NOT_NULL(strstr(error.text, cases[i].says));
	}
}

static dg_err read_list(const char *json, dg__device_list *ret, dg_error *error)
{
	return dg__wire_decode_devices(json, strlen(json), ret, error);
}

static void test_devices__faults_name_the_item(void)
{
	dg__device_list list;
	dg_error error;
	CU_ASSERT_EQUAL(read_list("{\"devices\":[{\"variant\":\"Cpu\",\"state\":\"ok\"},7]}", &list,
				&error),
		DG_EFIELD);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "devices[1]: "));
	CU_ASSERT_EQUAL(read_list("{}", &list, &error), DG_EFIELD);
	CU_ASSERT_EQUAL(read_list("{\"devices\":[],\"detecting\":[\"a name that is too long\"]}",
				&list, NULL),
		DG_EFIELD);
	CU_ASSERT_EQUAL(read_list("{\"devices\":[],\"detecting\":[7]}", &list, NULL), DG_EFIELD);
}

static char *list_of(size_t count)
{
	static const char item[] = "{\"variant\":\"Cpu\",\"state\":\"ok\"},";
	size_t room = count * sizeof(item) + 32;
	char *json = malloc(room), *at = json;
	at += snprintf(at, room, "{\"devices\":[");
	for (size_t i = 0; i < count; i++)
		at += snprintf(at, sizeof(item), "%s", item);
	snprintf(at - 1, 3, "]}"); /* over the last comma */
	return json;
}

static void test_devices__have_a_limit(void)
{
	dg__device_list list;
	char *json = list_of(DG__DEVICES_MAX);
	CU_ASSERT_EQUAL_FATAL(read_list(json, &list, NULL), DG_OK);
	CU_ASSERT_EQUAL(list.count, DG__DEVICES_MAX);
	dg__device_list_finish(&list);
	free(json);
	json = list_of(DG__DEVICES_MAX + 1);
	CU_ASSERT_EQUAL(read_list(json, &list, NULL), DG_ETOOMANY);
	free(json);
}

static void test_gateway__faults_name_the_place(void)
{
	static const struct {
		const char *json, *says;
	} cases[] = {
		{ "[]", "expected a JSON object" },
		{ "{}", "id: missing" },
		{ "{\"id\":\"a\",\"host\":\"b\",\"version\":\"1\",\"ready\":true,\"backends\":[{}]"
		  "}",
			"backends[0].name: missing" },
		{ "{\"id\":\"a\",\"host\":\"b\",\"version\":\"1\",\"ready\":true,\"backends\":[],"
		  "\"started_at\":\"2026-02-29T00:00:00.000Z\"}",
			"started_at: " },
		{ "{\"id\":\"a\",\"host\":\"b\",\"version\":\"1\",\"ready\":true,\"backends\":[],"
		  "\"limits\":{\"max_keys\":-1}}",
			"limits.max_keys: -1" },
		{ "{\"id\":\"a\",\"host\":\"b\",\"version\":\"1\",\"ready\":true,\"backends\":"
		  "[{\"name\":\"cpu\",\"state\":\"fine\",\"devices\":1}]}",
			"backends[0].state: unknown word; expected one of detecting" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static dg__gateway gateway;
		dg_error error = { .code = DG_OK };
		CU_ASSERT_EQUAL(dg__wire_decode_gateway(
					cases[i].json, strlen(cases[i].json), &gateway, &error),
			DG_EFIELD);
		if (!strstr(error.text, cases[i].says))
			printf("\n    %s: %s\n", cases[i].json, error.text);
		CU_ASSERT_PTR_NOT_NULL(strstr(error.text, cases[i].says));
	}
}

static const dg_test_case cases[] = {
	DG_TEST(test_device__what_is_absent_is_null),
	DG_TEST(test_device__is_spelled_as_the_reference_spells_it),
	DG_TEST(test_device__bytes_that_are_no_text_are_replaced),
	DG_TEST(test_device__numbers_out_of_their_enumeration_are_null),
	DG_TEST(test_device__dtypes_of_later_versions_are_left_out),
	DG_TEST(test_device__faults_name_the_place),
	DG_TEST(test_devices__faults_name_the_item),
	DG_TEST(test_devices__have_a_limit),
	DG_TEST(test_gateway__faults_name_the_place),
};

DG_TEST_MAIN("devices on the wire", cases)
