/* Running kernels: how a launch is shared out among the workers. See cpu.h. */
#include <string.h>

#include "backends/core/clock.h"
#include "backends/cpu/cpu.h"

/* How much is done before a worker looks whether to give up. */
#define SLICE_STEPS ((uint64_t)1 << 16)
#define SLICE_BYTES ((uint64_t)1 << 20)
/*
 * String instructions do better in long runs, so a slice grows to what takes so long, up to a
 * limit.
 */
#define SLICE_NS 20000000
#define FIRST_SLICE_BYTES ((uint64_t)4 << 20)
#define LAST_SLICE_BYTES ((uint64_t)256 << 20)
#define LINE_BYTES 64
#define PAGE_BYTES 4096

typedef struct task {
	dg__dev *dev;
	const dg__kernel *kernel;
	const dg__launch *launch;
} task;

static unsigned item_bytes(const dg__arith_kernel *k)
{
	switch (k->id) {
	case DG__KERNEL_ARITH_F64:
	case DG__KERNEL_ARITH_I64:
		return 8;
	case DG__KERNEL_ARITH_I16:
	case DG__KERNEL_ARITH_F16:
		return 2;
	case DG__KERNEL_ARITH_I8:
		return k->step == DG__STEP_DOT4 ? 4 : 1;
	default:
		return 4;
	}
}

static void run_arith(void *user, uint32_t worker, uint32_t workers)
{
	const task *t = user;
	const dg__arith_kernel *k = t->kernel->arith;
	void *state = t->launch->state->data + (size_t)worker * k->items * item_bytes(k);
	(void)workers;
	for (uint64_t left = t->launch->steps; left && !dg__cpupool_stopping(t->dev->pool);) {
		uint64_t steps = left < SLICE_STEPS ? left : SLICE_STEPS;
		k->run(state, steps, t->launch->a, t->launch->b);
		left -= steps;
	}
}

/* One piece of memory, times over, beginning with pass number pass. */
static void move(
	const task *t, uint64_t pass, uint64_t at, size_t bytes, uint64_t times, uint32_t *sum)
{
	const dg__launch *l = t->launch;
	const dg__memory_kernel *k = t->kernel->memory;
	if (k->read)
		*sum += k->read(l->src->data + at, bytes, times);
	else if (k->write)
		k->write(l->dst->data + at, bytes, times, (uint8_t)(l->value + pass));
	else
		k->copy(l->dst->data + at, l->src->data + at, bytes, times);
}

static uint64_t next_slice(uint64_t bytes, uint64_t ns)
{
	double fits = (double)bytes * SLICE_NS / (double)(ns ? ns : 1);
	if (fits >= (double)LAST_SLICE_BYTES)
		return LAST_SLICE_BYTES;
	return fits > (double)SLICE_BYTES ? (uint64_t)fits / SLICE_BYTES * SLICE_BYTES
					  : SLICE_BYTES;
}

/* One window, or a part of one, once. */
static bool move_once(const task *t, uint64_t pass, uint64_t offset, uint64_t bytes, uint32_t *sum)
{
	uint64_t slice = FIRST_SLICE_BYTES;
	for (uint64_t done = 0; done < bytes;) {
		uint64_t size = bytes - done < slice ? bytes - done : slice;
		uint64_t start = size < bytes ? dg__clock_ns() : 0;
		move(t, pass, offset + done, (size_t)size, 1, sum);
		if (dg__cpupool_stopping(t->dev->pool))
			return false;
		if (size < bytes)
			slice = next_slice(size, dg__clock_ns() - start);
		done += size;
	}
	return true;
}

/* The same small part in every pass. */
static void move_often(const task *t, uint64_t bytes, uint64_t offset, uint32_t *sum)
{
	uint64_t at_once = SLICE_BYTES / bytes, passes = t->launch->passes;
	for (uint64_t p = 0; p < passes && !dg__cpupool_stopping(t->dev->pool); p += at_once)
		move(t, p, offset, (size_t)bytes, passes - p < at_once ? passes - p : at_once, sum);
}

static uint64_t window_at(const dg__launch *l, uint64_t pass)
{
	return l->windows > 1 ? (l->first + pass) % l->windows * l->stride_bytes : 0;
}

/* A worker's part of one window, in whole cache lines. */
static void part_of(const dg__launch *l, uint32_t worker, uint32_t workers, uint64_t *ret_offset,
	uint64_t *ret_bytes)
{
	uint64_t lines = (l->window_bytes + LINE_BYTES - 1) / LINE_BYTES;
	uint64_t from = lines * worker / workers * LINE_BYTES;
	uint64_t to = lines * (worker + 1) / workers * LINE_BYTES;
	to = to < l->window_bytes ? to : l->window_bytes;
	*ret_offset = from;
	*ret_bytes = to > from ? to - from : 0;
}

/*
 * Passes over several windows are dealt out whole, in runs of neighbours; those left over, and
 * every pass where there is one window, are shared part by part.
 */
static void run_memory(void *user, uint32_t worker, uint32_t workers)
{
	const task *t = user;
	const dg__launch *l = t->launch;
	uint64_t whole = l->windows > 1 ? l->passes / workers : 0, offset, bytes;
	uint32_t sum = 0;
	bool going = true;
	for (uint64_t p = whole * worker; p < whole * (worker + 1) && going; p++)
		going = move_once(t, p, window_at(l, p), l->window_bytes, &sum);
	part_of(l, worker, workers, &offset, &bytes);
	if (bytes && l->windows == 1 && bytes <= SLICE_BYTES)
		move_often(t, bytes, offset, &sum);
	else
		for (uint64_t p = whole * workers; p < l->passes && going && bytes; p++)
			going = move_once(t, p, window_at(l, p) + offset, bytes, &sum);
	if (t->kernel->memory->read)
		((uint32_t *)(void *)l->state->data)[worker] += sum;
}

static void run_empty(void *user, uint32_t worker, uint32_t workers)
{
	const task *t = user;
	(void)workers;
	if (worker == 0)
		++*(uint32_t *)(void *)t->launch->state->data;
}

dg_err dg__cpu_time(dg__dev *dev, dg__kernel *kernel, const dg__launch *launch,
	const dg__stop *stop, dg__timing *ret_timing, dg_error *reterr)
{
	task t = { dev, kernel, launch };
	dg__cpujob job = { .user = &t,
		.workers = kernel->workers,
		.repeat = launch->repeat,
		.asleep = kernel->asleep,
		.run = kernel->arith    ? run_arith
		       : kernel->memory ? run_memory
					: run_empty };
	if (launch->graph)
		return dg_error_set(reterr, DG_ENOTSUP, "a CPU records no graphs");
	dg__timing timing = { 0 };
	dg_err err = dg__cpupool_run(dev->pool, &job, stop, &timing.host_ns, reterr);
	if (!err)
		*ret_timing = timing;
	return err;
}

/* Memory comes to the node of the thread that touches it first. */

typedef struct touch {
	dg__dev *dev;
	dg__buf *buf;
} touch;

static void run_touch(void *user, uint32_t worker, uint32_t workers)
{
	const touch *t = user;
	uint64_t pages = (t->buf->size + PAGE_BYTES - 1) / PAGE_BYTES;
	uint64_t from = pages * worker / workers, to = pages * (worker + 1) / workers;
	for (uint64_t p = from; p < to; p++) {
		t->buf->data[p * PAGE_BYTES] = 1;
		if (p % 256 == 0 && dg__cpupool_stopping(t->dev->pool))
			return;
	}
}

dg_err dg__cpu_touch(dg__dev *dev, dg__buf *buf, const dg__stop *stop, dg_error *reterr)
{
	touch t = { dev, buf };
	dg__cpujob job = {
		.run = run_touch, .user = &t, .workers = dev->topology.count, .repeat = 1
	};
	uint64_t ns;
	return dg__cpupool_run(dev->pool, &job, stop, &ns, reterr);
}

/* The clock: each instruction of the chain waits one cycle for the one before, on any such core. */

#define CHAIN 64
#define CHAIN_LOOPS 1000
#define CLOCK_ROUNDS 25

#if defined(__x86_64__)
#define LINK "xorq %1, %0\n\t"
#define HAS_CHAIN true
#elif defined(__aarch64__)
#define LINK "eor %0, %0, %1\n\t"
#define HAS_CHAIN true
#else
#define LINK ""
#define HAS_CHAIN false
#endif
#define LINKS_8 LINK LINK LINK LINK LINK LINK LINK LINK
#define LINKS_64 LINKS_8 LINKS_8 LINKS_8 LINKS_8 LINKS_8 LINKS_8 LINKS_8 LINKS_8

typedef struct chain {
	uint64_t best_ns;
} chain;

static void run_chain(void *user, uint32_t worker, uint32_t workers)
{
	chain *c = user;
	uint64_t x = 1, y = worker + 3;
	(void)workers;
	for (int round = 0; round < CLOCK_ROUNDS; round++) {
		uint64_t start = dg__clock_ns();
		for (int i = 0; i < CHAIN_LOOPS; i++)
			__asm__ volatile(LINKS_64 : "+r"(x) : "r"(y));
		uint64_t ns = dg__clock_ns() - start;
		if (!c->best_ns || ns < c->best_ns)
			c->best_ns = ns;
	}
}

bool dg__cpu_clock(dg__dev *dev, double *ret_hz)
{
	static const dg__stop never;
	chain c = { 0 };
	dg__cpujob job = { .run = run_chain, .user = &c, .workers = 1, .repeat = 1 };
	uint64_t ns;
	if (!HAS_CHAIN || dg__cpupool_run(dev->pool, &job, &never, &ns, NULL) != DG_OK ||
		!c.best_ns)
		return false;
	*ret_hz = (double)CHAIN * CHAIN_LOOPS * 1e9 / (double)c.best_ns;
	return true;
}
