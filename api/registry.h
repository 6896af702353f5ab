/*
 * Remote devices of this process: which gateway, which credential, which index there. An entry is
 * made once and never changes or goes, so that reading takes no lock.
 */
#ifndef DEVGATE_API_REGISTRY_H
#define DEVGATE_API_REGISTRY_H

#include <devgate/device.h>

#define DG__HOST_MAX 254

/** Address of a gateway, in canonical form. */
typedef struct dg__address {
	bool tls; /* https (or wss), else http (or ws) */
	uint16_t port;
	char host[DG__HOST_MAX]; /* lower case; IPv6 without brackets, zone id kept after '%' */
} dg__address;

/** An entry; borrowed for the life of the process. */
typedef struct dg__remote {
	dg__address address;
	uint32_t credential; /* number of a set of credentials, by the client; 0: ambient */
	uint16_t index; /* gateway index of the device there */
} dg__remote;

/**
 * Read an address: SCHEME://HOST[:PORT], where the scheme is https, http, wss or ws; port 8443
 * where none is given. No user, path (but "/"), query or fragment.
 *
 * @return DG_OK, DG_EADDRESS.
 */
dg_err dg__address_parse(
	const char *text, dg__address *ret_address, dg_error *reterr) DG_MUST_CHECK;
/** "https://[::1]:8443"; as snprintf. */
size_t dg__address_format(const dg__address *address, char *buf, size_t size);
bool dg__address_equal(const dg__address *a, const dg__address *b);
/** Whether the host is localhost or a loopback literal; no name is resolved. */
bool dg__address_is_loopback(const dg__address *address);

/**
 * Address of the default remote: DEVGATE_REMOTE_ADDRESS, else BURN_REMOTE_ADDRESS, else
 * https://127.0.0.1:8443.
 *
 * @return DG_OK, DG_EADDRESS (names the variable).
 */
dg_err dg__address_default(dg__address *ret_address, dg_error *reterr) DG_MUST_CHECK;

/**
 * Find or make the entry. Equal address, credential and index give the same place.
 *
 * @return DG_OK, DG_ERANGE (65,536 are taken), DG_ENOMEM.
 * Threads: safe; finding an existing one takes no lock, making one takes a mutex.
 */
dg_err dg__registry_add(const dg__address *address, uint32_t credential, uint32_t index,
	dg_device *ret_device, dg_error *reterr) DG_MUST_CHECK;

/** The entry at a place; NULL where there is none. Wait-free. */
const dg__remote *dg__registry_get(uint16_t place);
size_t dg__registry_count(void);

/** A device's text taken apart, with nothing registered. */
typedef struct dg__text {
	dg_device device; /* for a remote: variant, autodiff and strategy only */
	bool remote;
	dg__address address;
	uint16_t index; /* of a remote: gateway index */
} dg__text;

/** As dg_device_parse(), which is this and dg__registry_add(). Used where nothing may be
 * registered. */
dg_err dg__text_parse(const char *text, dg__text *ret_text, dg_error *reterr) DG_MUST_CHECK;

#endif
