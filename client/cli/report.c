/* See report.h. */
#include "client/cli/report.h"

#include "client/cli/doc.h"
#include "client/cli/interrupt.h"

static const struct {
	dg_err code;
	const char *hint;
} hints[] = {
	{ DG_EDEVICE,
		"'devgate help describe' lists the forms; 'devgate devices' lists what is here" },
	{ DG_ENODEVICE,
		"'devgate devices' lists what is there, with --gateway URL what a gateway has" },
	{ DG_EKEY,
		"keys are compute:f32, cmma:f16:f32:16x16x16, memory, memory:read:65536, launch" },
	{ DG_EADDRESS, "an address is https://HOST[:PORT]; the port is 8443 where none is given" },
	{ DG_EUNREGISTERED, "a remote id means something only in the process that made it" },
	{ DG_ENODRIVER, "'devgate doctor' tells what was looked for and where" },
	{ DG_EDRIVER, "'devgate doctor' tells more about this machine's drivers" },
	{ DG_EWORKER, "DEVGATE_WORKER names the worker program; 'devgate doctor' tells more" },
	{ DG_ENOTMEASURED, "measure first: 'devgate throughput' or 'devgate curve'" },
	{ DG_ETIMEOUT, "--timeout SECONDS allows more time" },
	{ DG_EUNREACHABLE, "see that devgated runs there and listens at this address" },
	{ DG_ETLS,
		"say whom to trust: --pin with the pin that devgated printed, or --cacert FILE" },
	{ DG_EPIN, "the key differs from the pin's: devgated prints its pin when it starts" },
	{ DG_EUNAUTHORIZED, "give a token: --token-file FILE or DEVGATE_TOKEN_FILE" },
	{ DG_EFORBIDDEN, "the token lacks the scope: 'devgated token create' makes one with it" },
	{ DG_EPLAINHTTP, "use https:// for a gateway on another machine" },
	{ DG_EBUSY, "try again later" },
	{ DG_ELEASED, "its holder measures with the lease's id in the variable DEVGATE_LEASE" },
	{ DG_ENOLEASE, "'devgate lease take DEVICE' takes one and prints its id" },
	{ DG_EDETECTING, "try again in a few seconds" },
};

const char *dg__report_hint(dg_err code)
{
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		if (hints[i].code == code)
			return hints[i].hint;
	return "";
}

static void print_document(const dg_error *error)
{
	dg__doc doc = { 0 };
	dg_error ignored;
	dg__doc_take(&doc, dg_json_error(error));
	if (dg__doc_print(&doc, stderr, &ignored) != DG_OK)
		fputs("{\"code\":\"no_memory\"}\n", stderr);
}

static void print_lines(const dg__cli *cli, const dg_error *error)
{
	const char *hint = dg__report_hint(error->code);
	fprintf(stderr, "devgate: %s: ", dg_err_code(error->code));
	dg__screen_put(
		cli->screen, stderr, error->text[0] ? error->text : dg_err_title(error->code));
	fputc('\n', stderr);
	if (*hint)
		fprintf(stderr, "hint: %s\n", hint);
}

int dg__report_error(const dg__cli *cli, const dg_error *error)
{
	int signal_number = dg__interrupt_signal();
	dg_error interrupted;
	if (signal_number) {
		/* Ctrl-C may end the worker as well; what that looked like is of no interest. */
		dg_error_set(&interrupted, DG_ECANCELLED, "interrupted");
		error = &interrupted;
	}
	/* What was printed so far comes first where both streams are one. */
	fflush(stdout);
	if (dg__args_has(cli->args, DG__OPT_JSON))
		print_document(error);
	else
		print_lines(cli, error);
	return signal_number ? 128 + signal_number : DG__EXIT_FAILED;
}

int dg__report_usage(const dg__cli *cli, const dg__command *command, const dg_error *error)
{
	char usage[256];
	dg__help_usage(command, usage, sizeof(usage));
	fflush(stdout);
	if (dg__args_has(cli->args, DG__OPT_JSON)) {
		dg_error whole;
		dg_error_set(&whole, error->code, "%s; %s", error->text, usage);
		print_document(&whole);
	} else {
		fputs("devgate: ", stderr);
		dg__screen_put(cli->screen, stderr, error->text);
		fprintf(stderr, "\n%s\n", usage);
		if (command)
			fprintf(stderr, "hint: 'devgate help %s' tells more\n", command->name);
		else
			fputs("hint: 'devgate help' lists commands and options\n", stderr);
	}
	return DG__EXIT_USAGE;
}
