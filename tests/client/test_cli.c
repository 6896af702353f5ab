/* The command-line tool, run as a user runs it. */
#include "tests/test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/tool.h"

/* Every how many vectors one is run through the tool; the library's own tests run all of them. */
#define VECTOR_STRIDE 4

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define RUN(...) dg_test_tool_run(&(dg_test_tool_request){ .args = ARGS(__VA_ARGS__) })
#define RUN_ENV(environment, ...) \
	dg_test_tool_run(&(dg_test_tool_request){ .args = ARGS(__VA_ARGS__), .env = environment })

static json_t *parse(const char *text)
{
	json_error_t error;
	json_t *document = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (!document)
		printf("\n    no JSON: %s: %.200s\n", error.text, text);
	CU_ASSERT_PTR_NOT_NULL(document);
	/* One document and one line end. */
	CU_ASSERT(text[0] != '\0' && strchr(text, '\n') == text + strlen(text) - 1);
	return document;
}

static const char *string_at(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "";
}

/* Ends well, says nothing on standard error, prints one document; owned, json_decref(). */
static json_t *expect_document(dg_test_tool tool)
{
	CU_ASSERT_EQUAL(tool.status, 0);
	CU_ASSERT_STRING_EQUAL(tool.err, "");
	json_t *document = parse(tool.out);
	dg_test_tool_finish(&tool);
	return document;
}

/* Ends with the status, prints nothing on standard output and the phrase on standard error. */
static void expect_error(dg_test_tool tool, int status, const char *phrase)
{
	CU_ASSERT_EQUAL(tool.status, status);
	CU_ASSERT_STRING_EQUAL(tool.out, "");
	CU_ASSERT_PTR_NOT_NULL(strstr(tool.err, phrase));
	if (tool.status != status || !strstr(tool.err, phrase))
		printf("\n    status %d, expected %d and '%s': %s\n", tool.status, status, phrase,
			tool.err);
	dg_test_tool_finish(&tool);
}

/* As expect_error() for a run with --json: a problem document with the code. */
static void expect_problem(dg_test_tool tool, int status, const char *code)
{
	CU_ASSERT_EQUAL(tool.status, status);
	CU_ASSERT_STRING_EQUAL(tool.out, "");
	json_t *problem = parse(tool.err);
	CU_ASSERT_STRING_EQUAL(string_at(problem, "code"), code);
	CU_ASSERT_NOT_EQUAL(string_at(problem, "detail")[0], '\0');
	CU_ASSERT(json_is_integer(json_object_get(problem, "status")));
	json_decref(problem);
	dg_test_tool_finish(&tool);
}

/* A port of loopback where nobody listens, nor can while *ret_socket is open. */
static const char *refusing_url(int *ret_socket)
{
	static char url[64];
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*ret_socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CU_ASSERT_EQUAL(bind(*ret_socket, (struct sockaddr *)&address, length), 0);
	CU_ASSERT_EQUAL(getsockname(*ret_socket, (struct sockaddr *)&address, &length), 0);
	snprintf(url, sizeof(url), "https://127.0.0.1:%u", ntohs(address.sin_port));
	return url;
}

/* --- The command line --- */

static void test_usage__no_command_is_exit_2(void)
{
	dg_test_tool tool =
		dg_test_tool_run(&(dg_test_tool_request){ .args = (const char *const[]){ NULL } });
	expect_error(tool, 2, "usage: devgate COMMAND");
}

static void test_usage__unknown_words_are_exit_2(void)
{
	expect_error(RUN("frobnicate"), 2, "unknown command 'frobnicate'");
	expect_error(RUN("help", "frobnicate"), 2, "unknown command 'frobnicate'");
	expect_error(RUN("describe", "cpu", "--frobnicate"), 2, "unknown option '--frobnicate'");
	expect_error(RUN("--frobnicate"), 2, "unknown option '--frobnicate'");
	expect_error(RUN("describe", "cpu", "--frobnicate"), 2, "usage: devgate describe DEVICE");
	expect_error(RUN("describe", "cpu", "--among", "cpu"), 2, "describe has no option --among");
	expect_error(RUN("default", "--gateway", "https://h"), 2, "no option --gateway");
	expect_error(RUN("devices", "--pin"), 2, "--pin needs a value");
	expect_error(RUN("devices", "--json=yes"), 2, "--json takes no value");
}

static void test_usage__missing_operands_are_exit_2_with_the_usage(void)
{
	expect_error(RUN("describe"), 2, "usage: devgate describe DEVICE");
	expect_error(RUN("decode", "256"), 2, "usage: devgate decode TYPE_ID INDEX_ID");
	expect_error(RUN("throughput"), 2, "usage: devgate throughput DEVICE [KEY]...");
	expect_error(RUN("curve"), 2, "usage: devgate curve DEVICE");
	expect_error(
		RUN("roofline", "cpu", "--flops", "1", "--bytes", "1"), 2, "--dtype is missing");
	expect_error(RUN("roofline", "cpu", "--flops", "1", "--bytes", "1"), 2,
		"usage: devgate roofline DEVICE --flops N --dtype T --bytes N [--seconds S]");
	expect_error(RUN("health"), 2, "usage: devgate health URL");
}

static void test_usage__surplus_operands_are_exit_2(void)
{
	expect_error(RUN("devices", "cpu"), 2, "no use for 'cpu'");
	expect_error(RUN("describe", "cpu", "cuda"), 2, "no use for 'cuda'");
	expect_error(RUN("decode", "1", "2", "3"), 2, "no use for '3'");
	expect_error(RUN("default", "cpu"), 2, "no use for 'cpu'");
	expect_error(RUN("curve", "cpu", "read", "write"), 2, "no use for 'write'");
	expect_error(RUN("doctor", "cpu"), 2, "no use for 'cpu'");
}

static void test_usage__problem_is_json_where_asked(void)
{
	expect_problem(RUN("--json", "frobnicate"), 2, "invalid_argument");
	expect_problem(RUN("describe", "--json"), 2, "invalid_argument");
	expect_problem(RUN("--frobnicate", "describe", "--json"), 2, "invalid_argument");
}

static void test_help__lists_every_command(void)
{
	static const char *const names[] = { "devices", "describe", "decode", "default",
		"throughput", "curve", "roofline", "health", "doctor", "version", "help" };
	dg_test_tool whole = RUN("--help");
	dg_test_tool same = RUN("help");
	CU_ASSERT_EQUAL(whole.status, 0);
	CU_ASSERT_STRING_EQUAL(whole.out, same.out);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char usage[64];
		dg_test_tool one = RUN("help", names[i]);
		dg_test_tool option = RUN(names[i], "--help");
		snprintf(usage, sizeof(usage), "\n  %s ", names[i]);
		CU_ASSERT_PTR_NOT_NULL(strstr(whole.out, usage));
		snprintf(usage, sizeof(usage), "usage: devgate %s ", names[i]);
		CU_ASSERT_EQUAL(strncmp(one.out, usage, strlen(usage)), 0);
		CU_ASSERT_EQUAL(one.status, 0);
		CU_ASSERT_STRING_EQUAL(one.out, option.out);
		dg_test_tool_finish(&one);
		dg_test_tool_finish(&option);
	}
	dg_test_tool_finish(&whole);
	dg_test_tool_finish(&same);
}

static void test_version__is_one_line(void)
{
	char expected[64];
	char *version = dg_test_read_file("VERSION", NULL);
	dg_test_tool option = RUN("--version"), command = RUN("version");
	snprintf(
		expected, sizeof(expected), "devgate %.*s\n", (int)strcspn(version, "\n"), version);
	CU_ASSERT_EQUAL(option.status, 0);
	CU_ASSERT_STRING_EQUAL(option.out, expected);
	CU_ASSERT_STRING_EQUAL(command.out, expected);
	json_t *document = expect_document(RUN("version", "--json"));
	CU_ASSERT_EQUAL(strncmp(string_at(document, "version"), version, 3), 0);
	json_decref(document);
	dg_test_tool_finish(&option);
	dg_test_tool_finish(&command);
	free(version);
}

static void test_timeout__is_a_number_of_seconds(void)
{
	static const char *const wrong[] = { "soon", "-1", "0", "1e9", "", "nan", "0.0009" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char told[160];
		snprintf(told, sizeof(told),
			"devgate: invalid_argument: --timeout is '%s', expected seconds from 0.001 "
			"to 86400",
			wrong[i]);
		expect_error(RUN("devices", "--local", "--timeout", wrong[i]), 1, told);
	}
}

/* Also where none of them would be sent: over plain HTTP, and to nobody. */
static void test_credentials__files_that_cannot_be_read_whole_are_refused(void)
{
	char *folder = dg_test_temp_dir(), pipe[600];
	static const char *const options[] = { "--token-file", "--cacert", "--cert", "--key" };
	snprintf(pipe, sizeof(pipe), "%s/pipe", folder);
	CU_ASSERT_EQUAL(mkfifo(pipe, 0600), 0);
	const struct {
		const char *path, *phrase;
	} wrong[] = { { "/dev/zero", "/dev/zero is not a regular file" },
		{ pipe, "pipe is not a regular file" }, { folder, "is not a regular file" },
		{ "/nonexistent/token", "/nonexistent/token cannot be read: No such file" } };
	for (size_t o = 0; o < sizeof(options) / sizeof(options[0]); o++) {
		for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
			const char *option = options[o], *path = wrong[i].path;
			expect_error(
				RUN("devices", option, path, "--gateway", "http://127.0.0.1:1"), 1,
				wrong[i].phrase);
			expect_problem(RUN("devices", "--json", "--local", option, path), 1,
				"bad_credential");
		}
	}
	free(folder);
}

/* --- What a device is called --- */

static void test_describe__prints_the_identity(void)
{
	json_t *document = expect_document(RUN("describe", "VULKAN:Discrete:3", "--json"));
	CU_ASSERT_STRING_EQUAL(string_at(document, "device"), "vulkan:discrete:3");
	CU_ASSERT_STRING_EQUAL(string_at(document, "debug"), "Vulkan(DiscreteGpu(3))");
	json_t *id = json_object_get(document, "id");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(id, "type_id")), 2048);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(id, "index_id")), 3);
	CU_ASSERT_EQUAL(json_object_size(document), 4);
	CU_ASSERT(json_is_object(json_object_get(document, "settings")));
	json_decref(document);
}

static void test_describe__prints_the_same_document_in_a_pipe(void)
{
	dg_test_tool asked = RUN("--json", "describe", "autodiff(cuda:1,balanced)");
	dg_test_tool piped = RUN("describe", "autodiff(cuda:1,balanced)");
	CU_ASSERT_STRING_EQUAL(asked.out, piped.out);
	json_decref(parse(asked.out));
	dg_test_tool_finish(&asked);
	dg_test_tool_finish(&piped);
}

static void test_describe__bad_device_is_exit_1_with_its_code(void)
{
	expect_error(RUN("describe", "frobnicate"), 1, "devgate: invalid_device: ");
	expect_error(RUN("describe", ""), 1, "devgate: invalid_device: ");
	expect_error(RUN("describe", "cuda:70000"), 1, "devgate: index_out_of_range: ");
	expect_error(RUN("describe", "https://#1"), 1, "devgate: invalid_address: ");
	expect_problem(RUN("describe", "frobnicate", "--json"), 1, "invalid_device");
}

static void test_describe__needs_no_worker(void)
{
	const char *const env[] = { "DEVGATE_WORKER=/nonexistent/worker", NULL };
	json_t *document = expect_document(RUN_ENV(env, "describe", "rocm:7", "--json"));
	CU_ASSERT_STRING_EQUAL(string_at(document, "device"), "rocm:7");
	json_decref(document);
}

static void test_describe__remote_that_cannot_be_reached_is_told(void)
{
	int fd;
	char device[80];
	snprintf(device, sizeof(device), "%s#0", refusing_url(&fd));
	expect_error(RUN("describe", device, "--timeout", "5"), 1, "devgate: unreachable: ");
	expect_problem(RUN("describe", device, "--json", "--timeout", "5"), 1, "unreachable");
	expect_error(RUN("describe", "0", "--gateway", refusing_url(&fd), "--timeout", "5"), 1,
		"devgate: unreachable: ");
	close(fd);
}

static void test_decode__numbers_are_strict(void)
{
	static const char *const wrong[] = { "", "x", "+1", " 1", "1 ", "0x1", "1.0", "1e1", "-1",
		"-99999999999999999999" };
	static const char *const out[] = { "65536", "99999999999999999999" };
	expect_error(RUN("decode", "0", "-1"), 1,
		"INDEX_ID is '-1', expected a whole number from 0 to 65535");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		expect_error(RUN("decode", wrong[i], "0"), 1, "devgate: invalid_argument: TYPE_ID");
		expect_error(
			RUN("decode", "0", wrong[i]), 1, "devgate: invalid_argument: INDEX_ID");
	}
	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
		expect_error(RUN("decode", out[i], "0"), 1, "devgate: invalid_argument: TYPE_ID");
		expect_problem(RUN("decode", "0", out[i], "--json"), 1, "index_out_of_range");
	}
}

/* --- Vectors --- */

static json_t *load_vectors(const char *name)
{
	char *text = dg_test_read_file(dg_test_fixture(name), NULL);
	json_t *document = json_loads(text, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(document);
	free(text);
	return document;
}

static void check_decode_case(const json_t *one)
{
	char type[16], index[16];
	const json_t *expected = json_object_get(one, "reencoded");
	snprintf(
		type, sizeof(type), "%d", (int)json_integer_value(json_object_get(one, "type_id")));
	snprintf(index, sizeof(index), "%d",
		(int)json_integer_value(json_object_get(one, "index_id")));
	if (json_object_get(one, "error")) {
		expect_problem(RUN("decode", type, index, "--json"), 1, string_at(one, "error"));
		return;
	}
	json_t *document = expect_document(RUN("decode", type, index, "--json"));
	CU_ASSERT_STRING_EQUAL(string_at(document, "debug"), string_at(one, "debug"));
	CU_ASSERT(json_equal(json_object_get(document, "id"), expected));
	json_decref(document);
}

static void test_decode__agrees_with_the_vectors(void)
{
	json_t *vectors = load_vectors("vectors/decode.json");
	json_t *list = json_object_get(vectors, "cases");
	CU_ASSERT(json_array_size(list) > 100);
	for (size_t i = 0; i < json_array_size(list); i += VECTOR_STRIDE)
		check_decode_case(json_array_get(list, i));
	json_decref(vectors);
}

static void check_id_case(const json_t *one)
{
	char type[16], index[16];
	if (!json_object_get(one, "settings") || strcmp(string_at(one, "variant"), "Remote") == 0)
		return;
	snprintf(
		type, sizeof(type), "%d", (int)json_integer_value(json_object_get(one, "type_id")));
	snprintf(index, sizeof(index), "%d",
		(int)json_integer_value(json_object_get(one, "index_id")));
	json_t *decoded = expect_document(RUN("decode", type, index));
	CU_ASSERT_STRING_EQUAL(string_at(decoded, "debug"), string_at(one, "debug"));
	CU_ASSERT(
		json_equal(json_object_get(decoded, "settings"), json_object_get(one, "settings")));
	json_t *described = expect_document(RUN("describe", string_at(decoded, "device")));
	CU_ASSERT(json_equal(decoded, described));
	json_decref(decoded);
	json_decref(described);
}

static void test_describe__agrees_with_the_vectors(void)
{
	json_t *vectors = load_vectors("vectors/device_ids.json");
	json_t *list = json_object_get(vectors, "cases");
	CU_ASSERT(json_array_size(list) > 50);
	for (size_t i = 0; i < json_array_size(list); i += VECTOR_STRIDE)
		check_id_case(json_array_get(list, i));
	json_decref(vectors);
}

static void join_words(const json_t *words, char *buf, size_t size)
{
	size_t used = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < json_array_size(words); i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? "," : "",
			json_string_value(json_array_get(words, i)));
}

static void check_default_case(const json_t *one)
{
	char words[256], variable[256];
	const json_t *burn = json_object_get(one, "BURN_DEVICE");
	const char *const env[] = { json_is_null(burn) ? NULL : variable, NULL };
	snprintf(variable, sizeof(variable), "BURN_DEVICE=%s",
		json_is_null(burn) ? "" : json_string_value(burn));
	join_words(json_object_get(one, "enabled"), words, sizeof(words));
	dg_test_tool tool = RUN_ENV(env, "default", "--among", words);
	if (json_object_get(one, "error")) {
		expect_error(tool, 1, string_at(one, "error"));
		return;
	}
	json_t *document = expect_document(tool);
	const char *expected = string_at(one, "device"), *debug = string_at(document, "debug");
	bool remote = strcmp(expected, "Remote") == 0;
	CU_ASSERT_EQUAL(remote ? strncmp(debug, "Remote(", 7) : strcmp(debug, expected), 0);
	CU_ASSERT_EQUAL(remote, json_is_null(json_object_get(document, "settings")));
	json_decref(document);
}

static void test_default__agrees_with_the_vectors(void)
{
	json_t *vectors = load_vectors("vectors/default_device.json");
	json_t *list = json_object_get(vectors, "cases");
	CU_ASSERT(json_array_size(list) > 300);
	for (size_t i = 0; i < json_array_size(list); i += VECTOR_STRIDE)
		check_default_case(json_array_get(list, i));
	json_decref(vectors);
}

/* --- The default --- */

static void expect_default(const char *const *env, const char *among, const char *device)
{
	json_t *document = expect_document(RUN_ENV(env, "default", "--json", "--among", among));
	CU_ASSERT_STRING_EQUAL(string_at(document, "device"), device);
	json_decref(document);
}

static void test_default__variables_decide_in_their_order(void)
{
	const char *const forced[] = { "DEVGATE_DEVICE=vulkan:discrete:1", "BURN_DEVICE=cpu",
		NULL };
	const char *const listed[] = { "DEVGATE_DEVICE_PRIORITY=cpu,cuda",
		"BURN_DEVICE_PRIORITY=flex", NULL };
	const char *const alias[] = { "BURN_DEVICE_PRIORITY=flex", NULL };
	expect_default(forced, "vulkan,cpu", "vulkan:discrete:1");
	expect_default(listed, "cuda,cpu,flex", "cpu");
	expect_default(alias, "cuda,cpu,flex", "flex");
	expect_default(NULL, "cuda,cpu,flex", "cuda:0");
}

static void test_default__remote_does_not_connect(void)
{
	int fd;
	char ours[100], theirs[100], device[100];
	const char *url = refusing_url(&fd);
	const char *const both[] = { "BURN_DEVICE=remote", ours, "BURN_REMOTE_ADDRESS=ws://other:1",
		NULL };
	const char *const alias[] = { "BURN_DEVICE=remote", theirs, NULL };
	const char *const neither[] = { "BURN_DEVICE=remote", NULL };
	snprintf(ours, sizeof(ours), "DEVGATE_REMOTE_ADDRESS=%s", url);
	snprintf(theirs, sizeof(theirs), "BURN_REMOTE_ADDRESS=%s", url);
	snprintf(device, sizeof(device), "remote:%s#0", url);
	expect_default(both, "remote", device);
	expect_default(alias, "remote", device);
	expect_default(neither, "remote", "remote:https://127.0.0.1:8443#0");
	close(fd);
}

static void test_default__unknown_word_is_told(void)
{
	expect_error(RUN("default", "--among", "cuda,frobnicate"), 1, "frobnicate");
}

/* --- Devices --- */

static void test_devices__unreachable_gateway_is_listed_with_its_error(void)
{
	int fd;
	const char *url = refusing_url(&fd);
	dg_test_tool tool = RUN("devices", "--json", "--gateway", url, "--timeout", "5");
	json_t *document = parse(tool.out);
	json_t *problem = json_array_get(json_object_get(document, "problems"), 0);
	CU_ASSERT_EQUAL(tool.status, 1);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(document, "devices")), 0);
	CU_ASSERT(json_is_array(json_object_get(document, "devices")));
	CU_ASSERT_STRING_EQUAL(string_at(problem, "source"), url);
	CU_ASSERT_STRING_EQUAL(string_at(problem, "code"), "unreachable");
	CU_ASSERT(json_is_true(json_object_get(problem, "gateway")));
	CU_ASSERT_NOT_EQUAL(string_at(problem, "detail")[0], '\0');
	json_decref(document);
	dg_test_tool_finish(&tool);
	expect_error(RUN("devices", "--gateway", url, "--timeout", "5"), 1, "unreachable");
	close(fd);
}

static void test_devices__lists_this_machine(void)
{
	json_t *document = expect_document(RUN("devices", "--local", "--json"));
	json_t *devices = json_object_get(document, "devices");
	bool has_cpu = false;
	for (size_t i = 0; i < json_array_size(devices); i++) {
		const json_t *device = json_array_get(devices, i);
		CU_ASSERT(json_is_null(json_object_get(device, "gateway")));
		CU_ASSERT(json_is_object(json_object_get(device, "settings")));
		has_cpu = has_cpu || strcmp(string_at(device, "device"), "cpu") == 0;
	}
	CU_ASSERT(has_cpu);
	CU_ASSERT(json_is_array(json_object_get(document, "problems")));
	json_decref(document);
}

static void test_devices__remaining_gateways_are_listed_beside_local_ones(void)
{
	int fd;
	const char *url = refusing_url(&fd);
	dg_test_tool tool = RUN("devices", "--local", "--gateway", url, "--timeout", "10");
	CU_ASSERT_EQUAL(tool.status, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(tool.out, "local"));
	CU_ASSERT_PTR_NULL(strchr(tool.out, '\033'));
	CU_ASSERT_PTR_NOT_NULL(strstr(tool.err, "unreachable"));
	dg_test_tool_finish(&tool);
	close(fd);
}

static void test_devices__bad_gateway_address_is_told(void)
{
	expect_error(RUN("devices", "--gateway", "gopher://x"), 1, "devgate: invalid_address: ");
}

/* --- Measuring --- */

static void test_throughput__one_value_a_key_in_order(void)
{
	static const char *const keys[] = { "memory:read:65536:resident", "launch",
		"memory:read:65536:resident" };
	json_t *document = expect_document(
		RUN("throughput", "cpu", "--json", keys[0], keys[1], keys[2], "--timeout", "120"));
	json_t *values = json_object_get(document, "values");
	CU_ASSERT_STRING_EQUAL(string_at(document, "device"), "cpu");
	CU_ASSERT_EQUAL(json_array_size(values), 3);
	for (size_t i = 0; i < json_array_size(values); i++) {
		const json_t *value = json_array_get(values, i);
		CU_ASSERT_STRING_EQUAL(string_at(value, "status"), "ok");
		CU_ASSERT(json_is_object(json_object_get(value, "evidence")));
		CU_ASSERT(json_integer_value(json_object_get(value, "ops_count")) > 0);
	}
	json_decref(document);
}

static void test_throughput__device_without_kernels_has_no_values(void)
{
	json_t *document = expect_document(RUN("throughput", "flex", "compute:f32", "--json"));
	CU_ASSERT_EQUAL(json_array_size(json_object_get(document, "values")), 0);
	CU_ASSERT(json_is_array(json_object_get(document, "values")));
	json_decref(document);
	dg_test_tool tool = RUN("throughput", "ndarray");
	CU_ASSERT_EQUAL(tool.status, 0);
	dg_test_tool_finish(&tool);
}

static void test_throughput__unsupported_key_is_no_failure(void)
{
	dg_test_tool tool = RUN("throughput", "cpu", "cmma:e2m1:f32:16x16x16");
	CU_ASSERT_EQUAL(tool.status, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(tool.out, "unsupported: "));
	CU_ASSERT_PTR_NULL(strchr(tool.out, '\033'));
	CU_ASSERT_STRING_EQUAL(tool.err, "");
	dg_test_tool_finish(&tool);
}

static void test_throughput__bad_key_is_told_before_measuring(void)
{
	expect_error(RUN("throughput", "cpu", "launch", "compute"), 1, "devgate: invalid_key: ");
	expect_problem(RUN("throughput", "cpu", "compute:f33", "--json"), 1, "invalid_key");
}

static void test_throughput__more_keys_than_the_limit_are_refused(void)
{
	const char *args[300] = { "throughput", "cpu" };
	for (size_t i = 2; i < 2 + 257; i++)
		args[i] = "launch";
	expect_error(dg_test_tool_run(&(dg_test_tool_request){ .args = args }), 1,
		"devgate: too_many: ");
}

static void test_throughput__interrupt_cancels(void)
{
	dg_test_tool tool = dg_test_tool_run(&(dg_test_tool_request){
		.args = ARGS("throughput", "cpu", "--sustained"), .interrupt_ms = 700 });
	CU_ASSERT_EQUAL(tool.status, 130);
	CU_ASSERT_STRING_EQUAL(tool.out, "");
	CU_ASSERT(tool.elapsed_ms < 10000);
	dg_test_tool_finish(&tool);
}

static void test_curve__bad_values_are_told(void)
{
	expect_error(RUN("curve", "cpu", "sideways"), 1, "expected copy, read or write");
	expect_error(RUN("curve", "cpu", "read", "--bytes", "3"), 1, "invalid_argument: --bytes");
	expect_error(
		RUN("curve", "cpu", "read", "--bytes", "many"), 1, "invalid_argument: --bytes");
	expect_error(RUN("curve", "flex"), 1, "devgate: no_kernels: ");
}

static void test_roofline__bad_values_are_told(void)
{
	expect_error(RUN("roofline", "cpu", "--flops", "1", "--bytes", "1", "--dtype", "f33"), 1,
		"devgate: unsupported_dtype: ");
	expect_error(RUN("roofline", "cpu", "--flops", "-1", "--bytes", "1", "--dtype", "f32"), 1,
		"--flops");
	expect_error(RUN("roofline", "cpu", "--flops", "1", "--bytes", "nan", "--dtype", "f32"), 1,
		"--bytes");
	expect_error(RUN("roofline", "cpu", "--flops", "1", "--bytes", "1", "--dtype", "f32",
			     "--seconds", "0"),
		1, "--seconds");
	expect_error(RUN("roofline", "flex", "--flops", "1", "--bytes", "1", "--dtype", "f32"), 1,
		"devgate: no_kernels: ");
}

/* --- Gateways --- */

static void test_health__fails_where_nobody_listens(void)
{
	int fd;
	const char *url = refusing_url(&fd);
	expect_error(RUN("health", url, "--timeout", "5"), 1, "devgate: unreachable: ");
	expect_problem(RUN("health", url, "--json", "--timeout=5"), 1, "unreachable");
	expect_error(RUN("health", "frobnicate"), 1, "devgate: invalid_address: ");
	close(fd);
}

static void test_health__credential_that_cannot_be_read_is_told(void)
{
	expect_error(RUN("health", "https://127.0.0.1:1", "--token-file", "/nonexistent/token"), 1,
		"devgate: bad_credential: ");
	expect_error(RUN("health", "https://127.0.0.1:1", "--pin", "frobnicate"), 1,
		"devgate: bad_credential: ");
}

static void test_doctor__reports_backends_and_checks(void)
{
	json_t *document = expect_document(RUN("doctor", "--json"));
	json_t *backends = json_object_get(document, "backends");
	json_t *checks = json_object_get(document, "checks");
	bool has_cpu = false;
	for (size_t i = 0; i < json_array_size(backends); i++) {
		const json_t *backend = json_array_get(backends, i);
		bool is_cpu = strcmp(string_at(backend, "name"), "cpu") == 0;
		CU_ASSERT(json_is_integer(json_object_get(backend, "devices")));
		if (is_cpu)
			CU_ASSERT_EQUAL(json_integer_value(json_object_get(backend, "devices")), 1);
		has_cpu = has_cpu || is_cpu;
	}
	CU_ASSERT(has_cpu);
	CU_ASSERT(json_array_size(checks) >= 4);
	json_decref(document);
}

static void test_doctor__finds_what_is_set_wrong(void)
{
	const char *const env[] = { "DEVGATE_GATEWAYS=/nonexistent/gateways",
		"DEVGATE_REMOTE_ADDRESS=gopher://x", "BURN_DEVICE=frobnicate", NULL };
	dg_test_tool tool = RUN_ENV(env, "doctor");
	CU_ASSERT_EQUAL(tool.status, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(tool.out, "/nonexistent/gateways"));
	CU_ASSERT_PTR_NOT_NULL(strstr(tool.out, "gopher"));
	CU_ASSERT_PTR_NOT_NULL(strstr(tool.out, "frobnicate"));
	CU_ASSERT_PTR_NULL(strchr(tool.out, '\033'));
	dg_test_tool_finish(&tool);
}

/* --- Streams --- */

static void test_output__full_disk_is_exit_1(void)
{
	int full = open("/dev/full", O_WRONLY);
	if (full < 0) {
		dg_test_skip("full", "no /dev/full here");
		return;
	}
	dg_test_tool tool = dg_test_tool_run(
		&(dg_test_tool_request){ .args = ARGS("describe", "cpu"), .out_fd = full });
	expect_error(tool, 1, "devgate: io: ");
	close(full);
}

static void test_output__closed_pipe_is_exit_1(void)
{
	int ends[2];
	CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
	close(ends[0]);
	dg_test_tool tool = dg_test_tool_run(
		&(dg_test_tool_request){ .args = ARGS("help"), .out_fd = ends[1] });
	expect_error(tool, 1, "devgate: io: ");
	close(ends[1]);
}

static void test_terminal__gets_lines_and_colour(void)
{
	const char *const env[] = { "TERM=xterm", "LC_ALL=C.UTF-8", NULL };
	dg_test_tool tool = dg_test_tool_run(&(dg_test_tool_request){
		.args = ARGS("describe", "cuda:2"), .env = env, .terminal = true });
	CU_ASSERT_EQUAL(tool.status, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(tool.out, "Cuda(Cuda(2))"));
	CU_ASSERT_PTR_NOT_NULL(strchr(tool.out, '\033'));
	CU_ASSERT_PTR_NULL(strchr(tool.out, '{'));
	dg_test_tool_finish(&tool);
}

static void test_terminal__without_colour_where_not_wanted(void)
{
	static const char *const unwanted[][3] = { { "TERM=xterm", "NO_COLOR=1", NULL },
		{ "TERM=dumb", NULL, NULL }, { NULL, NULL, NULL } };
	for (size_t i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++) {
		dg_test_tool tool = dg_test_tool_run(&(dg_test_tool_request){
			.args = ARGS("describe", "cuda:2"), .env = unwanted[i], .terminal = true });
		CU_ASSERT_EQUAL(tool.status, 0);
		CU_ASSERT_PTR_NULL(strchr(tool.out, '\033'));
		dg_test_tool_finish(&tool);
	}
}

static void test_terminal__shows_progress_while_measuring(void)
{
	const char *const env[] = { "TERM=dumb", NULL };
	dg_test_tool tool = dg_test_tool_run(&(dg_test_tool_request){
		.args = ARGS("throughput", "cpu", "launch"), .env = env, .terminal = true });
	CU_ASSERT_EQUAL(tool.status, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(tool.out, "measuring 1 of 1: launch\r "));
	dg_test_tool_finish(&tool);
}

static const dg_test_case cases[] = {
	DG_TEST(test_usage__no_command_is_exit_2),
	DG_TEST(test_usage__unknown_words_are_exit_2),
	DG_TEST(test_usage__missing_operands_are_exit_2_with_the_usage),
	DG_TEST(test_usage__surplus_operands_are_exit_2),
	DG_TEST(test_usage__problem_is_json_where_asked),
	DG_TEST(test_help__lists_every_command),
	DG_TEST(test_version__is_one_line),
	DG_TEST(test_timeout__is_a_number_of_seconds),
	DG_TEST(test_credentials__files_that_cannot_be_read_whole_are_refused),
	DG_TEST(test_describe__prints_the_identity),
	DG_TEST(test_describe__prints_the_same_document_in_a_pipe),
	DG_TEST(test_describe__bad_device_is_exit_1_with_its_code),
	DG_TEST(test_describe__needs_no_worker),
	DG_TEST(test_describe__remote_that_cannot_be_reached_is_told),
	DG_TEST(test_decode__numbers_are_strict),
	DG_TEST(test_decode__agrees_with_the_vectors),
	DG_TEST(test_describe__agrees_with_the_vectors),
	DG_TEST(test_default__agrees_with_the_vectors),
	DG_TEST(test_default__variables_decide_in_their_order),
	DG_TEST(test_default__remote_does_not_connect),
	DG_TEST(test_default__unknown_word_is_told),
	DG_TEST(test_devices__unreachable_gateway_is_listed_with_its_error),
	DG_TEST(test_devices__lists_this_machine),
	DG_TEST(test_devices__remaining_gateways_are_listed_beside_local_ones),
	DG_TEST(test_devices__bad_gateway_address_is_told),
	DG_TEST(test_throughput__one_value_a_key_in_order),
	DG_TEST(test_throughput__device_without_kernels_has_no_values),
	DG_TEST(test_throughput__unsupported_key_is_no_failure),
	DG_TEST(test_throughput__bad_key_is_told_before_measuring),
	DG_TEST(test_throughput__more_keys_than_the_limit_are_refused),
	DG_TEST(test_throughput__interrupt_cancels),
	DG_TEST(test_curve__bad_values_are_told),
	DG_TEST(test_roofline__bad_values_are_told),
	DG_TEST(test_health__fails_where_nobody_listens),
	DG_TEST(test_health__credential_that_cannot_be_read_is_told),
	DG_TEST(test_doctor__reports_backends_and_checks),
	DG_TEST(test_doctor__finds_what_is_set_wrong),
	DG_TEST(test_output__full_disk_is_exit_1),
	DG_TEST(test_output__closed_pipe_is_exit_1),
	DG_TEST(test_terminal__gets_lines_and_colour),
	DG_TEST(test_terminal__without_colour_where_not_wanted),
	DG_TEST(test_terminal__shows_progress_while_measuring),
};

DG_TEST_MAIN("cli", cases)
