/* Linux only. See cgroup_linux.h. */
#ifdef __linux__
#include "backends/cpu/cgroup_linux.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_ROOM 512
/* Version 1 says "no limit" with a number close to this. */
#define NO_LIMIT ((uint64_t)1 << 60)

bool dg__read_small(const char *root, const char *path, char *buf, size_t size)
{
	char whole[PATH_ROOM];
	int length = snprintf(whole, sizeof(whole), "%s%s", root, path);
	if (length < 0 || (size_t)length >= sizeof(whole))
		return false;
	FILE *file = fopen(whole, "re");
	if (!file)
		return false;
	size_t got = fread(buf, 1, size - 1, file);
	buf[got] = '\0';
	fclose(file);
	return got > 0;
}

size_t dg__numbers(const char *text, uint64_t *ret_numbers, size_t max)
{
	size_t count = 0;
	while (count < max) {
		text += strspn(text, " \t");
		if (*text < '0' || *text > '9')
			break;
		char *end;
		errno = 0;
		ret_numbers[count] = strtoull(text, &end, 10);
		if (errno)
			break;
		count++;
		text = end;
	}
	return count;
}

bool dg__number_after(const char *text, const char *word, uint64_t *ret_number)
{
	for (const char *at = text; (at = strstr(at, word)); at++)
		if (at == text || at[-1] == '\n')
			return dg__numbers(at + strlen(word), ret_number, 1) == 1;
	return false;
}

/* This process's group in the hierarchy of a controller; version 2 has one for all, named "". */
static bool group_of(const char *root, const char *controller, char *buf, size_t size)
{
	char text[8192];
	if (!dg__read_small(root, "/proc/self/cgroup", text, sizeof(text)))
		return false;
	char *rest = text, *line;
	while ((line = strsep(&rest, "\n"))) {
		char *names = strchr(line, ':');
		char *path = names ? strchr(names + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		char *list = names + 1, *name;
		bool found = !controller[0] && !list[0];
		while (controller[0] && !found && (name = strsep(&list, ",")))
			found = !strcmp(name, controller);
		if (found) {
			int length = snprintf(buf, size, "%s", path);
			return length >= 0 && (size_t)length < size;
		}
	}
	return false;
}

typedef void visit(const char *root, const char *directory, void *user);

/*
 * Visit a group's directory and all above it, up to the mount. In a container, where the path may
 * be one of the host's, only the mount itself is there, and that is the container's group.
 */
static void for_each_group(
	const char *root, const char *mount, const char *controller, visit *see, void *user)
{
	char group[PATH_ROOM / 2], directory[PATH_ROOM];
	if (!group_of(root, controller, group, sizeof(group)))
		return;
	size_t length = strlen(group);
	while (length > 0 && group[length - 1] == '/')
		group[--length] = '\0';
	for (;;) {
		snprintf(directory, sizeof(directory), "%s%s", mount, group);
		see(root, directory, user);
		char *slash = strrchr(group, '/');
		if (!slash)
			break;
		*slash = '\0';
	}
}

static bool read_in(
	const char *root, const char *directory, const char *file, char *buf, size_t size)
{
	char path[PATH_ROOM];
	int length = snprintf(path, sizeof(path), "%s/%s", directory, file);
	return length >= 0 && (size_t)length < sizeof(path) &&
	       dg__read_small(root, path, buf, size);
}

static bool number_in(const char *root, const char *directory, const char *file, uint64_t *ret)
{
	char text[64];
	return read_in(root, directory, file, text, sizeof(text)) &&
	       dg__number_after(text, "", ret);
}

static void note_cpus(double granted, double *least)
{
	if (granted > 0 && (*least <= 0 || granted < *least))
		*least = granted;
}

static void see_cpu_1(const char *root, const char *directory, void *user)
{
	uint64_t quota, period;
	if (number_in(root, directory, "cpu.cfs_quota_us", &quota) &&
		number_in(root, directory, "cpu.cfs_period_us", &period) && period > 0)
		note_cpus((double)quota / (double)period, user);
}

static void see_cpu_2(const char *root, const char *directory, void *user)
{
	char text[64];
	uint64_t numbers[2]; /* quota and period; the quota may be the word max */
	if (read_in(root, directory, "cpu.max", text, sizeof(text)) &&
		dg__numbers(text, numbers, 2) == 2 && numbers[1] > 0)
		note_cpus((double)numbers[0] / (double)numbers[1], user);
}

double dg__cgroup_cpus(const char *root)
{
	double least = 0;
	for_each_group(root, "/sys/fs/cgroup/cpu", "cpu", see_cpu_1, &least);
	for_each_group(root, "/sys/fs/cgroup/cpu,cpuacct", "cpu", see_cpu_1, &least);
	for_each_group(root, "/sys/fs/cgroup", "", see_cpu_2, &least);
	for_each_group(root, "/sys/fs/cgroup/unified", "", see_cpu_2, &least);
	return least;
}

typedef struct memory_limit {
	bool found;
	uint64_t limit, left;
} memory_limit;

/* Cached file content is given back before anybody is killed. */
static void note_memory(const char *root, const char *directory, uint64_t limit,
	const char *used_file, const char *cached_word, memory_limit *least)
{
	char stat[8192];
	uint64_t used = 0, cached = 0;
	if (limit >= NO_LIMIT || !number_in(root, directory, used_file, &used))
		return;
	if (read_in(root, directory, "memory.stat", stat, sizeof(stat)))
		dg__number_after(stat, cached_word, &cached);
	used -= cached < used ? cached : used;
	uint64_t left = used < limit ? limit - used : 0;
	if (!least->found || limit < least->limit)
		least->limit = limit;
	if (!least->found || left < least->left)
		least->left = left;
	least->found = true;
}

static void see_memory_1(const char *root, const char *directory, void *user)
{
	uint64_t limit;
	if (number_in(root, directory, "memory.limit_in_bytes", &limit))
		note_memory(root, directory, limit, "memory.usage_in_bytes", "total_inactive_file",
			user);
}

static void see_memory_2(const char *root, const char *directory, void *user)
{
	uint64_t limit;
	if (number_in(root, directory, "memory.max", &limit))
		note_memory(root, directory, limit, "memory.current", "inactive_file", user);
}

bool dg__cgroup_memory(const char *root, uint64_t *ret_limit, uint64_t *ret_left)
{
	memory_limit least = { 0 };
	for_each_group(root, "/sys/fs/cgroup/memory", "memory", see_memory_1, &least);
	for_each_group(root, "/sys/fs/cgroup", "", see_memory_2, &least);
	for_each_group(root, "/sys/fs/cgroup/unified", "", see_memory_2, &least);
	if (!least.found)
		return false;
	*ret_limit = least.limit;
	*ret_left = least.left;
	return true;
}
#else
typedef int dg__cgroup_is_linux_only; /* C allows no empty file */
#endif
