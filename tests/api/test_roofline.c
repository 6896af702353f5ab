/* Rooflines. */
#include "tests/test.h"

#include <math.h>
#include <string.h>

#include <devgate/throughput.h>

static dg_roofline computed(dg_roofline_input input)
{
	dg_roofline r = { 0 };
	CU_ASSERT_EQUAL(dg_roofline_compute(&input, &r, NULL), DG_OK);
	return r;
}

static void test_compute__the_resource_that_needs_most_time_binds(void)
{
	dg_roofline r = computed((dg_roofline_input){ 200, 10, 100, 10, 0 });
	CU_ASSERT_EQUAL(r.bound, DG_BOUND_COMPUTE);
	CU_ASSERT_DOUBLE_EQUAL(r.compute_seconds, 2, 0);
	CU_ASSERT_DOUBLE_EQUAL(r.memory_seconds, 1, 0);
	CU_ASSERT_DOUBLE_EQUAL(r.seconds, 2, 0);
	CU_ASSERT_DOUBLE_EQUAL(r.fraction, 0, 0);
	r = computed((dg_roofline_input){ 100, 30, 100, 10, 0 });
	CU_ASSERT_EQUAL(r.bound, DG_BOUND_MEMORY);
	CU_ASSERT_DOUBLE_EQUAL(r.seconds, 3, 0);
}

static void test_compute__ties_go_to_compute_and_no_work_binds_nothing(void)
{
	CU_ASSERT_EQUAL(
		computed((dg_roofline_input){ 100, 10, 100, 10, 0 }).bound, DG_BOUND_COMPUTE);
	CU_ASSERT_EQUAL(computed((dg_roofline_input){ 0, 0, 100, 10, 1 }).bound, DG_BOUND_NONE);
	CU_ASSERT_EQUAL(computed((dg_roofline_input){ 0, 1, 100, 10, 0 }).bound, DG_BOUND_MEMORY);
}

static void test_compute__a_fraction_above_one_is_told_as_it_is(void)
{
	CU_ASSERT_DOUBLE_EQUAL(
		computed((dg_roofline_input){ 200, 0, 100, 10, 4 }).fraction, 0.5, 0);
	CU_ASSERT_DOUBLE_EQUAL(computed((dg_roofline_input){ 200, 0, 100, 10, 1 }).fraction, 2, 0);
}

static void check_refused(dg_roofline_input input, const char *says)
{
	dg_roofline r = { .seconds = 77 };
	dg_error error = { 0 };
	CU_ASSERT_EQUAL(dg_roofline_compute(&input, &r, &error), DG_EINVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, says));
	CU_ASSERT_EQUAL(r.seconds, 77);
}

static void test_compute__refuses_what_no_work_can_be(void)
{
	check_refused((dg_roofline_input){ -1, 0, 1, 1, 0 }, "flops");
	check_refused((dg_roofline_input){ NAN, 0, 1, 1, 0 }, "flops");
	check_refused((dg_roofline_input){ 0, INFINITY, 1, 1, 0 }, "bytes");
	check_refused((dg_roofline_input){ 0, -1, 1, 1, 0 }, "bytes");
	check_refused((dg_roofline_input){ 1, 1, 0, 1, 0 }, "arithmetic");
	check_refused((dg_roofline_input){ 1, 1, 1, 0, 0 }, "memory");
	check_refused((dg_roofline_input){ 1, 1, 1, INFINITY, 0 }, "memory");
	check_refused((dg_roofline_input){ 1, 1, 1, 1, -1 }, "seconds");
	check_refused((dg_roofline_input){ 1e300, 1, 1e-300, 1, 0 }, "too large");
	check_refused((dg_roofline_input){ 1, 1, 1, 1, 1e-320 }, "too large");
}

static void test_bound__names(void)
{
	CU_ASSERT_STRING_EQUAL(dg_bound_name(DG_BOUND_COMPUTE), "compute");
	CU_ASSERT_STRING_EQUAL(dg_bound_name(DG_BOUND_MEMORY), "memory");
	CU_ASSERT_STRING_EQUAL(dg_bound_name(DG_BOUND_NONE), "none");
}

static const dg_test_case cases[] = {
	DG_TEST(test_compute__the_resource_that_needs_most_time_binds),
	DG_TEST(test_compute__ties_go_to_compute_and_no_work_binds_nothing),
	DG_TEST(test_compute__a_fraction_above_one_is_told_as_it_is),
	DG_TEST(test_compute__refuses_what_no_work_can_be),
	DG_TEST(test_bound__names),
};

DG_TEST_MAIN("api/roofline", cases)
