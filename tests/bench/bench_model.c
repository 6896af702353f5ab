/*
 * Nanoseconds of the device model's hot calls, beside what the reference needs for the same.
 * `--json` prints JSON.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <devgate/device.h>

#include "api/registry.h"

#define DEVICES 1024u
#define REMOTES 256u
#define THREADS_MAX 4
#define ROUNDS 5
#define SLICE_NS 30000000ull

static dg_device devices[DEVICES], remotes[REMOTES];
static dg_id ids[DEVICES], remote_ids[REMOTES];
static atomic_uint sink;

typedef uint32_t work(uint32_t count);

static uint32_t do_encode(uint32_t count)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; i < count; i++) {
		dg_id id = dg_device_to_id(devices[i % DEVICES]);
		sum += id.type_id ^ id.index_id;
	}
	return sum;
}

static uint32_t do_decode(uint32_t count)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; i < count; i++) {
		dg_device device;
		sum += dg_device_from_id(ids[i % DEVICES], &device, NULL)
			       ? 1
			       : (uint32_t)device.index + device.kind;
	}
	return sum;
}

static uint32_t do_equal(uint32_t count)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; i < count; i++)
		sum += dg_device_equal(devices[i % DEVICES], devices[(i * 7 + 1) % DEVICES]);
	return sum;
}

static uint32_t do_format(uint32_t count)
{
	char text[DG_DEVICE_TEXT_MAX];
	uint32_t sum = 0;
	for (uint32_t i = 0; i < count; i++)
		sum += (uint32_t)dg_device_format(devices[i % DEVICES], text, sizeof(text)) +
		       (unsigned char)text[3];
	return sum;
}

static uint32_t do_parse(uint32_t count)
{
	static const char *const texts[] = { "cuda:1", "vulkan:discrete:3", "cpu", "webgpu:default",
		"autodiff(rocm:2,balanced)", "libtorch:cuda:7", "flex", "metal:integrated:65535" };
	uint32_t sum = 0;
	for (uint32_t i = 0; i < count; i++) {
		dg_device device = { 0 };
		sum += (uint32_t)dg_device_parse(texts[i % 8], &device, NULL) + device.index;
	}
	return sum;
}

/* From an id to the entry: what every use of a remote device begins with. */
static uint32_t do_resolve(uint32_t count)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; i < count; i++) {
		dg_device device;
		if (dg_device_from_id(remote_ids[i % REMOTES], &device, NULL))
			continue;
		const dg__remote *remote = dg__registry_get(device.index);
		sum += remote->index + (unsigned char)remote->address.host[0];
	}
	return sum;
}

/* From an address to its place, where it is known already. */
static uint32_t do_find(uint32_t count)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; i < count; i++) {
		const dg__remote *remote = dg__registry_get(remotes[i % REMOTES].index);
		dg_device device = { 0 };
		sum += (uint32_t)dg__registry_add(
			       &remote->address, 0, remote->index, &device, NULL) +
		       device.index;
	}
	return sum;
}

static const struct {
	const char *name;
	work *run;
	double reference_ns[2]; /* with one and two threads; 0: not known */
} units[] = {
	{ "encode", do_encode, { 2.7, 0 } },
	{ "decode", do_decode, { 2.1, 0 } },
	{ "equal", do_equal, { 2.5, 0 } },
	{ "format", do_format, { 0, 0 } },
	{ "parse", do_parse, { 0, 0 } },
	{ "remote resolve", do_resolve, { 25, 100 } },
	{ "remote find", do_find, { 0, 0 } },
};

#define UNITS (sizeof(units) / sizeof(units[0]))

static uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

typedef struct job {
	work *run;
	atomic_uint *arrived; /* at the start of a slice, over all slices */
	unsigned threads;
	double ns; /* of one call, the best of all slices */
} job;

/* A barrier; not every system has those of POSIX. */
static void wait_for_all(const job *j, unsigned round)
{
	atomic_fetch_add(j->arrived, 1);
	while (atomic_load(j->arrived) < (round + 1) * j->threads)
		sched_yield();
}

static void *measure(void *user)
{
	job *j = user;
	uint32_t count = 4096;
	double best = 1e18;
	atomic_fetch_add(&sink, j->run(count));
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t calls = 0, start, spent;
		wait_for_all(j, round);
		start = now_ns();
		do {
			atomic_fetch_add_explicit(&sink, j->run(count), memory_order_relaxed);
			calls += count;
			spent = now_ns() - start;
		} while (spent < SLICE_NS);
		double ns = (double)spent / (double)calls;
		best = ns < best ? ns : best;
	}
	j->ns = best;
	return NULL;
}

/* Time of a call as each of several threads sees it, on average over them. */
static double measure_threads(work *run, unsigned count)
{
	pthread_t threads[THREADS_MAX];
	job jobs[THREADS_MAX];
	atomic_uint arrived;
	double sum = 0;
	atomic_init(&arrived, 0);
	for (unsigned t = 0; t < count; t++) {
		jobs[t] = (job){ run, &arrived, count, 0 };
		if (pthread_create(&threads[t], NULL, measure, &jobs[t])) {
			fprintf(stderr, "a thread cannot be started\n");
			exit(1);
		}
	}
	for (unsigned t = 0; t < count; t++) {
		pthread_join(threads[t], NULL);
		sum += jobs[t].ns;
	}
	return sum / count;
}

static void need(dg_err err)
{
	if (err) {
		fprintf(stderr, "the devices cannot be made: %s\n", dg_err_title(err));
		exit(1);
	}
}

static void prepare(void)
{
	static const dg_variant variants[] = { DG_CPU, DG_CUDA, DG_VULKAN, DG_ROCM, DG_METAL,
		DG_FLEX, DG_LIBTORCH, DG_WEBGPU };
	char url[64];
	uint32_t random = 1;
	for (uint32_t i = 0; i < DEVICES; i++) {
		random = random * 1664525u + 1013904223u;
		dg_variant variant = variants[random >> 29];
		bool indexed = variant != DG_CPU && variant != DG_FLEX;
		need(dg_device_make(variant, DG_KIND_DISCRETE, indexed ? random >> 8 & 7 : 0,
			&devices[i], NULL));
		if (random >> 12 & 1)
			need(dg_device_autodiff(devices[i], DG_STRATEGY_NONE, &devices[i], NULL));
		ids[i] = dg_device_to_id(devices[i]);
	}
	for (uint32_t i = 0; i < REMOTES; i++) {
		snprintf(url, sizeof(url), "https://node%u.example:8443#%u", i / 8, i % 8);
		need(dg_device_parse(url, &remotes[i], NULL));
		remote_ids[i] = dg_device_to_id(remotes[i]);
	}
}

static void print_json(size_t unit, const double ns[3])
{
	printf("%s{\"call\":\"%s\",\"ns_1_thread\":%.3f,\"ns_2_threads\":%.3f,\"ns_4_threads\":%."
	       "3f",
		unit ? "," : "", units[unit].name, ns[0], ns[1], ns[2]);
	for (int i = 0; i < 2; i++) {
		double reference = units[unit].reference_ns[i];
		if (reference > 0)
			printf(",\"reference_ns_%d\":%.1f,\"ratio_%d\":%.2f", i + 1, reference,
				i + 1, reference / ns[i]);
	}
	printf("}");
}

static void print_row(size_t unit, const double ns[3])
{
	printf("%-15s %8.2f %8.2f %8.2f", units[unit].name, ns[0], ns[1], ns[2]);
	for (int i = 0; i < 2; i++) {
		double reference = units[unit].reference_ns[i];
		if (reference > 0)
			printf("   %6.1f %6.1fx", reference, reference / ns[i]);
		else
			printf("   %6s %7s", "-", "-");
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
	if (argc > 1 && !json) {
		fprintf(stderr, "usage: %s [--json]\n", argv[0]);
		return 2;
	}
	prepare();
	if (json)
		printf("{\"unit\":\"ns per call\",\"calls\":[");
	else
		printf("%-15s %8s %8s %8s   %14s   %14s\n", "ns per call", "1 thr", "2 thr",
			"4 thr", "reference 1thr", "reference 2thr");
	for (size_t unit = 0; unit < UNITS; unit++) {
		double ns[3];
		for (unsigned i = 0; i < 3; i++)
			ns[i] = measure_threads(units[unit].run, 1u << i);
		if (json)
			print_json(unit, ns);
		else
			print_row(unit, ns);
	}
	if (json)
		printf("]}\n");
	return 0;
}
