/*
 * The table of options, between config.c and config_load.c.
 */
#ifndef DEVGATE_SERVER_CONFIG_INTERNAL_H
#define DEVGATE_SERVER_CONFIG_INTERNAL_H

#include "server/config.h"

#define DG__SCOPES_UNSET ~0u

typedef struct dg__option dg__option;

/** An option: --name, DEVGATE_NAME, name = … */
struct dg__option {
	const char *name;
	const char *argument; /* NULL: a flag */
	const char *help;
	/* DG_OK, DG_ECONFIG with what was expected. */
	dg_err (*set)(
		dg__config *config, const dg__option *row, const char *value, dg_error *reterr);
	size_t offset; /* of the member; of its count for a list */
	size_t size; /* of a text */
	uint32_t least, most; /* of a number */
	bool list; /* each value is one more; commas separate them in a variable and in the file */
};

const dg__option *dg__config_options(size_t *ret_count);
void dg__config_defaults(dg__config *config);
/** What nobody said. */
dg_err dg__config_complete(dg__config *config, dg_error *reterr) DG_MUST_CHECK;

/**
 * Read a configuration file's text on top of config.
 *
 * @param name  For error texts.
 * @return DG_OK, DG_ECONFIG (line and what was expected), DG_ENOMEM.
 */
dg_err dg__config_parse(const char *text, size_t length, const char *name, dg__config *config,
	dg_error *reterr) DG_MUST_CHECK;

#endif
