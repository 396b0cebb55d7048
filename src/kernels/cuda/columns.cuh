#ifndef HG_KERNELS_CUDA_COLUMNS_CUH
#define HG_KERNELS_CUDA_COLUMNS_CUH

/* K sums for each column of a matrix, f32: blocks of rows, each summed in a fixed order, then the blocks (totals.cuh says why in two stages). */

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

/* Where the partial sums of a block go: partial[part][k][column], columns `pitch` wide. */
struct column_parts {
	int64_t tiles, parts, pitch;
};

template <int W, int K, typename F> static __global__ void columns_kernel(int64_t rows, int64_t cols, struct column_parts p, F f, float *partial)
{
	const int64_t part = blockIdx.x / p.tiles, tile = blockIdx.x % p.tiles;
	const int64_t col = (tile * blockDim.x + threadIdx.x) * W;
	const int64_t begin = rows * part / p.parts, end = rows * (part + 1) / p.parts;
	float acc[K][W] = {};
	if (col < cols)
#pragma unroll 2
		for (int64_t row = begin + threadIdx.y; row < end; row += blockDim.y)
			f.template add<W>(row, col, acc);
	block_columns(acc);
	if (threadIdx.y == 0 && col < cols)
#pragma unroll
		for (int k = 0; k < K; k++)
			store<W>(partial + (part * K + k) * p.pitch + col, acc[k]);
}

constexpr int FOLD_COLUMNS = 32, FOLD_SLICES = BLOCK / FOLD_COLUMNS;

/* Slice y adds parts y, y + 8, ... ; then the slices are added in order. */
template <int K, typename F> static __global__ void columns_fold(int64_t cols, struct column_parts p, const float *partial, F f)
{
	__shared__ float slice[K][FOLD_SLICES][FOLD_COLUMNS];
	const int64_t col = static_cast<int64_t>(blockIdx.x) * FOLD_COLUMNS + threadIdx.x;
	float sum[K] = {};
	if (col < cols)
#pragma unroll 4
		for (int64_t part = threadIdx.y; part < p.parts; part += FOLD_SLICES)
#pragma unroll
			for (int k = 0; k < K; k++)
				sum[k] += partial[(part * K + k) * p.pitch + col];
#pragma unroll
	for (int k = 0; k < K; k++)
		slice[k][threadIdx.y][threadIdx.x] = sum[k];
	__syncthreads();
	if (threadIdx.y != 0 || col >= cols)
		return;
#pragma unroll
	for (int k = 0; k < K; k++)
		for (int y = 1; y < FOLD_SLICES; y++)
			sum[k] += slice[k][y][threadIdx.x];
	f.finish(col, sum);
}

/* f.add<W>(row, col, acc[K][W]) adds a pack of a row; f.finish(col, sum[K]) receives the sums of one column, also when there are no rows.
 * Every thread adds about rows / (parts * y) numbers, at least 8 where the matrix has them, so that reading outweighs the fold. */
template <int K, typename F> static hg_status columns(hg_context *ctx, const char *kernel, int64_t rows, int64_t cols, bool by_eight, const F &f)
{
	if (cols == 0)
		return HG_OK;
	return with_width(by_eight, [&](auto width) {
		constexpr int W = decltype(width)::value;
		const dim3 block = tile_of(rows, cols, W, REDUCE_BLOCKS).block;
		struct column_parts p;
		p.tiles = grid_for(cols, static_cast<int64_t>(block.x) * W);
		p.pitch = hg__leading(cols);
		const int64_t most = p.tiles < REDUCE_BLOCKS ? REDUCE_BLOCKS / p.tiles : 1, wanted = grid_for(rows, static_cast<int64_t>(block.y) * 8);
		p.parts = wanted < most ? wanted : most;
		void *memory;
		HG__TRY(hg__workspace(ctx, static_cast<size_t>(p.parts * K * p.pitch) * sizeof(float), &memory));
		float *partial = static_cast<float *>(memory);
		columns_kernel<W, K><<<static_cast<unsigned>(p.tiles * p.parts), block, 0, stream_of(ctx)>>>(rows, cols, p, f, partial);
		HG__TRY(launched(ctx, kernel));
		columns_fold<K><<<grid_for(cols, FOLD_COLUMNS), dim3(FOLD_COLUMNS, FOLD_SLICES), 0, stream_of(ctx)>>>(cols, p, partial, f);
		return launched(ctx, kernel);
	});
}

#endif
