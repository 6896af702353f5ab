/* What a worker gives up before it opens a driver. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CUnit/CUnit.h>

#include "backends/worker/confine.h"
#include "tests/test.h"

/* Run a check in a confined child; its answer. */
static bool holds(bool (*check)(void), uint64_t memory_bytes)
{
	int status = -1;
	pid_t child = fork();
	CU_ASSERT_FATAL(child >= 0);
	if (child == 0) {
		dg__confine(2, memory_bytes);
		_exit(check() ? 0 : 1);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool no_descriptors(void)
{
	for (int fd = 3; fd < 64; fd++)
		if (dup(fd) >= 0)
			return false;
	return true;
}

static bool no_core(void)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0 && limit.rlim_max == 0;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static bool little_memory(void)
{
	char *volatile much = malloc((size_t)1 << 32);
	bool refused = !much;
	free(much);
	return refused;
}
#endif

static void test_confined__holds_nothing_and_leaves_nothing(void)
{
	int extra = dup(0);
	CU_ASSERT(extra > 2);
	CU_ASSERT(holds(no_descriptors, 0));
	CU_ASSERT(holds(no_core, 0));
	close(extra);
}

static void test_confined__has_a_limit_of_memory(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	dg_test_skip("address space", "a sanitizer reserves more than any limit");
#else
	CU_ASSERT(holds(little_memory, (uint64_t)2 << 30));
#endif
}

#ifdef __linux__
static bool refused(int family)
{
	errno = 0;
	return socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0 && errno == EACCES;
}

static bool no_network(void)
{
	return refused(AF_INET) && refused(AF_INET6) && refused(AF_PACKET) && refused(40);
}

static bool services_of_this_machine(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0) >= 0 && socket(AF_NETLINK, SOCK_RAW, 0) >= 0;
}

static bool no_way_around(void)
{
	errno = 0;
	long ring = syscall(425, 4, NULL);
	return ring < 0 && errno == ENOSYS;
}
#endif

static void test_confined__has_no_network(void)
{
#ifdef __linux__
	CU_ASSERT(holds(no_network, 0));
	CU_ASSERT(holds(services_of_this_machine, 0));
	CU_ASSERT(holds(no_way_around, 0));
#else
	dg_test_skip("seccomp", "only Linux filters system calls");
#endif
}

static const dg_test_case cases[] = {
	DG_TEST(test_confined__holds_nothing_and_leaves_nothing),
	DG_TEST(test_confined__has_a_limit_of_memory),
	DG_TEST(test_confined__has_no_network),
};

DG_TEST_MAIN("what a worker gives up", cases)
