/* See fake_gateway.h. */
#include "tests/fakes/fake_gateway.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fakes/fake_certificate.h"
#include "tests/test.h"

#define CONNECTIONS_MAX 4096
#define HEAD_MAX 8000

typedef struct connection {
	dg_fake_gateway *gateway;
	pthread_t thread;
	int fd;
	unsigned number;
	SSL *ssl; /* NULL: plain */
	bool done;
} connection;

struct dg_fake_gateway {
	dg_fake_mode mode;
	dg_fake_handler *handler;
	void *user;
	int listener;
	uint16_t port;
	char url[64];
	dg_fake_certificate certificate;
	SSL_CTX *tls;
	pthread_t acceptor;
	pthread_mutex_t lock; /* over all below, and one handler at a time */
	pthread_mutex_t handling;
	bool stopping;
	unsigned accepted, open;
	connection *connections[CONNECTIONS_MAX];
	dg_fake_request **requests;
	size_t request_count;
};

static bool is_stopping(dg_fake_gateway *gateway)
{
	pthread_mutex_lock(&gateway->lock);
	bool stopping = gateway->stopping;
	pthread_mutex_unlock(&gateway->lock);
	return stopping;
}

/* Wait for the socket in steps short enough to notice the end of the test. */
static bool wait_for(connection *c, short events)
{
	while (!is_stopping(c->gateway)) {
		struct pollfd p = { c->fd, events, 0 };
		int n = poll(&p, 1, 20);
		if (n < 0 && errno != EINTR)
			return false;
		if (n > 0)
			return true;
	}
	return false;
}

static bool tls_retry(connection *c, int result)
{
	switch (SSL_get_error(c->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		return wait_for(c, POLLIN);
	case SSL_ERROR_WANT_WRITE:
		return wait_for(c, POLLOUT);
	default:
		ERR_clear_error();
		return false;
	}
}

static ssize_t receive(connection *c, char *buf, size_t size)
{
	for (;;) {
		if (c->ssl) {
			int n = SSL_read(c->ssl, buf, (int)size);
			if (n > 0)
				return n;
			if (!tls_retry(c, n))
				return -1;
			continue;
		}
		ssize_t n = recv(c->fd, buf, size, 0);
		if (n > 0)
			return n;
		if (n == 0 || (errno != EAGAIN && errno != EINTR) || !wait_for(c, POLLIN))
			return -1;
	}
}

static bool send_all(connection *c, const char *data, size_t length)
{
	while (length) {
		ssize_t n;
		if (c->ssl) {
			n = SSL_write(c->ssl, data, length > 1 << 20 ? 1 << 20 : (int)length);
			if (n <= 0) {
				if (!tls_retry(c, (int)n))
					return false;
				continue;
			}
		} else {
			n = send(c->fd, data, length, 0);
			if (n < 0) {
				if ((errno != EAGAIN && errno != EINTR) || !wait_for(c, POLLOUT))
					return false;
				continue;
			}
		}
		data += n;
		length -= (size_t)n;
	}
	return true;
}

bool dg_fake_request_header(
	const dg_fake_request *request, const char *name, char *buf, size_t size)
{
	size_t n = strlen(name);
	for (const char *line = request->headers; (line = strstr(line, "\r\n"));) {
		line += 2;
		if (strncasecmp(line, name, n) != 0 || line[n] != ':')
			continue;
		const char *value = line + n + 1 + strspn(line + n + 1, " ");
		snprintf(buf, size, "%.*s", (int)strcspn(value, "\r"), value);
		return true;
	}
	return false;
}

/* One byte at a time until the headers end: bodies are small, and nothing is left to put back. */
static bool read_request(connection *c, dg_fake_request *request)
{
	size_t length = 0;
	char number[32];
	memset(request, 0, sizeof(*request));
	request->connection = c->number;
	while (length < 4 || memcmp(request->headers + length - 4, "\r\n\r\n", 4) != 0) {
		if (length == sizeof(request->headers) - 1 ||
			receive(c, request->headers + length, 1) < 0)
			return false;
		length++;
	}
	if (sscanf(request->headers, "%15s %511s", request->method, request->path) != 2)
		return false;
	if (!dg_fake_request_header(request, "Content-Length", number, sizeof(number)))
		return true;
	size_t expected = strtoul(number, NULL, 10);
	while (request->body_length < expected && expected < sizeof(request->body)) {
		ssize_t n = receive(
			c, request->body + request->body_length, expected - request->body_length);
		if (n < 0)
			return false;
		request->body_length += (size_t)n;
	}
	return request->body_length == expected;
}

static void record(dg_fake_gateway *gateway, const dg_fake_request *request)
{
	pthread_mutex_lock(&gateway->lock);
	size_t n = gateway->request_count;
	dg_fake_request **more = realloc(gateway->requests, (n + 1) * sizeof(dg_fake_request *));
	if (more) {
		gateway->requests = more;
		more[n] = malloc(sizeof(**more));
		if (more[n]) {
			*more[n] = *request;
			gateway->request_count++;
		}
	}
	pthread_mutex_unlock(&gateway->lock);
}

static size_t write_head(const dg_fake_reply *reply, size_t body_length, char *head)
{
	const char *type = reply->content_type ? reply->content_type : "application/json";
	size_t n = (size_t)snprintf(
		head, HEAD_MAX, "HTTP/1.1 %d Status\r\n", reply->status ? reply->status : 200);
	if (*type)
		n += (size_t)snprintf(head + n, HEAD_MAX - n, "Content-Type: %s\r\n", type);
	if (!reply->no_length && !reply->endless)
		n += (size_t)snprintf(head + n, HEAD_MAX - n, "Content-Length: %zu\r\n",
			reply->has_declared ? reply->declared_length : body_length);
	if (reply->close || reply->no_length)
		n += (size_t)snprintf(head + n, HEAD_MAX - n, "Connection: close\r\n");
	n += (size_t)snprintf(
		head + n, HEAD_MAX - n, "%s\r\n", reply->headers ? reply->headers : "");
	return n;
}

static bool send_dripping(
	connection *c, const dg_fake_reply *reply, const char *data, size_t length)
{
	if (!reply->drip_ms)
		return send_all(c, data, length);
	for (size_t i = 0; i < length; i++) {
		if (!send_all(c, data + i, 1) || is_stopping(c->gateway))
			return false;
		dg_test_sleep_ms(reply->drip_ms);
	}
	return true;
}

static void send_for_ever(connection *c, const char *data, size_t length)
{
	while (length && send_all(c, data, length))
		continue;
}

/* Returns whether the connection lives on. */
static bool send_reply(connection *c, const dg_fake_reply *reply)
{
	size_t body_length = reply->body_length ? reply->body_length
			     : reply->body      ? strlen(reply->body)
						: 0;
	char *whole = malloc(HEAD_MAX + body_length + 1);
	if (!whole)
		return false;
	size_t length = reply->raw ? 0 : write_head(reply, body_length, whole);
	if (body_length)
		memcpy(whole + length, reply->body, body_length);
	length += body_length;
	if (reply->flip_mask && reply->flip_byte < length)
		whole[reply->flip_byte] = (char)(whole[reply->flip_byte] ^ reply->flip_mask);
	for (unsigned waited = 0; waited < reply->delay_ms && !is_stopping(c->gateway);
		waited += 10)
		dg_test_sleep_ms(10);
	bool lives = false;
	if (reply->endless_header) {
		if (send_all(c, "HTTP/1.1 200 OK\r\nX-Long: ", 25))
			send_for_ever(c, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 32);
	} else if (!reply->cut_at_once) {
		bool cut = reply->cut && reply->cut < length;
		bool sent = send_dripping(c, reply, whole, cut ? reply->cut : length);
		if (sent && reply->endless)
			send_for_ever(c, reply->body, body_length);
		lives = sent && !cut && !reply->close && !reply->no_length && !reply->endless;
	}
	if (!lives && reply->reset) {
		struct linger hard = { 1, 0 };
		setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
		if (c->ssl)
			SSL_set_quiet_shutdown(c->ssl, 1);
	}
	free(whole);
	return lives;
}

static bool handshake(connection *c)
{
	if (c->gateway->mode == DG_FAKE_SILENT) {
		while (!is_stopping(c->gateway))
			dg_test_sleep_ms(10);
		return false;
	}
	if (!c->gateway->tls)
		return true;
	c->ssl = SSL_new(c->gateway->tls);
	if (!c->ssl || !SSL_set_fd(c->ssl, c->fd))
		return false;
	int n;
	while ((n = SSL_accept(c->ssl)) != 1)
		if (!tls_retry(c, n))
			return false;
	return true;
}

/* A client that leaves in the middle is what many tests are about. Only here, so that the client
 * under test has to do without. */
static void block_sigpipe(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void *serve(void *argument)
{
	connection *c = argument;
	block_sigpipe();
	dg_fake_gateway *gateway = c->gateway;
	dg_fake_request *request = malloc(sizeof(*request));
	bool lives = request && handshake(c);
	while (lives && read_request(c, request)) {
		dg_fake_reply reply = { 0 };
		record(gateway, request);
		pthread_mutex_lock(&gateway->handling);
		gateway->handler(request, &reply, gateway->user);
		pthread_mutex_unlock(&gateway->handling);
		lives = send_reply(c, &reply);
	}
	if (c->ssl) {
		if (!lives)
			SSL_shutdown(c->ssl);
		SSL_free(c->ssl);
	}
	ERR_clear_error();
	/* Sends nothing; but a race detector that follows sockets learns that what the handler did
	 * comes before what the peer does once it finds the connection closed. */
	(void)!send(c->fd, "", 0, 0);
	close(c->fd);
	free(request);
	pthread_mutex_lock(&gateway->lock);
	c->done = true;
	gateway->open--;
	pthread_mutex_unlock(&gateway->lock);
	return NULL;
}

/* With the lock held. */
static void start_connection(dg_fake_gateway *gateway, int fd)
{
	connection **place = NULL;
	for (size_t i = 0; i < CONNECTIONS_MAX && !place; i++) {
		connection *old = gateway->connections[i];
		if (old && old->done) {
			pthread_join(old->thread, NULL);
			free(old);
			gateway->connections[i] = NULL;
		}
		if (!gateway->connections[i])
			place = &gateway->connections[i];
	}
	connection *c = place ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		close(fd);
		return;
	}
	*c = (connection){ .gateway = gateway, .fd = fd, .number = ++gateway->accepted };
	gateway->open++;
	if (pthread_create(&c->thread, NULL, serve, c)) {
		gateway->open--;
		close(fd);
		free(c);
		return;
	}
	*place = c;
}

static void set_flags(int fd)
{
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(fd, F_SETFL, O_NONBLOCK);
}

static void *accept_all(void *argument)
{
	dg_fake_gateway *gateway = argument;
	while (!is_stopping(gateway)) {
		struct pollfd p = { gateway->listener, POLLIN, 0 };
		if (poll(&p, 1, 20) <= 0)
			continue;
		int fd = accept(gateway->listener, NULL, NULL);
		if (fd < 0)
			continue;
		set_flags(fd);
		int on = 1;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		pthread_mutex_lock(&gateway->lock);
		start_connection(gateway, fd);
		pthread_mutex_unlock(&gateway->lock);
	}
	return NULL;
}

static bool listen_on_loopback(dg_fake_gateway *gateway)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(address);
	gateway->listener = socket(AF_INET, SOCK_STREAM, 0);
	if (gateway->listener < 0)
		return false;
	set_flags(gateway->listener);
	if (bind(gateway->listener, (struct sockaddr *)&address, size) != 0 ||
		listen(gateway->listener, 256) != 0 ||
		getsockname(gateway->listener, (struct sockaddr *)&address, &size) != 0)
		return false;
	gateway->port = ntohs(address.sin_port);
	return true;
}

static bool start_tls(dg_fake_gateway *gateway)
{
	if (gateway->mode == DG_FAKE_PLAIN || gateway->mode == DG_FAKE_SILENT)
		return true;
	if (!dg_fake_certificate_make(&gateway->certificate))
		return false;
	gateway->tls = SSL_CTX_new(TLS_server_method());
	return gateway->tls &&
	       SSL_CTX_use_certificate(gateway->tls, gateway->certificate.certificate) == 1 &&
	       SSL_CTX_use_PrivateKey(gateway->tls, gateway->certificate.key) == 1;
}

dg_fake_gateway *dg_fake_gateway_create(dg_fake_mode mode, dg_fake_handler *handler, void *user)
{
	dg_fake_gateway *gateway = calloc(1, sizeof(*gateway));
	CU_ASSERT_PTR_NOT_NULL_FATAL(gateway);
	if (!gateway)
		return NULL;
	gateway->mode = mode;
	gateway->handler = handler;
	gateway->user = user;
	pthread_mutex_init(&gateway->lock, NULL);
	pthread_mutex_init(&gateway->handling, NULL);
	CU_ASSERT_FATAL(start_tls(gateway));
	CU_ASSERT_FATAL(listen_on_loopback(gateway));
	snprintf(gateway->url, sizeof(gateway->url), "%s://127.0.0.1:%u",
		mode == DG_FAKE_PLAIN ? "http" : "https", (unsigned)gateway->port);
	CU_ASSERT_FATAL(pthread_create(&gateway->acceptor, NULL, accept_all, gateway) == 0);
	return gateway;
}

void dg_fake_gateway_destroy(dg_fake_gateway *gateway)
{
	if (!gateway)
		return;
	pthread_mutex_lock(&gateway->lock);
	gateway->stopping = true;
	pthread_mutex_unlock(&gateway->lock);
	pthread_join(gateway->acceptor, NULL);
	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		if (!gateway->connections[i])
			continue;
		pthread_join(gateway->connections[i]->thread, NULL);
		free(gateway->connections[i]);
	}
	dg_fake_gateway_forget_requests(gateway);
	close(gateway->listener);
	SSL_CTX_free(gateway->tls);
	dg_fake_certificate_finish(&gateway->certificate);
	pthread_mutex_destroy(&gateway->lock);
	pthread_mutex_destroy(&gateway->handling);
	free(gateway);
}

const char *dg_fake_gateway_url(const dg_fake_gateway *gateway)
{
	return gateway->url;
}

uint16_t dg_fake_gateway_port(const dg_fake_gateway *gateway)
{
	return gateway->port;
}

const char *dg_fake_gateway_pin(const dg_fake_gateway *gateway)
{
	return gateway->certificate.pin;
}

void dg_fake_gateway_write_ca(const dg_fake_gateway *gateway, const char *path)
{
	CU_ASSERT_FATAL(dg_fake_certificate_write(&gateway->certificate, path, false));
}

static int accept_any(int preverified, X509_STORE_CTX *store)
{
	(void)preverified;
	(void)store;
	return 1;
}

void dg_fake_gateway_want_certificate(dg_fake_gateway *gateway)
{
	SSL_CTX_set_verify(
		gateway->tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, accept_any);
}

void dg_fake_write_client_certificate(const char *path)
{
	dg_fake_certificate certificate = { 0 };
	CU_ASSERT_FATAL(dg_fake_certificate_make(&certificate));
	CU_ASSERT_FATAL(dg_fake_certificate_write(&certificate, path, true));
	dg_fake_certificate_finish(&certificate);
}

size_t dg_fake_gateway_requests(dg_fake_gateway *gateway)
{
	pthread_mutex_lock(&gateway->lock);
	size_t count = gateway->request_count;
	pthread_mutex_unlock(&gateway->lock);
	return count;
}

bool dg_fake_gateway_request(dg_fake_gateway *gateway, size_t n, dg_fake_request *ret_request)
{
	pthread_mutex_lock(&gateway->lock);
	bool found = n < gateway->request_count;
	if (found)
		*ret_request = *gateway->requests[n];
	pthread_mutex_unlock(&gateway->lock);
	return found;
}

unsigned dg_fake_gateway_connections(dg_fake_gateway *gateway)
{
	pthread_mutex_lock(&gateway->lock);
	unsigned count = gateway->accepted;
	pthread_mutex_unlock(&gateway->lock);
	return count;
}

unsigned dg_fake_gateway_open(dg_fake_gateway *gateway, unsigned expected)
{
	unsigned open = 0;
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&gateway->lock);
		open = gateway->open;
		pthread_mutex_unlock(&gateway->lock);
		if (open == expected)
			break;
		dg_test_sleep_ms(10);
	}
	return open;
}

void dg_fake_gateway_forget_requests(dg_fake_gateway *gateway)
{
	pthread_mutex_lock(&gateway->lock);
	for (size_t i = 0; i < gateway->request_count; i++)
		free(gateway->requests[i]);
	free(gateway->requests);
	gateway->requests = NULL;
	gateway->request_count = 0;
	pthread_mutex_unlock(&gateway->lock);
}
