/* Bytes in and out, with TLS or without: see http_internal.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <openssl/err.h>

#include "server/http_internal.h"

#define FIRST_ROOM 2048u
/* Whole head, or a piece of body; what comes meanwhile stays in the kernel. */
#define IN_MAX (DG__TARGET_MAX + DG__HEADERS_MAX + 1024u)
#define LINGER_MAX ((size_t)16 << 20)

/* What TLS waits for. STEP_CLOSE: it has failed or the peer has ended it. */
static step tls_wait(conn *c, int result)
{
	switch (SSL_get_error(c->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		c->events = EV_READ;
		return STEP_IDLE;
	case SSL_ERROR_WANT_WRITE:
		c->events = EV_WRITE;
		return STEP_IDLE;
	default:
		c->gone = true;
		return STEP_CLOSE;
	}
}

step dg__io_handshake(conn *c)
{
	ERR_clear_error();
	int result = SSL_do_handshake(c->ssl);
	if (result == 1)
		return STEP_ON;
	step next = tls_wait(c, result);
	if (next != STEP_CLOSE || ERR_GET_REASON(ERR_peek_error()) != SSL_R_HTTP_REQUEST)
		return next;
	/* Who speaks plain HTTP to this port is told so, in plain HTTP. */
	dg_error why;
	SSL_free(c->ssl);
	c->ssl = NULL;
	dg_error_set(&why, DG_EBADREQUEST, "plain HTTP was spoken to a port of HTTPS");
	return dg__exchange_refuse(c, &why);
}

static step receive_tls(conn *c, char *buf, size_t size, size_t *ret_length)
{
	ERR_clear_error();
	int n = SSL_read(c->ssl, buf, (int)size);
	if (n <= 0)
		return tls_wait(c, n);
	*ret_length = (size_t)n;
	c->drained = !SSL_has_pending(c->ssl);
	return STEP_ON;
}

static step receive_plain(conn *c, char *buf, size_t size, size_t *ret_length)
{
	ssize_t n;
	do
		n = recv(c->fd, buf, size, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		c->events = EV_READ;
		return STEP_IDLE;
	}
	if (n <= 0) {
		c->gone = true;
		return STEP_CLOSE;
	}
	*ret_length = (size_t)n;
	c->drained = (size_t)n < size;
	return STEP_ON;
}

static bool make_room(conn *c)
{
	if (c->in_length < c->in_room)
		return true;
	size_t room = c->in_room ? c->in_room * 2 : FIRST_ROOM;
	room = room < IN_MAX ? room : IN_MAX;
	char *in = room > c->in_room ? realloc(c->in, room) : NULL;
	if (!in)
		return false;
	c->in = in;
	c->in_room = room;
	return true;
}

step dg__io_fill(conn *c)
{
	size_t length = 0;
	/* What was not there a moment ago is told of when it comes. */
	if (c->drained) {
		c->drained = false;
		c->events = EV_READ;
		return STEP_IDLE;
	}
	if (!make_room(c))
		return STEP_CLOSE;
	char *to = c->in + c->in_length;
	size_t size = c->in_room - c->in_length;
	step next =
		c->ssl ? receive_tls(c, to, size, &length) : receive_plain(c, to, size, &length);
	c->in_length += length;
	return next;
}

/* Pieces that are to go: what is left of out, and of the response's body. */
static size_t pieces(const conn *c, struct iovec piece[2])
{
	size_t n = 0;
	const exchange *x = c->x;
	if (c->out_sent < c->out_length)
		piece[n++] = (struct iovec){ c->out + c->out_sent, c->out_length - c->out_sent };
	if (x && x->has_response && !x->bodiless && c->phase == PHASE_WRITE &&
		c->body_sent < x->response.body.length)
		piece[n++] = (struct iovec){ x->response.body.text + c->body_sent,
			x->response.body.length - c->body_sent };
	return n;
}

static void note_sent(conn *c, size_t sent)
{
	size_t of_out = c->out_length - c->out_sent;
	of_out = sent < of_out ? sent : of_out;
	c->out_sent += of_out;
	c->body_sent += sent - of_out;
}

static step send_tls(conn *c, const struct iovec piece[2], size_t count, size_t *ret_sent)
{
	const void *from = piece[0].iov_base;
	size_t length = piece[0].iov_len;
	/* Head and a short body go as one record. */
	if (count == 2 && length < DG__SCRATCH) {
		size_t more = DG__SCRATCH - length;
		more = more < piece[1].iov_len ? more : piece[1].iov_len;
		memcpy(c->loop->scratch, from, length);
		memcpy(c->loop->scratch + length, piece[1].iov_base, more);
		from = c->loop->scratch;
		length += more;
	}
	ERR_clear_error();
	int n = SSL_write(c->ssl, from, (int)(length < DG__SCRATCH ? length : DG__SCRATCH));
	if (n <= 0)
		return tls_wait(c, n);
	*ret_sent = (size_t)n;
	return STEP_ON;
}

static step send_plain(conn *c, struct iovec piece[2], size_t count, size_t *ret_sent)
{
	ssize_t n;
	struct msghdr message;
	memset(&message, 0, sizeof(message));
	message.msg_iov = piece;
	message.msg_iovlen = count;
	do
		n = sendmsg(c->fd, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		c->events = EV_WRITE;
		return STEP_IDLE;
	}
	*ret_sent = n > 0 ? (size_t)n : 0;
	return n > 0 ? STEP_ON : STEP_CLOSE;
}

step dg__io_flush(conn *c)
{
	struct iovec piece[2];
	for (size_t count; (count = pieces(c, piece)) > 0;) {
		size_t sent = 0;
		step next = c->ssl ? send_tls(c, piece, count, &sent)
				   : send_plain(c, piece, count, &sent);
		if (next != STEP_ON)
			return next;
		note_sent(c, sent);
	}
	return STEP_ON;
}

void dg__io_shutdown(conn *c)
{
	if (c->ssl && SSL_is_init_finished(c->ssl)) {
		ERR_clear_error();
		(void)SSL_shutdown(c->ssl);
	}
	(void)shutdown(c->fd, SHUT_WR);
}

step dg__io_linger(conn *c)
{
	while (c->lingered < LINGER_MAX) {
		ssize_t n = recv(c->fd, c->loop->scratch, DG__SCRATCH, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			c->events = EV_READ;
			return STEP_IDLE;
		}
		if (n <= 0)
			return STEP_CLOSE;
		c->lingered += (size_t)n;
	}
	return STEP_CLOSE;
}
