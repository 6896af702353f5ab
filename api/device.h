/*
 * What a device is: a variant, what that variant holds, and an autodiff wrapper. A small value
 * without heap; copy it freely, compare it with dg_device_equal().
 */
#ifndef DEVGATE_DEVICE_H
#define DEVGATE_DEVICE_H

#include <stdbool.h>

#include <devgate/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Variants, valued by their backend number; the rows are in variants.def. */
typedef enum dg_variant {
#define DG_VARIANT(name, number, word, text, debug, form, int_, bool_, store, kernels) \
	DG_##name = (number),
#include <devgate/variants.def>
#undef DG_VARIANT
} dg_variant;

#define DG_VARIANT_COUNT 12

/** What a device of the wgpu family (first six) or of LibTorch holds: its internal type id. */
typedef enum dg_kind {
	DG_KIND_NONE = 0, /**< variants that hold no kind */
	DG_KIND_DISCRETE = 0,
	DG_KIND_INTEGRATED = 1,
	DG_KIND_VIRTUAL = 2,
	DG_KIND_CPU = 3,
	DG_KIND_DEFAULT = 4,
	DG_KIND_EXISTING = 5,
	DG_KIND_TORCH_CUDA = 0,
	DG_KIND_TORCH_MPS = 1,
	DG_KIND_TORCH_CPU = 2,
	DG_KIND_TORCH_VULKAN = 3
} dg_kind;

/** Gradient checkpointing of an autodiff device. NONE stands for "no strategy" in merges. */
typedef enum dg_strategy {
	DG_STRATEGY_NONE = 0,
	DG_STRATEGY_BALANCED = 1,
	DG_STRATEGY_DISABLED = 2
} dg_strategy;

/** A device. Zero-initialised it is the CPU. Make it with the calls below, do not fill it. */
typedef struct dg_device {
	uint8_t variant; /**< dg_variant */
	uint8_t kind; /**< dg_kind, 0 where the variant has none */
	uint16_t index; /**< hardware index, counter, or place in this process's registry */
	uint8_t autodiff; /**< 1: an autodiff device around the rest */
	uint8_t strategy; /**< dg_strategy; NONE unless autodiff */
	uint8_t reserved[2];
} dg_device;

/** An encoded device. Orders by type_id, then index_id. */
typedef struct dg_id {
	uint16_t type_id; /**< backend number << 8 | internal type id */
	uint16_t index_id;
} dg_id;

/** Longest text or Debug form of any device with its terminating NUL, in bytes. */
#define DG_DEVICE_TEXT_MAX 384

/**
 * Make a device of any variant but Remote and Capture.
 *
 * @param kind   Ignored for variants that hold none.
 * @param index  0..65535; must be 0 where the variant or kind holds none.
 * @return DG_OK, DG_EINVALID, DG_ETYPE (no such kind), DG_ERANGE. ret_device untouched on failure.
 * Threads: safe. Blocks: no. (So for every call of this header unless it says otherwise.)
 */
dg_err dg_device_make(dg_variant variant, dg_kind kind, uint32_t index, dg_device *ret_device,
	dg_error *reterr) DG_MUST_CHECK;

/** A new capture device, different from all before in this process; DG_ERANGE after 65,536. */
dg_err dg_device_capture(dg_device *ret_device, dg_error *reterr) DG_MUST_CHECK;

/** Wrap; strategy NONE means DISABLED. DG_EAUTODIFF where device is wrapped already. */
dg_err dg_device_autodiff(dg_device device, dg_strategy strategy, dg_device *ret_device,
	dg_error *reterr) DG_MUST_CHECK;

/** The device without its autodiff wrapper. */
dg_device dg_device_inner(dg_device device);

/** Equality is identity of hardware address: variant and contents, autodiff ignored. */
bool dg_device_equal(dg_device a, dg_device b);
/** Equality of autodiff and its strategy, too. */
bool dg_device_equal_strict(dg_device a, dg_device b);

/** Merge strategies of two operands; none yields. DG_ESTRATEGY where two differ. */
dg_err dg_strategy_merge(dg_strategy lhs, dg_strategy rhs, dg_strategy *ret_strategy,
	dg_error *reterr) DG_MUST_CHECK;
/** "Balanced", "Disabled"; "None" for none. */
const char *dg_strategy_name(dg_strategy strategy);

/** Encode. An autodiff device encodes as the one it wraps. */
dg_id dg_device_to_id(dg_device device);

/**
 * Decode. A type the backend folds into another (Wgpu 9 is DefaultDevice) decodes to that.
 *
 * @return DG_OK, DG_EBACKEND, DG_ETYPE, DG_EUNREGISTERED (a Remote this process has not met).
 */
dg_err dg_device_from_id(dg_id id, dg_device *ret_device, dg_error *reterr) DG_MUST_CHECK;

/** -1, 0, 1 by type_id, then index_id. */
int dg_id_compare(dg_id a, dg_id b);

/**
 * Read a text form, short ones too, without case: "cuda", "vulkan:discrete:1",
 * "https://node1:8443#2", "autodiff(cuda:0,balanced)". A remote one is registered, with the
 * credentials of the environment.
 *
 * @param text  At most DG_DEVICE_TEXT_MAX - 1 bytes, no surrounding blanks.
 * @return DG_OK, DG_EDEVICE (says which part was wrong and what was expected), DG_ERANGE,
 *         DG_EADDRESS, DG_EAUTODIFF.
 */
dg_err dg_device_parse(const char *text, dg_device *ret_device, dg_error *reterr) DG_MUST_CHECK;

/**
 * Write the canonical text form, which dg_device_parse() reads back.
 *
 * @param size  Room in buf, in bytes; DG_DEVICE_TEXT_MAX always suffices.
 * @return Length without NUL, as snprintf: output is cut where it is >= size.
 */
size_t dg_device_format(dg_device device, char *buf, size_t size);

/** Write the Debug text: "Vulkan(DiscreteGpu(0))". As dg_device_format() otherwise. */
size_t dg_device_debug(dg_device device, char *buf, size_t size);

/** "Cuda"; NULL for a number that is no variant. */
const char *dg_variant_name(unsigned variant);
/** "discrete", "integrated", …, "cuda", "mps", …; NULL where the variant holds no kind. */
const char *dg_kind_name(dg_variant variant, unsigned kind);
/** Whether a backend can measure the variant: false for Flex, NdArray, LibTorch and Capture. */
bool dg_variant_has_kernels(dg_variant variant);

#ifdef __cplusplus
}
#endif
#endif
