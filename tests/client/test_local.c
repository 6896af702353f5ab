/* Devices of this machine through the public calls: in workers, in this process, and names only. */
#include "client/devgate.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

static const dg_key LAUNCH = { .mode = DG_MODE_LAUNCH };

static dg_device parse(const char *text)
{
	dg_device device = { 0 };
	CU_ASSERT_EQUAL_FATAL(dg_device_parse(text, &device, NULL), DG_OK);
	return device;
}

static void clear_environment(void)
{
	static const char *const names[] = { "BURN_DEVICE", "DEVGATE_DEVICE",
		"DEVGATE_DEVICE_PRIORITY", "BURN_DEVICE_PRIORITY", "DEVGATE_GATEWAYS" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

/* The worker of this build. */
static bool use_worker(void)
{
	const char *build = getenv("DG_BUILD");
	char path[512];
	snprintf(path, sizeof(path), "%s/libexec/devgate/devgate-worker",
		build && *build ? build : "build/release");
	if (access(path, X_OK) != 0) {
		dg_test_skip("worker", "devgate-worker is not built");
		return false;
	}
	setenv("DEVGATE_WORKER", path, 1);
	return true;
}

/* A script in the worker's place. */
static void use_script(const char *text)
{
	char *folder = dg_test_temp_dir(), path[600];
	snprintf(path, sizeof(path), "%s/worker", folder);
	FILE *f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fprintf(f, "#!/bin/sh\n%s\n", text);
	fclose(f);
	CU_ASSERT_EQUAL(chmod(path, 0700), 0);
	setenv("DEVGATE_WORKER", path, 1);
	free(folder);
}

/* Each case that uses a worker of its own does so in a child, as workers are kept for good. */
static void in_child(int (*check)(void))
{
	int status = -1;
	pid_t child = fork();
	if (child == 0)
		_exit(check());
	CU_ASSERT_FATAL(child > 0);
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		printf("\n    the child ended with 0x%x\n", (unsigned)status);
	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Names only. */

static void test_identity__needs_no_driver(void)
{
	static const char *const texts[] = { "flex", "ndarray", "libtorch:cuda:7", "libtorch:mps",
		"autodiff(flex,balanced)" };
	setenv("DEVGATE_WORKER", "/nonexistent/devgate-worker", 1);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		dg_device_info info;
		dg_value value;
		dg_curve curve;
		dg_roofline roofline;
		dg_error error;
		size_t count = 99;
		CU_ASSERT_EQUAL(dg_describe(parse(texts[i]), NULL, &info, NULL), DG_OK);
		CU_ASSERT(info.name[0] != '\0' && dg_info_has_dtype(&info, DG_F32));
		CU_ASSERT(dg_device_equal(info.device, parse(texts[i])));
		CU_ASSERT_EQUAL(dg_performance_stats(
					parse(texts[i]), &LAUNCH, 1, NULL, &value, &count, NULL),
			DG_OK);
		CU_ASSERT_EQUAL(count, 0);
		CU_ASSERT_EQUAL(dg_memory_curve(parse(texts[i]), DG_READ, NULL, &curve, &error),
			DG_ENOMEASURE);
		CU_ASSERT_EQUAL(dg_device_roofline(parse(texts[i]), 1, DG_F32, 1, 0, NULL, NULL,
					&roofline, &error),
			DG_ENOMEASURE);
	}
	unsetenv("DEVGATE_WORKER");
}

static void test_identity__is_the_same_hardware_as_itself_alone(void)
{
	bool same = false;
	CU_ASSERT_EQUAL(
		dg_same_hardware(parse("flex"), parse("autodiff(flex)"), NULL, &same, NULL), DG_OK);
	CU_ASSERT(same);
	CU_ASSERT_EQUAL(
		dg_same_hardware(parse("flex"), parse("ndarray"), NULL, &same, NULL), DG_OK);
	CU_ASSERT_FALSE(same);
}

static void test_version__is_the_builds(void)
{
	CU_ASSERT_STRING_EQUAL(dg_version(), DG_VERSION);
}

/* The default device. */

static void test_default__a_forced_name_needs_no_driver(void)
{
	dg_device device;
	dg_error error;
	clear_environment();
	setenv("DEVGATE_WORKER", "/nonexistent/devgate-worker", 1);
	setenv("BURN_DEVICE", "NdArray", 1);
	CU_ASSERT_EQUAL(dg_default_device(NULL, &device, NULL), DG_OK);
	CU_ASSERT_EQUAL(device.variant, DG_NDARRAY);
	setenv("DEVGATE_DEVICE", "cuda:5", 1);
	CU_ASSERT_EQUAL(dg_default_device(NULL, &device, NULL), DG_OK);
	CU_ASSERT(device.variant == DG_CUDA && device.index == 5);
	unsetenv("DEVGATE_DEVICE");
	setenv("BURN_DEVICE", "rocm", 1);
	CU_ASSERT_EQUAL(dg_default_device(NULL, &device, &error), DG_ENOTENABLED);
	setenv("BURN_DEVICE", "toaster", 1);
	CU_ASSERT_EQUAL(dg_default_device(NULL, &device, &error), DG_EOVERRIDE);
	clear_environment();
	/* Nothing can be found out about this machine, so nothing local is enabled but names. */
	CU_ASSERT_EQUAL(dg_default_device(NULL, &device, NULL), DG_OK);
	CU_ASSERT_EQUAL(device.variant, DG_LIBTORCH);
	unsetenv("DEVGATE_WORKER");
}

static void test_default__is_the_processor_of_this_machine(void)
{
	dg_device device;
	dg_call call = DG_CALL_INIT;
	call.flags = DG_LOCAL_IN_PROCESS;
	clear_environment();
	CU_ASSERT_EQUAL(dg_default_device(&call, &device, NULL), DG_OK);
	CU_ASSERT_EQUAL(device.variant, DG_CPU);
	setenv("BURN_DEVICE", "cpu", 1);
	CU_ASSERT_EQUAL(dg_default_device(&call, &device, NULL), DG_OK);
	CU_ASSERT_EQUAL(device.variant, DG_CPU);
	clear_environment();
}

/* In this process. */

static void test_in_process__describe_and_measure(void)
{
	dg_call call = DG_CALL_INIT;
	dg_device_info info;
	dg_value value;
	dg_error error;
	size_t count = 0;
	call.flags = DG_LOCAL_IN_PROCESS;
	CU_ASSERT_EQUAL(dg_describe(parse("cpu"), &call, &info, &error), DG_OK);
	CU_ASSERT(info.name[0] != '\0' && !info.software);
	CU_ASSERT_EQUAL(dg_performance_stats(
				parse("autodiff(cpu)"), &LAUNCH, 1, &call, &value, &count, &error),
		DG_OK);
	CU_ASSERT_EQUAL(count, 1);
	CU_ASSERT(dg_key_equal(&value.key, &LAUNCH));
}

static void test_in_process__what_is_not_there(void)
{
	dg_call call = DG_CALL_INIT;
	dg_device_info info;
	dg_error error;
	call.flags = DG_LOCAL_IN_PROCESS;
	dg_err err = dg_describe(parse("metal:discrete:60000"), &call, &info, &error);
	CU_ASSERT(err == DG_ENOTENABLED || err == DG_ENODEVICE || err == DG_ENODRIVER);
}

static void test_in_process__listed_once_with_its_defaults(void)
{
	dg_call call = DG_CALL_INIT;
	dg_device_list *list = NULL;
	dg_error error;
	unsigned processors = 0;
	call.flags = DG_LOCAL_IN_PROCESS;
	clear_environment();
	CU_ASSERT_EQUAL_FATAL(dg_enumerate(NULL, &call, &list, &error), DG_OK);
	for (size_t i = 0; i < list->count; i++) {
		if (list->devices[i].device.variant != DG_CPU)
			continue;
		processors++;
		CU_ASSERT_STRING_EQUAL(list->devices[i].gateway, "");
		CU_ASSERT_EQUAL(list->devices[i].settings.int_dtype, DG_I32);
	}
	CU_ASSERT_EQUAL(processors, 1);
	dg_device_list_free(list);
}

static void *describe_often(void *user)
{
	unsigned *failures = user;
	dg_call call = DG_CALL_INIT;
	call.flags = DG_LOCAL_IN_PROCESS;
	for (int i = 0; i < 20; i++) {
		dg_device_info info;
		dg_device_list *list = NULL;
		if (dg_describe(parse("cpu"), &call, &info, NULL) ||
			dg_enumerate(NULL, &call, &list, NULL))
			++*failures;
		dg_device_list_free(list);
	}
	return NULL;
}

static void test_in_process__from_several_threads(void)
{
	pthread_t threads[4];
	unsigned failures[4] = { 0 };
	clear_environment();
	for (int i = 0; i < 4; i++)
		CU_ASSERT_FATAL(
			pthread_create(&threads[i], NULL, describe_often, &failures[i]) == 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		CU_ASSERT_EQUAL(failures[i], 0);
	}
}

/* In workers. */

static bool count_calls(uint32_t done, uint32_t total, const char *key, void *user)
{
	(void)done;
	(void)total;
	(void)key;
	++*(unsigned *)user;
	return true;
}

static int check_worker_measures(void)
{
	unsigned calls = 0;
	dg_call call = DG_CALL_INIT;
	dg_device_info info;
	dg_value value;
	size_t count = 0;
	bool same = false;
	call.progress = count_calls;
	call.user = &calls;
	if (dg_describe(parse("cpu"), NULL, &info, NULL) || !info.name[0])
		return 1;
	if (dg_performance_stats(parse("cpu"), &LAUNCH, 1, &call, &value, &count, NULL) ||
		count != 1)
		return 2;
	if (dg_same_hardware(parse("cpu"), parse("autodiff(cpu)"), NULL, &same, NULL) || !same)
		return 3;
	return calls ? 0 : 4;
}

static void test_worker__describes_and_measures(void)
{
	if (use_worker())
		in_child(check_worker_measures);
	unsetenv("DEVGATE_WORKER");
}

static bool refuse(uint32_t done, uint32_t total, const char *key, void *user)
{
	(void)done;
	(void)total;
	(void)key;
	(void)user;
	return false;
}

static int check_worker_cancelled(void)
{
	dg_call call = DG_CALL_INIT;
	dg_curve curve;
	dg_value value;
	size_t count = 0;
	call.progress = refuse;
	if (dg_memory_curve(parse("cpu"), DG_COPY, &call, &curve, NULL) != DG_ECANCELLED)
		return 1;
	/* The next call is not the worse for it. */
	return dg_performance_stats(parse("cpu"), &LAUNCH, 1, NULL, &value, &count, NULL) ||
	       count != 1;
}

static void test_worker__cancelled_by_progress(void)
{
	if (use_worker())
		in_child(check_worker_cancelled);
	unsetenv("DEVGATE_WORKER");
}

static int check_fork_of_a_user(void)
{
	dg_device_info info;
	int status = -1;
	if (dg_describe(parse("cpu"), NULL, &info, NULL))
		return 1;
	pid_t child = fork();
	if (child == 0)
		_exit(check_worker_measures());
	if (dg_describe(parse("cpu"), NULL, &info, NULL))
		return 2;
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status))
		return 3;
	dg_value value;
	size_t count;
	return dg_performance_stats(parse("cpu"), &LAUNCH, 1, NULL, &value, &count, NULL) ? 4 : 0;
}

static void test_worker__parent_and_child_of_fork_have_their_own(void)
{
	if (use_worker())
		in_child(check_fork_of_a_user);
	unsetenv("DEVGATE_WORKER");
}

static int check_no_worker(void)
{
	dg_device_info info;
	dg_error error;
	dg_device_list *list = NULL;
	const dg_enumerate_request request = { .no_configured = true };
	if (dg_describe(parse("cpu"), NULL, &info, &error) != DG_EWORKER)
		return 1;
	if (!strstr(error.text, "/nonexistent/devgate-worker"))
		return 2;
	if (dg_enumerate(&request, NULL, &list, NULL) || list->count || !list->problem_count)
		return 3;
	bool named = list->problems[0].error.code == DG_EWORKER && !list->problems[0].is_gateway;
	dg_device_list_free(list);
	return named ? 0 : 4;
}

static void test_worker__missing_is_a_problem_of_each_backend(void)
{
	setenv("DEVGATE_WORKER", "/nonexistent/devgate-worker", 1);
	in_child(check_no_worker);
	unsetenv("DEVGATE_WORKER");
}

static int check_dying_worker(void)
{
	dg_device_info info;
	dg_call call = DG_CALL_INIT;
	call.timeout_ms = 3000;
	dg_err err = dg_describe(parse("cpu"), &call, &info, NULL);
	return err == DG_EWORKER || err == DG_EPROTOCOL || err == DG_ETIMEOUT ? 0 : 1;
}

static void test_worker__that_dies_is_an_error(void)
{
	use_script("exit 3");
	in_child(check_dying_worker);
	use_script("kill -9 $$");
	in_child(check_dying_worker);
	unsetenv("DEVGATE_WORKER");
}

static int check_hanging_worker(void)
{
	dg_device_info info;
	dg_call call = DG_CALL_INIT;
	call.timeout_ms = 500;
	long long start = dg_test_now_ms();
	dg_err err = dg_describe(parse("cpu"), &call, &info, NULL);
	if (err != DG_ETIMEOUT)
		return 1;
	return dg_test_now_ms() - start < 4000 ? 0 : 2;
}

static void test_worker__that_hangs_ends_by_the_deadline(void)
{
	use_script("exec sleep 30");
	in_child(check_hanging_worker);
	unsetenv("DEVGATE_WORKER");
}

/* The doctor. */

static void test_doctor__finds_the_processor(void)
{
	dg_backend_report reports[DG_BACKENDS_MAX];
	size_t count = 0;
	bool found = false;
	dg_call call = DG_CALL_INIT;
	call.flags = DG_LOCAL_IN_PROCESS;
	CU_ASSERT_EQUAL(dg_doctor(&call, reports, &count, NULL), DG_OK);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(reports[i].name, "cpu") != 0)
			continue;
		found = true;
		CU_ASSERT_EQUAL(reports[i].code, DG_OK);
		CU_ASSERT_EQUAL(reports[i].devices, 1);
		CU_ASSERT(reports[i].looked[0] && reports[i].found[0] && !reports[i].advice[0]);
	}
	CU_ASSERT(found);
}

static int check_doctor_without_worker(void)
{
	dg_backend_report reports[DG_BACKENDS_MAX];
	size_t count = 0;
	if (dg_doctor(NULL, reports, &count, NULL) || count == 0)
		return 1;
	if (reports[0].code != DG_EWORKER || !strstr(reports[0].advice, "DEVGATE_WORKER"))
		return 2;
	return strstr(reports[0].looked, "/nonexistent/devgate-worker") ? 0 : 3;
}

static void test_doctor__says_what_to_do_without_a_worker(void)
{
	setenv("DEVGATE_WORKER", "/nonexistent/devgate-worker", 1);
	in_child(check_doctor_without_worker);
	unsetenv("DEVGATE_WORKER");
}

static const dg_test_case cases[] = {
	DG_TEST(test_identity__needs_no_driver),
	DG_TEST(test_identity__is_the_same_hardware_as_itself_alone),
	DG_TEST(test_version__is_the_builds),
	DG_TEST(test_default__a_forced_name_needs_no_driver),
	DG_TEST(test_worker__describes_and_measures),
	DG_TEST(test_worker__cancelled_by_progress),
	DG_TEST(test_worker__parent_and_child_of_fork_have_their_own),
	DG_TEST(test_worker__missing_is_a_problem_of_each_backend),
	DG_TEST(test_worker__that_dies_is_an_error),
	DG_TEST(test_worker__that_hangs_ends_by_the_deadline),
	DG_TEST(test_default__is_the_processor_of_this_machine),
	DG_TEST(test_in_process__describe_and_measure),
	DG_TEST(test_in_process__what_is_not_there),
	DG_TEST(test_in_process__listed_once_with_its_defaults),
	DG_TEST(test_in_process__from_several_threads),
	DG_TEST(test_doctor__finds_the_processor),
	DG_TEST(test_doctor__says_what_to_do_without_a_worker),
};

DG_TEST_MAIN("client/local", cases)
