/*
 * See config.h. One table says of each option how it is spelled, read and explained; flags,
 * variables (DEVGATE_ and the name in capitals) and the file's keys all go through it.
 */
#include "server/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "api/lex.h"
#include "backends/core/names.h"
#include "server/config_internal.h"
#include "server/log.h"

static const struct {
	const char *word;
	unsigned scope;
} scope_words[] = {
	{ "read", DG__SCOPE_READ },
	{ "measure", DG__SCOPE_MEASURE },
	{ "lease", DG__SCOPE_LEASE },
	{ "admin", DG__SCOPE_ADMIN },
};

#define SCOPES (sizeof(scope_words) / sizeof(scope_words[0]))

static unsigned scope_of(const char *word, size_t length)
{
	for (size_t i = 0; i < SCOPES; i++)
		if (strlen(scope_words[i].word) == length &&
			strncasecmp(word, scope_words[i].word, length) == 0)
			return scope_words[i].scope;
	return 0;
}

dg_err dg__scopes_parse(const char *list, unsigned *ret_scopes, dg_error *reterr)
{
	unsigned scopes = 0;
	while (*list) {
		size_t length = strcspn(list, ",");
		unsigned scope = scope_of(list, length);
		if (!scope)
			return dg_error_set(reterr, DG_EINVALID,
				"'%.*s' is no scope; expected read, measure, lease or admin",
				length < 40 ? (int)length : 40, list);
		scopes |= scope;
		list += length;
		if (*list == ',' && !*++list)
			return dg_error_set(
				reterr, DG_EINVALID, "a scope is missing after the last comma");
	}
	*ret_scopes = scopes;
	return DG_OK;
}

size_t dg__scopes_format(unsigned scopes, char *buf, size_t size)
{
	char all[64] = "";
	size_t length = 0;
	for (size_t i = 0; i < SCOPES; i++)
		if (scopes & scope_words[i].scope)
			length += (size_t)snprintf(all + length, sizeof(all) - length, "%s%s",
				length ? "," : "", scope_words[i].word);
	return (size_t)snprintf(buf, size, "%s", all);
}

/* Setters: one value into the configuration. Lists append. */

static dg_err set_true(
	dg__config *config, const dg__option *row, const char *value, dg_error *reterr)
{
	static const char *const words[] = { "false", "no", "0", "off", "true", "yes", "1", "on" };
	bool *where = (bool *)((char *)config + row->offset);
	for (size_t i = 0; i < 8; i++) {
		if (strcasecmp(value, words[i]) == 0) {
			*where = i >= 4;
			return DG_OK;
		}
	}
	return dg_error_set(reterr, DG_ECONFIG, "expected true or false, not '%.60s'", value);
}

static dg_err set_text(
	dg__config *config, const dg__option *row, const char *value, dg_error *reterr)
{
	size_t length = strlen(value);
	if (length >= row->size)
		return dg_error_set(reterr, DG_ECONFIG, "has %zu bytes; at most %zu are taken",
			length, row->size - 1);
	memcpy((char *)config + row->offset, value, length + 1);
	return DG_OK;
}

static dg_err set_number(
	dg__config *config, const dg__option *row, const char *value, dg_error *reterr)
{
	char *end;
	errno = 0;
	unsigned long long number = strtoull(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno || number < row->least ||
		number > row->most)
		return dg_error_set(reterr, DG_ECONFIG,
			"expected a number from %u to %u, not '%.60s'", row->least, row->most,
			value);
	*(uint32_t *)(void *)((char *)config + row->offset) = (uint32_t)number;
	return DG_OK;
}

static dg_err set_scopes(
	dg__config *config, const dg__option *row, const char *value, dg_error *reterr)
{
	dg_error why;
	unsigned *where = (unsigned *)(void *)((char *)config + row->offset);
	if (dg__scopes_parse(value, where, &why) != DG_OK)
		return dg_error_set(reterr, DG_ECONFIG, "%s", why.text);
	return DG_OK;
}

static dg_err set_priority(
	dg__config *config, const dg__option *row, const char *value, dg_error *reterr)
{
	dg_variant_set set;
	dg_error why;
	if (*value && dg_default_parse_words(value, &set, &why) != DG_OK)
		return dg_error_set(reterr, DG_ECONFIG, "%s", why.text);
	return set_text(config, row, value, reterr);
}

static dg_err set_level(
	dg__config *config, const dg__option *row, const char *value, dg_error *reterr)
{
	static const char *const words[] = { "error", "warning", "info", "debug" };
	(void)row;
	for (int i = 0; i < 4; i++) {
		if (strcasecmp(value, words[i]) == 0) {
			config->log_level = i;
			return DG_OK;
		}
	}
	return dg_error_set(
		reterr, DG_ECONFIG, "expected error, warning, info or debug, not '%.60s'", value);
}

static bool is_loopback(const char *host)
{
	struct in_addr v4;
	struct in6_addr v6;
	if (inet_pton(AF_INET, host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* A numeric address, a zone id apart. */
static bool is_address(const char *host)
{
	char plain[64];
	struct in6_addr any;
	size_t length = strcspn(host, "%");
	if (length >= sizeof(plain))
		return false;
	memcpy(plain, host, length);
	plain[length] = '\0';
	return inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, plain, &any) == 1;
}

static dg_err set_listen(
	dg__config *config, const dg__option *row, const char *value, dg_error *reterr)
{
	(void)row;
	const char *colon = strrchr(value, ':');
	bool bracketed = *value == '[';
	const char *host = value + bracketed;
	size_t length = colon ? (size_t)(colon - host) : 0;
	if (colon && bracketed)
		length = length > 0 && host[length - 1] == ']' ? length - 1 : 0;
	dg__listen listen = { .port = 0 };
	char *end = NULL;
	errno = 0;
	unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
	bool fits = length > 0 && length < sizeof(listen.host) && colon[1] >= '0' &&
		    colon[1] <= '9' && !*end && !errno && port <= 65535;
	if (fits) {
		memcpy(listen.host, host, length);
		if (strcasecmp(listen.host, "localhost") == 0)
			memcpy(listen.host, "127.0.0.1", sizeof("127.0.0.1"));
		fits = is_address(listen.host) && bracketed == (strchr(listen.host, ':') != NULL);
	}
	if (!fits)
		return dg_error_set(reterr, DG_ECONFIG,
			"expected ADDRESS:PORT with a numeric address, like 127.0.0.1:8443 or "
			"[::1]:8443, "
			"not '%.80s'",
			value);
	if (config->listen_count == DG__LISTEN_MAX)
		return dg_error_set(reterr, DG_ECONFIG, "more than %d listeners", DG__LISTEN_MAX);
	listen.port = (uint16_t)port;
	listen.loopback = is_loopback(listen.host);
	config->listen[config->listen_count++] = listen;
	return DG_OK;
}

static dg_err add_name(char (*list)[254], size_t *count, const char *value, dg_error *reterr)
{
	size_t length = strlen(value);
	if (*count == DG__NAMES_MAX)
		return dg_error_set(reterr, DG_ECONFIG, "more than %d names", DG__NAMES_MAX);
	if (length == 0 || length >= sizeof(list[0]))
		return dg_error_set(
			reterr, DG_ECONFIG, "a name has 1 to %zu bytes", sizeof(list[0]) - 1);
	memcpy(list[(*count)++], value, length + 1);
	return DG_OK;
}

static dg_err set_name(
	dg__config *config, const dg__option *row, const char *value, dg_error *reterr)
{
	(void)row;
	return add_name(config->names, &config->name_count, value, reterr);
}

static dg_err set_client_name(
	dg__config *config, const dg__option *row, const char *value, dg_error *reterr)
{
	(void)row;
	return add_name(config->client_names, &config->client_name_count, value, reterr);
}

/* Any well-formed name is taken: whether a worker has such a backend is its own to say. */
static dg_err set_backend(
	dg__config *config, const dg__option *row, const char *value, dg_error *reterr)
{
	(void)row;
	size_t length = strlen(value);
	if (length == 0 || length >= sizeof(config->backends[0]) ||
		strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789") != length)
		return dg_error_set(reterr, DG_ECONFIG,
			"expected the name of a backend (devgated --list-backends) or none, not "
			"'%.60s'",
			value);
	for (size_t i = 0; i < config->backend_count; i++)
		if (strcmp(config->backends[i], value) == 0)
			return DG_OK;
	if (config->backend_count == DG__BACKENDS_MAX)
		return dg_error_set(reterr, DG_ECONFIG, "more than %d backends", DG__BACKENDS_MAX);
	memcpy(config->backends[config->backend_count++], value, length + 1);
	return DG_OK;
}

#define AT(member) offsetof(dg__config, member)
#define TEXT(member) AT(member), sizeof(((dg__config *)0)->member), 0, 0
#define FLAG(member) AT(member), 0, 0, 0
#define NUMBER(member, least, most) AT(member), 0, least, most
#define LIST(member) AT(member), 0, 0, 0

static const dg__option options[] = {
	{ "listen", "ADDR:PORT", "listen there; repeats; port 0 takes a free one (127.0.0.1:8443)",
		set_listen, LIST(listen_count), true },
	{ "name", "HOST", "a further name that clients may call this gateway; repeats", set_name,
		LIST(name_count), true },
	{ "plain-http", NULL, "no TLS; for loopback listeners only", set_true, FLAG(plain_http),
		false },
	{ "no-auth", NULL, "whoever reaches a listener may do everything", set_true, FLAG(no_auth),
		false },
	{ "ephemeral", NULL, "keep the state in memory", set_true, FLAG(ephemeral), false },
	{ "print-ready", NULL, "print one line of JSON, {\"url\",\"pin\"}, once ready", set_true,
		FLAG(print_ready), false },
	{ "check-config", NULL, "check the configuration and end", set_true, FLAG(check_only),
		false },
	{ "state-dir", "DIR", "where state is kept (/var/lib/devgate)", set_text, TEXT(state_dir),
		false },
	{ "cert", "FILE", "certificate chain, PEM (a generated one)", set_text, TEXT(cert_file),
		false },
	{ "key", "FILE", "its key, PEM", set_text, TEXT(key_file), false },
	{ "client-ca", "FILE", "CA of client certificates, PEM", set_text, TEXT(client_ca_file),
		false },
	{ "client-name", "NAME",
		"common or alternative name of a certificate that may enter; repeats",
		set_client_name, LIST(client_name_count), true },
	{ "client-scopes", "LIST", "what those may do (read,measure)", set_scopes,
		AT(client_scopes), 0, 0, 0, false },
	{ "tokens-file", "FILE", "tokens: name, scopes and SHA-256 on each line", set_text,
		TEXT(tokens_file), false },
	{ "loopback-scopes", "LIST",
		"what a loopback listener allows without a token (read; read,measure with "
		"--ephemeral)",
		set_scopes, AT(loopback_scopes), 0, 0, 0, false },
	{ "backend", "NAME", "look for this backend's devices only; repeats; none: for no one's",
		set_backend, LIST(backend_count), true },
	{ "priority", "LIST", "order of variants for the default device, like cuda,vulkan",
		set_priority, TEXT(priority), false },
	{ "node-name", "NAME", "name of this node (NODE_NAME, else the host name)", set_text,
		TEXT(node_name), false },
	{ "detect-timeout-ms", "N", "time limit of a backend's detection (30000)", set_number,
		NUMBER(detect_timeout_ms, 1000, 300000), false },
	{ "measure-timeout-ms", "N", "time limit of one measuring run (600000)", set_number,
		NUMBER(measure_timeout_ms, 1000, 3600000), false },
	{ "request-timeout-ms", "N", "a whole request arrives within this (10000)", set_number,
		NUMBER(request_timeout_ms, 100, 600000), false },
	{ "idle-timeout-ms", "N", "an idle connection is kept for this (60000)", set_number,
		NUMBER(idle_timeout_ms, 1000, 3600000), false },
	{ "max-connections", "N", "connections in all (20000)", set_number,
		NUMBER(max_connections, 1, 1000000), false },
	{ "max-connections-per-address", "N", "connections of one address, loopback apart (256)",
		set_number, NUMBER(max_connections_per_address, 1, 1000000), false },
	{ "max-body-bytes", "N", "longest body of a request (1048576)", set_number,
		NUMBER(max_body_bytes, 1024, 8388608), false },
	{ "max-queue", "N", "measuring runs that may wait (64)", set_number,
		NUMBER(max_queue, 1, 10000), false },
	{ "http-threads", "N", "threads that serve requests (2)", set_number,
		NUMBER(http_threads, 1, 256), false },
	{ "log-level", "WORD", "error, warning, info or debug (info)", set_level, AT(log_level), 0,
		0, 0, false },
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))

const dg__option *dg__config_options(size_t *ret_count)
{
	*ret_count = OPTIONS;
	return options;
}

const char *dg__config_usage(void)
{
	static char text[OPTIONS * 128 + 256];
	size_t length = (size_t)snprintf(text, sizeof(text), "  --%-32s %s\n", "config FILE",
		"read options from here (/etc/devgate/devgated.conf)");
	for (size_t i = 0; i < OPTIONS && length < sizeof(text); i++) {
		char flag[64];
		snprintf(flag, sizeof(flag), "%s %s", options[i].name,
			options[i].argument ? options[i].argument : "");
		length += (size_t)snprintf(text + length, sizeof(text) - length, "  --%-32s %s\n",
			flag, options[i].help);
	}
	return text;
}

void dg__config_defaults(dg__config *config)
{
	memset(config, 0, sizeof(*config));
	config->client_scopes = DG__SCOPE_READ | DG__SCOPE_MEASURE;
	config->loopback_scopes = DG__SCOPES_UNSET;
	config->detect_timeout_ms = 30000;
	config->measure_timeout_ms = 600000;
	config->request_timeout_ms = 10000;
	config->idle_timeout_ms = 60000;
	config->max_connections = 20000;
	config->max_connections_per_address = 256;
	config->max_body_bytes = 1048576;
	config->max_queue = 64;
	config->http_threads = 2;
	config->log_level = DG__LOG_INFO;
}

static void fill_text(
	char *text, size_t size, const char *first, const char *second, const char *last)
{
	const char *value = first && *first ? first : second && *second ? second : last;
	if (!*text)
		snprintf(text, size, "%s", value);
}

dg_err dg__config_complete(dg__config *config, dg_error *reterr)
{
	dg_err err = DG_OK;
	char host[256] = "";
	if (config->listen_count == 0)
		err = set_listen(config, NULL, "127.0.0.1:8443", reterr);
	fill_text(config->state_dir, sizeof(config->state_dir), getenv("STATE_DIRECTORY"), NULL,
		"/var/lib/devgate");
	(void)gethostname(host, sizeof(host) - 1);
	fill_text(
		config->node_name, sizeof(config->node_name), getenv("NODE_NAME"), host, "unknown");
	if (config->loopback_scopes == DG__SCOPES_UNSET)
		config->loopback_scopes =
			DG__SCOPE_READ | (config->ephemeral ? DG__SCOPE_MEASURE : 0);
	size_t count;
	const char *const *names = dg__backend_names(&count);
	bool all = config->backend_count == 0;
	for (size_t i = 0; err == DG_OK && all && i < count; i++)
		err = set_backend(config, NULL, names[i], reterr);
	return err;
}

dg_err dg__config_check(const dg__config *config, size_t live_tokens, dg_error *reterr)
{
	bool open = config->no_auth || live_tokens > 0 || *config->client_ca_file;
	if (!*config->cert_file != !*config->key_file)
		return dg_error_set(reterr, DG_ECONFIG, "--cert and --key go together");
	if (config->client_name_count && !*config->client_ca_file)
		return dg_error_set(reterr, DG_ECONFIG, "--client-name needs --client-ca");
	if (*config->client_ca_file && config->plain_http)
		return dg_error_set(reterr, DG_ECONFIG, "--client-ca needs TLS, not --plain-http");
	if (*config->client_ca_file && !config->client_name_count)
		return dg_error_set(reterr, DG_ECONFIG,
			"--client-ca needs at least one --client-name: an allowed name of a "
			"certificate");
	for (size_t i = 0; i < config->listen_count; i++) {
		const dg__listen *listen = &config->listen[i];
		if (listen->loopback)
			continue;
		if (config->plain_http)
			return dg_error_set(reterr, DG_ECONFIG,
				"--plain-http is for loopback listeners alone; %s is none",
				listen->host);
		if (!open)
			return dg_error_set(reterr, DG_ECONFIG,
				"%s can be reached from elsewhere, and nobody has to say who they "
				"are: make a token "
				"(devgated token create), give --client-ca, or say --no-auth",
				listen->host);
	}
	return DG_OK;
}
