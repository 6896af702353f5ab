/*
 * Settings kept by id for this process: configured once, or locked by the first read.
 */
#ifndef DEVGATE_API_LOCKED_H
#define DEVGATE_API_LOCKED_H

#include <devgate/settings.h>

/**
 * Keep settings for an id.
 *
 * @return DG_OK, DG_EINITIALIZED (kept already, whatever the values), DG_ENOMEM.
 * Threads: safe; exactly one of several callers wins.
 */
dg_err dg__locked_configure(dg_id id, const dg_settings *settings, dg_error *reterr) DG_MUST_CHECK;

/** What is kept; false where nothing is. Takes no lock. */
bool dg__locked_get(dg_id id, dg_settings *ret_settings);

/** What is kept; where nothing is, candidate is kept first. DG_ENOMEM. */
dg_err dg__locked_first_read(dg_id id, const dg_settings *candidate, dg_settings *ret_settings,
	dg_error *reterr) DG_MUST_CHECK;

#endif
