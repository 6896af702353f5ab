/* See confine.h. Linux has means of its own for some of these; elsewhere the plain ones serve. */
#include "backends/worker/confine.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef __linux__
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#endif

static void close_above(int fd)
{
#if defined(__linux__) && defined(SYS_close_range)
	if (syscall(SYS_close_range, (unsigned)fd + 1, ~0u, 0u) == 0)
		return;
#endif
	struct rlimit limit;
	int last = 65536;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536)
		last = (int)limit.rlim_cur;
	for (int i = fd + 1; i < last; i++)
		close(i);
}

#define GO_FIRST "500" /* of 1000 */

/* Who started it is to outlive it. A process that is to go even before keeps its place. */
static void go_first(void)
{
	char now[16] = "";
	int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	if (read(fd, now, sizeof(now) - 1) > 0 &&
		strtol(now, NULL, 10) < strtol(GO_FIRST, NULL, 10)) {
		ssize_t written = write(fd, GO_FIRST, sizeof(GO_FIRST) - 1);
		(void)written;
	}
	close(fd);
}

#if defined(__linux__) && defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#define NUMBERS_END 0x40000000u /* from there on are the calls of x32 */
#elif defined(__linux__) && defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#define NUMBERS_END 0xffffffffu
#endif

#ifdef NATIVE
#define FIELD(name) ((unsigned)offsetof(struct seccomp_data, name))
#define LOAD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIELD(name))
#define IF(op, value, yes, no) BPF_JUMP(BPF_JMP | (op) | BPF_K, (value), (yes), (no))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (value))
#define FAIL(error) RETURN(SECCOMP_RET_ERRNO | (error))

/*
 * A driver needs no network: what runs in here cannot open a socket but those of this machine's
 * services (AF_UNIX) and of its kernel (AF_NETLINK). io_uring, which opens sockets past the filter,
 * and calls of other architectures are not there.
 */
static void drop_network(void)
{
	struct sock_filter filter[] = {
		LOAD(arch),
		IF(BPF_JEQ, NATIVE, 1, 0),
		FAIL(ENOSYS),
		LOAD(nr),
		IF(BPF_JGE, NUMBERS_END, 1, 0),
		IF(BPF_JEQ, 425 /* io_uring_setup, of all architectures */, 0, 1),
		FAIL(ENOSYS),
		IF(BPF_JEQ, SYS_socket, 1, 0),
		RETURN(SECCOMP_RET_ALLOW),
		/* The low half, which is the first one: both architectures are little-endian. */
		LOAD(args[0]),
		IF(BPF_JEQ, AF_UNIX, 1, 0),
		IF(BPF_JEQ, AF_NETLINK, 0, 1),
		RETURN(SECCOMP_RET_ALLOW),
		FAIL(EACCES),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };
	/* A kernel without it, or one that is told not to, confines less. */
	(void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
#else
static void drop_network(void)
{
}
#endif

void dg__confine(int fd, uint64_t memory_bytes)
{
	struct rlimit none = { 0, 0 };
	(void)setrlimit(RLIMIT_CORE, &none);
	if (memory_bytes) {
		struct rlimit memory = { (rlim_t)memory_bytes, (rlim_t)memory_bytes };
		(void)setrlimit(RLIMIT_AS, &memory);
	}
#ifdef __linux__
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#endif
	close_above(fd);
	go_first();
	drop_network();
}
