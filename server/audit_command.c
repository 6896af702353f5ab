/* `devgated audit`: who measured or leased what. See command.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <devgate/json.h>

#include "server/command.h"

#define LAST_DEFAULT 100u
#define LAST_MAX 100000u

typedef struct words {
	const char *last, *state_dir;
	bool json;
} words;

typedef struct output {
	bool json, lost;
	uint32_t count;
} output;

static const char usage[] = "usage: devgated audit [--last N] [--state-dir DIR] [--json]\n";

static bool read_words(int argc, char **argv, words *w)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			w->json = true;
		else if (strcmp(argv[i], "--last") == 0 && i + 1 < argc)
			w->last = argv[++i];
		else if (strcmp(argv[i], "--state-dir") == 0 && i + 1 < argc)
			w->state_dir = argv[++i];
		else
			return false;
	}
	return true;
}

static bool read_last(const char *text, uint32_t *ret_last)
{
	char *end;
	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	bool ok = *text >= '0' && *text <= '9' && !*end && !errno && n >= 1 && n <= LAST_MAX;
	if (ok)
		*ret_last = (uint32_t)n;
	return ok;
}

/* Names come from certificates and drivers; a terminal is shown no control characters.
 * Padded to width and a space; 0: as it is. */
static void print_column(const char *text, int width)
{
	int n = 0;
	for (; *text; text++, n++)
		putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
	for (; width && n <= width; n++)
		putchar(' ');
}

static void print_json(output *out, const char *at, const dg__audit_entry *entry)
{
	char *who = dg_json_string(entry->who), *what = dg_json_string(entry->what);
	char *device = dg_json_string(entry->device);
	if (who && what && device)
		printf("%s{\"at\":\"%s\",\"who\":%s,\"what\":%s,\"device\":%s}",
			out->count ? "," : "", at, who, what, device);
	else
		out->lost = true;
	dg_free(who);
	dg_free(what);
	dg_free(device);
}

static void print_entry(const dg__audit_entry *entry, void *user)
{
	output *out = user;
	char at[32];
	dg__command_time(entry->at_ms, at);
	if (out->json) {
		print_json(out, at, entry);
	} else {
		if (out->count == 0)
			printf("%-20s %-24s %-32s %s\n", "at", "who", "what", "device");
		print_column(at, 20);
		print_column(entry->who, 24);
		print_column(entry->what, 32);
		print_column(entry->device, 0);
		putchar('\n');
	}
	out->count++;
}

/* Reading needs no folder that can be written. */
static dg_err open_state(const char *directory, dg__store **ret_store, dg_error *reterr)
{
	dg_error unread;
	dg_err err = dg__store_open(directory, ret_store, reterr);
	if (err == DG_ESTATE &&
		dg__store_open_frozen(directory, reterr->text, ret_store, &unread) == DG_OK)
		err = DG_OK;
	return err;
}

int dg__audit_command(int argc, char **argv)
{
	words w = { NULL, NULL, false };
	uint32_t last = LAST_DEFAULT;
	dg__store *store;
	dg_error why;
	if (!read_words(argc, argv, &w))
		return dg__command_complain("audit takes options only", usage);
	if (w.last && !read_last(w.last, &last))
		return dg__command_complain("--last needs a number from 1 to 100000", usage);
	if (open_state(dg__command_state_dir(w.state_dir), &store, &why) != DG_OK)
		return dg__command_complain(why.text, NULL);
	output out = { w.json, false, 0 };
	if (w.json)
		printf("{\"entries\":[");
	dg_err err = dg__store_each_audit(store, last, print_entry, &out, &why);
	if (w.json)
		printf("]}\n");
	dg__store_close(store);
	if (err == DG_OK && out.lost)
		err = dg_error_set(&why, DG_ENOMEM, NULL);
	return err == DG_OK ? 0 : dg__command_complain(why.text, NULL);
}
