/* Reductions over a cluster: neighbouring blocks in x that run at the same time and write to each
 * other's shared memory. Clusters exist from sm_90 on. On older devices, and where a kernel is
 * launched without clusters, each block is a cluster of one. */
#ifndef HG_KERNELS_CUDA_CLUSTER_CUH
#define HG_KERNELS_CUDA_CLUSTER_CUH

#include "kernels/cuda/columns.cuh"

/* The largest number of blocks of a cluster that every device with clusters supports. */
constexpr int CLUSTER = 8;
static inline int cluster_limit(const hg_context *ctx)
{
	return static_cast<const hg__cuda_state *>(ctx->state)->clusters ? CLUSTER : 1;
}

static __device__ inline unsigned cluster_blocks()
{
	unsigned blocks = 1;
#if __CUDA_ARCH__ >= 900
	asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
#endif
	return blocks;
}
static __device__ inline unsigned cluster_rank()
{
	unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
	asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
	return rank;
}

/* A barrier of all threads of a cluster, in two halves: what a thread wrote to shared memory before
 * it arrived can be read by the threads that have waited. */
static __device__ inline void cluster_arrive()
{
#if __CUDA_ARCH__ >= 900
	asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
}
static __device__ inline void cluster_wait()
{
#if __CUDA_ARCH__ >= 900
	asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#else
	__syncthreads();
#endif
}
/* The first arrival of a kernel, before any block has written. It proves that the block has
 * started, so that its shared memory exists. */
static __device__ inline void cluster_begin()
{
#if __CUDA_ARCH__ >= 900
	asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#endif
}

/* Writes to the variable of block `rank` that is at `shared` in this block. */
static __device__ inline void cluster_put(float *shared, unsigned rank, float value)
{
#if __CUDA_ARCH__ >= 900
	unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(shared));
	asm("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(at) : "r"(rank));
	asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(at), "f"(value) : "memory");
#else
	(void)rank;
	*shared = value;
#endif
}

/* The values that the blocks of a cluster have sent to this one: K sums of each column of a pack.
 */
template <int K, int W> struct inbox {
	float sum[CLUSTER][K][W];
};

/* over_warps of a block with blockDim.x == 1 and at most 16 warps. The loop has a fixed length, so
 * that all loads are in flight together. */
template <int K, int W>
static __device__ float over_few_warps(const struct warp_columns<K, W> &part, int k, unsigned i)
{
	const unsigned warps = blockDim.y / 32;
	float sum = part.sum[k][i];
#pragma unroll
	for (unsigned w = 1; w < 16; w++)
		if (w < warps)
			sum += part.sum[k][w * W + i];
	return sum;
}

/* Sums over the threads of a cluster, as block_column, for blocks with blockDim.x == 1 and at most
 * 16 warps. The sums of the blocks are added in the order of their ranks, so every block has the
 * same bits. The result is that of column threadIdx.y, valid where threadIdx.y < W.
 *
 * All threads of the cluster must call it, after cluster_begin() and cluster_wait(), and with a
 * different inbox each time, because a block may write its next sums while a slower one still reads
 * these. Each block sends to all others, so one barrier is enough, and after the last barrier no
 * block writes to one that may have ended. */
template <int K, int W>
static __device__ void cluster_column(const float (&acc)[K][W], struct inbox<K, W> &in,
                                      float (&sum)[K])
{
	const struct warp_columns<K, W> &part = columns_of_warps(acc);
	const unsigned blocks = cluster_blocks(), own = cluster_rank(), t = threadIdx.y;
	for (unsigned to = t; to < blocks * W; to += blockDim.y)
#pragma unroll
		for (int k = 0; k < K; k++)
			cluster_put(&in.sum[own][k][to % W], to / W, over_few_warps(part, k, to % W));
	cluster_arrive();
	cluster_wait();
	if (t >= W)
		return;
#pragma unroll
	for (int k = 0; k < K; k++) {
		sum[k] = in.sum[0][k][t];
#pragma unroll
		for (unsigned b = 1; b < CLUSTER; b++)
			if (b < blocks)
				sum[k] += in.sum[b][k][t];
	}
}

#endif
