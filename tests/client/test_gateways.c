/* The file that DEVGATE_GATEWAYS names. */
#include "client/gateways.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/test.h"

#define PIN "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

static char *folder;

static const char *write_file(const char *text, size_t length)
{
	static char path[600];
	if (!folder)
		folder = dg_test_temp_dir();
	snprintf(path, sizeof(path), "%s/gateways", folder);
	FILE *f = fopen(path, "wb");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(fwrite(text, 1, length, f), length);
	CU_ASSERT_EQUAL(fclose(f), 0);
	setenv("DEVGATE_GATEWAYS", path, 1);
	return path;
}

static dg_err read_text(const char *text, dg__gateways *gateways, dg_error *error)
{
	memset(gateways, 0, sizeof(*gateways));
	memset(error, 0, sizeof(*error));
	write_file(text, strlen(text));
	return dg__gateways_read(gateways, error);
}

static void test_read__no_variable_is_no_gateways(void)
{
	dg__gateways gateways = { 0 };
	unsetenv("DEVGATE_GATEWAYS");
	CU_ASSERT_EQUAL(dg__gateways_read(&gateways, NULL), DG_OK);
	CU_ASSERT_EQUAL(gateways.count, 0);
	setenv("DEVGATE_GATEWAYS", "", 1);
	CU_ASSERT_EQUAL(dg__gateways_read(&gateways, NULL), DG_OK);
	CU_ASSERT_EQUAL(gateways.count, 0);
}

static void test_read__addresses_comments_and_blanks(void)
{
	dg__gateways gateways;
	dg_error error;
	CU_ASSERT_EQUAL_FATAL(read_text("# all of them\n\n  https://node1  # the first\r\n"
					"\thttps://[::1]:9000\nhttps://node3:1",
				      &gateways, &error),
		DG_OK);
	CU_ASSERT_EQUAL_FATAL(gateways.count, 3);
	CU_ASSERT_STRING_EQUAL(gateways.entries[0].address.host, "node1");
	CU_ASSERT_EQUAL(gateways.entries[0].address.port, 8443);
	CU_ASSERT_EQUAL(gateways.entries[0].credential, 0);
	CU_ASSERT_STRING_EQUAL(gateways.entries[1].address.host, "::1");
	CU_ASSERT_EQUAL(gateways.entries[2].address.port, 1);
	dg__gateways_finish(&gateways);
}

static void test_read__credentials_by_place_and_by_name(void)
{
	dg__gateways gateways;
	dg_error error;
	CU_ASSERT_EQUAL_FATAL(read_text("https://a " PIN " /tmp/t\n"
					"https://b pin=" PIN " token-file=/tmp/t\n"
					"https://c - /tmp/t\n"
					"https://d - -\n"
					"https://e cacert=/tmp/ca cert=/tmp/c key=/tmp/k\n",
				      &gateways, &error),
		DG_OK);
	CU_ASSERT_EQUAL_FATAL(gateways.count, 5);
	CU_ASSERT(gateways.entries[0].credential != 0);
	CU_ASSERT_EQUAL(gateways.entries[0].credential, gateways.entries[1].credential);
	CU_ASSERT(gateways.entries[2].credential != 0);
	CU_ASSERT_NOT_EQUAL(gateways.entries[2].credential, gateways.entries[0].credential);
	CU_ASSERT_EQUAL(gateways.entries[3].credential, 0);
	CU_ASSERT(gateways.entries[4].credential != 0);
	dg__gateways_finish(&gateways);
}

static void test_read__wrong_lines_are_named(void)
{
	static const struct {
		const char *text, *expected;
	} cases_of_text[] = {
		{ "https://a\n\nnode2\n", "line 3" },
		{ "https://a/path\n", "line 1" },
		{ "https://a notapin\n", "pin" },
		{ "https://a " PIN " /tmp/t more\n", "'more'" },
		{ "https://a pin=\n", "no value" },
		{ "https://a pin=" PIN " pin=" PIN "\n", "again" },
		{ "https://a key=/tmp/k\n", "certificate" },
		{ "https://a sha256//short=\n", "pin" },
		{ "https://a " PIN ";\n", "pin" },
	};
	for (size_t i = 0; i < sizeof(cases_of_text) / sizeof(cases_of_text[0]); i++) {
		dg__gateways gateways;
		dg_error error;
		CU_ASSERT_EQUAL(read_text(cases_of_text[i].text, &gateways, &error), DG_ECONFIG);
		CU_ASSERT_EQUAL(error.code, DG_ECONFIG);
		if (!strstr(error.text, cases_of_text[i].expected) || !strstr(error.text, " line "))
			printf("\n    %s", error.text);
		CU_ASSERT(strstr(error.text, cases_of_text[i].expected) != NULL);
		CU_ASSERT(strstr(error.text, " line ") != NULL);
	}
}

static void test_read__a_file_that_is_none_is_refused(void)
{
	dg__gateways gateways;
	dg_error error;
	setenv("DEVGATE_GATEWAYS", "/nonexistent/gateways", 1);
	CU_ASSERT_EQUAL(dg__gateways_read(&gateways, &error), DG_ECONFIG);
	setenv("DEVGATE_GATEWAYS", "/tmp", 1);
	CU_ASSERT_EQUAL(dg__gateways_read(&gateways, &error), DG_ECONFIG);
	setenv("DEVGATE_GATEWAYS", "/dev/zero", 1);
	CU_ASSERT_EQUAL(dg__gateways_read(&gateways, &error), DG_ECONFIG);
	write_file("https://a\0https://b\n", 20);
	CU_ASSERT_EQUAL(dg__gateways_read(&gateways, &error), DG_ECONFIG);
	/* A pipe that nobody writes to would be waited for as long as it takes. */
	char path[700];
	snprintf(path, sizeof(path), "%s/pipe", folder);
	CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
	setenv("DEVGATE_GATEWAYS", path, 1);
	CU_ASSERT_EQUAL(dg__gateways_read(&gateways, &error), DG_ECONFIG);
}

static void test_read__more_than_the_most_is_refused(void)
{
	dg__gateways gateways;
	dg_error error;
	char *text = malloc(64 * (DG__GATEWAYS_MAX + 1) + 1);
	size_t n = 0;
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	for (int i = 0; i < DG__GATEWAYS_MAX; i++)
		n += (size_t)snprintf(text + n, 64, "https://node%d\n", i);
	CU_ASSERT_EQUAL(read_text(text, &gateways, &error), DG_OK);
	CU_ASSERT_EQUAL(gateways.count, DG__GATEWAYS_MAX);
	dg__gateways_finish(&gateways);
	snprintf(text + n, 64, "https://onemore\n");
	CU_ASSERT_EQUAL(read_text(text, &gateways, &error), DG_ECONFIG);
	free(text);
	free(folder);
	folder = NULL;
}

static const dg_test_case cases[] = {
	DG_TEST(test_read__no_variable_is_no_gateways),
	DG_TEST(test_read__addresses_comments_and_blanks),
	DG_TEST(test_read__credentials_by_place_and_by_name),
	DG_TEST(test_read__wrong_lines_are_named),
	DG_TEST(test_read__a_file_that_is_none_is_refused),
	DG_TEST(test_read__more_than_the_most_is_refused),
};

DG_TEST_MAIN("client/gateways", cases)
