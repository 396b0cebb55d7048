/* What the files that build graphs on the device share: degrees and the factors that follow from
 * them, bits of keys, and grids. */
#ifndef HG_KERNELS_CUDA_BUILD_CUH
#define HG_KERNELS_CUDA_BUILD_CUH

#include "kernels/cuda/launch.cuh"

/* Degree 0 counts as 1. */
static __device__ inline double degree(const int64_t *ptr, int64_t i)
{
	const int64_t d = ptr[i + 1] - ptr[i];
	return static_cast<double>(d > 0 ? d : 1);
}

/* r_i or c_j as core/graph_facts.c computes them: powers of the degree in f64, rounded to f32. */
static __device__ inline float inverse_of_degree(double degree)
{
	return static_cast<float>(1.0 / degree);
}
static __device__ inline float root_of_degree(double degree)
{
	return static_cast<float>(1.0 / sqrt(degree));
}

/* Bits that a radix sort of numbers up to `largest` must process; at least one. */
static inline int bits_of(uint64_t largest)
{
	int bits = 1;
	while (largest >>= 1)
		bits++;
	return bits;
}

/* Enough blocks for any device; the kernels loop over the rest. */
static inline unsigned few_blocks(int64_t items)
{
	const unsigned blocks = grid_for(items, BLOCK);
	return blocks < 4096u ? blocks : 4096u;
}

#endif
