/* devgate describe, decode and default: what a device is called, its id and its default dtypes. */
#include <string.h>

#include "client/cli/doc.h"
#include "client/cli/report.h"
#include "client/cli/select.h"
#include "client/cli/table.h"
#include "client/cli/units.h"

static void add_line(dg__table *table, const char *name, const char *text)
{
	if (!*text)
		return;
	dg__table_add(table, DG__STYLE_FAINT, "%s", name);
	dg__table_add(table, DG__STYLE_NONE, "%s", text);
}

static void add_info(dg__table *table, const dg_device_info *info)
{
	char text[DG_DEVICE_TEXT_MAX];
	add_line(table, "name", info->name);
	if (info->present & DG_HAS_DEVICE) {
		dg_device_format(info->device, text, sizeof(text));
		add_line(table, "there", text);
	}
	add_line(table, "vendor", info->vendor);
	add_line(table, "driver", info->driver);
	add_line(table, "architecture", info->architecture);
	if (info->present & DG_HAS_TOTAL)
		add_line(table, "memory", dg__units_bytes(info->total_bytes, text, sizeof(text)));
	add_line(table, "uuid", info->uuid);
	add_line(table, "pci", info->pci);
	add_line(table, "software", info->software ? "yes" : "");
	add_line(table, "state", dg_state_name(info->state));
	add_line(table, "reason", info->reason);
}

static int show_lines(const dg__cli *cli, dg_device device, const dg_settings *settings,
	const dg_device_info *info)
{
	dg__table table;
	char text[DG_DEVICE_TEXT_MAX];
	dg_id id = dg_device_to_id(device);
	dg__table_init(&table, cli->screen, 2, NULL, 0);
	dg_device_format(device, text, sizeof(text));
	add_line(&table, "device", text);
	dg_device_debug(device, text, sizeof(text));
	add_line(&table, "debug", text);
	snprintf(text, sizeof(text), "type %u, index %u", (unsigned)id.type_id,
		(unsigned)id.index_id);
	add_line(&table, "id", text);
	if (settings) {
		add_line(&table, "float", dg_dtype_name(settings->float_dtype));
		add_line(&table, "int", dg_dtype_name(settings->int_dtype));
		add_line(&table, "bool", dg_bool_store_name(settings->bool_store));
		snprintf(text, sizeof(text), "Q8F, %s, Symmetric, Inhibit",
			dg_quant_store_name(settings->quant_store));
		add_line(&table, "quantization", text);
	}
	if (info)
		add_info(&table, info);
	return dg__table_show(cli, &table);
}

/* People get lines; whatever else reads standard output gets the document, asked for or not. */
static bool wants_document(const dg__cli *cli)
{
	return dg__args_has(cli->args, DG__OPT_JSON) || !cli->screen->out_terminal;
}

static int show(const dg__cli *cli, dg_device device, const dg_settings *settings)
{
	if (wants_document(cli))
		return dg__doc_show_take(cli, dg_json_identity(device, settings));
	return show_lines(cli, device, settings, NULL);
}

/* A local variant's defaults are known without asking anyone. */
static int show_local(const dg__cli *cli, dg_device device)
{
	dg_settings settings = DG_SETTINGS_INIT;
	dg_error error;
	if (dg_device_inner(device).variant == DG_REMOTE)
		return show(cli, device, NULL);
	if (dg_settings_defaults(device, &settings, &error) != DG_OK)
		return dg__report_error(cli, &error);
	return show(cli, device, &settings);
}

static int describe_remote(const dg__cli *cli, dg_device device)
{
	dg_settings settings = DG_SETTINGS_INIT;
	dg_device_info info;
	dg_error error;
	if (dg_settings_show(device, &cli->call, &settings, &error) != DG_OK)
		return dg__report_error(cli, &error);
	if (wants_document(cli))
		return show(cli, device, &settings);
	if (dg_describe(device, &cli->call, &info, &error) != DG_OK)
		return dg__report_error(cli, &error);
	return show_lines(cli, device, &settings, &info);
}

int dg__cmd_describe(const dg__cli *cli)
{
	dg__selected selected;
	dg_error error;
	if (dg__select_device(cli, cli->args->operands[0], &selected, &error) != DG_OK)
		return dg__report_error(cli, &error);
	if (dg_device_inner(selected.device).variant == DG_REMOTE)
		return describe_remote(cli, selected.device);
	return show_local(cli, selected.device);
}

/* An index that no id holds is told as such wherever one is written; other text is no index. */
static dg_err read_index(const char *text, uint64_t *ret_index, dg_error *reterr)
{
	dg_err err = dg__args_whole(text, "INDEX_ID", UINT16_MAX, ret_index, reterr);
	if (err && *text && text[strspn(text, "0123456789")] == '\0')
		err = dg_error_set(reterr, DG_ERANGE, "INDEX_ID is %.60s, expected 0 to %u", text,
			(unsigned)UINT16_MAX);
	return err;
}

int dg__cmd_decode(const dg__cli *cli)
{
	uint64_t type, index;
	dg_device device;
	dg_error error;
	dg_err err = dg__args_whole(cli->args->operands[0], "TYPE_ID", UINT16_MAX, &type, &error);
	if (!err)
		err = read_index(cli->args->operands[1], &index, &error);
	if (!err) {
		dg_id id = { (uint16_t)type, (uint16_t)index };
		err = dg_device_from_id(id, &device, &error);
	}
	return err ? dg__report_error(cli, &error) : show_local(cli, device);
}

static dg_err choose_among(const char *list, dg_device *ret_device, dg_error *reterr)
{
	dg_default_request request;
	memset(&request, 0, sizeof(request));
	dg_default_from_environment(&request);
	dg_err err = dg_default_parse_words(list, &request.enabled, reterr);
	return err ? err : dg_default_choose(&request, ret_device, reterr);
}

int dg__cmd_default(const dg__cli *cli)
{
	const char *among = cli->args->value[DG__OPT_AMONG];
	dg_device device;
	dg_error error;
	dg_err err = among ? choose_among(among, &device, &error)
			   : dg_default_device(&cli->call, &device, &error);
	return err ? dg__report_error(cli, &error) : show_local(cli, device);
}
