/* Remote devices and gateways by address: see devgate.h. */
#include <stdio.h>
#include <string.h>

#include "client/session.h"

dg_err dg_device_remote(const char *url, uint32_t index, const dg_call *call, dg_device *ret_device,
	dg_error *reterr)
{
	dg__call c;
	dg__address address;
	uint32_t number = 0;
	dg_err err = dg__call_begin(call, DG__QUESTION_MS, &c, reterr);
	if (!err)
		err = dg__address_parse(url, &address, reterr);
	if (!err)
		err = dg__credentials_name(&address, call, &number, reterr);
	return err ? err : dg__registry_add(&address, number, index, ret_device, reterr);
}

bool dg_device_remote_address(dg_device device, char *buf, size_t size, uint32_t *ret_index)
{
	const dg__remote *remote =
		device.variant == DG_REMOTE ? dg__registry_get(device.index) : NULL;
	if (!remote)
		return false;
	dg__address_format(&remote->address, buf, size);
	if (ret_index)
		*ret_index = remote->index;
	return true;
}

/* Whether a question was answered with success; ret_exchange is then the reply. */
static dg_err ask(dg__session *session, const char *path, bool *ret_ok, dg__exchange *ret_exchange,
	dg_error *reterr)
{
	const dg__question question = { .method = "GET", .path = path };
	dg_err err = dg__session_ask_any(session, &question, ret_exchange, reterr);
	if (!err)
		*ret_ok = ret_exchange->status < 300 &&
			  strcmp(ret_exchange->content_type, "application/json") == 0;
	return err;
}

static dg_err ask_version(dg__session *session, dg_gateway_health *health, dg_error *reterr)
{
	dg__gateway gateway;
	dg__exchange x;
	dg_error why = { 0 };
	bool ok;
	dg_err err = ask(session, "/v1/gateway", &ok, &x, reterr);
	if (err)
		return err;
	if (ok && dg__wire_decode_gateway(x.reply ? x.reply : "", x.reply_length, &gateway, &why)) {
		err = dg__session_bad_reply(session->url, &why, reterr);
	} else if (ok) {
		memcpy(health->version, gateway.version, sizeof(health->version));
		memcpy(health->host, gateway.host, sizeof(health->host));
	}
	dg__exchange_finish(&x);
	return err;
}

dg_err dg_gateway_health_read(
	const char *url, const dg_call *call, dg_gateway_health *ret_health, dg_error *reterr)
{
	dg_gateway_health health = { 0 };
	dg__call c;
	dg__address address;
	dg__session session;
	dg__exchange x;
	uint32_t number = 0;
	uint64_t start_ms = dg__now_ms();
	dg_err err = dg__call_begin(call, DG__QUESTION_MS, &c, reterr);
	if (!err)
		err = dg__address_parse(url, &address, reterr);
	if (!err)
		err = dg__credentials_name(&address, call, &number, reterr);
	if (!err)
		err = dg__session_begin(&address, number, &c, &session, reterr);
	if (!err)
		err = ask(&session, "/healthz", &health.alive, &x, reterr);
	if (err)
		return err;
	dg__exchange_finish(&x);
	if ((err = ask(&session, "/readyz", &health.ready, &x, reterr)))
		return err;
	dg__exchange_finish(&x);
	if ((err = ask_version(&session, &health, reterr)))
		return err;
	health.seconds = (double)(dg__now_ms() - start_ms) / 1000.0;
	*ret_health = health;
	return DG_OK;
}
