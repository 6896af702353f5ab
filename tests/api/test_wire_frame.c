/* Frames between a process and its worker: each kind comes back as it was, garbage is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/wire.h"
#include "tests/test.h"

/* Written and read again; the caller finishes and frees it. */
static dg__frame *back_of(const dg__frame *frame)
{
	dg__json_text text = { NULL, 0 };
	dg_error error = { .code = DG_OK };
	dg__frame *back = calloc(1, sizeof(*back));
	CU_ASSERT_EQUAL_FATAL(dg__wire_encode_frame(frame, &text), DG_OK);
	dg_err err = dg__wire_decode_frame(text.text, text.length, back, &error);
	if (err)
		printf("\n    %s: %s\n", text.text, error.text);
	CU_ASSERT_EQUAL_FATAL(err, DG_OK);
	CU_ASSERT_EQUAL(back->kind, frame->kind);
	CU_ASSERT_EQUAL(back->request, frame->request);
	free(text.text);
	return back;
}

static void give_up(dg__frame *frame)
{
	dg__frame_finish(frame);
	free(frame);
}

static dg__frame *frame_of(dg__frame_kind kind)
{
	dg__frame *frame = calloc(1, sizeof(*frame));
	frame->kind = kind;
	frame->request = INT64_MAX;
	return frame;
}

static void test_requests__come_back(void)
{
	dg__frame *frame = frame_of(DG__FRAME_DETECT), *back;
	frame->timeout_ms = 1234;
	back = back_of(frame);
	CU_ASSERT_EQUAL(back->timeout_ms, 1234);
	give_up(back);
	frame->kind = DG__FRAME_CANCEL;
	give_up(back_of(frame));
	frame->kind = DG__FRAME_TELEMETRY;
	frame->device = UINT32_MAX;
	back = back_of(frame);
	CU_ASSERT_EQUAL(back->device, UINT32_MAX);
	give_up(back);
	give_up(frame);
}

static void test_measure__comes_back_with_its_keys(void)
{
	dg__frame *frame = frame_of(DG__FRAME_MEASURE);
	frame->device = 3;
	frame->timeout_ms = 60000;
	frame->measure.sustained = true;
	frame->measure.count = DG_KEYS_MAX;
	for (size_t i = 0; i < DG_KEYS_MAX; i++)
		frame->measure.keys[i] = (dg_key){
			.mode = DG_MODE_WORKING_SET, .access = DG_WRITE, .bytes = 4 * (i + 1)
		};
	dg__frame *back = back_of(frame);
	CU_ASSERT(back->device == 3 && back->timeout_ms == 60000 && back->measure.sustained);
	CU_ASSERT_EQUAL(back->measure.count, DG_KEYS_MAX);
	CU_ASSERT_EQUAL(back->measure.keys[255].bytes, 1024);
	give_up(back);
	give_up(frame);
}

static void test_devices__come_back(void)
{
	dg__frame *frame = frame_of(DG__FRAME_DEVICES);
	frame->devices.count = 2;
	frame->devices.entries = calloc(2, sizeof(*frame->devices.entries));
	snprintf(frame->devices.entries[1].info.name, DG_NAME_MAX, "the second");
	dg__frame *back = back_of(frame);
	CU_ASSERT_EQUAL(back->devices.count, 2);
	CU_ASSERT_STRING_EQUAL(back->devices.entries[1].info.name, "the second");
	give_up(back);
	give_up(frame);
}

static void test_progress_and_value__come_back(void)
{
	dg__frame *frame = frame_of(DG__FRAME_PROGRESS);
	frame->done = 2;
	frame->total = 5;
	frame->key = (dg_key){ .mode = DG_MODE_LAUNCH };
	dg__frame *back = back_of(frame);
	CU_ASSERT(back->done == 2 && back->total == 5 && back->key.mode == DG_MODE_LAUNCH);
	give_up(back);
	frame->kind = DG__FRAME_VALUE;
	frame->value = (dg_value){ .key = frame->key, .ops_count = 1, .duration_ns = 77 };
	back = back_of(frame);
	CU_ASSERT(back->done == 2 && back->value.duration_ns == 77);
	give_up(back);
	give_up(frame);
}

static void test_end__comes_back_with_telemetry(void)
{
	dg__frame *frame = frame_of(DG__FRAME_END);
	frame->telemetry = (dg_telemetry){ .present = DG_TELEMETRY_LOAD | DG_TELEMETRY_USED |
						      DG_TELEMETRY_THROTTLE,
		.load = 0.25,
		.memory_used_bytes = 9,
		.power_w = 100,
		.throttle_reason = "thermal",
		.at_ms = 1796126400123 };
	dg__frame *back = back_of(frame);
	CU_ASSERT_EQUAL(back->telemetry.present, frame->telemetry.present);
	CU_ASSERT(back->telemetry.load == 0.25 && back->telemetry.memory_used_bytes == 9);
	CU_ASSERT(back->telemetry.power_w == 0 && back->telemetry.at_ms == 1796126400123);
	CU_ASSERT_STRING_EQUAL(back->telemetry.throttle_reason, "thermal");
	give_up(back);
	give_up(frame);
}

static void test_error__comes_back(void)
{
	dg__frame *frame = frame_of(DG__FRAME_ERROR);
	dg_error_native(&frame->error, DG_EDRIVER, "cpu", INT32_MIN, "it broke");
	dg__frame *back = back_of(frame);
	CU_ASSERT_EQUAL(back->error.code, DG_EDRIVER);
	CU_ASSERT_EQUAL(back->error.native_code, INT32_MIN);
	CU_ASSERT_STRING_EQUAL(back->error.text, "it broke");
	give_up(back);
	give_up(frame);
}

/* An error frame must not read as a success, whatever a broken worker puts in it. */
static void test_error__is_one_whatever_it_says(void)
{
	static const char *const problems[] = { "{}", "{\"code\":\"ok\"}", "{\"code\":7}",
		"{\"status\":200}", "{\"status\":18446744073709}", "{\"status\":-1}" };
	for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
		char json[256];
		dg__frame *frame = calloc(1, sizeof(*frame));
		int n = snprintf(json, sizeof(json),
			"{\"frame\":\"error\",\"request\":1,\"problem\":%s}", problems[i]);
		CU_ASSERT_EQUAL(dg__wire_decode_frame(json, (size_t)n, frame, NULL), DG_OK);
		CU_ASSERT_NOT_EQUAL(frame->error.code, DG_OK);
		give_up(frame);
	}
}

static void test_garbage__is_refused(void)
{
	static const struct {
		const char *json, *says;
	} cases[] = {
		{ "[]", "frame: missing" },
		{ "{\"frame\":\"wave\",\"request\":1}",
			"frame: unknown word; expected one of detect" },
		{ "{\"frame\":7,\"request\":1}", "frame: expected a word" },
		{ "{\"frame\":\"cancel\"}", "request: missing" },
		{ "{\"frame\":\"cancel\",\"request\":-1}", "request: -1" },
		{ "{\"frame\":\"detect\",\"request\":1}", "timeout_ms: missing" },
		{ "{\"frame\":\"measure\",\"request\":1,\"device\":0,\"timeout_ms\":1,"
		  "\"sustained\":false,\"keys\":[\"launch\",7]}",
			"keys[1]: expected a key" },
		{ "{\"frame\":\"devices\",\"request\":1}", "list: missing" },
		{ "{\"frame\":\"devices\",\"request\":1,\"list\":{\"devices\":[7]}}",
			"devices[0]: expected a device" },
		{ "{\"frame\":\"value\",\"request\":1,\"done\":0,\"total\":1}",
			"expected a value" },
		{ "{\"frame\":\"value\",\"request\":1,\"done\":257,\"total\":1}", "done: 257" },
		{ "{\"frame\":\"progress\",\"request\":1,\"done\":0,\"total\":1}",
			"expected a key" },
		{ "{\"frame\":\"end\",\"request\":1,\"telemetry\":7}", "telemetry: " },
		{ "{\"frame\":\"end\",\"request\":1,\"telemetry\":{\"load\":\"high\"}}", "load: " },
		{ "{\"frame\":\"error\",\"request\":1}", "problem: missing" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		dg__frame *frame = calloc(1, sizeof(*frame));
		dg_error error = { .code = DG_OK };
		dg_err err =
			dg__wire_decode_frame(cases[i].json, strlen(cases[i].json), frame, &error);
		if (err != DG_EFIELD || !strstr(error.text, cases[i].says))
			printf("\n    %s: %s: %s\n", cases[i].json, dg_err_code(err), error.text);
		CU_ASSERT_EQUAL(err, DG_EFIELD);
		CU_ASSERT_PTR_NOT_NULL(strstr(error.text, cases[i].says));
		free(frame); /* needs no finish */
	}
}

static const dg_test_case cases[] = {
	DG_TEST(test_requests__come_back),
	DG_TEST(test_measure__comes_back_with_its_keys),
	DG_TEST(test_devices__come_back),
	DG_TEST(test_progress_and_value__come_back),
	DG_TEST(test_end__comes_back_with_telemetry),
	DG_TEST(test_error__comes_back),
	DG_TEST(test_error__is_one_whatever_it_says),
	DG_TEST(test_garbage__is_refused),
};

DG_TEST_MAIN("worker frames", cases)
