/* Programs: compiled for the very chip, or taken from those made beforehand. See gpu.h. */
#include "backends/gpu/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TARGETS_MAX 3
#define LOG_MAX 300

static bool is_memory(dg__kernel_id id)
{
	return id == DG__KERNEL_READ || id == DG__KERNEL_WRITE || id == DG__KERNEL_COPY ||
	       id == DG__KERNEL_EMPTY;
}

/* Kernels of memory share one program. */
static dg__kernel_id part_of(dg__kernel_id id)
{
	return is_memory(id) ? DG__KERNEL_READ : id;
}

/* The dialect, and what is written in it; owned. */
static char *text_of(dg__kernel_id id)
{
	const char *body = is_memory(id) ? dg__gpu_text_memory : dg__gpu_text_arith;
	size_t size = strlen(dg__gpu_text_dialect) + strlen(body) + 64;
	char *text = malloc(size);
	if (text)
		snprintf(text, size, "#define PART %d\n%s\n%s", (int)id + 1, dg__gpu_text_dialect,
			body);
	return text;
}

static void read_log(const dg__gpu *gpu, void *program, char log[LOG_MAX])
{
	size_t size = 0;
	log[0] = '\0';
	if (gpu->rtc.log_size(program, &size) || size < 2 || size > ((size_t)1 << 20))
		return;
	char *whole = calloc(1, size + 1);
	if (whole && !gpu->rtc.log(program, whole))
		snprintf(log, LOG_MAX, "%s", whole);
	free(whole);
	for (char *c = log; *c; c++)
		if (*c == '\n' || *c == '\r' || *c == '\t')
			*c = ' ';
}

static dg_err compile_for(const dg__gpu *gpu, const char *text, const dg__gpu_target *target,
	char **ret_code, dg_error *reterr)
{
	const dg__gpu_rtc_calls *rtc = &gpu->rtc;
	void *program = NULL;
	char *code = NULL, log[LOG_MAX];
	int options = 0;
	size_t size = 0;
	while (target->options[options])
		options++;
	int status = rtc->create(&program, text, "devgate.cu", 0, NULL, NULL);
	if (status)
		return dg_error_native(reterr, DG_EDRIVER, "compiler", status,
			"the run-time compiler makes no program (%d)", status);
	status = rtc->compile(program, options, target->options);
	if (!status)
		status = rtc->code_size(program, &size);
	if (!status && size > 0)
		code = malloc(size + 1);
	if (!status && code)
		status = rtc->code(program, code);
	if (status || !code) {
		read_log(gpu, program, log);
		free(code);
		rtc->destroy(&program);
		return dg_error_native(reterr, DG_EDRIVER, "compiler", status,
			"the run-time compiler failed (%d) with %s: %s", status, target->options[0],
			log);
	}
	code[size] = '\0';
	rtc->destroy(&program);
	*ret_code = code;
	return DG_OK;
}

static dg_err compile(dg__dev *dev, dg__kernel_id id, char **ret_code, dg_error *reterr)
{
	dg__gpu_target targets[TARGETS_MAX] = { 0 };
	dg_err err = dg__gpu_rtc_ready(dev->gpu, reterr);
	if (err)
		return err;
	size_t count = dev->gpu->vendor->targets(dev->gpu, &dev->identity, targets);
	char *text = text_of(id);
	if (!text)
		return dg_error_set(reterr, DG_ENOMEM, NULL);
	err = dg_error_set(reterr, DG_ENOTSUP, "the run-time compiler does not know %s",
		dev->identity.architecture);
	for (size_t i = 0; i < count && err; i++)
		err = compile_for(dev->gpu, text, &targets[i], ret_code, reterr);
	free(text);
	return err;
}

static dg_err load_image(dg__dev *dev, const void *image, void **ret_module, dg_error *reterr)
{
	void *module = NULL;
	int code = dev->gpu->calls.module_load(&module, image);
	if (code)
		return dg__gpu_failed(dev->gpu, code, "loading a kernel", reterr);
	*ret_module = module;
	return DG_OK;
}

/* Code made beforehand for the chip; else the compiler; else what the driver can translate. */
static dg_err make_module(dg__dev *dev, dg__kernel_id id, void **ret_module, dg_error *reterr)
{
	const dg__gpu_vendor *v = dev->gpu->vendor;
	const void *image = v->image(&dev->identity, is_memory(id), true);
	char *code = NULL;
	if (image && load_image(dev, image, ret_module, NULL) == DG_OK)
		return DG_OK;
	dg_err err = compile(dev, id, &code, reterr);
	if (!err)
		err = load_image(dev, code, ret_module, reterr);
	free(code);
	image = v->image(&dev->identity, is_memory(id), false);
	if (err && image && load_image(dev, image, ret_module, NULL) == DG_OK)
		err = DG_OK;
	return err;
}

dg_err dg__gpu_module_get(dg__dev *dev, dg__kernel_id id, void **ret_module, dg_error *reterr)
{
	dg__gpu_module *module = &dev->modules[part_of(id)];
	if (!module->tried) {
		module->tried = true;
		module->error.code = make_module(dev, part_of(id), &module->handle, &module->error);
	}
	if (module->error.code) {
		if (reterr)
			*reterr = module->error;
		return module->error.code;
	}
	*ret_module = module->handle;
	return DG_OK;
}
