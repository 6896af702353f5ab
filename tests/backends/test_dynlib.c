/* Opening drivers at run time. */
#include "backends/core/dynlib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

#ifdef __APPLE__
#define LIBM "libm.dylib"
#else
#define LIBM "libm.so.6"
#endif

typedef struct table {
	double (*cosine)(double);
	double (*root)(double);
} table;

static void test_open__takes_the_first_that_is_there(void)
{
	static const char *const names[] = { "libdevgate-none.so.9", LIBM, NULL };
	static const dg__symbol symbols[] = { { "cos", offsetof(table, cosine), NULL },
		{ "devgate_root", offsetof(table, root), "sqrt" } };
	dg__dynlib *lib = NULL;
	table t = { 0 };
	CU_ASSERT_EQUAL_FATAL(dg__dynlib_open(names, &lib, NULL), DG_OK);
	CU_ASSERT_STRING_EQUAL(dg__dynlib_name(lib), LIBM);
	CU_ASSERT_EQUAL_FATAL(dg__dynlib_load(lib, symbols, 2, &t, NULL), DG_OK);
	CU_ASSERT_EQUAL(t.cosine(0), 1);
	CU_ASSERT_EQUAL(t.root(81), 9);
	dg__dynlib_close(lib);
	dg__dynlib_close(NULL);
}

static void test_load__is_all_or_nothing(void)
{
	static const char *const names[] = { LIBM, NULL };
	static const dg__symbol symbols[] = { { "cos", offsetof(table, cosine), NULL },
		{ "devgate_none", offsetof(table, root), NULL } };
	dg__dynlib *lib = NULL;
	dg_error error = { 0 };
	table t = { 0 };
	CU_ASSERT_EQUAL_FATAL(dg__dynlib_open(names, &lib, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg__dynlib_load(lib, symbols, 2, &t, &error), DG_EDRIVER);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "devgate_none"));
	CU_ASSERT_PTR_NULL(t.cosine);
	dg__dynlib_close(lib);
}

static void test_open__a_missing_driver_says_what_was_looked_for(void)
{
	static const char *const names[] = { "libdevgate-none.so.1", "/nowhere/libnone.so", NULL };
	dg__dynlib *lib = NULL;
	dg_error error = { 0 };
	CU_ASSERT_EQUAL(dg__dynlib_open(names, &lib, &error), DG_ENODRIVER);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, names[0]));
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, names[1]));
	CU_ASSERT_PTR_NULL(lib);
}

static void test_open__a_broken_driver_is_not_a_missing_one(void)
{
	char *dir = dg_test_temp_dir(), path[512];
	snprintf(path, sizeof(path), "%s/libbroken.so", dir);
	FILE *file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs("this is no library", file);
	fclose(file);
	const char *const names[] = { "libdevgate-none.so.1", path, NULL };
	dg__dynlib *lib = NULL;
	dg_error error = { 0 };
	CU_ASSERT_EQUAL(dg__dynlib_open(names, &lib, &error), DG_EDRIVER);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "libbroken.so"));
	free(dir);
}

static const dg_test_case cases[] = {
	DG_TEST(test_open__takes_the_first_that_is_there),
	DG_TEST(test_load__is_all_or_nothing),
	DG_TEST(test_open__a_missing_driver_says_what_was_looked_for),
	DG_TEST(test_open__a_broken_driver_is_not_a_missing_one),
};
DG_TEST_MAIN("backends/core/dynlib", cases)
