/* Whom to trust and who to be, and towards whom. */
#include "client/credentials.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

#define PIN_A "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define PIN_B "sha256//BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA="

static void write_text(char *path, size_t size, const char *folder, const char *name,
	const char *text, size_t length)
{
	snprintf(path, size, "%s/%s", folder, name);
	FILE *f = fopen(path, "wb");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(fwrite(text, 1, length, f), length);
	CU_ASSERT_EQUAL(fclose(f), 0);
}

static void clear_environment(void)
{
	static const char *const names[] = { "DEVGATE_PIN", "DEVGATE_CACERT", "DEVGATE_TOKEN_FILE",
		"DEVGATE_GATEWAYS", "DEVGATE_REMOTE_ADDRESS", "BURN_REMOTE_ADDRESS" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

static dg__address address_of(const char *text)
{
	dg__address address = { 0 };
	CU_ASSERT_EQUAL_FATAL(dg__address_parse(text, &address, NULL), DG_OK);
	return address;
}

static uint32_t set_of(const char *text, uint32_t number)
{
	dg__identity identity;
	dg__address address = address_of(text);
	dg_err err = dg__credentials_identify(number, &address, &identity, NULL);
	CU_ASSERT_EQUAL(err, DG_OK);
	return err ? UINT32_MAX : identity.set;
}

static void test_intern__equal_sets_have_one_number(void)
{
	uint32_t a = 0, b = 0, c = 0, none = 9;
	CU_ASSERT_EQUAL(
		dg__credentials_intern(&(dg__credentials){ .pin = PIN_A }, &a, NULL), DG_OK);
	CU_ASSERT_EQUAL(
		dg__credentials_intern(&(dg__credentials){ .pin = PIN_A, .ca_file = "" }, &b, NULL),
		DG_OK);
	CU_ASSERT_EQUAL(
		dg__credentials_intern(&(dg__credentials){ .pin = PIN_B }, &c, NULL), DG_OK);
	CU_ASSERT_EQUAL(
		dg__credentials_intern(&(dg__credentials){ .pin = "" }, &none, NULL), DG_OK);
	CU_ASSERT(a != 0 && a == b && a != c);
	CU_ASSERT_EQUAL(none, 0);
}

static void test_intern__pins_of_other_forms_are_refused(void)
{
	static const char *const pins[] = { "sha256", "sha256//", "/etc/passwd",
		"sha1//AAAA=", "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", (PIN_A " "),
		(PIN_A PIN_B), (PIN_A ";"), (";" PIN_A),
		"SHA256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" };
	uint32_t number = 77;
	dg_error error;
	for (size_t i = 0; i < sizeof(pins) / sizeof(pins[0]); i++) {
		CU_ASSERT_EQUAL(dg__credentials_intern(
					&(dg__credentials){ .pin = pins[i] }, &number, &error),
			DG_ECREDENTIAL);
	}
	CU_ASSERT_EQUAL(number, 77);
	CU_ASSERT_EQUAL(
		dg__credentials_intern(&(dg__credentials){ .pin = PIN_A ";" PIN_B }, &number, NULL),
		DG_OK);
}

static void test_ambient__goes_to_the_default_address_alone(void)
{
	clear_environment();
	setenv("DEVGATE_PIN", PIN_A, 1);
	CU_ASSERT_NOT_EQUAL(set_of("https://127.0.0.1:8443", 0), 0);
	CU_ASSERT_EQUAL(set_of("https://127.0.0.1:8444", 0), 0);
	CU_ASSERT_EQUAL(set_of("https://elsewhere:8443", 0), 0);
	setenv("BURN_REMOTE_ADDRESS", "wss://node9:7000", 1);
	CU_ASSERT_NOT_EQUAL(set_of("https://node9:7000", 0), 0);
	CU_ASSERT_EQUAL(set_of("https://127.0.0.1:8443", 0), 0);
	clear_environment();
}

static void test_ambient__goes_to_addresses_that_were_named(void)
{
	uint32_t number = 99;
	dg__address address = address_of("https://named-by-caller:8443");
	clear_environment();
	setenv("DEVGATE_PIN", PIN_A, 1);
	CU_ASSERT_EQUAL(set_of("https://named-by-caller:8443", 0), 0);
	CU_ASSERT_EQUAL(dg__credentials_name(&address, NULL, &number, NULL), DG_OK);
	CU_ASSERT_EQUAL(number, 0);
	CU_ASSERT_NOT_EQUAL(set_of("https://NAMED-by-caller:8443", 0), 0);
	CU_ASSERT_EQUAL(set_of("https://named-by-caller:8444", 0), 0);
	clear_environment();
}

static void test_ambient__naming_with_credentials_does_not_open_the_address(void)
{
	uint32_t number = 0;
	dg_call call = DG_CALL_INIT;
	dg__address address = address_of("https://own-credentials:8443");
	clear_environment();
	setenv("DEVGATE_PIN", PIN_A, 1);
	call.pin = PIN_B;
	CU_ASSERT_EQUAL(dg__credentials_name(&address, &call, &number, NULL), DG_OK);
	CU_ASSERT_NOT_EQUAL(number, 0);
	CU_ASSERT_EQUAL(set_of("https://own-credentials:8443", 0), 0);
	CU_ASSERT_EQUAL(set_of("https://own-credentials:8443", number), number);
	clear_environment();
}

static void test_ambient__many_addresses_can_be_named(void)
{
	uint32_t number;
	char text[64];
	clear_environment();
	for (int i = 0; i < 3000; i++) {
		snprintf(text, sizeof(text), "https://many%d:8443", i);
		dg__address address = address_of(text);
		CU_ASSERT_EQUAL(dg__credentials_name(&address, NULL, &number, NULL), DG_OK);
	}
	setenv("DEVGATE_PIN", PIN_A, 1);
	CU_ASSERT_NOT_EQUAL(set_of("https://many0:8443", 0), 0);
	CU_ASSERT_NOT_EQUAL(set_of("https://many2999:8443", 0), 0);
	CU_ASSERT_EQUAL(set_of("https://many3000:8443", 0), 0);
	clear_environment();
}

static void test_ambient__stands_for_what_the_gateways_file_says(void)
{
	static const char text[] = "https://listed " PIN_B "\nhttps://bare\n";
	char *folder = dg_test_temp_dir(), path[600];
	uint32_t of_b = 0, of_a = 0;
	clear_environment();
	write_text(path, sizeof(path), folder, "gateways", text, strlen(text));
	setenv("DEVGATE_GATEWAYS", path, 1);
	setenv("DEVGATE_PIN", PIN_A, 1);
	CU_ASSERT_EQUAL(
		dg__credentials_intern(&(dg__credentials){ .pin = PIN_B }, &of_b, NULL), DG_OK);
	CU_ASSERT_EQUAL(
		dg__credentials_intern(&(dg__credentials){ .pin = PIN_A }, &of_a, NULL), DG_OK);
	CU_ASSERT_EQUAL(set_of("https://listed:8443", 0), of_b);
	CU_ASSERT_EQUAL(set_of("https://bare:8443", 0), of_a);
	CU_ASSERT_EQUAL(set_of("https://unlisted:8443", 0), 0);
	clear_environment();
	free(folder);
}

static void test_identify__nothing_goes_over_plain_http(void)
{
	dg__identity identity;
	dg__address address = address_of("http://127.0.0.1:8443");
	uint32_t number = 0;
	/* The file is not even looked for. */
	const dg__credentials set = { .token_file = "/nonexistent/token" };
	clear_environment();
	CU_ASSERT_EQUAL(dg__credentials_intern(&set, &number, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg__credentials_identify(number, &address, &identity, NULL), DG_OK);
	CU_ASSERT_EQUAL(identity.set, 0);
	CU_ASSERT_STRING_EQUAL(identity.token, "");
}

static dg_err token_of(const char *text, size_t length, char *token, size_t size)
{
	char *folder = dg_test_temp_dir(), path[600];
	dg__identity identity = { 0 };
	dg__address address = address_of("https://a:1");
	uint32_t number = 0;
	write_text(path, sizeof(path), folder, "token", text, length);
	const dg__credentials set = { .token_file = path };
	CU_ASSERT_EQUAL(dg__credentials_intern(&set, &number, NULL), DG_OK);
	dg_err err = dg__credentials_identify(number, &address, &identity, NULL);
	snprintf(token, size, "%.60s", identity.token);
	unlink(path);
	free(folder);
	return err;
}

static void test_token__first_line_trimmed(void)
{
	char token[64];
	CU_ASSERT_EQUAL(token_of("abc.DEF_1\n", 10, token, sizeof(token)), DG_OK);
	CU_ASSERT_STRING_EQUAL(token, "abc.DEF_1");
	CU_ASSERT_EQUAL(token_of(" \tabc \r\nsecond\n", 15, token, sizeof(token)), DG_OK);
	CU_ASSERT_STRING_EQUAL(token, "abc");
	CU_ASSERT_EQUAL(token_of("abc", 3, token, sizeof(token)), DG_OK);
	CU_ASSERT_STRING_EQUAL(token, "abc");
}

static void test_token__unusable_ones_are_refused(void)
{
	char token[64], large[DG__TOKEN_MAX + 2];
	CU_ASSERT_EQUAL(token_of("", 0, token, sizeof(token)), DG_ECREDENTIAL);
	CU_ASSERT_EQUAL(token_of("\nabc\n", 5, token, sizeof(token)), DG_ECREDENTIAL);
	CU_ASSERT_EQUAL(token_of("a b\n", 4, token, sizeof(token)), DG_ECREDENTIAL);
	CU_ASSERT_EQUAL(token_of("a\x01\n", 3, token, sizeof(token)), DG_ECREDENTIAL);
	CU_ASSERT_EQUAL(token_of("t\xc3\xa9\n", 4, token, sizeof(token)), DG_ECREDENTIAL);
	memset(large, 'x', sizeof(large));
	CU_ASSERT_EQUAL(token_of(large, sizeof(large), token, sizeof(token)), DG_ECREDENTIAL);
}

/* Opening a pipe nobody writes to would outlast every deadline. */
static void test_identify__files_that_may_never_end_are_refused(void)
{
	char *folder = dg_test_temp_dir(), path[600];
	dg__address address = address_of("https://a:1");
	snprintf(path, sizeof(path), "%s/pipe", folder);
	CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
	const dg__credentials sets[] = { { .token_file = path }, { .ca_file = path },
		{ .cert_file = path }, { .cert_file = "/dev/null", .key_file = path },
		{ .token_file = "/dev/zero" } };
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		dg__identity identity;
		dg_error why;
		uint32_t number = 0;
		CU_ASSERT_EQUAL(dg__credentials_intern(&sets[i], &number, NULL), DG_OK);
		CU_ASSERT_EQUAL(dg__credentials_identify(number, &address, &identity, &why),
			DG_ECREDENTIAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "not a regular file"));
	}
	unlink(path);
	free(folder);
}

static void test_token__is_read_afresh(void)
{
	char *folder = dg_test_temp_dir(), path[600];
	dg__identity identity;
	dg__address address = address_of("https://a:1");
	uint32_t number = 0;
	write_text(path, sizeof(path), folder, "token", "one\n", 4);
	const dg__credentials set = { .token_file = path };
	CU_ASSERT_EQUAL(dg__credentials_intern(&set, &number, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg__credentials_identify(number, &address, &identity, NULL), DG_OK);
	CU_ASSERT_STRING_EQUAL(identity.token, "one");
	write_text(path, sizeof(path), folder, "token", "two\n", 4);
	CU_ASSERT_EQUAL(dg__credentials_identify(number, &address, &identity, NULL), DG_OK);
	CU_ASSERT_STRING_EQUAL(identity.token, "two");
	unlink(path);
	CU_ASSERT_EQUAL(
		dg__credentials_identify(number, &address, &identity, NULL), DG_ECREDENTIAL);
	free(folder);
}

static void *intern_many(void *user)
{
	unsigned *wrong = user;
	for (int i = 0; i < 200; i++) {
		char file[32];
		uint32_t a = 0, b = 0;
		snprintf(file, sizeof(file), "/ca/%d", i);
		const dg__credentials set = { .ca_file = file };
		if (dg__credentials_intern(&set, &a, NULL) ||
			dg__credentials_intern(&set, &b, NULL) || a != b)
			++*wrong;
	}
	return NULL;
}

static void test_threads__intern_the_same_sets(void)
{
	pthread_t threads[4];
	unsigned wrong[4] = { 0 };
	for (int i = 0; i < 4; i++)
		CU_ASSERT_FATAL(pthread_create(&threads[i], NULL, intern_many, &wrong[i]) == 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		CU_ASSERT_EQUAL(wrong[i], 0);
	}
}

static const dg_test_case cases[] = {
	DG_TEST(test_intern__equal_sets_have_one_number),
	DG_TEST(test_intern__pins_of_other_forms_are_refused),
	DG_TEST(test_ambient__goes_to_the_default_address_alone),
	DG_TEST(test_ambient__goes_to_addresses_that_were_named),
	DG_TEST(test_ambient__naming_with_credentials_does_not_open_the_address),
	DG_TEST(test_ambient__many_addresses_can_be_named),
	DG_TEST(test_ambient__stands_for_what_the_gateways_file_says),
	DG_TEST(test_identify__nothing_goes_over_plain_http),
	DG_TEST(test_token__first_line_trimmed),
	DG_TEST(test_token__unusable_ones_are_refused),
	DG_TEST(test_identify__files_that_may_never_end_are_refused),
	DG_TEST(test_token__is_read_afresh),
	DG_TEST(test_threads__intern_the_same_sets),
};

DG_TEST_MAIN("client/credentials", cases)
