/*
 * Frames of JSON text over a socket: four bytes of length, most significant first, then the text.
 */
#ifndef DEVGATE_BACKENDS_WORKER_CHANNEL_H
#define DEVGATE_BACKENDS_WORKER_CHANNEL_H

#include "api/wire.h"

/** One end of a socket pair. Zero-initialised but for fd; dg__channel_finish(). */
typedef struct dg__channel {
	int fd; /* non-blocking */
	unsigned char head[4];
	size_t have; /* bytes of head and body that have come */
	size_t length; /* of the body, once the head is there */
	char *body; /* owned */
} dg__channel;

/** Make fd non-blocking and close-on-exec, and own it. DG_EIO. */
dg_err dg__channel_init_take(dg__channel *channel, int fd, dg_error *reterr) DG_MUST_CHECK;
/** Close it and free what had come of a frame. */
void dg__channel_finish(dg__channel *channel);
/** Whether the peer has closed its end and everything it sent has been received. Blocks: no. */
bool dg__channel_is_closed(const dg__channel *channel);

/**
 * Send a frame.
 *
 * @param deadline_ns  On dg__clock_ns().
 * @return DG_OK, DG_EWORKER (the peer is gone), DG_ETIMEOUT (a part may have gone out: the channel
 *         is of no more use), DG_EPROTOCOL (longer than a peer reads), DG_ENOMEM, DG_EIO.
 * Threads: one sender at a time. Blocks: until the deadline.
 */
dg_err dg__channel_send(dg__channel *channel, const dg__frame *frame, uint64_t deadline_ns,
	dg_error *reterr) DG_MUST_CHECK;

/**
 * Receive a frame. What has come of one when the deadline passes is kept for the next call.
 *
 * @param[out] ret_frame  Owned; dg__frame_finish().
 * @return DG_OK, DG_EWORKER (the peer is gone), DG_ETIMEOUT, DG_EPROTOCOL, DG_ENOMEM, DG_EIO.
 * Threads: one receiver at a time. Blocks: until the deadline.
 */
dg_err dg__channel_receive(dg__channel *channel, uint64_t deadline_ns, dg__frame *ret_frame,
	dg_error *reterr) DG_MUST_CHECK;

#endif
