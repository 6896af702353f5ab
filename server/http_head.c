/* See http_head.h. */
#include "server/http_head.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define VERSION_LENGTH 8u /* "HTTP/1.1" */
#define LENGTH_DIGITS_MAX 18u
#define CHUNK_LINE_MAX 256u
#define CHUNK_EXTRA_MAX ((size_t)1 << 20)

/* Characters of a token (RFC 9110, section 5.6.2). */
static bool is_token(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];
		bool alnum = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
		if (!alnum && (c == '\0' || !strchr("!#$%&'*+-.^_`|~", c)))
			return false;
	}
	return length > 0;
}

size_t dg__head_end(const char *bytes, size_t length, size_t from)
{
	const char *at = bytes + (from > 3 ? from - 3 : 0), *end = bytes + length;
	while ((at = memchr(at, '\n', (size_t)(end - at)))) {
		at++;
		if (end - at >= 2 && at[0] == '\r' && at[1] == '\n')
			return (size_t)(at - bytes) + 2;
		/* A line that ends without CR is refused when it is read: its head ends here. */
		if (end - at >= 1 && at[0] == '\n')
			return (size_t)(at - bytes) + 1;
	}
	return 0;
}

dg_err dg__head_room(const char *bytes, size_t length, dg_error *reterr)
{
	const char *line = memchr(bytes, '\n', length);
	/* A ClientHello (RFC 8446, section 5.1) has no end that a head has. */
	if (length > 1 && bytes[0] == 0x16 && bytes[1] == 3)
		return dg_error_set(
			reterr, DG_EBADREQUEST, "TLS was spoken to a port of plain HTTP");
	size_t first = line ? (size_t)(line - bytes) : length;
	if (first > DG__TARGET_MAX + 32)
		return dg_error_set(reterr, DG_EURITOOLONG, "the target has more than %u bytes",
			DG__TARGET_MAX);
	if (length - first > DG__HEADERS_MAX + 4)
		return dg_error_set(reterr, DG_EHEADERS, "the headers have more than %u bytes",
			DG__HEADERS_MAX);
	return DG_OK;
}

static dg_err bad(const char *what, dg_error *reterr)
{
	return dg_error_set(reterr, DG_EBADREQUEST, "%s", what);
}

/* Cut the line at *at off, without its CR LF; NULL: it does not end so. */
static char *take_line(char **at, size_t *left, size_t *ret_length)
{
	char *line = *at, *end = memchr(line, '\n', *left);
	if (!end || end == line || end[-1] != '\r')
		return NULL;
	*ret_length = (size_t)(end - line) - 1;
	*left -= (size_t)(end - line) + 1;
	*at = end + 1;
	line[*ret_length] = '\0';
	return line;
}

static dg_err read_version(const char *version, dg__head *head, dg_error *reterr)
{
	static const char shape[] = "HTTP/d.d";
	size_t length = strlen(version);
	for (size_t i = 0; i < VERSION_LENGTH && length == VERSION_LENGTH; i++)
		if (shape[i] == 'd' ? version[i] < '0' || version[i] > '9' : version[i] != shape[i])
			length = 0;
	if (length != VERSION_LENGTH)
		return bad("the request line is no METHOD TARGET HTTP/1.1", reterr);
	if (version[5] != '1')
		return dg_error_set(
			reterr, DG_EHTTPVERSION, "%s is not spoken here, HTTP/1.1 is", version);
	head->minor = (unsigned)(version[7] - '0');
	head->keep = head->minor > 0;
	return DG_OK;
}

/* Spaces and control characters in a target are refused: readers differ on them. */
static bool is_visible(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text <= 0x20 || *text == 0x7f)
			return false;
	return true;
}

static dg_err read_request_line(char *line, size_t length, dg__head *head, dg_error *reterr)
{
	static const char shape[] = "the request line is no METHOD TARGET HTTP/1.1";
	char *target = memchr(line, ' ', length);
	char *version = target ? strchr(target + 1, ' ') : NULL;
	if (!version || strlen(line) != length)
		return bad(shape, reterr);
	*target++ = '\0';
	*version++ = '\0';
	if (!is_token(line, strlen(line)))
		return bad("the method is no word", reterr);
	if (!*target || !is_visible(target))
		return bad(shape, reterr);
	head->method = line;
	head->target = target;
	dg_err err = read_version(version, head, reterr);
	if (err == DG_OK && strlen(target) > DG__TARGET_MAX)
		return dg_error_set(reterr, DG_EURITOOLONG, "the target has more than %u bytes",
			DG__TARGET_MAX);
	return err;
}

static dg_err read_field(char *line, size_t length, dg__head *head, dg_error *reterr)
{
	if (*line == ' ' || *line == '\t')
		return bad("a header is continued on a further line, which is obsolete", reterr);
	if (strlen(line) != length)
		return bad("a header holds a NUL", reterr);
	char *colon = strchr(line, ':');
	if (!colon)
		return bad("a header line has no colon", reterr);
	if (!is_token(line, (size_t)(colon - line)))
		return bad(
			"a header's name is no word, or a blank stands before its colon", reterr);
	char *value = colon + 1, *end = line + length;
	value += strspn(value, " \t");
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*colon = *end = '\0';
	for (const char *c = value; *c; c++)
		if (((unsigned char)*c < 0x20 && *c != '\t') || *c == 0x7f)
			return bad("a header's value holds a control character", reterr);
	if (head->field_count == DG__FIELDS_MAX)
		return dg_error_set(
			reterr, DG_EHEADERS, "there are more than %d headers", DG__FIELDS_MAX);
	head->fields[head->field_count].name = line;
	head->fields[head->field_count++].value = value;
	return DG_OK;
}

/* Whether a list of words holds this one. */
static bool lists(const char *list, const char *word)
{
	size_t length = strlen(word);
	while (list && *list) {
		list += strspn(list, " \t,");
		size_t n = strcspn(list, " \t,;");
		if (n == length && strncasecmp(list, word, n) == 0)
			return true;
		list += strcspn(list, ",");
	}
	return false;
}

static dg_err read_length(const char *text, dg__head *head, dg_error *reterr)
{
	size_t digits = strspn(text, "0123456789");
	if (digits == 0 || text[digits])
		return bad("Content-Length is no number", reterr);
	if (digits > LENGTH_DIGITS_MAX)
		return dg_error_set(
			reterr, DG_ETOOLARGE, "a body of %.40s bytes is too large", text);
	head->has_length = true;
	head->length = strtoull(text, NULL, 10);
	return DG_OK;
}

/* How the body is told (RFC 9112, section 6.3): in one way, once. */
static dg_err read_framing(dg__head *head, dg_error *reterr)
{
	const char *encoding = dg__head_field(head, "Transfer-Encoding");
	const char *length = dg__head_field(head, "Content-Length");
	size_t encodings = dg__head_count(head, "Transfer-Encoding");
	size_t lengths = dg__head_count(head, "Content-Length");
	if (lengths + encodings > 1)
		return bad("the body's length is told twice", reterr);
	if (encoding && strcasecmp(encoding, "chunked") != 0)
		return dg_error_set(reterr, DG_ENOTSUP,
			"the transfer encoding %.40s is not known here; chunked is", encoding);
	if (encoding && head->minor == 0)
		return bad("HTTP/1.0 has no transfer encodings", reterr);
	head->chunked = encoding != NULL;
	return length ? read_length(length, head, reterr) : DG_OK;
}

static dg_err read_options(dg__head *head, dg_error *reterr)
{
	const char *expect = dg__head_field(head, "Expect");
	dg_err err = read_framing(head, reterr);
	if (err != DG_OK)
		return err;
	if (expect &&
		(strcasecmp(expect, "100-continue") != 0 || dg__head_count(head, "Expect") > 1))
		return dg_error_set(reterr, DG_EEXPECTATION,
			"the expectation %.60s cannot be met; 100-continue can", expect);
	head->expects = expect && head->minor > 0;
	for (size_t i = 0; i < head->field_count; i++)
		if (strcasecmp(head->fields[i].name, "Connection") == 0 &&
			lists(head->fields[i].value, "close"))
			head->keep = false;
	return DG_OK;
}

dg_err dg__head_read(char *bytes, size_t length, dg__head *ret_head, dg_error *reterr)
{
	char *at = bytes;
	size_t left = length, line_length = 0;
	char *line = take_line(&at, &left, &line_length);
	dg_err err = DG_OK;
	ret_head->method = ret_head->target = "";
	ret_head->field_count = 0;
	ret_head->minor = 0;
	ret_head->chunked = ret_head->has_length = ret_head->keep = ret_head->expects = false;
	ret_head->length = 0;
	if (!line)
		return bad("a line does not end with CR LF", reterr);
	err = read_request_line(line, line_length, ret_head, reterr);
	if (err == DG_OK && left > DG__HEADERS_MAX + 2)
		return dg_error_set(reterr, DG_EHEADERS, "the headers have more than %u bytes",
			DG__HEADERS_MAX);
	while (err == DG_OK) {
		line = take_line(&at, &left, &line_length);
		if (!line)
			return bad("a line does not end with CR LF", reterr);
		if (line_length == 0)
			break;
		err = read_field(line, line_length, ret_head, reterr);
	}
	return err == DG_OK ? read_options(ret_head, reterr) : err;
}

const char *dg__head_field(const dg__head *head, const char *name)
{
	for (size_t i = 0; i < head->field_count; i++)
		if (strcasecmp(head->fields[i].name, name) == 0)
			return head->fields[i].value;
	return NULL;
}

size_t dg__head_count(const dg__head *head, const char *name)
{
	size_t n = 0;
	for (size_t i = 0; i < head->field_count; i++)
		n += strcasecmp(head->fields[i].name, name) == 0;
	return n;
}

enum { IN_SIZE, IN_EXTENSION, IN_SIZE_END, IN_DATA, IN_DATA_CR, IN_DATA_END, IN_TRAILER };

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	char lower = (char)(c | 32);
	return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* A byte of the line with a chunk's size. */
static bool take_size(dg__chunks *chunks, char c)
{
	int digit = hex(c);
	if (chunks->state == IN_SIZE && digit >= 0) {
		chunks->left = chunks->left << 4 | (unsigned)digit;
		return ++chunks->line <= 15;
	}
	if (chunks->line == 0)
		return false;
	if (chunks->state == IN_SIZE_END) {
		chunks->state = chunks->left ? IN_DATA : IN_TRAILER;
		chunks->line = 0;
		return c == '\n';
	}
	if (c == '\r') {
		chunks->state = IN_SIZE_END;
		return true;
	}
	bool begins = chunks->state == IN_SIZE && (c == ';' || c == ' ' || c == '\t');
	if (begins)
		chunks->state = IN_EXTENSION;
	else if (chunks->state != IN_EXTENSION || ((unsigned char)c < 0x20 && c != '\t'))
		return false;
	return ++chunks->line <= CHUNK_LINE_MAX && ++chunks->extra <= CHUNK_EXTRA_MAX;
}

/* A byte after the last chunk: lines of trailers, which nobody here reads, and an empty one. */
static bool take_trailer(dg__chunks *chunks, char c)
{
	if (c == '\n') {
		/* Of a line, CR was counted. */
		bool ended_by_cr = chunks->left == 1;
		chunks->ended = chunks->line == 1;
		chunks->line = 0;
		chunks->left = 0;
		return ended_by_cr;
	}
	if (chunks->left)
		return false;
	chunks->left = c == '\r';
	return ++chunks->line <= CHUNK_LINE_MAX * 16 && ++chunks->extra <= CHUNK_EXTRA_MAX;
}

static bool take_byte(dg__chunks *chunks, char c)
{
	switch (chunks->state) {
	case IN_DATA_CR:
		chunks->state = IN_DATA_END;
		return c == '\r';
	case IN_DATA_END:
		chunks->state = IN_SIZE;
		chunks->line = 0;
		return c == '\n';
	case IN_TRAILER:
		return take_trailer(chunks, c);
	default:
		return take_size(chunks, c);
	}
}

dg_err dg__chunks_take(
	dg__chunks *chunks, char *bytes, size_t *length, size_t *ret_used, dg_error *reterr)
{
	size_t kept = 0, at = 0;
	while (at < *length && !chunks->ended) {
		if (chunks->state != IN_DATA) {
			if (!take_byte(chunks, bytes[at++]))
				return bad("the body's chunks are malformed", reterr);
			continue;
		}
		size_t n = *length - at < chunks->left ? *length - at : (size_t)chunks->left;
		memmove(bytes + kept, bytes + at, n);
		kept += n;
		at += n;
		chunks->left -= n;
		if (chunks->left == 0)
			chunks->state = IN_DATA_CR;
	}
	*ret_used = at;
	*length = kept;
	return DG_OK;
}
