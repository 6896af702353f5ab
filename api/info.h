/*
 * What a device is made of, as its backend found it.
 */
#ifndef DEVGATE_INFO_H
#define DEVGATE_INFO_H

#include <devgate/throughput.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DG_SHAPES_MAX 64
#define DG_NAME_MAX 128

/** A tile that the matrix units multiply: D(m x n, accumulator) += A(m x k) x B(k x n). */
typedef struct dg_matrix_shape {
	dg_dtype dtype, accumulator;
	uint32_t m, n, k;
} dg_matrix_shape;

typedef enum dg_state {
	DG_STATE_OK = 0,
	DG_STATE_UNHEALTHY = 1, /**< its backend hung, crashed or failed; reason says how */
	DG_STATE_LOST = 2 /**< was here, is not any more */
} dg_state;

/** "ok", "unhealthy", "lost". */
const char *dg_state_name(dg_state state);

/** Bits of dg_device_info.present. */
enum {
	DG_HAS_TOTAL = 1 << 0,
	DG_HAS_FREE = 1 << 1,
	DG_HAS_USABLE = 1 << 2,
	DG_HAS_UUID = 1 << 3,
	DG_HAS_PCI = 1 << 4,
	DG_HAS_PARENT = 1 << 5,
	DG_HAS_UNITS = 1 << 6,
	DG_HAS_GATEWAY_INDEX = 1 << 7,
	DG_HAS_DEVICE = 1 << 8, /**< has a local name; else the gateway index is its only one */
	DG_HAS_HARDWARE = 1 << 9,
	DG_HAS_ALLOC = 1 << 10
};

/** A device's description. A plain value; strings are UTF-8 and "" where unknown. */
typedef struct dg_device_info {
	uint32_t present;
	dg_device device; /**< as a local program names it */
	uint32_t gateway_index; /**< as its gateway numbers it */
	char backend[16]; /**< "cuda" */
	char name[DG_NAME_MAX]; /**< as the driver says it */
	char vendor[64];
	char driver[64]; /**< name and version */
	char architecture[128]; /**< compute capability, gfx name, instruction sets */
	bool software; /**< a CPU that pretends to be a GPU: never the default */
	bool unified; /**< shares its memory with the host */
	uint64_t total_bytes, free_bytes, usable_bytes; /**< memory */
	uint64_t max_alloc_bytes; /**< largest buffer */
	char uuid[64]; /**< vendor's, lower case with hyphens, without prefix */
	char pci[24]; /**< "0000:17:00.0", lower case */
	char parent[64]; /**< UUID of the device that this one is a part of */
	char hardware[80]; /**< identity of the hardware: equal for all APIs that see it */
	char host[40]; /**< host id: 32 hex digits */
	uint32_t units; /**< multiprocessors; cores for a CPU */
	uint64_t dtypes; /**< bit n: can compute in the dtype with number n */
	size_t shape_count;
	dg_matrix_shape shapes[DG_SHAPES_MAX];
	dg_state state;
	char reason[200]; /**< "" where state is OK */
} dg_device_info;

/** Whether it can compute in dtype. */
bool dg_info_has_dtype(const dg_device_info *info, dg_dtype dtype);

/**
 * Whether two descriptions are of one piece of hardware, on one host or seen through two gateways:
 * equal hardware identities, neither empty. A CPU's is its host's.
 */
bool dg_info_same_hardware(const dg_device_info *a, const dg_device_info *b);

/** What a device does at this moment. Figures whose bit is not in present are unknown, not 0. */
typedef struct dg_telemetry {
	uint32_t present; /**< DG_TELEMETRY_* */
	uint64_t memory_used_bytes, memory_total_bytes;
	double load; /**< 0..1 */
	double temperature_celsius, power_w;
	double clock_hz, memory_clock_hz;
	char throttle_reason[64];
	int64_t at_ms; /**< Unix time, milliseconds */
} dg_telemetry;

enum {
	DG_TELEMETRY_USED = 1 << 0,
	DG_TELEMETRY_TOTAL = 1 << 1,
	DG_TELEMETRY_LOAD = 1 << 2,
	DG_TELEMETRY_TEMPERATURE = 1 << 3,
	DG_TELEMETRY_POWER = 1 << 4,
	DG_TELEMETRY_CLOCK = 1 << 5,
	DG_TELEMETRY_MEMORY_CLOCK = 1 << 6,
	DG_TELEMETRY_THROTTLE = 1 << 7
};

/** Time to live of a lease, in seconds: 1 to DG_LEASE_TTL_MAX_S. */
#define DG_LEASE_TTL_MAX_S 86400u
#define DG_LEASE_TTL_DEFAULT_S 60u

/** That one user alone may use a gateway's hardware for a time. Texts are UTF-8. */
typedef struct dg_lease {
	char id[40]; /**< 32 hex digits, told to its holder alone; "" (JSON null) to others */
	char device[DG_DEVICE_TEXT_MAX]; /**< text form on its host; "" where it has none */
	uint32_t index; /**< the gateway's index of the device */
	char hardware[96]; /**< what it is of, whatever API shows it */
	char holder[256]; /**< who took it: "token:NAME", "certificate:NAME", "loopback" */
	uint64_t fencing_token; /**< above that of every lease before it, over restarts too */
	uint32_t ttl_s; /**< time to live, in seconds, 1..DG_LEASE_TTL_MAX_S */
	int64_t taken_at_ms, expires_at_ms; /**< Unix time by the gateway's clock, milliseconds */
} dg_lease;

#ifdef __cplusplus
}
#endif
#endif
