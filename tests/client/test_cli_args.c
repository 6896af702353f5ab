/* The command line taken apart. */
#include "tests/test.h"

#include <stdint.h>
#include <string.h>

#include "client/cli/args.h"

#define PARSE(args, error, ...) \
	dg__args_parse((int)(sizeof((const char *[]){ "devgate", __VA_ARGS__ }) / sizeof(char *)), \
		(char *const *)(uintptr_t)(const char *[]){ "devgate", __VA_ARGS__ }, args, error)

static void test_args__options_stand_before_and_after_the_command(void)
{
	dg__args args;
	CU_ASSERT_EQUAL(PARSE(&args, NULL, "--json", "describe", "--pin", "p", "cpu"), DG_OK);
	CU_ASSERT_STRING_EQUAL(args.command, "describe");
	CU_ASSERT_EQUAL_FATAL(args.operand_count, 1);
	CU_ASSERT_STRING_EQUAL(args.operands[0], "cpu");
	CU_ASSERT_STRING_EQUAL(args.value[DG__OPT_PIN], "p");
	CU_ASSERT(dg__args_has(&args, DG__OPT_JSON));
	CU_ASSERT(!dg__args_has(&args, DG__OPT_REFRESH));
	dg__args_finish(&args);
}

static void test_args__value_after_equals_sign_or_as_next_word(void)
{
	dg__args args;
	CU_ASSERT_EQUAL(
		PARSE(&args, NULL, "--gateway=a=b", "devices", "--gateway", "c", "--pin="), DG_OK);
	CU_ASSERT_EQUAL_FATAL(args.gateway_count, 2);
	CU_ASSERT_STRING_EQUAL(args.gateways[0], "a=b");
	CU_ASSERT_STRING_EQUAL(args.gateways[1], "c");
	CU_ASSERT_STRING_EQUAL(args.value[DG__OPT_PIN], "");
	dg__args_finish(&args);
}

static void test_args__double_hyphen_ends_options(void)
{
	dg__args args;
	CU_ASSERT_EQUAL(PARSE(&args, NULL, "describe", "--", "--json", "--"), DG_OK);
	CU_ASSERT_EQUAL_FATAL(args.operand_count, 2);
	CU_ASSERT_STRING_EQUAL(args.operands[0], "--json");
	CU_ASSERT(!dg__args_has(&args, DG__OPT_JSON));
	dg__args_finish(&args);
}

static void test_args__negative_number_is_an_operand(void)
{
	dg__args args;
	CU_ASSERT_EQUAL(PARSE(&args, NULL, "decode", "-1", "-"), DG_OK);
	CU_ASSERT_EQUAL(args.operand_count, 2);
	dg__args_finish(&args);
}

static void test_args__json_counts_after_an_unknown_option_too(void)
{
	dg__args args;
	dg_error error = { 0 };
	CU_ASSERT_EQUAL(
		PARSE(&args, &error, "--nonsense", "--pin", "p", "--other", "--json"), DG_EINVALID);
	CU_ASSERT(dg__args_has(&args, DG__OPT_JSON));
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "--nonsense"));
	dg__args_finish(&args);
}

static void test_args__wrong_options_are_refused(void)
{
	static const char *const wrong[] = { "--pi", "--pins", "--json=1", "--pin", "-x", "-json",
		"--j", "--h", "--=", "---json" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		dg__args args;
		dg_error error = { 0 };
		CU_ASSERT_EQUAL(PARSE(&args, &error, "devices", wrong[i]), DG_EINVALID);
		CU_ASSERT_NOT_EQUAL(error.text[0], '\0');
		dg__args_finish(&args);
	}
}

static void test_args__short_help_and_version(void)
{
	dg__args args;
	CU_ASSERT_EQUAL(PARSE(&args, NULL, "-h", "-V"), DG_OK);
	CU_ASSERT(dg__args_has(&args, DG__OPT_HELP));
	CU_ASSERT(dg__args_has(&args, DG__OPT_VERSION));
	dg__args_finish(&args);
}

static void test_whole__reads_digits_alone(void)
{
	uint64_t number = 7;
	CU_ASSERT_EQUAL(dg__args_whole("65535", "n", 65535, &number, NULL), DG_OK);
	CU_ASSERT_EQUAL(number, 65535);
	CU_ASSERT_EQUAL(dg__args_whole("0", "n", 65535, &number, NULL), DG_OK);
	CU_ASSERT_EQUAL(number, 0);
	CU_ASSERT_EQUAL(
		dg__args_whole("18446744073709551615", "n", UINT64_MAX, &number, NULL), DG_OK);
	CU_ASSERT_EQUAL(number, UINT64_MAX);
}

static void test_whole__refuses_other_text_and_other_ranges(void)
{
	static const char *const wrong[] = { "", "-", "+1", " 1", "1 ", "0x10", "1e3", "1.0", "one",
		"--1" };
	static const char *const out[] = { "65536", "-1", "99999999999999999999999" };
	uint64_t number = 7;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CU_ASSERT_EQUAL(dg__args_whole(wrong[i], "n", 65535, &number, NULL), DG_EINVALID);
	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++)
		CU_ASSERT_EQUAL(dg__args_whole(out[i], "n", 65535, &number, NULL), DG_EINVALID);
	CU_ASSERT_EQUAL(number, 7);
}

static void test_real__reads_finite_numbers_from_0_on(void)
{
	static const char *const wrong[] = { "", "nan", "inf", "0x10", "1,5", " 1", "1 ", "e", "1e",
		"--1" };
	static const char *const out[] = { "-1", "1e999" };
	double number = 7;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CU_ASSERT_EQUAL(dg__args_real(wrong[i], "n", &number, NULL), DG_EINVALID);
	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++)
		CU_ASSERT_EQUAL(dg__args_real(out[i], "n", &number, NULL), DG_EINVALID);
	CU_ASSERT_EQUAL(number, 7);
	CU_ASSERT_EQUAL(dg__args_real("2.5e3", "n", &number, NULL), DG_OK);
	CU_ASSERT_EQUAL(number, 2500);
	CU_ASSERT_EQUAL(dg__args_real("0", "n", &number, NULL), DG_OK);
	CU_ASSERT_EQUAL(number, 0);
}

static const dg_test_case cases[] = {
	DG_TEST(test_args__options_stand_before_and_after_the_command),
	DG_TEST(test_args__value_after_equals_sign_or_as_next_word),
	DG_TEST(test_args__double_hyphen_ends_options),
	DG_TEST(test_args__negative_number_is_an_operand),
	DG_TEST(test_args__json_counts_after_an_unknown_option_too),
	DG_TEST(test_args__wrong_options_are_refused),
	DG_TEST(test_args__short_help_and_version),
	DG_TEST(test_whole__reads_digits_alone),
	DG_TEST(test_whole__refuses_other_text_and_other_ranges),
	DG_TEST(test_real__reads_finite_numbers_from_0_on),
};

DG_TEST_MAIN("cli args", cases)
