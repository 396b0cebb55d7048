/* Products of rows of halves with a short matrix on tensor cores, C [n, d] = A [n, k] B [k, d].
 *
 * A warp takes 16 rows of A at a time. 32 columns of a row are a chunk: lane (g, t) = 4 g + t has
 * columns 8t .. 8t + 7 of rows g and g + 8, which is the operand A of two products. 32 columns of C
 * are a block, which takes four products j side by side: the lane ends with columns 8t + 2j and
 * 8t + 2j + 1 of its rows, for all j one pack. B is in shared memory in the order in which lanes
 * load it. */
#ifndef HG_KERNELS_CUDA_TALL_ROWS_CUH
#define HG_KERNELS_CUDA_TALL_ROWS_CUH

#include "kernels/cuda/tensor_core.cuh"

namespace
{

constexpr int CHUNK = 32;

__device__ inline uint4 load_pack(const __half *p)
{
	return __ldg(reinterpret_cast<const uint4 *>(p));
}

/* A mask that keeps the first `count` halves of a pack. */
__device__ inline uint4 keep_first(int count)
{
	unsigned word[4];
#pragma unroll
	for (int i = 0; i < 4; i++)
		word[i] = (2 * i < count ? 0xffffu : 0u) | (2 * i + 1 < count ? 0xffff0000u : 0u);
	return make_uint4(word[0], word[1], word[2], word[3]);
}

__device__ inline uint4 masked(const uint4 &p, const uint4 &keep)
{
	return make_uint4(p.x & keep.x, p.y & keep.y, p.z & keep.z, p.w & keep.w);
}

/* B [k, d], as it is in memory or transposed. */
struct short_matrix {
	const __half *at;
	int64_t ld;
	int k, d;
	bool transposed;
	bool in_packs; /* rows in memory can be read 8 columns at a time, also behind the last one */

	/* The operand of a lane for chunk c, block b and product j: 8 values of column 32 b + 8 (g / 2)
	 * + 2 j + g % 2. It is zero outside k and d. */
	__device__ uint4 operand(int c, int b, int j, int lane) const
	{
		const int g = lane / 4, t = lane % 4, row = CHUNK * c + 8 * t,
		          col = CHUNK * b + 8 * (g / 2) + 2 * j + g % 2;
		if (transposed && in_packs) {
			const uint4 keep = keep_first(col < d ? k - row : 0);
			const uint4 v =
			    col < d && row < k ? load_pack(at + col * ld + row) : make_uint4(0, 0, 0, 0);
			return masked(v, keep);
		}
		__half v[8];
#pragma unroll
		for (int e = 0; e < 8; e++)
			v[e] = row + e < k && col < d
			           ? at[transposed ? col * ld + row + e : (row + e) * ld + col]
			           : __half(0.0f);
		uint4 bits;
		memcpy(&bits, v, sizeof bits);
		return bits;
	}
	/* Writes all operands to shared memory, [chunk][block][j][lane], by all threads of a block. If
	 * B is not transposed it is read a pack at a time, whose columns go to eight operands. */
	__device__ void fill(uint4 *to, int chunks, int blocks, int thread, int threads) const
	{
		if (transposed || !in_packs) {
#pragma unroll 2
			for (int i = thread; i < chunks * blocks * 128; i += threads)
				to[i] = operand(i / (128 * blocks), i / 128 % blocks, i / 32 % 4, i % 32);
			return;
		}
		const int packs = 4 * blocks;
#pragma unroll 2
		for (int i = thread; i < CHUNK * chunks * packs; i += threads) {
			const int row = i / packs, pack = i % packs, c = row / CHUNK, t = row % CHUNK / 8,
			          b = pack / 4;
			__half v[8];
			const uint4 bits = row < k && 8 * pack < d ? load_pack(at + row * ld + 8 * pack)
			                                           : make_uint4(0, 0, 0, 0);
			memcpy(static_cast<void *>(v), &bits, sizeof v);
#pragma unroll
			for (int e = 0; e < 8; e++) {
				const int lane = 4 * (pack % 4 * 2 + e % 2) + t;
				reinterpret_cast<__half *>(to + ((c * blocks + b) * 4 + e / 2) * 32 +
				                           lane)[row % 8] = 8 * pack + e < d ? v[e] : __half(0.0f);
			}
		}
	}
};
inline struct short_matrix short_matrix_of(const struct hg__mat &b, bool transposed)
{
	const int rows = static_cast<int>(b.rows), cols = static_cast<int>(b.cols);
	return {static_cast<const __half *>(b.data),
	        b.ld,
	        transposed ? cols : rows,
	        transposed ? rows : cols,
	        transposed,
	        b.ld % 8 == 0 && reinterpret_cast<uintptr_t>(b.data) % 16 == 0};
}

/* Chunk c of one block of C: of the lane's packs of rows g (low) and g + 8 (high) with four
 * operands of B. */
__device__ inline void multiply_chunk(float (&sum)[4][4], const uint4 &low, const uint4 &high,
                                      const uint4 *b, int lane)
{
#pragma unroll
	for (int j = 0; j < 4; j++) {
		const uint4 of = b[j * 32 + lane];
		multiply(sum[j], make_uint4(low.x, high.x, low.y, high.y), of.x, of.y);
		multiply(sum[j], make_uint4(low.z, high.z, low.w, high.w), of.z, of.w);
	}
}

} // namespace

#endif
