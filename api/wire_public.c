/* The documents of json.h. */
#include <devgate/json.h>

#include <stdlib.h>
#include <string.h>

#include "api/wire_json.h"

void dg_free(void *pointer)
{
	free(pointer);
}

static char *end_take(json_t *root)
{
	dg__json_text text;
	return dg__put_end_take(root, &text) == DG_OK ? text.text : NULL;
}

char *dg_json_identity(dg_device device, const dg_settings *settings)
{
	char text[DG_DEVICE_TEXT_MAX], debug[DG_DEVICE_TEXT_MAX];
	json_t *o = json_object();
	dg_device_format(device, text, sizeof(text));
	dg_device_debug(device, debug, sizeof(debug));
	dg__put_text(&o, "device", text);
	dg__put_text(&o, "debug", debug);
	dg__put_take(&o, "id", dg__put_id(dg_device_to_id(device)));
	dg__put_take(&o, "settings", settings ? dg__put_settings(settings) : json_null());
	return end_take(o);
}

char *dg_json_device(const dg_device_info *info, const dg_settings *settings, bool with_gateway,
	const char *gateway)
{
	dg__device_entry *entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->info = *info;
	if (settings) {
		entry->settings = *settings;
		entry->settings.size = sizeof(entry->settings);
	}
	json_t *o = dg__put_device(entry);
	free(entry);
	if (with_gateway)
		dg__put_text_or_null(&o, "gateway", gateway);
	return end_take(o);
}

char *dg_json_values(const char *device, const dg_value *values, size_t count)
{
	if (dg__check_values(values, count) != DG_OK)
		return NULL;
	json_t *o = json_object();
	dg__put_text_or_null(&o, "device", device);
	dg__put_take(&o, "values", dg__put_values(values, count));
	return end_take(o);
}

char *dg_json_curve(const char *device, const dg_curve *curve, uint64_t bytes)
{
	double ceiling = 0;
	bool has = bytes && dg_curve_ceiling(curve, bytes, &ceiling);
	return end_take(dg__put_curve(device, curve, has, bytes, ceiling));
}

char *dg_json_roofline(
	const char *device, const dg_roofline_input *input, const dg_roofline *roofline)
{
	dg__roofline_reply reply;
	memset(&reply, 0, sizeof(reply));
	size_t length = device ? strlen(device) : 0;
	memcpy(reply.device, device ? device : "",
		length < sizeof(reply.device) ? length : sizeof(reply.device) - 1);
	reply.input = *input;
	reply.roofline = *roofline;
	return end_take(dg__put_roofline(&reply));
}

char *dg_json_lease(const dg_lease *lease)
{
	dg__json_text text;
	return dg__wire_encode_lease(lease, &text) == DG_OK ? text.text : NULL;
}

char *dg_json_error(const dg_error *error)
{
	return end_take(dg__put_problem(error));
}

char *dg_json_string(const char *text)
{
	return end_take(dg__json_string(text));
}
