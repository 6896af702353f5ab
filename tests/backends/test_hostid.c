/* Host ids. */
#include "backends/core/hostid.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

static void test_hash__differs_from_the_machine_id_and_stays(void)
{
	static const char machine[] = "0123456789abcdef0123456789abcdef";
	char a[DG__HOSTID_MAX], b[DG__HOSTID_MAX], c[DG__HOSTID_MAX];
	CU_ASSERT_TRUE_FATAL(dg__hostid_hash(machine, a));
	CU_ASSERT_TRUE_FATAL(dg__hostid_hash(machine, b));
	CU_ASSERT_TRUE_FATAL(dg__hostid_hash("0123456789abcdef0123456789abcdee", c));
	CU_ASSERT_EQUAL(strlen(a), 32);
	CU_ASSERT_EQUAL(strspn(a, "0123456789abcdef"), 32);
	CU_ASSERT_STRING_EQUAL(a, b);
	CU_ASSERT_STRING_NOT_EQUAL(a, c);
	CU_ASSERT_STRING_NOT_EQUAL(a, machine);
}

static void test_hash__what_is_no_machine_id_is_refused(void)
{
	char id[DG__HOSTID_MAX] = "kept";
	CU_ASSERT_FALSE(dg__hostid_hash("", id));
	CU_ASSERT_FALSE(dg__hostid_hash("uninitialized", id));
	CU_ASSERT_FALSE(dg__hostid_hash("0123456789ABCDEF0123456789ABCDEF", id));
	CU_ASSERT_FALSE(dg__hostid_hash("0123456789abcdef0123456789abcdef0", id));
	CU_ASSERT_STRING_EQUAL(id, "kept");
}

static void test_get__the_environment_wins_when_it_is_an_id(void)
{
	static const char given[] = "fedcba9876543210fedcba9876543210";
	char own[DG__HOSTID_MAX] = "none", id[DG__HOSTID_MAX] = "none";
	unsetenv(DG__HOSTID_VARIABLE);
	bool has_own = dg__hostid_get(own);
	setenv(DG__HOSTID_VARIABLE, given, 1);
	CU_ASSERT_TRUE(dg__hostid_get(id));
	CU_ASSERT_STRING_EQUAL(id, given);
	setenv(DG__HOSTID_VARIABLE, "../etc/passwd", 1);
	CU_ASSERT_EQUAL(dg__hostid_get(id), has_own);
	if (has_own)
		CU_ASSERT_STRING_EQUAL(id, own);
	unsetenv(DG__HOSTID_VARIABLE);
}

static void test_random__two_differ(void)
{
	char a[DG__HOSTID_MAX], b[DG__HOSTID_MAX];
	CU_ASSERT_EQUAL_FATAL(dg__hostid_random(a, NULL), DG_OK);
	CU_ASSERT_EQUAL_FATAL(dg__hostid_random(b, NULL), DG_OK);
	CU_ASSERT_EQUAL(strlen(a), 32);
	CU_ASSERT_STRING_NOT_EQUAL(a, b);
}

static const dg_test_case cases[] = {
	DG_TEST(test_hash__differs_from_the_machine_id_and_stays),
	DG_TEST(test_hash__what_is_no_machine_id_is_refused),
	DG_TEST(test_get__the_environment_wins_when_it_is_an_id),
	DG_TEST(test_random__two_differ),
};
DG_TEST_MAIN("backends/core/hostid", cases)
