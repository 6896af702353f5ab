/*
 * A worker, whatever its process does: each call ends in time with the right error, and the next
 * one works. The processes are real ones; what goes wrong in them is scripted.
 */
#include "backends/worker/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#include "tests/fakes/fake_worker.h"
#include "tests/test.h"

#define SLACK_MS 1500 /* of a machine that is busy with other tests */
#define IDLE_MS 60000
#define LONG_MS 20000

static bool within(long long start_ms, long long ms)
{
	return dg_test_now_ms() - start_ms < ms + SLACK_MS;
}

/* Detection. */

static dg__worker *create_changing(const char *script)
{
	return dg_fake_worker_create_changing(script, IDLE_MS);
}

static void test_detect__the_real_worker_lists_the_cpu(void)
{
	const dg__worker_options options = {
		.backend = "cpu", .path = dg_real_worker_path(), .idle_ms = IDLE_MS
	};
	dg__worker *w = NULL;
	dg__device_list list = { .count = 0 };
	CU_ASSERT_EQUAL_FATAL(dg__worker_create(&options, &w, NULL), DG_OK);
	CU_ASSERT_EQUAL_FATAL(dg__worker_detect(w, LONG_MS, &list, NULL), DG_OK);
	CU_ASSERT_EQUAL_FATAL(list.count, 1);
	CU_ASSERT_EQUAL(list.entries[0].info.device.variant, DG_CPU);
	CU_ASSERT_STRING_EQUAL(list.entries[0].info.backend, "cpu");
	dg__device_list_finish(&list);
	dg__worker_destroy(w);
}

static void test_detect__devices_come_in_the_drivers_order(void)
{
	dg__worker *w = dg_fake_worker_create("vulkan", "gpus=C,a,B", IDLE_MS);
	dg__device_list list = { .count = 0 };
	CU_ASSERT_EQUAL_FATAL(dg__worker_detect(w, LONG_MS, &list, NULL), DG_OK);
	CU_ASSERT_EQUAL_FATAL(list.count, 3);
	CU_ASSERT_STRING_EQUAL(list.entries[0].info.name, "Fake C");
	CU_ASSERT_TRUE(list.entries[1].info.software);
	CU_ASSERT_EQUAL(list.entries[1].info.device.kind, DG_KIND_CPU);
	CU_ASSERT_STRING_EQUAL(list.entries[2].info.pci, "0000:42:00.0");
	CU_ASSERT_EQUAL(list.entries[2].info.device.variant, DG_VULKAN);
	CU_ASSERT_EQUAL(list.entries[2].info.device.index, 1);
	dg__device_list_finish(&list);
	dg__worker_destroy(w);
}

static void assert_first_device(const char *backend, const char *name, const char *device)
{
	dg__worker *w = NULL;
	dg__device_list list = { .count = 0 };
	char text[DG_DEVICE_TEXT_MAX] = "";
	const dg__worker_options options = { .backend = backend, .path = dg_fake_worker_path() };
	CU_ASSERT_EQUAL_FATAL(dg__worker_create(&options, &w, NULL), DG_OK);
	CU_ASSERT_EQUAL_FATAL(dg__worker_detect(w, LONG_MS, &list, NULL), DG_OK);
	CU_ASSERT_EQUAL_FATAL(list.count, 1);
	CU_ASSERT_STRING_EQUAL(list.entries[0].info.name, name);
	dg_device_format(list.entries[0].info.device, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, device);
	dg__device_list_finish(&list);
	dg__worker_destroy(w);
}

static void test_detect__each_backend_has_its_own_devices(void)
{
	dg_fake_worker_script("[cuda];gpus=B;[vulkan];gpus=C;kind=integrated;[];driver=all 1.0");
	assert_first_device("cuda", "Fake B", "cuda:0");
	assert_first_device("vulkan", "Fake C", "vulkan:integrated:0");
	assert_first_device("cpu", "Fake A", "cpu");
}

static void test_detect__a_script_may_be_in_a_file_of_its_own(void)
{
	char *folder = dg_test_temp_dir();
	char path[600];
	snprintf(path, sizeof(path), "%s/script", folder);
	FILE *f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs("[rocm]\ngpus=D\nname=From a file\n", f);
	fclose(f);
	unsetenv("DG_FAKE");
	setenv("DG_FAKE_FILE", path, 1);
	assert_first_device("rocm", "From a file", "rocm:0");
	assert_first_device("cuda", "Fake A", "cuda:0");
	unsetenv("DG_FAKE_FILE");
	free(folder);
}

static void test_detect__looks_in_a_fresh_process_each_time(void)
{
	dg__worker *w = create_changing("gpus=A,B");
	size_t count = 0;
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, &count, NULL), DG_OK);
	CU_ASSERT_EQUAL(count, 2);
	int64_t first = dg__worker_pid(w);
	dg_fake_worker_change("gpus=A");
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, &count, NULL), DG_OK);
	CU_ASSERT_EQUAL(count, 1);
	CU_ASSERT(first > 0 && dg__worker_pid(w) > 0 && dg__worker_pid(w) != first);
	CU_ASSERT_FALSE(dg_process_runs(first));
	dg__worker_destroy(w);
}

static void test_detect__no_driver_no_device_and_a_bad_driver_are_told_apart(void)
{
	size_t count = 9;
	dg_error error = { .code = DG_OK };
	dg__worker *w = create_changing("enumerate=missing");
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, &error), DG_ENODRIVER);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "libfake.so.1"));
	dg_fake_worker_change("enumerate=failed");
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, &error), DG_EDRIVER);
	CU_ASSERT_EQUAL(error.native_code, 100);
	CU_ASSERT_STRING_EQUAL(error.origin, "fake");
	dg_fake_worker_change("gpus=");
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, &count, &error), DG_OK);
	CU_ASSERT_EQUAL(count, 0);
	dg__worker_destroy(w);
}

/* A driver's own error is an answer of a sound worker. */
static void test_detect__errors_of_the_driver_cause_no_back_off(void)
{
	dg__worker *w = create_changing("enumerate=failed");
	for (unsigned i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, NULL), DG_EDRIVER);
	dg__worker_destroy(w);
}

static void test_detect__a_slow_driver_may_use_its_time(void)
{
	dg__worker *w = dg_fake_worker_create("fake", "init_ms=400", IDLE_MS);
	size_t count = 0;
	long long start = dg_test_now_ms();
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, &count, NULL), DG_OK);
	CU_ASSERT_EQUAL(count, 1);
	CU_ASSERT(dg_test_now_ms() - start >= 400);
	dg__worker_destroy(w);
}

static void test_detect__what_a_driver_prints_does_no_harm(void)
{
	dg__worker *w = dg_fake_worker_create("fake", "do=print@enumerate", IDLE_MS);
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, NULL), DG_OK);
	dg__worker_destroy(w);
}

#define END_1 "{\"frame\":\"end\",\"request\":1}"
#define DEVICE(name) \
	"{\"frame\":\"devices\",\"request\":1,\"list\":{\"devices\":[" name "],\"detecting\":[]}}"

static void assert_fault(const dg_worker_fault *f)
{
	enum { TIMEOUT_MS = 300 };
	dg_error error = { .code = DG_OK };
	dg__worker *w = create_changing(f->script);
	uint32_t timeout_ms = f->err == DG_ETIMEOUT ? TIMEOUT_MS : LONG_MS;
	long long start = dg_test_now_ms();
	dg_err err = dg_worker_detect(w, timeout_ms, NULL, &error);
	bool good = err == f->err && within(start, TIMEOUT_MS + 500) &&
		    strstr(error.text, f->words) && error.native_code == f->native_code &&
		    dg__worker_pid(w) == 0;
	if (!good)
		printf("\n    %s: %s, %s (%d) after %lld ms\n    ", f->script, dg_err_code(err),
			error.text, error.native_code, dg_test_now_ms() - start);
	CU_ASSERT_TRUE(good);
	dg_fake_worker_change("gpus=A");
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, NULL), DG_OK);
	dg__worker_destroy(w);
}

static void assert_faults(const dg_worker_fault *faults, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_fault(&faults[i]);
}

static void test_detect__a_process_that_does_not_answer_is_ended_in_time(void)
{
	static const dg_worker_fault faults[] = {
		{ "do=hang@enumerate", DG_ETIMEOUT, "in time", 0 },
		{ "do=hang@describe", DG_ETIMEOUT, "in time", 0 },
		{ "do=hang@main", DG_ETIMEOUT, "in time", 0 },
		{ "do=hang@enumerate;ignore_term=1", DG_ETIMEOUT, "in time", 0 },
		{ "do=spin@enumerate", DG_ETIMEOUT, "in time", 0 },
		{ "do=stop@enumerate", DG_ETIMEOUT, "in time", 0 },
		{ "do=drip@enumerate", DG_ETIMEOUT, "in time", 0 },
		{ "init_ms=30000", DG_ETIMEOUT, "in time", 0 },
	};
	assert_faults(faults, sizeof(faults) / sizeof(faults[0]));
}

static void test_detect__the_death_of_the_process_is_told(void)
{
	static const dg_worker_fault faults[] = {
		{ "do=segv@enumerate", DG_EWORKER, "was killed by signal 11", SIGSEGV },
		{ "do=segv@describe", DG_EWORKER, "was killed by signal 11", SIGSEGV },
		{ "do=abort@enumerate", DG_EWORKER, "was killed by signal 6", SIGABRT },
		{ "do=exit:3@enumerate", DG_EWORKER, "exited with status 3", 3 },
		{ "do=exit:0@main", DG_EWORKER, "exited with status 0", 0 },
		{ "do=close@enumerate", DG_EWORKER, "closed its socket", 0 },
		{ "do=cut@enumerate", DG_EWORKER, "exited with status 0", 0 },
	};
	assert_faults(faults, sizeof(faults) / sizeof(faults[0]));
}

static void test_detect__nonsense_ends_the_process(void)
{
	static const dg_worker_fault faults[] = {
		{ "do=bytes@enumerate", DG_EWORKER, "claims", 0 },
		{ "do=oversize@enumerate", DG_EWORKER, "claims 4294967295 bytes", 0 },
		{ "do=json@enumerate", DG_EWORKER, "cannot be read", 0 },
		{ "do=say:[]@enumerate", DG_EWORKER, "cannot be read", 0 },
		{ "do=say:" END_1 "@enumerate", DG_EWORKER, "sent no devices", 0 },
		{ "do=say:{\"frame\":\"end\",\"request\":2}@enumerate", DG_EWORKER, "not asked",
			0 },
		{ "do=say:{\"frame\":\"cancel\",\"request\":1}@enumerate", DG_EWORKER,
			"sent a request", 0 },
		{ "do=say:" DEVICE("") "@enumerate", DG_EWORKER, "devices", 0 },
		{ "do=say:" DEVICE("{}") "@enumerate", DG_EWORKER, "cannot be read", 0 },
		{ "do=say:{\"frame\":\"progress\",\"request\":1,\"done\":0,\"total\":1,\"key\":"
		  "\"launch\"}"
		  "@enumerate",
			DG_EWORKER, "not asked for", 0 },
	};
	assert_faults(faults, sizeof(faults) / sizeof(faults[0]));
}

/* Such a process always has something to say, so that no silence ends the call. */
static void test_detect__endless_answers_end_in_time(void)
{
	static const dg_worker_fault faults[] = {
		{ "do=flood:{\"frame\":\"devices\",\"request\":1,\"list\":{\"devices\":[],"
		  "\"detecting\":[]}}"
		  "@enumerate",
			DG_EWORKER, "devices", 0 },
	};
	assert_faults(faults, sizeof(faults) / sizeof(faults[0]));
}

static void test_detect__memory_is_limited(void)
{
	if (SANITIZED) {
		dg_test_skip("memory limit", "a sanitizer needs address space without limit");
		return;
	}
	const dg__worker_options options = { .backend = "fake",
		.path = dg_fake_worker_path(),
		.idle_ms = IDLE_MS,
		.memory_limit_bytes = (uint64_t)256 << 20 };
	dg__worker *w = NULL;
	dg_error error = { .code = DG_OK };
	dg_fake_worker_script("do=eat@enumerate");
	CU_ASSERT_EQUAL_FATAL(dg__worker_create(&options, &w, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, &error), DG_EWORKER);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "was killed by signal 6"));
	dg__worker_destroy(w);
}

/* Telemetry. */

static void test_telemetry__figures_and_their_absence(void)
{
	dg__worker *w = create_changing("");
	dg_telemetry t = { .present = 0 };
	CU_ASSERT_EQUAL(dg__worker_telemetry(w, 0, LONG_MS, &t, NULL), DG_OK);
	CU_ASSERT_EQUAL(t.present, DG_TELEMETRY_LOAD);
	CU_ASSERT_DOUBLE_EQUAL(t.load, 0.25, 1e-9);
	CU_ASSERT(t.at_ms > 0);
	CU_ASSERT_EQUAL(dg__worker_telemetry(w, 1, LONG_MS, &t, NULL), DG_ENODEVICE);
	dg_fake_worker_change("lost=A");
	CU_ASSERT_EQUAL(dg__worker_telemetry(w, 0, LONG_MS, &t, NULL), DG_ELOST);
	dg_fake_worker_change("do=hang@telemetry");
	long long start = dg_test_now_ms();
	CU_ASSERT_EQUAL(dg__worker_telemetry(w, 0, 200, &t, NULL), DG_ETIMEOUT);
	CU_ASSERT(within(start, 200 + 500));
	dg_fake_worker_change("");
	CU_ASSERT_EQUAL(dg__worker_telemetry(w, 0, LONG_MS, &t, NULL), DG_OK);
	dg__worker_destroy(w);
}

/* Back-off. */

static void test_backoff__grows_while_it_fails_and_ends_with_success(void)
{
	dg__worker *w = create_changing("do=segv@main");
	dg_error error = { .code = DG_OK };
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, NULL), DG_EWORKER);
	/* The second try comes at once, and fails by itself. */
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, &error), DG_EWORKER);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "was killed by"));
	long long failed = dg_test_now_ms(), told = 0;
	unsigned refused = 0;
	for (;;) {
		long long start = dg_test_now_ms();
		CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, &error), DG_EWORKER);
		const char *in = strstr(error.text, "tried again in ");
		if (!in)
			break;
		CU_ASSERT(within(start, 0));
		told = strtol(in + strlen("tried again in "), NULL, 10);
		CU_ASSERT(told >= 1 && told <= 101);
		refused++;
		dg_test_sleep_ms(10);
	}
	CU_ASSERT(refused > 0);
	CU_ASSERT(dg_test_now_ms() - failed >= 100);
	/* The third failure costs twice as much. */
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, &error), DG_EWORKER);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "failed 3 times in a row"));
	dg_test_sleep_ms(210);
	dg_fake_worker_change("");
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, NULL), DG_OK);
	dg_fake_worker_change("do=segv@enumerate");
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, NULL), DG_EWORKER);
	dg_fake_worker_change("");
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, NULL), DG_OK);
	dg__worker_destroy(w);
}

/* Being idle. */

static void test_idle__a_process_without_work_ends_and_that_is_no_failure(void)
{
	dg__worker *w = dg_fake_worker_create("fake", "", 100);
	for (unsigned i = 0; i < 4; i++) {
		dg_worker_assert_works(w);
		CU_ASSERT_TRUE(dg_process_ends(dg__worker_pid(w), 100 + SLACK_MS));
	}
	dg__worker_destroy(w);
}

static void test_idle__work_does_not_count_as_idle(void)
{
	dg__worker *w = dg_fake_worker_create("fake", "launch_ms=30", 50);
	dg_worker_assert_works(w);
	dg__worker_destroy(w);
}

static void test_idle__zero_keeps_no_process(void)
{
	dg__worker *w = dg_fake_worker_create("fake", "", 0);
	for (unsigned i = 0; i < 4; i++) {
		dg_worker_assert_works(w);
		CU_ASSERT_EQUAL(dg__worker_pid(w), 0);
	}
	dg__worker_destroy(w);
}

static void test_idle__the_next_call_does_not_notice_a_process_killed_meanwhile(void)
{
	dg__worker *w = dg_fake_worker_create("fake", "", IDLE_MS);
	for (unsigned i = 0; i < 4; i++) {
		dg_worker_assert_works(w);
		int64_t pid = dg__worker_pid(w);
		dg_worker_signal(w, SIGKILL);
		CU_ASSERT_TRUE(dg_process_ends(pid, SLACK_MS));
	}
	dg__worker_destroy(w);
}

/* Processes that cannot be killed. */

#ifdef __linux__
static atomic_bool kill_fails;

/* Stands before the system's: a process in an uninterruptible call takes no signal for now. */
int kill(pid_t pid, int sig)
{
	if (sig == SIGKILL && atomic_load(&kill_fails))
		return 0;
	return (int)syscall(SYS_kill, pid, sig);
}

static void test_unkillable__is_not_waited_for_and_only_three_are_made(void)
{
	dg__worker *w = create_changing("do=stop@enumerate");
	dg_error error = { .code = DG_OK };
	char script[700];
	const char *log = dg_fake_worker_log();
	snprintf(script, sizeof(script), "do=stop@enumerate;log=%s", log);
	dg_fake_worker_change(script);
	atomic_store(&kill_fails, true);
	for (unsigned i = 0; i < 3; i++) {
		long long start = dg_test_now_ms();
		dg_test_sleep_ms(i == 2 ? 120 : 0);
		CU_ASSERT_EQUAL(dg_worker_detect(w, 300, NULL, NULL), DG_ETIMEOUT);
		CU_ASSERT(within(start, 120 + 300 + 500));
		CU_ASSERT_EQUAL(dg__worker_pid(w), 0);
	}
	dg_test_sleep_ms(250);
	CU_ASSERT_EQUAL(dg_worker_detect(w, 300, NULL, &error), DG_EWORKER);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "3 earlier workers of fake cannot be ended"));
	CU_ASSERT_EQUAL(dg_fake_worker_calls(log, "enumerate"), 3);
	/* They come back from their calls, and die. */
	atomic_store(&kill_fails, false);
	FILE *f = fopen(log, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	char line[64];
	while (fgets(line, sizeof(line), f)) {
		char *slot = NULL;
		long pid = strtol(line, &slot, 10);
		if (pid <= 1 || strcmp(slot, " enumerate\n") != 0)
			continue;
		kill((pid_t)pid, SIGKILL);
		CU_ASSERT_TRUE(dg_process_ends(pid, SLACK_MS));
	}
	fclose(f);
	dg_fake_worker_change("");
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, NULL), DG_OK);
	dg__worker_destroy(w);
}

static void test_unkillable__destroy_leaves_it_and_a_later_start_reaps_it(void)
{
	dg__worker *w = create_changing("");
	dg_worker_assert_works(w);
	int64_t pid = dg__worker_pid(w);
	kill((pid_t)pid, SIGSTOP);
	atomic_store(&kill_fails, true);
	long long start = dg_test_now_ms();
	dg__worker_destroy(w);
	CU_ASSERT(within(start, 300));
	CU_ASSERT_TRUE(dg_process_runs(pid));
	atomic_store(&kill_fails, false);
	kill((pid_t)pid, SIGKILL);
	CU_ASSERT_TRUE(dg_process_ends(pid, SLACK_MS));
	w = create_changing("");
	dg_worker_assert_works(w);
	dg__worker_destroy(w);
	errno = 0;
	CU_ASSERT_EQUAL(waitpid((pid_t)pid, NULL, WNOHANG), -1);
	CU_ASSERT_EQUAL(errno, ECHILD);
}
#endif

static const dg_test_case cases[] = {
	DG_TEST(test_detect__the_real_worker_lists_the_cpu),
	DG_TEST(test_detect__devices_come_in_the_drivers_order),
	DG_TEST(test_detect__each_backend_has_its_own_devices),
	DG_TEST(test_detect__a_script_may_be_in_a_file_of_its_own),
	DG_TEST(test_detect__looks_in_a_fresh_process_each_time),
	DG_TEST(test_detect__no_driver_no_device_and_a_bad_driver_are_told_apart),
	DG_TEST(test_detect__errors_of_the_driver_cause_no_back_off),
	DG_TEST(test_detect__a_slow_driver_may_use_its_time),
	DG_TEST(test_detect__what_a_driver_prints_does_no_harm),
	DG_TEST(test_detect__a_process_that_does_not_answer_is_ended_in_time),
	DG_TEST(test_detect__the_death_of_the_process_is_told),
	DG_TEST(test_detect__nonsense_ends_the_process),
	DG_TEST(test_detect__endless_answers_end_in_time),
	DG_TEST(test_detect__memory_is_limited),
	DG_TEST(test_telemetry__figures_and_their_absence),
	DG_TEST(test_backoff__grows_while_it_fails_and_ends_with_success),
	DG_TEST(test_idle__a_process_without_work_ends_and_that_is_no_failure),
	DG_TEST(test_idle__work_does_not_count_as_idle),
	DG_TEST(test_idle__zero_keeps_no_process),
	DG_TEST(test_idle__the_next_call_does_not_notice_a_process_killed_meanwhile),
#ifdef __linux__
	DG_TEST(test_unkillable__is_not_waited_for_and_only_three_are_made),
	DG_TEST(test_unkillable__destroy_leaves_it_and_a_later_start_reaps_it),
#endif
};

DG_TEST_MAIN("worker", cases)
