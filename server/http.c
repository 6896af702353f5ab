/* See http.h. Connections are in http_conn.c, what is checked in http_check.c, TLS in http_tls.c.
 * */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/core/clock.h"
#include "server/http_internal.h"
#include "server/log.h"

#define MS 1000000ull
/* Of a connection: its target and headers, and what the library needs beside them. */
#define CONNECTION_MEMORY (DG__HEADERS_MAX + DG__TARGET_MAX + 8192u)
#define FIRST_BODY 4096u
#define DRAIN_MAX ((size_t)16 << 20)
#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

const char *dg__request_query(const dg__request *request, const char *name)
{
	for (size_t i = 0; i < request->query_count; i++)
		if (strcmp(request->queries[i].name, name) == 0)
			return request->queries[i].value;
	return NULL;
}

const char *dg__request_header(const dg__request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

/* A response that is not sent after all. */
static void free_response(dg__response *r)
{
	if (r->snapshot)
		dg__snapshot_release(r->snapshot);
	else if (!r->borrowed)
		free(r->body.text);
}

static void *begin(void *cls, const char *uri, struct MHD_Connection *connection)
{
	dg__http *http = cls;
	exchange *x = calloc(1, sizeof(*x));
	conn *c = dg__conn_of(connection);
	if (!x || !c) {
		free(x);
		return NULL;
	}
	atomic_fetch_add(&http->active, 1);
	x->c = c;
	x->request.connection = connection;
	/* From here the request has a time limit of its own, also on a connection that was idle. */
	atomic_store(
		&c->arrive_by_ns, dg__clock_ns() + http->context->config->request_timeout_ms * MS);
	x->target = strdup(uri);
	if (!x->target)
		dg_error_set(&x->fault, DG_ENOMEM, NULL);
	else if (dg__target_parse(x->target, &x->request, &x->fault) == DG_OK)
		x->fault.code = DG_OK;
	return x;
}

static void end(void *cls, struct MHD_Connection *connection, void **req_cls,
	enum MHD_RequestTerminationCode code)
{
	dg__http *http = cls;
	exchange *x = *req_cls;
	(void)connection;
	(void)code;
	if (!x)
		return;
	dg__jobs_unsubscribe(x->subscription);
	/* The next request may come late; once it has begun, its own limit counts. */
	const dg__config *config = http->context->config;
	atomic_store(&x->c->arrive_by_ns,
		dg__clock_ns() + (config->idle_timeout_ms + config->request_timeout_ms) * MS);
	if (x->refusal)
		free_response(x->refusal);
	free(x->refusal);
	free(x->target);
	free(x->body);
	free(x);
	*req_cls = NULL;
	atomic_fetch_sub(&http->active, 1);
}

static void release_snapshot(void *cls)
{
	dg__snapshot_release(cls);
}

static struct MHD_Response *wrap_body(dg__response *r)
{
	struct MHD_Response *response;
	void *text = r->body.text;
	if (r->snapshot) {
		response = MHD_create_response_from_buffer_with_free_callback_cls(
			r->body.length, text, release_snapshot, (void *)(uintptr_t)r->snapshot);
		if (!response)
			dg__snapshot_release(r->snapshot);
		return response;
	}
	response = MHD_create_response_from_buffer(
		r->body.length, text, r->borrowed ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_FREE);
	if (!response && !r->borrowed)
		free(text);
	return response;
}

static enum MHD_Result send_response(exchange *x, dg__response *r)
{
	struct MHD_Response *response = NULL;
	dg_error why;
	if (!r->events)
		response = wrap_body(r);
	else if (dg__events_make(x, r->wait_job, &response, &why) != DG_OK)
		response = NULL;
	if (!response)
		return MHD_NO;
	const char *type = r->content_type ? r->content_type : "application/json";
	if (r->body.length || r->events)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	for (size_t i = 0; i < r->header_count; i++)
		MHD_add_response_header(response, r->headers[i].name, r->headers[i].value);
	/* A body that was not read must not be taken for the next request. */
	if (x->refused && x->request.has_body && !x->request.body_length)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	enum MHD_Result queued =
		MHD_queue_response(x->request.connection, (unsigned int)r->status, response);
	MHD_destroy_response(response);
	atomic_store(&x->c->arrive_by_ns, 0);
	return queued;
}

/*
 * A peer that is still sending would not see an answer: closing on unread bytes resets the
 * connection.
 * So a body of bearable length is read and forgotten first, unless the peer waits to be told.
 * Without a body it costs nothing, and keeps the connection, which an answer before the end would
 * close.
 */
static bool can_wait(const exchange *x)
{
	const char *length = dg__request_header(&x->request, MHD_HTTP_HEADER_CONTENT_LENGTH);
	return !x->request.body_length &&
	       !dg__request_header(&x->request, MHD_HTTP_HEADER_EXPECT) &&
	       (!length || (strlen(length) < 10 && strtoul(length, NULL, 10) <= DRAIN_MAX));
}

static enum MHD_Result refuse_with(exchange *x, dg__response *r)
{
	bool first = !x->refused;
	x->refused = true;
	if (!first || x->answering || !can_wait(x))
		return send_response(x, r);
	x->refusal = malloc(sizeof(*x->refusal));
	if (!x->refusal)
		return send_response(x, r);
	*x->refusal = *r;
	return MHD_YES;
}

static enum MHD_Result refuse(exchange *x, const dg_error *error)
{
	dg__response r = { .status = 0 };
	dg__response_problem(&r, error);
	return refuse_with(x, &r);
}

/* Wait for a job; the answer is asked for again when it has ended, or when time is over. */
static enum MHD_Result wait_for_job(exchange *x, dg__response *r)
{
	conn *c = x->c;
	dg_error why;
	snprintf(x->request.job, sizeof(x->request.job), "%s", r->wait_job);
	atomic_store(&c->rang, false);
	atomic_store(&c->arrive_by_ns, 0);
	dg_err err = dg__jobs_subscribe(c->http->context->jobs, r->wait_job, &x->request.principal,
		dg__conn_ring_at_end, x, &x->subscription, &why);
	if (err != DG_OK)
		return refuse(x, &why);
	x->waiting = true;
	dg__conn_suspend(c, dg__clock_ns() + r->wait_ms * MS);
	return MHD_YES;
}

static enum MHD_Result answer(exchange *x)
{
	dg__response r = { .status = 0 };
	const dg__context *context = x->c->http->context;
	x->answering = true;
	x->request.body = x->body ? x->body : "";
	dg__routes_answer(context, &x->request, x->waiting, &r);
	if (*r.wait_job && !r.events && !x->waiting && !atomic_load(&x->c->http->stopping))
		return wait_for_job(x, &r);
	if (r.status == 202 || (*r.wait_job && !r.events)) {
		/* Nobody will be there to ask for the job. */
		if (!atomic_load(&x->c->http->stopping))
			return send_response(x, &r);
		dg_error why;
		dg_error_set(&why, DG_EUNAVAILABLE, "the gateway is ending");
		free_response(&r);
		return refuse(x, &why);
	}
	return send_response(x, &r);
}

static void fill_credential(exchange *x)
{
	conn *c = x->c;
	dg__credential *credential = &x->request.credential;
	const dg__config *config = c->http->context->config;
	if (!c->certificate_checked && *config->client_ca_file && c->http->tls) {
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
		if (info && info->tls_session)
			dg__http_tls_name(config, info->tls_session, c->certificate_name,
				sizeof(c->certificate_name));
		c->certificate_checked = true;
	}
	credential->authorization = dg__request_header(&x->request, MHD_HTTP_HEADER_AUTHORIZATION);
	credential->certificate_name = *c->certificate_name ? c->certificate_name : NULL;
	credential->loopback = c->listener->loopback;
	memcpy(credential->peer, c->peer, sizeof(credential->peer));
}

/* Headers have come: refuse now what would be refused later. */
static enum MHD_Result on_headers(exchange *x, const char *method)
{
	dg_error why;
	dg__response r = { .status = 0 };
	x->started = true;
	x->request.method = strcmp(method, "HEAD") == 0 ? "GET" : method;
	if (dg__http_check(x, &why) != DG_OK)
		return refuse(x, &why);
	if (x->fault.code != DG_OK)
		return refuse(x, &x->fault);
	fill_credential(x);
	if (dg__routes_check(x->c->http->context, &x->request, &r))
		return MHD_YES;
	return refuse_with(x, &r);
}

/* A body without a length that grows beyond the limit is refused, and read on no more than is
 * bearable. */
static enum MHD_Result on_body(exchange *x, const char *data, size_t *size)
{
	size_t most = x->c->http->context->config->max_body_bytes;
	size_t length = x->request.body_length + *size;
	dg_error why;
	if (!x->refused && length > most) {
		dg_error_set(&why, DG_ETOOLARGE, "the body has more than %zu bytes", most);
		x->request.body_length = 0;
		(void)refuse(x, &why);
	}
	if (x->refused) {
		x->request.body_length = length;
		*size = 0;
		return x->refusal && length <= DRAIN_MAX ? MHD_YES : MHD_NO;
	}
	if (length + 1 > x->body_room) {
		size_t room = x->body_room ? x->body_room : FIRST_BODY;
		while (room < length + 1)
			room *= 2;
		char *body = realloc(x->body, room);
		if (!body)
			return MHD_NO;
		x->body = body;
		x->body_room = room;
	}
	memcpy(x->body + x->request.body_length, data, *size);
	x->request.body_length = length;
	x->body[length] = '\0';
	*size = 0;
	return MHD_YES;
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *upload_data, size_t *upload_data_size,
	void **req_cls)
{
	(void)cls;
	(void)connection;
	(void)url;
	(void)version;
	exchange *x = *req_cls;
	if (!x)
		return MHD_NO;
	if (!x->started)
		return on_headers(x, method);
	if (*upload_data_size)
		return on_body(x, upload_data, upload_data_size);
	if (!x->refusal)
		return answer(x);
	dg__response *r = x->refusal;
	x->refusal = NULL;
	enum MHD_Result sent = send_response(x, r);
	free(r);
	return sent;
}

static void log_library(void *cls, const char *format, va_list ap)
{
	char text[400];
	(void)cls;
	vsnprintf(text, sizeof(text), format, ap);
	text[strcspn(text, "\n")] = '\0';
	dg__log(DG__LOG_DEBUG, "http: %s", text);
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
	bool ready = fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 &&
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
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 256 &&
		limit.rlim_cur - 128 < most)
		most = (unsigned)limit.rlim_cur - 128;
	return most > config->http_threads ? most : config->http_threads;
}

static dg_err start_daemon(dg__http *http, listener *l, int fd, dg_error *reterr)
{
	const dg__config *config = http->context->config;
	unsigned int flags =
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
#ifdef __linux__
	flags |= MHD_USE_EPOLL;
#else
	flags |= MHD_USE_POLL;
#endif
	if (http->tls)
		flags |= MHD_USE_TLS;
	struct MHD_OptionItem options[20] = {
		{ MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)log_library, NULL },
		{ MHD_OPTION_LISTEN_SOCKET, fd, NULL },
		{ MHD_OPTION_CONNECTION_LIMIT, (intptr_t)connection_limit(config), NULL },
		{ MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)(config->idle_timeout_ms + 999) / 1000,
			NULL },
		{ MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, NULL },
		{ MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL },
		{ MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)end, http },
		{ MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)dg__conn_notify, l },
		{ MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)begin, http },
	};
	size_t n = 9;
	if (config->http_threads > 1)
		options[n++] = (struct MHD_OptionItem){ MHD_OPTION_THREAD_POOL_SIZE,
			config->http_threads, NULL };
	if (!l->loopback)
		options[n++] = (struct MHD_OptionItem){ MHD_OPTION_PER_IP_CONNECTION_LIMIT,
			config->max_connections_per_address, NULL };
	if (http->tls) {
		options[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_PRIORITIES, 0,
			(void *)PRIORITIES };
		options[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_CERT_CALLBACK, 0,
			(void *)(uintptr_t)dg__http_tls_retrieve };
	}
	if (http->client_ca_pem)
		options[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_TRUST, 0,
			http->client_ca_pem };
	options[n] = (struct MHD_OptionItem){ MHD_OPTION_END, 0, NULL };
	l->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, handle, http, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
	if (l->daemon)
		return DG_OK;
	return dg_error_set(
		reterr, DG_ECONFIG, "the HTTP server cannot be started on port %u", l->port);
}

static dg_err start_listeners(dg__http *http, dg_error *reterr)
{
	const dg__config *config = http->context->config;
	for (size_t i = 0; i < config->listen_count; i++) {
		listener *l = &http->listeners[i];
		int fd = -1;
		dg_err err = open_socket(&config->listen[i], &fd, &l->port, reterr);
		if (err != DG_OK)
			return err;
		l->http = http;
		l->loopback = config->listen[i].loopback;
		/* The library owns the socket from here, also where it fails. */
		err = start_daemon(http, l, fd, reterr);
		if (err != DG_OK)
			return err;
		http->listener_count++;
	}
	return DG_OK;
}

static dg_err load_client_ca(dg__http *http, dg_error *reterr)
{
	const char *path = http->context->config->client_ca_file;
	gnutls_datum_t data = { NULL, 0 };
	if (!*path || !http->tls)
		return DG_OK;
	int fault = gnutls_load_file(path, &data);
	gnutls_x509_crt_t probe[1];
	unsigned int count = 1;
	if (fault >= 0) {
		fault = gnutls_x509_crt_list_import(probe, &count, &data, GNUTLS_X509_FMT_PEM, 0);
		if (fault == GNUTLS_E_SHORT_MEMORY_BUFFER)
			fault = 0;
		else if (fault > 0)
			gnutls_x509_crt_deinit(probe[0]);
	}
	if (fault >= 0) {
		http->client_ca_pem = malloc(data.size + 1);
		if (http->client_ca_pem) {
			memcpy(http->client_ca_pem, data.data, data.size);
			http->client_ca_pem[data.size] = '\0';
		}
	}
	gnutls_free(data.data);
	if (fault < 0)
		return dg_error_native(reterr, DG_ECONFIG, "gnutls", fault,
			"%.300s holds no PEM certificate: %s", path, gnutls_strerror(fault));
	return http->client_ca_pem ? DG_OK : dg_error_set(reterr, DG_ENOMEM, NULL);
}

dg_err dg__http_create(
	const dg__context *context, const dg__tls_pair *pair, dg__http **ret_http, dg_error *reterr)
{
	dg__http *http = calloc(1, sizeof(*http));
	if (!http)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	http->context = context;
	http->tls = pair != NULL;
	pthread_mutex_init(&http->lock, NULL);
	dg_err err = DG_OK;
	if (!dg__watch_init(&http->watch))
		err = dg_error_native(
			reterr, DG_EIO, "epoll", errno, "no descriptors to wait with");
	if (err == DG_OK && pair)
		err = dg__http_tls_set(pair, reterr);
	if (err == DG_OK && pair && gnutls_session_ticket_key_generate(&http->ticket_key) < 0)
		err = dg_error_set(reterr, DG_EINTERNAL, "no key for session tickets");
	if (err == DG_OK)
		err = load_client_ca(http, reterr);
	if (err == DG_OK) {
		http->timer_started = pthread_create(&http->timer, NULL, dg__conn_timer, http) == 0;
		if (!http->timer_started)
			err = dg_error_set(reterr, DG_ENOMEM, "no thread for deadlines");
	}
	if (err == DG_OK)
		err = start_listeners(http, reterr);
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
	(void)http;
	return dg__http_tls_set(pair, reterr);
}

/* The library aborts when it is stopped with a suspended connection. */
static void drain(dg__http *http, uint32_t grace_ms)
{
	uint64_t until = dg__clock_ns() + grace_ms * MS;
	atomic_store(&http->stopping, true);
	while (dg__conn_suspended(http) || (atomic_load(&http->active) && dg__clock_ns() < until)) {
		dg__watch_ring(&http->watch);
		dg__clock_sleep_ns(5 * MS);
	}
}

static void stop_timer(dg__http *http)
{
	if (!http->timer_started)
		return;
	pthread_mutex_lock(&http->lock);
	http->timer_stop = true;
	pthread_mutex_unlock(&http->lock);
	dg__watch_ring(&http->watch);
	pthread_join(http->timer, NULL);
}

void dg__http_destroy(dg__http *http, uint32_t grace_ms)
{
	if (!http)
		return;
	for (size_t i = 0; i < http->listener_count; i++) {
		MHD_socket fd = MHD_quiesce_daemon(http->listeners[i].daemon);
		if (fd != MHD_INVALID_SOCKET)
			close(fd);
	}
	drain(http, grace_ms);
	for (size_t i = 0; i < http->listener_count; i++)
		MHD_stop_daemon(http->listeners[i].daemon);
	stop_timer(http);
	if (http->tls)
		dg__http_tls_finish();
	gnutls_free(http->ticket_key.data);
	free(http->client_ca_pem);
	dg__conn_bury(http);
	dg__watch_finish(&http->watch);
	pthread_mutex_destroy(&http->lock);
	free(http);
}
