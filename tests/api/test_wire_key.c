/* Keys in both spellings, and the requests that hold them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/wire.h"
#include "tests/test.h"

static dg__measure_request request;

static dg_err read_keys(const char *keys, dg_error *error)
{
	size_t room = strlen(keys) + 32;
	char *json = malloc(room);
	int n = snprintf(json, room, "{\"keys\":[%s]}", keys);
	request = (dg__measure_request){ .count = 0 };
	dg_err err = dg__wire_decode_measure_request(json, (size_t)n, &request, error);
	free(json);
	return err;
}

static char *written(void)
{
	dg__json_text text = { NULL, 0 };
	CU_ASSERT_EQUAL(dg__wire_encode_measure_request(&request, &text), DG_OK);
	return text.text ? text.text : strdup("");
}

/* Short text and object are the same key; the object is what is written. */
static void same(const char *short_text, const char *mode)
{
	char object[512], quoted[128], expected[640];
	dg_key key;
	dg_error error = { .code = DG_OK };
	snprintf(object, sizeof(object), "{\"mode\":%s}", mode);
	snprintf(quoted, sizeof(quoted), "\"%s\"", short_text);
	snprintf(expected, sizeof(expected),
		"{\"keys\":[%s],\"refresh\":false,\"sustained\":false}", object);
	CU_ASSERT_EQUAL(dg_key_parse(short_text, &key, NULL), DG_OK);
	const char *const spellings[] = { object, quoted };
	for (size_t i = 0; i < 2; i++) {
		dg_err err = read_keys(spellings[i], &error);
		if (err)
			printf("\n    %s: %s\n", spellings[i], error.text);
		CU_ASSERT_EQUAL(err, DG_OK);
		CU_ASSERT_EQUAL(request.count, 1);
		CU_ASSERT(dg_key_equal(&request.keys[0], &key));
		char *json = written();
		CU_ASSERT_STRING_EQUAL(json, expected);
		free(json);
	}
}

static void test_modes__are_the_reference_s(void)
{
	same("compute:f32", "{\"ComputeDirect\":{\"dtype\":{\"Float\":\"F32\"}}}");
	same("cmma:f16:f32:16x16x16",
		"{\"ComputeCmma\":{\"dtype\":{\"Float\":\"F16\"},\"config\":{\"accumulator_type\":"
		"{\"Float\":\"F32\"},\"cmma_dims\":{\"m\":16,\"n\":16,\"k\":16}}}}");
	same("cmma:i8:i32:16x8x32",
		"{\"ComputeCmma\":{\"dtype\":{\"Int\":\"I8\"},\"config\":{\"accumulator_type\":"
		"{\"Int\":\"I32\"},\"cmma_dims\":{\"m\":16,\"n\":8,\"k\":32}}}}");
	same("memory", "\"Memory\"");
	same("memory:read", "\"MemoryRead\"");
	same("memory:write", "\"MemoryWrite\"");
	same("memory:copy:8192", "{\"MemoryWorkingSet\":{\"access\":\"Copy\",\"bytes\":8192}}");
	same("memory:read:65536", "{\"MemoryWorkingSet\":{\"access\":\"Read\",\"bytes\":65536}}");
	same("memory:write:4:resident", "{\"MemoryResident\":{\"access\":\"Write\",\"bytes\":4}}");
	same("launch", "\"Launch\"");
}

static void test_dtypes__each_in_its_family(void)
{
	static const char *const families[] = { "Float", "Int", "UInt" };
	unsigned seen = 0;
	for (unsigned i = 0; i < 64; i++) {
		if (!dg_dtype_name(i))
			continue;
		char text[64], mode[128];
		snprintf(text, sizeof(text), "compute:%s", dg_dtype_text(i));
		snprintf(mode, sizeof(mode), "{\"ComputeDirect\":{\"dtype\":{\"%s\":\"%s\"}}}",
			families[dg_dtype_family_of((dg_dtype)i)], dg_dtype_name(i));
		same(text, mode);
		seen++;
	}
	CU_ASSERT_EQUAL(seen, 21);
}

static void test_keys__faults_name_the_place_and_what_was_expected(void)
{
	static const struct {
		const char *keys;
		dg_err err;
		const char *path, *says;
	} cases[] = {
		{ "7", DG_EFIELD, "keys[0]: ", "compute:f32" },
		{ "null", DG_EFIELD, "keys[0]: ", "{\"mode\":" },
		{ "{}", DG_EFIELD, "keys[0]: ", "{\"mode\":" },
		{ "\"launch\",\"compute:f99\"", DG_EKEY, "keys[1]: ", "f99" },
		{ "\"\"", DG_EKEY, "keys[0]: ", "" },
		{ "{\"mode\":\"Speed\"}", DG_EFIELD, "keys[0].mode: ", "MemoryWorkingSet" },
		{ "{\"mode\":7}", DG_EFIELD, "keys[0].mode: ", "\"Launch\"" },
		{ "{\"mode\":{}}", DG_EFIELD, "keys[0].mode: ", "ComputeDirect" },
		{ "{\"mode\":{\"MemoryRead\":{}}}", DG_EFIELD, "keys[0].mode: ", "ComputeDirect" },
		{ "{\"mode\":{\"ComputeDirect\":1}}", DG_EFIELD,
			"keys[0].mode.ComputeDirect: ", "an object" },
		{ "{\"mode\":{\"ComputeDirect\":{}}}", DG_EFIELD,
			"keys[0].mode.ComputeDirect.dtype: ", "missing" },
		{ "{\"mode\":{\"ComputeDirect\":{\"dtype\":{\"Bool\":\"U8\"}}}}", DG_EFIELD,
			"keys[0].mode.ComputeDirect.dtype: ", "{\"Float\":" },
		{ "{\"mode\":{\"ComputeDirect\":{\"dtype\":{\"Float\":\"I8\"}}}}", DG_EFIELD,
			"keys[0].mode.ComputeDirect.dtype.Float: ", "dtype" },
		{ "{\"mode\":{\"ComputeDirect\":{\"dtype\":{\"Int\":8}}}}", DG_EFIELD,
			"keys[0].mode.ComputeDirect.dtype.Int: ", "a string" },
		{ "{\"mode\":{\"MemoryWorkingSet\":{\"access\":\"Look\",\"bytes\":8}}}", DG_EFIELD,
			"keys[0].mode.MemoryWorkingSet.access: ", "Copy, Read, Write" },
		{ "{\"mode\":{\"MemoryWorkingSet\":{\"access\":\"Read\",\"bytes\":3}}}", DG_EFIELD,
			"keys[0].mode.MemoryWorkingSet.bytes: ", "4..1099511627776" },
		{ "{\"mode\":{\"MemoryResident\":{\"access\":\"Read\",\"bytes\":1099511627777}}}",
			DG_EFIELD, "keys[0].mode.MemoryResident.bytes: ", "out of range" },
		{ "{\"mode\":{\"MemoryResident\":{\"access\":\"Read\",\"bytes\":8.0}}}", DG_EFIELD,
			"keys[0].mode.MemoryResident.bytes: ", "an integer" },
		{ "{\"mode\":{\"MemoryResident\":{\"access\":\"Read\",\"bytes\":-8}}}", DG_EFIELD,
			"keys[0].mode.MemoryResident.bytes: ", "-8" },
		{ "{\"mode\":{\"ComputeCmma\":{\"dtype\":{\"Float\":\"F16\"},\"config\":"
		  "{\"accumulator_type\":{\"Float\":\"F32\"},\"cmma_dims\":"
		  "{\"m\":16,\"n\":0,\"k\":16}}}}}",
			DG_EFIELD, "keys[0].mode.ComputeCmma.config.cmma_dims.n: ", "1..65535" },
		{ "{\"mode\":{\"ComputeCmma\":{\"dtype\":{\"Float\":\"F16\"},\"config\":"
		  "{\"accumulator_type\":{\"Float\":\"F32\"}}}}}",
			DG_EFIELD, "keys[0].mode.ComputeCmma.config.cmma_dims: ", "missing" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		dg_error error = { .code = DG_OK };
		dg_err err = read_keys(cases[i].keys, &error);
		bool told = strncmp(error.text, cases[i].path, strlen(cases[i].path)) == 0 &&
			    strstr(error.text, cases[i].says);
		if (err != cases[i].err || !told)
			printf("\n    %s: %s: %s\n", cases[i].keys, dg_err_code(err), error.text);
		CU_ASSERT_EQUAL(err, cases[i].err);
		CU_ASSERT(told);
		CU_ASSERT_EQUAL(request.count, 0); /* untouched */
	}
}

static void test_keys__up_to_the_limit(void)
{
	char *keys = malloc(DG_KEYS_MAX * 10 + 32), *at = keys;
	for (unsigned i = 0; i < DG_KEYS_MAX; i++)
		at += snprintf(at, 16, "%s\"launch\"", i ? "," : "");
	CU_ASSERT_EQUAL(read_keys(keys, NULL), DG_OK);
	CU_ASSERT_EQUAL(request.count, DG_KEYS_MAX);
	snprintf(at, 16, ",\"launch\"");
	dg_error error;
	CU_ASSERT_EQUAL(read_keys(keys, &error), DG_ETOOMANY);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "keys: has 257 items; at most 256"));
	CU_ASSERT_EQUAL(read_keys("", NULL), DG_OK);
	CU_ASSERT_EQUAL(request.count, 0);
	free(keys);
}

static void test_request__flags_and_unknown_members(void)
{
	static const char json[] =
		"{\"keys\":[],\"refresh\":true,\"sustained\":null,\"later\":[1]}";
	CU_ASSERT_EQUAL(dg__wire_decode_measure_request(json, strlen(json), &request, NULL), DG_OK);
	CU_ASSERT(request.refresh && !request.sustained);
	static const char *const wrong[] = { "{\"keys\":[],\"refresh\":1}",
		"{\"keys\":[],\"refresh\":\"true\"}", "{\"keys\":null}", "{\"keys\":{}}", "{}" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CU_ASSERT_EQUAL(
			dg__wire_decode_measure_request(wrong[i], strlen(wrong[i]), &request, NULL),
			DG_EFIELD);
}

static dg_err read_curve(const char *json, dg__curve_request *ret, dg_error *error)
{
	return dg__wire_decode_curve_request(json, strlen(json), ret, error);
}

static void test_curve_request__has_defaults_and_ranges(void)
{
	dg__curve_request curve;
	dg_error error;
	CU_ASSERT_EQUAL(read_curve("{}", &curve, NULL), DG_OK);
	CU_ASSERT(curve.access == DG_READ && !curve.has_bytes && !curve.refresh);
	CU_ASSERT_EQUAL(
		read_curve("{\"access\":\"write\",\"bytes\":4,\"refresh\":true}", &curve, NULL),
		DG_OK);
	CU_ASSERT(curve.access == DG_WRITE && curve.bytes == 4 && curve.refresh);
	dg__json_text text;
	CU_ASSERT_EQUAL(dg__wire_encode_curve_request(&curve, &text), DG_OK);
	CU_ASSERT_STRING_EQUAL(text.text, "{\"access\":\"write\",\"bytes\":4,\"refresh\":true}");
	free(text.text);
	CU_ASSERT_EQUAL(read_curve("{\"access\":\"Read\"}", &curve, &error), DG_EFIELD);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "access: unknown word; expected one of copy"));
	CU_ASSERT_EQUAL(read_curve("{\"bytes\":3}", &curve, NULL), DG_EFIELD);
	CU_ASSERT_EQUAL(read_curve("{\"bytes\":\"4\"}", &curve, NULL), DG_EFIELD);
	CU_ASSERT_EQUAL(read_curve("[]", &curve, NULL), DG_EFIELD);
	CU_ASSERT_EQUAL(curve.bytes, 4);
}

static dg_err read_roofline(const char *json, dg__roofline_request *ret, dg_error *error)
{
	return dg__wire_decode_roofline_request(json, strlen(json), ret, error);
}

static void test_roofline_request__amounts_and_dtype(void)
{
	dg__roofline_request line;
	dg_error error;
	CU_ASSERT_EQUAL(
		read_roofline("{\"flops\":1e12,\"dtype\":\"F16\",\"bytes\":0}", &line, NULL),
		DG_OK);
	CU_ASSERT(line.flops == 1e12 && line.dtype == DG_F16 && line.bytes == 0);
	CU_ASSERT(line.seconds == 0);
	CU_ASSERT_EQUAL(
		read_roofline("{\"flops\":-1,\"dtype\":\"f16\",\"bytes\":0}", &line, &error),
		DG_EFIELD);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "flops: expected a number that is not negative"));
	CU_ASSERT_EQUAL(read_roofline("{\"flops\":1,\"dtype\":\"f99\",\"bytes\":0}", &line, &error),
		DG_EDTYPE);
	CU_ASSERT_EQUAL(
		read_roofline("{\"flops\":\"1\",\"dtype\":\"f32\",\"bytes\":0}", &line, &error),
		DG_EFIELD);
	CU_ASSERT_EQUAL(read_roofline("{\"flops\":1,\"bytes\":0}", &line, &error), DG_EFIELD);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "dtype: missing"));
}

static void test_request__what_is_not_finite_is_null(void)
{
	dg__roofline_request line = { .flops = INFINITY, .bytes = NAN, .dtype = DG_F32 };
	dg__json_text text;
	CU_ASSERT_EQUAL(dg__wire_encode_roofline_request(&line, &text), DG_OK);
	CU_ASSERT_STRING_EQUAL(text.text, "{\"flops\":null,\"dtype\":\"f32\",\"bytes\":null}");
	free(text.text);
}

static const dg_test_case cases[] = {
	DG_TEST(test_modes__are_the_reference_s),
	DG_TEST(test_dtypes__each_in_its_family),
	DG_TEST(test_keys__faults_name_the_place_and_what_was_expected),
	DG_TEST(test_keys__up_to_the_limit),
	DG_TEST(test_request__flags_and_unknown_members),
	DG_TEST(test_curve_request__has_defaults_and_ranges),
	DG_TEST(test_roofline_request__amounts_and_dtype),
	DG_TEST(test_request__what_is_not_finite_is_null),
};

DG_TEST_MAIN("keys and requests on the wire", cases)
