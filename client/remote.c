/* See remote.h. */
#include "client/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/session.h"

static dg_err begin(dg_device device, const dg__call *call, const char *what, dg__session *session,
	char *path, size_t size, dg_error *reterr)
{
	const dg__remote *remote = dg__registry_get(device.index);
	if (!remote)
		return dg_error_set(reterr, DG_EUNREGISTERED, NULL);
	snprintf(path, size, "/v1/devices/%u%s", (unsigned)remote->index, what);
	return dg__session_begin(&remote->address, remote->credential, call, session, reterr);
}

dg_err dg__remote_describe(
	dg_device device, const dg__call *call, dg__device_entry *ret_entry, dg_error *reterr)
{
	dg__session session;
	dg__exchange x;
	char path[64];
	dg_error why = { 0 };
	dg_err err = begin(device, call, "", &session, path, sizeof(path), reterr);
	if (err)
		return err;
	const dg__question question = { .method = "GET", .path = path };
	if ((err = dg__session_ask(&session, &question, &x, reterr)))
		return err;
	err = dg__wire_decode_device(x.reply ? x.reply : "", x.reply_length, ret_entry, &why);
	dg__exchange_finish(&x);
	return err ? dg__session_bad_reply(session.url, &why, reterr) : DG_OK;
}

static dg_err measure(dg_device device, const dg__call *call, const char *what,
	const dg__json_text *body, size_t total, dg__session *session, dg__json_text *ret_text,
	dg_error *reterr)
{
	char path[64];
	dg_err err = begin(device, call, what, session, path, sizeof(path), reterr);
	return err ? err
		   : dg__session_measure(session, path, body, (uint32_t)total, ret_text, reterr);
}

/* A working set's bytes are rounded down to whole elements on the way. */
static bool is_of_key(const dg_value *value, const dg_key *key)
{
	dg_key a = value->key, b = *key;
	a.bytes -= a.bytes % 4;
	b.bytes -= b.bytes % 4;
	return dg_key_equal(&a, &b);
}

/* One value per key, in order; none at all from a device without kernels. */
static dg_err check_values(const dg__session *session, const dg__values *values, const dg_key *keys,
	size_t count, dg_error *reterr)
{
	if (values->count == 0)
		return DG_OK;
	if (values->count != count)
		return dg_error_native(reterr, DG_EPROTOCOL, "gateway", 0,
			"%.150s: the reply holds %zu values for %zu keys", session->url,
			values->count, count);
	for (size_t i = 0; i < count; i++) {
		if (is_of_key(&values->values[i], &keys[i]))
			continue;
		char text[DG_KEY_TEXT_MAX];
		dg_key_format(&keys[i], text, sizeof(text));
		return dg_error_native(reterr, DG_EPROTOCOL, "gateway", 0,
			"%.150s: value %zu of the reply is not of the key that was asked for, %s",
			session->url, i, text);
	}
	return DG_OK;
}

static dg_err take_values(const dg__session *session, const dg__json_text *text, const dg_key *keys,
	size_t count, dg_value *ret_values, size_t *ret_count, dg_error *reterr)
{
	dg__values values = { 0 };
	dg_error why = { 0 };
	if (dg__wire_decode_values(text->text, text->length, &values, &why))
		return dg__session_bad_reply(session->url, &why, reterr);
	dg_err err = check_values(session, &values, keys, count, reterr);
	if (!err) {
		if (values.count)
			memcpy(ret_values, values.values, values.count * sizeof(*ret_values));
		*ret_count = values.count;
	}
	dg__values_finish(&values);
	return err;
}

dg_err dg__remote_measure(dg_device device, const dg_key *keys, size_t count, const dg__call *call,
	dg_value *ret_values, size_t *ret_count, dg_error *reterr)
{
	dg__measure_request request = { .count = count,
		.refresh = call->flags & DG_REFRESH,
		.sustained = call->flags & DG_SUSTAINED };
	dg__json_text body = { 0 }, result = { 0 };
	dg__session session;
	memcpy(request.keys, keys, count * sizeof(*keys));
	if (dg__wire_encode_measure_request(&request, &body))
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dg_err err = measure(device, call, "/throughput", &body, count, &session, &result, reterr);
	free(body.text);
	if (err)
		return err;
	err = take_values(&session, &result, keys, count, ret_values, ret_count, reterr);
	free(result.text);
	return err;
}

static dg_err take_curve(const dg__session *session, const dg__json_text *text, dg_access access,
	dg_curve *ret_curve, dg_error *reterr)
{
	dg__curve_reply reply = { 0 };
	dg_error why = { 0 };
	dg_err err = DG_OK;
	if (dg__wire_decode_curve(text->text, text->length, &reply, &why))
		return dg__session_bad_reply(session->url, &why, reterr);
	if (reply.curve.access == access)
		*ret_curve = reply.curve;
	else
		err = dg_error_native(reterr, DG_EPROTOCOL, "gateway", 0,
			"%.150s: the curve of the reply is of another access than was asked for",
			session->url);
	dg__curve_reply_finish(&reply);
	return err;
}

dg_err dg__remote_curve(dg_device device, dg_access access, const dg__call *call,
	dg_curve *ret_curve, dg_error *reterr)
{
	const dg__curve_request request = { .access = access, .refresh = call->flags & DG_REFRESH };
	dg_key keys[DG_CURVE_MAX];
	dg__json_text body = { 0 }, result = { 0 };
	dg__session session;
	if (dg__wire_encode_curve_request(&request, &body))
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dg_err err = measure(device, call, "/memory-curve", &body, dg_curve_keys(access, keys),
		&session, &result, reterr);
	free(body.text);
	if (err)
		return err;
	err = take_curve(&session, &result, access, ret_curve, reterr);
	free(result.text);
	return err;
}

/* The peaks are the gateway's; what follows is computed here, so that it fits the work. */
static dg_err take_roofline(const dg__session *session, const dg__json_text *text,
	const dg__roofline_request *request, dg_roofline_input *ret_input,
	dg_roofline *ret_roofline, dg_error *reterr)
{
	dg__roofline_reply reply;
	dg_error why = { 0 };
	if (dg__wire_decode_roofline(text->text, text->length, &reply, &why))
		return dg__session_bad_reply(session->url, &why, reterr);
	reply.input.flops = request->flops;
	reply.input.bytes = request->bytes;
	reply.input.seconds = request->seconds;
	if (dg_roofline_compute(&reply.input, ret_roofline, &why))
		return dg__session_bad_reply(session->url, &why, reterr);
	*ret_input = reply.input;
	return DG_OK;
}

dg_err dg__remote_roofline(dg_device device, const dg__roofline_request *request,
	const dg__call *call, dg_roofline_input *ret_input, dg_roofline *ret_roofline,
	dg_error *reterr)
{
	dg__json_text body = { 0 }, result = { 0 };
	dg__session session;
	if (dg__wire_encode_roofline_request(request, &body))
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dg_err err = measure(device, call, "/roofline", &body, 2, &session, &result, reterr);
	free(body.text);
	if (err)
		return err;
	err = take_roofline(&session, &result, request, ret_input, ret_roofline, reterr);
	free(result.text);
	return err;
}

dg_err dg__remote_lease(dg_device device, dg__lease_act act, uint32_t ttl_s, const dg__call *call,
	dg_lease *ret_lease, dg_error *reterr)
{
	static const char *const methods[] = { "POST", "PUT", "DELETE", "GET" };
	dg__json_text body = { 0 };
	dg__session session;
	dg__exchange x;
	char path[64];
	dg_error why = { 0 };
	dg_err err = begin(device, call, "/lease", &session, path, sizeof(path), reterr);
	if (err)
		return err;
	if (act <= DG__LEASE_RENEW && dg__wire_encode_lease_request(ttl_s, &body))
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	const dg__question question = { .method = methods[act],
		.path = path,
		.body = body.text,
		.body_length = body.length,
		.lease = act == DG__LEASE_RENEW || act == DG__LEASE_GIVE ? dg__call_lease(call)
									 : NULL };
	err = dg__session_ask(&session, &question, &x, reterr);
	free(body.text);
	if (err)
		return err;
	err = dg__wire_decode_lease(x.reply ? x.reply : "", x.reply_length, ret_lease, &why);
	dg__exchange_finish(&x);
	return err ? dg__session_bad_reply(session.url, &why, reterr) : DG_OK;
}
