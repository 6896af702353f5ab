/*
 * Measured values in the state, and the replies made of values.
 */
#ifndef DEVGATE_SERVER_FIGURES_H
#define DEVGATE_SERVER_FIGURES_H

#include "server/jobs.h"

/** A figure that need not be measured again: measured well, neither throttled, disturbed nor
 * unstable. */
bool dg__figure_is_good(const dg_value *value);

/** The kept figure of a key; DG_ENOTFOUND. Blocks: on the state. */
dg_err dg__figure_get(dg__store *store, const dg__device_entry *entry, const dg_key *key,
	dg_value *ret_value, dg_error *reterr) DG_MUST_CHECK;

/** Keep a figure; a marked one does not replace a good one. What is no figure is not kept. */
dg_err dg__figure_put(dg__store *store, const dg__device_entry *entry, const dg_value *value,
	dg_error *reterr) DG_MUST_CHECK;

/** All kept figures of a device, in the standard order: arithmetic, matrix units, memory, launch.
 * */
dg_err dg__figure_all(dg__store *store, const dg__device_entry *entry, dg__values *ret_values,
	dg_error *reterr) DG_MUST_CHECK;

/** The keys that a request is about. @return how many. */
size_t dg__figure_keys(const dg__job_request *request, dg_key ret_keys[DG_KEYS_MAX]);

/** The reply to a request from its keys' values. ret_text owned. DG_ENOTMEASURED, DG_EFAILED, … */
dg_err dg__figure_reply(const dg__device_entry *entry, const dg__job_request *request,
	const dg_value *values, size_t count, dg__json_text *ret_text,
	dg_error *reterr) DG_MUST_CHECK;

dg_err dg__figure_curve(const dg__device_entry *entry, const dg__curve_request *request,
	const dg_value *values, size_t count, dg__curve_reply *ret_reply,
	dg_error *reterr) DG_MUST_CHECK;
dg_err dg__figure_roofline(const dg__device_entry *entry, const dg__roofline_request *request,
	const dg_value *values, size_t count, dg__roofline_reply *ret_reply,
	dg_error *reterr) DG_MUST_CHECK;

#endif
