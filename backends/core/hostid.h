/*
 * Which machine this is: 32 hex digits that stay over restarts and tell nothing else about it.
 */
#ifndef DEVGATE_BACKENDS_CORE_HOSTID_H
#define DEVGATE_BACKENDS_CORE_HOSTID_H

#include <stdbool.h>
#include <stddef.h>

#include <devgate/error.h>

/** Room for a host id with NUL. */
#define DG__HOSTID_MAX 40
/** Environment variable that gives a worker the host id of the process that started it. */
#define DG__HOSTID_VARIABLE "DEVGATE_HOST_ID"

/**
 * The host id: that of DEVGATE_HOST_ID where it holds 32 hex digits, else a salted hash of the
 * machine id.
 *
 * @param[out] ret_id  Untouched where false.
 * @return false where the machine has no id: the caller then keeps a random one
 *         (dg__hostid_random()) and gives it to its workers in DEVGATE_HOST_ID.
 * Threads: safe unless another changes the environment. Blocks: no.
 */
bool dg__hostid_get(char ret_id[DG__HOSTID_MAX]);

/**
 * The hash of a machine id's text, as dg__hostid_get() makes it. False where it is no such text.
 */
bool dg__hostid_hash(const char *machine_id, char ret_id[DG__HOSTID_MAX]);

/** A random host id. DG_EIO where the system gives no random bytes. */
dg_err dg__hostid_random(char ret_id[DG__HOSTID_MAX], dg_error *reterr) DG_MUST_CHECK;

#endif
