/* Starting worker processes: what they inherit, how they are reaped, what is left behind. */
#include "backends/worker/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fakes/fake_worker.h"
#include "tests/test.h"

#define IDLE_MS 60000
#define LONG_MS 30000

/* A file of /proc about a process; "" where the system has none. Owned. */
static char *proc_file(int64_t pid, const char *name)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%lld/%s", (long long)pid, name);
	char *text = calloc(1, 8192);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	FILE *f = fopen(path, "r");
	if (f) {
		text[fread(text, 1, 8191, f)] = '\0';
		fclose(f);
	}
	return text;
}

static bool no_proc(void)
{
	if (access("/proc/self/status", R_OK) == 0)
		return false;
	dg_test_skip("/proc", "this system does not show its processes there");
	return true;
}

static dg__worker *start(const char *script)
{
	dg__worker *w = dg_fake_worker_create("fake", script, IDLE_MS);
	CU_ASSERT_EQUAL_FATAL(dg_worker_detect(w, LONG_MS, NULL, NULL), DG_OK);
	CU_ASSERT(dg__worker_pid(w) > 1);
	return w;
}

/* How many descriptors are open, and whether one is neither a socket nor the null device. */
static unsigned count_files(int64_t pid, bool *ret_foreign)
{
	char path[64], link[96], target[256];
	unsigned count = 0;
	snprintf(path, sizeof(path), "/proc/%lld/fd", (long long)pid);
	DIR *d = opendir(path);
	if (ret_foreign)
		*ret_foreign = false;
	for (struct dirent *e; d && (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		count++;
		snprintf(link, sizeof(link), "%s/%.10s", path, e->d_name);
		ssize_t n = readlink(link, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		if (ret_foreign && n > 0)
			*ret_foreign |= strcmp(target, "/dev/null") != 0 &&
					strncmp(target, "socket:", 7) != 0;
	}
	if (d)
		closedir(d);
	return count;
}

static void test_child__has_no_descriptor_but_its_socket(void)
{
	if (no_proc())
		return;
	int files[40];
	bool foreign = true;
	for (unsigned i = 0; i < 40; i++)
		files[i] = open("/etc/passwd", O_RDONLY);
	CU_ASSERT(dup2(files[0], 700) == 700);
	dg__worker *w = start("");
	/* Three streams, and a socket for each direction. */
	CU_ASSERT_EQUAL(count_files(dg__worker_pid(w), &foreign), 5);
	CU_ASSERT_FALSE(foreign);
	dg__worker_destroy(w);
	for (unsigned i = 0; i < 40; i++)
		close(files[i]);
	close(700);
}

static void test_child__keeps_standard_error_when_asked_to(void)
{
	if (no_proc())
		return;
	char path[64], theirs[256] = "", ours[256] = "";
	setenv("DEVGATE_WORKER_STDERR", "1", 1);
	dg__worker *w = start("");
	snprintf(path, sizeof(path), "/proc/%lld/fd/2", (long long)dg__worker_pid(w));
	CU_ASSERT(readlink(path, theirs, sizeof(theirs) - 1) > 0);
	CU_ASSERT(readlink("/proc/self/fd/2", ours, sizeof(ours) - 1) > 0);
	CU_ASSERT_STRING_EQUAL(theirs, ours);
	unsetenv("DEVGATE_WORKER_STDERR");
	dg__worker_destroy(w);
}

static unsigned long long mask_of(const char *status, const char *name)
{
	const char *line = strstr(status, name);
	return line ? strtoull(line + strlen(name), NULL, 16) : ~0ull;
}

static void test_child__takes_every_signal_whatever_its_parent_does(void)
{
	if (no_proc())
		return;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	void (*pipe_before)(int) = signal(SIGPIPE, SIG_IGN);
	void (*term_before)(int) = signal(SIGTERM, SIG_IGN);
	dg__worker *w = start("");
	char *status = proc_file(dg__worker_pid(w), "status");
	CU_ASSERT_EQUAL(mask_of(status, "SigBlk:"), 0);
	/* 32 and 33 are the C library's own. */
	CU_ASSERT_EQUAL(mask_of(status, "SigIgn:") & ~(3ull << 31), 0);
	free(status);
	dg__worker_destroy(w);
	signal(SIGPIPE, pipe_before);
	signal(SIGTERM, term_before);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void test_child__leaves_no_core_and_gains_no_privileges(void)
{
	dg__worker *w = start("");
	pid_t pid = (pid_t)dg__worker_pid(w);
	CU_ASSERT_EQUAL(getpgid(pid), pid);
	if (!no_proc()) {
		char *limits = proc_file(pid, "limits"), *status = proc_file(pid, "status");
		char *oom = proc_file(pid, "oom_score_adj");
		const char *core = strstr(limits, "Max core file size");
		char *hard = NULL;
		CU_ASSERT_PTR_NOT_NULL(core);
		if (core) {
			CU_ASSERT_EQUAL(strtoul(core + strlen("Max core file size"), &hard, 10), 0);
			CU_ASSERT_EQUAL(strtoul(hard, NULL, 10), 0);
		}
		CU_ASSERT_PTR_NOT_NULL(strstr(status, "NoNewPrivs:\t1"));
		CU_ASSERT(strtol(oom, NULL, 10) >= 500);
		free(limits);
		free(status);
		free(oom);
	}
	dg__worker_destroy(w);
}

/* A daemon may have closed its standard streams. */
static void test_start__works_without_the_standard_streams(void)
{
	dg__worker *w = dg_fake_worker_create("fake", "", IDLE_MS);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		dg_value value;
		for (int i = 0; i < 8; i++)
			close(i);
		_exit(dg_worker_measure(w, "launch", LONG_MS, &value, NULL) == DG_OK ? 0 : 1);
	}
	int status = -1;
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	dg__worker_destroy(w);
}

static void assert_cannot_start(const char *path, int native_code)
{
	const dg__worker_options options = { .backend = "fake", .path = path };
	dg__worker *w = NULL;
	dg_error error = { .code = DG_OK };
	CU_ASSERT_EQUAL_FATAL(dg__worker_create(&options, &w, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, &error), DG_EWORKER);
	CU_ASSERT_EQUAL(error.native_code, native_code);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, path));
	CU_ASSERT_EQUAL(dg__worker_pid(w), 0);
	dg__worker_destroy(w);
}

static void test_start__says_what_cannot_be_started(void)
{
	assert_cannot_start("/nonexistent/devgate-worker", ENOENT);
	assert_cannot_start("/etc/passwd", EACCES);
	assert_cannot_start("/", EACCES);
}

static void test_create__checks_its_options(void)
{
	static const char *const names[] = { "", "CPU", "a-b", "../x", "abcdefghijklmnop", NULL };
	dg__worker *w = NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const dg__worker_options options = { .backend = names[i], .path = "/bin/true" };
		CU_ASSERT_EQUAL(dg__worker_create(&options, &w, NULL), DG_EINVALID);
	}
	char path[2000];
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	const dg__worker_options options = { .backend = "cpu", .path = path };
	CU_ASSERT_EQUAL(dg__worker_create(&options, &w, NULL), DG_EINVALID);
	CU_ASSERT_PTR_NULL(w);
	dg__worker_destroy(NULL);
}

/* Reaping. */

static pid_t fork_child(int sig, int status)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		if (sig)
			raise(sig);
		_exit(status);
	}
	return pid;
}

static void test_describe__tells_signals_from_statuses(void)
{
	char text[48];
	int status = 0;
	CU_ASSERT_TRUE(dg__spawn_reap(fork_child(0, 3), 5000, &status));
	CU_ASSERT_EQUAL(dg__spawn_describe(status, text, sizeof(text)), 3);
	CU_ASSERT_STRING_EQUAL(text, "exited with status 3");
	CU_ASSERT_TRUE(dg__spawn_reap(fork_child(SIGKILL, 0), 5000, &status));
	CU_ASSERT_EQUAL(dg__spawn_describe(status, text, sizeof(text)), SIGKILL);
	CU_ASSERT_STRING_EQUAL(text, "was killed by signal 9");
}

static void test_reap__waits_no_longer_than_told(void)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	int status = 77;
	long long start = dg_test_now_ms();
	CU_ASSERT_FALSE(dg__spawn_reap(pid, 100, &status));
	long long took = dg_test_now_ms() - start;
	CU_ASSERT(took >= 99 && took < 2000);
	CU_ASSERT_EQUAL(status, 77);
	kill(pid, SIGKILL);
	CU_ASSERT_TRUE(dg__spawn_reap(pid, 5000, &status));
	/* Nobody's child any more. */
	CU_ASSERT_TRUE(dg__spawn_reap(pid, 5000, &status));
	CU_ASSERT_EQUAL(status, DG__STATUS_UNKNOWN);
}

static void test_leave__a_later_start_reaps_what_was_left(void)
{
	dg__spawn_leave(fork_child(0, 0));
	dg_test_sleep_ms(100);
	dg__worker_destroy(start(""));
	CU_ASSERT_EQUAL(waitpid(-1, NULL, WNOHANG), -1);
	CU_ASSERT_EQUAL(errno, ECHILD);
}

static void test_reap__children_of_others_are_left_alone(void)
{
	pid_t stranger = fork_child(0, 5);
	int status = 0;
	dg_test_sleep_ms(100);
	for (unsigned i = 0; i < 3; i++)
		dg__worker_destroy(start(""));
	CU_ASSERT_EQUAL(waitpid(stranger, &status, 0), stranger);
	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

/* Then the system reaps them, and says nothing about how they ended. */
static void test_reap__a_program_that_ignores_its_children_gets_answers_too(void)
{
	void (*before)(int) = signal(SIGCHLD, SIG_IGN);
	dg_error error = { .code = DG_OK };
	dg__worker *w = dg_fake_worker_create_changing("", IDLE_MS);
	dg_worker_assert_works(w);
	dg_fake_worker_change("do=segv@enumerate");
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, &error), DG_EWORKER);
	dg_fake_worker_change("");
	dg_worker_assert_works(w);
	int64_t pid = dg__worker_pid(w);
	dg__worker_destroy(w);
	CU_ASSERT_FALSE(dg_process_runs(pid));
	signal(SIGCHLD, before);
}

static void test_cycles__a_thousand_starts_leave_nothing_behind(void)
{
	const unsigned cycles = SANITIZED ? 200 : 1000;
	dg__worker *w = start("");
	unsigned before = count_files(getpid(), NULL);
	for (unsigned i = 0; i < cycles; i++) {
		if (i % 2) {
			CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, NULL), DG_OK);
		} else {
			dg__worker_destroy(w);
			w = start("");
		}
	}
	CU_ASSERT_EQUAL(count_files(getpid(), NULL), before);
	dg__worker_destroy(w);
	CU_ASSERT_EQUAL(waitpid(-1, NULL, WNOHANG), -1);
	CU_ASSERT_EQUAL(errno, ECHILD);
}

static const dg_test_case cases[] = {
	DG_TEST(test_child__has_no_descriptor_but_its_socket),
	DG_TEST(test_child__keeps_standard_error_when_asked_to),
	DG_TEST(test_child__takes_every_signal_whatever_its_parent_does),
	DG_TEST(test_child__leaves_no_core_and_gains_no_privileges),
	DG_TEST(test_start__works_without_the_standard_streams),
	DG_TEST(test_start__says_what_cannot_be_started),
	DG_TEST(test_create__checks_its_options),
	DG_TEST(test_describe__tells_signals_from_statuses),
	DG_TEST(test_reap__waits_no_longer_than_told),
	DG_TEST(test_leave__a_later_start_reaps_what_was_left),
	DG_TEST(test_reap__children_of_others_are_left_alone),
	DG_TEST(test_reap__a_program_that_ignores_its_children_gets_answers_too),
	DG_TEST(test_cycles__a_thousand_starts_leave_nothing_behind),
};

DG_TEST_MAIN("spawn", cases)
