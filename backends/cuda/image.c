/*
 * Kernels made beforehand, where nvcc was there when devgate was built: DG_CUDA_IMAGES is then the
 * folder of the two files, DG_CUDA_IMAGE_CHIPS the compute capabilities (90 for 9.0) in them.
 */
#include "backends/cuda/cuda.h"

#ifdef DG_CUDA_IMAGES

#define IMAGE(name, file) \
	__asm__(".pushsection .nv_fatbin,\"a\"\n.balign 16\n.globl " #name "\n" #name \
		":\n.incbin \"" file "\"\n.popsection\n"); \
	extern const unsigned char name[]

IMAGE(dg__cuda_image_arith, DG_CUDA_IMAGES "/arith.fatbin");
IMAGE(dg__cuda_image_memory, DG_CUDA_IMAGES "/memory.fatbin");

const void *dg__cuda_image(const dg__gpu_identity *who, bool memory, bool exact)
{
	static const unsigned chips[] = { DG_CUDA_IMAGE_CHIPS };
	unsigned chip = who->major * 10 + who->minor;
	bool found = false;
	for (size_t i = 0; i < DG__GPU_COUNT(chips); i++)
		found = found || chips[i] == chip;
	if (exact && !found)
		return NULL;
	return memory ? dg__cuda_image_memory : dg__cuda_image_arith;
}

#else

const void *dg__cuda_image(const dg__gpu_identity *who, bool memory, bool exact)
{
	(void)who;
	(void)memory;
	(void)exact;
	return NULL;
}

#endif
