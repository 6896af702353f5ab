/*
 * Kernels in plain C, one element at a time, for any CPU. The empty assembly keeps a compiler from
 * joining steps or chains; it costs no instruction. See kernels.h.
 */
#include "backends/cpu/kernels/kernels.h"

#include <string.h>

#include "backends/cpu/kernels/chains.h"

#define TARGET
#define KEEP(i) __asm__("" : "+r"(x##i));
#define IN(i) x##i = v[i];
#define OUT(i) v[i] = x##i;

#define INTEGER(NAME, TYPE) \
	static void NAME(void *state, uint64_t steps, uint64_t a_bits, uint64_t b_bits) \
	{ \
		TYPE *v = state; \
		const TYPE a = (TYPE)a_bits; \
		(void)b_bits; \
		TYPE x0, x1, x2, x3, x4, x5, x6, x7; \
		CHAINS_8(IN) \
		for (; steps; steps--) { \
			CHAINS_8(MULTIPLY) \
			CHAINS_8(KEEP) \
		} \
		CHAINS_8(OUT) \
	}
/* In 32 bits at least: an unsigned short would be promoted to a signed int, which may overflow. */
#define MULTIPLY(i) x##i = (__typeof__(x##i))(x##i * (1u * a));

INTEGER(i64, uint64_t)
INTEGER(i32, uint32_t)
INTEGER(i16, uint16_t)
INTEGER(i8, uint8_t)

/*
 * Floats: a and b are not known when this is compiled, and without leave to reorder nothing folds.
 */
#define FLOAT(NAME, TYPE) \
	static void NAME(void *state, uint64_t steps, uint64_t a_bits, uint64_t b_bits) \
	{ \
		TYPE *v = state, a, b; \
		TYPE x0, x1, x2, x3, x4, x5, x6, x7; \
		memcpy(&a, &a_bits, sizeof(a)); \
		memcpy(&b, &b_bits, sizeof(b)); \
		CHAINS_8(IN) \
		for (; steps; steps--) { \
			CHAINS_8(MULTIPLY_ADD) \
		} \
		CHAINS_8(OUT) \
	}
#define MULTIPLY_ADD(i) x##i = x##i * a + b;

FLOAT(f64, double)
FLOAT(f32, float)

/* No pass over the same memory may be left out. */
#define KEEP_PASS() __asm__ volatile("" : : : "memory")

static uint32_t read_words(const void *src, size_t bytes, uint64_t times)
{
	const uint32_t *p = src;
	uint32_t x0 = 0, x1 = 0, x2 = 0, x3 = 0;
	size_t count = bytes / 4;
	for (; times; times--) {
		size_t i = 0;
		KEEP_PASS();
		for (; i + 4 <= count; i += 4) {
			x0 += p[i];
			x1 += p[i + 1];
			x2 += p[i + 2];
			x3 += p[i + 3];
		}
		for (; i < count; i++)
			x0 += p[i];
	}
	return x0 + x1 + x2 + x3;
}

static void write_bytes(void *dst, size_t bytes, uint64_t times, uint8_t value)
{
	for (; times; times--, value++) {
		memset(dst, value, bytes);
		KEEP_PASS();
	}
}

static void copy_bytes(void *dst, const void *src, size_t bytes, uint64_t times)
{
	for (; times; times--) {
		memcpy(dst, src, bytes);
		KEEP_PASS();
	}
}

#define ISA "scalar"
static const dg__arith_kernel arith[] = {
	{ DG__KERNEL_ARITH_F64, DG__STEP_FMA, 0, ISA, 8, 8, 32, f64 },
	{ DG__KERNEL_ARITH_F32, DG__STEP_FMA, 0, ISA, 8, 8, 64, f32 },
	{ DG__KERNEL_ARITH_I64, DG__STEP_MUL, 0, ISA, 8, 8, 8, i64 },
	{ DG__KERNEL_ARITH_I32, DG__STEP_MUL, 0, ISA, 8, 8, 8, i32 },
	{ DG__KERNEL_ARITH_I16, DG__STEP_MUL, 0, ISA, 8, 8, 8, i16 },
	{ DG__KERNEL_ARITH_I8, DG__STEP_MUL, 0, ISA, 8, 8, 8, i8 },
};
static const dg__memory_kernel memory[] = {
	{ DG__KERNEL_READ, 0, ISA, false, read_words, NULL, NULL },
	{ DG__KERNEL_WRITE, 0, "memset", false, NULL, write_bytes, NULL },
	{ DG__KERNEL_COPY, 0, "memcpy", false, NULL, NULL, copy_bytes },
};

const dg__kernel_set dg__kernels_generic = { arith, sizeof(arith) / sizeof(arith[0]), memory,
	sizeof(memory) / sizeof(memory[0]) };
