/* Devices, their settings, lists of them, and the gateway. See wire.h. */
#include "api/registry.h"
#include "api/wire_json.h"

#include <stdlib.h>
#include <string.h>

static const char *const state_names[] = { "ok", "unhealthy", "lost", NULL };
static const char *const bool_names[] = { "Native", "U8", "U32", NULL };
static const char *const store_names[] = { "Native", "PackedU32(0)", NULL };
static const char *const backend_states[] = { "detecting", "ready", "empty", "missing", "failed",
	"disabled", NULL };

json_t *dg__put_id(dg_id id)
{
	json_t *o = json_object();
	dg__put_uint(&o, "type_id", id.type_id);
	dg__put_uint(&o, "index_id", id.index_id);
	return o;
}

json_t *dg__put_settings(const dg_settings *settings)
{
	json_t *o = json_object(), *quantization = json_object();
	dg__put_text(&quantization, "value", "Q8F");
	dg__put_text_or_null(&quantization, "store", dg__word(store_names, settings->quant_store));
	dg__put_text(&quantization, "mode", "Symmetric");
	dg__put_text(&quantization, "propagation", "Inhibit");
	dg__put_text_or_null(&o, "float_dtype", dg_dtype_name(settings->float_dtype));
	dg__put_text_or_null(&o, "int_dtype", dg_dtype_name(settings->int_dtype));
	dg__put_text_or_null(&o, "bool_dtype", dg__word(bool_names, settings->bool_store));
	dg__put_take(&o, "quantization", quantization);
	return o;
}

static void in_dtype(
	dg__in *in, json_t *object, const char *name, dg_dtype_family family, dg_dtype *ret_dtype)
{
	char text[16] = "";
	if (!dg__in_text(in, object, name, DG__IN_REQUIRED, text, sizeof(text)))
		return;
	dg_dtype dtype = dg_dtype_parse(text);
	bool fits = dtype != DG_DTYPE_NONE &&
		    (dg_dtype_family_of(dtype) == DG_FAMILY_FLOAT) == (family == DG_FAMILY_FLOAT);
	if (fits)
		*ret_dtype = dtype;
	else
		dg__in_fault(in, DG_EFIELD, name, "is not the name of %s dtype",
			family == DG_FAMILY_FLOAT ? "a float" : "an integer");
}

void dg__in_settings(dg__in *in, json_t *object, dg_settings *ret_settings)
{
	dg_settings s = DG_SETTINGS_INIT;
	in_dtype(in, object, "float_dtype", DG_FAMILY_FLOAT, &s.float_dtype);
	in_dtype(in, object, "int_dtype", DG_FAMILY_INT, &s.int_dtype);
	s.bool_store = (dg_bool_store)dg__in_word(
		in, object, "bool_dtype", DG__IN_REQUIRED, 0, bool_names);
	json_t *quantization = dg__in_object(in, object, "quantization", DG__IN_REQUIRED);
	size_t mark = dg__in_enter(in, "quantization", 0);
	s.quant_store = (dg_quant_store)dg__in_word(
		in, quantization, "store", DG__IN_REQUIRED, 0, store_names);
	dg__in_leave(in, mark);
	if (in->err == DG_OK)
		*ret_settings = s;
}

static json_t *put_memory(const dg_device_info *info)
{
	json_t *o = json_object();
	dg__put_uint_if(&o, "total_bytes", info->present & DG_HAS_TOTAL, info->total_bytes);
	dg__put_uint_if(&o, "free_bytes", info->present & DG_HAS_FREE, info->free_bytes);
	dg__put_uint_if(&o, "usable_bytes", info->present & DG_HAS_USABLE, info->usable_bytes);
	dg__put_uint_if(&o, "max_alloc_bytes", info->present & DG_HAS_ALLOC, info->max_alloc_bytes);
	dg__put_bool(&o, "unified", info->unified);
	return o;
}

static json_t *put_dtypes(uint64_t dtypes)
{
	json_t *array = json_array();
	for (unsigned i = 0; i < 64; i++)
		if ((dtypes >> i & 1) && dg_dtype_name(i))
			dg__add_take(&array, json_string(dg_dtype_name(i)));
	return array;
}

static json_t *put_shapes(const dg_device_info *info)
{
	json_t *array = json_array();
	for (size_t i = 0; i < info->shape_count; i++) {
		const dg_matrix_shape *shape = &info->shapes[i];
		json_t *o = json_object();
		dg__put_text_or_null(&o, "dtype", dg_dtype_name(shape->dtype));
		dg__put_text_or_null(&o, "accumulator", dg_dtype_name(shape->accumulator));
		dg__put_uint(&o, "m", shape->m);
		dg__put_uint(&o, "n", shape->n);
		dg__put_uint(&o, "k", shape->k);
		dg__add_take(&array, o);
	}
	return array;
}

/* What a device is called: index, text, Debug text, id, variant. */
static void put_names(json_t **o, const dg_device_info *info)
{
	char text[DG_DEVICE_TEXT_MAX], debug[DG_DEVICE_TEXT_MAX];
	bool named = info->present & DG_HAS_DEVICE;
	dg_device_format(info->device, text, sizeof(text));
	dg_device_debug(info->device, debug, sizeof(debug));
	dg__put_uint_if(o, "index", info->present & DG_HAS_GATEWAY_INDEX, info->gateway_index);
	dg__put_text_or_null(o, "device", named ? text : NULL);
	dg__put_text_or_null(o, "debug", named ? debug : NULL);
	dg__put_take(o, "id", named ? dg__put_id(dg_device_to_id(info->device)) : json_null());
	dg__put_text_or_null(o, "variant", dg_variant_name(info->device.variant));
}

static json_t *put_info(const dg_device_info *info)
{
	json_t *o = json_object();
	put_names(&o, info);
	dg__put_text_or_null(&o, "backend", info->backend);
	dg__put_text_or_null(&o, "name", info->name);
	dg__put_text_or_null(&o, "vendor", info->vendor);
	dg__put_text_or_null(&o, "driver", info->driver);
	dg__put_text_or_null(&o, "architecture", info->architecture);
	dg__put_take(&o, "memory", put_memory(info));
	dg__put_text_or_null(&o, "uuid", info->present & DG_HAS_UUID ? info->uuid : NULL);
	dg__put_text_or_null(&o, "pci_address", info->present & DG_HAS_PCI ? info->pci : NULL);
	dg__put_text_or_null(&o, "parent", info->present & DG_HAS_PARENT ? info->parent : NULL);
	dg__put_text_or_null(
		&o, "hardware", info->present & DG_HAS_HARDWARE ? info->hardware : NULL);
	dg__put_text_or_null(&o, "host", info->host);
	dg__put_uint_if(&o, "units", info->present & DG_HAS_UNITS, info->units);
	dg__put_bool(&o, "software", info->software);
	dg__put_text(&o, "state", dg_state_name(info->state));
	dg__put_text_or_null(&o, "reason", info->reason);
	dg__put_take(&o, "dtypes", put_dtypes(info->dtypes));
	dg__put_take(&o, "matrix_shapes", put_shapes(info));
	return o;
}

json_t *dg__put_device(const dg__device_entry *entry)
{
	json_t *o = put_info(&entry->info);
	dg__put_take(&o, "settings",
		entry->settings.size ? dg__put_settings(&entry->settings) : json_null());
	return o;
}

static void in_memory(dg__in *in, json_t *object, dg_device_info *info)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} figures[] = { { "total_bytes", DG_HAS_TOTAL }, { "free_bytes", DG_HAS_FREE },
		{ "usable_bytes", DG_HAS_USABLE }, { "max_alloc_bytes", DG_HAS_ALLOC } };
	uint64_t *const where[] = { &info->total_bytes, &info->free_bytes, &info->usable_bytes,
		&info->max_alloc_bytes };
	json_t *memory = dg__in_object(in, object, "memory", DG__IN_OPTIONAL);
	size_t mark = dg__in_enter(in, "memory", 0);
	for (size_t i = 0; memory && i < 4; i++)
		if (dg__in_uint(
			    in, memory, figures[i].name, DG__IN_OPTIONAL, 0, INT64_MAX, where[i]))
			info->present |= figures[i].bit;
	if (memory)
		dg__in_bool(in, memory, "unified", DG__IN_OPTIONAL, &info->unified);
	dg__in_leave(in, mark);
}

static void in_dtypes(dg__in *in, json_t *object, uint64_t *ret_dtypes)
{
	json_t *array = dg__in_array(in, object, "dtypes", DG__IN_OPTIONAL, 64);
	for (size_t i = 0; i < json_array_size(array); i++) {
		const char *name = json_string_value(json_array_get(array, i));
		if (!name)
			dg__in_fault(in, DG_EFIELD, "dtypes", "item %zu is no string", i);
		dg_dtype dtype = name ? dg_dtype_parse(name) : DG_DTYPE_NONE;
		/* A newer host may know dtypes that we do not. */
		if (dtype != DG_DTYPE_NONE)
			*ret_dtypes |= (uint64_t)1 << dtype;
	}
}

static void in_shape(dg__in *in, json_t *item, dg_matrix_shape *shape)
{
	char dtype[16] = "", accumulator[16] = "";
	dg__in_text(in, item, "dtype", DG__IN_REQUIRED, dtype, sizeof(dtype));
	dg__in_text(in, item, "accumulator", DG__IN_REQUIRED, accumulator, sizeof(accumulator));
	dg__in_u32(in, item, "m", DG__IN_REQUIRED, 1, 65535, &shape->m);
	dg__in_u32(in, item, "n", DG__IN_REQUIRED, 1, 65535, &shape->n);
	dg__in_u32(in, item, "k", DG__IN_REQUIRED, 1, 65535, &shape->k);
	shape->dtype = dg_dtype_parse(dtype);
	shape->accumulator = dg_dtype_parse(accumulator);
}

static void in_shapes(dg__in *in, json_t *object, dg_device_info *info)
{
	json_t *array = dg__in_array(in, object, "matrix_shapes", DG__IN_OPTIONAL, DG_SHAPES_MAX);
	for (size_t i = 0; i < json_array_size(array); i++) {
		size_t mark = dg__in_item(in, "matrix_shapes", i);
		dg_matrix_shape *shape = &info->shapes[info->shape_count];
		in_shape(in, json_array_get(array, i), shape);
		if (shape->dtype != DG_DTYPE_NONE && shape->accumulator != DG_DTYPE_NONE)
			info->shape_count++;
		dg__in_leave(in, mark);
	}
}

static void in_flagged(dg__in *in, json_t *object, const char *name, uint32_t bit, char *buf,
	size_t size, uint32_t *present)
{
	if (dg__in_text(in, object, name, DG__IN_OPTIONAL, buf, size) && *buf)
		*present |= bit;
}

/* The device as its host names it. Its index is not looked up here: a Remote is no local device. */
static void in_names(dg__in *in, json_t *object, dg_device_info *info)
{
	char text[DG_DEVICE_TEXT_MAX], variant[16] = "";
	if (dg__in_u32(in, object, "index", DG__IN_OPTIONAL, 0, UINT16_MAX, &info->gateway_index))
		info->present |= DG_HAS_GATEWAY_INDEX;
	dg__in_text(in, object, "variant", DG__IN_REQUIRED, variant, sizeof(variant));
	unsigned number = 0;
	while (number < DG_VARIANT_COUNT && strcmp(dg_variant_name(number), variant) != 0)
		number++;
	if (number < DG_VARIANT_COUNT)
		info->device.variant = (uint8_t)number;
	else
		dg__in_fault(in, DG_EFIELD, "variant", "is no variant of a device");
	if (!dg__in_text(in, object, "device", DG__IN_OPTIONAL, text, sizeof(text)) || !*text)
		return;
	dg__text parsed;
	dg_error why;
	if (dg__text_parse(text, &parsed, &why) != DG_OK)
		dg__in_fault(in, DG_EFIELD, "device", "%s", why.text);
	else if (parsed.remote || parsed.device.variant != number)
		dg__in_fault(in, DG_EFIELD, "device", "is no local device of variant %s", variant);
	else {
		info->device = parsed.device;
		info->present |= DG_HAS_DEVICE;
	}
}

static void in_info(dg__in *in, json_t *o, dg_device_info *info)
{
	const int may = DG__IN_OPTIONAL;
	in_names(in, o, info);
	dg__in_text(in, o, "backend", may, info->backend, sizeof(info->backend));
	dg__in_text(in, o, "name", may, info->name, sizeof(info->name));
	dg__in_text(in, o, "vendor", may, info->vendor, sizeof(info->vendor));
	dg__in_text(in, o, "driver", may, info->driver, sizeof(info->driver));
	dg__in_text(in, o, "architecture", may, info->architecture, sizeof(info->architecture));
	in_memory(in, o, info);
	in_flagged(in, o, "uuid", DG_HAS_UUID, info->uuid, sizeof(info->uuid), &info->present);
	in_flagged(in, o, "pci_address", DG_HAS_PCI, info->pci, sizeof(info->pci), &info->present);
	in_flagged(
		in, o, "parent", DG_HAS_PARENT, info->parent, sizeof(info->parent), &info->present);
	in_flagged(in, o, "hardware", DG_HAS_HARDWARE, info->hardware, sizeof(info->hardware),
		&info->present);
	dg__in_text(in, o, "host", may, info->host, sizeof(info->host));
	if (dg__in_u32(in, o, "units", may, 0, UINT32_MAX, &info->units))
		info->present |= DG_HAS_UNITS;
	dg__in_bool(in, o, "software", may, &info->software);
	info->state = (dg_state)dg__in_word(in, o, "state", DG__IN_REQUIRED, 0, state_names);
	dg__in_text(in, o, "reason", may, info->reason, sizeof(info->reason));
	in_dtypes(in, o, &info->dtypes);
	in_shapes(in, o, info);
}

void dg__in_device(dg__in *in, json_t *object, dg__device_entry *ret_entry)
{
	dg__device_entry entry;
	memset(&entry, 0, sizeof(entry));
	if (in->err == DG_OK && !json_is_object(object))
		dg__in_fault(in, DG_EFIELD, NULL, "expected a device: an object");
	in_info(in, object, &entry.info);
	json_t *settings = dg__in_object(in, object, "settings", DG__IN_OPTIONAL);
	size_t mark = dg__in_enter(in, "settings", 0);
	if (settings)
		dg__in_settings(in, settings, &entry.settings);
	dg__in_leave(in, mark);
	if (in->err == DG_OK)
		*ret_entry = entry;
}

void dg__device_list_finish(dg__device_list *list)
{
	free(list->entries);
	list->entries = NULL;
	list->count = 0;
}

dg_err dg__wire_encode_device(const dg__device_entry *entry, dg__json_text *ret_text)
{
	return dg__put_end_take(dg__put_device(entry), ret_text);
}

dg_err dg__wire_decode_device(
	const char *json, size_t length, dg__device_entry *ret_entry, dg_error *reterr)
{
	dg__in in;
	json_t *root = dg__in_open(&in, json, length, reterr);
	dg__in_device(&in, root, ret_entry);
	json_decref(root);
	return in.err;
}

json_t *dg__put_devices(const dg__device_list *list)
{
	json_t *o = json_object(), *devices = json_array(), *detecting = json_array();
	for (size_t i = 0; i < list->count; i++)
		dg__add_take(&devices, dg__put_device(&list->entries[i]));
	for (size_t i = 0; i < list->detecting_count; i++)
		dg__add_take(&detecting, dg__json_string(list->detecting[i]));
	dg__put_take(&o, "devices", devices);
	dg__put_take(&o, "detecting", detecting);
	return o;
}

dg_err dg__wire_encode_devices(const dg__device_list *list, dg__json_text *ret_text)
{
	return dg__put_end_take(dg__put_devices(list), ret_text);
}

static void in_detecting(dg__in *in, json_t *object, dg__device_list *list)
{
	json_t *array = dg__in_array(in, object, "detecting", DG__IN_OPTIONAL, DG__BACKENDS_MAX);
	for (size_t i = 0; i < json_array_size(array); i++) {
		const char *name = json_string_value(json_array_get(array, i));
		if (!name || strlen(name) >= sizeof(list->detecting[0]))
			dg__in_fault(
				in, DG_EFIELD, "detecting", "item %zu is no backend's name", i);
		else
			memcpy(list->detecting[i], name, strlen(name) + 1);
	}
	list->detecting_count = json_array_size(array);
}

void dg__in_devices(dg__in *in, json_t *object, dg__device_list *ret_list)
{
	dg__device_list list = { .count = 0 };
	json_t *array = dg__in_array(in, object, "devices", DG__IN_REQUIRED, DG__DEVICES_MAX);
	list.count = json_array_size(array);
	list.entries =
		in->err == DG_OK && list.count ? calloc(list.count, sizeof(*list.entries)) : NULL;
	if (in->err == DG_OK && list.count && !list.entries)
		in->err = dg_error_set(in->reterr, DG_ENOMEM, NULL);
	for (size_t i = 0; i < list.count && in->err == DG_OK; i++) {
		size_t mark = dg__in_item(in, "devices", i);
		dg__in_device(in, json_array_get(array, i), &list.entries[i]);
		dg__in_leave(in, mark);
	}
	in_detecting(in, object, &list);
	if (in->err == DG_OK)
		*ret_list = list;
	else
		dg__device_list_finish(&list);
}

dg_err dg__wire_decode_devices(
	const char *json, size_t length, dg__device_list *ret_list, dg_error *reterr)
{
	dg__in in;
	json_t *root = dg__in_open(&in, json, length, reterr);
	dg__in_expect_object(&in, root);
	dg__in_devices(&in, root, ret_list);
	json_decref(root);
	return in.err;
}

static json_t *put_backend(const dg__backend_status *backend)
{
	json_t *o = json_object();
	dg__put_text(&o, "name", backend->name);
	dg__put_text_or_null(&o, "state", dg__word(backend_states, backend->state));
	dg__put_text_or_null(&o, "reason", backend->reason);
	dg__put_uint(&o, "devices", backend->devices);
	dg__put_uint_if(&o, "init_ms", backend->has_init_ms, backend->init_ms);
	dg__put_time(&o, "recovered_at", backend->recovered_at_ms);
	return o;
}

static json_t *put_limits(const dg__gateway *gateway)
{
	json_t *o = json_object();
	dg__put_uint(&o, "max_body_bytes", gateway->max_body_bytes);
	dg__put_uint(&o, "max_header_bytes", gateway->max_header_bytes);
	dg__put_uint(&o, "max_keys", gateway->max_keys);
	dg__put_uint(&o, "max_ids", gateway->max_ids);
	dg__put_uint(&o, "max_json_depth", gateway->max_json_depth);
	dg__put_uint(&o, "max_wait_s", gateway->max_wait_s);
	dg__put_uint(&o, "max_queue", gateway->max_queue);
	dg__put_uint(&o, "max_connections", gateway->max_connections);
	return o;
}

dg_err dg__wire_encode_gateway(const dg__gateway *gateway, dg__json_text *ret_text)
{
	json_t *o = json_object(), *backends = json_array();
	for (size_t i = 0; i < gateway->backend_count; i++)
		dg__add_take(&backends, put_backend(&gateway->backends[i]));
	dg__put_text(&o, "id", gateway->id);
	dg__put_text(&o, "host", gateway->host);
	dg__put_text_or_null(&o, "node", gateway->node);
	dg__put_text(&o, "version", gateway->version);
	dg__put_time(&o, "started_at", gateway->started_at_ms);
	dg__put_bool(&o, "ready", gateway->ready);
	dg__put_text_or_null(&o, "state_problem", gateway->state_problem);
	dg__put_take(&o, "backends", backends);
	dg__put_take(&o, "limits", put_limits(gateway));
	return dg__put_end_take(o, ret_text);
}

static void in_backends(dg__in *in, json_t *object, dg__gateway *gateway)
{
	json_t *array = dg__in_array(in, object, "backends", DG__IN_REQUIRED, DG__BACKENDS_MAX);
	gateway->backend_count = json_array_size(array);
	for (size_t i = 0; i < gateway->backend_count; i++) {
		dg__backend_status *b = &gateway->backends[i];
		json_t *o = json_array_get(array, i);
		size_t mark = dg__in_item(in, "backends", i);
		dg__in_text(in, o, "name", DG__IN_REQUIRED, b->name, sizeof(b->name));
		b->state = (dg__backend_state)dg__in_word(
			in, o, "state", DG__IN_REQUIRED, 0, backend_states);
		dg__in_text(in, o, "reason", DG__IN_OPTIONAL, b->reason, sizeof(b->reason));
		dg__in_u32(in, o, "devices", DG__IN_REQUIRED, 0, UINT32_MAX, &b->devices);
		b->has_init_ms =
			dg__in_uint(in, o, "init_ms", DG__IN_OPTIONAL, 0, INT64_MAX, &b->init_ms);
		dg__in_time(in, o, "recovered_at", DG__IN_OPTIONAL, &b->recovered_at_ms);
		dg__in_leave(in, mark);
	}
}

static void in_limits(dg__in *in, json_t *object, dg__gateway *gateway)
{
	const int may = DG__IN_OPTIONAL;
	json_t *o = dg__in_object(in, object, "limits", may);
	size_t mark = dg__in_enter(in, "limits", 0);
	if (o) {
		dg__in_uint(in, o, "max_body_bytes", may, 0, INT64_MAX, &gateway->max_body_bytes);
		dg__in_uint(
			in, o, "max_header_bytes", may, 0, INT64_MAX, &gateway->max_header_bytes);
		dg__in_u32(in, o, "max_keys", may, 0, UINT32_MAX, &gateway->max_keys);
		dg__in_u32(in, o, "max_ids", may, 0, UINT32_MAX, &gateway->max_ids);
		dg__in_u32(in, o, "max_json_depth", may, 0, UINT32_MAX, &gateway->max_json_depth);
		dg__in_u32(in, o, "max_wait_s", may, 0, UINT32_MAX, &gateway->max_wait_s);
		dg__in_u32(in, o, "max_queue", may, 0, UINT32_MAX, &gateway->max_queue);
		dg__in_u32(in, o, "max_connections", may, 0, UINT32_MAX, &gateway->max_connections);
	}
	dg__in_leave(in, mark);
}

dg_err dg__wire_decode_gateway(
	const char *json, size_t length, dg__gateway *ret_gateway, dg_error *reterr)
{
	dg__in in;
	json_t *root = dg__in_open(&in, json, length, reterr);
	dg__gateway gateway;
	memset(&gateway, 0, sizeof(gateway));
	dg__in_expect_object(&in, root);
	dg__in_text(&in, root, "id", DG__IN_REQUIRED, gateway.id, sizeof(gateway.id));
	dg__in_text(&in, root, "state_problem", DG__IN_OPTIONAL, gateway.state_problem,
		sizeof(gateway.state_problem));
	dg__in_text(&in, root, "host", DG__IN_REQUIRED, gateway.host, sizeof(gateway.host));
	dg__in_text(&in, root, "node", DG__IN_OPTIONAL, gateway.node, sizeof(gateway.node));
	dg__in_text(
		&in, root, "version", DG__IN_REQUIRED, gateway.version, sizeof(gateway.version));
	dg__in_time(&in, root, "started_at", DG__IN_OPTIONAL, &gateway.started_at_ms);
	dg__in_bool(&in, root, "ready", DG__IN_REQUIRED, &gateway.ready);
	in_backends(&in, root, &gateway);
	in_limits(&in, root, &gateway);
	if (in.err == DG_OK)
		*ret_gateway = gateway;
	json_decref(root);
	return in.err;
}
