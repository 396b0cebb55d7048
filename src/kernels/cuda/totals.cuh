/* One number (or a small struct) for a whole matrix, in one kernel. The size of the grid follows
 * from the shape alone. Each block writes one partial result, and the block that finishes last adds
 * all of them in a fixed order, so the result depends neither on timing nor on the device.
 *
 * Timing decides which block is the last, but not what it adds or in which order. The only atomic
 * operation of this file counts blocks, never values. */
#ifndef HG_KERNELS_CUDA_TOTALS_CUH
#define HG_KERNELS_CUDA_TOTALS_CUH

#include "kernels/cuda/map.cuh"

/* The largest number of blocks of a reduction. A multiprocessor holds 2048 / BLOCK = 8 blocks and a
 * large GPU has 108 to 148 multiprocessors, so 1024 blocks fill it about once, and the last block
 * reads four partial results per thread. */
constexpr int64_t REDUCE_BLOCKS = 1024;
static_assert(COUNTERS >= 1, "a total needs one counter");

static __device__ inline int thread_in_block()
{
	return static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
}

/* ---- the last block adds the partial results ---- */

/* Counters of the context (state.cuh), all 0 between kernels. All reductions can use the same one,
 * because a kernel accesses it only after after_previous(), when the previous kernel is complete.
 */
static inline unsigned *counters_of(const hg_context *ctx)
{
	return static_cast<const hg__cuda_state *>(ctx->state)->counters;
}

/* is_last: whether all of `blocks` blocks have called it and this block is the last. All threads of
 * a block get the same answer, and all of them must call it, once per kernel. It orders memory
 * accesses:
 *
 * - The block that gets `true` can read what other blocks wrote before their calls.
 * - It may overwrite what other blocks read before their calls.
 *
 * The barrier before the count orders the accesses of all threads of the block before thread 0's
 * count, which releases them. The count that makes the answer true follows all other counts and
 * acquires what they released; the second barrier passes this on to all threads. One
 * acquire-release operation is enough. A count between two __threadfence() would wait twice more,
 * and each fence is the costlier, sequentially consistent kind. The data must be read with plain
 * loads, because a read-only cache does not see the stores of other blocks.
 *
 * The count wraps around: 0, 1, ..., blocks - 1, 0. So the last block leaves the counter as the
 * kernel found it, and a replayed graph finds it at 0 as well. */
static __device__ inline unsigned count_one(unsigned *counter, unsigned most)
{
	unsigned before;
	asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
	             : "=r"(before)
	             : "l"(__cvta_generic_to_global(counter)), "r"(most)
	             : "memory");
	return before;
}
static __device__ inline bool is_last(unsigned *counter, unsigned blocks)
{
	__shared__ bool last;
	__syncthreads();
	if (thread_in_block() == 0)
		last = count_one(counter, blocks - 1) == blocks - 1;
	__syncthreads();
	return last;
}

/* The struct of the lane whose number differs in the bit `step`. */
template <typename P> static __device__ P of_lane(const P &mine, int step)
{
	static_assert(sizeof(P) % sizeof(unsigned) == 0, "a struct of whole words");
	constexpr int WORDS = static_cast<int>(sizeof(P) / sizeof(unsigned));
	unsigned words[WORDS];
	memcpy(static_cast<void *>(words), &mine, sizeof mine);
#pragma unroll
	for (int i = 0; i < WORDS; i++)
		words[i] = __shfl_xor_sync(0xffffffffu, words[i], step);
	P other;
	memcpy(static_cast<void *>(&other), words, sizeof other);
	return other;
}

/* Total over a block of BLOCK threads: a butterfly in each warp, then the warps in order, with the
 * same bits in every thread. P has add(const P &), and all bits zero is its neutral element. All
 * threads must call it. No barrier is needed between two calls. */
template <typename P> static __device__ P block_total(P mine)
{
	__shared__ P part[BLOCK / 32];
	const int t = thread_in_block();
#pragma unroll
	for (int step = 16; step > 0; step /= 2)
		mine.add(of_lane(mine, step));
	__syncthreads(); /* another thread may still be reading the result of an earlier call */
	if (t % 32 == 0)
		part[t / 32] = mine;
	__syncthreads();
	P total = part[0];
#pragma unroll
	for (int warp = 1; warp < BLOCK / 32; warp++)
		total.add(part[warp]);
	return total;
}

/* Where the blocks of a reduction combine: a partial result of each, and the counter. */
template <typename P> struct partial_results {
	P *partial;
	unsigned *counter;
};
/* Adds `mine` over all threads of all blocks; this is block `block` of `blocks`. f.finish(total)
 * runs in one thread of the last block. All threads must call it, once per kernel. */
template <typename P, typename F>
static __device__ void fold_blocks(const P &mine, const struct partial_results<P> &at,
                                   unsigned block, unsigned blocks, const F &f)
{
	P total = block_total(mine);
	if (blocks > 1) {
		if (thread_in_block() == 0)
			at.partial[block] = total;
		if (!is_last(at.counter, blocks))
			return;
		P rest = {};
		for (unsigned i = static_cast<unsigned>(thread_in_block()); i < blocks; i += BLOCK)
			rest.add(at.partial[i]);
		total = block_total(rest);
	}
	if (thread_in_block() == 0)
		f.finish(total);
}

/* The workspace of totals() and row_totals(). */
template <typename P> constexpr size_t totals_bytes()
{
	return static_cast<size_t>(REDUCE_BLOCKS) * sizeof(P);
}

/* Allocates workspace for the partial results of at most `blocks` blocks. */
template <typename P>
static hg_status reserve_partials(hg_context *ctx, int64_t blocks, struct partial_results<P> *at)
{
	void *memory;
	HG__TRY(hg__workspace(ctx, static_cast<size_t>(blocks) * sizeof(P), &memory));
	*at = {static_cast<P *>(memory), counters_of(ctx)};
	return HG_OK;
}

/* ---- totals of a matrix ---- */

template <int W, typename P, typename F>
static __global__ void totals_kernel(int64_t rows, int64_t cols, F f, struct partial_results<P> at)
{
	after_previous();
	const int64_t first = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * W;
	const int64_t across = static_cast<int64_t>(gridDim.y) * blockDim.x * W,
	              down = static_cast<int64_t>(gridDim.x) * blockDim.y;
	P mine = {};
	for (int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; row < rows;
	     row += down)
		for (int64_t col = first; col < cols; col += across)
			f.template add<W>(row, col, mine);
	fold_blocks(mine, at, blockIdx.y * gridDim.x + blockIdx.x, gridDim.x * gridDim.y, f);
}
/* Reduces a matrix with a functor: f.add<W>(row, col, mine) adds one pack, without its padding;
 * f.finish(total) writes the result, also for an empty matrix. */
template <typename P, typename F>
static hg_status totals(hg_context *ctx, const char *kernel, int64_t rows, int64_t cols,
                        bool by_eight, const F &f)
{
	struct partial_results<P> at;
	HG__TRY(reserve_partials(ctx, REDUCE_BLOCKS, &at));
	return with_width(by_eight, [&](auto width) {
		constexpr int W = decltype(width)::value;
		const struct tile t = tile_of(rows, cols, W, REDUCE_BLOCKS);
		return launch(ctx, kernel, totals_kernel<W, P, F>, t.grid, t.block, rows, cols, f, at);
	});
}

#endif
