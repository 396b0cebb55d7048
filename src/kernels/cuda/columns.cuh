#ifndef HG_KERNELS_CUDA_COLUMNS_CUH
#define HG_KERNELS_CUDA_COLUMNS_CUH

/* K sums for each column of a matrix, f32: blocks of rows, each summed in a fixed order, then the blocks, by the last of them to be ready (totals.cuh). */

#include "kernels/cuda/totals.cuh"

/* Add up acc over the y threads of a block, in a tree; the sums are valid where threadIdx.y == 0. May be called again at once. */
template <int K, int W> static __device__ void block_columns(float (&acc)[K][W])
{
	__shared__ float part[K * W][BLOCK];
	const int t = thread_in_block();
	__syncthreads(); /* an earlier call may still be reading */
#pragma unroll
	for (int k = 0; k < K; k++)
#pragma unroll
		for (int i = 0; i < W; i++)
			part[k * W + i][t] = acc[k][i];
	for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
		__syncthreads();
		if (threadIdx.y < half)
#pragma unroll
			for (int j = 0; j < K * W; j++)
				part[j][t] += part[j][t + half * blockDim.x];
	}
	/* A thread of row 0 reads what it wrote last itself. */
#pragma unroll
	for (int k = 0; k < K; k++)
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[k][i] = part[k * W + i][t];
}

/* Blocks in all, at most. Four for each of 108 to 148 multiprocessors, each thread with four packs of 16 bytes in flight, are 64 kB on their way to every
 * multiprocessor, more than bandwidth times latency (4.3 TB/s * 0.7 us / 132 = 23 kB); more blocks would only leave more for the last one to add up. */
constexpr int64_t COLUMN_BLOCKS = 512;
/* With more than one part there are at most COLUMN_BLOCKS / 2 tiles, each of which has its own counter. */
static_assert(COUNTERS >= COLUMN_BLOCKS / 2, "a counter for each tile");

/* A matrix as `tiles` stripes of columns, each cut into `parts` blocks of rows. Where a block puts its sums: partial[part][k][column], columns `pitch` wide. */
struct column_parts {
	int64_t tiles, parts, pitch;
	float *partial;
	unsigned *counters;
};

/* Sums of the parts of this block's tile: thread row y adds parts y, y + blockDim.y, ... */
template <int W, int K> static __device__ void add_parts(const struct column_parts &p, int64_t col, float (&acc)[K][W])
{
#pragma unroll 4
	for (int64_t part = threadIdx.y; part < p.parts; part += blockDim.y)
#pragma unroll
		for (int k = 0; k < K; k++) {
			float v[W];
			load<W>(p.partial + (part * K + k) * p.pitch + col, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				acc[k][i] += v[i];
		}
}

template <int W, int K, typename F> static __global__ void __launch_bounds__(BLOCK) columns_kernel(int64_t rows, int64_t cols, struct column_parts p, F f)
{
	const int64_t part = blockIdx.x / p.tiles, tile = blockIdx.x % p.tiles;
	const int64_t col = (tile * blockDim.x + threadIdx.x) * W;
	const int64_t begin = rows * part / p.parts, end = rows * (part + 1) / p.parts;
	float acc[K][W] = {};
	if (col < cols)
#pragma unroll 4
		for (int64_t row = begin + threadIdx.y; row < end; row += blockDim.y)
			f.template add<W>(row, col, acc);
	block_columns(acc);
	if (p.parts > 1) {
		if (threadIdx.y == 0 && col < cols)
#pragma unroll
			for (int k = 0; k < K; k++)
				store<W>(p.partial + (part * K + k) * p.pitch + col, acc[k]);
		if (!is_last(p.counters + tile, static_cast<unsigned>(p.parts)))
			return;
		memset(static_cast<void *>(acc), 0, sizeof acc);
		if (col < cols)
			add_parts<W>(p, col, acc);
		block_columns(acc);
	}
	if (threadIdx.y != 0)
		return;
#pragma unroll
	for (int i = 0; i < W; i++) {
		float sum[K];
#pragma unroll
		for (int k = 0; k < K; k++)
			sum[k] = acc[k][i];
		if (col + i < cols)
			f.finish(col + i, sum);
	}
}

/* f.add<W>(row, col, acc[K][W]) adds a pack of a row; f.finish(col, sum[K]) receives the sums of one column, also when there are no rows.
 * Every thread adds about rows / (parts * y) packs, at least the 4 that it has in flight at once where the matrix has them. */
template <int K, typename F> static hg_status columns(hg_context *ctx, const char *kernel, int64_t rows, int64_t cols, bool by_eight, const F &f)
{
	if (cols == 0)
		return HG_OK;
	return with_width(by_eight, [&](auto width) {
		constexpr int W = decltype(width)::value;
		const dim3 block = tile_of(rows, cols, W, COLUMN_BLOCKS).block;
		struct column_parts p;
		p.tiles = grid_for(cols, static_cast<int64_t>(block.x) * W);
		p.pitch = hg__leading(cols);
		const int64_t most = p.tiles < COLUMN_BLOCKS ? COLUMN_BLOCKS / p.tiles : 1, wanted = grid_for(rows, static_cast<int64_t>(block.y) * 4);
		p.parts = wanted < most ? wanted : most;
		void *memory;
		HG__TRY(hg__workspace(ctx, static_cast<size_t>(p.parts * K * p.pitch) * sizeof(float), &memory));
		p.partial = static_cast<float *>(memory);
		p.counters = counters_of(ctx);
		columns_kernel<W, K><<<static_cast<unsigned>(p.tiles * p.parts), block, 0, stream_of(ctx)>>>(rows, cols, p, f);
		return launched(ctx, kernel);
	});
}

#endif
