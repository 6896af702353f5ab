/* See tool.h. */
#include "tests/tool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

#define ENV_MAX 32

typedef struct gathered {
	char *text;
	size_t length, room;
} gathered;

const char *dg_test_built(const char *relative)
{
	static _Thread_local char path[1024];
	const char *root = getenv("DG_BUILD");
	snprintf(path, sizeof(path), "%s/%s", root && *root ? root : "build/release", relative);
	return path;
}

/* Nothing of the caller's, least of all HOME or a variable of ours, but what sanitizers need. */
static void make_environment(const char *const *env, char **ret_env)
{
	static const char *const kept[] = { "PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS",
		"LSAN_OPTIONS", "LD_LIBRARY_PATH", "TMPDIR" };
	size_t count = 0;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		const char *value = getenv(kept[i]);
		size_t size = value ? strlen(kept[i]) + strlen(value) + 2 : 0;
		char *entry = value ? malloc(size) : NULL;
		if (!entry)
			continue;
		snprintf(entry, size, "%s=%s", kept[i], value);
		ret_env[count++] = entry;
	}
	for (size_t i = 0; env && env[i] && count + 1 < ENV_MAX; i++)
		ret_env[count++] = strdup(env[i]);
	ret_env[count] = NULL;
}

static void add(gathered *into, const char *data, size_t length)
{
	if (into->length + length + 1 > into->room) {
		into->room = (into->length + length + 1) * 2;
		into->text = realloc(into->text, into->room);
		if (!into->text)
			abort();
	}
	memcpy(into->text + into->length, data, length);
	into->length += length;
	into->text[into->length] = '\0';
}

/* Ends of what the tool writes to: [0] is ours. */
typedef struct streams {
	int out[2], err[2];
} streams;

static bool open_terminal(streams *s)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	s->out[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (s->out[0] < 0 || grantpt(s->out[0]) != 0 || unlockpt(s->out[0]) != 0)
		return false;
	s->out[1] = open(ptsname(s->out[0]), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (s->out[1] < 0)
		return false;
	ioctl(s->out[1], TIOCSWINSZ, &size);
	s->err[0] = -1;
	s->err[1] = s->out[1];
	return true;
}

static bool open_streams(bool terminal, streams *s)
{
	if (terminal)
		return open_terminal(s);
	if (pipe(s->out) != 0 || pipe(s->err) != 0)
		return false;
	for (int i = 0; i < 2; i++) {
		fcntl(s->out[i], F_SETFD, FD_CLOEXEC);
		fcntl(s->err[i], F_SETFD, FD_CLOEXEC);
	}
	return true;
}

static void start_child(const dg_test_tool_request *request, const streams *s, const char *path,
	char **argv, char **env)
{
	int null = open("/dev/null", O_RDONLY);
	int out = request->out_fd ? request->out_fd : s->out[1];
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(s->err[1], STDERR_FILENO);
	execve(path, argv, env);
	_exit(127);
}

/* Read what is there. @return false at the end. */
static bool drain(struct pollfd *poll_fd, gathered *into)
{
	char data[4096];
	if (!(poll_fd->revents & (POLLIN | POLLHUP | POLLERR)))
		return true;
	ssize_t length = read(poll_fd->fd, data, sizeof(data));
	/* A terminal whose other side is closed gives an error instead of an end. */
	if (length <= 0)
		return false;
	add(into, data, (size_t)length);
	return true;
}

static void gather(const dg_test_tool_request *request, pid_t child, const streams *s,
	gathered *out, gathered *err, bool *ret_late)
{
	struct pollfd fds[2] = { { s->out[0], POLLIN, 0 }, { s->err[0], POLLIN, 0 } };
	long long start = dg_test_now_ms();
	long long limit = start + (request->timeout_ms ? request->timeout_ms : 30000);
	bool interrupted = request->interrupt_ms == 0;
	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		if (dg_test_now_ms() > limit) {
			kill(child, SIGKILL);
			*ret_late = true;
			return;
		}
		if (!interrupted && dg_test_now_ms() - start >= request->interrupt_ms) {
			kill(child, SIGINT);
			interrupted = true;
		}
		if (poll(fds, 2, 20) <= 0)
			continue;
		if (fds[0].fd >= 0 && !drain(&fds[0], out))
			fds[0].fd = -1;
		if (fds[1].fd >= 0 && !drain(&fds[1], err))
			fds[1].fd = -1;
	}
}

static int wait_for(pid_t child)
{
	int status = 0;
	if (waitpid(child, &status, 0) != child)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void close_all(const streams *s, bool ours)
{
	int side = ours ? 0 : 1;
	close(s->out[side]);
	if (s->err[side] >= 0 && s->err[side] != s->out[side])
		close(s->err[side]);
}

dg_test_tool dg_test_tool_run(const dg_test_tool_request *request)
{
	dg_test_tool tool = { -1, NULL, NULL, 0 };
	gathered out = { 0 }, err = { 0 };
	char *env[ENV_MAX] = { NULL };
	char *argv[300] = { NULL };
	streams s;
	bool late = false;
	long long start = dg_test_now_ms();
	const char *path = dg_test_built("bin/devgate");
	argv[0] = (char *)(uintptr_t)path;
	for (size_t i = 0; request->args[i] && i + 2 < 300; i++)
		argv[i + 1] = (char *)(uintptr_t)request->args[i];
	if (access(path, X_OK) != 0)
		CU_FAIL_FATAL("the tool is not built");
	if (!open_streams(request->terminal, &s))
		CU_FAIL_FATAL("no pipe or terminal");
	make_environment(request->env, env);
	add(&out, "", 0);
	add(&err, "", 0);
	pid_t child = fork();
	if (child == 0)
		start_child(request, &s, path, argv, env);
	close_all(&s, false);
	gather(request, child, &s, &out, &err, &late);
	close_all(&s, true);
	tool.status = wait_for(child);
	if (late)
		tool.status = -1;
	CU_ASSERT_NOT_EQUAL(tool.status, 127);
	for (size_t i = 0; env[i]; i++)
		free(env[i]);
	tool.out = out.text;
	tool.err = err.text;
	tool.elapsed_ms = dg_test_now_ms() - start;
	return tool;
}

void dg_test_tool_finish(dg_test_tool *tool)
{
	free(tool->out);
	free(tool->err);
	tool->out = tool->err = NULL;
}
