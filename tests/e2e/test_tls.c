/* TLS of a running gateway, met by openssl and curl as by strangers. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CUnit/CUnit.h>

#include "tests/gateway.h"
#include "tests/test.h"

static dg_test_gateway gateway;
static char *folder;

/* What a shell command says, on both streams; static buffer. */
static const char *says(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *says(const char *format, ...)
{
	static char out[65536];
	char command[4096] = "{ ";
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(command + 2, sizeof(command) - 16, format, ap);
	va_end(ap);
	snprintf(command + 2 + n, 14, "; } 2>&1");
	FILE *f = popen(command, "r"); /* NOLINT(cert-env33-c): the command is ours */
	size_t length = f ? fread(out, 1, sizeof(out) - 1, f) : 0;
	out[length] = '\0';
	if (f)
		(void)pclose(f);
	return out;
}

static const char *s_client(const char *options)
{
	return says("timeout 5 openssl s_client -connect 127.0.0.1:%u %s </dev/null", gateway.port,
		options);
}

static const char *curl(const char *options, const char *path)
{
	return says("curl -sS -m 10 -k -o /dev/null -w '%%{http_code}' %s https://127.0.0.1:%u%s",
		options, gateway.port, path);
}

/* An authority with two certificates below it, and one of another. */
static void make_certificates(void)
{
	static const char *const made[][3] = {
		{ "ca", "alice", "/CN=alice" },
		{ "ca", "bob", "/CN=bob" },
		{ "other", "mallory", "/CN=alice" },
	};
	static const char *const authorities[] = { "ca", "other" };
	static const char new_key[] = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
	for (size_t i = 0; i < 2; i++)
		(void)says("cd %s && openssl req -x509 %s -days 2 -subj /CN=%s -keyout %s.key "
			   "-out %s.pem",
			folder, new_key, authorities[i], authorities[i], authorities[i]);
	for (size_t i = 0; i < 3; i++)
		(void)says("cd %s && openssl req %s -subj %s -keyout %s.key -out %s.csr && "
			   "openssl x509 -req -in %s.csr -CA %s.pem -CAkey %s.key -CAcreateserial "
			   "-days 2 -out %s.pem",
			folder, new_key, made[i][2], made[i][1], made[i][1], made[i][1], made[i][0],
			made[i][0], made[i][1]);
}

static void test_start(void)
{
	char ca[1200];
	folder = dg_test_temp_dir();
	make_certificates();
	snprintf(ca, sizeof(ca), "%s/ca.pem", folder);
	const char *const args[] = { "--backend", "none", "--client-ca", ca, "--client-name",
		"alice", "--loopback-scopes", "", NULL };
	gateway = dg_test_gateway_start(args, NULL);
	CU_ASSERT(*gateway.pin != '\0');
}

static void test_versions__only_1_2_and_1_3_are_spoken(void)
{
	CU_ASSERT_PTR_NOT_NULL(strstr(s_client("-tls1_3"), "TLSv1.3, Cipher is"));
	CU_ASSERT_PTR_NOT_NULL(strstr(s_client("-tls1_2"), "TLSv1.2, Cipher is ECDHE"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(s_client("-tls1_1 -cipher DEFAULT@SECLEVEL=0"), "Cipher is (NONE)"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(s_client("-tls1 -cipher DEFAULT@SECLEVEL=0"), "Cipher is (NONE)"));
}

static void test_ciphers__without_forward_secrecy_are_refused(void)
{
	CU_ASSERT_PTR_NOT_NULL(
		strstr(s_client("-tls1_2 -cipher AES128-GCM-SHA256"), "Cipher is (NONE)"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(s_client("-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA"), "Cipher is (NONE)"));
}

static void test_renegotiation__is_refused(void)
{
	const char *out = says("(sleep 0.3; echo R; sleep 0.5) | timeout 5 openssl s_client "
			       "-connect 127.0.0.1:%u -tls1_2",
		gateway.port);
	CU_ASSERT_PTR_NOT_NULL(strstr(out, "no renegotiation"));
}

static void test_sessions__are_resumed(void)
{
	char session[1200], options[1400];
	static const char *const versions[] = { "-tls1_2", "-tls1_3" };
	for (size_t i = 0; i < 2; i++) {
		snprintf(session, sizeof(session), "%s/session%zu", folder, i);
		/* A ticket of TLS 1.3 comes after the handshake, before the first answer. */
		(void)says("(printf 'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n'; "
			   "sleep 0.3) |"
			   " timeout 5 openssl s_client -connect 127.0.0.1:%u %s -sess_out %s",
			gateway.port, versions[i], session);
		snprintf(options, sizeof(options), "%s -sess_in %s", versions[i], session);
		CU_ASSERT_PTR_NOT_NULL(strstr(s_client(options), "Reused,"));
	}
}

static void test_protocols__http_1_1_is_chosen(void)
{
	CU_ASSERT_PTR_NOT_NULL(strstr(s_client("-alpn h2,http/1.1"), "ALPN protocol: http/1.1"));
	CU_ASSERT_PTR_NOT_NULL(strstr(s_client("-alpn h2"), "No ALPN negotiated"));
}

static void test_plain_http__is_told_where_it_is(void)
{
	static const char plain[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
	char *reply = dg_test_raw(&gateway, plain, sizeof(plain) - 1, 2000);
	CU_ASSERT_EQUAL(strncmp(reply, "HTTP/1.1 400", 12), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(reply, "HTTPS"));
	free(reply);
}

static void test_rubbish__does_not_disturb_others(void)
{
	for (unsigned i = 0; i < 50; i++) {
		static const char hello[] = "\x16\x03\x01\x00\x20\x01\x00\x00\x1c\x03\x03zzzzzzzz";
		char *reply = dg_test_raw(&gateway, hello, 1 + i % (sizeof(hello) - 1), 5);
		free(reply);
	}
	dg_test_reply reply = dg_test_ask(&gateway, "GET", "/healthz", NULL, NULL);
	CU_ASSERT_EQUAL(reply.status, 200);
	dg_test_reply_finish(&reply);
}

static const char *as(const char *who)
{
	char options[4096];
	snprintf(options, sizeof(options), "--cert %s/%s.pem --key %s/%s.key", folder, who, folder,
		who);
	return curl(options, "/v1/devices");
}

static void test_client_certificate__of_the_authority_and_on_the_list_enters(void)
{
	CU_ASSERT_STRING_EQUAL(as("alice"), "200");
}

static void test_client_certificate__of_anybody_else_does_not(void)
{
	CU_ASSERT_STRING_EQUAL(as("bob"), "401");
	/* It has the right name, from an authority that nobody trusts. */
	CU_ASSERT_STRING_EQUAL(as("mallory"), "401");
	CU_ASSERT_STRING_EQUAL(curl("", "/v1/devices"), "401");
	CU_ASSERT_STRING_EQUAL(curl("", "/healthz"), "200");
}

static void test_client_certificate__is_remembered_by_a_resumed_session_alone(void)
{
	const char *out =
		says("cd %s && for who in alice bob; do (printf 'GET /v1/devices "
		     "HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n'; sleep 0.3) | timeout 5 openssl "
		     "s_client -quiet -connect 127.0.0.1:%u -cert $who.pem -key $who.key "
		     "-sess_out $who.session | head -n 1; (printf 'GET /v1/devices "
		     "HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n'; sleep 0.3) | timeout 5 openssl "
		     "s_client -quiet -connect 127.0.0.1:%u -sess_in $who.session | head -n 1; "
		     "done; true",
			folder, gateway.port, gateway.port);
	unsigned good = 0, bad = 0;
	for (const char *at = out; (at = strstr(at, "HTTP/1.1 ")); at++) {
		good += strncmp(at + 9, "200", 3) == 0;
		bad += strncmp(at + 9, "401", 3) == 0;
	}
	CU_ASSERT_EQUAL(good, 2);
	CU_ASSERT_EQUAL(bad, 2);
}

static void test_stop(void)
{
	int status = -1;
	(void)dg_test_gateway_stop(&gateway, &status);
	CU_ASSERT_EQUAL(status, 0);
	free(folder);
}

static const dg_test_case cases[] = {
	DG_TEST(test_start),
	DG_TEST(test_versions__only_1_2_and_1_3_are_spoken),
	DG_TEST(test_ciphers__without_forward_secrecy_are_refused),
	DG_TEST(test_renegotiation__is_refused),
	DG_TEST(test_sessions__are_resumed),
	DG_TEST(test_protocols__http_1_1_is_chosen),
	DG_TEST(test_plain_http__is_told_where_it_is),
	DG_TEST(test_rubbish__does_not_disturb_others),
	DG_TEST(test_client_certificate__of_the_authority_and_on_the_list_enters),
	DG_TEST(test_client_certificate__of_anybody_else_does_not),
	DG_TEST(test_client_certificate__is_remembered_by_a_resumed_session_alone),
	DG_TEST(test_stop),
};

DG_TEST_MAIN("TLS of a running gateway", cases)
