/*
 * What a backend's devices do, key by key, with the evidence on the same line.
 *
 * bench_gpu BACKEND [KEY...]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/core/engine.h"
#include "backends/core/registry.h"

#define KEYS_MAX 64

static const char *const usual[] = { "compute:f64", "compute:f32", "compute:f16", "compute:bf16",
	"compute:i64", "compute:i32", "compute:i16", "compute:i8", "memory:read", "memory:write",
	"memory", "memory:read:65536", "memory:write:65536", "memory:copy:65536",
	"memory:read:8192", "memory:copy:8388608", "memory:read:1048576:resident",
	"memory:write:1048576:resident", "memory:copy:1048576:resident", "launch" };

static void print_value(const dg_value *v)
{
	char key[DG_KEY_TEXT_MAX], rate[DG_RATE_TEXT_MAX];
	const dg_evidence *e = &v->evidence;
	dg_key_format(&v->key, key, sizeof(key));
	if (v->status != DG_STATUS_OK) {
		printf("%-30s %-12s %s\n", key, dg_status_name(v->status), v->reason);
		return;
	}
	dg_value_format(v, rate, sizeof(rate));
	printf("%-30s %-22s %-26s %5.0f MHz %4.0f W  spread %.4f  %3" PRIu32 " samples  %4" PRIu64
	       " ms  flags %" PRIx32 " %s\n",
		key, rate, e->shape, e->clock_hz / 1e6, e->power_w, e->spread, e->samples,
		e->elapsed_ms, e->flags, e->throttle_reason);
}

static void print_device(const dg_device_info *info)
{
	printf("%s | %s | %s | %s\n  uuid %s pci %s parent %s hardware %s\n  %u units, %" PRIu64
	       " MiB, %" PRIu64 " MiB free\n",
		info->name, info->vendor, info->architecture, info->driver, info->uuid, info->pci,
		info->parent, info->hardware, (unsigned)info->units, info->total_bytes >> 20,
		info->free_bytes >> 20);
}

static int measure(const dg__backend *backend, uint32_t device, const dg_key *keys, size_t count)
{
	dg_value values[KEYS_MAX];
	dg_error error = { 0 };
	dg_err err = dg__engine_measure(backend, device, keys, count, NULL, values, &error);
	for (size_t i = 0; i < count; i++)
		print_value(&values[i]);
	if (err)
		fprintf(stderr, "%s\n", error.text);
	return err != DG_OK;
}

int main(int argc, char **argv)
{
	size_t backends, count = 0;
	const dg__backend *const *all = dg__registry_all(&backends);
	const dg__backend *backend = dg__backend_find(all, backends, argc > 1 ? argv[1] : "cuda");
	const char *const *names = argc > 2 ? (const char *const *)argv + 2 : usual;
	size_t wanted = argc > 2 ? (size_t)argc - 2 : sizeof(usual) / sizeof(usual[0]);
	dg_key keys[KEYS_MAX];
	dg_error error = { 0 };
	dg__device_list list = { 0 };
	for (; count < wanted && count < KEYS_MAX; count++)
		if (dg_key_parse(names[count], &keys[count], &error) != DG_OK) {
			fprintf(stderr, "%s: %s\n", names[count], error.text);
			return 2;
		}
	if (!backend || dg__engine_detect(backend, &list, &error) != DG_OK || !list.count) {
		printf("%s: %s\n", argc > 1 ? argv[1] : "cuda",
			backend ? error.text : "no such backend");
		return 77;
	}
	int failed = 0;
	for (uint32_t i = 0; i < list.count; i++) {
		print_device(&list.entries[i].info);
		failed |= measure(backend, i, keys, count);
	}
	free(list.entries);
	return failed;
}
