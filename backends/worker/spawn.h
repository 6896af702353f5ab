/*
 * Starting, killing and reaping a worker's process. Never waits for a child that is not ours, nor
 * for one that cannot be killed.
 */
#ifndef DEVGATE_BACKENDS_WORKER_SPAWN_H
#define DEVGATE_BACKENDS_WORKER_SPAWN_H

#include <sys/types.h>

#include "backends/worker/worker.h"

/** Descriptor at which a worker finds its end of the socket pair. */
#define DG__WORKER_FD 3

/**
 * Start the executable with its end of a new socket pair.
 *
 * @param[out] ret_fd  Our end; owned, close().
 * @return DG_OK, DG_EWORKER (cannot be started), DG_EIO.
 * Threads: safe.
 */
dg_err dg__spawn(const char *path, const dg__worker_options *options, pid_t *ret_pid, int *ret_fd,
	dg_error *reterr) DG_MUST_CHECK;

/** Status of a child of which nothing is known. */
#define DG__STATUS_UNKNOWN (-1)

/**
 * Reap pid if it ends within wait_ms.
 *
 * @param[out] ret_status  As waitpid() gives it; DG__STATUS_UNKNOWN where somebody else reaped it.
 * @return true where it has ended.
 */
bool dg__spawn_reap(pid_t pid, unsigned wait_ms, int *ret_status);

/**
 * Leave a killed child that has not ended yet: it is reaped by some later dg__spawn(), on whatever
 * handle. Threads: safe. Blocks: no.
 */
void dg__spawn_leave(pid_t pid);

/**
 * Say how a child ended: "was killed by signal 9", "exited with status 3".
 *
 * @return The number of the signal, or the exit status.
 */
int dg__spawn_describe(int status, char *buf, size_t size);

#endif
