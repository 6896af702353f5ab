/* What a gateway is given at its start, and says about it: files, its state folder, its output. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CUnit/CUnit.h>

#include "tests/gateway.h"
#include "tests/test.h"

static void expect_refusal(const char *const *args, const char *path, const char *phrase)
{
	char said[2048];
	int status = dg_test_gateway_run(args, NULL, said, sizeof(said));
	if (status != 2 || !strstr(said, phrase) || !strstr(said, path))
		printf("\n    status %d, expected 2, '%s' and '%s': %s\n", status, path, phrase,
			said);
	CU_ASSERT_EQUAL(status, 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, path));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, phrase));
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CU_ASSERT(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* A certificate and key by the openssl program; false where there is none. */
static bool make_pair(const char *cert, const char *key)
{
	char command[1600];
	snprintf(command, sizeof(command),
		"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
		"-subj /CN=a -keyout %s -out %s 2>/dev/null",
		key, cert);
	if (system(command) == 0)
		return true;
	dg_test_skip("openssl", "the openssl program is needed to make certificates");
	return false;
}

static bool log_tells(const dg_test_gateway *g, const char *phrase)
{
	bool told = false;
	long long until = dg_test_now_ms() + 10000;
	while (!told && dg_test_now_ms() < until) {
		char *log = dg_test_read_file(g->log, NULL);
		told = strstr(log, phrase) != NULL;
		if (!told)
			dg_test_sleep_ms(20);
		free(log);
	}
	return told;
}

static void test_files__what_is_no_regular_file_is_refused(void)
{
	char *directory = dg_test_temp_dir(), fifo[512], cert[512], key[512];
	snprintf(fifo, sizeof(fifo), "%s/pipe", directory);
	snprintf(cert, sizeof(cert), "%s/cert.pem", directory);
	snprintf(key, sizeof(key), "%s/key.pem", directory);
	CU_ASSERT_EQUAL(mkfifo(fifo, 0600), 0);
	if (!make_pair(cert, key)) {
		free(directory);
		return;
	}
	const struct {
		const char *path, *phrase;
	} wrong[] = { { fifo, "a pipe, not a regular file" },
		{ directory, "a folder, not a regular file" },
		{ "/dev/zero", "a device, not a regular file" },
		{ "/nonexistent/file", "cannot be read: No such file" } };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const char *path = wrong[i].path, *phrase = wrong[i].phrase;
		const char *const as_config[] = { "--config", path, NULL };
		const char *const as_tokens[] = { "--tokens-file", path, NULL };
		const char *const as_cert[] = { "--cert", path, "--key", key, NULL };
		const char *const as_key[] = { "--cert", cert, "--key", path, NULL };
		const char *const as_ca[] = { "--client-ca", path, "--client-name", "a", NULL };
		expect_refusal(as_config, path, phrase);
		expect_refusal(as_tokens, path, phrase);
		expect_refusal(as_cert, path, phrase);
		expect_refusal(as_key, path, phrase);
		expect_refusal(as_ca, path, phrase);
	}
	free(directory);
}

static void test_files__too_long_and_empty_ones_are_refused(void)
{
	char *directory = dg_test_temp_dir(), path[512];
	snprintf(path, sizeof(path), "%s/file", directory);
	const char *const as_config[] = { "--config", path, NULL };
	const char *const as_cert[] = { "--cert", path, "--key", path, NULL };
	write_file(path, "");
	expect_refusal(as_cert, path, "cannot be read as PEM: it is empty");
	CU_ASSERT_EQUAL(truncate(path, (1 << 20) + 1), 0);
	expect_refusal(as_config, path, "longer than 1048576 bytes");
	expect_refusal(as_cert, path, "longer than 1048576 bytes");
	free(directory);
}

static int ask_as(const dg_test_gateway *g, const char *token)
{
	char header[160];
	snprintf(header, sizeof(header), "Authorization: Bearer %s", token);
	const char *const headers[] = { header, NULL };
	dg_test_reply reply = dg_test_ask(g, "GET", "/v1/devices", headers, NULL);
	int status = reply.status;
	dg_test_reply_finish(&reply);
	return status;
}

static void test_sighup__a_pipe_for_a_tokens_file_keeps_the_last_tokens(void)
{
	/* The SHA-256 of "secret". */
	static const char line[] =
		"alice read 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\n";
	char *directory = dg_test_temp_dir(), tokens[512];
	snprintf(tokens, sizeof(tokens), "%s/tokens", directory);
	write_file(tokens, line);
	const char *const args[] = { "--tokens-file", tokens, "--loopback-scopes", "", NULL };
	dg_test_gateway g = dg_test_gateway_start(args, NULL);
	CU_ASSERT_EQUAL(ask_as(&g, "secret"), 200);
	CU_ASSERT_EQUAL(ask_as(&g, "wrong"), 401);
	CU_ASSERT_EQUAL(unlink(tokens), 0);
	CU_ASSERT_EQUAL(mkfifo(tokens, 0600), 0);
	kill(g.pid, SIGHUP);
	CU_ASSERT(log_tells(&g, "the last ones stay: the tokens file"));
	CU_ASSERT(log_tells(&g, "a pipe, not a regular file"));
	CU_ASSERT_EQUAL(ask_as(&g, "secret"), 200);
	int status = -1;
	CU_ASSERT(dg_test_gateway_stop(&g, &status) < 4000);
	CU_ASSERT_EQUAL(status, 0);
	free(directory);
}

static void test_state__a_second_gateway_is_refused_until_the_first_ends(void)
{
	char *directory = dg_test_temp_dir(), holder[64], said[2048];
	const char *const args[] = { "bare", "--state-dir", directory, "--listen", "127.0.0.1:0",
		"--print-ready", NULL };
	dg_test_gateway g = dg_test_gateway_start(args, NULL);
	snprintf(holder, sizeof(holder), "another devgated, process %ld;", (long)g.pid);
	expect_refusal(args, directory, holder);
	dg_test_reply reply = dg_test_ask(&g, "GET", "/healthz", NULL, NULL);
	CU_ASSERT_EQUAL(reply.status, 200);
	dg_test_reply_finish(&reply);
	/* Beside a gateway: tokens, a check, and one that keeps nothing. */
	const char *const token[] = { "bare", "token", "create", "--name", "a", "--scopes", "read",
		"--state-dir", directory, NULL };
	const char *const check[] = { "bare", "--check-config", "--state-dir", directory, NULL };
	const char *const ephemeral[] = { "--state-dir", directory, NULL };
	CU_ASSERT_EQUAL(dg_test_gateway_run(token, NULL, said, sizeof(said)), 0);
	CU_ASSERT_EQUAL(dg_test_gateway_run(check, NULL, said, sizeof(said)), 0);
	dg_test_gateway other = dg_test_gateway_start(ephemeral, NULL);
	dg_test_gateway_stop(&other, NULL);
	dg_test_gateway_stop(&g, NULL);
	g = dg_test_gateway_start(args, NULL);
	dg_test_gateway_stop(&g, NULL);
	free(directory);
}

/* Its workers end a little later than it; they must not hold the folder until then. */
static void test_state__a_killed_gateway_lets_go_at_once(void)
{
	char *directory = dg_test_temp_dir();
	const char *const args[] = { "bare", "--state-dir", directory, "--listen", "127.0.0.1:0",
		"--print-ready", "--loopback-scopes", "read,measure", NULL };
	static const char *const headers[] = { "Content-Type: application/json",
		"Prefer: respond-async", NULL };
	dg_test_gateway g = dg_test_gateway_start(args, NULL);
	dg_test_reply reply = dg_test_ask(&g, "POST", "/v1/devices/cpu/throughput", headers,
		"{\"keys\":[\"compute:f32\",\"compute:f64\",\"memory\"],\"refresh\":true,"
		"\"sustained\":true}");
	CU_ASSERT_EQUAL(reply.status, 202);
	dg_test_reply_finish(&reply);
	pid_t worker = 0;
	for (unsigned i = 0; i < 2000 && !worker; i++) {
		dg_test_sleep_ms(5);
		worker = dg_test_child_of(g.pid, "--backend cpu");
	}
	CU_ASSERT_FATAL(worker > 0);
	CU_ASSERT_EQUAL(kill(worker, SIGSTOP), 0);
	kill(g.pid, SIGKILL);
	dg_test_gateway_stop(&g, NULL);
	g = dg_test_gateway_start(args, NULL);
	dg_test_gateway_stop(&g, NULL);
	kill(worker, SIGCONT);
	CU_ASSERT(dg_test_ends_within(worker, 5000));
	free(directory);
}

static void test_state__a_lock_that_is_no_file_is_refused(void)
{
	char *directory = dg_test_temp_dir(), path[512], said[2048];
	const char *const args[] = { "bare", "--state-dir", directory, "--listen", "127.0.0.1:0",
		NULL };
	snprintf(path, sizeof(path), "%s/lock", directory);
	CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
	CU_ASSERT_EQUAL(dg_test_gateway_run(args, NULL, said, sizeof(said)), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, path));
	free(directory);
}

static void copy_file(const char *from, const char *to)
{
	char *text = dg_test_read_file(from, NULL);
	write_file(to, text);
	free(text);
}

/* A new connection is served with the pin that g holds. */
static int ask_anew(const dg_test_gateway *g)
{
	dg_test_reply reply = dg_test_ask(g, "GET", "/healthz", NULL, NULL);
	dg_test_reply_finish(&reply);
	return reply.status;
}

/* The files become other ones and are read again: the log tells the phrase, the last pair stays. */
static void expect_kept(const dg_test_gateway *g, const char *phrase)
{
	CU_ASSERT_EQUAL(truncate(g->log, 0), 0);
	kill(g->pid, SIGHUP);
	CU_ASSERT(log_tells(g, phrase));
	CU_ASSERT(log_tells(g, "the last one stays"));
	CU_ASSERT_EQUAL(ask_anew(g), 200);
}

static void take_told_pin(dg_test_gateway *g)
{
	CU_ASSERT(log_tells(g, "the certificate was read again, pin sha256//"));
	char *log = dg_test_read_file(g->log, NULL);
	const char *pin = strstr(log, "read again, pin ");
	if (pin)
		snprintf(g->pin, sizeof(g->pin), "%.52s", pin + strlen("read again, pin "));
	free(log);
}

static void test_sighup__a_bad_pair_keeps_the_last_one_and_says_why(void)
{
	char *directory = dg_test_temp_dir(), cert[512], key[512], other_cert[512], other_key[512];
	snprintf(cert, sizeof(cert), "%s/cert.pem", directory);
	snprintf(key, sizeof(key), "%s/key.pem", directory);
	snprintf(other_cert, sizeof(other_cert), "%s/other-cert.pem", directory);
	snprintf(other_key, sizeof(other_key), "%s/other-key.pem", directory);
	if (!make_pair(cert, key) || !make_pair(other_cert, other_key)) {
		free(directory);
		return;
	}
	const char *const args[] = { "--cert", cert, "--key", key, NULL };
	dg_test_gateway g = dg_test_gateway_start(args, NULL);
	CU_ASSERT_EQUAL(ask_anew(&g), 200);
	write_file(cert, "garbage");
	expect_kept(&g, "cert.pem holds no PEM certificate");
	char *whole = dg_test_read_file(other_cert, NULL);
	whole[strlen(whole) / 2] = '\0';
	write_file(cert, whole);
	free(whole);
	expect_kept(&g, "cert.pem holds no PEM certificate");
	copy_file(other_cert, cert);
	expect_kept(&g, "do not belong together");
	write_file(key, "");
	expect_kept(&g, "key.pem cannot be read as PEM: it is empty");
	CU_ASSERT_EQUAL(unlink(key), 0);
	expect_kept(&g, "key.pem cannot be read: No such file");
	CU_ASSERT_EQUAL(mkfifo(key, 0600), 0);
	expect_kept(&g, "key.pem is a pipe, not a regular file");
	CU_ASSERT_EQUAL(unlink(key), 0);
	copy_file(other_key, key);
	char old[sizeof(g.pin)];
	memcpy(old, g.pin, sizeof(old));
	CU_ASSERT_EQUAL(truncate(g.log, 0), 0);
	kill(g.pid, SIGHUP);
	take_told_pin(&g);
	CU_ASSERT_STRING_NOT_EQUAL(g.pin, old);
	CU_ASSERT_EQUAL(ask_anew(&g), 200);
	memcpy(g.pin, old, sizeof(old));
	CU_ASSERT_EQUAL(ask_anew(&g), 0);
	dg_test_gateway_stop(&g, NULL);
	free(directory);
}

static void expect_lost_output(int out, const char *const *args)
{
	char said[2048];
	int status = dg_test_gateway_run_to(out, args, NULL, said, sizeof(said));
	const char *told = strstr(said, "standard output cannot be written: ");
	if (status != 1 || !told)
		printf("\n    status %d, expected 1: %s\n", status, said);
	CU_ASSERT_EQUAL(status, 1);
	CU_ASSERT_PTR_NOT_NULL(told);
	CU_ASSERT(!told || !strstr(told + 1, "standard output"));
}

static void test_output__what_is_lost_is_an_error(void)
{
	static const char *const ready[] = { "--backend", "none", NULL };
	static const char *const measured[] = { "--backend", "cpu", NULL };
	static const char *const check[] = { "--check-config", NULL };
	static const char *const help[] = { "bare", "--help", NULL };
	static const char *const version[] = { "bare", "--version", NULL };
	static const char *const backends[] = { "bare", "--list-backends", NULL };
	const char *const *const all[] = { ready, measured, check, help, version, backends };
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	if (full < 0)
		dg_test_skip("full", "no /dev/full here");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (full >= 0)
			expect_lost_output(full, all[i]);
		expect_lost_output(-1, all[i]);
	}
	if (full >= 0)
		close(full);
}

/* The next file opened takes a closed stream's number, and would get what is printed. */
static void test_output__a_closed_stream_leaves_the_state_alone(void)
{
	char *directory = dg_test_temp_dir(), said[2048];
	const char *const create[] = { "bare", "token", "create", "--name", "a", "--scopes", "read",
		"--state-dir", directory, NULL };
	const char *const list[] = { "bare", "token", "list", "--state-dir", directory, NULL };
	const char *const serve[] = { "bare", "--state-dir", directory, "--listen", "127.0.0.1:0",
		"--print-ready", NULL };
	expect_lost_output(-1, create);
	expect_lost_output(-1, serve);
	CU_ASSERT_EQUAL(dg_test_gateway_run(list, NULL, said, sizeof(said)), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "live"));
	free(directory);
}

static const dg_test_case cases[] = {
	DG_TEST(test_files__what_is_no_regular_file_is_refused),
	DG_TEST(test_files__too_long_and_empty_ones_are_refused),
	DG_TEST(test_sighup__a_pipe_for_a_tokens_file_keeps_the_last_tokens),
	DG_TEST(test_sighup__a_bad_pair_keeps_the_last_one_and_says_why),
	DG_TEST(test_state__a_second_gateway_is_refused_until_the_first_ends),
	DG_TEST(test_state__a_killed_gateway_lets_go_at_once),
	DG_TEST(test_state__a_lock_that_is_no_file_is_refused),
	DG_TEST(test_output__what_is_lost_is_an_error),
	DG_TEST(test_output__a_closed_stream_leaves_the_state_alone),
};

DG_TEST_MAIN("the start of a gateway", cases)
