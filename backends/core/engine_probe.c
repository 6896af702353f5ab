/* Arithmetic and launches, as figures to be probed. See engine_run.h and kernels.def. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backends/core/engine_run.h"

dg_err dg__probe_state(dg__probe *probe, uint64_t bytes, dg_error *reterr)
{
	dg__run *run = probe->run;
	if (probe->state && probe->state_bytes >= bytes)
		return DG_OK;
	unsigned char *host = realloc(probe->host, (size_t)bytes);
	if (!host)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	probe->host = host;
	run->backend->buf_destroy(run->dev, probe->state);
	probe->state = NULL;
	dg_err err = run->backend->buf_create(run->dev, bytes, &run->stop, &probe->state, reterr);
	probe->state_bytes = err ? 0 : bytes;
	probe->launch.state = probe->state;
	return err;
}

void dg__probe_finish(dg__probe *probe)
{
	dg__run *run = probe->run;
	if (!run)
		return;
	run->backend->buf_destroy(run->dev, probe->state);
	run->backend->buf_destroy(run->dev, probe->src);
	run->backend->buf_destroy(run->dev, probe->dst);
	free(probe->host);
	*probe = (dg__probe){ 0 };
}

/* Arithmetic. */

static uint64_t scale_steps(dg__probe *probe, const dg__shape *shape, uint64_t count)
{
	dg__operands o = { .max_steps = 1 };
	dg_err err = dg__expect_operands(shape->step, probe->dtype, probe->purpose, &o, NULL);
	probe->launch.steps = !err && count < o.max_steps ? count : o.max_steps;
	return probe->launch.steps;
}

static dg_err arm_items(dg__probe *probe, const dg__shape *shape, dg_error *reterr)
{
	dg__run *run = probe->run;
	dg__operands *o = &probe->operands;
	dg_err err = dg__expect_operands(shape->step, probe->dtype, probe->purpose, o, reterr);
	uint64_t bytes = err ? 0 : (uint64_t)shape->items * o->item_bytes;
	if (!err)
		err = dg__probe_state(probe, bytes, reterr);
	if (err)
		return err;
	/* Little-endian hosts alone: the low bytes of a pattern come first. */
	for (uint32_t i = 0; i < shape->items; i++)
		memcpy(probe->host + (size_t)i * o->item_bytes, &o->seeds[i % DG__SEEDS],
			o->item_bytes);
	probe->launch.a = o->a;
	probe->launch.b = o->b;
	return run->backend->buf_write(
		run->dev, probe->state, 0, probe->host, (size_t)bytes, reterr);
}

static dg_err check_items(dg__probe *probe, const dg__shape *shape, dg_error *reterr)
{
	dg__run *run = probe->run;
	const dg__operands *o = &probe->operands;
	size_t bytes = (size_t)shape->items * o->item_bytes;
	uint64_t expected[DG__SEEDS];
	for (unsigned i = 0; i < DG__SEEDS; i++)
		expected[i] = dg__expect_item(
			shape->step, probe->dtype, probe->purpose, o, i, probe->launch.steps);
	dg_err err = run->backend->buf_read(run->dev, probe->state, 0, probe->host, bytes, reterr);
	for (uint32_t i = 0; !err && i < shape->items; i++) {
		uint64_t got = 0;
		memcpy(&got, probe->host + (size_t)i * o->item_bytes, o->item_bytes);
		if (got != expected[i % DG__SEEDS])
			return dg_error_set(reterr, DG_EMISMATCH,
				"%s: item %" PRIu32 " after %" PRIu64 " steps is %#" PRIx64
				", expected %#" PRIx64,
				shape->text, i, probe->launch.steps, got, expected[i % DG__SEEDS]);
	}
	return err;
}

static double step_ops(const dg__probe *probe, const dg__shape *shape)
{
	return (double)shape->items * dg__expect_ops(shape->step, probe->dtype);
}

static const dg__probe_kind arithmetic = { scale_steps, arm_items, check_items, step_ops, 1000 };

static bool kernel_of(dg_dtype dtype, dg__kernel_id *ret_kernel, dg_dtype *ret_dtype)
{
	static const struct row {
		dg_dtype dtype;
		dg__kernel_id kernel;
	} rows[] = {
#define DG_KERNEL(NAME, name, dtype) { DG_##dtype, DG__KERNEL_##NAME },
#include "backends/core/kernels.def"
#undef DG_KERNEL
	};
	if (dg_dtype_family_of(dtype) == DG_FAMILY_UINT)
		dtype = (dg_dtype)(dtype - DG_U64 + DG_I64);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].dtype == dtype && dtype != DG_DTYPE_NONE) {
			*ret_kernel = rows[i].kernel;
			*ret_dtype = dtype;
			return true;
		}
	return false;
}

dg_err dg__probe_arithmetic(dg__run *run, dg_dtype dtype, dg__probe *ret_probe, dg_error *reterr)
{
	dg__probe probe = { .kind = &arithmetic,
		.run = run,
		.purpose = DG__TO_TIME,
		.budget_ns = run->pace.budget_ns };
	if (!kernel_of(dtype, &probe.ask.kernel, &probe.dtype))
		return dg_error_set(reterr, DG_ENOTSUP, "there is no kernel for arithmetic in %s",
			dg_dtype_text(dtype));
	probe.launch.repeat = 1;
	*ret_probe = probe;
	return DG_OK;
}

/* Launches. */

static uint64_t scale_launches(dg__probe *probe, const dg__shape *shape, uint64_t count)
{
	(void)shape;
	probe->launch.repeat = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
	return probe->launch.repeat;
}

static dg_err arm_counter(dg__probe *probe, const dg__shape *shape, dg_error *reterr)
{
	static const uint32_t zero;
	dg__run *run = probe->run;
	(void)shape;
	return run->backend->buf_write(run->dev, probe->state, 0, &zero, sizeof(zero), reterr);
}

static dg_err check_counter(dg__probe *probe, const dg__shape *shape, dg_error *reterr)
{
	dg__run *run = probe->run;
	uint32_t got = 0;
	dg_err err = run->backend->buf_read(run->dev, probe->state, 0, &got, sizeof(got), reterr);
	if (!err && got != probe->launch.repeat)
		return dg_error_set(reterr, DG_EMISMATCH,
			"%s: %" PRIu32 " of %" PRIu32 " launches took place", shape->text, got,
			probe->launch.repeat);
	return err;
}

static double one(const dg__probe *probe, const dg__shape *shape)
{
	(void)probe;
	(void)shape;
	return 1;
}

static const dg__probe_kind launches = { scale_launches, arm_counter, check_counter, one, 3 };

dg_err dg__probe_launch(dg__run *run, dg__probe *ret_probe, dg_error *reterr)
{
	dg__probe probe = { .kind = &launches,
		.run = run,
		.ask.kernel = DG__KERNEL_EMPTY,
		.purpose = DG__TO_TIME,
		.budget_ns = run->pace.budget_ns / 2 };
	*ret_probe = probe;
	return dg__probe_state(ret_probe, sizeof(uint32_t), reterr);
}
