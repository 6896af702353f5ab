/* See doc.h. */
#include "client/cli/doc.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/report.h"

static void append(dg__doc *doc, const char *text, size_t length)
{
	if (doc->failed)
		return;
	if (doc->length + length + 1 > doc->room) {
		size_t room = (doc->length + length + 1) * 2;
		char *more = realloc(doc->text, room);
		if (!more) {
			doc->failed = true;
			return;
		}
		doc->text = more;
		doc->room = room;
	}
	memcpy(doc->text + doc->length, text, length);
	doc->length += length;
	doc->text[doc->length] = '\0';
}

static void append_formatted(dg__doc *doc, const char *format, va_list args)
{
	char piece[256];
	int length = vsnprintf(piece, sizeof(piece), format, args);
	if (length < 0 || (size_t)length >= sizeof(piece))
		doc->failed = true;
	else
		append(doc, piece, (size_t)length);
}

void dg__doc_add(dg__doc *doc, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	append_formatted(doc, format, args);
	va_end(args);
}

void dg__doc_take(dg__doc *doc, char *json)
{
	if (json)
		append(doc, json, strlen(json));
	else
		doc->failed = true;
	dg_free(json);
}

void dg__doc_string(dg__doc *doc, const char *text, bool empty_is_null)
{
	if (empty_is_null && (!text || !*text))
		append(doc, "null", 4);
	else
		dg__doc_take(doc, dg_json_string(text ? text : ""));
}

dg_err dg__doc_print(dg__doc *doc, FILE *stream, dg_error *reterr)
{
	bool failed = doc->failed || !doc->text;
	for (const char *at = doc->text; !failed && *at;) {
		unsigned long code;
		size_t length = dg__screen_decode(at, &code);
		/* JSON has such characters in strings alone, where an escape says the same. */
		if (code >= 0x20 && dg__screen_is_control(code))
			fprintf(stream, "\\u%04lx", code);
		else
			fwrite(at, 1, length, stream);
		at += length;
	}
	if (!failed)
		fputc('\n', stream);
	free(doc->text);
	memset(doc, 0, sizeof(*doc));
	return failed ? dg_error_set(reterr, DG_ENOMEM, NULL) : DG_OK;
}

int dg__doc_show(const dg__cli *cli, dg__doc *doc)
{
	dg_error error;
	if (dg__doc_print(doc, stdout, &error) != DG_OK)
		return dg__report_error(cli, &error);
	return DG__EXIT_OK;
}

int dg__doc_show_take(const dg__cli *cli, char *json)
{
	dg__doc doc = { 0 };
	dg__doc_take(&doc, json);
	return dg__doc_show(cli, &doc);
}
