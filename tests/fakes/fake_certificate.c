/* See fake_certificate.h. */
#include "tests/fakes/fake_certificate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

static bool write_pin(EVP_PKEY *key, char *pin, size_t size)
{
	unsigned char *der = NULL, digest[EVP_MAX_MD_SIZE], text[64];
	unsigned int length = 0;
	int n = i2d_PUBKEY(key, &der);
	bool ok = n > 0 && EVP_Digest(der, (size_t)n, digest, &length, EVP_sha256(), NULL) == 1;
	if (ok) {
		EVP_EncodeBlock(text, digest, (int)length);
		snprintf(pin, size, "sha256//%s", (const char *)text);
	}
	OPENSSL_free(der);
	return ok;
}

static bool add_names(X509 *certificate)
{
	X509V3_CTX context;
	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
	X509_EXTENSION *names = X509V3_EXT_conf_nid(
		NULL, &context, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1,IP:::1");
	X509_EXTENSION *ca =
		X509V3_EXT_conf_nid(NULL, &context, NID_basic_constraints, "critical,CA:TRUE");
	bool ok = names && ca && X509_add_ext(certificate, names, -1) == 1 &&
		  X509_add_ext(certificate, ca, -1) == 1;
	X509_EXTENSION_free(names);
	X509_EXTENSION_free(ca);
	return ok;
}

static bool fill(X509 *certificate, EVP_PKEY *key)
{
	X509_NAME *name = X509_get_subject_name(certificate);
	return X509_set_version(certificate, 2) == 1 &&
	       ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) == 1 &&
	       X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) &&
	       X509_gmtime_adj(X509_getm_notAfter(certificate), 86400) &&
	       X509_set_pubkey(certificate, key) == 1 &&
	       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
		       (const unsigned char *)"devgate test", -1, -1, 0) == 1 &&
	       X509_set_issuer_name(certificate, name) == 1 && add_names(certificate) &&
	       X509_sign(certificate, key, EVP_sha256()) > 0;
}

bool dg_fake_certificate_make(dg_fake_certificate *ret_certificate)
{
	dg_fake_certificate made = { .key = EVP_EC_gen("P-256"), .certificate = X509_new() };
	if (made.key && made.certificate && fill(made.certificate, made.key) &&
		write_pin(made.key, made.pin, sizeof(made.pin))) {
		*ret_certificate = made;
		return true;
	}
	dg_fake_certificate_finish(&made);
	return false;
}

bool dg_fake_certificate_write(
	const dg_fake_certificate *certificate, const char *path, bool with_key)
{
	FILE *f = fopen(path, "w");
	if (!f)
		return false;
	bool ok = PEM_write_X509(f, certificate->certificate) == 1 &&
		  (!with_key || PEM_write_PrivateKey(
					f, certificate->key, NULL, NULL, 0, NULL, NULL) == 1);
	return fclose(f) == 0 && ok;
}

void dg_fake_certificate_finish(dg_fake_certificate *certificate)
{
	EVP_PKEY_free(certificate->key);
	X509_free(certificate->certificate);
	memset(certificate, 0, sizeof(*certificate));
}
