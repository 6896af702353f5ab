/* See variant.h. */
#include "api/variant.h"
const dg__variant_row dg__variants[DG_VARIANT_COUNT] = {
#define DG_VARIANT(name, number, word, text, debug, form, int_, bool_, store, kernels) \
	[number] = { word, text, debug, DG__FORM_##form, DG_##int_, DG_BOOL_##bool_, \
		DG_QUANT_##store, (kernels) != 0 },
#include <devgate/variants.def>
#undef DG_VARIANT
};

#define DG_VARIANT(name, number, word, text, debug, form, int_, bool_, store, kernels)

const char *const dg__variant_inner[DG_VARIANT_COUNT] = {
#define DG_VARIANT_INNER(name, inner) [DG_##name] = inner,
#include <devgate/variants.def>
#undef DG_VARIANT_INNER
};

const uint8_t dg__order[DG__ORDER_COUNT] = {
#define DG_VARIANT_ORDER(name) DG_##name,
#include <devgate/variants.def>
#undef DG_VARIANT_ORDER
};

const dg__kind_row dg__kinds[DG__FORM_COUNT][DG__KINDS_MAX] = {
#define DG_VARIANT_KIND(form, number, text, debug, indexed) \
	[DG__FORM_##form][number] = { text, debug, (indexed) != 0 },
#include <devgate/variants.def>
#undef DG_VARIANT_KIND
};
