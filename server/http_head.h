/*
 * The head of an HTTP/1.1 request and the framing of its body (RFC 9112), read strictly: what two
 * readers could understand differently is refused, since that is how requests are smuggled past
 * whoever stands between.
 */
#ifndef DEVGATE_SERVER_HTTP_HEAD_H
#define DEVGATE_SERVER_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/error.h"

#define DG__TARGET_MAX 8192u /* bytes of a request's target */
#define DG__HEADERS_MAX 16384u /* bytes of its headers */
#define DG__FIELDS_MAX 100 /* header lines */

/** A head that was read. Texts point into what it was read from. */
typedef struct dg__head {
	const char *method, *target;
	struct {
		const char *name, *value;
	} fields[DG__FIELDS_MAX];
	size_t field_count;
	unsigned minor; /* of HTTP/1.x */
	bool chunked; /* the body comes in chunks */
	bool has_length; /* there is a Content-Length */
	bool keep; /* the connection may serve another request */
	bool expects; /* the peer waits for 100 Continue */
	uint64_t length; /* of the body, where has_length; at most 10^18 */
} dg__head;

/**
 * Bytes of the head at the beginning of bytes, with its empty line; 0: it has not ended yet.
 *
 * @param from  How many bytes an earlier call has seen already.
 */
size_t dg__head_end(const char *bytes, size_t length, size_t from);

/** Whether a head that has not ended still can. DG_OK, DG_EURITOOLONG, DG_EHEADERS, DG_EBADREQUEST
 * where it is one of TLS. */
dg_err dg__head_room(const char *bytes, size_t length, dg_error *reterr);

/**
 * Read a head of length bytes, as dg__head_end() found it; its lines are cut apart in place.
 *
 * @return DG_OK, DG_EBADREQUEST (says what and which line), DG_EHTTPVERSION, DG_EURITOOLONG,
 *         DG_EHEADERS, DG_EEXPECTATION, DG_ENOTSUP (a transfer encoding beside chunked).
 */
dg_err dg__head_read(char *bytes, size_t length, dg__head *ret_head, dg_error *reterr);

/** Value of the first header of this name, whatever its case; NULL: absent. */
const char *dg__head_field(const dg__head *head, const char *name);
/** How many headers have this name. */
size_t dg__head_count(const dg__head *head, const char *name);

/** Where the reading of a chunked body stands. Zero-initialised. */
typedef struct dg__chunks {
	int state;
	uint64_t left; /* of the chunk under way */
	size_t line; /* bytes of the size or trailer line under way */
	size_t extra; /* bytes of lines so far, which have a limit */
	bool ended;
} dg__chunks;

/**
 * Take the chunk framing out of bytes, in place, as far as they go.
 *
 * @param[in,out] length  Bytes there are; on return those of the body among them, at the front.
 * @param[out] ret_used   How many bytes belong to the body with its framing: fewer than given only
 *                        where it has ended.
 * @return DG_OK, DG_EBADREQUEST.
 */
dg_err dg__chunks_take(dg__chunks *chunks, char *bytes, size_t *length, size_t *ret_used,
	dg_error *reterr) DG_MUST_CHECK;

#endif
