/* Rates of values and their texts. */
#include "tests/test.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <devgate/throughput.h>

static dg_value value_of(const char *key, uint64_t ops_count, uint64_t duration_ns)
{
	dg_value value = { .ops_count = ops_count, .duration_ns = duration_ns };
	CU_ASSERT_EQUAL(dg_key_parse(key, &value.key, NULL), DG_OK);
	return value;
}

static void test_rate__is_operations_over_time(void)
{
	double rate = 0;
	dg_value value = value_of("compute:f32", 3000, 1500);
	CU_ASSERT(dg_value_rate(&value, &rate));
	CU_ASSERT_DOUBLE_EQUAL(rate, 2e9, 1);
	CU_ASSERT_FALSE(dg_value_bytes_rate(&value, &rate));
	value = value_of("memory:read:65536", 16384, 1000);
	CU_ASSERT(dg_value_bytes_rate(&value, &rate));
	CU_ASSERT_DOUBLE_EQUAL(rate, 65536e6, 1);
}

static void test_rate__is_undefined_without_duration(void)
{
	double rate = 77;
	char text[DG_RATE_TEXT_MAX];
	dg_value value = value_of("memory", 3000, 0);
	CU_ASSERT_FALSE(dg_value_rate(&value, &rate));
	CU_ASSERT_FALSE(dg_value_bytes_rate(&value, &rate));
	CU_ASSERT_EQUAL(rate, 77);
	CU_ASSERT_EQUAL(dg_value_format(&value, text, sizeof(text)), 1);
	CU_ASSERT_STRING_EQUAL(text, "-");
}

static void check_rate(double per_s, const char *expected)
{
	char text[DG_RATE_TEXT_MAX];
	CU_ASSERT_EQUAL(dg_rate_format(per_s, "OPS/s", text, sizeof(text)), strlen(expected));
	CU_ASSERT_STRING_EQUAL(text, expected);
}

static void check_rates(void)
{
	check_rate(60123400000000.0, "60.1234 TOPS/s");
	check_rate(0, "0.0000 OPS/s");
	check_rate(1, "1.0000 OPS/s");
	check_rate(999.9999, "999.9999 OPS/s");
	check_rate(999.99996, "1.0000 kOPS/s");
	check_rate(999999.999, "1.0000 MOPS/s");
	check_rate(1e3, "1.0000 kOPS/s");
	check_rate(1.5e6, "1.5000 MOPS/s");
	check_rate(1.5e9, "1.5000 GOPS/s");
	check_rate(2e15, "2.0000 POPS/s");
	check_rate(2e18, "2.0000 EOPS/s");
	check_rate(2e22, "20000.0000 EOPS/s");
	check_rate(0.5, "500.0000 mOPS/s");
	check_rate(2.5e-6, "2.5000 uOPS/s");
	check_rate(1.84467440737095516e28, "18446744073.7096 EOPS/s");
	check_rate(NAN, "-");
	check_rate(INFINITY, "-");
	check_rate(-1, "-");
	check_rate(1e300, "-");
}

static void test_format__rates_have_four_decimals_and_a_prefix(void)
{
	check_rates();
}

static void test_format__no_locale_changes_a_figure(void)
{
	static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE",
		"pt_BR.UTF-8", "ru_RU.UTF-8" };
	const char *set = NULL;
	for (size_t i = 0; !set && i < sizeof(names) / sizeof(names[0]); i++)
		set = setlocale(LC_ALL, names[i]);
	if (!set) {
		dg_test_skip("locale", "no locale with a decimal comma is installed");
		return;
	}
	check_rates();
	setlocale(LC_ALL, "C");
}

static void check_value(
	const char *key, uint64_t ops_count, uint64_t duration_ns, const char *expected)
{
	char text[DG_RATE_TEXT_MAX];
	dg_value value = value_of(key, ops_count, duration_ns);
	CU_ASSERT_EQUAL(dg_value_format(&value, text, sizeof(text)), strlen(expected));
	CU_ASSERT_STRING_EQUAL(text, expected);
	value.status = DG_STATUS_UNSUPPORTED;
	dg_value_format(&value, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "-");
}

static void test_format__units_follow_the_key(void)
{
	check_value("compute:f32", 601234, 10, "60.1234 TOPS/s");
	check_value("cmma:f16:f32:16x16x16", 8192, 8192, "1.0000 GOPS/s");
	check_value("memory", 10708500, 10000, "4.2834 Tbytes/s");
	check_value("memory:write:65536:resident", 1, 4, "1.0000 Gbytes/s");
	check_value("launch", 1, 5200, "5.2000 us");
	check_value("launch", 10, 52000, "5.2000 us");
	check_value("launch", 1, 2000000000, "2.0000 s");
	check_value("launch", 0, 5200, "-");
}

static void test_format__cuts_as_snprintf_does(void)
{
	char text[4] = "###";
	CU_ASSERT_EQUAL(dg_rate_format(1, "OPS/s", text, sizeof(text)), 12);
	CU_ASSERT_STRING_EQUAL(text, "1.0");
	CU_ASSERT_EQUAL(dg_rate_format(1, "OPS/s", NULL, 0), 12);
}

static void test_status__names(void)
{
	CU_ASSERT_STRING_EQUAL(dg_status_name(DG_STATUS_OK), "ok");
	CU_ASSERT_STRING_EQUAL(dg_status_name(DG_STATUS_UNSUPPORTED), "unsupported");
	CU_ASSERT_STRING_EQUAL(dg_status_name(DG_STATUS_FAILED), "failed");
	CU_ASSERT_STRING_EQUAL(dg_status_name(DG_STATUS_REFUSED), "refused");
}

static const dg_test_case cases[] = {
	DG_TEST(test_rate__is_operations_over_time),
	DG_TEST(test_rate__is_undefined_without_duration),
	DG_TEST(test_format__rates_have_four_decimals_and_a_prefix),
	DG_TEST(test_format__no_locale_changes_a_figure),
	DG_TEST(test_format__units_follow_the_key),
	DG_TEST(test_format__cuts_as_snprintf_does),
	DG_TEST(test_status__names),
};

DG_TEST_MAIN("api/value", cases)
