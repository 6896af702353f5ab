/* Values with their evidence, curves and rooflines on the wire. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "api/wire.h"
#include "tests/test.h"

static dg_value value_of(const char *key)
{
	dg_value value = { .status = DG_STATUS_OK };
	CU_ASSERT_EQUAL(dg_key_parse(key, &value.key, NULL), DG_OK);
	return value;
}

/* The one value of a list, as written. Owned; "" members read as such. */
static json_t *write_value(dg_value *value)
{
	dg__values values = { .device = "cpu", .count = 1, .values = value };
	dg__json_text text = { NULL, 0 };
	CU_ASSERT_EQUAL(dg__wire_encode_values(&values, &text), DG_OK);
	json_t *root = json_loads(text.text ? text.text : "", 0, NULL);
	json_t *one = json_incref(json_array_get(json_object_get(root, "values"), 0));
	json_decref(root);
	free(text.text);
	return one;
}

static const char *text_at(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "";
}

static bool is_null(const json_t *object, const char *name)
{
	/* Absent is not null, which has but one value. */
	return json_object_get(object, name) == json_null();
}

static void test_value__has_count_and_duration_as_the_reference(void)
{
	dg_value value = value_of("compute:f32");
	value.ops_count = 3000;
	value.duration_ns = 2000000001;
	json_t *o = write_value(&value);
	json_t *duration = json_object_get(o, "duration");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(o, "ops_count")), 3000);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(duration, "secs")), 2);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(duration, "nanos")), 1);
	CU_ASSERT_STRING_EQUAL(text_at(o, "name"), "compute:f32");
	CU_ASSERT_STRING_EQUAL(text_at(o, "status"), "ok");
	CU_ASSERT(is_null(o, "code") && is_null(o, "reason"));
	double rate = 3000 / 2.000000001;
	CU_ASSERT_DOUBLE_EQUAL(
		json_number_value(json_object_get(o, "ops_per_s")), rate, rate * 1e-12);
	CU_ASSERT(is_null(o, "bytes_per_s"));
	json_decref(o);
}

static void test_value__memory_has_bytes_a_second_too(void)
{
	dg_value value = value_of("memory:read:65536:resident");
	value.ops_count = 1000;
	value.duration_ns = 1000;
	json_t *o = write_value(&value);
	CU_ASSERT_EQUAL(json_number_value(json_object_get(o, "ops_per_s")), 1e9);
	CU_ASSERT_EQUAL(json_number_value(json_object_get(o, "bytes_per_s")), 4e9);
	CU_ASSERT_STRING_EQUAL(text_at(o, "text"), "4.0000 Gbytes/s");
	json_decref(o);
}

static void test_value__undefined_rates_are_null(void)
{
	dg_value value = value_of("memory");
	value.ops_count = 1000;
	json_t *o = write_value(&value);
	CU_ASSERT(is_null(o, "ops_per_s") && is_null(o, "bytes_per_s") && is_null(o, "text"));
	json_decref(o);
}

static void test_value__unsupported_is_zero_with_a_reason(void)
{
	dg_value value = value_of("compute:e4m3");
	value.status = DG_STATUS_UNSUPPORTED;
	value.code = DG_ENOTSUP;
	value.ops_count = 5; /* is not told: it is no result */
	value.duration_ns = 5;
	snprintf(value.reason, sizeof(value.reason), "no such unit");
	json_t *o = write_value(&value);
	CU_ASSERT_STRING_EQUAL(text_at(o, "status"), "unsupported");
	CU_ASSERT_STRING_EQUAL(text_at(o, "code"), "unsupported");
	CU_ASSERT_STRING_EQUAL(text_at(o, "reason"), "no such unit");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(o, "ops_count")), 0);
	CU_ASSERT(json_is_integer(json_object_get(o, "ops_count")));
	CU_ASSERT(is_null(o, "ops_per_s") && is_null(o, "text") && is_null(o, "evidence"));
	json_decref(o);
}

static void test_value__counts_beyond_json_integers_are_refused(void)
{
	dg_value value = value_of("compute:f32");
	dg__values values = { .device = "cpu", .count = 1, .values = &value };
	dg__curve_reply curve = { .values = values };
	dg__frame *frame = calloc(1, sizeof(*frame));
	dg__json_text text = { NULL, 0 };
	value.ops_count = (uint64_t)INT64_MAX + 1;
	frame->kind = DG__FRAME_VALUE;
	frame->value = value;
	CU_ASSERT_EQUAL(dg__wire_encode_values(&values, &text), DG_EINTERNAL);
	CU_ASSERT_EQUAL(dg__wire_encode_curve(&curve, &text), DG_EINTERNAL);
	CU_ASSERT_EQUAL(dg__wire_encode_frame(frame, &text), DG_EINTERNAL);
	CU_ASSERT_PTR_NULL(text.text);
	value.ops_count--;
	json_t *o = write_value(&value);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(o, "ops_count")), INT64_MAX);
	json_decref(o);
	free(frame);
}

static void test_evidence__only_what_is_present(void)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} figures[] = { { DG_HAS_CLOCK, "clock_hz" }, { DG_HAS_POWER, "power_w" },
		{ DG_HAS_TEMPERATURE, "temperature_celsius" },
		{ DG_HAS_SUSTAINED, "sustained_per_s" }, { DG_HAS_STREAMING, "streaming_per_s" } };
	for (size_t i = 0; i < 5; i++) {
		dg_value value = value_of("launch");
		value.evidence = (dg_evidence){ .present = figures[i].bit,
			.clock_hz = 1,
			.power_w = 2,
			.temperature_celsius = -3,
			.sustained_per_s = 4,
			.streaming_per_s = 5 };
		json_t *o = write_value(&value), *e = json_object_get(o, "evidence");
		for (size_t k = 0; k < 5; k++)
			CU_ASSERT_EQUAL(is_null(e, figures[k].name), i != k);
		json_decref(o);
	}
}

static void test_evidence__flags_are_booleans_and_nothing_is_null(void)
{
	static const char *const flags[] = { "throttled", "disturbed", "unstable",
		"clocks_disagree" };
	for (uint32_t set = 0; set < 16; set++) {
		dg_value value = value_of("launch");
		value.evidence.flags = set;
		value.evidence.spread = NAN;
		json_t *o = write_value(&value), *e = json_object_get(o, "evidence");
		for (uint32_t i = 0; i < 4; i++)
			CU_ASSERT_EQUAL(
				json_is_true(json_object_get(e, flags[i])), (set >> i & 1) != 0);
		CU_ASSERT(is_null(e, "traffic") && is_null(e, "throttle_reason"));
		CU_ASSERT(is_null(e, "spread") && is_null(e, "measured_at"));
		json_decref(o);
	}
}

static dg_err read_values(const char *json, dg__values *ret, dg_error *error)
{
	return dg__wire_decode_values(json, strlen(json), ret, error);
}

static void test_value__comes_back_whole(void)
{
	dg_value value = value_of("memory:copy:4096");
	value.ops_count = INT64_MAX;
	value.duration_ns = 12345678901;
	value.evidence = (dg_evidence){ .present = DG_HAS_CLOCK | DG_HAS_DEVICE_TIME,
		.flags = DG_FLAG_DISTURBED,
		.samples = UINT32_MAX,
		.iterations = 7,
		.best_ns = 1,
		.median_ns = INT64_MAX,
		.spread = 0.1,
		.clock_source = "device",
		.working_set_bytes = 8192,
		.traffic = "read+write",
		.shape = "avx512 \"chains\"=12\n\xc3\xa9",
		.clock_hz = 1.0 / 3.0,
		.busy_fraction = 1,
		.driver = "devgate-cpu 0.1.0",
		.engine = "1",
		.measured_at_ms = 1796126400123,
		.elapsed_ms = 5 };
	dg__values values = { .device = "cpu", .count = 1, .values = &value }, back;
	dg__json_text text;
	CU_ASSERT_EQUAL(dg__wire_encode_values(&values, &text), DG_OK);
	CU_ASSERT_EQUAL_FATAL(read_values(text.text, &back, NULL), DG_OK);
	CU_ASSERT_STRING_EQUAL(back.device, "cpu");
	CU_ASSERT_EQUAL(back.count, 1);
	CU_ASSERT(dg_key_equal(&back.values[0].key, &value.key));
	CU_ASSERT_EQUAL(back.values[0].ops_count, value.ops_count);
	CU_ASSERT_EQUAL(back.values[0].duration_ns, value.duration_ns);
	const dg_evidence *e = &back.values[0].evidence;
	CU_ASSERT(e->present == value.evidence.present && e->flags == value.evidence.flags);
	CU_ASSERT(e->clock_hz == value.evidence.clock_hz && e->spread == value.evidence.spread);
	CU_ASSERT(e->samples == UINT32_MAX && e->median_ns == INT64_MAX);
	CU_ASSERT_STRING_EQUAL(e->shape, value.evidence.shape);
	CU_ASSERT_EQUAL(e->measured_at_ms, value.evidence.measured_at_ms);
	dg__values_finish(&back);
	free(text.text);
}

#define VALUE(rest) \
	"{\"device\":null,\"values\":[{\"key\":{\"mode\":\"Launch\"},\"status\":\"ok\"," \
	"\"ops_count\":1,\"duration\":{\"secs\":0,\"nanos\":1}" rest "}]}"

static void test_value__needs_little(void)
{
	dg__values values;
	CU_ASSERT_EQUAL_FATAL(read_values(VALUE(""), &values, NULL), DG_OK);
	CU_ASSERT_EQUAL(values.values[0].duration_ns, 1);
	CU_ASSERT_STRING_EQUAL(values.device, "");
	dg__values_finish(&values);
	static const char named[] = "{\"values\":[{\"name\":\"launch\",\"status\":\"failed\","
				    "\"code\":\"later\",\"ops_count\":7,"
				    "\"duration\":{\"secs\":1,\"nanos\":1}}]}";
	CU_ASSERT_EQUAL_FATAL(read_values(named, &values, NULL), DG_OK);
	CU_ASSERT_EQUAL(values.values[0].key.mode, DG_MODE_LAUNCH);
	CU_ASSERT_EQUAL(values.values[0].code, DG_EFAILED);
	CU_ASSERT(values.values[0].ops_count == 0 && values.values[0].duration_ns == 0);
	dg__values_finish(&values);
}

static void test_value__faults_name_the_place(void)
{
	static const struct {
		const char *json, *says;
	} cases[] = {
		{ "{\"values\":7}", "values: expected an array, not an integer" },
		{ "{}", "values: missing" },
		{ "{\"values\":[7]}", "values[0]: expected a value" },
		{ "{\"values\":[{}]}", "values[0].name: expected a key" },
		{ VALUE(",\"evidence\":7"), "values[0].evidence: expected an object" },
		{ VALUE(",\"evidence\":{\"spread\":-1}"), "values[0].evidence.spread: " },
		{ VALUE(",\"evidence\":{\"busy_fraction\":2}"),
			"values[0].evidence.busy_fraction: " },
		{ VALUE(",\"evidence\":{\"samples\":4294967296}"), "0..4294967295" },
		{ VALUE(",\"evidence\":{\"clock_source\":\"a clock on a far wall\"}"),
			"values[0].evidence.clock_source: has 21 bytes; at most 15" },
		{ VALUE(",\"evidence\":{\"measured_at\":\"noon\"}"), "expected a time like" },
		{ VALUE(",\"evidence\":{\"throttled\":0}"), "true or false" },
		{ VALUE(",\"reason\":7"), "values[0].reason: expected a string" },
		{ "{\"values\":[{\"key\":\"launch\",\"status\":\"fine\",\"ops_count\":0,"
		  "\"duration\":{\"secs\":0,\"nanos\":0}}]}",
			"values[0].status: unknown word; expected one of ok, unsupported" },
		{ "{\"values\":[{\"key\":\"launch\",\"status\":\"ok\",\"ops_count\":-1,"
		  "\"duration\":{\"secs\":0,\"nanos\":0}}]}",
			"values[0].ops_count: -1" },
		{ "{\"values\":[{\"key\":\"launch\",\"status\":\"ok\",\"ops_count\":1,"
		  "\"duration\":{\"secs\":0,\"nanos\":1000000000}}]}",
			"values[0].duration.nanos: " },
		{ "{\"values\":[{\"key\":\"launch\",\"status\":\"ok\",\"ops_count\":1,"
		  "\"duration\":{\"secs\":9223372036854775807,\"nanos\":0}}]}",
			"values[0].duration.secs: " },
		{ "{\"values\":[{\"key\":\"launch\",\"status\":\"ok\",\"ops_count\":1}]}",
			"values[0].duration: missing" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		dg__values values;
		dg_error error = { .code = DG_OK };
		dg_err err = read_values(cases[i].json, &values, &error);
		if (err != DG_EFIELD || !strstr(error.text, cases[i].says))
			printf("\n    %s: %s: %s\n", cases[i].json, dg_err_code(err), error.text);
		CU_ASSERT_EQUAL(err, DG_EFIELD);
		CU_ASSERT_PTR_NOT_NULL(strstr(error.text, cases[i].says));
	}
}

static void test_curve__points_rise_and_have_rates(void)
{
	static const char *const wrong[] = {
		("{\"access\":\"read\",\"points\":[{\"bytes\":8,\"bytes_per_s\":1},"
		 "{\"bytes\":8,\"bytes_per_s\":1}]}"),
		"{\"access\":\"read\",\"points\":[{\"bytes\":8,\"bytes_per_s\":0}]}",
		"{\"access\":\"read\",\"points\":[{\"bytes\":0,\"bytes_per_s\":1}]}",
		"{\"access\":\"read\",\"points\":[7]}",
		"{\"access\":\"read\"}",
		"{\"points\":[]}",
		"{\"access\":\"read\",\"points\":[],\"ceiling\":{\"bytes\":8,\"bytes_per_s\":-1}}",
		"{\"access\":\"read\",\"points\":[],\"values\":[7]}",
	};
	dg__curve_reply reply;
	dg_error error;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CU_ASSERT_EQUAL(dg__wire_decode_curve(wrong[i], strlen(wrong[i]), &reply, &error),
			DG_EFIELD);
	static const char fine[] = "{\"access\":\"copy\",\"points\":[],\"ceiling\":null}";
	CU_ASSERT_EQUAL(dg__wire_decode_curve(fine, strlen(fine), &reply, &error), DG_OK);
	CU_ASSERT(reply.curve.count == 0 && !reply.has_ceiling && reply.values.count == 0);
	dg__curve_reply_finish(&reply);
}

static void test_curve__has_a_limit_on_points(void)
{
	char json[4096];
	int at = snprintf(json, sizeof(json), "{\"access\":\"read\",\"points\":[");
	for (int i = 0; i <= DG_CURVE_MAX; i++)
		at += snprintf(json + at, sizeof(json) - (size_t)at,
			"%s{\"bytes\":%d,\"bytes_per_s\":1}", i ? "," : "", i + 1);
	at += snprintf(json + at, sizeof(json) - (size_t)at, "]}");
	dg__curve_reply reply;
	CU_ASSERT_EQUAL(dg__wire_decode_curve(json, (size_t)at, &reply, NULL), DG_ETOOMANY);
}

static void test_roofline__fraction_only_where_a_time_was_given(void)
{
	dg__roofline_reply reply = { .input = { 1, 2, 3, 4, 0 }, .roofline = { .fraction = 9 } };
	dg__json_text text;
	CU_ASSERT_EQUAL(dg__wire_encode_roofline(&reply, &text), DG_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(text.text, "\"fraction\":null"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text.text, "\"measured_seconds\":null"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text.text, "\"bound\":\"none\""));
	free(text.text);
}

static const dg_test_case cases[] = {
	DG_TEST(test_value__has_count_and_duration_as_the_reference),
	DG_TEST(test_value__memory_has_bytes_a_second_too),
	DG_TEST(test_value__undefined_rates_are_null),
	DG_TEST(test_value__unsupported_is_zero_with_a_reason),
	DG_TEST(test_value__counts_beyond_json_integers_are_refused),
	DG_TEST(test_evidence__only_what_is_present),
	DG_TEST(test_evidence__flags_are_booleans_and_nothing_is_null),
	DG_TEST(test_value__comes_back_whole),
	DG_TEST(test_value__needs_little),
	DG_TEST(test_value__faults_name_the_place),
	DG_TEST(test_curve__points_rise_and_have_rates),
	DG_TEST(test_curve__has_a_limit_on_points),
	DG_TEST(test_roofline__fraction_only_where_a_time_was_given),
};

DG_TEST_MAIN("values on the wire", cases)
