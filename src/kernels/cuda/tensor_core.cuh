/* One tensor-core product of a warp, with the layout of its operands. */
#ifndef HG_KERNELS_CUDA_TENSOR_CORE_CUH
#define HG_KERNELS_CUDA_TENSOR_CORE_CUH

#include "kernels/cuda/launch.cuh"

/* C += A B with A [16, 16] and B [16, 8], by one warp. Products are exact; sums are aligned and
 * truncated as kernels.h says for sddmm_dot. The asm is volatile, because the compiler must not
 * move it into code that only some lanes execute. Lane 4 g + t holds pairs of halves:
 *
 *     A    a.x = [g, 2t and 2t + 1], a.y = [g + 8, the same], a.z and a.w = [g and g + 8, 2t + 8
 *          and 2t + 9]
 *     B    b0 = [2t and 2t + 1, g], b1 = [2t + 8 and 2t + 9, g]
 *     C    [g, 2t], [g, 2t + 1], [g + 8, 2t], [g + 8, 2t + 1] */
static __device__ inline void multiply(float (&c)[4], const uint4 &a, unsigned b0, unsigned b1)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, "
	             "%7}, {%8, %9}, {%0, %1, %2, %3};"
	             : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
	             : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

#endif
