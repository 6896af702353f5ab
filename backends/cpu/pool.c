/* See pool.h. */
#include "backends/cpu/pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "backends/core/clock.h"

#define LINE 64 /* of a cache, so that no two threads write the same one */
#define SPINS_BEFORE_PAUSE 256 /* a pause gives a sibling thread room, and costs a late answer */
#define SPINS_BEFORE_YIELD 8192 /* a few hundred microseconds */
#define LOOK_NS 10000000 /* how often the caller looks whether to give up */

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the gaps are what keeps lines apart */
typedef struct slot {
	_Alignas(LINE) atomic_uint go; /* launches handed over */
	atomic_bool spin; /* stay awake between launches */
	_Alignas(LINE) atomic_uint done; /* launches finished */
	pthread_mutex_t lock; /* for sleeping */
	pthread_cond_t changed;
	pthread_t thread;
	uint32_t number;
	bool started;
	dg__cpupool *pool;
} slot;

struct dg__cpupool {
	uint32_t count;
	slot *slots; /* owned; number 0 leads */
	dg__topology topology;
	atomic_bool stop, quit;
	pthread_mutex_t lock; /* of the members below */
	pthread_cond_t changed;
	dg__cpujob job;
	bool posted, finished;
	uint64_t ns;
};

static void relax(unsigned *spins)
{
	if (++*spins < SPINS_BEFORE_PAUSE)
		return;
	if (*spins > SPINS_BEFORE_YIELD) {
		sched_yield();
		return;
	}
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

bool dg__cpupool_stopping(const dg__cpupool *pool)
{
	return atomic_load_explicit(&pool->stop, memory_order_relaxed);
}

uint32_t dg__cpupool_threads(const dg__cpupool *pool)
{
	return pool->count;
}

/* Workers. */

static void work(slot *s, unsigned go)
{
	const dg__cpujob *job = &s->pool->job;
	job->run(job->user, s->number, job->workers);
	atomic_store_explicit(&s->done, go, memory_order_release);
}

static void spin(slot *s, unsigned *seen)
{
	unsigned spins = 0;
	while (atomic_load_explicit(&s->spin, memory_order_relaxed)) {
		unsigned go = atomic_load_explicit(&s->go, memory_order_acquire);
		if (go == *seen) {
			relax(&spins);
			continue;
		}
		*seen = go;
		work(s, go);
		spins = 0;
	}
}

static void *worker_main(void *user)
{
	slot *s = user;
	unsigned seen = 0;
	dg__topology_pin(s->pool->topology.cpus[s->number % s->pool->topology.count]);
	pthread_mutex_lock(&s->lock);
	while (!atomic_load(&s->pool->quit)) {
		unsigned go = atomic_load(&s->go);
		if (atomic_load(&s->spin)) {
			pthread_mutex_unlock(&s->lock);
			spin(s, &seen);
			pthread_mutex_lock(&s->lock);
		} else if (go != seen) {
			seen = go;
			pthread_mutex_unlock(&s->lock);
			work(s, go);
			pthread_mutex_lock(&s->lock);
			pthread_cond_broadcast(&s->changed);
		} else {
			pthread_cond_wait(&s->changed, &s->lock);
		}
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* The leader. */

static void set_spinning(dg__cpupool *pool, uint32_t workers, bool on)
{
	for (uint32_t i = 1; i < workers; i++) {
		slot *s = &pool->slots[i];
		pthread_mutex_lock(&s->lock);
		atomic_store(&s->spin, on);
		pthread_cond_broadcast(&s->changed);
		pthread_mutex_unlock(&s->lock);
	}
}

static void hand_over(slot *s, bool asleep)
{
	/* The leader alone writes this, so that no locked addition is needed. */
	unsigned go = atomic_load_explicit(&s->go, memory_order_relaxed) + 1;
	if (!asleep) {
		atomic_store_explicit(&s->go, go, memory_order_release);
		return;
	}
	pthread_mutex_lock(&s->lock);
	atomic_store(&s->go, go);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void take_back(slot *s, bool asleep)
{
	unsigned spins = 0, go = atomic_load_explicit(&s->go, memory_order_relaxed);
	if (!asleep) {
		while (atomic_load_explicit(&s->done, memory_order_acquire) != go)
			relax(&spins);
		return;
	}
	pthread_mutex_lock(&s->lock);
	while (atomic_load(&s->done) != go)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static void launch(dg__cpupool *pool)
{
	const dg__cpujob *job = &pool->job;
	for (uint32_t i = 1; i < job->workers; i++)
		hand_over(&pool->slots[i], job->asleep);
	job->run(job->user, 0, job->workers);
	for (uint32_t i = 1; i < job->workers; i++)
		take_back(&pool->slots[i], job->asleep);
}

static void nothing(void *user, uint32_t worker, uint32_t workers)
{
	(void)user;
	(void)worker;
	(void)workers;
}

/* A first launch of nothing has everybody awake before the clock starts. */
static void muster(dg__cpupool *pool)
{
	dg__cpujob job = pool->job;
	if (!job.asleep)
		set_spinning(pool, job.workers, true);
	pool->job.run = nothing;
	launch(pool);
	pool->job = job;
}

static uint64_t lead(dg__cpupool *pool)
{
	muster(pool);
	uint64_t start = dg__clock_ns();
	for (uint32_t r = 0; r < pool->job.repeat && !dg__cpupool_stopping(pool); r++)
		launch(pool);
	uint64_t ns = dg__clock_ns() - start;
	if (!pool->job.asleep)
		set_spinning(pool, pool->job.workers, false);
	return ns ? ns : 1;
}

static void *leader_main(void *user)
{
	dg__cpupool *pool = ((slot *)user)->pool;
	dg__topology_pin(pool->topology.cpus[0]);
	pthread_mutex_lock(&pool->lock);
	while (!atomic_load(&pool->quit)) {
		if (!pool->posted) {
			pthread_cond_wait(&pool->changed, &pool->lock);
			continue;
		}
		pool->posted = false;
		pthread_mutex_unlock(&pool->lock);
		uint64_t ns = lead(pool);
		pthread_mutex_lock(&pool->lock);
		pool->ns = ns;
		pool->finished = true;
		pthread_cond_broadcast(&pool->changed);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

/* The caller. */

static void wait_a_while(dg__cpupool *pool)
{
	struct timespec until;
#ifdef __APPLE__
	until = (struct timespec){ .tv_nsec = LOOK_NS };
	pthread_cond_timedwait_relative_np(&pool->changed, &pool->lock, &until);
#else
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&pool->changed, &pool->lock, &until);
#endif
}

static dg_err reason_to_stop(const dg__stop *stop)
{
	if (stop->cancel && atomic_load(stop->cancel))
		return DG_ECANCELLED;
	if (stop->deadline_ns && dg__clock_ns() >= stop->deadline_ns)
		return DG_ETIMEOUT;
	return DG_OK;
}

dg_err dg__cpupool_run(dg__cpupool *pool, const dg__cpujob *job, const dg__stop *stop,
	uint64_t *ret_ns, dg_error *reterr)
{
	dg_err err = reason_to_stop(stop);
	if (err)
		return dg_error_set(reterr, err, NULL);
	pthread_mutex_lock(&pool->lock);
	pool->job = *job;
	pool->finished = false;
	pool->posted = true;
	atomic_store(&pool->stop, false);
	pthread_cond_broadcast(&pool->changed);
	while (!pool->finished) {
		wait_a_while(pool);
		if (!err && !pool->finished && (err = reason_to_stop(stop)))
			atomic_store(&pool->stop, true);
	}
	uint64_t ns = pool->ns;
	pthread_mutex_unlock(&pool->lock);
	if (err)
		return dg_error_set(reterr, err, NULL);
	*ret_ns = ns;
	return DG_OK;
}

/* Life. */

static int init_condition(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
#ifndef __APPLE__
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
	int failed = pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
	return failed;
}

static dg_err start(dg__cpupool *pool, dg_error *reterr)
{
	sigset_t all, before;
	int failed = 0;
	/* Signals are for the program's own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (uint32_t i = 0; i < pool->count && !failed; i++) {
		slot *s = &pool->slots[i];
		s->number = i;
		s->pool = pool;
		failed = pthread_create(&s->thread, NULL, i ? worker_main : leader_main, s);
		s->started = !failed;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		return dg_error_native(reterr, failed == EAGAIN ? DG_EDRIVER : DG_ENOMEM, "cpu",
			failed, "%u threads cannot be started", (unsigned)pool->count);
	return DG_OK;
}

dg_err dg__cpupool_create(const dg__topology *topology, dg__cpupool **ret_pool, dg_error *reterr)
{
	dg__cpupool *pool = calloc(1, sizeof(*pool));
	uint32_t count = topology->count < 2 ? 2 : topology->count;
	slot *slots = pool ? aligned_alloc(LINE, count * sizeof(*slots)) : NULL;
	if (!slots) {
		free(pool);
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	}
	for (uint32_t i = 0; i < count; i++) {
		slots[i] = (slot){ .number = i };
		pthread_mutex_init(&slots[i].lock, NULL);
		init_condition(&slots[i].changed);
	}
	pool->count = count;
	pool->slots = slots;
	pool->topology = *topology;
	pthread_mutex_init(&pool->lock, NULL);
	init_condition(&pool->changed);
	dg_err err = start(pool, reterr);
	if (err)
		dg__cpupool_destroy(pool);
	else
		*ret_pool = pool;
	return err;
}

static void wake(pthread_mutex_t *lock, pthread_cond_t *changed)
{
	pthread_mutex_lock(lock);
	pthread_cond_broadcast(changed);
	pthread_mutex_unlock(lock);
}

void dg__cpupool_destroy(dg__cpupool *pool)
{
	if (!pool)
		return;
	atomic_store(&pool->quit, true);
	wake(&pool->lock, &pool->changed);
	for (uint32_t i = 0; i < pool->count; i++) {
		slot *s = &pool->slots[i];
		wake(&s->lock, &s->changed);
		if (s->started)
			pthread_join(s->thread, NULL);
		pthread_mutex_destroy(&s->lock);
		pthread_cond_destroy(&s->changed);
	}
	pthread_mutex_destroy(&pool->lock);
	pthread_cond_destroy(&pool->changed);
	free(pool->slots);
	free(pool);
}
