/* Leases of a gateway's hardware. See devgate.h. */
#include "client/dispatch.h"
#include "client/remote.h"

static dg_err act_on(dg_device device, dg__lease_act act, uint32_t ttl_s, const dg_call *call,
	dg_lease *ret_lease, dg_error *reterr)
{
	dg__call c;
	dg_err err = dg__device_check(device, reterr);
	if (!err)
		err = dg__call_begin(call, DG__QUESTION_MS, &c, reterr);
	if (!err && ttl_s > DG_LEASE_TTL_MAX_S)
		err = dg_error_set(reterr, DG_EINVALID,
			"the time to live is %u s, expected 1 to %u, or 0 for %u", (unsigned)ttl_s,
			DG_LEASE_TTL_MAX_S, DG_LEASE_TTL_DEFAULT_S);
	if (!err && (act == DG__LEASE_RENEW || act == DG__LEASE_GIVE) && !dg__call_lease(&c))
		err = dg_error_set(reterr, DG_EINVALID, "the call names no lease");
	if (err)
		return err;
	device = dg_device_inner(device);
	if (device.variant != DG_REMOTE)
		return dg_error_set(reterr, DG_ENOTSUP,
			"a %s device of this machine has no leases; those of a gateway have",
			dg_variant_name(device.variant));
	return dg__remote_lease(
		device, act, ttl_s ? ttl_s : DG_LEASE_TTL_DEFAULT_S, &c, ret_lease, reterr);
}

dg_err dg_lease_take(dg_device device, uint32_t ttl_s, const dg_call *call, dg_lease *ret_lease,
	dg_error *reterr)
{
	return act_on(device, DG__LEASE_TAKE, ttl_s, call, ret_lease, reterr);
}

dg_err dg_lease_renew(dg_device device, uint32_t ttl_s, const dg_call *call, dg_lease *ret_lease,
	dg_error *reterr)
{
	return act_on(device, DG__LEASE_RENEW, ttl_s, call, ret_lease, reterr);
}

dg_err dg_lease_give(dg_device device, const dg_call *call, dg_lease *ret_lease, dg_error *reterr)
{
	dg_lease was;
	dg_err err = act_on(device, DG__LEASE_GIVE, 0, call, &was, reterr);
	if (!err && ret_lease)
		*ret_lease = was;
	return err;
}

dg_err dg_lease_read(dg_device device, const dg_call *call, dg_lease *ret_lease, dg_error *reterr)
{
	return act_on(device, DG__LEASE_READ, 0, call, ret_lease, reterr);
}
