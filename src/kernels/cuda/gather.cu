/* Values of edges from one of their nodes:
 *
 *     Z[edge p, c] = alpha s_k X[k, c],    k = row of entry p, or its column if by_col
 *
 * By column, every pack of Z has a thread. By row, a sub-warp takes an item of the plan and reads a
 * row of X once for all its edges in the item; with arg it keeps only the columns whose maximum the
 * entry is. */

#include "kernels/cuda/map.cuh"
#include "kernels/cuda/parts.cuh"

namespace
{

struct problem {
	struct item_plan plan;
	const int32_t *col;
	const uint32_t *edge;
	struct floats x, z;
	const int32_t *arg; /* NULL: absent */
	int64_t ldarg, cols;
	const float *scale;
	float alpha;

	__device__ int64_t edge_of(int64_t entry) const
	{
		return edge ? __ldg(edge + entry) : entry;
	}
	/* alpha s_k X[k, c .. c + W - 1] */
	template <int W> __device__ void node(int64_t k, int64_t c, float (&out)[W]) const
	{
		const float factor = scale ? alpha * scale[k] : alpha;
		x.get<W>(k, c, out);
#pragma unroll
		for (int i = 0; i < W; i++)
			out[i] *= factor;
	}
	/* for `walk`: a pack of the entry's value, by column */
	template <int W> __device__ void at(int64_t entry, int64_t c) const
	{
		float v[W];
		node<W>(__ldg(col + entry), c, v);
		z.put<W>(edge_of(entry), c, v);
	}
};

/* The columns c .. c + W - 1 of one entry of a row, `index` in that row, whose values are v. */
template <int W, bool OWN>
__device__ void put_edge(const struct problem &p, int64_t entry, int64_t c, const float (&v)[W],
                         const int (&arg)[W], int index)
{
	float kept[W];
#pragma unroll
	for (int i = 0; i < W; i++)
		kept[i] = !OWN || arg[i] == index ? v[i] : 0.0f;
	p.z.put<W>(p.edge_of(entry), c, kept);
}

template <int W, bool OWN>
__global__ void __launch_bounds__(BLOCK) by_row(const __grid_constant__ struct problem p)
{
	after_previous();
	const int64_t c = own_unit() * W;
	struct cursor at;
	if (own_piece() >= p.plan.items || c >= p.cols || !at.open(p.plan, own_piece()))
		return;
	do {
		float v[W];
		int arg[W] = {};
		p.node<W>(at.row, c, v);
		for (int i = 0; OWN && i < W; i++)
			arg[i] = c + i < p.cols ? p.arg[at.row * p.ldarg + c + i] : -1;
		/* edges of the row in earlier items */
		const int before = static_cast<int>(at.base - p.plan.rowptr[at.row]);
		for (int t = at.begin; t < at.end; t++)
			put_edge<W, OWN>(p, at.base + t, c, v, arg, before + t);
		at.e = at.end;
	} while (at.next(p.plan));
}

template <bool OWN> hg_status launch_by_row(hg_context *ctx, const struct problem &p, bool by_eight)
{
	return with_width(by_eight, [&](auto width) {
		constexpr int W = decltype(width)::value;
		const struct edge_grid items = edge_grid_of(p.plan.items, (p.cols + W - 1) / W);
		return launch(ctx, "gather", by_row<W, OWN>, items.grid, items.block, p);
	});
}

} // namespace

HG__NO_WORKSPACE(gather, gather_args)

extern "C" hg_status hg__cuda_gather(hg_context *ctx, const struct hg__gather_args *a)
{
	if (a->arg.data)
		HG__TRY(hg__has_type(ctx, "gather", "places", a->arg.dtype, HG_I32));
	if (!is_float(a->x) || !is_float(a->z) || a->x.cols != a->z.cols || a->z.rows != a->csr.m ||
	    a->x.rows != (a->by_col ? a->csr.cols : a->csr.rows) || (a->arg.data && a->by_col) ||
	    !a->csr.plan)
		return misfit(ctx, "gather", HG__FLOATS, a->x, a->z);
	if (a->z.rows == 0 || a->z.cols == 0)
		return HG_OK;
	HG__TRY(edge_columns_fit(ctx, "gather", a->z.cols));
	const struct problem p = {
	    plan_of(a->csr),          a->csr.col, a->csr.edge, floats_of(a->x), floats_of(a->z),
	    data_of<int32_t>(a->arg), a->arg.ld,  a->z.cols,   a->scale,        a->alpha};
	const bool by_eight = wide(a->x) && wide(a->z);
	if (a->by_col)
		return walk(ctx, "gather", a->z.rows, a->z.cols, by_eight, p);
	return p.arg ? launch_by_row<true>(ctx, p, by_eight) : launch_by_row<false>(ctx, p, by_eight);
}
