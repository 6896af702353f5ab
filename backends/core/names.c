/* See names.h. */
#include "backends/core/names.h"

#include <string.h>

static const char *const names[] = {
#define DG_BACKEND(name) #name,
#include "backends/core/registry.def"
#undef DG_BACKEND
};

const char *const *dg__backend_names(size_t *ret_count)
{
	*ret_count = sizeof(names) / sizeof(names[0]);
	return names;
}

bool dg__backend_known(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}
