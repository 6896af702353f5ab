/* The CPU as a device: finding, describing, opening, memory. See backends/core/backend.h. */
#include "backends/cpu/cpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "backends/core/clock.h"
#include "backends/core/hostid.h"
#include "backends/core/registry.h"
#include "backends/cpu/isa.h"

extern const dg__backend dg__backend_cpu;

/* What is left to everybody else. */
#define MEMORY_SHARE 2
#define LOAD_NS 50000000 /* over which telemetry looks at the load */
#define HUGE_PAGE ((uint64_t)2 << 20)

static dg_err check_index(uint32_t index, dg_error *reterr)
{
	if (index == 0)
		return DG_OK;
	return dg_error_set(
		reterr, DG_ENODEVICE, "there is one CPU device, number 0, not %u", (unsigned)index);
}

static dg_err enumerate(const dg__backend *self, uint32_t *ret_count, dg_error *reterr)
{
	(void)self;
	(void)reterr;
	*ret_count = 1;
	return DG_OK;
}

/* Describing. */

static uint64_t dtypes_of(uint32_t isa)
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
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (dg__cpu_computes(isa, rows[i].kernel))
			for (size_t j = 0; j < 2 && rows[i].dtypes[j]; j++)
				dtypes |= (uint64_t)1 << rows[i].dtypes[j];
	return dtypes;
}

static void describe_memory(dg_device_info *info)
{
	dg__memory_state memory;
	if (!dg__topology_memory("", &memory))
		return;
	info->present |= DG_HAS_TOTAL | DG_HAS_FREE | DG_HAS_USABLE | DG_HAS_ALLOC;
	info->total_bytes = memory.total_bytes;
	info->free_bytes = memory.free_bytes;
	info->usable_bytes = memory.free_bytes / MEMORY_SHARE;
	info->max_alloc_bytes = info->usable_bytes;
}

static void describe_host(dg_device_info *info)
{
	if (!dg__hostid_get(info->host))
		return;
	info->present |= DG_HAS_HARDWARE;
	snprintf(info->hardware, sizeof(info->hardware), "host:%s", info->host);
}

static void describe_name(dg_device_info *info)
{
	dg__isa_brand(info->name, sizeof(info->name));
	if (!info->name[0])
		dg__topology_name("", info->name, sizeof(info->name));
	if (!info->name[0])
		snprintf(info->name, sizeof(info->name), "CPU");
	dg__isa_vendor(info->vendor, sizeof(info->vendor));
}

static dg_err describe(
	const dg__backend *self, uint32_t index, dg_device_info *ret_info, dg_error *reterr)
{
	dg_device_info info = { .present = DG_HAS_DEVICE | DG_HAS_UNITS, .unified = true };
	dg__topology topology;
	uint32_t isa = dg__isa_detect();
	dg_err err = check_index(index, reterr);
	if (!err)
		err = dg_device_make(DG_CPU, DG_KIND_NONE, 0, &info.device, reterr);
	if (err)
		return err;
	dg__topology_read("", &topology);
	info.units = topology.count;
	info.dtypes = dtypes_of(isa);
	snprintf(info.backend, sizeof(info.backend), "%s", self->name);
	snprintf(info.driver, sizeof(info.driver), "devgate-cpu %s", DG_VERSION);
	dg__isa_format(isa, info.architecture, sizeof(info.architecture));
	describe_name(&info);
	describe_memory(&info);
	describe_host(&info);
	*ret_info = info;
	return DG_OK;
}

static bool look_at_load(const dg__topology *topology, double *ret_load)
{
	double before, after;
	uint64_t start = dg__clock_ns();
	if (!dg__topology_busy("", topology, &before))
		return false;
	dg__clock_sleep_ns(LOAD_NS);
	if (!dg__topology_busy("", topology, &after))
		return false;
	double load = (after - before) * 1e9 / (double)(dg__clock_ns() - start) / topology->count;
	*ret_load = load < 0 ? 0 : load > 1 ? 1 : load;
	return true;
}

static dg_err telemetry(
	const dg__backend *self, uint32_t index, dg_telemetry *ret_telemetry, dg_error *reterr)
{
	dg_telemetry t = { .present = 0 };
	dg__topology topology;
	dg__memory_state memory;
	dg_err err = check_index(index, reterr);
	(void)self;
	if (err)
		return err;
	dg__topology_read("", &topology);
	if (dg__topology_memory("", &memory)) {
		t.present |= DG_TELEMETRY_USED | DG_TELEMETRY_TOTAL;
		t.memory_total_bytes = memory.total_bytes;
		t.memory_used_bytes = memory.total_bytes - memory.free_bytes;
	}
	if (look_at_load(&topology, &t.load))
		t.present |= DG_TELEMETRY_LOAD;
	if (dg__topology_temperature("", &t.temperature_celsius))
		t.present |= DG_TELEMETRY_TEMPERATURE;
	if (dg__topology_clock("", &topology, &t.clock_hz))
		t.present |= DG_TELEMETRY_CLOCK;
	t.at_ms = dg__clock_unix_ms();
	*ret_telemetry = t;
	return DG_OK;
}

/* Opening. */

static void close_device(dg__dev *dev)
{
	if (!dev)
		return;
	dg__cpupool_destroy(dev->pool);
	free(dev);
}

static dg_err open_device(
	const dg__backend *self, uint32_t index, dg__dev **ret_dev, dg_error *reterr)
{
	dg_err err = check_index(index, reterr);
	(void)self;
	if (err)
		return err;
	dg__dev *dev = calloc(1, sizeof(*dev));
	if (!dev)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dg__topology_read("", &dev->topology);
	dev->isa = dg__isa_detect();
	dev->has_throttles = dg__topology_throttles("", &dev->topology, &dev->throttles);
	err = dg__cpupool_create(&dev->topology, &dev->pool, reterr);
	if (err)
		close_device(dev);
	else
		*ret_dev = dev;
	return err;
}

/* Memory. */

static dg_err room(dg__dev *dev, dg__room *ret_room, dg_error *reterr)
{
	dg__memory_state memory;
	if (!dg__topology_memory("", &memory))
		return dg_error_set(
			reterr, DG_EDRIVER, "the system does not tell how much memory is free");
	uint64_t share = memory.free_bytes / MEMORY_SHARE;
	*ret_room = (dg__room){ .total_bytes = share,
		.buffer_bytes = share,
		.cache_bytes = dg__topology_cache("", &dev->topology) };
	return DG_OK;
}

static void buf_destroy(dg__dev *dev, dg__buf *buf)
{
	(void)dev;
	if (!buf)
		return;
	munmap(buf->data, (size_t)buf->size);
	free(buf);
}

static dg_err map(uint64_t size, unsigned char **ret_data, dg_error *reterr)
{
	/* On a border of huge pages, so that all of it can be made of them. */
	uint64_t slack = size >= HUGE_PAGE ? HUGE_PAGE : 0;
	void *at = mmap(NULL, (size_t)(size + slack), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return dg_error_native(reterr, DG_ENOMEM, "cpu", errno,
			"%llu bytes cannot be mapped", (unsigned long long)size);
	unsigned char *data = at;
	uint64_t over = slack ? (HUGE_PAGE - (uintptr_t)data % HUGE_PAGE) % HUGE_PAGE : 0;
	if (over)
		munmap(data, (size_t)over);
	if (slack > over)
		munmap(data + over + size, (size_t)(slack - over));
#ifdef MADV_HUGEPAGE
	if (slack)
		madvise(data + over, (size_t)size, MADV_HUGEPAGE);
#endif
	*ret_data = data + over;
	return DG_OK;
}

static dg_err buf_create(dg__dev *dev, uint64_t size_bytes, const dg__stop *stop, dg__buf **ret_buf,
	dg_error *reterr)
{
	dg__buf *buf = calloc(1, sizeof(*buf));
	if (!buf)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	buf->size = (size_bytes + 4095) / 4096 * 4096;
	dg_err err = map(buf->size, &buf->data, reterr);
	if (err) {
		free(buf);
		return err;
	}
	err = dg__cpu_touch(dev, buf, stop, reterr);
	if (err)
		buf_destroy(dev, buf);
	else
		*ret_buf = buf;
	return err;
}

static dg_err check_range(const dg__buf *buf, uint64_t offset, size_t size, dg_error *reterr)
{
	if (offset <= buf->size && size <= buf->size - offset)
		return DG_OK;
	return dg_error_set(reterr, DG_EINVALID, "the range is not inside the buffer");
}

static dg_err buf_write(dg__dev *dev, dg__buf *buf, uint64_t offset, const void *data, size_t size,
	dg_error *reterr)
{
	dg_err err = check_range(buf, offset, size, reterr);
	(void)dev;
	if (!err)
		memcpy(buf->data + offset, data, size);
	return err;
}

static dg_err buf_read(dg__dev *dev, const dg__buf *buf, uint64_t offset, void *data, size_t size,
	dg_error *reterr)
{
	dg_err err = check_range(buf, offset, size, reterr);
	(void)dev;
	if (!err)
		memcpy(data, buf->data + offset, size);
	return err;
}

/* Observing. */

static double own_seconds(void)
{
	struct rusage usage;
	if (getrusage(RUSAGE_SELF, &usage) != 0)
		return 0;
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static dg_err observe(dg__dev *dev, dg__observation *ret_observation, dg_error *reterr)
{
	dg__observation seen = { .present = 0 };
	double busy;
	uint64_t throttles;
	if (dg__cpu_clock(dev, &seen.clock_hz))
		seen.present |= DG__SEEN_CLOCK;
	if (dg__topology_temperature("", &seen.temperature_celsius))
		seen.present |= DG__SEEN_TEMPERATURE;
	if (dg__topology_busy("", &dev->topology, &busy)) {
		seen.present |= DG__SEEN_OTHER;
		seen.other_s = (busy - own_seconds()) / dev->topology.count;
	}
	if (dev->has_throttles && dg__topology_throttles("", &dev->topology, &throttles)) {
		seen.present |= DG__SEEN_THROTTLE;
		if (throttles > dev->throttles)
			snprintf(seen.throttle_reason, sizeof(seen.throttle_reason),
				"the CPU was too hot");
		dev->throttles = throttles;
	}
	if (!seen.present)
		return dg_error_set(reterr, DG_ENOTSUP, "nothing can be seen of this CPU");
	*ret_observation = seen;
	return DG_OK;
}

const dg__backend dg__backend_cpu = {
	.abi = DG__BACKEND_ABI,
	.name = "cpu",
	.enumerate = enumerate,
	.describe = describe,
	.telemetry = telemetry,
	.open = open_device,
	.close = close_device,
	.room = room,
	.buf_create = buf_create,
	.buf_destroy = buf_destroy,
	.buf_write = buf_write,
	.buf_read = buf_read,
	.shapes = dg__cpu_shapes,
	.kernel_create = dg__cpu_kernel_create,
	.kernel_destroy = dg__cpu_kernel_destroy,
	.time = dg__cpu_time,
	.observe = observe,
};
