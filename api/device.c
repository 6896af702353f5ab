/* See device.h. Text forms are in device_text.c. */
#include <devgate/device.h>

#include <stdatomic.h>

#include "api/lex.h"
#include "api/registry.h"
#include "api/variant.h"

#define TYPE_CAPTURE 255u

/* Keeps rare paths and their saved registers out of the few instructions of the common one. */
#if defined(__GNUC__)
#define RARE __attribute__((noinline))
#else
#define RARE
#endif

/* How an internal type id and an index are read; all of them fit into one cache line. */
typedef struct decode_row {
	uint8_t kinds; /* internal type ids below this are what they say; 0: read in another way */
	uint8_t fallback; /* the kind that any other one decodes to */
	uint8_t indexed; /* bit n: kind n holds an index */
	uint8_t form;
} decode_row;

#define DECODE_UNIT \
	{ \
		1, DG_KIND_NONE, 0, DG__FORM_UNIT \
	}
#define DECODE_INDEX \
	{ \
		1, DG_KIND_NONE, 1 << DG_KIND_NONE, DG__FORM_INDEX \
	}
#define DECODE_ADAPTER \
	{ \
		6, DG_KIND_DEFAULT, \
			1 << DG_KIND_DISCRETE | 1 << DG_KIND_INTEGRATED | 1 << DG_KIND_VIRTUAL | \
				1 << DG_KIND_EXISTING, \
			DG__FORM_ADAPTER \
	}
#define DECODE_TORCH \
	{ \
		4, DG_KIND_TORCH_CPU, 1, DG__FORM_TORCH \
	}
#define DECODE_REMOTE \
	{ \
		0, 0, 0, DG__FORM_REMOTE \
	}
#define DECODE_CAPTURE \
	{ \
		0, 0, 0, DG__FORM_CAPTURE \
	}

static const decode_row decode_rows[DG_VARIANT_COUNT] = {
#define DG_VARIANT(name, number, word, text, debug, form, int_, bool_, store, kernels) \
	[number] = DECODE_##form,
#include <devgate/variants.def>
#undef DG_VARIANT
};

static atomic_uint capture_count;

dg_err dg_device_make(
	dg_variant variant, dg_kind kind, uint32_t index, dg_device *ret_device, dg_error *reterr)
{
	if ((unsigned)variant >= DG_VARIANT_COUNT)
		return dg_error_set(
			reterr, DG_EINVALID, "%u is no variant of a device", (unsigned)variant);
	const dg__variant_row *row = &dg__variants[variant];
	if (row->form == DG__FORM_REMOTE || row->form == DG__FORM_CAPTURE)
		return dg_error_set(
			reterr, DG_EINVALID, "a %s device is not made from an index", row->debug);
	const decode_row *decode = &decode_rows[variant];
	if (row->form == DG__FORM_UNIT || row->form == DG__FORM_INDEX)
		kind = DG_KIND_NONE;
	if ((unsigned)kind >= decode->kinds)
		return dg_error_set(reterr, DG_ETYPE, "%s has no kind %u; its kinds are 0..%u",
			row->debug, (unsigned)kind, decode->kinds - 1u);
	if (index > UINT16_MAX)
		return dg_error_set(reterr, DG_ERANGE, "index %lu is out of range 0..65535",
			(unsigned long)index);
	if (index != 0 && !(decode->indexed >> kind & 1))
		return dg_error_set(
			reterr, DG_EINVALID, "this kind of %s device holds no index", row->debug);
	*ret_device = (dg_device){
		.variant = (uint8_t)variant, .kind = (uint8_t)kind, .index = (uint16_t)index
	};
	return DG_OK;
}

dg_err dg_device_capture(dg_device *ret_device, dg_error *reterr)
{
	unsigned count = atomic_load_explicit(&capture_count, memory_order_relaxed);
	do {
		if (count > UINT16_MAX)
			return dg_error_set(reterr, DG_ERANGE,
				"all 65536 capture devices of this process are taken");
	} while (!atomic_compare_exchange_weak_explicit(
		&capture_count, &count, count + 1, memory_order_relaxed, memory_order_relaxed));
	*ret_device = (dg_device){ .variant = DG_CAPTURE, .index = (uint16_t)count };
	return DG_OK;
}

dg_err dg_device_autodiff(
	dg_device device, dg_strategy strategy, dg_device *ret_device, dg_error *reterr)
{
	if (device.autodiff)
		return dg_error_set(reterr, DG_EAUTODIFF, NULL);
	if ((unsigned)strategy > DG_STRATEGY_DISABLED)
		return dg_error_set(
			reterr, DG_EINVALID, "%u is no checkpointing strategy", (unsigned)strategy);
	device.autodiff = 1;
	device.strategy = (uint8_t)(strategy == DG_STRATEGY_NONE ? DG_STRATEGY_DISABLED : strategy);
	*ret_device = device;
	return DG_OK;
}

dg_device dg_device_inner(dg_device device)
{
	device.autodiff = 0;
	device.strategy = DG_STRATEGY_NONE;
	return device;
}

bool dg_device_equal(dg_device a, dg_device b)
{
	return a.variant == b.variant && a.kind == b.kind && a.index == b.index;
}

bool dg_device_equal_strict(dg_device a, dg_device b)
{
	return dg_device_equal(a, b) && a.autodiff == b.autodiff && a.strategy == b.strategy;
}

dg_err dg_strategy_merge(
	dg_strategy lhs, dg_strategy rhs, dg_strategy *ret_strategy, dg_error *reterr)
{
	if ((unsigned)lhs > DG_STRATEGY_DISABLED || (unsigned)rhs > DG_STRATEGY_DISABLED)
		return dg_error_set(reterr, DG_EINVALID, "%u is no checkpointing strategy",
			(unsigned)lhs > DG_STRATEGY_DISABLED ? (unsigned)lhs : (unsigned)rhs);
	if (lhs != rhs && lhs != DG_STRATEGY_NONE && rhs != DG_STRATEGY_NONE)
		return dg_error_set(reterr, DG_ESTRATEGY,
			"Gradient checkpointing strategy mismatch: %s vs %s. "
			"Tensors in the same operation must share a strategy.",
			dg_strategy_name(lhs), dg_strategy_name(rhs));
	*ret_strategy = lhs == DG_STRATEGY_NONE ? rhs : lhs;
	return DG_OK;
}

const char *dg_strategy_name(dg_strategy strategy)
{
	return strategy == DG_STRATEGY_BALANCED   ? "Balanced"
	       : strategy == DG_STRATEGY_DISABLED ? "Disabled"
						  : "None";
}

dg_id dg_device_to_id(dg_device device)
{
	unsigned type = device.variant == DG_CAPTURE ? TYPE_CAPTURE : device.kind;
	return (dg_id){ (uint16_t)((unsigned)device.variant << 8 | type), device.index };
}

/* Remote and Capture, and what is no variant. */
static RARE dg_err from_other_id(dg_id id, dg_device *ret_device, dg_error *reterr)
{
	unsigned variant = id.type_id >> 8, type = id.type_id & 0xff;
	if (variant >= DG_VARIANT_COUNT)
		return dg_error_set(reterr, DG_EBACKEND,
			"type_id %u names backend %u; the highest is %d", (unsigned)id.type_id,
			variant, DG_VARIANT_COUNT - 1);
	bool capture = decode_rows[variant].form == DG__FORM_CAPTURE;
	unsigned expected = capture ? TYPE_CAPTURE : 0;
	if (type != expected)
		return dg_error_set(reterr, DG_ETYPE, "%s has no internal type %u, only %u",
			dg__variants[variant].debug, type, expected);
	if (!capture && !dg__registry_get(id.index_id))
		return dg_error_set(reterr, DG_EUNREGISTERED,
			"no remote device is registered at index_id %u in this process",
			(unsigned)id.index_id);
	*ret_device = (dg_device){ .variant = (uint8_t)variant, .index = id.index_id };
	return DG_OK;
}

dg_err dg_device_from_id(dg_id id, dg_device *ret_device, dg_error *reterr)
{
	unsigned variant = id.type_id >> 8, type = id.type_id & 0xff;
	if (variant >= DG_VARIANT_COUNT || decode_rows[variant].kinds == 0)
		return from_other_id(id, ret_device, reterr);
	decode_row row = decode_rows[variant];
	unsigned kind = type < row.kinds ? type : row.fallback;
	unsigned mask = 0u - ((unsigned)row.indexed >> kind & 1u);
	*ret_device = (dg_device){ .variant = (uint8_t)variant,
		.kind = (uint8_t)kind,
		.index = (uint16_t)(id.index_id & mask) };
	return DG_OK;
}

int dg_id_compare(dg_id a, dg_id b)
{
	if (a.type_id != b.type_id)
		return a.type_id < b.type_id ? -1 : 1;
	return (a.index_id > b.index_id) - (a.index_id < b.index_id);
}

const char *dg_variant_name(unsigned variant)
{
	return variant < DG_VARIANT_COUNT ? dg__variants[variant].debug : NULL;
}

const char *dg_kind_name(dg_variant variant, unsigned kind)
{
	if ((unsigned)variant >= DG_VARIANT_COUNT || kind >= DG__KINDS_MAX)
		return NULL;
	return dg__kinds[dg__variants[variant].form][kind].text;
}

bool dg_variant_has_kernels(dg_variant variant)
{
	return (unsigned)variant < DG_VARIANT_COUNT && dg__variants[variant].kernels;
}
