/* devgate throughput: peak figures of a device, one a key. */
#include <stdlib.h>
#include <string.h>

#include "client/cli/doc.h"
#include "client/cli/progress.h"
#include "client/cli/report.h"
#include "client/cli/select.h"
#include "client/cli/table.h"
#include "client/cli/units.h"

/* Keys and what was measured for them. */
typedef struct run {
	size_t count;
	dg_key keys[DG_KEYS_MAX];
	size_t value_count;
	dg_value values[DG_KEYS_MAX];
} run;

static dg_err read_keys(const dg__cli *cli, run *ret_run, dg_error *reterr)
{
	size_t count = cli->args->operand_count - 1;
	if (count > DG_KEYS_MAX)
		return dg_error_set(
			reterr, DG_ETOOMANY, "%zu keys, at most %d", count, DG_KEYS_MAX);
	for (size_t i = 0; i < count; i++) {
		dg_err err = dg_key_parse(cli->args->operands[i + 1], &ret_run->keys[i], reterr);
		if (err)
			return err;
	}
	ret_run->count = count;
	return DG_OK;
}

static void add_key(run *ret_run, dg_key key)
{
	if (ret_run->count < DG_KEYS_MAX)
		ret_run->keys[ret_run->count++] = key;
}

/* Asked of every device, so that one that cannot says so. */
static bool is_basic(dg_dtype dtype)
{
	return dtype == DG_F64 || dtype == DG_F32 || dtype == DG_I64 || dtype == DG_I32 ||
	       dtype == DG_I16 || dtype == DG_I8;
}

static void standard_keys(const dg_device_info *info, run *ret_run)
{
	static const dg_access accesses[] = { DG_COPY, DG_READ, DG_WRITE };
	for (unsigned dtype = 1; dtype < 64; dtype++) {
		dg_key key = { .mode = DG_MODE_COMPUTE, .dtype = (dg_dtype)dtype };
		if (dg_dtype_text(dtype) &&
			(is_basic((dg_dtype)dtype) || dg_info_has_dtype(info, (dg_dtype)dtype)))
			add_key(ret_run, key);
	}
	for (size_t i = 0; i < info->shape_count && i < DG_SHAPES_MAX; i++) {
		const dg_matrix_shape *shape = &info->shapes[i];
		dg_key key = { .mode = DG_MODE_CMMA,
			.dtype = shape->dtype,
			.accumulator = shape->accumulator,
			.m = shape->m,
			.n = shape->n,
			.k = shape->k };
		add_key(ret_run, key);
	}
	for (size_t i = 0; i < 3; i++) {
		dg_key key = { .mode = DG_MODE_MEMORY, .access = accesses[i] };
		add_key(ret_run, key);
	}
	dg_key launch = { .mode = DG_MODE_LAUNCH };
	add_key(ret_run, launch);
}

static dg_err find_keys(
	const dg__cli *cli, const dg__selected *selected, run *ret_run, dg_error *reterr)
{
	dg_device_info info;
	if (cli->args->operand_count > 1)
		return read_keys(cli, ret_run, reterr);
	if (!dg_variant_has_kernels((dg_variant)dg_device_inner(selected->device).variant))
		return DG_OK;
	dg_err err = dg_describe(selected->device, &cli->call, &info, reterr);
	if (!err)
		standard_keys(&info, ret_run);
	return err;
}

static bool is_failure(const dg_value *value)
{
	return value->status == DG_STATUS_FAILED || value->status == DG_STATUS_REFUSED;
}

static void add_remark(const char *text, char *buf, size_t size)
{
	size_t used = strlen(buf);
	if (*text && used < size)
		snprintf(buf + used, size - used, "%s%s", used ? ", " : "", text);
}

/* In the unit of the figure beside it. */
static void add_sustained(const dg_value *value, char *buf, size_t size)
{
	char text[DG_RATE_TEXT_MAX + 16], rate[DG_RATE_TEXT_MAX];
	double per_s = value->evidence.sustained_per_s;
	if (value->key.mode == DG_MODE_LAUNCH && per_s > 0)
		dg__units_seconds(1 / per_s, rate, sizeof(rate));
	else if (dg_key_is_memory(&value->key))
		dg_rate_format(per_s * 4, "bytes/s", rate, sizeof(rate));
	else
		dg_rate_format(per_s, "OPS/s", rate, sizeof(rate));
	snprintf(text, sizeof(text), "sustained %s", rate);
	add_remark(text, buf, size);
}

/* Why there is no figure, or what to know about it. */
static void remark(const dg_value *value, char *buf, size_t size)
{
	const dg_evidence *evidence = &value->evidence;
	buf[0] = '\0';
	if (value->status != DG_STATUS_OK) {
		snprintf(buf, size, "%s: %s", dg_status_name(value->status), value->reason);
		return;
	}
	if (evidence->flags & DG_FLAG_THROTTLED)
		add_remark(evidence->throttle_reason[0] ? evidence->throttle_reason : "throttled",
			buf, size);
	add_remark(evidence->flags & DG_FLAG_DISTURBED ? "disturbed" : "", buf, size);
	add_remark(evidence->flags & DG_FLAG_UNSTABLE ? "unstable" : "", buf, size);
	add_remark(evidence->flags & DG_FLAG_CLOCKS_DISAGREE ? "clocks disagree" : "", buf, size);
	if (evidence->present & DG_HAS_SUSTAINED)
		add_sustained(value, buf, size);
}

static dg__style remark_style(const dg_value *value)
{
	if (is_failure(value))
		return DG__STYLE_BAD;
	if (value->status != DG_STATUS_OK)
		return DG__STYLE_FAINT;
	return value->evidence.flags ? DG__STYLE_WARN : DG__STYLE_NONE;
}

static void add_row(dg__table *table, const dg_value *value)
{
	char key[DG_KEY_TEXT_MAX], figure[DG_RATE_TEXT_MAX], text[320];
	bool ok = value->status == DG_STATUS_OK;
	dg_key_format(&value->key, key, sizeof(key));
	dg_value_format(value, figure, sizeof(figure));
	dg__table_add(table, DG__STYLE_NONE, "%s", key);
	dg__table_add(table, DG__STYLE_STRONG, "%s", figure);
	if (ok) {
		dg__table_add(table, DG__STYLE_NONE, "%.1f%%", value->evidence.spread * 100);
		dg__table_add(table, DG__STYLE_NONE, "%u", (unsigned)value->evidence.samples);
	} else {
		dg__table_add(table, DG__STYLE_NONE, "-");
		dg__table_add(table, DG__STYLE_NONE, "-");
	}
	dg__table_add(table, DG__STYLE_FAINT, "%s", value->evidence.shape);
	remark(value, text, sizeof(text));
	dg__table_add(table, remark_style(value), "%s", text);
}

static int show_table(const dg__cli *cli, const dg__selected *selected, const run *done)
{
	static const char *const headings[] = { "key", "figure", "spread", "samples", "shape",
		"remarks" };
	dg__table table;
	fputs("device  ", stdout);
	dg__screen_put(cli->screen, stdout, selected->label);
	putchar('\n');
	if (done->value_count == 0) {
		puts("nothing to measure: the device has no kernels");
		return DG__EXIT_OK;
	}
	dg__table_init(&table, cli->screen, 6, headings, 1u << 1 | 1u << 2 | 1u << 3);
	for (size_t i = 0; i < done->value_count; i++)
		add_row(&table, &done->values[i]);
	return dg__table_show(cli, &table);
}

static int report_failures(const dg__cli *cli, const run *done)
{
	char keys[256] = "";
	size_t failures = 0;
	dg_err code = DG_OK;
	dg_error error;
	for (size_t i = 0; i < done->value_count; i++) {
		char key[DG_KEY_TEXT_MAX];
		if (!is_failure(&done->values[i]))
			continue;
		code = code ? code : done->values[i].code;
		failures++;
		dg_key_format(&done->values[i].key, key, sizeof(key));
		add_remark(key, keys, sizeof(keys));
	}
	if (failures == 0)
		return DG__EXIT_OK;
	dg_error_set(&error, code ? code : DG_EFAILED, "%zu of %zu keys failed: %s", failures,
		done->value_count, keys);
	return dg__report_error(cli, &error);
}

static dg_err measure(
	const dg__cli *cli, const dg__selected *selected, run *ret_run, dg_error *reterr)
{
	dg__progress progress;
	dg_call call;
	dg__progress_start(cli, &progress, &call);
	dg_err err = dg_performance_stats(selected->device, ret_run->keys, ret_run->count, &call,
		ret_run->values, &ret_run->value_count, reterr);
	dg__progress_end(&progress);
	return err;
}

int dg__cmd_throughput(const dg__cli *cli)
{
	dg__selected selected;
	dg_error error;
	int status;
	run *work = calloc(1, sizeof(*work));
	if (!work) {
		dg_error_set(&error, DG_ENOMEM, NULL);
		return dg__report_error(cli, &error);
	}
	dg_err err = dg__select_device(cli, cli->args->operands[0], &selected, &error);
	if (!err)
		err = find_keys(cli, &selected, work, &error);
	if (!err)
		err = measure(cli, &selected, work, &error);
	if (err) {
		status = dg__report_error(cli, &error);
		goto out;
	}
	if (dg__args_has(cli->args, DG__OPT_JSON))
		status = dg__doc_show_take(
			cli, dg_json_values(selected.text, work->values, work->value_count));
	else
		status = show_table(cli, &selected, work);
	if (status == DG__EXIT_OK)
		status = report_failures(cli, work);
out:
	free(work);
	return status;
}
