/* How backward of small_layers adds up the gradients of parameters: in an order that depends on
 * nothing but the shapes.
 *
 * The warps of a block go through backward in step. Each leaves its dW and db in shared memory, and
 * one step later every thread adds its entries of all warps, in their order, to the block's sums.
 * Two buffers are enough: who writes a buffer has waited for the other one, and all warps have
 * added up what the buffer held before they arrived there. */
#ifndef HG_KERNELS_CUDA_SMALL_LAYERS_SUMS_CUH
#define HG_KERNELS_CUDA_SMALL_LAYERS_SUMS_CUH

#include "kernels/cuda/small_layers.cuh"

namespace small
{

/* ---- barriers: the warps of a block arrive, and threads wait for all of them ---- */

static __device__ inline void barrier_init(unsigned barrier)
{
	asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(WARPS) : "memory");
}
static __device__ inline void barrier_arrive(unsigned barrier)
{
	asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(barrier)
	             : "memory");
}
static __device__ inline void barrier_wait(unsigned barrier, int parity)
{
	int done = 0;
	while (!done)
#if __CUDA_ARCH__ >= 900
		asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; "
		             "selp.s32 %0, 1, 0, p; }"
		             : "=r"(done)
		             : "r"(barrier), "r"(parity)
		             : "memory");
#else
		asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; "
		             "selp.s32 %0, 1, 0, p; }"
		             : "=r"(done)
		             : "r"(barrier), "r"(parity)
		             : "memory");
#endif
}

/* The gradients of a matrix are added up in chunks of CHUNK elements of dW, so that they fit in
 * shared memory also where rows have 64 columns. */
constexpr int CHUNK = 1024;
template <int WIDE> struct gradient {
	static constexpr int WIDTH = WIDE * TILE, EIGHTS = 2 * WIDE;
	static constexpr int CHUNKS = WIDTH * WIDTH / CHUNK, TILES_OF = WIDE / CHUNKS; /* of a chunk */
	/* Floats of a matrix: dW in the order of the products' results (place_of), then db. */
	static constexpr int FLOATS = WIDTH * WIDTH + WIDTH;
	static constexpr int SLOT = CHUNK + WIDTH; /* of a warp: a chunk, and with the last one db */

	/* Element e of dW: its row and column. */
	static __device__ int2 place_of(int e)
	{
		const int lane = e / 4 % 32, i = e % 4, f = e / 128 % EIGHTS, m = e / (128 * EIGHTS);
		return make_int2(f * 8 + lane % 4 * 2 + i % 2, m * TILE + lane / 4 + i / 2 * 8);
	}
};

/* The sums of a block. A warp's slot holds what its bin added. Chunk c of matrix m has the number
 * u = m CHUNKS + c, and backward goes from the last to the first. */
template <int WIDE> struct block_sums {
	using of = gradient<WIDE>;
	float *slots; /* shared: [2][WARPS][SLOT] */
	float *partial;
	unsigned barriers;
	int chunks; /* of all matrices */

	__device__ float *slot(int step) const
	{
		return slots + ((step & 1) * WARPS + static_cast<int>(threadIdx.x / 32)) * of::SLOT;
	}
	__device__ void arrive(int step) const
	{
		__syncwarp();
		if (threadIdx.x % 32 == 0)
			barrier_arrive(barriers + 8 * (step & 1));
	}
	/* Adds up what all warps left at this step, that of chunk u in this round. */
	__device__ void add(int step, int u, int round) const
	{
		static_assert(THREADS * 4 == CHUNK, "four elements of dW for each thread");
		const int tid = static_cast<int>(threadIdx.x), m = u / of::CHUNKS, c = u % of::CHUNKS;
		const float *from = slots + (step & 1) * WARPS * of::SLOT;
		float *to = partial + m * of::FLOATS;
		float4 *w = reinterpret_cast<float4 *>(to + c * CHUNK) + tid;
		float4 sum = round ? *w : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
		barrier_wait(barriers + 8 * (step & 1), step >> 1 & 1);
#pragma unroll
		for (int i = 0; i < WARPS; i++) {
			const float4 x = reinterpret_cast<const float4 *>(from + i * of::SLOT)[tid];
			sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
		}
		*w = sum;
		if (tid >= of::WIDTH || c != of::CHUNKS - 1)
			return;
		float *b = to + of::WIDTH * of::WIDTH + tid, bias = round ? *b : 0.0f;
#pragma unroll
		for (int i = 0; i < WARPS; i++)
			bias += from[i * of::SLOT + CHUNK + tid];
		*b = bias;
	}
	/* The step before that of chunk u: chunk u + 1, or the first one in the round before. */
	__device__ void add_before(int step, int u, int round) const
	{
		const int last = u + 1 == chunks;
		if (step)
			add(step - 1, last ? 0 : u + 1, last ? round - 1 : round);
	}
};

/* A warp without a bin in the last round leaves zeros. */
template <int WIDE>
static __device__ inline void idle(const struct block_sums<WIDE> &sums, int round, int step)
{
	for (int u = sums.chunks - 1; u >= 0; u--, step++) {
		sums.add_before(step, u, round);
		for (int i = static_cast<int>(threadIdx.x % 32); i < gradient<WIDE>::SLOT; i += 32)
			sums.slot(step)[i] = 0.0f;
		sums.arrive(step);
	}
}

} // namespace small

#endif
