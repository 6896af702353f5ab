/* Who is let in, and what they may do. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

#include "backends/core/clock.h"
#include "server/auth.h"
#include "server/config_internal.h"
#include "tests/test.h"

#define FAILURES_MAX 20

static dg_error why;

/* What a case works with: a state in a folder, so that another handle sees it too. */
static dg__config config;
static char *folder;
static dg__store *store;
static dg__auth *auth;

static void start(void)
{
	dg__config_defaults(&config);
	config.loopback_scopes = DG__SCOPE_READ;
	folder = dg_test_temp_dir();
	auth = NULL;
	CU_ASSERT_EQUAL_FATAL(dg__store_open(folder, &store, &why), DG_OK);
}

static void begin(void)
{
	CU_ASSERT_EQUAL_FATAL(dg__auth_create(&config, store, &auth, &why), DG_OK);
}

static void finish(void)
{
	dg__auth_destroy(auth);
	dg__store_close(store);
	free(folder);
}

static void add_token(
	dg__store *to, const char *name, const char *secret, unsigned scopes, int64_t expires_at_ms)
{
	dg__token token = { .scopes = scopes, .created_at_ms = 1, .expires_at_ms = expires_at_ms };
	snprintf(token.name, sizeof(token.name), "%s", name);
	SHA256((const unsigned char *)secret, strlen(secret), token.sha256);
	CU_ASSERT_EQUAL(dg__store_add_token(to, &token, &why), DG_OK);
}

static dg__principal who;

static dg_err admit_from(const char *peer, const char *authorization)
{
	dg__credential credential = { .authorization = authorization, .loopback = true };
	snprintf(credential.peer, sizeof(credential.peer), "%s", peer);
	who = (dg__principal){ .scopes = 99 };
	why = (dg_error){ .code = DG_OK };
	return dg__auth_admit(auth, &credential, &who, &why);
}

static dg_err admit(const char *authorization)
{
	return admit_from("192.0.2.1", authorization);
}

static void test_admit__knows_a_token_by_its_whole_text(void)
{
	static const char *const wrong[] = { "Bearer secre", "Bearer secrets", "Bearer Secret",
		"Bearer ", "Bearer", "Basic secret", "secret", "", "Bearer secret ",
		"Bearer secret, Bearer other" };
	start();
	add_token(store, "alice", "secret", DG__SCOPE_READ | DG__SCOPE_LEASE, 0);
	begin();
	CU_ASSERT_EQUAL(admit("Bearer secret"), DG_OK);
	CU_ASSERT_STRING_EQUAL(who.name, "token:alice");
	CU_ASSERT_EQUAL(who.scopes, DG__SCOPE_READ | DG__SCOPE_LEASE);
	CU_ASSERT_EQUAL(admit("bearer   secret"), DG_OK);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CU_ASSERT_EQUAL(admit(wrong[i]), DG_EUNAUTHORIZED);
		CU_ASSERT_EQUAL(who.scopes, 99);
		CU_ASSERT_PTR_NULL(strstr(why.text, "secret"));
	}
	finish();
}

static void test_admit__takes_secrets_up_to_a_limit(void)
{
	static char header[100000] = "Bearer ";
	enum { LIMIT = 512 };
	start();
	char *secret = memset(header + 7, 'x', LIMIT);
	add_token(store, "long", secret, DG__SCOPE_READ, 0);
	secret[LIMIT] = 'x';
	add_token(store, "longer", secret, DG__SCOPE_READ, 0);
	begin();
	CU_ASSERT_EQUAL(admit(header), DG_EUNAUTHORIZED);
	secret[LIMIT] = '\0';
	CU_ASSERT_EQUAL(admit(header), DG_OK);
	CU_ASSERT_STRING_EQUAL(who.name, "token:long");
	memset(header + 7, 'x', sizeof(header) - 8);
	CU_ASSERT_EQUAL(admit(header), DG_EUNAUTHORIZED);
	finish();
}

static void test_admit__compares_the_whole_hash(void)
{
	start();
	for (unsigned at = 0; at < SHA256_DIGEST_LENGTH; at++) {
		dg__token token = { .scopes = DG__SCOPE_READ, .created_at_ms = 1 };
		snprintf(token.name, sizeof(token.name), "near%u", at);
		SHA256((const unsigned char *)"secret", 6, token.sha256);
		token.sha256[at] ^= 1;
		CU_ASSERT_EQUAL(dg__store_add_token(store, &token, &why), DG_OK);
	}
	begin();
	CU_ASSERT_EQUAL(dg__auth_live_tokens(auth), SHA256_DIGEST_LENGTH);
	CU_ASSERT_EQUAL(admit("Bearer secret"), DG_EUNAUTHORIZED);
	finish();
}

static void test_admit__lets_anyone_do_everything_where_nobody_has_to_say_who_they_are(void)
{
	start();
	config.no_auth = true;
	begin();
	dg__credential elsewhere = { .loopback = false };
	CU_ASSERT_EQUAL(dg__auth_admit(auth, &elsewhere, &who, &why), DG_OK);
	CU_ASSERT_STRING_EQUAL(who.name, "anonymous");
	CU_ASSERT_EQUAL(
		who.scopes, DG__SCOPE_READ | DG__SCOPE_MEASURE | DG__SCOPE_LEASE | DG__SCOPE_ADMIN);
	CU_ASSERT_EQUAL(admit("Bearer unknown"), DG_OK);
	finish();
}

static void test_admit__an_administrator_may_do_everything(void)
{
	start();
	add_token(store, "root", "secret", DG__SCOPE_ADMIN, 0);
	begin();
	CU_ASSERT_EQUAL(admit("Bearer secret"), DG_OK);
	CU_ASSERT_EQUAL(
		who.scopes, DG__SCOPE_READ | DG__SCOPE_MEASURE | DG__SCOPE_LEASE | DG__SCOPE_ADMIN);
	finish();
}

static void test_admit__loopback_needs_no_token_but_a_shown_one_must_be_right(void)
{
	start();
	begin();
	CU_ASSERT_EQUAL(admit(NULL), DG_OK);
	CU_ASSERT_STRING_EQUAL(who.name, "loopback");
	CU_ASSERT_EQUAL(who.scopes, DG__SCOPE_READ);
	CU_ASSERT_EQUAL(admit("Bearer wrong"), DG_EUNAUTHORIZED);
	dg__credential elsewhere = { .loopback = false };
	CU_ASSERT_EQUAL(dg__auth_admit(auth, &elsewhere, &who, &why), DG_EUNAUTHORIZED);
	config.loopback_scopes = 0;
	CU_ASSERT_EQUAL(admit(NULL), DG_EUNAUTHORIZED);
	finish();
}

static void test_admit__a_certificate_has_the_configured_scopes(void)
{
	start();
	begin();
	dg__credential credential = { .certificate_name = "node.example" };
	CU_ASSERT_EQUAL(dg__auth_admit(auth, &credential, &who, &why), DG_OK);
	CU_ASSERT_STRING_EQUAL(who.name, "cert:node.example");
	CU_ASSERT_EQUAL(who.scopes, DG__SCOPE_READ | DG__SCOPE_MEASURE);
	credential.authorization = "Bearer wrong";
	CU_ASSERT_EQUAL(dg__auth_admit(auth, &credential, &who, &why), DG_EUNAUTHORIZED);
	finish();
}

static void test_admit__a_token_ends_when_it_expires(void)
{
	start();
	int64_t now = dg__clock_unix_ms();
	add_token(store, "old", "old", DG__SCOPE_READ, now - 1);
	add_token(store, "short", "short", DG__SCOPE_READ, now + 400);
	begin();
	CU_ASSERT_EQUAL(admit("Bearer old"), DG_EUNAUTHORIZED);
	dg_err early = admit("Bearer short");
	/* A machine that slept meanwhile proves nothing. */
	CU_ASSERT_TRUE(early == DG_OK || dg__clock_unix_ms() > now + 400);
	dg_test_sleep_ms(450);
	CU_ASSERT_EQUAL(admit("Bearer short"), DG_EUNAUTHORIZED);
	CU_ASSERT_EQUAL(dg__auth_live_tokens(auth), 0);
	finish();
}

static dg_err err_after_a_second(const char *authorization)
{
	dg_test_sleep_ms(1050);
	return admit(authorization);
}

static void test_admit__sees_within_a_second_what_another_handle_did(void)
{
	start();
	add_token(store, "alice", "secret", DG__SCOPE_READ, 0);
	begin();
	dg__store *other;
	CU_ASSERT_EQUAL_FATAL(dg__store_open(folder, &other, &why), DG_OK);
	CU_ASSERT_EQUAL(admit("Bearer secret"), DG_OK);
	CU_ASSERT_EQUAL(dg__store_revoke_token(other, "alice", &why), DG_OK);
	add_token(other, "bob", "more", DG__SCOPE_MEASURE, 0);
	CU_ASSERT_EQUAL(err_after_a_second("Bearer secret"), DG_EUNAUTHORIZED);
	CU_ASSERT_EQUAL(admit("Bearer more"), DG_OK);
	CU_ASSERT_EQUAL(dg__auth_live_tokens(auth), 1);
	dg__store_close(other);
	finish();
}

static void test_limit__refuses_an_address_that_fails_often_and_no_valid_token(void)
{
	start();
	add_token(store, "alice", "secret", DG__SCOPE_READ, 0);
	begin();
	for (unsigned i = 0; i < FAILURES_MAX; i++)
		CU_ASSERT_EQUAL(admit("Bearer wrong"), DG_EUNAUTHORIZED);
	for (unsigned i = 0; i < FAILURES_MAX; i++)
		CU_ASSERT_EQUAL(admit("Bearer wrong"), DG_ERATE);
	CU_ASSERT_EQUAL(admit("Bearer secret"), DG_OK);
	CU_ASSERT_EQUAL(admit_from("192.0.2.2", "Bearer wrong"), DG_EUNAUTHORIZED);
	CU_ASSERT_EQUAL(admit("Bearer wrong"), DG_ERATE);
	finish();
}

/* Far more addresses than places in the table, so that some share the place of the first one. */
static void test_limit__of_one_address_is_not_that_of_another(void)
{
	unsigned limited = 0;
	start();
	begin();
	for (unsigned i = 0; i < FAILURES_MAX; i++)
		CU_ASSERT_EQUAL(admit("Bearer wrong"), DG_EUNAUTHORIZED);
	for (unsigned i = 0; i < 10000; i++) {
		char peer[64];
		snprintf(peer, sizeof(peer), "198.51.%u.%u", i / 256, i % 256);
		limited += admit_from(peer, "Bearer wrong") != DG_EUNAUTHORIZED;
	}
	CU_ASSERT_EQUAL(limited, 0);
	finish();
}

/* The tokens file. */

static void write_tokens(const char *text)
{
	snprintf(config.tokens_file, sizeof(config.tokens_file), "%s/tokens", folder);
	FILE *f = fopen(config.tokens_file, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

static const char *line_of(const char *name, const char *scopes, const char *secret)
{
	static char line[300];
	unsigned char hash[SHA256_DIGEST_LENGTH];
	SHA256((const unsigned char *)secret, strlen(secret), hash);
	size_t length = (size_t)snprintf(line, sizeof(line), "%s  %s\t", name, scopes);
	for (unsigned i = 0; i < sizeof(hash); i++)
		length += (size_t)snprintf(
			line + length, sizeof(line) - length, i % 2 ? "%02x" : "%02X", hash[i]);
	snprintf(line + length, sizeof(line) - length, " # said who\r\n");
	return line;
}

static void test_tokens_file__is_read_beside_the_state(void)
{
	start();
	add_token(store, "alice", "secret", DG__SCOPE_READ, 0);
	write_tokens(line_of("carol", "read,measure", "filed"));
	begin();
	CU_ASSERT_EQUAL(dg__auth_live_tokens(auth), 2);
	CU_ASSERT_EQUAL(admit("Bearer filed"), DG_OK);
	CU_ASSERT_STRING_EQUAL(who.name, "token:carol");
	CU_ASSERT_EQUAL(who.scopes, DG__SCOPE_READ | DG__SCOPE_MEASURE);
	CU_ASSERT_EQUAL(admit("Bearer secret"), DG_OK);
	finish();
}

static void test_tokens_file__a_faulty_one_leaves_the_last_good_one(void)
{
	start();
	write_tokens(line_of("carol", "read", "filed"));
	begin();
	write_tokens("# comment\n\ndave read 1234\n");
	CU_ASSERT_EQUAL(dg__auth_reload(auth, &why), DG_ECONFIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "line 3"));
	CU_ASSERT_EQUAL(admit("Bearer filed"), DG_OK);
	remove(config.tokens_file);
	CU_ASSERT_EQUAL(dg__auth_reload(auth, &why), DG_ECONFIG);
	CU_ASSERT_EQUAL(admit("Bearer filed"), DG_OK);
	write_tokens(line_of("dave", "measure", "new"));
	CU_ASSERT_EQUAL(dg__auth_reload(auth, &why), DG_OK);
	CU_ASSERT_EQUAL(admit("Bearer filed"), DG_EUNAUTHORIZED);
	CU_ASSERT_EQUAL(admit("Bearer new"), DG_OK);
	write_tokens("");
	CU_ASSERT_EQUAL(dg__auth_reload(auth, &why), DG_OK);
	CU_ASSERT_EQUAL(dg__auth_live_tokens(auth), 0);
	finish();
}

static void test_tokens_file__tells_the_line_and_what_was_expected(void)
{
	char long_name[200];
	memset(long_name, 'n', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	const struct {
		const char *name, *scopes, *reason;
	} rows[] = { { "a/b", "read", "letters, digits" }, { long_name, "read", "letters, digits" },
		{ "a", "write", "'write' is no scope" }, { "a b", "read", "NAME SCOPES SHA256" },
		{ "", "read", "NAME SCOPES SHA256" } };
	start();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		write_tokens(line_of(rows[i].name, rows[i].scopes, "x"));
		CU_ASSERT_EQUAL(dg__auth_create(&config, store, &auth, &why), DG_ECONFIG);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "line 1"));
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, rows[i].reason));
	}
	auth = NULL;
	finish();
}

static void check_file_refused(const char *text, const char *reason)
{
	write_tokens(text);
	why = (dg_error){ .code = DG_OK };
	CU_ASSERT_EQUAL(dg__auth_create(&config, store, &auth, &why), DG_ECONFIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, reason));
}

static void test_tokens_file__refuses_hashes_and_lines_of_another_length(void)
{
	char text[800];
	start();
	snprintf(text, sizeof(text), "a read %064d\n", 0);
	write_tokens(text);
	begin();
	CU_ASSERT_EQUAL(dg__auth_live_tokens(auth), 1);
	dg__auth_destroy(auth);
	auth = NULL;
	snprintf(text, sizeof(text), "a read %063d\n", 0);
	check_file_refused(text, "64 hex digits");
	snprintf(text, sizeof(text), "a read %065d\n", 0);
	check_file_refused(text, "64 hex digits");
	snprintf(text, sizeof(text), "a read %063dg\n", 0);
	check_file_refused(text, "64 hex digits");
	/* Read in parts, the end of this line would be a token of its own. */
	snprintf(text, sizeof(text), "#%600s\na read %064d\n", "", 0);
	check_file_refused(text, "line 1: longer than");
	finish();
}

/* Threads. */

static atomic_bool stop;
static atomic_uint refused;

static void *ask(void *user)
{
	dg__credential credential = { .authorization = "Bearer secret" };
	(void)user;
	while (!atomic_load(&stop)) {
		dg__principal principal;
		if (dg__auth_admit(auth, &credential, &principal, NULL) != DG_OK ||
			strcmp(principal.name, "token:alice") != 0)
			atomic_fetch_add(&refused, 1);
	}
	return NULL;
}

static void test_admit__goes_on_while_tokens_are_read_again(void)
{
	pthread_t threads[3];
	start();
	add_token(store, "alice", "secret", DG__SCOPE_READ, 0);
	write_tokens(line_of("carol", "read", "filed"));
	begin();
	atomic_store(&stop, false);
	atomic_store(&refused, 0);
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, ask, NULL), 0);
	for (unsigned i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(dg__auth_reload(auth, &why), DG_OK);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_EQUAL(atomic_load(&refused), 0);
	finish();
}

static const dg_test_case cases[] = {
	DG_TEST(test_admit__knows_a_token_by_its_whole_text),
	DG_TEST(test_admit__takes_secrets_up_to_a_limit),
	DG_TEST(test_admit__compares_the_whole_hash),
	DG_TEST(test_admit__lets_anyone_do_everything_where_nobody_has_to_say_who_they_are),
	DG_TEST(test_admit__an_administrator_may_do_everything),
	DG_TEST(test_admit__loopback_needs_no_token_but_a_shown_one_must_be_right),
	DG_TEST(test_admit__a_certificate_has_the_configured_scopes),
	DG_TEST(test_admit__a_token_ends_when_it_expires),
	DG_TEST(test_admit__sees_within_a_second_what_another_handle_did),
	DG_TEST(test_limit__refuses_an_address_that_fails_often_and_no_valid_token),
	DG_TEST(test_limit__of_one_address_is_not_that_of_another),
	DG_TEST(test_tokens_file__is_read_beside_the_state),
	DG_TEST(test_tokens_file__a_faulty_one_leaves_the_last_good_one),
	DG_TEST(test_tokens_file__tells_the_line_and_what_was_expected),
	DG_TEST(test_tokens_file__refuses_hashes_and_lines_of_another_length),
	DG_TEST(test_admit__goes_on_while_tokens_are_read_again),
};

DG_TEST_MAIN("auth", cases)
