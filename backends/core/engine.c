/* A run over several keys. See engine.h. */
#include "backends/core/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/core/clock.h"
#include "backends/core/engine_run.h"
#include "backends/core/registry.h"

#define MS ((uint64_t)1000000)
#define MIB ((uint64_t)1 << 20)

static const dg__pace full_pace = {
	.warm_ns = 300 * MS,
	.sample_ns = 20 * MS,
	.search_sample_ns = 2 * MS,
	.search_ns = 250 * MS,
	.budget_ns = 700 * MS,
	.sustained_ns = 1000 * MS,
	.limit_ns = 30000 * MS,
	.pool_bytes = 512 * MIB,
	.settle = { 20, 200, 12 },
};
static const dg__pace quick_pace = {
	.warm_ns = 5 * MS,
	.sample_ns = MS,
	.search_sample_ns = MS / 5,
	.search_ns = 20 * MS,
	.budget_ns = 60 * MS,
	.sustained_ns = 20 * MS,
	.limit_ns = 10000 * MS,
	.pool_bytes = 16 * MIB,
	.settle = { 5, 20, 3 },
};
/* Working sets come many at a time, and a launch is short. */
#define WORKING_SET_SHARE 2
#define LAUNCH_SHARE 4

/* Detection. */

static dg_err describe_all(
	const dg__backend *backend, uint32_t count, dg__device_list *list, dg_error *reterr)
{
	for (uint32_t i = 0; i < count; i++) {
		dg__device_entry *entry = &list->entries[list->count];
		dg_err err = backend->describe(backend, i, &entry->info, reterr);
		if (err == DG_ENODEVICE || err == DG_ELOST)
			continue; /* went away since it was counted */
		if (err)
			return err;
		err = dg_settings_defaults(entry->info.device, &entry->settings, reterr);
		if (err)
			return err;
		snprintf(entry->info.backend, sizeof(entry->info.backend), "%s", backend->name);
		list->count++;
	}
	return DG_OK;
}

dg_err dg__engine_detect(const dg__backend *backend, dg__device_list *ret_devices, dg_error *reterr)
{
	dg__device_list list = { 0 };
	uint32_t count = 0;
	dg_err err = dg__backend_check(backend, reterr);
	if (!err)
		err = backend->enumerate(backend, &count, reterr);
	if (err)
		return err;
	if (count > DG__DEVICES_MAX)
		return dg_error_set(reterr, DG_EDRIVER,
			"%s counts %u devices, at most %d are served", backend->name,
			(unsigned)count, DG__DEVICES_MAX);
	list.entries = calloc(count ? count : 1, sizeof(*list.entries));
	if (!list.entries)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	err = describe_all(backend, count, &list, reterr);
	if (err)
		free(list.entries);
	else
		*ret_devices = list;
	return err;
}

/* Measuring. */

static bool past(uint64_t deadline_ns)
{
	return deadline_ns && dg__clock_ns() >= deadline_ns;
}

static dg_err interrupted(const dg__run *run, dg_error *reterr)
{
	const dg__engine_options *o = run->options;
	if (o->cancel && atomic_load(o->cancel))
		return dg_error_set(reterr, DG_ECANCELLED, "the measurement was cancelled");
	if (past(o->deadline_ns))
		return dg_error_set(reterr, DG_ETIMEOUT, "the deadline of the measurement passed");
	return DG_OK;
}

static void close_device(dg__run *run)
{
	dg__pool_finish(run);
	if (run->dev)
		run->backend->close(run->dev);
	run->dev = NULL;
}

static dg_err open_device(dg__run *run, dg_error *reterr)
{
	return run->dev ? DG_OK : run->backend->open(run->backend, run->device, &run->dev, reterr);
}

static dg_err make_probe(dg__run *run, const dg_key *key, dg__probe *probe, dg_error *reterr)
{
	switch (key->mode) {
	case DG_MODE_COMPUTE:
		return dg__probe_arithmetic(run, key->dtype, probe, reterr);
	case DG_MODE_CMMA:
		return dg_error_set(reterr, DG_ENOTSUP,
			"the device has no matrix units that %s uses", run->backend->name);
	case DG_MODE_LAUNCH:
		return dg__probe_launch(run, probe, reterr);
	default:
		return dg__probe_memory(run, key, probe, reterr);
	}
}

static void begin_key(dg__run *run, const dg_key *key)
{
	uint64_t now = dg__clock_ns(), limit = now + run->pace.limit_ns;
	uint64_t deadline = run->options->deadline_ns;
	bool many = key->mode == DG_MODE_WORKING_SET || key->mode == DG_MODE_RESIDENT;
	unsigned share = many ? WORKING_SET_SHARE : key->mode == DG_MODE_LAUNCH ? LAUNCH_SHARE : 1;
	const dg__pace *pace = run->quick ? &quick_pace : &full_pace;
	run->stop.cancel = run->options->cancel;
	run->stop.deadline_ns = deadline && deadline < limit ? deadline : limit;
	run->pace.sample_ns = pace->sample_ns / share;
	run->pace.search_ns = pace->search_ns / share;
}

static dg_err measure_key(dg__run *run, dg_value *value, dg_error *reterr)
{
	dg__probe probe = { 0 };
	dg__outcome *outcome = calloc(1, sizeof(*outcome));
	if (!outcome)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dg_err err = open_device(run, reterr);
	if (!err)
		err = dg_key_check(&value->key, reterr);
	if (!err) {
		begin_key(run, &value->key);
		err = make_probe(run, &value->key, &probe, reterr);
	}
	if (!err)
		err = dg__sample_probe(&probe, outcome, reterr);
	if (!err)
		dg__judge(run, &probe, outcome, value);
	dg__probe_finish(&probe);
	free(outcome);
	return err;
}

static void set_failed(dg_value *value, dg_err code, const char *reason)
{
	value->status = code == DG_ENOTSUP ? DG_STATUS_UNSUPPORTED : DG_STATUS_FAILED;
	value->code = code;
	snprintf(value->reason, sizeof(value->reason), "%.199s", reason);
}

/* What ends the run, as opposed to the key. */
static bool ends_run(const dg__run *run, dg_err err)
{
	return err == DG_ELOST || err == DG_ENODEVICE || err == DG_ECANCELLED ||
	       (err && interrupted(run, NULL) != DG_OK) || (err && !run->dev);
}

static dg_err run_key(dg__run *run, dg_value *value, dg_error *reterr)
{
	dg_error error = { .code = DG_OK };
	uint64_t start = dg__clock_ns();
	dg_err err = interrupted(run, &error);
	if (!err)
		err = measure_key(run, value, &error);
	if (err == DG_ETIMEOUT && !interrupted(run, NULL))
		dg_error_set(&error, err, "the device did not finish within %u s",
			(unsigned)(run->pace.limit_ns / (1000 * MS)));
	if (err)
		set_failed(value, err, error.text);
	snprintf(value->evidence.driver, sizeof(value->evidence.driver), "%s", run->info.driver);
	snprintf(value->evidence.engine, sizeof(value->evidence.engine), "%s", DG__ENGINE_VERSION);
	value->evidence.measured_at_ms = dg__clock_unix_ms();
	value->evidence.elapsed_ms = (dg__clock_ns() - start) / MS;
	if (ends_run(run, err)) {
		if (reterr)
			*reterr = error;
		return err;
	}
	/* A device that hung or failed may still be at it: the next key gets a fresh one. */
	if (err == DG_ETIMEOUT || err == DG_EDRIVER)
		close_device(run);
	return DG_OK;
}

/* Whether two keys are one and the same work: integers of one width, signed and unsigned. */
static bool is_twin(const dg_key *a, const dg_key *b)
{
	return a->mode == DG_MODE_COMPUTE && b->mode == DG_MODE_COMPUTE && a->dtype != b->dtype &&
	       dg_dtype_family_of(a->dtype) != DG_FAMILY_FLOAT &&
	       dg_dtype_family_of(b->dtype) != DG_FAMILY_FLOAT &&
	       dg_dtype_bits(a->dtype) == dg_dtype_bits(b->dtype);
}

/* Take the figure of a twin that this run has measured already. */
static bool take_twin(const dg_value *values, size_t i, dg_value *value)
{
	for (size_t j = 0; j < i; j++)
		if (values[j].status == DG_STATUS_OK && is_twin(&values[j].key, &value->key)) {
			dg_key key = value->key;
			*value = values[j];
			value->key = key;
			return true;
		}
	return false;
}

static dg_err run_all(
	dg__run *run, size_t count, dg_value *values, size_t *ret_done, dg_error *reterr)
{
	const dg__engine_options *o = run->options;
	for (size_t i = 0; i < count; i++) {
		if (o->progress)
			o->progress((uint32_t)i, (uint32_t)count, &values[i].key, o->user);
		dg_err err = interrupted(run, NULL) || !take_twin(values, i, &values[i])
				     ? run_key(run, &values[i], reterr)
				     : DG_OK;
		*ret_done = i + (err ? 0 : 1);
		if (err)
			return err;
		if (o->value)
			o->value((uint32_t)i, &values[i], o->user);
	}
	return DG_OK;
}

static void init_run(dg__run *run, const dg__backend *backend, uint32_t device,
	const dg__engine_options *options)
{
	const char *quick = getenv(DG__ENGINE_QUICK_VARIABLE);
	*run = (dg__run){ .backend = backend, .device = device, .options = options };
	run->quick = quick && !strcmp(quick, "1");
	run->pace = run->quick ? quick_pace : full_pace;
}

dg_err dg__engine_measure(const dg__backend *backend, uint32_t device, const dg_key *keys,
	size_t count, const dg__engine_options *options, dg_value *ret_values, dg_error *reterr)
{
	static const dg__engine_options none;
	dg__run run;
	size_t done = 0;
	dg_error error = { .code = DG_OK };
	init_run(&run, backend, device, options ? options : &none);
	for (size_t i = 0; i < count; i++)
		ret_values[i] = (dg_value){ .key = keys[i], .status = DG_STATUS_FAILED };
	dg_err err = dg__backend_check(backend, &error);
	if (!err)
		err = backend->describe(backend, device, &run.info, &error);
	if (!err)
		err = open_device(&run, &error);
	if (!err)
		err = run_all(&run, count, ret_values, &done, &error);
	for (size_t i = done; err && i < count; i++)
		set_failed(&ret_values[i], err, error.text);
	close_device(&run);
	free(run.pattern);
	if (err && reterr)
		*reterr = error;
	return err;
}
