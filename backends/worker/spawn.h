/*
 * Starting, killing and reaping a worker's process. Never waits for a child that is not ours, nor for
 * one that cannot be killed.
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

/**
 * Reap pid if it ends within wait_ms.
 *
 * @param[out] ret_status  As waitpid() gives it.
 * @return true where it has ended (or is no child of ours any more: status 0).
 */
bool dg__spawn_reap(pid_t pid, unsigned wait_ms, int *ret_status);

/** "killed by signal 9", "exited with status 3". */
void dg__spawn_describe(int status, char *buf, size_t size);

#endif
