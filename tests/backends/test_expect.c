/* The closed forms of kernels, against the steps themselves. */
#include "backends/core/expect.h"

#include <string.h>

#include "backends/core/pattern.h"
#include "tests/test.h"

static dg__operands operands(dg__step step, dg_dtype dtype, dg__purpose purpose)
{
	dg__operands o = { 0 };
	CU_ASSERT_EQUAL(dg__expect_operands(step, dtype, purpose, &o, NULL), DG_OK);
	return o;
}

/* Steps taken one by one in f32; fused or not is asked for by the caller. */
static uint32_t step_f32(const dg__operands *o, unsigned i, uint64_t steps, int fused)
{
	float x, a, b;
	memcpy(&x, &o->seeds[i], 4);
	memcpy(&a, &o->a, 4);
	memcpy(&b, &o->b, 4);
	for (; steps; steps--) {
		volatile float product = x * a;
		x = fused ? (float)((double)x * (double)a + (double)b) : product + b;
	}
	uint32_t bits;
	memcpy(&bits, &x, 4);
	return bits;
}

static uint64_t step_f64(const dg__operands *o, unsigned i, uint64_t steps)
{
	double x, a, b;
	memcpy(&x, &o->seeds[i], 8);
	memcpy(&a, &o->a, 8);
	memcpy(&b, &o->b, 8);
	for (; steps; steps--)
		x = x * a + b;
	uint64_t bits;
	memcpy(&bits, &x, 8);
	return bits;
}

/* Whether a format with so many bits of significand holds a whole number exactly. */
static bool is_exact(double x, unsigned significant_bits)
{
	uint64_t whole = (uint64_t)(x < 0 ? -x : x);
	while (whole && !(whole & 1))
		whole >>= 1;
	return whole < (uint64_t)1 << significant_bits;
}

/* Fused or not: what a proof passes through is held by the format, products too. */
static void test_proof_of_fma__is_exact_in_every_format(void)
{
	static const struct {
		dg_dtype dtype;
		unsigned significant_bits;
	} formats[] = { { DG_F64, 53 }, { DG_F32, 24 }, { DG_F16, 11 }, { DG_BF16, 8 } };
	for (size_t f = 0; f < 4; f++) {
		dg__operands o = operands(DG__STEP_FMA, formats[f].dtype, DG__TO_PROVE);
		CU_ASSERT(o.max_steps >= 3);
		for (unsigned i = 0; i < DG__SEEDS; i++) {
			double x = (int)i - DG__SEEDS / 2;
			for (uint64_t n = 0; n < o.max_steps; n++) {
				CU_ASSERT(is_exact(x * -3, formats[f].significant_bits));
				x = x * -3 + 5;
				CU_ASSERT(is_exact(x, formats[f].significant_bits));
			}
		}
	}
}

static void test_fma__timed_steps_of_f32_match_fused_or_not(void)
{
	static const uint64_t counts[] = { 1, 2, 999, 70001 };
	dg__operands o = operands(DG__STEP_FMA, DG_F32, DG__TO_TIME);
	for (unsigned i = 0; i < DG__SEEDS; i++)
		for (size_t c = 0; c < 4; c++) {
			uint64_t e = dg__expect_item(
				DG__STEP_FMA, DG_F32, DG__TO_TIME, &o, i, counts[c]);
			CU_ASSERT_EQUAL(e, step_f32(&o, i, counts[c], 1));
			CU_ASSERT_EQUAL(e, step_f32(&o, i, counts[c], 0));
		}
}

static void test_fma__timed_steps_go_on_over_powers_of_two(void)
{
	/* From just above a power of two, where the distance between neighbours changes. */
	dg__operands o = operands(DG__STEP_FMA, DG_F32, DG__TO_TIME);
	o.seeds[0] = 0x40000005;
	for (uint64_t n = 1; n < 20; n++)
		CU_ASSERT_EQUAL(dg__expect_item(DG__STEP_FMA, DG_F32, DG__TO_TIME, &o, 0, n),
			step_f32(&o, 0, n, 1));
}

static void test_fma__timed_steps_end_at_the_smallest_normal_number(void)
{
	dg__operands o = operands(DG__STEP_FMA, DG_F32, DG__TO_TIME);
	o.seeds[0] = 0x00800003;
	for (uint64_t n = 1; n < 9; n++) {
		uint64_t e = dg__expect_item(DG__STEP_FMA, DG_F32, DG__TO_TIME, &o, 0, n);
		CU_ASSERT_EQUAL(e, step_f32(&o, 0, n, 1));
		CU_ASSERT_EQUAL(e, step_f32(&o, 0, n, 0));
	}
}

static void test_fma__steps_of_f64_match(void)
{
	for (int p = DG__TO_PROVE; p <= DG__TO_TIME; p++) {
		dg__operands o = operands(DG__STEP_FMA, DG_F64, (dg__purpose)p);
		uint64_t steps = p == DG__TO_PROVE ? o.max_steps : 12345;
		for (unsigned i = 0; i < DG__SEEDS; i++)
			CU_ASSERT_EQUAL(
				dg__expect_item(DG__STEP_FMA, DG_F64, (dg__purpose)p, &o, i, steps),
				step_f64(&o, i, steps));
	}
}

static void test_fma__proving_shows_the_factor_and_the_summand(void)
{
	dg__operands o = operands(DG__STEP_FMA, DG_F32, DG__TO_PROVE);
	for (unsigned i = 0; i < DG__SEEDS; i++) {
		uint64_t e = dg__expect_item(DG__STEP_FMA, DG_F32, DG__TO_PROVE, &o, i, 9);
		CU_ASSERT_EQUAL(e, step_f32(&o, i, 9, 0));
		dg__operands no_a = o, no_b = o;
		no_a.a = dg__expect_encode(DG_F32, 1);
		no_b.b = 0;
		CU_ASSERT_NOT_EQUAL(e, step_f32(&no_a, i, 9, 0));
		CU_ASSERT_NOT_EQUAL(e, step_f32(&no_b, i, 9, 0));
	}
}

static void test_mul__jumps_match_single_steps(void)
{
	static const dg_dtype dtypes[] = { DG_I64, DG_I32, DG_I16, DG_I8 };
	for (size_t d = 0; d < 4; d++) {
		dg__operands o = operands(DG__STEP_MUL, dtypes[d], DG__TO_TIME);
		unsigned bits = dg_dtype_bits(dtypes[d]);
		uint64_t mask = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
		for (unsigned i = 0; i < DG__SEEDS; i++) {
			uint64_t x = o.seeds[i];
			for (int n = 0; n < 777; n++)
				x *= o.a;
			CU_ASSERT_EQUAL(
				dg__expect_item(DG__STEP_MUL, dtypes[d], DG__TO_TIME, &o, i, 777),
				x & mask);
		}
	}
}

static void test_mul__half_of_the_steps_do_not_pass(void)
{
	dg__operands o = operands(DG__STEP_MUL, DG_I8, DG__TO_TIME);
	unsigned same = 0;
	for (uint64_t n = 1001; n < 1101; n++) {
		uint64_t whole = dg__expect_item(DG__STEP_MUL, DG_I8, DG__TO_TIME, &o, 3, n);
		same += whole == dg__expect_item(DG__STEP_MUL, DG_I8, DG__TO_TIME, &o, 3, n / 2);
	}
	CU_ASSERT(same < 5);
}

static void test_dot__integer_products_add_up(void)
{
	dg__operands o = operands(DG__STEP_DOT4, DG_I8, DG__TO_TIME);
	uint32_t x = (uint32_t)o.seeds[5];
	for (int n = 0; n < 1000; n++)
		for (int j = 0; j < 4; j++) {
			int a = (int)(o.a >> 8 * j & 0xff), b = (int)(o.b >> 8 * j & 0xff);
			CU_ASSERT(a < 128 && b < 128);
			x += (uint32_t)(a * b);
		}
	CU_ASSERT_EQUAL(dg__expect_item(DG__STEP_DOT4, DG_I8, DG__TO_TIME, &o, 5, 1000), x);
}

static float from_bf16(uint64_t bits)
{
	uint32_t wide = (uint32_t)(bits & 0xffff) << 16;
	float value;
	memcpy(&value, &wide, 4);
	return value;
}

static void test_dot__float_products_add_up(void)
{
	for (int p = DG__TO_PROVE; p <= DG__TO_TIME; p++) {
		dg__operands o = operands(DG__STEP_DOT2, DG_BF16, (dg__purpose)p);
		float x;
		memcpy(&x, &o.seeds[2], 4);
		for (int n = 0; n < 500; n++)
			for (int j = 0; j < 2; j++)
				x += from_bf16(o.a >> 16 * j) * from_bf16(o.b >> 16 * j);
		uint32_t bits;
		memcpy(&bits, &x, 4);
		CU_ASSERT_EQUAL(
			dg__expect_item(DG__STEP_DOT2, DG_BF16, (dg__purpose)p, &o, 2, 500), bits);
	}
}

static void test_operands__steps_that_do_not_exist_are_refused(void)
{
	dg__operands o;
	CU_ASSERT_EQUAL(
		dg__expect_operands(DG__STEP_FMA, DG_I32, DG__TO_TIME, &o, NULL), DG_ENOTSUP);
	CU_ASSERT_EQUAL(
		dg__expect_operands(DG__STEP_MUL, DG_F32, DG__TO_TIME, &o, NULL), DG_ENOTSUP);
	CU_ASSERT_EQUAL(
		dg__expect_operands(DG__STEP_DOT4, DG_I16, DG__TO_TIME, &o, NULL), DG_ENOTSUP);
}

static void test_ops__are_those_of_the_reference(void)
{
	CU_ASSERT_EQUAL(dg__expect_ops(DG__STEP_FMA, DG_F32), 2);
	CU_ASSERT_EQUAL(dg__expect_ops(DG__STEP_MUL, DG_I32), 1);
	CU_ASSERT_EQUAL(dg__expect_ops(DG__STEP_DOT2, DG_BF16), 4);
	CU_ASSERT_EQUAL(dg__expect_ops(DG__STEP_DOT4, DG_I8), 4);
}

static void test_pattern__sums_match_the_words(void)
{
	static dg__pattern p;
	static const uint64_t firsts[] = { 0, 1, 1000, DG__PATTERN_WORDS - 3,
		3 * DG__PATTERN_WORDS + 7 };
	dg__pattern_init(&p);
	for (size_t f = 0; f < 5; f++) {
		uint32_t sum = 0;
		for (uint64_t i = 0; i < 2 * DG__PATTERN_WORDS + 5; i++)
			sum += p.words[(firsts[f] + i) % DG__PATTERN_WORDS];
		CU_ASSERT_EQUAL(dg__pattern_sum(&p, firsts[f], 2 * DG__PATTERN_WORDS + 5), sum);
	}
	CU_ASSERT_EQUAL(dg__pattern_sum(&p, 17, 0), 0);
}

static const dg_test_case cases[] = {
	DG_TEST(test_proof_of_fma__is_exact_in_every_format),
	DG_TEST(test_fma__timed_steps_of_f32_match_fused_or_not),
	DG_TEST(test_fma__timed_steps_go_on_over_powers_of_two),
	DG_TEST(test_fma__timed_steps_end_at_the_smallest_normal_number),
	DG_TEST(test_fma__steps_of_f64_match),
	DG_TEST(test_fma__proving_shows_the_factor_and_the_summand),
	DG_TEST(test_mul__jumps_match_single_steps),
	DG_TEST(test_mul__half_of_the_steps_do_not_pass),
	DG_TEST(test_dot__integer_products_add_up),
	DG_TEST(test_dot__float_products_add_up),
	DG_TEST(test_operands__steps_that_do_not_exist_are_refused),
	DG_TEST(test_ops__are_those_of_the_reference),
	DG_TEST(test_pattern__sums_match_the_words),
};
DG_TEST_MAIN("backends/core/expect", cases)
