/*
 * Amounts as people read them.
 */
#ifndef DEVGATE_CLIENT_CLI_UNITS_H
#define DEVGATE_CLIENT_CLI_UNITS_H

#include <stddef.h>
#include <stdint.h>

/** "143.8 GB", decimal prefixes. @return buf. */
const char *dg__units_bytes(uint64_t bytes, char *buf, size_t size);
/** A working set: "64 KiB" where it is a whole number of binary units, else bytes. @return buf. */
const char *dg__units_working_set(uint64_t bytes, char *buf, size_t size);
/** "1.2345 ms". @return buf. */
const char *dg__units_seconds(double seconds, char *buf, size_t size);

#endif
