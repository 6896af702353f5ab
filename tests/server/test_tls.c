/* The gateway's certificate: made once, kept, and never served with another's key. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>

#include "server/config_internal.h"
#include "server/tls.h"
#include "tests/test.h"

static dg_error why;
static dg__config config;
static char *folder;
static dg__store *store;

static void start(void)
{
	dg__config_defaults(&config);
	folder = dg_test_temp_dir();
	snprintf(config.state_dir, sizeof(config.state_dir), "%s", folder);
	CU_ASSERT_EQUAL_FATAL(dg__store_open(folder, &store, &why), DG_OK);
}

static void finish(void)
{
	dg__store_close(store);
	free(folder);
}

static dg__tls_pair load(void)
{
	dg__tls_pair pair = { .certificate_pem = NULL };
	if (dg__tls_load(&config, store, &pair, &why) != DG_OK)
		printf("\n    %s\n    ", why.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(pair.certificate_pem);
	CU_ASSERT_PTR_NOT_NULL_FATAL(pair.key_pem);
	return pair;
}

static void check_refused(dg_err err, const char *reason)
{
	dg__tls_pair pair = { .certificate_pem = NULL };
	why = (dg_error){ .code = DG_OK };
	CU_ASSERT_EQUAL(dg__tls_load(&config, store, &pair, &why), err);
	CU_ASSERT_PTR_NULL(pair.certificate_pem);
	CU_ASSERT_PTR_NULL(pair.key_pem);
	bool told = strstr(why.text, reason) != NULL;
	if (!told)
		printf("\n    %s\n    ", why.text);
	CU_ASSERT_TRUE(told);
}

static void write_as(const char *name, const char *text, char *path, size_t size)
{
	snprintf(path, size, "%.800s/%s", folder, name);
	FILE *f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

static void use_files(const char *certificate, const char *key)
{
	write_as("cert.pem", certificate, config.cert_file, sizeof(config.cert_file));
	write_as("key.pem", key, config.key_file, sizeof(config.key_file));
}

static X509 *certificate_of(const char *pem)
{
	BIO *in = BIO_new_mem_buf(pem, -1);
	X509 *certificate = PEM_read_bio_X509(in, NULL, NULL, NULL);
	BIO_free(in);
	CU_ASSERT_PTR_NOT_NULL_FATAL(certificate);
	return certificate;
}

static EVP_PKEY *key_of(const char *pem)
{
	BIO *in = BIO_new_mem_buf(pem, -1);
	EVP_PKEY *key = PEM_read_bio_PrivateKey(in, NULL, NULL, NULL);
	BIO_free(in);
	CU_ASSERT_PTR_NOT_NULL_FATAL(key);
	return key;
}

static char *text_of(BIO *bio)
{
	char *data;
	long length = BIO_get_mem_data(bio, &data);
	char *text = strndup(data, (size_t)length);
	BIO_free(bio);
	return text;
}

/* A pair that began and ends so many seconds from now, its key under a passphrase where there is
 * one; owned texts. */
static void make_locked_pair(
	long begin, long end, const char *passphrase, char **ret_certificate, char **ret_key)
{
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
	X509 *certificate = X509_new();
	X509_gmtime_adj(X509_getm_notBefore(certificate), begin);
	X509_gmtime_adj(X509_getm_notAfter(certificate), end);
	X509_set_pubkey(certificate, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
		(const unsigned char *)"elsewhere", -1, -1, 0);
	X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
	CU_ASSERT_FATAL(X509_sign(certificate, key, EVP_sha256()) > 0);
	BIO *out = BIO_new(BIO_s_mem());
	PEM_write_bio_X509(out, certificate);
	*ret_certificate = text_of(out);
	out = BIO_new(BIO_s_mem());
	PEM_write_bio_PrivateKey(out, key, passphrase ? EVP_aes_128_cbc() : NULL, NULL, 0, NULL,
		(void *)(uintptr_t)passphrase);
	*ret_key = text_of(out);
	X509_free(certificate);
	EVP_PKEY_free(key);
}

static void make_pair(long begin, long end, char **ret_certificate, char **ret_key)
{
	make_locked_pair(begin, end, NULL, ret_certificate, ret_key);
}

/* As `openssl x509 -pubkey | openssl pkey -pubin -outform der | openssl dgst -sha256` does, but
 * from the private key, a way that the gateway does not take. */
static void pin_of_key(const char *pem, char *buf, size_t size)
{
	unsigned char *der = NULL, digest[SHA256_DIGEST_LENGTH], text[64];
	EVP_PKEY *key = key_of(pem);
	int length = i2d_PUBKEY(key, &der);
	CU_ASSERT_FATAL(length > 0);
	SHA256(der, (size_t)length, digest);
	EVP_EncodeBlock(text, digest, sizeof(digest));
	snprintf(buf, size, "sha256//%.44s", (const char *)text);
	OPENSSL_free(der);
	EVP_PKEY_free(key);
}

static void test_load__makes_a_pair_whose_pin_openssl_agrees_with(void)
{
	char pin[DG__PIN_MAX], path[1100];
	start();
	dg__tls_pair pair = load();
	pin_of_key(pair.key_pem, pin, sizeof(pin));
	CU_ASSERT_STRING_EQUAL(pair.pin, pin);
	snprintf(path, sizeof(path), "%s/pin", folder);
	char *written = dg_test_read_file(path, NULL);
	written[strcspn(written, "\n")] = '\0';
	CU_ASSERT_STRING_EQUAL(written, pin);
	free(written);
	dg__tls_pair_finish(&pair);
	CU_ASSERT_PTR_NULL(pair.key_pem);
	finish();
}

static void test_load__the_pin_is_what_the_command_line_computes(void)
{
	char pin[DG__PIN_MAX] = "sha256//", command[1200];
	start();
	dg__tls_pair pair = load();
	use_files(pair.certificate_pem, pair.key_pem);
	snprintf(command, sizeof(command),
		"openssl x509 -in '%.900s' -noout -pubkey | openssl pkey -pubin -outform der |"
		" openssl dgst -sha256 -binary | openssl base64",
		config.cert_file);
	FILE *out = popen(command, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	char *said = fgets(pin + 8, sizeof(pin) - 8, out);
	if (pclose(out) != 0 || !said) {
		dg_test_skip("openssl", "the program openssl is not installed");
	} else {
		pin[strcspn(pin, "\n")] = '\0';
		CU_ASSERT_STRING_EQUAL(pair.pin, pin);
	}
	dg__tls_pair_finish(&pair);
	finish();
}

static void test_load__a_made_certificate_names_the_gateway(void)
{
	start();
	snprintf(config.names[config.name_count++], sizeof(config.names[0]), "gpu.example");
	snprintf(config.names[config.name_count++], sizeof(config.names[0]), "192.0.2.7");
	snprintf(config.names[config.name_count++], sizeof(config.names[0]), "a,DNS:evil.example");
	dg__listen *listen = &config.listen[config.listen_count++];
	snprintf(listen->host, sizeof(listen->host), "2001:db8::5");
	dg__tls_pair pair = load();
	X509 *certificate = certificate_of(pair.certificate_pem);
	CU_ASSERT_EQUAL(X509_check_host(certificate, "localhost", 0, 0, NULL), 1);
	CU_ASSERT_EQUAL(X509_check_host(certificate, "gpu.example", 0, 0, NULL), 1);
	CU_ASSERT_EQUAL(X509_check_host(certificate, "evil.example", 0, 0, NULL), 0);
	CU_ASSERT_EQUAL(X509_check_ip_asc(certificate, "127.0.0.1", 0), 1);
	CU_ASSERT_EQUAL(X509_check_ip_asc(certificate, "::1", 0), 1);
	CU_ASSERT_EQUAL(X509_check_ip_asc(certificate, "192.0.2.7", 0), 1);
	CU_ASSERT_EQUAL(X509_check_ip_asc(certificate, "2001:db8::5", 0), 1);
	CU_ASSERT_EQUAL(X509_check_ip_asc(certificate, "192.0.2.8", 0), 0);
	X509_free(certificate);
	dg__tls_pair_finish(&pair);
	finish();
}

static void test_load__a_made_certificate_is_for_servers_alone_and_for_years(void)
{
	const time_t year = 365L * 24 * 3600;
	time_t later = time(NULL) + 9 * year, too_late = time(NULL) + 11 * year;
	start();
	dg__tls_pair pair = load();
	X509 *certificate = certificate_of(pair.certificate_pem);
	EVP_PKEY *key = key_of(pair.key_pem);
	CU_ASSERT_EQUAL(X509_get_version(certificate), 2); /* v3 */
	CU_ASSERT_TRUE(EVP_PKEY_is_a(key, "EC"));
	CU_ASSERT_EQUAL(EVP_PKEY_get_bits(key), 256);
	CU_ASSERT_EQUAL(X509_check_ca(certificate), 0);
	CU_ASSERT_EQUAL(X509_get_extended_key_usage(certificate), XKU_SSL_SERVER);
	CU_ASSERT_TRUE(X509_cmp_current_time(X509_get0_notBefore(certificate)) < 0);
	CU_ASSERT_TRUE(X509_cmp_time(X509_get0_notAfter(certificate), &later) > 0);
	CU_ASSERT_TRUE(X509_cmp_time(X509_get0_notAfter(certificate), &too_late) < 0);
	CU_ASSERT_EQUAL(X509_verify(certificate, key), 1);
	EVP_PKEY_free(key);
	X509_free(certificate);
	dg__tls_pair_finish(&pair);
	finish();
}

static void test_load__the_made_pair_stays_over_restarts(void)
{
	start();
	dg__tls_pair first = load();
	dg__store_close(store);
	CU_ASSERT_EQUAL_FATAL(dg__store_open(folder, &store, &why), DG_OK);
	dg__tls_pair second = load();
	CU_ASSERT_STRING_EQUAL(first.pin, second.pin);
	X509 *a = certificate_of(first.certificate_pem),
	     *b = certificate_of(second.certificate_pem);
	EVP_PKEY *key = key_of(second.key_pem);
	CU_ASSERT_EQUAL(X509_cmp(a, b), 0);
	CU_ASSERT_EQUAL(X509_check_private_key(b, key), 1);
	EVP_PKEY_free(key);
	X509_free(a);
	X509_free(b);
	dg__tls_pair_finish(&first);
	dg__tls_pair_finish(&second);
	finish();
}

static void test_load__other_states_get_other_keys(void)
{
	start();
	dg__tls_pair first = load();
	finish();
	start();
	dg__tls_pair second = load();
	CU_ASSERT_STRING_NOT_EQUAL(first.pin, second.pin);
	X509 *a = certificate_of(first.certificate_pem);
	X509 *b = certificate_of(second.certificate_pem);
	CU_ASSERT_NOT_EQUAL(
		ASN1_INTEGER_cmp(X509_get0_serialNumber(a), X509_get0_serialNumber(b)), 0);
	X509_free(a);
	X509_free(b);
	dg__tls_pair_finish(&first);
	dg__tls_pair_finish(&second);
	finish();
}

static void *load_in_thread(void *user)
{
	dg__tls_pair *pair = user;
	dg__store *own = NULL;
	bool loaded = dg__store_open(folder, &own, NULL) == DG_OK &&
		      dg__tls_load(&config, own, pair, NULL) == DG_OK;
	dg__store_close(own);
	return loaded ? pair : NULL;
}

static void test_load__who_start_at_once_get_one_pair(void)
{
	enum { AT_ONCE = 4 };
	for (unsigned round = 0; round < 4; round++) {
		dg__tls_pair pairs[AT_ONCE] = { { .certificate_pem = NULL } };
		pthread_t threads[AT_ONCE];
		start();
		config.ephemeral = true; /* the state is what they share; no pin is written */
		for (unsigned i = 0; i < AT_ONCE; i++)
			CU_ASSERT_EQUAL_FATAL(
				pthread_create(&threads[i], NULL, load_in_thread, &pairs[i]), 0);
		for (unsigned i = 0; i < AT_ONCE; i++) {
			void *loaded = NULL;
			pthread_join(threads[i], &loaded);
			CU_ASSERT_PTR_NOT_NULL(loaded);
			CU_ASSERT_STRING_EQUAL(pairs[i].pin, pairs[0].pin);
		}
		for (unsigned i = 0; i < AT_ONCE; i++)
			dg__tls_pair_finish(&pairs[i]);
		finish();
	}
}

static void test_load__configured_files_win_over_the_kept_pair(void)
{
	char *certificate, *key, pin[DG__PIN_MAX];
	start();
	dg__tls_pair kept = load();
	make_pair(-60, 3600, &certificate, &key);
	use_files(certificate, key);
	dg__tls_pair pair = load();
	pin_of_key(key, pin, sizeof(pin));
	CU_ASSERT_STRING_EQUAL(pair.pin, pin);
	CU_ASSERT_STRING_EQUAL(pair.certificate_pem, certificate);
	*config.cert_file = *config.key_file = '\0';
	dg__tls_pair again = load();
	CU_ASSERT_STRING_EQUAL(again.pin, kept.pin);
	dg__tls_pair_finish(&kept);
	dg__tls_pair_finish(&pair);
	dg__tls_pair_finish(&again);
	free(certificate);
	free(key);
	finish();
}

static void test_load__refuses_a_key_of_another_certificate(void)
{
	char *certificate, *key;
	start();
	dg__tls_pair made = load();
	make_pair(-60, 3600, &certificate, &key);
	use_files(certificate, made.key_pem);
	check_refused(DG_ECONFIG, "do not belong together");
	use_files(made.certificate_pem, key);
	check_refused(DG_ECONFIG, "do not belong together");
	dg__tls_pair_finish(&made);
	free(certificate);
	free(key);
	finish();
}

static void test_load__refuses_what_has_expired_or_does_not_parse(void)
{
	char *certificate, *key;
	start();
	make_pair(-7200, -3600, &certificate, &key);
	use_files(certificate, key);
	check_refused(DG_ECONFIG, "has expired");
	use_files("no certificate\n", key);
	check_refused(DG_ECONFIG, "cert.pem holds no PEM certificate");
	use_files(certificate, "no key\n");
	check_refused(DG_ECONFIG, "key.pem holds no PEM key");
	use_files(certificate, "");
	check_refused(DG_ECONFIG, "key.pem cannot be read");
	remove(config.cert_file);
	check_refused(DG_ECONFIG, "cert.pem cannot be read");
	*config.cert_file = *config.key_file = '\0';
	CU_ASSERT_EQUAL(dg__store_set_text(store, "tls_pair", "damaged", &why), DG_OK);
	check_refused(DG_ECONFIG, "the kept certificate");
	free(certificate);
	free(key);
	finish();
}

/* A passphrase is never asked for: nobody may sit there. */
static void test_load__refuses_a_key_under_a_passphrase(void)
{
	char *certificate, *key;
	start();
	make_locked_pair(-60, 3600, "secret", &certificate, &key);
	use_files(certificate, key);
	check_refused(DG_ECONFIG, "without a passphrase");
	free(certificate);
	free(key);
	finish();
}

static void append(const char *path, const char *bytes, size_t length, unsigned times)
{
	FILE *f = fopen(path, "a");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	while (times--)
		fwrite(bytes, 1, length, f);
	CU_ASSERT_EQUAL(fclose(f), 0);
}

static void test_load__refuses_files_that_it_would_not_read_to_their_end(void)
{
	char *certificate, *key;
	start();
	make_pair(-60, 3600, &certificate, &key);
	use_files(certificate, key);
	append(config.cert_file, "\0", 1, 1);
	check_refused(DG_ECONFIG, "cert.pem cannot be read as PEM");
	use_files(certificate, key);
	append(config.key_file, "0123456789abcdef", 16, 65536);
	check_refused(DG_ECONFIG, "longer than 1048576 bytes");
	snprintf(config.key_file, sizeof(config.key_file), "%.800s", folder);
	check_refused(DG_ECONFIG, "not a regular file");
	free(certificate);
	free(key);
	finish();
}

static void test_load__fails_where_the_pin_cannot_be_written(void)
{
	char path[1100], target[1100];
	start();
	snprintf(path, sizeof(path), "%s/pin.new", folder);
	snprintf(target, sizeof(target), "%s/victim", folder);
	CU_ASSERT_EQUAL(symlink(target, path), 0);
	check_refused(DG_ESTATE, "/pin cannot be written");
	CU_ASSERT_NOT_EQUAL(access(target, F_OK), 0);
	CU_ASSERT_EQUAL(remove(path), 0);
	snprintf(config.state_dir, sizeof(config.state_dir), "%.800s/absent", folder);
	check_refused(DG_ESTATE, "/pin cannot be written");
	finish();
}

static void test_load__ephemeral_writes_no_file(void)
{
	char path[1100];
	start();
	config.ephemeral = true;
	dg__tls_pair pair = load();
	snprintf(path, sizeof(path), "%s/pin", folder);
	CU_ASSERT_NOT_EQUAL(remove(path), 0);
	dg__tls_pair_finish(&pair);
	finish();
}

static const dg_test_case cases[] = {
	DG_TEST(test_load__makes_a_pair_whose_pin_openssl_agrees_with),
	DG_TEST(test_load__the_pin_is_what_the_command_line_computes),
	DG_TEST(test_load__a_made_certificate_names_the_gateway),
	DG_TEST(test_load__a_made_certificate_is_for_servers_alone_and_for_years),
	DG_TEST(test_load__the_made_pair_stays_over_restarts),
	DG_TEST(test_load__other_states_get_other_keys),
	DG_TEST(test_load__who_start_at_once_get_one_pair),
	DG_TEST(test_load__configured_files_win_over_the_kept_pair),
	DG_TEST(test_load__refuses_a_key_of_another_certificate),
	DG_TEST(test_load__refuses_what_has_expired_or_does_not_parse),
	DG_TEST(test_load__refuses_a_key_under_a_passphrase),
	DG_TEST(test_load__refuses_files_that_it_would_not_read_to_their_end),
	DG_TEST(test_load__fails_where_the_pin_cannot_be_written),
	DG_TEST(test_load__ephemeral_writes_no_file),
};

DG_TEST_MAIN("tls", cases)
