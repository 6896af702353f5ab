/* See lex.h. */
#include "api/lex.h"

const char *dg__quote(const char *text, size_t length, char buf[DG__QUOTE_MAX])
{
	static const char hex[] = "0123456789abcdef";
	const size_t end =
		DG__QUOTE_MAX - 5; /* room for the mark of a cut, the quote and the NUL */
	size_t at = 0;
	buf[at++] = '"';
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];
		bool plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
		if (at + (plain ? 1 : 4) > end) {
			memcpy(buf + at, "...", 3);
			at += 3;
			break;
		}
		if (plain) {
			buf[at++] = (char)c;
		} else {
			buf[at++] = '\\';
			buf[at++] = 'x';
			buf[at++] = hex[c >> 4];
			buf[at++] = hex[c & 15];
		}
	}
	buf[at++] = '"';
	buf[at] = '\0';
	return buf;
}

char dg__lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool dg__word_is(const char *text, size_t length, const char *word)
{
	for (size_t i = 0; i < length; i++)
		if (word[i] == '\0' || dg__lower(text[i]) != dg__lower(word[i]))
			return false;
	return word[length] == '\0';
}

dg_err dg__number_read(const char *text, size_t length, uint64_t max, uint64_t *ret_number)
{
	uint64_t number = 0;
	bool over = false;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return DG_EINVALID;
		unsigned digit = (unsigned)(text[i] - '0');
		if (over || number > (max - digit) / 10 || digit > max)
			over = true;
		else
			number = number * 10 + digit;
	}
	if (length == 0)
		return DG_EINVALID;
	if (over)
		return DG_ERANGE;
	*ret_number = number;
	return DG_OK;
}
