/*
 * Two vendors' drivers, one implementation: the calls of the one have the shapes of the other's. A
 * vendor is data (names, numbers) and a few adapters; backends/cuda and backends/rocm bring them.
 *
 * A driver is opened at the first enumerate() and kept; a context exists between open() and close()
 * only.
 */
#ifndef DEVGATE_BACKENDS_GPU_GPU_H
#define DEVGATE_BACKENDS_GPU_GPU_H

#include <pthread.h>
#include <stddef.h>

#include "backends/core/backend.h"
#include "backends/core/dynlib.h"

_Static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8, "device addresses are 64 bits wide");

#define DG_GPU_CALL(member, arguments) int(*member) arguments;
typedef struct dg__gpu_calls {
#include "backends/gpu/gpu_calls.def"
} dg__gpu_calls;
typedef struct dg__gpu_graph_calls {
#include "backends/gpu/gpu_graph_calls.def"
} dg__gpu_graph_calls;
typedef struct dg__gpu_rtc_calls {
#include "backends/gpu/gpu_rtc_calls.def"
} dg__gpu_rtc_calls;
#undef DG_GPU_CALL

#define DG__GPU_COUNT(table) (sizeof(table) / sizeof((table)[0]))

/** Attributes of a device; each vendor numbers them on its own. */
typedef enum dg__gpu_attribute {
	DG__GPU_UNITS, /* multiprocessors */
	DG__GPU_MAJOR,
	DG__GPU_MINOR,
	DG__GPU_INTEGRATED,
	DG__GPU_CACHE_BYTES,
	DG__GPU_MEMORY_KHZ,
	DG__GPU_BUS_BITS,
	DG__GPU_CLOCK_KHZ,
	DG__GPU_ATTRIBUTES
} dg__gpu_attribute;

/** Driver errors that mean the same with both. */
enum {
	DG__GPU_OK = 0,
	DG__GPU_NOMEM = 2,
	DG__GPU_NO_DEVICE = 100,
	DG__GPU_BAD_DEVICE = 101,
	DG__GPU_NO_IMAGE = 209,
	DG__GPU_NOT_FOUND = 500,
	DG__GPU_NOT_READY = 600,
	DG__GPU_NOTSUP = 801
};

/** Who a device is, as its driver says. */
typedef struct dg__gpu_identity {
	int device; /* the driver's handle */
	char uuid[64], pci[24]; /* "" where unknown */
	char parent[64]; /* UUID; "" where it is no part of another */
	bool partition;
	uint32_t units, major, minor;
	char architecture[32]; /* "sm_90", "gfx942" */
} dg__gpu_identity;

/** What the management library sees; members as in dg_telemetry, and the driver's version. */
typedef struct dg__gpu_look {
	dg_telemetry telemetry;
	char driver[32];
} dg__gpu_look;

/** A way to compile for a chip: options in the order in which to try them. */
typedef struct dg__gpu_target {
	const char *options[6]; /* NULL-terminated */
	char text[2][48]; /* what options point to */
} dg__gpu_target;

/** The most of something that a multiprocessor can do in a clock, generously. */
typedef struct dg__gpu_bound {
	dg__kernel_id kernel;
	double per_clock;
} dg__gpu_bound;

typedef struct dg__gpu dg__gpu;

/** A vendor. Libraries and tables end by NULL or have their count beside them. */
typedef struct dg__gpu_vendor {
	dg_variant variant;
	const char *company; /* "NVIDIA" */
	const char *driver; /* "CUDA": what the driver's version counts */
	const char *const *libraries;
	const dg__symbol *calls, *graph_calls, *rtc_calls;
	size_t call_count, graph_call_count, rtc_call_count;
	const char *const *rtc_libraries;
	const char *rtc_missing; /* what to do where no compiler is found */
	int attributes[DG__GPU_ATTRIBUTES];
	bool pairs; /* f32 and i16 take two items in a register */
	const char *const *visible; /* environment variables that hide devices; NULL-terminated */
	const dg__gpu_bound *bounds;
	size_t bound_count;

	/** Find what else the vendor needs in gpu->library; may leave it out. */
	dg_err (*load)(dg__gpu *gpu, dg_error *reterr);
	/** Name of a driver error; NULL where it has none. */
	const char *(*error_name)(const dg__gpu *gpu, int code);
	/** uuid, partition, parent, architecture; the rest is filled in. */
	void (*identify)(dg__gpu *gpu, dg__gpu_identity *identity);
	/** Make a context and have it current; give it back. */
	int (*retain)(dg__gpu *gpu, int device, void **ret_context);
	int (*use)(dg__gpu *gpu, int device, void *context);
	void (*release)(dg__gpu *gpu, int device, void *context);
	/** See what the device does. DG_ENOTSUP (no library), DG_ELOST, DG_EDRIVER. */
	dg_err (*look)(dg__gpu *gpu, const dg__gpu_identity *identity, dg__gpu_look *ret_look,
		dg_error *reterr);
	/** Ways to compile for a chip. @return how many, at most 3. */
	size_t (*targets)(
		dg__gpu *gpu, const dg__gpu_identity *identity, dg__gpu_target *ret_targets);
	/** Whether the chip can run an arithmetic kernel; says what it lacks. */
	dg_err (*supports)(
		const dg__gpu_identity *identity, dg__kernel_id kernel, dg_error *reterr);
	/** Versions as text: "13.0". */
	void (*version_text)(int version, char *buf, size_t size);
	/** A program made beforehand for the chip, or NULL; exact: needs no translation. */
	const void *(*image)(const dg__gpu_identity *identity, bool memory, bool exact);
} dg__gpu_vendor;

/** A driver in use. Zeroed but for vendor it is closed. */
struct dg__gpu {
	const dg__gpu_vendor *vendor;
	pthread_mutex_t lock; /* for opening it */
	dg__dynlib *library, *rtc_library, *side_library;
	dg__gpu_calls calls;
	dg__gpu_graph_calls graph;
	dg__gpu_rtc_calls rtc;
	bool ready, has_graph, rtc_tried, side_tried, has_side;
	dg_error rtc_error, side_error;
	int version;
	void *own; /* the vendor's, freed with it */
};

#define DG__GPU_INIT(the_vendor) \
	{ \
		.vendor = (the_vendor), .lock = PTHREAD_MUTEX_INITIALIZER \
	}

/** A module loaded for one part of a program. */
typedef struct dg__gpu_module {
	void *handle;
	dg_error error; /* code != DG_OK: it failed before */
	bool tried;
} dg__gpu_module;

struct dg__dev {
	dg__gpu *gpu;
	uint32_t index;
	dg__gpu_identity identity;
	void *context, *stream, *start, *end;
	uint64_t cache_bytes;
	double bus_bytes_per_s;
	dg__gpu_module modules[DG__KERNEL_COUNT];
	double clock_hz; /* seen while it worked; 0: not yet */
	uint64_t clock_at_ns;
};

struct dg__buf {
	uint64_t address, size;
};

struct dg__kernel {
	dg__kernel_id id;
	void *function, *ordered; /* ordered: WRITE where windows is 1; else NULL */
	bool arithmetic, tiles; /* tiles: a block for each */
	uint32_t blocks, threads, sums;
	uint64_t tile_bytes; /* memory kernels; else 0 */
};

/* gpu_driver.c */

/** Open the driver if it is not. DG_OK also where it has no device: then *ret_none is set. */
dg_err dg__gpu_ready(dg__gpu *gpu, bool *ret_none, dg_error *reterr) DG_MUST_CHECK;
/** Close everything: for tests. */
void dg__gpu_finish(dg__gpu *gpu);
/** An error of the driver's in a call, in words: its code and what was done. Never DG_OK. */
dg_err dg__gpu_failed(const dg__gpu *gpu, int code, const char *what, dg_error *reterr);
/** Open the run-time compiler if it is not; remembers a failure. */
dg_err dg__gpu_rtc_ready(dg__gpu *gpu, dg_error *reterr) DG_MUST_CHECK;

/* gpu_device.c */

dg_err dg__gpu_enumerate(const dg__backend *self, uint32_t *ret_count, dg_error *reterr);
dg_err dg__gpu_describe(
	const dg__backend *self, uint32_t index, dg_device_info *ret_info, dg_error *reterr);
dg_err dg__gpu_telemetry(
	const dg__backend *self, uint32_t index, dg_telemetry *ret_telemetry, dg_error *reterr);
/** Who device number index is. DG_ENODEVICE, DG_ELOST, DG_EDRIVER. */
dg_err dg__gpu_identify(dg__gpu *gpu, uint32_t index, dg__gpu_identity *ret_identity,
	dg_error *reterr) DG_MUST_CHECK;
/** An attribute's value, 0 where the driver does not know it. */
uint32_t dg__gpu_attribute_of(const dg__gpu *gpu, int device, dg__gpu_attribute attribute);
/** 16 bytes as "8-4-4-4-12" hex digits; "" where they are all alike, which is no identity. */
void dg__gpu_uuid_text(const unsigned char bytes[16], char text[64]);

/* gpu_memory.c */

dg_err dg__gpu_open(const dg__backend *self, uint32_t index, dg__dev **ret_dev, dg_error *reterr);
void dg__gpu_close(dg__dev *dev);
dg_err dg__gpu_room(dg__dev *dev, dg__room *ret_room, dg_error *reterr);
dg_err dg__gpu_buf_create(dg__dev *dev, uint64_t size_bytes, const dg__stop *stop,
	dg__buf **ret_buf, dg_error *reterr);
void dg__gpu_buf_destroy(dg__dev *dev, dg__buf *buf);
dg_err dg__gpu_buf_write(dg__dev *dev, dg__buf *buf, uint64_t offset, const void *data, size_t size,
	dg_error *reterr);
dg_err dg__gpu_buf_read(dg__dev *dev, const dg__buf *buf, uint64_t offset, void *data, size_t size,
	dg_error *reterr);
/** Have the device's context current on this thread. */
dg_err dg__gpu_use(dg__dev *dev, dg_error *reterr) DG_MUST_CHECK;

/* gpu_shapes.c */

dg_err dg__gpu_shapes(dg__dev *dev, const dg__ask *ask, dg__shape *ret_shapes, size_t *ret_count,
	dg_error *reterr);
dg_err dg__gpu_kernel_create(dg__dev *dev, dg__kernel_id id, const dg__shape *shape,
	dg__kernel **ret_kernel, dg_error *reterr);
void dg__gpu_kernel_destroy(dg__dev *dev, dg__kernel *kernel);

/* gpu_compile.c */

/** The program that holds a kernel, compiled and loaded once. DG_ENOTSUP, DG_EDRIVER (its log). */
dg_err dg__gpu_module_get(
	dg__dev *dev, dg__kernel_id id, void **ret_module, dg_error *reterr) DG_MUST_CHECK;

/* gpu_text.c: the programs, as text. NUL-terminated. */

extern const char dg__gpu_text_dialect[], dg__gpu_text_arith[], dg__gpu_text_memory[];

/* gpu_run.c */

dg_err dg__gpu_time(dg__dev *dev, dg__kernel *kernel, const dg__launch *launch,
	const dg__stop *stop, dg__timing *ret_timing, dg_error *reterr);
dg_err dg__gpu_observe(dg__dev *dev, dg__observation *ret_observation, dg_error *reterr);

/** The slots of a backend over this implementation. */
#define DG__GPU_BACKEND(the_name, the_gpu) \
	{ \
		.abi = DG__BACKEND_ABI, .name = (the_name), .user = (the_gpu), \
		.enumerate = dg__gpu_enumerate, .describe = dg__gpu_describe, \
		.telemetry = dg__gpu_telemetry, .open = dg__gpu_open, .close = dg__gpu_close, \
		.room = dg__gpu_room, .buf_create = dg__gpu_buf_create, \
		.buf_destroy = dg__gpu_buf_destroy, .buf_write = dg__gpu_buf_write, \
		.buf_read = dg__gpu_buf_read, .shapes = dg__gpu_shapes, \
		.kernel_create = dg__gpu_kernel_create, .kernel_destroy = dg__gpu_kernel_destroy, \
		.time = dg__gpu_time, .observe = dg__gpu_observe, \
	}

#endif
