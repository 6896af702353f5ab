/* What became of looking for each backend: see dg_doctor() of devgate.h. */
#include <stdio.h>
#include <string.h>

#include "backends/worker/worker.h"
#include "client/local.h"

static const char *advice_of(const dg__local_found *found)
{
	switch (found->code) {
	case DG_OK:
		return "";
	case DG_ENODRIVER:
		return "install the driver if this machine has such hardware; else there is "
		       "nothing to do";
	case DG_EWORKER:
		return "set DEVGATE_WORKER to the path of devgate-worker, or install it beside the "
		       "library";
	case DG_ETIMEOUT:
		return "the driver does not answer: allow more time, and look into the system's "
		       "log";
	case DG_EDRIVER:
		return "check that the driver and its kernel module belong together, and the "
		       "permissions "
		       "of the device files";
	default:
		return "look into the system's log";
	}
}

static void write_found(const dg__device_list *list, char *buf, size_t size)
{
	size_t n = (size_t)snprintf(
		buf, size, "%zu device%s", list->count, list->count == 1 ? "" : "s");
	for (size_t i = 0; i < list->count && n < size; i++)
		n += (size_t)snprintf(
			buf + n, size - n, "%s %s", i ? "," : ":", list->entries[i].info.name);
}

static void write_looked(const dg__local_found *found, const dg__call *call, char *buf, size_t size)
{
	char path[300];
	if (found->code)
		snprintf(buf, size, "%s", found->error.text);
	else if (call->flags & DG_LOCAL_IN_PROCESS)
		snprintf(buf, size, "in this process");
	else if (dg__worker_find(path, sizeof(path), NULL) == DG_OK)
		snprintf(buf, size, "with %s", path);
}

dg_err dg_doctor(
	const dg_call *call, dg_backend_report *ret_reports, size_t *ret_count, dg_error *reterr)
{
	dg__local_found found[DG_BACKENDS_MAX];
	dg__call c;
	size_t count;
	dg_err err = dg__call_begin(call, DG__QUESTION_MS, &c, reterr);
	if (err)
		return err;
	dg__local_detect_all(&c, found, &count);
	for (size_t i = 0; i < count; i++) {
		dg_backend_report *report = &ret_reports[i];
		memset(report, 0, sizeof(*report));
		snprintf(report->name, sizeof(report->name), "%s", found[i].backend);
		report->code = found[i].code;
		report->elapsed_ms = found[i].elapsed_ms;
		write_looked(&found[i], &c, report->looked, sizeof(report->looked));
		if (!found[i].code) {
			report->devices = (uint32_t)found[i].list.count;
			write_found(&found[i].list, report->found, sizeof(report->found));
		}
		snprintf(report->advice, sizeof(report->advice), "%s", advice_of(&found[i]));
	}
	dg__local_found_finish(found, count);
	*ret_count = count;
	return DG_OK;
}
