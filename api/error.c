/* See error.h. */
#include <devgate/error.h>

#undef dg_error_set
#undef dg_error_native

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct error_row {
	dg_err err;
	int status;
	const char *code, *title;
} error_row;

static const error_row rows[] = {
#define DG_ERROR(number, name, code, status, title) { (dg_err)(number), status, code, title },
#include <devgate/errors.def>
#undef DG_ERROR
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static const error_row *row_of(dg_err err)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (rows[i].err == err)
			return &rows[i];
	return NULL;
}

/* A cut must not leave half a UTF-8 sequence, which a JSON writer would have to refuse. */
static size_t whole_characters(const char *text, size_t length)
{
	size_t start = length;
	while (start > 0 && length - start < 4) {
		unsigned char c = (unsigned char)text[--start];
		if (c < 0x80)
			return length;
		if (c >= 0xc0) {
			size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
			return length - start < need ? start : length;
		}
	}
	return length;
}

static void copy_cut(char *to, size_t size, const char *from)
{
	size_t length = strlen(from);
	if (length >= size)
		length = whole_characters(from, size - 1);
	memcpy(to, from, length);
	to[length] = '\0';
}

static dg_err set(dg_error *reterr, dg_err code, const char *origin, int32_t native_code,
	const char *format, va_list args)
{
	/* Formatted aside, because the arguments may point into what reterr holds now. */
	dg_error error = { .code = code, .native_code = native_code };
	if (!reterr)
		return code;
	if (origin)
		copy_cut(error.origin, sizeof(error.origin), origin);
	if (format) {
		int length = vsnprintf(error.text, sizeof(error.text), format, args);
		if (length < 0)
			copy_cut(error.text, sizeof(error.text), dg_err_title(code));
		else if ((size_t)length >= sizeof(error.text))
			error.text[whole_characters(error.text, sizeof(error.text) - 1)] = '\0';
	} else {
		copy_cut(error.text, sizeof(error.text), dg_err_title(code));
	}
	*reterr = error;
	return code;
}

dg_err dg_error_set(dg_error *reterr, dg_err code, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	dg_err err = set(reterr, code, NULL, 0, format, args);
	va_end(args);
	return err;
}

dg_err dg_error_native(dg_error *reterr, dg_err code, const char *origin, int32_t native_code,
	const char *format, ...)
{
	va_list args;
	va_start(args, format);
	dg_err err = set(reterr, code, origin, native_code, format, args);
	va_end(args);
	return err;
}

const char *dg_err_code(dg_err err)
{
	const error_row *row = row_of(err);
	if (err == DG_OK)
		return "ok";
	return row ? row->code : "internal";
}

const char *dg_err_title(dg_err err)
{
	const error_row *row = row_of(err);
	if (err == DG_OK)
		return "no error";
	return row ? row->title : "an internal check failed";
}

int dg_err_status(dg_err err)
{
	const error_row *row = row_of(err);
	if (err == DG_OK)
		return 200;
	return row ? row->status : 500;
}

dg_err dg_err_from_code(const char *code)
{
	for (size_t i = 0; code && i < ROW_COUNT; i++)
		if (strcmp(rows[i].code, code) == 0)
			return rows[i].err;
	return DG_OK;
}

dg_err dg_err_from_status(int status)
{
	static const struct {
		int status;
		dg_err err;
	} known[] = {
		{ 400, DG_EBADREQUEST },
		{ 401, DG_EUNAUTHORIZED },
		{ 403, DG_EFORBIDDEN },
		{ 404, DG_ENOTFOUND },
		{ 405, DG_EMETHOD },
		{ 406, DG_ENOTACCEPTABLE },
		{ 408, DG_EREQTIMEOUT },
		{ 410, DG_ELOST },
		{ 413, DG_ETOOLARGE },
		{ 414, DG_EURITOOLONG },
		{ 415, DG_EMEDIATYPE },
		{ 417, DG_EEXPECTATION },
		{ 421, DG_EMISDIRECTED },
		{ 429, DG_ERATE },
		{ 431, DG_EHEADERS },
		{ 500, DG_EINTERNAL },
		{ 501, DG_ENOTSUP },
		{ 502, DG_EUNREACHABLE },
		{ 503, DG_EUNAVAILABLE },
		{ 504, DG_ETIMEOUT },
		{ 505, DG_EHTTPVERSION },
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].status == status)
			return known[i].err;
	/* A 409 says that something conflicts and not what, so it stays as general as any 4xx. */
	if (status >= 400 && status < 500)
		return DG_EBADREQUEST;
	if (status >= 500 && status < 600)
		return DG_EINTERNAL;
	return DG_EPROTOCOL;
}
