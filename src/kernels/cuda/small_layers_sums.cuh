/* How backward of small_layers adds up the gradients of parameters: in an order that depends on
 * nothing but the shapes.
 *
 * The warps of a block go through backward in step. Each leaves its dW and db in shared memory, and
 * one layer later every thread adds its entries of all warps, in their order, to the block's sums.
 * Two buffers are enough: who writes a buffer has waited for the other one, and all warps have
 * added up what the buffer held before they arrived there. */
#ifndef HG_KERNELS_CUDA_SMALL_LAYERS_SUMS_CUH
#define HG_KERNELS_CUDA_SMALL_LAYERS_SUMS_CUH

#include "kernels/cuda/small_layers.cuh"

namespace small
{

/* Floats of a layer's gradients: dW in the order of the products' results (place_of), then db. */
constexpr int SLOT = WIDTH * WIDTH + WIDTH;

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

/* Element e of dW in a slot: its row and column. */
static __device__ inline int2 place_of(int e)
{
	const int lane = e / 4 % 32, i = e % 4, f = e / 128 % EIGHTS, m = e / (128 * EIGHTS);
	return make_int2(f * 8 + lane % 4 * 2 + i % 2, m * TILE + lane / 4 + i / 2 * 8);
}

/* The sums of a block. A warp's slot holds what its bin added. */
struct block_sums {
	float *slots; /* shared: [2][WARPS][SLOT] */
	float *partial;
	unsigned barriers;

	__device__ float *slot(int step) const
	{
		return slots + ((step & 1) * WARPS + static_cast<int>(threadIdx.x / 32)) * SLOT;
	}
	__device__ void arrive(int step) const
	{
		__syncwarp();
		if (threadIdx.x % 32 == 0)
			barrier_arrive(barriers + 8 * (step & 1));
	}
	/* Adds up what all warps left at this step, that of layer l in this round. */
	__device__ void add(int step, int l, int round) const
	{
		static_assert(THREADS * 4 == WIDTH * WIDTH, "four elements of dW for each thread");
		const int tid = static_cast<int>(threadIdx.x);
		const float *from = slots + (step & 1) * WARPS * SLOT;
		float4 *w = reinterpret_cast<float4 *>(partial + l * SLOT) + tid;
		float4 sum = round ? *w : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
		barrier_wait(barriers + 8 * (step & 1), step >> 1 & 1);
#pragma unroll
		for (int i = 0; i < WARPS; i++) {
			const float4 x = reinterpret_cast<const float4 *>(from + i * SLOT)[tid];
			sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
		}
		*w = sum;
		if (tid >= WIDTH)
			return;
		float *b = partial + l * SLOT + WIDTH * WIDTH + tid, bias = round ? *b : 0.0f;
#pragma unroll
		for (int i = 0; i < WARPS; i++)
			bias += from[i * SLOT + WIDTH * WIDTH + tid];
		*b = bias;
	}
	/* The step before this one: layer l + 1, or the first layer of the round before. */
	__device__ void add_before(int step, int l, int layers, int round) const
	{
		if (step)
			add(step - 1, l + 1 == layers ? 0 : l + 1, l + 1 == layers ? round - 1 : round);
	}
};

/* A warp without a bin in the last round leaves zeros. */
static __device__ inline void idle(const struct block_sums &sums, int layers, int round, int step)
{
	for (int l = layers - 1; l >= 0; l--, step++) {
		sums.add_before(step, l, layers, round);
		for (int i = static_cast<int>(threadIdx.x % 32); i < SLOT; i += 32)
			sums.slot(step)[i] = 0.0f;
		sums.arrive(step);
	}
}

} // namespace small

#endif
