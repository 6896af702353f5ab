/*
 * Small files that a user names: configuration, tokens, certificates, keys.
 */
#ifndef DEVGATE_BACKENDS_CORE_FILE_H
#define DEVGATE_BACKENDS_CORE_FILE_H

#include <stddef.h>

#include <devgate/error.h>

/**
 * Read a regular file whole. Anything else (a folder, a pipe, a device) is refused, since it may
 * never end or never answer; a symbolic link to a regular file is followed.
 *
 * @param max       Longest content, in bytes.
 * @param code      Error to give where it cannot be read, is no regular file or is longer. The
 *                  error's native code is errno where the system said no, else 0.
 * @param[out] ret_text    Owned, free(); NUL-terminated. May hold NUL bytes of its own.
 * @param[out] ret_length  Bytes before the terminating NUL.
 * @return DG_OK, code, DG_ENOMEM.
 * Threads: safe. Blocks: on the disk.
 */
dg_err dg__file_read(const char *path, size_t max, dg_err code, char **ret_text, size_t *ret_length,
	dg_error *reterr) DG_MUST_CHECK;

/**
 * Whether dg__file_read() could begin: it is a regular file and may be read. For files that another
 * library reads by their path.
 *
 * @return DG_OK, code.
 * Threads: safe. Blocks: on the disk.
 */
dg_err dg__file_check(const char *path, dg_err code, dg_error *reterr) DG_MUST_CHECK;

#endif
