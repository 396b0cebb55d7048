/* Matrices of 8 x 8 halves that a warp loads from shared memory, as operands of tensor cores. */
#ifndef HG_KERNELS_CUDA_LDMATRIX_CUH
#define HG_KERNELS_CUDA_LDMATRIX_CUH

#include "kernels/cuda/launch.cuh"

static __device__ inline unsigned shared_address(const void *p)
{
	return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
/* Four matrices of 8 x 8 halves from shared memory; each lane has the address of one of the 32
 * rows. With FLIPPED each is transposed. */
template <bool FLIPPED = false> static __device__ inline uint4 load_matrices(unsigned address)
{
	uint4 m;
	if constexpr (FLIPPED)
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
		             : "=r"(m.x), "=r"(m.y), "=r"(m.z), "=r"(m.w)
		             : "r"(address)
		             : "memory");
	else
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		             : "=r"(m.x), "=r"(m.y), "=r"(m.z), "=r"(m.w)
		             : "r"(address)
		             : "memory");
	return m;
}
/* Two of them. Lanes 0 to 15 have the addresses of the rows. */
static __device__ inline uint2 load_two_matrices(unsigned address)
{
	uint2 m;
	asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
	             : "=r"(m.x), "=r"(m.y)
	             : "r"(address)
	             : "memory");
	return m;
}

#endif
