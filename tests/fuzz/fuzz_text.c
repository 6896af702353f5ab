/*
 * Every text that the device model reads: devices, addresses, keys, words. What is read must be
 * written in a form that reads back as the same; what is not must be an error with a text.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <devgate/default.h>
#include <devgate/throughput.h>

#include "api/registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(const dg_error *error, dg_err err)
{
	assert(error->code == err);
	assert(error->text[0] != '\0' && memchr(error->text, '\0', sizeof(error->text)));
	for (const char *c = error->text; *c; c++)
		assert((unsigned char)*c >= 0x20 && (unsigned char)*c < 0x7f);
}

static void fuzz_device(const char *text)
{
	char buf[DG_DEVICE_TEXT_MAX], again[DG_DEVICE_TEXT_MAX];
	dg_device device, back;
	dg__text parts;
	dg_error error;
	dg_err err = dg__text_parse(text, &parts, &error);
	if (err) {
		check_error(&error, err);
		assert(dg_device_parse(text, &device, NULL) == err);
		return;
	}
	err = dg_device_parse(text, &device, &error);
	if (err == DG_ERANGE && parts.remote)
		return; /* the registry is full after many different addresses */
	assert(err == DG_OK);
	assert(dg_device_format(device, buf, sizeof(buf)) < sizeof(buf));
	assert(dg_device_parse(buf, &back, NULL) == DG_OK);
	assert(dg_device_equal_strict(device, back));
	assert(dg_device_format(back, again, sizeof(again)) < sizeof(again));
	assert(strcmp(buf, again) == 0);
	assert(dg_device_debug(device, again, sizeof(again)) < sizeof(again));
	assert(dg_device_from_id(dg_device_to_id(device), &back, NULL) == DG_OK);
	assert(dg_device_equal(device, back));
}

static void fuzz_address(const char *text)
{
	char buf[DG_DEVICE_TEXT_MAX];
	dg__address address, back;
	dg_error error;
	dg_err err = dg__address_parse(text, &address, &error);
	if (err) {
		check_error(&error, err);
		return;
	}
	assert(memchr(address.host, '\0', sizeof(address.host)) && address.host[0] && address.port);
	assert(dg__address_format(&address, buf, sizeof(buf)) < sizeof(buf));
	assert(dg__address_parse(buf, &back, NULL) == DG_OK);
	assert(dg__address_equal(&address, &back));
	(void)dg__address_is_loopback(&address);
}

static void fuzz_key(const char *text)
{
	char buf[DG_KEY_TEXT_MAX];
	dg_key key, back;
	dg_error error;
	dg_err err = dg_key_parse(text, &key, &error);
	if (err) {
		check_error(&error, err);
		return;
	}
	assert(dg_key_check(&key, NULL) == DG_OK);
	assert(dg_key_format(&key, buf, sizeof(buf)) < sizeof(buf));
	assert(dg_key_parse(buf, &back, NULL) == DG_OK);
	assert(dg_key_equal(&key, &back));
}

static void fuzz_words(const char *text)
{
	dg_variant_set set = 0;
	dg_device device;
	dg_error error;
	dg_err err = dg_default_parse_words(text, &set, &error);
	if (err)
		check_error(&error, err);
	dg_default_request request = { .enabled = set, .priority = text };
	err = dg_default_choose(&request, &device, &error);
	if (err && err != DG_ERANGE)
		check_error(&error, err);
	request = (dg_default_request){ .enabled = DG_ALWAYS_ENABLED, .burn_device = text };
	err = dg_default_choose(&request, &device, &error);
	assert(err == DG_OK || err == DG_ENOTENABLED || err == DG_EOVERRIDE || err == DG_ERANGE);
	(void)dg_dtype_parse(text);
	(void)dg_err_from_code(text);
}

/* The first byte chooses, so that a corpus can aim; anything else tries all. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char which = size ? (char)data[0] : '*';
	char *text = malloc(size + 1);
	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	const char *rest = size ? text + 1 : text;
	switch (which) {
	case 'D':
		fuzz_device(rest);
		break;
	case 'A':
		fuzz_address(rest);
		break;
	case 'K':
		fuzz_key(rest);
		break;
	case 'W':
		fuzz_words(rest);
		break;
	default:
		fuzz_device(text);
		fuzz_address(text);
		fuzz_key(text);
		fuzz_words(text);
		break;
	}
	free(text);
	return 0;
}
