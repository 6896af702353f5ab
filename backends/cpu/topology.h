/*
 * What this process may use of the machine: cores, memory, caches; and what the machine is doing.
 * Everything is read below a root directory, "" for the machine itself, so that other machines can
 * be shown to it.
 */
#ifndef DEVGATE_BACKENDS_CPU_TOPOLOGY_H
#define DEVGATE_BACKENDS_CPU_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#define DG__CPUS_MAX 1024

/** The cores to use, one CPU of each. */
typedef struct dg__topology {
	uint32_t count; /* 1..DG__CPUS_MAX */
	uint16_t cpus[DG__CPUS_MAX]; /* numbers of the system, the fastest cores first */
	double quota; /* CPUs that a control group grants, may be a fraction; 0: no limit */
} dg__topology;

/**
 * Find the cores this process may use: its affinity, one CPU of each core, and no more of them than
 * the quota's next whole number. Always finds one.
 * Threads: safe. Blocks: reads small files.
 */
void dg__topology_read(const char *root, dg__topology *ret_topology);

/** Keep the calling thread on a CPU. False where the system does not do that. */
bool dg__topology_pin(uint16_t cpu);

/** Bytes of all last-level caches together that these cores use; 0 where unknown. */
uint64_t dg__topology_cache(const char *root, const dg__topology *topology);

typedef struct dg__memory_state {
	uint64_t total_bytes; /* that this process may ever have */
	uint64_t free_bytes; /* that it may take now without swapping, or being killed */
} dg__memory_state;

/** Memory, by the machine and by control groups and limits, whichever is less. False: unknown. */
bool dg__topology_memory(const char *root, dg__memory_state *ret_memory);

/**
 * Seconds that the CPUs of a topology have worked since some start, for anybody, this machine's
 * other guests too. False: unknown.
 */
bool dg__topology_busy(const char *root, const dg__topology *topology, double *ret_s);

/** Temperature of the CPU's own sensor. False: there is none. */
bool dg__topology_temperature(const char *root, double *ret_celsius);
/** The highest of the cores' present clocks, as the system has it. False: unknown. */
bool dg__topology_clock(const char *root, const dg__topology *topology, double *ret_hz);
/** How often the CPUs have been slowed down for heat, since some start. False: unknown. */
bool dg__topology_throttles(const char *root, const dg__topology *topology, uint64_t *ret_count);
/** The processor's name in the system's words; "" where it has none. */
void dg__topology_name(const char *root, char *buf, unsigned size);

#endif
