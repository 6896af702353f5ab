/*
 * What a gateway reads from whoever asks, and what a process reads from a worker that may have gone
 * mad: every request decoder and the frames. What is read must be written to a document that reads
 * back as the same; what is not must be an error with a text.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static dg_error error;

/* A plain decoder has memory enough here, so that it may give only these. */
static bool passed(dg_err err)
{
	if (err == DG_OK)
		return true;
	assert(err == DG_EJSON || err == DG_EFIELD || err == DG_ETOOMANY || err == DG_EKEY ||
		err == DG_EDTYPE);
	assert(error.code == err);
	assert(error.text[0] != '\0' && memchr(error.text, '\0', sizeof(error.text)));
	return false;
}

/* Two texts of the same: gives both up. */
static void same(dg__json_text *first, dg__json_text *second)
{
	assert(first->length == strlen(first->text));
	assert(first->length == second->length);
	assert(memcmp(first->text, second->text, first->length) == 0);
	free(first->text);
	free(second->text);
}

/* Read, write, read what was written, write again. */
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

ROUND_TRIP(measure_request, dg__measure_request, no_finish)
ROUND_TRIP(curve_request, dg__curve_request, no_finish)
ROUND_TRIP(roofline_request, dg__roofline_request, no_finish)
ROUND_TRIP(lease, dg_lease, no_finish)
ROUND_TRIP(texts, dg__text_list, dg__text_list_finish)
ROUND_TRIP(frame, dg__frame, dg__frame_finish)

static void fuzz_lease_request(const char *json, size_t length)
{
	uint32_t ttl_s = 0;
	if (passed(dg__wire_decode_lease_request(json, length, &ttl_s, &error)))
		assert(ttl_s >= 1 && ttl_s <= DG_LEASE_TTL_MAX_S);
}

static void fuzz_ids(const char *json, size_t length)
{
	static dg_id ids[DG__IDS_MAX];
	dg__json_text text, again;
	size_t count, back;
	if (!passed(dg__wire_decode_ids(json, length, ids, &count, &error)))
		return;
	assert(count <= DG__IDS_MAX);
	dg_err err = dg__wire_encode_ids(ids, count, &text);
	assert(err == DG_OK);
	err = dg__wire_decode_ids(text.text, text.length, ids, &back, &error);
	assert(err == DG_OK && back == count);
	err = dg__wire_encode_ids(ids, back, &again);
	assert(err == DG_OK);
	same(&text, &again);
}

/* The first byte chooses, so that a corpus can aim; anything else tries all. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct {
		char letter;
		void (*fuzz)(const char *json, size_t length);
	} targets[] = { { 'M', fuzz_measure_request }, { 'C', fuzz_curve_request },
		{ 'R', fuzz_roofline_request }, { 'T', fuzz_texts }, { 'I', fuzz_ids },
		{ 'F', fuzz_frame }, { 'L', fuzz_lease }, { 'l', fuzz_lease_request } };
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
