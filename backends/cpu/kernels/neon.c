/* Kernels in NEON. See kernels.h. */
#include "backends/cpu/kernels/kernels.h"

const dg__kernel_set dg__kernels_neon;
