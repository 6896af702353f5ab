/* See auth_limit.h. Each bucket has a lock of its own. */
#include "server/auth_limit.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/core/clock.h"

#define BUCKETS 1024
#define FAILURES_MAX 20
#define WINDOW_NS (60ull * 1000000000)

typedef struct bucket {
	pthread_mutex_t lock;
	char peer[64];
	uint64_t since_ns;
	unsigned failures;
} bucket;

struct dg__auth_limit {
	bucket buckets[BUCKETS];
};

dg__auth_limit *dg__auth_limit_create(void)
{
	dg__auth_limit *limit = calloc(1, sizeof(*limit));
	for (size_t i = 0; limit && i < BUCKETS; i++)
		pthread_mutex_init(&limit->buckets[i].lock, NULL);
	return limit;
}

void dg__auth_limit_destroy(dg__auth_limit *limit)
{
	for (size_t i = 0; limit && i < BUCKETS; i++)
		pthread_mutex_destroy(&limit->buckets[i].lock);
	free(limit);
}

bool dg__auth_limit_allows(dg__auth_limit *limit, const char *peer)
{
	uint32_t hash = 2166136261u;
	for (const char *c = peer; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619u;
	bucket *b = &limit->buckets[hash % BUCKETS];
	uint64_t now = dg__clock_ns();
	pthread_mutex_lock(&b->lock);
	if (strcmp(b->peer, peer) != 0 || now - b->since_ns > WINDOW_NS) {
		snprintf(b->peer, sizeof(b->peer), "%s", peer);
		b->since_ns = now;
		b->failures = 0;
	}
	bool allows = b->failures < FAILURES_MAX;
	b->failures += allows;
	pthread_mutex_unlock(&b->lock);
	return allows;
}
