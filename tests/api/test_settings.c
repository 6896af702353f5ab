/* Element types and default settings. */
#include "tests/test.h"

#include <ctype.h>
#include <string.h>

#include <devgate/settings.h>

#include "api/registry.h"

static void test_dtypes__both_spellings_read_back_in_any_case(void)
{
	unsigned known = 0;
	for (unsigned i = 0; i < 100; i++) {
		char upper[16] = "";
		const char *text = dg_dtype_text(i);
		CU_ASSERT_EQUAL(text == NULL, dg_dtype_name(i) == NULL);
		CU_ASSERT_EQUAL(text == NULL, dg_dtype_bits(i) == 0);
		if (!text)
			continue;
		known++;
		CU_ASSERT_EQUAL(dg_dtype_parse(text), i);
		CU_ASSERT_EQUAL(dg_dtype_parse(dg_dtype_name(i)), i);
		for (size_t k = 0; text[k] && k + 1 < sizeof(upper); k++)
			upper[k] = (char)toupper((unsigned char)text[k]);
		CU_ASSERT_EQUAL(dg_dtype_parse(upper), i);
	}
	CU_ASSERT_EQUAL(known, 21);
}

static void test_dtypes__other_words_are_none(void)
{
	static const char *const texts[] = { "", "f", "f3", "f321", " f32", "f32 ", "float", "bool",
		"none", "i128", "f\xff" };
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CU_ASSERT_EQUAL(dg_dtype_parse(texts[i]), DG_DTYPE_NONE);
	CU_ASSERT_EQUAL(dg_dtype_parse(NULL), DG_DTYPE_NONE);
	CU_ASSERT_PTR_NULL(dg_dtype_text(0));
	CU_ASSERT_PTR_NULL(dg_dtype_name(0xffffffffu));
}

static void test_dtypes__have_families_and_sizes(void)
{
	CU_ASSERT_EQUAL(dg_dtype_family_of(DG_BF16), DG_FAMILY_FLOAT);
	CU_ASSERT_EQUAL(dg_dtype_family_of(DG_I8), DG_FAMILY_INT);
	CU_ASSERT_EQUAL(dg_dtype_family_of(DG_U64), DG_FAMILY_UINT);
	CU_ASSERT_EQUAL(dg_dtype_bits(DG_F64), 64);
	CU_ASSERT_EQUAL(dg_dtype_bits(DG_E2M1), 4);
	CU_ASSERT_EQUAL(dg_dtype_bits(DG_E2M1X2), 8);
}

static void test_defaults__of_an_autodiff_device_are_the_wrapped_one_s(void)
{
	dg_device device = { 0 };
	dg_settings s = { 0 };
	CU_ASSERT_EQUAL(dg_device_parse("autodiff(flex,balanced)", &device, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg_settings_defaults(device, &s, NULL), DG_OK);
	CU_ASSERT_EQUAL(s.size, sizeof(dg_settings));
	CU_ASSERT_EQUAL(s.float_dtype, DG_F32);
	CU_ASSERT_EQUAL(s.int_dtype, DG_I32);
	CU_ASSERT_EQUAL(s.bool_store, DG_BOOL_NATIVE);
	CU_ASSERT_EQUAL(s.quant_store, DG_QUANT_NATIVE);
	CU_ASSERT_EQUAL(dg_device_parse("capture:1", &device, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg_settings_defaults(device, &s, NULL), DG_OK);
	CU_ASSERT_EQUAL(s.int_dtype, DG_I64);
	CU_ASSERT_EQUAL(s.bool_store, DG_BOOL_U8);
	CU_ASSERT_EQUAL(s.quant_store, DG_QUANT_PACKED_U32);
}

static void test_defaults__of_a_remote_device_are_not_known_here(void)
{
	dg_device device = { 0 };
	dg_settings s = { .size = 77 };
	CU_ASSERT_EQUAL(dg_device_parse("https://node1", &device, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg_settings_defaults(device, &s, NULL), DG_ENOTLOCAL);
	device.variant = 200;
	CU_ASSERT_EQUAL(dg_settings_defaults(device, &s, NULL), DG_EINVALID);
	CU_ASSERT_EQUAL(s.size, 77);
}

static void test_stores__have_the_reference_s_names(void)
{
	CU_ASSERT_STRING_EQUAL(dg_bool_store_name(DG_BOOL_NATIVE), "Native");
	CU_ASSERT_STRING_EQUAL(dg_bool_store_name(DG_BOOL_U8), "U8");
	CU_ASSERT_STRING_EQUAL(dg_bool_store_name(DG_BOOL_U32), "U32");
	CU_ASSERT_STRING_EQUAL(dg_quant_store_name(DG_QUANT_NATIVE), "Native");
	CU_ASSERT_STRING_EQUAL(dg_quant_store_name(DG_QUANT_PACKED_U32), "PackedU32(0)");
}

static const dg_test_case cases[] = {
	DG_TEST(test_dtypes__both_spellings_read_back_in_any_case),
	DG_TEST(test_dtypes__other_words_are_none),
	DG_TEST(test_dtypes__have_families_and_sizes),
	DG_TEST(test_defaults__of_an_autodiff_device_are_the_wrapped_one_s),
	DG_TEST(test_defaults__of_a_remote_device_are_not_known_here),
	DG_TEST(test_stores__have_the_reference_s_names),
};

DG_TEST_MAIN("api/settings", cases)
