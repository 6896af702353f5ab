/*
 * Connections, between the files of the HTTP server.
 */
#ifndef DEVGATE_SERVER_HTTP_INTERNAL_H
#define DEVGATE_SERVER_HTTP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include <microhttpd.h>

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

#include "server/http.h"
#include "server/http_watch.h"

#define DG__TARGET_MAX 8192u /* bytes of a request's target */

typedef struct listener {
	dg__http *http;
	struct MHD_Daemon *daemon;
	uint16_t port;
	bool loopback;
} listener;

typedef struct conn conn;

/** A connection, from accept to close. */
struct conn {
	conn *previous, *next; /* under the server's list lock */
	bool closed; /* under it, too: only the timer's thread still knows of it */
	bool peer_closed; /* the timer's thread's */
	dg__http *http;
	const listener *listener;
	struct MHD_Connection *mhd;
	int fd; /* valid while in the list */
	char peer[64];
	bool certificate_checked;
	char certificate_name[256]; /* "" where none was given that may enter */
	_Atomic(uint64_t) arrive_by_ns; /* the request under way has come by then; 0: it has */
	atomic_bool suspended; /* who turns it false resumes */
	_Atomic(uint64_t) wake_ns; /* while suspended: resume then */
	atomic_bool rang; /* something happened to what it waits for */
};

/** A request, from its first line to the end of its response. */
typedef struct exchange {
	dg__request request;
	conn *c;
	char *target; /* owned; decoded in place, segments and queries point into it */
	dg_error fault; /* of the target, code DG_OK: none */
	bool started; /* headers were seen */
	bool waiting; /* suspended once; now resumed */
	bool answering; /* the whole request is there */
	bool refused; /* what is answered does not depend on the body */
	dg__response *refusal; /* owned; what is answered once a body has come that nobody reads */
	char *body; /* owned */
	size_t body_room;
	dg__subscription *subscription;
} exchange;

struct dg__http {
	const dg__context *context;
	listener listeners[DG__LISTEN_MAX];
	size_t listener_count;
	bool tls;
	gnutls_datum_t ticket_key;
	char *client_ca_pem; /* owned */
	pthread_mutex_t lock; /* of the lists */
	dg__watch watch;
	conn *first;
	conn *dead; /* closed ones, which the timer's thread frees */
	size_t conn_count, closing; /* closing: whose peer has closed */
	atomic_uint active; /* exchanges under way */
	atomic_bool stopping; /* no new waits; suspended connections are resumed */
	bool timer_stop; /* under lock */
	bool timer_started;
	pthread_t timer;
};

/* http_conn.c */

/** MHD_NotifyConnectionCallback; cls is the listener. */
void dg__conn_notify(void *cls, struct MHD_Connection *connection, void **socket_context,
	enum MHD_ConnectionNotificationCode code);
conn *dg__conn_of(struct MHD_Connection *connection);
/** Suspend until dg__conn_ring() or wake_ns. Called on the connection's own thread. */
void dg__conn_suspend(conn *c, uint64_t wake_ns);
/** Resume if suspended; else the next suspend ends at once. Threads: any, while the conn lives. */
void dg__conn_ring(void *user);
/** As dg__conn_ring(), where the job that the exchange `user` waits for has ended. */
void dg__conn_ring_at_end(void *user);
/** The address at which the connection came in, numeric; "" where it is not known. */
void dg__conn_local(const conn *c, char *buf, size_t size);
/** Thread that enforces deadlines; user is the server. */
void *dg__conn_timer(void *user);
/** Free the closed connections; under the lock, or when no thread is left. */
void dg__conn_bury(dg__http *http);
/** How many connections are suspended. */
size_t dg__conn_suspended(dg__http *http);

/* http_target.c */

/** Take a request's target apart. DG_EBADREQUEST, DG_EURITOOLONG. */
dg_err dg__target_parse(char *target, dg__request *request, dg_error *reterr) DG_MUST_CHECK;

/* http_check.c */

/** What the HTTP library lets pass and we do not: Host, lengths, Origin. Fills reterr. */
dg_err dg__http_check(exchange *x, dg_error *reterr) DG_MUST_CHECK;

/* http_events.c */

/** A stream of a job's progress; DG_ENOMEM. */
dg_err dg__events_make(exchange *x, const char *job, struct MHD_Response **ret_response,
	dg_error *reterr) DG_MUST_CHECK;

/* http_tls.c */

/** Load a pair for new connections. DG_ECONFIG. */
dg_err dg__http_tls_set(const dg__tls_pair *pair, dg_error *reterr) DG_MUST_CHECK;
/** Free all pairs; no connection is left. */
void dg__http_tls_finish(void);
/** gnutls_certificate_retrieve_function2 */
int dg__http_tls_retrieve(gnutls_session_t session, const gnutls_datum_t *ca_names, int ca_count,
	const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
	gnutls_pcert_st **ret_certificates, unsigned int *ret_count, gnutls_privkey_t *ret_key);
/** Name of the peer's certificate, verified and allowed; "" where there is none such. */
void dg__http_tls_name(const dg__config *config, gnutls_session_t session, char *buf, size_t size);

#endif
