/* The variants of sddmm_variants.def:
 *
 *     E[edge p, k] = scale * r_i * s_j * sum over c in head k of A[i, c] * B[j, c]
 *
 * A warp takes a batch of 32 neighbouring edges, as the library's kernels do (edges.cuh), and a
 * sub-warp of L lanes takes L edges of it, STEP at a time. Each lane loads W columns of both rows
 * at once. All variants are this one kernel, so two of them differ only in what their names say. */

#include "kernels/cuda/sddmm.cuh"
#include "packs.cuh"
#include "sddmm_variants.h"

/* Edges of a sub-warp whose loads are in flight together, as in spmm_walk.cuh. */
constexpr int STEP = 4;

/* ---- the sum of one edge: a lane adds the products of its columns, then the sums of other lanes,
 * those that are `step` away ---- */

/* In f32, where a product of halves is exact, so that each term rounds once. */
template <int W> struct float_sum {
	float sum = 0.0f;
	__device__ void add(const word<W> &a, const word<W> &b)
	{
		float x[W], y[W];
		widen_word<W>(a, x);
		widen_word<W>(b, y);
#pragma unroll
		for (int i = 0; i < W; i++)
			sum = __fmaf_rn(x[i], y[i], sum);
	}
	__device__ void add_lane(int step)
	{
		sum = __fadd_rn(sum, __shfl_xor_sync(ALL_LANES, sum, step));
	}
	__device__ float total() const
	{
		return sum;
	}
};

/* In f16, with the sums of even and of odd columns side by side. */
struct half2_sum {
	__half2 sum = __float2half2_rn(0.0f);
	__device__ void add(const word<8> &a, const word<8> &b)
	{
		sum = __hfma2(half2_of(a.x), half2_of(b.x), sum);
		sum = __hfma2(half2_of(a.y), half2_of(b.y), sum);
		sum = __hfma2(half2_of(a.z), half2_of(b.z), sum);
		sum = __hfma2(half2_of(a.w), half2_of(b.w), sum);
	}
	__device__ void add_lane(int step)
	{
		sum = __hadd2_rn(sum, __shfl_xor_sync(ALL_LANES, sum, step));
	}
	__device__ float total() const
	{
		return __half2float(__hadd_rn(__low2half(sum), __high2half(sum)));
	}
};

/* ---- the kernel ---- */

template <int W>
static __device__ inline word<W> fetch_row(const void *matrix, uint32_t pitch, int32_t row, int c)
{
	const char *data = static_cast<const char *>(matrix) +
	                   static_cast<uint64_t>(static_cast<uint32_t>(row)) * pitch;
	return fetch_word<W>(reinterpret_cast<const __half *>(data) + c);
}

/* One head of the edges first .. first + n - 1 of the batch, n <= STEP, by a sub-warp. All lanes of
 * the warp must call this together, also where n is 0. */
template <int W, typename Sum>
static __device__ inline void dot_step(const struct sddmm_problem &p,
                                       const struct edge_batch &batch, int first, int n, int lanes,
                                       int head)
{
	const int seat = own_lane() & (lanes - 1), width = static_cast<int>(p.head_cols);
	int32_t i[STEP], j[STEP];
#pragma unroll
	for (int u = 0; u < STEP; u++) {
		i[u] = __shfl_sync(ALL_LANES, batch.row, (first + u) % 32);
		j[u] = __shfl_sync(ALL_LANES, batch.id, (first + u) % 32);
	}
	Sum sum[STEP];
	for (int at = seat * W; at < width; at += lanes * W) {
		const int c = head * width + at;
		word<W> x[STEP] = {}, y[STEP] = {};
#pragma unroll
		for (int u = 0; u < STEP; u++)
			if (u < n) {
				x[u] = fetch_row<W>(p.a, p.pitch_a, i[u], c);
				y[u] = fetch_row<W>(p.b, p.pitch_b, j[u], c);
			}
#pragma unroll
		for (int u = 0; u < STEP; u++)
			sum[u].add(x[u], y[u]);
	}
	for (int step = lanes / 2; step > 0; step /= 2)
#pragma unroll
		for (int u = 0; u < STEP; u++)
			sum[u].add_lane(step);
#pragma unroll
	for (int u = 0; u < STEP; u++)
		if (u < n && seat == (u & (lanes - 1)))
			put_dot(p, batch.first + first + u, i[u], j[u], head, sum[u].total());
}

/* Sub-warp s takes edges s L .. s L + L - 1 of every batch. Four blocks per multiprocessor, as in
 * the variants of spmm: every variant then has 64 registers, and none spills. */
template <int W, typename Sum>
static __global__ void __launch_bounds__(BLOCK, 4)
    dot_lanes(const __grid_constant__ struct sddmm_problem p, int lanes)
{
	after_previous();
	each_batch(p, [&](const struct edge_batch &batch) {
		const int begin = own_lane() & ~(lanes - 1),
		          end = begin + lanes < batch.n ? begin + lanes : batch.n;
		for (int k = 0; k < lanes; k += STEP) {
			const int first = begin + k, left = end - first,
			          n = left < 0      ? 0
			              : left < STEP ? left
			                            : STEP;
			for (int head = 0; head < p.heads; head++)
				dot_step<W, Sum>(p, batch, first, n, lanes, head);
		}
	});
}

/* ---- launch ---- */

typedef void (*dot_kernel)(struct sddmm_problem, int);

template <int MULTIPLY, int W, int ACCUMULATE> static constexpr dot_kernel kernel_of()
{
	if constexpr (MULTIPLY == MULTIPLY_TILES)
		return nullptr; /* a kernel of the library */
	else if constexpr (ACCUMULATE == HG_ACC_F32)
		return dot_lanes<W, float_sum<W>>;
	else
		return dot_lanes<W, half2_sum>;
}
static const dot_kernel table[SDDMM_VARIANTS] = {
#define SDDMM_VARIANT(id, name, multiply, columns, accumulate, ...) \
	kernel_of<MULTIPLY_##multiply, columns, HG_ACC_##accumulate>(),
#include "sddmm_variants.def"
#undef SDDMM_VARIANT
};

int sddmm_tiles_fit_cuda(const struct hg__sddmm_dot_args *a)
{
	return hg__sddmm_tiles_fit(a);
}

hg_status sddmm_variant_cuda(hg_context *ctx, const struct hg__sddmm_dot_args *a,
                             enum sddmm_variant_id id)
{
	if (a->csr.m == 0 || a->e.cols == 0)
		return HG_OK;
	if (sddmm_variants[id].multiply == MULTIPLY_TILES)
		return hg__cuda_sddmm_dot(ctx, a);
	const struct sddmm_problem p = dot_problem_of(a);
	return launch(ctx, "sddmm_dot: variant", table[id], grid_for(p.plan.items, WARPS), BLOCK, p,
	              sddmm_lanes(p.head_cols, sddmm_variants[id].columns));
}
