/* See fake_script.h. */
#include "tests/fakes/fake_script.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 16384

static void malformed(const char *line)
{
	fprintf(stderr, "DG_FAKE: malformed: %s\n", line);
	exit(70);
}

static void copy(char *to, size_t size, const char *value, const char *line)
{
	if ((size_t)snprintf(to, size, "%s", value) >= size)
		malformed(line);
}

static unsigned long number(const char *value, const char *line)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);
	if (!isdigit((unsigned char)*value) || *end)
		malformed(line);
	return n;
}

static void read_gpus(dg__fake_script *s, const char *value, const char *line)
{
	s->gpu_count = 0;
	for (const char *at = value; *at; at += *at == ',') {
		if (s->gpu_count == DG__FAKE_GPUS_MAX || !isalpha((unsigned char)*at))
			malformed(line);
		dg__fake_gpu *gpu = &s->gpus[s->gpu_count++];
		*gpu = (dg__fake_gpu){ .letter = (char)toupper((unsigned char)*at) };
		gpu->software = islower((unsigned char)*at++) != 0;
		if (*at == '<') {
			gpu->parent = at[1];
			at += at[1] ? 2 : 1;
		}
		if (*at && *at != ',')
			malformed(line);
	}
}

static void read_act(dg__fake_script *s, const char *value, const char *line)
{
	const char *slot = strrchr(value, '@');
	if (!slot || s->act_count == DG__FAKE_ACTS_MAX)
		malformed(line);
	dg__fake_act *act = &s->acts[s->act_count++];
	int length = (int)(slot - value), word = (int)strcspn(slot + 1, "+");
	if (snprintf(act->action, sizeof(act->action), "%.*s", length, value) != length ||
		snprintf(act->slot, sizeof(act->slot), "%.*s", word, slot + 1) != word)
		malformed(line);
	act->after = slot[1 + word] ? number(slot + 2 + word, line) : 0;
}

static void read_line(dg__fake_script *s, const char *line)
{
	const char *is = strchr(line, '=');
	const struct {
		const char *word;
		char *text;
		size_t size;
		unsigned long *number;
	} rows[] = {
		{ "variant", s->variant, sizeof(s->variant), NULL },
		{ "kind", s->kind, sizeof(s->kind), NULL },
		{ "name", s->name, sizeof(s->name), NULL },
		{ "driver", s->driver, sizeof(s->driver), NULL },
		{ "enumerate", s->enumerate, sizeof(s->enumerate), NULL },
		{ "lost", s->lost, sizeof(s->lost), NULL },
		{ "output", s->output, sizeof(s->output), NULL },
		{ "log", s->log, sizeof(s->log), NULL },
		{ "init_ms", NULL, 0, &s->init_ms },
		{ "launch_ms", NULL, 0, &s->launch_ms },
	};
	size_t length = is ? (size_t)(is - line) : 0;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strlen(rows[i].word) == length && !strncmp(line, rows[i].word, length)) {
			if (rows[i].text)
				copy(rows[i].text, rows[i].size, is + 1, line);
			else
				*rows[i].number = number(is + 1, line);
			return;
		}
	if (!strncmp(line, "gpus=", 5))
		read_gpus(s, line + 5, line);
	else if (!strncmp(line, "do=", 3))
		read_act(s, line + 3, line);
	else if (!strncmp(line, "ignore_term=", 12))
		s->ignore_term = number(line + 12, line) != 0;
	else
		malformed(line);
}

static void read_text(char *text)
{
	const char *given = getenv("DG_FAKE"), *path = getenv("DG_FAKE_FILE");
	if (given && *given == '@')
		path = given + 1;
	else if (given || !path) {
		copy(text, TEXT_MAX, given ? given : "", "DG_FAKE is too long");
		return;
	}
	FILE *f = fopen(path, "r");
	if (!f)
		malformed(path);
	text[fread(text, 1, TEXT_MAX - 1, f)] = '\0';
	fclose(f);
}

/* Whether a line starts a part, and whose it is then. */
static bool read_part(const char *line, const char *backend, bool *ret_ours)
{
	size_t length = strlen(line), name = strlen(backend);
	if (*line != '[')
		return false;
	if (line[length - 1] != ']')
		malformed(line);
	*ret_ours = length == 2 || (length == name + 2 && !strncmp(line + 1, backend, name));
	return true;
}

void dg__fake_script_read(const char *backend, dg__fake_script *ret_script)
{
	static char text[TEXT_MAX];
	/* What another backend's part says goes here. */
	static dg__fake_script others;
	bool ours = true;
	memset(&others, 0, sizeof(others));
	memset(ret_script, 0, sizeof(*ret_script));
	read_gpus(ret_script, "A", "A");
	read_text(text);
	for (char *line = text; *line;) {
		size_t length = strcspn(line, ";\n");
		bool last = line[length] == '\0';
		line[length] = '\0';
		if (length && !read_part(line, backend, &ours))
			read_line(ours ? ret_script : &others, line);
		line += length + !last;
	}
}
