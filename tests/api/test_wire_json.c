/* What every decoder refuses before it looks at a field, and how faults are told. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/wire.h"
#include "tests/test.h"

static dg_err decode(const char *json, size_t length, dg_error *error)
{
	dg__measure_request *request = calloc(1, sizeof(*request));
	dg_err err = dg__wire_decode_measure_request(json, length, request, error);
	free(request);
	return err;
}

static void refused(const char *json, size_t length, dg_err expected, const char *says)
{
	dg_error error = { .code = DG_OK };
	dg_err err = decode(json, length, &error);
	if (err != expected || !strstr(error.text, says))
		printf("\n    %.60s: %s: %s\n", json, dg_err_code(err), error.text);
	CU_ASSERT_EQUAL(err, expected);
	CU_ASSERT_EQUAL(error.code, expected);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, says));
	CU_ASSERT_EQUAL(decode(json, length, NULL), expected);
}

static void test_syntax__faults_have_line_and_column(void)
{
	static const struct {
		const char *json, *says;
	} cases[] = {
		{ "{\"keys\":\n[,]}", "line 2, column 2" },
		{ "{\"keys\":[]} x", "line 1, column 13" },
		{ "{'keys':[]}", "line 1" },
		{ "{\"keys\":[NaN]}", "line 1" },
		{ "{\"keys\":[\"\xff\"]}", "line 1" },
		{ "{\"keys\":[\"\\ud800\"]}", "line 1" },
		{ "{\"keys\":[\"a\nb\"]}", "line 1" },
		{ "\xef\xbb\xbf{}", "line 1" },
		{ "{\"keys\":[],\"keys\":[]}", "duplicate" },
		{ "{", "line 1" },
		{ " ", "line 1" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(cases[i].json, strlen(cases[i].json), DG_EJSON, cases[i].says);
	refused("", 0, DG_EJSON, "empty");
	CU_ASSERT_EQUAL(decode(NULL, 0, NULL), DG_EJSON);
}

static void test_number__beyond_all_ranges_is_told_with_its_place(void)
{
	static const struct {
		const char *json, *says;
	} cases[] = {
		{ "{\"flops\":9223372036854775808}",
			"flops: 9223372036854775808 is out of range, expected an integer of "
			"-9223372036854775808..9223372036854775807" },
		{ "{\"a\":-9223372036854775809,\"b\":1}", "a: -9223372036854775809 is out" },
		{ "{\"keys\":[1e999]}", "keys[0]: 1e999 is out of range, expected a number of "
					"-1.79e308..1.79e308" },
		{ "{\"keys\":[0,\"a,b\",[1,2],\n 99999999999999999999]}",
			"line 2, column 21: keys[3]: 99999999999999999999 is out" },
		{ "{\"a\":{\"x\":1,\"b\":[{},{\"c\":true,\"d\\\"e\":-1E+999}]}}",
			"a.b[1].d\\\"e: -1E+999 is out of range" },
		{ "99999999999999999999", "column 20: 99999999999999999999 is out" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(cases[i].json, strlen(cases[i].json), DG_EFIELD, cases[i].says);
}

static void test_number__a_long_one_at_a_deep_place_is_cut(void)
{
	char json[4000] = "", digits[300];
	size_t at = 0;
	for (unsigned i = 0; i < DG__JSON_DEPTH; i++)
		at += (size_t)snprintf(json + at, sizeof(json) - at, "{\"%080u\":", i);
	memset(digits, '7', sizeof(digits) - 1);
	digits[sizeof(digits) - 1] = '\0';
	at += (size_t)snprintf(json + at, sizeof(json) - at, "%s", digits);
	refused(json, at, DG_EFIELD, "is out of range, expected an integer");
}

static void test_nul__is_refused_in_strings_names_and_between(void)
{
	refused("{\"keys\":[\"a\\u0000\"]}", 20, DG_EJSON, "U+0000");
	refused("{\"a\\u0000\":1}", 13, DG_EJSON, "U+0000");
	refused("{\"keys\":[]\0}", 12, DG_EJSON, "line 1");
	refused("{\"keys\":[\"\0\"]}", 14, DG_EJSON, "line 1");
	refused("{\"keys\":[]}\0", 12, DG_EJSON, "line 1");
}

/* levels of arrays around an empty request's unknown member. */
static char *nested(unsigned levels)
{
	size_t room = 2 * (size_t)levels + 64;
	char *json = malloc(room), *at = json;
	at += snprintf(json, room, "{\"keys\":[],\"more\":");
	memset(at, '[', levels);
	memset(at + levels, ']', levels);
	at[2 * levels] = '}';
	at[2 * levels + 1] = '\0';
	return json;
}

static void test_depth__has_a_limit_that_is_kept_before_recursion(void)
{
	char *json = nested(DG__JSON_DEPTH - 1);
	CU_ASSERT_EQUAL(decode(json, strlen(json), NULL), DG_OK);
	free(json);
	json = nested(DG__JSON_DEPTH);
	refused(json, strlen(json), DG_EJSON, "deeper than 32");
	free(json);
	json = nested(1000000);
	refused(json, strlen(json), DG_EJSON, "deeper than 32");
	free(json);
}

static void test_depth__brackets_within_strings_do_not_count(void)
{
	static const char json[] =
		"{\"keys\":[],\"a\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[[[[[[[\\\\\"}";
	CU_ASSERT_EQUAL(decode(json, strlen(json), NULL), DG_OK);
}

static void test_size__has_a_limit(void)
{
	static const char least[] = "{\"keys\":[]}";
	size_t length = DG__WIRE_MAX_BYTES + 1;
	char *json = malloc(length);
	memset(json, ' ', length);
	for (size_t i = 0; least[i]; i++)
		json[i] = least[i];
	refused(json, length, DG_EJSON, "8388608");
	CU_ASSERT_EQUAL(decode(json, length - 1, NULL), DG_OK);
	free(json);
}

/* A decoder takes length bytes: nothing behind them is looked at, a NUL is not needed. */
static void test_length__is_what_counts(void)
{
	static const char json[] = "{\"keys\":[]}and more";
	char *exact = malloc(11);
	memcpy(exact, json, 11);
	CU_ASSERT_EQUAL(decode(json, 11, NULL), DG_OK);
	CU_ASSERT_EQUAL(decode(exact, 11, NULL), DG_OK);
	free(exact);
}

static void test_root__must_be_of_the_right_type(void)
{
	static const char *const roots[] = { "[]", "1", "\"x\"", "null", "true", "1.5" };
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
		refused(roots[i], strlen(roots[i]), DG_EFIELD, "expected a JSON object");
}

static char *read_example(const char *file, size_t *ret_length)
{
	char path[256];
	snprintf(path, sizeof(path), "../../api/examples/%s", file);
	return dg_test_read_file(dg_test_fixture(path), ret_length);
}

/*
 * Every decoder on the same bytes; results are given up. The room is exact, so that a sanitizer
 * finds reads beyond the end.
 */
static void decode_all(const char *bytes, size_t length)
{
	static dg__id_item items[DG__IDS_MAX];
	static dg_id ids[DG__IDS_MAX];
	static dg__frame frame;
	static dg__gateway gateway;
	static dg__device_entry entry;
	static dg__measure_request request;
	dg__device_list devices;
	dg__values values;
	dg__curve_reply curve;
	dg__curve_request curve_request;
	dg__roofline_reply roofline;
	dg_lease lease;
	uint32_t ttl_s;
	dg__roofline_request roofline_request;
	dg__job job;
	dg__text_list texts;
	dg_error error;
	size_t count;
	char *json = malloc(length ? length : 1);
	memcpy(json, bytes, length);
	(void)!dg__wire_decode_gateway(json, length, &gateway, &error);
	(void)!dg__wire_decode_device(json, length, &entry, &error);
	(void)!dg__wire_decode_measure_request(json, length, &request, &error);
	(void)!dg__wire_decode_curve_request(json, length, &curve_request, &error);
	(void)!dg__wire_decode_lease(json, length, &lease, &error);
	(void)!dg__wire_decode_lease_request(json, length, &ttl_s, &error);
	(void)!dg__wire_decode_roofline_request(json, length, &roofline_request, &error);
	(void)!dg__wire_decode_roofline(json, length, &roofline, &error);
	(void)!dg__wire_decode_ids(json, length, ids, &count, &error);
	(void)!dg__wire_decode_id_items(json, length, items, &count, &error);
	dg__wire_decode_problem(503, json, length, &error);
	if (dg__wire_decode_devices(json, length, &devices, &error) == DG_OK)
		dg__device_list_finish(&devices);
	if (dg__wire_decode_values(json, length, &values, &error) == DG_OK)
		dg__values_finish(&values);
	if (dg__wire_decode_curve(json, length, &curve, &error) == DG_OK)
		dg__curve_reply_finish(&curve);
	if (dg__wire_decode_job(json, length, &job, &error) == DG_OK)
		dg__job_finish(&job);
	if (dg__wire_decode_texts(json, length, &texts, &error) == DG_OK)
		dg__text_list_finish(&texts);
	if (dg__wire_decode_frame(json, length, &frame, &error) == DG_OK)
		dg__frame_finish(&frame);
	free(json);
}

/* A reply can end anywhere, and a worker can die in the middle of a frame. */
static void test_cut_documents__are_refused(void)
{
	static const char *const files[] = { "measure-request.json", "problem.json" };
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		size_t length;
		char *json = read_example(files[i], &length);
		while (length && json[length - 1] == '\n')
			length--;
		for (size_t n = 0; n < length; n++) {
			CU_ASSERT_EQUAL(decode(json, n, NULL), DG_EJSON);
			decode_all(json, n);
		}
		free(json);
	}
}

/* One byte after the other is another: whatever it then says, no decoder falls over. */
static void test_changed_documents__are_survived(void)
{
	static const char bytes[] = { '0', '-', '"', '{', ']', ',', '\\', '\0', '\x7f', '\xff' };
	static const char *const files[] = { "device.json", "curve.json", "job-failed.json",
		"roofline.json", "id-items.json", "measure-request.json" };
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		size_t length;
		char *json = read_example(files[i], &length);
		for (size_t at = 0; at < length; at += 3) {
			char kept = json[at];
			json[at] = bytes[at / 3 % sizeof(bytes)];
			decode_all(json, length);
			json[at] = kept;
		}
		free(json);
	}
}

static void test_corpora__are_survived(void)
{
	static const char *const folders[] = { "wire_decode", "client_response" };
	const char *root = getenv("DG_CORPORA");
	for (size_t i = 0; i < 2; i++) {
		char path[1024];
		snprintf(path, sizeof(path), "%s/%s",
			root && *root ? root : dg_test_fixture("../fuzz/corpora"), folders[i]);
		DIR *folder = opendir(path);
		CU_ASSERT_PTR_NOT_NULL(folder);
		if (!folder)
			return;
		size_t files = 0;
		for (const struct dirent *e = readdir(folder); e; e = readdir(folder)) {
			char file[1400];
			size_t length;
			if (*e->d_name == '.')
				continue;
			snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
			char *json = dg_test_read_file(file, &length);
			decode_all(json, length);
			if (length)
				decode_all(json + 1, length - 1);
			free(json);
			files++;
		}
		closedir(folder);
		CU_ASSERT(files > 10);
	}
}

static const dg_test_case cases[] = {
	DG_TEST(test_syntax__faults_have_line_and_column),
	DG_TEST(test_number__beyond_all_ranges_is_told_with_its_place),
	DG_TEST(test_number__a_long_one_at_a_deep_place_is_cut),
	DG_TEST(test_nul__is_refused_in_strings_names_and_between),
	DG_TEST(test_depth__has_a_limit_that_is_kept_before_recursion),
	DG_TEST(test_depth__brackets_within_strings_do_not_count),
	DG_TEST(test_size__has_a_limit),
	DG_TEST(test_length__is_what_counts),
	DG_TEST(test_root__must_be_of_the_right_type),
	DG_TEST(test_cut_documents__are_refused),
	DG_TEST(test_changed_documents__are_survived),
	DG_TEST(test_corpora__are_survived),
};

DG_TEST_MAIN("JSON of any kind", cases)
