/* See units.h. */
#include "client/cli/units.h"

#include <inttypes.h>
#include <stdio.h>

const char *dg__units_bytes(uint64_t bytes, char *buf, size_t size)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB", "EB" };
	double amount = (double)bytes;
	size_t unit = 0;
	/* What rounds to 1000 takes the next unit. */
	while (amount >= 999.95 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		amount /= 1000;
		unit++;
	}
	snprintf(buf, size, "%.*f %s", unit == 0 ? 0 : 1, amount, units[unit]);
	return buf;
}

const char *dg__units_working_set(uint64_t bytes, char *buf, size_t size)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	size_t unit = 0;
	while (bytes >= 1024 && bytes % 1024 == 0 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		bytes /= 1024;
		unit++;
	}
	snprintf(buf, size, "%" PRIu64 " %s", bytes, units[unit]);
	return buf;
}

const char *dg__units_seconds(double seconds, char *buf, size_t size)
{
	static const char *const units[] = { "s", "ms", "us", "ns" };
	size_t unit = 0;
	while (seconds > 0 && seconds < 0.99995 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		seconds *= 1000;
		unit++;
	}
	snprintf(buf, size, "%.4f %s", seconds, units[unit]);
	return buf;
}
