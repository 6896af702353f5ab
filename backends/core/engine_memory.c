/* Memory, cold and resident, as figures to be probed. See engine_run.h and kernels.def. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backends/core/engine_run.h"

#define ALIGN 256
#define SPOTS 12
#define SPOT_BYTES 4096
/* Windows are proved whole up to this; an odd number of words shows how a kernel ends. */
#define PROVE_WINDOW (((uint64_t)256 << 10) + 12)

static uint64_t random_next(dg__probe *probe)
{
	uint64_t z = (probe->turn += 0x9e3779b97f4a7c15u);
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	return z ^ z >> 27;
}

static uint64_t window_now(const dg__probe *probe)
{
	uint64_t limit = probe->purpose == DG__TO_PROVE ? PROVE_WINDOW : probe->window_limit;
	if (probe->ask.resident && probe->purpose == DG__TO_TIME)
		limit = 0;
	return limit && probe->key_window > limit ? limit : probe->key_window;
}

static uint64_t scale_passes(dg__probe *probe, const dg__shape *shape, uint64_t count)
{
	dg__launch *l = &probe->launch;
	const dg__pool *pool = &probe->run->pool;
	(void)shape;
	l->window_bytes = window_now(probe);
	l->stride_bytes = (l->window_bytes + ALIGN - 1) / ALIGN * ALIGN;
	l->windows = probe->ask.resident ? 1 : pool->bytes / l->stride_bytes;
	if (l->windows < 1)
		l->windows = 1;
	l->first = probe->ask.resident ? 0 : pool->at / l->stride_bytes % l->windows;
	l->passes = l->windows > 1 && count > l->windows ? l->windows : count;
	uint64_t repeat = count / l->passes;
	l->repeat = repeat < UINT32_MAX ? (uint32_t)repeat : UINT32_MAX;
	return l->passes * l->repeat;
}

static double pass_elements(const dg__probe *probe, const dg__shape *shape)
{
	(void)shape;
	uint64_t elements = window_now(probe) / 4;
	return (double)(probe->ask.kernel == DG__KERNEL_COPY ? 2 * elements : elements);
}

/* READ: the sums tell. */

static dg_err arm_read(dg__probe *probe, const dg__shape *shape, dg_error *reterr)
{
	dg__run *run = probe->run;
	size_t bytes = (size_t)shape->items * sizeof(uint32_t);
	dg_err err = dg__probe_state(probe, bytes, reterr);
	if (err)
		return err;
	memset(probe->host, 0, bytes);
	return run->backend->buf_write(run->dev, probe->state, 0, probe->host, bytes, reterr);
}

static uint32_t sum_expected(const dg__probe *probe)
{
	const dg__launch *l = &probe->launch;
	const dg__pattern *pattern = probe->run->pattern;
	uint64_t words = l->window_bytes / 4, stride = l->stride_bytes / 4;
	uint32_t sum = 0;
	if (l->windows == 1)
		return (uint32_t)l->passes * l->repeat * dg__pattern_sum(pattern, 0, words);
	for (uint64_t p = 0; p < l->passes; p++)
		sum += dg__pattern_sum(pattern, (l->first + p) % l->windows * stride, words);
	return sum * l->repeat;
}

static void move_on(dg__probe *probe)
{
	const dg__launch *l = &probe->launch;
	if (!probe->ask.resident)
		probe->run->pool.at = (l->first + l->passes) % l->windows * l->stride_bytes;
}

static dg_err check_read(dg__probe *probe, const dg__shape *shape, dg_error *reterr)
{
	dg__run *run = probe->run;
	size_t bytes = (size_t)shape->items * sizeof(uint32_t);
	uint32_t got = 0, expected = sum_expected(probe);
	dg_err err = run->backend->buf_read(run->dev, probe->state, 0, probe->host, bytes, reterr);
	if (err)
		return err;
	for (uint32_t i = 0; i < shape->items; i++) {
		uint32_t part;
		memcpy(&part, probe->host + (size_t)i * sizeof(part), sizeof(part));
		got += part;
	}
	if (got != expected)
		return dg_error_set(reterr, DG_EMISMATCH,
			"%s: the words read sum up to %#" PRIx32 ", expected %#" PRIx32,
			shape->text, got, expected);
	move_on(probe);
	return DG_OK;
}

/* WRITE and COPY: what lies there afterwards tells, at spots that are not known beforehand. */

typedef struct spot {
	uint64_t pass, offset;
	size_t size;
} spot;

static spot spot_of(const dg__probe *probe, unsigned i)
{
	const dg__launch *l = &probe->launch;
	uint64_t z = (probe->turn + i) * 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 31) * 0xbf58476d1ce4e5b9u;
	spot s = { .size = l->window_bytes < SPOT_BYTES ? (size_t)l->window_bytes : SPOT_BYTES };
	uint64_t room = l->window_bytes - s.size;
	s.pass = i == 0 ? 0 : i == 1 ? l->passes - 1 : (z >> 20) % l->passes;
	uint64_t in = i == 0 ? 0 : i == 1 ? room : (z >> 7) % (room / 4 + 1) * 4;
	if (probe->purpose == DG__TO_PROVE) {
		s.pass = i % l->passes;
		s.size = (size_t)l->window_bytes;
		in = 0;
	}
	s.offset = (l->first + s.pass) % l->windows * l->stride_bytes + in;
	return s;
}

static unsigned spot_count(const dg__probe *probe)
{
	bool few = probe->purpose == DG__TO_PROVE && probe->launch.passes < SPOTS;
	return few ? (unsigned)probe->launch.passes : SPOTS;
}

static dg_err spot_room(dg__probe *probe, dg_error *reterr)
{
	return dg__probe_state(probe, PROVE_WINDOW + ALIGN, reterr);
}

static dg_err arm_write(dg__probe *probe, const dg__shape *shape, dg_error *reterr)
{
	(void)shape;
	probe->launch.value = (uint32_t)(random_next(probe) >> 16);
	return spot_room(probe, reterr);
}

static dg_err arm_copy(dg__probe *probe, const dg__shape *shape, dg_error *reterr)
{
	dg__run *run = probe->run;
	dg_err err = spot_room(probe, reterr);
	(void)shape;
	random_next(probe);
	for (unsigned i = 0; !err && i < spot_count(probe); i++) {
		spot s = spot_of(probe, i);
		memset(probe->host, 0x5a, s.size);
		err = run->backend->buf_write(
			run->dev, probe->launch.dst, s.offset, probe->host, s.size, reterr);
	}
	return err;
}

static uint32_t word_expected(const dg__probe *probe, const spot *s, size_t word)
{
	const dg__launch *l = &probe->launch;
	if (probe->ask.kernel == DG__KERNEL_COPY)
		return probe->run->pattern->words[(s->offset / 4 + word) % DG__PATTERN_WORDS];
	uint64_t last = l->windows == 1 ? l->passes - 1 : s->pass;
	return (uint32_t)((l->value + last) & 0xff) * 0x01010101u;
}

static dg_err check_spot(dg__probe *probe, const dg__shape *shape, const spot *s, dg_error *reterr)
{
	dg__run *run = probe->run;
	dg_err err = run->backend->buf_read(
		run->dev, probe->launch.dst, s->offset, probe->host, s->size, reterr);
	for (size_t i = 0; !err && i < s->size / 4; i++) {
		uint32_t got, expected = word_expected(probe, s, i);
		memcpy(&got, probe->host + i * 4, sizeof(got));
		if (got != expected)
			return dg_error_set(reterr, DG_EMISMATCH,
				"%s: the word at byte %" PRIu64 " is %#" PRIx32
				", expected %#" PRIx32,
				shape->text, s->offset + i * 4, got, expected);
	}
	return err;
}

static dg_err check_spots(dg__probe *probe, const dg__shape *shape, dg_error *reterr)
{
	for (unsigned i = 0; i < spot_count(probe); i++) {
		spot s = spot_of(probe, i);
		dg_err err = check_spot(probe, shape, &s, reterr);
		if (err)
			return err;
	}
	move_on(probe);
	return DG_OK;
}

static const dg__probe_kind kinds[] = {
	[DG_COPY] = { scale_passes, arm_copy, check_spots, pass_elements, 3 },
	[DG_READ] = { scale_passes, arm_read, check_read, pass_elements, 3 },
	[DG_WRITE] = { scale_passes, arm_write, check_spots, pass_elements, 3 },
};
static const dg__kernel_id kernels[] = {
	[DG_COPY] = DG__KERNEL_COPY,
	[DG_READ] = DG__KERNEL_READ,
	[DG_WRITE] = DG__KERNEL_WRITE,
};

static dg_err own_buffers(dg__probe *probe, dg_access access, dg_error *reterr)
{
	uint64_t bytes = (probe->key_window + ALIGN - 1) / ALIGN * ALIGN;
	dg__room room = { 0 };
	dg_err err = probe->run->backend->room(probe->run->dev, &room, reterr);
	if (!err && (bytes > room.buffer_bytes || bytes > room.total_bytes / 2))
		return dg_error_set(reterr, DG_ENOTSUP,
			"%" PRIu64 " bytes per buffer do not fit; %" PRIu64 " can be used", bytes,
			room.total_bytes / 2);
	if (!err && access != DG_WRITE)
		err = dg__pool_buffer(probe->run, bytes, true, &probe->src, reterr);
	if (!err && access != DG_READ)
		err = dg__pool_buffer(probe->run, bytes, false, &probe->dst, reterr);
	probe->launch.src = probe->src;
	probe->launch.dst = probe->dst;
	return err;
}

static dg_err pool_buffers(dg__probe *probe, const dg_key *key, dg_error *reterr)
{
	dg__run *run = probe->run;
	bool whole = key->mode == DG_MODE_MEMORY;
	dg_err err = dg__pool_prepare(run, key->access, whole ? 0 : probe->key_window, reterr);
	if (err)
		return err;
	/* The default is 512 MiB, or all there is. */
	if (whole)
		probe->key_window = run->pace.pool_bytes < run->pool.bytes ? run->pace.pool_bytes
									   : run->pool.bytes;
	probe->launch.src = run->pool.src;
	probe->launch.dst = run->pool.dst;
	return DG_OK;
}

dg_err dg__probe_memory(dg__run *run, const dg_key *key, dg__probe *ret_probe, dg_error *reterr)
{
	bool resident = key->mode == DG_MODE_RESIDENT;
	dg__probe probe = { .kind = &kinds[key->access],
		.run = run,
		.purpose = DG__TO_TIME,
		.budget_ns =
			key->mode == DG_MODE_MEMORY ? run->pace.budget_ns : run->pace.budget_ns / 2,
		.ask = { .kernel = kernels[key->access], .resident = resident },
		.key_window = key->bytes & ~(uint64_t)3 };
	*ret_probe = probe;
	dg_err err = resident ? own_buffers(ret_probe, key->access, reterr)
			      : pool_buffers(ret_probe, key, reterr);
	ret_probe->ask.window_bytes = ret_probe->key_window;
	return err;
}
