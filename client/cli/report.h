/*
 * Problems on standard error: a sentence and a hint for people, a problem document with --json.
 */
#ifndef DEVGATE_CLIENT_CLI_REPORT_H
#define DEVGATE_CLIENT_CLI_REPORT_H

#include "client/cli/cli.h"

/** Tell an error. @return DG__EXIT_FAILED, or 128 + signal where one interrupted the run. */
int dg__report_error(const dg__cli *cli, const dg_error *error);

/** Tell an error of the command line, with the usage. @return DG__EXIT_USAGE. */
int dg__report_usage(const dg__cli *cli, const dg__command *command, const dg_error *error);

/** What to do about an error, one sentence; "" where there is nothing to say. */
const char *dg__report_hint(dg_err code);

#endif
