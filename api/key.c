/* Throughput keys: short texts, range checks, comparison. See throughput.h. */
#include <devgate/throughput.h>

#include "api/lex.h"

#define TILE_MAX 65535u

static const char *const access_words[] = { "copy", "read", "write" };

/* The pieces of a text between its colons. */
typedef struct pieces {
	const char *whole;
	size_t count;
	struct {
		const char *at;
		size_t length;
	} piece[5];
} pieces;

static bool cut(const char *text, pieces *ret_pieces)
{
	pieces p = { .whole = text };
	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ":");
		if (p.count == sizeof(p.piece) / sizeof(p.piece[0]))
			return false;
		p.piece[p.count].at = at;
		p.piece[p.count++].length = length;
		at += length;
		if (*at == '\0')
			break;
	}
	*ret_pieces = p;
	return true;
}

static dg_err wrong(const pieces *p, size_t i, const char *expected, dg_error *reterr)
{
	char quoted[DG__QUOTE_MAX];
	if (i >= p->count)
		return dg_error_set(reterr, DG_EKEY,
			"the key ends too early at character %zu; "
			"expected %s",
			strlen(p->whole) + 1, expected);
	return dg_error_set(reterr, DG_EKEY, "%s at character %zu is wrong; expected %s",
		dg__quote(p->piece[i].at, p->piece[i].length, quoted),
		(size_t)(p->piece[i].at - p->whole) + 1, expected);
}

static bool is(const pieces *p, size_t i, const char *word)
{
	return i < p->count && dg__word_is(p->piece[i].at, p->piece[i].length, word);
}

static dg_err parse_dtype(const pieces *p, size_t i, dg_dtype *ret_dtype, dg_error *reterr)
{
	char word[16];
	dg_dtype dtype = DG_DTYPE_NONE;
	if (i < p->count && p->piece[i].length < sizeof(word)) {
		memcpy(word, p->piece[i].at, p->piece[i].length);
		word[p->piece[i].length] = '\0';
		dtype = dg_dtype_parse(word);
	}
	if (dtype == DG_DTYPE_NONE) {
		char expected[200] = "";
		dg__out out = { expected, sizeof(expected), 0 };
		dg__put(&out, "one of");
		for (unsigned d = 1; d < 64; d++) {
			if (dg_dtype_text(d)) {
				dg__put(&out, " ");
				dg__put(&out, dg_dtype_text(d));
			}
		}
		dg__put_end(&out);
		return wrong(p, i, expected, reterr);
	}
	*ret_dtype = dtype;
	return DG_OK;
}

static dg_err end_after(const pieces *p, size_t count, dg_error *reterr)
{
	return p->count > count ? wrong(p, count, "the end of the key", reterr) : DG_OK;
}

/* 16x16x16 */
static dg_err parse_tile(const pieces *p, size_t i, dg_key *key, dg_error *reterr)
{
	static const char expected[] = "a tile MxNxK, each 1..65535";
	uint32_t *const sides[3] = { &key->m, &key->n, &key->k };
	if (i >= p->count)
		return wrong(p, i, expected, reterr);
	const char *at = p->piece[i].at, *end = at + p->piece[i].length;
	for (size_t side = 0; side < 3; side++) {
		size_t length = 0;
		uint64_t number = 0;
		while (at + length < end && dg__lower(at[length]) != 'x')
			length++;
		if (dg__number_read(at, length, TILE_MAX, &number) || number == 0)
			return wrong(p, i, expected, reterr);
		*sides[side] = (uint32_t)number;
		at += length;
		if (side < 2) {
			if (at == end)
				return wrong(p, i, expected, reterr);
			at++;
		}
	}
	return at == end ? DG_OK : wrong(p, i, expected, reterr);
}

static dg_err parse_cmma(const pieces *p, dg_key *key, dg_error *reterr)
{
	key->mode = DG_MODE_CMMA;
	dg_err err = parse_dtype(p, 1, &key->dtype, reterr);
	if (!err)
		err = parse_dtype(p, 2, &key->accumulator, reterr);
	if (!err)
		err = parse_tile(p, 3, key, reterr);
	return err ? err : end_after(p, 4, reterr);
}

static dg_err parse_memory(const pieces *p, dg_key *key, dg_error *reterr)
{
	unsigned access = 0;
	key->mode = DG_MODE_MEMORY;
	if (p->count == 1)
		return DG_OK;
	while (access < 3 && !is(p, 1, access_words[access]))
		access++;
	if (access == 3)
		return wrong(p, 1, "copy, read or write", reterr);
	key->access = (dg_access)access;
	if (p->count == 2)
		return DG_OK;
	dg_err err = dg__number_read(
		p->piece[2].at, p->piece[2].length, DG_WORKING_SET_MAX_BYTES, &key->bytes);
	if (err || key->bytes < DG_WORKING_SET_MIN_BYTES)
		return wrong(p, 2, "a number of bytes, 4..1099511627776", reterr);
	key->mode = DG_MODE_WORKING_SET;
	if (p->count == 3)
		return DG_OK;
	if (!is(p, 3, "resident"))
		return wrong(p, 3, "resident or the end of the key", reterr);
	key->mode = DG_MODE_RESIDENT;
	return end_after(p, 4, reterr);
}

dg_err dg_key_parse(const char *text, dg_key *ret_key, dg_error *reterr)
{
	pieces p;
	dg_key key = { .mode = DG_MODE_COMPUTE };
	dg_err err;
	if (!text)
		return dg_error_set(reterr, DG_EKEY, "no text was given");
	if (strnlen(text, DG_KEY_TEXT_MAX) >= DG_KEY_TEXT_MAX)
		return dg_error_set(
			reterr, DG_EKEY, "the key is longer than %d bytes", DG_KEY_TEXT_MAX - 1);
	if (!cut(text, &p))
		return dg_error_set(reterr, DG_EKEY, "the key has more than 4 colons");
	if (is(&p, 0, "compute")) {
		err = parse_dtype(&p, 1, &key.dtype, reterr);
		if (!err)
			err = end_after(&p, 2, reterr);
	} else if (is(&p, 0, "cmma")) {
		err = parse_cmma(&p, &key, reterr);
	} else if (is(&p, 0, "memory")) {
		err = parse_memory(&p, &key, reterr);
	} else if (is(&p, 0, "launch")) {
		key.mode = DG_MODE_LAUNCH;
		err = end_after(&p, 1, reterr);
	} else {
		err = wrong(&p, 0,
			"compute:DTYPE, cmma:DTYPE:ACCUMULATOR:MxNxK, memory, "
			"memory:copy|read|write[:BYTES[:resident]] or launch",
			reterr);
	}
	if (!err)
		*ret_key = key;
	return err;
}

static void put_cmma(dg__out *out, const dg_key *key)
{
	dg__put(out, "cmma:");
	dg__put(out, dg_dtype_text(key->dtype));
	dg__put(out, ":");
	dg__put(out, dg_dtype_text(key->accumulator));
	dg__put(out, ":");
	dg__put_number(out, key->m);
	dg__put(out, "x");
	dg__put_number(out, key->n);
	dg__put(out, "x");
	dg__put_number(out, key->k);
}

size_t dg_key_format(const dg_key *key, char *buf, size_t size)
{
	dg__out out = { buf, size, 0 };
	if (dg_key_check(key, NULL)) {
		dg__put(&out, "?");
		return dg__put_end(&out);
	}
	switch (key->mode) {
	case DG_MODE_COMPUTE:
		dg__put(&out, "compute:");
		dg__put(&out, dg_dtype_text(key->dtype));
		break;
	case DG_MODE_CMMA:
		put_cmma(&out, key);
		break;
	case DG_MODE_LAUNCH:
		dg__put(&out, "launch");
		break;
	case DG_MODE_MEMORY:
	case DG_MODE_WORKING_SET:
	case DG_MODE_RESIDENT:
		dg__put(&out, "memory");
		if (key->mode == DG_MODE_MEMORY && key->access == DG_COPY)
			break;
		dg__put(&out, ":");
		dg__put(&out, access_words[key->access]);
		if (key->mode == DG_MODE_MEMORY)
			break;
		dg__put(&out, ":");
		dg__put_number(&out, key->bytes);
		dg__put(&out, key->mode == DG_MODE_RESIDENT ? ":resident" : "");
		break;
	}
	return dg__put_end(&out);
}

static dg_err out_of_range(const char *field, dg_error *reterr)
{
	return dg_error_set(reterr, DG_EKEY, "%s of the key is out of range for its mode", field);
}

static bool is_tile_side(uint32_t side)
{
	return side >= 1 && side <= TILE_MAX;
}

static dg_err check_matrix(const dg_key *key, dg_error *reterr)
{
	if (key->mode == DG_MODE_CMMA) {
		if (!dg_dtype_text(key->accumulator))
			return out_of_range("the accumulator", reterr);
		if (!is_tile_side(key->m) || !is_tile_side(key->n) || !is_tile_side(key->k))
			return out_of_range("the tile", reterr);
	} else if (key->accumulator != DG_DTYPE_NONE || key->m || key->n || key->k) {
		return out_of_range("the tile or accumulator", reterr);
	}
	return DG_OK;
}

dg_err dg_key_check(const dg_key *key, dg_error *reterr)
{
	bool compute = key->mode == DG_MODE_COMPUTE || key->mode == DG_MODE_CMMA;
	bool sized = key->mode == DG_MODE_WORKING_SET || key->mode == DG_MODE_RESIDENT;
	bool memory = sized || key->mode == DG_MODE_MEMORY;
	if ((unsigned)key->mode > DG_MODE_LAUNCH)
		return out_of_range("the mode", reterr);
	if (compute ? !dg_dtype_text(key->dtype) : key->dtype != DG_DTYPE_NONE)
		return out_of_range("the dtype", reterr);
	if ((unsigned)key->access > (memory ? DG_WRITE : 0u))
		return out_of_range("the access", reterr);
	if (sized ? key->bytes < DG_WORKING_SET_MIN_BYTES || key->bytes > DG_WORKING_SET_MAX_BYTES
		  : key->bytes != 0)
		return out_of_range("the number of bytes", reterr);
	return check_matrix(key, reterr);
}

bool dg_key_equal(const dg_key *a, const dg_key *b)
{
	return a->mode == b->mode && a->dtype == b->dtype && a->accumulator == b->accumulator &&
	       a->access == b->access && a->m == b->m && a->n == b->n && a->k == b->k &&
	       a->bytes == b->bytes;
}

bool dg_key_is_memory(const dg_key *key)
{
	return key->mode == DG_MODE_MEMORY || key->mode == DG_MODE_WORKING_SET ||
	       key->mode == DG_MODE_RESIDENT;
}
