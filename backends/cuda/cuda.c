/* CUDA: names, numbers and adapters for backends/gpu. See gpu.h and README.md. */
#include "backends/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL(member, name, older) \
	{ \
		name, offsetof(dg__gpu_calls, member), older \
	}
#define GRAPH(member, name, older) \
	{ \
		name, offsetof(dg__gpu_graph_calls, member), older \
	}
#define RTC(member, name) \
	{ \
		name, offsetof(dg__gpu_rtc_calls, member), NULL \
	}
#define OWN(member, name, older) \
	{ \
		name, offsetof(dg__cuda_calls, member), older \
	}

static const char *const libraries[] = { "libcuda.so.1", "libcuda.so",
	"/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
	"/usr/lib64/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
	"/usr/lib/wsl/lib/libcuda.so.1", "/run/opengl-driver/lib/libcuda.so.1", NULL };

/* Newest first; a compiler that is newer than the driver is found out when its code is loaded. */
static const char *const rtc_libraries[] = { "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
	"/usr/local/cuda/lib64/libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.12",
	"/usr/local/cuda/lib64/libnvrtc.so.11.2", "/usr/local/cuda-13/lib64/libnvrtc.so.13",
	"/usr/local/cuda-12/lib64/libnvrtc.so.12", "/opt/cuda/lib64/libnvrtc.so.13",
	"/opt/cuda/lib64/libnvrtc.so.12", "libnvrtc.so", NULL };

static const dg__symbol calls[] = {
	CALL(init, "cuInit", NULL),
	CALL(driver_version, "cuDriverGetVersion", NULL),
	CALL(device_count, "cuDeviceGetCount", NULL),
	CALL(device_get, "cuDeviceGet", NULL),
	CALL(device_name, "cuDeviceGetName", NULL),
	CALL(device_attribute, "cuDeviceGetAttribute", NULL),
	CALL(device_total, "cuDeviceTotalMem_v2", NULL),
	CALL(device_pci, "cuDeviceGetPCIBusId", NULL),
	CALL(memory_info, "cuMemGetInfo_v2", NULL),
	CALL(memory_alloc, "cuMemAlloc_v2", NULL),
	CALL(memory_free, "cuMemFree_v2", NULL),
	CALL(copy_in, "cuMemcpyHtoDAsync_v2", NULL),
	CALL(copy_out, "cuMemcpyDtoHAsync_v2", NULL),
	CALL(module_load, "cuModuleLoadData", NULL),
	CALL(module_unload, "cuModuleUnload", NULL),
	CALL(module_function, "cuModuleGetFunction", NULL),
	CALL(launch, "cuLaunchKernel", NULL),
	CALL(stream_create, "cuStreamCreate", NULL),
	CALL(stream_destroy, "cuStreamDestroy_v2", NULL),
	CALL(stream_wait, "cuStreamSynchronize", NULL),
	CALL(event_create, "cuEventCreate", NULL),
	CALL(event_destroy, "cuEventDestroy_v2", NULL),
	CALL(event_record, "cuEventRecord", NULL),
	CALL(event_query, "cuEventQuery", NULL),
	CALL(event_elapsed, "cuEventElapsedTime", NULL),
};
static const dg__symbol graph_calls[] = {
	GRAPH(capture_begin, "cuStreamBeginCapture_v2", NULL),
	GRAPH(capture_end, "cuStreamEndCapture", NULL),
	GRAPH(instantiate, "cuGraphInstantiateWithFlags", NULL),
	GRAPH(graph_launch, "cuGraphLaunch", NULL),
	GRAPH(executable_destroy, "cuGraphExecDestroy", NULL),
	GRAPH(graph_destroy, "cuGraphDestroy", NULL),
};
static const dg__symbol rtc_calls[] = {
	RTC(create, "nvrtcCreateProgram"),
	RTC(compile, "nvrtcCompileProgram"),
	RTC(code_size, "nvrtcGetCUBINSize"),
	RTC(code, "nvrtcGetCUBIN"),
	RTC(log_size, "nvrtcGetProgramLogSize"),
	RTC(log, "nvrtcGetProgramLog"),
	RTC(destroy, "nvrtcDestroyProgram"),
	RTC(version, "nvrtcVersion"),
};
static const dg__symbol own_calls[] = {
	OWN(error_name, "cuGetErrorName", NULL),
	OWN(retain, "cuDevicePrimaryCtxRetain", NULL),
	OWN(release, "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease"),
	OWN(set_current, "cuCtxSetCurrent", NULL),
	/* The older one gives a slice its parent's UUID. */
	OWN(uuid, "cuDeviceGetUuid_v2", "cuDeviceGetUuid"),
};

static const char *const visible[] = { "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", NULL };

/*
 * Operations of a multiprocessor in a clock, by the most any generation has: 128 f32 lanes, 64 of
 * f64, packed halves at twice f32 (four times on 8.0 alone), 128 integer lanes.
 */
static const dg__gpu_bound bounds[] = {
	{ DG__KERNEL_ARITH_F64, 2 * 64 },
	{ DG__KERNEL_ARITH_F32, 2 * 128 },
	{ DG__KERNEL_ARITH_F16, 2 * 256 },
	{ DG__KERNEL_ARITH_BF16, 2 * 256 },
	{ DG__KERNEL_ARITH_I64, 64 },
	{ DG__KERNEL_ARITH_I32, 128 },
	{ DG__KERNEL_ARITH_I16, 128 },
	{ DG__KERNEL_ARITH_I8, 4 * 128 },
};

static dg_err load(dg__gpu *gpu, dg_error *reterr)
{
	dg__cuda_own *own = calloc(1, sizeof(*own));
	if (!own)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dg_err err = dg__dynlib_load(
		gpu->library, own_calls, DG__GPU_COUNT(own_calls), &own->calls, reterr);
	if (err) {
		free(own);
		return err;
	}
	free(gpu->own);
	gpu->own = own;
	return DG_OK;
}

static const char *error_name(const dg__gpu *gpu, int code)
{
	const dg__cuda_own *own = gpu->own;
	const char *name = NULL;
	return own && !own->calls.error_name(code, &name) ? name : NULL;
}

static int retain(dg__gpu *gpu, int device, void **ret_context)
{
	const dg__cuda_own *own = gpu->own;
	int code = own->calls.retain(ret_context, device);
	if (code)
		return code;
	code = own->calls.set_current(*ret_context);
	if (code) {
		own->calls.release(device);
		*ret_context = NULL;
	}
	return code;
}

static int use(dg__gpu *gpu, int device, void *context)
{
	const dg__cuda_own *own = gpu->own;
	(void)device;
	return own->calls.set_current(context);
}

static void release(dg__gpu *gpu, int device, void *context)
{
	const dg__cuda_own *own = gpu->own;
	(void)context;
	own->calls.set_current(NULL);
	own->calls.release(device);
}

static void identify(dg__gpu *gpu, dg__gpu_identity *who)
{
	const dg__cuda_own *own = gpu->own;
	unsigned char bytes[16] = { 0 };
	who->uuid[0] = '\0';
	if (!own->calls.uuid(bytes, who->device))
		dg__gpu_uuid_text(bytes, who->uuid);
	snprintf(who->architecture, sizeof(who->architecture), "sm_%u%u", (unsigned)who->major,
		(unsigned)who->minor);
	dg__nvml_identify(gpu, who);
}

/* Chips from 9.0 on have instructions of their own, in programs that run nowhere else ("a"). */
static size_t targets(dg__gpu *gpu, const dg__gpu_identity *who, dg__gpu_target *ret_targets)
{
	size_t count = 0;
	(void)gpu;
	for (int own = who->major >= 9; own >= 0; own--) {
		dg__gpu_target *t = &ret_targets[count++];
		snprintf(t->text[0], sizeof(t->text[0]), "--gpu-architecture=sm_%u%u%s",
			(unsigned)who->major, (unsigned)who->minor, own ? "a" : "");
		t->options[0] = t->text[0];
		t->options[1] = "--std=c++17";
		t->options[2] = NULL;
	}
	return count;
}

static dg_err supports(const dg__gpu_identity *who, dg__kernel_id kernel, dg_error *reterr)
{
	unsigned version = who->major * 10 + who->minor;
	if (kernel == DG__KERNEL_ARITH_BF16 && version < 80)
		return dg_error_set(reterr, DG_ENOTSUP,
			"%s has no bf16 arithmetic: it begins with sm_80", who->architecture);
	if (kernel == DG__KERNEL_ARITH_F16 && version < 53)
		return dg_error_set(reterr, DG_ENOTSUP,
			"%s has no f16 arithmetic: it begins with sm_53", who->architecture);
	return DG_OK;
}

static void version_text(int version, char *buf, size_t size)
{
	snprintf(buf, size, "%d.%d", version / 1000, version % 1000 / 10);
}

const dg__gpu_vendor dg__gpu_cuda = {
	.variant = DG_CUDA,
	.company = "NVIDIA",
	.driver = "CUDA",
	.libraries = libraries,
	.calls = calls,
	.call_count = DG__GPU_COUNT(calls),
	.graph_calls = graph_calls,
	.graph_call_count = DG__GPU_COUNT(graph_calls),
	.rtc_calls = rtc_calls,
	.rtc_call_count = DG__GPU_COUNT(rtc_calls),
	.rtc_libraries = rtc_libraries,
	.rtc_missing = "install NVRTC, or a devgate that was built where nvcc is",
	.attributes = { [DG__GPU_UNITS] = 16,
		[DG__GPU_MAJOR] = 75,
		[DG__GPU_MINOR] = 76,
		[DG__GPU_INTEGRATED] = 18,
		[DG__GPU_CACHE_BYTES] = 38,
		[DG__GPU_MEMORY_KHZ] = 36,
		[DG__GPU_BUS_BITS] = 37,
		[DG__GPU_CLOCK_KHZ] = 13 },
	.visible = visible,
	.bounds = bounds,
	.bound_count = DG__GPU_COUNT(bounds),
	.load = load,
	.error_name = error_name,
	.identify = identify,
	.retain = retain,
	.use = use,
	.release = release,
	.look = dg__nvml_look,
	.targets = targets,
	.supports = supports,
	.version_text = version_text,
	.image = dg__cuda_image,
};

static dg__gpu gpu = DG__GPU_INIT(&dg__gpu_cuda);
extern const dg__backend dg__backend_cuda;
const dg__backend dg__backend_cuda = DG__GPU_BACKEND("cuda", &gpu);
