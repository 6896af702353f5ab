/* Two gateways of two hosts, each a network namespace with a machine id of its own. Needs root. */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CUnit/CUnit.h>
#include <jansson.h>

#include "tests/test.h"
#include "tests/tool.h"

#define HOSTS 2

typedef struct host {
	char name[32], address[32], log[512];
	pid_t gateway;
	char url[64], pin[80];
} host;

static host hosts[HOSTS];

static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *format, ...)
{
	char command[1024];
	va_list ap;
	va_start(ap, format);
	vsnprintf(command, sizeof(command), format, ap);
	va_end(ap);
	return system(command);
}

/* `ip netns exec` shows a namespace the files of /etc/netns/NAME in the place of those of /etc. */
static bool make_host(unsigned i)
{
	host *h = &hosts[i];
	snprintf(h->name, sizeof(h->name), "dgt%ldh%u", (long)getpid(), i);
	snprintf(h->address, sizeof(h->address), "10.213.77.%u", i + 1);
	return shell("ip netns add %s 2>/dev/null", h->name) == 0 &&
	       shell("mkdir -p /etc/netns/%s && printf '%08x%08x%08x%08x\\n' "
		     ">/etc/netns/%s/machine-id",
		       h->name, i + 1, (unsigned)getpid(), 0xdeadbeefu, i + 7, h->name) == 0 &&
	       shell("ip -n %s link set lo up", h->name) == 0;
}

static bool connect_hosts(void)
{
	const char *a = hosts[0].name, *b = hosts[1].name;
	return shell("ip -n %s link add veth0 type veth peer name veth0 netns %s 2>/dev/null", a,
		       b) == 0 &&
	       shell("ip -n %s addr add %s/24 dev veth0 && ip -n %s link set veth0 up", a,
		       hosts[0].address, a) == 0 &&
	       shell("ip -n %s addr add %s/24 dev veth0 && ip -n %s link set veth0 up", b,
		       hosts[1].address, b) == 0;
}

static bool start_gateway(host *h)
{
	char program[512], listen[64], ready[600];
	char *directory = dg_test_temp_dir();
	snprintf(program, sizeof(program), "%s", dg_test_built("bin/devgated"));
	snprintf(listen, sizeof(listen), "%s:8443", h->address);
	snprintf(ready, sizeof(ready), "%s/ready", directory);
	free(directory);
	h->gateway = fork();
	if (h->gateway == 0) {
		int out = open(ready, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		int null = open("/dev/null", O_RDWR);
		dup2(null, 0);
		dup2(out, 1);
		dup2(null, 2);
		execlp("ip", "ip", "netns", "exec", h->name, program, "--ephemeral", "--listen",
			listen, "--no-auth", "--print-ready", (char *)NULL);
		_exit(127);
	}
	for (unsigned i = 0; i < 1000; i++) {
		struct stat st;
		if (stat(ready, &st) == 0 && st.st_size > 10)
			break;
		dg_test_sleep_ms(10);
	}
	json_t *root = json_load_file(ready, 0, NULL);
	const char *pin = json_string_value(json_object_get(root, "pin"));
	snprintf(h->url, sizeof(h->url), "https://%s:8443", h->address);
	snprintf(h->pin, sizeof(h->pin), "%s", pin ? pin : "");
	json_decref(root);
	return pin != NULL;
}

static void remove_hosts(void)
{
	for (unsigned i = 0; i < HOSTS; i++) {
		if (hosts[i].gateway > 0) {
			kill(hosts[i].gateway, SIGTERM);
			waitpid(hosts[i].gateway, NULL, 0);
		}
		shell("ip netns delete %s 2>/dev/null; rm -rf /etc/netns/%s", hosts[i].name,
			hosts[i].name);
	}
}

/* Run the tool on the first host. */
static json_t *list_both(void)
{
	char command[1600], *directory = dg_test_temp_dir(), file[512], gateways[512];
	snprintf(file, sizeof(file), "%s/list.json", directory);
	snprintf(gateways, sizeof(gateways), "%s/gateways", directory);
	free(directory);
	FILE *f = fopen(gateways, "w");
	for (unsigned i = 0; f && i < HOSTS; i++)
		fprintf(f, "%s %s\n", hosts[i].url, hosts[i].pin);
	if (f)
		fclose(f);
	snprintf(command, sizeof(command),
		"ip netns exec %s env DEVGATE_GATEWAYS=%s %s devices --json >%s", hosts[0].name,
		gateways, dg_test_built("bin/devgate"), file);
	CU_ASSERT_EQUAL(system(command), 0);
	return json_load_file(file, 0, NULL);
}

static const char *hardware_at(const json_t *devices, const char *gateway)
{
	for (size_t i = 0; i < json_array_size(devices); i++) {
		const json_t *d = json_array_get(devices, i);
		const json_t *at = json_object_get(d, "gateway");
		bool match =
			gateway ? json_is_string(at) && strcmp(json_string_value(at), gateway) == 0
				: json_is_null(at);
		if (match)
			return json_string_value(json_object_get(d, "hardware"));
	}
	return NULL;
}

static void test_two_hosts__are_never_the_same_hardware(void)
{
	if (geteuid() != 0 || shell("ip netns list >/dev/null 2>&1") != 0) {
		dg_test_skip("netns", "network namespaces need root and the ip program");
		return;
	}
	bool made = make_host(0) && make_host(1) && connect_hosts();
	if (!made) {
		remove_hosts();
		dg_test_skip("netns", "this machine makes no network namespaces");
		return;
	}
	CU_ASSERT(start_gateway(&hosts[0]) && start_gateway(&hosts[1]));
	json_t *root = list_both();
	const json_t *devices = json_object_get(root, "devices");
	const char *local = hardware_at(devices, NULL);
	const char *first = hardware_at(devices, hosts[0].url),
		   *second = hardware_at(devices, hosts[1].url);
	CU_ASSERT(local && first && second);
	if (local && first && second) {
		/* The tool runs on the first host: its own CPU, seen twice; and the other one's. */
		CU_ASSERT_STRING_EQUAL(local, first);
		CU_ASSERT_STRING_NOT_EQUAL(first, second);
	}
	CU_ASSERT_EQUAL(json_array_size(json_object_get(root, "problems")), 0);
	json_decref(root);
	remove_hosts();
}

static const dg_test_case cases[] = { DG_TEST(test_two_hosts__are_never_the_same_hardware) };

DG_TEST_MAIN("two hosts", cases)
