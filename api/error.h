/*
 * Errors: one enumeration for backends, gateway, wire and client, so that none translates.
 */
#ifndef DEVGATE_ERROR_H
#define DEVGATE_ERROR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a call that can fail returns; the rows are in errors.def. */
typedef enum dg_err {
	DG_OK = 0,
#define DG_ERROR(number, name, code, status, title) DG_E##name = (number),
#include <devgate/errors.def>
#undef DG_ERROR
} dg_err;

#if defined(__GNUC__) || defined(__clang__)
#define DG_PRINTF(at, first) __attribute__((format(printf, at, first)))
#define DG_MUST_CHECK __attribute__((warn_unused_result))
#else
#define DG_PRINTF(at, first)
#define DG_MUST_CHECK
#endif

/** What went wrong, in words. Caller-supplied; every call accepts NULL for it. */
typedef struct dg_error {
	dg_err code; /**< same as the call's return value */
	int32_t native_code; /**< the driver's, system's or HTTP's own number, 0 if none */
	char origin[32]; /**< who said so: "cpu", "sqlite", "gateway"; "" if unknown */
	char text[472]; /**< one sentence: what was wrong, where, what was expected */
} dg_error;

/**
 * Fill an error and give its code back, so that `return dg_error_set(…)` reads well.
 *
 * @param reterr  Filled; may be NULL. Text that does not fit is cut at a character boundary.
 * @param code    Not DG_OK.
 * @param format  As printf's; the row's title is used where it is NULL.
 * @return code.
 * Threads: safe. Blocks: no.
 */
dg_err dg_error_set(dg_error *reterr, dg_err code, const char *format, ...) DG_PRINTF(3, 4);

/** As dg_error_set(), with the origin and its own number beside it. */
dg_err dg_error_native(dg_error *reterr, dg_err code, const char *origin, int32_t native_code,
	const char *format, ...) DG_PRINTF(5, 6);

#ifdef __clang_analyzer__
/* A static analyzer does not look into another file, and must know that these give their code back.
 * */
#define dg_error_set(reterr, code, ...) ((void)(dg_error_set)(reterr, code, __VA_ARGS__), (code))
#define dg_error_native(reterr, code, ...) \
	((void)(dg_error_native)(reterr, code, __VA_ARGS__), (code))
#endif

/** Stable code of an error, "no_such_device"; "ok" for DG_OK; "internal" for an unknown number. */
const char *dg_err_code(dg_err err);
/** One phrase in English, without capital or full stop; never NULL. */
const char *dg_err_title(dg_err err);
/** HTTP status of an error, 200 for DG_OK. */
int dg_err_status(dg_err err);
/** The error of a stable code; DG_OK where the code is not known. */
dg_err dg_err_from_code(const char *code);
/** The error that stands for an HTTP status whose code is not known; never DG_OK. */
dg_err dg_err_from_status(int status);

#ifdef __cplusplus
}
#endif
#endif
