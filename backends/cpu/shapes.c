/* Which kernels this CPU has, in which shapes. See cpu.h. */
#include <stdio.h>
#include <stdlib.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/isa.h"

/* Widest first. */
static const dg__kernel_set *const sets[] = { &dg__kernels_avx512, &dg__kernels_avx2,
	&dg__kernels_sse2, &dg__kernels_neon, &dg__kernels_generic };
#define SETS (sizeof(sets) / sizeof(sets[0]))

/* Bytes a core can move between registers and its first cache in a clock; none moves more. */
#define BYTES_PER_CLOCK 256

typedef struct list {
	dg__shape *shapes;
	size_t count;
} list;

static bool is_arithmetic(dg__kernel_id id)
{
	static const dg_dtype dtypes[] = {
#define DG_KERNEL(NAME, name, dtype) DG_##dtype,
#include "backends/core/kernels.def"
#undef DG_KERNEL
	};
	return dtypes[id] != DG_DTYPE_NONE;
}

static void add_arith(
	list *l, const dg__arith_kernel *k, uint32_t set, uint32_t at, uint32_t workers)
{
	if (l->count >= DG__SHAPES_PER_KERNEL)
		return;
	dg__shape *s = &l->shapes[l->count++];
	*s = (dg__shape){ .code = { set, at, workers },
		.step = k->step,
		.items = k->items * workers,
		.bound_per_clock = k->per_clock * workers };
	snprintf(s->text, sizeof(s->text), "%s chains=%u workers=%u", k->isa, (unsigned)k->chains,
		(unsigned)workers);
}

static void add_memory(
	list *l, const dg__memory_kernel *k, uint32_t set, uint32_t at, uint32_t workers)
{
	if (l->count >= DG__SHAPES_PER_KERNEL)
		return;
	dg__shape *s = &l->shapes[l->count++];
	*s = (dg__shape){ .code = { set, at, workers },
		.items = workers,
		.streaming = k->streaming,
		.bound_per_clock = (double)BYTES_PER_CLOCK * workers };
	snprintf(s->text, sizeof(s->text), "%s workers=%u", k->isa, (unsigned)workers);
}

static void add_all(list *l, const dg__dev *dev, dg__kernel_id id, uint32_t workers)
{
	for (uint32_t i = 0; i < SETS; i++) {
		for (uint32_t k = 0; k < sets[i]->arith_count; k++)
			if (sets[i]->arith[k].id == id && !(sets[i]->arith[k].needs & ~dev->isa))
				add_arith(l, &sets[i]->arith[k], i, k, workers);
		for (uint32_t k = 0; k < sets[i]->memory_count; k++)
			if (sets[i]->memory[k].id == id && !(sets[i]->memory[k].needs & ~dev->isa))
				add_memory(l, &sets[i]->memory[k], i, k, workers);
	}
}

bool dg__cpu_computes(uint32_t isa, dg__kernel_id id)
{
	for (uint32_t i = 0; i < SETS; i++)
		for (uint32_t k = 0; k < sets[i]->arith_count; k++)
			if (sets[i]->arith[k].id == id && !(sets[i]->arith[k].needs & ~isa))
				return true;
	return false;
}

/* Arithmetic scales with cores; memory is often busy before all of them are. */
static void add_counts(list *l, const dg__dev *dev, dg__kernel_id id)
{
	uint32_t all = dev->topology.count, least = is_arithmetic(id) ? (all + 1) / 2 : 1;
	for (uint32_t workers = all; workers >= least; workers /= 2) {
		add_all(l, dev, id, workers);
		if (workers == 1)
			break;
	}
}

/*
 * A launch goes to every worker. On one core there is nobody to spin: the core is taken in turns.
 */
static void add_empty(list *l, const dg__dev *dev)
{
	uint32_t workers = dg__cpupool_threads(dev->pool);
	if (dev->topology.count > 1) {
		dg__shape *s = &l->shapes[l->count++];
		*s = (dg__shape){ .code = { 0, 0, workers }, .items = 1 };
		snprintf(s->text, sizeof(s->text), "spinning workers=%u", (unsigned)workers);
	}
	dg__shape *s = &l->shapes[l->count++];
	*s = (dg__shape){ .code = { 0, 1, workers }, .items = 1 };
	snprintf(s->text, sizeof(s->text), "sleeping workers=%u", (unsigned)workers);
}

static dg_err not_supported(dg__kernel_id id, dg_error *reterr)
{
	switch (id) {
	case DG__KERNEL_ARITH_F16:
		return dg_error_set(reterr, DG_ENOTSUP,
			"the CPU has no f16 arithmetic: neither AVX-512 FP16 nor NEON FP16");
	case DG__KERNEL_ARITH_BF16:
		return dg_error_set(
			reterr, DG_ENOTSUP, "the CPU has no bf16 arithmetic: no AVX-512 BF16");
	default:
		return dg_error_set(reterr, DG_ENOTSUP, "the CPU has no such kernel");
	}
}

dg_err dg__cpu_shapes(dg__dev *dev, const dg__ask *ask, dg__shape *ret_shapes, size_t *ret_count,
	dg_error *reterr)
{
	list l = { .shapes = ret_shapes };
	if (ask->kernel == DG__KERNEL_EMPTY)
		add_empty(&l, dev);
	else
		add_counts(&l, dev, ask->kernel);
	if (!l.count)
		return not_supported(ask->kernel, reterr);
	*ret_count = l.count;
	return DG_OK;
}

dg_err dg__cpu_kernel_create(dg__dev *dev, dg__kernel_id id, const dg__shape *shape,
	dg__kernel **ret_kernel, dg_error *reterr)
{
	dg__kernel *kernel = calloc(1, sizeof(*kernel));
	uint32_t set = shape->code[0], at = shape->code[1];
	(void)dev;
	if (!kernel)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	kernel->id = id;
	kernel->workers = shape->code[2];
	if (id == DG__KERNEL_EMPTY)
		kernel->asleep = at == 1;
	else if (is_arithmetic(id))
		kernel->arith = &sets[set]->arith[at];
	else
		kernel->memory = &sets[set]->memory[at];
	*ret_kernel = kernel;
	return DG_OK;
}

void dg__cpu_kernel_destroy(dg__dev *dev, dg__kernel *kernel)
{
	(void)dev;
	free(kernel);
}
