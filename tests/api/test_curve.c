/* Memory curves. */
#include "tests/test.h"

#include <math.h>
#include <string.h>

#include <devgate/throughput.h>

static dg_value point(dg_access access, uint64_t bytes, uint64_t elements, uint64_t ns)
{
	return (dg_value){ .key = { .mode = DG_MODE_WORKING_SET, .access = access, .bytes = bytes },
		.ops_count = elements,
		.duration_ns = ns };
}

static void test_keys__are_powers_of_two_from_8_kib_to_512_mib_cold(void)
{
	dg_key keys[DG_CURVE_MAX];
	size_t count = dg_curve_keys(DG_WRITE, keys);
	CU_ASSERT_EQUAL(count, 17);
	CU_ASSERT_EQUAL(keys[0].bytes, 8192);
	CU_ASSERT_EQUAL(keys[16].bytes, 536870912);
	for (size_t i = 0; i < count; i++) {
		CU_ASSERT_EQUAL(dg_key_check(&keys[i], NULL), DG_OK);
		CU_ASSERT_EQUAL(keys[i].bytes, (uint64_t)8192 << i);
		CU_ASSERT(keys[i].mode == DG_MODE_WORKING_SET && keys[i].access == DG_WRITE);
	}
}

static void test_from_values__drops_what_has_no_rate_and_orders_the_rest(void)
{
	dg_curve curve;
	dg_value values[] = { point(DG_READ, 32768, 8192, 100), point(DG_READ, 8192, 2048, 100),
		point(DG_READ, 16384, 4096, 0), point(DG_READ, 65536, 0, 100),
		point(DG_WRITE, 131072, 8192, 100), point(DG_READ, 262144, 8192, 100),
		point(DG_READ, 524288, 8192, 100), point(DG_READ, 8192, 4096, 100) };
	values[5].key.mode = DG_MODE_RESIDENT;
	values[6].status = DG_STATUS_REFUSED;
	dg_curve_from_values(DG_READ, values, sizeof(values) / sizeof(values[0]), &curve);
	CU_ASSERT_EQUAL(curve.access, DG_READ);
	CU_ASSERT_EQUAL_FATAL(curve.count, 2);
	CU_ASSERT_EQUAL(curve.points[0].bytes, 8192);
	CU_ASSERT_DOUBLE_EQUAL(curve.points[0].bytes_per_s, 4096 * 4 * 1e7, 1);
	CU_ASSERT_EQUAL(curve.points[1].bytes, 32768);
	dg_curve_from_values(DG_READ, NULL, 0, &curve);
	CU_ASSERT_EQUAL(curve.count, 0);
}

static void test_from_values__holds_no_more_than_it_has_room_for(void)
{
	static dg_value values[100];
	dg_curve curve;
	for (unsigned i = 0; i < 100; i++)
		values[i] = point(DG_COPY, 4000 - i, 100, 100);
	dg_curve_from_values(DG_COPY, values, 100, &curve);
	CU_ASSERT_EQUAL(curve.count, DG_CURVE_MAX);
	for (size_t i = 1; i < curve.count; i++)
		CU_ASSERT(curve.points[i - 1].bytes < curve.points[i].bytes);
}

static double ceiling(const dg_curve *curve, uint64_t bytes)
{
	double rate = -1;
	CU_ASSERT(dg_curve_ceiling(curve, bytes, &rate));
	return rate;
}

static void test_ceiling__is_linear_in_the_logarithm_and_clamped(void)
{
	dg_curve curve = { .count = 3, .points = { { 1024, 100 }, { 4096, 300 }, { 8192, 50 } } };
	CU_ASSERT_DOUBLE_EQUAL(ceiling(&curve, 1024), 100, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(ceiling(&curve, 2048), 200, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(ceiling(&curve, 4096), 300, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(ceiling(&curve, 8192), 50, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(ceiling(&curve, 0), 100, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(ceiling(&curve, 1), 100, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(ceiling(&curve, UINT64_MAX), 50, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(ceiling(&curve, 1448), 100 + 100 * (log2(1448) - 10), 1e-6);
}

static void test_ceiling__needs_a_point_and_survives_foreign_curves(void)
{
	double rate = 77;
	dg_curve curve = { .count = 0 };
	CU_ASSERT_FALSE(dg_curve_ceiling(&curve, 1024, &rate));
	CU_ASSERT_EQUAL(rate, 77);
	curve = (dg_curve){ .count = 1, .points = { { 1024, 5 } } };
	CU_ASSERT_DOUBLE_EQUAL(ceiling(&curve, 1), 5, 0);
	CU_ASSERT_DOUBLE_EQUAL(ceiling(&curve, 4096), 5, 0);
	curve = (dg_curve){ .count = 2, .points = { { 0, 5 }, { 4096, 6 } } };
	CU_ASSERT(isfinite(ceiling(&curve, 100)));
}

static const dg_test_case cases[] = {
	DG_TEST(test_keys__are_powers_of_two_from_8_kib_to_512_mib_cold),
	DG_TEST(test_from_values__drops_what_has_no_rate_and_orders_the_rest),
	DG_TEST(test_from_values__holds_no_more_than_it_has_room_for),
	DG_TEST(test_ceiling__is_linear_in_the_logarithm_and_clamped),
	DG_TEST(test_ceiling__needs_a_point_and_survives_foreign_curves),
};

DG_TEST_MAIN("api/curve", cases)
