/* See fake_worker.h. */
#include "tests/fakes/fake_worker.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/test.h"

/*
 * Sanitizer reports of the workers. Nobody sees what a worker prints, and one that dies of a report
 * after its answer is replaced without a word: hence files, and a look at them at the end.
 */

static char reports[512];

static bool print_report(const char *name)
{
	char path[800], line[512];
	snprintf(path, sizeof(path), "%s/%s", reports, name);
	FILE *f = *name == '.' ? NULL : fopen(path, "r");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		fputs(line, stdout);
	fclose(f);
	return true;
}

static void fail_by_reports(void)
{
	bool any = false;
	DIR *d = opendir(reports);
	for (struct dirent *e; d && (e = readdir(d));)
		any |= print_report(e->d_name);
	if (d)
		closedir(d);
	fflush(stdout);
	if (any)
		_exit(1);
}

static void add_log_path(const char *variable)
{
	char options[1200];
	const char *given = getenv(variable);
	snprintf(options, sizeof(options), "%s:log_path=%s/report", given ? given : "", reports);
	setenv(variable, options, 1);
}

static void watch_reports(void)
{
	if (!SANITIZED || *reports)
		return;
	char *folder = dg_test_temp_dir();
	snprintf(reports, sizeof(reports), "%s", folder);
	free(folder);
	add_log_path("ASAN_OPTIONS");
	add_log_path("TSAN_OPTIONS");
	add_log_path("UBSAN_OPTIONS");
	/* After the folder's own, so that it runs before the folder is removed. */
	atexit(fail_by_reports);
}

static const char *built(char *path, size_t size, const char *below)
{
	const char *build = getenv("DG_BUILD");
	watch_reports();
	snprintf(path, size, "%s/%s", build && *build ? build : "build/release", below);
	return path;
}

const char *dg_fake_worker_path(void)
{
	static char path[1024];
	return built(path, sizeof(path), "tests/fakes/main_fake_worker");
}

const char *dg_real_worker_path(void)
{
	static char path[1024];
	return built(path, sizeof(path), "libexec/devgate/devgate-worker");
}

void dg_fake_worker_script(const char *script)
{
	setenv("DG_FAKE", script, 1);
}

dg__worker *dg_fake_worker_create(const char *backend, const char *script, uint32_t idle_ms)
{
	const dg__worker_options options = {
		.backend = backend, .path = dg_fake_worker_path(), .idle_ms = idle_ms
	};
	dg__worker *worker = NULL;
	dg_fake_worker_script(script);
	setenv("DG_ENGINE_QUICK", "1", 1);
	CU_ASSERT_EQUAL_FATAL(dg__worker_create(&options, &worker, NULL), DG_OK);
	return worker;
}

static char script_path[512];

void dg_fake_worker_change(const char *script)
{
	char next[600];
	if (!*script_path) {
		char *folder = dg_test_temp_dir();
		snprintf(script_path, sizeof(script_path), "%s/script", folder);
		free(folder);
	}
	snprintf(next, sizeof(next), "%s.new", script_path);
	FILE *f = fopen(next, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(script, f);
	fclose(f);
	CU_ASSERT_EQUAL_FATAL(rename(next, script_path), 0);
}

dg__worker *dg_fake_worker_create_changing(const char *script, uint32_t idle_ms)
{
	char word[520];
	dg_fake_worker_change(script);
	snprintf(word, sizeof(word), "@%s", script_path);
	return dg_fake_worker_create("fake", word, idle_ms);
}

const char *dg_fake_worker_log(void)
{
	static char path[600];
	if (!*script_path)
		dg_fake_worker_change("");
	snprintf(path, sizeof(path), "%s.log", script_path);
	remove(path);
	return path;
}

dg_err dg_worker_detect(
	dg__worker *worker, uint32_t timeout_ms, size_t *ret_count, dg_error *reterr)
{
	dg__device_list list = { .count = 0 };
	dg_err err = dg__worker_detect(worker, timeout_ms, &list, reterr);
	if (ret_count)
		*ret_count = list.count;
	dg__device_list_finish(&list);
	return err;
}

dg__measure_request dg_worker_request(const char *keys)
{
	dg__measure_request request = { .count = 0 };
	char key[DG_KEY_TEXT_MAX];
	for (size_t length; (length = strcspn(keys, " ")) > 0;
		keys += length + (keys[length] == ' ')) {
		snprintf(key, sizeof(key), "%.*s", (int)length, keys);
		CU_ASSERT_EQUAL_FATAL(
			dg_key_parse(key, &request.keys[request.count++], NULL), DG_OK);
	}
	return request;
}

dg_err dg_worker_measure(dg__worker *worker, const char *keys, uint32_t timeout_ms,
	dg_value *values, dg_error *reterr)
{
	dg__measure_request request = dg_worker_request(keys);
	return dg__worker_measure(worker, 0, &request, timeout_ms, NULL, values, reterr);
}

void dg_worker_assert_works(dg__worker *worker)
{
	dg_value value;
	dg_error error = { .code = DG_OK };
	dg_err err = dg_worker_measure(worker, "launch", 30000, &value, &error);
	CU_ASSERT_EQUAL(err, DG_OK);
	if (err != DG_OK)
		printf("\n    %s\n    ", error.text);
	else
		CU_ASSERT_EQUAL(value.status, DG_STATUS_OK);
}

void dg_worker_signal(const dg__worker *worker, int sig)
{
	int64_t pid = dg__worker_pid(worker);
	CU_ASSERT(pid > 1);
	/* Never to process 0, which would be our whole group. */
	if (pid > 1)
		kill((pid_t)pid, sig);
}

/* Its first thread may be a zombie while others still end. */
static bool is_dead(const char *stat)
{
	const char *at = strrchr(stat, ')');
	if (!at || strlen(at) < 3 || (at[2] != 'Z' && at[2] != 'X'))
		return !at;
	for (unsigned field = 2; at && field < 20; field++)
		at = strchr(at + 1, ' ');
	return !at || strtol(at, NULL, 10) <= 1;
}

bool dg_process_runs(int64_t pid)
{
	char path[64], line[512] = "";
	if (pid <= 0 || kill((pid_t)pid, 0) != 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
	FILE *f = fopen(path, "r");
	if (!f) /* ended just now, or no such file system: kill() has said so */
		return access("/proc/self/stat", R_OK) != 0;
	char *read = fgets(line, sizeof(line), f);
	fclose(f);
	return read && !is_dead(line);
}

bool dg_process_ends(int64_t pid, unsigned ms)
{
	long long until = dg_test_now_ms() + ms;
	while (dg_process_runs(pid)) {
		if (dg_test_now_ms() > until)
			return false;
		dg_test_sleep_ms(5);
	}
	return true;
}

unsigned dg_fake_worker_calls(const char *log, const char *slot)
{
	char line[128];
	unsigned count = 0;
	size_t length = strlen(slot);
	FILE *f = fopen(log, "r");
	while (f && fgets(line, sizeof(line), f)) {
		size_t n = strcspn(line, "\n");
		count += n > length && line[n - length - 1] == ' ' &&
			 !strncmp(line + n - length, slot, length);
	}
	if (f)
		fclose(f);
	return count;
}
