/*
 * A fake CUDA driver and NVRTC: NVIDIA's names, numbers and signatures, for tests.
 * See fake_gpu_driver.h.
 */
#include "tests/fakes/fake_gpu_driver.h"

/* The vendor's header, which would declare these, is not needed to build devgate. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static int contexts;

/* For tests: how many contexts are held. */
int fake_contexts(void)
{
	return contexts;
}

int cuInit(unsigned flags)
{
	return flags ? FAKE_INVALID : fake_count() ? (int)fake_script("init", 0) : FAKE_NO_DEVICE;
}

int cuDriverGetVersion(int *ret_version)
{
	*ret_version = 13000;
	return 0;
}

int cuDeviceGetCount(int *ret_count)
{
	*ret_count = fake_count();
	return *ret_count ? 0 : FAKE_NO_DEVICE;
}

int cuDeviceGet(int *ret_device, int ordinal)
{
	if (ordinal < 0 || ordinal >= fake_count())
		return FAKE_BAD_DEVICE;
	*ret_device = ordinal;
	return 0;
}

int cuDeviceGetName(char *ret_name, int size, int device)
{
	snprintf(ret_name, (size_t)size, "Fake GPU %d", device);
	return 0;
}

/* Just the numbers of this vendor: one of the other's is an error. */
int cuDeviceGetAttribute(int *ret_value, int attribute, int device)
{
	static const int rows[][2] = { { 16, FAKE_UNITS }, { 75, 9 }, { 76, 0 }, { 18, 0 },
		{ 38, 1 << 20 }, { 36, 3201000 }, { 37, 6144 }, { 13, 1980000 } };
	(void)device;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i][0] == attribute) {
			*ret_value = rows[i][1];
			return 0;
		}
	return FAKE_INVALID;
}

int cuDeviceTotalMem_v2(size_t *ret_bytes, int device)
{
	(void)device;
	*ret_bytes = (size_t)1 << 30;
	return 0;
}

int cuDeviceGetPCIBusId(char *ret_address, int size, int device)
{
	fake_pci(device, ret_address, (size_t)size);
	return 0;
}

int cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
	if (!contexts)
		return 201;
	*ret_free = (size_t)768 << 20;
	*ret_total = (size_t)1 << 30;
	return 0;
}

int cuMemAlloc_v2(unsigned long long *ret_address, size_t size)
{
	void *at = contexts ? aligned_alloc(256, size) : NULL;
	if (!at)
		return contexts ? 2 : 201;
	*ret_address = (unsigned long long)at;
	return 0;
}

int cuMemFree_v2(unsigned long long address)
{
	free((void *)address);
	return 0;
}

int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t size, void *stream)
{
	(void)stream;
	memcpy((void *)to, from, size);
	return 0;
}

int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t size, void *stream)
{
	(void)stream;
	memcpy(to, (const void *)from, size);
	return 0;
}

int cuModuleLoadData(void **ret_module, const void *image)
{
	if (strncmp(image, "fake", 4))
		return 209;
	*ret_module = malloc(1);
	return *ret_module ? 0 : 2;
}

int cuModuleUnload(void *module)
{
	free(module);
	return 0;
}

int cuModuleGetFunction(void **ret_function, void *module, const char *name)
{
	(void)module;
	return fake_get_function(ret_function, name);
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
	unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream,
	void **arguments, void **extra)
{
	(void)stream;
	if (!grid_y || grid_y > 65535 || grid_z != 1 || !block_x || block_y != 1 || block_z != 1 ||
		shared_bytes || extra)
		return FAKE_INVALID;
	return fake_launch(function, grid_x, arguments);
}

int cuStreamCreate(void **ret_stream, unsigned flags)
{
	*ret_stream = malloc(1);
	return flags > 1 ? FAKE_INVALID : *ret_stream ? 0 : 2;
}

int cuStreamDestroy_v2(void *stream)
{
	free(stream);
	return 0;
}

int cuStreamSynchronize(void *stream)
{
	return stream ? 0 : FAKE_INVALID;
}

int cuEventCreate(void **ret_event, unsigned flags)
{
	*ret_event = calloc(1, sizeof(fake_event));
	return flags ? FAKE_INVALID : *ret_event ? 0 : 2;
}

int cuEventDestroy_v2(void *event)
{
	free(event);
	return 0;
}

int cuEventRecord(void *event, void *stream)
{
	(void)stream;
	((fake_event *)event)->at_ns = fake_now_ns();
	return 0;
}

int cuEventQuery(void *event)
{
	(void)event;
	return fake_script("hang", 0) ? FAKE_NOT_READY : 0;
}

int cuEventElapsedTime(float *ret_ms, void *from, void *to)
{
	return fake_elapsed(ret_ms, from, to);
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
	(void)stream;
	return mode ? FAKE_INVALID : fake_capture_begin();
}

int cuStreamEndCapture(void *stream, void **ret_graph)
{
	(void)stream;
	return fake_capture_end(ret_graph);
}

int cuGraphInstantiateWithFlags(void **ret_executable, void *graph, unsigned long long flags)
{
	return flags ? FAKE_INVALID : fake_instantiate(ret_executable, graph);
}

int cuGraphLaunch(void *executable, void *stream)
{
	(void)stream;
	return fake_graph_launch(executable);
}

int cuGraphExecDestroy(void *executable)
{
	free(executable);
	return 0;
}

int cuGraphDestroy(void *graph)
{
	free(graph);
	return 0;
}

/* The run-time compiler: its code is the word "fake". */

int nvrtcCreateProgram(void **ret_program, const char *source, const char *name, int header_count,
	const char *const *headers, const char *const *header_names)
{
	(void)name;
	(void)headers;
	(void)header_names;
	*ret_program = header_count ? NULL : malloc(1);
	return strstr(source, "KERNEL(") && *ret_program ? 0 : 3;
}

int nvrtcCompileProgram(void *program, int option_count, const char *const *options)
{
	(void)program;
	if (option_count < 2 || strcmp(options[0], "--gpu-architecture=sm_90a"))
		return 5;
	return (int)fake_script("rtc", 0);
}

int nvrtcGetCUBINSize(void *program, size_t *ret_size)
{
	(void)program;
	*ret_size = 5;
	return 0;
}

int nvrtcGetCUBIN(void *program, char *ret_code)
{
	(void)program;
	memcpy(ret_code, "fake", 5);
	return 0;
}

int nvrtcGetProgramLogSize(void *program, size_t *ret_size)
{
	(void)program;
	*ret_size = sizeof("line 7 is wrong");
	return 0;
}

int nvrtcGetProgramLog(void *program, char *ret_log)
{
	(void)program;
	memcpy(ret_log, "line 7 is wrong", sizeof("line 7 is wrong"));
	return 0;
}

int nvrtcDestroyProgram(void **program)
{
	free(*program);
	*program = NULL;
	return 0;
}

int nvrtcVersion(int *ret_major, int *ret_minor)
{
	*ret_major = 1;
	*ret_minor = 0;
	return 0;
}

/* What only this vendor has. */

int cuGetErrorName(int code, const char **ret_name)
{
	*ret_name = code == 999   ? "CUDA_ERROR_UNKNOWN"
		    : code == 719 ? "CUDA_ERROR_LAUNCH_FAILED"
				  : NULL;
	return *ret_name ? 0 : FAKE_INVALID;
}

int cuDevicePrimaryCtxRetain(void **ret_context, int device)
{
	static char context;
	(void)device;
	contexts++;
	*ret_context = &context;
	return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	(void)device;
	contexts--;
	return 0;
}

int cuCtxSetCurrent(void *context)
{
	(void)context;
	return 0;
}

int cuDeviceGetUuid_v2(unsigned char ret_bytes[16], int device)
{
	fake_uuid(device, ret_bytes);
	return 0;
}
