/* Row-wise kernels. A sub-warp of 1 to 32 neighbouring lanes, a power of two, has a row:
 * threadIdx.x is the lane, blockDim.x the number of lanes, threadIdx.y the row within the block.
 * All threads of a block take every step together, so that shuffles see whole warps. Rows past the
 * end are not `live` and read nothing. */
#ifndef HG_KERNELS_CUDA_ROWS_CUH
#define HG_KERNELS_CUDA_ROWS_CUH

#include "kernels/cuda/totals.cuh"

/* Butterflies over the sub-warp, with the same bits in every lane. */
static __device__ inline float row_sum(float x)
{
	for (int step = static_cast<int>(blockDim.x) / 2; step > 0; step /= 2)
		x += __shfl_xor_sync(0xffffffffu, x, step);
	return x;
}
static __device__ inline float row_max(float x)
{
	for (int step = static_cast<int>(blockDim.x) / 2; step > 0; step /= 2)
		x = max_nan(x, __shfl_xor_sync(0xffffffffu, x, step));
	return x;
}

template <int W, typename F> static __global__ void rows_kernel(int64_t rows, F f)
{
	after_previous();
	const int64_t down = static_cast<int64_t>(gridDim.x) * blockDim.y;
	for (int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y; first < rows;
	     first += down) {
		const int64_t row = first + threadIdx.y;
		f.template row<W>(row, row < rows);
	}
}
/* Calls f.row<W>(row, live) for every row, in sub-warps sized for `cols` columns. */
template <typename F>
static hg_status each_row(hg_context *ctx, const char *kernel, int64_t rows, int64_t cols,
                          bool by_eight, const F &f)
{
	if (rows == 0 || cols == 0)
		return HG_OK;
	return with_width(by_eight, [&](auto width) {
		constexpr int W = decltype(width)::value;
		const dim3 block = tile_of(rows, cols, W, INT32_MAX).block;
		return launch(ctx, kernel, rows_kernel<W, F>, grid_for(rows, block.y), block, rows, f);
	});
}

template <int W, typename P, typename F>
static __global__ void row_totals_kernel(int64_t rows, F f, struct partial_results<P> at)
{
	after_previous();
	const int64_t down = static_cast<int64_t>(gridDim.x) * blockDim.y;
	P mine = {};
	for (int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y; first < rows;
	     first += down) {
		const int64_t row = first + threadIdx.y;
		f.template row<W>(row, row < rows, mine);
	}
	fold_blocks(mine, at, blockIdx.x, gridDim.x, f);
}
/* f.row<W>(row, live, mine) adds the contribution of a row, in lane 0 alone. f.finish(total) writes
 * the result, also if there are no rows. */
template <typename P, typename F>
static hg_status row_totals(hg_context *ctx, const char *kernel, int64_t rows, int64_t cols,
                            bool by_eight, const F &f)
{
	struct partial_results<P> at;
	HG__TRY(reserve_partials(ctx, REDUCE_BLOCKS, &at));
	return with_width(by_eight, [&](auto width) {
		constexpr int W = decltype(width)::value;
		const dim3 block = tile_of(rows, cols, W, REDUCE_BLOCKS).block;
		const int64_t wanted = grid_for(rows, block.y),
		              blocks = wanted < REDUCE_BLOCKS ? wanted : REDUCE_BLOCKS;
		return launch(ctx, kernel, row_totals_kernel<W, P, F>, static_cast<unsigned>(blocks), block,
		              rows, f, at);
	});
}

#endif
