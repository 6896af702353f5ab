/*
 * What the two dialects of CUDA C++ spell differently. No header of a vendor is needed: neither
 * run-time compiler has them at hand.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#if defined(__HIP__) || defined(__HIPCC__) || defined(__HIP_PLATFORM_AMD__)
#define ON_AMD 1
#define KERNEL(threads) extern "C" __attribute__((global)) void \
	__attribute__((amdgpu_flat_work_group_size(threads, threads)))
#define DEVICE static __attribute__((device)) inline __attribute__((always_inline))
#define SHARED static __attribute__((shared))
#define THREAD ((u32)__builtin_amdgcn_workitem_id_x())
#define BLOCK ((u32)__builtin_amdgcn_workgroup_id_x())
#define BLOCK_Y ((u32)__builtin_amdgcn_workgroup_id_y())
#define BARRIER() (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), \
	__builtin_amdgcn_s_barrier(), __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))
#define ADD_TO(word, sum) __atomic_fetch_add((word), (sum), __ATOMIC_RELAXED)
#define HIGH(x, y) ((u32)((u64)(x) * (y) >> 32))
#else
#define ON_AMD 0
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define DEVICE static __device__ __forceinline__
#define SHARED __shared__
#define THREAD (threadIdx.x)
#define BLOCK (blockIdx.x)
#define BLOCK_Y (blockIdx.y)
#define BARRIER() __syncthreads()
#define ADD_TO(word, sum) atomicAdd((word), (sum))
#define HIGH(x, y) __umulhi((x), (y))
#endif

/* Reassociation would save operations that are to be counted: each result is made opaque. */
#if ON_AMD
#define OPAQUE(x) asm volatile("" : "+v"(x))
#else
#define OPAQUE(x) asm volatile("" : "+r"(x))
#endif
