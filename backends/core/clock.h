/*
 * The host clock that deadlines and measurements use.
 */
#ifndef DEVGATE_BACKENDS_CORE_CLOCK_H
#define DEVGATE_BACKENDS_CORE_CLOCK_H

#include <stdint.h>

/** Nanoseconds of a clock that never steps back. Threads: safe. */
uint64_t dg__clock_ns(void);
/** Milliseconds of Unix time. Threads: safe. */
int64_t dg__clock_unix_ms(void);
/** Sleep for at least ns, unless a signal comes first. */
void dg__clock_sleep_ns(uint64_t ns);

#endif
