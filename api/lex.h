/*
 * Small pieces that every text form of the device model is read and written with. Nothing here
 * looks at the locale.
 */
#ifndef DEVGATE_API_LEX_H
#define DEVGATE_API_LEX_H

#include <stdbool.h>
#include <string.h>

#include <devgate/error.h>

/** Room that dg__quote() needs for the longest quotation it makes, in bytes. */
#define DG__QUOTE_MAX 96

/**
 * Quote untrusted bytes for an error text: printable ASCII between double quotes, everything else
 * as \xNN, cut with "..." after about 80 characters.
 *
 * @param length  Bytes of text to quote.
 * @return buf.
 */
const char *dg__quote(const char *text, size_t length, char buf[DG__QUOTE_MAX]);

/** Whether length bytes of text are word, without regard to the case of ASCII letters. */
bool dg__word_is(const char *text, size_t length, const char *word);

/** ASCII lower case; other bytes as they are. */
char dg__lower(char c);

/**
 * Read a plain decimal number: digits only, no sign, no blanks; leading zeros are allowed.
 *
 * @param max  Largest value allowed, below 2^63.
 * @return DG_OK, DG_EINVALID (no digits, or something else), DG_ERANGE (above max, however long).
 */
dg_err dg__number_read(
	const char *text, size_t length, uint64_t max, uint64_t *ret_number) DG_MUST_CHECK;

/** Text being written into a buffer of fixed size, with snprintf's rules. */
typedef struct dg__out {
	char *buf;
	size_t size; /* room, NUL included */
	size_t length; /* of the whole text, also where it does not fit */
} dg__out;

static inline void dg__put_bytes(dg__out *out, const char *text, size_t length)
{
	if (out->length < out->size) {
		size_t room = out->size - out->length;
		memcpy(out->buf + out->length, text, length < room ? length : room);
	}
	out->length += length;
}

static inline void dg__put(dg__out *out, const char *text)
{
	dg__put_bytes(out, text, strlen(text));
}

static inline void dg__put_number(dg__out *out, uint64_t number)
{
	char digits[20];
	size_t at = sizeof(digits);
	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	dg__put_bytes(out, digits + at, sizeof(digits) - at);
}

/** Terminate; gives the length of the whole text. */
static inline size_t dg__put_end(dg__out *out)
{
	if (out->size)
		out->buf[out->length < out->size ? out->length : out->size - 1] = '\0';
	return out->length;
}

#endif
