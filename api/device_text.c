/* Text forms of a device: canonical text, Debug text, and reading. See device.h and registry.h. */
#include <devgate/device.h>

#include <stdio.h>

#include "api/lex.h"
#include "api/registry.h"
#include "api/variant.h"

static void put_remote(dg__out *out, uint16_t place)
{
	char url[DG__HOST_MAX + 32];
	const dg__remote *remote = dg__registry_get(place);
	if (!remote) {
		/* Only a device that was filled by hand gets here. */
		dg__put(out, "?");
		return;
	}
	dg__put_bytes(out, url, dg__address_format(&remote->address, url, sizeof(url)));
	dg__put(out, "#");
	dg__put_number(out, remote->index);
}

static const dg__kind_row *kind_of(const dg__variant_row *row, dg_device device)
{
	static const dg__kind_row unknown = { "?", "?", true };
	const dg__kind_row *kind =
		device.kind < DG__KINDS_MAX ? &dg__kinds[row->form][device.kind] : &unknown;
	return kind->text ? kind : &unknown;
}

static void put_text(dg__out *out, dg_device device)
{
	const dg__variant_row *row = &dg__variants[device.variant];
	dg__put(out, row->text);
	if (row->form == DG__FORM_UNIT)
		return;
	dg__put_bytes(out, ":", 1);
	if (row->form == DG__FORM_REMOTE) {
		put_remote(out, device.index);
		return;
	}
	if (row->form == DG__FORM_ADAPTER || row->form == DG__FORM_TORCH) {
		const dg__kind_row *kind = kind_of(row, device);
		dg__put(out, kind->text);
		if (!kind->indexed)
			return;
		dg__put_bytes(out, ":", 1);
	}
	dg__put_number(out, device.index);
}

size_t dg_device_format(dg_device device, char *buf, size_t size)
{
	dg__out out = { buf, size, 0 };
	if (device.variant >= DG_VARIANT_COUNT) {
		dg__put(&out, "?");
	} else if (device.autodiff) {
		dg__put(&out, "autodiff(");
		put_text(&out, device);
		dg__put(&out, device.strategy == DG_STRATEGY_BALANCED ? ",balanced)" : ")");
	} else {
		put_text(&out, device);
	}
	return dg__put_end(&out);
}

static void put_debug(dg__out *out, dg_device device)
{
	const dg__variant_row *row = &dg__variants[device.variant];
	const char *name = dg__variant_inner[device.variant];
	bool indexed = row->form == DG__FORM_INDEX;
	dg__put(out, row->debug);
	dg__put(out, "(");
	if (row->form == DG__FORM_REMOTE) {
		put_remote(out, device.index);
	} else if (row->form == DG__FORM_CAPTURE) {
		dg__put(out, "CaptureDevice { id: ");
		dg__put_number(out, device.index);
		dg__put(out, " }");
	} else {
		if (!name) {
			const dg__kind_row *kind = kind_of(row, device);
			name = kind->debug;
			indexed = kind->indexed;
		}
		dg__put(out, name);
		if (indexed) {
			dg__put(out, "(");
			dg__put_number(out, device.index);
			dg__put(out, ")");
		}
	}
	dg__put(out, ")");
}

size_t dg_device_debug(dg_device device, char *buf, size_t size)
{
	dg__out out = { buf, size, 0 };
	if (device.variant >= DG_VARIANT_COUNT) {
		dg__put(&out, "?");
	} else if (device.autodiff) {
		dg__put(&out, "Autodiff { device: ");
		put_debug(&out, device);
		dg__put(&out, ", checkpointing: ");
		dg__put(&out, dg_strategy_name((dg_strategy)device.strategy));
		dg__put(&out, " }");
	} else {
		put_debug(&out, device);
	}
	return dg__put_end(&out);
}

/* Reading. A part is a run of bytes of the whole text, so that an error can say where it is. */

typedef struct part {
	const char *whole; /* first byte of the text that was given */
	const char *at;
	size_t length;
} part;

static part rest_from(part from, size_t skip)
{
	return (part){ from.whole, from.at + skip, from.length - skip };
}

/* Take what stands before the first mark; the rest begins behind it. False, and an empty rest at
 * the end: there is no mark. */
static bool split(part from, char mark, part *ret_head, part *ret_rest)
{
	const char *found = from.length ? memchr(from.at, mark, from.length) : NULL;
	size_t head = found ? (size_t)(found - from.at) : from.length;
	*ret_head = (part){ from.whole, from.at, head };
	*ret_rest = rest_from(from, head + (found != NULL));
	return found != NULL;
}

static size_t position(part p)
{
	return (size_t)(p.at - p.whole) + 1;
}

static dg_err wrong(part p, const char *what, const char *expected, dg_error *reterr)
{
	char quoted[DG__QUOTE_MAX];
	if (p.length == 0)
		return dg_error_set(reterr, DG_EDEVICE,
			"%s is missing at character %zu; expected %s", what, position(p), expected);
	return dg_error_set(reterr, DG_EDEVICE, "%s %s at character %zu is wrong; expected %s",
		what, dg__quote(p.at, p.length, quoted), position(p), expected);
}

static dg_err parse_index(part p, uint16_t *ret_index, dg_error *reterr)
{
	uint64_t number = 0;
	char quoted[DG__QUOTE_MAX];
	switch (dg__number_read(p.at, p.length, UINT16_MAX, &number)) {
	case DG_OK:
		*ret_index = (uint16_t)number;
		return DG_OK;
	case DG_ERANGE:
		return dg_error_set(reterr, DG_ERANGE,
			"index %s at character %zu is out of range 0..65535",
			dg__quote(p.at, p.length, quoted), position(p));
	default:
		return wrong(p, "the index", "a decimal number 0..65535", reterr);
	}
}

static dg_err no_more(part p, const dg__variant_row *row, dg_error *reterr)
{
	char quoted[DG__QUOTE_MAX];
	return dg_error_set(reterr, DG_EDEVICE,
		"%s at character %zu is too much; expected nothing behind the %s device",
		dg__quote(p.at, p.length, quoted), position(p), row->debug);
}

static dg_err unknown_kind(part p, const dg__variant_row *row, dg_error *reterr)
{
	char expected[120];
	dg__out out = { expected, sizeof(expected), 0 };
	for (unsigned i = 0; i < DG__KINDS_MAX && dg__kinds[row->form][i].text; i++) {
		dg__put(&out, i ? ", " : "");
		dg__put(&out, dg__kinds[row->form][i].text);
		dg__put(&out, dg__kinds[row->form][i].indexed ? ":N" : "");
	}
	dg__put_end(&out);
	return wrong(p, "the kind", expected, reterr);
}

/* vulkan:discrete:0, libtorch:mps */
static dg_err parse_kind(part p, dg_variant variant, dg_device *ret_device, dg_error *reterr)
{
	const dg__variant_row *row = &dg__variants[variant];
	dg_device device = { .variant = (uint8_t)variant };
	part word, index;
	bool has_index = split(p, ':', &word, &index);
	unsigned kind = 0;
	while (kind < DG__KINDS_MAX && dg__kinds[row->form][kind].text &&
		!dg__word_is(word.at, word.length, dg__kinds[row->form][kind].text))
		kind++;
	if (kind == DG__KINDS_MAX || !dg__kinds[row->form][kind].text)
		return unknown_kind(word, row, reterr);
	device.kind = (uint8_t)kind;
	if (!dg__kinds[row->form][kind].indexed) {
		if (has_index)
			return no_more(
				(part){ p.whole, index.at - 1, index.length + 1 }, row, reterr);
	} else {
		if (!has_index)
			return dg_error_set(reterr, DG_EDEVICE,
				"the index is missing at character %zu; expected %s:%s:N",
				position(rest_from(word, word.length)), row->text,
				dg__kinds[row->form][kind].text);
		dg_err err = parse_index(index, &device.index, reterr);
		if (err)
			return err;
	}
	*ret_device = device;
	return DG_OK;
}

static dg_err parse_remote(part p, dg__text *ret_text, dg_error *reterr)
{
	char url[DG_DEVICE_TEXT_MAX];
	dg__text text = { .device = { .variant = DG_REMOTE }, .remote = true };
	part address, index;
	bool has_index = split(p, '#', &address, &index);
	if (address.length == 0)
		return wrong(address, "the address", "https://HOST:PORT#N", reterr);
	memcpy(url, address.at, address.length);
	url[address.length] = '\0';
	dg_err err = dg__address_parse(url, &text.address, reterr);
	if (!err && has_index)
		err = parse_index(index, &text.index, reterr);
	if (!err)
		*ret_text = text;
	return err;
}

static dg_err unknown_word(part p, dg_error *reterr)
{
	char expected[200];
	dg__out out = { expected, sizeof(expected), 0 };
	for (unsigned i = 0; i < DG_VARIANT_COUNT; i++) {
		dg__put(&out, dg__variants[i].text);
		dg__put(&out, ", ");
	}
	dg__put(&out, "autodiff(D) or https://HOST:PORT#N");
	dg__put_end(&out);
	return wrong(p, "the device", expected, reterr);
}

static dg_err parse_with_rest(dg_variant variant, part rest, dg__text *ret_text, dg_error *reterr)
{
	dg_err err = DG_OK;
	dg__text text = { .device = { .variant = (uint8_t)variant } };
	switch (dg__variants[variant].form) {
	case DG__FORM_REMOTE:
		return parse_remote(rest, ret_text, reterr);
	case DG__FORM_INDEX:
	case DG__FORM_CAPTURE:
		err = parse_index(rest, &text.device.index, reterr);
		break;
	case DG__FORM_ADAPTER:
	case DG__FORM_TORCH:
		err = parse_kind(rest, variant, &text.device, reterr);
		break;
	case DG__FORM_UNIT:
	case DG__FORM_COUNT:
		rest = (part){ rest.whole, rest.at - 1, rest.length + 1 };
		return no_more(rest, &dg__variants[variant], reterr);
	}
	if (!err)
		*ret_text = text;
	return err;
}

/* A variant's word alone. */
static dg_err parse_short(dg_variant variant, part word, dg__text *ret_text, dg_error *reterr)
{
	dg__text text = { .device = { .variant = (uint8_t)variant } };
	part end = rest_from(word, word.length);
	switch (dg__variants[variant].form) {
	case DG__FORM_REMOTE:
		return wrong(end, "the address", "remote:https://HOST:PORT#N", reterr);
	case DG__FORM_CAPTURE:
		return wrong(end, "the counter", "capture:N", reterr);
	case DG__FORM_ADAPTER:
		text.device.kind = DG_KIND_DEFAULT;
		break;
	case DG__FORM_TORCH:
		text.device.kind = DG_KIND_TORCH_CPU;
		break;
	default:
		break;
	}
	*ret_text = text;
	return DG_OK;
}

static bool is_scheme(part word)
{
	static const char *const schemes[] = { "https", "http", "wss", "ws" };
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (dg__word_is(word.at, word.length, schemes[i]))
			return true;
	return false;
}

static dg_err parse_plain(part p, dg__text *ret_text, dg_error *reterr)
{
	part word, rest;
	bool has_rest = split(p, ':', &word, &rest);
	if (has_rest && is_scheme(word))
		return parse_remote(p, ret_text, reterr);
	for (unsigned i = 0; i < DG_VARIANT_COUNT; i++)
		if (dg__word_is(word.at, word.length, dg__variants[i].text))
			return has_rest ? parse_with_rest((dg_variant)i, rest, ret_text, reterr)
					: parse_short((dg_variant)i, word, ret_text, reterr);
	return unknown_word(word, reterr);
}

static bool starts_autodiff(part p)
{
	return p.length >= 9 && dg__word_is(p.at, 9, "autodiff(");
}

static dg_err parse_strategy(part p, dg_strategy *ret_strategy, dg_error *reterr)
{
	if (dg__word_is(p.at, p.length, "balanced"))
		*ret_strategy = DG_STRATEGY_BALANCED;
	else if (dg__word_is(p.at, p.length, "disabled"))
		*ret_strategy = DG_STRATEGY_DISABLED;
	else
		return wrong(p, "the strategy", "balanced or disabled", reterr);
	return DG_OK;
}

/* autodiff(D), autodiff(D,balanced) */
static dg_err parse_autodiff(part p, dg__text *ret_text, dg_error *reterr)
{
	dg__text text = { .remote = false };
	dg_strategy strategy = DG_STRATEGY_DISABLED;
	part body = rest_from(p, 9), inner, word;
	if (starts_autodiff(body))
		return dg_error_set(reterr, DG_EAUTODIFF,
			"autodiff at character %zu is within autodiff already", position(body));
	if (body.length == 0 || body.at[body.length - 1] != ')')
		return wrong(rest_from(body, body.length), "the end of autodiff", "')'", reterr);
	body.length--;
	if (split(body, ',', &inner, &word)) {
		dg_err err = parse_strategy(word, &strategy, reterr);
		if (err)
			return err;
	}
	dg_err err = parse_plain(inner, &text, reterr);
	if (!err)
		err = dg_device_autodiff(text.device, strategy, &text.device, reterr);
	if (!err)
		*ret_text = text;
	return err;
}

dg_err dg__text_parse(const char *text, dg__text *ret_text, dg_error *reterr)
{
	if (!text)
		return dg_error_set(reterr, DG_EDEVICE, "no text was given");
	part p = { text, text, strnlen(text, DG_DEVICE_TEXT_MAX) };
	if (p.length >= DG_DEVICE_TEXT_MAX)
		return dg_error_set(reterr, DG_EDEVICE, "the text is longer than %d bytes",
			DG_DEVICE_TEXT_MAX - 1);
	if (starts_autodiff(p))
		return parse_autodiff(p, ret_text, reterr);
	return parse_plain(p, ret_text, reterr);
}

dg_err dg_device_parse(const char *text, dg_device *ret_device, dg_error *reterr)
{
	dg__text parsed = { .remote = false };
	dg_err err = dg__text_parse(text, &parsed, reterr);
	if (err)
		return err;
	dg_device device = parsed.device;
	if (parsed.remote) {
		err = dg__registry_add(&parsed.address, 0, parsed.index, &device, reterr);
		if (err)
			return err;
		device.autodiff = parsed.device.autodiff;
		device.strategy = parsed.device.strategy;
	}
	*ret_device = device;
	return DG_OK;
}
