/* See tokens_file.h. */
#include "server/tokens_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/core/file.h"
#include "server/config.h"

#define TOKENS_MAX 10000
#define LINE_MAX_BYTES 510
#define FILE_MAX ((size_t)TOKENS_MAX * LINE_MAX_BYTES)

bool dg__token_name_ok(const char *name)
{
	size_t length =
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
	return length > 0 && length < sizeof(((dg__token *)0)->name) && !name[length];
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool read_hash(const char *text, uint8_t hash[32])
{
	for (unsigned i = 0; i < 32; i++) {
		int high = hex_digit(text[2 * i]);
		int low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);
		if (low < 0)
			return false;
		hash[i] = (uint8_t)(high << 4 | low);
	}
	return text[64] == '\0';
}

static const char blanks[] = " \t\r\n";

/* The next word of a line, ended with NUL in place; "" where there is none. */
static char *next_word(char **line)
{
	char *word = *line + strspn(*line, blanks);
	char *end = word + strcspn(word, blanks);
	*line = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

/* 1: a token; 0: a blank line; -1: a fault, told in why. */
static int read_line(char *line, dg__token *token, dg_error *why)
{
	char *comment = strchr(line, '#');
	if (comment)
		*comment = '\0';
	char *name = next_word(&line), *scopes = next_word(&line), *hash = next_word(&line);
	memset(token, 0, sizeof(*token));
	if (!*name)
		return 0;
	if (!*hash || *next_word(&line))
		dg_error_set(why, DG_ECONFIG, "expected NAME SCOPES SHA256");
	else if (!dg__token_name_ok(name))
		dg_error_set(why, DG_ECONFIG, "a name has 1 to 63 letters, digits, and ._-");
	else if (dg__scopes_parse(scopes, &token->scopes, why) != DG_OK)
		return -1;
	else if (!read_hash(hash, token->sha256))
		dg_error_set(why, DG_ECONFIG, "expected the token's SHA-256 as 64 hex digits");
	else {
		snprintf(token->name, sizeof(token->name), "%s", name);
		return 1;
	}
	return -1;
}

static dg_err read_lines(
	char *text, const char *path, dg__token *tokens, size_t *ret_count, dg_error *reterr)
{
	size_t count = 0;
	for (unsigned number = 1; *text; number++) {
		dg_error why = { .code = DG_OK };
		char *line = text;
		size_t length = strcspn(line, "\n");
		int got = -1;
		text = line + length + (line[length] == '\n');
		line[length] = '\0';
		if (length > LINE_MAX_BYTES)
			dg_error_set(&why, DG_ECONFIG, "longer than %d bytes", LINE_MAX_BYTES);
		else if (count == TOKENS_MAX)
			dg_error_set(&why, DG_ECONFIG, "more than %d tokens", TOKENS_MAX);
		else
			got = read_line(line, &tokens[count], &why);
		if (got < 0)
			return dg_error_set(
				reterr, DG_ECONFIG, "%.200s, line %u: %s", path, number, why.text);
		count += (size_t)got;
	}
	*ret_count = count;
	return DG_OK;
}

dg_err dg__tokens_file_read(
	const char *path, dg__token **ret_tokens, size_t *ret_count, dg_error *reterr)
{
	char *text = NULL;
	size_t length = 0;
	dg__token *tokens = NULL;
	dg_error why;
	dg_err err = dg__file_read(path, FILE_MAX, DG_ECONFIG, &text, &length, &why);
	if (err != DG_OK)
		return dg_error_native(
			reterr, err, why.origin, why.native_code, "the tokens file %s", why.text);
	if (strlen(text) != length)
		err = dg_error_set(
			reterr, DG_ECONFIG, "the tokens file %.300s holds a NUL byte", path);
	else if (!(tokens = calloc(TOKENS_MAX + 1, sizeof(*tokens))))
		err = dg_error_set(reterr, DG_ENOMEM, NULL);
	else
		err = read_lines(text, path, tokens, ret_count, reterr);
	free(text);
	if (err == DG_OK)
		*ret_tokens = tokens;
	else
		free(tokens);
	return err;
}
