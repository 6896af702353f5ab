/*
 * What the parts of the engine share: one run over several keys, and how one figure is probed.
 */
#ifndef DEVGATE_BACKENDS_CORE_ENGINE_RUN_H
#define DEVGATE_BACKENDS_CORE_ENGINE_RUN_H

#include "backends/core/engine.h"
#include "backends/core/expect.h"
#include "backends/core/pattern.h"
#include "backends/core/stats.h"

/** How long things take. */
typedef struct dg__pace {
	uint64_t warm_ns; /* once per run */
	uint64_t sample_ns; /* one sample of the figure */
	uint64_t search_sample_ns, search_ns; /* one sample of a shape; all shapes together */
	uint64_t budget_ns; /* of one key; working sets get half, they come many at a time */
	uint64_t sustained_ns;
	uint64_t limit_ns; /* of one key, hard: a device that takes longer hangs */
	uint64_t pool_bytes; /* wanted per buffer */
	dg__settle settle;
} dg__pace;

/** The two big buffers, filled with the pattern where they are read from. */
typedef struct dg__pool {
	uint64_t bytes; /* of each; 0: none yet */
	uint64_t cache_bytes;
	dg__buf *src, *dst;
	uint64_t at; /* where the next cold pass begins, so that it meets the oldest memory */
} dg__pool;

/** One call of dg__engine_measure(). */
typedef struct dg__run {
	const dg__backend *backend;
	uint32_t device;
	const dg__engine_options *options;
	dg__pace pace;
	bool quick;
	dg_device_info info;
	dg__dev *dev; /* NULL: not open */
	bool warm;
	dg__pool pool;
	dg__pattern *pattern; /* owned */
	dg__stop stop; /* for the key at hand */
	uint64_t soft_end_ns; /* when the key at hand has had its budget */
} dg__run;

typedef struct dg__probe dg__probe;

/** What differs between kinds of figures. */
typedef struct dg__probe_kind {
	/** Put count units into the launch. @return how many it really holds, 1 or more. */
	uint64_t (*scale)(dg__probe *probe, const dg__shape *shape, uint64_t count);
	/** Reset what a run changes; not timed. */
	dg_err (*arm)(dg__probe *probe, const dg__shape *shape, dg_error *reterr);
	/** Whether the run did all of its work. DG_EMISMATCH. */
	dg_err (*check)(dg__probe *probe, const dg__shape *shape, dg_error *reterr);
	/** Operations, or 4-byte elements, of one unit. */
	double (*unit_ops)(const dg__probe *probe, const dg__shape *shape);
	uint64_t prove_units; /* in the run that proves a shape */
} dg__probe_kind;

/** A figure to be found: a kernel, and how to run and check it. */
struct dg__probe {
	const dg__probe_kind *kind;
	dg__run *run;
	dg__ask ask;
	dg_dtype dtype; /* as kernels.def has it */
	dg__launch launch;
	dg__purpose purpose;
	uint64_t budget_ns;
	uint64_t
		/* memory: longer windows are cut while searching and proving; 0: not */
		window_limit;
	/* Kinds' own. */
	dg__buf *state, *src, *dst; /* owned by the probe, NULL where it has none */
	uint64_t state_bytes;
	unsigned char *host; /* owned; the state, on this side */
	dg__operands operands;
	uint64_t key_window; /* memory: the key's */
	uint64_t turn; /* of spot positions and values */
};

/** What came out. */
typedef struct dg__outcome {
	dg__shape shape;
	dg__stats stats; /* of one unit */
	uint64_t count; /* units in a sample */
	double unit_ops;
	bool settled, device_clock, clocks_disagree;
	double streaming_per_s, sustained_per_s; /* 0: not measured */
	double clock_before_hz, clock_after_hz; /* 0: not seen */
	dg__observation after;
	double busy_fraction;
	bool has_busy;
} dg__outcome;

/* engine_probe.c: kinds of figures. */

/** Arithmetic in dtype. DG_ENOTSUP, DG_ENOMEM, … */
dg_err dg__probe_arithmetic(
	dg__run *run, dg_dtype dtype, dg__probe *ret_probe, dg_error *reterr) DG_MUST_CHECK;
dg_err dg__probe_launch(dg__run *run, dg__probe *ret_probe, dg_error *reterr) DG_MUST_CHECK;
void dg__probe_finish(dg__probe *probe);
/** Room for so many bytes in state and host. */
dg_err dg__probe_state(dg__probe *probe, uint64_t bytes, dg_error *reterr) DG_MUST_CHECK;

/* engine_memory.c */

/** Memory, cold or resident. DG_ENOTSUP where so much does not fit. */
dg_err dg__probe_memory(
	dg__run *run, const dg_key *key, dg__probe *ret_probe, dg_error *reterr) DG_MUST_CHECK;

/* engine_pool.c */

/** Have the pool, of at least bytes in each buffer, with what access needs filled in. */
dg_err dg__pool_prepare(
	dg__run *run, dg_access access, uint64_t bytes, dg_error *reterr) DG_MUST_CHECK;
void dg__pool_finish(dg__run *run);
/** A buffer of pattern; stops as the run's key does. */
dg_err dg__pool_buffer(dg__run *run, uint64_t bytes, bool filled, dg__buf **ret_buf,
	dg_error *reterr) DG_MUST_CHECK;

/* engine_sample.c: how a figure is found. */

/** Search the shapes, then measure the best in full. */
dg_err dg__sample_probe(dg__probe *probe, dg__outcome *ret_outcome, dg_error *reterr) DG_MUST_CHECK;

/* engine_judge.c: what it is worth. */

/** Fill value in from what came out; refuse what cannot be. */
void dg__judge(
	const dg__run *run, const dg__probe *probe, const dg__outcome *outcome, dg_value *value);

#endif
