/*
 * The tokens file: on each line NAME SCOPES SHA256, separated by blanks; '#' begins a comment.
 */
#ifndef DEVGATE_SERVER_TOKENS_FILE_H
#define DEVGATE_SERVER_TOKENS_FILE_H

#include "server/store.h"

/**
 * Read it whole.
 *
 * @param[out] ret_tokens  Owned; free(). NULL where there are none.
 * @return DG_OK, DG_ECONFIG (line and what was expected), DG_ENOMEM.
 */
dg_err dg__tokens_file_read(const char *path, dg__token **ret_tokens, size_t *ret_count,
	dg_error *reterr) DG_MUST_CHECK;

/** Whether a token may be called so: 1 to 63 letters, digits, and ._- */
bool dg__token_name_ok(const char *name);

#endif
