/*
 * The command line taken apart: options in any order, before or after the command, "--opt value"
 * and "--opt=value"; "--" ends them. Which of them a command takes is not known here.
 */
#ifndef DEVGATE_CLIENT_CLI_ARGS_H
#define DEVGATE_CLIENT_CLI_ARGS_H

#include <stdbool.h>

#include <devgate/error.h>

typedef enum dg__option {
	DG__OPT_JSON,
	DG__OPT_GATEWAY, /* may repeat */
	DG__OPT_PIN,
	DG__OPT_CACERT,
	DG__OPT_TOKEN_FILE,
	DG__OPT_CERT,
	DG__OPT_KEY,
	DG__OPT_TIMEOUT,
	DG__OPT_IN_PROCESS,
	DG__OPT_HELP,
	DG__OPT_VERSION,
	/* From here on, options of single commands. */
	DG__OPT_LOCAL,
	DG__OPT_AMONG,
	DG__OPT_REFRESH,
	DG__OPT_SUSTAINED,
	DG__OPT_FLOPS,
	DG__OPT_DTYPE,
	DG__OPT_BYTES,
	DG__OPT_SECONDS,
	DG__OPT_TTL,
	DG__OPT_COUNT
} dg__option;

#define DG__OPT_FIRST_OWN DG__OPT_LOCAL

/** A set of options: bit n stands for option n. */
typedef uint32_t dg__option_set;
#define DG__OPTION_BIT(option) ((dg__option_set)1 << (option))

typedef struct dg__option_row {
	const char *name; /* without "--" */
	const char *value; /* what its value is called, "URL"; NULL for a flag */
	const char *help; /* one phrase */
} dg__option_row;

/** By dg__option. */
extern const dg__option_row dg__options[DG__OPT_COUNT];

/** A command line. Texts are those of argv, borrowed. */
typedef struct dg__args {
	dg__option_set given;
	const char *value[DG__OPT_COUNT]; /**< last one given; NULL for flags and absent ones */
	const char *command; /**< first operand; NULL where there is none */
	const char **operands; /**< after the command */
	size_t operand_count;
	const char **gateways; /**< every --gateway, in order */
	size_t gateway_count;
} dg__args;

/**
 * Take argv apart.
 *
 * @param[out] ret_args  Filled even on failure as far as was understood (so that --json counts
 *         wherever it stands); dg__args_finish().
 * @return DG_OK, DG_EINVALID (unknown option, missing or surplus value), DG_ENOMEM.
 */
dg_err dg__args_parse(
	int argc, char *const *argv, dg__args *ret_args, dg_error *reterr) DG_MUST_CHECK;
void dg__args_finish(dg__args *args);

bool dg__args_has(const dg__args *args, dg__option option);

/**
 * Read a decimal whole number: digits only, no sign, no blanks.
 *
 * @param what  What the number is, for the error's text.
 * @return DG_OK, DG_EINVALID (not a whole number, negative, or above max).
 */
dg_err dg__args_whole(const char *text, const char *what, uint64_t max, uint64_t *ret_number,
	dg_error *reterr) DG_MUST_CHECK;
/** Read a finite number of 0 or more, "2.5" or "1e12". DG_EINVALID. */
dg_err dg__args_real(
	const char *text, const char *what, double *ret_number, dg_error *reterr) DG_MUST_CHECK;

#endif
