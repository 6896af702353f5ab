/* See gateways.h. */
#include "client/gateways.h"

#include <stdlib.h>
#include <string.h>

#include "backends/core/file.h"
#include "client/credentials.h"

#define FILE_MAX ((size_t)1 << 20)
#define BLANKS " \t\r"

/* One of the words after the address: its place in the set, or NULL. */
static const char **named_field(dg__credentials *set, const char *word, const char **ret_value)
{
	const struct {
		const char *name;
		const char **field;
	} fields[] = {
		{ "pin=", &set->pin },
		{ "token-file=", &set->token_file },
		{ "cacert=", &set->ca_file },
		{ "cert=", &set->cert_file },
		{ "key=", &set->key_file },
	};
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		size_t n = strlen(fields[i].name);
		if (strncmp(word, fields[i].name, n) == 0) {
			*ret_value = word + n;
			return fields[i].field;
		}
	}
	return NULL;
}

/* Takes the line apart in place. */
static dg_err read_words(char *line, dg__credentials *set, dg_error *reterr)
{
	char *rest = NULL;
	unsigned position = 0;
	for (char *word = strtok_r(line, BLANKS, &rest); word;
		word = strtok_r(NULL, BLANKS, &rest)) {
		const char *value = word;
		const char **field = named_field(set, word, &value);
		if (!field) {
			if (position == 2)
				return dg_error_set(reterr, DG_ECONFIG,
					"'%.100s' was not expected; after the address come a pin, "
					"a token "
					"file ('-' for none), and pin=, token-file=, cacert=, "
					"cert=, key=",
					word);
			field = position == 0 ? &set->pin : &set->token_file;
			position++;
			if (strcmp(word, "-") == 0)
				continue;
		}
		if (*field || !*value)
			return dg_error_set(reterr, DG_ECONFIG, "'%.100s' %s", word,
				*value ? "says again what was said before" : "has no value");
		*field = value;
	}
	return DG_OK;
}

static dg_err read_line(char *line, dg__gateway_entry *ret_entry, dg_error *reterr)
{
	size_t n = strcspn(line, BLANKS);
	char *rest = line + n + (line[n] != '\0');
	line[n] = '\0';
	dg__credentials set = { 0 };
	dg_err err = dg__address_parse(line, &ret_entry->address, reterr);
	if (!err)
		err = read_words(rest, &set, reterr);
	if (!err)
		err = dg__credentials_intern(&set, &ret_entry->credential, reterr);
	return err;
}

static dg_err append(dg__gateways *gateways, const dg__gateway_entry *entry, dg_error *reterr)
{
	if (gateways->count == DG__GATEWAYS_MAX)
		return dg_error_set(
			reterr, DG_ECONFIG, "there are more than %d gateways", DG__GATEWAYS_MAX);
	/* Room grows at powers of two, so that it need not be kept. */
	size_t n = gateways->count;
	if ((n & (n - 1)) == 0) {
		dg__gateway_entry *more =
			realloc(gateways->entries, (n ? n * 2 : 1) * sizeof(*more));
		if (!more)
			return dg_error_set(reterr, DG_ENOMEM, NULL);
		gateways->entries = more;
	}
	gateways->entries[gateways->count++] = *entry;
	return DG_OK;
}

static dg_err read_lines(char *text, const char *path, dg__gateways *gateways, dg_error *reterr)
{
	unsigned number = 0;
	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		number++;
		line += strspn(line, BLANKS);
		line[strcspn(line, "#")] = '\0';
		if (!*line)
			continue;
		dg__gateway_entry entry;
		dg_error why;
		dg_err err = read_line(line, &entry, &why);
		if (!err)
			err = append(gateways, &entry, &why);
		if (err)
			return dg_error_set(reterr, err == DG_ENOMEM ? DG_ENOMEM : DG_ECONFIG,
				"%.200s line %u: %s", path, number, why.text);
	}
	return DG_OK;
}

dg_err dg__gateways_read(dg__gateways *ret_gateways, dg_error *reterr)
{
	const char *path = getenv("DEVGATE_GATEWAYS");
	dg__gateways gateways = { 0 };
	char *text = NULL;
	size_t length = 0;
	if (!path || !*path) {
		*ret_gateways = gateways;
		return DG_OK;
	}
	dg_err err = dg__file_read(path, FILE_MAX, DG_ECONFIG, &text, &length, reterr);
	if (err)
		return err;
	if (strlen(text) != length)
		err = dg_error_set(reterr, DG_ECONFIG, "%.200s holds a NUL byte", path);
	else
		err = read_lines(text, path, &gateways, reterr);
	free(text);
	if (err)
		dg__gateways_finish(&gateways);
	else
		*ret_gateways = gateways;
	return err;
}

void dg__gateways_finish(dg__gateways *gateways)
{
	free(gateways->entries);
	*gateways = (dg__gateways){ 0 };
}
