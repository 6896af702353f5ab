/* See confine.h. Linux has means of its own for some of these; elsewhere the plain ones serve. */
#include "backends/worker/confine.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
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
}
