/*
 * Keys and self-signed certificates for tests.
 */
#ifndef DEVGATE_TESTS_FAKES_FAKE_CERTIFICATE_H
#define DEVGATE_TESTS_FAKES_FAKE_CERTIFICATE_H

#include <stdbool.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

typedef struct dg_fake_certificate {
	EVP_PKEY *key;
	X509 *certificate; /* self-signed, for 127.0.0.1, ::1 and localhost */
	char pin[80]; /* "sha256//…" */
} dg_fake_certificate;

/** A new P-256 key with its certificate; false where the crypto library refuses. */
bool dg_fake_certificate_make(dg_fake_certificate *ret_certificate);
/** Write it as PEM, with its key too if asked for. */
bool dg_fake_certificate_write(
	const dg_fake_certificate *certificate, const char *path, bool with_key);
void dg_fake_certificate_finish(dg_fake_certificate *certificate);

#endif
