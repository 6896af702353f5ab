/*
 * One line on a terminal's standard error while a measurement runs, gone when it ends.
 */
#ifndef DEVGATE_CLIENT_CLI_PROGRESS_H
#define DEVGATE_CLIENT_CLI_PROGRESS_H

#include "client/cli/cli.h"

typedef struct dg__progress {
	const dg__screen *screen;
	char line[DG_KEY_TEXT_MAX + 48]; /* that stands there now; "": none */
} dg__progress;

/** Start to watch: fills call->progress and call->user, and takes over Ctrl-C. */
void dg__progress_start(const dg__cli *cli, dg__progress *ret_progress, dg_call *call);
/** Clear the line. */
void dg__progress_end(dg__progress *progress);

#endif
