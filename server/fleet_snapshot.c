/* See fleet_internal.h and fleet.h. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/sha.h>

#include "api/registry.h"
#include "api/variant.h"
#include "server/fleet_internal.h"

/* A snapshot with its count of references; the public part comes first. */
typedef struct counted {
	dg__snapshot shown;
	atomic_uint references;
} counted;

void dg__snapshot_hold(const dg__snapshot *snapshot)
{
	atomic_fetch_add_explicit(
		&((counted *)(uintptr_t)snapshot)->references, 1, memory_order_relaxed);
}

static void free_snapshot(counted *c)
{
	for (size_t i = 0; c->shown.device_json && i < c->shown.list.count; i++)
		free(c->shown.device_json[i].text);
	free(c->shown.device_json);
	free(c->shown.devices_json.text);
	free(c->shown.gateway_json.text);
	dg__device_list_finish(&c->shown.list);
	free(c);
}

void dg__snapshot_release(const dg__snapshot *snapshot)
{
	counted *c = (counted *)(uintptr_t)snapshot;
	if (c && atomic_fetch_sub_explicit(&c->references, 1, memory_order_acq_rel) == 1)
		free_snapshot(c);
}

static void make_etag(const dg__json_text *json, char etag[40])
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	SHA256((const unsigned char *)json->text, json->length, hash);
	etag[0] = '"';
	for (unsigned i = 0; i < 16; i++)
		snprintf(etag + 1 + 2 * i, 3, "%02x", hash[i]);
	etag[33] = '"';
	etag[34] = '\0';
}

static dg_variant_set enabled_variants(const dg__device_list *list)
{
	dg_variant_set set = DG_ALWAYS_ENABLED;
	for (size_t i = 0; i < list->count; i++) {
		const dg_device_info *info = &list->entries[i].info;
		if (!info->software && info->state == DG_STATE_OK)
			set |= DG_VARIANT_BIT(info->device.variant);
	}
	return set;
}

static dg_err make_documents(dg__snapshot *s)
{
	dg_err err = dg__wire_encode_devices(&s->list, &s->devices_json);
	if (err == DG_OK)
		err = dg__wire_encode_gateway(&s->gateway, &s->gateway_json);
	s->device_json = calloc(s->list.count + 1, sizeof(*s->device_json));
	if (!s->device_json)
		err = DG_ENOMEM;
	for (size_t i = 0; err == DG_OK && i < s->list.count; i++)
		err = dg__wire_encode_device(&s->list.entries[i], &s->device_json[i]);
	return err;
}

dg_err dg__snapshot_make_take(uint64_t version, const dg__gateway *gateway, dg__device_list *list,
	dg__snapshot **ret_snapshot, dg_error *reterr)
{
	counted *c = calloc(1, sizeof(*c));
	if (!c) {
		dg__device_list_finish(list);
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	}
	atomic_init(&c->references, 1);
	c->shown.version = version;
	c->shown.gateway = *gateway;
	c->shown.ready = gateway->ready;
	c->shown.list = *list;
	*list = (dg__device_list){ .count = 0 };
	c->shown.enabled = enabled_variants(&c->shown.list);
	if (make_documents(&c->shown) != DG_OK) {
		free_snapshot(c);
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	}
	make_etag(&c->shown.devices_json, c->shown.etag);
	*ret_snapshot = &c->shown;
	return DG_OK;
}

unsigned dg__fleet_rank(const char *backend)
{
	static const char *const order[] = { "cuda", "metal", "rocm", "vulkan", "webgpu", "wgpu",
		"cpu" };
	unsigned rank = 0;
	while (rank < 7 && strcmp(order[rank], backend) != 0)
		rank++;
	return rank;
}

void dg__fleet_identity(const dg__device_list *found, size_t at, char *buf, size_t size)
{
	const dg_device_info *info = &found->entries[at].info;
	const char *own = info->present & DG_HAS_HARDWARE ? info->hardware : "";
	unsigned before = 0;
	for (size_t i = 0; i < at; i++) {
		const dg_device_info *other = &found->entries[i].info;
		before += strcmp(other->present & DG_HAS_HARDWARE ? other->hardware : "", own) == 0;
	}
	if (before || !*own)
		snprintf(buf, size, "%.70s#%u", own, before);
	else
		snprintf(buf, size, "%s", own);
}

static bool is_detecting(const dg__snapshot *snapshot, const char *backend)
{
	for (size_t i = 0; i < snapshot->list.detecting_count; i++)
		if (strcmp(snapshot->list.detecting[i], backend) == 0)
			return true;
	return false;
}

/* Names of what there is, for who asked for what there is not. */
static void list_candidates(const dg__snapshot *snapshot, char *buf, size_t size)
{
	size_t length = (size_t)snprintf(
		buf, size, "%s", snapshot->list.count ? "there are " : "there are none");
	for (size_t i = 0; i < snapshot->list.count && length + 64 < size; i++) {
		char text[DG_DEVICE_TEXT_MAX];
		const dg_device_info *info = &snapshot->list.entries[i].info;
		if (info->present & DG_HAS_DEVICE)
			dg_device_format(info->device, text, sizeof(text));
		else
			snprintf(text, sizeof(text), "%u", info->gateway_index);
		length += (size_t)snprintf(
			buf + length, size - length, "%s%.40s", i ? ", " : "", text);
	}
}

static dg_err absent(const dg__snapshot *snapshot, const char *what, dg_error *reterr)
{
	char list[300];
	list_candidates(snapshot, list, sizeof(list));
	return dg_error_set(
		reterr, DG_ENODEVICE, "this gateway has no device %.60s; %s", what, list);
}

static dg_err found(const dg__snapshot *snapshot, size_t at, size_t *ret_position, dg_error *reterr)
{
	const dg_device_info *info = &snapshot->list.entries[at].info;
	if (info->state == DG_STATE_LOST)
		return dg_error_set(reterr, DG_ELOST, "device %u (%.80s) is gone: %.160s",
			info->gateway_index, info->name,
			*info->reason ? info->reason : "it is not found any more");
	*ret_position = at;
	return DG_OK;
}

static dg_err find_index(
	const dg__snapshot *snapshot, const char *text, size_t *ret_position, dg_error *reterr)
{
	char *end;
	unsigned long index = strlen(text) < 10 ? strtoul(text, &end, 10) : 99999;
	if (index > UINT16_MAX)
		return dg_error_set(
			reterr, DG_ERANGE, "index %.20s is out of range 0..65535", text);
	for (size_t i = 0; i < snapshot->list.count; i++)
		if (snapshot->list.entries[i].info.gateway_index == index)
			return found(snapshot, i, ret_position, reterr);
	if (snapshot->list.detecting_count)
		return dg_error_set(reterr, DG_EDETECTING, "devices are still being looked for");
	return absent(snapshot, text, reterr);
}

/* The default of a family is its first device that is no software adapter. */
static bool serves(const dg_device_info *info, dg_device wanted)
{
	if (!(info->present & DG_HAS_DEVICE) && info->state != DG_STATE_LOST)
		return false;
	if (dg_device_equal(info->device, wanted))
		return true;
	const char *kind = dg_kind_name((dg_variant)wanted.variant, wanted.kind);
	return kind && strcmp(kind, "default") == 0 && info->device.variant == wanted.variant &&
	       !info->software && info->state != DG_STATE_LOST;
}

dg_err dg__fleet_find(const dg__snapshot *snapshot, const char *text, size_t *ret_position,
	dg_device *ret_identity, dg_error *reterr)
{
	if (*text && strspn(text, "0123456789") == strlen(text))
		return find_index(snapshot, text, ret_position, reterr);
	dg__text parsed;
	dg_err err = dg__text_parse(text, &parsed, reterr);
	if (err != DG_OK)
		return err;
	dg_device wanted = dg_device_inner(parsed.device);
	if (parsed.remote || wanted.variant == DG_CAPTURE)
		return dg_error_set(reterr, DG_ENOTLOCAL, "%s devices are not of this host",
			dg_variant_name(wanted.variant));
	/* One that is there comes before one that was. */
	for (unsigned lost = 0; lost < 2; lost++)
		for (size_t i = 0; i < snapshot->list.count; i++) {
			const dg_device_info *info = &snapshot->list.entries[i].info;
			if ((info->state == DG_STATE_LOST) == (lost == 1) && serves(info, wanted))
				return found(snapshot, i, ret_position, reterr);
		}
	char name[DG_DEVICE_TEXT_MAX];
	dg_device_format(wanted, name, sizeof(name));
	if (!dg_variant_has_kernels((dg_variant)wanted.variant))
		*ret_identity = wanted;
	else if (is_detecting(snapshot, dg__variants[wanted.variant].text))
		return dg_error_set(reterr, DG_EDETECTING, "%s devices are still being looked for",
			dg_variant_name(wanted.variant));
	return absent(snapshot, name, reterr);
}
