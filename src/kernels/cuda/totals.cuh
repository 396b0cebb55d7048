#ifndef HG_KERNELS_CUDA_TOTALS_CUH
#define HG_KERNELS_CUDA_TOTALS_CUH

/* One number (or a small struct) for a whole matrix, in two stages without atomics: a grid whose size follows from the shape alone writes one partial
 * result a block to the workspace, a second kernel adds them in a fixed order. The result depends neither on timing nor on the device. */

#include "kernels/cuda/map.cuh"

/* Blocks of a first stage, at most: a multiprocessor holds 2048 / BLOCK = 8 blocks, a large GPU has 108 to 148 of them; 1024 fill it about once, and the
 * second stage has little to read. */
constexpr int64_t REDUCE_BLOCKS = 1024;

static __device__ inline int thread_in_block()
{
	return static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
}

/* Total over a block of BLOCK threads, a tree of fixed shape; P has add(const P &), and all bits zero is its neutral element. Call once per kernel. */
template <typename P> static __device__ P block_total(const P &mine)
{
	__shared__ P part[BLOCK];
	const int t = thread_in_block();
	part[t] = mine;
	__syncthreads();
	for (int half = BLOCK / 2; half > 0; half /= 2) {
		if (t < half)
			part[t].add(part[t + half]);
		__syncthreads();
	}
	return part[0];
}

template <typename P, typename F> static __global__ void fold_kernel(const P *partial, int64_t count, F f)
{
	P mine = {};
	for (int64_t i = threadIdx.x; i < count; i += BLOCK)
		mine.add(partial[i]);
	const P total = block_total(mine);
	if (threadIdx.x == 0)
		f.finish(total);
}
/* Second stage: f.finish(total of partial[0 .. count-1]) in one thread. */
template <typename P, typename F> static hg_status fold(hg_context *ctx, const char *kernel, const P *partial, int64_t count, const F &f)
{
	fold_kernel<<<1, BLOCK, 0, stream_of(ctx)>>>(partial, count, f);
	return launched(ctx, kernel);
}

template <int W, typename P, typename F> static __global__ void totals_kernel(int64_t rows, int64_t cols, F f, P *partial)
{
	const int64_t first = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * W;
	const int64_t across = static_cast<int64_t>(gridDim.y) * blockDim.x * W, down = static_cast<int64_t>(gridDim.x) * blockDim.y;
	P mine = {};
	for (int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; row < rows; row += down)
		for (int64_t col = first; col < cols; col += across)
			f.template add<W>(row, col, mine);
	const P total = block_total(mine);
	if (thread_in_block() == 0)
		partial[static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x] = total;
}
/* f.add<W>(row, col, mine) adds one pack, masking its padding; f.finish(total) writes the result, also for an empty matrix. */
template <typename P, typename F> static hg_status totals(hg_context *ctx, const char *kernel, int64_t rows, int64_t cols, bool by_eight, const F &f)
{
	void *memory;
	HG__TRY(hg__workspace(ctx, REDUCE_BLOCKS * sizeof(P), &memory));
	P *partial = static_cast<P *>(memory);
	return with_width(by_eight, [&](auto width) {
		constexpr int W = decltype(width)::value;
		const struct tile t = tile_of(rows, cols, W, REDUCE_BLOCKS);
		totals_kernel<W><<<t.grid, t.block, 0, stream_of(ctx)>>>(rows, cols, f, partial);
		HG__TRY(launched(ctx, kernel));
		return fold(ctx, kernel, partial, static_cast<int64_t>(t.grid.x) * t.grid.y, f);
	});
}

#endif
