/* See transport_pool.h. */
#include "client/transport_pool.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/call.h"

/* Connections that nobody uses at present; beyond, the one unused for longest is closed. */
#define IDLE_MAX 32u

static struct {
	pthread_mutex_t lock;
	dg__slot *slots;
	dg__slot *abandoned; /* a parent's; kept reachable, never touched */
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool usable;

static void lock_pool(void)
{
	pthread_mutex_lock(&pool.lock);
}

static void unlock_pool(void)
{
	pthread_mutex_unlock(&pool.lock);
}

/* The sessions on these sockets are the parent's. Closing the descriptors here, without a word over
 * them, leaves them to it; freeing the handles would say goodbye in its name. */
static void forget_pool(void)
{
	dg__slot *last = NULL;
	for (dg__slot *slot = pool.slots; slot; slot = slot->next) {
		for (size_t i = 0; i < DG__SLOT_SOCKETS; i++) {
			int fd = atomic_exchange(&slot->sockets[i], 0) - 1;
			if (fd >= 0)
				close(fd);
		}
		last = slot;
	}
	if (last) {
		last->next = pool.abandoned;
		pool.abandoned = pool.slots;
		pool.slots = NULL;
	}
	pthread_mutex_unlock(&pool.lock);
}

static void start(void)
{
	usable = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK &&
		 pthread_atfork(lock_pool, unlock_pool, forget_pool) == 0;
}

static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
	dg__slot *slot = user;
	(void)purpose;
	int type = address->socktype;
#ifdef SOCK_CLOEXEC
	type |= SOCK_CLOEXEC;
#endif
	int fd = socket(address->family, type, address->protocol);
	if (fd < 0)
		return CURL_SOCKET_BAD;
#ifndef SOCK_CLOEXEC
	fcntl(fd, F_SETFD, FD_CLOEXEC);
#endif
	for (size_t i = 0; i < DG__SLOT_SOCKETS; i++) {
		int none = 0;
		if (atomic_compare_exchange_strong(&slot->sockets[i], &none, fd + 1))
			break;
	}
	return fd;
}

static int close_socket(void *user, curl_socket_t fd)
{
	dg__slot *slot = user;
	for (size_t i = 0; i < DG__SLOT_SOCKETS; i++) {
		int mine = fd + 1;
		if (atomic_compare_exchange_strong(&slot->sockets[i], &mine, 0))
			break;
	}
	return close(fd);
}

/* With the lock held. */
static dg__slot *find_idle(const dg__address *address, uint32_t credential)
{
	for (dg__slot *slot = pool.slots; slot; slot = slot->next)
		if (!slot->busy && slot->credential == credential &&
			dg__address_equal(&slot->address, address))
			return slot;
	return NULL;
}

/* Take out the idle slot unused for longest, if there are too many. With the lock held. */
static dg__slot *take_surplus(void)
{
	dg__slot **oldest = NULL;
	unsigned idle = 0;
	for (dg__slot **at = &pool.slots; *at; at = &(*at)->next) {
		if ((*at)->busy)
			continue;
		idle++;
		if (!oldest || (*at)->used_ms < (*oldest)->used_ms)
			oldest = at;
	}
	if (idle <= IDLE_MAX)
		return NULL;
	dg__slot *slot = *oldest;
	*oldest = slot->next;
	return slot;
}

static void slot_free(dg__slot *slot)
{
	if (!slot)
		return;
	curl_easy_cleanup(slot->easy);
	free(slot);
}

static dg__slot *slot_new(const dg__address *address, uint32_t credential)
{
	dg__slot *slot = calloc(1, sizeof(*slot));
	if (!slot)
		return NULL;
	if (!(slot->easy = curl_easy_init())) {
		free(slot);
		return NULL;
	}
	slot->address = *address;
	slot->credential = credential;
	slot->busy = true;
	lock_pool();
	slot->next = pool.slots;
	pool.slots = slot;
	unlock_pool();
	return slot;
}

dg_err dg__pool_start(dg_error *reterr)
{
	pthread_once(&once, start);
	return usable ? DG_OK
		      : dg_error_set(reterr, DG_ENOMEM, "the HTTP library cannot be started");
}

dg_err dg__pool_acquire(
	const dg__address *address, uint32_t credential, dg__slot **ret_slot, dg_error *reterr)
{
	dg_err err = dg__pool_start(reterr);
	if (err)
		return err;
	lock_pool();
	dg__slot *slot = find_idle(address, credential);
	if (slot)
		slot->busy = true;
	unlock_pool();
	if (!slot && !(slot = slot_new(address, credential)))
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	curl_easy_reset(slot->easy);
	slot->detail[0] = '\0';
	if (curl_easy_setopt(slot->easy, CURLOPT_ERRORBUFFER, slot->detail) ||
		curl_easy_setopt(slot->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket) ||
		curl_easy_setopt(slot->easy, CURLOPT_OPENSOCKETDATA, slot) ||
		curl_easy_setopt(slot->easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket) ||
		curl_easy_setopt(slot->easy, CURLOPT_CLOSESOCKETDATA, slot)) {
		dg__pool_discard(slot);
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	}
	*ret_slot = slot;
	return DG_OK;
}

void dg__pool_release(dg__slot *slot)
{
	lock_pool();
	slot->busy = false;
	slot->used_ms = dg__now_ms();
	dg__slot *surplus = take_surplus();
	unlock_pool();
	slot_free(surplus);
}

void dg__pool_discard(dg__slot *slot)
{
	lock_pool();
	for (dg__slot **at = &pool.slots; *at; at = &(*at)->next) {
		if (*at == slot) {
			*at = slot->next;
			break;
		}
	}
	unlock_pool();
	slot_free(slot);
}
