/* The kernels' text, put in by the assembler: no compiler limit on strings, no generated file. */
#include "backends/gpu/gpu.h"

#ifdef __APPLE__
#define SECTION ".section __TEXT,__const\n"
#define NAME(name) "_" #name
#define BACK ".text\n"
#else
#define SECTION ".pushsection .rodata\n"
#define NAME(name) #name
#define BACK ".popsection\n"
#endif

#define TEXT(name, file) \
	__asm__(SECTION ".globl " NAME(name) "\n" NAME(name) ":\n.incbin \"" file \
							     "\"\n.byte 0\n" BACK)

TEXT(dg__gpu_text_dialect, "backends/gpu/kernels/dialect.cuh");
TEXT(dg__gpu_text_arith, "backends/gpu/kernels/arith.cu");
TEXT(dg__gpu_text_memory, "backends/gpu/kernels/memory.cu");
