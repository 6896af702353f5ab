/* See dynlib.h. */
#include "backends/core/dynlib.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dg__dynlib {
	void *handle;
	char name[256];
};

/*
 * The loader has no code for "not there". Its words begin with the file it misses, which may be
 * another one that the driver needs.
 */
static bool is_there(const char *name, const char *words)
{
	if (strchr(name, '/'))
		return access(name, F_OK) == 0;
#ifdef __APPLE__
	return strstr(words, "Library not loaded") || !strstr(words, "no such file");
#else
	return strncmp(words, name, strlen(name)) != 0 || !strstr(words, "No such file");
#endif
}

static dg_err open_failed(const char *const *names, const char *broken, dg_error *reterr)
{
	char tried[256] = "";
	size_t used = 0;
	if (broken[0])
		return dg_error_set(
			reterr, DG_EDRIVER, "the driver library does not load: %s", broken);
	for (size_t i = 0; names[i] && used < sizeof(tried); i++)
		used += (size_t)snprintf(
			tried + used, sizeof(tried) - used, "%s%s", i ? ", " : "", names[i]);
	return dg_error_set(
		reterr, DG_ENODRIVER, "the driver library is not installed; looked for %s", tried);
}

dg_err dg__dynlib_open(const char *const *names, dg__dynlib **ret_lib, dg_error *reterr)
{
	char broken[256] = "";
	for (size_t i = 0; names[i]; i++) {
		void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		if (!handle) {
			const char *words = dlerror();
			if (words && !broken[0] && is_there(names[i], words))
				snprintf(broken, sizeof(broken), "%s", words);
			continue;
		}
		dg__dynlib *lib = calloc(1, sizeof(*lib));
		if (!lib) {
			dlclose(handle);
			return dg_error_set(reterr, DG_ENOMEM, NULL);
		}
		lib->handle = handle;
		snprintf(lib->name, sizeof(lib->name), "%s", names[i]);
		*ret_lib = lib;
		return DG_OK;
	}
	return open_failed(names, broken, reterr);
}

void dg__dynlib_close(dg__dynlib *lib)
{
	if (!lib)
		return;
	dlclose(lib->handle);
	free(lib);
}

const char *dg__dynlib_name(const dg__dynlib *lib)
{
	return lib->name;
}

static void *find(dg__dynlib *lib, const dg__symbol *symbol)
{
	void *address = dlsym(lib->handle, symbol->name);
	if (!address && symbol->fallback)
		address = dlsym(lib->handle, symbol->fallback);
	return address;
}

dg_err dg__dynlib_load(
	dg__dynlib *lib, const dg__symbol *symbols, size_t count, void *table, dg_error *reterr)
{
	for (size_t i = 0; i < count; i++)
		if (!find(lib, &symbols[i]))
			return dg_error_set(reterr, DG_EDRIVER, "%s has no symbol %s", lib->name,
				symbols[i].name);
	for (size_t i = 0; i < count; i++) {
		void *address = find(lib, &symbols[i]);
		/*
		 * C has no conversion from void * to a function pointer; POSIX grants the same
		 * bytes.
		 */
		memcpy((char *)table + symbols[i].offset, &address, sizeof(address));
	}
	return DG_OK;
}
