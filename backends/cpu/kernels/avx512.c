/* Kernels in AVX-512. See kernels.h. */
#include "backends/cpu/kernels/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels/chains.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define NEEDS DG__ISA_AVX512
#define ISA "avx512"
#define VEC __m512i
#define LOAD _mm512_loadu_si512
#define STORE _mm512_storeu_si512
#define STREAM _mm512_stream_si512
#define ADD32 _mm512_add_epi32
#define SET32 _mm512_set1_epi32
#define ZERO _mm512_setzero_si512

#include "backends/cpu/kernels/memory_x86.h"

#define SET_64(bits) _mm512_set1_epi64((long long)(bits))
#define SET_32(bits) _mm512_set1_epi32((int)(bits))
#define SET_16(bits) _mm512_set1_epi16((short)(bits))
/*
 * Bytes are multiplied in lanes of 16 bits, the low byte of a product depends on low bytes alone.
 */
#define SET_8(bits) _mm512_set1_epi16((short)((bits)&0xff))

#define IN(i) VEC x##i = LOAD(v + (i));
#define OUT(i) STORE(v + (i), x##i);
#define IN_BYTES(even, odd, i) \
	VEC x##even = LOAD(v + (i)); \
	VEC x##odd = _mm512_srli_epi16(x##even, 8);
#define OUT_BYTES(even, odd, i) \
	STORE(v + (i), _mm512_or_si512(_mm512_and_si512(x##even, SET_16(0xff)), \
			       _mm512_slli_epi16(x##odd, 8)));

#define STEP_3(op, i) __asm__(op " %2, %1, %0" : "+v"(x##i) : "v"(a), "v"(b));
#define STEP_2(op, i) __asm__(op " %1, %0, %0" : "+v"(x##i) : "v"(a));
#define STEP_F64(i) STEP_3("vfmadd213pd", i)
#define STEP_F32(i) STEP_3("vfmadd213ps", i)
#define STEP_F16(i) STEP_3("vfmadd213ph", i)
#define STEP_BF16(i) STEP_3("vdpbf16ps", i)
#define STEP_DOT(i) STEP_3("vpdpbusd", i)
#define STEP_I64(i) STEP_2("vpmullq", i)
#define STEP_I32(i) STEP_2("vpmulld", i)
#define STEP_I16(i) STEP_2("vpmullw", i)

#define KERNELS(N) \
	ARITH_KERNEL(f64, N, TARGET, VEC, SET_64, CHAINS_##N, IN, STEP_F64, OUT) \
	ARITH_KERNEL(f32, N, TARGET, VEC, SET_32, CHAINS_##N, IN, STEP_F32, OUT) \
	ARITH_KERNEL(f16, N, TARGET, VEC, SET_16, CHAINS_##N, IN, STEP_F16, OUT) \
	ARITH_KERNEL(bf16, N, TARGET, VEC, SET_32, CHAINS_##N, IN, STEP_BF16, OUT) \
	ARITH_KERNEL(dot, N, TARGET, VEC, SET_32, CHAINS_##N, IN, STEP_DOT, OUT) \
	ARITH_KERNEL(i64, N, TARGET, VEC, SET_64, CHAINS_##N, IN, STEP_I64, OUT) \
	ARITH_KERNEL(i32, N, TARGET, VEC, SET_32, CHAINS_##N, IN, STEP_I32, OUT) \
	ARITH_KERNEL(i16, N, TARGET, VEC, SET_16, CHAINS_##N, IN, STEP_I16, OUT) \
	ARITH_KERNEL(i8, N, TARGET, VEC, SET_8, PAIRS_##N, IN_BYTES, STEP_I16, OUT_BYTES)

KERNELS(8)
KERNELS(12)
KERNELS(16)

/* Two multipliers of full width at most, so twice the lanes a clock. */
#define ROWS(N) \
	{ DG__KERNEL_ARITH_F64, DG__STEP_FMA, NEEDS, ISA, N, 8 * N, 32, f64_##N }, \
		{ DG__KERNEL_ARITH_F32, DG__STEP_FMA, NEEDS, ISA, N, 16 * N, 64, f32_##N }, \
		{ DG__KERNEL_ARITH_F16, DG__STEP_FMA, NEEDS | DG__ISA_AVX512_FP16, "avx512-fp16", \
			N, 32 * N, 128, f16_##N }, \
		{ DG__KERNEL_ARITH_BF16, DG__STEP_DOT2, NEEDS | DG__ISA_AVX512_BF16, \
			"avx512-bf16", N, 16 * N, 128, bf16_##N }, \
		{ DG__KERNEL_ARITH_I64, DG__STEP_MUL, NEEDS, ISA, N, 8 * N, 16, i64_##N }, \
		{ DG__KERNEL_ARITH_I32, DG__STEP_MUL, NEEDS, ISA, N, 16 * N, 32, i32_##N }, \
		{ DG__KERNEL_ARITH_I16, DG__STEP_MUL, NEEDS, ISA, N, 32 * N, 64, i16_##N }, \
		{ DG__KERNEL_ARITH_I8, DG__STEP_DOT4, NEEDS | DG__ISA_AVX512_VNNI, "avx512-vnni", \
			N, 16 * N, 128, dot_##N }, \
		{ DG__KERNEL_ARITH_I8, DG__STEP_MUL, NEEDS, ISA, N, 32 * N, 64, i8_##N },

static const dg__arith_kernel arith[] = { ROWS(12) ROWS(16) ROWS(8) };

const dg__kernel_set dg__kernels_avx512 = { arith, sizeof(arith) / sizeof(arith[0]), memory,
	sizeof(memory) / sizeof(memory[0]) };
#else
const dg__kernel_set dg__kernels_avx512;
#endif
