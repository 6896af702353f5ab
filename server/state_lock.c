/* See state_lock.h. */
#include "server/state_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_ROOM 1100
#define PID_ROOM 24

static dg_err fault(const char *path, int number, dg_error *reterr)
{
	return dg_error_native(reterr, DG_ESTATE, "system", number, "%.300s cannot be locked: %s",
		path, strerror(number));
}

static dg_err refuse(int fd, const char *directory, dg_error *reterr)
{
	char pid[PID_ROOM] = "";
	ssize_t n = pread(fd, pid, sizeof(pid) - 1, 0);
	size_t digits = n > 0 ? strspn(pid, "0123456789") : 0;
	/* Empty where the holder has just taken it. */
	bool known = digits > 0 && pid[digits] == '\n';
	pid[digits] = '\0';
	return dg_error_set(reterr, DG_ECONFIG,
		"the state folder %.300s is used by another devgated%s%s; end that one, or give "
		"this one another --state-dir or --ephemeral",
		directory, known ? ", process " : "", known ? pid : "");
}

static dg_err write_pid(int fd, const char *path, dg_error *reterr)
{
	char text[PID_ROOM];
	int length = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) != 0)
		return fault(path, errno, reterr);
	ssize_t n = pwrite(fd, text, (size_t)length, 0);
	if (n != length)
		return fault(path, n < 0 ? errno : ENOSPC, reterr);
	return DG_OK;
}

static int open_lock(const char *path, bool read_only)
{
	const int how = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	return read_only ? open(path, O_RDONLY | how) : open(path, O_RDWR | O_CREAT | how, 0600);
}

dg_err dg__state_lock(const char *directory, bool read_only, int *ret_fd, dg_error *reterr)
{
	char path[PATH_ROOM];
	struct stat st;
	int n = snprintf(path, sizeof(path), "%s/lock", directory);
	if (n < 0 || (size_t)n >= sizeof(path))
		return dg_error_set(reterr, DG_ESTATE, "the state folder's path is too long");
	int fd = open_lock(path, read_only);
	if (fd < 0 && read_only && errno == ENOENT) {
		*ret_fd = -1;
		return DG_OK;
	}
	if (fd < 0)
		return fault(path, errno, reterr);
	dg_err err = DG_OK;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		err = dg_error_set(reterr, DG_ESTATE, "%.300s is not a regular file", path);
	/* flock() is of BSD, not POSIX, and there on Linux and macOS alike: unlike a lock of
	 * fcntl() it does not end when something else in this process closes the file. */
	else if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		err = errno == EWOULDBLOCK ? refuse(fd, directory, reterr)
					   : fault(path, errno, reterr);
	else if (!read_only)
		err = write_pid(fd, path, reterr);
	if (err == DG_OK)
		*ret_fd = fd;
	else
		close(fd);
	return err;
}
