/*
 * What crosses the wire: every request and reply of REST, every frame of the worker protocol, as a
 * struct with an encoder and a decoder. The only code that knows JSON.
 *
 * Encoders give an owned, NUL-terminated text of compact JSON (free it with free()) and its
 * length, or DG_ENOMEM, or DG_EINTERNAL for an ops_count above INT64_MAX, which JSON readers cannot
 * hold (other counts are then written as INT64_MAX). NaN and infinities are written as null.
 *
 * Decoders take untrusted bytes (no NUL needed): DG_EJSON for malformed JSON with line and column,
 * DG_EFIELD with the path of the field and what was expected, DG_ETOOMANY beyond a limit. Unknown
 * fields are ignored; numbers are range-checked; nesting deeper than DG__JSON_DEPTH, duplicate keys
 * and strings with NUL are refused. Neither touches its result on failure, unless it says
 * otherwise. Threads: safe. Blocks: no.
 */
#ifndef DEVGATE_API_WIRE_H
#define DEVGATE_API_WIRE_H

#include <devgate/info.h>

#define DG__JSON_DEPTH 32
#define DG__WIRE_MAX_BYTES ((size_t)8 << 20) /* longest document a decoder reads */
#define DG__BACKENDS_MAX 16
#define DG__DEVICES_MAX 1024
#define DG__IDS_MAX 1024 /* items of ids/encode and ids/decode */

typedef struct dg__json_text {
	char *text; /* owned; free() */
	size_t length;
} dg__json_text;

/* Problems (RFC 9457): {"type","title","status","detail","code"[,"native_code","origin"]}. */

dg_err dg__wire_encode_problem(const dg_error *error, dg__json_text *ret_text) DG_MUST_CHECK;
/**
 * Turn a reply that is no success into an error; never fails: a body that is no problem document
 * maps by status, with up to 200 bytes of printable text kept.
 */
void dg__wire_decode_problem(int status, const char *body, size_t length, dg_error *ret_error);

/* The gateway. */

typedef enum dg__backend_state {
	DG__BACKEND_DETECTING = 0,
	DG__BACKEND_READY = 1, /* found at least one device */
	DG__BACKEND_EMPTY = 2, /* driver there, no device */
	DG__BACKEND_MISSING = 3, /* driver not there */
	DG__BACKEND_FAILED = 4, /* driver failed, hung or crashed */
	DG__BACKEND_DISABLED = 5 /* not asked for */
} dg__backend_state;

typedef struct dg__backend_status {
	char name[16];
	dg__backend_state
		state; /* "detecting", "ready", "empty", "missing", "failed", "disabled" */
	char reason[200]; /* "" where READY */
	uint32_t devices;
	bool has_init_ms;
	uint64_t init_ms; /* detection took */
	int64_t recovered_at_ms; /* Unix time of the last recovery; 0: never failed (JSON null) */
} dg__backend_status;

typedef struct dg__gateway {
	char id[40]; /* of this gateway's state */
	char host[40];
	char node[256]; /* name of the node: --node-name, NODE_NAME, else the host name */
	char version[32];
	int64_t started_at_ms;
	bool ready;
	char state_problem[200]; /* why the state cannot be written; "" (JSON null): it can */
	size_t backend_count;
	dg__backend_status backends[DG__BACKENDS_MAX];
	uint64_t max_body_bytes, max_header_bytes;
	uint32_t max_keys, max_ids, max_json_depth, max_wait_s, max_queue, max_connections;
} dg__gateway;

dg_err dg__wire_encode_gateway(const dg__gateway *gateway, dg__json_text *ret_text) DG_MUST_CHECK;
dg_err dg__wire_decode_gateway(
	const char *json, size_t length, dg__gateway *ret_gateway, dg_error *reterr) DG_MUST_CHECK;

/* Devices. */

typedef struct dg__device_entry {
	dg_device_info info;
	dg_settings settings; /* size 0: not known */
	uint32_t driver_index; /* place in its driver's present order; not on the wire */
} dg__device_entry;

typedef struct dg__device_list {
	size_t count;
	dg__device_entry *entries; /* owned; dg__device_list_finish() */
	size_t detecting_count;
	char detecting[DG__BACKENDS_MAX][16]; /* backends whose devices are still to come */
} dg__device_list;

void dg__device_list_finish(dg__device_list *list);

/** One device: GET /v1/devices/{device} and /v1/devices/default. */
dg_err dg__wire_encode_device(const dg__device_entry *entry, dg__json_text *ret_text) DG_MUST_CHECK;
dg_err dg__wire_decode_device(const char *json, size_t length, dg__device_entry *ret_entry,
	dg_error *reterr) DG_MUST_CHECK;
dg_err dg__wire_encode_devices(const dg__device_list *list, dg__json_text *ret_text) DG_MUST_CHECK;
dg_err dg__wire_decode_devices(
	const char *json, size_t length, dg__device_list *ret_list, dg_error *reterr) DG_MUST_CHECK;

/* Throughput. */

typedef struct dg__measure_request {
	size_t count; /* 0..DG_KEYS_MAX */
	dg_key keys[DG_KEYS_MAX];
	bool refresh; /* measure again what is already measured */
	bool sustained;
} dg__measure_request;

/** Keys are objects in the reference's JSON or short texts; the encoder writes the former. */
dg_err dg__wire_encode_measure_request(
	const dg__measure_request *request, dg__json_text *ret_text) DG_MUST_CHECK;
dg_err dg__wire_decode_measure_request(const char *json, size_t length,
	dg__measure_request *ret_request, dg_error *reterr) DG_MUST_CHECK;

typedef struct dg__values {
	char device[DG_DEVICE_TEXT_MAX]; /* text form; "" where it has none (JSON null) */
	size_t count;
	dg_value *values; /* owned; dg__values_finish() */
} dg__values;

void dg__values_finish(dg__values *values);
dg_err dg__wire_encode_values(const dg__values *values, dg__json_text *ret_text) DG_MUST_CHECK;
dg_err dg__wire_decode_values(
	const char *json, size_t length, dg__values *ret_values, dg_error *reterr) DG_MUST_CHECK;

/* Leases: one holder of a device's hardware at a time. */

dg_err dg__wire_encode_lease(const dg_lease *lease, dg__json_text *ret_text) DG_MUST_CHECK;
dg_err dg__wire_decode_lease(
	const char *json, size_t length, dg_lease *ret_lease, dg_error *reterr) DG_MUST_CHECK;
/** A request's time to live in seconds, 1..DG_LEASE_TTL_MAX_S; no body, or none in it: the
 * default. */
dg_err dg__wire_encode_lease_request(uint32_t ttl_s, dg__json_text *ret_text) DG_MUST_CHECK;
dg_err dg__wire_decode_lease_request(
	const char *json, size_t length, uint32_t *ret_ttl_s, dg_error *reterr) DG_MUST_CHECK;

/* Memory curve. */

typedef struct dg__curve_request {
	dg_access access; /* "copy", "read", "write"; "read" where absent */
	bool has_bytes;
	uint64_t bytes; /* 4..2^40: also tell the ceiling for it */
	bool refresh;
} dg__curve_request;

dg_err dg__wire_encode_curve_request(
	const dg__curve_request *request, dg__json_text *ret_text) DG_MUST_CHECK;
dg_err dg__wire_decode_curve_request(const char *json, size_t length,
	dg__curve_request *ret_request, dg_error *reterr) DG_MUST_CHECK;

typedef struct dg__curve_reply {
	char device[DG_DEVICE_TEXT_MAX];
	dg_curve curve;
	bool has_ceiling;
	uint64_t bytes;
	double ceiling_bytes_per_s;
	dg__values values; /* the figures behind the points, with their evidence */
} dg__curve_reply;

void dg__curve_reply_finish(dg__curve_reply *reply);
dg_err dg__wire_encode_curve(const dg__curve_reply *reply, dg__json_text *ret_text) DG_MUST_CHECK;
dg_err dg__wire_decode_curve(const char *json, size_t length, dg__curve_reply *ret_reply,
	dg_error *reterr) DG_MUST_CHECK;

/* Roofline. */

typedef struct dg__roofline_request {
	double flops, bytes; /* finite, >= 0 */
	dg_dtype dtype; /* "f32" or "F32" */
	double seconds; /* 0: not given */
} dg__roofline_request;

dg_err dg__wire_encode_roofline_request(
	const dg__roofline_request *request, dg__json_text *ret_text) DG_MUST_CHECK;
dg_err dg__wire_decode_roofline_request(const char *json, size_t length,
	dg__roofline_request *ret_request, dg_error *reterr) DG_MUST_CHECK;

typedef struct dg__roofline_reply {
	char device[DG_DEVICE_TEXT_MAX];
	dg_roofline_input input;
	dg_roofline roofline;
} dg__roofline_reply;

dg_err dg__wire_encode_roofline(
	const dg__roofline_reply *reply, dg__json_text *ret_text) DG_MUST_CHECK;
dg_err dg__wire_decode_roofline(const char *json, size_t length, dg__roofline_reply *ret_reply,
	dg_error *reterr) DG_MUST_CHECK;

/* Jobs. */

typedef enum dg__job_state {
	DG__JOB_QUEUED = 0,
	DG__JOB_RUNNING = 1,
	DG__JOB_DONE = 2,
	DG__JOB_FAILED = 3,
	DG__JOB_CANCELLED = 4
} dg__job_state;

typedef struct dg__job {
	char id[40];
	char kind[16]; /* "throughput", "memory-curve", "roofline" */
	char device[DG_DEVICE_TEXT_MAX];
	dg__job_state state;
	uint32_t done, total; /* keys */
	char current[DG_KEY_TEXT_MAX]; /* key being measured; "" for none (JSON null) */
	int64_t created_at_ms, finished_at_ms; /* Unix time; finished 0 (JSON null) until it ends */
	dg_error error; /* of FAILED and CANCELLED; code DG_OK else (JSON null) */
	dg__json_text
		result; /* the reply the request would have had; text NULL until DONE; owned */
} dg__job;

void dg__job_finish(dg__job *job);
dg_err dg__wire_encode_job(const dg__job *job, dg__json_text *ret_text) DG_MUST_CHECK;
dg_err dg__wire_decode_job(
	const char *json, size_t length, dg__job *ret_job, dg_error *reterr) DG_MUST_CHECK;

/* Ids. */

typedef struct dg__id_item {
	dg_err code; /* DG_OK, or why this item has no result */
	char detail[200];
	dg_id id; /* canonical */
	char device[DG_DEVICE_TEXT_MAX], debug[DG_DEVICE_TEXT_MAX];
} dg__id_item;

/** Request of ids/encode: ["cuda:0", …]. Texts come through as they are, of any length. */
typedef struct dg__text_list {
	size_t count;
	char **texts; /* owned; dg__text_list_finish() */
} dg__text_list;

void dg__text_list_finish(dg__text_list *list);
dg_err dg__wire_encode_texts(const dg__text_list *list, dg__json_text *ret_text) DG_MUST_CHECK;
dg_err dg__wire_decode_texts(
	const char *json, size_t length, dg__text_list *ret_list, dg_error *reterr) DG_MUST_CHECK;

/** Request of ids/decode: [{"type_id":256,"index_id":0}, …]; at most DG__IDS_MAX; ret_ids has room
 * for as many, and is undefined on failure. */
dg_err dg__wire_encode_ids(const dg_id *ids, size_t count, dg__json_text *ret_text) DG_MUST_CHECK;
dg_err dg__wire_decode_ids(const char *json, size_t length, dg_id *ret_ids, size_t *ret_count,
	dg_error *reterr) DG_MUST_CHECK;

/**
 * Replies: [{"device","debug","id":{…}} or {"error":{"code","detail"}}, …], and one such object.
 * ret_items has room for DG__IDS_MAX, and is undefined on failure.
 */
dg_err dg__wire_encode_id_items(
	const dg__id_item *items, size_t count, dg__json_text *ret_text) DG_MUST_CHECK;
dg_err dg__wire_decode_id_items(const char *json, size_t length, dg__id_item *ret_items,
	size_t *ret_count, dg_error *reterr) DG_MUST_CHECK;
dg_err dg__wire_encode_id_item(const dg__id_item *item, dg__json_text *ret_text) DG_MUST_CHECK;

/* Small documents. */

/** {"status":"ok"} of /healthz and {"status":"ready"|"detecting"} of /readyz. */
dg_err dg__wire_encode_health(const char *status, dg__json_text *ret_text) DG_MUST_CHECK;
/** {"url","pin"}, the line of --print-ready; pin NULL for plain HTTP (JSON null). */
dg_err dg__wire_encode_ready(
	const char *url, const char *pin, dg__json_text *ret_text) DG_MUST_CHECK;

/* Frames between a process and its worker. */

typedef enum dg__frame_kind {
	DG__FRAME_DETECT = 1, /* to the worker */
	DG__FRAME_MEASURE = 2,
	DG__FRAME_CANCEL = 3,
	DG__FRAME_TELEMETRY = 4,
	DG__FRAME_DEVICES = 16, /* from the worker */
	DG__FRAME_PROGRESS = 17, /* about to measure key `done` of `total` */
	DG__FRAME_VALUE = 18, /* value number `done` */
	DG__FRAME_END = 19, /* the request ended well */
	DG__FRAME_ERROR = 20 /* the request ended with error */
} dg__frame_kind;

typedef struct dg__frame {
	dg__frame_kind kind;
	uint64_t request; /* number of the request that it belongs to */
	uint32_t device; /* driver's index: MEASURE, TELEMETRY */
	uint64_t timeout_ms; /* DETECT, MEASURE */
	dg__measure_request measure; /* MEASURE */
	dg__device_list devices; /* DEVICES */
	uint32_t done, total; /* PROGRESS, VALUE */
	dg_key key; /* PROGRESS */
	dg_value value; /* VALUE */
	dg_telemetry telemetry; /* END of a TELEMETRY */
	dg_error error; /* ERROR */
} dg__frame;

void dg__frame_finish(dg__frame *frame);
dg_err dg__wire_encode_frame(const dg__frame *frame, dg__json_text *ret_text) DG_MUST_CHECK;
/** On failure ret_frame needs no finish. */
dg_err dg__wire_decode_frame(
	const char *json, size_t length, dg__frame *ret_frame, dg_error *reterr) DG_MUST_CHECK;

#endif
