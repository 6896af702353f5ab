/* See args.h. */
#include "client/cli/args.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const dg__option_row dg__options[DG__OPT_COUNT] = {
	[DG__OPT_JSON] = { "json", NULL, "print one JSON document, and problems as JSON" },
	[DG__OPT_GATEWAY] = { "gateway", "URL", "ask this gateway; may repeat" },
	[DG__OPT_PIN] = { "pin", "PIN", "trust the gateway whose key has this pin (sha256//...)" },
	[DG__OPT_CACERT] = { "cacert", "FILE", "trust gateways that this CA certified (PEM)" },
	[DG__OPT_TOKEN_FILE] = { "token-file", "FILE", "send the bearer token in this file" },
	[DG__OPT_CERT] = { "cert", "FILE", "present this client certificate (PEM)" },
	[DG__OPT_KEY] = { "key", "FILE", "private key of --cert (PEM)" },
	[DG__OPT_TIMEOUT] = { "timeout", "SECONDS", "give up after this time" },
	[DG__OPT_IN_PROCESS] = { "in-process", NULL, "use local devices without a worker process" },
	[DG__OPT_HELP] = { "help", NULL, "print help, of the command where one is given" },
	[DG__OPT_VERSION] = { "version", NULL, "print the version" },
	[DG__OPT_LOCAL] = { "local", NULL, "list the devices of this machine" },
	[DG__OPT_AMONG] = { "among", "LIST", "choose as if just these were enabled: cuda,flex" },
	[DG__OPT_REFRESH] = { "refresh", NULL, "measure again what is already measured" },
	[DG__OPT_SUSTAINED] = { "sustained", NULL, "also hold each figure for about a second" },
	[DG__OPT_FLOPS] = { "flops", "N", "operations of the work" },
	[DG__OPT_DTYPE] = { "dtype", "T", "type the work computes in: f32" },
	[DG__OPT_BYTES] = { "bytes", "N", "bytes that the work moves" },
	[DG__OPT_SECONDS] = { "seconds", "S", "measured time of the work" },
	[DG__OPT_TTL] = { "ttl", "SECONDS", "how long the lease lasts, 1 to 86400; else 60" },
};

bool dg__args_has(const dg__args *args, dg__option option)
{
	return (args->given & DG__OPTION_BIT(option)) != 0;
}

static bool find_option(const char *name, size_t length, dg__option *ret_option)
{
	for (unsigned i = 0; i < DG__OPT_COUNT; i++) {
		if (strlen(dg__options[i].name) == length &&
			memcmp(dg__options[i].name, name, length) == 0) {
			*ret_option = (dg__option)i;
			return true;
		}
	}
	if (length == 1 && (*name == 'h' || *name == 'V')) {
		*ret_option = *name == 'h' ? DG__OPT_HELP : DG__OPT_VERSION;
		return true;
	}
	return false;
}

/* "-1" is an operand, so that a bad number is told as one. */
static bool is_option(const char *text)
{
	return text[0] == '-' && text[1] != '\0' && !isdigit((unsigned char)text[1]);
}

/* Take the option at argv[*at] and the value after it; *at moves on where one was used. */
static dg_err take_option(int argc, char *const *argv, int *at, dg__args *args, dg_error *reterr)
{
	const char *text = argv[*at];
	const char *name = text + (text[1] == '-' ? 2 : 1);
	size_t length = strcspn(name, "=");
	const char *value = name[length] == '=' ? name + length + 1 : NULL;
	bool is_short = text[1] != '-';
	dg__option option;
	if (is_short != (length == 1) || !find_option(name, length, &option))
		return dg_error_set(reterr, DG_EINVALID, "unknown option '%.60s'", text);
	if (!dg__options[option].value) {
		if (value)
			return dg_error_set(reterr, DG_EINVALID, "option --%s takes no value",
				dg__options[option].name);
		args->given |= DG__OPTION_BIT(option);
		return DG_OK;
	}
	if (!value && (*at + 1 >= argc || strcmp(argv[*at + 1], "--") == 0))
		return dg_error_set(reterr, DG_EINVALID, "option --%s needs a value: --%s %s",
			dg__options[option].name, dg__options[option].name,
			dg__options[option].value);
	if (!value)
		value = argv[++*at];
	args->given |= DG__OPTION_BIT(option);
	args->value[option] = value;
	if (option == DG__OPT_GATEWAY)
		args->gateways[args->gateway_count++] = value;
	return DG_OK;
}

static void take_operand(const char *text, dg__args *args)
{
	if (!args->command)
		args->command = text;
	else
		args->operands[args->operand_count++] = text;
}

dg_err dg__args_parse(int argc, char *const *argv, dg__args *ret_args, dg_error *reterr)
{
	dg_err first = DG_OK;
	size_t room = argc > 0 ? (size_t)argc : 1;
	memset(ret_args, 0, sizeof(*ret_args));
	ret_args->operands = calloc(room, sizeof(*ret_args->operands));
	ret_args->gateways = calloc(room, sizeof(*ret_args->gateways));
	if (!ret_args->operands || !ret_args->gateways)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	bool ended = false;
	for (int i = 1; i < argc; i++) {
		if (!ended && strcmp(argv[i], "--") == 0) {
			ended = true;
			continue;
		}
		if (ended || !is_option(argv[i])) {
			take_operand(argv[i], ret_args);
			continue;
		}
		dg_err err = take_option(argc, argv, &i, ret_args, first ? NULL : reterr);
		first = first ? first : err;
	}
	return first;
}

void dg__args_finish(dg__args *args)
{
	if (!args)
		return;
	free(args->operands);
	free(args->gateways);
	memset(args, 0, sizeof(*args));
}

dg_err dg__args_whole(
	const char *text, const char *what, uint64_t max, uint64_t *ret_number, dg_error *reterr)
{
	/* "-0" is a whole number as well. */
	const char *digits = text + (*text == '-');
	bool plain = *digits != '\0' && digits[strspn(digits, "0123456789")] == '\0';
	errno = 0;
	uint64_t number = plain ? strtoull(digits, NULL, 10) : 0;
	if (!plain || errno == ERANGE || number > max || (*text == '-' && number > 0))
		return dg_error_set(reterr, DG_EINVALID,
			"%s is '%.60s', expected a whole number from 0 to %" PRIu64, what, text,
			max);
	*ret_number = number;
	return DG_OK;
}

dg_err dg__args_real(const char *text, const char *what, double *ret_number, dg_error *reterr)
{
	char *end = NULL;
	/* strtod() also reads blanks, hexadecimal, "inf" and "nan"; none of them is meant. */
	bool plain = *text != '\0' && text[strspn(text, "0123456789+-.eE")] == '\0';
	double number = plain ? strtod(text, &end) : 0;
	if (!plain || end == text || *end != '\0')
		return dg_error_set(reterr, DG_EINVALID,
			"%s is '%.60s', expected a number such as 2.5 or 1e12", what, text);
	if (number < 0 || !isfinite(number))
		return dg_error_set(reterr, DG_EINVALID,
			"%s is '%.60s', expected a finite number from 0 on", what, text);
	*ret_number = number;
	return DG_OK;
}
