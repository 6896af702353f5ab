/* devgate doctor: what was looked for where, what was found, and what to do about it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/doc.h"
#include "client/cli/report.h"

#define CHECKS_MAX 16

typedef enum check_state { CHECK_OK = 0, CHECK_UNSET = 1, CHECK_BAD = 2 } check_state;

/* Something besides the backends. */
typedef struct check {
	const char *name;
	check_state state;
	char found[400]; /* what is set, and what of it */
	char advice[200];
} check;

typedef struct findings {
	size_t report_count;
	dg_backend_report reports[DG_BACKENDS_MAX];
	size_t check_count;
	check checks[CHECKS_MAX];
} findings;

static const char *const state_names[] = { "ok", "unset", "bad" };

static check *add_check(findings *all, const char *name, check_state state)
{
	check *added =
		&all->checks[all->check_count < CHECKS_MAX ? all->check_count++ : CHECKS_MAX - 1];
	memset(added, 0, sizeof(*added));
	added->name = name;
	added->state = state;
	return added;
}

static const char *variable(const char *name)
{
	const char *value = getenv(name);
	return value && *value ? value : NULL;
}

static void take_error(check *bad, const dg_error *error)
{
	bad->state = CHECK_BAD;
	snprintf(bad->found, sizeof(bad->found), "%.399s", error->text);
	snprintf(bad->advice, sizeof(bad->advice), "%s", dg__report_hint(error->code));
}

static void check_worker(findings *all)
{
	const char *path = variable("DEVGATE_WORKER");
	check *worker = add_check(all, "worker", CHECK_OK);
	if (path && access(path, X_OK) != 0) {
		worker->state = CHECK_BAD;
		snprintf(worker->found, sizeof(worker->found), "DEVGATE_WORKER is %.200s: %s", path,
			strerror(errno));
		snprintf(worker->advice, sizeof(worker->advice),
			"set it to the devgate-worker program, or unset it");
		return;
	}
	for (size_t i = 0; i < all->report_count; i++) {
		if (all->reports[i].code != DG_EWORKER)
			continue;
		char name[sizeof(all->reports[i].name)];
		memcpy(name, all->reports[i].name, sizeof(name));
		worker->state = CHECK_BAD;
		snprintf(worker->found, sizeof(worker->found), "the worker of %s failed", name);
		snprintf(worker->advice, sizeof(worker->advice), "%s", dg__report_hint(DG_EWORKER));
		return;
	}
	snprintf(worker->found, sizeof(worker->found), "%.200s",
		path ? path : "found beside the program");
}

static void check_remote(findings *all)
{
	dg_device device;
	dg_error error;
	uint32_t index;
	const char *name = variable("DEVGATE_REMOTE_ADDRESS") ? "DEVGATE_REMOTE_ADDRESS"
			   : variable("BURN_REMOTE_ADDRESS")  ? "BURN_REMOTE_ADDRESS"
							      : NULL;
	check *remote = add_check(all, "remote address", name ? CHECK_OK : CHECK_UNSET);
	char url[DG_DEVICE_TEXT_MAX] = "";
	if (dg_variant_default(DG_REMOTE, &device, &error) != DG_OK) {
		take_error(remote, &error);
		return;
	}
	dg_device_remote_address(device, url, sizeof(url), &index);
	snprintf(
		remote->found, sizeof(remote->found), "%.300s (%s)", url, name ? name : "built in");
}

static void check_choice(findings *all)
{
	dg_default_request request;
	dg_device device;
	dg_error error;
	memset(&request, 0, sizeof(request));
	dg_default_from_environment(&request);
	bool set = request.burn_device || variable("DEVGATE_DEVICE") ||
		   (request.priority && *request.priority);
	check *choice = add_check(all, "default device", set ? CHECK_OK : CHECK_UNSET);
	/* Only whether the words are known: what is enabled is the backends' matter. */
	for (unsigned i = 0; i < DG_VARIANT_COUNT; i++)
		request.enabled |= DG_VARIANT_BIT(i);
	if (dg_default_choose(&request, &device, &error) != DG_OK)
		take_error(choice, &error);
	else if (set)
		snprintf(choice->found, sizeof(choice->found), "%s%.100s%s%.100s%s%.100s",
			request.devgate_device ? "DEVGATE_DEVICE=" : "",
			request.devgate_device ? request.devgate_device : "",
			request.burn_device ? " BURN_DEVICE=" : "",
			request.burn_device ? request.burn_device : "",
			request.priority ? " priority=" : "",
			request.priority ? request.priority : "");
}

static void check_file(findings *all, const char *name)
{
	const char *path = variable(name);
	check *file = add_check(all, name, path ? CHECK_OK : CHECK_UNSET);
	if (!path)
		return;
	snprintf(file->found, sizeof(file->found), "%.300s", path);
	if (access(path, R_OK) != 0) {
		file->state = CHECK_BAD;
		snprintf(file->found, sizeof(file->found), "%.300s: %s", path, strerror(errno));
		snprintf(file->advice, sizeof(file->advice), "make the file readable, or unset %s",
			name);
	}
}

/* Ask the gateways of DEVGATE_GATEWAYS and of --gateway. */
static void check_gateways(const dg__cli *cli, findings *all)
{
	dg_enumerate_request request;
	dg_device_list *list = NULL;
	dg_error error;
	if (!variable("DEVGATE_GATEWAYS") && cli->args->gateway_count == 0)
		return;
	check *gateways = add_check(all, "gateways", CHECK_OK);
	memset(&request, 0, sizeof(request));
	request.no_local = true;
	request.gateways = cli->args->gateways;
	request.gateway_count = cli->args->gateway_count;
	if (dg_enumerate(&request, &cli->call, &list, &error) != DG_OK) {
		take_error(gateways, &error);
		return;
	}
	snprintf(gateways->found, sizeof(gateways->found), "%zu device%s listed", list->count,
		list->count == 1 ? "" : "s");
	for (size_t i = 0; i < list->problem_count; i++) {
		check *bad = add_check(all, "gateway", CHECK_BAD);
		take_error(bad, &list->problems[i].error);
		snprintf(bad->found, sizeof(bad->found), "%.120s: %.270s", list->problems[i].source,
			list->problems[i].error.text);
	}
	dg_device_list_free(list);
}

static bool is_bad(dg_err code)
{
	return code != DG_OK && code != DG_ENODRIVER && code != DG_ENOTSUP;
}

static int show_document(const dg__cli *cli, const findings *all)
{
	dg__doc doc = { 0 };
	dg__doc_add(&doc, "{\"version\":\"%s\",\"backends\":[", dg_version());
	for (size_t i = 0; i < all->report_count; i++) {
		const dg_backend_report *report = &all->reports[i];
		dg__doc_add(&doc, "%s{\"name\":", i ? "," : "");
		dg__doc_string(&doc, report->name, false);
		dg__doc_add(&doc,
			",\"code\":\"%s\",\"devices\":%u,\"elapsed_ms\":%" PRIu64 ",\"looked\":",
			dg_err_code(report->code), (unsigned)report->devices, report->elapsed_ms);
		dg__doc_string(&doc, report->looked, true);
		dg__doc_add(&doc, ",\"found\":");
		dg__doc_string(&doc, report->found, true);
		dg__doc_add(&doc, ",\"advice\":");
		dg__doc_string(&doc, report->advice, true);
		dg__doc_add(&doc, "}");
	}
	dg__doc_add(&doc, "],\"checks\":[");
	for (size_t i = 0; i < all->check_count; i++) {
		const check *one = &all->checks[i];
		dg__doc_add(&doc, "%s{\"name\":\"%s\",\"state\":\"%s\",\"found\":", i ? "," : "",
			one->name, state_names[one->state]);
		dg__doc_string(&doc, one->found, true);
		dg__doc_add(&doc, ",\"advice\":");
		dg__doc_string(&doc, one->advice, true);
		dg__doc_add(&doc, "}");
	}
	dg__doc_add(&doc, "]}");
	return dg__doc_show(cli, &doc);
}

static void show_line(const dg__cli *cli, const char *name, const char *text)
{
	if (!*text)
		return;
	printf("  %-8s", name);
	dg__screen_put(cli->screen, stdout, text);
	putchar('\n');
}

static void show_head(const dg__cli *cli, const char *name, dg__style style, const char *state)
{
	printf("%s%s%s  %s", dg__screen_style(cli->screen, DG__STYLE_STRONG), name,
		dg__screen_reset(cli->screen, DG__STYLE_STRONG),
		dg__screen_style(cli->screen, style));
	dg__screen_put(cli->screen, stdout, state);
	printf("%s\n", dg__screen_reset(cli->screen, style));
}

static void show_lines(const dg__cli *cli, const findings *all)
{
	char state[128];
	for (size_t i = 0; i < all->report_count; i++) {
		const dg_backend_report *report = &all->reports[i];
		dg__style style = is_bad(report->code)  ? DG__STYLE_BAD
				  : report->devices > 0 ? DG__STYLE_GOOD
							: DG__STYLE_FAINT;
		if (report->code == DG_OK)
			snprintf(state, sizeof(state), "%u device%s, %" PRIu64 " ms",
				(unsigned)report->devices, report->devices == 1 ? "" : "s",
				report->elapsed_ms);
		else
			snprintf(state, sizeof(state), "%s, %" PRIu64 " ms",
				dg_err_code(report->code), report->elapsed_ms);
		show_head(cli, report->name, style, state);
		show_line(cli, "looked", report->looked);
		show_line(cli, "found", report->found);
		show_line(cli, "advice", report->advice);
	}
	for (size_t i = 0; i < all->check_count; i++) {
		static const dg__style styles[] = { DG__STYLE_GOOD, DG__STYLE_FAINT,
			DG__STYLE_BAD };
		const check *one = &all->checks[i];
		show_head(cli, one->name, styles[one->state], state_names[one->state]);
		show_line(cli, "found", one->found);
		show_line(cli, "advice", one->advice);
	}
}

static int verdict(const findings *all)
{
	for (size_t i = 0; i < all->report_count; i++)
		if (is_bad(all->reports[i].code))
			return DG__EXIT_FAILED;
	for (size_t i = 0; i < all->check_count; i++)
		if (all->checks[i].state == CHECK_BAD)
			return DG__EXIT_FAILED;
	return DG__EXIT_OK;
}

int dg__cmd_doctor(const dg__cli *cli)
{
	dg_error error;
	findings all;
	memset(&all, 0, sizeof(all));
	if (dg_doctor(&cli->call, all.reports, &all.report_count, &error) != DG_OK)
		return dg__report_error(cli, &error);
	check_worker(&all);
	check_remote(&all);
	check_choice(&all);
	check_file(&all, "DEVGATE_GATEWAYS");
	check_file(&all, "DEVGATE_CACERT");
	check_file(&all, "DEVGATE_TOKEN_FILE");
	check_gateways(cli, &all);
	int status = DG__EXIT_OK;
	if (dg__args_has(cli->args, DG__OPT_JSON))
		status = show_document(cli, &all);
	else
		show_lines(cli, &all);
	return status == DG__EXIT_OK ? verdict(&all) : status;
}
