/* The backward pass of sddmm_add, where f' is 1 or slope:
 *
 *     dA[i, k] = sum over entries p of row i of f'(A[i, k] + B[j, k]) dE[edge p, k]
 *     dB[j, k] = the same sum over column j, which is row j of the transpose
 *
 * A warp takes an item. Its lanes form a rectangle of neighbouring heads and neighbouring entries,
 * so that whole lines of memory are read. Each lane adds its entries in order, a butterfly adds the
 * lanes of a head, and a second kernel adds the parts of a split row. dA and dB are computed in one
 * grid, so neither waits for the other. */

#include "kernels/cuda/map.cuh"
#include "kernels/cuda/parts.cuh"

namespace
{

/* One orientation. `own` has the rows of the orientation, and `other` is gathered. out is absent if
 * this gradient is not needed. */
struct side {
	struct item_plan plan;
	const int32_t *col;
	const uint32_t *edge;
	const void *own, *other;
	int64_t ld_own, ld_other;
	struct floats out;
	float *staging; /* [2 * items, lead] */
	int64_t blocks;
};

struct sides {
	struct side of[2];
	const void *de;
	int64_t ld_de, lead;
	int heads, head_lanes; /* head_lanes: a power of two, at most 32 */
	float slope;
};

template <typename T>
__device__ float part_sum(const struct sides &p, const struct side &s, const struct cursor &at,
                          int head, int first, int stride)
{
	const int64_t h = head < p.heads ? head : 0;
	const float own = widen(static_cast<const T *>(s.own)[at.row * s.ld_own + h]);
	float sum = 0.0f;
#pragma unroll 4
	for (int t = at.begin + first; t < at.end; t += stride) {
		const int64_t entry = at.base + t, edge = s.edge ? __ldg(s.edge + entry) : entry;
		const float other =
		    widen(__ldg(static_cast<const T *>(s.other) + __ldg(s.col + entry) * s.ld_other + h));
		const float de = widen(__ldg(static_cast<const T *>(p.de) + edge * p.ld_de + h));
		sum += own + other > 0.0f ? de : p.slope * de;
	}
	for (int step = 16; step >= p.head_lanes; step /= 2)
		sum += __shfl_xor_sync(0xffffffffu, sum, step);
	return sum;
}

__device__ void put_sum(const struct side &s, int64_t row, int head, float sum)
{
	const float one[1] = {sum};
	s.out.put<1>(row, head, one);
}

template <typename T>
__global__ void __launch_bounds__(BLOCK) sum_sides(const __grid_constant__ struct sides p)
{
	after_previous();
	const bool second = blockIdx.x >= p.of[0].blocks;
	const struct side &s = p.of[second];
	const int64_t item = (blockIdx.x - (second ? p.of[0].blocks : 0)) * blockDim.y + threadIdx.y;
	const int lane = static_cast<int>(threadIdx.x),
	          head = static_cast<int>(blockIdx.y) * p.head_lanes + (lane & (p.head_lanes - 1));
	const int first = lane / p.head_lanes;
	struct cursor at;
	if (item >= s.plan.items || !at.open(s.plan, item))
		return;
	do {
		const float sum = part_sum<T>(p, s, at, head, first, 32 / p.head_lanes);
		const int64_t slot = at.slot();
		if (first == 0 && head < p.heads) {
			if (slot < 0)
				put_sum(s, at.row, head, sum);
			else
				s.staging[slot * p.lead + head] = sum;
		}
		at.e = at.end;
	} while (at.next(s.plan));
}

__global__ void __launch_bounds__(BLOCK) fold_side(const struct side s, int heads, int64_t lead)
{
	after_previous();
	const int64_t split = own_piece(), head = own_unit();
	if (split >= s.plan.splits || head >= heads)
		return;
	float sum = 0.0f;
	each_slot(s.plan, split, s.staging, lead, head, [&](float part) { sum += part; });
	put_sum(s, s.plan.split_row[split], static_cast<int>(head), sum);
}

/* On small graphs without split rows each warp takes a row, as in spmm, because fewer loads then
 * depend on each other. This is the largest number of rows of such a graph. */
constexpr int64_t SMALL = 32768;

struct side side_of(const struct hg__csr &given, const struct hg__mat &own,
                    const struct hg__mat &other, const struct hg__mat &out, char *staging)
{
	struct hg__csr csr = given;
	const struct hg__plan by_row = hg__plan_by_row(&given);
	if (given.plan->splits == 0 && given.rows <= SMALL)
		csr.plan = &by_row;
	struct side s = {plan_of(csr),
	                 csr.col,
	                 csr.edge,
	                 own.data,
	                 other.data,
	                 own.ld,
	                 other.ld,
	                 floats_of(out),
	                 reinterpret_cast<float *>(staging),
	                 0};
	s.blocks = s.plan.items > 0 ? grid_for(s.plan.items, BLOCK / 32) : 0;
	return s;
}

hg_status launch_fold(hg_context *ctx, const struct side &s, int heads, int64_t lead)
{
	if (s.plan.splits == 0)
		return HG_OK;
	const struct edge_grid splits = edge_grid_of(s.plan.splits, heads);
	return launch(ctx, "sddmm_add_back: fold", fold_side, splits.grid, splits.block, s, heads,
	              lead);
}

bool shapes_fit(const struct hg__csr &csr, const struct hg__mat &own, const struct hg__mat &out,
                const struct hg__mat &de)
{
	return !out.data || (csr.plan && is_float(out) && out.rows == csr.rows && out.cols == de.cols &&
	                     own.rows == csr.rows && own.cols == de.cols && own.dtype == de.dtype);
}

} // namespace

/* The staging rows of one side. */
static size_t side_bytes(const struct hg__csr &csr, const struct hg__mat &out, int64_t heads)
{
	return out.data ? hg__staging_bytes(&csr, heads) : 0;
}

size_t hg__cuda_sddmm_add_back_workspace(const hg_context *,
                                         const struct hg__sddmm_add_back_args *a)
{
	return side_bytes(a->csr, a->da, a->de.cols) + side_bytes(a->csr_t, a->db, a->de.cols);
}

extern "C" hg_status hg__cuda_sddmm_add_back(hg_context *ctx,
                                             const struct hg__sddmm_add_back_args *a)
{
	const int heads = static_cast<int>(a->de.cols);
	if (!shapes_fit(a->csr, a->a, a->da, a->de) || !shapes_fit(a->csr_t, a->b, a->db, a->de) ||
	    a->a.dtype != a->b.dtype)
		return misfit(ctx, "sddmm_add_back", HG__ONE_FLOAT, a->a, a->b, a->de);
	if (heads == 0)
		return HG_OK;
	void *memory = nullptr;
	HG__TRY(hg__workspace(ctx, hg__cuda_sddmm_add_back_workspace(ctx, a), &memory));
	struct sides p = {};
	if (a->da.data)
		p.of[0] = side_of(a->csr, a->a, a->b, a->da, static_cast<char *>(memory));
	if (a->db.data)
		p.of[1] = side_of(a->csr_t, a->b, a->a, a->db,
		                  static_cast<char *>(memory) + side_bytes(a->csr, a->da, heads));
	p.de = a->de.data;
	p.ld_de = a->de.ld;
	p.lead = hg__leading(heads);
	p.heads = heads;
	p.head_lanes = static_cast<int>(edge_grid_of(1, heads).block.x);
	p.slope = a->leaky ? a->slope : 1.0f;
	const int64_t blocks = p.of[0].blocks + p.of[1].blocks;
	if (blocks > INT32_MAX)
		return hg__fail(ctx, HG_ERR_UNSUPPORTED,
		                "sddmm_add_back: %lld blocks of edges, a grid of the GPU holds at most %d",
		                static_cast<long long>(blocks), INT32_MAX);
	if (blocks == 0)
		return HG_OK;
	const dim3 grid(static_cast<unsigned>(blocks), grid_for(heads, p.head_lanes)),
	    block(32, BLOCK / 32);
	HG__TRY(with_float(ctx, "sddmm_add_back", a->de.dtype, [&](auto zero) {
		return launch(ctx, "sddmm_add_back", sum_sides<decltype(zero)>, grid, block, p);
	}));
	HG__TRY(launch_fold(ctx, p.of[0], heads, p.lead));
	return launch_fold(ctx, p.of[1], heads, p.lead);
}
