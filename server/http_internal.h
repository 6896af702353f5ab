/*
 * Connections, between the files of the HTTP server.
 *
 * A few threads, each with an event loop of its own. A connection belongs to one loop from accept
 * to close, and all of it is that thread's, so that nothing of it needs a lock. Other threads reach
 * it through dg__conn_ring() alone.
 */
#ifndef DEVGATE_SERVER_HTTP_INTERNAL_H
#define DEVGATE_SERVER_HTTP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <openssl/ssl.h>

#include "server/http.h"
#include "server/http_head.h"
#include "server/http_limit.h"

#define DG__MS 1000000ull
#define DG__SCRATCH 16384u

typedef struct conn conn;
typedef struct exchange exchange;

typedef struct listener {
	dg__http *http;
	int fd;
	uint16_t port;
	bool loopback;
} listener;

/** A thread that serves connections. */
typedef struct loop {
	dg__http *http;
	struct event_base *base;
	struct event accept[DG__LISTEN_MAX];
	struct event bell_event, pause_event;
	int bell[2]; /* a pipe; other threads write to it */
	pthread_mutex_t lock; /* of rung */
	conn *rung, *rung_last; /* who is to be looked at, in turn */
	conn *first; /* all of its connections */
	SSL_CTX *tls; /* for new connections; of this generation: */
	unsigned generation;
	char date[40]; /* Date header of this second: */
	uint64_t date_s;
	pthread_t thread;
	bool started;
	bool draining; /* stopping was seen */
	char scratch[DG__SCRATCH]; /* for bytes in passing */
} loop;

typedef enum phase {
	PHASE_HANDSHAKE, /* of TLS */
	PHASE_HEAD, /* a request may begin, or has begun */
	PHASE_BODY, /* its body is coming */
	PHASE_WAIT, /* for a job */
	PHASE_WRITE, /* the response is going */
	PHASE_STREAM, /* a response without an end known yet */
	PHASE_LINGER, /* the last response was sent; what still comes is thrown away */
} phase;

/** What is to be done after a step. */
typedef enum step {
	STEP_ON, /* there is more to do */
	STEP_IDLE, /* until something happens */
	STEP_CLOSE,
} step;

/** A connection, from accept to close. */
struct conn {
	conn *previous, *next; /* in its loop's list */
	loop *loop;
	const listener *listener;
	SSL *ssl; /* NULL: plain */
	int fd;
	phase phase;
	short events; /* what io waits for */
	bool drained; /* the last read took all there was */
	bool linger; /* what the peer may still be sending must not reset what was sent to it */
	bool last; /* no further request is taken */
	bool expired; /* the deadline has passed */
	bool gone; /* the peer has ended it, or it failed: there is nobody to say goodbye to */
	bool limited; /* counted under its address */
	struct event io, timer;
	uint64_t deadline_ns, timer_ns; /* of the phase; when the timer fires, 0: it does not */
	char *in; /* owned; bytes that came and were not used */
	size_t in_length, in_room, in_seen;
	char *out; /* owned; bytes to go: the response's head, or what a stream has to say */
	size_t out_length, out_sent;
	size_t body_sent; /* of the response's body */
	size_t lingered;
	exchange *x; /* the request under way */
	char *certificate_name; /* owned; NULL: none that may enter */
	bool certificate_checked;
	bool in_ring; /* under the loop's lock, with: */
	conn *ring_next;
	atomic_bool rang; /* something happened to what it waits for */
	struct sockaddr_storage address;
	char peer[64];
};

typedef struct dg__stream dg__stream;

/** A request, from its first line to the end of its response. */
struct exchange {
	dg__request request;
	conn *c;
	dg__head head;
	const char *authority; /* of an absolute target; NULL: the Host header tells */
	bool bodiless; /* the response is to a HEAD */
	bool waiting; /* waited once; now it goes on */
	bool refused; /* what is answered does not depend on the body */
	dg__response response;
	bool has_response; /* owned until it is freed */
	char *body; /* owned */
	size_t body_room, received;
	dg__chunks chunks;
	dg__subscription *subscription;
	dg__stream *stream;
	char text[]; /* what head points into */
};

struct dg__http {
	const dg__context *context;
	listener listeners[DG__LISTEN_MAX];
	size_t listener_count;
	loop *loops; /* config->http_threads of them */
	size_t loop_count;
	dg__address_limit *limit;
	pthread_mutex_t tls_lock;
	SSL_CTX *tls; /* under the lock; NULL: plain HTTP */
	bool secure;
	atomic_uint generation; /* of tls */
	unsigned conn_max;
	atomic_uint conn_count;
	atomic_bool stopping; /* no new waits; who waits is answered */
	_Atomic(uint64_t) stop_by_ns;
};

/* http_conn.c */

/** Take a connection that was accepted; fd is consumed. */
void dg__conn_open(loop *l, const listener *from, int fd, const struct sockaddr_storage *address);
/** Do what can be done now. May close and free it. */
void dg__conn_run(conn *c);
/** The loop is stopping: idle connections close, waiting ones are answered. May free it. */
void dg__conn_stop(conn *c);
void dg__conn_close(conn *c);
/** Look at it again on its own thread. Threads: any, until nothing can call it any more. */
void dg__conn_ring(void *user);
/** As dg__conn_ring(), where the job that the exchange `user` waits for has ended. */
void dg__conn_ring_at_end(void *user);
/** The address at which the connection came in, numeric; "" where it is not known. */
void dg__conn_local(const conn *c, char *buf, size_t size);
void dg__conn_deadline(conn *c, uint64_t timeout_ms);

/* http_io.c: never block; c->events says what to wait for after STEP_IDLE. */

/** Read more into c->in. */
step dg__io_fill(conn *c);
/** Send c->out and the response's body; STEP_ON: all is gone. */
step dg__io_flush(conn *c);
step dg__io_handshake(conn *c);
/** Throw away what comes. */
step dg__io_linger(conn *c);
/** Tell the peer that nothing more comes. */
void dg__io_shutdown(conn *c);

/* http_exchange.c */

/** A head of this length is there. */
step dg__exchange_begin(conn *c, size_t length);
/** More of the body is there, or may be. */
step dg__exchange_body(conn *c);
/** The wait for a job has ended. */
step dg__exchange_resume(conn *c);
/** Answer with an error, and take no further request. */
step dg__exchange_refuse(conn *c, const dg_error *error);
/** Free the exchange, if there is one. */
void dg__exchange_end(conn *c);

/* http_send.c */

/** Turn the response of the exchange into bytes to send. False: no memory. */
bool dg__send_start(conn *c);

/* http_target.c */

/** Take a request's target apart. DG_EBADREQUEST, DG_EURITOOLONG. */
dg_err dg__target_parse(char *target, dg__request *request, dg_error *reterr) DG_MUST_CHECK;
/** Where the target is a whole URL, its authority, which it is cut from; else NULL. */
const char *dg__target_authority(char **target);

/* http_check.c */

/** What must hold of a request before it is looked at: Host, Origin, credentials, body size. */
dg_err dg__http_check(exchange *x, dg_error *reterr) DG_MUST_CHECK;

/* http_events.c */

/** A stream of a job's progress; DG_ENOMEM. */
dg_err dg__events_open(exchange *x, const char *job, dg_error *reterr) DG_MUST_CHECK;
/** Say what there is to say; STEP_ON: the stream has ended and all is sent. */
step dg__events_step(conn *c);
void dg__events_close(dg__stream *stream);

/* http_tls.c */

/** A context that serves this pair. DG_ECONFIG, DG_ENOMEM. */
dg_err dg__http_tls_create(const dg__config *config, const dg__tls_pair *pair, SSL_CTX **ret_tls,
	dg_error *reterr) DG_MUST_CHECK;
/** Name of the peer's certificate, verified and allowed; owned; NULL where there is none such. */
char *dg__http_tls_name(const dg__config *config, const SSL *ssl);

#endif
