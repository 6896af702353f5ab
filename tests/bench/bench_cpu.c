/*
 * The CPU's figures beside what ordinary programs reach, in one run: plain C loops that a compiler
 * makes the best of (sum, fill, triad), the library's memcpy and memset, and likwid-bench where it
 * is installed. All are run in turns, five times over; what is printed are medians, and the median
 * of the five ratios ours / theirs.
 *
 * bench_cpu [--json]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/core/clock.h"
#include "backends/core/engine.h"
#include "backends/core/registry.h"
#include "backends/cpu/topology.h"

#define ROUNDS 5
#define BYTES ((size_t)512 << 20) /* per buffer, of all threads together */
#define REPEATS 4
#define THREADS_MAX 256

/* Naive programs: every thread on its own part, the best of a few repeats. */

typedef void loop(void *dst, const void *src, const void *other, size_t bytes);

static volatile uint32_t sink;

static void sum(void *dst, const void *src, const void *other, size_t bytes)
{
	const uint32_t *words = src;
	uint32_t total = 0;
	(void)dst;
	(void)other;
	for (size_t i = 0; i < bytes / 4; i++)
		total += words[i];
	sink = total;
}

static void fill(void *dst, const void *src, const void *other, size_t bytes)
{
	double *to = dst;
	(void)src;
	(void)other;
	for (size_t i = 0; i < bytes / 8; i++)
		to[i] = 1.5;
}

static void triad(void *dst, const void *src, const void *other, size_t bytes)
{
	double *restrict a = dst;
	const double *b = src, *c = other;
	for (size_t i = 0; i < bytes / 8; i++)
		a[i] = b[i] + 3.0 * c[i];
}

static void library_copy(void *dst, const void *src, const void *other, size_t bytes)
{
	(void)other;
	memcpy(dst, src, bytes);
}

static void library_set(void *dst, const void *src, const void *other, size_t bytes)
{
	(void)src;
	(void)other;
	memset(dst, 7, bytes);
}

typedef struct part {
	loop *run;
	unsigned char *dst, *src, *other;
	size_t bytes;
	uint16_t cpu;
	pthread_barrier_t *barrier;
	uint64_t best_ns;
} part;

static void *run_part(void *user)
{
	part *p = user;
	dg__topology_pin(p->cpu);
	for (int r = 0; r < REPEATS; r++) {
		pthread_barrier_wait(p->barrier);
		uint64_t start = dg__clock_ns();
		p->run(p->dst, p->src, p->other, p->bytes);
		pthread_barrier_wait(p->barrier);
		uint64_t ns = dg__clock_ns() - start;
		if (!p->best_ns || ns < p->best_ns)
			p->best_ns = ns;
	}
	return NULL;
}

static unsigned char *buffers[3];

/* Bytes a second, where moved counts how many buffers are gone through. */
static double run_naive(loop *run, double moved, uint32_t threads, const dg__topology *t)
{
	pthread_t ids[THREADS_MAX];
	part parts[THREADS_MAX] = { { 0 } };
	pthread_barrier_t barrier;
	size_t each = BYTES / threads / 4096 * 4096;
	pthread_barrier_init(&barrier, NULL, threads);
	for (uint32_t i = 0; i < threads; i++) {
		parts[i] = (part){ run, buffers[0] + i * each, buffers[1] + i * each,
			buffers[2] + i * each, each, t->cpus[i], &barrier, 0 };
		if (pthread_create(&ids[i], NULL, run_part, &parts[i]) != 0)
			exit(1);
	}
	for (uint32_t i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	pthread_barrier_destroy(&barrier);
	return moved * (double)(each * threads) * 1e9 / (double)parts[0].best_ns;
}

/* likwid-bench: "MFlops/s: 1" or "MByte/s: 1" (decimal). 0: not installed, or not on this CPU. */
static double run_likwid(const char *test, const char *size, uint32_t threads)
{
	char command[256], line[256];
	double rate = 0;
	snprintf(command, sizeof(command), "likwid-bench -t %s -W N:%s:%u 2>/dev/null", test, size,
		(unsigned)threads);
	FILE *pipe = popen(command, "r");
	while (pipe && fgets(line, sizeof(line), pipe))
		if (!strncmp(line, "MFlops/s:", 9) || (rate <= 0 && !strncmp(line, "MByte/s:", 8)))
			rate = strtod(strchr(line, ':') + 1, NULL) * 1e6;
	if (pipe)
		pclose(pipe);
	return rate;
}

/* Ours, all of a round in one run, as a gateway measures them. */

static const char *const our_keys[] = { "compute:f32", "compute:f64", "memory:read", "memory:write",
	"memory", "memory:read:32768:resident" };
#define OURS (sizeof(our_keys) / sizeof(our_keys[0]))
enum { F32, F64, READ, WRITE, COPY, L1 };

static dg_value our_values[OURS];

static void run_ours(void)
{
	size_t count;
	dg_key keys[OURS];
	const dg__backend *const *all = dg__registry_all(&count);
	const dg__backend *cpu = dg__backend_find(all, count, "cpu");
	for (size_t i = 0; i < OURS; i++)
		if (dg_key_parse(our_keys[i], &keys[i], NULL))
			exit(1);
	if (dg__engine_measure(cpu, 0, keys, OURS, NULL, our_values, NULL))
		exit(1);
}

static double our_rate(int which, bool streaming)
{
	double rate = 0;
	const dg_value *value = &our_values[which];
	if (!dg_value_rate(value, &rate))
		return 0;
	if (streaming)
		rate = value->evidence.streaming_per_s;
	return dg_key_is_memory(&value->key) ? rate * 4 : rate;
}

typedef struct contest {
	const char *name;
	loop *naive; /* NULL: likwid */
	double moved;
	const char *test, *size;
	int ours;
	bool streaming, one_thread;
} contest;

static const contest contests[] = {
	{ "f32 / likwid avx512 fma", NULL, 0, "peakflops_sp_avx512_fma", "1MB", F32, false, false },
	{ "f64 / likwid avx512 fma", NULL, 0, "peakflops_avx512_fma", "1MB", F64, false, false },
	{ "read / likwid load", NULL, 0, "load_avx512", "2GB", READ, false, false },
	{ "write / likwid store", NULL, 0, "store_avx512", "2GB", WRITE, false, false },
	{ "copy / likwid copy", NULL, 0, "copy_avx512", "2GB", COPY, false, false },
	{ "streaming / likwid copy_mem", NULL, 0, "copy_mem_avx512", "2GB", COPY, true, false },
	{ "L1 read / likwid load", NULL, 0, "load_avx512", "32kB", L1, false, false },
	{ "read / plain sum", sum, 1, NULL, NULL, READ, false, false },
	{ "write / plain fill", fill, 1, NULL, NULL, WRITE, false, false },
	{ "write / memset", library_set, 1, NULL, NULL, WRITE, false, false },
	{ "copy / memcpy", library_copy, 2, NULL, NULL, COPY, false, false },
	{ "copy / memcpy, one thread", library_copy, 2, NULL, NULL, COPY, false, true },
	{ "copy / plain triad", triad, 3, NULL, NULL, COPY, false, false },
};
#define CONTESTS (sizeof(contests) / sizeof(contests[0]))

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(const double *values)
{
	double sorted[ROUNDS];
	memcpy(sorted, values, sizeof(sorted));
	qsort(sorted, ROUNDS, sizeof(sorted[0]), by_value);
	return sorted[ROUNDS / 2];
}

typedef struct result {
	double ours[ROUNDS], theirs[ROUNDS], ratios[ROUNDS];
} result;

static void run_contest(const contest *c, const dg__topology *t, int round, result *r)
{
	uint32_t threads = t->count < THREADS_MAX ? t->count : THREADS_MAX;
	r->ours[round] = our_rate(c->ours, c->streaming);
	r->theirs[round] = c->naive ? run_naive(c->naive, c->moved, c->one_thread ? 1 : threads, t)
				    : run_likwid(c->test, c->size, threads);
	if (r->theirs[round] > 0)
		r->ratios[round] = r->ours[round] / r->theirs[round];
}

static void print_json(const contest *c, const result *r, bool last)
{
	if (r->theirs[0] > 0)
		printf("{\"name\":\"%s\",\"ours\":%.6e,\"theirs\":%.6e,\"ratio\":%.4f}%s\n",
			c->name, median(r->ours), median(r->theirs), median(r->ratios),
			last ? "" : ",");
	else
		printf("{\"name\":\"%s\",\"ours\":%.6e,\"theirs\":null,\"ratio\":null}%s\n",
			c->name, median(r->ours), last ? "" : ",");
}

static void print_line(const contest *c, const result *r)
{
	if (r->theirs[0] > 0)
		printf("%-30s %9.2f G %9.2f G %8.3f\n", c->name, median(r->ours) / 1e9,
			median(r->theirs) / 1e9, median(r->ratios));
	else
		printf("%-30s %9.2f G %11s\n", c->name, median(r->ours) / 1e9, "not there");
}

static void print_all(const result *results, bool json)
{
	if (json)
		printf("{\"rounds\":%d,\"contests\":[\n", ROUNDS);
	else
		printf("%-30s %11s %11s %8s\n", "medians of five, a second", "ours", "theirs",
			"ratio");
	for (size_t i = 0; i < CONTESTS; i++)
		if (json)
			print_json(&contests[i], &results[i], i + 1 == CONTESTS);
		else
			print_line(&contests[i], &results[i]);
	if (json)
		printf("]}\n");
}

int main(int argc, char **argv)
{
	bool json = argc > 1 && !strcmp(argv[1], "--json");
	static result results[CONTESTS];
	dg__topology topology;
	dg__topology_read("", &topology);
	for (int i = 0; i < 3; i++) {
		buffers[i] = aligned_alloc((size_t)2 << 20, BYTES);
		if (!buffers[i])
			return 1;
		memset(buffers[i], i + 1, BYTES);
	}
	for (int round = 0; round < ROUNDS; round++) {
		run_ours();
		for (size_t i = 0; i < CONTESTS; i++)
			run_contest(&contests[i], &topology, round, &results[i]);
	}
	print_all(results, json);
	for (int i = 0; i < 3; i++)
		free(buffers[i]);
	return 0;
}
