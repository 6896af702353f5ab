/*
 * Worker processes under test: the scripted one (fake_script.h) and the real one, as built.
 */
#ifndef DEVGATE_TESTS_FAKES_FAKE_WORKER_H
#define DEVGATE_TESTS_FAKES_FAKE_WORKER_H

#include <sys/types.h>

#include "backends/worker/worker.h"

/** Whether this program runs under a sanitizer, which needs more time and address space. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/*
 * Under a sanitizer, a report of a worker started after one of the next two fails the program.
 */
/** Path of the scripted worker: $DG_BUILD/tests/fakes/main_fake_worker; static. */
const char *dg_fake_worker_path(void);
/** Path of the real one: $DG_BUILD/libexec/devgate/devgate-worker; static. */
const char *dg_real_worker_path(void);

/** Set DG_FAKE, for workers that start from now on. */
void dg_fake_worker_script(const char *script);
/** Set the script and make a handle for a backend of that name, which must work. Owned. */
dg__worker *dg_fake_worker_create(const char *backend, const char *script, uint32_t idle_ms);

/** Whether a process is there and no zombie. */
bool dg_process_runs(int64_t pid);
/** Wait for it to end. @return whether it did within ms. */
bool dg_process_ends(int64_t pid, unsigned ms);
/** Lines of a script's log that end so; 0 where there is no such file. */
unsigned dg_fake_worker_calls(const char *log, const char *slot);

/** A handle for the backend "fake", whose script is in a file and can change. Owned. */
dg__worker *dg_fake_worker_create_changing(const char *script, uint32_t idle_ms);
/** Change that script, for the next call into the backend. */
void dg_fake_worker_change(const char *script);
/** Path of a log beside that script, empty at first; static. */
const char *dg_fake_worker_log(void);

/** Detect, and forget what was found; ret_count may be NULL. */
dg_err dg_worker_detect(
	dg__worker *worker, uint32_t timeout_ms, size_t *ret_count, dg_error *reterr);
/** A request for keys in their short text, separated by blanks. */
dg__measure_request dg_worker_request(const char *keys);
/** Measure keys on device 0. */
dg_err dg_worker_measure(dg__worker *worker, const char *keys, uint32_t timeout_ms,
	dg_value *values, dg_error *reterr);
/** Fail the case unless a measurement goes well. */
void dg_worker_assert_works(dg__worker *worker);
/** Send a signal to a worker's process, which must be there. */
void dg_worker_signal(const dg__worker *worker, int sig);

/** What a script brings about. */
typedef struct dg_worker_fault {
	const char *script;
	dg_err err;
	const char *words; /**< in the error's text */
	int native_code;
} dg_worker_fault;

#endif
