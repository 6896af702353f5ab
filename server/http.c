/* See http.h. Loops, listeners, and their end; connections are in http_conn.c. */
#include "server/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/core/clock.h"
#include "server/http_internal.h"
#include "server/log.h"

#define PAUSE_MS 100 /* without accepting, where descriptors have run out */
#define DESCRIPTORS_SPARE 128u /* for files and workers */
#define RUNG_MAX 64 /* at a time, so that sockets have their turn */
#define ACCEPTS_MAX 4 /* at a time, so that other loops have their share */

static bool set_flags(int fd)
{
	return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && evutil_make_socket_nonblocking(fd) == 0;
}

/* A listening socket of ours, so that what goes wrong with it can be told. */
static dg_err open_socket(
	const dg__listen *listen_, int *ret_fd, uint16_t *ret_port, dg_error *reterr)
{
	char port[8];
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
		.ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	int on = 1;
	memset(&bound, 0, sizeof(bound));
	snprintf(port, sizeof(port), "%u", listen_->port);
	int fault = getaddrinfo(listen_->host, port, &hints, &found);
	if (fault)
		return dg_error_set(reterr, DG_ECONFIG, "%s is no address of this machine: %s",
			listen_->host, gai_strerror(fault));
	int fd = socket(found->ai_family, SOCK_STREAM, 0);
	bool ready = fd >= 0 && set_flags(fd) &&
		     setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
		     (found->ai_family != AF_INET6 ||
			     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) == 0) &&
		     bind(fd, found->ai_addr, found->ai_addrlen) == 0 &&
		     listen(fd, SOMAXCONN) == 0 &&
		     getsockname(fd, (struct sockaddr *)&bound, &length) == 0;
	int error = errno;
	freeaddrinfo(found);
	if (!ready) {
		if (fd >= 0)
			close(fd);
		return dg_error_native(reterr, DG_ECONFIG, "listen", error,
			"cannot listen on %s port %u: %s", listen_->host, listen_->port,
			strerror(error));
	}
	*ret_fd = fd;
	*ret_port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
						      : ((struct sockaddr_in *)&bound)->sin_port);
	return DG_OK;
}

/* As many connections as descriptors allow, files and workers apart. */
static unsigned connection_limit(const dg__config *config)
{
	struct rlimit limit;
	unsigned most = config->max_connections;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return most;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > DESCRIPTORS_SPARE * 2 &&
		limit.rlim_cur - DESCRIPTORS_SPARE < most)
		most = (unsigned)limit.rlim_cur - DESCRIPTORS_SPARE;
	return most;
}

/* Out of descriptors or memory: a listener that stays ready would spin. */
static void pause_accepting(loop *l)
{
	struct timeval in = { .tv_usec = PAUSE_MS * 1000 };
	for (size_t i = 0; i < l->http->listener_count; i++)
		(void)event_del(&l->accept[i]);
	(void)evtimer_add(&l->pause_event, &in);
}

static void on_pause(evutil_socket_t fd, short what, void *user)
{
	loop *l = user;
	(void)fd;
	(void)what;
	for (size_t i = 0; i < l->http->listener_count && !l->draining; i++)
		(void)event_add(&l->accept[i], NULL);
}

/* Not blocking, and not for children. */
static int accept_next(int listening, struct sockaddr_storage *address, socklen_t *length)
{
#ifdef __linux__
	return accept4(listening, (struct sockaddr *)address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
#else
	int fd = accept(listening, (struct sockaddr *)address, length);
	if (fd >= 0 && !set_flags(fd)) {
		close(fd);
		errno = EAGAIN;
		return -1;
	}
	return fd;
#endif
}

static void on_accept(evutil_socket_t listening, short what, void *user)
{
	loop *l = user;
	dg__http *http = l->http;
	const listener *from = http->listeners;
	(void)what;
	while (from->fd != listening)
		from++;
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		struct sockaddr_storage address;
		socklen_t length = sizeof(address);
		memset(&address, 0, sizeof(address));
		int fd = accept_next(listening, &address, &length);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
				errno == ENOMEM)
				pause_accepting(l);
			return;
		}
		if (atomic_load(&http->conn_count) >= http->conn_max)
			close(fd);
		else
			dg__conn_open(l, from, fd, &address);
	}
}

/* No more connections; those there are end as soon as they can. */
static void drain(loop *l)
{
	conn *next;
	l->draining = true;
	for (size_t i = 0; i < l->http->listener_count; i++)
		(void)event_del(&l->accept[i]);
	for (conn *c = l->first; c; c = next) {
		next = c->next;
		dg__conn_stop(c);
	}
}

/* The next who is to be looked at; *ret_more: there are others. */
static conn *next_rung(loop *l, bool *ret_more)
{
	pthread_mutex_lock(&l->lock);
	conn *c = l->rung;
	if (c) {
		l->rung = c->ring_next;
		c->in_ring = false;
	}
	*ret_more = l->rung != NULL;
	pthread_mutex_unlock(&l->lock);
	return c;
}

static void ring(loop *l)
{
	/* A full pipe rings already. */
	(void)!write(l->bell[1], "", 1);
}

static void on_bell(evutil_socket_t fd, short what, void *user)
{
	loop *l = user;
	char bytes[64];
	bool more = true;
	(void)what;
	(void)!read((int)fd, bytes, sizeof(bytes));
	for (unsigned i = 0; more && i < RUNG_MAX; i++) {
		conn *c = next_rung(l, &more);
		if (c)
			dg__conn_run(c);
	}
	if (more)
		ring(l);
	if (atomic_load(&l->http->stopping) && !l->draining)
		drain(l);
}

static void *serve(void *user)
{
	loop *l = user;
	while (event_base_loop(l->base, EVLOOP_ONCE) == 0) {
		dg__http *http = l->http;
		if (!l->draining)
			continue;
		if (!l->first || dg__clock_ns() >= atomic_load(&http->stop_by_ns))
			break;
	}
	while (l->first)
		dg__conn_close(l->first);
	return NULL;
}

static bool init_loop(loop *l, dg__http *http)
{
	l->http = http;
	l->bell[0] = l->bell[1] = -1;
	pthread_mutex_init(&l->lock, NULL);
	struct event_config *config = event_config_new();
	/* A loop is one thread's: libevent need not lock it. */
	if (config)
		(void)event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	l->base = config ? event_base_new_with_config(config) : NULL;
	if (config)
		event_config_free(config);
	if (!l->base || pipe(l->bell) != 0 || !set_flags(l->bell[0]) || !set_flags(l->bell[1]))
		return false;
	(void)event_assign(&l->bell_event, l->base, l->bell[0], EV_READ | EV_PERSIST, on_bell, l);
	(void)evtimer_assign(&l->pause_event, l->base, on_pause, l);
	for (size_t i = 0; i < http->listener_count; i++) {
		(void)event_assign(&l->accept[i], l->base, http->listeners[i].fd,
			EV_READ | EV_PERSIST, on_accept, l);
		if (event_add(&l->accept[i], NULL) != 0)
			return false;
	}
	return event_add(&l->bell_event, NULL) == 0;
}

/* Signals are for the main thread: none is taken here. */
static bool start_thread(loop *l)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	l->started = pthread_create(&l->thread, NULL, serve, l) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return l->started;
}

static void finish_loop(loop *l)
{
	if (l->base) {
		(void)evtimer_del(&l->pause_event);
		event_base_free(l->base);
	}
	for (size_t i = 0; i < 2; i++)
		if (l->bell[i] >= 0)
			close(l->bell[i]);
	SSL_CTX_free(l->tls);
	pthread_mutex_destroy(&l->lock);
}

static dg_err start_listeners(dg__http *http, dg_error *reterr)
{
	const dg__config *config = http->context->config;
	for (size_t i = 0; i < config->listen_count; i++) {
		listener *l = &http->listeners[i];
		dg_err err = open_socket(&config->listen[i], &l->fd, &l->port, reterr);
		if (err != DG_OK)
			return err;
		l->http = http;
		l->loopback = config->listen[i].loopback;
		http->listener_count++;
	}
	return DG_OK;
}

static dg_err start_loops(dg__http *http, dg_error *reterr)
{
	size_t count = http->context->config->http_threads;
	http->loops = calloc(count, sizeof(*http->loops));
	http->limit = dg__address_limit_create(http->context->config->max_connections_per_address);
	if (!http->loops || !http->limit)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	for (size_t i = 0; i < count; i++) {
		http->loop_count++;
		if (!init_loop(&http->loops[i], http) || !start_thread(&http->loops[i]))
			return dg_error_native(reterr, DG_EIO, "loop", errno,
				"no thread or no descriptors to serve with");
	}
	return DG_OK;
}

dg_err dg__http_create(
	const dg__context *context, const dg__tls_pair *pair, dg__http **ret_http, dg_error *reterr)
{
	dg__http *http = calloc(1, sizeof(*http));
	if (!http)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	http->context = context;
	http->secure = pair != NULL;
	http->conn_max = connection_limit(context->config);
	pthread_mutex_init(&http->tls_lock, NULL);
	dg_err err = DG_OK;
	if (pair)
		err = dg__http_reload(http, pair, reterr);
	if (err == DG_OK)
		err = start_listeners(http, reterr);
	if (err == DG_OK)
		err = start_loops(http, reterr);
	if (err == DG_OK)
		*ret_http = http;
	else
		dg__http_destroy(http, 0);
	return err;
}

uint16_t dg__http_port(const dg__http *http, size_t i)
{
	return i < http->listener_count ? http->listeners[i].port : 0;
}

dg_err dg__http_reload(dg__http *http, const dg__tls_pair *pair, dg_error *reterr)
{
	SSL_CTX *tls = NULL;
	dg_err err = dg__http_tls_create(http->context->config, pair, &tls, reterr);
	if (err != DG_OK)
		return err;
	pthread_mutex_lock(&http->tls_lock);
	SSL_CTX *before = http->tls;
	http->tls = tls;
	atomic_fetch_add(&http->generation, 1);
	pthread_mutex_unlock(&http->tls_lock);
	SSL_CTX_free(before);
	return DG_OK;
}

/* Each loop ends when its connections have, or at the time that they have. */
static void stop_loops(dg__http *http, uint32_t grace_ms)
{
	uint64_t until = dg__clock_ns() + grace_ms * DG__MS;
	atomic_store(&http->stop_by_ns, until);
	atomic_store(&http->stopping, true);
	for (size_t i = 0; i < http->loop_count; i++)
		if (http->loops[i].started)
			ring(&http->loops[i]);
	while (atomic_load(&http->conn_count) && dg__clock_ns() < until)
		dg__clock_sleep_ns(2 * DG__MS);
	for (size_t i = 0; i < http->loop_count; i++)
		if (http->loops[i].started) {
			ring(&http->loops[i]);
			pthread_join(http->loops[i].thread, NULL);
		}
}

void dg__http_destroy(dg__http *http, uint32_t grace_ms)
{
	if (!http)
		return;
	stop_loops(http, grace_ms);
	for (size_t i = 0; i < http->loop_count; i++)
		finish_loop(&http->loops[i]);
	for (size_t i = 0; i < http->listener_count; i++)
		close(http->listeners[i].fd);
	SSL_CTX_free(http->tls);
	dg__address_limit_destroy(http->limit);
	pthread_mutex_destroy(&http->tls_lock);
	free(http->loops);
	free(http);
}
