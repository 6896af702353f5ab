/*
 * The one place that knows how to measure. A backend computes and moves bytes when told; the engine
 * decides what, how often, what it was worth, and whether to believe it.
 */
#ifndef DEVGATE_BACKENDS_CORE_ENGINE_H
#define DEVGATE_BACKENDS_CORE_ENGINE_H

#include <stdatomic.h>

#include "api/wire.h"
#include "backends/core/backend.h"
#include "backends/core/version.h"

/**
 * Set to 1 in the environment, samples are few and short and buffers small: for tests, which look
 * at behaviour and not at figures.
 */
#define DG__ENGINE_QUICK_VARIABLE "DG_ENGINE_QUICK"

typedef struct dg__engine_options {
	bool sustained; /* also hold each figure for about a second */
	uint64_t deadline_ns; /* dg__clock_ns() at which to stop; 0: none */
	atomic_bool *cancel; /* NULL, or set from any thread to stop within 200 ms */
	void (*progress)(uint32_t done, uint32_t total, const dg_key *key, void *user);
	void (*value)(uint32_t done, const dg_value *value, void *user);
	void *user;
} dg__engine_options;

/**
 * List a backend's devices, described.
 *
 * @return DG_OK, DG_ENODRIVER, DG_EDRIVER, DG_ENOMEM, DG_EINTERNAL (the
 *         backend is malformed).
 * Threads: one caller per backend. Blocks: as the driver does.
 */
dg_err dg__engine_detect(
	const dg__backend *backend, dg__device_list *ret_devices, dg_error *reterr) DG_MUST_CHECK;

/**
 * Measure keys on a device: one value per key, in order; a key that fails leaves the others alone.
 * Signed and unsigned integers of one width share one measurement.
 *
 * @param options  NULL: none.
 * @param[out] ret_values  Room for count.
 * @return DG_OK, DG_ENODEVICE, DG_ELOST, DG_EDRIVER, DG_ECANCELLED, DG_ETIMEOUT, DG_ENOMEM; then
 *         the values not measured carry the code and reason.
 * Threads: one caller per backend and device. Blocks: until the deadline.
 */
dg_err dg__engine_measure(const dg__backend *backend, uint32_t device, const dg_key *keys,
	size_t count, const dg__engine_options *options, dg_value *ret_values,
	dg_error *reterr) DG_MUST_CHECK;

#endif
