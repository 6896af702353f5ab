/* See identity.h. */
#include "client/identity.h"

#include <stdio.h>
#include <string.h>

#define BIT(dtype) ((uint64_t)1 << (dtype))

/* What their frameworks compute in; the half-width floats are not NdArray's. */
static uint64_t dtypes_of(unsigned variant)
{
	uint64_t plain = BIT(DG_F64) | BIT(DG_F32) | BIT(DG_I64) | BIT(DG_I32) | BIT(DG_I16) |
			 BIT(DG_I8) | BIT(DG_U8);
	return variant == DG_NDARRAY ? plain : plain | BIT(DG_F16) | BIT(DG_BF16);
}

void dg__identity_describe(dg_device device, dg_device_info *ret_info)
{
	const char *name = dg_variant_name(device.variant);
	memset(ret_info, 0, sizeof(*ret_info));
	ret_info->present = DG_HAS_DEVICE;
	ret_info->device = dg_device_inner(device);
	snprintf(ret_info->name, sizeof(ret_info->name), "%s", name ? name : "");
	for (size_t i = 0; name && name[i] && i + 1 < sizeof(ret_info->backend); i++)
		ret_info->backend[i] =
			name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
	ret_info->dtypes = dtypes_of(device.variant);
}
