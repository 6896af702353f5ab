/*
 * Both GPU vendors' backends over fake drivers with the vendors' own names, numbers and signatures:
 * what differs between the two is what is tested on both.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/core/clock.h"
#include "backends/core/engine.h"
#include "backends/cuda/cuda.h"
#include "backends/rocm/rocm.h"
#include "tests/test.h"

#define MS ((uint64_t)1000000)

/* One vendor, with fakes for its libraries. */
typedef struct bench {
	dg__gpu_vendor vendor;
	dg__gpu gpu;
	dg__backend backend;
	char driver[256], side[256];
	const char *libraries[2], *side_libraries[2];
} bench;

static const char *const cuda_libraries[] = { "fakecuda", "fakenvml" };
static const char *const rocm_libraries[] = { "fakehip", "fakersmi" };

static void path_of(const char *name, char *path, size_t size)
{
	const char *build = getenv("DG_BUILD");
	snprintf(path, size, "%s/tests/fakes/lib%s.so", build ? build : "build/release", name);
}

static void set_up(bench *b, const dg__gpu_vendor *vendor, const char *driver, const char *script)
{
	const char *const *names = vendor == &dg__gpu_cuda ? cuda_libraries : rocm_libraries;
	memset(b, 0, sizeof(*b));
	path_of(driver ? driver : names[0], b->driver, sizeof(b->driver));
	path_of(names[1], b->side, sizeof(b->side));
	b->libraries[0] = b->driver;
	b->side_libraries[0] = b->side;
	b->vendor = *vendor;
	b->vendor.libraries = b->libraries;
	b->vendor.rtc_libraries = b->libraries;
	dg__nvml_libraries = b->side_libraries;
	dg__rsmi_libraries = b->side_libraries;
	b->gpu = (dg__gpu)DG__GPU_INIT(&b->vendor);
	b->backend = (dg__backend)DG__GPU_BACKEND("fake", &b->gpu);
	setenv("FAKE_GPU", script, 1);
	setenv(DG__ENGINE_QUICK_VARIABLE, "1", 1);
}

static void tear_down(bench *b)
{
	dg__gpu_finish(&b->gpu);
	unsetenv("FAKE_GPU");
}

/* Contexts that the fake driver has given out and not had back. */
static int contexts_of(const bench *b)
{
	int (*count)(void) = NULL;
	void *library = dlopen(b->driver, RTLD_NOW | RTLD_LOCAL);
	void *address = library ? dlsym(library, "fake_contexts") : NULL;
	CU_ASSERT_PTR_NOT_NULL_FATAL(address);
	memcpy(&count, &address, sizeof(count));
	int contexts = count();
	dlclose(library);
	return contexts;
}

static const dg__gpu_vendor *const vendors[] = { &dg__gpu_cuda, &dg__gpu_rocm };
#define EACH_VENDOR(v) for (size_t v = 0; v < DG__GPU_COUNT(vendors); v++)

/* Three ways to have no device. */

static void test_enumerate__a_missing_driver_says_what_was_looked_for(void)
{
	EACH_VENDOR(v)
	{
		bench b;
		uint32_t count = 77;
		dg_error error = { 0 };
		set_up(&b, vendors[v], "nowhere", "");
		CU_ASSERT_EQUAL(b.backend.enumerate(&b.backend, &count, &error), DG_ENODRIVER);
		CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "libnowhere.so"));
		CU_ASSERT_EQUAL(count, 77);
		tear_down(&b);
	}
}

static void test_enumerate__a_driver_without_devices_is_no_failure(void)
{
	EACH_VENDOR(v)
	{
		bench b;
		uint32_t count = 77;
		dg_error error = { 0 };
		set_up(&b, vendors[v], NULL, "devices=0");
		setenv("CUDA_VISIBLE_DEVICES", "7", 1);
		CU_ASSERT_EQUAL(b.backend.enumerate(&b.backend, &count, &error), DG_OK);
		unsetenv("CUDA_VISIBLE_DEVICES");
		CU_ASSERT_EQUAL(count, 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "CUDA_VISIBLE_DEVICES=7"));
		tear_down(&b);
	}
}

static void test_enumerate__a_driver_that_does_not_start_is_named_with_its_error(void)
{
	EACH_VENDOR(v)
	{
		bench b;
		uint32_t count = 77;
		dg_error error = { 0 };
		set_up(&b, vendors[v], NULL, "init=999");
		CU_ASSERT_EQUAL(b.backend.enumerate(&b.backend, &count, &error), DG_EDRIVER);
		CU_ASSERT_EQUAL(error.native_code, 999);
		CU_ASSERT(strstr(error.text, "UNKNOWN") || strstr(error.text, "Unknown"));
		setenv("FAKE_GPU", "", 1);
		CU_ASSERT_EQUAL(b.backend.enumerate(&b.backend, &count, &error), DG_OK);
		CU_ASSERT_EQUAL(count, 2);
		tear_down(&b);
	}
}

static void test_enumerate__a_driver_that_lacks_a_call_is_named_with_it(void)
{
	EACH_VENDOR(v)
	{
		bench b;
		uint32_t count;
		dg_error error = { 0 };
		set_up(&b, vendors[v], "fakehalf", "");
		CU_ASSERT_EQUAL(b.backend.enumerate(&b.backend, &count, &error), DG_EDRIVER);
		CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "DriverGetVersion"));
		tear_down(&b);
	}
}

/* Devices. */

static void test_describe__every_device_is_its_own(void)
{
	EACH_VENDOR(v)
	{
		bench b;
		dg_device_info info[2];
		set_up(&b, vendors[v], NULL, "");
		for (uint32_t i = 0; i < 2; i++)
			CU_ASSERT_EQUAL_FATAL(
				b.backend.describe(&b.backend, i, &info[i], NULL), DG_OK);
		CU_ASSERT_STRING_EQUAL(info[1].name, "Fake GPU 1");
		CU_ASSERT_STRING_EQUAL(info[1].pci, "0000:27:00.0");
		CU_ASSERT_STRING_EQUAL(info[0].architecture, v ? "gfx942" : "sm_90");
		CU_ASSERT_EQUAL(info[0].units, 2);
		CU_ASSERT_EQUAL(info[0].total_bytes, (uint64_t)1 << 30);
		CU_ASSERT(info[0].present & DG_HAS_FREE);
		CU_ASSERT(!strncmp(info[0].hardware, "uuid:", 5));
		CU_ASSERT_STRING_NOT_EQUAL(info[0].hardware, info[1].hardware);
		CU_ASSERT(!(info[0].present & DG_HAS_PARENT));
		CU_ASSERT_STRING_EQUAL(info[0].driver, v ? "HIP 6.2" : "CUDA 13.0, driver 580.1");
		CU_ASSERT_EQUAL(contexts_of(&b), 0);
		tear_down(&b);
	}
}

static void test_describe__an_index_out_of_range_is_refused(void)
{
	EACH_VENDOR(v)
	{
		bench b;
		dg_device_info info;
		dg_error error = { 0 };
		set_up(&b, vendors[v], NULL, "");
		CU_ASSERT_EQUAL(b.backend.describe(&b.backend, 2, &info, &error), DG_ENODEVICE);
		CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "it has 2"));
		tear_down(&b);
	}
}

static void test_describe__zero_uuids_fall_back_to_the_address(void)
{
	EACH_VENDOR(v)
	{
		bench b;
		dg_device_info info[2];
		dg_telemetry t;
		set_up(&b, vendors[v], NULL, "zero_uuid=1");
		for (uint32_t i = 0; i < 2; i++) {
			CU_ASSERT_EQUAL_FATAL(
				b.backend.describe(&b.backend, i, &info[i], NULL), DG_OK);
			CU_ASSERT(!(info[i].present & DG_HAS_UUID) && !info[i].uuid[0]);
		}
		CU_ASSERT_STRING_NOT_EQUAL(info[0].pci, info[1].pci);
		CU_ASSERT(!info[0].hardware[0] || strcmp(info[0].hardware, info[1].hardware) != 0);
		CU_ASSERT_EQUAL(b.backend.telemetry(&b.backend, 1, &t, NULL), DG_OK);
		CU_ASSERT_EQUAL(t.temperature_celsius, 41);
		tear_down(&b);
	}
}

static void test_describe__a_slice_has_a_parent(void)
{
	bench b;
	dg_device_info info;
	set_up(&b, &dg__gpu_cuda, NULL, "mig=1");
	CU_ASSERT_EQUAL_FATAL(b.backend.describe(&b.backend, 1, &info, NULL), DG_OK);
	CU_ASSERT(info.present & DG_HAS_PARENT);
	CU_ASSERT_STRING_EQUAL(info.parent, "11111111-2222-3333-4444-555555555555");
	CU_ASSERT_STRING_NOT_EQUAL(info.parent, info.uuid);
	CU_ASSERT(!strncmp(info.hardware, "uuid:", 5));
	tear_down(&b);
}

static void test_describe__a_device_off_the_bus_is_lost(void)
{
	bench b;
	dg_device_info info;
	dg__device_list list = { 0 };
	set_up(&b, &dg__gpu_cuda, NULL, "lost=0");
	CU_ASSERT_EQUAL(b.backend.describe(&b.backend, 0, &info, NULL), DG_ELOST);
	CU_ASSERT_EQUAL_FATAL(dg__engine_detect(&b.backend, &list, NULL), DG_OK);
	CU_ASSERT_EQUAL(list.count, 1);
	CU_ASSERT_STRING_EQUAL(list.entries[0].info.name, "Fake GPU 1");
	free(list.entries);
	tear_down(&b);
}

static void test_describe__without_the_management_library_less_is_known(void)
{
	EACH_VENDOR(v)
	{
		bench b;
		dg_device_info info;
		dg_telemetry t;
		dg_error error = { 0 };
		set_up(&b, vendors[v], NULL, "");
		b.side_libraries[0] = "libnowhere.so";
		CU_ASSERT_EQUAL_FATAL(b.backend.describe(&b.backend, 0, &info, NULL), DG_OK);
		CU_ASSERT(!(info.present & DG_HAS_FREE));
		CU_ASSERT_EQUAL(b.backend.telemetry(&b.backend, 0, &t, &error), DG_ENOTSUP);
		CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "libnowhere.so"));
		tear_down(&b);
	}
}

/* The management libraries count backwards here: only UUID and address lead to the right device. */
static void test_telemetry__is_joined_by_identity_and_not_by_index(void)
{
	EACH_VENDOR(v)
	{
		bench b;
		set_up(&b, vendors[v], NULL, "reasons=72");
		for (uint32_t i = 0; i < 2; i++) {
			dg_telemetry t;
			CU_ASSERT_EQUAL_FATAL(b.backend.telemetry(&b.backend, i, &t, NULL), DG_OK);
			CU_ASSERT_EQUAL(t.temperature_celsius, 40 + i);
			CU_ASSERT_EQUAL(t.load, 0.25);
			CU_ASSERT_EQUAL(t.clock_hz, v ? 2.1e9 : 1.98e9);
			CU_ASSERT(
				(t.present & DG_TELEMETRY_POWER) == (v ? DG_TELEMETRY_POWER : 0u));
			CU_ASSERT(v || strstr(t.throttle_reason, "thermal"));
		}
		tear_down(&b);
	}
}

static void test_telemetry__both_layouts_of_clocks_are_read(void)
{
	bench b;
	dg_telemetry t;
	set_up(&b, &dg__gpu_rocm, NULL, "rsmi5=1");
	CU_ASSERT_EQUAL_FATAL(b.backend.telemetry(&b.backend, 0, &t, NULL), DG_OK);
	CU_ASSERT_EQUAL(t.clock_hz, 2.1e9);
	tear_down(&b);
}

/* Work. */

static void test_measure__figures_come_out_verified(void)
{
	static const char *const texts[] = { "compute:f32", "compute:i32", "memory:read",
		"memory:write", "memory", "memory:copy:8192", "memory:write:8192", "memory:write:4",
		"memory:read:8192", "memory:read:65536:resident", "memory:write:65536:resident",
		"memory:copy:100:resident", "launch" };
	EACH_VENDOR(v)
	{
		bench b;
		dg_key keys[DG__GPU_COUNT(texts)];
		dg_value values[DG__GPU_COUNT(texts)];
		set_up(&b, vendors[v], NULL, "");
		for (size_t i = 0; i < DG__GPU_COUNT(texts); i++)
			CU_ASSERT_EQUAL_FATAL(dg_key_parse(texts[i], &keys[i], NULL), DG_OK);
		CU_ASSERT_EQUAL(dg__engine_measure(&b.backend, 1, keys, DG__GPU_COUNT(texts), NULL,
					values, NULL),
			DG_OK);
		for (size_t i = 0; i < DG__GPU_COUNT(texts); i++) {
			/* A fake's figures may be beyond what the chip it plays can do. */
			bool fine = values[i].status == DG_STATUS_OK ||
				    values[i].status == DG_STATUS_REFUSED;
			if (!fine)
				printf("%s: %s\n", texts[i], values[i].reason);
			CU_ASSERT_TRUE(fine);
		}
		CU_ASSERT_EQUAL(contexts_of(&b), 0);
		tear_down(&b);
	}
}

static void test_measure__a_kernel_that_does_not_compile_leaves_the_others_alone(void)
{
	EACH_VENDOR(v)
	{
		bench b;
		dg_key key = { .mode = DG_MODE_LAUNCH };
		dg_value value;
		set_up(&b, vendors[v], NULL, "rtc=6");
		CU_ASSERT_EQUAL(
			dg__engine_measure(&b.backend, 0, &key, 1, NULL, &value, NULL), DG_OK);
		CU_ASSERT_EQUAL(value.status, DG_STATUS_FAILED);
		CU_ASSERT_EQUAL(value.code, DG_EDRIVER);
		CU_ASSERT_PTR_NOT_NULL(strstr(value.reason, "line 7 is wrong"));
		CU_ASSERT_EQUAL(contexts_of(&b), 0);
		tear_down(&b);
	}
}

static void test_measure__a_failing_launch_is_the_keys_error(void)
{
	EACH_VENDOR(v)
	{
		bench b;
		dg_key key = { .mode = DG_MODE_LAUNCH };
		dg_value value;
		set_up(&b, vendors[v], NULL, "launch=719");
		CU_ASSERT_EQUAL(
			dg__engine_measure(&b.backend, 0, &key, 1, NULL, &value, NULL), DG_OK);
		CU_ASSERT_EQUAL(value.code, DG_EDRIVER);
		CU_ASSERT(strstr(value.reason, "LAUNCH_FAILED") ||
			  strstr(value.reason, "LaunchFailure"));
		tear_down(&b);
	}
}

static void test_time__work_that_hangs_ends_by_its_deadline(void)
{
	EACH_VENDOR(v)
	{
		bench b;
		dg_key key = { .mode = DG_MODE_LAUNCH };
		dg_value value;
		set_up(&b, vendors[v], NULL, "hang=1");
		uint64_t start = dg__clock_ns();
		dg__engine_options options = { .deadline_ns = start + 100 * MS };
		CU_ASSERT_EQUAL(dg__engine_measure(&b.backend, 0, &key, 1, &options, &value, NULL),
			DG_ETIMEOUT);
		CU_ASSERT(dg__clock_ns() - start < 2000 * MS);
		tear_down(&b);
	}
}

static dg_err count_launches(bench *b, uint32_t repeat, bool graph, uint32_t *ret_count)
{
	static const dg__stop never;
	uint32_t zero = 0;
	size_t shapes = 0;
	dg__dev *dev = NULL;
	dg__buf *buf = NULL;
	dg__kernel *kernel = NULL;
	dg__shape list[DG__SHAPES_PER_KERNEL];
	dg__ask ask = { .kernel = DG__KERNEL_EMPTY };
	dg__timing timing = { 0 };
	const dg__backend *be = &b->backend;
	CU_ASSERT_EQUAL_FATAL(be->open(be, 0, &dev, NULL), DG_OK);
	CU_ASSERT_EQUAL(contexts_of(b), 1);
	CU_ASSERT_EQUAL_FATAL(be->buf_create(dev, 4, &never, &buf, NULL), DG_OK);
	CU_ASSERT_EQUAL(be->buf_write(dev, buf, 0, &zero, sizeof(zero), NULL), DG_OK);
	CU_ASSERT_EQUAL_FATAL(be->shapes(dev, &ask, list, &shapes, NULL), DG_OK);
	CU_ASSERT_EQUAL_FATAL(be->kernel_create(dev, DG__KERNEL_EMPTY, list, &kernel, NULL), DG_OK);
	dg__launch launch = { .state = buf, .repeat = repeat, .graph = graph };
	dg_err err = be->time(dev, kernel, &launch, &never, &timing, NULL);
	CU_ASSERT(err || timing.host_ns > 0);
	CU_ASSERT_EQUAL(be->buf_read(dev, buf, 0, ret_count, sizeof(*ret_count), NULL), DG_OK);
	be->kernel_destroy(dev, kernel);
	be->buf_destroy(dev, buf);
	be->close(dev);
	CU_ASSERT_EQUAL(contexts_of(b), 0);
	return err;
}

static void test_time__graphs_hold_every_launch(void)
{
	EACH_VENDOR(v)
	{
		bench b;
		uint32_t count = 0;
		set_up(&b, vendors[v], NULL, "");
		CU_ASSERT_EQUAL(count_launches(&b, 2500, false, &count), DG_OK);
		CU_ASSERT_EQUAL(count, 2500);
		CU_ASSERT_EQUAL(count_launches(&b, 2500, true, &count), DG_OK);
		CU_ASSERT_EQUAL(count, 2500);
		tear_down(&b);
	}
}

/* Tables. */

static void test_attributes__numbers_of_the_other_vendor_are_unknown(void)
{
	EACH_VENDOR(v)
	{
		bench b;
		dg_device_info info;
		dg_error error = { 0 };
		set_up(&b, vendors[v], NULL, "");
		memcpy(b.vendor.attributes, vendors[!v]->attributes, sizeof(b.vendor.attributes));
		CU_ASSERT_EQUAL(b.backend.describe(&b.backend, 0, &info, &error), DG_EDRIVER);
		CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "multiprocessors"));
		tear_down(&b);
	}
}

static void test_uuid_text__bytes_that_are_all_alike_are_no_identity(void)
{
	unsigned char zeros[16] = { 0 }, ones[16], mixed[16] = { 0x00, 0x01, 0xab };
	char text[64];
	memset(ones, 0xff, sizeof(ones));
	dg__gpu_uuid_text(zeros, text);
	CU_ASSERT_STRING_EQUAL(text, "");
	dg__gpu_uuid_text(ones, text);
	CU_ASSERT_STRING_EQUAL(text, "");
	dg__gpu_uuid_text(mixed, text);
	CU_ASSERT_STRING_EQUAL(text, "0001ab00-0000-0000-0000-000000000000");
}

static const dg_test_case cases[] = {
	DG_TEST(test_enumerate__a_missing_driver_says_what_was_looked_for),
	DG_TEST(test_enumerate__a_driver_without_devices_is_no_failure),
	DG_TEST(test_enumerate__a_driver_that_does_not_start_is_named_with_its_error),
	DG_TEST(test_enumerate__a_driver_that_lacks_a_call_is_named_with_it),
	DG_TEST(test_describe__every_device_is_its_own),
	DG_TEST(test_describe__an_index_out_of_range_is_refused),
	DG_TEST(test_describe__zero_uuids_fall_back_to_the_address),
	DG_TEST(test_describe__a_slice_has_a_parent),
	DG_TEST(test_describe__a_device_off_the_bus_is_lost),
	DG_TEST(test_describe__without_the_management_library_less_is_known),
	DG_TEST(test_telemetry__is_joined_by_identity_and_not_by_index),
	DG_TEST(test_telemetry__both_layouts_of_clocks_are_read),
	DG_TEST(test_measure__figures_come_out_verified),
	DG_TEST(test_measure__a_kernel_that_does_not_compile_leaves_the_others_alone),
	DG_TEST(test_measure__a_failing_launch_is_the_keys_error),
	DG_TEST(test_time__work_that_hangs_ends_by_its_deadline),
	DG_TEST(test_time__graphs_hold_every_launch),
	DG_TEST(test_attributes__numbers_of_the_other_vendor_are_unknown),
	DG_TEST(test_uuid_text__bytes_that_are_all_alike_are_no_identity),
};
DG_TEST_MAIN("backends/gpu", cases)
