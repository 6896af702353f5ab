/* Lists of devices, from here and from many gateways at once: see dg_enumerate() of devgate.h. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/gateways.h"
#include "client/local.h"
#include "client/session.h"

/* A gateway to ask. */
typedef struct target {
	dg__address address;
	uint32_t credential; /* registered with its devices */
	dg__identity identity;
	char url[DG__URL_MAX];
	dg_err code; /* why it is not asked at all */
	dg_error error;
} target;

typedef struct listing {
	const dg__call *call;
	target *targets;
	size_t target_count;
	dg__exchange *exchanges; /* of the targets that can be asked, in their order */
	size_t exchange_count;
	dg__local_found found[DG_BACKENDS_MAX];
	size_t found_count;
	dg_device_list *list; /* what is handed out */
} listing;

/* Room doubles at powers of two, so that it need not be kept. */
static void *grow(void *items, size_t count, size_t size)
{
	if (count & (count - 1))
		return items;
	return realloc(items, (count ? count * 2 : 1) * size);
}

static dg_err no_memory(dg_error *reterr)
{
	return dg_error_set(reterr, DG_ENOMEM, NULL);
}

static dg_err add_problem(dg_device_list *list, const char *source, bool is_gateway,
	const dg_error *error, dg_error *reterr)
{
	dg_problem *more = grow(list->problems, list->problem_count, sizeof(*more));
	if (!more)
		return no_memory(reterr);
	list->problems = more;
	dg_problem *problem = &more[list->problem_count++];
	memset(problem, 0, sizeof(*problem));
	snprintf(problem->source, sizeof(problem->source), "%s", source);
	problem->is_gateway = is_gateway;
	problem->error = *error;
	return DG_OK;
}

static dg_err add_device(dg_device_list *list, const dg_listed *device, dg_error *reterr)
{
	dg_listed *more = grow(list->devices, list->count, sizeof(*more));
	if (!more)
		return no_memory(reterr);
	list->devices = more;
	more[list->count++] = *device;
	return DG_OK;
}

/* Whom to ask. */

static dg_err add_target(
	listing *l, const dg__address *address, uint32_t credential, dg_error *reterr)
{
	for (size_t i = 0; i < l->target_count; i++)
		if (l->targets[i].credential == credential &&
			dg__address_equal(&l->targets[i].address, address))
			return DG_OK;
	target *more = grow(l->targets, l->target_count, sizeof(*more));
	if (!more)
		return no_memory(reterr);
	l->targets = more;
	target *t = &more[l->target_count++];
	memset(t, 0, sizeof(*t));
	t->address = *address;
	t->credential = credential;
	dg__address_format(address, t->url, sizeof(t->url));
	/* A credential that cannot be used is this gateway's problem, not that of the others. */
	t->code = dg__credentials_identify(credential, address, &t->identity, &t->error);
	return DG_OK;
}

static dg_err add_configured(listing *l, dg_error *reterr)
{
	dg__gateways gateways;
	dg_err err = dg__gateways_read(&gateways, reterr);
	if (err)
		return err;
	/* Set 0: towards these addresses it stands for what their lines say. */
	for (size_t i = 0; i < gateways.count && !err; i++)
		err = add_target(l, &gateways.entries[i].address, 0, reterr);
	dg__gateways_finish(&gateways);
	return err;
}

static dg_err add_named(listing *l, const dg_enumerate_request *request, dg_error *reterr)
{
	uint32_t credential = 0;
	dg_err err = DG_OK;
	if (request->gateway_count > DG__GATEWAYS_MAX)
		return dg_error_set(reterr, DG_EINVALID,
			"%zu gateways were given, at most %d are asked", request->gateway_count,
			DG__GATEWAYS_MAX);
	if (request->gateway_count && !request->gateways)
		return dg_error_set(reterr, DG_EINVALID, "gateways were counted but not given");
	for (size_t i = 0; i < request->gateway_count && !err; i++) {
		dg__address address;
		err = dg__address_parse(request->gateways[i], &address, reterr);
		if (!err)
			err = dg__credentials_name(&address, l->call->options, &credential, reterr);
		if (!err)
			err = add_target(l, &address, credential, reterr);
	}
	return err;
}

/* What they say. */

static dg_err take_detecting(
	dg_device_list *list, const target *t, const dg__device_list *devices, dg_error *reterr)
{
	dg_err err = DG_OK;
	for (size_t i = 0; i < devices->detecting_count && !err; i++) {
		dg_error error = { 0 };
		(void)dg_error_native(&error, DG_EDETECTING, "gateway", 0,
			"%.200s: its %s devices are still being detected; ask again soon", t->url,
			devices->detecting[i]);
		err = add_problem(list, t->url, true, &error, reterr);
	}
	return err;
}

static dg_err take_remote(
	dg_device_list *list, const target *t, const dg__device_entry *entry, dg_error *reterr)
{
	dg_listed device;
	memset(&device, 0, sizeof(device));
	if (!(entry->info.present & DG_HAS_GATEWAY_INDEX))
		return dg_error_set(reterr, DG_EFIELD, "a device has no index");
	dg_err err = dg__registry_add(
		&t->address, t->credential, entry->info.gateway_index, &device.device, reterr);
	if (err)
		return err;
	snprintf(device.gateway, sizeof(device.gateway), "%s", t->url);
	device.info = entry->info;
	device.settings = entry->settings;
	return add_device(list, &device, reterr);
}

static dg_err take_reply(listing *l, const target *t, const dg__exchange *x, dg_error *reterr)
{
	dg__device_list devices = { 0 };
	dg_error why = { 0 };
	dg_err err = DG_OK;
	if (x->status >= 300) {
		(void)dg__session_problem(t->url, x, &why);
		return add_problem(l->list, t->url, true, &why, reterr);
	}
	if (dg__wire_decode_devices(x->reply ? x->reply : "", x->reply_length, &devices, &why)) {
		dg_error bad = { 0 };
		(void)dg__session_bad_reply(t->url, &why, &bad);
		return add_problem(l->list, t->url, true, &bad, reterr);
	}
	size_t before = l->list->count;
	for (size_t i = 0; i < devices.count && !err; i++)
		err = take_remote(l->list, t, &devices.entries[i], &why);
	if (err == DG_EFIELD) {
		dg_error bad = { 0 };
		l->list->count = before;
		(void)dg__session_bad_reply(t->url, &why, &bad);
		err = add_problem(l->list, t->url, true, &bad, &why);
	} else if (!err) {
		err = take_detecting(l->list, t, &devices, &why);
	}
	dg__device_list_finish(&devices);
	if (err && reterr)
		*reterr = why;
	return err;
}

static void fill_exchange(const listing *l, const target *t, dg__exchange *x)
{
	x->method = "GET";
	x->address = t->address;
	snprintf(x->path, sizeof(x->path), "/v1/devices");
	x->identity = &t->identity;
	x->deadline_ms = l->call->deadline_ms;
}

static dg_err ask_all(listing *l, dg_error *reterr)
{
	if (l->target_count == 0)
		return DG_OK;
	if (!(l->exchanges = calloc(l->target_count, sizeof(*l->exchanges))))
		return no_memory(reterr);
	for (size_t i = 0; i < l->target_count; i++)
		if (!l->targets[i].code)
			fill_exchange(l, &l->targets[i], &l->exchanges[l->exchange_count++]);
	return dg__transport_run_all(l->exchanges, l->exchange_count, reterr);
}

static dg_err take_remotes(listing *l, dg_error *reterr)
{
	const dg__exchange *next = l->exchanges;
	dg_err err = DG_OK;
	for (size_t i = 0; i < l->target_count && !err; i++) {
		const target *t = &l->targets[i];
		const dg__exchange *x = t->code ? NULL : next++;
		if (x && !x->code)
			err = take_reply(l, t, x, reterr);
		else
			err = add_problem(l->list, t->url, true, x ? &x->error : &t->error, reterr);
	}
	return err;
}

/* What is here. */

static void *look_here(void *user)
{
	listing *l = user;
	dg__local_detect_all(l->call, l->found, &l->found_count);
	return NULL;
}

static dg_err take_local(dg_device_list *list, const dg__local_found *found, dg_error *reterr)
{
	dg_err err = DG_OK;
	if (found->code == DG_ENODRIVER)
		return DG_OK;
	if (found->code)
		return add_problem(list, found->backend, false, &found->error, reterr);
	for (size_t i = 0; i < found->list.count && !err; i++) {
		dg_listed device;
		memset(&device, 0, sizeof(device));
		device.info = found->list.entries[i].info;
		device.device = device.info.device;
		err = dg_settings_defaults(device.device, &device.settings, reterr);
		if (!err)
			err = add_device(list, &device, reterr);
	}
	return err;
}

/* What is here is looked for while the gateways are asked. */
static dg_err ask_and_look(listing *l, bool look, dg_error *reterr)
{
	pthread_t thread;
	bool started = look && pthread_create(&thread, NULL, look_here, l) == 0;
	if (look && !started)
		look_here(l);
	dg_err err = ask_all(l, reterr);
	if (started)
		pthread_join(thread, NULL);
	return err;
}

static dg_err gather(listing *l, dg_error *reterr)
{
	dg_err err = DG_OK;
	if (!(l->list = calloc(1, sizeof(*l->list))))
		return no_memory(reterr);
	for (size_t i = 0; i < l->found_count && !err; i++)
		err = take_local(l->list, &l->found[i], reterr);
	return err ? err : take_remotes(l, reterr);
}

static void listing_free(listing *l)
{
	dg__local_found_finish(l->found, l->found_count);
	for (size_t i = 0; i < l->exchange_count; i++)
		dg__exchange_finish(&l->exchanges[i]);
	free(l->exchanges);
	free(l->targets);
	dg_device_list_free(l->list);
	free(l);
}

dg_err dg_enumerate(const dg_enumerate_request *request, const dg_call *call,
	dg_device_list **ret_list, dg_error *reterr)
{
	const dg_enumerate_request standard = { 0 };
	dg__call c;
	listing *l = NULL;
	dg_err err = dg__call_begin(call, DG__QUESTION_MS, &c, reterr);
	if (err)
		return err;
	if (!request)
		request = &standard;
	if (!(l = calloc(1, sizeof(*l))))
		return no_memory(reterr);
	l->call = &c;
	if (!request->no_configured)
		err = add_configured(l, reterr);
	if (!err)
		err = add_named(l, request, reterr);
	if (!err)
		err = ask_and_look(l, !request->no_local, reterr);
	if (!err)
		err = gather(l, reterr);
	if (!err) {
		*ret_list = l->list;
		l->list = NULL;
	}
	listing_free(l);
	return err;
}

void dg_device_list_free(dg_device_list *list)
{
	if (!list)
		return;
	free(list->devices);
	free(list->problems);
	free(list);
}
