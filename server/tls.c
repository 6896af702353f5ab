/* See tls.h. */
#include "server/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "backends/core/file.h"

#define PEM_MAX ((size_t)1 << 20)
#define YEARS_10 (10L * 365 * 24 * 3600)

void dg__tls_pair_finish(dg__tls_pair *pair)
{
	free(pair->certificate_pem);
	if (pair->key_pem)
		OPENSSL_cleanse(pair->key_pem, strlen(pair->key_pem));
	free(pair->key_pem);
	*pair = (dg__tls_pair){ .certificate_pem = NULL };
}

static dg_err openssl_fault(const char *what, dg_error *reterr)
{
	char text[160];
	unsigned long code = ERR_get_error();
	ERR_error_string_n(code, text, sizeof(text));
	ERR_clear_error();
	return dg_error_native(
		reterr, DG_ECONFIG, "openssl", 0, "%s: %s", what, code ? text : "failed");
}

/* curl's form: base64 of SHA-256 over the public key's SubjectPublicKeyInfo (RFC 7469). */
static bool make_pin(X509 *certificate, char pin[DG__PIN_MAX])
{
	unsigned char *der = NULL, digest[SHA256_DIGEST_LENGTH];
	unsigned char text[64];
	int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
	if (length <= 0)
		return false;
	SHA256(der, (size_t)length, digest);
	OPENSSL_free(der);
	EVP_EncodeBlock(text, digest, sizeof(digest));
	snprintf(pin, DG__PIN_MAX, "sha256//%.44s", (const char *)text);
	return true;
}

/* The text of a memory BIO; owned. */
static char *bio_text(BIO *bio)
{
	char *data;
	long length = BIO_get_mem_data(bio, &data);
	char *text = length > 0 ? malloc((size_t)length + 1) : NULL;
	if (text) {
		memcpy(text, data, (size_t)length);
		text[length] = '\0';
	}
	return text;
}

static int no_password(char *buf, int size, int writing, void *user)
{
	(void)buf;
	(void)size;
	(void)writing;
	(void)user;
	return -1;
}

/* Certificate and key parse, belong together, and have not expired. One that is not valid yet is
 * served: a machine may start before it knows the time. */
static dg_err check_pair(
	dg__tls_pair *pair, const char *certificate_name, const char *key_name, dg_error *reterr)
{
	BIO *in = BIO_new_mem_buf(pair->certificate_pem, -1);
	X509 *certificate = in ? PEM_read_bio_X509(in, NULL, no_password, NULL) : NULL;
	BIO_free(in);
	in = BIO_new_mem_buf(pair->key_pem, -1);
	EVP_PKEY *key = in ? PEM_read_bio_PrivateKey(in, NULL, no_password, NULL) : NULL;
	BIO_free(in);
	dg_err err = DG_OK;
	char what[400];
	if (!certificate) {
		snprintf(what, sizeof(what), "%.300s holds no PEM certificate", certificate_name);
		err = openssl_fault(what, reterr);
	} else if (!key) {
		snprintf(what, sizeof(what), "%.300s holds no PEM key without a passphrase",
			key_name);
		err = openssl_fault(what, reterr);
	} else if (X509_check_private_key(certificate, key) != 1) {
		err = dg_error_set(reterr, DG_ECONFIG, "%.200s and %.200s do not belong together",
			certificate_name, key_name);
	} else if (X509_cmp_current_time(X509_get0_notAfter(certificate)) <= 0) {
		err = dg_error_set(reterr, DG_ECONFIG, "%.300s has expired", certificate_name);
	} else if (!make_pin(certificate, pair->pin)) {
		err = openssl_fault("the certificate's key cannot be read", reterr);
	}
	ERR_clear_error();
	X509_free(certificate);
	EVP_PKEY_free(key);
	return err;
}

dg_err dg__tls_read_pem(const char *path, const char *what, char **ret_pem, dg_error *reterr)
{
	char *text = NULL;
	size_t length = 0;
	dg_error why;
	dg_err err = dg__file_read(path, PEM_MAX, DG_ECONFIG, &text, &length, &why);
	if (err != DG_OK)
		return dg_error_native(
			reterr, err, why.origin, why.native_code, "the %s file %s", what, why.text);
	if (length == 0 || memchr(text, '\0', length)) {
		OPENSSL_cleanse(text, length);
		free(text);
		return dg_error_set(reterr, DG_ECONFIG,
			"the %s file %.300s cannot be read as PEM: it %s", what, path,
			length == 0 ? "is empty" : "holds a NUL byte");
	}
	*ret_pem = text;
	return DG_OK;
}

static dg_err load_files(const dg__config *config, dg__tls_pair *pair, dg_error *reterr)
{
	dg_err err =
		dg__tls_read_pem(config->cert_file, "certificate", &pair->certificate_pem, reterr);
	if (err == DG_OK)
		err = dg__tls_read_pem(config->key_file, "key", &pair->key_pem, reterr);
	if (err == DG_OK)
		err = check_pair(pair, config->cert_file, config->key_file, reterr);
	return err;
}

/* "IP:127.0.0.1,DNS:localhost,…" of everything that this gateway may be called. */
static void list_names(const dg__config *config, char *buf, size_t size)
{
	char host[256] = "";
	size_t length = (size_t)snprintf(buf, size, "IP:127.0.0.1,IP:::1,DNS:localhost");
	(void)gethostname(host, sizeof(host) - 1);
	if (*host &&
		strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") ==
			strlen(host))
		length += (size_t)snprintf(buf + length, size - length, ",DNS:%s", host);
	for (size_t i = 0; i < config->listen_count + config->name_count && length + 300 < size;
		i++) {
		bool listener = i < config->listen_count;
		const char *name =
			listener ? config->listen[i].host : config->names[i - config->listen_count];
		unsigned char any[16];
		bool address =
			inet_pton(AF_INET, name, any) == 1 || inet_pton(AF_INET6, name, any) == 1;
		if (strpbrk(name, ",%\"\\\n") || (listener && !address))
			continue;
		length += (size_t)snprintf(
			buf + length, size - length, ",%s:%s", address ? "IP" : "DNS", name);
	}
}

static bool add_extension(X509 *certificate, int id, const char *value)
{
	X509V3_CTX context;
	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, id, value);
	bool added = extension && X509_add_ext(certificate, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	return added;
}

/* A random serial number of 127 bits (CA/Browser Forum asks for 64 at least). */
static bool set_serial(X509 *certificate)
{
	unsigned char bytes[16];
	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	bytes[0] &= 0x7f;
	bytes[0] |= 1;
	BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
	bool set = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL;
	BN_free(number);
	return set;
}

static bool fill_certificate(X509 *certificate, EVP_PKEY *key, const char *names)
{
	X509_NAME *name = X509_get_subject_name(certificate);
	return X509_set_version(certificate, 2) == 1 && set_serial(certificate) &&
	       X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) &&
	       X509_gmtime_adj(X509_getm_notAfter(certificate), YEARS_10) &&
	       X509_set_pubkey(certificate, key) == 1 &&
	       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
		       (const unsigned char *)"devgate", -1, -1, 0) == 1 &&
	       X509_set_issuer_name(certificate, name) == 1 &&
	       add_extension(certificate, NID_subject_alt_name, names) &&
	       add_extension(certificate, NID_basic_constraints, "critical,CA:FALSE") &&
	       add_extension(certificate, NID_ext_key_usage, "serverAuth") &&
	       X509_sign(certificate, key, EVP_sha256()) > 0;
}

static dg_err generate(const dg__config *config, dg__tls_pair *pair, dg_error *reterr)
{
	char names[8192];
	list_names(config, names, sizeof(names));
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = X509_new();
	BIO *certificate_out = BIO_new(BIO_s_mem()), *key_out = BIO_new(BIO_s_mem());
	dg_err err = DG_OK;
	if (!key || !certificate || !certificate_out || !key_out ||
		!fill_certificate(certificate, key, names) ||
		PEM_write_bio_X509(certificate_out, certificate) != 1 ||
		PEM_write_bio_PrivateKey(key_out, key, NULL, NULL, 0, NULL, NULL) != 1 ||
		!make_pin(certificate, pair->pin)) {
		err = openssl_fault("a certificate cannot be made", reterr);
	} else {
		pair->certificate_pem = bio_text(certificate_out);
		pair->key_pem = bio_text(key_out);
		if (!pair->certificate_pem || !pair->key_pem)
			err = dg_error_set(reterr, DG_ENOMEM, NULL);
	}
	BIO_free(certificate_out);
	BIO_free(key_out);
	X509_free(certificate);
	EVP_PKEY_free(key);
	return err;
}

/* The kept pair is one text, so that certificate and key cannot come from two makers. */
static dg_err keep(dg__store *store, dg__tls_pair *pair, dg_error *reterr)
{
	size_t length = strlen(pair->certificate_pem), key_length = strlen(pair->key_pem);
	char *both = malloc(length + key_length + 1);
	if (!both)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	memcpy(both, pair->certificate_pem, length);
	memcpy(both + length, pair->key_pem, key_length + 1);
	char *kept = NULL;
	dg_err err = dg__store_keep_text(store, "tls_pair", both, &kept, reterr);
	OPENSSL_cleanse(both, length + key_length);
	free(both);
	if (err != DG_OK)
		return err;
	dg__tls_pair_finish(pair);
	pair->certificate_pem = kept;
	pair->key_pem = strdup(kept);
	return pair->key_pem ? check_pair(pair, "the kept certificate", "the kept key", reterr)
			     : dg_error_set(reterr, DG_ENOMEM, NULL);
}

static dg_err load_kept(
	const dg__config *config, dg__store *store, dg__tls_pair *pair, dg_error *reterr)
{
	dg_error why;
	char *kept = NULL;
	dg_err err = dg__store_get_text(store, "tls_pair", &kept, &why);
	if (err == DG_ENOTFOUND) {
		err = generate(config, pair, reterr);
		return err == DG_OK ? keep(store, pair, reterr) : err;
	}
	if (err != DG_OK) {
		if (reterr)
			*reterr = why;
		return err;
	}
	pair->certificate_pem = kept;
	pair->key_pem = strdup(kept);
	if (!pair->key_pem)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	return check_pair(pair, "the kept certificate", "the kept key", reterr);
}

/* For scripts beside the gateway, such as a container's health check. */
static dg_err write_pin(const dg__config *config, const char *pin, dg_error *reterr)
{
	char path[1100], fresh[1110];
	snprintf(path, sizeof(path), "%s/pin", config->state_dir);
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	bool written = fd >= 0 && dprintf(fd, "%s\n", pin) > 0 && fsync(fd) == 0;
	if (fd >= 0 && close(fd) != 0)
		written = false;
	if (written && rename(fresh, path) == 0)
		return DG_OK;
	return dg_error_native(reterr, DG_ESTATE, "write", errno, "%.300s cannot be written: %s",
		path, strerror(errno));
}

dg_err dg__tls_load(
	const dg__config *config, dg__store *store, dg__tls_pair *ret_pair, dg_error *reterr)
{
	dg__tls_pair pair = { .certificate_pem = NULL };
	dg_err err = *config->cert_file ? load_files(config, &pair, reterr)
					: load_kept(config, store, &pair, reterr);
	if (err == DG_OK && !config->ephemeral)
		err = write_pin(config, pair.pin, reterr);
	if (err == DG_OK)
		*ret_pair = pair;
	else
		dg__tls_pair_finish(&pair);
	return err;
}
