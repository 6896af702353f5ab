/* See http_watch.h. Linux has epoll and POLLRDHUP; elsewhere waiting is all there is. */
#include "server/http_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/epoll.h>
#endif

static bool make_bell(dg__watch *watch)
{
	if (pipe(watch->bell) != 0) {
		watch->bell[0] = watch->bell[1] = -1;
		return false;
	}
	for (unsigned i = 0; i < 2; i++)
		if (fcntl(watch->bell[i], F_SETFL, O_NONBLOCK) != 0 ||
			fcntl(watch->bell[i], F_SETFD, FD_CLOEXEC) != 0)
			return false;
	return true;
}

bool dg__watch_init(dg__watch *watch)
{
	watch->set = -1;
	if (!make_bell(watch))
		return false;
#ifdef __linux__
	struct epoll_event bell = { .events = EPOLLIN, .data.ptr = NULL };
	watch->set = epoll_create1(EPOLL_CLOEXEC);
	return watch->set >= 0 && epoll_ctl(watch->set, EPOLL_CTL_ADD, watch->bell[0], &bell) == 0;
#else
	return true;
#endif
}

void dg__watch_finish(dg__watch *watch)
{
	if (watch->set >= 0)
		close(watch->set);
	for (unsigned i = 0; i < 2; i++)
		if (watch->bell[i] >= 0)
			close(watch->bell[i]);
}

void dg__watch_add(dg__watch *watch, int fd, void *user)
{
#ifdef __linux__
	struct epoll_event event = { .events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = user };
	/* Without it the connection's time limits still end it. */
	(void)epoll_ctl(watch->set, EPOLL_CTL_ADD, fd, &event);
#else
	(void)watch;
	(void)fd;
	(void)user;
#endif
}

bool dg__watch_closed(int fd)
{
#ifdef __linux__
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };
	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
#else
	(void)fd;
	return false;
#endif
}

static void silence_bell(dg__watch *watch)
{
	char bytes[64];
	while (read(watch->bell[0], bytes, sizeof(bytes)) > 0) {
	}
}

size_t dg__watch_wait(dg__watch *watch, int timeout_ms, void **ret_users)
{
	size_t told = 0;
#ifdef __linux__
	struct epoll_event events[DG__WATCH_BATCH];
	int n = epoll_wait(watch->set, events, DG__WATCH_BATCH, timeout_ms);
	for (int i = 0; i < n; i++)
		if (events[i].data.ptr)
			ret_users[told++] = events[i].data.ptr;
#else
	struct pollfd bell = { .fd = watch->bell[0], .events = POLLIN };
	(void)poll(&bell, 1, timeout_ms);
	(void)ret_users;
#endif
	silence_bell(watch);
	return told;
}

void dg__watch_ring(dg__watch *watch)
{
	/* A full pipe rings already. */
	ssize_t written = write(watch->bell[1], "", 1);
	(void)written;
}
