/* The default device of this process's environment: see dg_default_device() of devgate.h. */
#include <strings.h>

#include "api/variant.h"
#include "client/local.h"

/* A forced word needs no other backend than its own looked for, and most need none. */
static dg_variant_set enabled_for_word(const char *word, const dg__call *call)
{
	for (unsigned v = 0; v < DG_VARIANT_COUNT; v++) {
		if (!dg__variants[v].word || strcasecmp(dg__variants[v].word, word) != 0)
			continue;
		if (DG_ALWAYS_ENABLED & DG_VARIANT_BIT(v) || !dg__local_has((dg_variant)v, call))
			return DG_ALWAYS_ENABLED;
		return DG_ALWAYS_ENABLED | DG_VARIANT_BIT(v);
	}
	return DG_ALWAYS_ENABLED;
}

static dg_variant_set enabled_here(const dg__call *call)
{
	dg__local_found found[DG_BACKENDS_MAX];
	dg_variant_set set = DG_ALWAYS_ENABLED;
	size_t count;
	dg__local_detect_all(call, found, &count);
	for (size_t i = 0; i < count; i++)
		if (!found[i].code)
			set |= dg__local_variants(&found[i].list);
	dg__local_found_finish(found, count);
	return set;
}

dg_err dg_default_device(const dg_call *call, dg_device *ret_device, dg_error *reterr)
{
	dg_default_request request = { 0 };
	dg__call c;
	dg_err err = dg__call_begin(call, DG__QUESTION_MS, &c, reterr);
	if (err)
		return err;
	dg_default_from_environment(&request);
	if (request.devgate_device && *request.devgate_device)
		request.enabled = DG_ALWAYS_ENABLED;
	else if (request.burn_device)
		request.enabled = enabled_for_word(request.burn_device, &c);
	else
		request.enabled = enabled_here(&c);
	return dg_default_choose(&request, ret_device, reterr);
}
