/*
 * Who holds which hardware. A lease is of the hardware and not of the name it was taken by: one
 * card that two APIs see is one; a partition and its parent exclude each other.
 *
 * A lease that was acknowledged survives kill -9. Its end counts in monotonic time while the
 * gateway runs, so that a clock that is set does not end it, and in real time over a restart.
 */
#ifndef DEVGATE_SERVER_LEASES_H
#define DEVGATE_SERVER_LEASES_H

#include "server/auth.h"
#include "server/store.h"

typedef struct dg__leases dg__leases;

/** The store is borrowed; what it holds is taken over. */
dg_err dg__leases_create(dg__store *store, dg__leases **ret_leases, dg_error *reterr) DG_MUST_CHECK;
void dg__leases_destroy(dg__leases *leases);

/**
 * Take the hardware of a device.
 *
 * @param in_use  Asked once it can be taken by nobody else: whether it is in use all the same.
 * @return DG_OK, DG_ELEASED (by whom and until when), DG_EBUSY (in use), DG_ESTATE, DG_ENOMEM.
 * Threads: safe. Blocks: on the state. (So for the next two.)
 */
dg_err dg__leases_take(dg__leases *leases, const dg__device_entry *entry, const dg__principal *who,
	uint32_t ttl_s, bool (*in_use)(void *user, const dg__device_entry *entry), void *user,
	dg_lease *ret_lease, dg_error *reterr) DG_MUST_CHECK;
/** From now on for ttl_s. DG_ENOLEASE where id is not that of the lease, or it has ended. */
dg_err dg__leases_renew(dg__leases *leases, const dg__device_entry *entry, const char *id,
	uint32_t ttl_s, dg_lease *ret_lease, dg_error *reterr) DG_MUST_CHECK;
/** Give back; ret_lease is what it was. DG_ENOLEASE. */
dg_err dg__leases_release(dg__leases *leases, const dg__device_entry *entry, const char *id,
	dg_lease *ret_lease, dg_error *reterr) DG_MUST_CHECK;

/** The lease of a device's hardware, without its id. DG_ENOLEASE. Blocks: no. */
dg_err dg__leases_get(dg__leases *leases, const dg__device_entry *entry, dg_lease *ret_lease,
	dg_error *reterr) DG_MUST_CHECK;
/** Whether who presents id ("": none) may use the device. DG_ELEASED. Blocks: no. */
dg_err dg__leases_check(dg__leases *leases, const dg__device_entry *entry, const char *id,
	dg_error *reterr) DG_MUST_CHECK;

#endif
