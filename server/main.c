/* devgated: see devgated(8). */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/core/hostid.h"
#include "backends/core/names.h"
#include "server/command.h"
#include "server/http.h"
#include "server/log.h"
#include "server/state_lock.h"

#define GRACE_MS 500 /* for requests under way, at the end */
#define LAST_RESORT_S 2 /* the process ends by then, whatever hangs */

typedef struct gateway {
	dg__config config;
	dg__store *store;
	dg__tls_pair pair;
	dg__auth *auth;
	dg__fleet *fleet;
	dg__leases *leases;
	dg__jobs *jobs;
	dg__http *http;
	dg__context context;
	char id[DG__HOSTID_MAX], host[DG__HOSTID_MAX];
	atomic_bool told_ready;
	int lock; /* of the state folder; -1: none */
} gateway;

/* The line of --print-ready could not be written; of the process, since a signal ends it. */
static atomic_bool ready_lost;

static const char usage[] = "usage: devgated [OPTION]...\n"
			    "       devgated token create|list|revoke ...\n"
			    "       devgated audit [--last N] [--json]\n"
			    "Offers this machine's compute devices over HTTPS. Each option is also "
			    "a variable (DEVGATE_LISTEN)\n"
			    "and a key of the configuration file (listen = ...); flags win over "
			    "variables over the file.\n\n";

/* 0, or 1 with a sentence where output is lost. */
static int flush_output(void)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	fprintf(stderr, "devgated: standard output cannot be written%s%s\n", errno ? ": " : "",
		errno ? strerror(errno) : "");
	clearerr(stdout);
	return 1;
}

/* A stream that is closed would be the next file that is opened, the state among them, and what is
 * printed would go there. One that reading cannot write, and the other way round, fails instead. */
static void hold_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static int show_usage(void)
{
	fputs(usage, stdout);
	fputs(dg__config_usage(), stdout);
	printf("  --%-32s %s\n  --%-32s %s\n  --%-32s %s\n", "list-backends",
		"list the backends this build knows", "version", "say the version", "help",
		"this text");
	return 0;
}

static int list_backends(void)
{
	size_t count;
	const char *const *names = dg__backend_names(&count);
	for (size_t i = 0; i < count; i++)
		puts(names[i]);
	return 0;
}

/* A random text kept in the state from the first start on. */
static dg_err kept_id(dg__store *store, const char *name, char id[DG__HOSTID_MAX], dg_error *reterr)
{
	char fresh[DG__HOSTID_MAX], *kept;
	dg_err err = dg__hostid_random(fresh, reterr);
	if (err == DG_OK)
		err = dg__store_keep_text(store, name, fresh, &kept, reterr);
	if (err != DG_OK)
		return err;
	snprintf(id, DG__HOSTID_MAX, "%s", kept);
	free(kept);
	return DG_OK;
}

/* Workers describe devices, and learn from the environment which host they are on. */
static dg_err set_host(gateway *g, dg_error *reterr)
{
	dg_err err = DG_OK;
	if (!dg__hostid_get(g->host))
		err = kept_id(g->store, "host_id", g->host, reterr);
	if (err == DG_OK && setenv(DG__HOSTID_VARIABLE, g->host, 1) != 0)
		err = dg_error_set(reterr, DG_ENOMEM, NULL);
	return err;
}

static void format_url(const gateway *g, size_t i, char *buf, size_t size)
{
	const char *host = g->config.listen[i].host;
	const char *open = strchr(host, ':') ? "[" : "", *close = *open ? "]" : "";
	snprintf(buf, size, "%s://%s%s%s:%u", g->config.plain_http ? "http" : "https", open, host,
		close, dg__http_port(g->http, i));
}

/* Tell systemd (sd_notify(3)): one datagram to the socket it names. */
static void notify_manager(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t length = path ? strlen(path) : 0;
	if (length == 0 || length >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, length);
	if (*to.sun_path == '@')
		*to.sun_path = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, state, strlen(state), 0, (struct sockaddr *)&to,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
	close(fd);
}

/* The line that --print-ready promises. */
static bool print_ready(const gateway *g)
{
	char url[128];
	dg__json_text line;
	dg_error why;
	format_url(g, 0, url, sizeof(url));
	dg_err err = dg__wire_encode_ready(url, g->config.plain_http ? NULL : g->pair.pin, &line);
	if (err != DG_OK) {
		dg_error_set(&why, err, NULL);
		fprintf(stderr, "devgated: --print-ready: %s\n", why.text);
		return false;
	}
	printf("%s\n", line.text);
	free(line.text);
	return flush_output() == 0;
}

static void tell_ready(gateway *g)
{
	if (atomic_exchange(&g->told_ready, true))
		return;
	if (g->config.print_ready && !print_ready(g)) {
		/* Whoever started it waits for the line in vain; the thread of signals ends it. */
		atomic_store(&ready_lost, true);
		kill(getpid(), SIGTERM);
		return;
	}
	notify_manager("READY=1");
	dg__log(DG__LOG_INFO, "ready");
}

/* On a thread of the fleet. */
static void on_change(void *user)
{
	gateway *g = user;
	const dg__snapshot *snapshot = dg__fleet_snapshot(g->fleet);
	bool ready = snapshot->ready;
	dg__snapshot_release(snapshot);
	if (ready)
		tell_ready(g);
}

/* What parses it opens any kind of file, and would wait for ever at the wrong one. */
static dg_err check_client_ca(const dg__config *config, dg_error *reterr)
{
	char *pem = NULL;
	dg_err err = dg__tls_read_pem(config->client_ca_file, "client CA", &pem, reterr);
	free(pem);
	return err;
}

static void on_state_health(const char *problem, void *user)
{
	(void)user;
	if (problem)
		dg__log(DG__LOG_ERROR, "from now on in memory only: %s", problem);
	else
		dg__log(DG__LOG_WARNING, "the state can be written again");
}

/* A state that can be read but not written is served from memory, with its pin, indexes, tokens and
 * leases. One that is damaged or newer is not: other indexes and another pin than those that peers
 * were told would be worse than no gateway. */
static dg_err open_store(gateway *g, const char *directory, dg_error *reterr)
{
	dg_error why = { .code = DG_OK }, unread;
	/* To check a configuration beside the gateway that runs is what checking is for. */
	bool own = directory && !g->config.check_only, frozen = false;
	dg_err err = dg__store_open(directory, &g->store, &why);
	if (err == DG_ESTATE && own) {
		frozen = dg__store_open_frozen(directory, why.text, &g->store, &unread) == DG_OK;
		err = frozen ? DG_OK : err;
	}
	if (err == DG_OK)
		dg__store_on_health(g->store, on_state_health, NULL);
	if (frozen)
		dg__log(DG__LOG_ERROR,
			"in memory only until the next start, and without new leases: %s",
			why.text);
	if (err == DG_OK && own)
		err = dg__state_lock(directory, frozen, &g->lock, &why);
	if (err != DG_OK)
		*reterr = why;
	return err;
}

static dg_err open_state(gateway *g, dg_error *reterr)
{
	const char *directory = g->config.ephemeral ? NULL : g->config.state_dir;
	/* With a token in mind: whether there is one is seen below. */
	dg_err err = dg__config_check(&g->config, 1, reterr);
	if (err == DG_OK)
		err = open_store(g, directory, reterr);
	if (err == DG_OK)
		err = kept_id(g->store, "gateway_id", g->id, reterr);
	if (err == DG_OK)
		err = set_host(g, reterr);
	if (err == DG_OK && !g->config.plain_http)
		err = dg__tls_load(&g->config, g->store, &g->pair, reterr);
	if (err == DG_OK && *g->config.client_ca_file)
		err = check_client_ca(&g->config, reterr);
	if (err == DG_OK)
		err = dg__auth_create(&g->config, g->store, &g->auth, reterr);
	if (err == DG_OK)
		err = dg__config_check(&g->config, dg__auth_live_tokens(g->auth), reterr);
	return err;
}

/* Listening comes first, so that a wrong address is told at once and health answers while devices
 * are looked for: the fleet is made before, since requests need it, but its threads only look. */
static dg_err start(gateway *g, dg_error *reterr)
{
	dg_err err = open_state(g, reterr);
	if (err != DG_OK || g->config.check_only)
		return err;
	err = dg__fleet_create(&g->config, g->store, g->id, g->host, &g->fleet, reterr);
	if (err == DG_OK)
		err = dg__leases_create(g->store, &g->leases, reterr);
	if (err == DG_OK)
		err = dg__jobs_create(&g->config, g->store, g->fleet, g->leases, &g->jobs, reterr);
	if (err != DG_OK)
		return err;
	g->context = (dg__context){ &g->config, g->store, g->auth, g->fleet, g->jobs, g->leases };
	err = dg__http_create(
		&g->context, g->config.plain_http ? NULL : &g->pair, &g->http, reterr);
	if (err != DG_OK)
		return err;
	for (size_t i = 0; i < g->config.listen_count; i++) {
		char url[128];
		format_url(g, i, url, sizeof(url));
		dg__log(DG__LOG_INFO, "listening at %s%s%s", url,
			g->config.plain_http ? "" : ", pin ",
			g->config.plain_http ? "" : g->pair.pin);
	}
	dg__fleet_on_change(g->fleet, on_change, g);
	on_change(g);
	return DG_OK;
}

static void reload(gateway *g)
{
	dg_error why;
	dg__tls_pair pair;
	if (dg__auth_reload(g->auth, &why) != DG_OK)
		dg__log(DG__LOG_ERROR, "tokens were not read again, the last ones stay: %s",
			why.text);
	else
		dg__log(DG__LOG_INFO, "tokens were read again");
	if (g->config.plain_http)
		return;
	if (dg__tls_load(&g->config, g->store, &pair, &why) != DG_OK) {
		dg__log(DG__LOG_ERROR, "the certificate was not read again, the last one stays: %s",
			why.text);
		return;
	}
	if (dg__http_reload(g->http, &pair, &why) != DG_OK)
		dg__log(DG__LOG_ERROR, "the certificate cannot be used, the last one stays: %s",
			why.text);
	else
		dg__log(DG__LOG_INFO, "the certificate was read again, pin %s", pair.pin);
	dg__tls_pair_finish(&pair);
}

static void finish(gateway *g)
{
	/* The fleet's threads must not tell of what is taken down. */
	if (g->fleet)
		dg__fleet_on_change(g->fleet, NULL, NULL);
	dg__http_destroy(g->http, GRACE_MS);
	dg__jobs_destroy(g->jobs);
	dg__leases_destroy(g->leases);
	dg__fleet_destroy(g->fleet);
	dg__auth_destroy(g->auth);
	dg__tls_pair_finish(&g->pair);
	dg__store_close(g->store);
	if (g->lock >= 0)
		close(g->lock);
}

/* Signals are taken by one thread, in turn; the others never see them. */
static void block_signals(sigset_t *ret_signals)
{
	sigemptyset(ret_signals);
	sigaddset(ret_signals, SIGTERM);
	sigaddset(ret_signals, SIGINT);
	sigaddset(ret_signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, ret_signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* A file that may not grow any more is an error of the write. */
	signal(SIGXFSZ, SIG_IGN);
}

/* A hanging disk or driver must not keep the process from ending: nothing acknowledged is lost by
 * it. */
static void give_up(int number)
{
	(void)number;
	_exit(atomic_load(&ready_lost));
}

static void serve(gateway *g, const sigset_t *signals)
{
	int number = 0;
	while (sigwait(signals, &number) == 0 && number == SIGHUP)
		reload(g);
	dg__log(DG__LOG_INFO, "ending");
	notify_manager("STOPPING=1");
	signal(SIGALRM, give_up);
	alarm(LAST_RESORT_S);
}

static int run(int argc, char **argv)
{
	static gateway g = { .lock = -1 };
	sigset_t signals;
	dg_error why = { .code = DG_OK };
	struct rlimit none = { 0, 0 };
	(void)setrlimit(RLIMIT_CORE, &none);
	block_signals(&signals);
	dg_err err = dg__config_load(argc, argv, &g.config, &why);
	if (err == DG_OK) {
		dg__log_set_level((dg__log_level)g.config.log_level);
		err = start(&g, &why);
	}
	if (err != DG_OK)
		fprintf(stderr, "devgated: %s\n", why.text);
	else if (g.config.check_only)
		printf("the configuration is good\n");
	else
		serve(&g, &signals);
	finish(&g);
	if (err == DG_OK)
		return atomic_load(&ready_lost) ? 1 : 0;
	return err == DG_ECONFIG ? 2 : 1;
}

static int command(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "token") == 0)
		return dg__token_command(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "audit") == 0)
		return dg__audit_command(argc - 1, argv + 1);
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return show_usage();
	if (argc == 2 && strcmp(argv[1], "--list-backends") == 0)
		return list_backends();
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("devgated %s\n", DG_VERSION);
		return 0;
	}
	return run(argc, argv);
}

int main(int argc, char **argv)
{
	hold_streams();
	int status = command(argc, argv);
	return flush_output() == 0 ? status : status ? status : 1;
}
