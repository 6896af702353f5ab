/* Finding and describing devices: without a context, so that nothing is woken. See gpu.h. */
#include "backends/gpu/gpu.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/core/clock.h"
#include "backends/core/hostid.h"

/* What stays free beside the buffers: the driver's own needs grow while kernels are loaded. */
#define RESERVE_BYTES ((uint64_t)256 << 20)

/* What hides devices, in words: " (CUDA_VISIBLE_DEVICES=3)". */
static void masks_text(const dg__gpu_vendor *v, char *text, size_t size)
{
	size_t used = 0;
	text[0] = '\0';
	for (size_t i = 0; v->visible[i] && used < size; i++) {
		const char *value = getenv(v->visible[i]);
		if (value)
			used += (size_t)snprintf(text + used, size - used, "%s%s=%.60s",
				used ? ", " : "", v->visible[i], value);
	}
}

/* Not a failure, and still worth a word. */
static void explain_none(const dg__gpu *gpu, dg_error *reterr)
{
	char masks[256];
	masks_text(gpu->vendor, masks, sizeof(masks));
	if (!reterr)
		return;
	dg_error_set(reterr, DG_ENODEVICE, "the driver (%s) is there and shows no device%s%s%s",
		dg__dynlib_name(gpu->library), masks[0] ? "; " : "", masks,
		masks[0] ? " may hide all of them" : "");
	reterr->code = DG_OK;
}

dg_err dg__gpu_enumerate(const dg__backend *self, uint32_t *ret_count, dg_error *reterr)
{
	dg__gpu *gpu = self->user;
	bool none = false;
	int count = 0;
	dg_err err = dg__gpu_ready(gpu, &none, reterr);
	if (err)
		return err;
	int code = none ? DG__GPU_NO_DEVICE : gpu->calls.device_count(&count);
	if (code && code != DG__GPU_NO_DEVICE)
		return dg__gpu_failed(gpu, code, "counting the devices", reterr);
	if (count < 0 || count > UINT16_MAX)
		return dg_error_set(reterr, DG_EDRIVER, "the driver counts %d devices", count);
	if (code || !count)
		explain_none(gpu, reterr);
	*ret_count = code ? 0 : (uint32_t)count;
	return DG_OK;
}

uint32_t dg__gpu_attribute_of(const dg__gpu *gpu, int device, dg__gpu_attribute attribute)
{
	int value = 0;
	int code = gpu->calls.device_attribute(&value, gpu->vendor->attributes[attribute], device);
	return code || value < 0 ? 0 : (uint32_t)value;
}

void dg__gpu_uuid_text(const unsigned char bytes[16], char text[64])
{
	static const char digits[] = "0123456789abcdef";
	size_t at = 0, alike = 0;
	for (size_t i = 0; i < 16; i++) {
		alike += bytes[i] == bytes[0];
		if (i == 4 || i == 6 || i == 8 || i == 10)
			text[at++] = '-';
		text[at++] = digits[bytes[i] >> 4];
		text[at++] = digits[bytes[i] & 15];
	}
	text[alike == 16 && (bytes[0] == 0 || bytes[0] == 0xff) ? 0 : at] = '\0';
}

/* A part of a PCI address: hex digits, and what ends them (0: one of nothing and '.'). */
static bool take_hex(const char **text, unsigned long most, char end, unsigned long *ret_value)
{
	char *after = NULL;
	if (!isxdigit((unsigned char)**text))
		return false;
	*ret_value = strtoul(*text, &after, 16);
	if (*ret_value > most || (*after != end && !(end == '\0' && *after == '.')))
		return false;
	*text = *after ? after + 1 : after;
	return true;
}

/* "0000:17:00.0" from whatever length of domain the driver writes, with or without a function. */
static void read_pci(const dg__gpu *gpu, int device, char pci[24])
{
	char raw[32] = "";
	const char *text = raw;
	unsigned long domain, bus, slot, function = 0;
	pci[0] = '\0';
	if (gpu->calls.device_pci(raw, sizeof(raw), device))
		return;
	raw[sizeof(raw) - 1] = '\0';
	if (!take_hex(&text, UINT32_MAX, ':', &domain) || !take_hex(&text, 0xff, ':', &bus) ||
		!take_hex(&text, 0x1f, '\0', &slot))
		return;
	if (*text && !take_hex(&text, 7, '\0', &function))
		return;
	snprintf(pci, 24, "%04lx:%02lx:%02lx.%lx", domain, bus, slot, function);
}

static dg_err bad_index(const dg__gpu *gpu, uint32_t index, int count, dg_error *reterr)
{
	char masks[256];
	masks_text(gpu->vendor, masks, sizeof(masks));
	return dg_error_set(reterr, DG_ENODEVICE, "%s has no device %u; it has %d%s%s%s",
		gpu->vendor->driver, (unsigned)index, count, masks[0] ? " (" : "", masks,
		masks[0] ? ")" : "");
}

dg_err dg__gpu_identify(
	dg__gpu *gpu, uint32_t index, dg__gpu_identity *ret_identity, dg_error *reterr)
{
	dg__gpu_identity who = { .device = 0 };
	bool none = false;
	int count = 0;
	dg_err err = dg__gpu_ready(gpu, &none, reterr);
	if (err)
		return err;
	int code = none ? 0 : gpu->calls.device_count(&count);
	if (code && code != DG__GPU_NO_DEVICE)
		return dg__gpu_failed(gpu, code, "counting the devices", reterr);
	if (count < 0 || index >= (uint32_t)count)
		return bad_index(gpu, index, count, reterr);
	code = gpu->calls.device_get(&who.device, (int)index);
	if (code)
		return dg__gpu_failed(gpu, code, "getting a device", reterr);
	who.units = dg__gpu_attribute_of(gpu, who.device, DG__GPU_UNITS);
	who.major = dg__gpu_attribute_of(gpu, who.device, DG__GPU_MAJOR);
	who.minor = dg__gpu_attribute_of(gpu, who.device, DG__GPU_MINOR);
	if (!who.units)
		return dg_error_set(reterr, DG_EDRIVER,
			"the driver does not say how many multiprocessors device %u has",
			(unsigned)index);
	read_pci(gpu, who.device, who.pci);
	gpu->vendor->identify(gpu, &who);
	*ret_identity = who;
	return DG_OK;
}

/* Describing. */

static uint64_t dtypes_of(const dg__gpu *gpu, const dg__gpu_identity *who)
{
	static const struct {
		dg__kernel_id kernel;
		dg_dtype dtypes[2];
	} rows[] = {
		{ DG__KERNEL_ARITH_F64, { DG_F64 } },
		{ DG__KERNEL_ARITH_F32, { DG_F32 } },
		{ DG__KERNEL_ARITH_F16, { DG_F16 } },
		{ DG__KERNEL_ARITH_BF16, { DG_BF16 } },
		{ DG__KERNEL_ARITH_I64, { DG_I64, DG_U64 } },
		{ DG__KERNEL_ARITH_I32, { DG_I32, DG_U32 } },
		{ DG__KERNEL_ARITH_I16, { DG_I16, DG_U16 } },
		{ DG__KERNEL_ARITH_I8, { DG_I8, DG_U8 } },
	};
	uint64_t dtypes = 0;
	for (size_t i = 0; i < DG__GPU_COUNT(rows); i++)
		if (gpu->vendor->supports(who, rows[i].kernel, NULL) == DG_OK)
			for (size_t j = 0; j < 2 && rows[i].dtypes[j]; j++)
				dtypes |= (uint64_t)1 << rows[i].dtypes[j];
	return dtypes;
}

static void describe_memory(const dg__gpu *gpu, const dg__gpu_identity *who,
	const dg__gpu_look *look, dg_device_info *info)
{
	const dg_telemetry *t = &look->telemetry;
	size_t total = 0;
	if (!gpu->calls.device_total(&total, who->device) && total) {
		info->present |= DG_HAS_TOTAL;
		info->total_bytes = total;
	}
	info->unified = dg__gpu_attribute_of(gpu, who->device, DG__GPU_INTEGRATED) != 0;
	if (!(t->present & DG_TELEMETRY_USED) || !(t->present & DG_TELEMETRY_TOTAL) ||
		t->memory_used_bytes > t->memory_total_bytes)
		return;
	info->present |= DG_HAS_FREE | DG_HAS_USABLE | DG_HAS_ALLOC;
	info->free_bytes = t->memory_total_bytes - t->memory_used_bytes;
	info->usable_bytes =
		info->free_bytes > RESERVE_BYTES ? info->free_bytes - RESERVE_BYTES : 0;
	info->max_alloc_bytes = info->usable_bytes;
}

static void copy_text(char *to, size_t size, uint32_t *present, uint32_t bit, const char *from)
{
	snprintf(to, size, "%s", from);
	if (from[0])
		*present |= bit;
}

static void describe_identity(const dg__gpu_identity *who, dg_device_info *info)
{
	uint32_t *present = &info->present;
	copy_text(info->uuid, sizeof(info->uuid), present, DG_HAS_UUID, who->uuid);
	copy_text(info->pci, sizeof(info->pci), present, DG_HAS_PCI, who->pci);
	copy_text(info->parent, sizeof(info->parent), present, DG_HAS_PARENT, who->parent);
	if (!dg__hostid_get(info->host))
		info->host[0] = '\0';
	if (who->uuid[0])
		snprintf(info->hardware, sizeof(info->hardware), "uuid:%s", who->uuid);
	else if (info->host[0] && who->pci[0] && !who->partition)
		snprintf(info->hardware, sizeof(info->hardware), "pci:%s:%s", info->host, who->pci);
	if (info->hardware[0])
		*present |= DG_HAS_HARDWARE;
}

static void describe_driver(const dg__gpu *gpu, const dg__gpu_look *look, dg_device_info *info)
{
	char version[24] = "?";
	if (gpu->version)
		gpu->vendor->version_text(gpu->version, version, sizeof(version));
	snprintf(info->driver, sizeof(info->driver), "%s %s%s%.30s", gpu->vendor->driver, version,
		look->driver[0] ? ", driver " : "", look->driver);
}

static dg_err read_name(
	const dg__gpu *gpu, const dg__gpu_identity *who, dg_device_info *info, dg_error *reterr)
{
	int code = gpu->calls.device_name(info->name, (int)sizeof(info->name), who->device);
	info->name[sizeof(info->name) - 1] = '\0';
	if (code)
		return dg__gpu_failed(gpu, code, "reading a device's name", reterr);
	/* The driver of some containers knows no names. */
	if (!info->name[0])
		snprintf(info->name, sizeof(info->name), "%s %s", gpu->vendor->company,
			who->architecture);
	return DG_OK;
}

dg_err dg__gpu_describe(
	const dg__backend *self, uint32_t index, dg_device_info *ret_info, dg_error *reterr)
{
	dg__gpu *gpu = self->user;
	dg_device_info info = { .present = DG_HAS_DEVICE | DG_HAS_UNITS };
	dg__gpu_identity who = { .device = 0 };
	dg__gpu_look look = { .driver = "" };
	dg_err err = dg__gpu_identify(gpu, index, &who, reterr);
	if (!err)
		err = dg_device_make(
			gpu->vendor->variant, DG_KIND_NONE, index, &info.device, reterr);
	if (!err)
		err = read_name(gpu, &who, &info, reterr);
	if (err)
		return err;
	/* Without the management library less is known; without the device nothing. */
	if (gpu->vendor->look(gpu, &who, &look, reterr) == DG_ELOST)
		return DG_ELOST;
	snprintf(info.backend, sizeof(info.backend), "%s", self->name);
	snprintf(info.vendor, sizeof(info.vendor), "%s", gpu->vendor->company);
	snprintf(info.architecture, sizeof(info.architecture), "%s", who.architecture);
	info.units = who.units;
	info.dtypes = dtypes_of(gpu, &who);
	describe_driver(gpu, &look, &info);
	describe_memory(gpu, &who, &look, &info);
	describe_identity(&who, &info);
	*ret_info = info;
	return DG_OK;
}

/* A device that sleeps stays asleep: the kernel knows without asking it. */
static bool is_asleep(const char *pci)
{
	char path[96], state[16] = "";
	if (!pci[0])
		return false;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/power/runtime_status", pci);
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	bool asleep = fgets(state, sizeof(state), file) && !strncmp(state, "suspended", 9);
	fclose(file);
	return asleep;
}

dg_err dg__gpu_telemetry(
	const dg__backend *self, uint32_t index, dg_telemetry *ret_telemetry, dg_error *reterr)
{
	dg__gpu *gpu = self->user;
	dg__gpu_identity who = { .device = 0 };
	dg__gpu_look look = { .driver = "" };
	dg_err err = dg__gpu_identify(gpu, index, &who, reterr);
	if (err)
		return err;
	if (!is_asleep(who.pci))
		err = gpu->vendor->look(gpu, &who, &look, reterr);
	if (err)
		return err;
	look.telemetry.at_ms = dg__clock_unix_ms();
	*ret_telemetry = look.telemetry;
	return DG_OK;
}
