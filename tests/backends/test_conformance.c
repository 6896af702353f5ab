/*
 * What every backend must do, on whatever devices this machine has. A backend without a device here
 * is skipped with its reason; DG_REQUIRE=cpu,… makes that a failure.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/core/clock.h"
#include "backends/core/engine.h"
#include "backends/core/registry.h"
#include "tests/test.h"

#define MS ((uint64_t)1000000)
#define KEYS 64

typedef void with_backend(const dg__backend *backend, const dg__device_list *list);

/* Each backend with its devices; skips those that have none. */
static void for_each_backend(with_backend *use)
{
	size_t count;
	const dg__backend *const *all = dg__registry_all(&count);
	for (size_t i = 0; i < count; i++) {
		dg__device_list list = { 0 };
		dg_error error = { 0 };
		dg_err err = dg__engine_detect(all[i], &list, &error);
		CU_ASSERT(!err || error.text[0] != '\0');
		if (err)
			dg_test_without(all[i]->name, error.text);
		else if (!list.count)
			dg_test_without(all[i]->name, "the driver has no device");
		else
			use(all[i], &list);
		free(list.entries);
	}
}

static void check_described(const dg__backend *backend, const dg__device_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const dg_device_info *info = &list->entries[i].info;
		CU_ASSERT_STRING_EQUAL(info->backend, backend->name);
		CU_ASSERT(info->name[0] && info->driver[0]);
		CU_ASSERT(info->shape_count <= DG_SHAPES_MAX);
		CU_ASSERT_EQUAL(info->present & DG_HAS_GATEWAY_INDEX, 0);
		CU_ASSERT(!(info->present & DG_HAS_HARDWARE) || info->hardware[0]);
		CU_ASSERT_TRUE(dg_info_has_dtype(info, list->entries[i].settings.float_dtype));
		CU_ASSERT_TRUE(dg_info_has_dtype(info, list->entries[i].settings.int_dtype));
		for (size_t j = 0; j < i; j++)
			CU_ASSERT_FALSE(
				dg_device_equal(info->device, list->entries[j].info.device));
	}
}

static void test_describe__every_device_is_whole(void)
{
	for_each_backend(check_described);
}

static size_t keys_of(const dg_device_info *info, dg_key *keys)
{
	static const char *const always[] = { "memory", "memory:read", "memory:write",
		"memory:copy:65536", "memory:read:8192", "memory:write:4",
		"memory:read:65536:resident", "memory:write:4096:resident",
		"memory:copy:100:resident", "launch" };
	size_t count = 0;
	for (unsigned d = 1; d < 64; d++)
		if (dg_dtype_text(d))
			keys[count++] = (dg_key){ .mode = DG_MODE_COMPUTE, .dtype = (dg_dtype)d };
	keys[count++] = (dg_key){
		.mode = DG_MODE_CMMA, .dtype = DG_F64, .accumulator = DG_F64, .m = 3, .n = 5, .k = 7
	};
	for (size_t i = 0; i < info->shape_count && count < KEYS - 12; i++)
		keys[count++] = (dg_key){ .mode = DG_MODE_CMMA,
			.dtype = info->shapes[i].dtype,
			.accumulator = info->shapes[i].accumulator,
			.m = info->shapes[i].m,
			.n = info->shapes[i].n,
			.k = info->shapes[i].k };
	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		CU_ASSERT_EQUAL_FATAL(dg_key_parse(always[i], &keys[count++], NULL), DG_OK);
	return count;
}

/* Whether the description promises that the key can be measured. */
static bool promised(const dg_device_info *info, const dg_key *key)
{
	if (key->mode == DG_MODE_COMPUTE)
		return dg_info_has_dtype(info, key->dtype);
	for (size_t i = 0; key->mode == DG_MODE_CMMA && i < info->shape_count; i++)
		if (info->shapes[i].dtype == key->dtype && info->shapes[i].m == key->m &&
			info->shapes[i].n == key->n && info->shapes[i].k == key->k)
			return true;
	return key->mode != DG_MODE_CMMA;
}

static void check_ok(const dg_value *value)
{
	double rate = 0;
	const dg_evidence *e = &value->evidence;
	CU_ASSERT_STRING_EQUAL(value->reason, "");
	CU_ASSERT(dg_value_rate(value, &rate) && rate > 0);
	CU_ASSERT(e->samples > 0 && e->iterations > 0);
	CU_ASSERT(e->best_ns > 0 && e->median_ns >= e->best_ns && e->spread >= 0);
	CU_ASSERT(e->clock_source[0] && e->shape[0] && e->driver[0]);
	CU_ASSERT_STRING_EQUAL(e->engine, DG__ENGINE_VERSION);
	CU_ASSERT(e->measured_at_ms > 0);
	CU_ASSERT(!dg_key_is_memory(&value->key) || (e->working_set_bytes > 0 && e->traffic[0]));
	if (value->key.mode == DG_MODE_LAUNCH)
		CU_ASSERT_EQUAL(value->ops_count, 1);
}

static void check_values(const dg__backend *backend, const dg__device_list *list)
{
	dg_key keys[KEYS];
	dg_value values[KEYS];
	for (uint32_t i = 0; i < list->count; i++) {
		const dg_device_info *info = &list->entries[i].info;
		size_t count = keys_of(info, keys);
		CU_ASSERT_EQUAL(
			dg__engine_measure(backend, i, keys, count, NULL, values, NULL), DG_OK);
		for (size_t k = 0; k < count; k++) {
			char text[DG_KEY_TEXT_MAX];
			dg_key_format(&keys[k], text, sizeof(text));
			dg_status expected =
				promised(info, &keys[k]) ? DG_STATUS_OK : DG_STATUS_UNSUPPORTED;
			if (values[k].status != expected)
				printf("%s %s: %s %s\n", backend->name, text,
					dg_status_name(values[k].status), values[k].reason);
			CU_ASSERT_EQUAL(values[k].status, expected);
			if (values[k].status == DG_STATUS_OK)
				check_ok(&values[k]);
			else
				CU_ASSERT(values[k].reason[0] && !values[k].ops_count &&
					  !values[k].duration_ns);
		}
	}
}

static void test_measure__every_key_is_ok_or_unsupported_with_a_reason(void)
{
	for_each_backend(check_values);
}

static void check_out_of_range(const dg__backend *backend, const dg__device_list *list)
{
	dg_key key = { .mode = DG_MODE_LAUNCH };
	dg_value value;
	dg_error error = { 0 };
	CU_ASSERT_EQUAL(dg__engine_measure(backend, (uint32_t)list->count + 100, &key, 1, NULL,
				&value, &error),
		DG_ENODEVICE);
	CU_ASSERT(error.text[0] != '\0');
	CU_ASSERT_EQUAL(value.status, DG_STATUS_FAILED);
	CU_ASSERT_EQUAL(value.code, DG_ENODEVICE);
}

static void test_measure__a_device_out_of_range_is_refused(void)
{
	for_each_backend(check_out_of_range);
}

static atomic_bool cancel;
static uint64_t cancelled_at_ns;

static void *cancel_soon(void *user)
{
	(void)user;
	dg__clock_sleep_ns(100 * MS);
	cancelled_at_ns = dg__clock_ns();
	atomic_store(&cancel, true);
	return NULL;
}

static void check_cancel(const dg__backend *backend, const dg__device_list *list)
{
	dg_key keys[DG_CURVE_MAX];
	dg_value values[DG_CURVE_MAX];
	pthread_t thread;
	dg__engine_options options = { .cancel = &cancel };
	size_t count = dg_curve_keys(DG_COPY, keys);
	(void)list;
	atomic_store(&cancel, false);
	unsetenv(DG__ENGINE_QUICK_VARIABLE);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
	CU_ASSERT_EQUAL(
		dg__engine_measure(backend, 0, keys, count, &options, values, NULL), DG_ECANCELLED);
	uint64_t end = dg__clock_ns();
	setenv(DG__ENGINE_QUICK_VARIABLE, "1", 1);
	pthread_join(thread, NULL);
	CU_ASSERT(end - cancelled_at_ns < 200 * MS);
	CU_ASSERT_EQUAL(values[count - 1].code, DG_ECANCELLED);
}

static void test_measure__cancelling_ends_it_within_200_ms(void)
{
	for_each_backend(check_cancel);
}

static void check_deadline(const dg__backend *backend, const dg__device_list *list)
{
	dg_key keys[DG_CURVE_MAX];
	dg_value values[DG_CURVE_MAX];
	uint64_t start = dg__clock_ns();
	dg__engine_options options = { .deadline_ns = start + 300 * MS };
	size_t count = dg_curve_keys(DG_READ, keys);
	(void)list;
	unsetenv(DG__ENGINE_QUICK_VARIABLE);
	CU_ASSERT_EQUAL(
		dg__engine_measure(backend, 0, keys, count, &options, values, NULL), DG_ETIMEOUT);
	uint64_t end = dg__clock_ns();
	setenv(DG__ENGINE_QUICK_VARIABLE, "1", 1);
	CU_ASSERT(end - start >= 300 * MS && end - start < 600 * MS);
	CU_ASSERT_EQUAL(values[count - 1].code, DG_ETIMEOUT);
}

static void test_measure__ends_by_its_deadline(void)
{
	for_each_backend(check_deadline);
}

static const dg_test_case cases[] = {
	DG_TEST(test_describe__every_device_is_whole),
	DG_TEST(test_measure__every_key_is_ok_or_unsupported_with_a_reason),
	DG_TEST(test_measure__a_device_out_of_range_is_refused),
	DG_TEST(test_measure__cancelling_ends_it_within_200_ms),
	DG_TEST(test_measure__ends_by_its_deadline),
};

int main(void)
{
	setenv(DG__ENGINE_QUICK_VARIABLE, "1", 1);
	return dg_test_run("backends/conformance", cases, sizeof(cases) / sizeof(cases[0]));
}
