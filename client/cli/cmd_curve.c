/* devgate curve: memory throughput by the amount that is moved. */
#include <strings.h>

#include "client/cli/doc.h"
#include "client/cli/plot.h"
#include "client/cli/progress.h"
#include "client/cli/report.h"
#include "client/cli/select.h"
#include "client/cli/table.h"
#include "client/cli/units.h"

#define BAR_MIN 10
#define BAR_MAX 60

static const char *const access_names[] = { "copy", "read", "write" };

static dg_err read_request(
	const dg__cli *cli, dg_access *ret_access, uint64_t *ret_bytes, dg_error *reterr)
{
	const char *bytes = cli->args->value[DG__OPT_BYTES];
	*ret_access = DG_READ;
	*ret_bytes = 0;
	if (cli->args->operand_count > 1) {
		const char *name = cli->args->operands[1];
		int access = 0;
		while (access < 3 && strcasecmp(name, access_names[access]) != 0)
			access++;
		if (access == 3)
			return dg_error_set(reterr, DG_EINVALID,
				"access is '%.60s', expected copy, read or write", name);
		*ret_access = (dg_access)access;
	}
	if (!bytes)
		return DG_OK;
	dg_err err = dg__args_whole(bytes, "--bytes", DG_WORKING_SET_MAX_BYTES, ret_bytes, reterr);
	if (!err && *ret_bytes < DG_WORKING_SET_MIN_BYTES)
		err = dg_error_set(reterr, DG_EINVALID, "--bytes is '%.60s', expected %u or more",
			bytes, DG_WORKING_SET_MIN_BYTES);
	return err;
}

static double peak_of(const dg_curve *curve)
{
	double peak = 0;
	for (size_t i = 0; i < curve->count; i++)
		peak = curve->points[i].bytes_per_s > peak ? curve->points[i].bytes_per_s : peak;
	return peak;
}

static size_t bar_columns(const dg__screen *screen, size_t taken)
{
	size_t left = screen->width > taken + 1 ? screen->width - taken - 1 : 0;
	return left > BAR_MAX ? BAR_MAX : left < BAR_MIN ? BAR_MIN : left;
}

/* The figures, and on a terminal a bar beside each. */
static int show_points(const dg__cli *cli, const dg_curve *curve)
{
	dg__table table;
	char bar[DG__PLOT_TEXT_MAX], rate[DG_RATE_TEXT_MAX], bytes[32];
	const char *headings[] = { "working set", "throughput", bar };
	bool plot = cli->screen->out_terminal;
	double peak = peak_of(curve);
	/* Two gaps, and a column of sizes as wide as its heading. */
	size_t columns = bar_columns(cli->screen, sizeof("working set") + 22);
	dg_rate_format(peak, "bytes/s", rate, sizeof(rate));
	dg__plot_scale(rate, columns, bar, sizeof(bar));
	dg__table_init(&table, cli->screen, plot ? 3 : 2, headings, 3);
	for (size_t i = 0; i < curve->count; i++) {
		const dg_curve_point *point = &curve->points[i];
		dg__table_add(&table, DG__STYLE_NONE, "%s",
			dg__units_working_set(point->bytes, bytes, sizeof(bytes)));
		dg_rate_format(point->bytes_per_s, "bytes/s", rate, sizeof(rate));
		dg__table_add(&table, DG__STYLE_STRONG, "%s", rate);
		if (plot)
			dg__table_add(&table, DG__STYLE_GOOD, "%s",
				dg__plot_bar(cli->screen, point->bytes_per_s / peak, columns, bar,
					sizeof(bar)));
	}
	return dg__table_show(cli, &table);
}

static int show(
	const dg__cli *cli, const dg__selected *selected, const dg_curve *curve, uint64_t bytes)
{
	char text[DG_RATE_TEXT_MAX], amount[32];
	double ceiling;
	fputs("device  ", stdout);
	dg__screen_put(cli->screen, stdout, selected->label);
	printf("\naccess  %s\n", access_names[curve->access]);
	int status = show_points(cli, curve);
	if (status == DG__EXIT_OK && bytes > 0 && dg_curve_ceiling(curve, bytes, &ceiling)) {
		dg_rate_format(ceiling, "bytes/s", text, sizeof(text));
		printf("ceiling for %s: %s\n", dg__units_working_set(bytes, amount, sizeof(amount)),
			text);
	}
	return status;
}

int dg__cmd_curve(const dg__cli *cli)
{
	dg__selected selected;
	dg__progress progress;
	dg_curve curve;
	dg_access access;
	dg_call call;
	uint64_t bytes;
	dg_error error;
	if (read_request(cli, &access, &bytes, &error) != DG_OK ||
		dg__select_device(cli, cli->args->operands[0], &selected, &error) != DG_OK)
		return dg__report_error(cli, &error);
	dg__progress_start(cli, &progress, &call);
	dg_err err = dg_memory_curve(selected.device, access, &call, &curve, &error);
	dg__progress_end(&progress);
	if (!err && curve.count == 0)
		err = dg_error_set(&error, DG_EFAILED, "no point of the curve could be measured");
	if (err)
		return dg__report_error(cli, &error);
	if (dg__args_has(cli->args, DG__OPT_JSON))
		return dg__doc_show_take(cli, dg_json_curve(selected.text, &curve, bytes));
	return show(cli, &selected, &curve, bytes);
}
