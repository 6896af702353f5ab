/*
 * Shared by the codecs of wire.h: JSON written with a sticky failure, JSON read with a sticky error
 * that names the field. Private to api/wire*.
 */
#ifndef DEVGATE_API_WIRE_JSON_H
#define DEVGATE_API_WIRE_JSON_H

#include <jansson.h>

#include "api/wire.h"

/*
 * Writing. An object in the making is NULL where memory ran out; every call accepts that and does
 * nothing, so that only the end checks.
 */

/** Put a value, which is consumed. NULL means memory ran out: *object is freed and becomes NULL. */
void dg__put_take(json_t **object, const char *name, json_t *value);
void dg__put_text(json_t **object, const char *name, const char *text);
/** null where text is NULL or "". */
void dg__put_text_or_null(json_t **object, const char *name, const char *text);
void dg__put_bool(json_t **object, const char *name, bool value);
void dg__put_null(json_t **object, const char *name);
/** Values above INT64_MAX, which JSON readers cannot hold, are written as INT64_MAX. */
void dg__put_uint(json_t **object, const char *name, uint64_t value);
void dg__put_uint_if(json_t **object, const char *name, bool present, uint64_t value);
/** null where not present or not finite. */
void dg__put_real_if(json_t **object, const char *name, bool present, double value);
/** The last millisecond of the year 9999, which RFC 3339 can still write. */
#define DG__TIME_MAX_MS INT64_C(253402300799999)
/** RFC 3339, UTC, milliseconds; null for 0 and where it is out of range. */
void dg__put_time(json_t **object, const char *name, int64_t unix_ms);
/** Append to an array; as dg__put_take(). */
void dg__add_take(json_t **array, json_t *value);
/** A string value; bytes that are no UTF-8 become U+FFFD. */
json_t *dg__json_string(const char *text);
/** Write a document as compact text, owned, free(); DG_ENOMEM, also where root is NULL. */
dg_err dg__dump(const json_t *root, dg__json_text *ret_text);
/** The same, and give root up. */
dg_err dg__put_end_take(json_t *root, dg__json_text *ret_text);

/* Reading. The first fault is kept, what follows it does nothing. */

typedef struct dg__in {
	dg_err err;
	dg_error *reterr;
	char path[160];
	size_t length;
} dg__in;

/** Parse a document and check its depth. The result is owned (json_decref); NULL on failure. */
json_t *dg__in_open(dg__in *in, const char *json, size_t length, dg_error *reterr);

/**
 * Where the last number of a document's beginning stands, for a sentence about it.
 *
 * @param json    Not NUL-terminated; what a parser has accepted but for that number, of at most
 *                DG__JSON_DEPTH levels. Of anything else the answer is senseless, but safe.
 * @param length  Bytes up to the number's end.
 * @param[out] path    "keys[0].name"; "" for the document itself.
 * @param[out] number  As written, cut at its room.
 */
void dg__json_place(const char *json, size_t length, char *path, size_t path_size, char *number,
	size_t number_size);

/** Record a fault at the present path, beneath name (NULL: the path itself). */
void dg__in_fault(dg__in *in, dg_err err, const char *name, const char *format, ...)
	DG_PRINTF(4, 5);
/** Go beneath a member, or an item where name is NULL; give the mark to dg__in_leave(). */
size_t dg__in_enter(dg__in *in, const char *name, size_t index);
void dg__in_leave(dg__in *in, size_t mark);

enum { DG__IN_REQUIRED = 0, DG__IN_OPTIONAL = 1 };

/*
 * Members. OPTIONAL ones may be absent or null: the result is then left as it is and false is
 * returned. Objects and arrays are borrowed from the document.
 */
json_t *dg__in_object(dg__in *in, json_t *object, const char *name, int optional);
json_t *dg__in_array(dg__in *in, json_t *object, const char *name, int optional, size_t most);
bool dg__in_text(
	dg__in *in, json_t *object, const char *name, int optional, char *buf, size_t size);
bool dg__in_bool(dg__in *in, json_t *object, const char *name, int optional, bool *ret_value);
bool dg__in_uint(dg__in *in, json_t *object, const char *name, int optional, uint64_t least,
	uint64_t most, uint64_t *ret_value);
bool dg__in_u32(dg__in *in, json_t *object, const char *name, int optional, uint32_t least,
	uint32_t most, uint32_t *ret_value);
bool dg__in_real(dg__in *in, json_t *object, const char *name, int optional, double *ret_value);
/** A number that is not negative. */
bool dg__in_amount(dg__in *in, json_t *object, const char *name, int optional, double *ret_value);
bool dg__in_time(dg__in *in, json_t *object, const char *name, int optional, int64_t *ret_unix_ms);
/** The document itself must be an object. */
void dg__in_expect_object(dg__in *in, const json_t *root);
/** Go beneath an item of a member that is an array; give the mark to dg__in_leave(). */
size_t dg__in_item(dg__in *in, const char *name, size_t index);
/** A text that is cut to size at a character, not refused; "" where absent or of another type. */
void dg__in_cut(const json_t *object, const char *name, char *buf, size_t size);
/** The word at a place of a list that ends with NULL; NULL, so JSON null, beyond its end. */
const char *dg__word(const char *const *words, unsigned place);
/** A word of a list that ends with NULL; @return its place, 0 after a fault. */
unsigned dg__in_word(dg__in *in, json_t *object, const char *name, int optional, unsigned absent,
	const char *const *words);

/* Parts that several documents share. */

json_t *dg__put_id(dg_id id);
json_t *dg__put_settings(const dg_settings *settings);
void dg__in_settings(dg__in *in, json_t *object, dg_settings *ret_settings);
json_t *dg__put_device(const dg__device_entry *entry);
void dg__in_device(dg__in *in, json_t *object, dg__device_entry *ret_entry);
json_t *dg__put_devices(const dg__device_list *list);
void dg__in_devices(dg__in *in, json_t *object, dg__device_list *ret_list);
json_t *dg__put_key(const dg_key *key);
void dg__in_key(dg__in *in, json_t *value, dg_key *ret_key);
json_t *dg__put_value(const dg_value *value);
void dg__in_value(dg__in *in, json_t *object, dg_value *ret_value);
json_t *dg__put_values(const dg_value *values, size_t count);
/** DG_EINTERNAL where an ops_count is above INT64_MAX: JSON readers would not hold it. */
dg_err dg__check_values(const dg_value *values, size_t count);
/** Array of at most DG_KEYS_MAX; ret_values owned. */
void dg__in_values(dg__in *in, json_t *array, dg_value **ret_values, size_t *ret_count);
json_t *dg__put_problem(const dg_error *error);
void dg__in_problem(dg__in *in, json_t *object, dg_error *ret_error);
json_t *dg__put_curve(const char *device, const dg_curve *curve, bool has_ceiling, uint64_t bytes,
	double ceiling);
json_t *dg__put_roofline(const dg__roofline_reply *reply);

#endif
