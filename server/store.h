/*
 * The gateway's state: one SQLite file in WAL mode, or memory. The only code that knows SQL.
 *
 * What a call acknowledged survives kill -9. Threads: safe; calls wait for each other for short.
 * Blocks: on the disk.
 */
#ifndef DEVGATE_SERVER_STORE_H
#define DEVGATE_SERVER_STORE_H

#include "api/wire.h"

typedef struct dg__store dg__store;

/**
 * Open or make the state.
 *
 * @param directory  Made (mode 0700) where it is not there; NULL: in memory.
 * @return DG_OK, DG_ESTATE (unwritable, full, corrupt: the sentence says which and what to do),
 *         DG_ENEWER, DG_ENOMEM.
 */
dg_err dg__store_open(const char *directory, dg__store **ret_store, dg_error *reterr) DG_MUST_CHECK;
/**
 * Read a state that dg__store_open() cannot, since it cannot be written (a read-only folder, a full
 * disk), into memory: what is known is served, what is new is forgotten at the end, and no lease is
 * given or renewed, since it could not be vouched for.
 *
 * @param problem  Why: what dg__store_problem() says from now on.
 * @return As dg__store_open(); a state that is not there, damaged or newer is none that it reads.
 */
dg_err dg__store_open_frozen(const char *directory, const char *problem, dg__store **ret_store,
	dg_error *reterr) DG_MUST_CHECK;
void dg__store_close(dg__store *store);

/**
 * Be told when writes begin to fail (with the reason) and when they work again (NULL). Called under
 * the state's lock: it must not use the state.
 */
void dg__store_on_health(
	dg__store *store, void (*on_health)(const char *problem, void *user), void *user);
/** Why the last write failed; false: it did not. */
bool dg__store_problem(dg__store *store, char *buf, size_t size);

/** A small text kept by name ("gateway_id", "host_id", "tls_certificate", "tls_key"). DG_ENOTFOUND.
 * */
dg_err dg__store_get_text(dg__store *store, const char *name, char **ret_text,
	dg_error *reterr) DG_MUST_CHECK; /* owned; free() */
dg_err dg__store_set_text(
	dg__store *store, const char *name, const char *text, dg_error *reterr) DG_MUST_CHECK;
/** Keep text unless there is one already, and give what is kept. */
dg_err dg__store_keep_text(dg__store *store, const char *name, const char *text, char **ret_text,
	dg_error *reterr) DG_MUST_CHECK;

/**
 * The gateway index of hardware seen through a backend: the kept one, else the next free. An index
 * is never given to other hardware.
 *
 * @param hardware  Identity that survives restarts; not "".
 */
dg_err dg__store_device_index(dg__store *store, const char *backend, const char *hardware,
	const char *description_json, uint32_t *ret_index, dg_error *reterr) DG_MUST_CHECK;

/** A device the state knows, present or not. */
typedef struct dg__store_device {
	uint32_t index;
	char backend[16], hardware[80];
	char *description_json; /* owned; as last seen */
} dg__store_device;
dg_err dg__store_devices(dg__store *store, dg__store_device **ret_devices, size_t *ret_count,
	dg_error *reterr) DG_MUST_CHECK;
void dg__store_devices_free(dg__store_device *devices, size_t count);

/** Key of a measured value: never cached across hardware, driver or engine version. */
typedef struct dg__value_key {
	const char *backend, *hardware, *driver, *engine;
	const char *key; /* canonical short text */
} dg__value_key;

/** Where the file cannot be written, values are kept in memory (the last 4096), and go to the file
 * once it can: what was measured is known either way. The failure is returned all the same. */
dg_err dg__store_put_value(dg__store *store, const dg__value_key *key, const char *value_json,
	dg_error *reterr) DG_MUST_CHECK;
/** DG_ENOTFOUND where it is not measured. ret_json owned. */
dg_err dg__store_get_value(dg__store *store, const dg__value_key *key, char **ret_json,
	dg_error *reterr) DG_MUST_CHECK;
/** All values of key's backend, hardware, driver and engine; visit's json is borrowed. */
dg_err dg__store_each_value(dg__store *store, const dg__value_key *key,
	void (*visit)(const char *json, void *user), void *user, dg_error *reterr) DG_MUST_CHECK;

/** A token as kept: never the secret, only its SHA-256. */
typedef struct dg__token {
	char name[64];
	unsigned scopes; /* dg__scope */
	uint8_t sha256[32];
	int64_t created_at_ms, expires_at_ms; /* 0: never */
	bool revoked;
} dg__token;

dg_err dg__store_add_token(
	dg__store *store, const dg__token *token, dg_error *reterr) DG_MUST_CHECK;
dg_err dg__store_revoke_token(dg__store *store, const char *name, dg_error *reterr) DG_MUST_CHECK;
dg_err dg__store_tokens(dg__store *store, dg__token **ret_tokens, size_t *ret_count,
	dg_error *reterr) DG_MUST_CHECK; /* owned; free() */
/** Changes whenever tokens do, also by another process. Cheap. */
dg_err dg__store_token_version(
	dg__store *store, int64_t *ret_version, dg_error *reterr) DG_MUST_CHECK;

/**
 * Keep a lease, in place of an earlier one of the same hardware.
 *
 * @param parent         Hardware that it is a part of, or "".
 * @param[in,out] lease  With fencing_token 0 it gets the next one.
 */
dg_err dg__store_put_lease(
	dg__store *store, const char *parent, dg_lease *lease, dg_error *reterr) DG_MUST_CHECK;
dg_err dg__store_drop_lease(dg__store *store, const char *hardware, dg_error *reterr) DG_MUST_CHECK;
/** All that are kept, also those that have expired. */
dg_err dg__store_each_lease(dg__store *store,
	void (*visit)(const dg_lease *lease, const char *parent, void *user), void *user,
	dg_error *reterr) DG_MUST_CHECK;

/** Who did what to which device; kept to the last 100,000. */
dg_err dg__store_audit(dg__store *store, const char *who, const char *what, const char *device,
	dg_error *reterr) DG_MUST_CHECK;

/** Borrowed during the visit. */
typedef struct dg__audit_entry {
	int64_t at_ms; /* Unix time */
	const char *who; /* principal: "token:NAME", "certificate:NAME", "loopback", … */
	const char *what, *device;
} dg__audit_entry;

/** The last entries, last of them at most, oldest first. The store is locked meanwhile. */
dg_err dg__store_each_audit(dg__store *store, uint32_t last,
	void (*visit)(const dg__audit_entry *entry, void *user), void *user,
	dg_error *reterr) DG_MUST_CHECK;

#endif
