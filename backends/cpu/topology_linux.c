/* Linux only; topology_other.c is for other systems. See topology.h. */
#ifdef __linux__
#include "backends/cpu/topology.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backends/cpu/cgroup_linux.h"

#define SET_BYTES (CPU_ALLOC_SIZE(8192))

/* A file of a CPU's directory. */
static bool cpu_file(const char *root, unsigned cpu, const char *file, char *buf, size_t size)
{
	char path[128];
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/%s", cpu, file);
	return dg__read_small(root, path, buf, size);
}

static bool cpu_number(const char *root, unsigned cpu, const char *file, uint64_t *ret_number)
{
	char text[64];
	return cpu_file(root, cpu, file, text, sizeof(text)) &&
	       dg__number_after(text, "", ret_number);
}

/* Whether cpu is in a list as the kernel writes them: "0-3,8,10-11". */
static bool in_list(const char *list, unsigned long cpu)
{
	while (*list >= '0' && *list <= '9') {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (cpu >= first && cpu <= last)
			return true;
		list = *end == ',' ? end + 1 : "";
	}
	return false;
}

static uint64_t speed_of(const char *root, unsigned cpu)
{
	uint64_t speed = 0;
	if (!cpu_number(root, cpu, "cpu_capacity", &speed))
		cpu_number(root, cpu, "cpufreq/cpuinfo_max_freq", &speed);
	return speed;
}

typedef struct core {
	uint16_t cpu;
	uint64_t speed; /* comparable among the cores of one machine */
} core;

static int by_speed(const void *a, const void *b)
{
	const core *x = a, *y = b;
	if (x->speed != y->speed)
		return x->speed < y->speed ? 1 : -1;
	return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

/* A second thread of a core adds no unit, and would share the first one's. */
static bool core_taken(const char *root, unsigned cpu, const core *cores, uint32_t count)
{
	char siblings[256];
	if (!cpu_file(root, cpu, "topology/thread_siblings_list", siblings, sizeof(siblings)))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (in_list(siblings, cores[i].cpu))
			return true;
	return false;
}

static uint32_t find_cores(const char *root, const cpu_set_t *allowed, core *cores)
{
	uint32_t count = 0;
	for (unsigned cpu = 0; cpu < 8192 && count < DG__CPUS_MAX; cpu++) {
		if (!CPU_ISSET_S(cpu, SET_BYTES, allowed) || core_taken(root, cpu, cores, count))
			continue;
		cores[count].cpu = (uint16_t)cpu;
		cores[count++].speed = speed_of(root, cpu);
	}
	qsort(cores, count, sizeof(*cores), by_speed);
	return count;
}

void dg__topology_read(const char *root, dg__topology *ret_topology)
{
	cpu_set_t *allowed = CPU_ALLOC(8192);
	core *cores = calloc(DG__CPUS_MAX, sizeof(*cores));
	dg__topology t = { .count = 0, .quota = dg__cgroup_cpus(root) };
	if (allowed && cores && sched_getaffinity(0, SET_BYTES, allowed) == 0)
		t.count = find_cores(root, allowed, cores);
	for (uint32_t i = 0; i < t.count; i++)
		t.cpus[i] = cores[i].cpu;
	CPU_FREE(allowed);
	free(cores);
	if (t.count < 1)
		t.count = 1;
	uint32_t granted = t.quota > 0 && t.quota < DG__CPUS_MAX ? (uint32_t)t.quota : t.count;
	if (t.quota > 0 && t.quota > granted)
		granted++;
	if (t.count > granted)
		t.count = granted ? granted : 1;
	*ret_topology = t;
}

bool dg__topology_pin(uint16_t cpu)
{
	cpu_set_t *one = CPU_ALLOC(8192);
	if (!one)
		return false;
	CPU_ZERO_S(SET_BYTES, one);
	CPU_SET_S(cpu, SET_BYTES, one);
	bool pinned = pthread_setaffinity_np(pthread_self(), SET_BYTES, one) == 0;
	CPU_FREE(one);
	return pinned;
}

/* The last cache of a CPU: bytes, and the lowest CPU that shares it, which tells caches apart. */
static bool last_cache(
	const char *root, unsigned cpu, uint64_t *ret_bytes, unsigned long *ret_first)
{
	bool found = false;
	for (unsigned i = 0; i < 8; i++) {
		char file[48], text[256];
		uint64_t kib;
		snprintf(file, sizeof(file), "cache/index%u/size", i);
		if (!cpu_number(root, cpu, file, &kib))
			break;
		snprintf(file, sizeof(file), "cache/index%u/shared_cpu_list", i);
		if (!cpu_file(root, cpu, file, text, sizeof(text)))
			break;
		*ret_bytes = kib << 10;
		*ret_first = strtoul(text, NULL, 10);
		found = true;
	}
	return found;
}

uint64_t dg__topology_cache(const char *root, const dg__topology *topology)
{
	unsigned long seen[DG__CPUS_MAX];
	uint32_t count = 0;
	uint64_t total = 0;
	for (uint32_t i = 0; i < topology->count; i++) {
		uint64_t bytes;
		unsigned long first;
		bool old = false;
		if (!last_cache(root, topology->cpus[i], &bytes, &first))
			break;
		for (uint32_t j = 0; j < count && !old; j++)
			old = seen[j] == first;
		if (!old) {
			seen[count++] = first;
			total += bytes;
		}
	}
	/*
	 * A virtual machine may have no such files; the processor itself tells of one cache then.
	 */
	long level3 = sysconf(_SC_LEVEL3_CACHE_SIZE), level2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
	if (!total && !root[0])
		total = level3 > 0 ? (uint64_t)level3 : level2 > 0 ? (uint64_t)level2 : 0;
	return total;
}

/* What RLIMIT_AS still lets this process map. */
static uint64_t address_room(const char *root)
{
	struct rlimit limit;
	char text[128];
	uint64_t pages = 0;
	if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	if (dg__read_small(root, "/proc/self/statm", text, sizeof(text)))
		dg__number_after(text, "", &pages);
	uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return used < limit.rlim_cur ? limit.rlim_cur - used : 0;
}

bool dg__topology_memory(const char *root, dg__memory_state *ret_memory)
{
	char text[4096];
	uint64_t total, available, limit, left;
	if (!dg__read_small(root, "/proc/meminfo", text, sizeof(text)) ||
		!dg__number_after(text, "MemTotal:", &total) ||
		!dg__number_after(text, "MemAvailable:", &available))
		return false;
	dg__memory_state m = { total << 10, available << 10 };
	if (dg__cgroup_memory(root, &limit, &left)) {
		m.total_bytes = limit < m.total_bytes ? limit : m.total_bytes;
		m.free_bytes = left < m.free_bytes ? left : m.free_bytes;
	}
	uint64_t room = address_room(root);
	m.free_bytes = room < m.free_bytes ? room : m.free_bytes;
	*ret_memory = m;
	return true;
}

static uint64_t ticks_busy(const char *stat, unsigned cpu)
{
	enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };
	char word[16];
	uint64_t n[FIELDS];
	snprintf(word, sizeof(word), "\ncpu%u ", cpu);
	const char *line = strstr(stat, word);
	if (!line || dg__numbers(line + strlen(word), n, FIELDS) != FIELDS)
		return 0;
	return n[USER] + n[NICE] + n[SYSTEM] + n[IRQ] + n[SOFTIRQ] + n[STEAL];
}

bool dg__topology_busy(const char *root, const dg__topology *topology, double *ret_s)
{
	static const size_t size = (size_t)256 << 10;
	char *stat = malloc(size);
	uint64_t ticks = 0;
	bool got = stat && dg__read_small(root, "/proc/stat", stat, size);
	for (uint32_t i = 0; got && i < topology->count; i++)
		ticks += ticks_busy(stat, topology->cpus[i]);
	free(stat);
	if (got)
		*ret_s = (double)ticks / (double)sysconf(_SC_CLK_TCK);
	return got;
}

/* Drivers of the sensors that sit in processors. */
static bool is_cpu_sensor(const char *name)
{
	static const char *const names[] = { "coretemp\n", "k10temp\n", "zenpower\n",
		"cpu_thermal\n" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

bool dg__topology_temperature(const char *root, double *ret_celsius)
{
	for (unsigned i = 0; i < 32; i++) {
		char path[64], text[64];
		uint64_t milli;
		snprintf(path, sizeof(path), "/sys/class/hwmon/hwmon%u/name", i);
		if (!dg__read_small(root, path, text, sizeof(text)) || !is_cpu_sensor(text))
			continue;
		snprintf(path, sizeof(path), "/sys/class/hwmon/hwmon%u/temp1_input", i);
		if (dg__read_small(root, path, text, sizeof(text)) &&
			dg__number_after(text, "", &milli)) {
			*ret_celsius = (double)milli / 1000;
			return true;
		}
	}
	return false;
}

bool dg__topology_clock(const char *root, const dg__topology *topology, double *ret_hz)
{
	uint64_t khz, highest = 0;
	for (uint32_t i = 0; i < topology->count; i++)
		if (cpu_number(root, topology->cpus[i], "cpufreq/scaling_cur_freq", &khz) &&
			khz > highest)
			highest = khz;
	if (!highest)
		return false;
	*ret_hz = (double)highest * 1000;
	return true;
}

bool dg__topology_throttles(const char *root, const dg__topology *topology, uint64_t *ret_count)
{
	uint64_t total = 0, count;
	bool found = false;
	for (uint32_t i = 0; i < topology->count; i++)
		if (cpu_number(root, topology->cpus[i], "thermal_throttle/core_throttle_count",
			    &count)) {
			total += count;
			found = true;
		}
	if (found)
		*ret_count = total;
	return found;
}

void dg__topology_name(const char *root, char *buf, unsigned size)
{
	static const char *const words[] = { "\nmodel name", "\nModel Name", "\nHardware" };
	char text[8192];
	buf[0] = '\0';
	if (dg__read_small(root, "/proc/device-tree/model", text, sizeof(text))) {
		snprintf(buf, size, "%.100s", text);
		return;
	}
	if (!dg__read_small(root, "/proc/cpuinfo", text, sizeof(text)))
		return;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const char *line = strstr(text, words[i]);
		const char *colon = line ? strchr(line + 1, ':') : NULL;
		if (colon) {
			colon += 1 + strspn(colon + 1, " \t");
			snprintf(buf, size, "%.*s", (int)strcspn(colon, "\n"), colon);
			return;
		}
	}
}
#else
typedef int dg__topology_is_elsewhere; /* C allows no empty file */
#endif
