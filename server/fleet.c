/*
 * See fleet.h. One thread a backend looks for its devices, through a worker; what it finds is
 * numbered and shown in a new snapshot under the fleet's lock. Readers only ever take the present
 * snapshot.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/core/clock.h"
#include "backends/worker/worker.h"
#include "server/fleet_internal.h"
#include "server/http_head.h"
#include "server/log.h"

#define RETRY_FIRST_MS 1000
#define RETRY_LAST_MS 60000
/* A driver that is not there may be installed some day. */
#define MISSING_MS 300000

typedef struct slot {
	dg__fleet *fleet;
	pthread_t thread;
	bool started;
	dg__worker *worker;
	dg__backend_status status;
	bool tried; /* has ended a detection */
	bool shown; /* its devices are among the fleet's */
	bool suspect; /* look again now */
	unsigned failures;
	dg__device_list found; /* of the last detection, until shown */
} slot;

/* A device that has an index. */
typedef struct record {
	char identity[80];
	dg__device_entry entry;
} record;

struct dg__fleet {
	const dg__config *config;
	dg__store *store;
	dg__gateway gateway; /* constant parts */
	pthread_mutex_t lock; /* of all below but current */
	pthread_cond_t changed;
	bool stop;
	slot slots[DG__BACKENDS_MAX];
	size_t slot_count;
	record *records; /* by index once sorted */
	size_t record_count;
	uint64_t version;
	void (*notify)(void *user);
	void *user;
	pthread_mutex_t current_lock; /* held for a few instructions */
	const dg__snapshot *current;
};

const dg__snapshot *dg__fleet_snapshot(dg__fleet *fleet)
{
	pthread_mutex_lock(&fleet->current_lock);
	const dg__snapshot *snapshot = fleet->current;
	dg__snapshot_hold(snapshot);
	pthread_mutex_unlock(&fleet->current_lock);
	return snapshot;
}

void dg__fleet_on_change(dg__fleet *fleet, void (*changed)(void *user), void *user)
{
	pthread_mutex_lock(&fleet->lock);
	fleet->notify = changed;
	fleet->user = user;
	pthread_mutex_unlock(&fleet->lock);
}

static void fill_backends(const dg__fleet *fleet, dg__gateway *gateway, dg__device_list *list)
{
	gateway->ready = true;
	gateway->backend_count = fleet->slot_count;
	for (size_t i = 0; i < fleet->slot_count; i++) {
		const slot *s = &fleet->slots[i];
		gateway->backends[i] = s->status;
		gateway->ready = gateway->ready && s->tried;
		if (!s->shown)
			memcpy(list->detecting[list->detecting_count++], s->status.name,
				sizeof(s->status.name));
	}
}

static const slot *slot_of(const dg__fleet *fleet, const char *backend)
{
	for (size_t i = 0; i < fleet->slot_count; i++)
		if (strcmp(fleet->slots[i].status.name, backend) == 0)
			return &fleet->slots[i];
	return NULL;
}

static int by_index(const void *a, const void *b)
{
	uint32_t x = ((const record *)a)->entry.info.gateway_index;
	uint32_t y = ((const record *)b)->entry.info.gateway_index;
	return (x > y) - (x < y);
}

/* Under the lock: a new snapshot of what is known. Where memory is short the last one stays. */
static void publish(dg__fleet *fleet)
{
	dg__device_list list = { .count = 0 };
	dg__gateway *gateway = malloc(sizeof(*gateway));
	dg__snapshot *fresh = NULL;
	dg_error why = { .code = DG_OK };
	list.entries = calloc(fleet->record_count + 1, sizeof(*list.entries));
	if (gateway && list.entries) {
		*gateway = fleet->gateway;
		fill_backends(fleet, gateway, &list);
		for (size_t i = 0; i < fleet->record_count; i++) {
			/* Until its backend has been looked at, nobody knows whether an old device
			 * is there. */
			const slot *s = slot_of(fleet, fleet->records[i].entry.info.backend);
			if (!s || s->shown)
				list.entries[list.count++] = fleet->records[i].entry;
		}
		if (dg__snapshot_make_take(++fleet->version, gateway, &list, &fresh, &why) != DG_OK)
			fresh = NULL;
	} else {
		free(list.entries);
	}
	free(gateway);
	if (!fresh) {
		dg__log(DG__LOG_ERROR, "devices cannot be shown: out of memory");
		return;
	}
	pthread_mutex_lock(&fleet->current_lock);
	const dg__snapshot *old = fleet->current;
	fleet->current = fresh;
	pthread_mutex_unlock(&fleet->current_lock);
	dg__snapshot_release(old);
	if (fleet->notify)
		fleet->notify(fleet->user);
}

static record *find_record(dg__fleet *fleet, const char *backend, const char *identity)
{
	for (size_t i = 0; i < fleet->record_count; i++)
		if (strcmp(fleet->records[i].entry.info.backend, backend) == 0 &&
			strcmp(fleet->records[i].identity, identity) == 0)
			return &fleet->records[i];
	return NULL;
}

static record *add_record(dg__fleet *fleet)
{
	if (fleet->record_count == DG__DEVICES_MAX)
		return NULL;
	record *r = &fleet->records[fleet->record_count++];
	memset(r, 0, sizeof(*r));
	return r;
}

/* A device keeps its index and its last description when it goes; no local program can name it. */
static void mark_lost(record *r, const char *reason)
{
	dg_device_info *info = &r->entry.info;
	if (info->state != DG_STATE_LOST)
		dg__log(DG__LOG_WARNING, "device %u (%s) is gone", info->gateway_index, info->name);
	info->state = DG_STATE_LOST;
	info->present &= ~(uint32_t)DG_HAS_DEVICE;
	snprintf(info->reason, sizeof(info->reason), "%s", reason);
}

static void mark_unhealthy(dg__fleet *fleet, const slot *s)
{
	for (size_t i = 0; i < fleet->record_count; i++) {
		dg_device_info *info = &fleet->records[i].entry.info;
		if (strcmp(info->backend, s->status.name) != 0 || info->state == DG_STATE_LOST)
			continue;
		info->state = DG_STATE_UNHEALTHY;
		memcpy(info->reason, s->status.reason, sizeof(info->reason));
	}
}

/* Number one found device and put it among the records. */
static void show_device(dg__fleet *fleet, const slot *s, size_t at)
{
	char identity[80];
	dg_error why = { .code = DG_OK };
	dg__device_entry entry = s->found.entries[at];
	dg__json_text json = { NULL, 0 };
	uint32_t index = 0;
	dg__fleet_identity(&s->found, at, identity, sizeof(identity));
	memcpy(entry.info.backend, s->status.name, sizeof(entry.info.backend));
	dg_err err = dg__wire_encode_device(&entry, &json);
	if (err == DG_OK)
		err = dg__store_device_index(
			fleet->store, s->status.name, identity, json.text, &index, &why);
	free(json.text);
	record *r = find_record(fleet, s->status.name, identity);
	/* A full disk costs a new device its number, not a known one its place. */
	if (err != DG_OK && r)
		index = r->entry.info.gateway_index;
	if (err != DG_OK)
		dg__log(DG__LOG_ERROR, "%s device %zu: its index cannot be kept: %s",
			s->status.name, at, err == DG_ENOMEM ? "out of memory" : why.text);
	if (err != DG_OK && !r)
		return;
	if (!r && !(r = add_record(fleet))) {
		dg__log(DG__LOG_ERROR, "more than %d devices; the rest is not shown",
			DG__DEVICES_MAX);
		return;
	}
	memcpy(r->identity, identity, sizeof(identity));
	r->entry = entry;
	r->entry.info.present |= DG_HAS_GATEWAY_INDEX;
	r->entry.info.gateway_index = index;
	r->entry.driver_index = (uint32_t)at;
}

/* Under the lock: what the backend's last successful detection found becomes what is shown. */
static void show(dg__fleet *fleet, slot *s)
{
	bool seen[DG__DEVICES_MAX] = { false };
	/* A backend that failed did not say that a device is gone. */
	const char *gone =
		*s->status.reason ? s->status.reason : "its driver does not list it any more";
	for (size_t i = 0; i < s->found.count; i++) {
		char identity[80];
		show_device(fleet, s, i);
		dg__fleet_identity(&s->found, i, identity, sizeof(identity));
		const record *r = find_record(fleet, s->status.name, identity);
		if (r)
			seen[r - fleet->records] = true;
	}
	for (size_t i = 0; i < fleet->record_count; i++)
		if (!seen[i] && strcmp(fleet->records[i].entry.info.backend, s->status.name) == 0)
			mark_lost(&fleet->records[i], gone);
	dg__device_list_finish(&s->found);
	qsort(fleet->records, fleet->record_count, sizeof(*fleet->records), by_index);
	s->shown = true;
	/* It may have failed while what it had found waited for its turn. */
	if (s->status.state == DG__BACKEND_FAILED)
		mark_unhealthy(fleet, s);
}

/* Whether all that a backend found has a number from an earlier run, which no one else can take. */
static bool all_known(dg__fleet *fleet, const slot *s)
{
	for (size_t i = 0; i < s->found.count; i++) {
		char identity[80];
		dg__fleet_identity(&s->found, i, identity, sizeof(identity));
		if (!find_record(fleet, s->status.name, identity))
			return false;
	}
	return true;
}

/* The first numbering waits for every backend, and follows the default order. */
static void show_in_order(dg__fleet *fleet)
{
	bool all = true;
	for (size_t i = 0; i < fleet->slot_count; i++)
		all = all && fleet->slots[i].tried;
	for (unsigned rank = 0; rank <= 7; rank++)
		for (size_t i = 0; i < fleet->slot_count; i++) {
			slot *s = &fleet->slots[i];
			if (dg__fleet_rank(s->status.name) == rank && s->tried && !s->shown &&
				(all || all_known(fleet, s)))
				show(fleet, s);
		}
}

static void note_found(slot *s, dg__device_list *found)
{
	dg__device_list_finish(&s->found);
	s->found = *found;
	if (s->failures)
		s->status.recovered_at_ms = dg__clock_unix_ms();
	s->failures = 0;
	s->status.devices = (uint32_t)found->count;
	s->status.state = found->count ? DG__BACKEND_READY : DG__BACKEND_EMPTY;
	snprintf(s->status.reason, sizeof(s->status.reason), "%s",
		found->count ? "" : "the driver is there and lists no device");
	s->shown = false;
}

static void note_failed(dg__fleet *fleet, slot *s, dg_err err, const dg_error *why)
{
	s->failures += err != DG_ENODRIVER;
	s->status.state = err == DG_ENODRIVER ? DG__BACKEND_MISSING : DG__BACKEND_FAILED;
	snprintf(s->status.reason, sizeof(s->status.reason), "%.199s", why->text);
	dg__log(err == DG_ENODRIVER ? DG__LOG_INFO : DG__LOG_WARNING, "%s: %s", s->status.name,
		why->text);
	if (err == DG_ENODRIVER) {
		dg__device_list_finish(&s->found);
		s->status.devices = 0;
		s->shown = false;
	} else {
		mark_unhealthy(fleet, s);
	}
}

static void look(slot *s)
{
	dg__fleet *fleet = s->fleet;
	dg__device_list found = { .count = 0 };
	dg_error why = { .code = DG_OK };
	uint64_t before = dg__clock_ns();
	/* A suspicion that comes up while looking is of what was seen already, and asks again. */
	pthread_mutex_lock(&fleet->lock);
	s->suspect = false;
	pthread_mutex_unlock(&fleet->lock);
	dg_err err = dg__worker_detect(s->worker, fleet->config->detect_timeout_ms, &found, &why);
	pthread_mutex_lock(&fleet->lock);
	if (fleet->stop) {
		dg__device_list_finish(&found);
	} else {
		bool first = !s->tried;
		s->tried = true;
		s->status.has_init_ms = true;
		s->status.init_ms = (dg__clock_ns() - before) / 1000000;
		if (err == DG_OK)
			note_found(s, &found);
		else
			note_failed(fleet, s, err, &why);
		/* One that fails from the start has nothing to show, and does not hold the others
		 * up. */
		if (err != DG_OK && first)
			s->shown = false;
		show_in_order(fleet);
		publish(fleet);
	}
	pthread_mutex_unlock(&fleet->lock);
}

/* How long until the next look; 0: until someone asks. */
static uint64_t pause_ms(const slot *s)
{
	if (s->status.state == DG__BACKEND_MISSING)
		return MISSING_MS;
	if (!s->failures)
		return 0;
	unsigned doublings = s->failures - 1 < 6 ? s->failures - 1 : 6;
	uint64_t ms = (uint64_t)RETRY_FIRST_MS << doublings;
	return ms < RETRY_LAST_MS ? ms : RETRY_LAST_MS;
}

static void wait_for_reason(slot *s)
{
	dg__fleet *fleet = s->fleet;
	uint64_t ms = pause_ms(s);
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)(ms / 1000);
	int waited = 0;
	while (!fleet->stop && !s->suspect && waited != ETIMEDOUT)
		waited = ms ? pthread_cond_timedwait(&fleet->changed, &fleet->lock, &until)
			    : pthread_cond_wait(&fleet->changed, &fleet->lock);
}

static void *watch(void *user)
{
	slot *s = user;
	dg__fleet *fleet = s->fleet;
	for (;;) {
		look(s);
		pthread_mutex_lock(&fleet->lock);
		wait_for_reason(s);
		bool stop = fleet->stop;
		pthread_mutex_unlock(&fleet->lock);
		if (stop)
			return NULL;
	}
}

/* Devices of earlier runs keep their numbers; they count as lost until they are found again. */
static dg_err load_known(dg__fleet *fleet, dg_error *reterr)
{
	dg__store_device *known;
	size_t count;
	dg_err err = dg__store_devices(fleet->store, &known, &count, reterr);
	if (err != DG_OK)
		return err;
	for (size_t i = 0; i < count; i++) {
		record *r = add_record(fleet);
		if (!r)
			break;
		dg_error why;
		const char *json = known[i].description_json;
		if (dg__wire_decode_device(json, strlen(json), &r->entry, &why) != DG_OK) {
			memset(&r->entry, 0, sizeof(r->entry));
			dg__log(DG__LOG_WARNING, "the description of device %u is not readable: %s",
				known[i].index, why.text);
		}
		memcpy(r->identity, known[i].hardware, sizeof(r->identity));
		memcpy(r->entry.info.backend, known[i].backend, sizeof(known[i].backend));
		r->entry.info.gateway_index = known[i].index;
		r->entry.info.present |= DG_HAS_GATEWAY_INDEX;
		r->entry.info.state = DG_STATE_LOST;
		r->entry.info.present &= ~(uint32_t)DG_HAS_DEVICE;
		snprintf(r->entry.info.reason, sizeof(r->entry.info.reason),
			"it was here in an earlier run and has not been found in this one");
	}
	dg__store_devices_free(known, count);
	return DG_OK;
}

static dg_err start_slot(dg__fleet *fleet, const char *name, dg_error *reterr)
{
	slot *s = &fleet->slots[fleet->slot_count];
	dg__worker_options options = { .backend = name };
	s->fleet = fleet;
	s->status.state = DG__BACKEND_DETECTING;
	snprintf(s->status.name, sizeof(s->status.name), "%s", name);
	dg_err err = dg__worker_create(&options, &s->worker, reterr);
	if (err == DG_OK)
		fleet->slot_count++;
	return err;
}

static dg_err start_slots(dg__fleet *fleet, dg_error *reterr)
{
	const dg__config *config = fleet->config;
	dg_err err = DG_OK;
	for (size_t i = 0; err == DG_OK && i < config->backend_count; i++)
		if (strcmp(config->backends[i], "none") != 0)
			err = start_slot(fleet, config->backends[i], reterr);
	if (err != DG_OK)
		return err;
	publish(fleet);
	if (!fleet->current)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	for (size_t i = 0; i < fleet->slot_count; i++) {
		slot *s = &fleet->slots[i];
		s->started = pthread_create(&s->thread, NULL, watch, s) == 0;
		if (!s->started)
			return dg_error_set(
				reterr, DG_ENOMEM, "no thread for backend %s", s->status.name);
	}
	return DG_OK;
}

static void fill_gateway(dg__fleet *fleet, const char *gateway_id, const char *host)
{
	dg__gateway *g = &fleet->gateway;
	const dg__config *config = fleet->config;
	snprintf(g->id, sizeof(g->id), "%s", gateway_id);
	snprintf(g->host, sizeof(g->host), "%s", host);
	snprintf(g->node, sizeof(g->node), "%s", config->node_name);
	snprintf(g->version, sizeof(g->version), "%s", DG_VERSION);
	g->started_at_ms = dg__clock_unix_ms();
	g->max_body_bytes = config->max_body_bytes;
	g->max_header_bytes = DG__HEADERS_MAX;
	g->max_keys = DG_KEYS_MAX;
	g->max_ids = DG__IDS_MAX;
	g->max_json_depth = DG__JSON_DEPTH;
	g->max_wait_s = DG__WAIT_MAX_S;
	g->max_queue = config->max_queue;
	g->max_connections = config->max_connections;
}

dg_err dg__fleet_create(const dg__config *config, dg__store *store, const char *gateway_id,
	const char *host, dg__fleet **ret_fleet, dg_error *reterr)
{
	dg__fleet *fleet = calloc(1, sizeof(*fleet));
	if (!fleet)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	fleet->config = config;
	fleet->store = store;
	fleet->records = calloc(DG__DEVICES_MAX, sizeof(*fleet->records));
	pthread_mutex_init(&fleet->lock, NULL);
	pthread_mutex_init(&fleet->current_lock, NULL);
	pthread_cond_init(&fleet->changed, NULL);
	fill_gateway(fleet, gateway_id, host);
	dg_err err =
		fleet->records ? load_known(fleet, reterr) : dg_error_set(reterr, DG_ENOMEM, NULL);
	if (err == DG_OK)
		err = start_slots(fleet, reterr);
	if (err == DG_OK)
		*ret_fleet = fleet;
	else
		dg__fleet_destroy(fleet);
	return err;
}

void dg__fleet_destroy(dg__fleet *fleet)
{
	if (!fleet)
		return;
	pthread_mutex_lock(&fleet->lock);
	fleet->stop = true;
	pthread_cond_broadcast(&fleet->changed);
	pthread_mutex_unlock(&fleet->lock);
	for (size_t i = 0; i < fleet->slot_count; i++)
		dg__worker_stop(fleet->slots[i].worker);
	for (size_t i = 0; i < fleet->slot_count; i++) {
		slot *s = &fleet->slots[i];
		if (s->started)
			pthread_join(s->thread, NULL);
		dg__worker_destroy(s->worker);
		dg__device_list_finish(&s->found);
	}
	dg__snapshot_release(fleet->current);
	pthread_cond_destroy(&fleet->changed);
	pthread_mutex_destroy(&fleet->current_lock);
	pthread_mutex_destroy(&fleet->lock);
	free(fleet->records);
	free(fleet);
}

void dg__fleet_suspect(dg__fleet *fleet, const char *backend, const dg_error *error)
{
	dg__log(DG__LOG_WARNING, "%s: %s; looking for its devices again", backend, error->text);
	pthread_mutex_lock(&fleet->lock);
	slot *s = (slot *)(uintptr_t)slot_of(fleet, backend);
	if (s) {
		s->suspect = true;
		pthread_cond_broadcast(&fleet->changed);
	}
	pthread_mutex_unlock(&fleet->lock);
}

void dg__fleet_confirm(dg__fleet *fleet, const char *backend)
{
	pthread_mutex_lock(&fleet->lock);
	const slot *s = slot_of(fleet, backend);
	/* What works though its detection failed is looked at again, and shown as well. */
	if (s && s->failures) {
		((slot *)(uintptr_t)s)->suspect = true;
		pthread_cond_broadcast(&fleet->changed);
	}
	pthread_mutex_unlock(&fleet->lock);
}
