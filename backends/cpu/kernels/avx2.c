/* Kernels in AVX2 with FMA. See kernels.h. */
#include "backends/cpu/kernels/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels/chains.h"

#define TARGET __attribute__((target("avx2,fma")))
#define NEEDS DG__ISA_AVX2
#define ISA "avx2"
#define VEC __m256i
#define LOAD _mm256_loadu_si256
#define STORE _mm256_storeu_si256
#define STREAM _mm256_stream_si256
#define ADD32 _mm256_add_epi32
#define SET32 _mm256_set1_epi32
#define ZERO _mm256_setzero_si256

#include "backends/cpu/kernels/memory_x86.h"

#define SET_64(bits) _mm256_set1_epi64x((long long)(bits))
#define SET_32(bits) _mm256_set1_epi32((int)(bits))
#define SET_16(bits) _mm256_set1_epi16((short)(bits))
#define SET_8(bits) _mm256_set1_epi16((short)((bits)&0xff))

#define IN(i) VEC x##i = LOAD(v + (i));
#define OUT(i) STORE(v + (i), x##i);
#define IN_BYTES(even, odd, i) \
	VEC x##even = LOAD(v + (i)); \
	VEC x##odd = _mm256_srli_epi16(x##even, 8);
#define OUT_BYTES(even, odd, i) \
	STORE(v + (i), _mm256_or_si256(_mm256_and_si256(x##even, SET_16(0xff)), \
			       _mm256_slli_epi16(x##odd, 8)));

#define STEP_3(op, i) __asm__(op " %2, %1, %0" : "+x"(x##i) : "x"(a), "x"(b));
#define STEP_2(op, i) __asm__(op " %1, %0, %0" : "+x"(x##i) : "x"(a));
#define STEP_F64(i) STEP_3("vfmadd213pd", i)
#define STEP_F32(i) STEP_3("vfmadd213ps", i)
#define STEP_DOT(i) STEP_3("%{vex%} vpdpbusd", i)
#define STEP_I32(i) STEP_2("vpmulld", i)
#define STEP_I16(i) STEP_2("vpmullw", i)
/*
 * There is no multiplication of 64-bit lanes: low halves, and the two cross products above them.
 * Where shuffled (0xb1), the halves of each lane are exchanged.
 */
#define STEP_I64(i) \
	{ \
		VEC low, cross; \
		__asm__("vpmuludq %3, %0, %1\n\tvpshufd $0xb1, %0, %0\n\tvpmulld %3, %0, %2\n\t" \
			"vpshufd $0xb1, %2, %0\n\tvpaddd %0, %2, %2\n\tvpsllq $32, %2, %2\n\t" \
			"vpaddq %1, %2, %0" \
			: "+x"(x##i), "=&x"(low), "=&x"(cross) \
			: "x"(a)); \
		(void)low; \
		(void)cross; \
	}

#define KERNELS(N) \
	ARITH_KERNEL(f64, N, TARGET, VEC, SET_64, CHAINS_##N, IN, STEP_F64, OUT) \
	ARITH_KERNEL(f32, N, TARGET, VEC, SET_32, CHAINS_##N, IN, STEP_F32, OUT) \
	ARITH_KERNEL(dot, N, TARGET, VEC, SET_32, CHAINS_##N, IN, STEP_DOT, OUT) \
	ARITH_KERNEL(i64, N, TARGET, VEC, SET_64, CHAINS_##N, IN, STEP_I64, OUT) \
	ARITH_KERNEL(i32, N, TARGET, VEC, SET_32, CHAINS_##N, IN, STEP_I32, OUT) \
	ARITH_KERNEL(i16, N, TARGET, VEC, SET_16, CHAINS_##N, IN, STEP_I16, OUT) \
	ARITH_KERNEL(i8, N, TARGET, VEC, SET_8, PAIRS_##N, IN_BYTES, STEP_I16, OUT_BYTES)

KERNELS(8)
KERNELS(12)

/* Four lanes' worth of multipliers would be more than any has. */
#define ROWS(N) \
	{ DG__KERNEL_ARITH_F64, DG__STEP_FMA, NEEDS, ISA, N, 4 * N, 32, f64_##N }, \
		{ DG__KERNEL_ARITH_F32, DG__STEP_FMA, NEEDS, ISA, N, 8 * N, 64, f32_##N }, \
		{ DG__KERNEL_ARITH_I64, DG__STEP_MUL, NEEDS, ISA, N, 4 * N, 8, i64_##N }, \
		{ DG__KERNEL_ARITH_I32, DG__STEP_MUL, NEEDS, ISA, N, 8 * N, 32, i32_##N }, \
		{ DG__KERNEL_ARITH_I16, DG__STEP_MUL, NEEDS, ISA, N, 16 * N, 64, i16_##N }, \
		{ DG__KERNEL_ARITH_I8, DG__STEP_DOT4, NEEDS | DG__ISA_AVX_VNNI, "avx-vnni", N, \
			8 * N, 128, dot_##N }, \
		{ DG__KERNEL_ARITH_I8, DG__STEP_MUL, NEEDS, ISA, N, 16 * N, 64, i8_##N },

static const dg__arith_kernel arith[] = { ROWS(12) ROWS(8) };

const dg__kernel_set dg__kernels_avx2 = { arith, sizeof(arith) / sizeof(arith[0]), memory,
	sizeof(memory) / sizeof(memory[0]) };
#else
const dg__kernel_set dg__kernels_avx2;
#endif
