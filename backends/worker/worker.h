/*
 * The process that hosts a backend, seen by who uses it: gateway and library alike.
 *
 * A worker handle owns at most one child process, started when a call needs it and ended when it
 * has been idle for a while. Whatever the child does (hangs, crashes, is killed, answers nonsense,
 * eats memory), a call ends by its deadline with an error, and the next call gets a fresh child.
 *
 * One failure costs nothing more. After further ones in a row a call that needs a fresh child is
 * refused at once, DG_EWORKER telling when the next is let through: 100 ms after the second, twice
 * that after each further one, 30 s at most. A call that the child answers ends that. A child that
 * cannot be killed is not waited for; with three of them no further one is started until one ends.
 *
 * A child of fork() may use the handle, and destroys it: it gets a worker of its own.
 */
#ifndef DEVGATE_BACKENDS_WORKER_WORKER_H
#define DEVGATE_BACKENDS_WORKER_WORKER_H

#include "api/wire.h"

typedef struct dg__worker dg__worker;

typedef struct dg__worker_options {
	const char *backend; /* its name, "cpu"; [a-z0-9], at most 15 */
	/* Path of the executable; NULL: dg__worker_find(). */
	const char *path;
	/* The child ends after so many milliseconds without a request; 0: right after each one. */
	uint32_t idle_ms;
	uint64_t memory_limit_bytes; /* address space of the child (RLIMIT_AS); 0: no limit */
} dg__worker_options;

/**
 * Find the executable: DEVGATE_WORKER, else ../libexec/devgate/devgate-worker beside the file that
 * holds this code (library or program), else the same beside the running program.
 *
 * @return DG_OK, DG_EWORKER (lists the paths tried).
 */
dg_err dg__worker_find(char *buf, size_t size, dg_error *reterr) DG_MUST_CHECK;

/**
 * Make a handle. Starts no process.
 *
 * @param[out] ret_worker  Owned; dg__worker_destroy().
 * @return DG_OK, DG_ENOMEM, DG_EINVALID, DG_EWORKER (no executable).
 */
dg_err dg__worker_create(
	const dg__worker_options *options, dg__worker **ret_worker, dg_error *reterr) DG_MUST_CHECK;

/**
 * End the child (kill after 200 ms; one that cannot be killed is not waited for) and free. NULL is
 * fine. No call is under way. Blocks: at most 300 ms.
 */
void dg__worker_destroy(dg__worker *worker);

/**
 * Look for devices, in a fresh child always.
 *
 * @param timeout_ms  1..300000.
 * @param[out] ret_devices  Owned; dg__device_list_finish(). Entries have no gateway index.
 * @return DG_OK, DG_ENODRIVER, DG_EDRIVER, DG_ETIMEOUT, DG_EWORKER, DG_ECANCELLED, DG_ENOMEM.
 *         DG_EWORKER: it died, or broke its protocol. DG_OK with no devices: the driver has none.
 * Threads: calls on one handle wait for each other, cancel apart; DG_ETIMEOUT also where an earlier
 * one takes too long. Blocks: at most timeout_ms and 500 ms. (So for the calls below.)
 */
dg_err dg__worker_detect(dg__worker *worker, uint32_t timeout_ms, dg__device_list *ret_devices,
	dg_error *reterr) DG_MUST_CHECK;

/** What a measurement tells while it runs; called on the thread that measures. */
typedef struct dg__worker_watch {
	/* About to measure key number done of total. */
	void (*progress)(uint32_t done, uint32_t total, const dg_key *key, void *user);
	/* Key number done has its value. */
	void (*value)(uint32_t done, const dg_value *value, void *user);
	void *user;
} dg__worker_watch;

/**
 * Measure keys on a device.
 *
 * @param device  Driver's present index, as the last detection listed it.
 * @param timeout_ms  For all keys together, 1..3600000.
 * @param watch  NULL, or any member NULL: not wanted.
 * @param[out] ret_values  request->count values, in order. On failure the values measured before it
 *         are there all the same, the others have the failure's code and reason.
 * @return DG_OK (single keys may have failed: see each status), DG_ENODEVICE, DG_ELOST,
 *         DG_ETIMEOUT, DG_EWORKER, DG_ECANCELLED, DG_EDRIVER, DG_ENOMEM.
 */
dg_err dg__worker_measure(dg__worker *worker, uint32_t device, const dg__measure_request *request,
	uint32_t timeout_ms, const dg__worker_watch *watch, dg_value *ret_values,
	dg_error *reterr) DG_MUST_CHECK;

dg_err dg__worker_telemetry(dg__worker *worker, uint32_t device, uint32_t timeout_ms,
	dg_telemetry *ret_telemetry, dg_error *reterr) DG_MUST_CHECK;

/**
 * End the call that runs now, if any, with DG_ECANCELLED within 200 ms: asks the child first and
 * kills it if it does not listen. No later call is touched. Threads: safe from any. Blocks: no.
 */
void dg__worker_cancel(dg__worker *worker);

/**
 * As dg__worker_cancel(), and for good: calls that wait for their turn, that are about to start or
 * that come later end with DG_ECANCELLED too. For who is done with the handle while others may be
 * on their way into a call. Threads: safe from any. Blocks: no.
 */
void dg__worker_stop(dg__worker *worker);

/** Process id of the child, 0 where none runs. For tests and for the metrics. */
int64_t dg__worker_pid(const dg__worker *worker);

#endif
