/*
 * What the parts of the ROCm backend share.
 */
#ifndef DEVGATE_BACKENDS_ROCM_ROCM_H
#define DEVGATE_BACKENDS_ROCM_ROCM_H

#include "backends/gpu/gpu.h"

/** Calls that the other vendor has not got in this shape. */
typedef struct dg__rocm_calls {
	const char *(*error_name)(int code);
	int (*set_device)(int device);
	int (*reset)(void);
} dg__rocm_calls;

/** Those that not every version has; NULL where missing. */
typedef struct dg__rocm_more {
	int (*uuid)(char ret_bytes[16], int device);
	int (*properties)(void *ret_properties, int device); /* of ROCm 6 and later */
	int (*properties_5)(void *ret_properties, int device); /* of ROCm 5 */
} dg__rocm_more;

/** ROCm SMI's calls, by its own header's signatures; 0 is success. */
typedef struct dg__rsmi_calls {
	int (*init)(uint64_t flags);
	int (*count)(uint32_t *ret_count);
	int (*pci)(uint32_t index, uint64_t *ret_address);
	int (*temperature)(uint32_t index, uint32_t sensor, int metric, int64_t *ret_millidegrees);
	int (*busy)(uint32_t index, uint32_t *ret_percent);
	int (*memory_total)(uint32_t index, int type, uint64_t *ret_bytes);
	int (*memory_used)(uint32_t index, int type, uint64_t *ret_bytes);
	int (*clock)(uint32_t index, int type, void *ret_frequencies);
	int (*power)(uint32_t index, uint32_t sensor, uint64_t *ret_microwatts);
} dg__rsmi_calls;

/** What dg__gpu.own points to. */
typedef struct dg__rocm_own {
	dg__rocm_calls calls;
	dg__rocm_more more;
	dg__rsmi_calls rsmi;
} dg__rocm_own;

/** The vendor; tests make copies with other libraries. */
extern const dg__gpu_vendor dg__gpu_rocm;
/** Where ROCm SMI is looked for; tests set their own. NULL-terminated. */
extern const char *const *dg__rsmi_libraries;

/** As dg__gpu_vendor.look. */
dg_err dg__rsmi_look(
	dg__gpu *gpu, const dg__gpu_identity *who, dg__gpu_look *ret_look, dg_error *reterr);

#endif
