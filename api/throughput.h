/*
 * Throughput: what can be asked for (keys), what is measured (values with their evidence), and what
 * follows from it (rates, memory curve, roofline).
 */
#ifndef DEVGATE_THROUGHPUT_H
#define DEVGATE_THROUGHPUT_H

#include <devgate/settings.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dg_mode {
	DG_MODE_COMPUTE = 0, /**< ComputeDirect{dtype} */
	DG_MODE_CMMA = 1, /**< ComputeCmma{dtype, accumulator, m, n, k} */
	DG_MODE_MEMORY = 2, /**< Memory, MemoryRead, MemoryWrite: by access */
	DG_MODE_WORKING_SET = 3, /**< MemoryWorkingSet{access, bytes}: cold */
	DG_MODE_RESIDENT = 4, /**< MemoryResident{access, bytes}: stays in cache; ours */
	DG_MODE_LAUNCH = 5
} dg_mode;

typedef enum dg_access { DG_COPY = 0, DG_READ = 1, DG_WRITE = 2 } dg_access;

/** A key. Fields that its mode does not use are 0. Make it with dg_key_parse() or by hand. */
typedef struct dg_key {
	dg_mode mode;
	dg_dtype dtype; /**< COMPUTE, CMMA */
	dg_dtype accumulator; /**< CMMA */
	dg_access access; /**< MEMORY, WORKING_SET, RESIDENT */
	uint32_t m, n, k; /**< CMMA tile, each 1..65535 */
	uint64_t bytes; /**< WORKING_SET, RESIDENT: per buffer, 4..2^40, rounded down to elements */
} dg_key;

/** Longest short text of a key with NUL, in bytes. */
#define DG_KEY_TEXT_MAX 64
/** Most keys of one request. */
#define DG_KEYS_MAX 256
#define DG_WORKING_SET_MIN_BYTES 4u
#define DG_WORKING_SET_MAX_BYTES ((uint64_t)1 << 40)

/** Read short text: "compute:f32", "memory:read:65536:resident". DG_EKEY says what was expected. */
dg_err dg_key_parse(const char *text, dg_key *ret_key, dg_error *reterr) DG_MUST_CHECK;
/** Write the canonical short text; as snprintf. */
size_t dg_key_format(const dg_key *key, char *buf, size_t size);
/** Whether every field is in range for the mode. DG_EKEY. */
dg_err dg_key_check(const dg_key *key, dg_error *reterr) DG_MUST_CHECK;
bool dg_key_equal(const dg_key *a, const dg_key *b);
/** Whether values of the key count 4-byte elements. */
bool dg_key_is_memory(const dg_key *key);

typedef enum dg_status {
	DG_STATUS_OK = 0,
	DG_STATUS_UNSUPPORTED = 1, /**< the device cannot do this; reason says why */
	DG_STATUS_FAILED = 2, /**< it should, and did not; reason says why */
	DG_STATUS_REFUSED = 3 /**< measured, but not physically possible; reason says why */
} dg_status;

/** "ok", "unsupported", "failed", "refused". */
const char *dg_status_name(dg_status status);

/** Bits of dg_evidence.present and dg_evidence.flags. */
enum {
	DG_HAS_CLOCK = 1 << 0,
	DG_HAS_POWER = 1 << 1,
	DG_HAS_TEMPERATURE = 1 << 2,
	DG_HAS_SUSTAINED = 1 << 3,
	DG_HAS_STREAMING = 1 << 4,
	DG_HAS_DEVICE_TIME = 1 << 5,

	DG_FLAG_THROTTLED = 1 << 0, /**< the chip lowered its clock during the run */
	DG_FLAG_DISTURBED = 1 << 1, /**< other work shared the chip */
	DG_FLAG_UNSTABLE = 1 << 2, /**< samples did not settle before the time limit */
	DG_FLAG_CLOCKS_DISAGREE = 1 << 3 /**< device and host clock tell different times */
};

/** How a figure came about. Figures whose bit is not in present are unknown, not 0. */
typedef struct dg_evidence {
	uint32_t present;
	uint32_t flags;
	uint32_t samples; /**< timed runs that counted */
	uint32_t iterations; /**< iterations in each */
	uint64_t best_ns, median_ns; /**< of one iteration */
	double spread; /**< (median - best) / best; >= 0 */
	char clock_source[16]; /**< "host" or "device" */
	uint64_t working_set_bytes; /**< bytes that the kernel ranges over; 0 for none */
	char traffic[12]; /**< "read", "write", "read+write"; "" for none */
	char shape[64]; /**< what the search chose: "avx512 chains=12 workers=2" */
	double clock_hz; /**< observed during the run */
	double power_w;
	double temperature_celsius;
	double sustained_per_s; /**< ops (elements for memory) a second, held for about a second */
	double streaming_per_s; /**< the same with stores that bypass the cache */
	double busy_fraction; /**< share of the run that other work took; 0..1, for DISTURBED */
	char throttle_reason[64];
	char driver[64]; /**< name and version */
	char engine[16]; /**< version of the measuring engine */
	int64_t measured_at_ms; /**< Unix time, milliseconds */
	uint64_t elapsed_ms; /**< that measuring this key took */
} dg_evidence;

/** A value: one per key, in the keys' order. */
typedef struct dg_value {
	dg_key key;
	dg_status status;
	dg_err code; /**< DG_OK where status is OK */
	char reason[200]; /**< "" where status is OK */
	uint64_t ops_count; /**< of one iteration; 0 unless OK */
	uint64_t duration_ns; /**< of one iteration, the best; 0 unless OK */
	dg_evidence evidence;
} dg_value;

/**
 * ops_count / duration, in operations (or 4-byte elements) a second.
 *
 * @return false where it is undefined (duration 0); ret_per_s is then untouched.
 */
bool dg_value_rate(const dg_value *value, double *ret_per_s);
/** ops_count x 4 / duration, in bytes a second; false also where the key is no memory key. */
bool dg_value_bytes_rate(const dg_value *value, double *ret_bytes_per_s);

/** Room for any rate text with NUL, in bytes. */
#define DG_RATE_TEXT_MAX 48

/**
 * "60.1234 TOPS/s", "4.2834 Tbytes/s", and for Launch the time of each: "5.2000 us". Four decimals,
 * decimal prefixes; "-" where undefined. As snprintf.
 */
size_t dg_value_format(const dg_value *value, char *buf, size_t size);
/** per_s with a decimal prefix and a unit ("OPS/s", "bytes/s"); as snprintf. */
size_t dg_rate_format(double per_s, const char *unit, char *buf, size_t size);

/** A point of a memory curve. */
typedef struct dg_curve_point {
	uint64_t bytes; /**< working set per buffer */
	double bytes_per_s;
} dg_curve_point;

#define DG_CURVE_MAX 32
#define DG_CURVE_MIN_BYTES ((uint64_t)8 << 10)
#define DG_CURVE_MAX_BYTES ((uint64_t)512 << 20)

/** A memory curve: points of defined rate above 0, by rising bytes. */
typedef struct dg_curve {
	dg_access access;
	size_t count;
	dg_curve_point points[DG_CURVE_MAX];
} dg_curve;

/** The keys of a curve: powers of two from 8 KiB to 512 MiB, cold. @return how many. */
size_t dg_curve_keys(dg_access access, dg_key ret_keys[DG_CURVE_MAX]);
/** Gather a curve from values; those without a rate above 0 are dropped. */
void dg_curve_from_values(
	dg_access access, const dg_value *values, size_t count, dg_curve *ret_curve);
/**
 * Ceiling for a transfer of bytes: linear in log2(bytes) between the two neighbours, clamped at the
 * ends.
 *
 * @return false where the curve has no point.
 */
bool dg_curve_ceiling(const dg_curve *curve, uint64_t bytes, double *ret_bytes_per_s);

/** What a piece of work needs, and the peaks it is held against. */
typedef struct dg_roofline_input {
	double flops, bytes; /**< >= 0, finite */
	double flops_per_s, bytes_per_s; /**< peaks; > 0, finite */
	double seconds; /**< measured time of the work, > 0; 0: not given */
} dg_roofline_input;

typedef enum dg_bound { DG_BOUND_NONE = 0, DG_BOUND_COMPUTE = 1, DG_BOUND_MEMORY = 2 } dg_bound;

typedef struct dg_roofline {
	double compute_seconds, memory_seconds; /**< at the peak of each */
	double seconds; /**< the larger of the two */
	dg_bound bound; /**< the one that needs more; COMPUTE where they tie; NONE for no work */
	double fraction; /**< seconds / measured seconds, not clamped; 0 where none was given */
} dg_roofline;

/** "compute", "memory", "none". */
const char *dg_bound_name(dg_bound bound);
/** Williams, Waterman, Patterson 2009: time >= max(flops / peak, bytes / bandwidth). DG_EINVALID.
 * */
dg_err dg_roofline_compute(
	const dg_roofline_input *input, dg_roofline *ret_roofline, dg_error *reterr) DG_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
