/* Devices: the list, the default, one. See routes.h. */
#include "server/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If-None-Match is a list of tags, or '*' (RFC 9110, section 13.1.2). */
static bool has_tag(const dg__request *request, const char *etag)
{
	const char *list = dg__request_header(request, "If-None-Match");
	return list && (strcmp(list, "*") == 0 || strstr(list, etag) != NULL);
}

static const char *const state_words[] = { "ok", "unhealthy", "lost" };

/* Whether the entry passes the filters. */
static bool passes(const dg__device_entry *entry, const char *backend, const char *state)
{
	return (!backend || strcmp(entry->info.backend, backend) == 0) &&
	       (!state || strcmp(dg_state_name(entry->info.state), state) == 0);
}

static bool is_backend(const dg__snapshot *snapshot, const char *name)
{
	for (size_t i = 0; i < snapshot->gateway.backend_count; i++)
		if (strcmp(snapshot->gateway.backends[i].name, name) == 0)
			return true;
	return false;
}

static bool check_filters(const dg__snapshot *snapshot, const char *backend, const char *state,
	dg__response *response)
{
	bool known = !state;
	for (size_t i = 0; i < 3 && !known; i++)
		known = strcmp(state, state_words[i]) == 0;
	if (!known)
		dg__respond_error(response, DG_EFIELD,
			"state: expected ok, unhealthy or lost, not '%.40s'", state);
	else if (backend && !is_backend(snapshot, backend))
		dg__respond_error(response, DG_EFIELD,
			"backend: this gateway looks for no '%.40s'; see /v1/gateway", backend);
	else
		return true;
	return false;
}

static void filtered(const dg__snapshot *snapshot, const char *backend, const char *state,
	dg__response *response)
{
	dg__device_list list = snapshot->list;
	dg__json_text text = { NULL, 0 };
	list.count = 0;
	list.entries = calloc(snapshot->list.count + 1, sizeof(*list.entries));
	for (size_t i = 0; list.entries && i < snapshot->list.count; i++)
		if (passes(&snapshot->list.entries[i], backend, state))
			list.entries[list.count++] = snapshot->list.entries[i];
	dg__respond(
		response, list.entries ? dg__wire_encode_devices(&list, &text) : DG_ENOMEM, &text);
	free(list.entries);
}

void dg__answer_devices(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	(void)resumed;
	const char *backend = dg__request_query(request, "backend");
	const char *state = dg__request_query(request, "state");
	const dg__snapshot *snapshot = dg__fleet_snapshot(context->fleet);
	if (backend || state) {
		if (check_filters(snapshot, backend, state, response))
			filtered(snapshot, backend, state, response);
		dg__snapshot_release(snapshot);
		return;
	}
	dg__response_header(response, "ETag", snapshot->etag);
	dg__response_header(response, "Cache-Control", "no-cache");
	if (has_tag(request, snapshot->etag)) {
		response->status = 304;
		response->borrowed = true;
		dg__snapshot_release(snapshot);
		return;
	}
	response->status = 200;
	response->snapshot = snapshot;
	response->body = snapshot->devices_json;
}

/* A device that no backend finds: what its variant says of it. */
static void respond_identity(dg_device device, dg__response *response)
{
	dg__device_entry *entry = calloc(1, sizeof(*entry));
	dg__json_text text = { NULL, 0 };
	dg_err err = DG_ENOMEM;
	if (entry) {
		entry->info.device = device;
		entry->info.present = DG_HAS_DEVICE;
		snprintf(entry->info.name, sizeof(entry->info.name), "%s",
			dg_variant_name(device.variant));
		err = dg_settings_defaults(device, &entry->settings, NULL);
	}
	if (err == DG_OK)
		err = dg__wire_encode_device(entry, &text);
	free(entry);
	dg__respond(response, err, &text);
}

static void respond_entry(const dg__snapshot *snapshot, size_t position, dg__response *response)
{
	dg__response_header(response, "Cache-Control", "no-store");
	response->status = 200;
	response->snapshot = snapshot;
	response->body = snapshot->device_json[position];
}

int dg__find_device(const dg__snapshot *snapshot, const dg__request *request, size_t *ret_position,
	dg_device *ret_identity, dg__response *response)
{
	static const dg_device none = { .variant = DG_CPU };
	dg_error why;
	*ret_identity = none;
	if (dg__fleet_find(snapshot, request->segments[2], ret_position, ret_identity, &why) ==
		DG_OK)
		return 1;
	if (why.code == DG_ENODEVICE && !dg_variant_has_kernels((dg_variant)ret_identity->variant))
		return 0;
	dg__response_problem(response, &why);
	return -1;
}

void dg__answer_device(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	(void)resumed;
	const dg__snapshot *snapshot = dg__fleet_snapshot(context->fleet);
	size_t position;
	dg_device identity;
	int found = dg__find_device(snapshot, request, &position, &identity, response);
	if (found > 0) {
		respond_entry(snapshot, position, response);
		return;
	}
	if (found == 0)
		respond_identity(identity, response);
	dg__snapshot_release(snapshot);
}

/* By the gateway's own environment and configuration. */
void dg__answer_default(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	(void)request;
	(void)resumed;
	const dg__snapshot *snapshot = dg__fleet_snapshot(context->fleet);
	dg_default_request ask = { .enabled = snapshot->enabled };
	dg_default_from_environment(&ask);
	if ((!ask.priority || !*ask.priority) && *context->config->priority)
		ask.priority = context->config->priority;
	dg_device device;
	dg_error why;
	char text[DG_DEVICE_TEXT_MAX];
	size_t position;
	dg_device identity;
	bool held = false;
	if (!snapshot->ready) {
		dg__respond_error(response, DG_EDETECTING, "devices are still being looked for");
	} else if (dg_default_choose(&ask, &device, &why) != DG_OK) {
		dg__response_problem(response, &why);
	} else {
		dg_device_format(device, text, sizeof(text));
		held = dg__fleet_find(snapshot, text, &position, &identity, &why) == DG_OK;
		if (held)
			respond_entry(snapshot, position, response);
		else if (device.variant != DG_REMOTE)
			respond_identity(device, response);
		else
			dg__response_problem(response, &why);
	}
	if (!held)
		dg__snapshot_release(snapshot);
}
