/* Reading a small file that a user names. */
#include "backends/core/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/test.h"

static dg_error why;

static void write_bytes(const char *path, const char *bytes, size_t length)
{
	FILE *f = fopen(path, "wb");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(fwrite(bytes, 1, length, f), length);
	fclose(f);
}

static void expect_content(const char *path, size_t max, const char *bytes, size_t length)
{
	char *text = NULL;
	size_t got = 0;
	CU_ASSERT_EQUAL_FATAL(dg__file_read(path, max, DG_ECONFIG, &text, &got, &why), DG_OK);
	CU_ASSERT_EQUAL(got, length);
	CU_ASSERT(got == length && memcmp(text, bytes, length) == 0);
	CU_ASSERT_EQUAL(text[got], '\0');
	free(text);
}

static void expect_refusal(const char *path, const char *phrase)
{
	char *text = NULL;
	size_t length = 77;
	long long before = dg_test_now_ms();
	CU_ASSERT_EQUAL(dg__file_read(path, 100, DG_ECONFIG, &text, &length, &why), DG_ECONFIG);
	CU_ASSERT(dg_test_now_ms() - before < 2000);
	CU_ASSERT_PTR_NULL(text);
	CU_ASSERT_EQUAL(length, 77);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, path));
	if (!strstr(why.text, phrase))
		printf("\n    expected '%s': %s\n", phrase, why.text);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, phrase));
}

static void test_read__gives_every_byte(void)
{
	char *folder = dg_test_temp_dir(), path[600], link[600], large[20000];
	snprintf(path, sizeof(path), "%s/file", folder);
	snprintf(link, sizeof(link), "%s/link", folder);
	CU_ASSERT_EQUAL(symlink("file", link), 0);
	write_bytes(path, "", 0);
	expect_content(path, 100, "", 0);
	expect_content(path, 0, "", 0);
	write_bytes(path, "a\0b\n", 4);
	expect_content(path, 100, "a\0b\n", 4);
	expect_content(path, 4, "a\0b\n", 4);
	expect_content(link, 100, "a\0b\n", 4);
	memset(large, 'x', sizeof(large));
	write_bytes(path, large, sizeof(large));
	expect_content(path, sizeof(large), large, sizeof(large));
	free(folder);
}

/* Files of /proc tell a size of 0. */
static void test_read__does_not_believe_the_size(void)
{
	char *text = NULL;
	size_t length = 0;
	if (access("/proc/self/status", R_OK) != 0) {
		dg_test_skip("procfs", "there is no /proc here");
		return;
	}
	CU_ASSERT_EQUAL_FATAL(
		dg__file_read("/proc/self/status", 65536, DG_ECONFIG, &text, &length, &why), DG_OK);
	CU_ASSERT(length > 0);
	free(text);
}

static void test_read__one_byte_too_many_is_refused(void)
{
	char *folder = dg_test_temp_dir(), path[600], large[101];
	snprintf(path, sizeof(path), "%s/file", folder);
	memset(large, 'x', sizeof(large));
	write_bytes(path, large, 100);
	expect_content(path, 100, large, 100);
	write_bytes(path, large, 101);
	expect_refusal(path, "longer than 100 bytes");
	free(folder);
}

static void test_read__what_is_no_regular_file_is_refused(void)
{
	char *folder = dg_test_temp_dir(), path[600];
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	snprintf(path, sizeof(path), "%s/pipe", folder);
	CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
	expect_refusal(path, "a pipe, not a regular file");
	CU_ASSERT_EQUAL(dg__file_check(path, DG_ECREDENTIAL, &why), DG_ECREDENTIAL);
	expect_refusal(folder, "a folder, not a regular file");
	expect_refusal("/dev/zero", "a device, not a regular file");
	snprintf(path, sizeof(path), "%s/socket", folder);
	int n = snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
	if (n > 0 && (size_t)n < sizeof(name.sun_path)) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		CU_ASSERT_EQUAL(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
		expect_refusal(path, "a socket, not a regular file");
		close(fd);
	}
	free(folder);
}

static void test_read__what_is_not_there_is_told_with_its_number(void)
{
	expect_refusal("/nonexistent/file", "cannot be read: No such file");
	CU_ASSERT(why.native_code != 0);
	CU_ASSERT_STRING_EQUAL(why.origin, "system");
}

static void test_check__says_what_reading_would(void)
{
	char *folder = dg_test_temp_dir(), path[600];
	snprintf(path, sizeof(path), "%s/file", folder);
	CU_ASSERT_EQUAL(dg__file_check(path, DG_ECREDENTIAL, &why), DG_ECREDENTIAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, path));
	write_bytes(path, "a", 1);
	CU_ASSERT_EQUAL(dg__file_check(path, DG_ECREDENTIAL, &why), DG_OK);
	free(folder);
}

static const dg_test_case cases[] = {
	DG_TEST(test_read__gives_every_byte),
	DG_TEST(test_read__does_not_believe_the_size),
	DG_TEST(test_read__one_byte_too_many_is_refused),
	DG_TEST(test_read__what_is_no_regular_file_is_refused),
	DG_TEST(test_read__what_is_not_there_is_told_with_its_number),
	DG_TEST(test_check__says_what_reading_would),
};

DG_TEST_MAIN("small files", cases)
