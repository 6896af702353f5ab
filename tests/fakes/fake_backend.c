/* See fake_backend.h. */
#include "tests/fakes/fake_backend.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/core/clock.h"

#define ITEMS 4

struct dg__dev {
	dg__fake *fake;
};

struct dg__buf {
	unsigned char *data;
	uint64_t size;
};

struct dg__kernel {
	dg__kernel_id id;
	uint32_t shape;
};

static dg_err enumerate(const dg__backend *self, uint32_t *ret_count, dg_error *reterr)
{
	dg__fake *fake = self->user;
	dg__clock_sleep_ns((uint64_t)fake->detect_sleep_ms * 1000000);
	if (fake->enumerate)
		return dg_error_set(reterr, fake->enumerate, "the script says so");
	*ret_count = fake->devices;
	return DG_OK;
}

static dg_err check_index(const dg__fake *fake, uint32_t index, dg_error *reterr)
{
	if (fake->lost)
		return dg_error_set(reterr, DG_ELOST, NULL);
	return index < fake->devices ? DG_OK : dg_error_set(reterr, DG_ENODEVICE, NULL);
}

static dg_err describe(
	const dg__backend *self, uint32_t index, dg_device_info *ret_info, dg_error *reterr)
{
	dg_device_info info = { .present = DG_HAS_DEVICE | DG_HAS_UUID | DG_HAS_HARDWARE };
	dg_err err = check_index(self->user, index, reterr);
	if (!err)
		err = dg_device_make(DG_CUDA, DG_KIND_NONE, index, &info.device, reterr);
	if (err)
		return err;
	snprintf(info.backend, sizeof(info.backend), "%s", self->name);
	snprintf(info.name, sizeof(info.name), "Fake %u", (unsigned)index);
	snprintf(info.driver, sizeof(info.driver), "fake 1.0");
	snprintf(
		info.uuid, sizeof(info.uuid), "00000000-0000-4000-8000-%012u", (unsigned)index + 1);
	snprintf(info.hardware, sizeof(info.hardware), "uuid:%.36s", info.uuid);
	info.dtypes = (uint64_t)1 << DG_F32 | (uint64_t)1 << DG_I32;
	*ret_info = info;
	return DG_OK;
}

static dg_err telemetry(
	const dg__backend *self, uint32_t index, dg_telemetry *ret_telemetry, dg_error *reterr)
{
	dg_err err = check_index(self->user, index, reterr);
	if (!err)
		*ret_telemetry = (dg_telemetry){
			.present = DG_TELEMETRY_LOAD, .load = 0.25, .at_ms = dg__clock_unix_ms()
		};
	return err;
}

static dg_err open_device(
	const dg__backend *self, uint32_t index, dg__dev **ret_dev, dg_error *reterr)
{
	dg__fake *fake = self->user;
	dg_err err = check_index(fake, index, reterr);
	dg__dev *dev = err ? NULL : calloc(1, sizeof(*dev));
	if (!dev)
		return err ? err : dg_error_set(reterr, DG_ENOMEM, NULL);
	dev->fake = fake;
	fake->opened++;
	*ret_dev = dev;
	return DG_OK;
}

static void close_device(dg__dev *dev)
{
	if (dev)
		dev->fake->closed++;
	free(dev);
}

static dg_err room(dg__dev *dev, dg__room *ret_room, dg_error *reterr)
{
	(void)reterr;
	*ret_room = (dg__room){ .total_bytes = dev->fake->room_bytes,
		.buffer_bytes = dev->fake->room_bytes,
		.cache_bytes = dev->fake->cache_bytes };
	return DG_OK;
}

static dg_err buf_create(dg__dev *dev, uint64_t size_bytes, const dg__stop *stop, dg__buf **ret_buf,
	dg_error *reterr)
{
	dg__buf *buf = dev->fake->fault == DG__FAKE_NOMEM ? NULL : calloc(1, sizeof(*buf));
	(void)stop;
	if (!buf || !(buf->data = malloc((size_t)size_bytes))) {
		free(buf);
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	}
	memset(buf->data, 0xee, (size_t)size_bytes);
	buf->size = size_bytes;
	dev->fake->buffers++;
	*ret_buf = buf;
	return DG_OK;
}

static void buf_destroy(dg__dev *dev, dg__buf *buf)
{
	if (!buf)
		return;
	dev->fake->buffers--;
	free(buf->data);
	free(buf);
}

static dg_err buf_write(dg__dev *dev, dg__buf *buf, uint64_t offset, const void *data, size_t size,
	dg_error *reterr)
{
	(void)dev;
	if (offset > buf->size || size > buf->size - offset)
		return dg_error_set(reterr, DG_EINVALID, "outside the buffer");
	memcpy(buf->data + offset, data, size);
	return DG_OK;
}

static dg_err buf_read(dg__dev *dev, const dg__buf *buf, uint64_t offset, void *data, size_t size,
	dg_error *reterr)
{
	(void)dev;
	if (offset > buf->size || size > buf->size - offset)
		return dg_error_set(reterr, DG_EINVALID, "outside the buffer");
	memcpy(data, buf->data + offset, size);
	return DG_OK;
}

static bool is_memory(dg__kernel_id id)
{
	return id == DG__KERNEL_READ || id == DG__KERNEL_WRITE || id == DG__KERNEL_COPY;
}

static dg_err shapes(dg__dev *dev, const dg__ask *ask, dg__shape *ret_shapes, size_t *ret_count,
	dg_error *reterr)
{
	const dg__fake *fake = dev->fake;
	bool known = ask->kernel == DG__KERNEL_ARITH_F32 || ask->kernel == DG__KERNEL_ARITH_I32 ||
		     ask->kernel == DG__KERNEL_EMPTY ||
		     (is_memory(ask->kernel) && !fake->compute_only);
	if (!known)
		return dg_error_set(
			reterr, DG_ENOTSUP, "the fake has no kernel number %d", (int)ask->kernel);
	for (uint32_t i = 0; i < 3; i++) {
		ret_shapes[i] = (dg__shape){ .code = { i },
			.items = ITEMS,
			.bound_per_s = fake->bound_per_s,
			.step = ask->kernel == DG__KERNEL_ARITH_F32 ? DG__STEP_FMA : DG__STEP_MUL };
		snprintf(ret_shapes[i].text, sizeof(ret_shapes[i].text), "shape=%u", (unsigned)i);
	}
	*ret_count = 3;
	return DG_OK;
}

static dg_err kernel_create(dg__dev *dev, dg__kernel_id id, const dg__shape *shape,
	dg__kernel **ret_kernel, dg_error *reterr)
{
	dg__kernel *kernel = calloc(1, sizeof(*kernel));
	if (!kernel)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	*kernel = (dg__kernel){ .id = id, .shape = shape->code[0] };
	dev->fake->kernels++;
	*ret_kernel = kernel;
	return DG_OK;
}

static void kernel_destroy(dg__dev *dev, dg__kernel *kernel)
{
	if (kernel)
		dev->fake->kernels--;
	free(kernel);
}

/* Computing. */

static void compute_f32(const dg__launch *l, uint64_t steps)
{
	float x[ITEMS], a, b;
	memcpy(x, l->state->data, sizeof(x));
	memcpy(&a, &l->a, sizeof(a));
	memcpy(&b, &l->b, sizeof(b));
	for (; steps; steps--)
		for (int i = 0; i < ITEMS; i++)
			x[i] = x[i] * a + b;
	memcpy(l->state->data, x, sizeof(x));
}

static void compute_i32(const dg__launch *l, uint64_t steps)
{
	uint32_t x[ITEMS];
	memcpy(x, l->state->data, sizeof(x));
	for (; steps; steps--)
		for (int i = 0; i < ITEMS; i++)
			x[i] *= (uint32_t)l->a;
	memcpy(l->state->data, x, sizeof(x));
}

static void move(dg__kernel_id id, const dg__launch *l, uint64_t pass)
{
	uint64_t at = (l->first + pass) % l->windows * l->stride_bytes;
	uint32_t value = (uint32_t)((l->value + pass) & 0xff) * 0x01010101u, sum = 0, word;
	if (id == DG__KERNEL_COPY) {
		memcpy(l->dst->data + at, l->src->data + at, (size_t)l->window_bytes);
		return;
	}
	for (uint64_t i = 0; i < l->window_bytes; i += 4)
		if (id == DG__KERNEL_WRITE) {
			memcpy(l->dst->data + at + i, &value, 4);
		} else {
			memcpy(&word, l->src->data + at + i, 4);
			sum += word;
		}
	if (id == DG__KERNEL_READ) {
		memcpy(&word, l->state->data + pass % ITEMS * 4, 4);
		sum += word;
		memcpy(l->state->data + pass % ITEMS * 4, &sum, 4);
	}
}

static void compute_once(dg__kernel_id id, const dg__launch *l, bool half)
{
	uint64_t steps = half ? l->steps / 2 : l->steps;
	uint64_t passes = half ? l->passes / 2 : l->passes;
	uint32_t count;
	if (id == DG__KERNEL_ARITH_F32)
		compute_f32(l, steps);
	else if (id == DG__KERNEL_ARITH_I32)
		compute_i32(l, steps);
	else if (is_memory(id))
		for (uint64_t p = 0; p < passes; p++)
			move(id, l, p);
	else if (!half) {
		memcpy(&count, l->state->data, 4);
		count++;
		memcpy(l->state->data, &count, 4);
	}
}

static void compute(dg__kernel_id id, const dg__launch *l, dg__fake_fault fault)
{
	uint32_t launches = fault == DG__FAKE_LAZY ? 0 : l->repeat;
	for (uint32_t r = 0; r < launches; r++)
		compute_once(id, l, fault == DG__FAKE_SHORT);
	if (fault == DG__FAKE_WRONG)
		(is_memory(id) && id != DG__KERNEL_READ ? l->dst : l->state)
			->data[l->windows ? l->first % l->windows * l->stride_bytes *
						    (id != DG__KERNEL_READ)
					  : 0] ^= 4;
}

static double time_of(const dg__fake *fake, const dg__kernel *kernel, const dg__launch *l)
{
	double units = kernel->id == DG__KERNEL_EMPTY ? 0
		       : is_memory(kernel->id)
			       ? (double)l->passes * (double)l->window_bytes * fake->byte_ns
			       : (double)l->steps * fake->step_ns;
	double sway = 1 + fake->jitter * (fake->runs[kernel->id] % 7) / 7;
	return (units + fake->launch_ns) * l->repeat * fake->shape_factor[kernel->shape] * sway;
}

static dg_err wait_for_stop(const dg__stop *stop, uint64_t for_ns, dg_error *reterr)
{
	uint64_t end = for_ns ? dg__clock_ns() + for_ns : UINT64_MAX;
	while (dg__clock_ns() < end) {
		if (stop->cancel && atomic_load(stop->cancel))
			return dg_error_set(reterr, DG_ECANCELLED, NULL);
		if (stop->deadline_ns && dg__clock_ns() >= stop->deadline_ns)
			return dg_error_set(reterr, DG_ETIMEOUT, NULL);
		dg__clock_sleep_ns(500000);
	}
	return DG_OK;
}

static dg_err suffer(dg__fake *fake, dg__fake_fault fault, const dg__stop *stop, dg_error *reterr)
{
	static const dg__stop never;
	switch (fault) {
	case DG__FAKE_HANG:
		return wait_for_stop(stop, 0, reterr);
	case DG__FAKE_HANG_HARD:
		return wait_for_stop(&never, 0, reterr);
	case DG__FAKE_FAIL:
		return dg_error_native(reterr, DG_EDRIVER, "fake", 719, "launch failed");
	case DG__FAKE_LOSE:
		fake->lost = true;
		return dg_error_set(reterr, DG_ELOST, NULL);
	case DG__FAKE_CRASH:
		raise(SIGSEGV);
		return DG_OK;
	default:
		return DG_OK;
	}
}

static dg_err time_kernel(dg__dev *dev, dg__kernel *kernel, const dg__launch *launch,
	const dg__stop *stop, dg__timing *ret_timing, dg_error *reterr)
{
	dg__fake *fake = dev->fake;
	bool struck = fake->fault_kernel == DG__KERNEL_COUNT || fake->fault_kernel == kernel->id;
	struck = struck && fake->runs[kernel->id] >= fake->fault_after;
	dg__fake_fault fault = struck ? fake->fault : DG__FAKE_NONE;
	fake->runs[kernel->id]++;
	dg_err err = suffer(fake, fault, stop, reterr);
	double ns = time_of(fake, kernel, launch);
	if (!err && fake->real_time)
		err = wait_for_stop(stop, (uint64_t)ns + 1, reterr);
	if (err)
		return err;
	compute(kernel->id, launch, fault);
	dg__timing timing = { .host_ns = (uint64_t)ns + 1 };
	timing.has_device = fake->device_clock || fake->device_lies;
	timing.device_ns = fake->device_lies ? timing.host_ns * 2 : timing.host_ns / 2;
	*ret_timing = timing;
	return DG_OK;
}

static dg_err observe(dg__dev *dev, dg__observation *ret_observation, dg_error *reterr)
{
	dg__fake *fake = dev->fake;
	if (fake->clock_hz <= 0)
		return dg_error_set(reterr, DG_ENOTSUP, NULL);
	bool second = fake->looks++ % 2 == 1;
	*ret_observation = (dg__observation){ .present = DG__SEEN_CLOCK | DG__SEEN_OTHER,
		.clock_hz =
			second && fake->clock_after_hz > 0 ? fake->clock_after_hz : fake->clock_hz,
		.other_s = fake->looks * fake->other_per_look_s };
	return DG_OK;
}

void dg__fake_init(dg__fake *fake)
{
	*fake = (dg__fake){
		.backend = { .abi = DG__BACKEND_ABI,
			.name = "fake",
			.user = fake,
			.enumerate = enumerate,
			.describe = describe,
			.telemetry = telemetry,
			.open = open_device,
			.close = close_device,
			.room = room,
			.buf_create = buf_create,
			.buf_destroy = buf_destroy,
			.buf_write = buf_write,
			.buf_read = buf_read,
			.shapes = shapes,
			.kernel_create = kernel_create,
			.kernel_destroy = kernel_destroy,
			.time = time_kernel,
			.observe = observe },
		.devices = 1,
		.fault_kernel = DG__KERNEL_COUNT,
		.step_ns = 1000,
		.byte_ns = 1,
		.launch_ns = 100,
		.shape_factor = { 2, 1, 3 },
		.room_bytes = (uint64_t)2 << 20,
		.cache_bytes = (uint64_t)64 << 10,
	};
}
