/*
 * A call as the library carries it out: the caller's options, checked, and one deadline for all.
 */
#ifndef DEVGATE_CLIENT_CALL_H
#define DEVGATE_CLIENT_CALL_H

#include "client/devgate.h"

/** Default time of questions and of measurements, in milliseconds. */
#define DG__QUESTION_MS 10000u
#define DG__MEASURE_MS 300000u

typedef struct dg__call {
	const dg_call *options; /* borrowed; NULL: all defaults */
	uint32_t flags;
	uint64_t deadline_ms; /* dg__now_ms() at which to stop */
} dg__call;

/** Monotonic milliseconds. Threads: safe. Blocks: no. (So for every call of this header.) */
uint64_t dg__now_ms(void);

/**
 * Check the options and start the clock.
 *
 * @param options     NULL: all defaults; borrowed as long as ret_call is used.
 * @param default_ms  Time where options give none.
 * @return DG_OK, DG_EINVALID (size or flags of another version, a lease id that can
 *         be none).
 */
dg_err dg__call_begin(const dg_call *options, uint32_t default_ms, dg__call *ret_call,
	dg_error *reterr) DG_MUST_CHECK;

/** Id of the lease that the caller presents; NULL: none. Borrowed. */
const char *dg__call_lease(const dg__call *call);

/** Milliseconds until the deadline, 0 once it has passed. */
uint32_t dg__call_left_ms(const dg__call *call);

/** Tell progress; false where the caller wants the work cancelled. */
bool dg__call_progress(const dg__call *call, uint32_t done, uint32_t total, const char *key);

#endif
