/*
 * What the commands of devgated that read or edit a gateway's state share: `devgated token` and
 * `devgated audit`. They work beside a gateway that runs, and without one.
 */
#ifndef DEVGATE_SERVER_COMMAND_H
#define DEVGATE_SERVER_COMMAND_H

#include "server/store.h"

/** Print text, and usage where it is not NULL, to standard error; the exit status: 2 with it, else
 * 1. */
int dg__command_complain(const char *text, const char *usage);

/** The folder of the state: directory, or where it is NULL, DEVGATE_STATE_DIR, STATE_DIRECTORY or
 * /var/lib/devgate, the first that is set. Borrowed. */
const char *dg__command_state_dir(const char *directory);

/** Unix time in milliseconds as RFC 3339 in UTC, to the second; 0: "-". */
void dg__command_time(int64_t unix_ms, char buf[32]);

/** `devgated token`: create, list, revoke. The exit status. */
int dg__token_command(int argc, char **argv);
/** `devgated audit`: who measured or leased what. The exit status. */
int dg__audit_command(int argc, char **argv);

#endif
