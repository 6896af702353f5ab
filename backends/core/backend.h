/*
 * What a backend is: a small compute driver that finds devices, keeps buffers, and runs the kernels
 * of kernels.def when told. It never decides how often, how long or what a run was worth: that is
 * the engine's (engine.h). Every slot is there; one that a backend cannot serve returns DG_ENOTSUP
 * and says what the device lacks.
 *
 * Unless a slot says otherwise: outputs are untouched on failure, reterr may be NULL, the caller
 * serialises calls on one device, and a call that waits for a device ends by its dg__stop.
 */
#ifndef DEVGATE_BACKENDS_CORE_BACKEND_H
#define DEVGATE_BACKENDS_CORE_BACKEND_H

#include <stdatomic.h>

#include <devgate/info.h>

/** Layout of dg__backend; the registry refuses any other. */
#define DG__BACKEND_ABI 1u

/** Kernels, as kernels.def lists and defines them. */
typedef enum dg__kernel_id {
#define DG_KERNEL(NAME, name, dtype) DG__KERNEL_##NAME,
#include "backends/core/kernels.def"
#undef DG_KERNEL
	DG__KERNEL_COUNT
} dg__kernel_id;

/** What a step of an arithmetic kernel computes; kernels.def defines each. */
typedef enum dg__step {
	DG__STEP_FMA = 0, /* x = x * a + b */
	DG__STEP_MUL = 1, /* x = x * a */
	DG__STEP_DOT2 = 2, /* 32-bit x += a0*b0 + a1*b1 */
	DG__STEP_DOT4 = 3, /* 32-bit x += a0*b0 + … + a3*b3 */
	DG__STEP_ACC = 4 /* x = x + a * b */
} dg__step;

#define DG__SHAPE_TEXT_MAX 48
/** Most shapes a backend offers for one kernel. */
#define DG__SHAPES_PER_KERNEL 64

/**
 * One way to run a kernel: a vector width, a number of chains, a number of workers or blocks. The
 * engine tries the offered ones and keeps the best.
 */
typedef struct dg__shape {
	char text[DG__SHAPE_TEXT_MAX]; /* "avx512 chains=12 workers=2", for the evidence */
	uint32_t code[4]; /* the backend's own */
	dg__step step; /* arithmetic */
	uint32_t items; /* 4-byte sums of READ, independent items of arithmetic; 1..2^26 */
	bool streaming; /* stores bypass the caches: a figure of its own */
	/*
	 * The most that the hardware could do, generously: operations (bytes, for memory) per clock
	 * of dg__observation.clock_hz, and per second whatever the clock. 0: not known.
	 */
	double bound_per_clock, bound_per_s;
} dg__shape;

/** What shapes are asked for. */
typedef struct dg__ask {
	dg__kernel_id kernel;
	uint64_t window_bytes; /* memory kernels: of one pass; else 0 */
	bool resident; /* memory kernels: the same window again and again */
} dg__ask;

/** When to give up. A call that waits looks at it at least every 50 ms. */
typedef struct dg__stop {
	uint64_t deadline_ns; /* on dg__clock_ns(); 0: none */
	const atomic_bool *cancel; /* NULL: cannot be cancelled */
} dg__stop;

/** Memory that may be used without harm to anybody else. */
typedef struct dg__room {
	uint64_t total_bytes; /* all buffers together, those that exist not counted */
	uint64_t buffer_bytes; /* one buffer */
	uint64_t cache_bytes; /* all last-level caches in the way together; 0: not known */
} dg__room;

typedef struct dg__dev dg__dev;
typedef struct dg__buf dg__buf;
typedef struct dg__kernel dg__kernel;

/** A run of a kernel. Members not used by it are 0; kernels.def says which it uses. */
typedef struct dg__launch {
	dg__buf *state; /* items of arithmetic, sums of READ, counter of EMPTY */
	dg__buf *src, *dst; /* memory kernels */
	uint64_t steps; /* arithmetic: steps of each item in one launch */
	uint64_t a, b; /* arithmetic: operands, bit patterns of the item's type in the low bits */
	uint64_t window_bytes; /* memory: bytes of one pass, a multiple of 4 */
	uint64_t stride_bytes; /* memory: from one window to the next, a multiple of 256 */
	uint64_t windows; /* memory: how many; pass p moves window (first + p) % windows */
	uint64_t first, passes;
	uint32_t value; /* WRITE: pass p writes bytes of (value + p) % 256 */
	uint32_t repeat; /* launches, one after the other, all timed together; 1.. */
	bool graph; /* the launches as one recorded graph; DG_ENOTSUP where there is none */
} dg__launch;

/** How long it took. */
typedef struct dg__timing {
	uint64_t host_ns; /* from handing over to having the end; > 0 */
	bool has_device;
	uint64_t device_ns; /* by the device's own clock, where it has one */
} dg__timing;

/** What can be seen of a device while it works. Members whose bit is not in present are unknown. */
typedef struct dg__observation {
	uint32_t present; /* DG__SEEN_* */
	double clock_hz;
	double temperature_celsius, power_w;
	/*
	 * Seconds, counted from some start, in which others had the device to themselves: other
	 * processes and, on a virtual machine, other guests. Half of the cores busy for one second
	 * is half a second.
	 */
	double other_s;
	char throttle_reason[64]; /* "" where not throttled */
} dg__observation;

enum {
	DG__SEEN_CLOCK = 1 << 0,
	DG__SEEN_TEMPERATURE = 1 << 1,
	DG__SEEN_POWER = 1 << 2,
	DG__SEEN_OTHER = 1 << 3,
	DG__SEEN_THROTTLE = 1 << 4
};

typedef struct dg__backend dg__backend;

struct dg__backend {
	uint32_t abi; /* DG__BACKEND_ABI */
	const char *name; /* as in registry.def: [a-z0-9], at most 15 */
	void *user; /* the backend's own; fakes keep their script here */

	/**
	 * Count the devices; looks again at each call.
	 *
	 * @return DG_OK (0 devices: the driver has none), DG_ENODRIVER, DG_EDRIVER, DG_ENOMEM; the
	 *         error says what was looked for where.
	 */
	dg_err (*enumerate)(const dg__backend *self, uint32_t *ret_count, dg_error *reterr);

	/**
	 * Describe a device, without its gateway index; wakes nothing.
	 *
	 * @param index  Driver's present order, as enumerate() last counted.
	 * @return DG_OK, DG_ENODEVICE, DG_ELOST, DG_EDRIVER.
	 */
	dg_err (*describe)(const dg__backend *self, uint32_t index, dg_device_info *ret_info,
		dg_error *reterr);

	/**
	 * What it does at this moment; wakes nothing. DG_ENODEVICE, DG_ELOST, DG_EDRIVER,
	 * DG_ENOTSUP.
	 */
	dg_err (*telemetry)(const dg__backend *self, uint32_t index, dg_telemetry *ret_telemetry,
		dg_error *reterr);

	/**
	 * Make a device ready for work.
	 *
	 * @param[out] ret_dev  Owned; close().
	 * @return DG_OK, DG_ENODEVICE, DG_ELOST, DG_EDRIVER, DG_ENOMEM.
	 */
	dg_err (*open)(
		const dg__backend *self, uint32_t index, dg__dev **ret_dev, dg_error *reterr);
	/** Give it back; buffers and kernels are destroyed before. NULL is fine. */
	void (*close)(dg__dev *dev);

	/** How much memory there is to use now. DG_OK, DG_ELOST, DG_EDRIVER. */
	dg_err (*room)(dg__dev *dev, dg__room *ret_room, dg_error *reterr);
	/**
	 * Allocate, all bytes backed by memory of the device.
	 *
	 * @param size_bytes  1..room.buffer_bytes.
	 * @param stop  Borrowed for the call.
	 * @param[out] ret_buf  Owned; buf_destroy(), before close(). Content undefined.
	 * @return DG_OK, DG_ENOMEM, DG_ECANCELLED, DG_ETIMEOUT, DG_ELOST, DG_EDRIVER.
	 */
	dg_err (*buf_create)(dg__dev *dev, uint64_t size_bytes, const dg__stop *stop,
		dg__buf **ret_buf, dg_error *reterr);
	void (*buf_destroy)(dg__dev *dev, dg__buf *buf);
	/** Copy into a buffer; done when it returns. The range is inside the buffer. */
	dg_err (*buf_write)(dg__dev *dev, dg__buf *buf, uint64_t offset, const void *data,
		size_t size, dg_error *reterr);
	/** Copy out of a buffer. The range is inside the buffer. */
	dg_err (*buf_read)(dg__dev *dev, const dg__buf *buf, uint64_t offset, void *data,
		size_t size, dg_error *reterr);

	/**
	 * The shapes worth trying for a kernel, most promising first.
	 *
	 * @param[out] ret_shapes  Room for DG__SHAPES_PER_KERNEL.
	 * @return DG_OK with at least one, DG_ENOTSUP (says what the device lacks), DG_ELOST.
	 */
	dg_err (*shapes)(dg__dev *dev, const dg__ask *ask, dg__shape *ret_shapes, size_t *ret_count,
		dg_error *reterr);

	/**
	 * Make a kernel ready in one of those shapes.
	 *
	 * @param[out] ret_kernel  Owned; kernel_destroy(), before close().
	 * @return DG_OK, DG_ENOTSUP, DG_ENOMEM, DG_ELOST, DG_EDRIVER (with the compiler's words).
	 */
	dg_err (*kernel_create)(dg__dev *dev, dg__kernel_id id, const dg__shape *shape,
		dg__kernel **ret_kernel, dg_error *reterr);
	void (*kernel_destroy)(dg__dev *dev, dg__kernel *kernel);

	/**
	 * Run launch->repeat launches and wait for the last.
	 *
	 * @return DG_OK, DG_ETIMEOUT, DG_ECANCELLED (the device stands still again or will: it may
	 *         be closed), DG_ELOST, DG_EDRIVER, DG_ENOTSUP (graph).
	 */
	dg_err (*time)(dg__dev *dev, dg__kernel *kernel, const dg__launch *launch,
		const dg__stop *stop, dg__timing *ret_timing, dg_error *reterr);

	/**
	 * See clock, temperature and other load now; may take 5 ms of the device's time.
	 *
	 * @return DG_OK, DG_ENOTSUP (nothing can be seen), DG_ELOST, DG_EDRIVER.
	 */
	dg_err (*observe)(dg__dev *dev, dg__observation *ret_observation, dg_error *reterr);
};

#endif
