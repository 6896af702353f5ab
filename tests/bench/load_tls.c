/*
 * A client that loads a TLS server, whoever's it is: for bench_server.sh.
 *
 * `full` or `resumed` PORT SECONDS THREADS: handshakes with one request each; prints how many a
 * second, how many were resumed, how many failed.
 * `soak` PORT COUNT THREADS: COUNT requests of many kinds, each with the status it must have, over
 * connections of a hundred each; a line for every 10,000; prints how many were answered otherwise.
 * `idle` PORT COUNT PID: keeps COUNT connections after a request each; prints bytes of PID's memory
 * for each, how many there were, how many of the first 100 answer again, and PID's memory in bytes.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <openssl/ssl.h>

static const char request[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

typedef struct load {
	SSL_CTX *tls;
	unsigned port;
	bool resumed;
	double until;
	unsigned long done, failed, reused;
	pthread_t thread;
} load;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static unsigned number(const char *text)
{
	return (unsigned)strtoul(text, NULL, 10);
}

static SSL *open_connection(SSL_CTX *tls, unsigned port, SSL_SESSION *session)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	SSL *ssl = SSL_new(tls);
	if (fd >= 0 && ssl && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
		SSL_set_fd(ssl, fd) == 1 && (!session || SSL_set_session(ssl, session) == 1) &&
		SSL_connect(ssl) == 1)
		return ssl;
	SSL_free(ssl);
	if (fd >= 0)
		close(fd);
	return NULL;
}

static bool ask(SSL *ssl)
{
	char reply[8192];
	return SSL_write(ssl, request, (int)sizeof(request) - 1) > 0 &&
	       SSL_read(ssl, reply, sizeof(reply)) > 0;
}

static void close_connection(SSL *ssl)
{
	int fd = SSL_get_fd(ssl);
	struct linger hard = { 1, 0 };
	/* Without this, ports run out before the seconds do. */
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	SSL_free(ssl);
	close(fd);
}

static void *run(void *user)
{
	load *l = user;
	SSL_SESSION *session = NULL;
	while (now() < l->until) {
		SSL *ssl = open_connection(l->tls, l->port, session);
		if (!ssl || !ask(ssl)) {
			l->failed++;
		} else {
			l->done++;
			l->reused += SSL_session_reused(ssl) == 1;
		}
		if (ssl && l->resumed) {
			SSL_SESSION_free(session);
			session = SSL_get1_session(ssl);
		}
		if (ssl)
			close_connection(ssl);
	}
	SSL_SESSION_free(session);
	return NULL;
}

static int handshakes(SSL_CTX *tls, char **argv)
{
	load loads[16] = { 0 };
	unsigned count = number(argv[4]);
	double seconds = number(argv[3]);
	unsigned long done = 0, failed = 0, reused = 0;
	count = count < 16 ? count : 16;
	for (unsigned i = 0; i < count; i++) {
		loads[i] = (load){ .tls = tls,
			.port = number(argv[2]),
			.resumed = strcmp(argv[1], "resumed") == 0,
			.until = now() + seconds };
		if (pthread_create(&loads[i].thread, NULL, run, &loads[i]) != 0)
			return 1;
	}
	for (unsigned i = 0; i < count; i++) {
		pthread_join(loads[i].thread, NULL);
		done += loads[i].done;
		failed += loads[i].failed;
		reused += loads[i].reused;
	}
	printf("%.0f %lu %lu\n", (double)done / seconds, reused, failed);
	return 0;
}

/* Requests of a soak, and what they must be answered with. */
#define HOST " HTTP/1.1\r\nHost: localhost\r\n"
#define JSON(length) HOST "Content-Type: application/json\r\nContent-Length: " length "\r\n\r\n"
static const struct {
	const char *bytes;
	int status;
} mixed[] = {
	{ "GET /healthz" HOST "\r\n", 200 },
	{ "GET /v1/devices" HOST "\r\n", 200 },
	{ "GET /v1/devices/0" HOST "\r\n", 200 },
	{ "GET /v1/gateway" HOST "\r\n", 200 },
	{ "HEAD /v1/devices" HOST "\r\n", 200 },
	{ "POST /v1/ids/encode" JSON("7") "[\"cpu\"]", 200 },
	{ "POST /v1/ids/decode" JSON("1") "[", 400 },
	{ "GET /v1/devices/0/throughput" HOST "\r\n", 200 },
	{ "POST /v1/devices/0/throughput" JSON("19") "{\"keys\":[\"launch\"]}", 200 },
	{ "GET /v1/devices/9999" HOST "\r\n", 404 },
	{ "GET /nothing" HOST "\r\n", 404 },
	{ "DELETE /healthz" HOST "\r\n", 405 },
	{ "GET /v1/devices" HOST "Authorization: Bearer wrong\r\n\r\n", 401 },
};
#define MIXED (sizeof(mixed) / sizeof(mixed[0]))

typedef struct soak {
	SSL_CTX *tls;
	unsigned port;
	unsigned long count, bad;
	pthread_t thread;
} soak;

static atomic_ulong asked;

/* Status of the whole reply, whose body is read and forgotten; -1: none. */
static int read_reply(SSL *ssl, bool head)
{
	char reply[65536];
	size_t have = 0, whole = 0;
	do {
		int n = SSL_read(ssl, reply + have, (int)(sizeof(reply) - 1 - have));
		if (n <= 0)
			return -1;
		have += (size_t)n;
		reply[have] = '\0';
		const char *end = strstr(reply, "\r\n\r\n");
		const char *length = strstr(reply, "Content-Length: ");
		if (end && !whole)
			whole = (size_t)(end + 4 - reply) +
				(length && !head ? strtoul(length + 16, NULL, 10) : 0);
	} while ((!whole || have < whole) && have < sizeof(reply) - 1);
	return strncmp(reply, "HTTP/1.1 ", 9) == 0 ? (int)strtol(reply + 9, NULL, 10) : -1;
}

static void note_asked(void)
{
	unsigned long n = atomic_fetch_add(&asked, 1) + 1;
	if (n % 10000 == 0) {
		printf("%lu\n", n);
		fflush(stdout);
	}
}

static void *run_soak(void *user)
{
	soak *s = user;
	SSL *ssl = NULL;
	for (unsigned long i = 0; i < s->count; i++) {
		if (i % 100 == 0) {
			if (ssl)
				close_connection(ssl);
			ssl = open_connection(s->tls, s->port, NULL);
		}
		/* Wrong tokens are limited by address: few of them. */
		size_t n = i % 1000 == 0 ? MIXED - 1 : i % (MIXED - 1);
		const char *bytes = mixed[n].bytes;
		int status = -1;
		if (ssl && SSL_write(ssl, bytes, (int)strlen(bytes)) > 0)
			status = read_reply(ssl, *bytes == 'H');
		bool limited = mixed[n].status == 401 && status == 429;
		if (status != mixed[n].status && !limited) {
			if (s->bad++ < 5)
				fprintf(stderr, "%d instead of %d: %.40s\n", status,
					mixed[n].status, bytes);
			if (ssl)
				close_connection(ssl);
			ssl = open_connection(s->tls, s->port, NULL);
		}
		note_asked();
	}
	if (ssl)
		close_connection(ssl);
	return NULL;
}

static int soak_all(SSL_CTX *tls, char **argv)
{
	soak soaks[16] = { 0 };
	unsigned threads = number(argv[4]);
	unsigned long bad = 0;
	threads = threads < 1 ? 1 : threads < 16 ? threads : 16;
	for (unsigned i = 0; i < threads; i++) {
		soaks[i] = (soak){
			.tls = tls, .port = number(argv[2]), .count = number(argv[3]) / threads
		};
		if (pthread_create(&soaks[i].thread, NULL, run_soak, &soaks[i]) != 0)
			return 1;
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(soaks[i].thread, NULL);
		bad += soaks[i].bad;
	}
	printf("bad %lu\n", bad);
	return bad ? 1 : 0;
}

static long rss_bytes(unsigned pid)
{
	char path[64], line[256];
	long kib = -1;
	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmRSS:", 6) == 0)
			kib = strtol(line + 6, NULL, 10);
	if (f)
		fclose(f);
	return kib * 1024;
}

static int idle(SSL_CTX *tls, char **argv)
{
	unsigned count = number(argv[3]), pid = number(argv[4]), made = 0;
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	SSL **held = calloc(count, sizeof(SSL *));
	long before = rss_bytes(pid);
	for (unsigned i = 0; held && i < count; i++) {
		held[i] = open_connection(tls, number(argv[2]), NULL);
		made += held[i] && ask(held[i]);
	}
	sleep(1);
	long after = rss_bytes(pid);
	/* Those held longest still answer. */
	unsigned alive = 0;
	for (unsigned i = 0; held && i < 100 && i < count; i++)
		alive += held[i] && ask(held[i]);
	printf("%ld %u %u %ld\n", made ? (after - before) / (long)made : -1, made, alive, after);
	free(held);
	return made == count ? 0 : 1;
}

int main(int argc, char **argv)
{
	SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
	if (argc != 5 || !tls) {
		fprintf(stderr, "usage: load_tls full|resumed PORT SECONDS THREADS\n"
				"       load_tls soak PORT COUNT THREADS\n"
				"       load_tls idle PORT COUNT PID\n");
		return 2;
	}
	SSL_CTX_set_verify(tls, SSL_VERIFY_NONE, NULL);
	int status = strcmp(argv[1], "idle") == 0   ? idle(tls, argv)
		     : strcmp(argv[1], "soak") == 0 ? soak_all(tls, argv)
						    : handshakes(tls, argv);
	SSL_CTX_free(tls);
	return status;
}
