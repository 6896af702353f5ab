/* Descriptions of devices. */
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

#include <devgate/info.h>

static dg_device_info info_of(const char *hardware, bool present)
{
	dg_device_info info = { .present = present ? DG_HAS_HARDWARE : 0 };
	snprintf(info.hardware, sizeof(info.hardware), "%s", hardware);
	return info;
}

static bool same(const char *a, const char *b)
{
	dg_device_info x = info_of(a, true), y = info_of(b, true);
	CU_ASSERT_EQUAL(dg_info_same_hardware(&x, &y), dg_info_same_hardware(&y, &x));
	return dg_info_same_hardware(&x, &y);
}

static void test_same_hardware__is_equal_known_identity(void)
{
	dg_device_info known = info_of("uuid:1", true), unknown = info_of("uuid:1", false);
	CU_ASSERT(same("uuid:1", "uuid:1"));
	CU_ASSERT_FALSE(same("uuid:1", "uuid:2"));
	CU_ASSERT_FALSE(same("", ""));
	CU_ASSERT_FALSE(dg_info_same_hardware(&known, &unknown));
	CU_ASSERT_FALSE(dg_info_same_hardware(&unknown, &unknown));
}

static void test_same_hardware__does_not_look_at_names(void)
{
	dg_device_info a = info_of("uuid:1", true), b = info_of("uuid:2", true);
	snprintf(a.name, sizeof(a.name), "one model");
	snprintf(b.name, sizeof(b.name), "one model");
	CU_ASSERT_FALSE(dg_info_same_hardware(&a, &b));
}

static void test_has_dtype__reads_its_bit(void)
{
	dg_device_info info = { .dtypes = (uint64_t)1 << DG_F32 | (uint64_t)1 << DG_U8 };
	CU_ASSERT(dg_info_has_dtype(&info, DG_F32) && dg_info_has_dtype(&info, DG_U8));
	CU_ASSERT_FALSE(dg_info_has_dtype(&info, DG_F64));
	info.dtypes = UINT64_MAX;
	CU_ASSERT_FALSE(dg_info_has_dtype(&info, DG_DTYPE_NONE));
	CU_ASSERT_FALSE(dg_info_has_dtype(&info, (dg_dtype)64));
}

static void test_states__have_names(void)
{
	CU_ASSERT_STRING_EQUAL(dg_state_name(DG_STATE_OK), "ok");
	CU_ASSERT_STRING_EQUAL(dg_state_name(DG_STATE_UNHEALTHY), "unhealthy");
	CU_ASSERT_STRING_EQUAL(dg_state_name(DG_STATE_LOST), "lost");
}

static const dg_test_case cases[] = {
	DG_TEST(test_same_hardware__is_equal_known_identity),
	DG_TEST(test_same_hardware__does_not_look_at_names),
	DG_TEST(test_has_dtype__reads_its_bit),
	DG_TEST(test_states__have_names),
};

DG_TEST_MAIN("api/info", cases)
