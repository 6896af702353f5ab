/* See stats.h. */
#include "backends/core/stats.h"

#include <stdlib.h>
#include <string.h>

#define MARGIN 0.01

void dg__stats_add(dg__stats *stats, double ns)
{
	if (stats->count >= DG__SAMPLES_MAX)
		return;
	stats->samples_ns[stats->count++] = ns;
	if (stats->count == 1 || ns < stats->best_ns)
		stats->best_ns = ns;
	/*
	 * Many small gains in a row are a gain, too: the bar moves only when it is beaten clearly.
	 */
	if (stats->count == 1 || ns < stats->bar_ns * (1 - MARGIN)) {
		stats->bar_ns = ns;
		stats->since_best = 0;
	} else {
		stats->since_best++;
	}
}

bool dg__stats_settled(const dg__stats *stats, const dg__settle *settle)
{
	if (stats->count >= settle->max_samples || stats->count >= DG__SAMPLES_MAX)
		return true;
	return stats->count >= settle->min_samples && stats->since_best >= settle->quiet;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double dg__stats_median(const dg__stats *stats)
{
	double sorted[DG__SAMPLES_MAX];
	size_t n = stats->count;
	if (!n)
		return 0;
	memcpy(sorted, stats->samples_ns, n * sizeof(sorted[0]));
	qsort(sorted, n, sizeof(sorted[0]), by_value);
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double dg__stats_spread(const dg__stats *stats)
{
	return stats->count ? (dg__stats_median(stats) - stats->best_ns) / stats->best_ns : 0;
}
