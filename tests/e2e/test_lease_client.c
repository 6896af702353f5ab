/* Leases as a worker takes them with the library, and an operator with the tool. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CUnit/CUnit.h>

#include "client/devgate.h"
#include "tests/gateway.h"
#include "tests/test.h"
#include "tests/tool.h"

static const dg_key LAUNCH = { .mode = DG_MODE_LAUNCH };
static dg_test_gateway gateway;

static void test_start(void)
{
	static const char *const args[] = { "--plain-http", "--backend", "cpu", "--loopback-scopes",
		"read,measure,lease", NULL };
	static const char *const env[] = { "DG_ENGINE_QUICK=1", NULL };
	gateway = dg_test_gateway_start(args, env);
}

static dg_device remote(void)
{
	dg_device device;
	dg_error why;
	CU_ASSERT_EQUAL_FATAL(dg_device_remote(gateway.url, 0, NULL, &device, &why), DG_OK);
	return device;
}

static dg_err measure(dg_device device, const char *lease, dg_error *why)
{
	dg_call call = DG_CALL_INIT;
	dg_value value;
	size_t count = 0;
	call.flags = DG_REFRESH;
	call.lease = lease;
	return dg_performance_stats(device, &LAUNCH, 1, &call, &value, &count, why);
}

static void test_library__takes_measures_renews_and_gives_back(void)
{
	dg_device device = remote();
	dg_lease mine, seen;
	dg_error why;
	dg_call call = DG_CALL_INIT;
	CU_ASSERT_EQUAL(dg_lease_read(device, NULL, &seen, &why), DG_ENOLEASE);
	CU_ASSERT_EQUAL_FATAL(dg_lease_take(device, 30, NULL, &mine, &why), DG_OK);
	CU_ASSERT_EQUAL(mine.ttl_s, 30);
	CU_ASSERT_EQUAL(mine.expires_at_ms - mine.taken_at_ms, 30000);
	CU_ASSERT_STRING_EQUAL(mine.holder, "loopback");
	CU_ASSERT_EQUAL(dg_lease_take(device, 0, NULL, &seen, &why), DG_ELEASED);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "loopback"));
	CU_ASSERT_EQUAL(dg_lease_read(device, NULL, &seen, &why), DG_OK);
	CU_ASSERT_STRING_EQUAL(seen.id, "");
	CU_ASSERT_EQUAL(seen.fencing_token, mine.fencing_token);
	CU_ASSERT_EQUAL(measure(device, NULL, &why), DG_ELEASED);
	CU_ASSERT_EQUAL(measure(device, "somethingelse", &why), DG_ELEASED);
	CU_ASSERT_EQUAL(measure(device, mine.id, &why), DG_OK);
	call.lease = mine.id;
	CU_ASSERT_EQUAL(dg_lease_renew(device, 0, &call, &seen, &why), DG_OK);
	CU_ASSERT_EQUAL(seen.ttl_s, DG_LEASE_TTL_DEFAULT_S);
	CU_ASSERT_EQUAL(dg_lease_give(device, &call, NULL, &why), DG_OK);
	CU_ASSERT_EQUAL(dg_lease_give(device, &call, NULL, &why), DG_ENOLEASE);
	CU_ASSERT_EQUAL(measure(device, NULL, &why), DG_OK);
	CU_ASSERT_EQUAL(dg_lease_take(device, 1, NULL, &seen, &why), DG_OK);
	CU_ASSERT(seen.fencing_token > mine.fencing_token);
	call.lease = seen.id;
	CU_ASSERT_EQUAL(dg_lease_give(device, &call, &mine, &why), DG_OK);
	CU_ASSERT_EQUAL(mine.fencing_token, seen.fencing_token);
}

static void test_library__refuses_what_can_be_no_lease(void)
{
	static const char *const ids[] = { "", "two words", "a\r\nX-Evil: 1", "\xc3\xa4",
		"1234567890123456789012345678901234567890" };
	dg_device device = remote(), local;
	dg_lease lease;
	dg_error why;
	dg_call call = DG_CALL_INIT;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		call.lease = ids[i];
		CU_ASSERT_EQUAL(dg_lease_renew(device, 0, &call, &lease, &why), DG_EINVALID);
		CU_ASSERT_EQUAL(measure(device, ids[i], &why), DG_EINVALID);
	}
	CU_ASSERT_EQUAL(dg_lease_renew(device, 0, NULL, &lease, &why), DG_EINVALID);
	CU_ASSERT_EQUAL(dg_lease_give(device, NULL, NULL, &why), DG_EINVALID);
	CU_ASSERT_EQUAL(
		dg_lease_take(device, DG_LEASE_TTL_MAX_S + 1, NULL, &lease, &why), DG_EINVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "86401"));
	CU_ASSERT_EQUAL_FATAL(dg_device_parse("cpu", &local, &why), DG_OK);
	CU_ASSERT_EQUAL(dg_lease_take(local, 0, NULL, &lease, &why), DG_ENOTSUP);
}

/* Run the tool at the gateway's device 0, with DEVGATE_LEASE where it is not NULL. */
static dg_test_tool tool(const char *const *words, const char *lease)
{
	const char *args[8] = { NULL };
	char variable[80];
	size_t n = 0;
	for (; words[n]; n++)
		args[n] = words[n];
	args[n++] = "--gateway";
	args[n] = gateway.url;
	snprintf(variable, sizeof(variable), "DEVGATE_LEASE=%s", lease ? lease : "");
	const char *const env[] = { lease ? variable : NULL, NULL };
	return dg_test_tool_run(&(dg_test_tool_request){ .args = args, .env = env });
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void expect(const char *const *words, const char *lease, int status, const char *phrase)
{
	dg_test_tool run = tool(words, lease);
	const char *said = status ? run.err : run.out;
	if (run.status != status || !strstr(said, phrase))
		printf("\n    %s %s: status %d, expected %d and '%s': %s%s\n", words[0], words[1],
			run.status, status, phrase, run.out, run.err);
	CU_ASSERT_EQUAL(run.status, status);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, phrase));
	dg_test_tool_finish(&run);
}

static void test_tool__prints_the_id_alone_and_measures_with_it(void)
{
	char id[64];
	expect(WORDS("lease", "show", "0"), NULL, 1, "no_such_lease");
	expect(WORDS("lease", "renew", "0"), NULL, 1, "DEVGATE_LEASE is not set");
	dg_test_tool run = tool(WORDS("lease", "take", "0", "--ttl=90"), NULL);
	CU_ASSERT_EQUAL(run.status, 0);
	CU_ASSERT_EQUAL(strspn(run.out, "0123456789abcdef"), 32);
	CU_ASSERT_STRING_EQUAL(run.out + 32, "\n");
	CU_ASSERT_PTR_NOT_NULL(strstr(run.err, "is leased by loopback until "));
	snprintf(id, sizeof(id), "%.32s", run.out);
	dg_test_tool_finish(&run);
	expect(WORDS("lease", "show", "0"), NULL, 0, "is leased by loopback until ");
	expect(WORDS("throughput", "0", "launch", "--refresh"), NULL, 1, "DEVGATE_LEASE");
	expect(WORDS("throughput", "0", "launch", "--refresh"), id, 0, "launch");
	expect(WORDS("lease", "take", "0"), NULL, 1, "leased");
	expect(WORDS("lease", "renew", "0", "--json"), id, 0, "\"ttl_s\":60");
	expect(WORDS("lease", "give", "0"), id, 0, "was leased by loopback");
	expect(WORDS("lease", "give", "0"), id, 1, "no_such_lease");
}

static void test_tool__says_what_it_expected(void)
{
	expect(WORDS("lease", "steal", "0"), NULL, 2, "'steal' is not take, renew, give or show");
	expect(WORDS("lease", "take", "0", "--ttl=0"), NULL, 1, "1 to 86400");
	expect(WORDS("lease", "take", "0", "--ttl=86401"), NULL, 1, "86400");
	expect(WORDS("lease", "give", "0"), "no id", 1, "letters and digits");
	dg_test_tool run = dg_test_tool_run(
		&(dg_test_tool_request){ .args = WORDS("lease", "take", "cpu", "--in-process") });
	CU_ASSERT_EQUAL(run.status, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(run.err, "of this machine has no leases"));
	dg_test_tool_finish(&run);
}

static void test_stop(void)
{
	int status = -1;
	(void)dg_test_gateway_stop(&gateway, &status);
	CU_ASSERT_EQUAL(status, 0);
}

static const dg_test_case cases[] = {
	DG_TEST(test_start),
	DG_TEST(test_library__takes_measures_renews_and_gives_back),
	DG_TEST(test_library__refuses_what_can_be_no_lease),
	DG_TEST(test_tool__prints_the_id_alone_and_measures_with_it),
	DG_TEST(test_tool__says_what_it_expected),
	DG_TEST(test_stop),
};

DG_TEST_MAIN("leases by library and tool", cases)
