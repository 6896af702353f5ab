/*
 * The devices of this host: looked for in the background, numbered for good, shown as snapshots.
 */
#ifndef DEVGATE_SERVER_FLEET_H
#define DEVGATE_SERVER_FLEET_H

#include "server/config.h"
#include "server/store.h"

typedef struct dg__fleet dg__fleet;

#define DG__WAIT_MAX_S 300u /* longest wait that a request may prefer */

/**
 * What is known at one moment; immutable, shared, counted. Documents are prepared once a snapshot,
 * so that answering a GET copies bytes and no more.
 */
typedef struct dg__snapshot {
	uint64_t version; /* grows with each */
	bool ready; /* every backend was detected, or gave up, at least once */
	dg__gateway gateway;
	dg__device_list list; /* by gateway index; lost ones too */
	char etag[40]; /* quoted; of devices_json; changes when anything in it does */
	dg__json_text devices_json, gateway_json;
	dg__json_text *device_json; /* one per list entry */
	/* Variants with a device that is no software adapter, and the always enabled ones. */
	dg_variant_set enabled;
} dg__snapshot;

/**
 * Start looking (one thread a backend). config and store are borrowed for the life of the fleet.
 *
 * @param host  Host id.
 */
dg_err dg__fleet_create(const dg__config *config, dg__store *store, const char *gateway_id,
	const char *host, dg__fleet **ret_fleet, dg_error *reterr) DG_MUST_CHECK;
/** Stop, within a second whatever the workers do. */
void dg__fleet_destroy(dg__fleet *fleet);

/** The present snapshot; never NULL; give it back with dg__snapshot_release(). Threads: safe. */
const dg__snapshot *dg__fleet_snapshot(dg__fleet *fleet);
void dg__snapshot_release(const dg__snapshot *snapshot);

/** Called after each new snapshot, on a fleet thread. Set before others use the fleet. */
void dg__fleet_on_change(dg__fleet *fleet, void (*changed)(void *user), void *user);

/**
 * Find the device that a path names: a text form of a local device, or a gateway index.
 *
 * @param[out] ret_position  Place in snapshot->list.entries.
 * @return DG_OK, DG_EDEVICE, DG_ERANGE, DG_ENOTLOCAL (remote, capture), DG_ENODEVICE (lists what
 * there is), DG_EDETECTING (the backend is still looked for), DG_ELOST. Flex, NdArray and
 * LibTorch are no devices of the fleet: DG_ENODEVICE with *ret_identity set to the variant's
 * device.
 */
dg_err dg__fleet_find(const dg__snapshot *snapshot, const char *text, size_t *ret_position,
	dg_device *ret_identity, dg_error *reterr) DG_MUST_CHECK;

/** Tell the fleet that a measurement found the worker dead or the device gone, so that it looks
 * again. */
void dg__fleet_suspect(dg__fleet *fleet, const char *backend, const dg_error *error);
/** And that it worked. */
void dg__fleet_confirm(dg__fleet *fleet, const char *backend);

#endif
