/*
 * What a client reads from a gateway that may be hostile: every reply and every problem document.
 * What is read must be written to a document that reads back as the same; what is not must be an
 * error with a text; a problem is never a success.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static dg_error error;

static bool passed(dg_err err)
{
	if (err == DG_OK)
		return true;
	assert(err == DG_EJSON || err == DG_EFIELD || err == DG_ETOOMANY || err == DG_EKEY);
	assert(error.code == err);
	assert(error.text[0] != '\0' && memchr(error.text, '\0', sizeof(error.text)));
	return false;
}

static void same(dg__json_text *first, dg__json_text *second)
{
	assert(first->length == strlen(first->text));
	assert(first->length == second->length);
	assert(memcmp(first->text, second->text, first->length) == 0);
	free(first->text);
	free(second->text);
}

#define ROUND_TRIP(name, type, finish) \
	static void fuzz_##name(const char *json, size_t length) \
	{ \
		static type value; \
		dg__json_text text, again; \
		if (!passed(dg__wire_decode_##name(json, length, &value, &error))) \
			return; \
		dg_err err = dg__wire_encode_##name(&value, &text); \
		finish(&value); \
		assert(err == DG_OK); \
		assert(dg__wire_decode_##name(text.text, text.length, &value, &error) == DG_OK); \
		err = dg__wire_encode_##name(&value, &again); \
		finish(&value); \
		assert(err == DG_OK); \
		same(&text, &again); \
	}

static void no_finish(void *value)
{
	(void)value;
}

ROUND_TRIP(gateway, dg__gateway, no_finish)
ROUND_TRIP(device, dg__device_entry, no_finish)
ROUND_TRIP(devices, dg__device_list, dg__device_list_finish)
ROUND_TRIP(values, dg__values, dg__values_finish)
ROUND_TRIP(curve, dg__curve_reply, dg__curve_reply_finish)
ROUND_TRIP(roofline, dg__roofline_reply, no_finish)
ROUND_TRIP(job, dg__job, dg__job_finish)

static void fuzz_id_items(const char *json, size_t length)
{
	static dg__id_item items[DG__IDS_MAX];
	dg__json_text text, again;
	size_t count, back;
	if (!passed(dg__wire_decode_id_items(json, length, items, &count, &error)))
		return;
	assert(count <= DG__IDS_MAX);
	dg_err err = dg__wire_encode_id_items(items, count, &text);
	assert(err == DG_OK);
	err = dg__wire_decode_id_items(text.text, text.length, items, &back, &error);
	assert(err == DG_OK && back == count);
	err = dg__wire_encode_id_items(items, back, &again);
	assert(err == DG_OK);
	same(&text, &again);
}

static void fuzz_problem(const char *json, size_t length)
{
	static const int statuses[] = { 200, 400, 401, 404, 410, 429, 500, 503, 599, 0, -1 };
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		dg_error told, back;
		dg__json_text text;
		dg__wire_decode_problem(statuses[i], json, length, &told);
		assert(told.code != DG_OK);
		assert(memchr(told.text, '\0', sizeof(told.text)));
		assert(memchr(told.origin, '\0', sizeof(told.origin)));
		dg_err err = dg__wire_encode_problem(&told, &text);
		assert(err == DG_OK);
		dg__wire_decode_problem(statuses[i], text.text, text.length, &back);
		assert(back.code == told.code && back.native_code == told.native_code);
		free(text.text);
	}
}

/* The first byte chooses, so that a corpus can aim; anything else tries all. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct {
		char letter;
		void (*fuzz)(const char *json, size_t length);
	} targets[] = { { 'G', fuzz_gateway }, { 'D', fuzz_device }, { 'L', fuzz_devices },
		{ 'V', fuzz_values }, { 'C', fuzz_curve }, { 'R', fuzz_roofline },
		{ 'J', fuzz_job }, { 'I', fuzz_id_items }, { 'P', fuzz_problem } };
	const size_t count = sizeof(targets) / sizeof(targets[0]);
	const char *json = (const char *)data;
	for (size_t i = 0; i < count; i++)
		if (size && json[0] == targets[i].letter) {
			targets[i].fuzz(json + 1, size - 1);
			return 0;
		}
	for (size_t i = 0; i < count; i++)
		targets[i].fuzz(json, size);
	return 0;
}
