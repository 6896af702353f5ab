/*
 * Whom to trust and who to be. Sets of credentials are kept once each for the life of the process
 * and known by number, so that a registry entry can name one and connections are shared only
 * where the set is the same.
 *
 * Set 0 is the ambient one: DEVGATE_PIN, DEVGATE_CACERT and DEVGATE_TOKEN_FILE. It is used only
 * towards the default remote address, the gateways of DEVGATE_GATEWAYS and addresses that the
 * caller has named to the library; towards any other, set 0 stands for nothing at all.
 *
 * Threads: safe throughout.
 */
#ifndef DEVGATE_CLIENT_CREDENTIALS_H
#define DEVGATE_CLIENT_CREDENTIALS_H

#include "api/registry.h"
#include "client/devgate.h"

/** Longest bearer token, in bytes. */
#define DG__TOKEN_MAX 4096

/** Texts of a set; NULL where it has none. */
typedef struct dg__credentials {
	const char *pin, *ca_file, *token_file, *cert_file, *key_file;
} dg__credentials;

/** A set made ready for one call. */
typedef struct dg__identity {
	uint32_t set; /* number of what is used: 0 for nothing */
	dg__credentials credentials; /* borrowed for the life of the process */
	char token[DG__TOKEN_MAX + 1]; /* "" for none */
} dg__identity;

/**
 * Number of a set; "" counts as NULL, a set of nothing is number 0.
 *
 * @return DG_OK, DG_ECREDENTIAL (a malformed pin, a key without certificate), DG_ENOMEM.
 */
dg_err dg__credentials_intern(
	const dg__credentials *credentials, uint32_t *ret_number, dg_error *reterr) DG_MUST_CHECK;

/** As dg__credentials_intern(), with what a caller's options hold; NULL gives 0. */
dg_err dg__credentials_of_call(
	const dg_call *options, uint32_t *ret_number, dg_error *reterr) DG_MUST_CHECK;

/**
 * The caller has named an address: the set that its options hold, where they hold none the ambient
 * one, which may be used towards that address from now on.
 *
 * @param[out] ret_number  Of the set; 0: ambient.
 * @return DG_OK, DG_ECREDENTIAL, DG_ENOMEM.
 */
dg_err dg__credentials_name(const dg__address *address, const dg_call *options,
	uint32_t *ret_number, dg_error *reterr) DG_MUST_CHECK;

/**
 * What is used towards an address. The token file is read afresh: at most its first 4096 bytes'
 * first line, trimmed. Its permissions are the caller's business: orchestrators mount secrets in
 * several ways. Over plain HTTP there is never a credential.
 *
 * @param number  Of a set; 0: ambient.
 * @return DG_OK, DG_ECREDENTIAL (a file that cannot be read, a token with other than printable
 *         characters), DG_ECONFIG (DEVGATE_GATEWAYS), DG_EADDRESS (the default address), DG_ENOMEM.
 * Blocks: on reading files.
 */
dg_err dg__credentials_identify(uint32_t number, const dg__address *address,
	dg__identity *ret_identity, dg_error *reterr) DG_MUST_CHECK;

#endif
