/* Problems, jobs, times and ids on the wire. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/wire.h"
#include "tests/test.h"

static void test_problem__every_error_comes_back_as_itself(void)
{
	static const dg_err errors[] = {
#define DG_ERROR(number, name, code, status, title) DG_E##name,
#include <devgate/errors.def>
#undef DG_ERROR
	};
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		dg_error error, back;
		dg__json_text text;
		dg_error_native(&error, errors[i], "cpu", -7, "number %zu", i);
		CU_ASSERT_EQUAL(dg__wire_encode_problem(&error, &text), DG_OK);
		dg__wire_decode_problem(dg_err_status(errors[i]), text.text, text.length, &back);
		CU_ASSERT_EQUAL(back.code, errors[i]);
		CU_ASSERT_EQUAL(back.native_code, -7);
		CU_ASSERT_STRING_EQUAL(back.origin, "cpu");
		CU_ASSERT_STRING_EQUAL(back.text, error.text);
		free(text.text);
	}
}

static dg_error problem(int status, const char *body)
{
	dg_error error;
	dg__wire_decode_problem(status, body, strlen(body), &error);
	CU_ASSERT_NOT_EQUAL(error.code, DG_OK);
	CU_ASSERT(*error.text != '\0');
	return error;
}

static void test_problem__an_unknown_code_goes_by_the_status_and_keeps_its_text(void)
{
	dg_error error =
		problem(410, "{\"code\":\"melted\",\"status\":404,\"detail\":\"it is hot\"}");
	CU_ASSERT_EQUAL(error.code, DG_ELOST);
	CU_ASSERT_STRING_EQUAL(error.text, "it is hot");
	error = problem(429, "{\"code\":\"\",\"title\":\"slow down\"}");
	CU_ASSERT_EQUAL(error.code, DG_ERATE);
	CU_ASSERT_STRING_EQUAL(error.text, "slow down");
}

static void test_problem__anything_else_goes_by_the_status(void)
{
	dg_error error = problem(502, "<html>\nBad\x1b[31m gateway\xff</html>");
	CU_ASSERT_EQUAL(error.code, DG_EUNREACHABLE);
	CU_ASSERT_EQUAL(error.native_code, 502);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "<html>Bad[31m gateway</html>"));
	CU_ASSERT_EQUAL(problem(404, "").code, DG_ENOTFOUND);
	CU_ASSERT_EQUAL(problem(503, "[]").code, DG_EUNAVAILABLE);
	CU_ASSERT_EQUAL(problem(503, "{\"code\":7}").code, DG_EUNAVAILABLE);
	CU_ASSERT_EQUAL(problem(418, "{}").code, DG_EBADREQUEST);
	CU_ASSERT_EQUAL(problem(599, "{}").code, DG_EINTERNAL);
	CU_ASSERT_EQUAL(problem(200, "{}").code, DG_EPROTOCOL);
	CU_ASSERT_EQUAL(problem(-1, "{}").code, DG_EPROTOCOL);
	dg__wire_decode_problem(500, NULL, 0, &error);
	CU_ASSERT_EQUAL(error.code, DG_EINTERNAL);
}

static void test_problem__no_more_than_200_bytes_are_kept(void)
{
	char body[2000];
	memset(body, 'x', sizeof(body) - 1);
	body[sizeof(body) - 1] = '\0';
	dg_error error = problem(500, body);
	CU_ASSERT_EQUAL(strspn(strchr(error.text, ':') + 2, "x"), 200);
}

static void test_problem__long_texts_are_cut_between_characters(void)
{
	char body[2000];
	int n = snprintf(body, sizeof(body), "{\"code\":\"io\",\"detail\":\"a");
	for (int i = 0; i < 300; i++)
		n += snprintf(body + n, sizeof(body) - (size_t)n, "\xe2\x98\x83");
	snprintf(body + n, sizeof(body) - (size_t)n, "\",\"native_code\":99999999999}");
	dg_error error = problem(500, body);
	size_t length = strlen(error.text);
	CU_ASSERT(length > 400 && (length - 1) % 3 == 0);
	CU_ASSERT_EQUAL(error.native_code, 0);
}

static dg__job job_of(dg__job_state state)
{
	dg__job job = { .id = "ab12",
		.kind = "throughput",
		.device = "cpu",
		.state = state,
		.created_at_ms = 1 };
	return job;
}

static char *write_job(const dg__job *job)
{
	dg__json_text text = { NULL, 0 };
	CU_ASSERT_EQUAL(dg__wire_encode_job(job, &text), DG_OK);
	return text.text ? text.text : strdup("");
}

static void test_job__error_and_result_belong_to_their_states(void)
{
	dg__job job = job_of(DG__JOB_RUNNING);
	dg_error_set(&job.error, DG_EFAILED, "left over");
	char *json = write_job(&job);
	CU_ASSERT_PTR_NOT_NULL(strstr(json, "\"error\":null,\"result\":null"));
	CU_ASSERT_PTR_NOT_NULL(strstr(json, "\"current\":null"));
	CU_ASSERT_PTR_NOT_NULL(strstr(json, "\"finished_at\":null"));
	free(json);
	job.state = DG__JOB_CANCELLED;
	json = write_job(&job);
	CU_ASSERT_PTR_NOT_NULL(strstr(json, "\"code\":\"failed\""));
	free(json);
}

static void test_job__a_result_that_is_no_json_is_not_written(void)
{
	dg__job job = job_of(DG__JOB_DONE);
	char broken[] = "{\"values\":";
	dg__json_text text = { NULL, 0 };
	job.result = (dg__json_text){ broken, strlen(broken) };
	CU_ASSERT_NOT_EQUAL(dg__wire_encode_job(&job, &text), DG_OK);
	CU_ASSERT_PTR_NULL(text.text);
}

static void test_job__faults_name_the_place(void)
{
	static const struct {
		const char *json, *says;
	} cases[] = {
		{ "7", "expected a JSON object" },
		{ "{}", "id: missing" },
		{ "{\"id\":\"a\",\"kind\":\"k\",\"state\":\"asleep\"}", "state: unknown word" },
		{ "{\"id\":\"a\",\"kind\":\"k\",\"state\":\"done\",\"done\":-1}", "done: -1" },
		{ "{\"id\":\"a\",\"kind\":\"k\",\"state\":\"done\",\"done\":1,\"total\":1,"
		  "\"created_at\":1}",
			"created_at: expected a string" },
		{ "{\"id\":\"a\",\"kind\":\"k\",\"state\":\"done\",\"done\":1,\"total\":1,"
		  "\"error\":\"x\"}",
			"error: expected an object" },
		{ "{\"id\":\"a\",\"kind\":\"k\",\"state\":\"done\",\"done\":1,\"total\":1,"
		  "\"result\":[]}",
			"result: expected an object" },
		{ "{\"id\":\"0123456789012345678901234567890123456789\",\"kind\":\"k\"}",
			"id: has 40 bytes; at most 39" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		dg__job job;
		dg_error error = { .code = DG_OK };
		CU_ASSERT_EQUAL(
			dg__wire_decode_job(cases[i].json, strlen(cases[i].json), &job, &error),
			DG_EFIELD);
		if (!strstr(error.text, cases[i].says))
			printf("\n    %s: %s\n", cases[i].json, error.text);
		CU_ASSERT_PTR_NOT_NULL(strstr(error.text, cases[i].says));
	}
}

/* @return -1 where the text is refused. */
static int64_t read_time(const char *time)
{
	char json[256];
	dg__job job;
	int n = snprintf(json, sizeof(json),
		"{\"id\":\"a\",\"kind\":\"k\",\"state\":\"queued\",\"done\":0,\"total\":1,"
		"\"created_at\":\"%s\"}",
		time);
	if (dg__wire_decode_job(json, (size_t)n, &job, NULL) != DG_OK)
		return -1;
	int64_t ms = job.created_at_ms;
	dg__job_finish(&job);
	return ms;
}

static void test_time__is_rfc_3339_in_utc_with_milliseconds(void)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{ "1970-01-01T00:00:00.001Z", 1 },
		{ "2000-02-29T23:59:59.999Z", 951868799999 },
		{ "2026-12-01T12:00:00.123Z", 1796126400123 },
		{ "2100-03-01T00:00:00.000Z", 4107542400000 },
		{ "9999-12-31T23:59:59.999Z", 253402300799999 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		dg__job job = job_of(DG__JOB_QUEUED);
		char expected[64];
		job.created_at_ms = cases[i].ms;
		snprintf(expected, sizeof(expected), "\"created_at\":\"%s\"", cases[i].text);
		char *json = write_job(&job);
		CU_ASSERT_PTR_NOT_NULL(strstr(json, expected));
		free(json);
		CU_ASSERT_EQUAL(read_time(cases[i].text), cases[i].ms);
	}
}

static void test_time__what_is_none_is_refused_or_null(void)
{
	static const char *const wrong[] = { "", "now", "2026-12-01", "2026-12-01T12:00:00Z",
		"2026-12-01T12:00:00.1Z", "2026-12-01 12:00:00.000Z", "2026-13-01T12:00:00.000Z",
		"2026-00-01T12:00:00.000Z", "2026-11-31T12:00:00.000Z", "2026-02-29T12:00:00.000Z",
		"2026-12-00T12:00:00.000Z", "2026-12-01T24:00:00.000Z", "2026-12-01T12:60:00.000Z",
		"2026-12-01T12:00:61.000Z", "2026-12-01T12:00:00.000+00:00",
		"2026-12-01T12:00:00.000Zx", "1969-12-31T23:59:59.999Z", "20261201T120000.000Z" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (read_time(wrong[i]) != -1)
			printf("\n    %s\n", wrong[i]);
		CU_ASSERT_EQUAL(read_time(wrong[i]), -1);
	}
	static const int64_t none[] = { 0, -1, INT64_MIN, INT64_MAX, 253402300800000 };
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		dg__job job = job_of(DG__JOB_QUEUED);
		job.created_at_ms = none[i];
		char *json = write_job(&job);
		CU_ASSERT_PTR_NOT_NULL(strstr(json, "\"created_at\":null"));
		free(json);
	}
}

static void test_texts__come_through_as_they_are(void)
{
	static const char json[] = "[\"\",\"cuda:0\",\"a\\\"b\\\\ \\u2603\"]";
	dg__text_list list;
	CU_ASSERT_EQUAL_FATAL(dg__wire_decode_texts(json, strlen(json), &list, NULL), DG_OK);
	CU_ASSERT_EQUAL(list.count, 3);
	CU_ASSERT_STRING_EQUAL(list.texts[0], "");
	CU_ASSERT_STRING_EQUAL(list.texts[2], "a\"b\\ \xe2\x98\x83");
	dg__text_list_finish(&list);
	CU_ASSERT_EQUAL_FATAL(dg__wire_decode_texts("[]", 2, &list, NULL), DG_OK);
	CU_ASSERT_EQUAL(list.count, 0);
	dg__text_list_finish(&list);
}

static void test_lists__faults_name_the_item(void)
{
	dg__text_list list;
	dg_error error;
	static dg_id ids[DG__IDS_MAX];
	static dg__id_item items[DG__IDS_MAX];
	size_t count = 99;
	CU_ASSERT_EQUAL(dg__wire_decode_texts("[\"a\",7]", 7, &list, &error), DG_EFIELD);
	CU_ASSERT_STRING_EQUAL(error.text, "[1]: expected a string");
	CU_ASSERT_EQUAL(dg__wire_decode_texts("{}", 2, &list, &error), DG_EFIELD);
	CU_ASSERT_STRING_EQUAL(error.text, "expected a JSON array of texts");
	CU_ASSERT_EQUAL(dg__wire_decode_ids("[7]", 3, ids, &count, &error), DG_EFIELD);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "[0]: expected {\"type_id\""));
	static const char beyond[] = "[{\"type_id\":1,\"index_id\":65536}]";
	CU_ASSERT_EQUAL(
		dg__wire_decode_ids(beyond, strlen(beyond), ids, &count, &error), DG_EFIELD);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "[0].index_id: 65536"));
	static const char half[] = "[{\"error\":{}}]";
	CU_ASSERT_EQUAL(
		dg__wire_decode_id_items(half, strlen(half), items, &count, &error), DG_EFIELD);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "[0]"));
	CU_ASSERT_EQUAL(count, 99);
}

static void test_lists__have_a_limit(void)
{
	static dg_id ids[DG__IDS_MAX];
	char *json = malloc(DG__IDS_MAX * 32 + 64), *at = json;
	size_t count = 0;
	for (unsigned i = 0; i <= DG__IDS_MAX; i++) {
		at += snprintf(at, 40, "%s{\"type_id\":1,\"index_id\":%u}", i ? "," : "[", i);
		if (i == DG__IDS_MAX - 1) {
			at[0] = ']';
			CU_ASSERT_EQUAL(dg__wire_decode_ids(
						json, (size_t)(at - json) + 1, ids, &count, NULL),
				DG_OK);
			CU_ASSERT_EQUAL(count, DG__IDS_MAX);
		}
	}
	*at++ = ']';
	CU_ASSERT_EQUAL(
		dg__wire_decode_ids(json, (size_t)(at - json), ids, &count, NULL), DG_ETOOMANY);
	free(json);
}

static void test_small_documents(void)
{
	dg__json_text text;
	CU_ASSERT_EQUAL(dg__wire_encode_health("ok", &text), DG_OK);
	CU_ASSERT_STRING_EQUAL(text.text, "{\"status\":\"ok\"}");
	free(text.text);
	CU_ASSERT_EQUAL(dg__wire_encode_ready("https://127.0.0.1:1", "sha256//x", &text), DG_OK);
	CU_ASSERT_STRING_EQUAL(
		text.text, "{\"url\":\"https://127.0.0.1:1\",\"pin\":\"sha256//x\"}");
	free(text.text);
	CU_ASSERT_EQUAL(dg__wire_encode_ready("http://127.0.0.1:1", NULL, &text), DG_OK);
	CU_ASSERT_STRING_EQUAL(text.text, "{\"url\":\"http://127.0.0.1:1\",\"pin\":null}");
	free(text.text);
}

static const dg_test_case cases[] = {
	DG_TEST(test_problem__every_error_comes_back_as_itself),
	DG_TEST(test_problem__an_unknown_code_goes_by_the_status_and_keeps_its_text),
	DG_TEST(test_problem__anything_else_goes_by_the_status),
	DG_TEST(test_problem__no_more_than_200_bytes_are_kept),
	DG_TEST(test_problem__long_texts_are_cut_between_characters),
	DG_TEST(test_job__error_and_result_belong_to_their_states),
	DG_TEST(test_job__a_result_that_is_no_json_is_not_written),
	DG_TEST(test_job__faults_name_the_place),
	DG_TEST(test_time__is_rfc_3339_in_utc_with_milliseconds),
	DG_TEST(test_time__what_is_none_is_refused_or_null),
	DG_TEST(test_texts__come_through_as_they_are),
	DG_TEST(test_lists__faults_name_the_item),
	DG_TEST(test_lists__have_a_limit),
	DG_TEST(test_small_documents),
};

DG_TEST_MAIN("problems, jobs and ids on the wire", cases)
