/* Default dtypes of a device, shown, configured or locked: see devgate.h. */
#include "api/locked.h"
#include "client/dispatch.h"

/* What is kept, else the defaults. A local device's need no driver. */
static dg_err show(
	dg_device device, const dg_call *call, dg_settings *ret_settings, dg_error *reterr)
{
	dg__call c;
	dg__device_entry entry;
	dg_err err = dg__device_check(device, reterr);
	if (!err)
		err = dg__call_begin(call, DG__QUESTION_MS, &c, reterr);
	if (err || dg__locked_get(dg_device_to_id(device), ret_settings))
		return err;
	device = dg_device_inner(device);
	if (device.variant != DG_REMOTE)
		return dg_settings_defaults(device, ret_settings, reterr);
	err = dg__describe(device, &c, &entry, reterr);
	if (!err)
		*ret_settings = entry.settings;
	return err;
}

dg_err dg_settings_show(
	dg_device device, const dg_call *call, dg_settings *ret_settings, dg_error *reterr)
{
	return show(device, call, ret_settings, reterr);
}

dg_err dg_settings_get(
	dg_device device, const dg_call *call, dg_settings *ret_settings, dg_error *reterr)
{
	dg_settings settings;
	dg_err err = show(device, call, &settings, reterr);
	if (err)
		return err;
	return dg__locked_first_read(dg_device_to_id(device), &settings, ret_settings, reterr);
}

static dg_err check_values(const dg_settings *settings, dg_error *reterr)
{
	if (settings->size != sizeof(*settings))
		return dg_error_set(reterr, DG_EINVALID,
			"the size of the settings is %u, expected %zu: make them with "
			"DG_SETTINGS_INIT",
			(unsigned)settings->size, sizeof(*settings));
	if (!dg_dtype_text(settings->float_dtype) ||
		dg_dtype_family_of(settings->float_dtype) != DG_FAMILY_FLOAT)
		return dg_error_set(reterr, DG_EDTYPE, "the float dtype is %s, expected a float",
			dg_dtype_text(settings->float_dtype) ? dg_dtype_text(settings->float_dtype)
							     : "unknown");
	if (!dg_dtype_text(settings->int_dtype) ||
		dg_dtype_family_of(settings->int_dtype) != DG_FAMILY_INT)
		return dg_error_set(reterr, DG_EDTYPE,
			"the int dtype is %s, expected a signed integer",
			dg_dtype_text(settings->int_dtype) ? dg_dtype_text(settings->int_dtype)
							   : "unknown");
	if ((unsigned)settings->bool_store > DG_BOOL_U32 ||
		(unsigned)settings->quant_store > DG_QUANT_PACKED_U32)
		return dg_error_set(reterr, DG_EINVALID, "a store of the settings is unknown");
	return DG_OK;
}

static dg_err check_dtype(const dg_device_info *info, dg_dtype dtype, dg_error *reterr)
{
	if (dg_info_has_dtype(info, dtype))
		return DG_OK;
	return dg_error_set(
		reterr, DG_EDTYPE, "%.120s cannot compute in %s", info->name, dg_dtype_text(dtype));
}

dg_err dg_settings_configure(
	dg_device device, const dg_settings *settings, const dg_call *call, dg_error *reterr)
{
	dg__call c;
	dg__device_entry entry;
	dg_settings kept;
	dg_err err = dg__device_check(device, reterr);
	if (!err)
		err = check_values(settings, reterr);
	if (!err)
		err = dg__call_begin(call, DG__QUESTION_MS, &c, reterr);
	if (err)
		return err;
	/* No need to ask anybody about what cannot be set any more. */
	if (dg__locked_get(dg_device_to_id(device), &kept))
		return dg__locked_configure(dg_device_to_id(device), settings, reterr);
	err = dg__describe(device, &c, &entry, reterr);
	if (!err)
		err = check_dtype(&entry.info, settings->float_dtype, reterr);
	if (!err)
		err = check_dtype(&entry.info, settings->int_dtype, reterr);
	if (!err)
		err = dg__locked_configure(dg_device_to_id(device), settings, reterr);
	return err;
}
