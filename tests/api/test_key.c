/* Short texts of throughput keys. */
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

#include <devgate/throughput.h>

static void check_reads(const char *text, const char *canonical)
{
	char buf[DG_KEY_TEXT_MAX];
	dg_key key = { 0 }, again = { 0 };
	dg_error error = { 0 };
	dg_err err = dg_key_parse(text, &key, &error);
	if (err)
		printf("\n    %s: %s\n", text, error.text);
	CU_ASSERT_EQUAL(err, DG_OK);
	CU_ASSERT_EQUAL(dg_key_check(&key, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg_key_format(&key, buf, sizeof(buf)), strlen(canonical));
	CU_ASSERT_STRING_EQUAL(buf, canonical);
	CU_ASSERT_EQUAL(dg_key_parse(buf, &again, NULL), DG_OK);
	CU_ASSERT(dg_key_equal(&key, &again));
}

static void test_parse__reads_every_form_in_any_case(void)
{
	check_reads("compute:f32", "compute:f32");
	check_reads("COMPUTE:BF16", "compute:bf16");
	check_reads("compute:E2M1x2", "compute:e2m1x2");
	check_reads("cmma:f16:f32:16x16x16", "cmma:f16:f32:16x16x16");
	check_reads("Cmma:I8:I32:16X8X32", "cmma:i8:i32:16x8x32");
	check_reads("cmma:e2m1x2:flex32:65535x65535x65535", "cmma:e2m1x2:flex32:65535x65535x65535");
	check_reads("memory", "memory");
	check_reads("memory:copy", "memory");
	check_reads("memory:Read", "memory:read");
	check_reads("memory:write", "memory:write");
	check_reads("memory:copy:65536", "memory:copy:65536");
	check_reads("memory:read:4", "memory:read:4");
	check_reads("memory:read:1099511627776:RESIDENT", "memory:read:1099511627776:resident");
	check_reads("launch", "launch");
}

static void test_parse__memory_copy_is_memory(void)
{
	dg_key a, b;
	CU_ASSERT_EQUAL(dg_key_parse("memory", &a, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg_key_parse("memory:copy", &b, NULL), DG_OK);
	CU_ASSERT(dg_key_equal(&a, &b));
	CU_ASSERT_EQUAL(dg_key_parse("memory:copy:65536", &b, NULL), DG_OK);
	CU_ASSERT_FALSE(dg_key_equal(&a, &b));
}

static const struct {
	const char *text, *says;
} wrong[] = {
	{ "", "compute:DTYPE" },
	{ "computer", "compute:DTYPE" },
	{ " memory", "\" memory\" at character 1" },
	{ "memory ", "\"memory \"" },
	{ "compute", "ends too early at character 8" },
	{ "compute:", "one of" },
	{ "compute:bool", "\"bool\" at character 9" },
	{ "compute:f32:f32", "the end of the key" },
	{ "compute:f32:", "the end of the key" },
	{ "cmma", "one of" },
	{ "cmma:f16", "ends too early" },
	{ "cmma:f16:f32", "MxNxK" },
	{ "cmma:f16:f32:16x16", "MxNxK" },
	{ "cmma:f16:f32:16x16x", "MxNxK" },
	{ "cmma:f16:f32:16x16x16x16", "MxNxK" },
	{ "cmma:f16:f32:0x16x16", "MxNxK" },
	{ "cmma:f16:f32:65536x16x16", "MxNxK" },
	{ "cmma:f16:f32:-1x16x16", "MxNxK" },
	{ "cmma:f16:f32:16x16x16:", "the end of the key" },
	{ "memory:", "copy, read or write" },
	{ "memory:both", "copy, read or write" },
	{ "memory:65536", "copy, read or write" },
	{ "memory:read:", "number of bytes" },
	{ "memory:read:3", "number of bytes" },
	{ "memory:read:1099511627777", "number of bytes" },
	{ "memory:read:18446744073709551620", "number of bytes" },
	{ "memory:read:64K", "number of bytes" },
	{ "memory:read:-4", "number of bytes" },
	{ "memory:read:64:hot", "resident" },
	{ "memory:read:64:resident:", "the end of the key" },
	{ "launch:1", "the end of the key" },
	{ ":::::", "colons" },
	{ "a\x01\xff", "\\x01\\xff" },
	{ "memory:read:0000000000000000000000000000000000000000000000000004", "longer" },
};

static void test_parse__says_what_was_expected(void)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		dg_key key = { .bytes = 77 };
		dg_error error = { 0 };
		dg_err err = dg_key_parse(wrong[i].text, &key, &error);
		bool good = err == DG_EKEY && key.bytes == 77 && strstr(error.text, wrong[i].says);
		if (!good)
			printf("\n    \"%s\": %s: %s\n", wrong[i].text, dg_err_code(err),
				error.text);
		CU_ASSERT(good);
	}
	CU_ASSERT_EQUAL(dg_key_parse(NULL, NULL, NULL), DG_EKEY);
}

static void check_refused(dg_key key)
{
	char buf[DG_KEY_TEXT_MAX];
	CU_ASSERT_EQUAL(dg_key_check(&key, NULL), DG_EKEY);
	CU_ASSERT(dg_key_format(&key, buf, sizeof(buf)) < sizeof(buf));
}

static void test_check__every_field_fits_its_mode(void)
{
	check_refused((dg_key){ .mode = (dg_mode)6 });
	check_refused((dg_key){ .mode = (dg_mode)-1 });
	check_refused((dg_key){ .mode = DG_MODE_COMPUTE });
	check_refused((dg_key){ .mode = DG_MODE_COMPUTE, .dtype = (dg_dtype)14 });
	check_refused((dg_key){ .mode = DG_MODE_COMPUTE, .dtype = DG_F32, .accumulator = DG_F32 });
	check_refused((dg_key){ .mode = DG_MODE_COMPUTE, .dtype = DG_F32, .access = DG_READ });
	check_refused((dg_key){ .mode = DG_MODE_COMPUTE, .dtype = DG_F32, .bytes = 4 });
	check_refused((dg_key){ .mode = DG_MODE_CMMA, .dtype = DG_F16, .m = 1, .n = 1, .k = 1 });
	check_refused((dg_key){
		.mode = DG_MODE_CMMA, .dtype = DG_F16, .accumulator = DG_F32, .m = 1, .n = 1 });
	check_refused((dg_key){ .mode = DG_MODE_CMMA,
		.dtype = DG_F16,
		.accumulator = DG_F32,
		.m = 65536,
		.n = 1,
		.k = 1 });
	check_refused((dg_key){ .mode = DG_MODE_MEMORY, .access = (dg_access)3 });
	check_refused((dg_key){ .mode = DG_MODE_MEMORY, .bytes = 4 });
	check_refused((dg_key){ .mode = DG_MODE_MEMORY, .dtype = DG_F32 });
	check_refused((dg_key){ .mode = DG_MODE_MEMORY, .m = 1 });
	check_refused((dg_key){ .mode = DG_MODE_WORKING_SET, .bytes = 3 });
	check_refused((dg_key){ .mode = DG_MODE_RESIDENT, .bytes = DG_WORKING_SET_MAX_BYTES + 1 });
	check_refused((dg_key){ .mode = DG_MODE_LAUNCH, .access = DG_WRITE });
}

static void test_is_memory__of_the_three_memory_modes(void)
{
	dg_key key = { 0 };
	for (int mode = 0; mode <= DG_MODE_LAUNCH; mode++) {
		key.mode = (dg_mode)mode;
		CU_ASSERT_EQUAL(dg_key_is_memory(&key), mode >= 2 && mode <= 4);
	}
}

static const dg_test_case cases[] = {
	DG_TEST(test_parse__reads_every_form_in_any_case),
	DG_TEST(test_parse__memory_copy_is_memory),
	DG_TEST(test_parse__says_what_was_expected),
	DG_TEST(test_check__every_field_fits_its_mode),
	DG_TEST(test_is_memory__of_the_three_memory_modes),
};

DG_TEST_MAIN("api/key", cases)
