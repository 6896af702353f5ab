/*
 * libdevgate: the compute devices of this machine and of remote gateways, through one set of calls.
 *
 *	dg_device device;
 *	dg_device_remote("https://node1:8443", 0, NULL, &device, &error);
 *	dg_performance_stats(device, keys, 3, NULL, values, &count, &error);
 *
 * Thread-safe throughout, unless a call says otherwise. Never prints, exits or aborts on what a
 * server or a driver does. Devices, ids and text forms: <devgate/device.h>; keys, values, curves
 * and rooflines: <devgate/throughput.h>; default dtypes: <devgate/settings.h>.
 *
 * Local devices are used in a process of their own (devgate-worker), so that a driver that crashes
 * or hangs is an error value here; DEVGATE_WORKER names its executable where it is not found by
 * itself. fork(): a child of fork may use local and remote devices again; calls that another thread
 * had under way in the parent do not go on in the child.
 */
#ifndef DEVGATE_DEVGATE_H
#define DEVGATE_DEVGATE_H

#include <devgate/default.h>
#include <devgate/device.h>
#include <devgate/error.h>
#include <devgate/info.h>
#include <devgate/json.h>
#include <devgate/settings.h>
#include <devgate/throughput.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Version of the library, "0.1.0". */
const char *dg_version(void);

/** Bits of dg_call.flags. */
enum {
	/** Use local devices in the caller's own process: faster to start, no protection. */
	DG_LOCAL_IN_PROCESS = 1 << 0,
	/** Measure again what the gateway has already measured. */
	DG_REFRESH = 1 << 1,
	/** Also hold each figure for about a second: dg_evidence.sustained_per_s. */
	DG_SUSTAINED = 1 << 2
};

/**
 * Options of a call. NULL stands for all defaults. Texts are borrowed until the call returns.
 * Make it with DG_CALL_INIT.
 */
typedef struct dg_call {
	uint32_t size; /**< sizeof(dg_call) */
	uint32_t flags;
	/**
	 * Deadline of the whole call, in milliseconds, connecting and name resolution included;
	 * 0: 10 s for questions, 300 s for measurements.
	 */
	uint32_t timeout_ms;
	/**
	 * Whom to trust and who to be at a gateway; NULL: the DEVGATE_PIN, DEVGATE_CACERT and
	 * DEVGATE_TOKEN_FILE variables, used only towards the default remote address and gateways
	 * that DEVGATE_GATEWAYS or the caller names.
	 */
	const char *pin; /**< "sha256//…", curl's form; several with ';' */
	const char *ca_file; /**< PEM */
	const char *token_file; /**< its first line is the bearer token */
	const char *cert_file, *key_file; /**< PEM, of a client certificate */
	/** Called now and then while a measurement runs; false cancels it. May be NULL. */
	bool (*progress)(uint32_t done, uint32_t total, const char *key, void *user);
	void *user;
	/**
	 * Id of the lease under which a gateway's device is measured; NULL: none. Presented with
	 * what measures, renews and gives back, and with nothing else.
	 */
	const char *lease;
} dg_call;

#define DG_CALL_INIT \
	{ \
		sizeof(dg_call), 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL \
	}

/** Something that a list could not show, with the reason. */
typedef struct dg_problem {
	char source[DG_DEVICE_TEXT_MAX]; /**< a gateway's URL or a backend's name */
	bool is_gateway;
	dg_error error;
} dg_problem;

/** A device of a list. */
typedef struct dg_listed {
	char gateway[DG_DEVICE_TEXT_MAX]; /**< URL of the gateway; "" for a local device */
	/**
	 * How this process names it: Remote for one of a gateway. A local one whose info.present
	 * lacks DG_HAS_DEVICE has no name; this is then the CPU, and means nothing.
	 */
	dg_device device;
	dg_device_info info; /**< as its own host describes it */
	dg_settings settings; /**< its defaults; nothing is locked by listing */
} dg_listed;

/** Devices and what could not be listed. Owned; dg_device_list_free(). */
typedef struct dg_device_list {
	size_t count;
	dg_listed *devices;
	size_t problem_count;
	dg_problem *problems;
} dg_device_list;

/** What to list. Zero-initialised: local devices, and the gateways of DEVGATE_GATEWAYS. */
typedef struct dg_enumerate_request {
	bool no_local; /**< leave local devices out */
	bool no_configured; /**< do not read DEVGATE_GATEWAYS */
	const char *const *gateways; /**< URLs asked besides, with the call's credentials */
	size_t gateway_count; /**< 0..1024 */
} dg_enumerate_request;

/**
 * List devices. Gateways are asked at once, in parallel; one that cannot be reached is among the
 * problems, and so is a local backend that failed. A backend whose driver is not installed is no
 * problem.
 *
 * @param request  NULL: zero-initialised.
 * @param[out] ret_list  Owned; dg_device_list_free(). Untouched on failure.
 * @return DG_OK (also with problems), DG_EINVALID, DG_EADDRESS, DG_ECONFIG (a line of
 *         DEVGATE_GATEWAYS), DG_ERANGE (registry full), DG_ENOMEM.
 * Blocks: until the deadline at most.
 */
dg_err dg_enumerate(const dg_enumerate_request *request, const dg_call *call,
	dg_device_list **ret_list, dg_error *reterr) DG_MUST_CHECK;
void dg_device_list_free(dg_device_list *list);

/**
 * A device of a gateway. Nothing is connected. Without credentials in call this names the gateway:
 * from now on the environment's are used towards it, also for its devices that dg_device_parse()
 * gives. A text that is parsed names nothing, as it may come from anywhere.
 *
 * @param url    "https://HOST[:PORT]"; http, ws and wss too.
 * @param index  Gateway index there.
 * @param call   Credentials to keep with it; NULL: those of the environment.
 * @return DG_OK, DG_EADDRESS, DG_ERANGE (65,536 remote devices are known), DG_ENOMEM.
 */
dg_err dg_device_remote(const char *url, uint32_t index, const dg_call *call, dg_device *ret_device,
	dg_error *reterr) DG_MUST_CHECK;

/** Address "https://HOST:PORT" and gateway index of a remote device; false for any other. */
bool dg_device_remote_address(dg_device device, char *buf, size_t size, uint32_t *ret_index);

/**
 * The default device, by DEVGATE_DEVICE, BURN_DEVICE and the priority variables. Looks for local
 * devices (in workers) unless a forced one needs none; never connects.
 */
dg_err dg_default_device(
	const dg_call *call, dg_device *ret_device, dg_error *reterr) DG_MUST_CHECK;

/** Describe a device; a remote one is asked. Locks no settings. */
dg_err dg_describe(dg_device device, const dg_call *call, dg_device_info *ret_info,
	dg_error *reterr) DG_MUST_CHECK;

/** Defaults of a device without locking them; a remote one is asked unless its are kept already. */
dg_err dg_settings_show(dg_device device, const dg_call *call, dg_settings *ret_settings,
	dg_error *reterr) DG_MUST_CHECK;
/**
 * Settings in force. The first read keeps them for good in this process, by id, so that an autodiff
 * device shares them. A failed fetch of a remote's keeps nothing.
 */
dg_err dg_settings_get(dg_device device, const dg_call *call, dg_settings *ret_settings,
	dg_error *reterr) DG_MUST_CHECK;
/**
 * Set them, once and before the first read.
 *
 * @return DG_OK, DG_EINITIALIZED, DG_EDTYPE (the device cannot compute in it), and what
 *         dg_describe() returns.
 */
dg_err dg_settings_configure(dg_device device, const dg_settings *settings, const dg_call *call,
	dg_error *reterr) DG_MUST_CHECK;

/**
 * Measure peak throughput: one value per key, in order. Devices without kernels (Flex, NdArray,
 * LibTorch, Capture) give none: ret_count is 0. An autodiff device measures the one it wraps.
 *
 * @param keys        count of them, 0..DG_KEYS_MAX.
 * @param[out] ret_values  Room for count values.
 * @param[out] ret_count   count, or 0.
 * @return DG_OK (each value has its own status), or why nothing could be measured.
 * Blocks: until the deadline at most. Cancelled by call->progress.
 */
dg_err dg_performance_stats(dg_device device, const dg_key *keys, size_t count, const dg_call *call,
	dg_value *ret_values, size_t *ret_count, dg_error *reterr) DG_MUST_CHECK;

/** The device's memory curve. Blocks as dg_performance_stats(). DG_ENOMEASURE without kernels. */
dg_err dg_memory_curve(dg_device device, dg_access access, const dg_call *call, dg_curve *ret_curve,
	dg_error *reterr) DG_MUST_CHECK;

/**
 * Time that work needs at the device's measured peaks of arithmetic in dtype and of memory.
 *
 * @param flops, bytes  Amounts of the work; >= 0, finite.
 * @param seconds       Measured time of the work; 0 where there is none.
 * @param[out] ret_input     The peaks used; may be NULL.
 */
dg_err dg_device_roofline(dg_device device, double flops, dg_dtype dtype, double bytes,
	double seconds, const dg_call *call, dg_roofline_input *ret_input,
	dg_roofline *ret_roofline, dg_error *reterr) DG_MUST_CHECK;

/** What the device does at this moment. DG_ENOTSUP where neither it nor its host tells. */
dg_err dg_telemetry_read(dg_device device, const dg_call *call, dg_telemetry *ret_telemetry,
	dg_error *reterr) DG_MUST_CHECK;

/**
 * Whether two devices are one piece of hardware, whatever API or gateway shows them.
 *
 * @return DG_OK, or why one could not be described.
 */
dg_err dg_same_hardware(dg_device a, dg_device b, const dg_call *call, bool *ret_same,
	dg_error *reterr) DG_MUST_CHECK;

/*
 * Leases of a gateway's hardware: as long as one lasts nobody measures there who does not present
 * its id. It is of the hardware, so the same card through another API is taken too, and so are a
 * partition and what it is a part of. Each of these takes a remote device; a local one is
 * DG_ENOTSUP. They block until the deadline at most.
 */

/**
 * Take.
 *
 * @param ttl_s  It ends by itself after so many seconds, 1..DG_LEASE_TTL_MAX_S; 0: 60.
 * @param[out] ret_lease  Its id goes into dg_call.lease.
 * @return DG_OK, DG_ELEASED (by whom and until when), DG_EBUSY (being measured), DG_EFORBIDDEN.
 */
dg_err dg_lease_take(dg_device device, uint32_t ttl_s, const dg_call *call, dg_lease *ret_lease,
	dg_error *reterr) DG_MUST_CHECK;
/** Let the lease call->lease last from now on for ttl_s (0: 60). DG_ENOLEASE where it has ended. */
dg_err dg_lease_renew(dg_device device, uint32_t ttl_s, const dg_call *call, dg_lease *ret_lease,
	dg_error *reterr) DG_MUST_CHECK;
/** Give the lease call->lease back; ret_lease, which may be NULL, is what it was. DG_ENOLEASE. */
dg_err dg_lease_give(
	dg_device device, const dg_call *call, dg_lease *ret_lease, dg_error *reterr) DG_MUST_CHECK;
/** The lease a device is under, without its id. DG_ENOLEASE where there is none. */
dg_err dg_lease_read(
	dg_device device, const dg_call *call, dg_lease *ret_lease, dg_error *reterr) DG_MUST_CHECK;

/** State of a gateway. */
typedef struct dg_gateway_health {
	bool alive, ready;
	char version[32]; /**< "" where the caller may not read it */
	char host[40];
	double seconds; /**< the question took */
} dg_gateway_health;

/** Ask a gateway whether it is alive and ready. DG_EUNREACHABLE, DG_ETLS, DG_EPIN, DG_ETIMEOUT … */
dg_err dg_gateway_health_read(const char *url, const dg_call *call, dg_gateway_health *ret_health,
	dg_error *reterr) DG_MUST_CHECK;

/** What became of looking for a backend's devices on this machine. */
typedef struct dg_backend_report {
	char name[16];
	dg_err code; /**< DG_OK: devices found or none there; else DG_ENODRIVER, DG_EDRIVER, … */
	uint32_t devices;
	uint64_t elapsed_ms;
	char looked[400]; /**< what was looked for, where */
	char found[200];
	char advice[200]; /**< what to do; "" where there is nothing to */
} dg_backend_report;

#define DG_BACKENDS_MAX 16

/** Look for every backend here and tell. @param[out] ret_reports room for DG_BACKENDS_MAX. */
dg_err dg_doctor(const dg_call *call, dg_backend_report *ret_reports, size_t *ret_count,
	dg_error *reterr) DG_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
