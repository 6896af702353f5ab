/* See spawn.h. */
#include "backends/worker/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/core/clock.h"

#ifdef __APPLE__
extern char **environ;
#endif

/* Nothing of ours is inherited but the socket; the child closes what other code left open. */
static int set_files(posix_spawn_file_actions_t *files, int theirs)
{
	const char *keep = getenv("DEVGATE_WORKER_STDERR");
	int err = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
	if (!err)
		err = posix_spawn_file_actions_addopen(files, 1, "/dev/null", O_WRONLY, 0);
	if (!err && !(keep && strcmp(keep, "1") == 0))
		err = posix_spawn_file_actions_addopen(files, 2, "/dev/null", O_WRONLY, 0);
	if (!err)
		err = posix_spawn_file_actions_adddup2(files, theirs, DG__WORKER_FD);
	return err;
}

/*
 * No signal is blocked or ignored there, whatever the caller does with them, and a terminal's
 * Ctrl-C is for the caller alone.
 */
static int set_attributes(posix_spawnattr_t *attributes)
{
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	/* Some systems refuse a set that holds what cannot be caught. */
	sigdelset(&all, SIGKILL);
	sigdelset(&all, SIGSTOP);
	int err = posix_spawnattr_setsigmask(attributes, &none);
	if (!err)
		err = posix_spawnattr_setsigdefault(attributes, &all);
	if (!err)
		err = posix_spawnattr_setpgroup(attributes, 0);
	if (!err)
		err = posix_spawnattr_setflags(attributes,
			POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	return err;
}

static int start(const char *path, const dg__worker_options *options, int theirs, pid_t *ret_pid)
{
	char fd[16], idle[16], memory[24];
	snprintf(fd, sizeof(fd), "%d", DG__WORKER_FD);
	snprintf(idle, sizeof(idle), "%lu", (unsigned long)options->idle_ms);
	snprintf(memory, sizeof(memory), "%llu", (unsigned long long)options->memory_limit_bytes);
	const char *argv[] = { "devgate-worker", "--backend", options->backend, "--fd", fd,
		"--idle-ms", idle, "--memory-bytes", memory, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int err = posix_spawn_file_actions_init(&files);
	if (err)
		return err;
	err = posix_spawnattr_init(&attributes);
	if (!err) {
		err = set_files(&files, theirs);
		if (!err)
			err = set_attributes(&attributes);
		if (!err)
			err = posix_spawn(
				ret_pid, path, &files, &attributes, (char *const *)argv, environ);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&files);
	return err;
}

/* Both ends close-on-exec, and above the descriptor that the child's end becomes. */
static bool make_pair(int pair[2])
{
	int low[2];
#ifdef SOCK_CLOEXEC
	const int type = SOCK_STREAM | SOCK_CLOEXEC;
#else
	const int type = SOCK_STREAM;
#endif
	if (socketpair(AF_UNIX, type, 0, low) != 0)
		return false;
	for (unsigned i = 0; i < 2; i++) {
		pair[i] = fcntl(low[i], F_DUPFD_CLOEXEC, DG__WORKER_FD + 1);
		close(low[i]);
	}
	if (pair[0] >= 0 && pair[1] >= 0)
		return true;
	for (unsigned i = 0; i < 2; i++)
		if (pair[i] >= 0)
			close(pair[i]);
	return false;
}

bool dg__spawn_reap(pid_t pid, unsigned wait_ms, int *ret_status)
{
	uint64_t until = dg__clock_ns() + (uint64_t)wait_ms * 1000000;
	for (;;) {
		int status = 0;
		pid_t got = waitpid(pid, &status, WNOHANG);
		if (got == pid || (got < 0 && errno != EINTR)) {
			*ret_status = got == pid ? status : DG__STATUS_UNKNOWN;
			return true;
		}
		if (dg__clock_ns() >= until)
			return false;
		dg__clock_sleep_ns(1000000);
	}
}

/* Children left behind, each with the process whose child it is; without a lock, for fork(). */
#define LEFT_MAX 64
static _Atomic(uint64_t) left[LEFT_MAX];

static uint64_t left_entry(pid_t pid)
{
	return (uint64_t)(uint32_t)getpid() << 32 | (uint32_t)pid;
}

/* With every place taken the zombie stays until this process ends. */
static void keep_left(uint64_t entry)
{
	for (unsigned i = 0; i < LEFT_MAX; i++) {
		uint64_t none = 0;
		if (atomic_compare_exchange_strong(&left[i], &none, entry))
			return;
	}
}

static void sweep(void)
{
	for (unsigned i = 0; i < LEFT_MAX; i++) {
		if (atomic_load(&left[i]) == 0)
			continue;
		uint64_t entry = atomic_exchange(&left[i], 0);
		pid_t pid = (pid_t)(uint32_t)entry;
		int status;
		if (entry == left_entry(pid) && !dg__spawn_reap(pid, 0, &status))
			keep_left(entry);
	}
}

void dg__spawn_leave(pid_t pid)
{
	keep_left(left_entry(pid));
	sweep();
}

dg_err dg__spawn(const char *path, const dg__worker_options *options, pid_t *ret_pid, int *ret_fd,
	dg_error *reterr)
{
	int pair[2];
	sweep();
	if (!make_pair(pair))
		return dg_error_native(reterr, DG_EIO, "socketpair", errno,
			"no socket pair for a worker: %s", strerror(errno));
	int fault = start(path, options, pair[1], ret_pid);
	close(pair[1]);
	if (fault) {
		close(pair[0]);
		return dg_error_native(reterr, DG_EWORKER, "spawn", fault,
			"%s cannot be started: %s", path, strerror(fault));
	}
	*ret_fd = pair[0];
	return DG_OK;
}

int dg__spawn_describe(int status, char *buf, size_t size)
{
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
	snprintf(buf, size, "%s %d",
		WIFSIGNALED(status) ? "was killed by signal" : "exited with status", number);
	return number;
}
