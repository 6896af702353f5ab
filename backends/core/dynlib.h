/*
 * Drivers, opened when they are needed: nothing links to one.
 */
#ifndef DEVGATE_BACKENDS_CORE_DYNLIB_H
#define DEVGATE_BACKENDS_CORE_DYNLIB_H

#include <stddef.h>

#include <devgate/error.h>

typedef struct dg__dynlib dg__dynlib;

/** A symbol to find. */
typedef struct dg__symbol {
	const char *name;
	size_t offset; /* of the function pointer in the caller's table */
	const char *fallback; /* an older name for it; NULL: none */
} dg__symbol;

/**
 * Open the first of several libraries that opens.
 *
 * @param names  NULL-terminated: "libcrypto.so.3", or paths.
 * @param[out] ret_lib  Owned; dg__dynlib_close().
 * @return DG_OK, DG_ENODRIVER (none of them is there: lists what was tried), DG_EDRIVER (one is
 *         there and does not load: the loader's words), DG_ENOMEM.
 * Threads: safe. Blocks: runs the library's constructors.
 */
dg_err dg__dynlib_open(
	const char *const *names, dg__dynlib **ret_lib, dg_error *reterr) DG_MUST_CHECK;

/** Close; NULL is fine. */
void dg__dynlib_close(dg__dynlib *lib);

/** The name that opened; borrowed until the library is closed. */
const char *dg__dynlib_name(const dg__dynlib *lib);

/**
 * Find symbols, all or none: the table is untouched on failure.
 *
 * @param table  Struct of function pointers that the offsets count in.
 * @return DG_OK, DG_EDRIVER (names the first that is missing).
 */
dg_err dg__dynlib_load(dg__dynlib *lib, const dg__symbol *symbols, size_t count, void *table,
	dg_error *reterr) DG_MUST_CHECK;

#endif
