/*
 * Handles of the HTTP library, kept with their connections. Part of the transport.
 */
#ifndef DEVGATE_CLIENT_TRANSPORT_POOL_H
#define DEVGATE_CLIENT_TRANSPORT_POOL_H

#include <stdatomic.h>

#include <curl/curl.h>

#include "client/transport.h"

#define DG__SLOT_SOCKETS 16

/** A handle, in use by one thread at a time. */
typedef struct dg__slot {
	struct dg__slot *next;
	CURL *easy;
	dg__address address;
	uint32_t credential;
	bool busy;
	uint64_t used_ms;
	/* Sockets it has open, each + 1, 0 for none: what a child of fork has to close. */
	atomic_int sockets[DG__SLOT_SOCKETS];
	char detail[CURL_ERROR_SIZE];
} dg__slot;

/** Start the HTTP library, once. DG_ENOMEM. Threads: safe. (So for every call of this header.) */
dg_err dg__pool_start(dg_error *reterr) DG_MUST_CHECK;

/**
 * Take a handle whose connections, if it has any, go to this address with this set of credentials.
 * Its options are the library's defaults but for the tracking of sockets.
 *
 * @param[out] ret_slot  Give it back with dg__pool_release() or dg__pool_discard().
 * @return DG_OK, DG_ENOMEM.
 */
dg_err dg__pool_acquire(const dg__address *address, uint32_t credential, dg__slot **ret_slot,
	dg_error *reterr) DG_MUST_CHECK;

/** Keep the handle and its connections for the next exchange. */
void dg__pool_release(dg__slot *slot);

/** Close it for good. */
void dg__pool_discard(dg__slot *slot);

#endif
