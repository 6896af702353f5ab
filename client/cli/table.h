/*
 * A table: columns aligned and parted by two blanks or more; an empty cell is "-", so that columns
 * can be counted.
 */
#ifndef DEVGATE_CLIENT_CLI_TABLE_H
#define DEVGATE_CLIENT_CLI_TABLE_H

#include "client/cli/cli.h"

typedef struct dg__cell {
	char *text; /* cleaned; owned */
	dg__style style;
} dg__cell;

typedef struct dg__table {
	const dg__screen *screen;
	size_t columns, count, room;
	uint32_t right; /* bit n: column n is aligned to the right */
	bool failed;
	dg__cell *cells; /* row by row, the headings first */
} dg__table;

/**
 * Start a table.
 *
 * @param headings  columns of them; NULL: a table without headings.
 * @param right     Bit n: column n is aligned to the right.
 */
void dg__table_init(dg__table *table, const dg__screen *screen, size_t columns,
	const char *const *headings, uint32_t right);
/** Add the next cell, row by row; cut at 500 bytes. */
void dg__table_add(dg__table *table, dg__style style, const char *format, ...) DG_PRINTF(3, 4);
/** Columns that the widest cell of a column takes so far. */
size_t dg__table_width(const dg__table *table, size_t column);
/** Print on standard output and free. DG_ENOMEM where a cell found no memory. */
dg_err dg__table_print(dg__table *table, dg_error *reterr) DG_MUST_CHECK;
/** Print on standard output and free. @return exit status; an error is told. */
int dg__table_show(const dg__cli *cli, dg__table *table);

#endif
