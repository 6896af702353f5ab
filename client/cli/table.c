/* See table.h. */
#include "client/cli/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/report.h"

#define CELL_MAX 501

void dg__table_init(dg__table *table, const dg__screen *screen, size_t columns,
	const char *const *headings, uint32_t right)
{
	memset(table, 0, sizeof(*table));
	table->screen = screen;
	table->columns = columns;
	table->right = right;
	for (size_t i = 0; headings && i < columns; i++)
		dg__table_add(table, DG__STYLE_HEAD, "%s", headings[i]);
}

static bool grow(dg__table *table)
{
	if (table->count < table->room)
		return true;
	size_t room = table->room ? table->room * 2 : 64;
	dg__cell *more = realloc(table->cells, room * sizeof(*more));
	if (!more)
		return false;
	table->cells = more;
	table->room = room;
	return true;
}

static void add_formatted(dg__table *table, dg__style style, const char *format, va_list args)
{
	char raw[CELL_MAX], clean[CELL_MAX * 3];
	vsnprintf(raw, sizeof(raw), format, args);
	dg__screen_clean(table->screen, *raw ? raw : "-", clean, sizeof(clean));
	char *text = grow(table) ? strdup(clean) : NULL;
	if (!text) {
		table->failed = true;
		return;
	}
	table->cells[table->count].text = text;
	table->cells[table->count++].style = style;
}

void dg__table_add(dg__table *table, dg__style style, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	add_formatted(table, style, format, args);
	va_end(args);
}

size_t dg__table_width(const dg__table *table, size_t column)
{
	size_t widest = 0;
	for (size_t i = column; i < table->count; i += table->columns) {
		size_t columns = dg__screen_columns(table->screen, table->cells[i].text);
		widest = columns > widest ? columns : widest;
	}
	return widest;
}

static void print_cell(const dg__table *table, size_t at, size_t width)
{
	const dg__cell *cell = &table->cells[at];
	size_t column = at % table->columns;
	size_t columns = dg__screen_columns(table->screen, cell->text);
	int pad = (int)(width - columns);
	bool right = (table->right >> column & 1) != 0;
	bool last = column + 1 == table->columns;
	printf("%*s%s%s%s%*s", right ? pad : 0, "", dg__screen_style(table->screen, cell->style),
		cell->text, dg__screen_reset(table->screen, cell->style), right || last ? 0 : pad,
		"");
	fputs(last ? "\n" : "  ", stdout);
}

dg_err dg__table_print(dg__table *table, dg_error *reterr)
{
	assert(table->columns > 0);
	dg_err err = table->failed ? dg_error_set(reterr, DG_ENOMEM, NULL) : DG_OK;
	size_t widths[32] = { 0 };
	for (size_t i = 0; !err && i < table->columns && i < 32; i++)
		widths[i] = dg__table_width(table, i);
	for (size_t i = 0; !err && i < table->count; i++)
		print_cell(table, i, widths[i % table->columns]);
	for (size_t i = 0; i < table->count; i++)
		free(table->cells[i].text);
	free(table->cells);
	memset(table, 0, sizeof(*table));
	return err;
}

int dg__table_show(const dg__cli *cli, dg__table *table)
{
	dg_error error;
	if (dg__table_print(table, &error) != DG_OK)
		return dg__report_error(cli, &error);
	return DG__EXIT_OK;
}
