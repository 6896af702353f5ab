/* The measuring behind jobs. See jobs_internal.h. */
#include "server/jobs_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/core/clock.h"
#include "server/figures.h"
#include "server/log.h"

#define SECOND_NS 1000000000ull
#define PAUSE_MAX_S 60u

/* Partitions exclude their parent and each other; without an identity a device excludes itself. */
static void hardware_of(const dg__device_entry *entry, char *buf, size_t size)
{
	const dg_device_info *info = &entry->info;
	if (info->present & DG_HAS_PARENT)
		snprintf(buf, size, "gpu:%s", info->parent);
	else if (info->present & DG_HAS_HARDWARE)
		snprintf(buf, size, "%s", info->hardware);
	else
		snprintf(buf, size, "%s#%u", info->backend, info->gateway_index);
}

bool dg__runs_use(const dg__jobs *jobs, const dg__device_entry *entry)
{
	char hardware[96];
	hardware_of(entry, hardware, sizeof(hardware));
	const run *r = jobs->runs;
	while (r && strcmp(r->hardware, hardware) != 0)
		r = r->next;
	return r != NULL;
}

static setback *setback_of(dg__jobs *jobs, const char *hardware)
{
	setback *spare = NULL;
	for (size_t i = 0; i < DG__DEVICES_MAX; i++) {
		setback *s = &jobs->setbacks[i];
		if (s->failures && strcmp(s->hardware, hardware) == 0)
			return s;
		if (!s->failures && !spare)
			spare = s;
	}
	return spare;
}

dg_err dg__run_allowed(dg__jobs *jobs, const dg__device_entry *entry, dg_error *reterr)
{
	char hardware[96];
	hardware_of(entry, hardware, sizeof(hardware));
	const setback *s = setback_of(jobs, hardware);
	uint64_t now = dg__clock_ns();
	if (!s || !s->failures || now >= s->not_before_ns)
		return DG_OK;
	return dg_error_set(reterr, DG_EUNAVAILABLE,
		"the last %u measurements here ended their worker (%s); the next may begin in %lu "
		"s",
		s->failures, s->reason, (unsigned long)((s->not_before_ns - now) / SECOND_NS + 1));
}

/* One failure is forgiven; from the second in a row on, each doubles the pause. Under the lock. */
static void note_setback(dg__jobs *jobs, const run *r, const dg_error *why)
{
	setback *s = setback_of(jobs, r->hardware);
	if (!s)
		return;
	snprintf(s->hardware, sizeof(s->hardware), "%s", r->hardware);
	snprintf(s->reason, sizeof(s->reason), "%.199s", why->text);
	unsigned doublings = s->failures ? s->failures - 1 : 0;
	uint64_t pause_s = doublings < 6 ? 1ull << doublings : PAUSE_MAX_S;
	s->not_before_ns = s->failures++ ? dg__clock_ns() + pause_s * SECOND_NS : 0;
}

static void note_success(dg__jobs *jobs, const run *r)
{
	setback *s = setback_of(jobs, r->hardware);
	if (s)
		s->failures = 0;
}

static bool equal_keys(const run *r, const job *j)
{
	if (r->measure.count != j->missing_count)
		return false;
	for (size_t i = 0; i < j->missing_count; i++)
		if (!dg_key_equal(&r->measure.keys[i], &j->values[j->missing[i]].key))
			return false;
	return true;
}

static run *find_equal(dg__jobs *jobs, const job *j)
{
	for (run *r = jobs->runs; r; r = r->next)
		if (!r->cancelled && !r->ended &&
			r->entry.info.gateway_index == j->entry.info.gateway_index &&
			r->measure.sustained == j->request.measure.sustained && equal_keys(r, j))
			return r;
	return NULL;
}

static size_t queued(const dg__jobs *jobs)
{
	size_t n = 0;
	for (const run *r = jobs->runs; r; r = r->next)
		n += r->state == RUN_QUEUED;
	return n;
}

static void free_run(run *r)
{
	dg__worker_destroy(r->worker);
	free(r->values);
	free(r);
}

static dg_err make_run(dg__jobs *jobs, const job *j, run **ret_run, dg_error *reterr)
{
	run *r = calloc(1, sizeof(*r));
	if (!r || !(r->values = calloc(j->missing_count, sizeof(*r->values)))) {
		free(r);
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	}
	r->jobs = jobs;
	r->entry = j->entry;
	r->measure.count = j->missing_count;
	r->measure.sustained = j->request.measure.sustained;
	for (size_t i = 0; i < j->missing_count; i++)
		r->measure.keys[i] = j->values[j->missing[i]].key;
	hardware_of(&r->entry, r->hardware, sizeof(r->hardware));
	dg__worker_options options = { .backend = r->entry.info.backend };
	dg_err err = dg__worker_create(&options, &r->worker, reterr);
	if (err != DG_OK)
		free_run(r);
	else
		*ret_run = r;
	return err;
}

dg_err dg__run_join(dg__jobs *jobs, job *j, dg_error *reterr)
{
	run *r = find_equal(jobs, j);
	if (!r && queued(jobs) >= jobs->config->max_queue)
		return dg_error_set(reterr, DG_EBUSY, "%lu measurements wait already",
			(unsigned long)jobs->config->max_queue);
	if (!r) {
		dg_err err = make_run(jobs, j, &r, reterr);
		if (err != DG_OK)
			return err;
		run **at = &jobs->runs;
		while (*at)
			at = &(*at)->next;
		*at = r;
	}
	j->run = r;
	j->next_in_run = r->first;
	r->first = j;
	if (r->state == RUN_RUNNING)
		j->shown.state = DG__JOB_RUNNING;
	return DG_OK;
}

static void remove_run(dg__jobs *jobs, run *r)
{
	run **at = &jobs->runs;
	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
}

void dg__run_leave(dg__jobs *jobs, job *j)
{
	run *r = j->run;
	if (!r)
		return;
	job **at = &r->first;
	while (*at && *at != j)
		at = &(*at)->next_in_run;
	if (*at)
		*at = j->next_in_run;
	j->run = NULL;
	if (r->first)
		return;
	r->cancelled = true;
	if (r->state == RUN_QUEUED) {
		remove_run(jobs, r);
		free_run(r);
	} else {
		dg__worker_stop(r->worker);
	}
}

/* Ids of the jobs that wait for a run, to tell them without the lock. Owned; free(). */
static char (*waiting_ids(const run *r, size_t *ret_count))[40]
{
	size_t count = 0;
	for (const job *j = r->first; j; j = j->next_in_run)
		count++;
	char(*ids)[40] = count ? malloc(count * sizeof(*ids)) : NULL;
	*ret_count = ids ? count : 0;
	size_t i = 0;
	for (const job *j = r->first; ids && j; j = j->next_in_run)
		memcpy(ids[i++], j->shown.id, sizeof(*ids));
	return ids;
}

static void tell(dg__jobs *jobs, char (*ids)[40], size_t count)
{
	for (size_t i = 0; i < count; i++)
		dg__jobs_notify(jobs, ids[i]);
	free(ids);
}

static void on_progress(uint32_t done, uint32_t total, const dg_key *key, void *user)
{
	run *r = user;
	(void)done;
	(void)total;
	size_t count;
	pthread_mutex_lock(&r->jobs->lock);
	/* A cancel that came just before the worker had the request would be lost otherwise. */
	if (r->cancelled || r->jobs->stop)
		dg__worker_stop(r->worker);
	for (job *j = r->first; j; j = j->next_in_run)
		dg_key_format(key, j->shown.current, sizeof(j->shown.current));
	char(*ids)[40] = waiting_ids(r, &count);
	pthread_mutex_unlock(&r->jobs->lock);
	tell(r->jobs, ids, count);
}

static void on_value(uint32_t done, const dg_value *value, void *user)
{
	run *r = user;
	dg_error why;
	size_t count;
	if (dg__figure_put(r->jobs->store, &r->entry, value, &why) != DG_OK)
		dg__log(DG__LOG_DEBUG, "a figure cannot be kept: %s", why.text);
	pthread_mutex_lock(&r->jobs->lock);
	r->values[done] = *value;
	for (job *j = r->first; j; j = j->next_in_run)
		j->shown.done = (uint32_t)(j->count - j->missing_count) + done + 1;
	char(*ids)[40] = waiting_ids(r, &count);
	pthread_mutex_unlock(&r->jobs->lock);
	tell(r->jobs, ids, count);
}

/* Whether an error says that the worker or the device is not what it was. */
static bool is_suspect(dg_err err)
{
	return err == DG_EWORKER || err == DG_ELOST || err == DG_EDRIVER || err == DG_ETIMEOUT ||
	       err == DG_ENODEVICE;
}

/* A key that was asked for twice has its value at both places. */
static void fill_repeated(job *j)
{
	for (size_t i = 1; i < j->count; i++)
		for (size_t before = 0; before < i; before++)
			if (dg_key_equal(&j->values[before].key, &j->values[i].key)) {
				j->values[i] = j->values[before];
				break;
			}
}

/* The run has ended: each of its jobs takes its values, or the error. Under the lock. */
static void conclude(run *r, dg_err err, const dg_error *why)
{
	r->ended = true;
	for (job *j = r->first; j;) {
		job *next = j->next_in_run;
		if (err == DG_OK) {
			for (size_t i = 0; i < j->missing_count; i++)
				j->values[j->missing[i]] = r->values[i];
			fill_repeated(j);
			dg__job_conclude(j);
		} else {
			dg_error told = *why;
			told.code = err;
			dg__job_end(j, err == DG_ECANCELLED ? DG__JOB_CANCELLED : DG__JOB_FAILED,
				&told);
		}
		j->run = NULL;
		j = next;
	}
	r->first = NULL;
}

static void *measure(void *user)
{
	run *r = user;
	dg__jobs *jobs = r->jobs;
	dg__worker_watch watch = { on_progress, on_value, r };
	dg_error why = { .code = DG_OK };
	dg_err err = dg__worker_measure(r->worker, r->entry.driver_index, &r->measure,
		jobs->config->measure_timeout_ms, &watch, r->values, &why);
	if (is_suspect(err))
		dg__fleet_suspect(jobs->fleet, r->entry.info.backend, &why);
	else if (err == DG_OK)
		dg__fleet_confirm(jobs->fleet, r->entry.info.backend);
	size_t count;
	pthread_mutex_lock(&jobs->lock);
	char(*ids)[40] = waiting_ids(r, &count);
	conclude(r, err, &why);
	if (err == DG_EWORKER || err == DG_ETIMEOUT)
		note_setback(jobs, r, &why);
	else if (err != DG_ECANCELLED)
		note_success(jobs, r);
	pthread_mutex_unlock(&jobs->lock);
	tell(jobs, ids, count);
	/* Only now may the jobs be destroyed. */
	pthread_mutex_lock(&jobs->lock);
	remove_run(jobs, r);
	if (!jobs->stop)
		dg__runs_dispatch(jobs);
	pthread_cond_broadcast(&jobs->run_ended);
	free_run(r);
	pthread_mutex_unlock(&jobs->lock);
	return NULL;
}

static bool hardware_busy(const dg__jobs *jobs, const run *wanted)
{
	for (const run *r = jobs->runs; r; r = r->next)
		if (r->state == RUN_RUNNING && strcmp(r->hardware, wanted->hardware) == 0)
			return true;
	return false;
}

static void start_run(dg__jobs *jobs, run *r)
{
	r->state = RUN_RUNNING;
	for (job *j = r->first; j; j = j->next_in_run)
		j->shown.state = DG__JOB_RUNNING;
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	int fault = pthread_create(&r->thread, &attributes, measure, r);
	pthread_attr_destroy(&attributes);
	if (fault) {
		dg_error why;
		dg_error_native(&why, DG_EUNAVAILABLE, "pthread", fault,
			"no thread to measure with: %s", strerror(fault));
		conclude(r, DG_EUNAVAILABLE, &why);
		remove_run(jobs, r);
		free_run(r);
	}
}

void dg__runs_dispatch(dg__jobs *jobs)
{
	for (run *r = jobs->runs, *next; r; r = next) {
		next = r->next;
		if (r->state == RUN_QUEUED && !hardware_busy(jobs, r))
			start_run(jobs, r);
	}
}

static void drop_queued(dg__jobs *jobs)
{
	dg_error why;
	dg_error_set(&why, DG_ECANCELLED, "the gateway is ending");
	for (run *r = jobs->runs, *next; r; r = next) {
		next = r->next;
		if (r->state != RUN_QUEUED)
			continue;
		conclude(r, DG_ECANCELLED, &why);
		remove_run(jobs, r);
		free_run(r);
	}
}

void dg__runs_stop(dg__jobs *jobs)
{
	pthread_mutex_lock(&jobs->lock);
	jobs->stop = true;
	drop_queued(jobs);
	/* A worker's call ends within its limits once it is cancelled, whatever the worker does. */
	while (jobs->runs) {
		for (run *r = jobs->runs; r; r = r->next)
			dg__worker_stop(r->worker);
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 50000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&jobs->run_ended, &jobs->lock, &until);
	}
	pthread_mutex_unlock(&jobs->lock);
}
