/* Moments of columns, their mean and the sum of squares about it, and how those of several runs of
 * rows are merged (Chan, Golub, LeVeque 1979). For two runs a and b of c_a and c_b rows
 *
 *     d = mean_b - mean_a
 *     mean = mean_a + d c_b / (c_a + c_b)
 *     squares = squares_a + squares_b + d^2 c_a c_b / (c_a + c_b)
 *
 * No two large numbers cancel here. A merge rounds the mean by u32 |mean|, and there are fewer than
 * n merges of n rows. */
#ifndef HG_KERNELS_CUDA_MOMENTS_CUH
#define HG_KERNELS_CUDA_MOMENTS_CUH

#include "kernels/cuda/batch_norm.cuh"

namespace
{

template <int W> struct moments {
	float count, mean[W], squares[W];

	/* Merges moments of rows that follow these. */
	__device__ void merge(const moments &b)
	{
		const float both = count + b.count, share = both > 0.0f ? b.count / both : 0.0f;
#pragma unroll
		for (int i = 0; i < W; i++) {
			const float d = b.mean[i] - mean[i];
			mean[i] += d * share;
			squares[i] += b.squares[i] + d * d * (count * share);
		}
		count = both;
	}
};

/* Many moments of one column are merged at once, which takes no chain of divisions and is as
 * accurate: mean = sum c m / n, and squares = sum (q + c (m - mean)^2). */

/* Merges the moments of the threads of a block. The result is that of column threadIdx.y of the
 * pack, valid where threadIdx.y < W. All threads must call it, once in a kernel. */
template <int W> __device__ struct moments<1> block_moments(const struct moments<W> &mine) {
	__shared__ float count[BLOCK], mean[BLOCK * W], squares[BLOCK * W]; /* [y][x], [y][x][W] */
	const unsigned width = blockDim.x, here = threadIdx.y * width + threadIdx.x;
	count[here] = mine.count;
#pragma unroll
	for (int i = 0; i < W; i++) {
		mean[here * W + i] = mine.mean[i];
		squares[here * W + i] = mine.squares[i];
	}
	__syncthreads();
	struct moments<1> all = {
	};
	if (threadIdx.y >= W)
		return all;
	float sum = 0.0f;
#pragma unroll 8
	for (unsigned y = 0; y < blockDim.y; y++) {
		const unsigned at = y * width + threadIdx.x;
		all.count += count[at];
		sum += count[at] * mean[at * W + threadIdx.y];
	}
	all.mean[0] = all.count > 0.0f ? sum / all.count : 0.0f;
#pragma unroll 8
	for (unsigned y = 0; y < blockDim.y; y++) {
		const unsigned at = y * width + threadIdx.x;
		const float d = mean[at * W + threadIdx.y] - all.mean[0];
		all.squares[0] += squares[at * W + threadIdx.y] + count[at] * (d * d);
	}
	return all;
}

/* A part has stored mean and squares of its rows. This is its end among the rows that count. */
__device__ inline int64_t
end_of(const struct column_parts &p, int64_t part, int64_t rows)
{
	const int64_t begin = part * p.each, end = begin + p.each < rows ? begin + p.each : rows;
	return end > begin ? end : begin; /* a part may lie behind the rows that count */
}

/* A block of merge_kernel has MERGED columns. A thread has four of them, of every SLICES-th part.
 */
constexpr int MERGED = 8, QUADS = MERGED / 4, SLICES = BLOCK / QUADS,
              EACH = static_cast<int>(COLUMN_BLOCKS) / SLICES;
static_assert(EACH * SLICES == COLUMN_BLOCKS, "all parts");

/* Adds up four columns over the slices, with the same bits in all threads of a quad. */
__device__ inline void over_slices(float (&v)[4])
{
	__shared__ float room[BLOCK / 32][MERGED];
	const int thread = static_cast<int>(threadIdx.x), quad = thread % QUADS;
#pragma unroll
	for (int i = 0; i < 4; i++) {
#pragma unroll
		for (int step = QUADS; step < 32; step *= 2)
			v[i] += __shfl_xor_sync(0xffffffffu, v[i], step);
	}
	__syncthreads(); /* another thread may still be reading the result of an earlier call */
	if (thread % 32 < QUADS)
#pragma unroll
		for (int i = 0; i < 4; i++)
			room[thread / 32][quad * 4 + i] = v[i];
	__syncthreads();
#pragma unroll
	for (int i = 0; i < 4; i++) {
		v[i] = 0.0f;
#pragma unroll
		for (int w = 0; w < BLOCK / 32; w++)
			v[i] += room[w][quad * 4 + i];
	}
}

/* Four columns, or as many as are left. */
__device__ inline void load_four(const float *p, int64_t left, float (&v)[4])
{
	if (left >= 4) {
		const float4 q = *reinterpret_cast<const float4 *>(p);
		v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
		return;
	}
	for (int i = 0; i < 4; i++)
		v[i] = i < left ? p[i] : 0.0f;
}

/* Merges the parts and records the statistics. */
static __global__ void __launch_bounds__(BLOCK)
    merge_kernel(const struct column_parts p, int64_t cols, const struct statistics all)
{
	after_previous();
	const struct statistics f = all.count();
	const int thread = static_cast<int>(threadIdx.x), slice = thread / QUADS;
	const int64_t first = static_cast<int64_t>(blockIdx.x) * MERGED,
	              col = first + thread % QUADS * 4;
	const bool own = thread < MERGED && first + thread < cols;
	const struct running old = own ? f.load_running(first + thread) : running{};
	float mean[EACH][4] = {}, squares[EACH][4] = {}, count[EACH] = {}, sum[4] = {}, rest[4] = {};
#pragma unroll
	for (int k = 0; k < EACH; k++) {
		const int64_t part = slice + k * SLICES;
		if (part >= p.parts || col >= p.pitch)
			continue;
		const float *at = p.partial + part * 2 * p.pitch + col;
		count[k] = static_cast<float>(end_of(p, part, f.rows) - part * p.each);
		load_four(at, p.pitch - col, mean[k]);
		load_four(at + p.pitch, p.pitch - col, squares[k]);
	}
#pragma unroll
	for (int k = 0; k < EACH; k++)
#pragma unroll
		for (int i = 0; i < 4; i++)
			sum[i] += count[k] > 0.0f ? count[k] * mean[k][i] : 0.0f;
	over_slices(sum);
#pragma unroll
	for (int i = 0; i < 4; i++)
		sum[i] *= over(f.rows);
#pragma unroll
	for (int k = 0; k < EACH; k++)
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const float d = mean[k][i] - sum[i];
			rest[i] += count[k] > 0.0f ? squares[k][i] + count[k] * (d * d) : 0.0f;
		}
	over_slices(rest);
	__shared__ float means[MERGED], all_squares[MERGED];
	if (thread < QUADS)
#pragma unroll
		for (int i = 0; i < 4; i++) {
			means[thread * 4 + i] = sum[i];
			all_squares[thread * 4 + i] = rest[i];
		}
	__syncthreads();
	if (own)
		f.record(first + thread, means[thread], all_squares[thread], old);
}

/* Queues merge_kernel for parts that an earlier kernel stores. */
inline hg_status merge_moments(hg_context *ctx, const struct column_parts &p, int64_t cols,
                               const struct statistics &f)
{
	return launch(ctx, "batch_norm: statistics", merge_kernel, grid_for(cols, MERGED), BLOCK, p,
	              cols, f);
}

} // namespace

#endif
