/*
 * NVML, the management library: opened at run time, joined by UUID or PCI address, since its
 * indexes are not CUDA's and no variable changes them. A machine without it (Jetson) has less to
 * tell.
 */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/cuda.h"

#define SM_CLOCK 1
#define MEMORY_CLOCK 2
#define GPU_SENSOR 0
#define LOST 15

#define CALL(member, name, older) \
	{ \
		name, offsetof(dg__nvml_calls, member), older \
	}

static const char *const standard[] = { "libnvidia-ml.so.1", "libnvidia-ml.so",
	"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
	"/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1", "/usr/lib64/libnvidia-ml.so.1",
	"/usr/local/nvidia/lib64/libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1",
	"/run/opengl-driver/lib/libnvidia-ml.so.1", NULL };
const char *const *dg__nvml_libraries = standard;

static const dg__symbol calls[] = {
	CALL(init, "nvmlInit_v2", "nvmlInit"),
	CALL(driver_version, "nvmlSystemGetDriverVersion", NULL),
	CALL(by_uuid, "nvmlDeviceGetHandleByUUID", NULL),
	CALL(by_pci, "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId"),
	CALL(uuid, "nvmlDeviceGetUUID", NULL),
	CALL(memory, "nvmlDeviceGetMemoryInfo", NULL),
	CALL(utilization, "nvmlDeviceGetUtilizationRates", NULL),
	CALL(temperature, "nvmlDeviceGetTemperature", NULL),
	CALL(power, "nvmlDeviceGetPowerUsage", NULL),
	CALL(clock, "nvmlDeviceGetClockInfo", NULL),
};
static const dg__symbol parent_call = { "nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
	offsetof(dg__nvml_more, parent), NULL };
static const dg__symbol reasons_call = { "nvmlDeviceGetCurrentClocksEventReasons",
	offsetof(dg__nvml_more, reasons), "nvmlDeviceGetCurrentClocksThrottleReasons" };

typedef struct memory {
	unsigned long long total, available, used;
} memory;

static void open_library(dg__gpu *gpu)
{
	dg__cuda_own *own = gpu->own;
	dg_error *error = &gpu->side_error;
	dg_err err = dg__dynlib_open(dg__nvml_libraries, &gpu->side_library, error);
	if (!err)
		err = dg__dynlib_load(
			gpu->side_library, calls, DG__GPU_COUNT(calls), &own->nvml, error);
	if (err)
		return;
	if (dg__dynlib_load(gpu->side_library, &parent_call, 1, &own->more, NULL) != DG_OK)
		own->more.parent = NULL;
	if (dg__dynlib_load(gpu->side_library, &reasons_call, 1, &own->more, NULL) != DG_OK)
		own->more.reasons = NULL;
	int code = own->nvml.init();
	gpu->has_side = !code;
	if (code)
		dg_error_native(error, DG_EDRIVER, "NVML", code, "NVML does not start (%d)", code);
}

/* Once per process: where starting it is slow or hangs, it does so once. */
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

static int find_slice(const dg__cuda_own *own, const dg__gpu_identity *who, void **ret_device)
{
	char name[80];
	snprintf(name, sizeof(name), "MIG-%s", who->uuid);
	return own->nvml.by_uuid(name, ret_device);
}

static int find(const dg__cuda_own *own, const dg__gpu_identity *who, void **ret_device)
{
	char name[80];
	int code = -1;
	if (who->uuid[0] && who->partition)
		return find_slice(own, who, ret_device);
	if (who->uuid[0]) {
		snprintf(name, sizeof(name), "GPU-%s", who->uuid);
		code = own->nvml.by_uuid(name, ret_device);
	}
	if (code && code != LOST && who->pci[0])
		code = own->nvml.by_pci(who->pci, ret_device);
	return code;
}

void dg__nvml_identify(dg__gpu *gpu, dg__gpu_identity *who)
{
	const dg__cuda_own *own = gpu->own;
	char uuid[96] = "";
	void *slice = NULL, *parent = NULL;
	if (!who->uuid[0] || !have_library(gpu) || find_slice(own, who, &slice))
		return;
	who->partition = true;
	if (!own->more.parent || own->more.parent(slice, &parent) ||
		own->nvml.uuid(parent, uuid, sizeof(uuid)))
		return;
	uuid[sizeof(uuid) - 1] = '\0';
	snprintf(who->parent, sizeof(who->parent), "%.63s",
		strncmp(uuid, "GPU-", 4) ? uuid : uuid + 4);
}

/* What slows a chip down, the gravest first; what idleness or the owner sets is no such thing. */
static void reasons_text(unsigned long long reasons, char *text, size_t size)
{
	static const struct {
		unsigned long long bit;
		const char *text;
	} rows[] = {
		{ 0x40, "hardware thermal slowdown" },
		{ 0x80, "hardware power brake" },
		{ 0x08, "hardware slowdown" },
		{ 0x20, "software thermal slowdown" },
		{ 0x04, "software power cap" },
		{ 0x10, "sync boost" },
	};
	size_t used = 0;
	text[0] = '\0';
	for (size_t i = 0; i < DG__GPU_COUNT(rows) && used < size; i++)
		if (reasons & rows[i].bit)
			used += (size_t)snprintf(
				text + used, size - used, "%s%s", used ? ", " : "", rows[i].text);
}

static void look_at_memory(const dg__cuda_own *own, void *device, dg_telemetry *t)
{
	memory m = { 0, 0, 0 };
	if (own->nvml.memory(device, &m) || !m.total || m.available > m.total)
		return;
	t->present |= DG_TELEMETRY_USED | DG_TELEMETRY_TOTAL;
	t->memory_total_bytes = m.total;
	t->memory_used_bytes = m.total - m.available;
}

static void look_at_clocks(const dg__cuda_own *own, void *device, dg_telemetry *t)
{
	unsigned mhz = 0;
	unsigned long long reasons = 0;
	if (!own->nvml.clock(device, SM_CLOCK, &mhz) && mhz) {
		t->present |= DG_TELEMETRY_CLOCK;
		t->clock_hz = mhz * 1e6;
	}
	if (!own->nvml.clock(device, MEMORY_CLOCK, &mhz) && mhz) {
		t->present |= DG_TELEMETRY_MEMORY_CLOCK;
		t->memory_clock_hz = mhz * 1e6;
	}
	if (own->more.reasons && !own->more.reasons(device, &reasons)) {
		t->present |= DG_TELEMETRY_THROTTLE;
		reasons_text(reasons, t->throttle_reason, sizeof(t->throttle_reason));
	}
}

static void look_at_device(const dg__cuda_own *own, void *device, dg_telemetry *t)
{
	unsigned utilization[2] = { 0, 0 }, value = 0;
	look_at_memory(own, device, t);
	look_at_clocks(own, device, t);
	if (!own->nvml.utilization(device, utilization) && utilization[0] <= 100) {
		t->present |= DG_TELEMETRY_LOAD;
		t->load = utilization[0] / 100.0;
	}
	if (!own->nvml.temperature(device, GPU_SENSOR, &value)) {
		t->present |= DG_TELEMETRY_TEMPERATURE;
		t->temperature_celsius = value;
	}
	if (!own->nvml.power(device, &value)) {
		t->present |= DG_TELEMETRY_POWER;
		t->power_w = value / 1000.0;
	}
}

dg_err dg__nvml_look(
	dg__gpu *gpu, const dg__gpu_identity *who, dg__gpu_look *ret_look, dg_error *reterr)
{
	const dg__cuda_own *own = gpu->own;
	dg__gpu_look look = { .driver = "" };
	void *device = NULL;
	if (!have_library(gpu))
		return dg_error_set(reterr, DG_ENOTSUP, "nothing watches the device: %.300s",
			gpu->side_error.text);
	int code = find(own, who, &device);
	if (code == LOST)
		return dg_error_native(
			reterr, DG_ELOST, "NVML", code, "the device fell off the bus");
	if (code)
		return dg_error_native(reterr, DG_ENOTSUP, "NVML", code,
			"NVML does not know the device (%d)", code);
	look_at_device(own, device, &look.telemetry);
	if (own->nvml.driver_version(look.driver, sizeof(look.driver)))
		look.driver[0] = '\0';
	look.driver[sizeof(look.driver) - 1] = '\0';
	*ret_look = look;
	return DG_OK;
}
