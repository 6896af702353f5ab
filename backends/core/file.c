/* See file.h. */
#include "backends/core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_ROOM ((size_t)4096)

static dg_err fault(const char *path, int number, dg_err code, dg_error *reterr)
{
	return dg_error_native(reterr, code, "system", number, "%.200s cannot be read: %s", path,
		strerror(number));
}

static const char *kind(mode_t mode)
{
	return S_ISDIR(mode)    ? "a folder"
	       : S_ISFIFO(mode) ? "a pipe"
	       : S_ISCHR(mode)  ? "a device"
	       : S_ISBLK(mode)  ? "a device"
	       : S_ISSOCK(mode) ? "a socket"
				: "something else";
}

/* Opening a socket fails, and so may a device; what it is tells more than the system's reason. */
static dg_err refuse(const char *path, int number, dg_err code, dg_error *reterr)
{
	struct stat st;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return dg_error_set(
			reterr, code, "%.200s is %s, not a regular file", path, kind(st.st_mode));
	return fault(path, number, code, reterr);
}

/* Not blocking, so that opening a pipe nobody writes to does not last for ever. */
static dg_err open_regular(const char *path, dg_err code, int *ret_fd, dg_error *reterr)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return refuse(path, errno, code, reterr);
	dg_err err = DG_OK;
	if (fstat(fd, &st) != 0)
		err = fault(path, errno, code, reterr);
	else if (!S_ISREG(st.st_mode))
		err = dg_error_set(
			reterr, code, "%.200s is %s, not a regular file", path, kind(st.st_mode));
	if (err == DG_OK)
		*ret_fd = fd;
	else
		close(fd);
	return err;
}

/* To its end, or one byte beyond max: the size that the system tells may be 0 or change. */
static dg_err read_whole(int fd, const char *path, size_t max, dg_err code, char **text,
	size_t *length, dg_error *reterr)
{
	size_t room = 0;
	for (;;) {
		if (*length == room) {
			room = room ? room * 2 : FIRST_ROOM;
			room = room > max ? max + 1 : room;
			char *more = realloc(*text, room + 1);
			if (!more)
				return dg_error_set(reterr, DG_ENOMEM, NULL);
			*text = more;
		}
		ssize_t n = read(fd, *text + *length, room - *length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fault(path, errno, code, reterr);
		*length += (size_t)n;
		if (*length > max)
			return dg_error_set(
				reterr, code, "%.200s is longer than %zu bytes", path, max);
		if (n == 0)
			return DG_OK;
	}
}

dg_err dg__file_check(const char *path, dg_err code, dg_error *reterr)
{
	int fd = -1;
	dg_err err = open_regular(path, code, &fd, reterr);
	if (err == DG_OK)
		close(fd);
	return err;
}

dg_err dg__file_read(const char *path, size_t max, dg_err code, char **ret_text, size_t *ret_length,
	dg_error *reterr)
{
	int fd = -1;
	char *text = NULL;
	size_t length = 0;
	dg_err err = open_regular(path, code, &fd, reterr);
	if (err != DG_OK)
		return err;
	err = read_whole(fd, path, max, code, &text, &length, reterr);
	close(fd);
	if (err != DG_OK) {
		free(text);
		return err;
	}
	text[length] = '\0';
	*ret_text = text;
	*ret_length = length;
	return DG_OK;
}
