/* Devices of gateways through the public calls: well-behaved ones, lying ones, dying ones. */
#include "client/devgate.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fakes/fake_scene.h"
#include "tests/test.h"

static const dg_key KEYS[3] = {
	{ .mode = DG_MODE_COMPUTE, .dtype = DG_F32 },
	{ .mode = DG_MODE_MEMORY, .access = DG_READ },
	{ .mode = DG_MODE_LAUNCH },
};

static dg_err measure(dg_fake_scene *s, dg_value values[3], size_t *ret_count)
{
	memset(&s->error, 0, sizeof(s->error));
	dg_err err =
		dg_performance_stats(s->device, KEYS, 3, &s->call, values, ret_count, &s->error);
	CU_ASSERT_EQUAL(s->error.code, err);
	return err;
}

/* Describing. */

static void test_describe__gives_what_the_gateway_says(void)
{
	dg_fake_scene s;
	dg_device_info info;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	CU_ASSERT_EQUAL_FATAL(dg_describe(s.device, NULL, &info, &s.error), DG_OK);
	CU_ASSERT_STRING_EQUAL(info.name, "Fake Processor 0");
	CU_ASSERT_EQUAL(info.device.variant, DG_CPU);
	CU_ASSERT_EQUAL(info.total_bytes, 1 << 30);
	dg_fake_scene_finish(&s);
}

static void test_describe__autodiff_describes_the_one_it_wraps(void)
{
	dg_fake_scene s;
	dg_device wrapped;
	dg_device_info info;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	CU_ASSERT_EQUAL(dg_device_autodiff(s.device, DG_STRATEGY_BALANCED, &wrapped, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg_describe(wrapped, NULL, &info, &s.error), DG_OK);
	CU_ASSERT_STRING_EQUAL(info.name, "Fake Processor 0");
	dg_fake_scene_finish(&s);
}

static void test_describe__the_gateways_error_comes_through(void)
{
	dg_fake_scene s;
	dg_device_info info;
	dg_device missing;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	CU_ASSERT_EQUAL(
		dg_device_remote(dg_fake_gateway_url(s.model.gateway), 77, &s.call, &missing, NULL),
		DG_OK);
	CU_ASSERT_EQUAL(dg_describe(missing, NULL, &info, &s.error), DG_ENODEVICE);
	CU_ASSERT_PTR_NOT_NULL(strstr(s.error.text, "no device has this index"));
	CU_ASSERT_PTR_NOT_NULL(strstr(s.error.text, dg_fake_gateway_url(s.model.gateway)));
	CU_ASSERT_STRING_EQUAL(s.error.origin, "gateway");
	dg_fake_scene_finish(&s);
}

static void twist_status(const dg_fake_request *request, dg_fake_reply *reply, void *user)
{
	(void)request;
	reply->status = *(const int *)user;
	reply->content_type = "text/plain";
	reply->body = "a proxy's own words";
	reply->body_length = 0;
}

static void test_describe__statuses_without_a_problem_document_are_mapped(void)
{
	static const int statuses[] = { 400, 401, 403, 404, 405, 410, 418, 429, 500, 502, 503, 504,
		599 };
	dg_fake_scene s;
	int status = 0;
	dg_device_info info;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.twist = twist_status;
	s.model.user = &status;
	s.call.timeout_ms = 500;
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		status = statuses[i];
		dg_err err = dg_describe(s.device, &s.call, &info, &s.error);
		CU_ASSERT(err != DG_OK && err == s.error.code);
		CU_ASSERT_PTR_NOT_NULL(strstr(s.error.text, "a proxy's own words"));
	}
	dg_fake_scene_finish(&s);
}

static void twist_type(const dg_fake_request *request, dg_fake_reply *reply, void *user)
{
	(void)request;
	reply->content_type = user;
}

static void test_describe__success_that_is_no_json_is_refused(void)
{
	dg_fake_scene s;
	dg_device_info info;
	char types[3][32] = { "text/html", "", "application/octet-stream" };
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.twist = twist_type;
	for (int i = 0; i < 3; i++) {
		s.model.user = types[i];
		CU_ASSERT_EQUAL(dg_describe(s.device, NULL, &info, &s.error), DG_EPROTOCOL);
	}
	dg_fake_scene_finish(&s);
}

static void twist_body(const dg_fake_request *request, dg_fake_reply *reply, void *user)
{
	(void)request;
	reply->body = user;
	reply->body_length = 0;
}

static void test_describe__json_that_is_no_device_is_refused(void)
{
	static char bodies[][64] = { "", "{", "[]", "null", "{}", "{\"index\":0}", "{\"index\":-1}",
		"\"cpu\"", "{\"index\":0,\"index\":0}", "\xff\xfe" };
	dg_fake_scene s;
	dg_device_info info;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.twist = twist_body;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		s.model.user = bodies[i];
		CU_ASSERT_EQUAL(dg_describe(s.device, NULL, &info, &s.error), DG_EPROTOCOL);
	}
	dg_fake_scene_finish(&s);
}

/* A backend still being detected is asked for again when the gateway says so. */
static void twist_detecting(const dg_fake_request *request, dg_fake_reply *reply, void *user)
{
	unsigned *left = user;
	(void)request;
	if (*left == 0)
		return;
	--*left;
	reply->status = 503;
	reply->content_type = "application/problem+json";
	reply->headers = "Retry-After: 0\r\n";
	reply->body = "{\"type\":\"about:blank\",\"title\":\"x\",\"status\":503,"
		      "\"detail\":\"still looking\",\"code\":\"detecting\"}";
	reply->body_length = 0;
}

static void test_describe__waits_for_detection(void)
{
	dg_fake_scene s;
	unsigned left = 3;
	dg_device_info info;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.twist = twist_detecting;
	s.model.user = &left;
	CU_ASSERT_EQUAL(dg_describe(s.device, NULL, &info, &s.error), DG_OK);
	CU_ASSERT_EQUAL(dg_fake_gateway_requests(s.model.gateway), 4);
	left = UINT32_MAX;
	s.call.timeout_ms = 400;
	long long start = dg_test_now_ms();
	/* The deadline passes between two questions, or within one. */
	dg_err err = dg_describe(s.device, &s.call, &info, &s.error);
	CU_ASSERT(err == DG_EDETECTING || err == DG_ETIMEOUT);
	CU_ASSERT(dg_test_now_ms() - start < 5000);
	dg_fake_scene_finish(&s);
}

/* Measuring. */

static void test_stats__one_value_per_key_in_order(void)
{
	dg_fake_scene s;
	dg_value values[3];
	size_t count = 99;
	double rate = 0;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.polls_until_done = 3;
	CU_ASSERT_EQUAL_FATAL(measure(&s, values, &count), DG_OK);
	CU_ASSERT_EQUAL_FATAL(count, 3);
	for (int i = 0; i < 3; i++)
		CU_ASSERT(dg_key_equal(&values[i].key, &KEYS[i]));
	CU_ASSERT(dg_value_rate(&values[0], &rate) && rate > 0);
	CU_ASSERT_EQUAL(s.model.jobs, 1);
	CU_ASSERT_EQUAL(s.model.deletes, 0);
	dg_fake_scene_finish(&s);
}

static void test_stats__says_that_it_does_not_wait(void)
{
	dg_fake_scene s;
	dg_value values[3];
	size_t count;
	dg_fake_request request;
	char prefer[64] = "";
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	CU_ASSERT_EQUAL(measure(&s, values, &count), DG_OK);
	CU_ASSERT(dg_fake_gateway_request(s.model.gateway, 0, &request));
	CU_ASSERT(dg_fake_request_header(&request, "Prefer", prefer, sizeof(prefer)));
	CU_ASSERT_STRING_EQUAL(prefer, "respond-async");
	CU_ASSERT_STRING_EQUAL(request.path, "/v1/devices/0/throughput");
	dg_fake_scene_finish(&s);
}

static void test_stats__a_result_at_once_is_taken(void)
{
	dg_fake_scene s;
	dg_value values[3];
	size_t count = 0;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.at_once = true;
	CU_ASSERT_EQUAL(measure(&s, values, &count), DG_OK);
	CU_ASSERT_EQUAL(count, 3);
	CU_ASSERT_EQUAL(dg_fake_gateway_requests(s.model.gateway), 1);
	dg_fake_scene_finish(&s);
}

static void test_stats__flags_are_passed_on(void)
{
	dg_fake_scene s;
	dg_value values[3];
	size_t count;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.call.flags = DG_REFRESH | DG_SUSTAINED;
	CU_ASSERT_EQUAL(measure(&s, values, &count), DG_OK);
	CU_ASSERT(s.model.asked.refresh && s.model.asked.sustained);
	CU_ASSERT_EQUAL(s.model.asked.count, 3);
	s.call.flags = 0;
	CU_ASSERT_EQUAL(measure(&s, values, &count), DG_OK);
	CU_ASSERT(!s.model.asked.refresh && !s.model.asked.sustained);
	dg_fake_scene_finish(&s);
}

static void test_stats__a_device_without_kernels_gives_none(void)
{
	dg_fake_scene s;
	dg_value values[3];
	size_t count = 99;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.no_values = true;
	CU_ASSERT_EQUAL(measure(&s, values, &count), DG_OK);
	CU_ASSERT_EQUAL(count, 0);
	dg_fake_scene_finish(&s);
}

static void test_stats__no_keys_asks_nobody(void)
{
	dg_fake_scene s;
	size_t count = 99;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	CU_ASSERT_EQUAL(dg_performance_stats(s.device, NULL, 0, NULL, NULL, &count, NULL), DG_OK);
	CU_ASSERT_EQUAL(count, 0);
	CU_ASSERT_EQUAL(dg_fake_gateway_connections(s.model.gateway), 0);
	dg_fake_scene_finish(&s);
}

static void test_stats__wrong_keys_ask_nobody(void)
{
	dg_fake_scene s;
	size_t count = 99;
	dg_value value;
	dg_key key = { .mode = DG_MODE_COMPUTE, .dtype = (dg_dtype)99 };
	dg_key many[DG_KEYS_MAX + 1];
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	CU_ASSERT_EQUAL(
		dg_performance_stats(s.device, &key, 1, NULL, &value, &count, NULL), DG_EKEY);
	for (size_t i = 0; i <= DG_KEYS_MAX; i++)
		many[i] = KEYS[0];
	CU_ASSERT_EQUAL(
		dg_performance_stats(s.device, many, DG_KEYS_MAX + 1, NULL, &value, &count, NULL),
		DG_ETOOMANY);
	CU_ASSERT_EQUAL(count, 99);
	CU_ASSERT_EQUAL(dg_fake_gateway_connections(s.model.gateway), 0);
	dg_fake_scene_finish(&s);
}

static void test_stats__a_failed_job_is_its_error(void)
{
	dg_fake_scene s;
	dg_value values[3];
	size_t count = 99;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.outcome = DG__JOB_FAILED;
	dg_error_set(&s.model.outcome_error, DG_ELOST, "the card fell off the bus");
	CU_ASSERT_EQUAL(measure(&s, values, &count), DG_ELOST);
	CU_ASSERT_PTR_NOT_NULL(strstr(s.error.text, "fell off the bus"));
	CU_ASSERT_EQUAL(count, 99);
	s.model.outcome = DG__JOB_CANCELLED;
	dg_error_set(&s.model.outcome_error, DG_ECANCELLED, "an admin did not want it");
	CU_ASSERT_EQUAL(measure(&s, values, &count), DG_ECANCELLED);
	dg_fake_scene_finish(&s);
}

typedef struct watcher {
	unsigned calls;
	bool stop_at_key; /* cancel once a job is known */
	uint32_t total;
	char key[DG_KEY_TEXT_MAX];
} watcher;

static bool watch(uint32_t done, uint32_t total, const char *key, void *user)
{
	watcher *w = user;
	(void)done;
	w->total = total ? total : w->total;
	if (*key)
		snprintf(w->key, sizeof(w->key), "%s", key);
	w->calls++;
	return !(w->stop_at_key && *key);
}

static void test_stats__progress_is_told(void)
{
	dg_fake_scene s;
	watcher w = { 0 };
	dg_value values[3];
	size_t count;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.polls_until_done = 4;
	s.call.progress = watch;
	s.call.user = &w;
	CU_ASSERT_EQUAL(measure(&s, values, &count), DG_OK);
	CU_ASSERT(w.calls > 0);
	CU_ASSERT_EQUAL(w.total, 3);
	CU_ASSERT_STRING_EQUAL(w.key, "compute:f32");
	dg_fake_scene_finish(&s);
}

static void test_stats__cancelled_by_progress_deletes_the_job(void)
{
	dg_fake_scene s;
	watcher w = { .stop_at_key = true };
	dg_value values[3];
	size_t count = 99;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.never_done = true;
	s.call.progress = watch;
	s.call.user = &w;
	CU_ASSERT_EQUAL(measure(&s, values, &count), DG_ECANCELLED);
	CU_ASSERT_EQUAL(s.model.deletes, 1);
	CU_ASSERT_EQUAL(count, 99);
	dg_fake_scene_finish(&s);
}

static void test_stats__a_passed_deadline_deletes_the_job(void)
{
	dg_fake_scene s;
	dg_value values[3];
	size_t count;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.never_done = true;
	s.call.timeout_ms = 600;
	long long start = dg_test_now_ms();
	CU_ASSERT_EQUAL(measure(&s, values, &count), DG_ETIMEOUT);
	CU_ASSERT(dg_test_now_ms() - start < 5000);
	CU_ASSERT_EQUAL(s.model.deletes, 1);
	dg_fake_scene_finish(&s);
}

/* Curves and rooflines. */

static void test_curve__comes_from_the_gateway(void)
{
	dg_fake_scene s;
	dg_curve curve;
	double rate = 0;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	CU_ASSERT_EQUAL_FATAL(dg_memory_curve(s.device, DG_READ, &s.call, &curve, &s.error), DG_OK);
	CU_ASSERT(curve.count > 10 && curve.access == DG_READ);
	CU_ASSERT(dg_curve_ceiling(&curve, 65536, &rate) && rate > 0);
	CU_ASSERT_EQUAL(
		dg_memory_curve(s.device, (dg_access)9, &s.call, &curve, &s.error), DG_EINVALID);
	dg_fake_scene_finish(&s);
}

static void test_curve__of_another_access_is_refused(void)
{
	dg_fake_scene s;
	dg_fake_lie l = { .from = "\"access\":\"read\"", .to = "\"access\":\"write\"" };
	dg_curve curve;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.at_once = true;
	s.model.twist = dg_fake_lie_twist;
	s.model.user = &l;
	CU_ASSERT_EQUAL(
		dg_memory_curve(s.device, DG_READ, &s.call, &curve, &s.error), DG_EPROTOCOL);
	dg_fake_scene_finish(&s);
}

static void test_roofline__peaks_are_the_gateways(void)
{
	dg_fake_scene s;
	dg_roofline_input input;
	dg_roofline roofline;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	CU_ASSERT_EQUAL_FATAL(dg_device_roofline(s.device, 2e9, DG_F32, 1e8, 4, &s.call, &input,
				      &roofline, &s.error),
		DG_OK);
	CU_ASSERT_DOUBLE_EQUAL(roofline.compute_seconds, 2, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(roofline.memory_seconds, 1, 1e-9);
	CU_ASSERT_EQUAL(roofline.bound, DG_BOUND_COMPUTE);
	CU_ASSERT_DOUBLE_EQUAL(roofline.fraction, 0.5, 1e-9);
	CU_ASSERT_EQUAL(dg_device_roofline(
				s.device, -1, DG_F32, 1, 0, &s.call, &input, &roofline, &s.error),
		DG_EINVALID);
	CU_ASSERT_EQUAL(dg_device_roofline(s.device, 1, DG_DTYPE_NONE, 1, 0, &s.call, NULL,
				&roofline, &s.error),
		DG_EKEY);
	dg_fake_scene_finish(&s);
}

static void test_telemetry__is_not_told(void)
{
	dg_fake_scene s;
	dg_telemetry telemetry;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	CU_ASSERT_EQUAL(dg_telemetry_read(s.device, NULL, &telemetry, &s.error), DG_ENOTSUP);
	dg_fake_scene_finish(&s);
}

/* Options. */

static void test_call__options_of_another_version_are_refused(void)
{
	dg_fake_scene s;
	dg_device_info info;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.call.size = 4;
	CU_ASSERT_EQUAL(dg_describe(s.device, &s.call, &info, &s.error), DG_EINVALID);
	s.call = (dg_call)DG_CALL_INIT;
	s.call.flags = 1u << 30;
	CU_ASSERT_EQUAL(dg_describe(s.device, &s.call, &info, &s.error), DG_EINVALID);
	s.device.variant = 200;
	CU_ASSERT_EQUAL(dg_describe(s.device, NULL, &info, &s.error), DG_EINVALID);
	dg_fake_scene_finish(&s);
}

/* Threads and fork. */

typedef struct asker {
	dg_fake_scene *scene;
	pthread_t thread;
	unsigned failures;
} asker;

static void *ask_many(void *user)
{
	asker *a = user;
	for (int i = 0; i < 30; i++) {
		dg_device_info info;
		dg_settings settings;
		if (dg_describe(a->scene->device, NULL, &info, NULL) ||
			dg_settings_get(a->scene->device, NULL, &settings, NULL))
			a->failures++;
	}
	return NULL;
}

static void test_threads__one_device_many_askers(void)
{
	enum { THREADS = 6 };
	dg_fake_scene s;
	asker askers[THREADS] = { 0 };
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	for (int i = 0; i < THREADS; i++) {
		askers[i].scene = &s;
		CU_ASSERT_FATAL(pthread_create(&askers[i].thread, NULL, ask_many, &askers[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(askers[i].thread, NULL);
		CU_ASSERT_EQUAL(askers[i].failures, 0);
	}
	dg_fake_scene_finish(&s);
}

static void test_fork__parent_and_child_both_go_on(void)
{
	dg_fake_scene s;
	dg_device_info info;
	int status = -1;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	CU_ASSERT_EQUAL(dg_describe(s.device, NULL, &info, &s.error), DG_OK);
	pid_t child = fork();
	if (child == 0) {
		dg_value values[3];
		size_t count = 0;
		dg_err err = dg_describe(s.device, NULL, &info, NULL);
		err = err ? err
			  : dg_performance_stats(s.device, KEYS, 3, NULL, values, &count, NULL);
		_exit(err || count != 3);
	}
	CU_ASSERT_FATAL(child > 0);
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(dg_describe(s.device, NULL, &info, &s.error), DG_OK);
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	dg_fake_scene_finish(&s);
}

static const dg_test_case cases[] = {
	DG_TEST(test_describe__gives_what_the_gateway_says),
	DG_TEST(test_describe__autodiff_describes_the_one_it_wraps),
	DG_TEST(test_describe__the_gateways_error_comes_through),
	DG_TEST(test_describe__statuses_without_a_problem_document_are_mapped),
	DG_TEST(test_describe__success_that_is_no_json_is_refused),
	DG_TEST(test_describe__json_that_is_no_device_is_refused),
	DG_TEST(test_describe__waits_for_detection),
	DG_TEST(test_stats__one_value_per_key_in_order),
	DG_TEST(test_stats__says_that_it_does_not_wait),
	DG_TEST(test_stats__a_result_at_once_is_taken),
	DG_TEST(test_stats__flags_are_passed_on),
	DG_TEST(test_stats__a_device_without_kernels_gives_none),
	DG_TEST(test_stats__no_keys_asks_nobody),
	DG_TEST(test_stats__wrong_keys_ask_nobody),
	DG_TEST(test_stats__a_failed_job_is_its_error),
	DG_TEST(test_stats__progress_is_told),
	DG_TEST(test_stats__cancelled_by_progress_deletes_the_job),
	DG_TEST(test_stats__a_passed_deadline_deletes_the_job),
	DG_TEST(test_curve__comes_from_the_gateway),
	DG_TEST(test_curve__of_another_access_is_refused),
	DG_TEST(test_roofline__peaks_are_the_gateways),
	DG_TEST(test_telemetry__is_not_told),
	DG_TEST(test_call__options_of_another_version_are_refused),
	DG_TEST(test_threads__one_device_many_askers),
	DG_TEST(test_fork__parent_and_child_both_go_on),
};

DG_TEST_MAIN("client/remote", cases)
