/*
 * Connections: from accept to close, with their phases and their deadlines. See http_internal.h.
 *
 * A deadline covers a whole request, not silence, so that a peer that drips bytes does not stay for
 * ever.
 */
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/core/clock.h"
#include "server/http_internal.h"

#define LINGER_MS 2000
/* Requests of one connection in a row, before others have their turn. */
#define TURN_MAX 32

static void on_timer(evutil_socket_t fd, short what, void *user);
static void on_io(evutil_socket_t fd, short what, void *user);
static void take_turn(conn *c);

static const dg__config *config_of(const conn *c)
{
	return c->loop->http->context->config;
}

/* The timer may fire early, and is then set again: most deadlines are moved before they pass. */
static void set_timer(conn *c, uint64_t now)
{
	uint64_t left = c->deadline_ns > now ? c->deadline_ns - now : 0;
	struct timeval in = { .tv_sec = (time_t)(left / 1000000000),
		.tv_usec = (suseconds_t)(left % 1000000000 / 1000) + 1 };
	c->timer_ns = c->deadline_ns;
	(void)evtimer_add(&c->timer, &in);
}

void dg__conn_deadline(conn *c, uint64_t timeout_ms)
{
	uint64_t now = dg__clock_ns();
	c->deadline_ns = now + timeout_ms * DG__MS;
	c->expired = false;
	if (c->timer_ns == 0 || c->deadline_ns < c->timer_ns)
		set_timer(c, now);
}

static void describe_peer(conn *c)
{
	socklen_t length = c->address.ss_family == AF_INET ? sizeof(struct sockaddr_in)
							   : sizeof(struct sockaddr_in6);
	if (getnameinfo((struct sockaddr *)&c->address, length, c->peer, sizeof(c->peer), NULL, 0,
		    NI_NUMERICHOST) != 0)
		memcpy(c->peer, "unknown", sizeof("unknown"));
}

void dg__conn_local(const conn *c, char *buf, size_t size)
{
	struct sockaddr_storage local;
	socklen_t length = sizeof(local);
	*buf = '\0';
	if (getsockname(c->fd, (struct sockaddr *)&local, &length) != 0 ||
		getnameinfo((struct sockaddr *)&local, length, buf, (socklen_t)size, NULL, 0,
			NI_NUMERICHOST) != 0)
		*buf = '\0';
}

/* The newest pair is what new connections get; the lock is taken after a change only. */
static bool refresh_tls(loop *l)
{
	dg__http *http = l->http;
	unsigned generation = atomic_load(&http->generation);
	if (l->tls && l->generation == generation)
		return true;
	SSL_CTX_free(l->tls);
	pthread_mutex_lock(&http->tls_lock);
	l->tls = http->tls && SSL_CTX_up_ref(http->tls) ? http->tls : NULL;
	pthread_mutex_unlock(&http->tls_lock);
	l->generation = generation;
	return l->tls != NULL;
}

static bool start_tls(conn *c)
{
	if (!c->loop->http->secure)
		return true;
	if (!refresh_tls(c->loop) || !(c->ssl = SSL_new(c->loop->tls)))
		return false;
	SSL_set_accept_state(c->ssl);
	c->phase = PHASE_HANDSHAKE;
	return SSL_set_fd(c->ssl, c->fd) == 1;
}

static bool start(conn *c, const struct sockaddr_storage *address)
{
	dg__http *http = c->loop->http;
	int on = 1;
	c->address = *address;
	describe_peer(c);
	if (!c->listener->loopback) {
		c->limited = dg__address_limit_take(http->limit, address);
		if (!c->limited)
			return false;
	}
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return start_tls(c);
}

void dg__conn_open(loop *l, const listener *from, int fd, const struct sockaddr_storage *address)
{
	conn *c = calloc(1, sizeof(*c));
	if (!c) {
		close(fd);
		return;
	}
	c->loop = l;
	c->listener = from;
	c->fd = fd;
	c->phase = PHASE_HEAD;
	atomic_fetch_add(&l->http->conn_count, 1);
	c->next = l->first;
	if (c->next)
		c->next->previous = c;
	l->first = c;
	(void)evtimer_assign(&c->timer, l->base, on_timer, c);
	(void)event_assign(&c->io, l->base, fd, EV_READ | EV_PERSIST, on_io, c);
	if (!start(c, address)) {
		dg__conn_close(c);
		return;
	}
	dg__conn_deadline(c, config_of(c)->request_timeout_ms);
	dg__conn_run(c);
}

/* Out of the list of who is to be looked at. */
static void leave_ring(conn *c)
{
	loop *l = c->loop;
	pthread_mutex_lock(&l->lock);
	conn *before = NULL;
	for (conn *at = c->in_ring ? l->rung : NULL; at; before = at, at = at->ring_next)
		if (at == c) {
			if (before)
				before->ring_next = c->ring_next;
			else
				l->rung = c->ring_next;
			if (l->rung_last == c)
				l->rung_last = before;
			break;
		}
	c->in_ring = false;
	pthread_mutex_unlock(&l->lock);
}

void dg__conn_close(conn *c)
{
	loop *l = c->loop;
	/* Nobody rings for it after this. */
	dg__exchange_end(c);
	leave_ring(c);
	if (event_initialized(&c->io))
		(void)event_del(&c->io);
	(void)evtimer_del(&c->timer);
	if (c->ssl && !c->gone && c->phase != PHASE_LINGER && SSL_is_init_finished(c->ssl))
		dg__io_shutdown(c);
	SSL_free(c->ssl);
	close(c->fd);
	if (c->limited)
		dg__address_limit_give(l->http->limit, &c->address);
	if (c->previous)
		c->previous->next = c->next;
	else
		l->first = c->next;
	if (c->next)
		c->next->previous = c->previous;
	atomic_fetch_sub(&l->http->conn_count, 1);
	free(c->certificate_name);
	free(c->in);
	free(c->out);
	free(c);
}

static step run_handshake(conn *c)
{
	step next = dg__io_handshake(c);
	if (next == STEP_ON && c->phase == PHASE_HANDSHAKE)
		c->phase = PHASE_HEAD;
	return next;
}

static step run_head(conn *c)
{
	dg_error why;
	size_t blank = 0;
	/* Empty lines before a request are a known habit (RFC 9112, section 2.2). */
	while (blank + 1 < c->in_length && c->in[blank] == '\r' && c->in[blank + 1] == '\n')
		blank += 2;
	if (blank) {
		c->in_length -= blank;
		c->in_seen = 0;
		memmove(c->in, c->in + blank, c->in_length);
	}
	size_t length = c->in_length ? dg__head_end(c->in, c->in_length, c->in_seen) : 0;
	if (length)
		return dg__exchange_begin(c, length);
	c->in_seen = c->in_length;
	if (c->in_length && dg__head_room(c->in, c->in_length, &why) != DG_OK)
		return dg__exchange_refuse(c, &why);
	bool idle = c->in_length == 0;
	if (idle && c->last)
		return STEP_CLOSE;
	step next = dg__io_fill(c);
	if (idle && next == STEP_ON)
		dg__conn_deadline(c, config_of(c)->request_timeout_ms);
	if (idle && next == STEP_IDLE) {
		free(c->in);
		c->in = NULL;
		c->in_room = 0;
	}
	return next;
}

/* A peer that leaves is noticed; one that sends on is read from as far as there is room. */
static step watch_peer(conn *c)
{
	step next;
	do
		next = c->in_length < DG__HEADERS_MAX ? dg__io_fill(c) : STEP_IDLE;
	while (next == STEP_ON);
	if (next == STEP_IDLE && c->in_length >= DG__HEADERS_MAX)
		c->events = 0;
	return next;
}

static step run_wait(conn *c)
{
	bool over = atomic_load(&c->rang) || c->expired || atomic_load(&c->loop->http->stopping);
	return over ? dg__exchange_resume(c) : watch_peer(c);
}

static step run_write(conn *c)
{
	step next = dg__io_flush(c);
	if (next != STEP_ON)
		return next;
	bool last = c->last || atomic_load(&c->loop->http->stopping);
	dg__exchange_end(c);
	free(c->out);
	c->out = NULL;
	c->out_length = c->out_sent = c->body_sent = 0;
	c->in_seen = 0;
	if (last && !c->linger && !c->in_length)
		return STEP_CLOSE;
	c->phase = last ? PHASE_LINGER : PHASE_HEAD;
	if (last)
		dg__io_shutdown(c);
	dg__conn_deadline(c, last ? LINGER_MS : config_of(c)->idle_timeout_ms);
	return STEP_ON;
}

static step run_stream(conn *c)
{
	step next = dg__events_step(c);
	if (next == STEP_ON) {
		c->phase = PHASE_WRITE;
		return STEP_ON;
	}
	if (next != STEP_IDLE || c->events == EV_WRITE)
		return next;
	return watch_peer(c);
}

static step run_phase(conn *c)
{
	switch (c->phase) {
	case PHASE_HANDSHAKE:
		return run_handshake(c);
	case PHASE_HEAD:
		return run_head(c);
	case PHASE_BODY:
		return dg__exchange_body(c);
	case PHASE_WAIT:
		return run_wait(c);
	case PHASE_WRITE:
		return run_write(c);
	case PHASE_STREAM:
		return run_stream(c);
	case PHASE_LINGER:
	default:
		return dg__io_linger(c);
	}
}

/* Wait for what c->events says: 0 is for what other threads and the timer tell only. */
static bool watch(conn *c)
{
	short now = event_get_events(&c->io) & (EV_READ | EV_WRITE);
	bool pending = event_pending(&c->io, EV_READ | EV_WRITE, NULL);
	if (pending && now == c->events)
		return true;
	if (pending)
		(void)event_del(&c->io);
	return c->events == 0 || (event_assign(&c->io, c->loop->base, c->fd,
					  (short)(c->events | EV_PERSIST), on_io, c) == 0 &&
					 event_add(&c->io, NULL) == 0);
}

void dg__conn_run(conn *c)
{
	step next = STEP_ON;
	for (unsigned i = 0; next == STEP_ON && i < TURN_MAX * 4; i++)
		next = run_phase(c);
	if (next == STEP_CLOSE || (next == STEP_IDLE && !watch(c)))
		dg__conn_close(c);
	else if (next == STEP_ON)
		take_turn(c);
}

void dg__conn_stop(conn *c)
{
	if (c->phase == PHASE_HEAD && c->in_length == 0)
		dg__conn_close(c);
	else if (c->phase == PHASE_WAIT || c->phase == PHASE_STREAM)
		dg__conn_run(c);
}

static void on_io(evutil_socket_t fd, short what, void *user)
{
	conn *c = user;
	(void)fd;
	(void)what;
	c->drained = false;
	dg__conn_run(c);
}

/* What a passed deadline means depends on what was waited for. */
static void on_deadline(conn *c)
{
	dg_error why;
	bool begun = (c->phase == PHASE_HEAD && c->in_length) || c->phase == PHASE_BODY;
	c->expired = true;
	if (begun) {
		dg_error_set(&why, DG_EREQTIMEOUT, "the request did not come whole within %lu ms",
			(unsigned long)config_of(c)->request_timeout_ms);
		if (dg__exchange_refuse(c, &why) == STEP_ON) {
			dg__conn_run(c);
			return;
		}
	}
	/* A stream that has something to send and cannot is stuck. */
	bool waits = c->phase == PHASE_WAIT ||
		     (c->phase == PHASE_STREAM && c->out_sent == c->out_length);
	if (waits)
		dg__conn_run(c);
	else
		dg__conn_close(c);
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
	conn *c = user;
	uint64_t now = dg__clock_ns();
	(void)fd;
	(void)what;
	c->timer_ns = 0;
	if (now < c->deadline_ns)
		set_timer(c, now);
	else
		on_deadline(c);
}

/* Its turn comes again after those who wait already. */
static void take_turn(conn *c)
{
	loop *l = c->loop;
	bool first = false;
	pthread_mutex_lock(&l->lock);
	if (!c->in_ring) {
		first = !l->rung;
		c->in_ring = true;
		c->ring_next = NULL;
		if (first)
			l->rung = c;
		else
			l->rung_last->ring_next = c;
		l->rung_last = c;
	}
	pthread_mutex_unlock(&l->lock);
	/* A full pipe rings already. */
	if (first)
		(void)!write(l->bell[1], "", 1);
}

void dg__conn_ring(void *user)
{
	conn *c = user;
	atomic_store(&c->rang, true);
	take_turn(c);
}

void dg__conn_ring_at_end(void *user)
{
	exchange *x = user;
	dg__job job;
	/* Progress does not wake who waits for the end. */
	dg_err err = dg__jobs_get(
		x->c->loop->http->context->jobs, x->request.job, &x->request.principal, &job, NULL);
	bool ended = err != DG_OK || job.state >= DG__JOB_DONE;
	if (err == DG_OK)
		dg__job_finish(&job);
	if (ended)
		dg__conn_ring(x->c);
}
