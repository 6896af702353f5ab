/* Ids: texts to ids and back. Nobody's registry of remote devices is on offer. See routes.h. */
#include "server/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/registry.h"

static void fill_item(dg_device device, dg__id_item *item)
{
	item->id = dg_device_to_id(device);
	dg_device_format(device, item->device, sizeof(item->device));
	dg_device_debug(device, item->debug, sizeof(item->debug));
}

static void fault(dg__id_item *item, const dg_error *why)
{
	item->code = why->code;
	snprintf(item->detail, sizeof(item->detail), "%.199s", why->text);
}

static void encode_text(const char *text, dg__id_item *item)
{
	dg__text parsed;
	dg_error why;
	if (dg__text_parse(text, &parsed, &why) != DG_OK)
		fault(item, &why);
	else if (parsed.remote || parsed.device.variant == DG_CAPTURE) {
		dg_error_set(&why, DG_ENOTLOCAL, "%s devices are not of this host",
			dg_variant_name(parsed.device.variant));
		fault(item, &why);
	} else {
		fill_item(parsed.device, item);
	}
}

static void decode_id(dg_id id, dg__id_item *item)
{
	dg_device device;
	dg_error why;
	if (dg_device_from_id(id, &device, &why) != DG_OK) {
		fault(item, &why);
	} else if (device.variant == DG_REMOTE) {
		dg_error_set(&why, DG_EUNREGISTERED, NULL);
		fault(item, &why);
	} else {
		fill_item(device, item);
	}
}

static void respond_items(const dg__id_item *items, size_t count, dg__response *response)
{
	dg__json_text text = { NULL, 0 };
	dg__respond(response, dg__wire_encode_id_items(items, count, &text), &text);
}

void dg__answer_encode(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	dg__text_list list = { 0, NULL };
	dg_error why;
	(void)context;
	(void)resumed;
	if (dg__wire_decode_texts(request->body, request->body_length, &list, &why) != DG_OK) {
		dg__response_problem(response, &why);
		return;
	}
	dg__id_item *items = calloc(list.count + 1, sizeof(*items));
	for (size_t i = 0; items && i < list.count; i++)
		encode_text(list.texts[i], &items[i]);
	if (items)
		respond_items(items, list.count, response);
	else
		dg__respond_error(response, DG_ENOMEM, "out of memory");
	free(items);
	dg__text_list_finish(&list);
}

void dg__answer_decode(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	dg_id *ids = calloc(DG__IDS_MAX, sizeof(*ids));
	dg__id_item *items = NULL;
	dg_error why;
	size_t count = 0;
	(void)context;
	(void)resumed;
	dg_err err =
		ids ? dg__wire_decode_ids(request->body, request->body_length, ids, &count, &why)
		    : dg_error_set(&why, DG_ENOMEM, NULL);
	if (err == DG_OK && !(items = calloc(count + 1, sizeof(*items))))
		err = dg_error_set(&why, DG_ENOMEM, NULL);
	for (size_t i = 0; err == DG_OK && i < count; i++)
		decode_id(ids[i], &items[i]);
	if (err == DG_OK)
		respond_items(items, count, response);
	else
		dg__response_problem(response, &why);
	free(items);
	free(ids);
}

static bool read_half(
	const char *text, const char *name, uint16_t *ret_half, dg__response *response)
{
	size_t digits = strspn(text, "0123456789");
	if (digits == 0 || text[digits]) {
		dg__respond_error(response, DG_EINVALID,
			"%s: expected a number from 0 to 65535, not '%.40s'", name, text);
		return false;
	}
	unsigned long value = digits < 10 ? strtoul(text, NULL, 10) : 99999;
	if (value > UINT16_MAX) {
		dg__respond_error(
			response, DG_ERANGE, "%s: %.40s is out of range 0..65535", name, text);
		return false;
	}
	*ret_half = (uint16_t)value;
	return true;
}

void dg__answer_id(
	const dg__context *context, dg__request *request, bool resumed, dg__response *response)
{
	dg_id id;
	dg__id_item item = { .code = DG_OK };
	(void)context;
	(void)resumed;
	if (!read_half(request->segments[2], "type_id", &id.type_id, response) ||
		!read_half(request->segments[3], "index_id", &id.index_id, response))
		return;
	decode_id(id, &item);
	if (item.code != DG_OK) {
		dg__respond_error(response, item.code, "%s", item.detail);
		return;
	}
	dg__json_text text = { NULL, 0 };
	dg__respond(response, dg__wire_encode_id_item(&item, &text), &text);
}
