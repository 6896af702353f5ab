/*
 * A fake ROCm SMI: AMD's names, numbers and signatures, for tests. See fake_gpu_driver.h.
 */
#include "tests/fakes/fake_gpu_driver.h"

/* The vendor's header, which would declare these, is not needed to build devgate. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

int rsmi_init(uint64_t flags)
{
	return flags ? FAKE_INVALID : 0;
}

int rsmi_num_monitor_devices(uint32_t *ret_count)
{
	*ret_count = (uint32_t)fake_count();
	return 0;
}

/* The order is the driver's in reverse. */
static unsigned device_of(uint32_t index)
{
	return (unsigned)fake_count() - 1 - index;
}

int rsmi_dev_pci_id_get(uint32_t index, uint64_t *ret_address)
{
	*ret_address = (uint64_t)(0x17 + device_of(index) * 0x10) << 8;
	return 0;
}

/* Tells devices apart. */
int rsmi_dev_temp_metric_get(uint32_t index, uint32_t sensor, int metric, int64_t *ret_millidegrees)
{
	*ret_millidegrees = 1000 * (int64_t)(40 + device_of(index));
	return sensor || metric ? FAKE_INVALID : 0;
}

int rsmi_dev_busy_percent_get(uint32_t index, uint32_t *ret_percent)
{
	(void)index;
	*ret_percent = 25;
	return 0;
}

int rsmi_dev_memory_total_get(uint32_t index, int type, uint64_t *ret_bytes)
{
	(void)index;
	*ret_bytes = (uint64_t)1 << 30;
	return type ? FAKE_INVALID : 0;
}

int rsmi_dev_memory_usage_get(uint32_t index, int type, uint64_t *ret_bytes)
{
	(void)index;
	*ret_bytes = (uint64_t)1 << 20;
	return type ? FAKE_INVALID : 0;
}

/* In the layout of version 6 and later, with the flag in front, or of 5. */
int rsmi_dev_gpu_clk_freq_get(uint32_t index, int type, void *ret_frequencies)
{
	static const uint64_t hz[3] = { 500000000, 1000000000, 2100000000 };
	uint32_t words[3] = { 0, 3, 2 };
	size_t at = fake_script("rsmi5", 0) ? 8 : 16;
	(void)index;
	memcpy(ret_frequencies, at == 8 ? words + 1 : words, at == 8 ? 8 : 12);
	memcpy((char *)ret_frequencies + at, hz, sizeof(hz));
	return type == 0 || type == 4 ? 0 : FAKE_INVALID;
}

int rsmi_dev_power_ave_get(uint32_t index, uint32_t sensor, uint64_t *ret_microwatts)
{
	(void)index;
	(void)sensor;
	*ret_microwatts = 150500000;
	return 0;
}
