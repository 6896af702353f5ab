/* Which device of a list a text means. */
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

#include "client/cli/select.h"

static const char *const gateway = "https://node1:8443";

static dg_listed make(
	const char *at, uint32_t index, const char *device, const char *name, const char *hardware)
{
	dg_listed listed;
	memset(&listed, 0, sizeof(listed));
	snprintf(listed.gateway, sizeof(listed.gateway), "%s", at);
	snprintf(listed.info.name, sizeof(listed.info.name), "%s", name);
	snprintf(listed.info.hardware, sizeof(listed.info.hardware), "%s", hardware);
	listed.info.gateway_index = index;
	listed.info.present = DG_HAS_GATEWAY_INDEX | DG_HAS_HARDWARE;
	if (dg_device_parse(device, &listed.info.device, NULL) == DG_OK)
		listed.info.present |= DG_HAS_DEVICE;
	return listed;
}

static void set_uuid(dg_listed *listed, const char *uuid, const char *pci)
{
	snprintf(listed->info.uuid, sizeof(listed->info.uuid), "%s", uuid);
	snprintf(listed->info.pci, sizeof(listed->info.pci), "%s", pci);
	listed->info.present |= DG_HAS_UUID | DG_HAS_PCI;
}

/* The list every case looks in: two cards, one of them under two APIs, and the CPU. */
static dg_device_list a_list(dg_listed room[4])
{
	room[0] = make(gateway, 0, "cuda:0", "Card", "gpu-a");
	room[1] = make(gateway, 1, "cuda:1", "Card", "gpu-b");
	room[2] = make(gateway, 2, "vulkan:discrete:0", "Card", "gpu-a");
	room[3] = make(gateway, 3, "cpu", "Processor", "host");
	set_uuid(&room[0], "11111111-2222-3333-4444-555555555555", "0000:17:00.0");
	set_uuid(&room[1], "99999999-2222-3333-4444-555555555555", "0000:ca:00.0");
	set_uuid(&room[2], "11111111-2222-3333-4444-555555555555", "0000:17:00.0");
	dg_device_list list = { 4, room, 0, NULL };
	return list;
}

static void expect(const char *text, bool at_gateway, dg_err code, uint32_t index)
{
	dg_listed room[4];
	dg_device_list list = a_list(room);
	const dg_listed *found = NULL;
	CU_ASSERT_EQUAL(dg__select_find(&list, text, at_gateway, &found, NULL), code);
	if (found)
		CU_ASSERT_EQUAL(found->info.gateway_index, index);
	CU_ASSERT_EQUAL(found != NULL, code == DG_OK);
}

static void test_find__by_index_at_a_gateway_alone(void)
{
	expect("3", true, DG_OK, 3);
	expect("4", true, DG_ENODEVICE, 0);
	expect("3", false, DG_EDEVICE, 0);
}

static void test_find__by_text_form(void)
{
	expect("CUDA:1", true, DG_OK, 1);
	expect("cuda", true, DG_OK, 0);
	expect("autodiff(cpu)", true, DG_OK, 3);
	expect("rocm", true, DG_ENODEVICE, 0);
	expect("cuda:70000", true, DG_ERANGE, 0);
}

static void test_find__by_uuid_and_pci_address(void)
{
	expect("GPU-99999999-2222-3333-4444-555555555555", false, DG_OK, 1);
	expect("99999999-2222-3333-4444-555555555556", false, DG_ENODEVICE, 0);
	expect("CA:00.0", false, DG_OK, 1);
	expect("00000000:CA:00.0", true, DG_OK, 1);
}

static void test_find__by_name_at_a_gateway_alone(void)
{
	expect("processor", true, DG_OK, 3);
	expect("processor", false, DG_EDEVICE, 0);
	expect("", true, DG_EDEVICE, 0);
}

static void test_find__takes_the_first_name_of_one_hardware(void)
{
	expect("17:00.0", false, DG_OK, 0);
}

static void test_find__prefers_a_healthy_one(void)
{
	dg_listed room[4];
	dg_device_list list = a_list(room);
	const dg_listed *found = NULL;
	room[0].info.state = DG_STATE_LOST;
	CU_ASSERT_EQUAL(dg__select_find(&list, "17:00.0", true, &found, NULL), DG_OK);
	CU_ASSERT_PTR_EQUAL(found, &room[2]);
}

static void test_find__refuses_what_fits_several(void)
{
	dg_listed room[4];
	dg_device_list list = a_list(room);
	const dg_listed *found = NULL;
	dg_error error = { 0 };
	CU_ASSERT_EQUAL(dg__select_find(&list, "card", true, &found, &error), DG_EINVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "cuda:1"));
	CU_ASSERT_PTR_NULL(strstr(error.text, "Processor"));
}

static void test_find__lists_candidates_where_none_fits(void)
{
	dg_listed room[4];
	dg_device_list list = a_list(room);
	const dg_listed *found = NULL;
	dg_error error = { 0 };
	CU_ASSERT_EQUAL(dg__select_find(&list, "virtual", true, &found, &error), DG_ENODEVICE);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "'virtual'"));
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "3 cpu (Processor)"));
	snprintf(room[3].gateway, sizeof(room[3].gateway), "https://node2:8443");
	CU_ASSERT_EQUAL(dg__select_find(&list, "virtual", true, &found, &error), DG_ENODEVICE);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "https://node2:8443#3 cpu (Processor)"));
}

static void test_find__tells_why_a_gateway_gave_nothing(void)
{
	dg_problem problem;
	memset(&problem, 0, sizeof(problem));
	problem.is_gateway = true;
	snprintf(problem.source, sizeof(problem.source), "%s", gateway);
	dg_error_set(&problem.error, DG_EUNREACHABLE, "connection refused");
	dg_device_list list = { 0, NULL, 1, &problem };
	const dg_listed *found = NULL;
	dg_error error = { 0 };
	CU_ASSERT_EQUAL(dg__select_find(&list, "card", true, &found, &error), DG_EUNREACHABLE);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, gateway));
}

static void test_pci__reads_every_usual_form(void)
{
	uint64_t number = 0;
	CU_ASSERT(dg__select_pci("0000:17:00.0", &number));
	CU_ASSERT_EQUAL(number, 0x17u << 8);
	CU_ASSERT(dg__select_pci("00000001:CA:1f.7", &number));
	CU_ASSERT_EQUAL(number, 0x1cafful);
	CU_ASSERT(dg__select_pci("17:00.0", &number));
	CU_ASSERT_EQUAL(number, 0x17u << 8);
}

static void test_pci__refuses_other_texts(void)
{
	static const char *const wrong[] = { "", "cuda:0", "17:00", "17:00.8", "17:20.0",
		"0:17:00.0", "0000:17:00.0 ", "g0:00.0", "000000001:17:00.0", "vulkan:discrete:0" };
	uint64_t number = 0;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CU_ASSERT(!dg__select_pci(wrong[i], &number));
}

static void test_uuid__reads_vendor_prefixes(void)
{
	const char *plain = "";
	CU_ASSERT(dg__select_uuid("GPU-11111111-2222-3333-4444-5555555555Aa", &plain));
	CU_ASSERT_STRING_EQUAL(plain, "11111111-2222-3333-4444-5555555555Aa");
	CU_ASSERT(dg__select_uuid("11111111-2222-3333-4444-555555555555", &plain));
	CU_ASSERT(!dg__select_uuid("11111111-2222-3333-4444-55555555555", &plain));
	CU_ASSERT(!dg__select_uuid("11111111-2222-3333-4444-5555555555555", &plain));
	CU_ASSERT(!dg__select_uuid("GPU-", &plain));
	CU_ASSERT(!dg__select_uuid("", &plain));
}

static const dg_test_case cases[] = {
	DG_TEST(test_find__by_index_at_a_gateway_alone),
	DG_TEST(test_find__by_text_form),
	DG_TEST(test_find__by_uuid_and_pci_address),
	DG_TEST(test_find__by_name_at_a_gateway_alone),
	DG_TEST(test_find__takes_the_first_name_of_one_hardware),
	DG_TEST(test_find__prefers_a_healthy_one),
	DG_TEST(test_find__refuses_what_fits_several),
	DG_TEST(test_find__lists_candidates_where_none_fits),
	DG_TEST(test_find__tells_why_a_gateway_gave_nothing),
	DG_TEST(test_pci__reads_every_usual_form),
	DG_TEST(test_pci__refuses_other_texts),
	DG_TEST(test_uuid__reads_vendor_prefixes),
};

DG_TEST_MAIN("cli select", cases)
