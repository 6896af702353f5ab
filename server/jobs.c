/*
 * See jobs.h. A job is what a request sees; a run is the measuring behind it, which equal jobs
 * share.
 * Runs wait in a queue for their hardware; each has a thread and a worker of its own while it runs.
 * One lock holds jobs and runs together; it is never held while measuring or on the disk.
 */
#include "server/jobs_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/rand.h>

#include "backends/core/clock.h"
#include "server/figures.h"
#include "server/log.h"

#define KEPT_MS 600000 /* ended jobs are seen for so long */
#define JOBS_MAX 1000

static void free_job(job *j)
{
	if (!j)
		return;
	dg__job_finish(&j->shown);
	free(j->values);
	free(j);
}

static bool has_ended(const job *j)
{
	return j->shown.state >= DG__JOB_DONE;
}

static job *find_job(dg__jobs *jobs, const char *id)
{
	for (job *j = jobs->first; j; j = j->next)
		if (strcmp(j->shown.id, id) == 0)
			return j;
	return NULL;
}

/* Drop ended jobs that are old, and the oldest of them where there are too many. */
static void sweep(dg__jobs *jobs)
{
	int64_t now = dg__clock_unix_ms();
	for (job **at = &jobs->first; *at;) {
		job *j = *at;
		bool full = jobs->count >= JOBS_MAX;
		if (has_ended(j) && (full || now - j->shown.finished_at_ms > KEPT_MS)) {
			*at = j->next;
			jobs->count--;
			free_job(j);
		} else {
			at = &j->next;
		}
	}
}

static void append(dg__jobs *jobs, job *j)
{
	job **at = &jobs->first;
	while (*at)
		at = &(*at)->next;
	*at = j;
	jobs->count++;
}

void dg__jobs_notify(dg__jobs *jobs, const char *id)
{
	pthread_mutex_lock(&jobs->notify_lock);
	for (dg__subscription *s = jobs->subscriptions; s; s = s->next)
		if (strcmp(s->id, id) == 0)
			s->notify(s->user);
	pthread_mutex_unlock(&jobs->notify_lock);
}

static const char *kind_name(dg__job_kind kind)
{
	static const char *const names[] = { "throughput", "memory-curve", "roofline" };
	return names[kind];
}

/* Under the lock, or before the job is known to anyone. */
void dg__job_end(job *j, dg__job_state state, const dg_error *why)
{
	j->shown.state = state;
	j->shown.finished_at_ms = dg__clock_unix_ms();
	*j->shown.current = '\0';
	if (why)
		j->shown.error = *why;
	free(j->values);
	j->values = NULL;
}

void dg__job_conclude(job *j)
{
	dg_error why = { .code = DG_OK };
	dg_err err = dg__figure_reply(
		&j->entry, &j->request, j->values, j->count, &j->shown.result, &why);
	j->shown.done = j->shown.total;
	why.code = err;
	dg__job_end(j, err == DG_OK ? DG__JOB_DONE : DG__JOB_FAILED, err == DG_OK ? NULL : &why);
}

/* Whether the request asks for something that a kept figure does not hold. */
static bool wants_new(const dg__job_request *request, const dg_value *kept)
{
	bool curve = request->kind == DG__JOB_CURVE,
	     throughput = request->kind == DG__JOB_THROUGHPUT;
	if ((curve && request->curve.refresh) || (throughput && request->measure.refresh))
		return true;
	if (throughput && request->measure.sustained &&
		!(kept->evidence.present & DG_HAS_SUSTAINED))
		return true;
	return !dg__figure_is_good(kept);
}

static bool asked_before(const job *j, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (dg_key_equal(&j->values[i].key, &j->values[at].key))
			return true;
	return false;
}

/* What is kept goes into the values; the places of the rest are in missing, each key once. */
static void take_kept(dg__jobs *jobs, job *j)
{
	for (size_t i = 0; i < j->count; i++) {
		dg_value *value = &j->values[i];
		dg_err err = dg__figure_get(jobs->store, &j->entry, &value->key, value, NULL);
		if (err == DG_OK && !wants_new(&j->request, value))
			j->shown.done++;
		else if (!asked_before(j, i))
			j->missing[j->missing_count++] = (uint16_t)i;
	}
}

static dg_err make_id(char id[40], dg_error *reterr)
{
	unsigned char bytes[16];
	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return dg_error_set(reterr, DG_EINTERNAL, "no random bytes for a job's id");
	for (unsigned i = 0; i < 16; i++)
		snprintf(id + 2 * i, 3, "%02x", bytes[i]);
	return DG_OK;
}

static dg_err make_job(const dg__snapshot *snapshot, const dg__job_request *request,
	const dg__principal *who, job **ret_job, dg_error *reterr)
{
	job *j = calloc(1, sizeof(*j));
	dg_key *keys = calloc(DG_KEYS_MAX, sizeof(*keys));
	dg_err err =
		j && keys ? make_id(j->shown.id, reterr) : dg_error_set(reterr, DG_ENOMEM, NULL);
	if (err == DG_OK) {
		j->entry = snapshot->list.entries[request->position];
		j->request = *request;
		j->count = dg__figure_keys(request, keys);
		j->values = calloc(j->count + 1, sizeof(*j->values));
		if (!j->values)
			err = dg_error_set(reterr, DG_ENOMEM, NULL);
	}
	if (err != DG_OK) {
		free_job(j);
		free(keys);
		return err;
	}
	for (size_t i = 0; i < j->count; i++)
		j->values[i].key = keys[i];
	free(keys);
	snprintf(j->owner, sizeof(j->owner), "%s", who->name);
	snprintf(j->shown.kind, sizeof(j->shown.kind), "%s", kind_name(request->kind));
	if (j->entry.info.present & DG_HAS_DEVICE)
		dg_device_format(j->entry.info.device, j->shown.device, sizeof(j->shown.device));
	j->shown.total = (uint32_t)j->count;
	j->shown.created_at_ms = dg__clock_unix_ms();
	*ret_job = j;
	return DG_OK;
}

static void audit(dg__jobs *jobs, const job *j)
{
	char what[64];
	dg_error why;
	snprintf(what, sizeof(what), "measure %s (%zu keys)", j->shown.kind, j->missing_count);
	if (dg__store_audit(jobs->store, j->owner, what,
		    *j->shown.device ? j->shown.device : j->entry.info.name, &why) != DG_OK)
		dg__log(DG__LOG_DEBUG, "an audit entry cannot be kept: %s", why.text);
}

dg_err dg__jobs_start(dg__jobs *jobs, const dg__snapshot *snapshot, const dg__job_request *request,
	const dg__principal *who, char ret_id[40], dg_error *reterr)
{
	job *j;
	dg_err err = make_job(snapshot, request, who, &j, reterr);
	if (err != DG_OK)
		return err;
	take_kept(jobs, j);
	if (j->missing_count == 0)
		dg__job_conclude(j);
	else
		audit(jobs, j);
	pthread_mutex_lock(&jobs->lock);
	sweep(jobs);
	if (jobs->stop)
		err = dg_error_set(reterr, DG_EUNAVAILABLE, "the gateway is ending");
	else if (jobs->count >= JOBS_MAX)
		err = dg_error_set(reterr, DG_EBUSY, "%d jobs are under way", JOBS_MAX);
	/* Under the lock: who takes a lease asks for runs once nobody can join any more. */
	else if (!has_ended(j))
		err = dg__leases_check(jobs->leases, &j->entry, request->lease, reterr);
	if (err == DG_OK && !has_ended(j))
		err = dg__run_allowed(jobs, &j->entry, reterr);
	if (err == DG_OK && !has_ended(j))
		err = dg__run_join(jobs, j, reterr);
	if (err == DG_OK) {
		memcpy(ret_id, j->shown.id, sizeof(j->shown.id));
		append(jobs, j);
		dg__runs_dispatch(jobs);
	} else {
		free_job(j);
	}
	pthread_mutex_unlock(&jobs->lock);
	return err;
}

/* A job as its creator, or an administrator, may see it. Under the lock. */
static dg_err visible(
	dg__jobs *jobs, const char *id, const dg__principal *who, job **ret_job, dg_error *reterr)
{
	sweep(jobs);
	job *j = find_job(jobs, id);
	if (!j || (strcmp(j->owner, who->name) != 0 && !(who->scopes & DG__SCOPE_ADMIN)))
		return dg_error_set(reterr, DG_ENOJOB,
			"there is no job %.40s for you; jobs are kept for 10 "
			"minutes after their end",
			id);
	*ret_job = j;
	return DG_OK;
}

static dg_err copy_job(const job *j, dg__job *ret_job, dg_error *reterr)
{
	dg__job copy = j->shown;
	if (copy.result.text && !(copy.result.text = strdup(copy.result.text)))
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	*ret_job = copy;
	return DG_OK;
}

dg_err dg__jobs_get(dg__jobs *jobs, const char *id, const dg__principal *who, dg__job *ret_job,
	dg_error *reterr)
{
	job *j;
	pthread_mutex_lock(&jobs->lock);
	dg_err err = visible(jobs, id, who, &j, reterr);
	if (err == DG_OK)
		err = copy_job(j, ret_job, reterr);
	pthread_mutex_unlock(&jobs->lock);
	return err;
}

dg_err dg__jobs_cancel(dg__jobs *jobs, const char *id, const dg__principal *who, dg__job *ret_job,
	dg_error *reterr)
{
	job *j;
	pthread_mutex_lock(&jobs->lock);
	dg_err err = visible(jobs, id, who, &j, reterr);
	bool ends = err == DG_OK && !has_ended(j);
	if (ends) {
		dg_error why;
		dg_error_set(&why, DG_ECANCELLED, "the job was cancelled");
		dg__run_leave(jobs, j);
		dg__job_end(j, DG__JOB_CANCELLED, &why);
	}
	if (err == DG_OK)
		err = copy_job(j, ret_job, reterr);
	pthread_mutex_unlock(&jobs->lock);
	if (ends)
		dg__jobs_notify(jobs, id);
	return err;
}

dg_err dg__jobs_subscribe(dg__jobs *jobs, const char *id, const dg__principal *who,
	void (*notify)(void *user), void *user, dg__subscription **ret_subscription,
	dg_error *reterr)
{
	dg__subscription *s = calloc(1, sizeof(*s));
	if (!s)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	s->jobs = jobs;
	s->notify = notify;
	s->user = user;
	snprintf(s->id, sizeof(s->id), "%s", id);
	pthread_mutex_lock(&jobs->notify_lock);
	s->next = jobs->subscriptions;
	jobs->subscriptions = s;
	pthread_mutex_unlock(&jobs->notify_lock);
	job *j;
	pthread_mutex_lock(&jobs->lock);
	dg_err err = visible(jobs, id, who, &j, reterr);
	bool ended = err == DG_OK && has_ended(j);
	pthread_mutex_unlock(&jobs->lock);
	if (err != DG_OK) {
		dg__jobs_unsubscribe(s);
		return err;
	}
	*ret_subscription = s;
	if (ended)
		dg__jobs_notify(jobs, id);
	return DG_OK;
}

void dg__jobs_unsubscribe(dg__subscription *subscription)
{
	if (!subscription)
		return;
	dg__jobs *jobs = subscription->jobs;
	pthread_mutex_lock(&jobs->notify_lock);
	dg__subscription **at = &jobs->subscriptions;
	while (*at && *at != subscription)
		at = &(*at)->next;
	if (*at)
		*at = subscription->next;
	pthread_mutex_unlock(&jobs->notify_lock);
	free(subscription);
}

dg_err dg__jobs_known_values(
	dg__jobs *jobs, const dg__device_entry *entry, dg__values *ret_values, dg_error *reterr)
{
	return dg__figure_all(jobs->store, entry, ret_values, reterr);
}

/* The kept values of a request's keys, owned; DG_ENOTMEASURED where one is missing and all are
 * needed. */
static dg_err known(dg__jobs *jobs, const dg__device_entry *entry, const dg__job_request *request,
	bool all, dg_value **ret_values, size_t *ret_count, dg_error *reterr)
{
	dg_key *keys = calloc(DG_KEYS_MAX, sizeof(*keys));
	dg_value *values = calloc(DG_KEYS_MAX, sizeof(*values));
	dg_err err = keys && values ? DG_OK : dg_error_set(reterr, DG_ENOMEM, NULL);
	size_t wanted = err == DG_OK ? dg__figure_keys(request, keys) : 0, count = 0;
	for (size_t i = 0; i < wanted; i++)
		count +=
			dg__figure_get(jobs->store, entry, &keys[i], &values[count], NULL) == DG_OK;
	if (err == DG_OK && (count == 0 || (all && count < wanted)))
		err = dg_error_set(reterr, DG_ENOTMEASURED,
			"%zu of %zu figures that this needs are measured; POST measures them",
			count, wanted);
	free(keys);
	if (err != DG_OK) {
		free(values);
		return err;
	}
	*ret_values = values;
	*ret_count = count;
	return DG_OK;
}

dg_err dg__jobs_known_curve(dg__jobs *jobs, const dg__device_entry *entry,
	const dg__curve_request *request, dg__curve_reply *ret_reply, dg_error *reterr)
{
	dg__job_request *whole = calloc(1, sizeof(*whole));
	if (!whole)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dg_value *values;
	size_t count;
	whole->kind = DG__JOB_CURVE;
	whole->curve = *request;
	dg_err err = known(jobs, entry, whole, false, &values, &count, reterr);
	free(whole);
	if (err != DG_OK)
		return err;
	err = dg__figure_curve(entry, request, values, count, ret_reply, reterr);
	free(values);
	return err;
}

dg_err dg__jobs_known_roofline(dg__jobs *jobs, const dg__device_entry *entry,
	const dg__roofline_request *request, dg__roofline_reply *ret_reply, dg_error *reterr)
{
	dg__job_request *whole = calloc(1, sizeof(*whole));
	if (!whole)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dg_value *values;
	size_t count;
	whole->kind = DG__JOB_ROOFLINE;
	whole->roofline = *request;
	dg_err err = known(jobs, entry, whole, true, &values, &count, reterr);
	free(whole);
	if (err != DG_OK)
		return err;
	err = dg__figure_roofline(entry, request, values, count, ret_reply, reterr);
	free(values);
	return err;
}

dg_err dg__jobs_create(const dg__config *config, dg__store *store, dg__fleet *fleet,
	dg__leases *leases, dg__jobs **ret_jobs, dg_error *reterr)
{
	dg__jobs *jobs = calloc(1, sizeof(*jobs));
	if (!jobs)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	jobs->config = config;
	jobs->store = store;
	jobs->fleet = fleet;
	jobs->leases = leases;
	pthread_mutex_init(&jobs->lock, NULL);
	pthread_mutex_init(&jobs->notify_lock, NULL);
	pthread_cond_init(&jobs->run_ended, NULL);
	*ret_jobs = jobs;
	return DG_OK;
}

bool dg__jobs_use(dg__jobs *jobs, const dg__device_entry *entry)
{
	pthread_mutex_lock(&jobs->lock);
	bool used = dg__runs_use(jobs, entry);
	pthread_mutex_unlock(&jobs->lock);
	return used;
}

void dg__jobs_destroy(dg__jobs *jobs)
{
	if (!jobs)
		return;
	dg__runs_stop(jobs);
	while (jobs->first) {
		job *j = jobs->first;
		jobs->first = j->next;
		free_job(j);
	}
	pthread_cond_destroy(&jobs->run_ended);
	pthread_mutex_destroy(&jobs->notify_lock);
	pthread_mutex_destroy(&jobs->lock);
	free(jobs);
}
