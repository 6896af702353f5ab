/*
 * Certificates, as GnuTLS takes them: see http_internal.h. GnuTLS asks for the pair at each
 * handshake and gives no place for a context, so that the pair is this process's one.
 */
#include <stdlib.h>
#include <string.h>

#include <gnutls/abstract.h>
#include <gnutls/x509.h>

#include "server/http_internal.h"

#define CHAIN_MAX 16

typedef struct pair {
	struct pair *older; /* handshakes may still use it */
	gnutls_pcert_st chain[CHAIN_MAX];
	unsigned int count;
	gnutls_privkey_t key;
} pair;

static _Atomic(pair *) serving;

static void free_pair(pair *p)
{
	for (unsigned int i = 0; i < p->count; i++)
		gnutls_pcert_deinit(&p->chain[i]);
	if (p->key)
		gnutls_privkey_deinit(p->key);
	free(p);
}

dg_err dg__http_tls_set(const dg__tls_pair *pem, dg_error *reterr)
{
	pair *p = calloc(1, sizeof(*p));
	if (!p)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	gnutls_datum_t certificate = { (unsigned char *)pem->certificate_pem,
		(unsigned int)strlen(pem->certificate_pem) };
	gnutls_datum_t key = { (unsigned char *)pem->key_pem, (unsigned int)strlen(pem->key_pem) };
	p->count = CHAIN_MAX;
	int fault = gnutls_pcert_list_import_x509_raw(p->chain, &p->count, &certificate,
		GNUTLS_X509_FMT_PEM, GNUTLS_X509_CRT_LIST_FAIL_IF_UNSORTED);
	if (fault < 0)
		p->count = 0;
	else
		fault = gnutls_privkey_init(&p->key);
	if (fault >= 0)
		fault = gnutls_privkey_import_x509_raw(p->key, &key, GNUTLS_X509_FMT_PEM, NULL, 0);
	if (fault < 0) {
		free_pair(p);
		return dg_error_native(reterr, DG_ECONFIG, "gnutls", fault,
			"the certificate cannot be used: %s", gnutls_strerror(fault));
	}
	p->older = atomic_load(&serving);
	atomic_store(&serving, p);
	return DG_OK;
}

void dg__http_tls_finish(void)
{
	pair *p = atomic_exchange(&serving, NULL);
	while (p) {
		pair *older = p->older;
		free_pair(p);
		p = older;
	}
}

int dg__http_tls_retrieve(gnutls_session_t session, const gnutls_datum_t *ca_names, int ca_count,
	const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
	gnutls_pcert_st **ret_certificates, unsigned int *ret_count, gnutls_privkey_t *ret_key)
{
	(void)session;
	(void)ca_names;
	(void)ca_count;
	(void)algorithms;
	(void)algorithm_count;
	pair *p = atomic_load(&serving);
	if (!p)
		return -1;
	*ret_certificates = p->chain;
	*ret_count = p->count;
	*ret_key = p->key;
	return 0;
}

static bool allowed(const dg__config *config, const char *name)
{
	for (size_t i = 0; i < config->client_name_count; i++)
		if (strcmp(config->client_names[i], name) == 0)
			return true;
	return false;
}

/* The first of a certificate's names that is on the list: alternative names first, then the CN. */
static bool find_name(
	const dg__config *config, gnutls_x509_crt_t certificate, char *buf, size_t size)
{
	for (unsigned int i = 0; i < 64; i++) {
		size_t length = size - 1;
		int kind = gnutls_x509_crt_get_subject_alt_name(certificate, i, buf, &length, NULL);
		if (kind == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
			break;
		if (kind < 0 || length >= size)
			continue;
		buf[length] = '\0';
		if ((kind == GNUTLS_SAN_DNSNAME || kind == GNUTLS_SAN_URI ||
			    kind == GNUTLS_SAN_RFC822NAME) &&
			strlen(buf) == length && allowed(config, buf))
			return true;
	}
	size_t length = size;
	if (gnutls_x509_crt_get_dn_by_oid(
		    certificate, GNUTLS_OID_X520_COMMON_NAME, 0, 0, buf, &length) < 0)
		return false;
	return length < size && strlen(buf) == length && allowed(config, buf);
}

void dg__http_tls_name(const dg__config *config, gnutls_session_t session, char *buf, size_t size)
{
	unsigned int status = 1, count = 0;
	*buf = '\0';
	/* The HTTP library asks for a certificate and lets any pass. */
	if (gnutls_certificate_verify_peers2(session, &status) < 0 || status != 0)
		return;
	const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &count);
	gnutls_x509_crt_t certificate;
	if (!chain || count == 0 || gnutls_x509_crt_init(&certificate) < 0)
		return;
	if (gnutls_x509_crt_import(certificate, &chain[0], GNUTLS_X509_FMT_DER) < 0 ||
		!find_name(config, certificate, buf, size))
		*buf = '\0';
	gnutls_x509_crt_deinit(certificate);
}
