/* devgate devices: what is here and at gateways, and what could not be asked. */
#include <string.h>

#include "client/cli/doc.h"
#include "client/cli/report.h"
#include "client/cli/table.h"
#include "client/cli/units.h"

static void add_problem(dg__doc *doc, const dg_problem *problem)
{
	dg__doc_add(doc, "{\"source\":");
	dg__doc_string(doc, problem->source, false);
	dg__doc_add(doc, ",\"gateway\":%s,\"code\":\"%s\",\"detail\":",
		problem->is_gateway ? "true" : "false", dg_err_code(problem->error.code));
	dg__doc_string(doc, problem->error.text, false);
	dg__doc_add(doc, "}");
}

static int show_document(const dg__cli *cli, const dg_device_list *list)
{
	dg__doc doc = { 0 };
	dg__doc_add(&doc, "{\"devices\":[");
	for (size_t i = 0; i < list->count; i++) {
		const dg_listed *listed = &list->devices[i];
		dg__doc_add(&doc, "%s", i ? "," : "");
		dg__doc_take(&doc, dg_json_device(&listed->info, &listed->settings, true,
					   listed->gateway[0] ? listed->gateway : NULL));
	}
	dg__doc_add(&doc, "],\"problems\":[");
	for (size_t i = 0; i < list->problem_count; i++) {
		dg__doc_add(&doc, "%s", i ? "," : "");
		add_problem(&doc, &list->problems[i]);
	}
	dg__doc_add(&doc, "]}");
	return dg__doc_show(cli, &doc);
}

static void add_row(dg__table *table, const dg_listed *listed)
{
	const dg_device_info *info = &listed->info;
	char text[DG_DEVICE_TEXT_MAX] = "";
	dg__table_add(table, DG__STYLE_FAINT, "%s", listed->gateway[0] ? listed->gateway : "local");
	if (info->present & DG_HAS_GATEWAY_INDEX)
		dg__table_add(table, DG__STYLE_NONE, "%u", (unsigned)info->gateway_index);
	else
		dg__table_add(table, DG__STYLE_NONE, "-");
	if (info->present & DG_HAS_DEVICE)
		dg_device_format(info->device, text, sizeof(text));
	dg__table_add(table, DG__STYLE_STRONG, "%s", text);
	dg__table_add(
		table, DG__STYLE_NONE, "%s%s", info->name, info->software ? " (software)" : "");
	bool has_total = (info->present & DG_HAS_TOTAL) != 0;
	dg__table_add(table, DG__STYLE_NONE, "%s",
		has_total ? dg__units_bytes(info->total_bytes, text, sizeof(text)) : "-");
	dg__table_add(table, DG__STYLE_NONE, "%s", info->driver);
	dg__table_add(table, info->state == DG_STATE_OK ? DG__STYLE_GOOD : DG__STYLE_BAD, "%s%s%s",
		dg_state_name(info->state), info->reason[0] ? ": " : "", info->reason);
}

static int show_table(const dg__cli *cli, const dg_device_list *list)
{
	static const char *const headings[] = { "gateway", "index", "device", "name", "memory",
		"driver", "state" };
	dg__table table;
	int status = DG__EXIT_OK;
	if (list->count > 0) {
		dg__table_init(&table, cli->screen, 7, headings, 1u << 1 | 1u << 4);
		for (size_t i = 0; i < list->count; i++)
			add_row(&table, &list->devices[i]);
		status = dg__table_show(cli, &table);
	}
	fflush(stdout);
	for (size_t i = 0; i < list->problem_count; i++) {
		const dg_problem *problem = &list->problems[i];
		const char *hint = dg__report_hint(problem->error.code);
		fputs("devgate: ", stderr);
		dg__screen_put(cli->screen, stderr, problem->source);
		fprintf(stderr, ": %s: ", dg_err_code(problem->error.code));
		dg__screen_put(cli->screen, stderr, problem->error.text);
		fprintf(stderr, "\n%s%s%s", *hint ? "hint: " : "", hint, *hint ? "\n" : "");
	}
	if (list->count == 0 && list->problem_count == 0)
		fputs("devgate: no device found\n", stderr);
	return status;
}

int dg__cmd_devices(const dg__cli *cli)
{
	const dg__args *args = cli->args;
	dg_enumerate_request request;
	dg_device_list *list = NULL;
	dg_error error;
	memset(&request, 0, sizeof(request));
	request.gateways = args->gateways;
	request.gateway_count = args->gateway_count;
	request.no_local = args->gateway_count > 0 && !dg__args_has(args, DG__OPT_LOCAL);
	request.no_configured = args->gateway_count > 0 || dg__args_has(args, DG__OPT_LOCAL);
	if (dg_enumerate(&request, &cli->call, &list, &error) != DG_OK)
		return dg__report_error(cli, &error);
	int status =
		dg__args_has(args, DG__OPT_JSON) ? show_document(cli, list) : show_table(cli, list);
	/* A part of the answer is an answer; nothing but problems is a failure. */
	if (status == DG__EXIT_OK && list->count == 0 && list->problem_count > 0)
		status = DG__EXIT_FAILED;
	dg_device_list_free(list);
	return status;
}
