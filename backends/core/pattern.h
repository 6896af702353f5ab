/*
 * The content of memory that is measured: random words, too varied to be compressed, whose sum over
 * any range is known.
 */
#ifndef DEVGATE_BACKENDS_CORE_PATTERN_H
#define DEVGATE_BACKENDS_CORE_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/** Words after which the pattern begins anew: 1 MiB. */
#define DG__PATTERN_WORDS ((size_t)1 << 18)
#define DG__PATTERN_BYTES (DG__PATTERN_WORDS * 4)

typedef struct dg__pattern {
	uint32_t words[DG__PATTERN_WORDS];
	uint32_t sums[DG__PATTERN_WORDS + 1]; /* of the words before, modulo 2^32 */
} dg__pattern;

/** Fill in; the same each time. */
void dg__pattern_init(dg__pattern *pattern);
/** Sum modulo 2^32 of count words from word number first on, both counted over repeats. */
uint32_t dg__pattern_sum(const dg__pattern *pattern, uint64_t first, uint64_t count);

#endif
