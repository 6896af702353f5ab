/* Running kernels and watching the device meanwhile. See gpu.h. */
#include "backends/gpu/gpu.h"

#include <stdio.h>

#include "backends/core/clock.h"

#define MS ((uint64_t)1000000)
#define SPIN_NS (100 * MS) /* waited for without sleeping: a sample's length */
#define SLEEP_NS (MS / 5)
#define GRAPH_NODES 1024 /* launches in one graph */
#define CHECK_LAUNCHES 64 /* launches between looks at the stop */
#define UNIT_BYTES 256
#define UNITS_MAX ((uint64_t)1 << 31) /* so that sums of two stay in 32 bits */
#define TILES_MAX ((uint64_t)1 << 30)
#define ROWS_MAX 65535 /* of a grid */
#define FAR_BYTES ((uint64_t)128 << 20)
#define LOOK_AFTER_NS (4 * MS) /* a clock is looked at when work has lasted so long */
#define LOOK_EVERY_NS (20 * MS)
#define CLOCK_GOOD_NS (500 * MS)

/* As struct move in kernels/memory.cu. */
typedef struct move {
	uint64_t span;
	uint32_t spans, pool, first, stride, tiles, window, inverse, value, blocks;
} move;

/* What a kernel is given; pointers to these go to the driver. */
typedef struct arguments {
	void *list[6];
	uint64_t address[3];
	uint64_t steps, a, b;
	uint32_t count;
	move move;
	uint64_t passes_at_once;
	void *function;
} arguments;

/* A recorded graph, and how often it goes. */
typedef struct graphs {
	void *executable;
	uint32_t times;
} graphs;

static void fill_arithmetic(const dg__kernel *k, const dg__launch *l, arguments *args)
{
	args->address[0] = l->state->address;
	args->steps = l->steps;
	args->a = l->a;
	args->b = l->b;
	args->count = k->blocks * k->threads;
	args->list[0] = &args->address[0];
	args->list[1] = &args->steps;
	args->list[2] = &args->a;
	args->list[3] = &args->b;
	args->list[4] = &args->count;
}

/*
 * Passes over one window take effect in order where a thread keeps to its part. So they do where
 * each tile has a block of its own, which begin in order, and a pass is far longer than what runs
 * at once.
 */
static bool keeps_order(const dg__kernel *k, const dg__launch *l)
{
	bool far = k->tiles && l->window_bytes >= FAR_BYTES;
	return k->ordered && l->windows == 1 && l->passes > 1 && !far;
}

/*
 * Windows that follow one another without a gap are one span. It may go round the pool, but with a
 * block for each tile no more than once: passes over one window are then spans of their own.
 */
static bool is_joined(const dg__kernel *k, const dg__launch *l)
{
	bool again = l->windows == 1 && (k->tiles || keeps_order(k, l));
	return l->window_bytes == l->stride_bytes && !again;
}

static move plan_move(const dg__kernel *k, const dg__launch *l, uint64_t done, uint64_t passes)
{
	uint64_t stride = l->stride_bytes / UNIT_BYTES, first = (l->first + done) % l->windows;
	bool joined = is_joined(k, l);
	move m = { .pool = (uint32_t)(l->windows * stride),
		.first = (uint32_t)(first * stride),
		.stride = l->windows > 1 ? (uint32_t)stride : 0,
		.value = l->value + (uint32_t)done,
		.span = l->window_bytes * (joined ? passes : 1),
		.spans = joined ? 1 : (uint32_t)passes,
		.window = joined ? (uint32_t)stride : 0 };
	m.tiles = (uint32_t)((m.span + k->tile_bytes - 1) / k->tile_bytes);
	uint32_t tiles = keeps_order(k, l) ? m.tiles : m.tiles * m.spans;
	m.blocks = k->blocks && k->blocks < tiles ? k->blocks : tiles;
	if (joined && l->window_bytes < k->tile_bytes)
		m.inverse =
			(uint32_t)((((uint64_t)1 << 32) + l->window_bytes - 1) / l->window_bytes);
	return m;
}

/* Passes that one launch of a kernel can do: their tiles and units are counted in 32 bits. */
static uint64_t passes_at_once(const dg__kernel *k, const dg__launch *l)
{
	uint64_t tiles = (l->window_bytes + k->tile_bytes - 1) / k->tile_bytes;
	uint64_t by_units = UNITS_MAX / (l->stride_bytes / UNIT_BYTES),
		 by_tiles = TILES_MAX / tiles;
	uint64_t most = by_units < by_tiles ? by_units : by_tiles;
	if (k->tiles && !is_joined(k, l) && most > ROWS_MAX)
		most = ROWS_MAX;
	return most < 1 ? 1 : most < l->passes ? most : l->passes;
}

static void fill_memory(const dg__kernel *k, const dg__launch *l, arguments *args)
{
	args->address[0] = l->dst ? l->dst->address : 0;
	args->address[1] = l->src ? l->src->address : 0;
	args->address[2] = l->state ? l->state->address : 0;
	args->count = k->sums;
	args->passes_at_once = passes_at_once(k, l);
	args->move = plan_move(k, l, 0, args->passes_at_once);
	for (int i = 0; i < 3; i++)
		args->list[i] = &args->address[i];
	args->list[3] = &args->count;
	args->list[4] = &args->move;
	if (keeps_order(k, l))
		args->function = k->ordered;
}

static void fill_arguments(const dg__kernel *k, const dg__launch *l, arguments *args)
{
	args->function = k->function;
	if (k->arithmetic) {
		fill_arithmetic(k, l, args);
	} else if (k->id == DG__KERNEL_EMPTY) {
		args->address[0] = l->state->address;
		args->list[0] = &args->address[0];
	} else {
		fill_memory(k, l, args);
	}
}

static dg_err stopped(const dg__stop *stop, dg_error *reterr)
{
	if (stop->cancel && atomic_load(stop->cancel))
		return dg_error_set(reterr, DG_ECANCELLED, NULL);
	if (stop->deadline_ns && dg__clock_ns() >= stop->deadline_ns)
		return dg_error_set(reterr, DG_ETIMEOUT, NULL);
	return DG_OK;
}

static dg_err launch_once(dg__dev *dev, const dg__kernel *k, arguments *args, uint32_t blocks,
	uint32_t rows, dg_error *reterr)
{
	int code = dev->gpu->calls.launch(args->function, blocks, rows, 1, k->threads, 1, 1, 0,
		dev->stream, args->list, NULL);
	return code ? dg__gpu_failed(dev->gpu, code, "launching a kernel", reterr) : DG_OK;
}

/* The driver copies the arguments at each launch. */
static dg_err launch_memory(
	dg__dev *dev, const dg__kernel *k, const dg__launch *l, arguments *args, dg_error *reterr)
{
	dg_err err = DG_OK;
	for (uint64_t done = 0; !err && done < l->passes;) {
		uint64_t left = l->passes - done;
		uint64_t passes = left < args->passes_at_once ? left : args->passes_at_once;
		args->move = plan_move(k, l, done, passes);
		bool tiles = k->tiles && args->function == k->function;
		err = tiles ? launch_once(dev, k, args, args->move.tiles, args->move.spans, reterr)
			    : launch_once(dev, k, args, args->move.blocks, 1, reterr);
		done += passes;
	}
	return err;
}

static dg_err enqueue(dg__dev *dev, const dg__kernel *k, const dg__launch *l, arguments *args,
	uint32_t repeat, const dg__stop *stop, dg_error *reterr)
{
	for (uint32_t i = 0; i < repeat; i++) {
		dg_err err =
			i % CHECK_LAUNCHES == CHECK_LAUNCHES - 1 ? stopped(stop, reterr) : DG_OK;
		if (!err)
			err = k->tile_bytes ? launch_memory(dev, k, l, args, reterr)
					    : launch_once(dev, k, args, k->blocks, 1, reterr);
		if (err)
			return err;
	}
	return DG_OK;
}

/* Recording a graph of launches. */

static dg_err record(dg__dev *dev, const dg__kernel *k, const dg__launch *l, arguments *args,
	uint32_t nodes, const dg__stop *stop, void **ret_executable, dg_error *reterr)
{
	const dg__gpu_graph_calls *g = &dev->gpu->graph;
	void *graph = NULL;
	int code = g->capture_begin(dev->stream, 0);
	if (code)
		return dg__gpu_failed(dev->gpu, code, "recording a graph", reterr);
	dg_err err = enqueue(dev, k, l, args, nodes, stop, reterr);
	code = g->capture_end(dev->stream, &graph);
	if (!err && code)
		err = dg__gpu_failed(dev->gpu, code, "recording a graph", reterr);
	if (!err) {
		code = g->instantiate(ret_executable, graph, 0);
		if (code)
			err = dg__gpu_failed(dev->gpu, code, "making a graph", reterr);
	}
	if (graph)
		g->graph_destroy(graph);
	return err;
}

static dg_err launch_graphs(dg__dev *dev, const graphs *g, dg_error *reterr)
{
	for (uint32_t i = 0; g && i < g->times; i++) {
		int code = dev->gpu->graph.graph_launch(g->executable, dev->stream);
		if (code)
			return dg__gpu_failed(dev->gpu, code, "launching a graph", reterr);
	}
	return DG_OK;
}

/* Waiting. */

static void look_at_clock(dg__dev *dev, uint64_t since_ns)
{
	dg__gpu_look look = { .driver = "" };
	uint64_t now = dg__clock_ns();
	if (now - since_ns < LOOK_AFTER_NS || now - dev->clock_at_ns < LOOK_EVERY_NS)
		return;
	dev->clock_at_ns = now;
	if (dev->gpu->vendor->look(dev->gpu, &dev->identity, &look, NULL) == DG_OK &&
		(look.telemetry.present & DG_TELEMETRY_CLOCK))
		dev->clock_hz = look.telemetry.clock_hz;
}

static dg_err wait_for_end(dg__dev *dev, uint64_t start_ns, const dg__stop *stop, dg_error *reterr)
{
	for (;;) {
		int code = dev->gpu->calls.event_query(dev->end);
		if (code == DG__GPU_OK)
			return DG_OK;
		if (code != DG__GPU_NOT_READY)
			return dg__gpu_failed(dev->gpu, code, "running a kernel", reterr);
		dg_err err = stopped(stop, reterr);
		if (err)
			return err;
		look_at_clock(dev, start_ns);
		if (dg__clock_ns() - start_ns > SPIN_NS)
			dg__clock_sleep_ns(SLEEP_NS);
	}
}

static dg_err mark(dg__dev *dev, void *event, dg_error *reterr)
{
	int code = dev->gpu->calls.event_record(event, dev->stream);
	return code ? dg__gpu_failed(dev->gpu, code, "recording an event", reterr) : DG_OK;
}

static dg_err run(dg__dev *dev, const dg__kernel *k, const dg__launch *l, arguments *args,
	uint32_t repeat, const graphs *g, const dg__stop *stop, dg__timing *timing,
	dg_error *reterr)
{
	float ms = 0;
	uint64_t start_ns = dg__clock_ns();
	dg_err err = mark(dev, dev->start, reterr);
	if (!err)
		err = launch_graphs(dev, g, reterr);
	if (!err)
		err = enqueue(dev, k, l, args, repeat, stop, reterr);
	if (!err)
		err = mark(dev, dev->end, reterr);
	if (!err)
		err = wait_for_end(dev, start_ns, stop, reterr);
	if (err)
		return err;
	timing->host_ns = dg__clock_ns() - start_ns;
	if (!timing->host_ns)
		timing->host_ns = 1;
	int code = dev->gpu->calls.event_elapsed(&ms, dev->start, dev->end);
	timing->has_device = !code && ms > 0;
	timing->device_ns = timing->has_device ? (uint64_t)((double)ms * 1e6) : 0;
	return DG_OK;
}

/* Launches that do not fill a graph go one by one, after the graphs. */
static dg_err run_graph(dg__dev *dev, const dg__kernel *k, const dg__launch *l, arguments *args,
	const dg__stop *stop, dg__timing *timing, dg_error *reterr)
{
	uint32_t repeat = l->repeat;
	uint32_t nodes = repeat < GRAPH_NODES ? repeat : GRAPH_NODES;
	graphs g = { .times = repeat / nodes };
	if (!dev->gpu->has_graph)
		return dg_error_set(reterr, DG_ENOTSUP, "this driver records no graphs");
	dg_err err = record(dev, k, l, args, nodes, stop, &g.executable, reterr);
	if (!err)
		err = run(dev, k, l, args, repeat % nodes, &g, stop, timing, reterr);
	if (g.executable)
		dev->gpu->graph.executable_destroy(g.executable);
	return err;
}

dg_err dg__gpu_time(dg__dev *dev, dg__kernel *kernel, const dg__launch *launch,
	const dg__stop *stop, dg__timing *ret_timing, dg_error *reterr)
{
	dg__timing timing = { 0 };
	arguments args = { .function = NULL };
	dg_err err = dg__gpu_use(dev, reterr);
	if (err)
		return err;
	fill_arguments(kernel, launch, &args);
	err = launch->graph ? run_graph(dev, kernel, launch, &args, stop, &timing, reterr)
			    : run(dev, kernel, launch, &args, launch->repeat, NULL, stop, &timing,
				      reterr);
	if (!err)
		*ret_timing = timing;
	return err;
}

/* Between runs the clock rests: what was seen while it worked tells more. */
dg_err dg__gpu_observe(dg__dev *dev, dg__observation *ret_observation, dg_error *reterr)
{
	dg__observation seen = { .present = 0 };
	dg__gpu_look look = { .driver = "" };
	dg_err err = dev->gpu->vendor->look(dev->gpu, &dev->identity, &look, reterr);
	const dg_telemetry *t = &look.telemetry;
	if (err)
		return err;
	if (dev->clock_hz > 0 && dg__clock_ns() - dev->clock_at_ns < CLOCK_GOOD_NS) {
		seen.present |= DG__SEEN_CLOCK;
		seen.clock_hz = dev->clock_hz;
	} else if (t->present & DG_TELEMETRY_CLOCK) {
		seen.present |= DG__SEEN_CLOCK;
		seen.clock_hz = t->clock_hz;
	}
	if (t->present & DG_TELEMETRY_TEMPERATURE) {
		seen.present |= DG__SEEN_TEMPERATURE;
		seen.temperature_celsius = t->temperature_celsius;
	}
	if (t->present & DG_TELEMETRY_POWER) {
		seen.present |= DG__SEEN_POWER;
		seen.power_w = t->power_w;
	}
	if (t->present & DG_TELEMETRY_THROTTLE) {
		seen.present |= DG__SEEN_THROTTLE;
		snprintf(seen.throttle_reason, sizeof(seen.throttle_reason), "%s",
			t->throttle_reason);
	}
	*ret_observation = seen;
	return DG_OK;
}
