/*
 * Jobs and runs, between jobs.c (what requests see) and runs.c (the measuring).
 */
#ifndef DEVGATE_SERVER_JOBS_INTERNAL_H
#define DEVGATE_SERVER_JOBS_INTERNAL_H

#include <pthread.h>

#include "backends/worker/worker.h"
#include "server/jobs.h"

typedef struct run run;
typedef struct job job;

struct job {
	job *next; /* in order of creation */
	dg__job shown;
	char owner[256];
	dg__device_entry entry;
	dg__job_request request;
	size_t count;
	dg_value *values; /* owned; one per key, until the job ends */
	uint16_t missing
		[DG_KEYS_MAX]; /* places of those that its run measures, in the run's order */
	size_t missing_count;
	run *run; /* NULL: has none, or left it */
	job *next_in_run;
};

typedef enum run_state { RUN_QUEUED, RUN_RUNNING } run_state;

struct run {
	run *next; /* in order of creation */
	dg__jobs *jobs;
	run_state state;
	bool cancelled; /* its last job left */
	bool ended; /* its jobs have their values: nobody may join any more */
	job *first; /* jobs that wait for it */
	char hardware[96]; /* what no other run may use meanwhile */
	dg__device_entry entry;
	dg__measure_request measure;
	dg_value *values; /* room for all keys */
	dg__worker *worker;
	pthread_t thread;
};

struct dg__subscription {
	dg__subscription *next;
	dg__jobs *jobs;
	char id[40];
	void (*notify)(void *user);
	void *user;
};

/** Hardware whose last runs ended its worker. */
typedef struct setback {
	char hardware[96];
	unsigned failures; /* in a row; 0: the place is free */
	uint64_t not_before_ns;
	char reason[200];
} setback;

struct dg__jobs {
	const dg__config *config;
	dg__store *store;
	dg__fleet *fleet;
	dg__leases *leases;
	pthread_mutex_t lock;
	bool stop;
	job *first;
	size_t count;
	run *runs;
	setback setbacks[DG__DEVICES_MAX];
	pthread_cond_t run_ended;
	pthread_mutex_t notify_lock; /* taken without lock */
	dg__subscription *subscriptions;
};

/** Under the lock, all of the following but notify and stop. */

/** Give the job a run: an equal one under way, or a new one in the queue. DG_EBUSY, DG_ENOMEM. */
dg_err dg__run_join(dg__jobs *jobs, job *j, dg_error *reterr) DG_MUST_CHECK;
/** Whether a run may begin on hardware whose last ones ended its worker. DG_EUNAVAILABLE. */
dg_err dg__run_allowed(
	dg__jobs *jobs, const dg__device_entry *entry, dg_error *reterr) DG_MUST_CHECK;
/** The job waits no longer; a run that nobody waits for ends. */
void dg__run_leave(dg__jobs *jobs, job *j);
/** Whether a run uses the hardware of a device, or waits for it. */
bool dg__runs_use(const dg__jobs *jobs, const dg__device_entry *entry);
/** Start what can run now. */
void dg__runs_dispatch(dg__jobs *jobs);
/** The job has all its values: make its reply. */
void dg__job_conclude(job *j);
void dg__job_end(job *j, dg__job_state state, const dg_error *why);

void dg__jobs_notify(dg__jobs *jobs, const char *id);
/** Cancel all runs and wait for their threads. */
void dg__runs_stop(dg__jobs *jobs);

#endif
