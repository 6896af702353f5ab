/* The commands of the tool, once, and what of a command line each of them takes. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/cli.h"

#define MEASURING DG__OPTION_BIT(DG__OPT_REFRESH)

const dg__command dg__commands[] = {
	{ "devices", "[--gateway URL]... [--local]",
		"List devices: of this machine and configured gateways, or of those named",
		DG__OPTION_BIT(DG__OPT_LOCAL), 0, 0, dg__cmd_devices },
	{ "describe", "DEVICE", "Tell what a device is called, its id and its default dtypes", 0, 1,
		1, dg__cmd_describe },
	{ "decode", "TYPE_ID INDEX_ID", "Tell which device an id stands for", 0, 2, 2,
		dg__cmd_decode },
	{ "default", "[--among LIST]", "Tell which device is the default",
		DG__OPTION_BIT(DG__OPT_AMONG), 0, 0, dg__cmd_default },
	{ "throughput", "DEVICE [KEY]...", "Measure peak throughput, one figure a key",
		MEASURING | DG__OPTION_BIT(DG__OPT_SUSTAINED), 1, SIZE_MAX, dg__cmd_throughput },
	{ "curve", "DEVICE [copy|read|write] [--bytes N]",
		"Measure memory throughput by the amount that is moved; read where nothing is said",
		MEASURING | DG__OPTION_BIT(DG__OPT_BYTES), 1, 2, dg__cmd_curve },
	{ "roofline", "DEVICE --flops N --dtype T --bytes N [--seconds S]",
		"Tell the time that work needs at the device's measured peaks",
		MEASURING | DG__OPTION_BIT(DG__OPT_FLOPS) | DG__OPTION_BIT(DG__OPT_DTYPE) |
			DG__OPTION_BIT(DG__OPT_BYTES) | DG__OPTION_BIT(DG__OPT_SECONDS),
		1, 1, dg__cmd_roofline },
	{ "lease", "take|renew|give|show DEVICE [--ttl SECONDS]",
		"Take a gateway's device for oneself alone, renew that, give it back, or show it",
		DG__OPTION_BIT(DG__OPT_TTL), 2, 2, dg__cmd_lease },
	{ "health", "URL", "Tell whether a gateway is alive and ready; fails where it is not", 0, 1,
		1, dg__cmd_health },
	{ "doctor", "", "Tell what was looked for where, what was found, and what to do", 0, 0, 0,
		dg__cmd_doctor },
	{ "version", "", "Print the version", 0, 0, 0, dg__cmd_version },
	{ "help", "[COMMAND]", "Print help, of one command where it is named", 0, 0, 1,
		dg__cmd_help },
	{ NULL, NULL, NULL, 0, 0, 0, NULL },
};

const dg__command *dg__command_find(const char *name)
{
	for (const dg__command *command = dg__commands; command->name; command++)
		if (strcmp(command->name, name) == 0)
			return command;
	return NULL;
}

dg_err dg__command_check(const dg__command *command, const dg__args *args, dg_error *reterr)
{
	for (unsigned i = DG__OPT_FIRST_OWN; i < DG__OPT_COUNT; i++)
		if (dg__args_has(args, (dg__option)i) && !(command->options & DG__OPTION_BIT(i)))
			return dg_error_set(reterr, DG_EINVALID, "%s has no option --%s",
				command->name, dg__options[i].name);
	/* The default is this machine's; that of a gateway would be a silent wrong answer. */
	if (command->run == dg__cmd_default && args->gateway_count > 0)
		return dg_error_set(reterr, DG_EINVALID, "default has no option --gateway");
	if (args->operand_count < command->operands_min)
		return dg_error_set(reterr, DG_EINVALID, "%s needs %s operand", command->name,
			args->operand_count == 0 ? "an" : "another");
	if (args->operand_count > command->operands_max)
		return dg_error_set(reterr, DG_EINVALID, "%s has no use for '%.60s'", command->name,
			args->operands[command->operands_max]);
	return DG_OK;
}

static const char *variable(const char *name)
{
	const char *value = getenv(name);
	return value && *value ? value : NULL;
}

/*
 * The library uses either the variables or the call's credentials. A user who says whom to trust,
 * and leaves who to be to the variables, means both; so a half that no option gives comes from
 * there.
 */
static void fill_credentials(const dg__args *args, dg_call *call)
{
	call->pin = args->value[DG__OPT_PIN];
	call->ca_file = args->value[DG__OPT_CACERT];
	call->token_file = args->value[DG__OPT_TOKEN_FILE];
	call->cert_file = args->value[DG__OPT_CERT];
	call->key_file = args->value[DG__OPT_KEY];
	bool trust = call->pin || call->ca_file;
	bool identity = call->token_file || call->cert_file || call->key_file;
	if (trust && !identity)
		call->token_file = variable("DEVGATE_TOKEN_FILE");
	if (identity && !trust) {
		call->pin = variable("DEVGATE_PIN");
		call->ca_file = variable("DEVGATE_CACERT");
	}
}

/* Files that options name. The library looks only for those that it uses, and over plain HTTP for
 * none; a user who named a wrong one is told at once. */
static dg_err check_files(const dg__args *args, dg_error *reterr)
{
	static const dg__option files[] = { DG__OPT_CACERT, DG__OPT_TOKEN_FILE, DG__OPT_CERT,
		DG__OPT_KEY };
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const char *path = args->value[files[i]], *name = dg__options[files[i]].name;
		struct stat st;
		if (!path || !*path)
			continue;
		if (stat(path, &st) != 0)
			return dg_error_native(reterr, DG_ECREDENTIAL, "system", errno,
				"--%s: %.200s cannot be read: %s", name, path, strerror(errno));
		if (!S_ISREG(st.st_mode))
			return dg_error_set(reterr, DG_ECREDENTIAL,
				"--%s: %.200s is not a regular file", name, path);
		if (access(path, R_OK) != 0)
			return dg_error_native(reterr, DG_ECREDENTIAL, "system", errno,
				"--%s: %.200s cannot be read: %s", name, path, strerror(errno));
	}
	return DG_OK;
}

dg_err dg__cli_call(const dg__args *args, dg_call *ret_call, dg_error *reterr)
{
	const char *timeout = args->value[DG__OPT_TIMEOUT];
	dg_call call = DG_CALL_INIT;
	double seconds = 0;
	if (timeout && (dg__args_real(timeout, "--timeout", &seconds, NULL) != DG_OK ||
			       seconds < 0.001 || seconds > 86400))
		return dg_error_set(reterr, DG_EINVALID,
			"--timeout is '%.60s', expected seconds from 0.001 to 86400, such as 2.5",
			timeout);
	dg_err err = check_files(args, reterr);
	if (err)
		return err;
	call.timeout_ms = (uint32_t)ceil(seconds * 1000);
	call.flags = (dg__args_has(args, DG__OPT_IN_PROCESS) ? (uint32_t)DG_LOCAL_IN_PROCESS : 0) |
		     (dg__args_has(args, DG__OPT_REFRESH) ? (uint32_t)DG_REFRESH : 0) |
		     (dg__args_has(args, DG__OPT_SUSTAINED) ? (uint32_t)DG_SUSTAINED : 0);
	fill_credentials(args, &call);
	/* A variable, since arguments are shown to everybody on the machine. */
	call.lease = variable("DEVGATE_LEASE");
	*ret_call = call;
	return DG_OK;
}
