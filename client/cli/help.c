/* devgate help and version. */
#include <string.h>

#include "client/cli/doc.h"
#include "client/cli/report.h"

size_t dg__help_usage(const dg__command *command, char *buf, size_t size)
{
	int length =
		command ? snprintf(buf, size, "usage: devgate %s%s%s [OPTION]...", command->name,
				  *command->usage ? " " : "", command->usage)
			: snprintf(buf, size, "usage: devgate COMMAND [OPERAND]... [OPTION]...");
	return length < 0 ? 0 : (size_t)length;
}

static void show_options(dg__option_set options)
{
	for (unsigned i = 0; i < DG__OPT_COUNT; i++) {
		char name[48];
		const dg__option_row *row = &dg__options[i];
		if (!(options & DG__OPTION_BIT(i)))
			continue;
		snprintf(name, sizeof(name), "--%s%s%s", row->name, row->value ? " " : "",
			row->value ? row->value : "");
		printf("  %-20s  %s\n", name, row->help);
	}
}

static const dg__option_set global_options = DG__OPTION_BIT(DG__OPT_FIRST_OWN) - 1;

static int show_document(const dg__cli *cli, const dg__command *only)
{
	dg__doc doc = { 0 };
	bool first = true;
	dg__doc_add(&doc, "{\"commands\":[");
	for (const dg__command *command = dg__commands; command->name; command++) {
		if (only && command != only)
			continue;
		dg__doc_add(&doc,
			"%s{\"name\":\"%s\",\"usage\":\"%s\",\"summary\":", first ? "" : ",",
			command->name, command->usage);
		dg__doc_string(&doc, command->summary, false);
		dg__doc_add(&doc, "}");
		first = false;
	}
	dg__doc_add(&doc, "]}");
	return dg__doc_show(cli, &doc);
}

static int help_tool(const dg__cli *cli)
{
	char usage[256];
	if (dg__args_has(cli->args, DG__OPT_JSON))
		return show_document(cli, NULL);
	dg__help_usage(NULL, usage, sizeof(usage));
	printf("%s\n\n", usage);
	puts("The compute devices of this machine and of devgate gateways: what is there, and\n"
	     "how fast it is.\n\nCommands:");
	for (const dg__command *command = dg__commands; command->name; command++)
		printf("  %-10s  %s\n", command->name, command->summary);
	puts("\nGeneral options, before or after the command:");
	show_options(global_options);
	puts("\n'devgate help COMMAND' tells more of one; so does devgate(1).\n"
	     "Exit status: 0 done, 1 failed, 2 unknown command or option or missing operand.");
	return DG__EXIT_OK;
}

static const char device_help[] =
	"\nDEVICE is cpu, cuda:N, rocm:N, vulkan:discrete:N (integrated, virtual, existing; cpu,\n"
	"default; likewise metal, wgpu, webgpu), flex, ndarray, libtorch:cpu, capture:N,\n"
	"https://HOST:PORT#N, or autodiff(DEVICE). A hardware UUID or PCI address is looked up\n"
	"here and at configured gateways. With --gateway URL it is what names one device\n"
	"there: gateway index, cpu or cuda:0 and so on, UUID, PCI address, name.\n";

static const char key_help[] =
	"\nKEY is compute:DTYPE, cmma:DTYPE:ACCUMULATOR:MxNxK, memory, memory:read,\n"
	"memory:write, memory:read:BYTES (cold), memory:read:BYTES:resident (in cache;\n"
	"likewise copy and write), or launch. Without keys, a standard suite is measured.\n";

static const char curve_help[] =
	"\nThe curve is of memory that is not in cache; memory:read:BYTES:resident is a key of\n"
	"devgate throughput for what is.\n";

static const char lease_help[] =
	"\ntake prints the lease's id alone; in the variable DEVGATE_LEASE it is presented by "
	"what\n"
	"measures, renews and gives back:  export DEVGATE_LEASE=$(devgate lease take DEVICE)\n";

/* What a command's help says besides. */
static const struct {
	const char *command, *text;
} notes[] = {
	{ "throughput", key_help },
	{ "curve", curve_help },
	{ "lease", lease_help },
};

static bool takes_device(const dg__command *command)
{
	const char *at = strstr(command->usage, "DEVICE");
	return at && (at == command->usage || at[-1] == ' ');
}

int dg__help_command(const dg__cli *cli, const dg__command *command)
{
	char usage[256];
	if (!command)
		return help_tool(cli);
	if (dg__args_has(cli->args, DG__OPT_JSON))
		return show_document(cli, command);
	dg__help_usage(command, usage, sizeof(usage));
	printf("%s\n\n%s.\n", usage, command->summary);
	if (command->options) {
		puts("\nOptions:");
		show_options(command->options);
	}
	puts("\nGeneral options:");
	show_options(global_options);
	if (takes_device(command))
		fputs(device_help, stdout);
	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
		if (strcmp(command->name, notes[i].command) == 0)
			fputs(notes[i].text, stdout);
	return DG__EXIT_OK;
}

int dg__cmd_help(const dg__cli *cli)
{
	dg_error error;
	if (cli->args->operand_count == 0)
		return help_tool(cli);
	const dg__command *command = dg__command_find(cli->args->operands[0]);
	if (command)
		return dg__help_command(cli, command);
	dg_error_set(&error, DG_EINVALID, "unknown command '%.60s'", cli->args->operands[0]);
	return dg__report_usage(cli, NULL, &error);
}

int dg__cmd_version(const dg__cli *cli)
{
	if (!dg__args_has(cli->args, DG__OPT_JSON)) {
		printf("devgate %s\n", dg_version());
		return DG__EXIT_OK;
	}
	dg__doc doc = { 0 };
	dg__doc_add(&doc, "{\"version\":\"%s\"}", dg_version());
	return dg__doc_show(cli, &doc);
}
