/* See registry.h. */
#include "backends/core/registry.h"

#include <string.h>

#define DG_BACKEND(name) extern const dg__backend dg__backend_##name;
#include "backends/core/registry.def"
#undef DG_BACKEND

static const dg__backend *const all[] = {
#define DG_BACKEND(name) &dg__backend_##name,
#include "backends/core/registry.def"
#undef DG_BACKEND
};

const dg__backend *const *dg__registry_all(size_t *ret_count)
{
	*ret_count = sizeof(all) / sizeof(all[0]);
	return all;
}

const dg__backend *dg__backend_find(const dg__backend *const *list, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(list[i]->name, name))
			return list[i];
	return NULL;
}

static bool well_named(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	size_t length = name ? strlen(name) : 0;
	return length > 0 && length < DG__BACKEND_NAME_MAX && strspn(name, allowed) == length;
}

static const char *missing_slot(const dg__backend *b)
{
#define SLOT(slot) \
	if (!b->slot) \
		return #slot;
	SLOT(enumerate)
	SLOT(describe)
	SLOT(telemetry)
	SLOT(open)
	SLOT(close)
	SLOT(room)
	SLOT(buf_create)
	SLOT(buf_destroy)
	SLOT(buf_write)
	SLOT(buf_read)
	SLOT(shapes)
	SLOT(kernel_create)
	SLOT(kernel_destroy)
	SLOT(time)
	SLOT(observe)
#undef SLOT
	return NULL;
}

dg_err dg__backend_check(const dg__backend *backend, dg_error *reterr)
{
	if (backend->abi != DG__BACKEND_ABI)
		return dg_error_set(reterr, DG_EINTERNAL, "a backend has layout %u, expected %u",
			(unsigned)backend->abi, DG__BACKEND_ABI);
	if (!well_named(backend->name))
		return dg_error_set(
			reterr, DG_EINTERNAL, "a backend's name is not 1..15 of [a-z0-9]");
	const char *missing = missing_slot(backend);
	if (missing)
		return dg_error_set(
			reterr, DG_EINTERNAL, "backend %s has no %s()", backend->name, missing);
	return DG_OK;
}
