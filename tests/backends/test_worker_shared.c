/* One handle used by several threads, and by processes that fork() or die. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fakes/fake_worker.h"
#include "tests/test.h"

#define SLACK_MS 1500
#define IDLE_MS 60000
#define LONG_MS 30000

static const dg__measure_request launch = { .count = 1, .keys = { { .mode = DG_MODE_LAUNCH } } };

static dg_err measure(dg__worker *w, uint32_t timeout_ms, dg_error *reterr)
{
	dg_value value;
	return dg__worker_measure(w, 0, &launch, timeout_ms, NULL, &value, reterr);
}

/* Threads. */

enum { THREADS = 6, ROUNDS = 5 };

typedef struct user {
	dg__worker *worker;
	uint32_t timeout_ms;
	unsigned good;
	dg_err err;
	dg_error error;
	long long took_ms;
} user;

static void *use_often(void *data)
{
	user *u = data;
	dg_telemetry telemetry;
	for (unsigned i = 0; i < ROUNDS; i++) {
		u->good += measure(u->worker, LONG_MS, NULL) == DG_OK;
		u->good += dg__worker_telemetry(u->worker, 0, LONG_MS, &telemetry, NULL) == DG_OK;
		u->good += dg__worker_pid(u->worker) >= 0;
	}
	return NULL;
}

static void test_threads__calls_on_one_handle_take_turns(void)
{
	pthread_t threads[THREADS];
	user users[THREADS];
	dg__worker *w = dg_fake_worker_create("fake", "", IDLE_MS);
	for (unsigned i = 0; i < THREADS; i++) {
		users[i] = (user){ .worker = w };
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, use_often, &users[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		CU_ASSERT_EQUAL(users[i].good, 3 * ROUNDS);
	}
	dg__worker_destroy(w);
}

static void *use_once(void *data)
{
	user *u = data;
	long long start = dg_test_now_ms();
	u->err = measure(u->worker, u->timeout_ms, &u->error);
	u->took_ms = dg_test_now_ms() - start;
	return NULL;
}

static void test_threads__a_call_that_waits_keeps_its_deadline_and_harms_nobody(void)
{
	pthread_t threads[2];
	dg__worker *w = dg_fake_worker_create("fake", "do=wait@launch", IDLE_MS);
	user first = { .worker = w, .timeout_ms = 2500 },
	     second = { .worker = w, .timeout_ms = 300 };
	CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[0], NULL, use_once, &first), 0);
	dg_test_sleep_ms(500);
	int64_t pid = dg__worker_pid(w);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[1], NULL, use_once, &second), 0);
	pthread_join(threads[1], NULL);
	CU_ASSERT_EQUAL(second.err, DG_ETIMEOUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(second.error.text, "earlier calls"));
	CU_ASSERT(second.took_ms < 300 + 500 + SLACK_MS);
	CU_ASSERT_EQUAL(dg__worker_pid(w), pid);
	pthread_join(threads[0], NULL);
	CU_ASSERT_EQUAL(first.err, DG_ETIMEOUT);
	CU_ASSERT_NOT_EQUAL(first.took_ms, 0);
	CU_ASSERT_EQUAL(dg__worker_pid(w), pid);
	dg__worker_destroy(w);
}

static void test_threads__cancel_ends_the_running_call_and_the_next_gets_its_turn(void)
{
	pthread_t thread, waiting;
	char *folder = dg_test_temp_dir();
	char path[600], script[620];
	snprintf(path, sizeof(path), "%s/script", folder);
	snprintf(script, sizeof(script), "@%s", path);
	FILE *f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs("do=wait@launch", f);
	fclose(f);
	dg__worker *w = dg_fake_worker_create("fake", script, IDLE_MS);
	user first = { .worker = w, .timeout_ms = LONG_MS };
	user second = { .worker = w, .timeout_ms = LONG_MS };
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, use_once, &first), 0);
	dg_test_sleep_ms(300);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&waiting, NULL, use_once, &second), 0);
	dg_test_sleep_ms(100);
	f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fclose(f);
	dg__worker_cancel(w);
	pthread_join(thread, NULL);
	pthread_join(waiting, NULL);
	CU_ASSERT_EQUAL(first.err, DG_ECANCELLED);
	CU_ASSERT_EQUAL(second.err, DG_OK);
	dg__worker_destroy(w);
	free(folder);
}

static void *cancel_often(void *data)
{
	for (unsigned i = 0; i < 60; i++) {
		dg__worker_cancel(data);
		dg_test_sleep_ms(3);
	}
	return NULL;
}

static void test_threads__cancel_at_any_moment_is_harmless(void)
{
	pthread_t threads[2];
	dg__worker *w = dg_fake_worker_create("fake", "", IDLE_MS);
	for (unsigned i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, cancel_often, w), 0);
	for (unsigned i = 0; i < 20; i++) {
		dg_err err = measure(w, LONG_MS, NULL);
		CU_ASSERT(err == DG_OK || err == DG_ECANCELLED);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_EQUAL(measure(w, LONG_MS, NULL), DG_OK);
	dg__worker_destroy(w);
}

/* Neither the call under way, nor one that waits, nor a later one. */
static void test_threads__stop_ends_every_call_for_good(void)
{
	enum { WAITING = 3 };
	pthread_t threads[WAITING];
	user users[WAITING];
	dg__worker *w = dg_fake_worker_create("fake", "do=hang@launch", IDLE_MS);
	for (unsigned i = 0; i < WAITING; i++) {
		users[i] = (user){ .worker = w, .timeout_ms = LONG_MS };
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, use_once, &users[i]), 0);
	}
	dg_test_sleep_ms(300);
	int64_t pid = dg__worker_pid(w);
	long long start = dg_test_now_ms();
	dg__worker_stop(w);
	for (unsigned i = 0; i < WAITING; i++) {
		pthread_join(threads[i], NULL);
		CU_ASSERT_EQUAL(users[i].err, DG_ECANCELLED);
	}
	CU_ASSERT(dg_test_now_ms() - start < 200 + SLACK_MS);
	CU_ASSERT(pid > 0 && dg_process_ends(pid, SLACK_MS));
	dg_fake_worker_script("");
	CU_ASSERT_EQUAL(measure(w, LONG_MS, NULL), DG_ECANCELLED);
	CU_ASSERT_EQUAL(dg__worker_pid(w), 0);
	dg__worker_destroy(w);
}

static void test_threads__stop_before_the_first_call_starts_no_process(void)
{
	dg__worker *w = dg_fake_worker_create("fake", "do=hang@enumerate", IDLE_MS);
	dg__worker_stop(w);
	long long start = dg_test_now_ms();
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, NULL), DG_ECANCELLED);
	CU_ASSERT(dg_test_now_ms() - start < SLACK_MS);
	CU_ASSERT_EQUAL(dg__worker_pid(w), 0);
	dg__worker_destroy(w);
}

/* Forks. */

/* What the child of fork() sees, as its exit status. */
static int use_in_child(dg__worker *w, int64_t parents)
{
	if (dg__worker_pid(w) != 0)
		return 10;
	if (measure(w, LONG_MS, NULL) != DG_OK)
		return 11;
	int64_t own = dg__worker_pid(w);
	if (own <= 0 || own == parents)
		return 12;
	dg__worker_destroy(w);
	if (dg_process_runs(own))
		return 13;
	return dg_process_runs(parents) ? 0 : 14;
}

static void assert_child_ends_well(pid_t pid)
{
	int status = -1;
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_TRUE(WIFEXITED(status));
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
}

static void test_fork__the_child_gets_a_worker_of_its_own(void)
{
	dg__worker *w = dg_fake_worker_create("fake", "", IDLE_MS);
	CU_ASSERT_EQUAL_FATAL(measure(w, LONG_MS, NULL), DG_OK);
	int64_t pid = dg__worker_pid(w);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(use_in_child(w, pid));
	assert_child_ends_well(child);
	CU_ASSERT_EQUAL(measure(w, LONG_MS, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg__worker_pid(w), pid);
	dg__worker_destroy(w);
}

#if defined(__SANITIZE_THREAD__)
#define FORK_WITH_THREADS 0 /* the sanitizer does not follow a fork() of a program with threads */
#else
#define FORK_WITH_THREADS 1
#endif

static void test_fork__works_in_the_middle_of_a_call(void)
{
	if (!FORK_WITH_THREADS) {
		dg_test_skip("fork with threads", "the sanitizer cannot follow it");
		return;
	}
	pthread_t thread;
	dg__worker *w = dg_fake_worker_create("fake", "launch_ms=40", IDLE_MS);
	user first = { .worker = w, .timeout_ms = LONG_MS };
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, use_once, &first), 0);
	dg_test_sleep_ms(200);
	int64_t pid = dg__worker_pid(w);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		dg_fake_worker_script("");
		_exit(use_in_child(w, pid));
	}
	assert_child_ends_well(child);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(first.err, DG_OK);
	dg__worker_destroy(w);
}

/* Orphans. */

typedef struct family {
	pid_t parent; /* ours to kill */
	int64_t worker;
} family;

/* A process with a worker in the middle of a call that never ends; copies: also with a child that
 * keeps a copy of the worker's socket. */
static void be_parent(int out, const char *script, bool copies)
{
	dg__worker *w = dg_fake_worker_create("fake", script, IDLE_MS);
	pthread_t thread;
	user u = { .worker = w, .timeout_ms = LONG_MS };
	if (pthread_create(&thread, NULL, use_once, &u) != 0)
		_exit(1);
	while (dg__worker_pid(w) == 0)
		dg_test_sleep_ms(1);
	dg_test_sleep_ms(200);
	int64_t pid = dg__worker_pid(w);
	if (copies && fork() == 0) {
		close(out);
		dg_test_sleep_ms(5000);
		_exit(0);
	}
	if (write(out, &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
		_exit(1);
	for (;;)
		pause();
}

static family start_family(const char *script, bool copies)
{
	int pipes[2];
	family f = { .parent = -1 };
	CU_ASSERT_EQUAL_FATAL(pipe(pipes), 0);
	fflush(stdout);
	f.parent = fork();
	if (f.parent == 0) {
		close(pipes[0]);
		be_parent(pipes[1], script, copies);
	}
	close(pipes[1]);
	CU_ASSERT_EQUAL_FATAL(read(pipes[0], &f.worker, sizeof(f.worker)), sizeof(f.worker));
	close(pipes[0]);
	CU_ASSERT_TRUE(dg_process_runs(f.worker));
	return f;
}

static void assert_no_orphan(const char *script, bool copies)
{
	family f = start_family(script, copies);
	kill(f.parent, SIGKILL);
	waitpid(f.parent, NULL, 0);
	/* A sanitizer takes a second of its own to end. */
	CU_ASSERT_TRUE(dg_process_ends(f.worker, 1000 + SANITIZED * SLACK_MS));
	if (dg_process_runs(f.worker))
		kill((pid_t)f.worker, SIGKILL);
}

static void test_orphan__a_killed_parent_takes_its_worker_along(void)
{
	assert_no_orphan("launch_ms=10", false);
	assert_no_orphan("do=wait@launch", false);
}

static void test_orphan__also_one_whose_driver_hangs(void)
{
	assert_no_orphan("do=hang@open", false);
	assert_no_orphan("do=hang@launch;ignore_term=1", false);
	assert_no_orphan("do=spin@launch", false);
}

static void test_orphan__also_where_a_copy_of_the_socket_is_left(void)
{
	if (!FORK_WITH_THREADS) {
		dg_test_skip("fork with threads", "the sanitizer cannot follow it");
		return;
	}
	assert_no_orphan("do=hang@launch", true);
}

static const dg_test_case cases[] = {
	DG_TEST(test_threads__calls_on_one_handle_take_turns),
	DG_TEST(test_threads__a_call_that_waits_keeps_its_deadline_and_harms_nobody),
	DG_TEST(test_threads__cancel_ends_the_running_call_and_the_next_gets_its_turn),
	DG_TEST(test_threads__cancel_at_any_moment_is_harmless),
	DG_TEST(test_threads__stop_ends_every_call_for_good),
	DG_TEST(test_threads__stop_before_the_first_call_starts_no_process),
	DG_TEST(test_fork__the_child_gets_a_worker_of_its_own),
	DG_TEST(test_fork__works_in_the_middle_of_a_call),
	DG_TEST(test_orphan__a_killed_parent_takes_its_worker_along),
	DG_TEST(test_orphan__also_one_whose_driver_hangs),
	DG_TEST(test_orphan__also_where_a_copy_of_the_socket_is_left),
};

DG_TEST_MAIN("worker, shared", cases)
