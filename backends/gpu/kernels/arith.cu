/*
 * Arithmetic: independent chains of one operation. Register number c * threads + thread belongs to
 * chain c, so that loads and stores are contiguous; packed types hold two items in a register.
 * Compiled after dialect.cuh. PART picks one kernel of kernels.def, counted from 1; 0 is all of them.
 */
#ifndef PART
#define PART 0
#endif
#define HAS(part) (PART == 0 || PART == (part))
#define THREADS 256
#define UNROLL 16

/* Operands shorter than a register are repeated to fill it. */
template <typename T> DEVICE T low_bits(u64 bits)
{
	union {
		u64 bits;
		T value;
	} u;
	u.bits = bits;
	return u.value;
}
#define LOAD_ONE(TYPE, bits) low_bits<TYPE>(bits)
#define LOAD_TWO(TYPE, bits) low_bits<TYPE>(((bits) & 0xffff) * 0x10001)
#define LOAD_TWO_WORDS(TYPE, bits) low_bits<TYPE>(((bits) & 0xffffffff) * 0x100000001)

/*
 * STORED lies in memory, TYPE is what a register holds, LOAD how operands become one, STEP one step
 * of x by a and b. The first loop is long enough to hide its own count.
 */
#define CHAINS(name, chains, STORED, TYPE, LOAD, STEP) \
	KERNEL(THREADS) name##_##chains(STORED *state, u64 steps, u64 bits_a, u64 bits_b, u32 threads) \
	{ \
		const u32 at = BLOCK * THREADS + THREAD; \
		const TYPE a = LOAD(TYPE, bits_a), b = LOAD(TYPE, bits_b); \
		TYPE x[chains]; \
		_Pragma("unroll") for (int c = 0; c < chains; c++) \
			x[c] = (TYPE)state[(u64)c * threads + at]; \
		for (u64 n = steps / UNROLL; n; n--) { \
			_Pragma("unroll") for (int i = 0; i < UNROLL; i++) \
			_Pragma("unroll") for (int c = 0; c < chains; c++) \
				STEP(x[c], a, b); \
		} \
		_Pragma("unroll 1") for (u32 n = (u32)(steps % UNROLL); n; n--) { \
			_Pragma("unroll") for (int c = 0; c < chains; c++) \
				STEP(x[c], a, b); \
		} \
		_Pragma("unroll") for (int c = 0; c < chains; c++) \
			state[(u64)c * threads + at] = (STORED)x[c]; \
		(void)b; \
	}
#define ALL_CHAINS(name, STORED, TYPE, LOAD, STEP) \
	CHAINS(name, 4, STORED, TYPE, LOAD, STEP) \
	CHAINS(name, 8, STORED, TYPE, LOAD, STEP) \
	CHAINS(name, 16, STORED, TYPE, LOAD, STEP)

#if ON_AMD
/* One instruction takes both halves of a pair where the chip has packed arithmetic. */
#pragma clang fp contract(fast)
typedef float f32x2 __attribute__((ext_vector_type(2)));
typedef _Float16 f16x2 __attribute__((ext_vector_type(2)));
typedef u16 u16x2 __attribute__((ext_vector_type(2)));
#define FMA(x, a, b) ((x) = (x) * (a) + (b))
#define MUL_32(x, a, b) do { (x) *= (a); OPAQUE(x); } while (0)
#define MUL_64(x, a, b) MUL_32(x, a, b)
#define DOT4(x, a, b) ((x) = __builtin_amdgcn_udot4((a), (b), (x), false))
#define F32_PAIR f32x2, f32x2, LOAD_TWO_WORDS, FMA
#define F16_PAIR f16x2, f16x2, LOAD_TWO, FMA
#define I16_ITEMS u16x2, u16x2, LOAD_TWO, MUL_32
#define HAS_F16 1
#define HAS_BF16 0
#if defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx940__) || \
	defined(__gfx941__) || defined(__gfx942__) || defined(__gfx950__) || defined(__gfx1011__) || \
	defined(__gfx1012__) || defined(__GFX11__) || defined(__GFX12__) || \
	(defined(__gfx1030__) || defined(__gfx1031__) || defined(__gfx1032__) || \
	defined(__gfx1033__) || defined(__gfx1034__) || defined(__gfx1035__) || defined(__gfx1036__))
#define HAS_DOT4 1
#else
#define HAS_DOT4 0
#endif
#else
#define FMA(x, a, b) ((x) = fma((x), (a), (b)))
#define FMA_16(x, a, b) asm("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b))
#define FMA_BF16(x, a, b) asm("fma.rn.bf16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b))
#define MUL_32(x, a, b) asm("mul.lo.u32 %0, %0, %1;" : "+r"(x) : "r"(a))
#define MUL_64(x, a, b) asm("mul.lo.u64 %0, %0, %1;" : "+l"(x) : "l"(a))
#define DOT4(x, a, b) asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(x) : "r"(a), "r"(b))
#define F32_PAIR float, float, LOAD_ONE, FMA
#define F16_PAIR u32, u32, LOAD_TWO, FMA_16
#define I16_ITEMS u16, u32, LOAD_ONE, MUL_32
#define HAS_F16 (__CUDA_ARCH__ >= 530)
#define HAS_BF16 (__CUDA_ARCH__ >= 800)
#define HAS_DOT4 (__CUDA_ARCH__ >= 610)
#endif

#define EXPAND(name, ...) ALL_CHAINS(name, __VA_ARGS__)

#if HAS(1)
ALL_CHAINS(arith_f64, double, double, LOAD_ONE, FMA)
#endif
#if HAS(2)
EXPAND(arith_f32, F32_PAIR)
#endif
#if HAS(3) && HAS_F16
EXPAND(arith_f16, F16_PAIR)
#endif
#if HAS(4) && HAS_BF16
ALL_CHAINS(arith_bf16, u32, u32, LOAD_TWO, FMA_BF16)
#endif
#if HAS(5)
ALL_CHAINS(arith_i64, u64, u64, LOAD_ONE, MUL_64)
#endif
#if HAS(6)
ALL_CHAINS(arith_i32, u32, u32, LOAD_ONE, MUL_32)
#endif
#if HAS(7)
EXPAND(arith_i16, I16_ITEMS)
#endif
#if HAS(8)
#if HAS_DOT4
ALL_CHAINS(arith_i8, u32, u32, LOAD_ONE, DOT4)
#endif
ALL_CHAINS(arith_i8mul, u8, u32, LOAD_ONE, MUL_32)
#endif
