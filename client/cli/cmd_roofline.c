/* devgate roofline: the time that work needs at the device's measured peaks. */
#include <string.h>

#include "client/cli/doc.h"
#include "client/cli/progress.h"
#include "client/cli/report.h"
#include "client/cli/select.h"
#include "client/cli/table.h"
#include "client/cli/units.h"

static dg_err read_input(
	const dg__args *args, dg_roofline_input *ret_input, dg_dtype *ret_dtype, dg_error *reterr)
{
	dg_dtype dtype = dg_dtype_parse(args->value[DG__OPT_DTYPE]);
	memset(ret_input, 0, sizeof(*ret_input));
	if (dtype == DG_DTYPE_NONE)
		return dg_error_set(reterr, DG_EDTYPE,
			"--dtype is '%.60s', expected a type such as f32",
			args->value[DG__OPT_DTYPE]);
	*ret_dtype = dtype;
	dg_err err =
		dg__args_real(args->value[DG__OPT_FLOPS], "--flops", &ret_input->flops, reterr);
	if (!err)
		err = dg__args_real(
			args->value[DG__OPT_BYTES], "--bytes", &ret_input->bytes, reterr);
	if (!err && args->value[DG__OPT_SECONDS])
		err = dg__args_real(
			args->value[DG__OPT_SECONDS], "--seconds", &ret_input->seconds, reterr);
	if (!err && args->value[DG__OPT_SECONDS] && !(ret_input->seconds > 0))
		err = dg_error_set(reterr, DG_EINVALID,
			"--seconds is '%.60s', expected more than 0", args->value[DG__OPT_SECONDS]);
	return err;
}

static void add_row(dg__table *table, const char *name, double seconds, const char *at)
{
	char text[64];
	dg__table_add(table, DG__STYLE_NONE, "%s", name);
	dg__table_add(
		table, DG__STYLE_STRONG, "%s", dg__units_seconds(seconds, text, sizeof(text)));
	dg__table_add(table, DG__STYLE_NONE, "%s", at);
}

static int show(const dg__cli *cli, const dg__selected *selected, const dg_roofline_input *input,
	const dg_roofline *roofline)
{
	static const char *const headings[] = { "resource", "time", "at" };
	char rate[DG_RATE_TEXT_MAX], text[64];
	dg__table table;
	fputs("device  ", stdout);
	dg__screen_put(cli->screen, stdout, selected->label);
	putchar('\n');
	dg__table_init(&table, cli->screen, 3, headings, 1u << 1 | 1u << 2);
	dg_rate_format(input->flops_per_s, "OPS/s", rate, sizeof(rate));
	add_row(&table, "compute", roofline->compute_seconds, rate);
	dg_rate_format(input->bytes_per_s, "bytes/s", rate, sizeof(rate));
	add_row(&table, "memory", roofline->memory_seconds, rate);
	int status = dg__table_show(cli, &table);
	printf("bound by %s: %s at best\n", dg_bound_name(roofline->bound),
		dg__units_seconds(roofline->seconds, text, sizeof(text)));
	if (input->seconds > 0)
		printf("measured %s: %.1f%% of the peak\n",
			dg__units_seconds(input->seconds, text, sizeof(text)),
			roofline->fraction * 100);
	return status;
}

/* Options that the command cannot do without. */
static const char *missing(const dg__args *args)
{
	static const dg__option needed[] = { DG__OPT_FLOPS, DG__OPT_DTYPE, DG__OPT_BYTES };
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!args->value[needed[i]])
			return dg__options[needed[i]].name;
	return NULL;
}

int dg__cmd_roofline(const dg__cli *cli)
{
	dg__selected selected;
	dg__progress progress;
	dg_roofline_input asked, input;
	dg_roofline roofline;
	dg_dtype dtype = DG_DTYPE_NONE;
	dg_call call;
	dg_error error;
	const char *absent = missing(cli->args);
	if (absent) {
		dg_error_set(&error, DG_EINVALID, "option --%s is missing", absent);
		return dg__report_usage(cli, dg__command_find("roofline"), &error);
	}
	if (read_input(cli->args, &asked, &dtype, &error) != DG_OK ||
		dg__select_device(cli, cli->args->operands[0], &selected, &error) != DG_OK)
		return dg__report_error(cli, &error);
	dg__progress_start(cli, &progress, &call);
	dg_err err = dg_device_roofline(selected.device, asked.flops, dtype, asked.bytes,
		asked.seconds, &call, &input, &roofline, &error);
	dg__progress_end(&progress);
	if (err)
		return dg__report_error(cli, &error);
	if (dg__args_has(cli->args, DG__OPT_JSON))
		return dg__doc_show_take(cli, dg_json_roofline(selected.text, &input, &roofline));
	return show(cli, &selected, &input, &roofline);
}
