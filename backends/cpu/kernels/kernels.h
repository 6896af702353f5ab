/*
 * The kernels of one instruction set, as tables. What each must compute is in
 * backends/core/kernels.def.
 */
#ifndef DEVGATE_BACKENDS_CPU_KERNELS_KERNELS_H
#define DEVGATE_BACKENDS_CPU_KERNELS_KERNELS_H

#include <stddef.h>

#include "backends/core/backend.h"

/**
 * Take steps (1..) on the items at state; a and b as in dg__launch.
 * Threads: one per state. Blocks: for a few nanoseconds per step.
 */
typedef void dg__arith_run(void *state, uint64_t steps, uint64_t a, uint64_t b);

typedef struct dg__arith_kernel {
	dg__kernel_id id;
	dg__step step;
	uint32_t needs; /* DG__ISA_* bits, all of them */
	const char *isa; /* as evidence names it */
	uint32_t chains; /* that do not wait for each other */
	uint32_t items; /* of one worker */
	double per_clock; /* operations a clock and core, generously */
	dg__arith_run *run;
} dg__arith_kernel;

/**
 * Sum of the 4-byte words, read times (1..) over. Memory is 64-byte aligned; bytes is a multiple of
 * 4. (So for those below; write fills with bytes of value, and of one more, modulo 256, each time.)
 */
typedef uint32_t dg__read_run(const void *src, size_t bytes, uint64_t times);
typedef void dg__write_run(void *dst, size_t bytes, uint64_t times, uint8_t value);
typedef void dg__copy_run(void *dst, const void *src, size_t bytes, uint64_t times);

typedef struct dg__memory_kernel {
	dg__kernel_id id;
	uint32_t needs;
	const char *isa;
	bool streaming;
	dg__read_run *read; /* the one of the id, the others NULL */
	dg__write_run *write;
	dg__copy_run *copy;
} dg__memory_kernel;

/** Kernels of an instruction set; none on machines of another architecture. */
typedef struct dg__kernel_set {
	const dg__arith_kernel *arith;
	size_t arith_count;
	const dg__memory_kernel *memory;
	size_t memory_count;
} dg__kernel_set;

extern const dg__kernel_set dg__kernels_avx512, dg__kernels_avx2, dg__kernels_sse2,
	dg__kernels_neon, dg__kernels_generic;

#endif
