/* ROCm: HIP's names, numbers and adapters for backends/gpu. See gpu.h and README.md. */
#include "backends/rocm/rocm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL(member, name) \
	{ \
		name, offsetof(dg__gpu_calls, member), NULL \
	}
#define GRAPH(member, name) \
	{ \
		name, offsetof(dg__gpu_graph_calls, member), NULL \
	}
#define RTC(member, name) \
	{ \
		name, offsetof(dg__gpu_rtc_calls, member), NULL \
	}
#define OWN(member, name) \
	{ \
		name, offsetof(dg__rocm_calls, member), NULL \
	}

/* Properties are read as bytes: of all that has moved in that struct, one text is needed. */
#define PROPERTIES_ROOM 4096
#define GFX_NAME 1160 /* of ROCm 6 and later, whose call has a name of its own */
#define GFX_NAME_5 396 /* of ROCm 5 */
#define GFX_NAME_MAX 256

static const char *const libraries[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
	"libamdhip64.so", "/opt/rocm/lib/libamdhip64.so.7", "/opt/rocm/lib/libamdhip64.so.6",
	"/opt/rocm/lib/libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so", NULL };

/* Up to version 5.x the compiler is inside the runtime's library. */
static const char *const rtc_libraries[] = { "libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5",
	"libhiprtc.so", "/opt/rocm/lib/libhiprtc.so.7", "/opt/rocm/lib/libhiprtc.so.6",
	"/opt/rocm/lib/libhiprtc.so", "libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so", NULL };

/* "hipStreamCreate" and "hipEventCreate" have other arguments than CUDA's: the …WithFlags match. */
static const dg__symbol calls[] = {
	CALL(init, "hipInit"),
	CALL(driver_version, "hipDriverGetVersion"),
	CALL(device_count, "hipGetDeviceCount"),
	CALL(device_get, "hipDeviceGet"),
	CALL(device_name, "hipDeviceGetName"),
	CALL(device_attribute, "hipDeviceGetAttribute"),
	CALL(device_total, "hipDeviceTotalMem"),
	CALL(device_pci, "hipDeviceGetPCIBusId"),
	CALL(memory_info, "hipMemGetInfo"),
	CALL(memory_alloc, "hipMalloc"),
	CALL(memory_free, "hipFree"),
	CALL(copy_in, "hipMemcpyHtoDAsync"),
	CALL(copy_out, "hipMemcpyDtoHAsync"),
	CALL(module_load, "hipModuleLoadData"),
	CALL(module_unload, "hipModuleUnload"),
	CALL(module_function, "hipModuleGetFunction"),
	CALL(launch, "hipModuleLaunchKernel"),
	CALL(stream_create, "hipStreamCreateWithFlags"),
	CALL(stream_destroy, "hipStreamDestroy"),
	CALL(stream_wait, "hipStreamSynchronize"),
	CALL(event_create, "hipEventCreateWithFlags"),
	CALL(event_destroy, "hipEventDestroy"),
	CALL(event_record, "hipEventRecord"),
	CALL(event_query, "hipEventQuery"),
	CALL(event_elapsed, "hipEventElapsedTime"),
};
static const dg__symbol graph_calls[] = {
	GRAPH(capture_begin, "hipStreamBeginCapture"),
	GRAPH(capture_end, "hipStreamEndCapture"),
	GRAPH(instantiate, "hipGraphInstantiateWithFlags"),
	GRAPH(graph_launch, "hipGraphLaunch"),
	GRAPH(executable_destroy, "hipGraphExecDestroy"),
	GRAPH(graph_destroy, "hipGraphDestroy"),
};
static const dg__symbol rtc_calls[] = {
	RTC(create, "hiprtcCreateProgram"),
	RTC(compile, "hiprtcCompileProgram"),
	RTC(code_size, "hiprtcGetCodeSize"),
	RTC(code, "hiprtcGetCode"),
	RTC(log_size, "hiprtcGetProgramLogSize"),
	RTC(log, "hiprtcGetProgramLog"),
	RTC(destroy, "hiprtcDestroyProgram"),
	RTC(version, "hiprtcVersion"),
};
static const dg__symbol own_calls[] = {
	OWN(error_name, "hipGetErrorName"),
	OWN(set_device, "hipSetDevice"),
	OWN(reset, "hipDeviceReset"),
};
static const dg__symbol uuid_call = { "hipDeviceGetUuid", offsetof(dg__rocm_more, uuid), NULL };
static const dg__symbol properties_call = { "hipGetDevicePropertiesR0600",
	offsetof(dg__rocm_more, properties), NULL };
static const dg__symbol properties_5_call = { "hipGetDeviceProperties",
	offsetof(dg__rocm_more, properties_5), NULL };

static const char *const visible[] = { "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
	"CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", NULL };

/* Operations of a compute unit in a clock, by the most any generation has (CDNA 3, RDNA 3). */
static const dg__gpu_bound bounds[] = {
	{ DG__KERNEL_ARITH_F64, 2 * 128 },
	{ DG__KERNEL_ARITH_F32, 2 * 128 },
	{ DG__KERNEL_ARITH_F16, 2 * 256 },
	{ DG__KERNEL_ARITH_BF16, 2 * 256 },
	{ DG__KERNEL_ARITH_I64, 64 },
	{ DG__KERNEL_ARITH_I32, 128 },
	{ DG__KERNEL_ARITH_I16, 256 },
	{ DG__KERNEL_ARITH_I8, 4 * 128 },
};

static dg_err load(dg__gpu *gpu, dg_error *reterr)
{
	dg__rocm_own *own = calloc(1, sizeof(*own));
	if (!own)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	dg_err err = dg__dynlib_load(
		gpu->library, own_calls, DG__GPU_COUNT(own_calls), &own->calls, reterr);
	if (err) {
		free(own);
		return err;
	}
	if (dg__dynlib_load(gpu->library, &uuid_call, 1, &own->more, NULL) != DG_OK)
		own->more.uuid = NULL;
	if (dg__dynlib_load(gpu->library, &properties_call, 1, &own->more, NULL) != DG_OK)
		own->more.properties = NULL;
	if (dg__dynlib_load(gpu->library, &properties_5_call, 1, &own->more, NULL) != DG_OK)
		own->more.properties_5 = NULL;
	free(gpu->own);
	gpu->own = own;
	return DG_OK;
}

static const char *error_name(const dg__gpu *gpu, int code)
{
	const dg__rocm_own *own = gpu->own;
	return own ? own->calls.error_name(code) : NULL;
}

/* HIP has one context per device, made at its first use. */
static int retain(dg__gpu *gpu, int device, void **ret_context)
{
	const dg__rocm_own *own = gpu->own;
	int code = own->calls.set_device(device);
	if (!code)
		*ret_context = gpu;
	return code;
}

static int use(dg__gpu *gpu, int device, void *context)
{
	const dg__rocm_own *own = gpu->own;
	(void)context;
	return own->calls.set_device(device);
}

static void release(dg__gpu *gpu, int device, void *context)
{
	const dg__rocm_own *own = gpu->own;
	(void)context;
	if (!own->calls.set_device(device))
		own->calls.reset();
}

/* "gfx90a" of "gfx90a:sramecc+:xnack-"; features are left to the compiler's defaults. */
static bool take_gfx(const char *text, char *architecture, size_t size)
{
	static const char allowed[] = "0123456789abcdef";
	size_t length = strncmp(text, "gfx", 3) ? 0 : strspn(text + 3, allowed);
	if (length < 3 || length > 8 || (text[3 + length] && text[3 + length] != ':'))
		return false;
	snprintf(architecture, size, "%.*s", (int)(3 + length), text);
	return true;
}

static void read_architecture(const dg__rocm_own *own, dg__gpu_identity *who)
{
	char *room = calloc(1, PROPERTIES_ROOM + 1);
	bool found = false;
	if (room && own->more.properties && !own->more.properties(room, who->device))
		found = take_gfx(room + GFX_NAME, who->architecture, sizeof(who->architecture));
	else if (room && !own->more.properties && own->more.properties_5 &&
		 !own->more.properties_5(room, who->device))
		found = take_gfx(room + GFX_NAME_5, who->architecture, sizeof(who->architecture));
	free(room);
	/* The numbers leave out the stepping, which is 0 with most. */
	if (!found)
		snprintf(who->architecture, sizeof(who->architecture), "gfx%u%u0",
			(unsigned)who->major, (unsigned)who->minor);
}

/*
 * The UUID is 16 characters of hex, the chip's serial number; partitions of one chip have the same
 * one and differ in the function of their PCI address. "XX…" or zeros where the chip has none.
 */
static void read_uuid(const dg__rocm_own *own, dg__gpu_identity *who)
{
	char bytes[17] = "";
	who->uuid[0] = '\0';
	if (!own->more.uuid || own->more.uuid(bytes, who->device))
		return;
	bytes[16] = '\0';
	if (strspn(bytes, "0123456789abcdefABCDEF") != 16 || strspn(bytes, "0") == 16)
		return;
	for (size_t i = 0; i < 16; i++)
		who->uuid[i] =
			(char)(bytes[i] >= 'A' && bytes[i] <= 'F' ? bytes[i] + 32 : bytes[i]);
	who->uuid[16] = '\0';
}

static void identify(dg__gpu *gpu, dg__gpu_identity *who)
{
	const dg__rocm_own *own = gpu->own;
	size_t length = strlen(who->pci);
	read_architecture(own, who);
	read_uuid(own, who);
	/* A whole chip is function 0. */
	if (!length || who->pci[length - 1] == '0' || !who->uuid[0])
		return;
	who->partition = true;
	snprintf(who->parent, sizeof(who->parent), "%s", who->uuid);
	snprintf(who->uuid + 16, sizeof(who->uuid) - 16, "-%c", who->pci[length - 1]);
}

static size_t targets(dg__gpu *gpu, const dg__gpu_identity *who, dg__gpu_target *ret_targets)
{
	(void)gpu;
	snprintf(ret_targets->text[0], sizeof(ret_targets->text[0]), "--offload-arch=%s",
		who->architecture);
	ret_targets->options[0] = ret_targets->text[0];
	ret_targets->options[1] = "-std=c++17";
	ret_targets->options[2] = "-O3";
	ret_targets->options[3] = NULL;
	return 1;
}

static dg_err supports(const dg__gpu_identity *who, dg__kernel_id kernel, dg_error *reterr)
{
	if (kernel == DG__KERNEL_ARITH_BF16)
		return dg_error_set(reterr, DG_ENOTSUP,
			"%s has no bf16 arithmetic outside its matrix units", who->architecture);
	return DG_OK;
}

static void version_text(int version, char *buf, size_t size)
{
	snprintf(buf, size, "%d.%d", version / 10000000, version / 100000 % 100);
}

static const void *image(const dg__gpu_identity *who, bool memory, bool exact)
{
	(void)who;
	(void)memory;
	(void)exact;
	return NULL;
}

const dg__gpu_vendor dg__gpu_rocm = {
	.variant = DG_ROCM,
	.company = "AMD",
	.driver = "HIP",
	.libraries = libraries,
	.calls = calls,
	.call_count = DG__GPU_COUNT(calls),
	.graph_calls = graph_calls,
	.graph_call_count = DG__GPU_COUNT(graph_calls),
	.rtc_calls = rtc_calls,
	.rtc_call_count = DG__GPU_COUNT(rtc_calls),
	.rtc_libraries = rtc_libraries,
	.rtc_missing = "install hipRTC",
	.attributes = { [DG__GPU_UNITS] = 63,
		[DG__GPU_MAJOR] = 23,
		[DG__GPU_MINOR] = 61,
		[DG__GPU_INTEGRATED] = 16,
		[DG__GPU_CACHE_BYTES] = 19,
		[DG__GPU_MEMORY_KHZ] = 60,
		[DG__GPU_BUS_BITS] = 59,
		[DG__GPU_CLOCK_KHZ] = 5 },
	.pairs = true,
	.visible = visible,
	.bounds = bounds,
	.bound_count = DG__GPU_COUNT(bounds),
	.load = load,
	.error_name = error_name,
	.identify = identify,
	.retain = retain,
	.use = use,
	.release = release,
	.look = dg__rsmi_look,
	.targets = targets,
	.supports = supports,
	.version_text = version_text,
	.image = image,
};

static dg__gpu gpu = DG__GPU_INIT(&dg__gpu_rocm);
extern const dg__backend dg__backend_rocm;
const dg__backend dg__backend_rocm = DG__GPU_BACKEND("rocm", &gpu);
