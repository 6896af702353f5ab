/*
 * Snapshots, between fleet.c (which looks for devices) and fleet_snapshot.c (which shows them).
 */
#ifndef DEVGATE_SERVER_FLEET_INTERNAL_H
#define DEVGATE_SERVER_FLEET_INTERNAL_H

#include "server/fleet.h"

/**
 * Make a snapshot with its documents.
 *
 * @param gateway  Copied.
 * @param list     Consumed, also on failure: entries by gateway index.
 * @param[out] ret_snapshot  Owned: one reference.
 */
dg_err dg__snapshot_make_take(uint64_t version, const dg__gateway *gateway, dg__device_list *list,
	dg__snapshot **ret_snapshot, dg_error *reterr) DG_MUST_CHECK;
/** One more reference. */
void dg__snapshot_hold(const dg__snapshot *snapshot);

/** Identity under which a device's index is kept: its hardware, else its place (made unique). */
void dg__fleet_identity(const dg__device_list *found, size_t at, char *buf, size_t size);

/** Place of a variant or backend in the default order; unknown ones last. */
unsigned dg__fleet_rank(const char *backend);

#endif
