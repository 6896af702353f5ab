/* See gateway.h. */
#include "tests/gateway.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CUnit/CUnit.h>
#include <curl/curl.h>
#include <jansson.h>

#include "tests/test.h"
#include "tests/tool.h"

#define ARGS_MAX 64
#define READY_MS 20000

/* Paths before fork: the child only execs. */
static pid_t spawn(const char *const *args, const char *const *env, int out, int err)
{
	const char *argv[ARGS_MAX] = { "devgated" }, *envp[ARGS_MAX] = { "PATH=/usr/bin:/bin" };
	size_t n = 1, e = 1;
	bool bare = args && args[0] && strcmp(args[0], "bare") == 0;
	if (!bare) {
		argv[n++] = "--ephemeral";
		argv[n++] = "--listen";
		argv[n++] = "127.0.0.1:0";
		argv[n++] = "--print-ready";
	}
	for (size_t i = bare; args && args[i] && n < ARGS_MAX - 1; i++)
		argv[n++] = args[i];
	for (size_t i = 0; env && env[i] && e < ARGS_MAX - 3; i++)
		envp[e++] = env[i];
	char quick[64] = "", path[512];
	if (getenv("DG_ENGINE_QUICK")) {
		snprintf(quick, sizeof(quick), "DG_ENGINE_QUICK=%s", getenv("DG_ENGINE_QUICK"));
		envp[e++] = quick;
	}
	snprintf(path, sizeof(path), "%s", dg_test_built("bin/devgated"));
	pid_t pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDONLY);
		dup2(null, 0);
		if (out < 0)
			close(1);
		else
			dup2(out, 1);
		dup2(err, 2);
		execve(path, (char *const *)argv, (char *const *)envp);
		_exit(127);
	}
	return pid;
}

/* The line that --print-ready promises; false where it did not come. */
static bool read_ready(int fd, dg_test_gateway *g)
{
	char line[512];
	size_t length = 0;
	long long until = dg_test_now_ms() + READY_MS;
	while (length < sizeof(line) - 1) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		long long left = until - dg_test_now_ms();
		if (left <= 0 || poll(&p, 1, (int)left) <= 0)
			return false;
		ssize_t n = read(fd, line + length, 1);
		if (n != 1)
			return false;
		if (line[length] == '\n')
			break;
		length++;
	}
	line[length] = '\0';
	json_t *root = json_loads(line, 0, NULL);
	const char *url = json_string_value(json_object_get(root, "url"));
	const char *pin = json_string_value(json_object_get(root, "pin"));
	if (url) {
		snprintf(g->url, sizeof(g->url), "%s", url);
		snprintf(g->pin, sizeof(g->pin), "%s", pin ? pin : "");
		const char *colon = strrchr(g->url, ':');
		g->port = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
	}
	json_decref(root);
	return url != NULL;
}

dg_test_gateway dg_test_gateway_start(const char *const *args, const char *const *env)
{
	dg_test_gateway g = { .pid = 0 };
	char *directory = dg_test_temp_dir();
	int out[2];
	snprintf(g.log, sizeof(g.log), "%s/log", directory);
	free(directory);
	int log = open(g.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (pipe(out) != 0 || log < 0) {
		CU_FAIL_FATAL("no pipe for a gateway");
		return g;
	}
	fcntl(out[0], F_SETFD, FD_CLOEXEC);
	fcntl(out[1], F_SETFD, FD_CLOEXEC);
	g.pid = spawn(args, env, out[1], log);
	close(out[1]);
	close(log);
	bool ready = read_ready(out[0], &g);
	close(out[0]);
	if (!ready) {
		char *said = dg_test_read_file(g.log, NULL);
		printf("\n    the gateway did not start: %s\n", said);
		free(said);
		kill(g.pid, SIGKILL);
		waitpid(g.pid, NULL, 0);
		CU_FAIL_FATAL("the gateway did not start");
	}
	return g;
}

static int wait_for(pid_t pid, long long timeout_ms)
{
	long long until = dg_test_now_ms() + timeout_ms;
	int status = 0;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (dg_test_now_ms() > until) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		dg_test_sleep_ms(2);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

long long dg_test_gateway_stop(dg_test_gateway *gateway, int *ret_status)
{
	long long before = dg_test_now_ms();
	kill(gateway->pid, SIGTERM);
	int status = wait_for(gateway->pid, 10000);
	if (ret_status)
		*ret_status = status;
	char *said = dg_test_read_file(gateway->log, NULL);
	if (strstr(said, "Sanitizer") || strstr(said, "runtime error")) {
		printf("\n%s\n", said);
		CU_FAIL("a sanitizer complained in the gateway");
	}
	free(said);
	return dg_test_now_ms() - before;
}

static int run_at(int out, const char *const *args, const char *const *env, int err, char *buf,
	size_t size, const char *path)
{
	int status = wait_for(spawn(args, env, out, err), 10000);
	char *said = dg_test_read_file(path, NULL);
	snprintf(buf, size, "%s", said);
	free(said);
	return status;
}

/* A new file for what a program says; path has room for 512 bytes. */
static int open_said(char *path)
{
	char *directory = dg_test_temp_dir();
	snprintf(path, 512, "%s/said", directory);
	free(directory);
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

int dg_test_gateway_run(const char *const *args, const char *const *env, char *buf, size_t size)
{
	char path[512];
	int fd = open_said(path);
	int status = run_at(fd, args, env, fd, buf, size, path);
	close(fd);
	return status;
}

int dg_test_gateway_run_to(
	int out, const char *const *args, const char *const *env, char *buf, size_t size)
{
	char path[512];
	int fd = open_said(path);
	int status = run_at(out, args, env, fd, buf, size, path);
	close(fd);
	return status;
}

typedef struct gathered {
	char *data;
	size_t length;
} gathered;

static size_t gather(char *data, size_t size, size_t count, void *user)
{
	gathered *g = user;
	char *more = realloc(g->data, g->length + size * count + 1);
	if (!more)
		return 0;
	memcpy(more + g->length, data, size * count);
	g->data = more;
	g->length += size * count;
	g->data[g->length] = '\0';
	return size * count;
}

/* One line a write, so that programs that run at once do not mix theirs. */
static void record(const char *method, const char *path, const dg_test_reply *reply)
{
	const char *file = getenv("DG_RECORD");
	if (!file || !*file || reply->status == 0)
		return;
	json_t *line = json_pack("{s:s, s:s, s:i, s:s, s:s}", "method", method, "path", path,
		"status", reply->status, "content_type", reply->content_type, "body", reply->body);
	char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
	json_decref(line);
	size_t length = text ? strlen(text) : 0;
	int fd = text ? open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
	if (fd >= 0) {
		/* The end of the line takes the place of the end of the text. */
		text[length] = '\n';
		CU_ASSERT_EQUAL(write(fd, text, length + 1), (ssize_t)length + 1);
		close(fd);
	}
	free(text);
}

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void set_trust(CURL *curl, const dg_test_gateway *gateway)
{
	if (!*gateway->pin)
		return;
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
	curl_easy_setopt(curl, CURLOPT_PINNEDPUBLICKEY, gateway->pin);
}

dg_test_reply dg_test_ask_within(const dg_test_gateway *gateway, const char *method,
	const char *path, const char *const *headers, const char *body, long timeout_ms)
{
	dg_test_reply reply = { .status = 0 };
	gathered content = { NULL, 0 }, head = { NULL, 0 };
	struct curl_slist *list = NULL;
	long status = 0;
	char *type = NULL;
	size_t room = strlen(gateway->url) + strlen(path) + 1;
	char *url = malloc(room);
	long long before = dg_test_now_ms();
	pthread_once(&curl_once, init_curl);
	CURL *curl = curl_easy_init();
	snprintf(url, room, "%s%s", gateway->url, path);
	for (size_t i = 0; headers && headers[i]; i++)
		list = curl_slist_append(list, headers[i]);
	if (body)
		list = curl_slist_append(list, "Expect:");
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
	if (body)
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	if (strcmp(method, "HEAD") == 0)
		curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, gather);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &content);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, gather);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, &head);
	set_trust(curl, gateway);
	if (curl_easy_perform(curl) == CURLE_OK) {
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
		curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
	}
	reply.status = (int)status;
	snprintf(reply.content_type, sizeof(reply.content_type), "%s", type ? type : "");
	reply.body = content.data ? content.data : calloc(1, 1);
	reply.head = head.data ? head.data : calloc(1, 1);
	reply.elapsed_ms = dg_test_now_ms() - before;
	curl_easy_cleanup(curl);
	curl_slist_free_all(list);
	free(url);
	if (strcmp(method, "HEAD") != 0)
		record(method, path, &reply);
	return reply;
}

dg_test_reply dg_test_ask(const dg_test_gateway *gateway, const char *method, const char *path,
	const char *const *headers, const char *body)
{
	return dg_test_ask_within(gateway, method, path, headers, body, 60000);
}

void dg_test_reply_finish(dg_test_reply *reply)
{
	free(reply->body);
	free(reply->head);
	reply->body = reply->head = NULL;
}

const char *dg_test_reply_header(const dg_test_reply *reply, const char *name)
{
	static _Thread_local char value[512];
	size_t length = strlen(name);
	for (const char *at = reply->head; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncasecmp(at, name, length) != 0 || at[length] != ':')
			continue;
		at += length + 1;
		at += strspn(at, " ");
		snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\r\n"), at);
		return value;
	}
	return NULL;
}

int dg_test_connect(const dg_test_gateway *gateway)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)gateway->port) };
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

char *dg_test_raw(const dg_test_gateway *gateway, const char *bytes, size_t length, int timeout_ms)
{
	gathered got = { calloc(1, 1), 0 };
	int fd = dg_test_connect(gateway);
	long long until = dg_test_now_ms() + timeout_ms;
	char buf[4096];
	while (fd >= 0 && length > 0) {
		ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
		if (n <= 0)
			break;
		bytes += n;
		length -= (size_t)n;
	}
	while (fd >= 0) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		long long left = until - dg_test_now_ms();
		if (left <= 0 || poll(&p, 1, (int)left) <= 0)
			break;
		ssize_t n = recv(fd, buf, sizeof(buf), 0);
		if (n <= 0)
			break;
		gather(buf, 1, (size_t)n, &got);
	}
	if (fd >= 0)
		close(fd);
	return got.data;
}

long dg_test_rss_kib(pid_t pid)
{
	char path[64], line[256];
	long kib = -1;
	snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmRSS:", 6) == 0)
			kib = strtol(line + 6, NULL, 10);
	if (f)
		fclose(f);
	return kib;
}

long dg_test_descriptors(pid_t pid)
{
	char path[64];
	long n = -1;
	snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
	DIR *d = opendir(path);
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return d ? n + 1 : -1;
}

/* One that nobody reaps is a zombie, and has ended all the same. */
static bool is_running(pid_t pid)
{
	char path[64], text[512] = "";
	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = '\0';
	const char *after = strrchr(text, ')');
	return after && after[1] && after[2] != 'Z' && after[2] != 'X';
}

bool dg_test_ends_within(pid_t pid, unsigned timeout_ms)
{
	long long until = dg_test_now_ms() + timeout_ms;
	while (is_running(pid)) {
		if (dg_test_now_ms() > until)
			return false;
		dg_test_sleep_ms(5);
	}
	return true;
}

static bool is_child(long candidate, pid_t parent, const char *word)
{
	char path[64], text[4096] = "";
	long ppid = 0;
	snprintf(path, sizeof(path), "/proc/%ld/stat", candidate);
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = '\0';
	const char *after = strrchr(text, ')');
	if (!after || sscanf(after + 2, "%*c %ld", &ppid) != 1 || ppid != parent)
		return false;
	snprintf(path, sizeof(path), "/proc/%ld/cmdline", candidate);
	f = fopen(path, "r");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		fclose(f);
	for (size_t i = 0; i < n; i++)
		text[i] = text[i] ? text[i] : ' ';
	text[n] = '\0';
	return strstr(text, word) != NULL;
}

pid_t dg_test_child_of(pid_t pid, const char *word)
{
	DIR *d = opendir("/proc");
	pid_t found = 0;
	for (struct dirent *e = d ? readdir(d) : NULL; e && !found; e = readdir(d)) {
		long candidate = strtol(e->d_name, NULL, 10);
		if (candidate > 0 && is_child(candidate, pid, word))
			found = (pid_t)candidate;
	}
	if (d)
		closedir(d);
	return found;
}
