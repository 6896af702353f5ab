/* Text forms of devices: what is read, what is written, and what is said about the rest. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <devgate/device.h>

#include "api/registry.h"

static void check_reads(const char *text, const char *canonical)
{
	char buf[DG_DEVICE_TEXT_MAX];
	dg_device device, again;
	dg_error error = { 0 };
	dg_err err = dg_device_parse(text, &device, &error);
	if (err)
		printf("\n    %s: %s\n", text, error.text);
	CU_ASSERT_EQUAL_FATAL(err, DG_OK);
	CU_ASSERT_EQUAL(dg_device_format(device, buf, sizeof(buf)), strlen(canonical));
	CU_ASSERT_STRING_EQUAL(buf, canonical);
	CU_ASSERT_EQUAL(dg_device_parse(buf, &again, NULL), DG_OK);
	CU_ASSERT(dg_device_equal_strict(device, again));
}

static void test_parse__canonical_texts_come_back_as_they_were(void)
{
	static const char *const texts[] = { "cpu", "flex", "ndarray", "cuda:0", "cuda:65535",
		"rocm:7", "vulkan:discrete:0", "vulkan:integrated:1", "vulkan:virtual:2",
		"vulkan:existing:3", "vulkan:cpu", "vulkan:default", "metal:discrete:0",
		"metal:default", "wgpu:cpu", "webgpu:existing:65535", "libtorch:cpu",
		"libtorch:cuda:3", "libtorch:mps", "libtorch:vulkan", "capture:5",
		"remote:https://node1:8443#0", "remote:http://[::1]:80#65535",
		"remote:https://[fe80::1%25eth0]:8443#1", "autodiff(cpu)",
		"autodiff(vulkan:discrete:1,balanced)",
		"autodiff(remote:https://node1:8443#0,balanced)" };
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check_reads(texts[i], texts[i]);
}

static void test_parse__short_forms_and_any_case_are_read(void)
{
	check_reads("cuda", "cuda:0");
	check_reads("ROCm", "rocm:0");
	check_reads("Vulkan", "vulkan:default");
	check_reads("METAL", "metal:default");
	check_reads("wgpu", "wgpu:default");
	check_reads("WebGPU:CPU", "webgpu:cpu");
	check_reads("libtorch", "libtorch:cpu");
	check_reads("LibTorch:CUDA:1", "libtorch:cuda:1");
	check_reads("cuda:007", "cuda:7");
	check_reads("https://Node1", "remote:https://node1:8443#0");
	check_reads("HTTPS://node1#5", "remote:https://node1:8443#5");
	check_reads("wss://node1:1/#5", "remote:https://node1:1#5");
	check_reads("Remote:WS://127.0.0.1", "remote:http://127.0.0.1:8443#0");
	check_reads("AutoDiff(CUDA:1,Balanced)", "autodiff(cuda:1,balanced)");
	check_reads("autodiff(cuda,disabled)", "autodiff(cuda:0)");
	check_reads("autodiff(https://node1)", "autodiff(remote:https://node1:8443#0)");
}

static const struct {
	const char *text;
	dg_err err;
	const char *says[2];
} wrong[] = {
	{ "", DG_EDEVICE, { "the device is missing", "cuda" } },
	{ "cudo", DG_EDEVICE, { "\"cudo\" at character 1", "cuda" } },
	{ " cuda", DG_EDEVICE, { "\" cuda\"", "character 1" } },
	{ "cuda ", DG_EDEVICE, { "\"cuda \"", NULL } },
	{ "cuda:", DG_EDEVICE, { "index is missing at character 6", "0..65535" } },
	{ "cuda:x", DG_EDEVICE, { "\"x\" at character 6", "decimal" } },
	{ "cuda:-1", DG_EDEVICE, { "\"-1\"", NULL } },
	{ "cuda:+1", DG_EDEVICE, { "\"+1\"", NULL } },
	{ "cuda: 1", DG_EDEVICE, { "\" 1\"", NULL } },
	{ "cuda:1 ", DG_EDEVICE, { "\"1 \"", NULL } },
	{ "cuda:0x1", DG_EDEVICE, { "\"0x1\"", NULL } },
	{ "cuda:1:2", DG_EDEVICE, { "\"1:2\"", NULL } },
	{ "cuda:65536", DG_ERANGE, { "65536", "0..65535" } },
	{ "cuda:4294967296", DG_ERANGE, { NULL, NULL } },
	{ "cuda:18446744073709551616", DG_ERANGE, { NULL, NULL } },
	{ "rocm:99999999999999999999999999999999999999999999", DG_ERANGE, { NULL, NULL } },
	{ "cuda:99999999999999999999999999999999999999999999x", DG_EDEVICE, { NULL, NULL } },
	{ "cpu:0", DG_EDEVICE, { "\":0\" at character 4", "Cpu" } },
	{ "flex:", DG_EDEVICE, { "\":\" at character 5", NULL } },
	{ "vulkan:", DG_EDEVICE, { "kind is missing at character 8", "discrete:N" } },
	{ "vulkan:0", DG_EDEVICE, { "\"0\" at character 8", "integrated:N" } },
	{ "vulkan:discrete", DG_EDEVICE, { "character 16", "vulkan:discrete:N" } },
	{ "vulkan:discrete:", DG_EDEVICE, { "character 17", NULL } },
	{ "vulkan:discrete:70000", DG_ERANGE, { "character 17", NULL } },
	{ "vulkan:cpu:0", DG_EDEVICE, { "\":0\" at character 11", NULL } },
	{ "libtorch:discrete:0", DG_EDEVICE, { "mps", "cuda:N" } },
	{ "libtorch:cuda:65536", DG_ERANGE, { NULL, NULL } },
	{ "capture", DG_EDEVICE, { "capture:N", NULL } },
	{ "capture:65536", DG_ERANGE, { NULL, NULL } },
	{ "remote", DG_EDEVICE, { "remote:https://HOST:PORT#N", NULL } },
	{ "remote:", DG_EDEVICE, { "the address is missing", NULL } },
	{ "remote:cuda:0", DG_EADDRESS, { "https://", NULL } },
	{ "https://", DG_EADDRESS, { "host name", NULL } },
	{ "https://node1#", DG_EDEVICE, { "index is missing", NULL } },
	{ "https://node1#x", DG_EDEVICE, { "\"x\" at character 15", NULL } },
	{ "https://node1#65536", DG_ERANGE, { NULL, NULL } },
	{ "https://node1#1#2", DG_EDEVICE, { "\"1#2\"", NULL } },
	{ "https://node1/v1#1", DG_EADDRESS, { "no path", NULL } },
	{ "autodiff", DG_EDEVICE, { "autodiff(D)", NULL } },
	{ "autodiff(", DG_EDEVICE, { "')'", NULL } },
	{ "autodiff()", DG_EDEVICE, { "device is missing at character 10", NULL } },
	{ "autodiff(cuda:0", DG_EDEVICE, { "character 16", "')'" } },
	{ "autodiff(cuda:0)x", DG_EDEVICE, { "')'", NULL } },
	{ "autodiff(cuda:0,)", DG_EDEVICE, { "strategy is missing", "balanced" } },
	{ "autodiff(cuda:0,fast)", DG_EDEVICE, { "\"fast\" at character 17", "balanced" } },
	{ "autodiff(cuda:0, balanced)", DG_EDEVICE, { "\" balanced\"", NULL } },
	{ "autodiff(cuda:70000)", DG_ERANGE, { "character 15", NULL } },
	{ "autodiff(autodiff(cuda:0))", DG_EAUTODIFF, { "character 10", NULL } },
	{ "autodiff(AUTODIFF(cuda:0),balanced)", DG_EAUTODIFF, { NULL, NULL } },
	{ "cuda\n:0", DG_EDEVICE, { "\\x0a", NULL } },
	{ "\xed\xa0\x80", DG_EDEVICE, { "\\xed\\xa0\\x80", NULL } },
	{ "\x01\x7f\xff", DG_EDEVICE, { "\\x01\\x7f\\xff", NULL } },
	{ "a\"b\\c", DG_EDEVICE, { "a\\x22b\\x5cc", NULL } },
};

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7e)
			return false;
	return true;
}

static void test_parse__wrong_texts_say_which_part_and_what_was_expected(void)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		dg_device device = { 9, 9, 999, 9, 9, { 9, 9 } };
		dg_error error = { 0 };
		dg_err err = dg_device_parse(wrong[i].text, &device, &error);
		bool good = err == wrong[i].err && error.code == err && is_printable(error.text) &&
			    device.index == 999;
		for (size_t k = 0; k < 2; k++)
			if (wrong[i].says[k] && !strstr(error.text, wrong[i].says[k]))
				good = false;
		if (!good)
			printf("\n    \"%s\": %s: %s\n", wrong[i].text, dg_err_code(err),
				error.text);
		CU_ASSERT(good);
		CU_ASSERT_EQUAL(dg_device_parse(wrong[i].text, &device, NULL), wrong[i].err);
	}
}

static void test_parse__overlong_texts_are_refused_and_quoted_in_short(void)
{
	static char text[100000];
	dg_device device;
	dg_error error;
	memset(text, 'c', sizeof(text) - 1);
	CU_ASSERT_EQUAL(dg_device_parse(text, &device, &error), DG_EDEVICE);
	text[DG_DEVICE_TEXT_MAX - 1] = '\0';
	CU_ASSERT_EQUAL(dg_device_parse(text, &device, &error), DG_EDEVICE);
	CU_ASSERT(strstr(error.text, "...\"") && strlen(error.text) < 400);
	CU_ASSERT_EQUAL(dg_device_parse(NULL, &device, &error), DG_EDEVICE);
}

static void test_parse__the_longest_host_has_room_in_every_form(void)
{
	char text[DG_DEVICE_TEXT_MAX], back[DG_DEVICE_TEXT_MAX], host[254];
	dg_device device;
	memset(host, 'a', sizeof(host));
	host[63] = host[127] = host[191] = '.';
	host[253] = '\0';
	snprintf(text, sizeof(text), "autodiff(remote:https://%s:65535#65535,balanced)", host);
	CU_ASSERT_EQUAL(dg_device_parse(text, &device, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg_device_format(device, back, sizeof(back)), strlen(text));
	CU_ASSERT_STRING_EQUAL(back, text);
	CU_ASSERT(dg_device_debug(device, back, sizeof(back)) < sizeof(back));
}

static void test_text_parse__registers_nothing(void)
{
	dg__text text;
	size_t before = dg__registry_count();
	CU_ASSERT_EQUAL(dg__text_parse("autodiff(https://unmet:9#4,balanced)", &text, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg__registry_count(), before);
	CU_ASSERT(text.remote && text.index == 4 && text.address.port == 9 && text.address.tls);
	CU_ASSERT_STRING_EQUAL(text.address.host, "unmet");
	CU_ASSERT_EQUAL(text.device.variant, DG_REMOTE);
	CU_ASSERT_EQUAL(text.device.strategy, DG_STRATEGY_BALANCED);
}

static void check_debug(const char *text, const char *debug)
{
	char buf[DG_DEVICE_TEXT_MAX];
	dg_device device = { 0 };
	CU_ASSERT_EQUAL(dg_device_parse(text, &device, NULL), DG_OK);
	CU_ASSERT_EQUAL(dg_device_debug(device, buf, sizeof(buf)), strlen(debug));
	CU_ASSERT_STRING_EQUAL(buf, debug);
}

static void test_debug__is_the_text_of_the_reference(void)
{
	check_debug("cpu", "Cpu(CpuDevice)");
	check_debug("flex", "Flex(Cpu)");
	check_debug("rocm:1", "Rocm(AmdDevice(1))");
	check_debug("webgpu", "WebGpu(DefaultDevice)");
	check_debug("libtorch:cuda:2", "LibTorch(Cuda(2))");
	check_debug("capture:4", "Capture(CaptureDevice { id: 4 })");
	check_debug("https://Node1#2", "Remote(https://node1:8443#2)");
	check_debug(
		"autodiff(cuda:1)", "Autodiff { device: Cuda(Cuda(1)), checkpointing: Disabled }");
	check_debug("autodiff(cpu,balanced)",
		"Autodiff { device: Cpu(CpuDevice), checkpointing: Balanced }");
}

static void test_format__cuts_as_snprintf_does(void)
{
	char buf[8];
	dg_device device = { 0 };
	CU_ASSERT_EQUAL(dg_device_parse("vulkan:discrete:12", &device, NULL), DG_OK);
	for (size_t size = 0; size < sizeof(buf); size++) {
		memset(buf, '#', sizeof(buf));
		CU_ASSERT_EQUAL(dg_device_format(device, buf, size), 18);
		if (size)
			CU_ASSERT(
				strlen(buf) == size - 1 && strncmp(buf, "vulkan:", size - 1) == 0);
		CU_ASSERT_EQUAL(buf[size], '#');
		CU_ASSERT_EQUAL(dg_device_debug(device, buf, size), 23);
	}
	CU_ASSERT_EQUAL(dg_device_format(device, NULL, 0), 18);
}

static void test_format__devices_filled_by_hand_do_no_harm(void)
{
	char buf[DG_DEVICE_TEXT_MAX];
	for (unsigned variant = 0; variant < 256; variant++) {
		for (unsigned kind = 0; kind < 256; kind += 3) {
			dg_device device = { (uint8_t)variant, (uint8_t)kind, 65535, 3, 9,
				{ 1, 1 } };
			CU_ASSERT_FATAL(dg_device_format(device, buf, sizeof(buf)) < sizeof(buf));
			CU_ASSERT_FATAL(dg_device_debug(device, buf, sizeof(buf)) < sizeof(buf));
		}
	}
}

static const dg_test_case cases[] = {
	DG_TEST(test_parse__canonical_texts_come_back_as_they_were),
	DG_TEST(test_parse__short_forms_and_any_case_are_read),
	DG_TEST(test_parse__wrong_texts_say_which_part_and_what_was_expected),
	DG_TEST(test_parse__overlong_texts_are_refused_and_quoted_in_short),
	DG_TEST(test_parse__the_longest_host_has_room_in_every_form),
	DG_TEST(test_text_parse__registers_nothing),
	DG_TEST(test_debug__is_the_text_of_the_reference),
	DG_TEST(test_format__cuts_as_snprintf_does),
	DG_TEST(test_format__devices_filled_by_hand_do_no_harm),
};

DG_TEST_MAIN("api/device_text", cases)
