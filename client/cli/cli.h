/*
 * devgate, the command-line tool: what its commands share. It stands on the library's public
 * headers alone. Every function here returns; only main ends the process.
 */
#ifndef DEVGATE_CLIENT_CLI_CLI_H
#define DEVGATE_CLIENT_CLI_CLI_H

#include "client/cli/args.h"
#include "client/cli/screen.h"

#include <devgate/devgate.h>

/** What the tool exits with. An interrupted measurement exits with 128 + the signal's number. */
enum {
	DG__EXIT_OK = 0,
	DG__EXIT_FAILED = 1, /**< the command failed, or a value was bad */
	DG__EXIT_USAGE = 2 /**< unknown command or option, missing or surplus operand */
};

/** One run of the tool: what was asked, what it is asked on, and what every library call gets. */
typedef struct dg__cli {
	const dg__args *args;
	const dg__screen *screen;
	dg_call call; /**< credentials, deadline and flags of the options; no progress */
} dg__cli;

/** A command of the tool. */
typedef struct dg__command {
	const char *name;
	const char *usage; /**< operands and own options, as in "DEVICE [KEY...]" */
	const char *summary; /**< one sentence */
	dg__option_set options; /**< options of its own, besides the global ones */
	size_t operands_min, operands_max;
	int (*run)(const dg__cli *cli); /**< @return exit status */
} dg__command;

/** All commands; ends with a row whose name is NULL. */
extern const dg__command dg__commands[];

/** The command of that name; NULL where there is none. */
const dg__command *dg__command_find(const char *name);

/**
 * Whether the options and operands given are the command's.
 *
 * @return DG_OK, DG_EINVALID (names the first that is not).
 */
dg_err dg__command_check(
	const dg__command *command, const dg__args *args, dg_error *reterr) DG_MUST_CHECK;

/** Fill what every library call gets. DG_EINVALID, DG_ERANGE: --timeout. Texts stay borrowed. */
dg_err dg__cli_call(const dg__args *args, dg_call *ret_call, dg_error *reterr) DG_MUST_CHECK;

/* The commands: see each row of dg__commands. @return exit status. */
int dg__cmd_devices(const dg__cli *cli);
int dg__cmd_describe(const dg__cli *cli);
int dg__cmd_decode(const dg__cli *cli);
int dg__cmd_default(const dg__cli *cli);
int dg__cmd_throughput(const dg__cli *cli);
int dg__cmd_curve(const dg__cli *cli);
int dg__cmd_roofline(const dg__cli *cli);
int dg__cmd_lease(const dg__cli *cli);
int dg__cmd_health(const dg__cli *cli);
int dg__cmd_doctor(const dg__cli *cli);
int dg__cmd_version(const dg__cli *cli);
int dg__cmd_help(const dg__cli *cli);

/** Help of one command, on standard output. @return exit status. */
int dg__help_command(const dg__cli *cli, const dg__command *command);
/** "usage: devgate describe DEVICE", of the tool where command is NULL; as snprintf. */
size_t dg__help_usage(const dg__command *command, char *buf, size_t size);

#endif
