/* See settings.h. */
#include <devgate/settings.h>

#include "api/lex.h"
#include "api/variant.h"

typedef struct dtype_row {
	const char *text, *name;
	dg_dtype_family family;
	unsigned bits;
} dtype_row;

static const dtype_row dtypes[] = {
#define DG_DTYPE(number, name, text, family, reference, bits) \
	[number] = { text, reference, DG_FAMILY_##family, bits },
#include <devgate/dtypes.def>
#undef DG_DTYPE
};

#define DTYPE_END (sizeof(dtypes) / sizeof(dtypes[0]))

static const dtype_row *dtype_row_of(unsigned dtype)
{
	return dtype < DTYPE_END && dtypes[dtype].text ? &dtypes[dtype] : NULL;
}

const char *dg_dtype_text(unsigned dtype)
{
	const dtype_row *row = dtype_row_of(dtype);
	return row ? row->text : NULL;
}

const char *dg_dtype_name(unsigned dtype)
{
	const dtype_row *row = dtype_row_of(dtype);
	return row ? row->name : NULL;
}

dg_dtype_family dg_dtype_family_of(dg_dtype dtype)
{
	const dtype_row *row = dtype_row_of(dtype);
	return row ? row->family : DG_FAMILY_FLOAT;
}

unsigned dg_dtype_bits(unsigned dtype)
{
	const dtype_row *row = dtype_row_of(dtype);
	return row ? row->bits : 0;
}

dg_dtype dg_dtype_parse(const char *text)
{
	/* Both spellings of every row are the same word but for case. */
	size_t length = text ? strlen(text) : 0;
	for (unsigned i = 0; length && i < DTYPE_END; i++)
		if (dtypes[i].text && dg__word_is(text, length, dtypes[i].text))
			return (dg_dtype)i;
	return DG_DTYPE_NONE;
}

const char *dg_bool_store_name(dg_bool_store store)
{
	return store == DG_BOOL_U8 ? "U8" : store == DG_BOOL_U32 ? "U32" : "Native";
}

const char *dg_quant_store_name(dg_quant_store store)
{
	return store == DG_QUANT_PACKED_U32 ? "PackedU32(0)" : "Native";
}

dg_err dg_settings_defaults(dg_device device, dg_settings *ret_settings, dg_error *reterr)
{
	if (device.variant >= DG_VARIANT_COUNT)
		return dg_error_set(reterr, DG_EINVALID, "%u is no variant of a device",
			(unsigned)device.variant);
	const dg__variant_row *row = &dg__variants[device.variant];
	if (row->form == DG__FORM_REMOTE)
		return dg_error_set(reterr, DG_ENOTLOCAL,
			"a remote device's settings are known to its gateway only");
	*ret_settings = (dg_settings){ .size = sizeof(*ret_settings),
		.float_dtype = DG_F32,
		.int_dtype = row->int_dtype,
		.bool_store = row->bool_store,
		.quant_store = row->quant_store };
	return DG_OK;
}
