/*
 * Measurements: jobs that requests wait for, runs that jobs share, one run at a time per hardware.
 */
#ifndef DEVGATE_SERVER_JOBS_H
#define DEVGATE_SERVER_JOBS_H

#include "server/auth.h"
#include "server/fleet.h"
#include "server/leases.h"

typedef struct dg__jobs dg__jobs;

typedef enum dg__job_kind { DG__JOB_THROUGHPUT, DG__JOB_CURVE, DG__JOB_ROOFLINE } dg__job_kind;

/** What to measure. */
typedef struct dg__job_request {
	dg__job_kind kind;
	size_t position; /* in snapshot->list */
	char lease[40]; /* id of the lease that it presents; "": none */
	dg__measure_request measure; /* THROUGHPUT */
	dg__curve_request curve; /* CURVE */
	dg__roofline_request roofline; /* ROOFLINE */
} dg__job_request;

dg_err dg__jobs_create(const dg__config *config, dg__store *store, dg__fleet *fleet,
	dg__leases *leases, dg__jobs **ret_jobs, dg_error *reterr) DG_MUST_CHECK;
/** Cancel all, wait at most a second, free. Subscribers must be gone. */
void dg__jobs_destroy(dg__jobs *jobs);

/**
 * Start a job. Keys that the state holds good values for (not throttled, not disturbed, not failed)
 * are not measured again unless the request says refresh; a job that needs nothing measured is DONE
 * on return. Equal runs under way are joined; a run ends early when its last job is cancelled.
 *
 * @param[out] ret_id  Id of the job, 32 hex digits and NUL.
 * @return DG_OK, DG_EBUSY (queue full), DG_ENOMEM, DG_ELOST, DG_ENOMEASURE (curve and roofline of a
 *         device without kernels), DG_ELEASED (somebody else holds it and it must be measured).
 * Threads: safe. Blocks: on the state, for short.
 */
dg_err dg__jobs_start(dg__jobs *jobs, const dg__snapshot *snapshot, const dg__job_request *request,
	const dg__principal *who, char ret_id[40], dg_error *reterr) DG_MUST_CHECK;

/** A job as it is now; owned, dg__job_finish(). DG_ENOJOB also for who may not see it. */
dg_err dg__jobs_get(dg__jobs *jobs, const char *id, const dg__principal *who, dg__job *ret_job,
	dg_error *reterr) DG_MUST_CHECK;
dg_err dg__jobs_cancel(dg__jobs *jobs, const char *id, const dg__principal *who, dg__job *ret_job,
	dg_error *reterr) DG_MUST_CHECK;

/** A wish to be told of every change of a job. */
typedef struct dg__subscription dg__subscription;
/**
 * @param notify  Called on a job thread, holding no lock that dg__jobs_get() takes; must not block.
 *                Called once at least after subscribing where the job has ended already.
 * @param[out] ret_subscription  Owned; dg__jobs_unsubscribe(), after which notify is not called.
 */
dg_err dg__jobs_subscribe(dg__jobs *jobs, const char *id, const dg__principal *who,
	void (*notify)(void *user), void *user, dg__subscription **ret_subscription,
	dg_error *reterr) DG_MUST_CHECK;
void dg__jobs_unsubscribe(dg__subscription *subscription);

/** Whether a run uses the hardware of a device, or waits for it. Threads: safe. Blocks: no. */
bool dg__jobs_use(dg__jobs *jobs, const dg__device_entry *entry);

/** What is already measured of a device, in the standard order. */
dg_err dg__jobs_known_values(dg__jobs *jobs, const dg__device_entry *entry, dg__values *ret_values,
	dg_error *reterr) DG_MUST_CHECK;
/** As a job would, from what is measured only: DG_ENOTMEASURED where something is missing. */
dg_err dg__jobs_known_curve(dg__jobs *jobs, const dg__device_entry *entry,
	const dg__curve_request *request, dg__curve_reply *ret_reply,
	dg_error *reterr) DG_MUST_CHECK;
dg_err dg__jobs_known_roofline(dg__jobs *jobs, const dg__device_entry *entry,
	const dg__roofline_request *request, dg__roofline_reply *ret_reply,
	dg_error *reterr) DG_MUST_CHECK;

#endif
