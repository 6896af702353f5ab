/* See http_limit.h. */
#include "server/http_limit.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024u

typedef struct entry {
	struct entry *next;
	unsigned char key[9]; /* family, then the address or its prefix */
	unsigned count;
} entry;

typedef struct bucket {
	pthread_mutex_t lock;
	entry *first;
} bucket;

struct dg__address_limit {
	unsigned most;
	bucket buckets[BUCKETS];
};

dg__address_limit *dg__address_limit_create(unsigned most)
{
	dg__address_limit *limit = calloc(1, sizeof(*limit));
	if (!limit)
		return NULL;
	limit->most = most;
	for (size_t i = 0; i < BUCKETS; i++)
		pthread_mutex_init(&limit->buckets[i].lock, NULL);
	return limit;
}

void dg__address_limit_destroy(dg__address_limit *limit)
{
	for (size_t i = 0; limit && i < BUCKETS; i++) {
		bucket *b = &limit->buckets[i];
		while (b->first) {
			entry *next = b->first->next;
			free(b->first);
			b->first = next;
		}
		pthread_mutex_destroy(&b->lock);
	}
	free(limit);
}

static void make_key(const struct sockaddr_storage *address, unsigned char key[9])
{
	memset(key, 0, 9);
	key[0] = (unsigned char)address->ss_family;
	if (address->ss_family == AF_INET)
		memcpy(key + 1, &((const struct sockaddr_in *)address)->sin_addr, 4);
	else if (address->ss_family == AF_INET6)
		memcpy(key + 1, &((const struct sockaddr_in6 *)address)->sin6_addr, 8);
}

static bucket *bucket_of(dg__address_limit *limit, const unsigned char key[9])
{
	uint32_t hash = 2166136261u;
	for (size_t i = 0; i < 9; i++)
		hash = (hash ^ key[i]) * 16777619u;
	return &limit->buckets[hash % BUCKETS];
}

static entry **find(bucket *b, const unsigned char key[9])
{
	entry **at = &b->first;
	while (*at && memcmp((*at)->key, key, 9) != 0)
		at = &(*at)->next;
	return at;
}

bool dg__address_limit_take(dg__address_limit *limit, const struct sockaddr_storage *address)
{
	unsigned char key[9];
	make_key(address, key);
	bucket *b = bucket_of(limit, key);
	pthread_mutex_lock(&b->lock);
	entry *e = *find(b, key);
	if (!e && (e = calloc(1, sizeof(*e)))) {
		memcpy(e->key, key, 9);
		e->next = b->first;
		b->first = e;
	}
	bool may = e && e->count < limit->most;
	if (may)
		e->count++;
	pthread_mutex_unlock(&b->lock);
	return may;
}

void dg__address_limit_give(dg__address_limit *limit, const struct sockaddr_storage *address)
{
	unsigned char key[9];
	make_key(address, key);
	bucket *b = bucket_of(limit, key);
	pthread_mutex_lock(&b->lock);
	entry **at = find(b, key), *e = *at;
	if (e && --e->count == 0) {
		*at = e->next;
		free(e);
	}
	pthread_mutex_unlock(&b->lock);
}
