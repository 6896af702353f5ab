/*
 * A fake HIP runtime and hipRTC: AMD's names, numbers and signatures, for tests.
 * See fake_gpu_driver.h.
 */
#define FAKE_F32_ITEMS 2
#include "tests/fakes/fake_gpu_driver.h"

/* The vendor's header, which would declare these, is not needed to build devgate. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static int contexts;

/* For tests: how many contexts are held. */
int fake_contexts(void)
{
	return contexts;
}

int hipInit(unsigned flags)
{
	return flags ? FAKE_INVALID : fake_count() ? (int)fake_script("init", 0) : FAKE_BAD_DEVICE;
}

int hipDriverGetVersion(int *ret_version)
{
	*ret_version = 60240092;
	return 0;
}

int hipGetDeviceCount(int *ret_count)
{
	*ret_count = fake_count();
	return *ret_count ? 0 : FAKE_NO_DEVICE;
}

int hipDeviceGet(int *ret_device, int ordinal)
{
	if (ordinal < 0 || ordinal >= fake_count())
		return FAKE_BAD_DEVICE;
	*ret_device = ordinal;
	return 0;
}

int hipDeviceGetName(char *ret_name, int size, int device)
{
	snprintf(ret_name, (size_t)size, "Fake GPU %d", device);
	return 0;
}

/* Just the numbers of this vendor: one of the other's is an error. */
int hipDeviceGetAttribute(int *ret_value, int attribute, int device)
{
	static const int rows[][2] = { { 63, FAKE_UNITS }, { 23, 9 }, { 61, 4 }, { 16, 0 },
		{ 19, 1 << 20 }, { 60, 1300000 }, { 59, 8192 }, { 5, 2100000 } };
	(void)device;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i][0] == attribute) {
			*ret_value = rows[i][1];
			return 0;
		}
	return FAKE_INVALID;
}

int hipDeviceTotalMem(size_t *ret_bytes, int device)
{
	(void)device;
	*ret_bytes = (size_t)1 << 30;
	return 0;
}

int hipDeviceGetPCIBusId(char *ret_address, int size, int device)
{
	fake_pci(device, ret_address, (size_t)size);
	return 0;
}

int hipMemGetInfo(size_t *ret_free, size_t *ret_total)
{
	if (!contexts)
		return 201;
	*ret_free = (size_t)768 << 20;
	*ret_total = (size_t)1 << 30;
	return 0;
}

int hipMalloc(void **ret_address, size_t size)
{
	void *at = contexts ? aligned_alloc(256, size) : NULL;
	if (!at)
		return contexts ? 2 : 201;
	*ret_address = at;
	return 0;
}

int hipFree(void *address)
{
	free(address);
	return 0;
}

int hipMemcpyHtoDAsync(void *to, void *from, size_t size, void *stream)
{
	(void)stream;
	memcpy(to, from, size);
	return 0;
}

int hipMemcpyDtoHAsync(void *to, void *from, size_t size, void *stream)
{
	(void)stream;
	memcpy(to, from, size);
	return 0;
}

int hipModuleLoadData(void **ret_module, const void *image)
{
	if (strncmp(image, "fake", 4))
		return 209;
	*ret_module = malloc(1);
	return *ret_module ? 0 : 2;
}

int hipModuleUnload(void *module)
{
	free(module);
	return 0;
}

int hipModuleGetFunction(void **ret_function, void *module, const char *name)
{
	(void)module;
	return fake_get_function(ret_function, name);
}

int hipModuleLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
	unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream,
	void **arguments, void **extra)
{
	(void)stream;
	if (!grid_y || grid_y > 65535 || grid_z != 1 || !block_x || block_y != 1 || block_z != 1 ||
		shared_bytes || extra)
		return FAKE_INVALID;
	return fake_launch(function, grid_x, arguments);
}

int hipStreamCreateWithFlags(void **ret_stream, unsigned flags)
{
	*ret_stream = malloc(1);
	return flags > 1 ? FAKE_INVALID : *ret_stream ? 0 : 2;
}

int hipStreamDestroy(void *stream)
{
	free(stream);
	return 0;
}

int hipStreamSynchronize(void *stream)
{
	return stream ? 0 : FAKE_INVALID;
}

int hipEventCreateWithFlags(void **ret_event, unsigned flags)
{
	*ret_event = calloc(1, sizeof(fake_event));
	return flags ? FAKE_INVALID : *ret_event ? 0 : 2;
}

int hipEventDestroy(void *event)
{
	free(event);
	return 0;
}

int hipEventRecord(void *event, void *stream)
{
	(void)stream;
	((fake_event *)event)->at_ns = fake_now_ns();
	return 0;
}

int hipEventQuery(void *event)
{
	(void)event;
	return fake_script("hang", 0) ? FAKE_NOT_READY : 0;
}

int hipEventElapsedTime(float *ret_ms, void *from, void *to)
{
	return fake_elapsed(ret_ms, from, to);
}

int hipStreamBeginCapture(void *stream, int mode)
{
	(void)stream;
	return mode ? FAKE_INVALID : fake_capture_begin();
}

int hipStreamEndCapture(void *stream, void **ret_graph)
{
	(void)stream;
	return fake_capture_end(ret_graph);
}

int hipGraphInstantiateWithFlags(void **ret_executable, void *graph, unsigned long long flags)
{
	return flags ? FAKE_INVALID : fake_instantiate(ret_executable, graph);
}

int hipGraphLaunch(void *executable, void *stream)
{
	(void)stream;
	return fake_graph_launch(executable);
}

int hipGraphExecDestroy(void *executable)
{
	free(executable);
	return 0;
}

int hipGraphDestroy(void *graph)
{
	free(graph);
	return 0;
}

/* The run-time compiler: its code is the word "fake". */

int hiprtcCreateProgram(void **ret_program, const char *source, const char *name, int header_count,
	const char *const *headers, const char *const *header_names)
{
	(void)name;
	(void)headers;
	(void)header_names;
	*ret_program = header_count ? NULL : malloc(1);
	return strstr(source, "KERNEL(") && *ret_program ? 0 : 3;
}

int hiprtcCompileProgram(void *program, int option_count, const char *const *options)
{
	(void)program;
	if (option_count < 2 || strcmp(options[0], "--offload-arch=gfx942"))
		return 5;
	return (int)fake_script("rtc", 0);
}

int hiprtcGetCodeSize(void *program, size_t *ret_size)
{
	(void)program;
	*ret_size = 5;
	return 0;
}

int hiprtcGetCode(void *program, char *ret_code)
{
	(void)program;
	memcpy(ret_code, "fake", 5);
	return 0;
}

int hiprtcGetProgramLogSize(void *program, size_t *ret_size)
{
	(void)program;
	*ret_size = sizeof("line 7 is wrong");
	return 0;
}

int hiprtcGetProgramLog(void *program, char *ret_log)
{
	(void)program;
	memcpy(ret_log, "line 7 is wrong", sizeof("line 7 is wrong"));
	return 0;
}

int hiprtcDestroyProgram(void **program)
{
	free(*program);
	*program = NULL;
	return 0;
}

int hiprtcVersion(int *ret_major, int *ret_minor)
{
	*ret_major = 1;
	*ret_minor = 0;
	return 0;
}

/* What only this vendor has. */

const char *hipGetErrorName(int code)
{
	return code == 719 ? "hipErrorLaunchFailure" : "hipErrorUnknown";
}

int hipSetDevice(int device)
{
	if (device < 0 || device >= fake_count())
		return FAKE_BAD_DEVICE;
	contexts = contexts ? contexts : 1;
	return 0;
}

int hipDeviceReset(void)
{
	contexts = 0;
	return 0;
}

/* Sixteen hex digits, as characters. */
int hipDeviceGetUuid(char ret_bytes[16], int device)
{
	char text[40];
	snprintf(text, sizeof(text), "%016x",
		fake_script("zero_uuid", 0) ? 0u : 0xcafe00u + (unsigned)device);
	memcpy(ret_bytes, text, 16);
	return 0;
}

int hipGetDevicePropertiesR0600(void *ret_properties, int device)
{
	(void)device;
	memset(ret_properties, 0, 1472);
	memcpy((char *)ret_properties + 1160, "gfx942:sramecc+:xnack-", 23);
	return 0;
}
