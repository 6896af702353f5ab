/*
 * See registry.h. Entries are found through an open hash table of atomic slots at most half full,
 * and by place through a table of atomic pointers. Writers hold a mutex; an entry is complete
 * before its pointer, and that before its slot, is published.
 */
#include "api/registry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 65536u
#define SLOTS (2 * PLACES)

static _Atomic(const dg__remote *) places[PLACES];
static atomic_uint slots[SLOTS]; /* place + 1; 0: free */
static atomic_uint place_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* A child of fork() may register devices, whatever a thread of its parent was doing. */
static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

static void watch_fork(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

static uint32_t hash_step(uint32_t hash, uint32_t byte)
{
	return (hash ^ byte) * 16777619u;
}

/* FNV-1a, finished so that the low bits depend on all of it. */
static uint32_t hash_of(const dg__remote *key)
{
	uint32_t hash = 2166136261u;
	for (const char *c = key->address.host; *c; c++)
		hash = hash_step(hash, (unsigned char)*c);
	hash = hash_step(hash, key->address.tls);
	hash = hash_step(hash, key->address.port);
	hash = hash_step(hash, key->credential);
	hash = hash_step(hash, key->index);
	return hash ^ hash >> 15;
}

static bool same(const dg__remote *a, const dg__remote *b)
{
	return a->index == b->index && a->credential == b->credential &&
	       dg__address_equal(&a->address, &b->address);
}

/* True: the entry is at ret_place. False: ret_slot is the free slot that it would take. */
static bool find(const dg__remote *key, uint16_t *ret_place, uint32_t *ret_slot)
{
	uint32_t at = hash_of(key) % SLOTS;
	for (;; at = (at + 1) % SLOTS) {
		unsigned slot = atomic_load_explicit(&slots[at], memory_order_acquire);
		if (slot == 0)
			break;
		const dg__remote *entry =
			atomic_load_explicit(&places[slot - 1], memory_order_relaxed);
		if (same(entry, key)) {
			*ret_place = (uint16_t)(slot - 1);
			return true;
		}
	}
	*ret_slot = at;
	return false;
}

static dg_err insert(const dg__remote *key, uint32_t slot, uint16_t *ret_place, dg_error *reterr)
{
	unsigned place = atomic_load_explicit(&place_count, memory_order_relaxed);
	if (place == PLACES)
		return dg_error_set(reterr, DG_ERANGE,
			"all 65536 places for remote devices of this process are taken");
	dg__remote *entry = malloc(sizeof(*entry));
	if (!entry)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	*entry = *key;
	atomic_store_explicit(&places[place], entry, memory_order_release);
	atomic_store_explicit(&slots[slot], place + 1, memory_order_release);
	atomic_store_explicit(&place_count, place + 1, memory_order_release);
	*ret_place = (uint16_t)place;
	return DG_OK;
}

dg_err dg__registry_add(const dg__address *address, uint32_t credential, uint32_t index,
	dg_device *ret_device, dg_error *reterr)
{
	dg_err err = DG_OK;
	uint16_t place = 0;
	uint32_t slot;
	if (index > UINT16_MAX)
		return dg_error_set(reterr, DG_ERANGE, "index %lu is out of range 0..65535",
			(unsigned long)index);
	dg__remote key = {
		.address = *address, .credential = credential, .index = (uint16_t)index
	};
	if (!find(&key, &place, &slot)) {
		pthread_once(&fork_once, watch_fork);
		pthread_mutex_lock(&lock);
		if (!find(&key, &place, &slot))
			err = insert(&key, slot, &place, reterr);
		pthread_mutex_unlock(&lock);
	}
	if (!err)
		*ret_device = (dg_device){ .variant = DG_REMOTE, .index = place };
	return err;
}

const dg__remote *dg__registry_get(uint16_t place)
{
	return atomic_load_explicit(&places[place], memory_order_acquire);
}

size_t dg__registry_count(void)
{
	return atomic_load_explicit(&place_count, memory_order_acquire);
}
