/*
 * Default dtypes of a device: configured once, or locked by the first read.
 */
#ifndef DEVGATE_SETTINGS_H
#define DEVGATE_SETTINGS_H

#include <devgate/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Element types, of settings and of throughput keys. The rows are in dtypes.def. */
typedef enum dg_dtype {
	DG_DTYPE_NONE = 0,
#define DG_DTYPE(number, name, text, family, reference, bits) DG_##name = (number),
#include <devgate/dtypes.def>
#undef DG_DTYPE
} dg_dtype;

typedef enum dg_dtype_family { DG_FAMILY_FLOAT, DG_FAMILY_INT, DG_FAMILY_UINT } dg_dtype_family;

/** "f32"; NULL for a number that is none. */
const char *dg_dtype_text(unsigned dtype);
/** "F32", as the reference spells it; NULL for a number that is none. */
const char *dg_dtype_name(unsigned dtype);
dg_dtype_family dg_dtype_family_of(dg_dtype dtype);
/** Bits of one element; 0 for a number that is none. */
unsigned dg_dtype_bits(unsigned dtype);
/** Read either spelling, without case; DG_DTYPE_NONE where it is none. */
dg_dtype dg_dtype_parse(const char *text);

/** How a bool is stored. */
typedef enum dg_bool_store { DG_BOOL_NATIVE = 0, DG_BOOL_U8 = 1, DG_BOOL_U32 = 2 } dg_bool_store;
typedef enum dg_quant_store { DG_QUANT_NATIVE = 0, DG_QUANT_PACKED_U32 = 1 } dg_quant_store;

/** Settings. Quantization's value is Q8F, mode Symmetric, propagation Inhibit, always. */
typedef struct dg_settings {
	uint32_t size; /**< sizeof(dg_settings); DG_SETTINGS_INIT sets it */
	dg_dtype float_dtype; /**< a float */
	dg_dtype int_dtype; /**< an int */
	dg_bool_store bool_store;
	dg_quant_store quant_store;
} dg_settings;

#define DG_SETTINGS_INIT \
	{ \
		sizeof(dg_settings), DG_F32, DG_I32, DG_BOOL_U8, DG_QUANT_PACKED_U32 \
	}

/** "Native", "U8", "U32". */
const char *dg_bool_store_name(dg_bool_store store);
/** "Native", "PackedU32(0)". */
const char *dg_quant_store_name(dg_quant_store store);

/**
 * The defaults of a local variant; locks nothing. For Remote these are not known here:
 * DG_ENOTLOCAL.
 */
dg_err dg_settings_defaults(
	dg_device device, dg_settings *ret_settings, dg_error *reterr) DG_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
