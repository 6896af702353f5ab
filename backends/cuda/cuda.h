/*
 * What the parts of the CUDA backend share.
 */
#ifndef DEVGATE_BACKENDS_CUDA_CUDA_H
#define DEVGATE_BACKENDS_CUDA_CUDA_H

#include "backends/gpu/gpu.h"

/** Calls that the other vendor has not got in this shape. */
typedef struct dg__cuda_calls {
	int (*error_name)(int code, const char **ret_name);
	int (*retain)(void **ret_context, int device);
	int (*release)(int device);
	int (*set_current)(void *context);
	int (*uuid)(unsigned char ret_bytes[16], int device);
} dg__cuda_calls;

/** NVML's calls, by its own header's signatures; 0 is success. */
typedef struct dg__nvml_calls {
	int (*init)(void);
	int (*driver_version)(char *ret_version, unsigned size);
	int (*by_uuid)(const char *uuid, void **ret_device);
	int (*by_pci)(const char *address, void **ret_device);
	int (*uuid)(void *device, char *ret_uuid, unsigned size);
	int (*memory)(void *device, void *ret_memory);
	int (*utilization)(void *device, unsigned ret_gpu_memory[2]);
	int (*temperature)(void *device, int sensor, unsigned *ret_celsius);
	int (*power)(void *device, unsigned *ret_milliwatts);
	int (*clock)(void *device, int type, unsigned *ret_mhz);
} dg__nvml_calls;

/** Those that not every version has. */
typedef struct dg__nvml_more {
	int (*parent)(void *slice, void **ret_device); /* of a MIG slice */
	int (*reasons)(void *device, unsigned long long *ret_reasons);
} dg__nvml_more;

/** What dg__gpu.own points to. */
typedef struct dg__cuda_own {
	dg__cuda_calls calls;
	dg__nvml_calls nvml;
	dg__nvml_more more;
} dg__cuda_own;

/** The vendor; tests make copies with other libraries. */
extern const dg__gpu_vendor dg__gpu_cuda;
/** Where NVML is looked for; tests set their own. NULL-terminated. */
extern const char *const *dg__nvml_libraries;

/** Fill in the parent of a MIG slice. */
void dg__nvml_identify(dg__gpu *gpu, dg__gpu_identity *who);
/** As dg__gpu_vendor.look. */
dg_err dg__nvml_look(
	dg__gpu *gpu, const dg__gpu_identity *who, dg__gpu_look *ret_look, dg_error *reterr);
/** As dg__gpu_vendor.image. */
const void *dg__cuda_image(const dg__gpu_identity *who, bool memory, bool exact);

#endif
