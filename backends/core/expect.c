/*
 * See expect.h.
 *
 * Timing a float step: x = x * a + 0 with a the largest value below 1. A product x * a lies at
 * least half and less than a whole unit in the last place below x, and rounds to the next value
 * below x: each step lowers the bit pattern of x by one, fused or not, until the smallest normal
 * number, where the tie goes back to the even pattern. All bits of the significands are in use
 * meanwhile.
 *
 * Proving it: x = x * -3 + 5 on small integers, a few steps, exact in every format.
 *
 * Sums of products (ACC, DOT2 of floats) step through whole numbers that the item holds exactly,
 * until a step is no more than half of a unit in the last place and the sum stays where it is.
 */
#include "backends/core/expect.h"

#include <math.h>

typedef struct format {
	unsigned bits, mantissa; /* explicit bits of the significand */
	int bias;
} format;

static format format_of(dg_dtype dtype)
{
	switch (dtype) {
	case DG_F64:
		return (format){ 64, 52, 1023 };
	case DG_F16:
		return (format){ 16, 10, 15 };
	case DG_BF16:
		return (format){ 16, 7, 127 };
	default:
		return (format){ 32, 23, 127 };
	}
}

static uint64_t mask(unsigned bits)
{
	return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

uint64_t dg__expect_encode(dg_dtype dtype, double value)
{
	format f = format_of(dtype);
	int exponent;
	if (value == 0)
		return 0;
	double fraction = frexp(fabs(value), &exponent) * 2 - 1;
	uint64_t significand = (uint64_t)ldexp(fraction, (int)f.mantissa);
	uint64_t sign = value < 0 ? (uint64_t)1 << (f.bits - 1) : 0;
	return sign | (uint64_t)(exponent - 1 + f.bias) << f.mantissa | significand;
}

unsigned dg__expect_ops(dg__step step, dg_dtype dtype)
{
	bool is_float = dg_dtype_family_of(dtype) == DG_FAMILY_FLOAT;
	switch (step) {
	case DG__STEP_FMA:
	case DG__STEP_ACC:
		return 2;
	case DG__STEP_DOT2:
		return is_float ? 4 : 2;
	case DG__STEP_DOT4:
		return 4;
	default:
		return 1;
	}
}

/* Rich in bits, different for each item. */
static uint64_t scramble(uint64_t i)
{
	i = (i + 1) * 0x9e3779b97f4a7c15u;
	return i ^ i >> 29;
}

static uint64_t pack(unsigned bits, const uint64_t *elements, unsigned count)
{
	uint64_t packed = 0;
	for (unsigned i = 0; i < count; i++)
		packed |= elements[i] << (i * bits);
	return packed;
}

static const int prove_fma_a = -3, prove_fma_b = 5;

static int prove_fma_seed(unsigned i)
{
	return (int)i - DG__SEEDS / 2;
}

static void fma_operands(dg_dtype dtype, dg__purpose purpose, dg__operands *o)
{
	format f = format_of(dtype);
	uint64_t top = (uint64_t)(2 * f.bias - 1)
		       << f.mantissa; /* a high exponent, short of infinity */
	o->item_bytes = f.bits / 8;
	if (purpose == DG__TO_PROVE) {
		o->a = dg__expect_encode(dtype, prove_fma_a);
		o->b = dg__expect_encode(dtype, prove_fma_b);
		/* As far as every format holds all of it exactly, products too. */
		o->max_steps = dtype == DG_BF16 ? 3 : dtype == DG_F16 ? 4 : 9;
		for (unsigned i = 0; i < DG__SEEDS; i++)
			o->seeds[i] = dg__expect_encode(dtype, prove_fma_seed(i));
		return;
	}
	o->a = ((uint64_t)f.bias << f.mantissa) - 1;
	o->max_steps = (uint64_t)1 << 40;
	for (unsigned i = 0; i < DG__SEEDS; i++)
		o->seeds[i] = top | (scramble(i) & mask(f.mantissa));
}

static uint64_t fma_expected(
	dg_dtype dtype, dg__purpose purpose, uint64_t seed, unsigned i, uint64_t steps)
{
	if (purpose == DG__TO_PROVE) {
		double x = prove_fma_seed(i);
		for (uint64_t n = 0; n < steps; n++)
			x = x * prove_fma_a + prove_fma_b;
		return dg__expect_encode(dtype, x);
	}
	uint64_t lowest = (uint64_t)1 << format_of(dtype).mantissa;
	return seed - lowest > steps ? seed - steps : lowest;
}

static void mul_operands(dg_dtype dtype, dg__operands *o)
{
	unsigned bits = dg_dtype_bits(dtype);
	o->item_bytes = bits / 8;
	o->max_steps = UINT64_MAX;
	/* 5 modulo 8: the longest period that a factor modulo a power of two can have. */
	o->a = ((scramble(77) & ~(uint64_t)7) | 5) & mask(bits);
	for (unsigned i = 0; i < DG__SEEDS; i++)
		o->seeds[i] = (scramble(i) | 1) & mask(bits);
}

static uint64_t power(uint64_t base, uint64_t exponent)
{
	uint64_t result = 1;
	for (; exponent; exponent >>= 1, base *= base)
		if (exponent & 1)
			result *= base;
	return result;
}

/* Factors of the integer dot products, low element first. */
static const uint64_t dot_a[4] = { 113, 7, 89, 101 }, dot_b[4] = { 3, 97, 59, 11 };

static void dot_operands(unsigned bits, unsigned count, dg__operands *o)
{
	o->item_bytes = 4;
	o->max_steps = UINT64_MAX;
	o->a = pack(bits, dot_a, count);
	o->b = pack(bits, dot_b, count);
	for (unsigned i = 0; i < DG__SEEDS; i++)
		o->seeds[i] = scramble(i) & mask(32);
}

static uint64_t dot_expected(unsigned count, uint64_t seed, uint64_t steps)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < count; i++)
		sum += dot_a[i] * dot_b[i];
	return (seed + sum * steps) & mask(32);
}

/* Float products, of one pair or two, that add up to 1, or to 2 to prove. */
static const double step_a[2][2] = { { 5, -3 }, { 3, -2 } }, step_b[2][2] = { { 7, 11 }, { 3, 4 } };
static const double single_a[2] = { -4, 0.25 }, single_b[2] = { -0.5, 4 };

/*
 * Whole numbers up to here are exact, and one more changes nothing: the tie goes to the even one.
 */
static double whole_limit(dg_dtype item)
{
	return ldexp(1, (int)format_of(item).mantissa + 1);
}

static double sum_seed(dg_dtype item, unsigned i)
{
	double limit = whole_limit(item);
	if (limit > 1e9) /* f64: far enough for any number of steps */
		limit = 1e12;
	return -limit + 64 + 2 * (double)(scramble(i) % 128);
}

static void sum_operands(dg__step step, dg_dtype dtype, dg__purpose purpose, dg__operands *o)
{
	dg_dtype item = step == DG__STEP_ACC ? dtype : DG_F32;
	uint64_t a[2], b[2];
	for (unsigned i = 0; i < 2; i++) {
		a[i] = dg__expect_encode(dtype, step_a[purpose][i]);
		b[i] = dg__expect_encode(dtype, step_b[purpose][i]);
	}
	o->item_bytes = format_of(item).bits / 8;
	/* Where two products are added one by one, the sum must stay exact in between. */
	o->max_steps = purpose == DG__TO_PROVE ? 1000
		       : step == DG__STEP_ACC  ? (uint64_t)1 << 40
					       : 16000000;
	o->a = pack(16, a, 2);
	o->b = pack(16, b, 2);
	if (step == DG__STEP_ACC) {
		o->a = dg__expect_encode(dtype, single_a[purpose]);
		o->b = dg__expect_encode(dtype, single_b[purpose]);
	}
	for (unsigned i = 0; i < DG__SEEDS; i++)
		o->seeds[i] = dg__expect_encode(item, sum_seed(item, i));
}

static uint64_t sum_expected(dg_dtype item, dg__purpose purpose, unsigned i, uint64_t steps)
{
	double limit = whole_limit(item), sum = sum_seed(item, i);
	sum += (double)steps * (purpose == DG__TO_PROVE ? 2 : 1);
	return dg__expect_encode(item, sum < limit ? sum : limit);
}

dg_err dg__expect_operands(dg__step step, dg_dtype dtype, dg__purpose purpose,
	dg__operands *ret_operands, dg_error *reterr)
{
	dg__operands o = { 0 };
	unsigned bits = dg_dtype_bits(dtype);
	bool is_float = dg_dtype_family_of(dtype) == DG_FAMILY_FLOAT;
	if (step == DG__STEP_FMA && is_float)
		fma_operands(dtype, purpose, &o);
	else if (step == DG__STEP_MUL && !is_float)
		mul_operands(dtype, &o);
	else if ((step == DG__STEP_DOT2 && is_float && bits == 16) ||
		 (step == DG__STEP_ACC && is_float))
		sum_operands(step, dtype, purpose, &o);
	else if (step == DG__STEP_DOT2 && !is_float && bits == 16)
		dot_operands(16, 2, &o);
	else if (step == DG__STEP_DOT4 && !is_float && bits == 8)
		dot_operands(8, 4, &o);
	else
		return dg_error_set(
			reterr, DG_ENOTSUP, "there is no such step in %s", dg_dtype_text(dtype));
	*ret_operands = o;
	return DG_OK;
}

uint64_t dg__expect_item(dg__step step, dg_dtype dtype, dg__purpose purpose,
	const dg__operands *operands, unsigned i, uint64_t steps)
{
	uint64_t seed = operands->seeds[i];
	bool is_float = dg_dtype_family_of(dtype) == DG_FAMILY_FLOAT;
	switch (step) {
	case DG__STEP_FMA:
		return fma_expected(dtype, purpose, seed, i, steps);
	case DG__STEP_MUL:
		return (seed * power(operands->a, steps)) & mask(operands->item_bytes * 8);
	case DG__STEP_DOT4:
		return dot_expected(4, seed, steps);
	case DG__STEP_ACC:
		return sum_expected(dtype, purpose, i, steps);
	default:
		return is_float ? sum_expected(DG_F32, purpose, i, steps)
				: dot_expected(2, seed, steps);
	}
}
