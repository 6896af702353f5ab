/* Where the gateway's options come from, which of them win, and what is refused. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/core/names.h"
#include "server/config_internal.h"
#include "server/log.h"
#include "tests/test.h"

static dg__config config;
static dg_error why;

/* The configuration file that a case works with. */
static char path[600];

/* Nothing but the case says anything. */
static void clear_environment(void)
{
	static const char *const others[] = { "DEVGATE_CONFIG", "STATE_DIRECTORY", "NODE_NAME" };
	size_t count;
	const dg__option *rows = dg__config_options(&count);
	for (size_t i = 0; i < count; i++) {
		char name[64];
		snprintf(name, sizeof(name), "DEVGATE_%s", rows[i].name);
		for (char *c = name; *c; c++)
			*c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
		unsetenv(name);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		unsetenv(others[i]);
}

static void write_file(const char *text)
{
	char *folder = dg_test_temp_dir();
	clear_environment();
	snprintf(path, sizeof(path), "%s/devgated.conf", folder);
	free(folder);
	FILE *f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

/* Load with the flags, which end with NULL, after the file of the case. */
static dg_err load(const char *const *flags)
{
	char *argv[40] = { "devgated", "--config", path };
	int argc = *path ? 3 : 1;
	for (size_t i = 0; flags && flags[i]; i++)
		argv[argc++] = (char *)(uintptr_t)flags[i];
	memset(&config, 0xa5, sizeof(config));
	why = (dg_error){ .code = DG_OK };
	return dg__config_load(argc, argv, &config, &why);
}

#define LOAD(...) load((const char *const[]){ __VA_ARGS__, NULL })

static dg_err parse(const char *text, size_t length)
{
	dg__config_defaults(&config);
	why = (dg_error){ .code = DG_OK };
	return dg__config_parse(text, length, "a.conf", &config, &why);
}

static void check_refused(const char *text, const char *line, const char *reason)
{
	CU_ASSERT_EQUAL(parse(text, strlen(text)), DG_ECONFIG);
	bool told = strstr(why.text, "a.conf, line ") && strstr(why.text, line) &&
		    strstr(why.text, reason);
	if (!told)
		printf("\n    %s\n    ", why.text);
	CU_ASSERT_TRUE(told);
}

static void test_load__gives_defaults_where_nobody_says(void)
{
	write_file("");
	CU_ASSERT_EQUAL(load(NULL), DG_OK);
	CU_ASSERT_EQUAL(config.listen_count, 1);
	CU_ASSERT_STRING_EQUAL(config.listen[0].host, "127.0.0.1");
	CU_ASSERT_EQUAL(config.listen[0].port, 8443);
	CU_ASSERT_TRUE(config.listen[0].loopback);
	CU_ASSERT_STRING_EQUAL(config.state_dir, "/var/lib/devgate");
	CU_ASSERT_EQUAL(config.loopback_scopes, DG__SCOPE_READ);
	CU_ASSERT_EQUAL(config.client_scopes, DG__SCOPE_READ | DG__SCOPE_MEASURE);
	CU_ASSERT_EQUAL(config.detect_timeout_ms, 30000);
	CU_ASSERT_EQUAL(config.max_body_bytes, 1048576);
	CU_ASSERT_TRUE(config.backend_count > 0);
	CU_ASSERT_FALSE(config.plain_http || config.no_auth || config.ephemeral);
	CU_ASSERT_TRUE(*config.node_name);
}

static void test_load__flags_win_over_variables_and_those_over_the_file(void)
{
	write_file("max-queue = 1\nhttp_threads = 3\nnode-name = file\n");
	setenv("DEVGATE_NODE_NAME", "variable", 1);
	setenv("DEVGATE_HTTP_THREADS", "4", 1);
	CU_ASSERT_EQUAL(LOAD("--node-name=flag"), DG_OK);
	unsetenv("DEVGATE_NODE_NAME");
	unsetenv("DEVGATE_HTTP_THREADS");
	CU_ASSERT_STRING_EQUAL(config.node_name, "flag");
	CU_ASSERT_EQUAL(config.http_threads, 4);
	CU_ASSERT_EQUAL(config.max_queue, 1);
}

static void test_load__a_list_of_a_stronger_source_replaces_the_weaker_one(void)
{
	write_file("listen = 127.0.0.1:1, [::1]:2\nlisten = 127.0.0.1:3\nname = a,b\n");
	CU_ASSERT_EQUAL(load(NULL), DG_OK);
	CU_ASSERT_EQUAL(config.listen_count, 3);
	CU_ASSERT_STRING_EQUAL(config.listen[1].host, "::1");
	CU_ASSERT_EQUAL(config.listen[2].port, 3);
	CU_ASSERT_EQUAL(LOAD("--listen", "127.0.0.1:4", "--listen=127.0.0.1:5"), DG_OK);
	CU_ASSERT_EQUAL(config.listen_count, 2);
	CU_ASSERT_EQUAL(config.listen[0].port, 4);
	CU_ASSERT_EQUAL(config.listen[1].port, 5);
	CU_ASSERT_EQUAL(config.name_count, 2);
	CU_ASSERT_STRING_EQUAL(config.names[1], "b");
}

static void test_load__refuses_what_it_does_not_know_and_names_the_nearest(void)
{
	write_file("");
	CU_ASSERT_EQUAL(LOAD("--max-que", "3"), DG_ECONFIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "max-queue"));
	CU_ASSERT_EQUAL(LOAD("stray"), DG_ECONFIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "stray"));
	CU_ASSERT_EQUAL(LOAD("--max-queue"), DG_ECONFIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "--max-queue"));
	setenv("DEVGATE_MAX_QUEUE", "many", 1);
	CU_ASSERT_EQUAL(load(NULL), DG_ECONFIG);
	unsetenv("DEVGATE_MAX_QUEUE");
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "DEVGATE_MAX_QUEUE"));
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "1 to 10000"));
}

static void test_load__leaves_the_result_alone_on_failure(void)
{
	write_file("max-queue = 0\n");
	dg__config untouched;
	memset(&untouched, 0xa5, sizeof(untouched));
	CU_ASSERT_EQUAL(load(NULL), DG_ECONFIG);
	CU_ASSERT_EQUAL(memcmp(&config, &untouched, sizeof(config)), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, path));
}

static void test_load__finds_its_file_by_flag_or_variable(void)
{
	char flag[700], weaker[600];
	write_file("max-queue = 1\n");
	memcpy(weaker, path, sizeof(weaker));
	write_file("max-queue = 2\n");
	snprintf(flag, sizeof(flag), "--config=%s", path);
	*path = '\0';
	setenv("DEVGATE_CONFIG", weaker, 1);
	CU_ASSERT_EQUAL(load(NULL), DG_OK);
	CU_ASSERT_EQUAL(config.max_queue, 1);
	CU_ASSERT_EQUAL(LOAD("--ephemeral", flag), DG_OK);
	CU_ASSERT_EQUAL(config.max_queue, 2);
	CU_ASSERT_TRUE(config.ephemeral);
	setenv("DEVGATE_CONFIG", "/nonexistent/devgated.conf", 1);
	CU_ASSERT_EQUAL(load(NULL), DG_ECONFIG);
	clear_environment();
}

static void test_load__takes_what_a_service_manager_says_where_nobody_else_does(void)
{
	write_file("");
	setenv("STATE_DIRECTORY", "/service/state", 1);
	setenv("NODE_NAME", "node7", 1);
	CU_ASSERT_EQUAL(load(NULL), DG_OK);
	CU_ASSERT_STRING_EQUAL(config.state_dir, "/service/state");
	CU_ASSERT_STRING_EQUAL(config.node_name, "node7");
	setenv("DEVGATE_STATE_DIR", "/own/state", 1);
	CU_ASSERT_EQUAL(LOAD("--node-name", "node8"), DG_OK);
	CU_ASSERT_STRING_EQUAL(config.state_dir, "/own/state");
	CU_ASSERT_STRING_EQUAL(config.node_name, "node8");
	clear_environment();
}

static void test_load__refuses_what_does_not_fit(void)
{
	char text[sizeof(config.node_name) + 1], list[2 * DG__NAMES_MAX + 2];
	write_file("");
	memset(text, 'n', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	CU_ASSERT_EQUAL(LOAD("--node-name", text), DG_ECONFIG);
	CU_ASSERT_EQUAL(LOAD("--node-name", text + 1), DG_OK);
	CU_ASSERT_STRING_EQUAL(config.node_name, text + 1);
	memset(list, 'n', sizeof(list));
	for (size_t i = 1; i < sizeof(list); i += 2)
		list[i] = ',';
	list[2 * DG__NAMES_MAX + 1] = '\0';
	setenv("DEVGATE_NAME", list, 1);
	CU_ASSERT_EQUAL(load(NULL), DG_ECONFIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "more than 64"));
	setenv("DEVGATE_NAME", list + 2, 1);
	CU_ASSERT_EQUAL(load(NULL), DG_OK);
	CU_ASSERT_EQUAL(config.name_count, DG__NAMES_MAX);
	clear_environment();
}

static void test_load__refuses_a_file_that_is_too_long(void)
{
	size_t length = ((size_t)1 << 20) + 1;
	char *text = malloc(length + 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	memset(text, '\n', length);
	text[length] = '\0';
	write_file(text);
	CU_ASSERT_EQUAL(load(NULL), DG_ECONFIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "longer than 1048576 bytes"));
	write_file(text + 1);
	CU_ASSERT_EQUAL(load(NULL), DG_OK);
	free(text);
}

static void test_load__refuses_a_named_file_that_cannot_be_read(void)
{
	clear_environment();
	snprintf(path, sizeof(path), "/nonexistent/devgated.conf");
	CU_ASSERT_EQUAL(load(NULL), DG_ECONFIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "/nonexistent/devgated.conf"));
}

static void test_parse__tells_the_line_and_what_was_expected(void)
{
	check_refused("\n\nmax-queue = x\n", "line 3", "1 to 10000");
	check_refused("max-queue = 10001\n", "line 1", "1 to 10000");
	check_refused("max-queue = -1\n", "line 1", "1 to 10000");
	check_refused("max-queue = 1x\n", "line 1", "1 to 10000");
	check_refused("max-queue = 0x10\n", "line 1", "1 to 10000");
	check_refused("max-queue = 18446744073709551617\n", "line 1", "1 to 10000");
	check_refused("[devgated]\nfoo = 1\n", "line 2", "unknown key");
	check_refused("[other]\nmax-queue = 1\n", "line 2", "unknown section");
	check_refused("max-queue\n", "line 1", "NAME = VALUE");
	check_refused("max-queue =\n", "line 1", "no value");
	check_refused("plain-http = perhaps\n", "line 1", "true or false");
	check_refused("client-scopes = read,write\n", "line 1", "'write' is no scope");
	check_refused("priority = cuda,zuse\n", "line 1", "zuse");
	check_refused("log-level = loud\n", "line 1", "error, warning, info or debug");
	check_refused("backend = ../cuda\n", "line 1", "name of a backend");
}

static void test_parse__refuses_lines_that_would_be_cut(void)
{
	char text[700];
	memset(text, 'n', sizeof(text));
	memcpy(text, "# fine\nnode-name = ", 19);
	text[sizeof(text) - 1] = '\0';
	check_refused(text, "line 2", "longer than");
	CU_ASSERT_EQUAL(parse("node-name = a\0b\n", 16), DG_ECONFIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "NUL"));
}

/* Whatever limit the reader of lines was built with, none that is taken is cut. The rest of a line
 * that was would be taken for a comment here. */
static void test_parse__takes_lines_whole_or_not_at_all(void)
{
	unsigned taken = 0;
	for (size_t length = 13; length < 300; length++) {
		char text[400] = "node-name = ";
		memset(text + 12, '#', length - 12);
		memcpy(text + length, "\nmax-queue = 9\n", sizeof("\nmax-queue = 9\n"));
		if (parse(text, strlen(text)) != DG_OK)
			continue;
		taken++;
		CU_ASSERT_EQUAL(strlen(config.node_name), length - 12);
		CU_ASSERT_EQUAL(config.max_queue, 9);
	}
	CU_ASSERT_TRUE(taken > 100);
}

static void test_parse__knows_words_for_yes_and_no(void)
{
	static const char *const words[] = { "true", "YES", "1", "on", "false", "no", "0", "Off" };
	for (size_t i = 0; i < 8; i++) {
		char text[60];
		/* From the other value: a switch that does nothing is seen. */
		snprintf(text, sizeof(text), "no-auth = %s\nno-auth = %s\n", i < 4 ? "no" : "yes",
			words[i]);
		CU_ASSERT_EQUAL(parse(text, strlen(text)), DG_OK);
		CU_ASSERT_EQUAL(config.no_auth, i < 4);
	}
}

static void test_parse__knows_the_levels_of_the_log(void)
{
	static const char *const words[] = { "error", "Warning", "info", "debug" };
	static const int levels[] = { DG__LOG_ERROR, DG__LOG_WARNING, DG__LOG_INFO, DG__LOG_DEBUG };
	for (size_t i = 0; i < 4; i++) {
		char text[60];
		snprintf(text, sizeof(text), "log-level = %s\n", words[i]);
		CU_ASSERT_EQUAL(parse(text, strlen(text)), DG_OK);
		CU_ASSERT_EQUAL(config.log_level, levels[i]);
	}
}

static void test_parse__reads_sections_comments_and_both_spellings(void)
{
	const char text[] = "# words\n[DevGated]\r\nmax_queue=7\nhttp-threads = 5 ; more\n"
			    "ephemeral = yes\nloopback-scopes = READ,admin\n";
	CU_ASSERT_EQUAL(parse(text, strlen(text)), DG_OK);
	CU_ASSERT_EQUAL(config.max_queue, 7);
	CU_ASSERT_EQUAL(config.http_threads, 5);
	CU_ASSERT_TRUE(config.ephemeral);
	CU_ASSERT_EQUAL(config.loopback_scopes, DG__SCOPE_READ | DG__SCOPE_ADMIN);
}

static void test_listen__takes_numeric_addresses_with_a_port(void)
{
	static const char *const bad[] = { "127.0.0.1", ":8443", "127.0.0.1:", "127.0.0.1:65536",
		"127.0.0.1:-1", "127.0.0.1:+1", "127.0.0.1: 1", "127.0.0.1:1x", "::1:8443", "[::1]",
		"[::1:8443", "[127.0.0.1]:1", "example.com:1", "[]:1", "256.0.0.1:1",
		"127.0.0.1:99999999999999999999" };
	write_file("");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(LOAD("--listen", bad[i]), DG_ECONFIG);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "--listen"));
	}
	CU_ASSERT_EQUAL(LOAD("--listen", "LocalHost:0", "--listen", "0.0.0.0:65535"), DG_OK);
	CU_ASSERT_STRING_EQUAL(config.listen[0].host, "127.0.0.1");
	CU_ASSERT_TRUE(config.listen[0].loopback);
	CU_ASSERT_FALSE(config.listen[1].loopback);
	CU_ASSERT_EQUAL(config.listen[1].port, 65535);
	CU_ASSERT_EQUAL(LOAD("--listen", "127.9.9.9:1", "--listen", "[::]:1"), DG_OK);
	CU_ASSERT_TRUE(config.listen[0].loopback);
	CU_ASSERT_FALSE(config.listen[1].loopback);
}

static void test_listen__has_a_limit(void)
{
	char text[DG__LISTEN_MAX * 20 + 40] = "";
	size_t length = 0;
	for (int i = 0; i <= DG__LISTEN_MAX; i++)
		length += (size_t)snprintf(
			text + length, sizeof(text) - length, "listen=127.0.0.1:%d\n", i);
	check_refused(text, "line 17", "more than 16");
}

static void test_scopes__read_back_as_written(void)
{
	for (unsigned scopes = 0; scopes < 16; scopes++) {
		char text[64];
		unsigned again = 99;
		size_t length = dg__scopes_format(scopes, text, sizeof(text));
		CU_ASSERT_EQUAL(length, strlen(text));
		CU_ASSERT_EQUAL(dg__scopes_parse(text, &again, &why), DG_OK);
		CU_ASSERT_EQUAL(again, scopes);
	}
}

static void test_scopes__refuse_unknown_and_missing_words(void)
{
	static const char *const bad[] = { "write", "read,", ",read", "read,,measure", "read ",
		"rea", "reader" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		unsigned scopes = 77;
		CU_ASSERT_EQUAL(dg__scopes_parse(bad[i], &scopes, &why), DG_EINVALID);
		CU_ASSERT_EQUAL(scopes, 77);
	}
}

static void test_complete__ephemeral_lets_loopback_measure(void)
{
	write_file("");
	CU_ASSERT_EQUAL(LOAD("--ephemeral"), DG_OK);
	CU_ASSERT_EQUAL(config.loopback_scopes, DG__SCOPE_READ | DG__SCOPE_MEASURE);
	CU_ASSERT_EQUAL(LOAD("--ephemeral", "--loopback-scopes", ""), DG_OK);
	CU_ASSERT_EQUAL(config.loopback_scopes, 0);
}

static void test_check__listening_beyond_loopback_needs_credentials(void)
{
	write_file("");
	CU_ASSERT_EQUAL(LOAD("--listen", "0.0.0.0:1"), DG_OK);
	CU_ASSERT_EQUAL(dg__config_check(&config, 0, &why), DG_ECONFIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "0.0.0.0"));
	CU_ASSERT_EQUAL(dg__config_check(&config, 1, &why), DG_OK);
	CU_ASSERT_EQUAL(LOAD("--listen", "0.0.0.0:1", "--no-auth"), DG_OK);
	CU_ASSERT_EQUAL(dg__config_check(&config, 0, &why), DG_OK);
	CU_ASSERT_EQUAL(LOAD("--listen", "0.0.0.0:1", "--no-auth", "--plain-http"), DG_OK);
	CU_ASSERT_EQUAL(dg__config_check(&config, 1, &why), DG_ECONFIG);
	CU_ASSERT_EQUAL(
		LOAD("--listen", "0.0.0.0:1", "--client-ca", "a", "--client-name", "b"), DG_OK);
	CU_ASSERT_EQUAL(dg__config_check(&config, 0, &why), DG_OK);
	CU_ASSERT_EQUAL(LOAD("--listen", "127.0.0.1:1", "--listen", "[::]:1"), DG_OK);
	CU_ASSERT_EQUAL(dg__config_check(&config, 0, &why), DG_ECONFIG);
	CU_ASSERT_EQUAL(LOAD("--plain-http"), DG_OK);
	CU_ASSERT_EQUAL(dg__config_check(&config, 0, &why), DG_OK);
}

static void test_check__options_that_go_together_do(void)
{
	write_file("");
	CU_ASSERT_EQUAL(LOAD("--cert", "a"), DG_OK);
	CU_ASSERT_EQUAL(dg__config_check(&config, 0, &why), DG_ECONFIG);
	CU_ASSERT_EQUAL(LOAD("--key", "a"), DG_OK);
	CU_ASSERT_EQUAL(dg__config_check(&config, 0, &why), DG_ECONFIG);
	CU_ASSERT_EQUAL(LOAD("--cert", "a", "--key", "b"), DG_OK);
	CU_ASSERT_EQUAL(dg__config_check(&config, 0, &why), DG_OK);
	CU_ASSERT_EQUAL(LOAD("--client-name", "a"), DG_OK);
	CU_ASSERT_EQUAL(dg__config_check(&config, 0, &why), DG_ECONFIG);
	CU_ASSERT_EQUAL(LOAD("--client-ca", "a"), DG_OK);
	CU_ASSERT_EQUAL(dg__config_check(&config, 0, &why), DG_ECONFIG);
	CU_ASSERT_EQUAL(LOAD("--client-ca", "a", "--client-name", "b"), DG_OK);
	CU_ASSERT_EQUAL(dg__config_check(&config, 0, &why), DG_OK);
	CU_ASSERT_EQUAL(LOAD("--client-ca", "a", "--client-name", "b", "--plain-http"), DG_OK);
	CU_ASSERT_EQUAL(dg__config_check(&config, 0, &why), DG_ECONFIG);
}

static void test_backends__are_those_asked_for_and_each_once(void)
{
	size_t known;
	(void)dg__backend_names(&known);
	write_file("");
	CU_ASSERT_EQUAL(load(NULL), DG_OK);
	CU_ASSERT_EQUAL(config.backend_count, known);
	write_file("backend = cuda\nbackend = cuda\n");
	CU_ASSERT_EQUAL(load(NULL), DG_OK);
	CU_ASSERT_EQUAL(config.backend_count, 1);
	CU_ASSERT_STRING_EQUAL(config.backends[0], "cuda");
}

static const dg_test_case cases[] = {
	DG_TEST(test_backends__are_those_asked_for_and_each_once),
	DG_TEST(test_load__gives_defaults_where_nobody_says),
	DG_TEST(test_load__flags_win_over_variables_and_those_over_the_file),
	DG_TEST(test_load__a_list_of_a_stronger_source_replaces_the_weaker_one),
	DG_TEST(test_load__refuses_what_it_does_not_know_and_names_the_nearest),
	DG_TEST(test_load__leaves_the_result_alone_on_failure),
	DG_TEST(test_load__finds_its_file_by_flag_or_variable),
	DG_TEST(test_load__takes_what_a_service_manager_says_where_nobody_else_does),
	DG_TEST(test_load__refuses_what_does_not_fit),
	DG_TEST(test_load__refuses_a_file_that_is_too_long),
	DG_TEST(test_load__refuses_a_named_file_that_cannot_be_read),
	DG_TEST(test_parse__tells_the_line_and_what_was_expected),
	DG_TEST(test_parse__refuses_lines_that_would_be_cut),
	DG_TEST(test_parse__takes_lines_whole_or_not_at_all),
	DG_TEST(test_parse__knows_words_for_yes_and_no),
	DG_TEST(test_parse__knows_the_levels_of_the_log),
	DG_TEST(test_parse__reads_sections_comments_and_both_spellings),
	DG_TEST(test_listen__takes_numeric_addresses_with_a_port),
	DG_TEST(test_listen__has_a_limit),
	DG_TEST(test_scopes__read_back_as_written),
	DG_TEST(test_scopes__refuse_unknown_and_missing_words),
	DG_TEST(test_complete__ephemeral_lets_loopback_measure),
	DG_TEST(test_check__listening_beyond_loopback_needs_credentials),
	DG_TEST(test_check__options_that_go_together_do),
};

DG_TEST_MAIN("config", cases)
