/* Where options come from: file, environment, flags. See config.h. */
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/lex.h"
#include "backends/core/file.h"
#include "server/config_internal.h"

#define DEFAULT_FILE "/etc/devgate/devgated.conf"
#define FILE_MAX ((size_t)1 << 20)
/* inih cuts longer lines without a word. */
#define LINE_MAX_BYTES 190
#define ROWS_MAX 64

/* One source of options. A list that it gives replaces what weaker ones gave. */
typedef struct source {
	dg__config *config;
	bool seen[ROWS_MAX];
	dg_error why; /* the first fault */
	bool failed;
} source;

static const dg__option *find(const char *name, size_t length)
{
	size_t count;
	const dg__option *rows = dg__config_options(&count);
	for (size_t i = 0; i < count; i++) {
		size_t at = 0;
		while (at < length && rows[i].name[at] &&
			(rows[i].name[at] == name[at] ||
				(rows[i].name[at] == '-' && name[at] == '_')))
			at++;
		if (at == length && !rows[i].name[at])
			return &rows[i];
	}
	return NULL;
}

/* The option that shares the longest start with a name that is none. */
static const char *nearest(const char *name)
{
	size_t count, best = 2;
	const char *found = NULL;
	const dg__option *rows = dg__config_options(&count);
	for (size_t i = 0; i < count; i++) {
		size_t same = 0;
		while (name[same] && name[same] == rows[i].name[same])
			same++;
		if (same > best) {
			best = same;
			found = rows[i].name;
		}
	}
	return found;
}

static dg_err set_one(source *s, const dg__option *row, const char *value, dg_error *reterr)
{
	size_t count;
	size_t place = (size_t)(row - dg__config_options(&count));
	if (row->list && place < ROWS_MAX && !s->seen[place]) {
		s->seen[place] = true;
		*(size_t *)(void *)((char *)s->config + row->offset) = 0;
	}
	return row->set(s->config, row, value, reterr);
}

/* A value of a variable or the file: a list's items are separated by commas. */
static dg_err set_all(source *s, const dg__option *row, const char *value, dg_error *reterr)
{
	if (!row->list)
		return set_one(s, row, value, reterr);
	dg_err err = DG_OK;
	while (err == DG_OK && *value) {
		char item[300];
		size_t length = strcspn(value, ",");
		const char *from = value;
		value += length + (value[length] == ',');
		while (length && *from == ' ') {
			from++;
			length--;
		}
		while (length && from[length - 1] == ' ')
			length--;
		if (length >= sizeof(item))
			return dg_error_set(reterr, DG_ECONFIG, "an item is longer than %zu bytes",
				sizeof(item) - 1);
		memcpy(item, from, length);
		item[length] = '\0';
		err = set_one(s, row, item, reterr);
	}
	return err;
}

static dg_err unknown(const char *what, const char *name, dg_error *reterr)
{
	const char *near = nearest(name);
	return dg_error_set(reterr, DG_ECONFIG, "unknown %s '%.60s'%s%s%s", what, name,
		near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int on_pair(void *user, const char *section, const char *name, const char *value)
{
	source *s = user;
	if (s->failed)
		return 1;
	dg_error why = { .code = DG_OK };
	const dg__option *row = find(name, strlen(name));
	if (*section && strcasecmp(section, "devgated") != 0)
		dg_error_set(&why, DG_ECONFIG,
			"unknown section [%.40s]; expected [devgated] or none", section);
	else if (!row)
		unknown("key", name, &why);
	else if (strlen(value) == 0 && row->argument)
		dg_error_set(&why, DG_ECONFIG, "%s has no value", row->name);
	else if (set_all(s, row, value, &why) != DG_OK) {
		dg_error inner = why;
		dg_error_set(&why, DG_ECONFIG, "%s: %s", row->name, inner.text);
	}
	if (why.code == DG_OK)
		return 1;
	s->failed = true;
	s->why = why;
	return 0;
}

/* Lines that inih would cut, and NUL, where it would stop. */
static dg_err check_lines(const char *text, size_t length, const char *name, dg_error *reterr)
{
	size_t line = 1, start = 0;
	for (size_t i = 0; i <= length; i++) {
		if (i < length && text[i] == '\0')
			return dg_error_set(
				reterr, DG_ECONFIG, "%s, line %zu: holds a NUL byte", name, line);
		if (i < length && text[i] != '\n')
			continue;
		if (i - start > LINE_MAX_BYTES)
			return dg_error_set(reterr, DG_ECONFIG,
				"%s, line %zu: longer than %d bytes", name, line, LINE_MAX_BYTES);
		line++;
		start = i + 1;
	}
	return DG_OK;
}

dg_err dg__config_parse(
	const char *text, size_t length, const char *name, dg__config *config, dg_error *reterr)
{
	dg_err err = check_lines(text, length, name, reterr);
	if (err != DG_OK)
		return err;
	char *copy = malloc(length + 1);
	source *s = calloc(1, sizeof(*s));
	if (!copy || !s) {
		free(copy);
		free(s);
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	}
	memcpy(copy, text, length);
	copy[length] = '\0';
	s->config = config;
	int line = ini_parse_string(copy, on_pair, s);
	if (line != 0)
		err = dg_error_set(reterr, DG_ECONFIG, "%s, line %d: %s", name, line,
			s->failed ? s->why.text : "expected NAME = VALUE");
	free(copy);
	free(s);
	return err;
}

static dg_err read_file(const char *path, bool required, dg__config *config, dg_error *reterr)
{
	char *text = NULL;
	size_t length = 0;
	dg_error why;
	dg_err err = dg__file_read(path, FILE_MAX, DG_ECONFIG, &text, &length, &why);
	if (err == DG_ECONFIG && !required && why.native_code == ENOENT)
		return DG_OK;
	if (err != DG_OK)
		return dg_error_native(reterr, err, why.origin, why.native_code,
			"the configuration file %s", why.text);
	err = dg__config_parse(text, length, path, config, reterr);
	free(text);
	return err;
}

static dg_err read_environment(dg__config *config, dg_error *reterr)
{
	size_t count;
	const dg__option *rows = dg__config_options(&count);
	source s = { .config = config };
	for (size_t i = 0; i < count; i++) {
		char name[64];
		size_t at = (size_t)snprintf(name, sizeof(name), "DEVGATE_%s", rows[i].name);
		for (size_t c = 8; c < at; c++)
			name[c] = (char)(name[c] == '-'   ? '_'
					 : name[c] >= 'a' ? name[c] - 32
							  : name[c]);
		const char *value = getenv(name);
		dg_error why;
		if (value && *value && set_all(&s, &rows[i], value, &why) != DG_OK)
			return dg_error_set(reterr, DG_ECONFIG, "%s: %s", name, why.text);
	}
	return DG_OK;
}

/* --name VALUE and --name=VALUE; *at moves past what was used. */
static dg_err read_flag(source *s, int argc, char **argv, int *at, dg_error *reterr)
{
	const char *flag = argv[*at];
	size_t length = strncmp(flag, "--", 2) == 0 ? strcspn(flag + 2, "=") : 0;
	const dg__option *row = length ? find(flag + 2, length) : NULL;
	dg_error why;
	if (!row) {
		if (!length)
			return dg_error_set(reterr, DG_ECONFIG,
				"unexpected argument '%.60s'; see --help", flag);
		return unknown("option", flag + 2, reterr);
	}
	const char *value = flag[2 + length] == '=' ? flag + 3 + length : NULL;
	if (!value && !row->argument)
		value = "true";
	if (!value && ++*at < argc)
		value = argv[*at];
	if (!value)
		return dg_error_set(reterr, DG_ECONFIG, "--%s needs %s", row->name, row->argument);
	if (set_one(s, row, value, &why) != DG_OK)
		return dg_error_set(reterr, DG_ECONFIG, "--%s: %s", row->name, why.text);
	return DG_OK;
}

/* The value of --config in argv, also where it is not the first; NULL: not given. */
static const char *config_flag(int argc, char **argv, int i, int *ret_used)
{
	*ret_used = 0;
	if (strncmp(argv[i], "--config=", 9) == 0) {
		*ret_used = 1;
		return argv[i] + 9;
	}
	if (strcmp(argv[i], "--config") == 0) {
		*ret_used = 2;
		return i + 1 < argc ? argv[i + 1] : "";
	}
	return NULL;
}

static dg_err read_flags(int argc, char **argv, dg__config *config, dg_error *reterr)
{
	source s = { .config = config };
	for (int i = 1; i < argc && argv[i]; i++) {
		int used;
		config_flag(argc, argv, i, &used);
		if (used) {
			i += used - 1;
			continue;
		}
		dg_err err = read_flag(&s, argc, argv, &i, reterr);
		if (err != DG_OK)
			return err;
	}
	return DG_OK;
}

dg_err dg__config_load(int argc, char **argv, dg__config *ret_config, dg_error *reterr)
{
	const char *path = NULL, *named = getenv("DEVGATE_CONFIG");
	for (int i = 1; i < argc && argv[i]; i++) {
		int used;
		const char *value = config_flag(argc, argv, i, &used);
		path = value ? value : path;
	}
	if (!path && named && *named)
		path = named;
	dg__config *config = malloc(sizeof(*config));
	if (!config)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dg__config_defaults(config);
	dg_err err = read_file(path ? path : DEFAULT_FILE, path != NULL, config, reterr);
	if (err == DG_OK)
		err = read_environment(config, reterr);
	if (err == DG_OK)
		err = read_flags(argc, argv, config, reterr);
	if (err == DG_OK)
		err = dg__config_complete(config, reterr);
	if (err == DG_OK)
		*ret_config = *config;
	free(config);
	return err;
}
