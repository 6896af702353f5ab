/* How the engine measures, judges and ends, on a scripted backend. */
#include "backends/core/engine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/core/clock.h"
#include "backends/core/registry.h"
#include "tests/fakes/fake_backend.h"
#include "tests/test.h"

#define MS ((uint64_t)1000000)

static const dg_key f32 = { .mode = DG_MODE_COMPUTE, .dtype = DG_F32 };
static const dg_key i32 = { .mode = DG_MODE_COMPUTE, .dtype = DG_I32 };
static const dg_key u32 = { .mode = DG_MODE_COMPUTE, .dtype = DG_U32 };
static const dg_key f16 = { .mode = DG_MODE_COMPUTE, .dtype = DG_F16 };
static const dg_key launch_key = { .mode = DG_MODE_LAUNCH };
static const dg_key copy = { .mode = DG_MODE_MEMORY, .access = DG_COPY };
static const dg_key read_key = { .mode = DG_MODE_MEMORY, .access = DG_READ };
static const dg_key write_key = { .mode = DG_MODE_MEMORY, .access = DG_WRITE };

static dg_err measure_with(dg__fake *fake, const dg_key *keys, size_t count,
	const dg__engine_options *options, dg_value *values)
{
	dg_err err = dg__engine_measure(&fake->backend, 0, keys, count, options, values, NULL);
	CU_ASSERT_EQUAL(fake->opened, fake->closed);
	CU_ASSERT_EQUAL(fake->buffers, 0);
	CU_ASSERT_EQUAL(fake->kernels, 0);
	return err;
}

static dg_value measure_one(dg__fake *fake, dg_key key)
{
	dg_value value;
	CU_ASSERT_EQUAL(measure_with(fake, &key, 1, NULL, &value), DG_OK);
	return value;
}

static void assert_rate(const dg_value *value, double expected)
{
	double rate = 0;
	CU_ASSERT_EQUAL(value->status, DG_STATUS_OK);
	CU_ASSERT_STRING_EQUAL(value->reason, "");
	CU_ASSERT_TRUE(dg_value_rate(value, &rate));
	CU_ASSERT_DOUBLE_EQUAL(rate / expected, 1, 0.01);
}

static void assert_failed(const dg_value *value, dg_status status, dg_err code)
{
	double rate;
	CU_ASSERT_EQUAL(value->status, status);
	CU_ASSERT_EQUAL(value->code, code);
	CU_ASSERT(value->reason[0] != '\0');
	CU_ASSERT_EQUAL(value->ops_count, 0);
	CU_ASSERT_EQUAL(value->duration_ns, 0);
	CU_ASSERT_FALSE(dg_value_rate(value, &rate));
}

/* Figures. */

static void test_measure__counts_two_operations_per_fma_and_one_per_multiplication(void)
{
	dg__fake fake;
	dg__fake_init(&fake);
	dg_value f = measure_one(&fake, f32), i = measure_one(&fake, i32);
	/* Four items a step, a step takes 1000 ns in the best shape. */
	assert_rate(&f, 4 * 2 / 1e-6);
	assert_rate(&i, 4 / 1e-6);
}

static void test_measure__unsigned_integers_use_the_signed_kernel(void)
{
	dg__fake fake;
	dg__fake_init(&fake);
	dg_value u = measure_one(&fake, u32);
	assert_rate(&u, 4 / 1e-6);
	CU_ASSERT_EQUAL(u.key.dtype, DG_U32);
}

static void test_measure__signed_and_unsigned_share_one_measurement(void)
{
	dg__fake fake;
	const dg_key keys[] = { i32, u32 };
	dg_value v[2];
	dg__fake_init(&fake);
	fake.fault = DG__FAKE_WRONG;
	fake.fault_kernel = DG__KERNEL_ARITH_I32;
	CU_ASSERT_EQUAL(measure_with(&fake, keys, 2, NULL, v), DG_OK);
	assert_failed(&v[0], DG_STATUS_FAILED, DG_EMISMATCH);
	assert_failed(&v[1], DG_STATUS_FAILED, DG_EMISMATCH);
	dg__fake_init(&fake);
	CU_ASSERT_EQUAL(measure_with(&fake, keys, 2, NULL, v), DG_OK);
	CU_ASSERT_EQUAL(v[1].key.dtype, DG_U32);
	CU_ASSERT_EQUAL(v[0].duration_ns, v[1].duration_ns);
	CU_ASSERT_EQUAL(fake.opened, 1);
	CU_ASSERT_EQUAL(v[0].evidence.measured_at_ms, v[1].evidence.measured_at_ms);
	assert_rate(&v[1], 4 / 1e-6);
}

static void test_measure__memory_counts_elements_and_copies_twice(void)
{
	dg__fake fake;
	dg__fake_init(&fake);
	dg_value r = measure_one(&fake, read_key), w = measure_one(&fake, write_key);
	dg_value c = measure_one(&fake, copy);
	assert_rate(&r, 1e9 / 4);
	assert_rate(&w, 1e9 / 4);
	assert_rate(&c, 2e9 / 4);
	CU_ASSERT_EQUAL(r.ops_count * 4, fake.room_bytes / 2);
	CU_ASSERT_EQUAL(c.ops_count, 2 * r.ops_count);
	CU_ASSERT_STRING_EQUAL(r.evidence.traffic, "read");
	CU_ASSERT_STRING_EQUAL(w.evidence.traffic, "write");
	CU_ASSERT_STRING_EQUAL(c.evidence.traffic, "read+write");
}

static void test_measure__working_sets_count_one_pass(void)
{
	static const uint64_t sizes[] = { 4, 100, 4096, 65536 };
	for (size_t i = 0; i < 4; i++) {
		dg__fake fake;
		dg__fake_init(&fake);
		fake.byte_ns = 100;
		fake.launch_ns = 0;
		dg_key key = { .mode = DG_MODE_WORKING_SET, .access = DG_READ, .bytes = sizes[i] };
		dg_value v = measure_one(&fake, key);
		assert_rate(&v, 1e7 / 4);
		CU_ASSERT_EQUAL(v.ops_count, sizes[i] / 4);
		CU_ASSERT_EQUAL(v.evidence.working_set_bytes, fake.room_bytes / 2);
		key.mode = DG_MODE_RESIDENT;
		v = measure_one(&fake, key);
		assert_rate(&v, 1e7 / 4);
		CU_ASSERT_EQUAL(v.evidence.working_set_bytes, sizes[i]);
	}
}

static void test_measure__short_iterations_are_told_in_groups(void)
{
	dg__fake fake;
	dg__fake_init(&fake);
	fake.byte_ns = 0.01;
	fake.launch_ns = 0;
	dg_value v = measure_one(
		&fake, (dg_key){ .mode = DG_MODE_RESIDENT, .access = DG_READ, .bytes = 256 });
	assert_rate(&v, 1e11 / 4);
	CU_ASSERT(v.duration_ns >= 100);
	CU_ASSERT_EQUAL(v.ops_count % 64, 0);
}

static void test_measure__a_launch_counts_one(void)
{
	dg__fake fake;
	dg__fake_init(&fake);
	fake.launch_ns = 2500;
	dg_value v = measure_one(&fake, launch_key);
	CU_ASSERT_EQUAL(v.ops_count, 1);
	CU_ASSERT_EQUAL(v.duration_ns, 2500);
}

static void test_measure__the_best_shape_is_chosen_and_told(void)
{
	for (unsigned best = 0; best < 3; best++) {
		dg__fake fake;
		char text[16];
		dg__fake_init(&fake);
		for (unsigned i = 0; i < 3; i++)
			fake.shape_factor[i] = i == best ? 1 : 2;
		dg_value v = measure_one(&fake, f32);
		snprintf(text, sizeof(text), "shape=%u", best);
		assert_rate(&v, 8e6);
		CU_ASSERT_STRING_EQUAL(v.evidence.shape, text);
	}
}

static void test_measure__evidence_is_filled_in(void)
{
	dg__fake fake;
	dg__fake_init(&fake);
	fake.jitter = 0.1;
	fake.clock_hz = 2e9;
	int64_t before = dg__clock_unix_ms();
	dg_value v = measure_one(&fake, f32);
	const dg_evidence *e = &v.evidence;
	CU_ASSERT(e->samples >= 5);
	CU_ASSERT(e->iterations >= 1);
	CU_ASSERT_EQUAL(e->best_ns, v.duration_ns);
	CU_ASSERT(e->median_ns > e->best_ns);
	CU_ASSERT_DOUBLE_EQUAL(
		e->spread, (double)(e->median_ns - e->best_ns) / (double)e->best_ns, 1e-3);
	CU_ASSERT_STRING_EQUAL(e->clock_source, "host");
	CU_ASSERT_EQUAL(e->present & DG_HAS_CLOCK, DG_HAS_CLOCK);
	CU_ASSERT_EQUAL(e->clock_hz, 2e9);
	CU_ASSERT_EQUAL(e->present & (DG_HAS_POWER | DG_HAS_TEMPERATURE | DG_HAS_SUSTAINED), 0);
	CU_ASSERT_STRING_EQUAL(e->driver, "fake 1.0");
	CU_ASSERT_STRING_EQUAL(e->engine, DG__ENGINE_VERSION);
	CU_ASSERT(e->measured_at_ms >= before);
	CU_ASSERT_EQUAL(e->working_set_bytes, 0);
	CU_ASSERT_STRING_EQUAL(e->traffic, "");
}

static void test_measure__device_time_is_preferred(void)
{
	dg__fake fake;
	dg__fake_init(&fake);
	fake.device_clock = true;
	dg_value v = measure_one(&fake, f32);
	assert_rate(&v, 2 * 8e6);
	CU_ASSERT_STRING_EQUAL(v.evidence.clock_source, "device");
	CU_ASSERT(v.evidence.present & DG_HAS_DEVICE_TIME);
	CU_ASSERT_EQUAL(v.evidence.flags & DG_FLAG_CLOCKS_DISAGREE, 0);
}

static void test_measure__a_device_busy_for_longer_than_waited_is_marked(void)
{
	dg__fake fake;
	dg__fake_init(&fake);
	fake.device_lies = true;
	dg_value v = measure_one(&fake, f32);
	CU_ASSERT(v.evidence.flags & DG_FLAG_CLOCKS_DISAGREE);
}

static void test_measure__sustained_comes_on_request(void)
{
	dg__fake fake;
	dg_value v;
	dg__engine_options options = { .sustained = true };
	dg__fake_init(&fake);
	fake.jitter = 0.2;
	CU_ASSERT_EQUAL(measure_with(&fake, &f32, 1, &options, &v), DG_OK);
	CU_ASSERT(v.evidence.present & DG_HAS_SUSTAINED);
	CU_ASSERT(v.evidence.sustained_per_s > 0.8 * 8e6);
	CU_ASSERT(v.evidence.sustained_per_s < 8e6);
}

/* Marks. */

static void test_measure__a_clock_that_falls_is_marked_throttled(void)
{
	dg__fake fake;
	dg__fake_init(&fake);
	fake.clock_hz = 2e9;
	fake.clock_after_hz = 1e9;
	dg_value v = measure_one(&fake, f32);
	assert_rate(&v, 8e6);
	CU_ASSERT(v.evidence.flags & DG_FLAG_THROTTLED);
	CU_ASSERT(v.evidence.throttle_reason[0] != '\0');
}

static void test_measure__other_load_is_marked_disturbed(void)
{
	dg__fake fake;
	dg__fake_init(&fake);
	fake.clock_hz = 2e9;
	dg_value calm = measure_one(&fake, f32);
	CU_ASSERT_EQUAL(calm.evidence.flags & DG_FLAG_DISTURBED, 0);
	fake.other_per_look_s = 100;
	dg_value busy = measure_one(&fake, f32);
	assert_rate(&busy, 8e6);
	CU_ASSERT(busy.evidence.flags & DG_FLAG_DISTURBED);
	CU_ASSERT_EQUAL(busy.evidence.busy_fraction, 1);
}

/* Refusals. */

static void test_measure__more_than_the_bound_is_refused_with_a_reason(void)
{
	dg__fake fake;
	dg__fake_init(&fake);
	fake.bound_per_s = 4e6;
	dg_value v = measure_one(&fake, f32);
	assert_failed(&v, DG_STATUS_REFUSED, DG_EIMPLAUSIBLE);
	CU_ASSERT_PTR_NOT_NULL(strstr(v.reason, "at most"));
	fake.bound_per_s = 8e6;
	v = measure_one(&fake, f32);
	assert_rate(&v, 8e6);
}

static void test_measure__memory_bounds_are_in_bytes(void)
{
	dg__fake fake;
	dg__fake_init(&fake);
	fake.bound_per_s = 5e8;
	dg_value v = measure_one(&fake, read_key);
	assert_failed(&v, DG_STATUS_REFUSED, DG_EIMPLAUSIBLE);
	fake.bound_per_s = 1e9;
	v = measure_one(&fake, read_key);
	assert_rate(&v, 1e9 / 4);
}

static void test_measure__what_a_device_lacks_is_unsupported_with_a_reason(void)
{
	static const dg_key cmma = { .mode = DG_MODE_CMMA,
		.dtype = DG_F16,
		.accumulator = DG_F32,
		.m = 16,
		.n = 16,
		.k = 16 };
	static const dg_key e4m3 = { .mode = DG_MODE_COMPUTE, .dtype = DG_E4M3 };
	dg__fake fake;
	dg__fake_init(&fake);
	dg_value values[] = { measure_one(&fake, f16), measure_one(&fake, cmma),
		measure_one(&fake, e4m3) };
	for (size_t i = 0; i < 3; i++)
		assert_failed(&values[i], DG_STATUS_UNSUPPORTED, DG_ENOTSUP);
}

static void test_measure__working_sets_that_do_not_fit_are_unsupported(void)
{
	dg__fake fake;
	dg__fake_init(&fake);
	dg_value v = measure_one(&fake, (dg_key){ .mode = DG_MODE_WORKING_SET,
						.access = DG_READ,
						.bytes = (uint64_t)1 << 32 });
	assert_failed(&v, DG_STATUS_UNSUPPORTED, DG_ENOTSUP);
	v = measure_one(&fake,
		(dg_key){
			.mode = DG_MODE_RESIDENT, .access = DG_COPY, .bytes = (uint64_t)1 << 32 });
	assert_failed(&v, DG_STATUS_UNSUPPORTED, DG_ENOTSUP);
}

static const dg_key *const verified[] = { &f32, &i32, &read_key, &write_key, &copy, &launch_key };
static const dg__kernel_id verified_kernels[] = { DG__KERNEL_ARITH_F32, DG__KERNEL_ARITH_I32,
	DG__KERNEL_READ, DG__KERNEL_WRITE, DG__KERNEL_COPY, DG__KERNEL_EMPTY };

/* From the start, and only once the kernel has been proved and is being timed. */
static void assert_fault_found(dg__fake_fault fault, uint32_t after)
{
	for (size_t i = 0; i < sizeof(verified) / sizeof(verified[0]); i++) {
		dg__fake fake;
		dg__fake_init(&fake);
		fake.fault = fault;
		fake.fault_after = after;
		dg_value v = measure_one(&fake, *verified[i]);
		assert_failed(&v, DG_STATUS_FAILED, DG_EMISMATCH);
		CU_ASSERT(fake.runs[verified_kernels[i]] > after);
	}
}

static void test_verify__a_wrong_bit_fails(void)
{
	assert_fault_found(DG__FAKE_WRONG, 0);
	assert_fault_found(DG__FAKE_WRONG, 5);
}

static void test_verify__a_shortened_loop_fails(void)
{
	assert_fault_found(DG__FAKE_SHORT, 0);
	assert_fault_found(DG__FAKE_SHORT, 5);
}

static void test_verify__a_kernel_optimised_away_fails(void)
{
	assert_fault_found(DG__FAKE_LAZY, 0);
	assert_fault_found(DG__FAKE_LAZY, 5);
}

/* Ends. */

static void test_measure__one_failing_key_leaves_the_others_alone(void)
{
	static const dg__fake_fault faults[] = { DG__FAKE_WRONG, DG__FAKE_FAIL };
	static const dg_err codes[] = { DG_EMISMATCH, DG_EDRIVER };
	for (size_t i = 0; i < 2; i++) {
		dg__fake fake;
		const dg_key keys[] = { f32, i32, read_key, launch_key };
		dg_value v[4];
		dg__fake_init(&fake);
		fake.fault = faults[i];
		fake.fault_kernel = DG__KERNEL_ARITH_I32;
		CU_ASSERT_EQUAL(measure_with(&fake, keys, 4, NULL, v), DG_OK);
		assert_rate(&v[0], 8e6);
		assert_failed(&v[1], DG_STATUS_FAILED, codes[i]);
		assert_rate(&v[2], 1e9 / 4);
		CU_ASSERT_EQUAL(v[3].status, DG_STATUS_OK);
	}
}

static void test_measure__a_lost_device_ends_the_run_with_what_there_is(void)
{
	dg__fake fake;
	const dg_key keys[] = { f32, i32, read_key };
	dg_value v[3];
	dg__fake_init(&fake);
	fake.fault = DG__FAKE_LOSE;
	fake.fault_kernel = DG__KERNEL_ARITH_I32;
	CU_ASSERT_EQUAL(measure_with(&fake, keys, 3, NULL, v), DG_ELOST);
	assert_rate(&v[0], 8e6);
	assert_failed(&v[1], DG_STATUS_FAILED, DG_ELOST);
	assert_failed(&v[2], DG_STATUS_FAILED, DG_ELOST);
}

static void test_measure__no_memory_fails_the_key(void)
{
	dg__fake fake;
	dg__fake_init(&fake);
	fake.fault = DG__FAKE_NOMEM;
	dg_value v = measure_one(&fake, read_key);
	assert_failed(&v, DG_STATUS_FAILED, DG_ENOMEM);
}

static void test_measure__an_unknown_device_is_said_for_every_key(void)
{
	dg__fake fake;
	const dg_key keys[] = { f32, i32 };
	dg_value v[2];
	dg_error error = { 0 };
	dg__fake_init(&fake);
	CU_ASSERT_EQUAL(
		dg__engine_measure(&fake.backend, 7, keys, 2, NULL, v, &error), DG_ENODEVICE);
	CU_ASSERT_EQUAL(error.code, DG_ENODEVICE);
	assert_failed(&v[0], DG_STATUS_FAILED, DG_ENODEVICE);
	assert_failed(&v[1], DG_STATUS_FAILED, DG_ENODEVICE);
}

static void test_measure__a_bad_key_fails_alone(void)
{
	dg__fake fake;
	const dg_key keys[] = { { .mode = (dg_mode)77 }, f32 };
	dg_value v[2];
	dg__fake_init(&fake);
	CU_ASSERT_EQUAL(measure_with(&fake, keys, 2, NULL, v), DG_OK);
	assert_failed(&v[0], DG_STATUS_FAILED, DG_EKEY);
	assert_rate(&v[1], 8e6);
}

static void test_measure__no_keys_are_no_work(void)
{
	dg__fake fake;
	dg__fake_init(&fake);
	CU_ASSERT_EQUAL(measure_with(&fake, NULL, 0, NULL, NULL), DG_OK);
}

static void test_measure__a_hanging_device_ends_by_the_deadline(void)
{
	dg__fake fake;
	const dg_key keys[] = { f32, i32 };
	dg_value v[2];
	dg__fake_init(&fake);
	fake.fault = DG__FAKE_HANG;
	fake.fault_kernel = DG__KERNEL_ARITH_I32;
	uint64_t start = dg__clock_ns();
	dg__engine_options options = { .deadline_ns = start + 300 * MS };
	CU_ASSERT_EQUAL(measure_with(&fake, keys, 2, &options, v), DG_ETIMEOUT);
	CU_ASSERT(dg__clock_ns() - start >= 300 * MS);
	CU_ASSERT(dg__clock_ns() - start < 2000 * MS);
	assert_rate(&v[0], 8e6);
	assert_failed(&v[1], DG_STATUS_FAILED, DG_ETIMEOUT);
}

static void test_measure__a_deadline_that_has_passed_measures_nothing(void)
{
	dg__fake fake;
	dg_value v;
	dg__engine_options options = { .deadline_ns = 1 };
	dg__fake_init(&fake);
	CU_ASSERT_EQUAL(measure_with(&fake, &f32, 1, &options, &v), DG_ETIMEOUT);
	assert_failed(&v, DG_STATUS_FAILED, DG_ETIMEOUT);
	CU_ASSERT_EQUAL(fake.runs[DG__KERNEL_ARITH_F32], 0);
}

static atomic_bool cancel;
static uint64_t cancelled_at_ns;

static void *cancel_soon(void *user)
{
	(void)user;
	dg__clock_sleep_ns(150 * MS);
	cancelled_at_ns = dg__clock_ns();
	atomic_store(&cancel, true);
	return NULL;
}

static void assert_cancels(dg__fake *fake)
{
	dg_value v;
	pthread_t thread;
	dg__engine_options options = { .cancel = &cancel };
	atomic_store(&cancel, false);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
	CU_ASSERT_EQUAL(measure_with(fake, &f32, 1, &options, &v), DG_ECANCELLED);
	uint64_t end = dg__clock_ns();
	pthread_join(thread, NULL);
	CU_ASSERT(end - cancelled_at_ns < 200 * MS);
	assert_failed(&v, DG_STATUS_FAILED, DG_ECANCELLED);
}

static void test_measure__cancelling_ends_it_within_200_ms(void)
{
	dg__fake fake;
	dg__fake_init(&fake);
	fake.fault = DG__FAKE_HANG;
	assert_cancels(&fake);
	dg__fake_init(&fake);
	fake.real_time = true;
	fake.step_ns = 4e6; /* slow enough to be still at it */
	assert_cancels(&fake);
}

typedef struct heard {
	uint32_t progress, values;
	bool in_order;
} heard;

static void hear_progress(uint32_t done, uint32_t total, const dg_key *key, void *user)
{
	heard *h = user;
	h->in_order = h->in_order && done == h->progress && done == h->values && total == 3 && key;
	h->progress++;
}

static void hear_value(uint32_t done, const dg_value *value, void *user)
{
	heard *h = user;
	h->in_order = h->in_order && done == h->values && value->evidence.engine[0];
	h->values++;
}

static void test_measure__tells_progress_and_values_in_order(void)
{
	dg__fake fake;
	const dg_key keys[] = { f32, f16, i32 };
	dg_value v[3];
	heard h = { .in_order = true };
	dg__engine_options options = { .progress = hear_progress, .value = hear_value, .user = &h };
	dg__fake_init(&fake);
	CU_ASSERT_EQUAL(measure_with(&fake, keys, 3, &options, v), DG_OK);
	CU_ASSERT(h.in_order);
	CU_ASSERT_EQUAL(h.progress, 3);
	CU_ASSERT_EQUAL(h.values, 3);
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT_TRUE(dg_key_equal(&v[i].key, &keys[i]));
}

/* Detection and registry. */

static void test_detect__lists_devices_with_their_settings(void)
{
	dg__fake fake;
	dg__device_list list = { 0 };
	dg__fake_init(&fake);
	fake.devices = 3;
	CU_ASSERT_EQUAL_FATAL(dg__engine_detect(&fake.backend, &list, NULL), DG_OK);
	CU_ASSERT_EQUAL_FATAL(list.count, 3);
	CU_ASSERT_EQUAL(list.entries[2].info.device.index, 2);
	CU_ASSERT_STRING_EQUAL(list.entries[2].info.backend, "fake");
	CU_ASSERT_EQUAL(list.entries[2].settings.int_dtype, DG_I32);
	free(list.entries);
}

static void test_detect__no_device_is_no_error(void)
{
	dg__fake fake;
	dg__device_list list = { 0 };
	dg__fake_init(&fake);
	fake.devices = 0;
	CU_ASSERT_EQUAL(dg__engine_detect(&fake.backend, &list, NULL), DG_OK);
	CU_ASSERT_EQUAL(list.count, 0);
	free(list.entries);
}

static void test_detect__a_missing_and_a_failing_driver_are_told_apart(void)
{
	static const dg_err errors[] = { DG_ENODRIVER, DG_EDRIVER };
	for (size_t i = 0; i < 2; i++) {
		dg__fake fake;
		dg__device_list list = { 0 };
		dg_error error = { 0 };
		dg__fake_init(&fake);
		fake.enumerate = errors[i];
		CU_ASSERT_EQUAL(dg__engine_detect(&fake.backend, &list, &error), errors[i]);
		CU_ASSERT_STRING_EQUAL(error.text, "the script says so");
	}
}

static void test_check__malformed_backends_are_refused(void)
{
	dg__fake fake;
	dg__device_list list;
	dg_error error = { 0 };
	dg__fake_init(&fake);
	CU_ASSERT_EQUAL(dg__backend_check(&fake.backend, NULL), DG_OK);
	fake.backend.observe = NULL;
	CU_ASSERT_EQUAL(dg__engine_detect(&fake.backend, &list, &error), DG_EINTERNAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "observe"));
	dg__fake_init(&fake);
	fake.backend.abi = DG__BACKEND_ABI + 1;
	CU_ASSERT_EQUAL(dg__backend_check(&fake.backend, NULL), DG_EINTERNAL);
	dg__fake_init(&fake);
	fake.backend.name = "Not a name";
	CU_ASSERT_EQUAL(dg__backend_check(&fake.backend, NULL), DG_EINTERNAL);
}

static void test_registry__finds_backends_by_name(void)
{
	dg__fake fake;
	size_t count, names;
	dg__fake_init(&fake);
	const dg__backend *list[] = { &fake.backend };
	CU_ASSERT_PTR_EQUAL(dg__backend_find(list, 1, "fake"), &fake.backend);
	CU_ASSERT_PTR_NULL(dg__backend_find(list, 1, "cpu"));
	const dg__backend *const *all = dg__registry_all(&count);
	const char *const *known = dg__backend_names(&names);
	CU_ASSERT_EQUAL_FATAL(count, names);
	for (size_t i = 0; i < count; i++) {
		CU_ASSERT_STRING_EQUAL(all[i]->name, known[i]);
		CU_ASSERT_EQUAL(dg__backend_check(all[i], NULL), DG_OK);
	}
	CU_ASSERT_TRUE(dg__backend_known("cpu"));
	CU_ASSERT_FALSE(dg__backend_known("fake"));
}

static const dg_test_case cases[] = {
	DG_TEST(test_measure__counts_two_operations_per_fma_and_one_per_multiplication),
	DG_TEST(test_measure__unsigned_integers_use_the_signed_kernel),
	DG_TEST(test_measure__signed_and_unsigned_share_one_measurement),
	DG_TEST(test_measure__memory_counts_elements_and_copies_twice),
	DG_TEST(test_measure__working_sets_count_one_pass),
	DG_TEST(test_measure__short_iterations_are_told_in_groups),
	DG_TEST(test_measure__a_launch_counts_one),
	DG_TEST(test_measure__the_best_shape_is_chosen_and_told),
	DG_TEST(test_measure__evidence_is_filled_in),
	DG_TEST(test_measure__device_time_is_preferred),
	DG_TEST(test_measure__a_device_busy_for_longer_than_waited_is_marked),
	DG_TEST(test_measure__sustained_comes_on_request),
	DG_TEST(test_measure__a_clock_that_falls_is_marked_throttled),
	DG_TEST(test_measure__other_load_is_marked_disturbed),
	DG_TEST(test_measure__more_than_the_bound_is_refused_with_a_reason),
	DG_TEST(test_measure__memory_bounds_are_in_bytes),
	DG_TEST(test_measure__what_a_device_lacks_is_unsupported_with_a_reason),
	DG_TEST(test_measure__working_sets_that_do_not_fit_are_unsupported),
	DG_TEST(test_verify__a_wrong_bit_fails),
	DG_TEST(test_verify__a_shortened_loop_fails),
	DG_TEST(test_verify__a_kernel_optimised_away_fails),
	DG_TEST(test_measure__one_failing_key_leaves_the_others_alone),
	DG_TEST(test_measure__a_lost_device_ends_the_run_with_what_there_is),
	DG_TEST(test_measure__no_memory_fails_the_key),
	DG_TEST(test_measure__an_unknown_device_is_said_for_every_key),
	DG_TEST(test_measure__a_bad_key_fails_alone),
	DG_TEST(test_measure__no_keys_are_no_work),
	DG_TEST(test_measure__a_hanging_device_ends_by_the_deadline),
	DG_TEST(test_measure__a_deadline_that_has_passed_measures_nothing),
	DG_TEST(test_measure__cancelling_ends_it_within_200_ms),
	DG_TEST(test_measure__tells_progress_and_values_in_order),
	DG_TEST(test_detect__lists_devices_with_their_settings),
	DG_TEST(test_detect__no_device_is_no_error),
	DG_TEST(test_detect__a_missing_and_a_failing_driver_are_told_apart),
	DG_TEST(test_check__malformed_backends_are_refused),
	DG_TEST(test_registry__finds_backends_by_name),
};

int main(void)
{
	setenv(DG__ENGINE_QUICK_VARIABLE, "1", 1);
	return dg_test_run("backends/core/engine", cases, sizeof(cases) / sizeof(cases[0]));
}
