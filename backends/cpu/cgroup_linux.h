/*
 * Limits that control groups of either version set on this process. Linux only.
 */
#ifndef DEVGATE_BACKENDS_CPU_CGROUP_LINUX_H
#define DEVGATE_BACKENDS_CPU_CGROUP_LINUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** CPUs granted, the least of this group and those above; 0: no limit. */
double dg__cgroup_cpus(const char *root);
/**
 * Memory: the limit that leaves least, and what is left below it.
 *
 * @return false where there is no limit.
 */
bool dg__cgroup_memory(const char *root, uint64_t *ret_limit, uint64_t *ret_left);

/** Read a small file below root, NUL-terminated. False where it cannot be read. */
bool dg__read_small(const char *root, const char *path, char *buf, size_t size);
/**
 * The unsigned numbers that a text begins with, separated by blanks.
 *
 * @param[out] ret_numbers  Room for max.
 * @return How many there are, at most max.
 */
size_t dg__numbers(const char *text, uint64_t *ret_numbers, size_t max);
/** The number that follows a word in a text, "MemTotal:"; false where there is none. */
bool dg__number_after(const char *text, const char *word, uint64_t *ret_number);

#endif
