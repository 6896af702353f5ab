/*
 * Connections: their list, their deadlines, and how they wait. See http_internal.h.
 *
 * The HTTP library's own time limit counts silence only, so that a peer that drips bytes would stay for
 * ever; the timer here ends a request that has not come whole in time, by shutting its socket down.
 */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "backends/core/clock.h"
#include "server/http_internal.h"

#define TICK_MS 200
#define MS 1000000ull

static void describe_peer(struct MHD_Connection *connection, conn *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	socklen_t length = sizeof(struct sockaddr_in6);
	if (info && info->client_addr && info->client_addr->sa_family == AF_INET)
		length = sizeof(struct sockaddr_in);
	if (!info || !info->client_addr ||
		getnameinfo(info->client_addr, length, c->peer, sizeof(c->peer), NULL, 0, NI_NUMERICHOST) != 0)
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
	if (l->http->conn_count++ == 0)
		pthread_cond_signal(&l->http->wake_timer);
	pthread_mutex_unlock(&l->http->lock);
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
	pthread_mutex_unlock(&http->lock);
	free(c);
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
	dg_err err = dg__jobs_get(x->c->http->context->jobs, x->request.job, &x->request.principal, &job, NULL);
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
		getnameinfo((struct sockaddr *)&local, length, buf, (socklen_t)size, NULL, 0, NI_NUMERICHOST) != 0)
		*buf = '\0';
}

static void look_at(conn *c, uint64_t now, bool stopping)
{
	uint64_t by = atomic_load(&c->arrive_by_ns);
	if (by && now > by) {
		atomic_store(&c->arrive_by_ns, 0);
		shutdown(c->fd, SHUT_RDWR);
	}
	if (atomic_load(&c->suspended) && (stopping || now > atomic_load(&c->wake_ns)))
		resume(c);
}

/* Sleep for a tick; with no connection, until there is one. Under the lock. */
static void rest(dg__http *http)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += TICK_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	if (http->conn_count == 0 && !http->timer_stop)
		pthread_cond_wait(&http->wake_timer, &http->lock);
	else if (!http->timer_stop)
		pthread_cond_timedwait(&http->wake_timer, &http->lock, &until);
}

void *dg__conn_timer(void *user)
{
	dg__http *http = user;
	pthread_mutex_lock(&http->lock);
	while (!http->timer_stop) {
		uint64_t now = dg__clock_ns();
		bool stopping = atomic_load(&http->stopping);
		for (conn *c = http->first; c; c = c->next)
			look_at(c, now, stopping);
		rest(http);
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
