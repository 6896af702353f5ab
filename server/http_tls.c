/* TLS of the HTTP server: see http_internal.h. */
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "server/http_internal.h"

/* Of TLS 1.2 only what has forward secrecy and authenticated encryption. */
#define TLS12_CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"
#define GROUPS "X25519:P-256:P-384"
#define ENTRIES_MAX 100

static dg_err fail(const char *what, dg_error *reterr)
{
	unsigned long code = ERR_peek_last_error();
	const char *why = ERR_reason_error_string(code);
	return dg_error_native(reterr, DG_ECONFIG, "openssl", ERR_GET_REASON(code), "%.300s: %s",
		what, why ? why : "unknown error");
}

static int no_passphrase(char *buf, int size, int writing, void *user)
{
	(void)buf;
	(void)size;
	(void)writing;
	(void)user;
	return 0;
}

static bool use_chain(SSL_CTX *tls, BIO *pem)
{
	X509 *certificate = PEM_read_bio_X509(pem, NULL, no_passphrase, NULL);
	bool used = certificate && SSL_CTX_use_certificate(tls, certificate) == 1;
	X509_free(certificate);
	while (used && (certificate = PEM_read_bio_X509(pem, NULL, no_passphrase, NULL))) {
		used = SSL_CTX_add1_chain_cert(tls, certificate) == 1;
		X509_free(certificate);
	}
	return used;
}

static dg_err use_pair(SSL_CTX *tls, const dg__tls_pair *pair, dg_error *reterr)
{
	BIO *certificate = BIO_new_mem_buf(pair->certificate_pem, -1);
	BIO *key_text = BIO_new_mem_buf(pair->key_pem, -1);
	EVP_PKEY *key =
		key_text ? PEM_read_bio_PrivateKey(key_text, NULL, no_passphrase, NULL) : NULL;
	bool used = certificate && key && use_chain(tls, certificate) &&
		    SSL_CTX_use_PrivateKey(tls, key) == 1 && SSL_CTX_check_private_key(tls) == 1;
	dg_err err = used ? DG_OK : fail("the certificate cannot be used", reterr);
	EVP_PKEY_free(key);
	BIO_free(certificate);
	BIO_free(key_text);
	return err;
}

/* Any certificate may be shown; what it is worth is asked when a request comes, which can then be
 * told why it is refused. */
static int accept_any(int good, X509_STORE_CTX *store)
{
	(void)good;
	(void)store;
	return 1;
}

/* Trust every certificate of the text, and name them to clients. How many there were. */
static int trust(SSL_CTX *tls, const char *pem)
{
	BIO *text = BIO_new_mem_buf(pem, -1);
	X509 *certificate;
	int count = 0;
	while (text && (certificate = PEM_read_bio_X509(text, NULL, no_passphrase, NULL))) {
		bool added = X509_STORE_add_cert(SSL_CTX_get_cert_store(tls), certificate) == 1 &&
			     SSL_CTX_add_client_CA(tls, certificate) == 1;
		X509_free(certificate);
		count += added;
	}
	BIO_free(text);
	return count;
}

static dg_err use_client_ca(SSL_CTX *tls, const char *path, dg_error *reterr)
{
	char *pem = NULL;
	if (!*path)
		return DG_OK;
	dg_err err = dg__tls_read_pem(path, "client CA", &pem, reterr);
	if (err != DG_OK)
		return err;
	if (trust(tls, pem) == 0)
		err = dg_error_set(
			reterr, DG_ECONFIG, "%.300s holds no PEM certificate of a client CA", path);
	SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, accept_any);
	free(pem);
	return err;
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_length,
	const unsigned char *in, unsigned int in_length, void *user)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *chosen = NULL;
	(void)ssl;
	(void)user;
	if (SSL_select_next_proto(&chosen, out_length, ours, sizeof(ours) - 1, in, in_length) !=
		OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_NOACK;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static bool set_options(SSL_CTX *tls)
{
	static const unsigned char context[] = "devgate";
	SSL_CTX_set_options(tls,
		SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
	/* Idle connections give their buffers back; a write goes as far as the socket takes it. */
	SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
				      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* Sessions are in tickets, which the clients keep: nothing grows here. */
	SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
	/* One ticket a connection: a client that opens several has several. */
	(void)SSL_CTX_set_num_tickets(tls, 1);
	SSL_CTX_set_read_ahead(tls, 1);
	SSL_CTX_set_alpn_select_cb(tls, choose_protocol, NULL);
	return SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION) == 1 &&
	       SSL_CTX_set_cipher_list(tls, TLS12_CIPHERS) == 1 &&
	       SSL_CTX_set1_groups_list(tls, GROUPS) == 1 &&
	       SSL_CTX_set_session_id_context(tls, context, sizeof(context) - 1) == 1;
}

dg_err dg__http_tls_create(
	const dg__config *config, const dg__tls_pair *pair, SSL_CTX **ret_tls, dg_error *reterr)
{
	ERR_clear_error();
	SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
	if (!tls)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dg_err err = set_options(tls) ? DG_OK : fail("TLS cannot be set up", reterr);
	if (err == DG_OK)
		err = use_pair(tls, pair, reterr);
	if (err == DG_OK)
		err = use_client_ca(tls, config->client_ca_file, reterr);
	ERR_clear_error();
	if (err == DG_OK)
		*ret_tls = tls;
	else
		SSL_CTX_free(tls);
	return err;
}

/* The allowed name that a text of a certificate is; a NUL inside is nobody's name. */
static const char *allowed(const dg__config *config, const ASN1_STRING *text)
{
	const char *bytes = (const char *)ASN1_STRING_get0_data(text);
	size_t length = (size_t)ASN1_STRING_length(text);
	for (size_t i = 0; i < config->client_name_count; i++)
		if (strlen(config->client_names[i]) == length &&
			memcmp(config->client_names[i], bytes, length) == 0)
			return config->client_names[i];
	return NULL;
}

static const char *alternative_name(const dg__config *config, const X509 *certificate)
{
	const char *name = NULL;
	GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
	int count = names ? sk_GENERAL_NAME_num(names) : 0;
	for (int i = 0; i < count && i < ENTRIES_MAX && !name; i++) {
		int type;
		const ASN1_STRING *text =
			GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type);
		if (type == GEN_DNS || type == GEN_URI || type == GEN_EMAIL)
			name = allowed(config, text);
	}
	GENERAL_NAMES_free(names);
	return name;
}

static const char *common_name(const dg__config *config, const X509 *certificate)
{
	const X509_NAME *subject = X509_get_subject_name(certificate);
	int at = X509_NAME_get_index_by_NID((X509_NAME *)(uintptr_t)subject, NID_commonName, -1);
	if (at < 0)
		return NULL;
	return allowed(config, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

char *dg__http_tls_name(const dg__config *config, const SSL *ssl)
{
	X509 *certificate = SSL_get1_peer_certificate(ssl);
	const char *name = NULL;
	if (certificate && SSL_get_verify_result(ssl) == X509_V_OK) {
		name = alternative_name(config, certificate);
		if (!name)
			name = common_name(config, certificate);
	}
	X509_free(certificate);
	return name ? strdup(name) : NULL;
}
