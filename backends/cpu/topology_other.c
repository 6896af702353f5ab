/* For systems other than Linux: what POSIX tells, and macOS' own calls. See topology.h. */
#ifndef __linux__
#include "backends/cpu/topology.h"

#include <stdio.h>
#include <unistd.h>

#ifdef __APPLE__
#include <mach/mach.h>
#include <sys/sysctl.h>
#endif

#ifdef __APPLE__
static uint64_t system_number(const char *name)
{
	uint64_t number = 0;
	size_t size = sizeof(number);
	return sysctlbyname(name, &number, &size, NULL, 0) == 0 ? number : 0;
}
#endif

void dg__topology_read(const char *root, dg__topology *ret_topology)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	dg__topology t = { .count = online > 0 ? (uint32_t)online : 1 };
	(void)root;
#ifdef __APPLE__
	uint64_t cores = system_number("hw.physicalcpu");
	if (cores)
		t.count = (uint32_t)cores;
#endif
	if (t.count > DG__CPUS_MAX)
		t.count = DG__CPUS_MAX;
	for (uint32_t i = 0; i < t.count; i++)
		t.cpus[i] = (uint16_t)i;
	*ret_topology = t;
}

bool dg__topology_pin(uint16_t cpu)
{
	(void)cpu;
	return false;
}

uint64_t dg__topology_cache(const char *root, const dg__topology *topology)
{
	(void)root;
	(void)topology;
#ifdef __APPLE__
	uint64_t level2 = system_number("hw.perflevel0.l2cachesize");
	return level2 ? level2 : system_number("hw.l2cachesize");
#else
	return 0;
#endif
}

bool dg__topology_memory(const char *root, dg__memory_state *ret_memory)
{
	(void)root;
#ifdef __APPLE__
	vm_statistics64_data_t vm;
	mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
	uint64_t total = system_number("hw.memsize");
	if (!total ||
		host_statistics64(mach_host_self(), HOST_VM_INFO64, (host_info64_t)&vm, &count))
		return false;
	uint64_t pages = (uint64_t)vm.free_count + vm.inactive_count + vm.purgeable_count;
	*ret_memory = (dg__memory_state){ total, pages * (uint64_t)sysconf(_SC_PAGESIZE) };
	return true;
#elif defined(_SC_PHYS_PAGES)
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	if (pages <= 0 || size <= 0)
		return false;
	uint64_t total = (uint64_t)pages * (uint64_t)size;
	*ret_memory = (dg__memory_state){ total, total / 2 };
	return true;
#else
	(void)ret_memory;
	return false;
#endif
}

bool dg__topology_busy(const char *root, const dg__topology *topology, double *ret_s)
{
	(void)root;
	(void)topology;
	(void)ret_s;
	return false;
}

bool dg__topology_temperature(const char *root, double *ret_celsius)
{
	(void)root;
	(void)ret_celsius;
	return false;
}

bool dg__topology_clock(const char *root, const dg__topology *topology, double *ret_hz)
{
	(void)root;
	(void)topology;
	(void)ret_hz;
	return false;
}

bool dg__topology_throttles(const char *root, const dg__topology *topology, uint64_t *ret_count)
{
	(void)root;
	(void)topology;
	(void)ret_count;
	return false;
}

void dg__topology_name(const char *root, char *buf, unsigned size)
{
	(void)root;
	buf[0] = '\0';
#ifdef __APPLE__
	size_t length = size;
	if (sysctlbyname("machdep.cpu.brand_string", buf, &length, NULL, 0) != 0)
		buf[0] = '\0';
#else
	(void)size;
#endif
}
#else
typedef int dg__topology_is_in_another_file; /* C allows no empty file */
#endif
