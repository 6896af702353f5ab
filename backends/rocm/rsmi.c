/*
 * ROCm SMI, the management library: opened at run time, joined by PCI address, since its indexes
 * are not HIP's and no variable changes them. It complains on standard error where there is no
 * device, so it is opened once HIP has one.
 */
#include <stdio.h>
#include <string.h>

#include "backends/rocm/rocm.h"

#define CURRENT 0 /* metric of a temperature */
#define SYSTEM_CLOCK 0
#define MEMORY_CLOCK 4
#define DEVICE_MEMORY 0
#define FREQUENCIES 33

#define CALL(member, name) \
	{ \
		name, offsetof(dg__rsmi_calls, member), NULL \
	}

static const char *const standard[] = { "librocm_smi64.so.7", "librocm_smi64.so.1",
	"librocm_smi64.so.6", "librocm_smi64.so.5", "librocm_smi64.so",
	"/opt/rocm/lib/librocm_smi64.so", NULL };
const char *const *dg__rsmi_libraries = standard;

static const dg__symbol calls[] = {
	CALL(init, "rsmi_init"),
	CALL(count, "rsmi_num_monitor_devices"),
	CALL(pci, "rsmi_dev_pci_id_get"),
	CALL(temperature, "rsmi_dev_temp_metric_get"),
	CALL(busy, "rsmi_dev_busy_percent_get"),
	CALL(memory_total, "rsmi_dev_memory_total_get"),
	CALL(memory_used, "rsmi_dev_memory_usage_get"),
	CALL(clock, "rsmi_dev_gpu_clk_freq_get"),
	CALL(power, "rsmi_dev_power_ave_get"),
};

/* Newer versions have one member more, in front: both are told apart by what makes sense. */
typedef struct frequencies {
	uint32_t count, current;
	uint64_t hz[FREQUENCIES];
	uint64_t room[8];
} frequencies;

static void open_library(dg__gpu *gpu)
{
	dg__rocm_own *own = gpu->own;
	dg_error *error = &gpu->side_error;
	dg_err err = dg__dynlib_open(dg__rsmi_libraries, &gpu->side_library, error);
	if (!err)
		err = dg__dynlib_load(
			gpu->side_library, calls, DG__GPU_COUNT(calls), &own->rsmi, error);
	if (err)
		return;
	int code = own->rsmi.init(0);
	gpu->has_side = !code;
	if (code)
		dg_error_native(
			error, DG_EDRIVER, "ROCm SMI", code, "ROCm SMI does not start (%d)", code);
}

static bool have_library(dg__gpu *gpu)
{
	pthread_mutex_lock(&gpu->lock);
	if (!gpu->side_tried) {
		gpu->side_tried = true;
		open_library(gpu);
	}
	bool have = gpu->has_side;
	pthread_mutex_unlock(&gpu->lock);
	return have;
}

/* Domain in the upper half, then bus, device and function as in the address's own numbering. */
static bool find(const dg__rocm_own *own, const dg__gpu_identity *who, uint32_t *ret_index)
{
	uint32_t count = 0;
	if (!who->pci[0] || own->rsmi.count(&count) || count > UINT16_MAX)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t id = 0;
		char pci[24];
		if (own->rsmi.pci(i, &id))
			continue;
		snprintf(pci, sizeof(pci), "%04x:%02x:%02x.%x", (unsigned)(id >> 32),
			(unsigned)(id >> 8 & 0xff), (unsigned)(id >> 3 & 0x1f), (unsigned)(id & 7));
		if (!strcmp(pci, who->pci)) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}

static bool look_at_clock(const dg__rocm_own *own, uint32_t index, int type, double *ret_hz)
{
	frequencies f;
	memset(&f, 0, sizeof(f));
	if (own->rsmi.clock(index, type, &f))
		return false;
	uint32_t words[3];
	memcpy(words, &f, sizeof(words));
	/* With the flag in front, its byte is padded to a word. */
	size_t shift =
		words[0] <= 1 && words[1] >= 1 && words[1] <= FREQUENCIES && words[2] < words[1];
	uint32_t count = words[shift], current = words[shift + 1];
	if (count < 1 || count > FREQUENCIES || current >= count)
		return false;
	uint64_t hz = shift ? f.hz[current + 1] : f.hz[current];
	*ret_hz = (double)hz;
	return hz > 0;
}

static void look_at_device(const dg__rocm_own *own, uint32_t index, dg_telemetry *t)
{
	int64_t millidegrees = 0;
	uint32_t percent = 0;
	uint64_t microwatts = 0;
	if (!own->rsmi.memory_total(index, DEVICE_MEMORY, &t->memory_total_bytes) &&
		!own->rsmi.memory_used(index, DEVICE_MEMORY, &t->memory_used_bytes) &&
		t->memory_total_bytes)
		t->present |= DG_TELEMETRY_USED | DG_TELEMETRY_TOTAL;
	if (!own->rsmi.temperature(index, 0, CURRENT, &millidegrees)) {
		t->present |= DG_TELEMETRY_TEMPERATURE;
		t->temperature_celsius = (double)millidegrees / 1000;
	}
	if (!own->rsmi.busy(index, &percent) && percent <= 100) {
		t->present |= DG_TELEMETRY_LOAD;
		t->load = percent / 100.0;
	}
	if (!own->rsmi.power(index, 0, &microwatts)) {
		t->present |= DG_TELEMETRY_POWER;
		t->power_w = (double)microwatts / 1e6;
	}
	if (look_at_clock(own, index, SYSTEM_CLOCK, &t->clock_hz))
		t->present |= DG_TELEMETRY_CLOCK;
	if (look_at_clock(own, index, MEMORY_CLOCK, &t->memory_clock_hz))
		t->present |= DG_TELEMETRY_MEMORY_CLOCK;
}

dg_err dg__rsmi_look(
	dg__gpu *gpu, const dg__gpu_identity *who, dg__gpu_look *ret_look, dg_error *reterr)
{
	const dg__rocm_own *own = gpu->own;
	dg__gpu_look look = { .driver = "" };
	uint32_t index = 0;
	if (!have_library(gpu))
		return dg_error_set(reterr, DG_ENOTSUP, "nothing watches the device: %.300s",
			gpu->side_error.text);
	if (!find(own, who, &index))
		return dg_error_set(reterr, DG_ENOTSUP, "ROCm SMI does not know the device at %s",
			who->pci[0] ? who->pci : "an unknown address");
	look_at_device(own, index, &look.telemetry);
	*ret_look = look;
	return DG_OK;
}
