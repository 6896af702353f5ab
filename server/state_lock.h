/*
 * One gateway for a state folder: two would hand out jobs, values and indexes against each other.
 */
#ifndef DEVGATE_SERVER_STATE_LOCK_H
#define DEVGATE_SERVER_STATE_LOCK_H

#include <stdbool.h>

#include <devgate/error.h>

/**
 * Take the folder for this process, for as long as the descriptor is open. It is held by the file
 * "lock" in the folder, which also tells the holder's process id and is never removed. Commands
 * that edit the state beside a gateway take no lock.
 *
 * @param directory    There already.
 * @param read_only    The folder cannot be written: a file that is there is locked, and where there
 *                     is none, ret_fd is -1.
 * @param[out] ret_fd  Close-on-exec, so that workers do not hold it on; close() to let go.
 * @return DG_OK, DG_ECONFIG (another process holds it: the folder and the process id where it is
 *         known), DG_ESTATE (the file cannot be made or locked).
 * Threads: safe. Blocks: on the disk; never for the holder.
 */
dg_err dg__state_lock(
	const char *directory, bool read_only, int *ret_fd, dg_error *reterr) DG_MUST_CHECK;

#endif
