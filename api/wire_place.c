/* Where in a document a number stands: see wire_json.h. */
#include <stdio.h>
#include <string.h>

#include "api/wire_json.h"

/* One array or object that is open. */
typedef struct level {
	bool array;
	size_t index; /* in an array */
	const char *name; /* in an object, as written; NULL before the first */
	size_t name_length;
} level;

/* Names are cut, so that a path shows where it ends. */
#define NAME_MAX_BYTES 60

typedef struct place {
	level levels[DG__JSON_DEPTH];
	size_t depth;
	const char *text; /* the last string, which is a name where ':' follows */
	size_t text_length;
	const char *number; /* the last number */
	size_t number_length;
} place;

static level *top(place *p)
{
	return p->depth ? &p->levels[p->depth - 1] : NULL;
}

/* Bytes of the string that begins after the quote at json[0], up to its closing quote or length. */
static size_t string_length(const char *json, size_t length)
{
	size_t n = 0;
	while (n < length && json[n] != '"')
		n += json[n] == '\\' ? 2 : 1;
	return n < length ? n : length;
}

/* Bytes of the number at json[0]; 0: there is none. "true" has an 'e', but not at its start. */
static size_t number_length(const char *json, size_t length)
{
	size_t n = 0;
	while (n < length && json[n] && strchr(n ? "-+.eE0123456789" : "-0123456789", json[n]))
		n++;
	return n;
}

static void take_mark(place *p, char c)
{
	level *l = top(p);
	if ((c == '[' || c == '{') && p->depth < DG__JSON_DEPTH)
		p->levels[p->depth++] = (level){ .array = c == '[' };
	else if ((c == ']' || c == '}') && p->depth > 0)
		p->depth--;
	else if (c == ',' && l)
		l->index++;
	else if (c == ':' && l) {
		l->name = p->text;
		l->name_length = p->text_length;
	}
}

static void walk(place *p, const char *json, size_t length)
{
	for (size_t i = 0; i < length;) {
		size_t digits = number_length(json + i, length - i);
		if (json[i] == '"') {
			p->text = json + i + 1;
			p->text_length = string_length(p->text, length - i - 1);
			i += p->text_length + 2;
		} else if (digits > 0) {
			p->number = json + i;
			p->number_length = digits;
			i += p->number_length;
		} else {
			take_mark(p, json[i++]);
		}
	}
}

void dg__json_place(const char *json, size_t length, char *path, size_t path_size, char *number,
	size_t number_size)
{
	place p = { .depth = 0 };
	size_t at = 0;
	walk(&p, json, length);
	snprintf(number, number_size, "%.*s", (int)(p.number ? p.number_length : 0),
		p.number ? p.number : "");
	*path = '\0';
	for (size_t i = 0; i < p.depth && at < path_size; i++) {
		const level *l = &p.levels[i];
		int name = (int)(l->name_length < NAME_MAX_BYTES ? l->name_length : NAME_MAX_BYTES);
		int n = l->array ? snprintf(path + at, path_size - at, "[%zu]", l->index)
				 : snprintf(path + at, path_size - at, "%s%.*s", i ? "." : "", name,
					   l->name ? l->name : "");
		at += n > 0 ? (size_t)n : 0;
	}
}
