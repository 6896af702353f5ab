/*
 * One device, wherever it is: what the public calls share.
 */
#ifndef DEVGATE_CLIENT_DISPATCH_H
#define DEVGATE_CLIENT_DISPATCH_H

#include "api/wire.h"
#include "client/call.h"

/**
 * Describe a device and its defaults. A local one's are its variant's; nothing is locked.
 *
 * @param device  With or without autodiff wrapper.
 * @return What dg_describe() does.
 * Threads: safe. Blocks: until the call's deadline.
 */
dg_err dg__describe(dg_device device, const dg__call *call, dg__device_entry *ret_entry,
	dg_error *reterr) DG_MUST_CHECK;

/** Whether the parts of a device are a variant's. DG_EINVALID. */
dg_err dg__device_check(dg_device device, dg_error *reterr) DG_MUST_CHECK;

#endif
