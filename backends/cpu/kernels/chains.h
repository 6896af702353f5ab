/*
 * How an arithmetic kernel is written: N chains of steps, each in a register of its own, none
 * waiting for another. A step is one statement of assembly, so that no compiler folds, reorders or
 * drops it, and each gives full-rate code at any level of optimisation.
 */
#ifndef DEVGATE_BACKENDS_CPU_KERNELS_CHAINS_H
#define DEVGATE_BACKENDS_CPU_KERNELS_CHAINS_H

#define CHAINS_4(M) M(0) M(1) M(2) M(3)
#define CHAINS_8(M) CHAINS_4(M) M(4) M(5) M(6) M(7)
#define CHAINS_12(M) CHAINS_8(M) M(8) M(9) M(10) M(11)
#define CHAINS_16(M) CHAINS_12(M) M(12) M(13) M(14) M(15)
#define CHAINS_24(M) CHAINS_16(M) M(16) M(17) M(18) M(19) M(20) M(21) M(22) M(23)

/* Half as many vectors of state as chains: each is taken apart into two. */
#define PAIRS_8(M) M(0, 1, 0) M(2, 3, 1) M(4, 5, 2) M(6, 7, 3)
#define PAIRS_12(M) PAIRS_8(M) M(8, 9, 4) M(10, 11, 5)
#define PAIRS_16(M) PAIRS_12(M) M(12, 13, 6) M(14, 15, 7)

/*
 * A kernel NAME_N: TARGET attributes, vector type VEC, LIST the chains, IN and OUT move state, SET
 * spreads an operand over a vector, STEP steps chain i.
 */
#define ARITH_KERNEL(NAME, N, TARGET, VEC, SET, IN_LIST, IN, STEP, OUT) \
	TARGET static void NAME##_##N( \
		void *state, uint64_t steps, uint64_t a_bits, uint64_t b_bits) \
	{ \
		VEC *v = state; \
		const VEC a = SET(a_bits), b = SET(b_bits); \
		(void)b; \
		IN_LIST(IN) \
		for (; steps; steps--) { \
			CHAINS_##N(STEP) \
		} \
		IN_LIST(OUT) \
	}

#endif
