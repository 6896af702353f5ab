/* Measuring in a worker, and cancelling: what comes back, and when. */
#include "backends/worker/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakes/fake_worker.h"
#include "tests/test.h"

#define SLACK_MS 1500 /* of a machine that is busy with other tests */
#define IDLE_MS 60000
#define LONG_MS 20000

static bool within(long long start_ms, long long ms)
{
	return dg_test_now_ms() - start_ms < ms + SLACK_MS;
}

static dg__worker *create_changing(const char *script)
{
	return dg_fake_worker_create_changing(script, IDLE_MS);
}

static void test_calls__a_time_limit_out_of_range_is_refused(void)
{
	dg__worker *w = dg_fake_worker_create("fake", "", IDLE_MS);
	dg_telemetry telemetry;
	dg_value value;
	CU_ASSERT_EQUAL(dg_worker_detect(w, 0, NULL, NULL), DG_EINVALID);
	CU_ASSERT_EQUAL(dg_worker_detect(w, 300001, NULL, NULL), DG_EINVALID);
	CU_ASSERT_EQUAL(dg_worker_measure(w, "launch", 0, &value, NULL), DG_EINVALID);
	CU_ASSERT_EQUAL(value.code, DG_EINVALID);
	CU_ASSERT_EQUAL(dg_worker_measure(w, "launch", 3600001, &value, NULL), DG_EINVALID);
	CU_ASSERT_EQUAL(dg__worker_telemetry(w, 0, 0, &telemetry, NULL), DG_EINVALID);
	CU_ASSERT_EQUAL(dg__worker_pid(w), 0);
	dg__worker_destroy(w);
}

/* Measuring. */

static void test_measure__the_real_worker_measures_the_cpu(void)
{
	const dg__worker_options options = {
		.backend = "cpu", .path = dg_real_worker_path(), .idle_ms = IDLE_MS
	};
	dg__worker *w = NULL;
	dg_value values[3];
	setenv("DG_ENGINE_QUICK", "1", 1);
	CU_ASSERT_EQUAL_FATAL(dg__worker_create(&options, &w, NULL), DG_OK);
	CU_ASSERT_EQUAL(
		dg_worker_measure(w, "launch compute:f32 memory:read:65536", 60000, values, NULL),
		DG_OK);
	for (size_t i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(values[i].status, DG_STATUS_OK);
		CU_ASSERT(values[i].ops_count > 0 && values[i].duration_ns > 0);
	}
	dg__worker_destroy(w);
}

typedef struct seen {
	dg__worker *worker;
	char text[256];
	const char *script_at_value; /* script from the first value on */
	int kill_at; /* signal that the worker gets at the second key */
	bool cancel_at; /* cancel there */
} seen;

static void on_progress(uint32_t done, uint32_t total, const dg_key *key, void *user)
{
	seen *s = user;
	char key_text[DG_KEY_TEXT_MAX];
	size_t length = strlen(s->text);
	dg_key_format(key, key_text, sizeof(key_text));
	snprintf(s->text + length, sizeof(s->text) - length, "%u/%u %s, ", done, total, key_text);
	if (done == 1 && s->kill_at)
		dg_worker_signal(s->worker, s->kill_at);
	if (done == 1 && s->cancel_at)
		dg__worker_cancel(s->worker);
}

static void on_value(uint32_t done, const dg_value *value, void *user)
{
	seen *s = user;
	size_t length = strlen(s->text);
	snprintf(s->text + length, sizeof(s->text) - length, "value %u %s, ", done,
		dg_status_name(value->status));
	if (s->script_at_value)
		dg_fake_worker_change(s->script_at_value);
}

static dg_err measure_seen(
	seen *s, const char *keys, uint32_t timeout_ms, dg_value *values, dg_error *reterr)
{
	dg__measure_request request = dg_worker_request(keys);
	const dg__worker_watch watch = { .progress = on_progress, .value = on_value, .user = s };
	return dg__worker_measure(s->worker, 0, &request, timeout_ms, &watch, values, reterr);
}

static void test_measure__progress_and_values_come_as_they_are_made(void)
{
	dg__worker *w = dg_fake_worker_create("fake", "", IDLE_MS);
	seen s = { .worker = w };
	dg_value values[3];
	CU_ASSERT_EQUAL(
		measure_seen(&s, "launch compute:f16 compute:f32", LONG_MS, values, NULL), DG_OK);
	CU_ASSERT_STRING_EQUAL(s.text,
		"0/3 launch, value 0 ok, 1/3 compute:f16, value 1 unsupported, "
		"2/3 compute:f32, value 2 ok, ");
	CU_ASSERT_EQUAL(values[1].status, DG_STATUS_UNSUPPORTED);
	CU_ASSERT_EQUAL(values[2].status, DG_STATUS_OK);
	dg__worker_destroy(w);
}

static void test_measure__one_process_serves_many_calls(void)
{
	dg__worker *w = dg_fake_worker_create("fake", "", IDLE_MS);
	dg_worker_assert_works(w);
	int64_t pid = dg__worker_pid(w);
	CU_ASSERT(pid > 0);
	for (unsigned i = 0; i < 5; i++)
		dg_worker_assert_works(w);
	CU_ASSERT_EQUAL(dg__worker_pid(w), pid);
	dg__worker_destroy(w);
	CU_ASSERT_FALSE(dg_process_runs(pid));
}

static void assert_rest_failed(const dg_value *values, dg_err err, const char *words)
{
	CU_ASSERT_EQUAL(values[0].status, DG_STATUS_OK);
	for (size_t i = 1; i < 3; i++) {
		CU_ASSERT_EQUAL(values[i].status, DG_STATUS_FAILED);
		CU_ASSERT_EQUAL(values[i].code, err);
		CU_ASSERT_PTR_NOT_NULL(strstr(values[i].reason, words));
		CU_ASSERT_EQUAL(values[i].ops_count, 0);
	}
	CU_ASSERT_EQUAL(values[1].key.dtype, DG_F32);
	CU_ASSERT_EQUAL(values[2].key.dtype, DG_I32);
}

static void test_measure__values_that_came_before_a_failure_stay(void)
{
	static const dg_worker_fault faults[] = {
		{ "do=segv@launch", DG_EWORKER, "was killed by signal 11", SIGSEGV },
		{ "do=hang@launch", DG_ETIMEOUT, "in time", 0 },
		{ "do=json@launch", DG_EWORKER, "cannot be read", 0 },
		{ "do=lose@launch", DG_ELOST, "fell off the bus", 15 },
	};
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		dg__worker *w = create_changing("launch_ms=20");
		seen s = { .worker = w, .script_at_value = faults[i].script };
		dg_value values[3];
		dg_error error = { .code = DG_OK };
		uint32_t timeout_ms = faults[i].err == DG_ETIMEOUT ? 1500 : LONG_MS;
		long long start = dg_test_now_ms();
		CU_ASSERT_EQUAL(measure_seen(&s, "launch compute:f32 compute:i32", timeout_ms,
					values, &error),
			faults[i].err);
		CU_ASSERT(within(start, 1500 + 500));
		CU_ASSERT_EQUAL(error.native_code, faults[i].native_code);
		assert_rest_failed(values, faults[i].err, faults[i].words);
		dg_fake_worker_change("");
		dg_worker_assert_works(w);
		dg__worker_destroy(w);
	}
}

static void test_measure__a_killed_process_fails_that_call_alone(void)
{
	dg__worker *w = dg_fake_worker_create("fake", "launch_ms=20", IDLE_MS);
	seen s = { .worker = w, .kill_at = SIGKILL };
	dg_value values[3];
	dg_error error = { .code = DG_OK };
	CU_ASSERT_EQUAL(measure_seen(&s, "launch compute:f32 compute:i32", LONG_MS, values, &error),
		DG_EWORKER);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "was killed by signal 9"));
	CU_ASSERT_EQUAL(error.native_code, SIGKILL);
	assert_rest_failed(values, DG_EWORKER, "was killed by signal 9");
	dg_fake_worker_script("");
	dg_worker_assert_works(w);
	dg__worker_destroy(w);
}

static void *kill_soon(void *user)
{
	dg_test_sleep_ms(150);
	dg_worker_signal(user, SIGKILL);
	return NULL;
}

static void test_measure__a_killed_real_worker_fails_that_call_alone(void)
{
	const dg__worker_options options = {
		.backend = "cpu", .path = dg_real_worker_path(), .idle_ms = IDLE_MS
	};
	dg__worker *w = NULL;
	pthread_t thread;
	dg_value values[3];
	CU_ASSERT_EQUAL_FATAL(dg__worker_create(&options, &w, NULL), DG_OK);
	CU_ASSERT_EQUAL_FATAL(dg_worker_detect(w, LONG_MS, NULL, NULL), DG_OK);
	setenv("DG_ENGINE_QUICK", "0", 1);
	CU_ASSERT_EQUAL_FATAL(dg_worker_detect(w, LONG_MS, NULL, NULL), DG_OK);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, kill_soon, w), 0);
	CU_ASSERT_EQUAL(
		dg_worker_measure(w, "compute:f32 memory memory:read", LONG_MS, values, NULL),
		DG_EWORKER);
	pthread_join(thread, NULL);
	setenv("DG_ENGINE_QUICK", "1", 1);
	dg_worker_assert_works(w);
	dg__worker_destroy(w);
}

static void test_measure__a_process_that_keeps_the_deadline_lives_on(void)
{
	dg__worker *w = create_changing("do=wait@launch");
	dg_value values[2];
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, NULL), DG_OK);
	int64_t pid = dg__worker_pid(w);
	long long start = dg_test_now_ms();
	CU_ASSERT_EQUAL(dg_worker_measure(w, "launch compute:f32", 300, values, NULL), DG_ETIMEOUT);
	CU_ASSERT(dg_test_now_ms() - start >= 299);
	CU_ASSERT(within(start, 300 + 500));
	CU_ASSERT_EQUAL(values[1].code, DG_ETIMEOUT);
	dg_fake_worker_change("");
	dg_worker_assert_works(w);
	CU_ASSERT_EQUAL(dg__worker_pid(w), pid);
	dg__worker_destroy(w);
}

static void test_measure__a_failing_kernel_fails_its_key_alone(void)
{
	dg__worker *w = dg_fake_worker_create("fake", "output=wrong", IDLE_MS);
	dg_value values[2];
	CU_ASSERT_EQUAL(
		dg_worker_measure(w, "compute:f32 compute:f16", LONG_MS, values, NULL), DG_OK);
	CU_ASSERT_EQUAL(values[0].status, DG_STATUS_FAILED);
	CU_ASSERT_EQUAL(values[0].code, DG_EMISMATCH);
	CU_ASSERT_EQUAL(values[1].status, DG_STATUS_UNSUPPORTED);
	dg__worker_destroy(w);
}

static void test_measure__a_device_that_is_not_there_is_told(void)
{
	dg__worker *w = dg_fake_worker_create("fake", "gpus=A,B;lost=A", IDLE_MS);
	dg__measure_request request = dg_worker_request("launch");
	dg_value value;
	CU_ASSERT_EQUAL(
		dg__worker_measure(w, 2, &request, LONG_MS, NULL, &value, NULL), DG_ENODEVICE);
	CU_ASSERT_EQUAL(value.code, DG_ENODEVICE);
	CU_ASSERT_EQUAL(dg__worker_measure(w, 0, &request, LONG_MS, NULL, &value, NULL), DG_ELOST);
	CU_ASSERT_EQUAL(dg__worker_measure(w, 1, &request, LONG_MS, NULL, &value, NULL), DG_OK);
	request.count = 0;
	CU_ASSERT_EQUAL(dg__worker_measure(w, 1, &request, LONG_MS, NULL, NULL, NULL), DG_OK);
	dg__worker_destroy(w);
}

#define FRAME(kind, rest) "do=say:{\"frame\":\"" kind "\",\"request\":1" rest "}@open"
#define VALUE(done, total, key) \
	FRAME("value", ",\"done\":" done ",\"total\":" total ",\"value\":{\"key\":\"" key \
		       "\",\"status\":\"failed\",\"reason\":\"r\",\"ops_count\":0,\"duration\":{" \
		       "\"secs\":0," \
		       "\"nanos\":0},\"ops_per_s\":null,\"bytes_per_s\":null,\"text\":\"-\"," \
		       "\"evidence\":null}")
#define PROGRESS(done, total, key) \
	FRAME("progress", ",\"done\":" done ",\"total\":" total ",\"key\":\"" key "\"")

static void test_measure__nonsense_ends_the_process(void)
{
	static const dg_worker_fault faults[] = {
		{ FRAME("end", ""), DG_EWORKER, "left values out", 0 },
		{ "do=say:{\"frame\":\"end\",\"request\":7}@open", DG_EWORKER, "not asked", 0 },
		{ FRAME("measure", ""), DG_EWORKER, "cannot be read", 0 },
		{ FRAME("devices", ",\"list\":{\"devices\":[],\"detecting\":[]}"), DG_EWORKER,
			"not asked for", 0 },
		{ PROGRESS("2", "2", "launch"), DG_EWORKER, "not asked for", 0 },
		{ PROGRESS("1", "2", "compute:f32"), DG_EWORKER, "not asked for", 0 },
		{ PROGRESS("0", "3", "launch"), DG_EWORKER, "not asked for", 0 },
		{ PROGRESS("0", "2", "memory"), DG_EWORKER, "not asked for", 0 },
		{ VALUE("1", "2", "compute:f32"), DG_EWORKER, "not asked for", 0 },
		{ VALUE("0", "2", "memory"), DG_EWORKER, "not asked for", 0 },
		{ VALUE("4294967296", "2", "launch"), DG_EWORKER, "cannot be read", 0 },
		{ VALUE("-1", "2", "launch"), DG_EWORKER, "cannot be read", 0 },
		/* Twice: the second one is one too many. */
		{ PROGRESS("0", "2", "launch") ";" VALUE("0", "2", "launch") ";" PROGRESS(
			  "0", "2", "launch"),
			DG_EWORKER, "not asked for", 0 },
	};
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		dg__worker *w = create_changing(faults[i].script);
		dg_value values[2];
		dg_error error = { .code = DG_OK };
		dg_err err = dg_worker_measure(w, "launch compute:f32", LONG_MS, values, &error);
		if (err != faults[i].err || !strstr(error.text, faults[i].words))
			printf("\n    %s: %s\n    ", faults[i].script, error.text);
		CU_ASSERT_EQUAL(err, faults[i].err);
		CU_ASSERT_PTR_NOT_NULL(strstr(error.text, faults[i].words));
		CU_ASSERT_EQUAL(dg__worker_pid(w), 0);
		CU_ASSERT_EQUAL(values[1].code, DG_EWORKER);
		dg_fake_worker_change("");
		dg_worker_assert_works(w);
		dg__worker_destroy(w);
	}
}

/* Cancelling. */

typedef struct canceller {
	dg__worker *worker;
	unsigned after_ms;
	long long at_ms;
} canceller;

static void *cancel_soon(void *user)
{
	canceller *c = user;
	dg_test_sleep_ms(c->after_ms);
	c->at_ms = dg_test_now_ms();
	dg__worker_cancel(c->worker);
	return NULL;
}

/* Cancels a measurement and gives the process that it ran in. */
static int64_t assert_cancelled(dg__worker *w)
{
	canceller c = { .worker = w, .after_ms = 200 };
	pthread_t thread;
	dg_value values[2];
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, NULL), DG_OK);
	int64_t pid = dg__worker_pid(w);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, cancel_soon, &c), 0);
	CU_ASSERT_EQUAL(
		dg_worker_measure(w, "launch compute:f32", LONG_MS, values, NULL), DG_ECANCELLED);
	long long now = dg_test_now_ms();
	pthread_join(thread, NULL);
	CU_ASSERT(now - c.at_ms < 200 + SLACK_MS);
	CU_ASSERT_EQUAL(values[0].code, DG_ECANCELLED);
	CU_ASSERT_EQUAL(values[1].code, DG_ECANCELLED);
	return pid;
}

static void test_cancel__a_process_that_listens_lives_on(void)
{
	dg__worker *w = create_changing("do=wait@launch");
	int64_t pid = assert_cancelled(w);
	dg_fake_worker_change("");
	dg_worker_assert_works(w);
	CU_ASSERT_EQUAL(dg__worker_pid(w), pid);
	dg__worker_destroy(w);
}

#define FLOOD \
	"do=flood:{\"frame\":\"progress\",\"request\":2,\"done\":0,\"total\":2," \
	"\"key\":\"launch\"}@open"

static void test_cancel__a_process_that_does_not_listen_is_killed(void)
{
	static const char *const scripts[] = {
		"do=hang@launch", "do=spin@launch", "do=stop@launch", "do=hang@open",
		FLOOD, /* NOLINT: two lines of one text */
	};
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		dg__worker *w = create_changing(scripts[i]);
		int64_t pid = assert_cancelled(w);
		CU_ASSERT_TRUE(dg_process_ends(pid, SLACK_MS));
		dg_fake_worker_change("");
		dg_worker_assert_works(w);
		dg__worker_destroy(w);
	}
}

static void test_cancel__detection_ends_too(void)
{
	dg__worker *w = create_changing("do=hang@enumerate");
	canceller c = { .worker = w, .after_ms = 200 };
	pthread_t thread;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, cancel_soon, &c), 0);
	CU_ASSERT_EQUAL(dg_worker_detect(w, LONG_MS, NULL, NULL), DG_ECANCELLED);
	CU_ASSERT(dg_test_now_ms() - c.at_ms < 200 + SLACK_MS);
	pthread_join(thread, NULL);
	dg__worker_destroy(w);
}

static void test_cancel__works_from_a_callback_and_keeps_values(void)
{
	dg__worker *w = dg_fake_worker_create("fake", "launch_ms=5", IDLE_MS);
	seen s = { .worker = w, .cancel_at = true };
	dg_value values[3];
	CU_ASSERT_EQUAL(measure_seen(&s, "launch compute:f32 compute:i32", LONG_MS, values, NULL),
		DG_ECANCELLED);
	assert_rest_failed(values, DG_ECANCELLED, "cancelled");
	dg__worker_destroy(w);
}

static void test_cancel__without_a_call_it_spoils_none(void)
{
	dg__worker *w = dg_fake_worker_create("fake", "", IDLE_MS);
	dg__worker_cancel(w);
	dg_worker_assert_works(w);
	dg__worker_cancel(w);
	dg_worker_assert_works(w);
	dg__worker_destroy(w);
}

static void test_cancel__many_in_a_row_cause_no_back_off(void)
{
	dg__worker *w = create_changing("do=hang@open");
	for (unsigned i = 0; i < 4; i++)
		CU_ASSERT(assert_cancelled(w) > 0);
	dg__worker_destroy(w);
}

static const dg_test_case cases[] = {
	DG_TEST(test_calls__a_time_limit_out_of_range_is_refused),
	DG_TEST(test_measure__the_real_worker_measures_the_cpu),
	DG_TEST(test_measure__progress_and_values_come_as_they_are_made),
	DG_TEST(test_measure__one_process_serves_many_calls),
	DG_TEST(test_measure__values_that_came_before_a_failure_stay),
	DG_TEST(test_measure__a_killed_process_fails_that_call_alone),
	DG_TEST(test_measure__a_killed_real_worker_fails_that_call_alone),
	DG_TEST(test_measure__a_process_that_keeps_the_deadline_lives_on),
	DG_TEST(test_measure__a_failing_kernel_fails_its_key_alone),
	DG_TEST(test_measure__a_device_that_is_not_there_is_told),
	DG_TEST(test_measure__nonsense_ends_the_process),
	DG_TEST(test_cancel__a_process_that_listens_lives_on),
	DG_TEST(test_cancel__a_process_that_does_not_listen_is_killed),
	DG_TEST(test_cancel__detection_ends_too),
	DG_TEST(test_cancel__works_from_a_callback_and_keeps_values),
	DG_TEST(test_cancel__without_a_call_it_spoils_none),
	DG_TEST(test_cancel__many_in_a_row_cause_no_back_off),
};

DG_TEST_MAIN("worker, measuring", cases)
