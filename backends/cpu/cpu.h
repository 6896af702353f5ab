/*
 * What the parts of the CPU backend share: an open device, its buffers and kernels.
 */
#ifndef DEVGATE_BACKENDS_CPU_CPU_H
#define DEVGATE_BACKENDS_CPU_CPU_H

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/pool.h"

struct dg__dev {
	dg__topology topology;
	uint32_t isa;
	dg__cpupool *pool; /* owned */
	uint64_t throttles; /* when it was opened */
	bool has_throttles;
};

struct dg__buf {
	unsigned char *data; /* owned mapping, page-aligned */
	uint64_t size;
};

struct dg__kernel {
	dg__kernel_id id;
	const dg__arith_kernel *arith; /* the one of the id, the other NULL */
	const dg__memory_kernel *memory;
	uint32_t workers;
	bool asleep; /* EMPTY */
};

/* shapes.c: slots of the same names. */
dg_err dg__cpu_shapes(dg__dev *dev, const dg__ask *ask, dg__shape *ret_shapes, size_t *ret_count,
	dg_error *reterr) DG_MUST_CHECK;
dg_err dg__cpu_kernel_create(dg__dev *dev, dg__kernel_id id, const dg__shape *shape,
	dg__kernel **ret_kernel, dg_error *reterr) DG_MUST_CHECK;
void dg__cpu_kernel_destroy(dg__dev *dev, dg__kernel *kernel);
/** Whether any kernel of this CPU computes in a dtype of kernels.def. */
bool dg__cpu_computes(uint32_t isa, dg__kernel_id id);

/* run.c */
dg_err dg__cpu_time(dg__dev *dev, dg__kernel *kernel, const dg__launch *launch,
	const dg__stop *stop, dg__timing *ret_timing, dg_error *reterr) DG_MUST_CHECK;
/**
 * Have every page of a buffer backed, by the threads that will use it. DG_ECANCELLED, DG_ETIMEOUT.
 */
dg_err dg__cpu_touch(
	dg__dev *dev, dg__buf *buf, const dg__stop *stop, dg_error *reterr) DG_MUST_CHECK;
/** Clock of the first core, by a chain of instructions of known length. False: not on this CPU. */
bool dg__cpu_clock(dg__dev *dev, double *ret_hz);

#endif
