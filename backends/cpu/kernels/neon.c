/* Kernels in NEON, the vector unit of every aarch64. See kernels.h. */
#include "backends/cpu/kernels/kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#include <string.h>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels/chains.h"

#define TARGET
#define VEC uint8x16_t
#define LOAD(p) vld1q_u8((const uint8_t *)(p))
#define STORE(p, x) vst1q_u8((uint8_t *)(p), x)

#define SET_64(bits) vreinterpretq_u8_u64(vdupq_n_u64(bits))
#define SET_32(bits) vreinterpretq_u8_u32(vdupq_n_u32((uint32_t)(bits)))
#define SET_16(bits) vreinterpretq_u8_u16(vdupq_n_u16((uint16_t)(bits)))
#define SET_8(bits) vdupq_n_u8((uint8_t)(bits))

#define IN(i) VEC x##i = LOAD(v + (i));
#define OUT(i) STORE(v + (i), x##i);

/*
 * Beyond the base architecture: run only where the CPU has them. Old clang names them its own way.
 */
#if defined(__clang__) && __clang_major__ < 16
#define FP16 __attribute__((target("fullfp16")))
#define DOT __attribute__((target("dotprod")))
#else
#define FP16 __attribute__((target("arch=armv8.2-a+fp16")))
#define DOT __attribute__((target("arch=armv8.2-a+dotprod")))
#endif
/* The fused multiplication adds to its own register: x = x + a * b. */
#define STEP_ACC(type, i) \
	__asm__("fmla %0." type ", %1." type ", %2." type : "+w"(x##i) : "w"(a), "w"(b));
#define STEP_MUL(type, i) __asm__("mul %0." type ", %0." type ", %1." type : "+w"(x##i) : "w"(a));
#define STEP_F64(i) STEP_ACC("2d", i)
#define STEP_F32(i) STEP_ACC("4s", i)
#define STEP_F16(i) __asm__("fmla %0.8h, %1.8h, %2.8h" : "+w"(x##i) : "w"(a), "w"(b));
#define STEP_I32(i) STEP_MUL("4s", i)
#define STEP_I16(i) STEP_MUL("8h", i)
#define STEP_I8(i) STEP_MUL("16b", i)
#define STEP_DOT(i) __asm__("udot %0.4s, %1.16b, %2.16b" : "+w"(x##i) : "w"(a), "w"(b));

#define KERNELS(N) \
	ARITH_KERNEL(f64, N, TARGET, VEC, SET_64, CHAINS_##N, IN, STEP_F64, OUT) \
	ARITH_KERNEL(f32, N, TARGET, VEC, SET_32, CHAINS_##N, IN, STEP_F32, OUT) \
	ARITH_KERNEL(f16, N, FP16, VEC, SET_16, CHAINS_##N, IN, STEP_F16, OUT) \
	ARITH_KERNEL(i32, N, TARGET, VEC, SET_32, CHAINS_##N, IN, STEP_I32, OUT) \
	ARITH_KERNEL(i16, N, TARGET, VEC, SET_16, CHAINS_##N, IN, STEP_I16, OUT) \
	ARITH_KERNEL(i8, N, TARGET, VEC, SET_8, CHAINS_##N, IN, STEP_I8, OUT) \
	ARITH_KERNEL(dot, N, DOT, VEC, SET_32, CHAINS_##N, IN, STEP_DOT, OUT)

KERNELS(12)
KERNELS(16)
KERNELS(24)

/* Four vector units at most; six are allowed for. */
#define ROWS(N) \
	{ DG__KERNEL_ARITH_F64, DG__STEP_ACC, DG__ISA_NEON, "neon", N, 2 * N, 24, f64_##N }, \
		{ DG__KERNEL_ARITH_F32, DG__STEP_ACC, DG__ISA_NEON, "neon", N, 4 * N, 48, \
			f32_##N }, \
		{ DG__KERNEL_ARITH_F16, DG__STEP_ACC, DG__ISA_NEON | DG__ISA_NEON_FP16, \
			"neon-fp16", N, 8 * N, 96, f16_##N }, \
		{ DG__KERNEL_ARITH_I32, DG__STEP_MUL, DG__ISA_NEON, "neon", N, 4 * N, 24, \
			i32_##N }, \
		{ DG__KERNEL_ARITH_I16, DG__STEP_MUL, DG__ISA_NEON, "neon", N, 8 * N, 48, \
			i16_##N }, \
		{ DG__KERNEL_ARITH_I8, DG__STEP_DOT4, DG__ISA_NEON | DG__ISA_NEON_DOT, "neon-dot", \
			N, 4 * N, 96, dot_##N }, \
		{ DG__KERNEL_ARITH_I8, DG__STEP_MUL, DG__ISA_NEON, "neon", N, 16 * N, 96, \
			i8_##N },

static const dg__arith_kernel arith[] = { ROWS(16) ROWS(24) ROWS(12) };

/* No pass over the same memory may be left out. */
#define KEEP_PASS() __asm__ volatile("" : : : "memory")
#define BLOCK ((size_t)64)

static uint32_t read_neon(const void *src, size_t bytes, uint64_t times)
{
	const unsigned char *end = (const unsigned char *)src + bytes / BLOCK * BLOCK;
	uint32x4_t s0 = vdupq_n_u32(0), s1 = s0, s2 = s0, s3 = s0;
	uint32_t sum = 0;
	for (; times; times--) {
		KEEP_PASS();
		const unsigned char *p = src;
		for (; p < end; p += BLOCK) {
			const uint32_t *words = (const void *)p;
			s0 = vaddq_u32(s0, vld1q_u32(words));
			s1 = vaddq_u32(s1, vld1q_u32(words + 4));
			s2 = vaddq_u32(s2, vld1q_u32(words + 8));
			s3 = vaddq_u32(s3, vld1q_u32(words + 12));
		}
		for (size_t i = 0; i < bytes % BLOCK / 4; i++) {
			uint32_t word;
			memcpy(&word, p + 4 * i, sizeof(word));
			sum += word;
		}
	}
	return sum + vaddvq_u32(vaddq_u32(vaddq_u32(s0, s1), vaddq_u32(s2, s3)));
}

static void write_neon(void *dst, size_t bytes, uint64_t times, uint8_t value)
{
	unsigned char *end = (unsigned char *)dst + bytes / BLOCK * BLOCK;
	for (; times; times--, value++) {
		VEC v = vdupq_n_u8(value);
		unsigned char *p = dst;
		for (; p < end; p += BLOCK) {
			STORE(p, v);
			STORE(p + 16, v);
			STORE(p + 32, v);
			STORE(p + 48, v);
		}
		memset(p, value, bytes % BLOCK);
		KEEP_PASS();
	}
}

static void copy_neon(void *dst, const void *src, size_t bytes, uint64_t times)
{
	const unsigned char *end = (const unsigned char *)src + bytes / BLOCK * BLOCK;
	for (; times; times--) {
		const unsigned char *q = src;
		unsigned char *p = dst;
		for (; q < end; q += BLOCK, p += BLOCK) {
			VEC v0 = LOAD(q), v1 = LOAD(q + 16), v2 = LOAD(q + 32), v3 = LOAD(q + 48);
			STORE(p, v0);
			STORE(p + 16, v1);
			STORE(p + 32, v2);
			STORE(p + 48, v3);
		}
		memcpy(p, q, bytes % BLOCK);
		KEEP_PASS();
	}
}

static const dg__memory_kernel memory[] = {
	{ DG__KERNEL_READ, DG__ISA_NEON, "neon", false, read_neon, NULL, NULL },
	{ DG__KERNEL_WRITE, DG__ISA_NEON, "neon", false, NULL, write_neon, NULL },
	{ DG__KERNEL_COPY, DG__ISA_NEON, "neon", false, NULL, NULL, copy_neon },
};

const dg__kernel_set dg__kernels_neon = { arith, sizeof(arith) / sizeof(arith[0]), memory,
	sizeof(memory) / sizeof(memory[0]) };
#else
const dg__kernel_set dg__kernels_neon;
#endif
