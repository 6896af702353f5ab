/* What a measurement is worth: its evidence, its marks, and whether it can be. See engine_run.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/core/clock.h"
#include "backends/core/engine_run.h"

#define BOUND_SLACK 1.10 /* clocks rise and fall between looks */
#define BUSY_MARK 0.05
#define THROTTLE_MARK 0.90 /* of the clock before */
#define SHORT_NS 100 /* an iteration shorter than this would be lost in rounding to nanoseconds */

static void copy_text(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from);
}

/* Iterations that the value counts as one, so that whole nanoseconds tell it well enough. */
static uint64_t group_of(const dg__outcome *out)
{
	return out->stats.best_ns >= SHORT_NS ? 1
					      : (uint64_t)ceil(SHORT_NS * 10 / out->stats.best_ns);
}

static void fill_times(const dg__probe *probe, const dg__outcome *out, dg_value *value)
{
	dg_evidence *e = &value->evidence;
	bool steps = probe->dtype != DG_DTYPE_NONE;
	/* A step of arithmetic is far below a nanosecond: there an iteration is a whole sample. */
	uint64_t group = steps ? out->count : group_of(out);
	double unit = (double)group;
	value->ops_count = (uint64_t)llround(out->unit_ops * unit);
	value->duration_ns = (uint64_t)llround(out->stats.best_ns * unit);
	e->samples = out->stats.count;
	uint64_t iterations = out->count / group;
	e->iterations = iterations < 1            ? 1
			: iterations > UINT32_MAX ? UINT32_MAX
						  : (uint32_t)iterations;
	e->best_ns = value->duration_ns;
	e->median_ns = (uint64_t)llround(dg__stats_median(&out->stats) * unit);
	e->spread = dg__stats_spread(&out->stats);
}

static void fill_marks(const dg__outcome *out, dg_evidence *e)
{
	const dg__observation *seen = &out->after;
	bool slower = out->clock_before_hz > 0 && out->clock_after_hz > 0 &&
		      out->clock_after_hz < out->clock_before_hz * THROTTLE_MARK;
	bool told = (seen->present & DG__SEEN_THROTTLE) && seen->throttle_reason[0];
	if (slower || told)
		e->flags |= DG_FLAG_THROTTLED;
	if (told)
		copy_text(e->throttle_reason, sizeof(e->throttle_reason), seen->throttle_reason);
	else if (slower)
		copy_text(e->throttle_reason, sizeof(e->throttle_reason),
			"the clock fell during the run");
	if (out->has_busy && out->busy_fraction > BUSY_MARK)
		e->flags |= DG_FLAG_DISTURBED;
	if (!out->settled)
		e->flags |= DG_FLAG_UNSTABLE;
	if (out->clocks_disagree)
		e->flags |= DG_FLAG_CLOCKS_DISAGREE;
	e->busy_fraction = out->busy_fraction;
}

static void fill_observed(const dg__outcome *out, dg_evidence *e)
{
	const dg__observation *seen = &out->after;
	if (seen->present & DG__SEEN_CLOCK) {
		e->present |= DG_HAS_CLOCK;
		e->clock_hz = seen->clock_hz;
	}
	if (seen->present & DG__SEEN_POWER) {
		e->present |= DG_HAS_POWER;
		e->power_w = seen->power_w;
	}
	if (seen->present & DG__SEEN_TEMPERATURE) {
		e->present |= DG_HAS_TEMPERATURE;
		e->temperature_celsius = seen->temperature_celsius;
	}
	if (out->sustained_per_s > 0) {
		e->present |= DG_HAS_SUSTAINED;
		e->sustained_per_s = out->sustained_per_s;
	}
	if (out->streaming_per_s > 0) {
		e->present |= DG_HAS_STREAMING;
		e->streaming_per_s = out->streaming_per_s;
	}
	if (out->device_clock)
		e->present |= DG_HAS_DEVICE_TIME;
}

static void fill_memory(const dg__run *run, const dg__probe *probe, dg_evidence *e)
{
	bool copy = probe->ask.kernel == DG__KERNEL_COPY;
	if (!probe->key_window)
		return;
	e->working_set_bytes =
		(probe->ask.resident ? probe->key_window : run->pool.bytes) * (copy ? 2 : 1);
	copy_text(e->traffic, sizeof(e->traffic),
		copy                                   ? "read+write"
		: probe->ask.kernel == DG__KERNEL_READ ? "read"
						       : "write");
}

/* The most that can be, in the value's own unit a second; 0: nothing is known. */
static double bound_of(const dg__run *run, const dg__probe *probe, const dg__outcome *out)
{
	/* A pool that the caches may hold part of is not bound by the bus. */
	bool cached = probe->key_window && run->pool.bytes < 2 * run->pool.cache_bytes;
	double clock = fmax(out->clock_before_hz, out->clock_after_hz);
	double by_clock = out->shape.bound_per_clock * clock * BOUND_SLACK;
	double bound = cached ? 0 : out->shape.bound_per_s * BOUND_SLACK;
	if (by_clock > 0 && (bound <= 0 || by_clock < bound))
		bound = by_clock;
	return probe->key_window ? bound / 4 : bound;
}

static bool refuse(
	const dg__run *run, const dg__probe *probe, const dg__outcome *out, dg_value *value)
{
	double bound = bound_of(run, probe, out), rate = 0;
	char got[DG_RATE_TEXT_MAX], most[DG_RATE_TEXT_MAX];
	const char *unit = probe->key_window ? "bytes/s" : "OPS/s";
	if (bound <= 0 || (dg_value_rate(value, &rate) && rate <= bound))
		return false;
	double scale = probe->key_window ? 4 : 1;
	dg_rate_format(rate * scale, unit, got, sizeof(got));
	dg_rate_format(bound * scale, unit, most, sizeof(most));
	value->status = DG_STATUS_REFUSED;
	value->code = DG_EIMPLAUSIBLE;
	snprintf(value->reason, sizeof(value->reason),
		"%s was measured, but the device can do at most %s at the clock observed", got,
		most);
	value->ops_count = 0;
	value->duration_ns = 0;
	return true;
}

void dg__judge(
	const dg__run *run, const dg__probe *probe, const dg__outcome *outcome, dg_value *value)
{
	dg_evidence *e = &value->evidence;
	fill_times(probe, outcome, value);
	fill_marks(outcome, e);
	fill_observed(outcome, e);
	fill_memory(run, probe, e);
	copy_text(e->clock_source, sizeof(e->clock_source),
		outcome->device_clock ? "device" : "host");
	copy_text(e->shape, sizeof(e->shape), outcome->shape.text);
	value->status = DG_STATUS_OK;
	value->code = DG_OK;
	refuse(run, probe, outcome, value);
}
