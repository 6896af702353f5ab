/* Addresses of gateways: canonical form, and what is refused for which reason. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/registry.h"

static void check_reads(const char *text, const char *canonical)
{
	char buf[DG_DEVICE_TEXT_MAX];
	dg__address address = { 0 }, again = { 0 };
	dg_error error = { 0 };
	dg_err err = dg__address_parse(text, &address, &error);
	if (err)
		printf("\n    %s: %s\n", text, error.text);
	CU_ASSERT_EQUAL_FATAL(err, DG_OK);
	CU_ASSERT_EQUAL(dg__address_format(&address, buf, sizeof(buf)), strlen(canonical));
	CU_ASSERT_STRING_EQUAL(buf, canonical);
	CU_ASSERT_EQUAL(dg__address_parse(buf, &again, NULL), DG_OK);
	CU_ASSERT(dg__address_equal(&address, &again));
}

static void test_parse__gives_the_canonical_form(void)
{
	check_reads("https://node1", "https://node1:8443");
	check_reads("HTTP://Node1.Example.ORG:80/", "http://node1.example.org:80");
	check_reads("ws://node1", "http://node1:8443");
	check_reads("wss://node1:1", "https://node1:1");
	check_reads("https://node_1-a.b.:65535", "https://node_1-a.b.:65535");
	check_reads("https://127.0.0.1:08443", "https://127.0.0.1:8443");
	check_reads("https://1.example", "https://1.example:8443");
	check_reads("https://[::1]", "https://[::1]:8443");
	check_reads("https://[0:0:0:0:0:0:0:1]:1", "https://[::1]:1");
	check_reads("https://[2001:DB8::00A]:1/", "https://[2001:db8::a]:1");
	check_reads("https://[::ffff:127.0.0.1]", "https://[::ffff:127.0.0.1]:8443");
	check_reads("https://[fe80::1%eth0]:5", "https://[fe80::1%25eth0]:5");
	check_reads("https://[FE80::1%25Eth0]", "https://[fe80::1%25Eth0]:8443");
	check_reads("https://[fe80::1%25]", "https://[fe80::1%2525]:8443");
	check_reads("https://[fe80::1%2525a]", "https://[fe80::1%2525a]:8443");
}

static const struct {
	const char *text, *reason;
} wrong[] = {
	{ "", "expected https://" },
	{ "node1", "expected https://" },
	{ "node1:8443", "expected https://" },
	{ "ftp://node1", "expected https://" },
	{ "https:/node1", "expected https://" },
	{ "https//node1", "expected https://" },
	{ " https://node1", "expected https://" },
	{ "https://", "host name" },
	{ "https://:8443", "host name" },
	{ "https:///", "host name" },
	{ "https://user@node1", "user name" },
	{ "https://user:secret@node1", "user name" },
	{ "https://node1/path", "no path" },
	{ "https://node1//", "no path" },
	{ "https://node1?a=b", "no query" },
	{ "https://node1/?a", "no query" },
	{ "https://node1#0", "no fragment" },
	{ "https://node1/#0", "no fragment" },
	{ "https://node1:", "port 1..65535" },
	{ "https://node1:0", "port 1..65535" },
	{ "https://node1:65536", "port 1..65535" },
	{ "https://node1:99999999999999999999999", "port 1..65535" },
	{ "https://node1:-1", "port 1..65535" },
	{ "https://node1:+1", "port 1..65535" },
	{ "https://node1:1x", "does not belong" },
	{ "https://node1:1:2", "does not belong" },
	{ "https://node 1", "does not belong" },
	{ "https://node1 ", "does not belong" },
	{ "https://node1\n", "does not belong" },
	{ "https://node%31", "does not belong" },
	{ "https://n\xc3\xb6"
	  "de",
		"does not belong" },
	{ "https://\xc3\xb6"
	  "de",
		"host name" },
	{ "https://a..b", "host name" },
	{ "https://.a", "host name" },
	{ "https://-a", "'-'" },
	{ "https://a-.b", "'-'" },
	{ "https://127.1", "four numbers" },
	{ "https://2130706433", "four numbers" },
	{ "https://0x7f000001", "four numbers" },
	{ "https://0x7f.1", "four numbers" },
	{ "https://1.2.3.0x4", "four numbers" },
	{ "https://256.1.1.1", "four numbers" },
	{ "https://127.0.0.01", "four numbers" },
	{ "https://127.0.0.1.", "end in a dot" },
	{ "https://a.1", "four numbers" },
	{ "https://::1", "host name" },
	{ "https://[::1", "expected an IPv6" },
	{ "https://[]", "no IPv6" },
	{ "https://[::1]x", "does not belong" },
	{ "https://[::1]8443", "does not belong" },
	{ "https://[127.0.0.1]", "no IPv6" },
	{ "https://[1:2:3]", "no IPv6" },
	{ "https://[::g]", "expected an IPv6" },
	{ "https://[0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:1]", "no IPv6" },
	{ "https://[fe80::1%]", "zone id" },
	{ "https://[fe80::1%a b]", "expected ']'" },
	{ "https://[fe80::1%abcdefghijklmnop]", "longer than 15" },
};

static void test_parse__refuses_with_a_clear_reason(void)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		dg__address address = { .port = 77 };
		dg_error error = { 0 };
		dg_err err = dg__address_parse(wrong[i].text, &address, &error);
		bool good = err == DG_EADDRESS && address.port == 77 &&
			    strstr(error.text, wrong[i].reason);
		if (!good)
			printf("\n    \"%s\": %s: %s\n", wrong[i].text, dg_err_code(err),
				error.text);
		CU_ASSERT(good);
	}
	CU_ASSERT_EQUAL(dg__address_parse(NULL, NULL, NULL), DG_EADDRESS);
}

static void test_parse__passwords_are_not_repeated(void)
{
	dg__address address;
	dg_error error;
	CU_ASSERT_EQUAL(
		dg__address_parse("https://me:secret@node1", &address, &error), DG_EADDRESS);
	CU_ASSERT_PTR_NULL(strstr(error.text, "secret"));
	CU_ASSERT_PTR_NULL(strstr(error.text, "me:"));
}

static void test_parse__host_names_have_their_lengths(void)
{
	char text[DG_DEVICE_TEXT_MAX + 10];
	dg__address address = { 0 };
	for (int length = 1; length < 300; length++) {
		int at = snprintf(text, sizeof(text), "https://");
		for (int i = 0; i < length; i++)
			text[at++] = i % 64 == 63 && i != length - 1 ? '.' : 'a';
		text[at] = '\0';
		/* 64 letters in a row come about where the last byte may not be a dot. */
		bool good = length <= 253 && length % 64 != 0;
		CU_ASSERT_EQUAL(
			dg__address_parse(text, &address, NULL), good ? DG_OK : DG_EADDRESS);
	}
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	CU_ASSERT_EQUAL(dg__address_parse(text, &address, NULL), DG_EADDRESS);
}

static bool is_loopback(const char *text)
{
	dg__address address = { 0 };
	CU_ASSERT_EQUAL(dg__address_parse(text, &address, NULL), DG_OK);
	return dg__address_is_loopback(&address);
}

static void test_loopback__is_told_without_resolving(void)
{
	CU_ASSERT(is_loopback("http://LocalHost"));
	CU_ASSERT(is_loopback("http://127.0.0.1"));
	CU_ASSERT(is_loopback("http://127.255.1.2"));
	CU_ASSERT(is_loopback("http://[::1]"));
	CU_ASSERT(is_loopback("http://[::1%lo]"));
	CU_ASSERT(is_loopback("http://[::ffff:127.0.0.1]"));
	CU_ASSERT_FALSE(is_loopback("http://128.0.0.1"));
	CU_ASSERT_FALSE(is_loopback("http://localhost.example"));
	CU_ASSERT_FALSE(is_loopback("http://127.0.0.1.example"));
	CU_ASSERT_FALSE(is_loopback("http://[::2]"));
	CU_ASSERT_FALSE(is_loopback("http://[::]"));
	CU_ASSERT_FALSE(is_loopback("http://0.0.0.0"));
	CU_ASSERT_FALSE(is_loopback("http://[::ffff:10.0.0.1]"));
}

static void test_default__follows_the_variables(void)
{
	dg__address address = { 0 };
	dg_error error;
	unsetenv("BURN_REMOTE_ADDRESS");
	unsetenv("DEVGATE_REMOTE_ADDRESS");
	CU_ASSERT_EQUAL(dg__address_default(&address, NULL), DG_OK);
	CU_ASSERT(address.tls && address.port == 8443);
	CU_ASSERT_STRING_EQUAL(address.host, "127.0.0.1");
	setenv("BURN_REMOTE_ADDRESS", "ws://burn:3000", 1);
	CU_ASSERT_EQUAL(dg__address_default(&address, NULL), DG_OK);
	CU_ASSERT_STRING_EQUAL(address.host, "burn");
	setenv("DEVGATE_REMOTE_ADDRESS", "https://ours", 1);
	CU_ASSERT_EQUAL(dg__address_default(&address, NULL), DG_OK);
	CU_ASSERT_STRING_EQUAL(address.host, "ours");
	setenv("DEVGATE_REMOTE_ADDRESS", "ours", 1);
	CU_ASSERT_EQUAL(dg__address_default(&address, &error), DG_EADDRESS);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "DEVGATE_REMOTE_ADDRESS"));
}

static const dg_test_case cases[] = {
	DG_TEST(test_parse__gives_the_canonical_form),
	DG_TEST(test_parse__refuses_with_a_clear_reason),
	DG_TEST(test_parse__passwords_are_not_repeated),
	DG_TEST(test_parse__host_names_have_their_lengths),
	DG_TEST(test_loopback__is_told_without_resolving),
	DG_TEST(test_default__follows_the_variables),
};

DG_TEST_MAIN("api/address", cases)
