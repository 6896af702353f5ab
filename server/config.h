/*
 * How a gateway runs: flags over environment over the file.
 */
#ifndef DEVGATE_SERVER_CONFIG_H
#define DEVGATE_SERVER_CONFIG_H

#include <devgate/default.h>

#include "api/wire.h"

#define DG__LISTEN_MAX 16
#define DG__NAMES_MAX 64

/** What a credential may do. */
typedef enum dg__scope {
	DG__SCOPE_READ = 1 << 0,
	DG__SCOPE_MEASURE = 1 << 1,
	DG__SCOPE_LEASE = 1 << 2,
	DG__SCOPE_ADMIN = 1 << 3 /* implies the others, and sees every job */
} dg__scope;

/** Read "read,measure"; DG_EINVALID names the word. "" is no scope. */
dg_err dg__scopes_parse(const char *list, unsigned *ret_scopes, dg_error *reterr) DG_MUST_CHECK;
/** Write them as dg__scopes_parse() reads them; as snprintf. */
size_t dg__scopes_format(unsigned scopes, char *buf, size_t size);

typedef struct dg__listen {
	char host[64]; /* numeric IPv4 or IPv6 without brackets; "localhost" becomes 127.0.0.1 */
	uint16_t port; /* 0: a free one */
	bool loopback; /* host is a loopback address */
} dg__listen;

/** Owned as a whole by who loaded it; plain value, no heap. Empty texts: not set. */
typedef struct dg__config {
	dg__listen listen[DG__LISTEN_MAX]; /* none given: 127.0.0.1:8443 */
	size_t listen_count;
	char names[DG__NAMES_MAX][254]; /* further host names and addresses that Host may say */
	size_t name_count;
	bool plain_http; /* loopback listeners only */
	bool no_auth;
	bool ephemeral; /* state in memory */
	bool print_ready;
	bool check_only;
	char state_dir
		[1024]; /* default: DEVGATE_STATE_DIR, STATE_DIRECTORY, else /var/lib/devgate */
	char cert_file[1024], key_file[1024];
	char client_ca_file[1024];
	char client_names[DG__NAMES_MAX]
			 [254]; /* subject CN or SAN of certificates that may enter */
	size_t client_name_count;
	unsigned client_scopes; /* of client certificates; default read,measure */
	char tokens_file[1024];
	unsigned loopback_scopes;
	char backends[DG__BACKENDS_MAX]
		     [16]; /* --backend; none given: every registered one; "none": no one */
	size_t backend_count;
	char priority[256]; /* words of a priority list */
	char node_name[256];
	uint32_t detect_timeout_ms; /* 1000..300000, default 30000 */
	uint32_t measure_timeout_ms; /* of one run, default 600000 */
	uint32_t request_timeout_ms; /* for a whole request to arrive, default 10000 */
	uint32_t idle_timeout_ms; /* of a kept connection, default 60000 */
	uint32_t max_connections; /* default 20000, less where RLIMIT_NOFILE says so */
	uint32_t max_connections_per_address; /* default 256; loopback is not limited by it */
	uint32_t max_body_bytes; /* default 1 MiB */
	uint32_t max_queue; /* runs waiting per gateway, default 64 */
	uint32_t http_threads; /* default 2 */
	int log_level; /* dg__log_level */
} dg__config;

/**
 * Load. Unknown options and keys, wrong values, unreadable files are refused with where (flag,
 * variable, or file and line) and what was expected.
 *
 * @param argc, argv  Of the program, after a subcommand if there was one.
 * @return DG_OK, DG_ECONFIG, DG_ENOMEM. ret_config is untouched on failure.
 */
dg_err dg__config_load(
	int argc, char **argv, dg__config *ret_config, dg_error *reterr) DG_MUST_CHECK;

/** Checks between values: --plain-http with loopback only, listeners beyond loopback need a token,
 * a client CA or --no-auth (live_tokens: how many the state and the tokens file hold). DG_ECONFIG.
 * */
dg_err dg__config_check(
	const dg__config *config, size_t live_tokens, dg_error *reterr) DG_MUST_CHECK;

/** One line a flag, for --help. */
const char *dg__config_usage(void);

#endif
