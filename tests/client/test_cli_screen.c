/* Text made fit to be shown, bars, and amounts. */
#include "tests/test.h"

#include <string.h>

#include "client/cli/plot.h"
#include "client/cli/screen.h"
#include "client/cli/units.h"

static const dg__screen pipe_utf8 = { false, false, false, true, 80 };
static const dg__screen terminal_ascii = { true, true, false, false, 80 };

static const char *clean(const dg__screen *screen, const char *text)
{
	static char buf[256];
	return dg__screen_clean(screen, text, buf, sizeof(buf));
}

static void test_clean__keeps_what_can_be_shown(void)
{
	CU_ASSERT_STRING_EQUAL(clean(&pipe_utf8, "NVIDIA H200 (80 GB)"), "NVIDIA H200 (80 GB)");
	CU_ASSERT_STRING_EQUAL(clean(&pipe_utf8, "Gerät \u6f22\u5b57 \U0001F600"),
		"Gerät \u6f22\u5b57 \U0001F600");
	CU_ASSERT_STRING_EQUAL(clean(&pipe_utf8, ""), "");
}

static void test_clean__lets_no_control_character_through(void)
{
	/* C0, DEL, the eight-bit escape introducer, and what turns the writing direction. */
	CU_ASSERT_STRING_EQUAL(clean(&pipe_utf8, "a\033[31mb\007"), "a\ufffd[31mb\ufffd");
	CU_ASSERT_STRING_EQUAL(clean(&pipe_utf8, "a\177b\xc2\x9b"
						 "c"),
		"a\ufffdb\ufffdc");
	CU_ASSERT_STRING_EQUAL(clean(&pipe_utf8, "a\u202eb\u2066c"), "a\ufffdb\ufffdc");
	CU_ASSERT_STRING_EQUAL(clean(&pipe_utf8, "a\nb\tc\r"), "a b c ");
}

static void test_clean__marks_bytes_that_are_no_utf8(void)
{
	CU_ASSERT_STRING_EQUAL(clean(&pipe_utf8, "a\x9b"
						 "b\xff"),
		"a\ufffdb\ufffd");
	CU_ASSERT_STRING_EQUAL(clean(&pipe_utf8, "\xc0\x80"), "\ufffd\ufffd");
	CU_ASSERT_STRING_EQUAL(clean(&pipe_utf8, "\xed\xa0\x80"), "\ufffd\ufffd\ufffd");
	CU_ASSERT_STRING_EQUAL(clean(&pipe_utf8, "x\xe2\x82"), "x\ufffd\ufffd");
}

static void test_clean__gives_an_eight_bit_terminal_ascii_alone(void)
{
	CU_ASSERT_STRING_EQUAL(clean(&terminal_ascii, "Gerät \xc2\x9b"), "Ger?t ?");
}

static void test_clean__cuts_between_characters(void)
{
	char buf[4];
	CU_ASSERT_STRING_EQUAL(dg__screen_clean(&pipe_utf8, "ab\u00e4", buf, sizeof(buf)), "ab");
}

static void test_bar__is_as_long_as_its_fraction(void)
{
	char buf[DG__PLOT_TEXT_MAX];
	CU_ASSERT_STRING_EQUAL(dg__plot_bar(&terminal_ascii, 0.5, 10, buf, sizeof(buf)), "#####");
	CU_ASSERT_STRING_EQUAL(dg__plot_bar(&terminal_ascii, 7, 3, buf, sizeof(buf)), "###");
	CU_ASSERT_STRING_EQUAL(dg__plot_bar(&terminal_ascii, 0, 10, buf, sizeof(buf)), "");
	CU_ASSERT_STRING_EQUAL(dg__plot_bar(&terminal_ascii, 0.001, 10, buf, sizeof(buf)), "#");
	CU_ASSERT_STRING_EQUAL(dg__plot_bar(&pipe_utf8, 0.5, 3, buf, sizeof(buf)), "\u2588\u258c");
	dg__plot_bar(&pipe_utf8, 1, DG__PLOT_COLUMNS_MAX, buf, sizeof(buf));
	CU_ASSERT_EQUAL(strlen(buf), DG__PLOT_COLUMNS_MAX * 3);
}

static void test_scale__ends_with_the_full_length(void)
{
	char buf[64];
	CU_ASSERT_STRING_EQUAL(dg__plot_scale("9 GB/s", 12, buf, sizeof(buf)), "0     9 GB/s");
	CU_ASSERT_STRING_EQUAL(dg__plot_scale("9 GB/s", 3, buf, sizeof(buf)), "0 9 GB/s");
}

static void test_units__read_as_people_write_them(void)
{
	char buf[32];
	CU_ASSERT_STRING_EQUAL(dg__units_bytes(999, buf, sizeof(buf)), "999 B");
	CU_ASSERT_STRING_EQUAL(dg__units_bytes(999999, buf, sizeof(buf)), "1.0 MB");
	CU_ASSERT_STRING_EQUAL(dg__units_bytes(150754820096, buf, sizeof(buf)), "150.8 GB");
	CU_ASSERT_STRING_EQUAL(dg__units_bytes(UINT64_MAX, buf, sizeof(buf)), "18.4 EB");
	CU_ASSERT_STRING_EQUAL(dg__units_working_set(8192, buf, sizeof(buf)), "8 KiB");
	CU_ASSERT_STRING_EQUAL(dg__units_working_set(536870912, buf, sizeof(buf)), "512 MiB");
	CU_ASSERT_STRING_EQUAL(dg__units_working_set(1000, buf, sizeof(buf)), "1000 B");
	CU_ASSERT_STRING_EQUAL(dg__units_seconds(1.5, buf, sizeof(buf)), "1.5000 s");
	CU_ASSERT_STRING_EQUAL(dg__units_seconds(0.00025, buf, sizeof(buf)), "250.0000 us");
	CU_ASSERT_STRING_EQUAL(dg__units_seconds(0, buf, sizeof(buf)), "0.0000 s");
}

static const dg_test_case cases[] = {
	DG_TEST(test_clean__keeps_what_can_be_shown),
	DG_TEST(test_clean__lets_no_control_character_through),
	DG_TEST(test_clean__marks_bytes_that_are_no_utf8),
	DG_TEST(test_clean__gives_an_eight_bit_terminal_ascii_alone),
	DG_TEST(test_clean__cuts_between_characters),
	DG_TEST(test_bar__is_as_long_as_its_fraction),
	DG_TEST(test_scale__ends_with_the_full_length),
	DG_TEST(test_units__read_as_people_write_them),
};

DG_TEST_MAIN("cli screen", cases)
