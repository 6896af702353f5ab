/*
 * A backend made of a script: it computes what kernels.def asks for on a few items, tells whatever
 * time the script says, and fails in the way and at the moment the script says.
 */
#ifndef DEVGATE_TESTS_FAKES_FAKE_BACKEND_H
#define DEVGATE_TESTS_FAKES_FAKE_BACKEND_H

#include "backends/core/backend.h"

#define DG__FAKE_DEVICES_MAX 8

typedef enum dg__fake_fault {
	DG__FAKE_NONE = 0,
	DG__FAKE_WRONG, /* one bit of the output is wrong */
	DG__FAKE_SHORT, /* half of the steps or passes are left out */
	DG__FAKE_LAZY, /* nothing is computed at all */
	DG__FAKE_HANG, /* waits until it is told to stop */
	DG__FAKE_HANG_HARD, /* waits for ever, whatever it is told */
	DG__FAKE_FAIL, /* DG_EDRIVER */
	DG__FAKE_LOSE, /* DG_ELOST, from then on */
	DG__FAKE_CRASH, /* the process ends by SIGSEGV */
	DG__FAKE_NOMEM /* no buffer can be had */
} dg__fake_fault;

/**
 * The script and what has become of it. Fill with dg__fake_init(), then change what is to differ.
 */
typedef struct dg__fake {
	dg__backend backend; /* pass its address to the engine */
	/* Script. */
	uint32_t devices; /* 0..DG__FAKE_DEVICES_MAX */
	dg_err enumerate; /* what enumerate() returns; DG_OK */
	uint32_t detect_sleep_ms; /* enumerate() takes so long */
	dg__fake_fault fault;
	dg__kernel_id fault_kernel; /* the kernel it strikes; DG__KERNEL_COUNT: any */
	uint32_t fault_after; /* runs of that kernel that go well before */
	double step_ns; /* of one step of all items */
	double byte_ns; /* of one byte moved */
	double launch_ns; /* of one launch, on top */
	double jitter; /* each sample takes up to this fraction longer, in a fixed pattern */
	double shape_factor[3]; /* three shapes, each so many times as slow */
	bool device_clock; /* tells device time, which is half of the host's */
	bool device_lies; /* tells a device time twice the host's */
	double bound_per_s; /* of each shape; 0: none */
	double clock_hz; /* 0: cannot be observed */
	double clock_after_hz; /* from the second look at a key on; 0: as clock_hz */
	double other_per_look_s; /* other work grows by so much between two looks */
	bool real_time; /* runs take as long as they say they do */
	uint64_t room_bytes, cache_bytes;
	uint32_t compute_only; /* 1: has no memory kernels */
	/* Seen. */
	uint32_t opened, closed, buffers, kernels; /* buffers and kernels now alive */
	uint32_t runs[DG__KERNEL_COUNT];
	uint32_t looks;
	bool lost;
} dg__fake;

/** A backend named "fake" with one well-behaved device, cuda:0. */
void dg__fake_init(dg__fake *fake);

#endif
