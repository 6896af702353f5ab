/* The ways to run each kernel, and making one ready. See gpu.h and kernels/. */
#include "backends/gpu/gpu.h"

#include <stdio.h>
#include <stdlib.h>

#define ARITH_THREADS 256
#define MEMORY_THREADS 512
#define VECTOR_BYTES 16
#define NARROW_THREADS 128
#define SUMS 1024
/* Bytes that a multiprocessor moves between registers and its cache in a clock; none moves more. */
#define CACHE_BYTES_PER_CLOCK 128

/* What is in dg__shape.code. */
enum { CODE_VARIANT = 0, CODE_PER_UNIT = 1, CODE_FORM = 2 };
enum { FORM_PLAIN = 0, FORM_MULTIPLY = 1, FORM_CACHED = 2, FORM_TILES = 3 };

/* An arithmetic kernel's items: how many a register holds, and its step. */
typedef struct arith {
	const char *name;
	dg__step step;
	uint32_t items; /* in a register, by CUDA; by HIP beside it */
	uint32_t items_amd;
	dg__kernel_id id;
	uint32_t form;
} arith;

static const arith ariths[] = {
	{ "arith_f64", DG__STEP_FMA, 1, 1, DG__KERNEL_ARITH_F64, FORM_PLAIN },
	{ "arith_f32", DG__STEP_FMA, 1, 2, DG__KERNEL_ARITH_F32, FORM_PLAIN },
	{ "arith_f16", DG__STEP_FMA, 2, 2, DG__KERNEL_ARITH_F16, FORM_PLAIN },
	{ "arith_bf16", DG__STEP_FMA, 2, 2, DG__KERNEL_ARITH_BF16, FORM_PLAIN },
	{ "arith_i64", DG__STEP_MUL, 1, 1, DG__KERNEL_ARITH_I64, FORM_PLAIN },
	{ "arith_i32", DG__STEP_MUL, 1, 1, DG__KERNEL_ARITH_I32, FORM_PLAIN },
	{ "arith_i16", DG__STEP_MUL, 1, 2, DG__KERNEL_ARITH_I16, FORM_PLAIN },
	{ "arith_i8", DG__STEP_DOT4, 1, 1, DG__KERNEL_ARITH_I8, FORM_PLAIN },
	{ "arith_i8mul", DG__STEP_MUL, 1, 1, DG__KERNEL_ARITH_I8, FORM_MULTIPLY },
};

/* A way to move memory. */
typedef struct memory {
	uint32_t vectors, per_unit, form;
} memory;

typedef struct list {
	dg__shape *shapes;
	size_t count;
} list;

static const arith *arith_of(dg__kernel_id id, uint32_t form)
{
	for (size_t i = 0; i < DG__GPU_COUNT(ariths); i++)
		if (ariths[i].id == id && ariths[i].form == form)
			return &ariths[i];
	return NULL;
}

static double bound_of(const dg__dev *dev, dg__kernel_id id)
{
	const dg__gpu_vendor *v = dev->gpu->vendor;
	for (size_t i = 0; i < v->bound_count; i++)
		if (v->bounds[i].kernel == id)
			return v->bounds[i].per_clock * dev->identity.units;
	return 0;
}

static void add_arith(
	list *l, const dg__dev *dev, const arith *a, uint32_t chains, uint32_t per_unit)
{
	static const char *const steps[] = { "fma", "mul", "dot2", "dot4", "acc" };
	uint32_t threads = dev->identity.units * per_unit * ARITH_THREADS;
	uint32_t items = dev->gpu->vendor->pairs ? a->items_amd : a->items;
	dg__shape *s = &l->shapes[l->count++];
	*s = (dg__shape){ .code = { chains, per_unit, a->form },
		.step = a->step,
		.items = threads * chains * items,
		.bound_per_clock = bound_of(dev, a->id) };
	snprintf(s->text, sizeof(s->text), "%s chains=%u blocks=%u", steps[a->step],
		(unsigned)chains, (unsigned)per_unit);
}

/*
 * A few chains on 8 warps of a multiprocessor fill most of it, and few items are soon checked; some
 * instructions want more warps, some longer loops.
 */
static void add_ariths(list *l, const dg__dev *dev, dg__kernel_id id)
{
	static const uint32_t pairs[][2] = { { 4, 1 }, { 16, 1 }, { 8, 1 }, { 4, 2 }, { 4, 4 } };
	for (size_t i = 0; i < DG__GPU_COUNT(pairs); i++)
		add_arith(l, dev, arith_of(id, FORM_PLAIN), pairs[i][0], pairs[i][1]);
	if (arith_of(id, FORM_MULTIPLY))
		add_arith(l, dev, arith_of(id, FORM_MULTIPLY), 8, 1);
}

static void add_memory(list *l, const dg__dev *dev, const dg__ask *ask, const memory *m)
{
	uint32_t form = m->form == FORM_PLAIN && ask->resident ? FORM_CACHED : m->form;
	dg__shape *s = &l->shapes[l->count++];
	*s = (dg__shape){ .code = { m->vectors, m->per_unit, form },
		.items = SUMS,
		.bound_per_clock = (double)CACHE_BYTES_PER_CLOCK * dev->identity.units,
		.bound_per_s = ask->resident ? 0 : dev->bus_bytes_per_s };
	if (form == FORM_TILES)
		snprintf(s->text, sizeof(s->text), "vectors=%u blocks=tiles", (unsigned)m->vectors);
	else
		snprintf(s->text, sizeof(s->text), "vectors=%u blocks=%u", (unsigned)m->vectors,
			(unsigned)m->per_unit);
}

/*
 * No more blocks than run at once, or one for each tile: with some number in between, blocks that
 * begin late would sweep memory that has just been swept, out of the cache.
 */
static void add_memories(list *l, const dg__dev *dev, const dg__ask *ask)
{
	static const memory rows[] = { { 1, 0, FORM_TILES }, { 2, 0, FORM_TILES },
		{ 4, 0, FORM_TILES }, { 8, 2, FORM_PLAIN }, { 4, 4, FORM_PLAIN },
		{ 8, 0, FORM_TILES }, { 2, 4, FORM_PLAIN }, { 1, 4, FORM_PLAIN } };
	for (size_t i = 0; i < DG__GPU_COUNT(rows); i++)
		add_memory(l, dev, ask, &rows[i]);
}

dg_err dg__gpu_shapes(dg__dev *dev, const dg__ask *ask, dg__shape *ret_shapes, size_t *ret_count,
	dg_error *reterr)
{
	list l = { .shapes = ret_shapes };
	dg_err err = dev->gpu->vendor->supports(&dev->identity, ask->kernel, reterr);
	if (err)
		return err;
	if (ask->kernel == DG__KERNEL_EMPTY) {
		ret_shapes[l.count++] = (dg__shape){ .text = "one thread", .items = 1 };
	} else if (arith_of(ask->kernel, FORM_PLAIN)) {
		add_ariths(&l, dev, ask->kernel);
	} else {
		add_memories(&l, dev, ask);
	}
	*ret_count = l.count;
	return DG_OK;
}

/* Making one ready. */

static dg_err function_of(dg__dev *dev, void *module, const char *name, uint32_t variant,
	void **ret_function, dg_error *reterr)
{
	char full[64];
	void *function = NULL;
	snprintf(full, sizeof(full), "%s_%u", name, (unsigned)variant);
	int code = dev->gpu->calls.module_function(&function, module, full);
	if (code == DG__GPU_NOT_FOUND)
		return dg_error_set(reterr, DG_ENOTSUP, "%s has no kernel %s",
			dev->identity.architecture, full);
	if (code)
		return dg__gpu_failed(dev->gpu, code, "looking for a kernel", reterr);
	*ret_function = function;
	return DG_OK;
}

static dg_err find_functions(
	dg__dev *dev, const dg__shape *shape, void *module, dg__kernel *kernel, dg_error *reterr)
{
	static const char *const names[][3] = {
		/* by form */
		[FORM_PLAIN] = { "read", "write", "copy" },
		[FORM_CACHED] = { "reread", "write", "recopy" },
		[FORM_TILES] = { "tileread", "tilewrite", "tilecopy" },
	};
	uint32_t variant = shape->code[CODE_VARIANT], form = shape->code[CODE_FORM];
	dg_err err;
	switch (kernel->id) {
	case DG__KERNEL_EMPTY:
		return function_of(dev, module, "empty", 1, &kernel->function, reterr);
	case DG__KERNEL_READ:
		return function_of(dev, module, names[form][0], variant, &kernel->function, reterr);
	case DG__KERNEL_COPY:
		return function_of(dev, module, names[form][2], variant, &kernel->function, reterr);
	case DG__KERNEL_WRITE:
		err = function_of(dev, module, names[form][1], variant, &kernel->function, reterr);
		return err ? err
			   : function_of(dev, module, "rewrite", variant, &kernel->ordered, reterr);
	default:
		return function_of(dev, module, arith_of(kernel->id, form)->name, variant,
			&kernel->function, reterr);
	}
}

static void size_kernel(const dg__dev *dev, const dg__shape *shape, dg__kernel *kernel)
{
	kernel->tiles = !kernel->arithmetic && shape->code[CODE_FORM] == FORM_TILES;
	kernel->blocks = shape->code[CODE_PER_UNIT] * dev->identity.units;
	kernel->threads = kernel->arithmetic                               ? ARITH_THREADS
			  : kernel->tiles && kernel->id == DG__KERNEL_COPY ? NARROW_THREADS
									   : MEMORY_THREADS;
	if (kernel->id == DG__KERNEL_EMPTY) {
		kernel->blocks = 1;
		kernel->threads = 1;
	} else if (!kernel->arithmetic) {
		kernel->tile_bytes =
			(uint64_t)kernel->threads * VECTOR_BYTES * shape->code[CODE_VARIANT];
	}
}

dg_err dg__gpu_kernel_create(dg__dev *dev, dg__kernel_id id, const dg__shape *shape,
	dg__kernel **ret_kernel, dg_error *reterr)
{
	void *module = NULL;
	dg_err err = dg__gpu_use(dev, reterr);
	if (!err)
		err = dg__gpu_module_get(dev, id, &module, reterr);
	if (err)
		return err;
	dg__kernel *kernel = calloc(1, sizeof(*kernel));
	if (!kernel)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	kernel->id = id;
	kernel->arithmetic = arith_of(id, FORM_PLAIN) != NULL;
	kernel->sums = shape->items;
	size_kernel(dev, shape, kernel);
	err = find_functions(dev, shape, module, kernel, reterr);
	if (err)
		free(kernel);
	else
		*ret_kernel = kernel;
	return err;
}

void dg__gpu_kernel_destroy(dg__dev *dev, dg__kernel *kernel)
{
	(void)dev;
	free(kernel);
}
