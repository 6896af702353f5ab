/* Heads of requests, their targets, and chunked bodies: whatever the bytes, a value or an error. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/http_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool good)
{
	if (!good)
		abort();
}

static void try_target(const char *target)
{
	dg__request request;
	dg_error why;
	char *text = strdup(target), *rest = text;
	if (!text)
		return;
	memset(&request, 0, sizeof(request));
	const char *authority = dg__target_authority(&rest);
	expect(!authority || !strpbrk(authority, "/?#"));
	if (dg__target_parse(rest, &request, &why) == DG_OK)
		expect(request.segment_count <= DG__SEGMENTS_MAX &&
			request.query_count <= DG__QUERIES_MAX);
	free(text);
}

static void try_head(char *text, size_t length)
{
	dg__head head;
	dg_error why = { .code = DG_OK };
	dg_err err = dg__head_read(text, length, &head, &why);
	expect(err == DG_OK || (why.code == err && *why.text));
	if (err != DG_OK)
		return;
	expect(*head.method && *head.target && strlen(head.target) <= DG__TARGET_MAX);
	expect(head.field_count <= DG__FIELDS_MAX && !(head.chunked && head.has_length));
	for (size_t i = 0; i < head.field_count; i++)
		expect(*head.fields[i].name && !strpbrk(head.fields[i].value, "\r\n") &&
			!strpbrk(head.fields[i].name, " \t:\r\n"));
	try_target(head.target);
}

/* In two pieces, as in one. */
static void try_chunks(const char *bytes, size_t size, size_t cut)
{
	char *whole = malloc(size + 1), *cutup = malloc(size + 1);
	dg__chunks a = { 0 }, b = { 0 };
	dg_error why;
	size_t length = size, used = 0, first = cut < size ? cut : size, used_first = 0;
	if (whole && cutup) {
		memcpy(whole, bytes, size);
		memcpy(cutup, bytes, size);
		dg_err err = dg__chunks_take(&a, whole, &length, &used, &why);
		size_t n = first, second = size - first, used_second = 0;
		dg_err other = dg__chunks_take(&b, cutup, &n, &used_first, &why);
		if (other == DG_OK && !b.ended) {
			other = dg__chunks_take(&b, cutup + first, &second, &used_second, &why);
			memmove(cutup + n, cutup + first, second);
			n += second;
		}
		expect(err == other);
		expect(err != DG_OK ||
			(n == length && a.ended == b.ended && used == used_first + used_second &&
				memcmp(whole, cutup, n) == 0));
	}
	free(whole);
	free(cutup);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	if (!text || size > 65536) {
		free(text);
		return 0;
	}
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	size_t head = size ? dg__head_end(text, size, 0) : 0;
	expect(head <= size);
	if (head) {
		try_chunks(text + head, size - head, (size_t)data[0] % 16);
		try_head(text, head);
	} else if (size) {
		dg_error why;
		(void)dg__head_room(text, size, &why);
		try_chunks(text, size, (size_t)data[0] % 16);
	}
	free(text);
	return 0;
}
