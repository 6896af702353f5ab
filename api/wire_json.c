/* See wire_json.h. */
#include "api/wire_json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void dg__put_take(json_t **object, const char *name, json_t *value)
{
	if (!*object) {
		json_decref(value);
		return;
	}
	if (!value || json_object_set_new_nocheck(*object, name, value) != 0) {
		json_decref(*object);
		*object = NULL;
	}
}

void dg__add_take(json_t **array, json_t *value)
{
	if (!*array) {
		json_decref(value);
		return;
	}
	if (!value || json_array_append_new(*array, value) != 0) {
		json_decref(*array);
		*array = NULL;
	}
}

/* Bytes of the UTF-8 character at text (RFC 3629: shortest forms, no surrogates); 0: none. */
static size_t utf8_length(const unsigned char *text)
{
	unsigned lead = text[0];
	size_t n = lead < 0x80   ? 1
		   : lead < 0xc2 ? 0
		   : lead < 0xe0 ? 2
		   : lead < 0xf0 ? 3
		   : lead < 0xf5 ? 4
				 : 0;
	for (size_t i = 1; i < n; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	if ((lead == 0xe0 && text[1] < 0xa0) || (lead == 0xed && text[1] > 0x9f) ||
		(lead == 0xf0 && text[1] < 0x90) || (lead == 0xf4 && text[1] > 0x8f))
		return 0;
	return n;
}

json_t *dg__json_string(const char *text)
{
	json_t *plain = json_string(text);
	if (plain)
		return plain;
	char *clean = malloc(strlen(text) * 3 + 1);
	if (!clean)
		return NULL;
	size_t length = 0;
	for (const unsigned char *at = (const unsigned char *)text; *at;) {
		size_t n = utf8_length(at);
		memcpy(clean + length, n ? (const char *)at : "\xef\xbf\xbd", n ? n : 3);
		length += n ? n : 3;
		at += n ? n : 1;
	}
	json_t *value = json_stringn(clean, length);
	free(clean);
	return value;
}

void dg__put_text(json_t **object, const char *name, const char *text)
{
	dg__put_take(object, name, dg__json_string(text));
}

void dg__put_text_or_null(json_t **object, const char *name, const char *text)
{
	dg__put_take(object, name, text && *text ? dg__json_string(text) : json_null());
}

void dg__put_bool(json_t **object, const char *name, bool value)
{
	dg__put_take(object, name, json_boolean(value));
}

void dg__put_null(json_t **object, const char *name)
{
	dg__put_take(object, name, json_null());
}

void dg__put_uint(json_t **object, const char *name, uint64_t value)
{
	dg__put_take(object, name, json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value));
}

void dg__put_uint_if(json_t **object, const char *name, bool present, uint64_t value)
{
	if (present)
		dg__put_uint(object, name, value);
	else
		dg__put_null(object, name);
}

void dg__put_real_if(json_t **object, const char *name, bool present, double value)
{
	dg__put_take(object, name, present && isfinite(value) ? json_real(value) : json_null());
}

void dg__put_time(json_t **object, const char *name, int64_t unix_ms)
{
	char text[40], date[32];
	time_t seconds = (time_t)(unix_ms / 1000);
	struct tm tm;
	if (unix_ms <= 0 || unix_ms > DG__TIME_MAX_MS || !gmtime_r(&seconds, &tm) ||
		strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
		dg__put_null(object, name);
		return;
	}
	snprintf(text, sizeof(text), "%s.%03dZ", date, (int)(unix_ms % 1000));
	dg__put_text(object, name, text);
}

/* Into room of the right size: json_dumps() may lose a member's name where its own cannot grow. */
dg_err dg__dump(const json_t *root, dg__json_text *ret_text)
{
	const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17);
	size_t length = root ? json_dumpb(root, NULL, 0, flags) : 0;
	char *text = length ? malloc(length + 1) : NULL;
	if (!text || json_dumpb(root, text, length, flags) != length) {
		free(text);
		return DG_ENOMEM;
	}
	text[length] = '\0';
	*ret_text = (dg__json_text){ text, length };
	return DG_OK;
}

dg_err dg__put_end_take(json_t *root, dg__json_text *ret_text)
{
	dg_err err = dg__dump(root, ret_text);
	json_decref(root);
	return err;
}

/* Nesting is checked on the bytes, before a recursive parser sees them. */
static bool too_deep(const char *json, size_t length)
{
	unsigned depth = 0;
	bool quoted = false;
	for (size_t i = 0; i < length; i++) {
		char c = json[i];
		if (quoted) {
			if (c == '\\')
				i++;
			else if (c == '"')
				quoted = false;
		} else if (c == '"') {
			quoted = true;
		} else if (c == '[' || c == '{') {
			if (++depth > DG__JSON_DEPTH)
				return true;
		} else if ((c == ']' || c == '}') && depth > 0) {
			depth--;
		}
	}
	return false;
}

/*
 * Whether the parser failed for want of memory. It leaves no text then, or takes the string that it
 * could not hold for bad syntax: so ask whether there is room for as much as it may have needed.
 */
static bool lacked_memory(const json_error_t *fault, const char *json, size_t length)
{
	enum json_error_code code = json_error_code(fault);
	if (code == json_error_out_of_memory || !*fault->text)
		return true;
	if (code != json_error_invalid_syntax)
		return false;
	json_t *room = json_stringn_nocheck(json, length);
	json_decref(room);
	return !room;
}

/* A number beyond what the parser holds: an integer of more than 64 bits, or above any double. */
static dg_err refuse_number(
	const json_error_t *fault, const char *json, size_t length, dg_error *reterr)
{
	char path[160], number[48];
	size_t end = fault->position > 0 ? (size_t)fault->position : 0;
	dg__json_place(
		json, end < length ? end : length, path, sizeof(path), number, sizeof(number));
	bool whole = number[strcspn(number, ".eE")] == '\0';
	return dg_error_set(reterr, DG_EFIELD,
		"line %d, column %d: %s%s%s is out of range, expected %s", fault->line,
		fault->column, path, *path ? ": " : "", number,
		whole ? "an integer of -9223372036854775808..9223372036854775807, or a larger "
			"number "
			"with a decimal point or an exponent"
		      : "a number of -1.79e308..1.79e308");
}

static dg_err refuse(const json_error_t *fault, const char *json, size_t length, dg_error *reterr)
{
	enum json_error_code code = json_error_code(fault);
	if (length && lacked_memory(fault, json, length))
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	if (code == json_error_numeric_overflow)
		return refuse_number(fault, json, length, reterr);
	const char *what = fault->text;
	if (!length)
		what = "the document is empty";
	else if (code == json_error_null_character || code == json_error_null_byte_in_key)
		what = "a string holds the character U+0000";
	return dg_error_set(
		reterr, DG_EJSON, "line %d, column %d: %s", fault->line, fault->column, what);
}

json_t *dg__in_open(dg__in *in, const char *json, size_t length, dg_error *reterr)
{
	*in = (dg__in){ .err = DG_OK, .reterr = reterr };
	if (length > DG__WIRE_MAX_BYTES) {
		in->err = dg_error_set(reterr, DG_EJSON,
			"the document has %zu bytes; at most %zu are read", length,
			DG__WIRE_MAX_BYTES);
		return NULL;
	}
	if (too_deep(json, length)) {
		in->err = dg_error_set(reterr, DG_EJSON, "the document nests deeper than %d levels",
			DG__JSON_DEPTH);
		return NULL;
	}
	json_error_t fault;
	json_t *root = json_loadb(json, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &fault);
	if (!root)
		in->err = refuse(&fault, json, length, reterr);
	return root;
}

void dg__in_fault(dg__in *in, dg_err err, const char *name, const char *format, ...)
{
	if (in->err != DG_OK)
		return;
	char text[300];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	const char *dot = in->length && name ? "." : "";
	if (in->length || name)
		in->err = dg_error_set(
			in->reterr, err, "%s%s%s: %s", in->path, dot, name ? name : "", text);
	else
		in->err = dg_error_set(in->reterr, err, "%s", text);
}

size_t dg__in_enter(dg__in *in, const char *name, size_t index)
{
	size_t mark = in->length;
	size_t room = sizeof(in->path) - mark;
	int n = name ? snprintf(in->path + mark, room, "%s%s", mark ? "." : "", name)
		     : snprintf(in->path + mark, room, "[%zu]", index);
	in->length = n < 0 ? mark : mark + ((size_t)n < room ? (size_t)n : room - 1);
	return mark;
}

void dg__in_leave(dg__in *in, size_t mark)
{
	in->length = mark;
	in->path[mark] = '\0';
}

static const char *type_name(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
		return "an integer";
	case JSON_REAL:
		return "a number";
	case JSON_NULL:
		return "null";
	default:
		return "a boolean";
	}
}

/* The member, of the wanted type by test; NULL after a fault or where an optional one is absent. */
static json_t *member(
	dg__in *in, json_t *object, const char *name, int optional, const char *wanted)
{
	if (in->err != DG_OK)
		return NULL;
	json_t *value = json_is_object(object) ? json_object_get(object, name) : NULL;
	if (value && !(optional && json_is_null(value)))
		return value;
	if (!optional)
		dg__in_fault(in, DG_EFIELD, name, "missing; expected %s", wanted);
	return NULL;
}

static void wrong_type(dg__in *in, const char *name, const json_t *value, const char *wanted)
{
	dg__in_fault(in, DG_EFIELD, name, "expected %s, not %s", wanted, type_name(value));
}

json_t *dg__in_object(dg__in *in, json_t *object, const char *name, int optional)
{
	json_t *value = member(in, object, name, optional, "an object");
	if (value && !json_is_object(value)) {
		wrong_type(in, name, value, "an object");
		return NULL;
	}
	return value;
}

json_t *dg__in_array(dg__in *in, json_t *object, const char *name, int optional, size_t most)
{
	json_t *value = member(in, object, name, optional, "an array");
	if (value && !json_is_array(value)) {
		wrong_type(in, name, value, "an array");
		return NULL;
	}
	if (value && json_array_size(value) > most) {
		dg__in_fault(in, DG_ETOOMANY, name, "has %zu items; at most %zu are taken",
			json_array_size(value), most);
		return NULL;
	}
	return value;
}

bool dg__in_text(dg__in *in, json_t *object, const char *name, int optional, char *buf, size_t size)
{
	json_t *value = member(in, object, name, optional, "a string");
	if (!value)
		return false;
	if (!json_is_string(value)) {
		wrong_type(in, name, value, "a string");
		return false;
	}
	if (json_string_length(value) >= size) {
		dg__in_fault(in, DG_EFIELD, name, "has %zu bytes; at most %zu are taken",
			json_string_length(value), size - 1);
		return false;
	}
	memcpy(buf, json_string_value(value), json_string_length(value) + 1);
	return true;
}

bool dg__in_bool(dg__in *in, json_t *object, const char *name, int optional, bool *ret_value)
{
	json_t *value = member(in, object, name, optional, "true or false");
	if (!value)
		return false;
	if (!json_is_boolean(value)) {
		wrong_type(in, name, value, "true or false");
		return false;
	}
	*ret_value = json_is_true(value);
	return true;
}

bool dg__in_uint(dg__in *in, json_t *object, const char *name, int optional, uint64_t least,
	uint64_t most, uint64_t *ret_value)
{
	json_t *value = member(in, object, name, optional, "an integer");
	if (!value)
		return false;
	if (!json_is_integer(value)) {
		wrong_type(in, name, value, "an integer");
		return false;
	}
	json_int_t number = json_integer_value(value);
	if (number < 0 || (uint64_t)number < least || (uint64_t)number > most) {
		dg__in_fault(in, DG_EFIELD, name, "%lld is out of range %llu..%llu",
			(long long)number, (unsigned long long)least, (unsigned long long)most);
		return false;
	}
	*ret_value = (uint64_t)number;
	return true;
}

bool dg__in_u32(dg__in *in, json_t *object, const char *name, int optional, uint32_t least,
	uint32_t most, uint32_t *ret_value)
{
	uint64_t number;
	if (!dg__in_uint(in, object, name, optional, least, most, &number))
		return false;
	*ret_value = (uint32_t)number;
	return true;
}

bool dg__in_real(dg__in *in, json_t *object, const char *name, int optional, double *ret_value)
{
	json_t *value = member(in, object, name, optional, "a number");
	if (!value)
		return false;
	if (!json_is_number(value) || !isfinite(json_number_value(value))) {
		wrong_type(in, name, value, "a number");
		return false;
	}
	*ret_value = json_number_value(value);
	return true;
}

bool dg__in_amount(dg__in *in, json_t *object, const char *name, int optional, double *ret_value)
{
	double value;
	if (!dg__in_real(in, object, name, optional, &value))
		return false;
	if (value < 0) {
		dg__in_fault(in, DG_EFIELD, name, "expected a number that is not negative");
		return false;
	}
	*ret_value = value;
	return true;
}

/* Days since 1970-01-01 of a date of the proleptic Gregorian calendar; month 1..12. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month > 2 ? year : year - 1;
	int64_t era = y / 400, in_era = y - era * 400;
	int64_t in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

static int64_t days_in(int64_t year, int64_t month)
{
	return month == 12 ? 31 : days_of(year, month + 1, 1) - days_of(year, month, 1);
}

bool dg__in_time(dg__in *in, json_t *object, const char *name, int optional, int64_t *ret_unix_ms)
{
	char text[40];
	if (!dg__in_text(in, object, name, optional, text, sizeof(text)))
		return false;
	static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ";
	int64_t part[7] = { 0 };
	size_t at = 0, field = 0;
	for (; form[at] && text[at]; at++) {
		if (form[at] != 'd') {
			field += form[at] != 'Z';
			if (text[at] != form[at])
				break;
		} else if (text[at] < '0' || text[at] > '9') {
			break;
		} else {
			part[field] = part[field] * 10 + (text[at] - '0');
		}
	}
	if (form[at] || text[at] || part[0] < 1970 || part[1] < 1 || part[1] > 12 || part[2] < 1 ||
		part[2] > days_in(part[0], part[1]) || part[3] > 23 || part[4] > 59 ||
		part[5] > 60) {
		dg__in_fault(in, DG_EFIELD, name, "expected a time like 2026-01-31T12:00:00.000Z");
		return false;
	}
	int64_t seconds =
		((days_of(part[0], part[1], part[2]) * 24 + part[3]) * 60 + part[4]) * 60 + part[5];
	*ret_unix_ms = seconds * 1000 + part[6];
	return true;
}

void dg__in_expect_object(dg__in *in, const json_t *root)
{
	if (in->err == DG_OK && !json_is_object(root))
		dg__in_fault(
			in, DG_EFIELD, NULL, "expected a JSON object, not %s", type_name(root));
}

size_t dg__in_item(dg__in *in, const char *name, size_t index)
{
	size_t mark = dg__in_enter(in, name, 0);
	dg__in_enter(in, NULL, index);
	return mark;
}

void dg__in_cut(const json_t *object, const char *name, char *buf, size_t size)
{
	const char *text = json_string_value(json_object_get(object, name));
	size_t length = text ? strlen(text) : 0;
	if (text && length >= size) {
		length = size - 1;
		while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
			length--;
	}
	memcpy(buf, text ? text : "", length);
	buf[length] = '\0';
}

const char *dg__word(const char *const *words, unsigned place)
{
	for (unsigned i = 0; words[i]; i++)
		if (i == place)
			return words[i];
	return NULL;
}

unsigned dg__in_word(dg__in *in, json_t *object, const char *name, int optional, unsigned absent,
	const char *const *words)
{
	json_t *value = member(in, object, name, optional, "a word");
	if (!value)
		return absent;
	if (!json_is_string(value)) {
		wrong_type(in, name, value, "a word");
		return 0;
	}
	char list[200] = "";
	size_t length = 0;
	for (unsigned i = 0; words[i]; i++) {
		if (strcmp(words[i], json_string_value(value)) == 0)
			return i;
		int n = snprintf(
			list + length, sizeof(list) - length, "%s%s", i ? ", " : "", words[i]);
		length += n > 0 && (size_t)n < sizeof(list) - length ? (size_t)n : 0;
	}
	dg__in_fault(in, DG_EFIELD, name, "unknown word; expected one of %s", list);
	return 0;
}
