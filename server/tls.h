/*
 * The gateway's certificate and its pin.
 */
#ifndef DEVGATE_SERVER_TLS_H
#define DEVGATE_SERVER_TLS_H

#include "server/config.h"
#include "server/store.h"

#define DG__PIN_MAX 64

/** A certificate chain with its key, PEM. Owned texts; dg__tls_pair_finish(). */
typedef struct dg__tls_pair {
	char *certificate_pem, *key_pem;
	char pin[DG__PIN_MAX]; /* "sha256//…": base64 of SHA-256 of the public key's SPKI */
} dg__tls_pair;

void dg__tls_pair_finish(dg__tls_pair *pair);

/**
 * The pair to serve: the configured files (checked: they parse, belong together, are not expired),
 * else the kept generated one, else a new self-signed P-256 one for the listeners' addresses,
 * localhost, the host name and the configured names, valid for ten years, kept in the state. Also
 * writes the pin to STATE_DIR/pin unless ephemeral.
 *
 * @return DG_OK, DG_ECONFIG (file and reason), DG_ESTATE, DG_ENOMEM.
 */
dg_err dg__tls_load(const dg__config *config, dg__store *store, dg__tls_pair *ret_pair,
	dg_error *reterr) DG_MUST_CHECK;

/**
 * Read a file of PEM text whole: a regular file of 1 MiB at most, not empty, without NUL. What it
 * holds is not looked at.
 *
 * @param what         What the file is for, "client CA", for the error's text.
 * @param[out] ret_pem Owned, free(); NUL-terminated.
 * @return DG_OK, DG_ECONFIG (path and reason), DG_ENOMEM.
 * Threads: safe. Blocks: on the disk.
 */
dg_err dg__tls_read_pem(
	const char *path, const char *what, char **ret_pem, dg_error *reterr) DG_MUST_CHECK;

#endif
