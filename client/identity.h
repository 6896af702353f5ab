/*
 * Variants that are names and no more: Flex, NdArray, LibTorch and Capture. Nothing on this machine
 * is asked for them; what they are follows from the variant.
 */
#ifndef DEVGATE_CLIENT_IDENTITY_H
#define DEVGATE_CLIENT_IDENTITY_H

#include <devgate/info.h>

/** Describe one. @param device  Of a variant for which dg_variant_has_kernels() is false. */
void dg__identity_describe(dg_device device, dg_device_info *ret_info);

#endif
