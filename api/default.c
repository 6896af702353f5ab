/* See default.h. */
#include <devgate/default.h>

#include <stdlib.h>

#include "api/lex.h"
#include "api/registry.h"
#include "api/variant.h"

#define NOT_FOUND DG_VARIANT_COUNT

static unsigned variant_of_word(const char *word, size_t length)
{
	unsigned i = 0;
	while (i < DG_VARIANT_COUNT &&
		!(dg__variants[i].word && dg__word_is(word, length, dg__variants[i].word)))
		i++;
	return i;
}

static dg_err unknown_word(const char *word, size_t length, const char *more, dg_error *reterr)
{
	char quoted[DG__QUOTE_MAX], known[160];
	dg__out out = { known, sizeof(known), 0 };
	for (unsigned i = 0; i < DG__ORDER_COUNT; i++) {
		dg__put(&out, i ? ", " : "");
		dg__put(&out, dg__variants[dg__order[i]].word);
	}
	dg__put(&out, more);
	dg__put_end(&out);
	if (length == 0)
		return dg_error_set(
			reterr, DG_EINVALID, "a word of the list is empty; expected %s", known);
	return dg_error_set(reterr, DG_EINVALID, "%s is not a known word; expected %s",
		dg__quote(word, length, quoted), known);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The next word of a comma list without blanks around it; false at the end. */
static bool next_word(const char **list, const char **ret_word, size_t *ret_length)
{
	const char *word = *list;
	if (!word)
		return false;
	size_t length = strcspn(word, ",");
	*list = word[length] ? word + length + 1 : NULL;
	for (; length && is_blank(*word); length--)
		word++;
	while (length && is_blank(word[length - 1]))
		length--;
	*ret_word = word;
	*ret_length = length;
	return true;
}

static bool is_empty(const char *list)
{
	return !list || list[strspn(list, " \t")] == '\0';
}

dg_err dg_default_parse_words(const char *list, dg_variant_set *ret_set, dg_error *reterr)
{
	dg_variant_set set = 0;
	const char *word;
	size_t length;
	while (!is_empty(list) && next_word(&list, &word, &length)) {
		unsigned variant = variant_of_word(word, length);
		if (variant != NOT_FOUND)
			set |= DG_VARIANT_BIT(variant);
		else if (dg__word_is(word, length, "capture"))
			set |= DG_VARIANT_BIT(DG_CAPTURE);
		else if (!dg__word_is(word, length, "autodiff"))
			return unknown_word(word, length, ", capture, autodiff", reterr);
		if (list && is_empty(list))
			return unknown_word(list, 0, ", capture, autodiff", reterr);
	}
	*ret_set = set;
	return DG_OK;
}

dg_err dg_variant_default(dg_variant variant, dg_device *ret_device, dg_error *reterr)
{
	dg__address address;
	dg_kind kind = DG_KIND_NONE;
	dg_err err;
	if ((unsigned)variant >= DG_VARIANT_COUNT)
		return dg_error_set(
			reterr, DG_EINVALID, "%u is no variant of a device", (unsigned)variant);
	switch (dg__variants[variant].form) {
	case DG__FORM_REMOTE:
		err = dg__address_default(&address, reterr);
		return err ? err : dg__registry_add(&address, 0, 0, ret_device, reterr);
	case DG__FORM_CAPTURE:
		return dg_device_capture(ret_device, reterr);
	case DG__FORM_ADAPTER:
		kind = DG_KIND_DEFAULT;
		break;
	case DG__FORM_TORCH:
		kind = DG_KIND_TORCH_CPU;
		break;
	default:
		break;
	}
	return dg_device_make(variant, kind, 0, ret_device, reterr);
}

/* Flex stands in where there is nothing local at all. */
static dg_variant_set enabled_of(const dg_default_request *request)
{
	dg_variant_set local = request->enabled & (DG_VARIANT_BIT(DG_VARIANT_COUNT) - 1) &
			       ~(DG_VARIANT_BIT(DG_REMOTE) | DG_VARIANT_BIT(DG_CAPTURE));
	return local ? request->enabled : request->enabled | DG_VARIANT_BIT(DG_FLEX);
}

/* Length of the UTF-8 character at text; 0 where there is none. */
static size_t character_at(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t need = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] == 0 || (s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < need; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
		(s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return need;
}

/* The value is repeated as it was spelled, but an error's text is UTF-8 and has a limit. */
static dg_err unknown_override(const char *value, dg_error *reterr)
{
	char copy[300];
	dg__out out = { copy, sizeof(copy) - 4, 0 };
	while (*value) {
		size_t length = character_at(value);
		if (out.length + (length ? length : 3) >= out.size) {
			out.size = sizeof(copy);
			dg__put(&out, "...");
			break;
		}
		if (length)
			dg__put_bytes(&out, value, length);
		else
			dg__put(&out, "\xef\xbf\xbd");
		value += length ? length : 1;
	}
	dg__put_end(&out);
	return dg_error_set(reterr, DG_EOVERRIDE, "Unknown BURN_DEVICE override: '%s'.", copy);
}

static dg_err choose_override(
	const char *value, dg_variant_set enabled, dg_device *ret_device, dg_error *reterr)
{
	unsigned variant = variant_of_word(value, strlen(value));
	if (variant == NOT_FOUND)
		return unknown_override(value, reterr);
	const char *word = dg__variants[variant].word;
	if (!(enabled & DG_VARIANT_BIT(variant)))
		return dg_error_set(reterr, DG_ENOTENABLED,
			"BURN_DEVICE=%s requested, but the '%s' feature is not enabled.", word,
			word);
	return dg_variant_default((dg_variant)variant, ret_device, reterr);
}

/* The first enabled variant of the list; NOT_FOUND where none is. All of it is read, so that a
 * wrong word is told whatever stands before it. */
static dg_err first_of_list(
	const char *list, dg_variant_set enabled, unsigned *ret_variant, dg_error *reterr)
{
	unsigned chosen = NOT_FOUND;
	const char *word;
	size_t length;
	if (is_empty(list))
		list = NULL;
	while (next_word(&list, &word, &length)) {
		unsigned variant = variant_of_word(word, length);
		if (variant == NOT_FOUND)
			return unknown_word(word, length, "", reterr);
		if (chosen == NOT_FOUND && (enabled & DG_VARIANT_BIT(variant)))
			chosen = variant;
	}
	*ret_variant = chosen;
	return DG_OK;
}

dg_err dg_default_choose(const dg_default_request *request, dg_device *ret_device, dg_error *reterr)
{
	dg_variant_set enabled = enabled_of(request);
	unsigned variant = NOT_FOUND;
	dg_error error;
	dg_err err;
	if (request->devgate_device && *request->devgate_device) {
		err = dg_device_parse(request->devgate_device, ret_device, &error);
		return err ? dg_error_set(reterr, err, "DEVGATE_DEVICE: %s", error.text) : DG_OK;
	}
	if (request->burn_device)
		return choose_override(request->burn_device, enabled, ret_device, reterr);
	err = first_of_list(request->priority, enabled, &variant, &error);
	if (err)
		return dg_error_set(reterr, err, "the list of priorities: %s", error.text);
	for (unsigned i = 0; variant == NOT_FOUND && i < DG__ORDER_COUNT; i++)
		if (enabled & DG_VARIANT_BIT(dg__order[i]))
			variant = dg__order[i];
	return dg_variant_default((dg_variant)variant, ret_device, reterr);
}

void dg_default_from_environment(dg_default_request *request)
{
	const char *priority = getenv("DEVGATE_DEVICE_PRIORITY");
	request->burn_device = getenv("BURN_DEVICE");
	request->devgate_device = getenv("DEVGATE_DEVICE");
	request->priority = priority && *priority ? priority : getenv("BURN_DEVICE_PRIORITY");
}
