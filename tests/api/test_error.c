/* Errors: their codes, statuses and texts. */
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#include <devgate/error.h>

static const dg_err all[] = {
#define DG_ERROR(number, name, code, status, title) DG_E##name,
#include <devgate/errors.def>
#undef DG_ERROR
};

#define COUNT (sizeof(all) / sizeof(all[0]))

static void test_codes__are_distinct_and_read_back(void)
{
	for (size_t i = 0; i < COUNT; i++) {
		CU_ASSERT_EQUAL(dg_err_from_code(dg_err_code(all[i])), all[i]);
		for (size_t k = 0; k < i; k++) {
			CU_ASSERT_NOT_EQUAL(all[k], all[i]);
			CU_ASSERT_STRING_NOT_EQUAL(dg_err_code(all[k]), dg_err_code(all[i]));
		}
	}
}

static void test_codes__unknown_ones_are_ok_or_internal(void)
{
	CU_ASSERT_EQUAL(dg_err_from_code("no_such_code"), DG_OK);
	CU_ASSERT_EQUAL(dg_err_from_code(""), DG_OK);
	CU_ASSERT_EQUAL(dg_err_from_code(NULL), DG_OK);
	CU_ASSERT_STRING_EQUAL(dg_err_code((dg_err)9999), "internal");
	CU_ASSERT_STRING_EQUAL(dg_err_code((dg_err)-1), "internal");
	CU_ASSERT_STRING_EQUAL(dg_err_code(DG_OK), "ok");
	CU_ASSERT_PTR_NOT_NULL(dg_err_title((dg_err)9999));
}

static void test_titles__begin_small_and_have_no_full_stop(void)
{
	for (size_t i = 0; i < COUNT; i++) {
		const char *title = dg_err_title(all[i]);
		CU_ASSERT(strlen(title) > 0);
		CU_ASSERT_NOT_EQUAL(title[strlen(title) - 1], '.');
	}
}

static void test_statuses__are_those_of_http(void)
{
	CU_ASSERT_EQUAL(dg_err_status(DG_OK), 200);
	CU_ASSERT_EQUAL(dg_err_status((dg_err)9999), 500);
	for (size_t i = 0; i < COUNT; i++)
		CU_ASSERT(dg_err_status(all[i]) >= 400 && dg_err_status(all[i]) < 600);
}

static void test_from_status__gives_an_error_of_that_status(void)
{
	for (size_t i = 0; i < COUNT; i++) {
		int status = dg_err_status(all[i]);
		dg_err err = dg_err_from_status(status);
		CU_ASSERT_NOT_EQUAL(err, DG_OK);
		/* What conflicts cannot be told from a 409 alone. */
		if (status != 409)
			CU_ASSERT_EQUAL(dg_err_status(err), status);
	}
}

static void test_from_status__is_never_ok(void)
{
	for (int status = -1; status < 700; status++)
		CU_ASSERT_NOT_EQUAL(dg_err_from_status(status), DG_OK);
	CU_ASSERT_EQUAL(dg_err_from_status(418), DG_EBADREQUEST);
	CU_ASSERT_EQUAL(dg_err_from_status(599), DG_EINTERNAL);
	CU_ASSERT_EQUAL(dg_err_from_status(200), DG_EPROTOCOL);
}

static void test_set__fills_everything_and_gives_the_code_back(void)
{
	dg_error error;
	memset(&error, 0xff, sizeof(error));
	CU_ASSERT_EQUAL(
		dg_error_native(&error, DG_EDRIVER, "cpu", -7, "%s %d", "no", 3), DG_EDRIVER);
	CU_ASSERT_EQUAL(error.code, DG_EDRIVER);
	CU_ASSERT_EQUAL(error.native_code, -7);
	CU_ASSERT_STRING_EQUAL(error.origin, "cpu");
	CU_ASSERT_STRING_EQUAL(error.text, "no 3");
	CU_ASSERT_EQUAL(dg_error_set(&error, DG_ENOMEM, NULL), DG_ENOMEM);
	CU_ASSERT_STRING_EQUAL(error.text, dg_err_title(DG_ENOMEM));
	CU_ASSERT_STRING_EQUAL(error.origin, "");
	CU_ASSERT_EQUAL(error.native_code, 0);
	CU_ASSERT_EQUAL(dg_error_set(NULL, DG_EIO, "%s", "nobody listens"), DG_EIO);
}

static void test_set__may_quote_the_text_it_replaces(void)
{
	dg_error error;
	dg_error_set(&error, DG_EIO, "inner");
	dg_error_set(&error, DG_EIO, "outer: %s", error.text);
	CU_ASSERT_STRING_EQUAL(error.text, "outer: inner");
}

static void test_set__cuts_between_characters(void)
{
	dg_error error;
	char text[600];
	for (size_t shift = 0; shift < 4; shift++) {
		memset(text, 'a', shift);
		for (size_t at = shift; at + 4 < sizeof(text); at += 4)
			memcpy(text + at, "\xf0\x9f\x98\x80", 5);
		dg_error_native(&error, DG_EIO, text, 0, "%s", text);
		CU_ASSERT_EQUAL((strlen(error.text) - shift) % 4, 0);
		CU_ASSERT(strlen(error.text) >= sizeof(error.text) - 5);
		CU_ASSERT_EQUAL((strlen(error.origin) - shift) % 4, 0);
	}
}

static const dg_test_case cases[] = {
	DG_TEST(test_codes__are_distinct_and_read_back),
	DG_TEST(test_codes__unknown_ones_are_ok_or_internal),
	DG_TEST(test_titles__begin_small_and_have_no_full_stop),
	DG_TEST(test_statuses__are_those_of_http),
	DG_TEST(test_from_status__gives_an_error_of_that_status),
	DG_TEST(test_from_status__is_never_ok),
	DG_TEST(test_set__fills_everything_and_gives_the_code_back),
	DG_TEST(test_set__may_quote_the_text_it_replaces),
	DG_TEST(test_set__cuts_between_characters),
};

DG_TEST_MAIN("api/error", cases)
