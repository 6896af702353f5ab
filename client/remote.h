/*
 * Devices of gateways.
 */
#ifndef DEVGATE_CLIENT_REMOTE_H
#define DEVGATE_CLIENT_REMOTE_H

#include "api/wire.h"
#include "client/call.h"

/*
 * Each takes a Remote device without autodiff wrapper. Besides what it says, each returns what
 * dg__session_begin() and dg__session_ask() return, and DG_EUNREGISTERED for a device that this
 * process never registered. Threads: safe. Block: until the call's deadline, half a second longer
 * where a measurement is cancelled.
 */

dg_err dg__remote_describe(dg_device device, const dg__call *call, dg__device_entry *ret_entry,
	dg_error *reterr) DG_MUST_CHECK;

/** As dg_performance_stats(); count >= 1. DG_EPROTOCOL where values do not match the keys. */
dg_err dg__remote_measure(dg_device device, const dg_key *keys, size_t count, const dg__call *call,
	dg_value *ret_values, size_t *ret_count, dg_error *reterr) DG_MUST_CHECK;

dg_err dg__remote_curve(dg_device device, dg_access access, const dg__call *call,
	dg_curve *ret_curve, dg_error *reterr) DG_MUST_CHECK;

/** flops, bytes, dtype and seconds of request are the work's. */
dg_err dg__remote_roofline(dg_device device, const dg__roofline_request *request,
	const dg__call *call, dg_roofline_input *ret_input, dg_roofline *ret_roofline,
	dg_error *reterr) DG_MUST_CHECK;

/** What is done about a device's lease. */
typedef enum dg__lease_act {
	DG__LEASE_TAKE,
	DG__LEASE_RENEW,
	DG__LEASE_GIVE,
	DG__LEASE_READ
} dg__lease_act;

/** As dg_lease_take() and the others; ttl_s counts for the first two. */
dg_err dg__remote_lease(dg_device device, dg__lease_act act, uint32_t ttl_s, const dg__call *call,
	dg_lease *ret_lease, dg_error *reterr) DG_MUST_CHECK;

#endif
