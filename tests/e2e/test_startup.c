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

static const dg_test_case cases[] = {
	DG_TEST(test_files__what_is_no_regular_file_is_refused),
	DG_TEST(test_files__too_long_and_empty_ones_are_refused),
	DG_TEST(test_sighup__a_pipe_for_a_tokens_file_keeps_the_last_tokens),
};

DG_TEST_MAIN("the start of a gateway", cases)
