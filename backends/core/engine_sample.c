/*
 * How a figure is found: a short search among shapes, then samples until they settle. See engine.h.
 */
#include <stdlib.h>

#include "backends/core/clock.h"
#include "backends/core/engine_run.h"

#define FINALISTS 3
#define FINAL_LENGTH 3 /* search samples */
#define ROUNDS 4
#define MIN_SAMPLES 3 /* whatever the time */
#define MAX_COUNT 1e12 /* units in a sample */
#define SEARCH_WINDOW ((uint64_t)32 << 20)

typedef struct candidate {
	dg__shape shape;
	dg__kernel *kernel; /* owned; NULL: not tried */
	uint64_t count; /* units that last about a search sample */
	double per_s; /* best so far, operations a second */
} candidate;

typedef struct sample {
	double unit_ns;
	bool device_clock, disagree;
} sample;

static dg_err stopped(const dg__run *run, dg_error *reterr)
{
	const dg__stop *stop = &run->stop;
	if (stop->cancel && atomic_load(stop->cancel))
		return dg_error_set(reterr, DG_ECANCELLED, NULL);
	if (stop->deadline_ns && dg__clock_ns() >= stop->deadline_ns)
		return dg_error_set(reterr, DG_ETIMEOUT, NULL);
	return DG_OK;
}

/* A device cannot have worked for longer than it was waited for. */
static bool disagree(const dg__timing *t)
{
	return t->has_device && (double)t->device_ns > (double)t->host_ns * 1.02 + 1000;
}

static dg_err take_sample(
	dg__probe *probe, const candidate *c, uint64_t count, sample *ret_sample, dg_error *reterr)
{
	const dg__run *run = probe->run;
	dg__timing timing = { 0 };
	dg_err err = stopped(run, reterr);
	uint64_t units = err ? 1 : probe->kind->scale(probe, &c->shape, count);
	if (!err)
		err = probe->kind->arm(probe, &c->shape, reterr);
	if (!err)
		err = run->backend->time(
			run->dev, c->kernel, &probe->launch, &run->stop, &timing, reterr);
	if (!err)
		err = probe->kind->check(probe, &c->shape, reterr);
	if (err)
		return err;
	uint64_t ns = timing.has_device && timing.device_ns ? timing.device_ns : timing.host_ns;
	ret_sample->unit_ns = (double)(ns ? ns : 1) / (double)units;
	ret_sample->device_clock = timing.has_device && timing.device_ns;
	ret_sample->disagree = disagree(&timing);
	return DG_OK;
}

/* Find how many units last about target_ns, and warm the shape up on the way. */
static dg_err calibrate(dg__probe *probe, const candidate *c, uint64_t target_ns, uint64_t start,
	uint64_t *ret_count, dg_error *reterr)
{
	double count = (double)start;
	for (bool near = false; !near;) {
		sample s;
		dg_err err = take_sample(probe, c, (uint64_t)count, &s, reterr);
		if (err)
			return err;
		double fits = (double)target_ns / s.unit_ns;
		near = fits <= 2 * count || count > MAX_COUNT;
		count = near ? fits : fits > 32 * count ? 32 * count : 2 * count;
	}
	*ret_count = count < 1 ? 1 : count > MAX_COUNT ? (uint64_t)MAX_COUNT : (uint64_t)count;
	return DG_OK;
}

static double rate_of(const dg__probe *probe, const candidate *c, double unit_ns)
{
	return probe->kind->unit_ops(probe, &c->shape) * 1e9 / unit_ns;
}

static dg_err try_again(dg__probe *probe, candidate *c, uint64_t count, dg_error *reterr)
{
	sample s;
	dg_err err = take_sample(probe, c, count, &s, reterr);
	if (!err && rate_of(probe, c, s.unit_ns) > c->per_s)
		c->per_s = rate_of(probe, c, s.unit_ns);
	return err;
}

/* Operands that show every part of a step; those to be timed with are chosen for other reasons. */
static dg_err prove(dg__probe *probe, const candidate *c, dg_error *reterr)
{
	sample s;
	probe->purpose = DG__TO_PROVE;
	dg_err err = take_sample(probe, c, probe->kind->prove_units, &s, reterr);
	probe->purpose = DG__TO_TIME;
	return err;
}

static dg_err warm_up(dg__probe *probe, const candidate *c, dg_error *reterr)
{
	dg__run *run = probe->run;
	uint64_t end = dg__clock_ns() + run->pace.warm_ns;
	while (!run->warm && dg__clock_ns() < end) {
		sample s;
		dg_err err = take_sample(probe, c, c->count, &s, reterr);
		if (err)
			return err;
	}
	run->warm = true;
	return DG_OK;
}

static dg_err try_first(dg__probe *probe, candidate *c, uint64_t start, dg_error *reterr)
{
	dg__run *run = probe->run;
	dg_err err = run->backend->kernel_create(
		run->dev, probe->ask.kernel, &c->shape, &c->kernel, reterr);
	if (!err)
		err = prove(probe, c, reterr);
	if (!err)
		err = calibrate(probe, c, run->pace.search_sample_ns, start, &c->count, reterr);
	if (!err && !run->warm)
		err = warm_up(probe, c, reterr);
	if (!err)
		err = try_again(probe, c, c->count, reterr);
	return err ? err : try_again(probe, c, c->count, reterr);
}

static int by_rate(const void *a, const void *b)
{
	double x = ((const candidate *)a)->per_s, y = ((const candidate *)b)->per_s;
	return (x < y) - (x > y);
}

/* The few best once more, in longer samples and in turn, so that a disturbance meets them alike. */
static dg_err run_finals(dg__probe *probe, candidate *list, size_t count, dg_error *reterr)
{
	size_t finalists = 1;
	while (finalists < count && finalists < FINALISTS &&
		list[finalists].per_s > 0.8 * list[0].per_s)
		finalists++;
	if (finalists == 1)
		return DG_OK;
	for (size_t i = 0; i < finalists; i++)
		list[i].per_s = 0;
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < finalists; i++) {
			dg_err err =
				try_again(probe, &list[i], list[i].count * FINAL_LENGTH, reterr);
			if (err)
				return err;
		}
	qsort(list, finalists, sizeof(*list), by_rate);
	return DG_OK;
}

/* Sorts the list, best first; those that time did not suffice for are last. */
static dg_err search(dg__probe *probe, candidate *list, size_t count, dg_error *reterr)
{
	uint64_t start = 1, end = 0;
	dg_err err = DG_OK;
	for (size_t i = 0; i < count && (!end || dg__clock_ns() < end); i++) {
		err = try_first(probe, &list[i], start, reterr);
		if (err == DG_ENOTSUP)
			continue;
		if (err)
			return err;
		start = list[i].count / 4 ? list[i].count / 4 : 1;
		if (!end) { /* the warm-up does not count */
			end = dg__clock_ns() + probe->run->pace.search_ns;
			probe->run->soft_end_ns = dg__clock_ns() + probe->budget_ns;
		}
	}
	qsort(list, count, sizeof(*list), by_rate);
	return list[0].per_s > 0 ? run_finals(probe, list, count, reterr) : err;
}

static dg_err measure_full(
	dg__probe *probe, const candidate *c, dg__outcome *found, dg_error *reterr)
{
	const dg__run *run = probe->run;
	uint64_t count = 1, start = probe->key_window > SEARCH_WINDOW ? 1 : c->count;
	dg_err err = calibrate(probe, c, run->pace.sample_ns, start, &count, reterr);
	found->unit_ops = probe->kind->unit_ops(probe, &c->shape);
	while (!err && !dg__stats_settled(&found->stats, &run->pace.settle)) {
		sample s;
		if (found->stats.count >= MIN_SAMPLES && dg__clock_ns() >= run->soft_end_ns)
			break;
		err = take_sample(probe, c, count, &s, reterr);
		if (err)
			return err;
		dg__stats_add(&found->stats, s.unit_ns);
		found->device_clock = s.device_clock;
		found->clocks_disagree = found->clocks_disagree || s.disagree;
	}
	found->count = probe->kind->scale(probe, &c->shape, count);
	found->settled = found->stats.since_best >= run->pace.settle.quiet;
	return err;
}

static dg_err measure_sustained(
	dg__probe *probe, const candidate *c, uint64_t count, double *ret_per_s, dg_error *reterr)
{
	double units = 0, ns = 0;
	while (ns < (double)probe->run->pace.sustained_ns) {
		sample s;
		dg_err err = take_sample(probe, c, count, &s, reterr);
		if (err)
			return err;
		double held = (double)probe->kind->scale(probe, &c->shape, count);
		units += held;
		ns += s.unit_ns * held;
	}
	*ret_per_s = rate_of(probe, c, ns / units);
	return DG_OK;
}

static void observe(const dg__run *run, dg__observation *ret)
{
	dg__observation seen = { 0 };
	if (run->backend->observe(run->dev, &seen, NULL) != DG_OK)
		seen.present = 0;
	*ret = seen;
}

static void note_observations(const dg__observation *before, uint64_t before_ns, dg__outcome *found)
{
	uint64_t both = before->present & found->after.present;
	if (before->present & DG__SEEN_CLOCK)
		found->clock_before_hz = before->clock_hz;
	if (found->after.present & DG__SEEN_CLOCK)
		found->clock_after_hz = found->after.clock_hz;
	if (!(both & DG__SEEN_OTHER))
		return;
	double share = (found->after.other_s - before->other_s) * 1e9 /
		       (double)(dg__clock_ns() - before_ns);
	found->has_busy = true;
	found->busy_fraction = share < 0 ? 0 : share > 1 ? 1 : share;
}

static size_t streaming_last(dg__shape *shapes, size_t count)
{
	size_t plain = 0;
	for (size_t i = 0; i < count; i++) {
		if (shapes[i].streaming)
			continue;
		dg__shape moved = shapes[i];
		shapes[i] = shapes[plain];
		shapes[plain++] = moved;
	}
	return plain;
}

static void destroy(dg__run *run, candidate *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].kernel)
			run->backend->kernel_destroy(run->dev, list[i].kernel);
}

static dg_err measure_best(
	dg__probe *probe, candidate *list, size_t count, dg__outcome *found, dg_error *reterr)
{
	dg__run *run = probe->run;
	probe->window_limit = SEARCH_WINDOW;
	dg_err err = search(probe, list, count, reterr);
	probe->window_limit = 0;
	if (err)
		return err;
	dg__observation before;
	uint64_t before_ns = dg__clock_ns();
	observe(run, &before);
	found->shape = list[0].shape;
	err = measure_full(probe, &list[0], found, reterr);
	if (!err && run->options->sustained)
		err = measure_sustained(
			probe, &list[0], found->count, &found->sustained_per_s, reterr);
	observe(run, &found->after);
	note_observations(&before, before_ns, found);
	return err;
}

/* A second figure beside the first: the best of a few samples is enough. */
static dg_err measure_streaming(
	dg__probe *probe, candidate *list, size_t count, dg__outcome *found, dg_error *reterr)
{
	if (!count)
		return DG_OK;
	probe->window_limit = SEARCH_WINDOW;
	dg_err err = search(probe, list, count, reterr);
	probe->window_limit = 0;
	if (!err)
		found->streaming_per_s = list[0].per_s;
	return err;
}

dg_err dg__sample_probe(dg__probe *probe, dg__outcome *ret_outcome, dg_error *reterr)
{
	dg__run *run = probe->run;
	dg__shape shapes[DG__SHAPES_PER_KERNEL];
	size_t count = 0;
	dg_err err = run->backend->shapes(run->dev, &probe->ask, shapes, &count, reterr);
	if (err)
		return err;
	if (count < 1 || count > DG__SHAPES_PER_KERNEL)
		return dg_error_set(
			reterr, DG_EDRIVER, "%s offers %zu shapes", run->backend->name, count);
	candidate *list = calloc(count, sizeof(*list));
	dg__outcome *found = calloc(1, sizeof(*found));
	if (!list || !found) {
		err = dg_error_set(reterr, DG_ENOMEM, NULL);
		goto out;
	}
	size_t plain = streaming_last(shapes, count);
	if (!plain) {
		err = dg_error_set(
			reterr, DG_EDRIVER, "%s offers streaming shapes alone", run->backend->name);
		goto out;
	}
	for (size_t i = 0; i < count; i++)
		list[i].shape = shapes[i];
	err = measure_best(probe, list, plain, found, reterr);
	if (!err)
		err = measure_streaming(probe, list + plain, count - plain, found, reterr);
	if (!err)
		*ret_outcome = *found;
out:
	if (list)
		destroy(run, list, count);
	free(list);
	free(found);
	return err;
}
