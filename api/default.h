/*
 * Which device is the default: a forced one, else the first enabled of a priority list.
 */
#ifndef DEVGATE_DEFAULT_H
#define DEVGATE_DEFAULT_H

#include <devgate/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A set of variants: bit n stands for the variant with backend number n. */
typedef uint32_t dg_variant_set;
#define DG_VARIANT_BIT(variant) ((dg_variant_set)1 << (variant))
/** Enabled whatever hardware there is. */
#define DG_ALWAYS_ENABLED \
	(DG_VARIANT_BIT(DG_FLEX) | DG_VARIANT_BIT(DG_NDARRAY) | DG_VARIANT_BIT(DG_LIBTORCH) | \
		DG_VARIANT_BIT(DG_REMOTE))

/** What the choice is made from. NULL or "" texts are explained at each. */
typedef struct dg_default_request {
	dg_variant_set enabled;
	const char *burn_device; /**< BURN_DEVICE; NULL: unset; "" is an unknown word, as there */
	const char *devgate_device; /**< DEVGATE_DEVICE, any text form; NULL or "": unset */
	const char *priority; /**< comma list of words before the built-in order; NULL or "" */
} dg_default_request;

/**
 * Choose. Touches no driver, no network and no environment; a Remote is registered at its default
 * address.
 *
 * @return DG_OK, DG_ENOTENABLED, DG_EOVERRIDE (the reference's texts), DG_EDEVICE (DEVGATE_DEVICE),
 *         DG_EINVALID (a word of the priority list), DG_EADDRESS.
 * Threads: safe. Blocks: no.
 */
dg_err dg_default_choose(
	const dg_default_request *request, dg_device *ret_device, dg_error *reterr) DG_MUST_CHECK;

/** Fill the three texts from the environment (DEVGATE_DEVICE_PRIORITY, then its BURN_ alias). */
void dg_default_from_environment(dg_default_request *request);

/**
 * Read a comma list of words, "cuda,flex" (also "capture" and "autodiff", which enable no default).
 *
 * @return DG_OK, DG_EINVALID (names the word and lists the known ones).
 */
dg_err dg_default_parse_words(
	const char *list, dg_variant_set *ret_set, dg_error *reterr) DG_MUST_CHECK;

/** A variant's own default device: index 0, DefaultDevice, LibTorch's Cpu, a new capture. */
dg_err dg_variant_default(
	dg_variant variant, dg_device *ret_device, dg_error *reterr) DG_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
