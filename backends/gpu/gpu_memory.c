/* Opening a device, and its memory. See gpu.h. */
#include "backends/gpu/gpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define RESERVE_BYTES ((uint64_t)256 << 20)
#define STREAM_OF_ITS_OWN 1u /* does not wait for the default stream, in both drivers */

dg_err dg__gpu_use(dg__dev *dev, dg_error *reterr)
{
	int code = dev->gpu->vendor->use(dev->gpu, dev->identity.device, dev->context);
	return code ? dg__gpu_failed(dev->gpu, code, "using the device's context", reterr) : DG_OK;
}

void dg__gpu_close(dg__dev *dev)
{
	if (!dev)
		return;
	const dg__gpu_calls *c = &dev->gpu->calls;
	if (dev->context && dg__gpu_use(dev, NULL) == DG_OK) {
		for (size_t i = 0; i < DG__KERNEL_COUNT; i++)
			if (dev->modules[i].handle)
				c->module_unload(dev->modules[i].handle);
		if (dev->start)
			c->event_destroy(dev->start);
		if (dev->end)
			c->event_destroy(dev->end);
		if (dev->stream)
			c->stream_destroy(dev->stream);
	}
	if (dev->context)
		dev->gpu->vendor->release(dev->gpu, dev->identity.device, dev->context);
	free(dev);
}

static dg_err make_stream(dg__dev *dev, dg_error *reterr)
{
	const dg__gpu_calls *c = &dev->gpu->calls;
	int code = c->stream_create(&dev->stream, STREAM_OF_ITS_OWN);
	if (!code)
		code = c->event_create(&dev->start, 0);
	if (!code)
		code = c->event_create(&dev->end, 0);
	return code ? dg__gpu_failed(dev->gpu, code, "making a stream", reterr) : DG_OK;
}

static void read_limits(dg__dev *dev)
{
	const dg__gpu *gpu = dev->gpu;
	int device = dev->identity.device;
	dev->cache_bytes = dg__gpu_attribute_of(gpu, device, DG__GPU_CACHE_BYTES);
	/* Two transfers a clock: so do the drivers count it. */
	dev->bus_bytes_per_s = 2.0 * 1000 * dg__gpu_attribute_of(gpu, device, DG__GPU_MEMORY_KHZ) *
			       (dg__gpu_attribute_of(gpu, device, DG__GPU_BUS_BITS) / 8.0);
}

dg_err dg__gpu_open(const dg__backend *self, uint32_t index, dg__dev **ret_dev, dg_error *reterr)
{
	dg__gpu *gpu = self->user;
	dg__dev *dev = calloc(1, sizeof(*dev));
	if (!dev)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dev->gpu = gpu;
	dev->index = index;
	dg_err err = dg__gpu_identify(gpu, index, &dev->identity, reterr);
	if (!err) {
		int code = gpu->vendor->retain(gpu, dev->identity.device, &dev->context);
		if (code)
			err = dg__gpu_failed(gpu, code, "opening the device", reterr);
	}
	if (!err)
		err = make_stream(dev, reterr);
	if (err) {
		dg__gpu_close(dev);
		return err;
	}
	read_limits(dev);
	*ret_dev = dev;
	return DG_OK;
}

dg_err dg__gpu_room(dg__dev *dev, dg__room *ret_room, dg_error *reterr)
{
	size_t available = 0, total = 0;
	dg_err err = dg__gpu_use(dev, reterr);
	if (err)
		return err;
	int code = dev->gpu->calls.memory_info(&available, &total);
	if (code)
		return dg__gpu_failed(dev->gpu, code, "asking for free memory", reterr);
	uint64_t room = available > RESERVE_BYTES ? available - RESERVE_BYTES : 0;
	*ret_room = (dg__room){
		.total_bytes = room, .buffer_bytes = room, .cache_bytes = dev->cache_bytes
	};
	return DG_OK;
}

dg_err dg__gpu_buf_create(dg__dev *dev, uint64_t size_bytes, const dg__stop *stop,
	dg__buf **ret_buf, dg_error *reterr)
{
	(void)stop; /* the driver backs it at once, and cannot be stopped */
	dg_err err = dg__gpu_use(dev, reterr);
	dg__buf *buf = calloc(1, sizeof(*buf));
	if (!buf)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	if (!err) {
		buf->size = (size_bytes + 255) / 256 * 256;
		int code = dev->gpu->calls.memory_alloc(&buf->address, buf->size);
		if (code == DG__GPU_NOMEM)
			err = dg_error_native(reterr, DG_ENOMEM, dev->gpu->vendor->driver, code,
				"the device has no %" PRIu64 " bytes left", buf->size);
		else if (code)
			err = dg__gpu_failed(dev->gpu, code, "allocating memory", reterr);
	}
	if (err)
		free(buf);
	else
		*ret_buf = buf;
	return err;
}

void dg__gpu_buf_destroy(dg__dev *dev, dg__buf *buf)
{
	if (!buf)
		return;
	if (dg__gpu_use(dev, NULL) == DG_OK)
		dev->gpu->calls.memory_free(buf->address);
	free(buf);
}

static dg_err check_range(
	dg__dev *dev, const dg__buf *buf, uint64_t offset, size_t size, dg_error *reterr)
{
	if (offset <= buf->size && size <= buf->size - offset)
		return dg__gpu_use(dev, reterr);
	return dg_error_set(reterr, DG_EINVALID, "the range is not inside the buffer");
}

dg_err dg__gpu_buf_write(dg__dev *dev, dg__buf *buf, uint64_t offset, const void *data, size_t size,
	dg_error *reterr)
{
	dg_err err = check_range(dev, buf, offset, size, reterr);
	if (err)
		return err;
	/* A plain copy returns before the bytes are there, and our stream would not wait for it. */
	int code = dev->gpu->calls.copy_in(buf->address + offset, data, size, dev->stream);
	if (!code)
		code = dev->gpu->calls.stream_wait(dev->stream);
	return code ? dg__gpu_failed(dev->gpu, code, "copying to the device", reterr) : DG_OK;
}

dg_err dg__gpu_buf_read(dg__dev *dev, const dg__buf *buf, uint64_t offset, void *data, size_t size,
	dg_error *reterr)
{
	dg_err err = check_range(dev, buf, offset, size, reterr);
	if (err)
		return err;
	int code = dev->gpu->calls.copy_out(data, buf->address + offset, size, dev->stream);
	if (!code)
		code = dev->gpu->calls.stream_wait(dev->stream);
	return code ? dg__gpu_failed(dev->gpu, code, "copying from the device", reterr) : DG_OK;
}
