/*
 * Figures from repeated samples. Durations are in nanoseconds of one iteration, as doubles, because
 * an iteration may last less than a clock's tick.
 */
#ifndef DEVGATE_BACKENDS_CORE_STATS_H
#define DEVGATE_BACKENDS_CORE_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DG__SAMPLES_MAX 200

/** Samples of one figure. Zero-initialise. */
typedef struct dg__stats {
	uint32_t count;
	uint32_t since_best; /* samples in a row that did not beat the best by the margin */
	double best_ns; /* 0: no sample yet */
	double bar_ns; /* what a sample is held against: the best as of the last clear gain */
	double samples_ns[DG__SAMPLES_MAX];
} dg__stats;

/** When a figure has settled. */
typedef struct dg__settle {
	uint32_t min_samples, max_samples; /* max at most DG__SAMPLES_MAX */
	uint32_t quiet; /* so many in a row that do not beat the best by 1 % */
} dg__settle;

/** Add a sample, > 0. Samples beyond DG__SAMPLES_MAX are not kept. */
void dg__stats_add(dg__stats *stats, double ns);
/** Whether more samples would not help. */
bool dg__stats_settled(const dg__stats *stats, const dg__settle *settle);
/** The middle sample, the mean of the two for an even count; 0 without samples. */
double dg__stats_median(const dg__stats *stats);
/** (median - best) / best; 0 without samples. */
double dg__stats_spread(const dg__stats *stats);

#endif
