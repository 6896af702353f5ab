/*
 * A gateway of the built program, as a child of the test, and a plain HTTP client to ask it with.
 */
#ifndef DEVGATE_TESTS_GATEWAY_H
#define DEVGATE_TESTS_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct dg_test_gateway {
	pid_t pid;
	char url[128]; /**< of the first listener */
	char pin[80]; /**< "" for plain HTTP */
	unsigned port;
	char log[512]; /**< file of its standard error */
} dg_test_gateway;

/**
 * Start devgated on a free loopback port and wait until it is ready (20 s). Fails the case fatally
 * where it does not come up.
 *
 * @param args  Further options, ends with NULL; `--ephemeral`, `--listen 127.0.0.1:0` and
 *              `--print-ready` stand before them unless args begins with "bare".
 * @param env   "NAME=value" besides PATH, ends with NULL; NULL: none.
 */
dg_test_gateway dg_test_gateway_start(const char *const *args, const char *const *env);
/** SIGTERM; how long it took to end in milliseconds (killed after 10 s); its exit status in
 * *ret_status. */
long long dg_test_gateway_stop(dg_test_gateway *gateway, int *ret_status);
/** Run devgated to its end (10 s) and give its exit status; what it said on standard error in buf.
 * */
int dg_test_gateway_run(const char *const *args, const char *const *env, char *buf, size_t size);
/** As dg_test_gateway_run(), with standard output elsewhere: out, borrowed; -1: closed. */
int dg_test_gateway_run_to(
	int out, const char *const *args, const char *const *env, char *buf, size_t size);

/** A reply. Owned; dg_test_reply_finish(). */
typedef struct dg_test_reply {
	int status; /**< 0: none came */
	char *body, *head; /**< never NULL; head: its lines as they came */
	char content_type[128];
	long long elapsed_ms;
} dg_test_reply;

/**
 * Ask. Trusts the gateway's pin. Every exchange with a reply is appended to the file $DG_RECORD,
 * where that is set.
 *
 * @param headers  "Name: value", ends with NULL; NULL: none.
 * @param body     NULL: none.
 */
dg_test_reply dg_test_ask(const dg_test_gateway *gateway, const char *method, const char *path,
	const char *const *headers, const char *body);
/** As dg_test_ask(), with a time limit of its own (60 s there). */
dg_test_reply dg_test_ask_within(const dg_test_gateway *gateway, const char *method,
	const char *path, const char *const *headers, const char *body, long timeout_ms);
void dg_test_reply_finish(dg_test_reply *reply);
/** A header's value from the reply's head, or NULL; static buffer of the calling thread. */
const char *dg_test_reply_header(const dg_test_reply *reply, const char *name);

/** Send bytes as they are to a plain gateway, and give what comes until it closes (owned) or
 * timeout. */
char *dg_test_raw(const dg_test_gateway *gateway, const char *bytes, size_t length, int timeout_ms);
/** A plain connection to the gateway's port; -1: refused. */
int dg_test_connect(const dg_test_gateway *gateway);

/** Resident memory of a process in KiB, and its open descriptors; -1 where the system does not
 * tell. */
long dg_test_rss_kib(pid_t pid);
long dg_test_descriptors(pid_t pid);
/** Whether a process that is no child of ours has ended, or does within timeout_ms. */
bool dg_test_ends_within(pid_t pid, unsigned timeout_ms);
/** Pid of a child of pid whose command line has the word; 0: none. */
pid_t dg_test_child_of(pid_t pid, const char *word);

#endif
