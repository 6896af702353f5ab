/*
 * Devices, values and errors as JSON documents, in the spelling of the REST interface.
 *
 * Each call gives an owned text (free it with dg_free()), or NULL where memory ran out or, for
 * values, an ops_count is above INT64_MAX. A member whose number is outside its enumeration is
 * null.
 * Threads: safe. Blocks: no.
 */
#ifndef DEVGATE_JSON_H
#define DEVGATE_JSON_H

#include <devgate/info.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Free what a devgate call gave; accepts NULL. */
void dg_free(void *pointer);

/** {"device","debug","id":{…},"settings":{…} or null}; settings may be NULL. */
char *dg_json_identity(dg_device device, const dg_settings *settings);

/**
 * A device of a list, as GET /v1/devices/{device} spells it, with "gateway": URL or null beside.
 *
 * @param settings  NULL: null.
 * @param gateway   NULL: null, and without the gateway member where with_gateway is false.
 */
char *dg_json_device(const dg_device_info *info, const dg_settings *settings, bool with_gateway,
	const char *gateway);

/** {"device","values":[…]}. */
char *dg_json_values(const char *device, const dg_value *values, size_t count);
/** {"device","access","points":[…],"ceiling":{…} or null}; bytes 0: no ceiling asked for. */
char *dg_json_curve(const char *device, const dg_curve *curve, uint64_t bytes);
/** {"device","compute_seconds",…,"bound","fraction"}. */
char *dg_json_roofline(
	const char *device, const dg_roofline_input *input, const dg_roofline *roofline);
/** As GET /v1/devices/{device}/lease spells it; "lease" is null where the id is "". */
char *dg_json_lease(const dg_lease *lease);
/** A problem document. */
char *dg_json_error(const dg_error *error);
/** A JSON string with its quotes; bytes that are no UTF-8 become U+FFFD. */
char *dg_json_string(const char *text);

#ifdef __cplusplus
}
#endif
#endif
