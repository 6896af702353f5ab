/* Where the worker's executable is. See worker.h. */
#include "backends/worker/worker.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX "libexec/devgate/devgate-worker"

static bool is_program(const char *path)
{
	struct stat file;
	return stat(path, &file) == 0 && S_ISREG(file.st_mode) && access(path, X_OK) == 0;
}

static bool give(const char *path, char *buf, size_t size)
{
	size_t length = strlen(path);
	if (length >= size)
		return false;
	memcpy(buf, path, length + 1);
	return true;
}

/* Whether the file beside ../SUFFIX of self is there; its path, or the one tried, is in buf. */
static bool beside(const char *self, char *buf, size_t size)
{
	char real[PATH_MAX];
	if (!self || !realpath(self, real))
		return false;
	for (unsigned up = 0; up < 2; up++) {
		char *slash = strrchr(real, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
	int n = snprintf(buf, size, "%s/%s", real, SUFFIX);
	return n > 0 && (size_t)n < size && is_program(buf);
}

/* The file that holds this code: the shared library, or the program it was linked into. */
static const char *own_file(void)
{
	static const char anchor;
	Dl_info info;
	return dladdr(&anchor, &info) ? info.dli_fname : NULL;
}

dg_err dg__worker_find(char *buf, size_t size, dg_error *reterr)
{
	const char *named = getenv("DEVGATE_WORKER");
	if (named && *named) {
		if (is_program(named) && give(named, buf, size))
			return DG_OK;
		return dg_error_set(reterr, DG_EWORKER,
			"DEVGATE_WORKER names %.300s, which is no executable file", named);
	}
	char tried[2][PATH_MAX] = { "", "" };
	/* Linux; elsewhere the file is not there and the first answer counts alone. */
	const char *const selves[] = { own_file(), "/proc/self/exe" };
	for (unsigned i = 0; i < 2; i++) {
		if (beside(selves[i], tried[i], sizeof(tried[i])) && give(tried[i], buf, size))
			return DG_OK;
	}
	bool two = *tried[1] && strcmp(tried[0], tried[1]) != 0;
	return dg_error_set(reterr, DG_EWORKER,
		"no devgate-worker at %.200s%s%.200s; DEVGATE_WORKER may name it", tried[0],
		two ? " nor at " : "", two ? tried[1] : "");
}
