/*
 * Which instruction sets this CPU has and this system lets a program use.
 */
#ifndef DEVGATE_BACKENDS_CPU_ISA_H
#define DEVGATE_BACKENDS_CPU_ISA_H

#include <stddef.h>
#include <stdint.h>

/** Bits of dg__isa_detect(). */
enum {
	DG__ISA_SSE2 = 1 << 0,
	DG__ISA_AVX2 = 1 << 1, /* with FMA */
	DG__ISA_AVX512 = 1 << 2, /* F, BW, DQ, VL */
	DG__ISA_AVX512_VNNI = 1 << 3,
	DG__ISA_AVX512_BF16 = 1 << 4,
	DG__ISA_AVX512_FP16 = 1 << 5,
	DG__ISA_AVX_VNNI = 1 << 6,
	DG__ISA_NEON = 1 << 7,
	DG__ISA_NEON_FP16 = 1 << 8,
	DG__ISA_NEON_DOT = 1 << 9
};

/** The sets that can be used; asks the CPU and the operating system. Threads: safe. */
uint32_t dg__isa_detect(void);
/** Their names, "x86-64 avx2 avx512", as snprintf. */
size_t dg__isa_format(uint32_t isa, char *buf, size_t size);
/** Who made the CPU, "AMD"; "" where it does not say. As snprintf. */
size_t dg__isa_vendor(char *buf, size_t size);
/** The CPU's own name for itself; "" where it has none. As snprintf. */
size_t dg__isa_brand(char *buf, size_t size);

#endif
