/* Default dtypes: shown, configured, locked by the first read. */
#include "client/devgate.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fakes/fake_scene.h"
#include "tests/test.h"

static dg_device parse(const char *text)
{
	dg_device device = { 0 };
	CU_ASSERT_EQUAL_FATAL(dg_device_parse(text, &device, NULL), DG_OK);
	return device;
}

static void test_show__locks_nothing(void)
{
	dg_settings settings = DG_SETTINGS_INIT, shown;
	dg_error error;
	CU_ASSERT_EQUAL(dg_settings_show(parse("ndarray"), NULL, &shown, NULL), DG_OK);
	CU_ASSERT_EQUAL(shown.int_dtype, DG_I64);
	settings.float_dtype = DG_F64;
	settings.int_dtype = DG_I64;
	CU_ASSERT_EQUAL(dg_settings_configure(parse("ndarray"), &settings, NULL, &error), DG_OK);
	CU_ASSERT_EQUAL(dg_settings_show(parse("ndarray"), NULL, &shown, NULL), DG_OK);
	CU_ASSERT_EQUAL(shown.float_dtype, DG_F64);
}

static void test_get__locks(void)
{
	dg_settings settings = DG_SETTINGS_INIT, got;
	dg_error error;
	CU_ASSERT_EQUAL(dg_settings_get(parse("flex"), NULL, &got, NULL), DG_OK);
	CU_ASSERT_EQUAL(got.bool_store, DG_BOOL_NATIVE);
	CU_ASSERT_EQUAL(
		dg_settings_configure(parse("flex"), &settings, NULL, &error), DG_EINITIALIZED);
	CU_ASSERT_EQUAL(dg_settings_get(parse("flex"), NULL, &got, NULL), DG_OK);
	CU_ASSERT_EQUAL(got.bool_store, DG_BOOL_NATIVE);
}

static void test_configure__is_shared_by_the_autodiff_device(void)
{
	dg_settings settings = DG_SETTINGS_INIT, got;
	settings.float_dtype = DG_F64;
	CU_ASSERT_EQUAL(
		dg_settings_configure(parse("libtorch:cuda:3"), &settings, NULL, NULL), DG_OK);
	CU_ASSERT_EQUAL(
		dg_settings_get(parse("autodiff(libtorch:cuda:3)"), NULL, &got, NULL), DG_OK);
	CU_ASSERT_EQUAL(got.float_dtype, DG_F64);
	CU_ASSERT_EQUAL(
		dg_settings_configure(parse("autodiff(libtorch:cuda:3)"), &settings, NULL, NULL),
		DG_EINITIALIZED);
}

static void test_configure__what_cannot_be_is_refused(void)
{
	dg_settings settings = DG_SETTINGS_INIT;
	dg_device device = parse("libtorch:cuda:4");
	dg_error error;
	settings.float_dtype = DG_I32;
	CU_ASSERT_EQUAL(dg_settings_configure(device, &settings, NULL, &error), DG_EDTYPE);
	settings.float_dtype = DG_E4M3;
	CU_ASSERT_EQUAL(dg_settings_configure(device, &settings, NULL, &error), DG_EDTYPE);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "e4m3"));
	settings.float_dtype = (dg_dtype)77;
	CU_ASSERT_EQUAL(dg_settings_configure(device, &settings, NULL, &error), DG_EDTYPE);
	settings.float_dtype = DG_F32;
	settings.int_dtype = DG_U32;
	CU_ASSERT_EQUAL(dg_settings_configure(device, &settings, NULL, &error), DG_EDTYPE);
	settings.int_dtype = DG_I32;
	settings.bool_store = (dg_bool_store)9;
	CU_ASSERT_EQUAL(dg_settings_configure(device, &settings, NULL, &error), DG_EINVALID);
	settings.bool_store = DG_BOOL_U8;
	settings.size = 3;
	CU_ASSERT_EQUAL(dg_settings_configure(device, &settings, NULL, &error), DG_EINVALID);
	settings.size = sizeof(settings);
	CU_ASSERT_EQUAL(dg_settings_configure(device, &settings, NULL, &error), DG_OK);
}

static void test_remote__are_the_far_devices_and_fetched_once(void)
{
	dg_fake_scene s;
	dg_settings got;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.entries[0].settings.float_dtype = DG_BF16;
	CU_ASSERT_EQUAL(dg_settings_show(s.device, NULL, &got, &s.error), DG_OK);
	CU_ASSERT_EQUAL(got.float_dtype, DG_BF16);
	CU_ASSERT_EQUAL(dg_settings_get(s.device, NULL, &got, &s.error), DG_OK);
	s.model.entries[0].settings.float_dtype = DG_F16;
	CU_ASSERT_EQUAL(dg_settings_get(s.device, NULL, &got, &s.error), DG_OK);
	CU_ASSERT_EQUAL(got.float_dtype, DG_BF16);
	CU_ASSERT_EQUAL(dg_fake_gateway_requests(s.model.gateway), 2);
	dg_fake_scene_finish(&s);
	/* What is kept needs no gateway any more. */
	CU_ASSERT_EQUAL(dg_settings_show(s.device, NULL, &got, &s.error), DG_OK);
	CU_ASSERT_EQUAL(got.float_dtype, DG_BF16);
}

static void twist_dead(const dg_fake_request *request, dg_fake_reply *reply, void *user)
{
	(void)request;
	reply->cut_at_once = *(const bool *)user;
}

static void test_remote__a_failed_fetch_locks_nothing(void)
{
	dg_fake_scene s;
	bool dead = true;
	dg_settings got, settings = DG_SETTINGS_INIT;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	s.model.twist = twist_dead;
	s.model.user = &dead;
	CU_ASSERT_EQUAL(dg_settings_get(s.device, NULL, &got, &s.error), DG_EUNREACHABLE);
	CU_ASSERT_EQUAL(
		dg_settings_configure(s.device, &settings, NULL, &s.error), DG_EUNREACHABLE);
	dead = false;
	settings.float_dtype = DG_F64;
	CU_ASSERT_EQUAL(dg_settings_configure(s.device, &settings, NULL, &s.error), DG_OK);
	CU_ASSERT_EQUAL(dg_settings_get(s.device, NULL, &got, &s.error), DG_OK);
	CU_ASSERT_EQUAL(got.float_dtype, DG_F64);
	dg_fake_scene_finish(&s);
}

static void test_remote__configure_is_checked_against_the_far_device(void)
{
	dg_fake_scene s;
	dg_settings settings = DG_SETTINGS_INIT;
	dg_fake_scene_init(&s, DG_FAKE_TLS);
	settings.float_dtype = DG_BF16;
	CU_ASSERT_EQUAL(dg_settings_configure(s.device, &settings, NULL, &s.error), DG_EDTYPE);
	CU_ASSERT_PTR_NOT_NULL(strstr(s.error.text, "Fake Processor 0"));
	settings.float_dtype = DG_F32;
	settings.int_dtype = DG_I64;
	CU_ASSERT_EQUAL(dg_settings_configure(s.device, &settings, NULL, &s.error), DG_EDTYPE);
	settings.int_dtype = DG_I32;
	CU_ASSERT_EQUAL(dg_settings_configure(s.device, &settings, NULL, &s.error), DG_OK);
	dg_fake_scene_finish(&s);
}

static const dg_test_case cases[] = {
	DG_TEST(test_show__locks_nothing),
	DG_TEST(test_get__locks),
	DG_TEST(test_configure__is_shared_by_the_autodiff_device),
	DG_TEST(test_configure__what_cannot_be_is_refused),
	DG_TEST(test_remote__are_the_far_devices_and_fetched_once),
	DG_TEST(test_remote__a_failed_fetch_locks_nothing),
	DG_TEST(test_remote__configure_is_checked_against_the_far_device),
};

DG_TEST_MAIN("client/device_settings", cases)
