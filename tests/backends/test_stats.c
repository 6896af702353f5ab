/* Statistics of samples. */
#include "backends/core/stats.h"
#include "tests/test.h"

static const dg__settle settle = { 20, 200, 12 };

static void add(dg__stats *stats, size_t count, double ns)
{
	for (size_t i = 0; i < count; i++)
		dg__stats_add(stats, ns);
}

static void test_stats__no_samples_have_no_figures(void)
{
	dg__stats s = { 0 };
	CU_ASSERT_EQUAL(dg__stats_median(&s), 0);
	CU_ASSERT_EQUAL(dg__stats_spread(&s), 0);
	CU_ASSERT_FALSE(dg__stats_settled(&s, &settle));
}

static void test_stats__best_median_and_spread_of_known_samples(void)
{
	dg__stats s = { 0 };
	static const double ns[] = { 120, 100, 140, 110, 130 };
	for (size_t i = 0; i < 5; i++)
		dg__stats_add(&s, ns[i]);
	CU_ASSERT_EQUAL(s.best_ns, 100);
	CU_ASSERT_EQUAL(dg__stats_median(&s), 120);
	CU_ASSERT_DOUBLE_EQUAL(dg__stats_spread(&s), 0.2, 1e-12);
	dg__stats_add(&s, 150);
	CU_ASSERT_EQUAL(dg__stats_median(&s), 125);
}

static void test_settled__needs_the_least_number_of_samples(void)
{
	dg__stats s = { 0 };
	add(&s, 19, 100);
	CU_ASSERT_FALSE(dg__stats_settled(&s, &settle));
	add(&s, 1, 100);
	CU_ASSERT_TRUE(dg__stats_settled(&s, &settle));
}

static void test_settled__a_clear_gain_starts_the_count_anew(void)
{
	dg__stats s = { 0 };
	add(&s, 19, 100);
	add(&s, 1, 98);
	CU_ASSERT_FALSE(dg__stats_settled(&s, &settle));
	add(&s, 11, 98);
	CU_ASSERT_FALSE(dg__stats_settled(&s, &settle));
	add(&s, 1, 98);
	CU_ASSERT_TRUE(dg__stats_settled(&s, &settle));
}

static void test_settled__gains_below_one_percent_do_not_count(void)
{
	dg__stats s = { 0 };
	add(&s, 19, 100);
	add(&s, 1, 99.5);
	CU_ASSERT_TRUE(dg__stats_settled(&s, &settle));
	CU_ASSERT_EQUAL(s.best_ns, 99.5);
}

static void test_settled__many_small_gains_add_up_to_one(void)
{
	dg__stats s = { 0 };
	double ns = 100;
	for (int i = 0; i < 100; i++, ns *= 0.995)
		dg__stats_add(&s, ns);
	CU_ASSERT_FALSE(dg__stats_settled(&s, &settle));
}

static void test_settled__ends_at_the_most_samples(void)
{
	dg__stats s = { 0 };
	double ns = 1e9;
	for (int i = 0; i < 250; i++, ns *= 0.9)
		dg__stats_add(&s, ns);
	CU_ASSERT_EQUAL(s.count, DG__SAMPLES_MAX);
	CU_ASSERT_TRUE(dg__stats_settled(&s, &settle));
}

static const dg_test_case cases[] = {
	DG_TEST(test_stats__no_samples_have_no_figures),
	DG_TEST(test_stats__best_median_and_spread_of_known_samples),
	DG_TEST(test_settled__needs_the_least_number_of_samples),
	DG_TEST(test_settled__a_clear_gain_starts_the_count_anew),
	DG_TEST(test_settled__gains_below_one_percent_do_not_count),
	DG_TEST(test_settled__many_small_gains_add_up_to_one),
	DG_TEST(test_settled__ends_at_the_most_samples),
};
DG_TEST_MAIN("backends/core/stats", cases)
