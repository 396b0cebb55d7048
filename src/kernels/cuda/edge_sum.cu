/* Sums of edge values over each row:
 *
 *     Y[i, k] = alpha * r_i * sum over entries p of row i of w[edge p, k]
 *
 * A warp takes an item. Its lanes form a rectangle of neighbouring heads and neighbouring entries,
 * so that whole lines of memory are read. Each lane adds its entries in order, a butterfly adds the
 * lanes of a head, and a second kernel adds the parts of a split row. */

#include "kernels/cuda/edge_sum.cuh"

#include "kernels/cuda/parts.cuh"

struct sum_problem {
	struct item_plan plan;
	const uint32_t *edge;
	const void *w;
	void *y;
	int64_t ldw, ldy;
	int heads, head_lanes; /* head_lanes: a power of two, at most 32 */
	const float *row_scale;
	float alpha;
	float *staging; /* [2 * items, lead] */
	int64_t lead;
};

template <typename T>
static __device__ inline float part_sum(const struct sum_problem &p, const struct cursor &at,
                                        int head, int first, int stride)
{
	float sum = 0.0f;
#pragma unroll 4
	for (int t = at.begin + first; t < at.end; t += stride) {
		const int64_t entry = at.base + t;
		sum += head < p.heads ? widen(static_cast<const T *>(
		                            p.w)[(p.edge ? __ldg(p.edge + entry) : entry) * p.ldw + head])
		                      : 0.0f;
	}
	for (int step = 16; step >= p.head_lanes; step /= 2)
		sum += __shfl_xor_sync(0xffffffffu, sum, step);
	return sum;
}

template <typename O>
static __device__ inline void put_sum(const struct sum_problem &p, int32_t row, int head, float sum)
{
	const float r = p.row_scale ? p.row_scale[row] : 1.0f;
	static_cast<O *>(p.y)[row * p.ldy + head] = narrow<O>(p.alpha * r * sum);
}

template <typename T, typename O>
static __global__ void __launch_bounds__(BLOCK)
    sum_items(const __grid_constant__ struct sum_problem p)
{
	after_previous();
	const int lane = static_cast<int>(threadIdx.x),
	          head = static_cast<int>(blockIdx.y) * p.head_lanes + (lane & (p.head_lanes - 1));
	const int first = lane / p.head_lanes;
	struct cursor at;
	if (own_piece() >= p.plan.items || !at.open(p.plan, own_piece()))
		return;
	do {
		const float sum = part_sum<T>(p, at, head, first, 32 / p.head_lanes);
		const int64_t slot = at.slot();
		if (first == 0 && head < p.heads) {
			if (slot < 0)
				put_sum<O>(p, at.row, head, sum);
			else
				p.staging[slot * p.lead + head] = sum;
		}
		at.e = at.end;
	} while (at.next(p.plan));
}

template <typename O>
static __global__ void __launch_bounds__(BLOCK)
    sum_fold(const __grid_constant__ struct sum_problem p)
{
	after_previous();
	const int64_t s = own_piece(), head = own_unit();
	if (s >= p.plan.splits || head >= p.heads)
		return;
	float sum = 0.0f;
	each_slot(p.plan, s, p.staging, p.lead, head, [&](float part) { sum += part; });
	put_sum<O>(p, p.plan.split_row[s], static_cast<int>(head), sum);
}

hg_status hg__cuda_edge_sum(hg_context *ctx, const struct hg__spmm_args *a)
{
	if (!a->csr.plan || a->w.cols != a->y.cols || a->col_scale)
		return hg__fail(ctx, HG_ERR_INTERNAL, "spmm: sums of %lld edge values into %lld columns",
		                static_cast<long long>(a->w.cols), static_cast<long long>(a->y.cols));
	void *staging = nullptr;
	HG__TRY(hg__workspace(ctx, hg__cuda_spmm_workspace(ctx, a), &staging));
	struct sum_problem p = {};
	p.plan = plan_of(a->csr);
	p.edge = a->csr.edge;
	p.w = a->w.data;
	p.ldw = a->w.ld;
	p.y = a->y.data;
	p.ldy = a->y.ld;
	p.heads = static_cast<int>(a->y.cols);
	p.head_lanes = static_cast<int>(edge_grid_of(1, a->y.cols).block.x);
	p.row_scale = a->row_scale;
	p.alpha = a->alpha;
	p.staging = static_cast<float *>(staging);
	p.lead = hg__leading(a->y.cols);
	struct edge_grid items = edge_grid_of(p.plan.items, 32);
	items.grid.y = grid_for(p.heads, p.head_lanes);
	return with_float(ctx, "spmm", a->w.dtype, [&](auto in) {
		return with_float(ctx, "spmm", a->y.dtype, [&](auto out) {
			using O = decltype(out);
			HG__TRY(launch(ctx, "spmm: sums of edge values", sum_items<decltype(in), O>, items.grid,
			               items.block, p));
			if (p.plan.splits == 0)
				return HG_OK;
			const struct edge_grid splits = edge_grid_of(p.plan.splits, p.heads);
			return launch(ctx, "spmm: fold", sum_fold<O>, splits.grid, splits.block, p);
		});
	});
}
