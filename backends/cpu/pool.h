/*
 * Threads that stay on their cores and do one job together at a time. The first of them leads: it
 * hands each launch to the others, does its own share, waits for theirs and keeps the time, so that
 * the caller's thread is neither needed nor measured.
 */
#ifndef DEVGATE_BACKENDS_CPU_POOL_H
#define DEVGATE_BACKENDS_CPU_POOL_H

#include "backends/core/backend.h"
#include "backends/cpu/topology.h"

typedef struct dg__cpupool dg__cpupool;

/** A worker's share of one launch. Looks at dg__cpupool_stopping() at least every 50 ms. */
typedef void dg__cpujob_run(void *user, uint32_t worker, uint32_t workers);

typedef struct dg__cpujob {
	dg__cpujob_run *run;
	void *user;
	uint32_t workers; /* 1..dg__cpupool_threads() */
	uint32_t repeat; /* launches, 1.. */
	bool asleep; /* workers sleep between launches, else they spin */
} dg__cpujob;

/**
 * Start the threads, one per core, two at least, all asleep.
 *
 * @param[out] ret_pool  Owned; dg__cpupool_destroy().
 * @return DG_OK, DG_ENOMEM, DG_EDRIVER (threads cannot be had).
 */
dg_err dg__cpupool_create(
	const dg__topology *topology, dg__cpupool **ret_pool, dg_error *reterr) DG_MUST_CHECK;
/** End and free; NULL is fine. No job is running. */
void dg__cpupool_destroy(dg__cpupool *pool);

uint32_t dg__cpupool_threads(const dg__cpupool *pool);

/**
 * Do a job, timed from the first hand-over to the last return; waking the workers is not timed
 * unless they sleep in between.
 *
 * @return DG_OK, DG_ECANCELLED, DG_ETIMEOUT; then all workers have stopped.
 * Threads: one caller. Blocks: until the end or the stop.
 */
dg_err dg__cpupool_run(dg__cpupool *pool, const dg__cpujob *job, const dg__stop *stop,
	uint64_t *ret_ns, dg_error *reterr) DG_MUST_CHECK;

/** Whether the job at hand is to be given up. Threads: any worker. */
bool dg__cpupool_stopping(const dg__cpupool *pool);

#endif
