/* The matrices of a bin in the registers of a warp, for small_layers.
 *
 * Tensor-core products chain. The result C of one product (tensor_core.cuh), narrowed, is the
 * operand B of the next one as it lies in the registers, with its two directions exchanged. So the
 * rows of a bin go to and fro between two layouts:
 *
 *     by_node      C [node, feature]: a register has two features of a node
 *     by_feature   C [feature, node]: a register has two nodes of a feature
 *
 * WIDE is the number of feature tiles: 2 for rows of 32 columns, 4 for 64. */
#ifndef HG_KERNELS_CUDA_SMALL_LAYERS_MATRICES_CUH
#define HG_KERNELS_CUDA_SMALL_LAYERS_MATRICES_CUH

#include "core/bins.h"
#include "kernels/cuda/ldmatrix.cuh"

namespace small
{

constexpr int TILE = 16, TILES = HG__BIN_ROWS / TILE; /* of the nodes of a bin */

template <int WIDE> struct by_node {
	unsigned at[TILES][WIDE][2][2]; /* [node tile][feature tile][node half][feature half] */
};
template <int WIDE> struct by_feature {
	unsigned at[WIDE][TILES][2][2]; /* [feature tile][node tile][feature half][node half] */
};

/* Transposes one matrix of 8 x 8 halves that lies in a register of the warp. */
static __device__ inline unsigned flip(unsigned m)
{
	unsigned flipped;
	asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(flipped) : "r"(m));
	return flipped;
}
/* Stores four matrices of 8 x 8 halves that lie in registers. Each takes 128 bytes, a row of it 16.
 * With FLIPPED each is transposed. at: shared memory, the same for all lanes. */
template <bool FLIPPED = false>
static __device__ inline void store_matrices(unsigned at, unsigned a, unsigned b, unsigned c,
                                             unsigned d)
{
	const unsigned lane = threadIdx.x % 32;
#if __CUDA_ARCH__ >= 900
	if constexpr (FLIPPED)
		asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
		                 at + lane * 16),
		             "r"(a), "r"(b), "r"(c), "r"(d)
		             : "memory");
	else
		asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
		                 at + lane * 16),
		             "r"(a), "r"(b), "r"(c), "r"(d)
		             : "memory");
#else
	const unsigned m[4] = {a, b, c, d};
#pragma unroll
	for (int i = 0; i < 4; i++)
		asm volatile("st.shared.b32 [%0], %1;" ::"r"(at + i * 128 + lane * 4),
		             "r"(FLIPPED ? flip(m[i]) : m[i])
		             : "memory");
#endif
}
template <int WIDE>
static __device__ inline void flip(const struct by_node<WIDE> &from, struct by_feature<WIDE> &to)
{
#pragma unroll
	for (int t = 0; t < TILES; t++)
#pragma unroll
		for (int w = 0; w < WIDE; w++)
#pragma unroll
			for (int n = 0; n < 2; n++)
#pragma unroll
				for (int f = 0; f < 2; f++)
					to.at[w][t][f][n] = flip(from.at[t][w][n][f]);
}
template <int WIDE>
static __device__ inline void flip(const struct by_feature<WIDE> &from, struct by_node<WIDE> &to)
{
#pragma unroll
	for (int t = 0; t < TILES; t++)
#pragma unroll
		for (int w = 0; w < WIDE; w++)
#pragma unroll
			for (int n = 0; n < 2; n++)
#pragma unroll
				for (int f = 0; f < 2; f++)
					to.at[t][w][n][f] = flip(from.at[w][t][f][n]);
}
/* Two numbers, after relu or not, as halves. A NaN stays one. */
template <bool RELU = false> static __device__ inline unsigned narrow_pair(float low, float high)
{
	unsigned pair;
	if constexpr (RELU)
		asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
	else
		asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
	return pair;
}
/* Two halves as numbers. */
static __device__ inline float2 wide_pair(unsigned pair)
{
	__half2 halves;
	memcpy(&halves, &pair, sizeof halves);
	return __half22float2(halves);
}

/* D = C + A B, with the layout of tensor_core.cuh. Unlike there the asm is not volatile, so that
 * the compiler can order independent products (measured: 0.19 to 0.17 ms a step of 12 layers). It
 * must not move one into code that only some lanes execute, so no result of a product is used only
 * there: rows are stored behind a loop over layers, or behind flip(). */
static __device__ inline void multiply(float (&d)[4], const float (&c)[4], const uint4 &a,
                                       unsigned b0, unsigned b1)
{
	asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
	    "{%8, %9}, {%10, %11, %12, %13};"
	    : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
	    : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]),
	      "f"(c[3]));
}
static __device__ inline void multiply(float (&d)[4], const uint4 &a, unsigned b0, unsigned b1)
{
	multiply(d, d, a, b0, b1);
}

} // namespace small

#endif
