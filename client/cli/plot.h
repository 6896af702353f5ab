/*
 * Bars drawn with characters, one beside each row of a table.
 */
#ifndef DEVGATE_CLIENT_CLI_PLOT_H
#define DEVGATE_CLIENT_CLI_PLOT_H

#include "client/cli/screen.h"

/** Longest bar, in columns, and room for it with NUL, in bytes. */
#define DG__PLOT_COLUMNS_MAX 100
#define DG__PLOT_TEXT_MAX (DG__PLOT_COLUMNS_MAX * 3 + 1)

/**
 * Draw a bar: block characters to an eighth of a column where the locale has them, '#' otherwise.
 *
 * @param fraction  Of the full length, 0..1; clamped.
 * @param columns   Full length, 1..DG__PLOT_COLUMNS_MAX.
 * @return buf.
 */
const char *dg__plot_bar(
	const dg__screen *screen, double fraction, size_t columns, char *buf, size_t size);

/** The scale above the bars: "0", blanks, the text of the full length. @return buf. */
const char *dg__plot_scale(const char *full, size_t columns, char *buf, size_t size);

#endif
