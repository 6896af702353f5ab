/* See test.h. */
#include "tests/test.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <CUnit/Basic.h>

#define TEMP_DIRS_MAX 64

static char *temp_dirs[TEMP_DIRS_MAX];
static size_t temp_dir_count;
static pid_t temp_owner;
static unsigned skipped_cases;

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_temp_dirs(void)
{
	if (getpid() != temp_owner)
		return;
	for (size_t i = 0; i < temp_dir_count; i++) {
		nftw(temp_dirs[i], remove_entry, 16, FTW_DEPTH | FTW_PHYS);
		free(temp_dirs[i]);
	}
	temp_dir_count = 0;
}

char *dg_test_temp_dir(void)
{
	const char *base = getenv("TMPDIR");
	char path[512];
	snprintf(path, sizeof(path), "%s/devgate-test-XXXXXX", base && *base ? base : "/tmp");
	if (!mkdtemp(path)) {
		CU_FAIL_FATAL("cannot make a temporary directory");
		return NULL;
	}
	if (temp_dir_count == 0) {
		temp_owner = getpid();
		atexit(remove_temp_dirs);
	}
	if (temp_dir_count < TEMP_DIRS_MAX)
		temp_dirs[temp_dir_count++] = strdup(path);
	return strdup(path);
}

const char *dg_test_fixture(const char *relative)
{
	static _Thread_local char path[1024];
	const char *root = getenv("DG_FIXTURES");
	snprintf(path, sizeof(path), "%s/%s", root && *root ? root : "tests/fixtures", relative);
	return path;
}

char *dg_test_read_file(const char *path, size_t *ret_length)
{
	FILE *f = fopen(path, "rb");
	char *data = NULL;
	size_t length = 0, room = 0;
	while (f) {
		if (length + 1 >= room) {
			room = room ? room * 2 : 65536;
			char *more = realloc(data, room);
			if (!more)
				break;
			data = more;
		}
		size_t n = fread(data + length, 1, room - length - 1, f);
		if (n == 0)
			break;
		length += n;
	}
	if (f)
		fclose(f);
	else
		CU_FAIL("a file cannot be read");
	if (!data)
		data = calloc(1, 1);
	if (data)
		data[length] = '\0';
	if (ret_length)
		*ret_length = length;
	return data;
}

long long dg_test_now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (long long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void dg_test_sleep_ms(unsigned ms)
{
	struct timespec ts = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000L };
	nanosleep(&ts, NULL);
}

static int required(const char *what)
{
	const char *list = getenv("DG_REQUIRE");
	size_t n = strlen(what);
	while (list && *list) {
		size_t word = strcspn(list, ",");
		if (word == n && strncmp(list, what, n) == 0)
			return 1;
		list += word + (list[word] == ',');
	}
	return 0;
}

void dg_test_skip(const char *what, const char *reason)
{
	if (required(what)) {
		printf("\n    required but missing: %s: %s\n", what, reason);
		CU_FAIL("required but missing");
		return;
	}
	skipped_cases++;
	printf("\n    skipped (%s): %s\n    ", what, reason);
}

void dg_test_without(const char *what, const char *reason)
{
	dg_test_skip(what, reason);
	skipped_cases -= !required(what);
}

int dg_test_run(const char *suite, const dg_test_case *cases, size_t count)
{
	const char *only = getenv("DG_TEST_ONLY");
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	CU_pSuite s = CU_add_suite(suite, NULL, NULL);
	unsigned added = 0;
	for (size_t i = 0; s && i < count; i++)
		if (!only || strstr(cases[i].name, only))
			added += CU_add_test(s, cases[i].name, cases[i].run) != NULL;
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	unsigned failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	if (failed || (added == 0 && !only))
		return 1;
	return added > 0 && skipped_cases == added ? 77 : 0;
}
