/* devgate: the command-line tool. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "client/cli/report.h"

/* Find the command and run it. @return exit status. */
static int run(dg__cli *cli)
{
	dg_error error;
	const char *name = cli->args->command;
	const dg__command *command = name ? dg__command_find(name) : NULL;
	if (dg__args_has(cli->args, DG__OPT_VERSION))
		return dg__cmd_version(cli);
	if (name && !command) {
		dg_error_set(&error, DG_EINVALID, "unknown command '%.60s'", name);
		return dg__report_usage(cli, NULL, &error);
	}
	if (dg__args_has(cli->args, DG__OPT_HELP))
		return dg__help_command(cli, command);
	if (!command) {
		dg_error_set(&error, DG_EINVALID, "no command given");
		return dg__report_usage(cli, NULL, &error);
	}
	if (dg__command_check(command, cli->args, &error) != DG_OK)
		return dg__report_usage(cli, command, &error);
	if (dg__cli_call(cli->args, &cli->call, &error) != DG_OK)
		return dg__report_error(cli, &error);
	return command->run(cli);
}

/* Output that got lost is a failure, whatever the command made of it. */
static int finish_output(const dg__cli *cli, int status)
{
	dg_error error;
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	dg_error_native(&error, DG_EIO, "", errno, "standard output cannot be written%s%s",
		errno ? ": " : "", errno ? strerror(errno) : "");
	dg__report_error(cli, &error);
	return status == DG__EXIT_OK ? DG__EXIT_FAILED : status;
}

int main(int argc, char **argv)
{
	dg__args args;
	dg__screen screen;
	dg_error error;
	dg__cli cli = { .args = &args, .screen = &screen, .call = DG_CALL_INIT };
	/* A closed pipe is a write error, told like any other. */
	signal(SIGPIPE, SIG_IGN);
	dg__screen_init(&screen);
	int status =
		dg__args_parse(argc, argv, &args, &error) == DG_OK
			? run(&cli)
			: dg__report_usage(&cli,
				  args.command ? dg__command_find(args.command) : NULL, &error);
	status = finish_output(&cli, status);
	dg__args_finish(&args);
	return status;
}
