/* Where the worker's executable is. See worker.h. */
#include "backends/worker/worker.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX "libexec/devgate/devgate-worker"

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
	return n > 0 && (size_t)n < size && access(buf, X_OK) == 0;
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
		int n = snprintf(buf, size, "%s", named);
		if (n > 0 && (size_t)n < size && access(buf, X_OK) == 0)
			return DG_OK;
		return dg_error_set(reterr, DG_EWORKER,
			"DEVGATE_WORKER names %.300s, which is no executable file", named);
	}
	char tried[2][PATH_MAX] = { "", "" };
	/* Linux; elsewhere the file is not there and the first answer counts alone. */
	const char *const selves[] = { own_file(), "/proc/self/exe" };
	for (unsigned i = 0; i < 2; i++) {
		if (!beside(selves[i], tried[i], sizeof(tried[i])))
			continue;
		int n = snprintf(buf, size, "%s", tried[i]);
		if (n > 0 && (size_t)n < size)
			return DG_OK;
	}
	bool two = *tried[1] && strcmp(tried[0], tried[1]) != 0;
	return dg_error_set(reterr, DG_EWORKER,
		"no devgate-worker at %.200s%s%.200s; DEVGATE_WORKER may name it", tried[0],
		two ? " nor at " : "", two ? tried[1] : "");
}
