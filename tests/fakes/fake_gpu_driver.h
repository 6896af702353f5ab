/*
 * What the fake drivers of both GPU vendors share: a library includes it once, and gives it the
 * vendor's names. Device memory is host memory; kernels are looked up by name and done in plain C.
 *
 * FAKE_GPU in the environment is the script, read at each call:
 *	devices=N    how many there are (2)
 *	init=CODE    what starting the driver returns (0)
 *	zero_uuid=1  UUIDs are zeros
 *	mig=1        the devices are slices of one chip
 *	lost=N       the management library says that device N is gone
 *	hang=1       work never ends
 *	rtc=CODE     what compiling returns (0)
 *	launch=CODE  what launching returns (0)
 *	nvml=CODE reasons=BITS rsmi5=1  of the management libraries
 *
 * FAKE_F32_ITEMS is how many items of f32 a register of the vendor's kernel holds.
 */
#ifndef DEVGATE_TESTS_FAKES_FAKE_GPU_DRIVER_H
#define DEVGATE_TESTS_FAKES_FAKE_GPU_DRIVER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FAKE_UNITS 2
#ifndef FAKE_F32_ITEMS
#define FAKE_F32_ITEMS 1
#endif
#define FAKE_THREADS 256
#define FAKE_INVALID 1
#define FAKE_NO_DEVICE 100
#define FAKE_BAD_DEVICE 101
#define FAKE_NOT_FOUND 500
#define FAKE_NOT_READY 600

static inline long fake_script(const char *name, long otherwise)
{
	const char *script = getenv("FAKE_GPU");
	const char *at = script ? strstr(script, name) : NULL;
	return at && at[strlen(name)] == '=' ? strtol(at + strlen(name) + 1, NULL, 10) : otherwise;
}

static inline int fake_count(void)
{
	return (int)fake_script("devices", 2);
}

/* Device numbers and addresses rise together, UUIDs do not: nothing can be inferred. */
static inline void fake_uuid(int device, unsigned char bytes[16])
{
	for (int i = 0; i < 16; i++)
		bytes[i] =
			fake_script("zero_uuid", 0) ? 0 : (unsigned char)(0xd0 - 0x20 * device + i);
}

static inline void fake_uuid_text(int device, char text[40])
{
	unsigned char b[16];
	fake_uuid(device, b);
	snprintf(text, 40, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		b[13], b[14], b[15]);
}

static inline void fake_pci(int device, char *text, size_t size)
{
	snprintf(text, size, "0000:%02X:00.0", (unsigned)(0x17 + device * 0x10));
}

static inline uint64_t fake_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

typedef struct fake_function {
	char name[32];
} fake_function;

typedef struct fake_event {
	uint64_t at_ns;
} fake_event;

/* A graph is a list of launches; what is captured is not run. */
typedef struct fake_graph {
	fake_function *function;
	void **arguments;
	unsigned grid, count;
} fake_graph;
static fake_graph *fake_capturing;

/* As in backends/gpu/kernels/memory.cu. */
typedef struct fake_move {
	uint64_t span;
	uint32_t spans, pool, first, stride, tiles, window, inverse, value, blocks;
} fake_move;

static inline uint32_t fake_sum(const unsigned char *src, size_t size)
{
	uint32_t sum = 0, word;
	for (size_t i = 0; i < size; i += 4) {
		memcpy(&word, src + i, 4);
		sum += word;
	}
	return sum;
}

/* Spans begin at multiples of 256 bytes, windows have as many: a piece is of one pass. */
static inline void fake_memory(const char *name, void **arguments)
{
	unsigned char *dst = *(unsigned char **)arguments[0];
	const unsigned char *src = *(unsigned char **)arguments[1];
	uint32_t *sums = *(uint32_t **)arguments[2];
	const fake_move *m = arguments[4];
	for (uint64_t s = 0; s < m->spans; s++)
		for (uint64_t at = 0; at < m->span; at += 256) {
			uint64_t offset = (m->first + s * m->stride + at / 256) % m->pool * 256;
			uint64_t pass = m->window ? at / 256 / m->window : s;
			size_t size = m->span - at < 256 ? (size_t)(m->span - at) : 256;
			if (strstr(name, "write"))
				memset(dst + offset, (int)((m->value + pass) & 0xff), size);
			else if (strstr(name, "copy"))
				memcpy(dst + offset, src + offset, size);
			else
				sums[offset / 256 % *(uint32_t *)arguments[3]] +=
					fake_sum(src + offset, size);
		}
}

static inline bool fake_arithmetic(const char *name, void **arguments)
{
	void *state = *(void **)arguments[0];
	uint64_t steps = *(uint64_t *)arguments[1], a = *(uint64_t *)arguments[2],
		 b = *(uint64_t *)arguments[3];
	const char *chains = strrchr(name, '_');
	uint64_t items = (uint64_t)strtol(chains + 1, NULL, 10) * *(uint32_t *)arguments[4];
	if (!strncmp(name, "arith_f32", 9))
		items *= FAKE_F32_ITEMS;
	for (uint64_t i = 0; i < items; i++) {
		if (!strncmp(name, "arith_f32", 9)) {
			float x = ((float *)state)[i], fa, fb;
			memcpy(&fa, &a, 4);
			memcpy(&fb, &b, 4);
			for (uint64_t n = 0; n < steps; n++)
				x = fmaf(x, fa, fb);
			((float *)state)[i] = x;
		} else if (!strncmp(name, "arith_i32", 9)) {
			uint32_t x = ((uint32_t *)state)[i];
			for (uint64_t n = 0; n < steps; n++)
				x *= (uint32_t)a;
			((uint32_t *)state)[i] = x;
		} else {
			return false;
		}
	}
	return true;
}

static inline bool fake_known(const char *name)
{
	static const char *const known[] = { "empty_", "read_", "reread_", "write_", "rewrite_",
		"copy_", "recopy_", "tileread_", "tilewrite_", "tilecopy_", "arith_f32_",
		"arith_i32_" };
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strncmp(name, known[i], strlen(known[i])))
			return true;
	return false;
}

static inline int fake_launch(void *function, unsigned grid, void **arguments)
{
	fake_function *f = function;
	if (fake_script("launch", 0))
		return (int)fake_script("launch", 0);
	if (!grid)
		return FAKE_INVALID;
	if (fake_capturing) {
		*fake_capturing = (fake_graph){ f, arguments, grid, fake_capturing->count + 1 };
		return 0;
	}
	if (!strncmp(f->name, "empty", 5))
		++**(uint32_t **)arguments[0];
	else if (!strncmp(f->name, "arith", 5))
		return fake_arithmetic(f->name, arguments) ? 0 : FAKE_INVALID;
	else
		fake_memory(f->name, arguments);
	return 0;
}

static inline int fake_capture_begin(void)
{
	fake_capturing = calloc(1, sizeof(*fake_capturing));
	return fake_capturing ? 0 : 2;
}

static inline int fake_capture_end(void **ret_graph)
{
	*ret_graph = fake_capturing;
	fake_capturing = NULL;
	return 0;
}

static inline int fake_instantiate(void **ret_executable, const void *graph)
{
	fake_graph *copy = malloc(sizeof(*copy));
	if (!copy)
		return 2;
	memcpy(copy, graph, sizeof(*copy));
	*ret_executable = copy;
	return 0;
}

static inline int fake_graph_launch(void *executable)
{
	const fake_graph *g = executable;
	int code = 0;
	for (unsigned i = 0; i < g->count && !code; i++)
		code = fake_launch(g->function, g->grid, g->arguments);
	return code;
}

/* Functions belong to their module, and are never given back. */
static inline int fake_get_function(void **ret_function, const char *name)
{
	static fake_function functions[128];
	size_t at = 0;
	if (!fake_known(name))
		return FAKE_NOT_FOUND;
	while (at < 127 && functions[at].name[0] && strcmp(functions[at].name, name) != 0)
		at++;
	snprintf(functions[at].name, sizeof(functions[at].name), "%s", name);
	*ret_function = &functions[at];
	return 0;
}

static inline int fake_elapsed(float *ret_ms, const void *from, const void *to)
{
	*ret_ms = (float)((double)(((const fake_event *)to)->at_ns -
				   ((const fake_event *)from)->at_ns) /
			  1e6);
	return 0;
}

#endif
