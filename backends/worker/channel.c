/* See channel.h. */
#include "backends/worker/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/core/clock.h"

#ifdef MSG_NOSIGNAL
#define SEND_FLAGS MSG_NOSIGNAL
#else
#define SEND_FLAGS 0 /* SO_NOSIGPIPE is set instead */
#endif

dg_err dg__channel_init_take(dg__channel *channel, int fd, dg_error *reterr)
{
	int flags = fcntl(fd, F_GETFL);
	bool ready = flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
		     fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
#ifdef SO_NOSIGPIPE
	int on = 1;
	ready = ready && setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on)) == 0;
#endif
	if (!ready) {
		int fault = errno;
		close(fd);
		return dg_error_native(reterr, DG_EIO, "socket", fault,
			"a socket cannot be set up: %s", strerror(fault));
	}
	*channel = (dg__channel){ .fd = fd };
	return DG_OK;
}

static void reset(dg__channel *channel)
{
	free(channel->body);
	channel->body = NULL;
	channel->have = channel->length = 0;
}

void dg__channel_finish(dg__channel *channel)
{
	int fd = channel->fd;
	/* First: a child of fork() that is made between the two must not close it again. */
	channel->fd = -1;
	if (fd >= 0)
		close(fd);
	reset(channel);
}

bool dg__channel_is_closed(const dg__channel *channel)
{
	char byte;
	ssize_t n = recv(channel->fd, &byte, 1, MSG_PEEK);
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* Wait for events; the time rounds up, so that a wait of less than a millisecond does not spin. */
static dg_err wait_for(int fd, short events, uint64_t deadline_ns, dg_error *reterr)
{
	for (;;) {
		uint64_t now = dg__clock_ns();
		uint64_t left_ms = now < deadline_ns ? (deadline_ns - now + 999999) / 1000000 : 0;
		struct pollfd p = { .fd = fd, .events = events };
		int n = poll(&p, 1, left_ms > 60000 ? 60000 : (int)left_ms);
		if (n > 0)
			return DG_OK;
		if (n < 0 && errno != EINTR)
			return dg_error_native(
				reterr, DG_EIO, "poll", errno, "%s", strerror(errno));
		if (n == 0 && left_ms == 0)
			return dg_error_set(reterr, DG_ETIMEOUT, "nothing came in time");
	}
}

static dg_err peer_gone(dg_error *reterr)
{
	return dg_error_set(reterr, DG_EWORKER, "the other end of the socket is gone");
}

static dg_err send_all(
	dg__channel *channel, const char *data, size_t size, uint64_t deadline_ns, dg_error *reterr)
{
	while (size > 0) {
		ssize_t n = send(channel->fd, data, size, SEND_FLAGS);
		if (n > 0) {
			data += n;
			size -= (size_t)n;
		} else if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
			return peer_gone(reterr);
		} else if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
			return dg_error_native(
				reterr, DG_EIO, "send", errno, "%s", strerror(errno));
		} else {
			dg_err err = wait_for(channel->fd, POLLOUT, deadline_ns, reterr);
			if (err != DG_OK)
				return err;
		}
	}
	return DG_OK;
}

dg_err dg__channel_send(
	dg__channel *channel, const dg__frame *frame, uint64_t deadline_ns, dg_error *reterr)
{
	dg__json_text json;
	if (dg__wire_encode_frame(frame, &json) != DG_OK)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dg_err err;
	if (json.length > DG__WIRE_MAX_BYTES) {
		err = dg_error_set(
			reterr, DG_EPROTOCOL, "a frame of %zu bytes is too long", json.length);
	} else {
		char head[4];
		for (unsigned i = 0; i < 4; i++)
			head[i] = (char)(json.length >> (24 - 8 * i) & 0xff);
		err = send_all(channel, head, sizeof(head), deadline_ns, reterr);
		if (err == DG_OK)
			err = send_all(channel, json.text, json.length, deadline_ns, reterr);
	}
	free(json.text);
	return err;
}

/* Read towards `until` bytes of the frame; DG_OK where something came. */
static dg_err read_some(
	dg__channel *channel, char *at, size_t size, uint64_t deadline_ns, dg_error *reterr)
{
	for (;;) {
		ssize_t n = recv(channel->fd, at, size, 0);
		if (n > 0) {
			channel->have += (size_t)n;
			return DG_OK;
		}
		if (n == 0 || errno == ECONNRESET)
			return peer_gone(reterr);
		if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
			return dg_error_native(
				reterr, DG_EIO, "recv", errno, "%s", strerror(errno));
		dg_err err = wait_for(channel->fd, POLLIN, deadline_ns, reterr);
		if (err != DG_OK)
			return err;
	}
}

static dg_err open_body(dg__channel *channel, dg_error *reterr)
{
	channel->length = 0;
	for (unsigned i = 0; i < 4; i++)
		channel->length = channel->length << 8 | channel->head[i];
	if (channel->length == 0 || channel->length > DG__WIRE_MAX_BYTES)
		return dg_error_set(reterr, DG_EPROTOCOL,
			"a frame claims %zu bytes; at most %zu are read", channel->length,
			DG__WIRE_MAX_BYTES);
	channel->body = malloc(channel->length);
	return channel->body ? DG_OK : dg_error_set(reterr, DG_ENOMEM, NULL);
}

dg_err dg__channel_receive(
	dg__channel *channel, uint64_t deadline_ns, dg__frame *ret_frame, dg_error *reterr)
{
	dg_err err = DG_OK;
	while (err == DG_OK && channel->have < 4)
		err = read_some(channel, (char *)channel->head + channel->have, 4 - channel->have,
			deadline_ns, reterr);
	if (err == DG_OK && !channel->body)
		err = open_body(channel, reterr);
	while (err == DG_OK && channel->have < 4 + channel->length)
		err = read_some(channel, channel->body + (channel->have - 4),
			channel->length + 4 - channel->have, deadline_ns, reterr);
	if (err == DG_OK) {
		dg_error why = { .code = DG_OK };
		err = dg__wire_decode_frame(channel->body, channel->length, ret_frame, &why);
		if (err == DG_ENOMEM)
			return dg_error_set(reterr, err, NULL);
		if (err != DG_OK)
			err = dg_error_set(
				reterr, DG_EPROTOCOL, "a frame cannot be read: %s", why.text);
	}
	if (err != DG_ETIMEOUT)
		reset(channel);
	return err;
}
