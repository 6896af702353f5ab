/*
 * A fake NVML: NVIDIA's names, numbers and signatures, for tests. See fake_gpu_driver.h.
 */
#include "tests/fakes/fake_gpu_driver.h"

/* The vendor's header, which would declare these, is not needed to build devgate. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define NOT_FOUND 6
#define LOST 15
#define PARENT 1000

/* Handles are numbers, and the order is the driver's in reverse. */
static void *handle_of(int device)
{
	return (void *)(uintptr_t)(fake_count() - device);
}

static int device_of(const void *handle)
{
	return fake_count() - (int)(uintptr_t)handle;
}

int nvmlInit_v2(void)
{
	return (int)fake_script("nvml", 0);
}

int nvmlSystemGetDriverVersion(char *ret_version, unsigned size)
{
	snprintf(ret_version, size, "580.1");
	return 0;
}

static int found(int device, void **ret_device)
{
	if (fake_script("lost", -1) == device)
		return LOST;
	*ret_device = handle_of(device);
	return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **ret_device)
{
	char text[40];
	const char *prefix = fake_script("mig", 0) ? "MIG-" : "GPU-";
	for (int i = 0; i < fake_count() && !strncmp(uuid, prefix, 4); i++) {
		fake_uuid_text(i, text);
		if (!strcmp(uuid + 4, text))
			return found(i, ret_device);
	}
	return NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **ret_device)
{
	for (int i = 0; i < fake_count(); i++) {
		char text[24];
		fake_pci(i, text, sizeof(text));
		for (char *c = text; *c; c++)
			*c = (char)(*c >= 'A' && *c <= 'F' ? *c + 32 : *c);
		if (!strcmp(address, text))
			return found(i, ret_device);
	}
	return NOT_FOUND;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *slice, void **ret_device)
{
	(void)slice;
	*ret_device = (void *)(uintptr_t)PARENT;
	return fake_script("mig", 0) ? 0 : FAKE_INVALID;
}

int nvmlDeviceGetUUID(void *device, char *ret_uuid, unsigned size)
{
	char text[40];
	if ((uintptr_t)device == PARENT) {
		snprintf(ret_uuid, size, "GPU-11111111-2222-3333-4444-555555555555");
		return 0;
	}
	fake_uuid_text(device_of(device), text);
	snprintf(ret_uuid, size, "GPU-%s", text);
	return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long ret_total_free_used[3])
{
	ret_total_free_used[0] = 1ull << 30;
	ret_total_free_used[2] = (unsigned long long)(device_of(device) + 1) << 20;
	ret_total_free_used[1] = ret_total_free_used[0] - ret_total_free_used[2];
	return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned ret_gpu_memory[2])
{
	(void)device;
	ret_gpu_memory[0] = 25;
	ret_gpu_memory[1] = 10;
	return 0;
}

/* Tells devices apart. */
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *ret_celsius)
{
	*ret_celsius = 40 + (unsigned)device_of(device);
	return sensor ? FAKE_INVALID : 0;
}

/* As on boards that do not tell. */
int nvmlDeviceGetPowerUsage(void *device, unsigned *ret_milliwatts)
{
	(void)device;
	(void)ret_milliwatts;
	return 3;
}

int nvmlDeviceGetClockInfo(void *device, int type, unsigned *ret_mhz)
{
	(void)device;
	*ret_mhz = type == 1 ? 1980 : 3201;
	return type == 1 || type == 2 ? 0 : FAKE_INVALID;
}

int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *ret_reasons)
{
	(void)device;
	*ret_reasons = (unsigned long long)fake_script("reasons", 1);
	return 0;
}
