/*
 * The worker's side: a process that runs one backend for who holds the other end of its socket.
 */
#ifndef DEVGATE_BACKENDS_WORKER_HOST_H
#define DEVGATE_BACKENDS_WORKER_HOST_H

#include "backends/core/backend.h"

/**
 * Run a worker: `devgate-worker --backend NAME --fd N [--idle-ms N] [--memory-bytes N]`, `--list`,
 * `--version`.
 *
 * @param list  The backends it can host; borrowed.
 * @return Exit status; a worker that serves ends its process itself, as soon as the other end is
 *         closed, whatever its backend does at that moment.
 */
int dg__host_main(int argc, char **argv, const dg__backend *const *list, size_t count);

#endif
