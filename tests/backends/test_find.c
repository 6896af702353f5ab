/* Where the worker's executable is looked for. */
#include "backends/worker/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

#define PRINT "DG_TEST_PRINT_WORKER" /* makes this program say what it finds */

static const char *own_path;

static void copy_file(const char *from, const char *to)
{
	char data[65536];
	size_t n;
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
	CU_ASSERT_PTR_NOT_NULL_FATAL(in);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	while ((n = fread(data, 1, sizeof(data), in)) > 0)
		CU_ASSERT_EQUAL(fwrite(data, 1, n, out), n);
	fclose(in);
	CU_ASSERT_EQUAL(fclose(out), 0);
	CU_ASSERT_EQUAL(chmod(to, 0755), 0);
}

static void make_dirs(const char *root)
{
	static const char *const names[] = { "bin", "libexec", "libexec/devgate", "elsewhere" };
	char path[600];
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%.500s/%s", root, names[i]);
		CU_ASSERT_EQUAL(mkdir(path, 0755), 0);
	}
}

static void run(const char *command, char *line, size_t size)
{
	FILE *p = popen(command, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	line[0] = '\0';
	if (fgets(line, (int)size, p))
		line[strcspn(line, "\n")] = '\0';
	pclose(p);
}

/* Installed below a prefix of its own, started by its name or through a link. */
static void test_find__beside_the_program_that_holds_the_code(void)
{
	char *root = dg_test_temp_dir();
	char program[600], worker[600], link[600], line[1024], command[2000];
	char *real = realpath(root, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(real);
	make_dirs(real);
	snprintf(program, sizeof(program), "%.500s/bin/program", real);
	snprintf(worker, sizeof(worker), "%.500s/libexec/devgate/devgate-worker", real);
	snprintf(link, sizeof(link), "%.500s/elsewhere/link", real);
	copy_file(own_path, program);
	CU_ASSERT_EQUAL(symlink(program, link), 0);
	snprintf(command, sizeof(command), "env -u DEVGATE_WORKER " PRINT "=1 %s", program);
	run(command, line, sizeof(line));
	CU_ASSERT_PTR_NOT_NULL(strstr(line, worker));
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "worker_died: "));
	copy_file("/bin/sh", worker);
	run(command, line, sizeof(line));
	CU_ASSERT_STRING_EQUAL(line, worker);
	snprintf(command, sizeof(command), "cd / && env -u DEVGATE_WORKER " PRINT "=1 %s", link);
	run(command, line, sizeof(line));
	CU_ASSERT_STRING_EQUAL(line, worker);
	snprintf(command, sizeof(command),
		"cd %.500s/bin && env -u DEVGATE_WORKER " PRINT "=1 ./program", real);
	run(command, line, sizeof(line));
	CU_ASSERT_STRING_EQUAL(line, worker);
	free(real);
	free(root);
}

static void test_find__the_variable_wins(void)
{
	char path[256];
	setenv("DEVGATE_WORKER", "/bin/sh", 1);
	CU_ASSERT_EQUAL(dg__worker_find(path, sizeof(path), NULL), DG_OK);
	CU_ASSERT_STRING_EQUAL(path, "/bin/sh");
	unsetenv("DEVGATE_WORKER");
}

static void assert_bad_variable(const char *value)
{
	char path[256] = "untouched";
	dg_error error = { .code = DG_OK };
	setenv("DEVGATE_WORKER", value, 1);
	CU_ASSERT_EQUAL(dg__worker_find(path, sizeof(path), &error), DG_EWORKER);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, value));
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "DEVGATE_WORKER"));
	CU_ASSERT_STRING_EQUAL(path, "untouched");
	unsetenv("DEVGATE_WORKER");
}

static void test_find__a_variable_that_names_no_program_is_told(void)
{
	assert_bad_variable("/nonexistent/worker");
	assert_bad_variable("/etc/passwd");
	assert_bad_variable("/tmp");
}

static void test_find__a_path_that_does_not_fit_is_an_error(void)
{
	char path[4] = "abc";
	setenv("DEVGATE_WORKER", "/bin/sh", 1);
	CU_ASSERT_EQUAL(dg__worker_find(path, sizeof(path), NULL), DG_EWORKER);
	CU_ASSERT_STRING_EQUAL(path, "abc");
	unsetenv("DEVGATE_WORKER");
}

static void test_create__without_a_path_looks_for_it(void)
{
	const dg__worker_options options = { .backend = "cpu" };
	dg__worker *w = NULL;
	setenv("DEVGATE_WORKER", "/nonexistent/worker", 1);
	CU_ASSERT_EQUAL(dg__worker_create(&options, &w, NULL), DG_EWORKER);
	CU_ASSERT_PTR_NULL(w);
	setenv("DEVGATE_WORKER", "/bin/sh", 1);
	CU_ASSERT_EQUAL(dg__worker_create(&options, &w, NULL), DG_OK);
	dg__worker_destroy(w);
	unsetenv("DEVGATE_WORKER");
}

static const dg_test_case cases[] = {
	DG_TEST(test_find__beside_the_program_that_holds_the_code),
	DG_TEST(test_find__the_variable_wins),
	DG_TEST(test_find__a_variable_that_names_no_program_is_told),
	DG_TEST(test_find__a_path_that_does_not_fit_is_an_error),
	DG_TEST(test_create__without_a_path_looks_for_it),
};

int main(int argc, char **argv)
{
	char path[1024];
	dg_error error = { .code = DG_OK };
	(void)argc;
	own_path = argv[0];
	if (!getenv(PRINT))
		return dg_test_run("find", cases, sizeof(cases) / sizeof(cases[0]));
	if (dg__worker_find(path, sizeof(path), &error) == DG_OK)
		puts(path);
	else
		printf("%s: %s\n", dg_err_code(error.code), error.text);
	return 0;
}
