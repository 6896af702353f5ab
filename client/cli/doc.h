/*
 * A JSON document put together from the library's own pieces, and printed.
 */
#ifndef DEVGATE_CLIENT_CLI_DOC_H
#define DEVGATE_CLIENT_CLI_DOC_H

#include "client/cli/cli.h"

/** Zero-initialise. A piece that finds no memory is remembered until the document is printed. */
typedef struct dg__doc {
	char *text;
	size_t length, room;
	bool failed;
} dg__doc;

/** Append as printf does; only for punctuation, names and numbers. */
void dg__doc_add(dg__doc *doc, const char *format, ...) DG_PRINTF(2, 3);
/** Append a text as a JSON string; "" and NULL as null where empty_is_null. */
void dg__doc_string(dg__doc *doc, const char *text, bool empty_is_null);
/** Append what a dg_json_ call gave and free it; consumed. NULL is "no memory". */
void dg__doc_take(dg__doc *doc, char *json);

/**
 * Print the document with a line end on stream and free it. Characters that could steer a terminal
 * are written as \u escapes.
 *
 * @return DG_OK, DG_ENOMEM (nothing was printed).
 */
dg_err dg__doc_print(dg__doc *doc, FILE *stream, dg_error *reterr) DG_MUST_CHECK;

/** Print one dg_json_ text on standard output; consumed. @return exit status. */
int dg__doc_show_take(const dg__cli *cli, char *json);
/** Print a document on standard output. @return exit status. */
int dg__doc_show(const dg__cli *cli, dg__doc *doc);

#endif
