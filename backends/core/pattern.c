/* See pattern.h. */
#include "backends/core/pattern.h"

void dg__pattern_init(dg__pattern *pattern)
{
	uint64_t x = 0x2545f4914f6cdd1du;
	pattern->sums[0] = 0;
	for (size_t i = 0; i < DG__PATTERN_WORDS; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		pattern->words[i] = (uint32_t)(x >> 32);
		pattern->sums[i + 1] = pattern->sums[i] + pattern->words[i];
	}
}

/* Of the first count words. */
static uint32_t sum_before(const dg__pattern *pattern, uint64_t count)
{
	uint32_t whole = (uint32_t)(count / DG__PATTERN_WORDS);
	return whole * pattern->sums[DG__PATTERN_WORDS] + pattern->sums[count % DG__PATTERN_WORDS];
}

uint32_t dg__pattern_sum(const dg__pattern *pattern, uint64_t first, uint64_t count)
{
	return sum_before(pattern, first + count) - sum_before(pattern, first);
}
