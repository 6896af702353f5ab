/*
 * A worker process whose backend, under any name, does what a script says: fake_script.h has its
 * words. It is hosted by the code that hosts the real ones. For a gateway with devices of two
 * kinds:
 *
 *	DEVGATE_WORKER=$DG_BUILD/tests/fakes/main_fake_worker DG_ENGINE_QUICK=1 \
 *	DG_FAKE='[cpu];gpus=A;[cuda];gpus=B,C;launch_ms=20' devgated ...
 *
 * launch_ms makes a measurement last: each key takes some dozens of launches.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/variant.h"
#include "backends/core/clock.h"
#include "backends/worker/host.h"
#include "backends/worker/spawn.h"
#include "tests/fakes/fake_backend.h"
#include "tests/fakes/fake_script.h"

#define MS ((uint64_t)1000000)

static dg__fake fake;
static dg__backend plain; /* the fake backend's own slots */
static dg__fake_script script;
static char backend_name[16];
static uint32_t opened;

enum { SLOTS_MAX = 16 };
static struct {
	const char *slot;
	unsigned long calls;
} counts[SLOTS_MAX];

/* Sending past the host, in the manner of a backend that writes where it must not. */

static void put(const void *data, size_t size)
{
	const char *at = data;
	while (size) {
		ssize_t n = send(DG__WORKER_FD, at, size, MSG_NOSIGNAL);
		if (n > 0) {
			at += n;
			size -= (size_t)n;
		} else {
			dg__clock_sleep_ns(MS / 4);
		}
	}
}

static void put_head(size_t length)
{
	unsigned char head[4];
	for (unsigned i = 0; i < 4; i++)
		head[i] = (unsigned char)(length >> (24 - 8 * i) & 0xff);
	put(head, sizeof(head));
}

static void say(const char *text)
{
	put_head(strlen(text));
	put(text, strlen(text));
}

static void hang(void)
{
	for (;;)
		dg__clock_sleep_ns(1000 * MS);
}

static void drip(void)
{
	put_head(1 << 20);
	for (;;) {
		put(" ", 1);
		dg__clock_sleep_ns(2 * MS);
	}
}

static void cut(void)
{
	put_head(1000);
	put("{\"frame\":", 9);
	_exit(0);
}

static void send_badly(const char *how)
{
	if (!strcmp(how, "bytes"))
		put("\xff\xfe\xfd garbage of a driver that prints\n", 37);
	else if (!strcmp(how, "json"))
		say("{\"frame\":\"end\",");
	else if (!strcmp(how, "oversize"))
		put("\xff\xff\xff\xff", 4);
	else if (!strcmp(how, "cut"))
		cut();
	else if (!strcmp(how, "drip"))
		drip();
	else
		_exit(72); /* no such action */
}

/* Faults. */

static volatile unsigned long turns;

static void *volatile eaten;

static void eat(void)
{
	for (;;) {
		char *more = malloc(1 << 20);
		if (!more)
			abort(); /* as a C++ runtime does */
		memset(more, 1, 1 << 20);
		eaten = more;
	}
}

static void print_much(void)
{
	for (unsigned i = 0; i < 20000; i++) {
		printf("a driver that talks on standard output, line %u\n", i);
		fprintf(stderr, "and on standard error, line %u\n", i);
	}
	fflush(stdout);
}

static bool die(const char *action)
{
	if (!strcmp(action, "segv")) {
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	} else if (!strcmp(action, "abort")) {
		abort();
	} else if (!strncmp(action, "exit:", 5)) {
		_exit((int)strtol(action + 5, NULL, 10));
	} else if (!strcmp(action, "stop")) {
		kill(getpid(), SIGSTOP);
	} else if (!strcmp(action, "close")) {
		shutdown(DG__WORKER_FD, SHUT_WR);
	} else {
		return false;
	}
	hang();
	return true;
}

static dg_err wait_stop(const dg__stop *stop, uint64_t end_ns, dg_error *reterr)
{
	while (dg__clock_ns() < end_ns) {
		if (stop && stop->cancel && atomic_load(stop->cancel))
			return dg_error_set(reterr, DG_ECANCELLED, NULL);
		if (stop && stop->deadline_ns && dg__clock_ns() >= stop->deadline_ns)
			return dg_error_set(reterr, DG_ETIMEOUT, NULL);
		dg__clock_sleep_ns(MS);
	}
	return DG_OK;
}

static dg_err act(const char *action, const dg__stop *stop, dg_error *reterr)
{
	if (!strcmp(action, "hang"))
		hang();
	else if (!strcmp(action, "spin"))
		for (;;)
			turns++;
	else if (!strcmp(action, "wait"))
		return wait_stop(stop, UINT64_MAX, reterr);
	else if (!strcmp(action, "eat"))
		eat();
	else if (!strcmp(action, "print"))
		print_much();
	else if (!strcmp(action, "fail"))
		return dg_error_native(reterr, DG_EDRIVER, backend_name, 999, "the script fails");
	else if (!strcmp(action, "lose"))
		return dg_error_native(reterr, DG_ELOST, backend_name, 15, "fell off the bus");
	else if (!strncmp(action, "say:", 4))
		say(action + 4);
	else if (!strncmp(action, "then:", 5)) {
		say(action + 5);
		hang();
	} else if (!strncmp(action, "flood:", 6))
		for (;;)
			say(action + 6);
	else if (!die(action))
		send_badly(action);
	return DG_OK;
}

static unsigned long count_call(const char *slot)
{
	size_t i = 0;
	while (i < SLOTS_MAX - 1 && counts[i].slot && strcmp(counts[i].slot, slot) != 0)
		i++;
	counts[i].slot = slot;
	return counts[i].calls++;
}

static void log_call(const char *slot)
{
	FILE *f = *script.log ? fopen(script.log, "a") : NULL;
	if (!f)
		return;
	fprintf(f, "%ld %s\n", (long)getpid(), slot);
	fclose(f);
}

static dg_err strike(const char *slot, const dg__stop *stop, dg_error *reterr)
{
	dg_err err = DG_OK;
	dg__fake_script_read(backend_name, &script);
	unsigned long before = count_call(slot);
	log_call(slot);
	for (size_t i = 0; !err && i < script.act_count; i++)
		if (!strcmp(script.acts[i].slot, slot) && before >= script.acts[i].after)
			err = act(script.acts[i].action, stop, reterr);
	return err;
}

/* Devices. */

static dg_variant variant_of(const char *word)
{
	for (unsigned i = 0; i < DG_VARIANT_COUNT; i++)
		if (dg__variants[i].text && !strcmp(dg__variants[i].text, word))
			return (dg_variant)i;
	return DG_CUDA;
}

static uint8_t hardware_kind(void)
{
	const dg__kind_row *kinds = dg__kinds[DG__FORM_ADAPTER];
	uint8_t kind = DG_KIND_DISCRETE;
	if (*script.kind)
		while (kind < DG_KIND_CPU && strcmp(kinds[kind].text, script.kind) != 0)
			kind++;
	if (kind == DG_KIND_CPU)
		_exit(73); /* no such kind */
	return kind;
}

static dg_err make_device(uint32_t index, dg_device *ret_device, dg_error *reterr)
{
	dg_variant variant = variant_of(*script.variant ? script.variant : backend_name);
	const dg__fake_gpu *gpu = &script.gpus[index];
	uint32_t place = 0;
	if (dg__variants[variant].form == DG__FORM_INDEX)
		return dg_device_make(variant, DG_KIND_NONE, index, ret_device, reterr);
	if (dg__variants[variant].form != DG__FORM_ADAPTER)
		return dg_device_make(variant, DG_KIND_NONE, 0, ret_device, reterr);
	if (gpu->software)
		return dg_device_make(variant, DG_KIND_CPU, 0, ret_device, reterr);
	for (uint32_t i = 0; i < index; i++)
		place += !script.gpus[i].software;
	return dg_device_make(variant, hardware_kind(), place, ret_device, reterr);
}

static dg_err check_lost(uint32_t index, dg_error *reterr)
{
	if (index < script.gpu_count && strchr(script.lost, script.gpus[index].letter))
		return dg_error_native(reterr, DG_ELOST, backend_name, 15, "gpu %c is gone",
			script.gpus[index].letter);
	return DG_OK;
}

static void uuid_of(char letter, char *buf, size_t size)
{
	snprintf(buf, size, "fa4e0000-0000-4000-8000-0000000000%02x", (unsigned)letter);
}

static dg_err enumerate(const dg__backend *self, uint32_t *ret_count, dg_error *reterr)
{
	dg_err err = strike("enumerate", NULL, reterr);
	dg__clock_sleep_ns(script.init_ms * MS);
	fake.devices = (uint32_t)script.gpu_count;
	if (!err && !strcmp(script.enumerate, "missing"))
		err = dg_error_set(reterr, DG_ENODRIVER, "no libfake.so.1 was found");
	if (!err && !strcmp(script.enumerate, "failed"))
		err = dg_error_native(reterr, DG_EDRIVER, backend_name, 100, "the driver failed");
	return err ? err : plain.enumerate(self, ret_count, reterr);
}

static dg_err describe(
	const dg__backend *self, uint32_t index, dg_device_info *ret_info, dg_error *reterr)
{
	dg_device_info info;
	dg_err err = strike("describe", NULL, reterr);
	fake.devices = (uint32_t)script.gpu_count;
	if (!err)
		err = plain.describe(self, index, &info, reterr);
	if (!err)
		err = make_device(index, &info.device, reterr);
	if (err)
		return err;
	const dg__fake_gpu *gpu = &script.gpus[index];
	if (*script.name)
		snprintf(info.name, sizeof(info.name), "%s", script.name);
	else
		snprintf(info.name, sizeof(info.name), "Fake %c", gpu->letter);
	if (*script.driver)
		snprintf(info.driver, sizeof(info.driver), "%s", script.driver);
	info.software = gpu->software;
	uuid_of(gpu->letter, info.uuid, sizeof(info.uuid));
	snprintf(info.pci, sizeof(info.pci), "0000:%02x:00.0", (unsigned)gpu->letter);
	info.present |= DG_HAS_PCI | (gpu->parent ? DG_HAS_PARENT : 0);
	if (gpu->parent)
		uuid_of(gpu->parent, info.parent, sizeof(info.parent));
	snprintf(info.hardware, sizeof(info.hardware), "uuid:%s", info.uuid);
	*ret_info = info;
	return DG_OK;
}

static dg_err telemetry(
	const dg__backend *self, uint32_t index, dg_telemetry *ret_telemetry, dg_error *reterr)
{
	dg_err err = strike("telemetry", NULL, reterr);
	fake.devices = (uint32_t)script.gpu_count;
	if (!err)
		err = check_lost(index, reterr);
	return err ? err : plain.telemetry(self, index, ret_telemetry, reterr);
}

/* Work. */

static dg_err open_device(
	const dg__backend *self, uint32_t index, dg__dev **ret_dev, dg_error *reterr)
{
	dg_err err = strike("open", NULL, reterr);
	fake.devices = (uint32_t)script.gpu_count;
	opened = index;
	if (!err)
		err = check_lost(index, reterr);
	return err ? err : plain.open(self, index, ret_dev, reterr);
}

static dg_err buf_create(dg__dev *dev, uint64_t size_bytes, const dg__stop *stop, dg__buf **ret_buf,
	dg_error *reterr)
{
	dg_err err = strike("buffer", stop, reterr);
	return err ? err : plain.buf_create(dev, size_bytes, stop, ret_buf, reterr);
}

static dg_err kernel_create(dg__dev *dev, dg__kernel_id id, const dg__shape *shape,
	dg__kernel **ret_kernel, dg_error *reterr)
{
	dg_err err = strike("kernel", NULL, reterr);
	return err ? err : plain.kernel_create(dev, id, shape, ret_kernel, reterr);
}

static dg_err launch(dg__dev *dev, dg__kernel *kernel, const dg__launch *l, const dg__stop *stop,
	dg__timing *ret_timing, dg_error *reterr)
{
	static const char *const outputs[] = { "", "wrong", "short", "lazy" };
	static const dg__fake_fault faults[] = { DG__FAKE_NONE, DG__FAKE_WRONG, DG__FAKE_SHORT,
		DG__FAKE_LAZY };
	dg_err err = strike("launch", stop, reterr);
	if (!err)
		err = check_lost(opened, reterr);
	if (!err)
		err = wait_stop(stop, dg__clock_ns() + script.launch_ms * MS, reterr);
	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++)
		if (!strcmp(script.output, outputs[i]))
			fake.fault = faults[i];
	return err ? err : plain.time(dev, kernel, l, stop, ret_timing, reterr);
}

static dg_err observe(dg__dev *dev, dg__observation *ret_observation, dg_error *reterr)
{
	dg_err err = strike("observe", NULL, reterr);
	return err ? err : plain.observe(dev, ret_observation, reterr);
}

int main(int argc, char **argv)
{
	snprintf(backend_name, sizeof(backend_name), "fake");
	for (int i = 1; i + 1 < argc; i++)
		if (!strcmp(argv[i], "--backend"))
			snprintf(backend_name, sizeof(backend_name), "%.15s", argv[i + 1]);
	dg__fake_init(&fake);
	plain = fake.backend;
	fake.backend.name = backend_name;
	fake.backend.enumerate = enumerate;
	fake.backend.describe = describe;
	fake.backend.telemetry = telemetry;
	fake.backend.open = open_device;
	fake.backend.buf_create = buf_create;
	fake.backend.kernel_create = kernel_create;
	fake.backend.time = launch;
	fake.backend.observe = observe;
	if (strike("main", NULL, NULL) != DG_OK)
		return 71;
	if (script.ignore_term)
		signal(SIGTERM, SIG_IGN);
	const dg__backend *list[] = { &fake.backend };
	return dg__host_main(argc, argv, list, 1);
}
