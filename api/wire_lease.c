/* Leases on the wire. See wire.h. */
#include "api/wire_json.h"

#include <string.h>

dg_err dg__wire_encode_lease(const dg_lease *lease, dg__json_text *ret_text)
{
	json_t *o = json_object();
	dg__put_text_or_null(&o, "lease", lease->id);
	dg__put_text_or_null(&o, "device", lease->device);
	dg__put_uint(&o, "index", lease->index);
	dg__put_text(&o, "hardware", lease->hardware);
	dg__put_text(&o, "holder", lease->holder);
	dg__put_uint(&o, "fencing_token", lease->fencing_token);
	dg__put_uint(&o, "ttl_s", lease->ttl_s);
	dg__put_time(&o, "taken_at", lease->taken_at_ms);
	dg__put_time(&o, "expires_at", lease->expires_at_ms);
	return dg__put_end_take(o, ret_text);
}

dg_err dg__wire_decode_lease(const char *json, size_t length, dg_lease *ret_lease, dg_error *reterr)
{
	dg__in in;
	dg_lease lease;
	json_t *root = dg__in_open(&in, json, length, reterr);
	memset(&lease, 0, sizeof(lease));
	dg__in_expect_object(&in, root);
	dg__in_text(&in, root, "lease", DG__IN_OPTIONAL, lease.id, sizeof(lease.id));
	dg__in_text(&in, root, "device", DG__IN_OPTIONAL, lease.device, sizeof(lease.device));
	dg__in_u32(&in, root, "index", DG__IN_REQUIRED, 0, UINT32_MAX, &lease.index);
	dg__in_text(&in, root, "hardware", DG__IN_REQUIRED, lease.hardware, sizeof(lease.hardware));
	dg__in_text(&in, root, "holder", DG__IN_REQUIRED, lease.holder, sizeof(lease.holder));
	dg__in_uint(
		&in, root, "fencing_token", DG__IN_REQUIRED, 0, INT64_MAX, &lease.fencing_token);
	dg__in_u32(&in, root, "ttl_s", DG__IN_REQUIRED, 1, DG_LEASE_TTL_MAX_S, &lease.ttl_s);
	dg__in_time(&in, root, "taken_at", DG__IN_OPTIONAL, &lease.taken_at_ms);
	dg__in_time(&in, root, "expires_at", DG__IN_OPTIONAL, &lease.expires_at_ms);
	if (in.err == DG_OK)
		*ret_lease = lease;
	json_decref(root);
	return in.err;
}

dg_err dg__wire_encode_lease_request(uint32_t ttl_s, dg__json_text *ret_text)
{
	json_t *o = json_object();
	dg__put_uint(&o, "ttl_s", ttl_s);
	return dg__put_end_take(o, ret_text);
}

dg_err dg__wire_decode_lease_request(
	const char *json, size_t length, uint32_t *ret_ttl_s, dg_error *reterr)
{
	dg__in in;
	uint32_t ttl_s = DG_LEASE_TTL_DEFAULT_S;
	if (length == 0) {
		*ret_ttl_s = ttl_s;
		return DG_OK;
	}
	json_t *root = dg__in_open(&in, json, length, reterr);
	dg__in_expect_object(&in, root);
	dg__in_u32(&in, root, "ttl_s", DG__IN_OPTIONAL, 1, DG_LEASE_TTL_MAX_S, &ttl_s);
	if (in.err == DG_OK)
		*ret_ttl_s = ttl_s;
	json_decref(root);
	return in.err;
}
