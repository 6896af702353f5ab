/* Leases of devices. See routes.h. */
#include "server/routes.h"

#include <stdio.h>

#include "server/log.h"

#define LEASE_HEADER "Devgate-Lease"

const char *dg__request_lease(const dg__request *request)
{
	const char *id = dg__request_header(request, LEASE_HEADER);
	return id ? id : "";
}

typedef struct asked {
	const dg__snapshot *snapshot;
	const dg__device_entry *entry;
	uint32_t ttl_s;
	const char *id;
} asked;

/* What all of them need; false: the response says why not. The snapshot is to be released. */
static bool read_request(
	const dg__context *context, const dg__request *request, asked *ask, dg__response *response)
{
	size_t position;
	dg_device identity;
	dg_error why;
	ask->snapshot = dg__fleet_snapshot(context->fleet);
	ask->id = dg__request_lease(request);
	int found = dg__find_device(ask->snapshot, request, &position, &identity, response);
	if (found == 0)
		dg__respond_error(response, DG_ENODEVICE, "a %s device has no hardware to lease",
			dg_variant_name(identity.variant));
	if (found <= 0)
		return false;
	ask->entry = &ask->snapshot->list.entries[position];
	if (dg__wire_decode_lease_request(request->body, request->body_length, &ask->ttl_s, &why) ==
		DG_OK)
		return true;
	dg__response_problem(response, &why);
	return false;
}

static bool needs_id(const asked *ask, dg__response *response)
{
	if (!*ask->id)
		dg__respond_error(response, DG_EBADREQUEST,
			"the header " LEASE_HEADER " is missing; it names the lease");
	return *ask->id;
}

static void audit(const dg__context *context, const dg__request *request, const char *what,
	const dg_lease *lease)
{
	dg_error why;
	if (dg__store_audit(context->store, request->principal.name, what,
		    *lease->device ? lease->device : lease->hardware, &why) != DG_OK)
		dg__log(DG__LOG_DEBUG, "an audit entry cannot be kept: %s", why.text);
}

static void respond(dg_err err, const dg_lease *lease, const dg_error *why, dg__response *response)
{
	dg__json_text text = { NULL, 0 };
	if (err != DG_OK)
		dg__response_problem(response, why);
	else
		dg__respond(response, dg__wire_encode_lease(lease, &text), &text);
}

static bool in_use(void *user, const dg__device_entry *entry)
{
	return dg__jobs_use(user, entry);
}

void dg__answer_take_lease(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	asked ask;
	dg_lease lease;
	dg_error why;
	(void)resumed;
	if (read_request(context, request, &ask, response)) {
		dg_err err = dg__leases_take(context->leases, ask.entry, &request->principal,
			ask.ttl_s, in_use, context->jobs, &lease, &why);
		respond(err, &lease, &why, response);
		if (err == DG_OK) {
			if (response->status == 200)
				response->status = 201;
			audit(context, request, "take lease", &lease);
		}
	}
	dg__snapshot_release(ask.snapshot);
}

void dg__answer_renew_lease(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	asked ask;
	dg_lease lease;
	dg_error why;
	(void)resumed;
	if (read_request(context, request, &ask, response) && needs_id(&ask, response)) {
		dg_err err = dg__leases_renew(
			context->leases, ask.entry, ask.id, ask.ttl_s, &lease, &why);
		respond(err, &lease, &why, response);
	}
	dg__snapshot_release(ask.snapshot);
}

void dg__answer_give_lease(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	asked ask;
	dg_lease lease;
	dg_error why;
	(void)resumed;
	if (read_request(context, request, &ask, response) && needs_id(&ask, response)) {
		dg_err err = dg__leases_release(context->leases, ask.entry, ask.id, &lease, &why);
		respond(err, &lease, &why, response);
		if (err == DG_OK)
			audit(context, request, "give lease back", &lease);
	}
	dg__snapshot_release(ask.snapshot);
}

void dg__answer_lease(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	asked ask;
	dg_lease lease;
	dg_error why;
	(void)resumed;
	if (read_request(context, request, &ask, response)) {
		dg_err err = dg__leases_get(context->leases, ask.entry, &lease, &why);
		respond(err, &lease, &why, response);
	}
	dg__snapshot_release(ask.snapshot);
}
