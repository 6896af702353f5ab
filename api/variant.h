/*
 * The rows of variants.def as tables, for the code that reads, writes and chooses devices.
 */
#ifndef DEVGATE_API_VARIANT_H
#define DEVGATE_API_VARIANT_H

#include <devgate/settings.h>

/** What a variant holds. */
typedef enum dg__form {
	DG__FORM_UNIT, /* nothing */
	DG__FORM_INDEX, /* a hardware index */
	DG__FORM_ADAPTER, /* a kind of the wgpu family, with or without an index */
	DG__FORM_TORCH, /* a kind of LibTorch's, with or without an index */
	DG__FORM_REMOTE, /* a place in the registry */
	DG__FORM_CAPTURE, /* a counter */
	DG__FORM_COUNT
} dg__form;

typedef struct dg__variant_row {
	const char *word; /* NULL: has none */
	const char *text, *debug;
	dg__form form;
	dg_dtype int_dtype;
	dg_bool_store bool_store;
	dg_quant_store quant_store;
	bool kernels;
} dg__variant_row;

/** By backend number. */
extern const dg__variant_row dg__variants[DG_VARIANT_COUNT];

/** The variants that can be a default, in the built-in order. */
#define DG__ORDER_COUNT 11
extern const uint8_t dg__order[DG__ORDER_COUNT];

/** Name in Debug text of what a UNIT or INDEX variant holds; NULL for the others. */
extern const char *const dg__variant_inner[DG_VARIANT_COUNT];

#define DG__KINDS_MAX 6

typedef struct dg__kind_row {
	const char *text, *debug; /* NULL: the form has no such kind */
	bool indexed; /* holds an index */
} dg__kind_row;

/** By form, then internal type id. */
extern const dg__kind_row dg__kinds[DG__FORM_COUNT][DG__KINDS_MAX];

#endif
