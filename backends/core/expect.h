/*
 * What the arithmetic kernels of kernels.def must compute, in closed form: the operands are chosen
 * so that every step is exact or rounds in a known way, and a result tells how many steps were
 * taken.
 */
#ifndef DEVGATE_BACKENDS_CORE_EXPECT_H
#define DEVGATE_BACKENDS_CORE_EXPECT_H

#include "backends/core/backend.h"

/** Items begin with one of so many values: item i with number i % DG__SEEDS. */
#define DG__SEEDS 16

/** Two sets of operands: one that shows every part of a step, one to be timed with. */
typedef enum dg__purpose { DG__TO_PROVE, DG__TO_TIME } dg__purpose;

typedef struct dg__operands {
	uint64_t a, b; /* as in dg__launch */
	uint64_t seeds[DG__SEEDS]; /* bit patterns of an item */
	unsigned item_bytes; /* 1, 2, 4 or 8 */
	uint64_t max_steps; /* in one run, for the result to be known */
} dg__operands;

/** Operands for a step in a dtype (as kernels.def has it). DG_ENOTSUP: there is no such step. */
dg_err dg__expect_operands(dg__step step, dg_dtype dtype, dg__purpose purpose,
	dg__operands *ret_operands, dg_error *reterr) DG_MUST_CHECK;

/** Bit pattern that an item which began as seed number i holds after steps (0..max_steps). */
uint64_t dg__expect_item(dg__step step, dg_dtype dtype, dg__purpose purpose,
	const dg__operands *operands, unsigned i, uint64_t steps);

/** Operations that a step of one item counts for. */
unsigned dg__expect_ops(dg__step step, dg_dtype dtype);

/** Bit pattern of a value that the float dtype holds exactly as a normal number, or of 0. */
uint64_t dg__expect_encode(dg_dtype dtype, double value);

#endif
