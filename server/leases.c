/*
 * See leases.h. Two locks: changes come one after the other and write the state under `changing`;
 * what is held in memory is under `lock`, which is never held on the disk, so that checks do not
 * wait for it.
 */
#include "server/leases.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "backends/core/clock.h"
#include "server/log.h"

#define SECOND_NS 1000000000ull

typedef struct held {
	struct held *next;
	dg_lease lease;
	char parent[96]; /* hardware that it is a part of; "" */
	uint64_t until_ns; /* monotonic */
	bool pending; /* not acknowledged yet */
} held;

struct dg__leases {
	dg__store *store;
	pthread_mutex_t changing, lock;
	held *first;
};

typedef struct identity {
	char hardware[96], parent[96];
} identity;

static identity identity_of(const dg__device_entry *entry)
{
	identity who = { "", "" };
	const dg_device_info *info = &entry->info;
	if (info->present & DG_HAS_HARDWARE)
		snprintf(who.hardware, sizeof(who.hardware), "%s", info->hardware);
	else
		snprintf(who.hardware, sizeof(who.hardware), "%s#%u", info->backend,
			info->gateway_index);
	if (info->present & DG_HAS_PARENT)
		snprintf(who.parent, sizeof(who.parent), "gpu:%s", info->parent);
	return who;
}

static bool excludes(const held *h, const identity *who)
{
	return strcmp(h->lease.hardware, who->hardware) == 0 ||
	       strcmp(h->parent, who->hardware) == 0 || strcmp(h->lease.hardware, who->parent) == 0;
}

/* Under the lock: forget those that have ended. */
static void sweep(dg__leases *leases)
{
	uint64_t now = dg__clock_ns();
	for (held **at = &leases->first; *at;) {
		held *h = *at;
		if (!h->pending && now >= h->until_ns) {
			*at = h->next;
			free(h);
		} else {
			at = &h->next;
		}
	}
}

/* Under the lock: the lease that stands in the way, or is this hardware's own. */
static held *find_excluding(dg__leases *leases, const identity *who)
{
	sweep(leases);
	held *h = leases->first;
	while (h && !excludes(h, who))
		h = h->next;
	return h;
}

static held *find_own(dg__leases *leases, const identity *who)
{
	sweep(leases);
	held *h = leases->first;
	while (h && strcmp(h->lease.hardware, who->hardware) != 0)
		h = h->next;
	return h;
}

static bool is_id(const held *h, const char *id)
{
	return strlen(id) == strlen(h->lease.id) && CRYPTO_memcmp(id, h->lease.id, strlen(id)) == 0;
}

static dg_err leased(const held *h, dg_error *reterr)
{
	char until[40];
	time_t seconds = (time_t)(h->lease.expires_at_ms / 1000);
	struct tm t;
	if (!gmtime_r(&seconds, &t) || strftime(until, sizeof(until), "%FT%TZ", &t) == 0)
		snprintf(until, sizeof(until), "its end");
	return dg_error_set(reterr, DG_ELEASED,
		"%.100s is leased by %.100s until %s; present its id in the header Devgate-Lease, "
		"or wait",
		*h->lease.device ? h->lease.device : h->lease.hardware, h->lease.holder, until);
}

static void load(const dg_lease *lease, const char *parent, void *user)
{
	dg__leases *leases = user;
	int64_t left_ms = lease->expires_at_ms - dg__clock_unix_ms();
	int64_t most_ms = (int64_t)lease->ttl_s * 1000;
	held *h = left_ms > 0 ? calloc(1, sizeof(*h)) : NULL;
	if (!h)
		return;
	h->lease = *lease;
	snprintf(h->parent, sizeof(h->parent), "%s", parent);
	/* A clock that was set back must not make it last for ever. */
	h->until_ns = dg__clock_ns() + (uint64_t)(left_ms < most_ms ? left_ms : most_ms) * 1000000u;
	h->next = leases->first;
	leases->first = h;
}

dg_err dg__leases_create(dg__store *store, dg__leases **ret_leases, dg_error *reterr)
{
	dg__leases *leases = calloc(1, sizeof(*leases));
	if (!leases)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	leases->store = store;
	pthread_mutex_init(&leases->changing, NULL);
	pthread_mutex_init(&leases->lock, NULL);
	dg_err err = dg__store_each_lease(store, load, leases, reterr);
	if (err == DG_OK)
		*ret_leases = leases;
	else
		dg__leases_destroy(leases);
	return err;
}

void dg__leases_destroy(dg__leases *leases)
{
	if (!leases)
		return;
	while (leases->first) {
		held *next = leases->first->next;
		free(leases->first);
		leases->first = next;
	}
	pthread_mutex_destroy(&leases->changing);
	pthread_mutex_destroy(&leases->lock);
	free(leases);
}

static void set_time(held *h, uint32_t ttl_s)
{
	int64_t now_ms = dg__clock_unix_ms();
	h->lease.ttl_s = ttl_s;
	h->lease.expires_at_ms = now_ms + (int64_t)ttl_s * 1000;
	h->until_ns = dg__clock_ns() + ttl_s * SECOND_NS;
	if (h->lease.taken_at_ms == 0)
		h->lease.taken_at_ms = now_ms;
}

static dg_err make_held(const dg__device_entry *entry, const identity *who,
	const dg__principal *holder, uint32_t ttl_s, held **ret_held, dg_error *reterr)
{
	unsigned char bytes[16];
	held *h = calloc(1, sizeof(*h));
	if (!h || RAND_bytes(bytes, sizeof(bytes)) != 1) {
		free(h);
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	}
	for (unsigned i = 0; i < sizeof(bytes); i++)
		snprintf(h->lease.id + (size_t)2 * i, 3, "%02x", bytes[i]);
	if (entry->info.present & DG_HAS_DEVICE)
		dg_device_format(entry->info.device, h->lease.device, sizeof(h->lease.device));
	h->lease.index = entry->info.gateway_index;
	snprintf(h->lease.hardware, sizeof(h->lease.hardware), "%s", who->hardware);
	snprintf(h->parent, sizeof(h->parent), "%s", who->parent);
	snprintf(h->lease.holder, sizeof(h->lease.holder), "%s", holder->name);
	set_time(h, ttl_s);
	h->pending = true;
	*ret_held = h;
	return DG_OK;
}

static void remove_held(dg__leases *leases, held *h)
{
	held **at = &leases->first;
	while (*at && *at != h)
		at = &(*at)->next;
	if (*at)
		*at = h->next;
	free(h);
}

/* From here on nobody else gets it. */
static dg_err reserve(dg__leases *leases, const identity *who, held *h, dg_error *reterr)
{
	dg_err err = DG_OK;
	pthread_mutex_lock(&leases->lock);
	const held *other = find_excluding(leases, who);
	if (other) {
		err = leased(other, reterr);
	} else {
		h->next = leases->first;
		leases->first = h;
	}
	pthread_mutex_unlock(&leases->lock);
	if (other)
		free(h);
	return err;
}

dg_err dg__leases_take(dg__leases *leases, const dg__device_entry *entry, const dg__principal *who,
	uint32_t ttl_s, bool (*in_use)(void *user, const dg__device_entry *entry), void *user,
	dg_lease *ret_lease, dg_error *reterr)
{
	held *h = NULL;
	identity hardware = identity_of(entry);
	dg_err err = make_held(entry, &hardware, who, ttl_s, &h, reterr);
	if (err != DG_OK)
		return err;
	pthread_mutex_lock(&leases->changing);
	err = reserve(leases, &hardware, h, reterr);
	if (err == DG_OK) {
		dg_lease lease = h->lease;
		if (in_use(user, entry))
			err = dg_error_set(reterr, DG_EBUSY,
				"a measurement is using the device; try again when it has ended");
		else
			err = dg__store_put_lease(leases->store, h->parent, &lease, reterr);
		pthread_mutex_lock(&leases->lock);
		h->lease.fencing_token = lease.fencing_token;
		h->pending = false;
		if (err == DG_OK)
			*ret_lease = h->lease;
		else
			remove_held(leases, h);
		pthread_mutex_unlock(&leases->lock);
	}
	pthread_mutex_unlock(&leases->changing);
	return err;
}

static dg_err no_lease(dg_error *reterr)
{
	return dg_error_set(reterr, DG_ENOLEASE,
		"the device has no lease of this id; it may have expired, or was never yours");
}

dg_err dg__leases_renew(dg__leases *leases, const dg__device_entry *entry, const char *id,
	uint32_t ttl_s, dg_lease *ret_lease, dg_error *reterr)
{
	identity hardware = identity_of(entry);
	dg_err err = DG_OK;
	held renewed;
	pthread_mutex_lock(&leases->changing);
	pthread_mutex_lock(&leases->lock);
	held *h = find_own(leases, &hardware);
	if (h && is_id(h, id)) {
		renewed = *h;
		set_time(&renewed, ttl_s);
		/* It must not end while it is being written. */
		h->pending = true;
	} else {
		err = no_lease(reterr);
	}
	pthread_mutex_unlock(&leases->lock);
	if (err == DG_OK) {
		err = dg__store_put_lease(leases->store, renewed.parent, &renewed.lease, reterr);
		pthread_mutex_lock(&leases->lock);
		h->pending = false;
		if (err == DG_OK) {
			h->lease = *ret_lease = renewed.lease;
			h->until_ns = renewed.until_ns;
		}
		pthread_mutex_unlock(&leases->lock);
	}
	pthread_mutex_unlock(&leases->changing);
	return err;
}

dg_err dg__leases_release(dg__leases *leases, const dg__device_entry *entry, const char *id,
	dg_lease *ret_lease, dg_error *reterr)
{
	identity hardware = identity_of(entry);
	dg_err err = DG_OK;
	pthread_mutex_lock(&leases->changing);
	pthread_mutex_lock(&leases->lock);
	held *h = find_own(leases, &hardware);
	if (h && is_id(h, id)) {
		*ret_lease = h->lease;
		h->pending = true;
	} else {
		err = no_lease(reterr);
	}
	pthread_mutex_unlock(&leases->lock);
	if (err == DG_OK) {
		err = dg__store_drop_lease(leases->store, hardware.hardware, reterr);
		pthread_mutex_lock(&leases->lock);
		h->pending = false;
		if (err == DG_OK)
			remove_held(leases, h);
		pthread_mutex_unlock(&leases->lock);
	}
	pthread_mutex_unlock(&leases->changing);
	return err;
}

dg_err dg__leases_get(
	dg__leases *leases, const dg__device_entry *entry, dg_lease *ret_lease, dg_error *reterr)
{
	identity hardware = identity_of(entry);
	pthread_mutex_lock(&leases->lock);
	const held *h = find_excluding(leases, &hardware);
	bool found = h && !h->pending;
	if (found) {
		*ret_lease = h->lease;
		*ret_lease->id = '\0';
	}
	pthread_mutex_unlock(&leases->lock);
	return found ? DG_OK : dg_error_set(reterr, DG_ENOLEASE, "nobody has leased the device");
}

dg_err dg__leases_check(
	dg__leases *leases, const dg__device_entry *entry, const char *id, dg_error *reterr)
{
	identity hardware = identity_of(entry);
	dg_err err = DG_OK;
	pthread_mutex_lock(&leases->lock);
	sweep(leases);
	for (const held *h = leases->first; h && err == DG_OK; h = h->next)
		if (excludes(h, &hardware) && !is_id(h, id))
			err = leased(h, reterr);
	pthread_mutex_unlock(&leases->lock);
	return err;
}
