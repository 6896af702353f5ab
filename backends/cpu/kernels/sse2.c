/*
 * Kernels in SSE2, which every x86-64 has, and the string instructions. See kernels.h.
 */
#include "backends/cpu/kernels/kernels.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#include <string.h>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels/chains.h"

#define TARGET
#define NEEDS DG__ISA_SSE2
#define ISA "sse2"
#define VEC __m128i
#define LOAD _mm_loadu_si128
#define STORE _mm_storeu_si128
#define STREAM _mm_stream_si128
#define ADD32 _mm_add_epi32
#define SET32 _mm_set1_epi32
#define ZERO _mm_setzero_si128

#define memory vector_memory
#include "backends/cpu/kernels/memory_x86.h"
#undef memory

/*
 * How memset() and memcpy() of common libraries move much: the CPU knows that a line is
 * overwritten.
 */
static void write_string(void *dst, size_t bytes, uint64_t times, uint8_t value)
{
	for (; times; times--, value++) {
		void *to = dst;
		size_t count = bytes;
		__asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(value) : "memory");
	}
}

static void copy_string(void *dst, const void *src, size_t bytes, uint64_t times)
{
	for (; times; times--) {
		void *to = dst;
		const void *from = src;
		size_t count = bytes;
		__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
	}
}

static const dg__memory_kernel memory[] = {
	{ DG__KERNEL_WRITE, NEEDS, "rep stos", false, NULL, write_string, NULL },
	{ DG__KERNEL_COPY, NEEDS, "rep movs", false, NULL, NULL, copy_string },
	{ DG__KERNEL_READ, NEEDS, ISA, false, read_vectors, NULL, NULL },
	{ DG__KERNEL_WRITE, NEEDS, ISA, false, NULL, write_vectors, NULL },
	{ DG__KERNEL_COPY, NEEDS, ISA, false, NULL, NULL, copy_vectors },
	{ DG__KERNEL_WRITE, NEEDS, ISA " streaming", true, NULL, write_streaming, NULL },
	{ DG__KERNEL_COPY, NEEDS, ISA " streaming", true, NULL, NULL, copy_streaming },
};

#define SET_64(bits) _mm_set1_epi64x((long long)(bits))
#define SET_32(bits) _mm_set1_epi32((int)(bits))
#define SET_16(bits) _mm_set1_epi16((short)(bits))
#define SET_8(bits) _mm_set1_epi16((short)((bits)&0xff))
/* 32-bit elements are multiplied in lanes of 64 bits. */
#define SET_HALF(bits) _mm_set1_epi64x((long long)((bits)&0xffffffffu))

#define IN(i) VEC x##i = LOAD(v + (i));
#define OUT(i) STORE(v + (i), x##i);
#define IN_BYTES(even, odd, i) \
	VEC x##even = LOAD(v + (i)); \
	VEC x##odd = _mm_srli_epi16(x##even, 8);
#define OUT_BYTES(even, odd, i) \
	STORE(v + (i), \
		_mm_or_si128(_mm_and_si128(x##even, SET_16(0xff)), _mm_slli_epi16(x##odd, 8)));
#define IN_HALVES(even, odd, i) \
	VEC x##even = LOAD(v + (i)); \
	VEC x##odd = _mm_srli_epi64(x##even, 32);
#define OUT_HALVES(even, odd, i) \
	STORE(v + (i), _mm_or_si128(_mm_and_si128(x##even, SET_HALF(0xffffffffu)), \
			       _mm_slli_epi64(x##odd, 32)));

#define STEP_MUL_ADD(mul, add, i) \
	__asm__(mul " %1, %0\n\t" add " %2, %0" : "+x"(x##i) : "x"(a), "x"(b));
#define STEP_MUL(op, i) __asm__(op " %1, %0" : "+x"(x##i) : "x"(a));
#define STEP_F64(i) STEP_MUL_ADD("mulpd", "addpd", i)
#define STEP_F32(i) STEP_MUL_ADD("mulps", "addps", i)
#define STEP_I32(i) STEP_MUL("pmuludq", i)
#define STEP_I16(i) STEP_MUL("pmullw", i)

#define KERNELS(N) \
	ARITH_KERNEL(f64, N, TARGET, VEC, SET_64, CHAINS_##N, IN, STEP_F64, OUT) \
	ARITH_KERNEL(f32, N, TARGET, VEC, SET_32, CHAINS_##N, IN, STEP_F32, OUT) \
	ARITH_KERNEL(i32, N, TARGET, VEC, SET_HALF, PAIRS_##N, IN_HALVES, STEP_I32, OUT_HALVES) \
	ARITH_KERNEL(i16, N, TARGET, VEC, SET_16, CHAINS_##N, IN, STEP_I16, OUT) \
	ARITH_KERNEL(i8, N, TARGET, VEC, SET_8, PAIRS_##N, IN_BYTES, STEP_I16, OUT_BYTES)

KERNELS(8)
KERNELS(12)

#define ROWS(N) \
	{ DG__KERNEL_ARITH_F64, DG__STEP_FMA, NEEDS, ISA, N, 2 * N, 16, f64_##N }, \
		{ DG__KERNEL_ARITH_F32, DG__STEP_FMA, NEEDS, ISA, N, 4 * N, 32, f32_##N }, \
		{ DG__KERNEL_ARITH_I32, DG__STEP_MUL, NEEDS, ISA, N, 2 * N, 8, i32_##N }, \
		{ DG__KERNEL_ARITH_I16, DG__STEP_MUL, NEEDS, ISA, N, 8 * N, 32, i16_##N }, \
		{ DG__KERNEL_ARITH_I8, DG__STEP_MUL, NEEDS, ISA, N, 8 * N, 32, i8_##N },

static const dg__arith_kernel arith[] = { ROWS(12) ROWS(8) };

const dg__kernel_set dg__kernels_sse2 = { arith, sizeof(arith) / sizeof(arith[0]), memory,
	sizeof(memory) / sizeof(memory[0]) };
#else
const dg__kernel_set dg__kernels_sse2;
#endif
