/* See progress.h. */
#include "client/cli/progress.h"

#include <string.h>

#include "client/cli/interrupt.h"

/* Overwritten with blanks, because not every terminal knows an escape sequence for it. */
static void clear(dg__progress *progress)
{
	size_t columns = dg__screen_columns(progress->screen, progress->line);
	if (columns > 0)
		fprintf(stderr, "\r%*s\r", (int)columns, "");
	progress->line[0] = '\0';
}

static void show(dg__progress *progress, uint32_t done, uint32_t total, const char *key)
{
	char clean[DG_KEY_TEXT_MAX], line[sizeof(progress->line)];
	dg__screen_clean(progress->screen, key ? key : "", clean, sizeof(clean));
	snprintf(line, sizeof(line), "measuring %u of %u%s%s",
		(unsigned)(done < total ? done + 1 : total), (unsigned)total, *clean ? ": " : "",
		clean);
	if (strcmp(line, progress->line) == 0)
		return;
	clear(progress);
	memcpy(progress->line, line, sizeof(line));
	fputs(line, stderr);
	fflush(stderr);
}

static bool watch(uint32_t done, uint32_t total, const char *key, void *user)
{
	dg__progress *progress = user;
	if (progress->screen->err_terminal)
		show(progress, done, total, key);
	return dg__interrupt_signal() == 0;
}

void dg__progress_start(const dg__cli *cli, dg__progress *ret_progress, dg_call *call)
{
	ret_progress->screen = cli->screen;
	ret_progress->line[0] = '\0';
	*call = cli->call;
	call->progress = watch;
	call->user = ret_progress;
	dg__interrupt_watch();
}

void dg__progress_end(dg__progress *progress)
{
	clear(progress);
	fflush(stderr);
}
