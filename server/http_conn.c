/*
 * Connections: their list, their deadlines, and how they wait. See http_internal.h.
 *
 * The HTTP library's own time limit counts silence only, so that a peer that drips bytes would stay
 * for ever; the timer here ends a request that has not come whole in time, by shutting its socket
 * down.
 */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "backends/core/clock.h"
#include "server/http_internal.h"

#define TICK_MS 200
#define CLOSING_TICK_MS 10
#define IDLE_TICK_MS 1000
#define MS 1000000ull

static void describe_peer(struct MHD_Connection *connection, conn *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	socklen_t length = sizeof(struct sockaddr_in6);
	if (info && info->client_addr && info->client_addr->sa_family == AF_INET)
		length = sizeof(struct sockaddr_in);
	if (!info || !info->client_addr ||
		getnameinfo(info->client_addr, length, c->peer, sizeof(c->peer), NULL, 0,
			NI_NUMERICHOST) != 0)
		memcpy(c->peer, "unknown", sizeof("unknown"));
}

static void start_tls(struct MHD_Connection *connection, dg__http *http)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	if (info && info->tls_session)
		(void)gnutls_session_ticket_enable_server(info->tls_session, &http->ticket_key);
}

static conn *open_conn(const listener *l, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	conn *c = calloc(1, sizeof(*c));
	if (!c || !info) {
		free(c);
		return NULL;
	}
	c->http = l->http;
	c->listener = l;
	c->mhd = connection;
	c->fd = info->connect_fd;
	describe_peer(connection, c);
	atomic_store(&c->arrive_by_ns,
		dg__clock_ns() + l->http->context->config->request_timeout_ms * MS);
	if (l->http->tls)
		start_tls(connection, l->http);
	pthread_mutex_lock(&l->http->lock);
	c->next = l->http->first;
	if (c->next)
		c->next->previous = c;
	l->http->first = c;
	l->http->conn_count++;
	pthread_mutex_unlock(&l->http->lock);
	dg__watch_add(&l->http->watch, c->fd, c);
	return c;
}

static void close_conn(conn *c)
{
	dg__http *http = c->http;
	pthread_mutex_lock(&http->lock);
	if (c->previous)
		c->previous->next = c->next;
	else
		http->first = c->next;
	if (c->next)
		c->next->previous = c->previous;
	http->conn_count--;
	http->closing -= c->peer_closed;
	c->closed = true;
	c->next = http->dead;
	http->dead = c;
	pthread_mutex_unlock(&http->lock);
}

void dg__conn_notify(void *cls, struct MHD_Connection *connection, void **socket_context,
	enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		*socket_context = open_conn(cls, connection);
	} else if (*socket_context) {
		close_conn(*socket_context);
		*socket_context = NULL;
	}
}

conn *dg__conn_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info ? info->socket_context : NULL;
}

static void resume(conn *c)
{
	if (atomic_exchange(&c->suspended, false))
		MHD_resume_connection(c->mhd);
}

void dg__conn_suspend(conn *c, uint64_t wake_ns)
{
	MHD_suspend_connection(c->mhd);
	atomic_store(&c->wake_ns, wake_ns);
	atomic_store(&c->suspended, true);
	/* What rang before it was suspended would be missed. */
	if (atomic_load(&c->rang) || atomic_load(&c->http->stopping))
		resume(c);
}

void dg__conn_ring(void *user)
{
	conn *c = user;
	atomic_store(&c->rang, true);
	resume(c);
}

void dg__conn_ring_at_end(void *user)
{
	exchange *x = user;
	dg__job job;
	/* Progress does not wake who waits for the end. */
	dg_err err = dg__jobs_get(
		x->c->http->context->jobs, x->request.job, &x->request.principal, &job, NULL);
	bool ended = err != DG_OK || job.state >= DG__JOB_DONE;
	if (err == DG_OK)
		dg__job_finish(&job);
	if (ended)
		dg__conn_ring(x->c);
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

static void look_at(conn *c, uint64_t now, bool stopping)
{
	uint64_t by = atomic_load(&c->arrive_by_ns);
	/* It may have been told before it had read all that came. */
	if (c->peer_closed)
		shutdown(c->fd, SHUT_RD);
	if (by && now > by) {
		atomic_store(&c->arrive_by_ns, 0);
		shutdown(c->fd, SHUT_RDWR);
	}
	if (atomic_load(&c->suspended) && (stopping || now > atomic_load(&c->wake_ns)))
		resume(c);
}

/*
 * The peer has closed. The HTTP library misses that where it comes together with the last bytes (it
 * waits for edges only), and is told again by closing our side of reading; what it still has to
 * write can be written.
 */
static void note_closed(conn *c)
{
	if (c->closed || !dg__watch_closed(c->fd))
		return;
	c->peer_closed = true;
	c->http->closing++;
	shutdown(c->fd, SHUT_RD);
}

void dg__conn_bury(dg__http *http)
{
	while (http->dead) {
		conn *c = http->dead;
		http->dead = c->next;
		free(c);
	}
}

void *dg__conn_timer(void *user)
{
	dg__http *http = user;
	void *told[DG__WATCH_BATCH];
	size_t count = 0;
	uint64_t looked = 0;
	pthread_mutex_lock(&http->lock);
	while (!http->timer_stop) {
		uint64_t now = dg__clock_ns();
		bool stopping = atomic_load(&http->stopping);
		for (size_t i = 0; i < count; i++)
			note_closed(told[i]);
		/* Closing peers may end many waits early; the whole list is for the ticks. */
		uint64_t tick_ms = http->closing ? CLOSING_TICK_MS : TICK_MS;
		bool tick = stopping || now - looked >= tick_ms * MS;
		for (conn *c = tick ? http->first : NULL; c; c = c->next)
			look_at(c, now, stopping);
		looked = tick ? now : looked;
		/* Whom the last wait told of has been looked at: nobody else knows the closed ones.
		 * */
		dg__conn_bury(http);
		int rest_ms = http->closing      ? CLOSING_TICK_MS
			      : http->conn_count ? TICK_MS
						 : IDLE_TICK_MS;
		pthread_mutex_unlock(&http->lock);
		count = dg__watch_wait(&http->watch, rest_ms, told);
		pthread_mutex_lock(&http->lock);
	}
	pthread_mutex_unlock(&http->lock);
	return NULL;
}

size_t dg__conn_suspended(dg__http *http)
{
	size_t n = 0;
	pthread_mutex_lock(&http->lock);
	for (conn *c = http->first; c; c = c->next)
		n += atomic_load(&c->suspended);
	pthread_mutex_unlock(&http->lock);
	return n;
}
