/* See clock.h. */
#include "backends/core/clock.h"

#include <time.h>

uint64_t dg__clock_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int64_t dg__clock_unix_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void dg__clock_sleep_ns(uint64_t ns)
{
	struct timespec span = { .tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u) };
	nanosleep(&span, NULL);
}
