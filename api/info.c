/* See info.h. */
#include <devgate/info.h>

#include <string.h>

const char *dg_state_name(dg_state state)
{
	return state == DG_STATE_OK ? "ok" : state == DG_STATE_LOST ? "lost" : "unhealthy";
}

bool dg_info_has_dtype(const dg_device_info *info, dg_dtype dtype)
{
	return dtype != DG_DTYPE_NONE && (unsigned)dtype < 64 && (info->dtypes >> dtype & 1) != 0;
}

bool dg_info_same_hardware(const dg_device_info *a, const dg_device_info *b)
{
	return (a->present & b->present & DG_HAS_HARDWARE) != 0 && a->hardware[0] != '\0' &&
	       strcmp(a->hardware, b->hardware) == 0;
}
