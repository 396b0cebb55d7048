/* The backward pass of the softmax over the edges of each row:
 *
 *     dE = P * (dP - sum over the row of P * dP) */

#include "kernels/cuda/edge_softmax.cuh"

template <int H>
static __device__ inline void add_dot(float (&dot)[H], const float (&x)[8], const float (&y)[8])
{
#pragma unroll
	for (int j = 0; j < 8; j++)
		dot[j % H] = fmaf(x[j], y[j], dot[j % H]);
}

/* Calls f(q, x, y) for the packs of one lane in a part of P and dP. */
template <typename T, int H, typename F>
static __device__ inline void
each_pair(const struct softmax_problem &p, const struct softmax_item<H> &item,
          const struct sub_warp &s, const struct pack_range<H> &r, F f)
{
	for (int q = r.first + s.lane; q < r.stop; q += 2 * s.lanes) {
		raw<T, 8> a[2], b[2];
#pragma unroll
		for (int i = 0; i < 2; i++) {
			a[i] = load_pack<T>(p.p, item.packs, r, q + i * s.lanes);
			b[i] = load_pack<T>(p.dp, item.packs, r, q + i * s.lanes);
		}
#pragma unroll
		for (int i = 0; i < 2; i++) {
			float x[8], y[8];
			unpack_part(a[i], r, q + i * s.lanes, 0.0f, x);
			unpack_part(b[i], r, q + i * s.lanes, 0.0f, y);
			if (q + i * s.lanes < r.stop)
				f(q + i * s.lanes, x, y);
		}
	}
}

/* Stores dE of one pack. */
template <typename T, int H>
static __device__ inline void put_gradient(const struct softmax_problem &p,
                                           const struct softmax_item<H> &item,
                                           const struct pack_range<H> &r, int q, float (&x)[8],
                                           const float (&y)[8], const float (&dot)[H])
{
#pragma unroll
	for (int j = 0; j < 8; j++)
		x[j] *= y[j] - dot[j % H];
	put<T>(p.out, item.packs, r, q, x);
}

/* The loaded bits stay in registers and are unpacked twice, for the sum and for the gradient. */
template <typename T, int H>
static __device__ inline void back_short(const struct softmax_problem &p,
                                         const struct softmax_item<H> &item,
                                         const struct sub_warp &s, const struct edge_part &part)
{
	const struct pack_range<H> r(item.packs, part);
	raw<T, 8> a[KEPT<T, H>], b[KEPT<T, H>];
	float x[8], y[8], dot[H];
	fill_heads(dot, 0.0f);
#pragma unroll
	for (int i = 0; i < KEPT<T, H>; i++) {
		a[i] = load_pack<T>(p.p, item.packs, r, r.first + s.lane + i * s.lanes);
		b[i] = load_pack<T>(p.dp, item.packs, r, r.first + s.lane + i * s.lanes);
	}
#pragma unroll
	for (int i = 0; i < KEPT<T, H>; i++) {
		unpack_part(a[i], r, r.first + s.lane + i * s.lanes, 0.0f, x);
		unpack_part(b[i], r, r.first + s.lane + i * s.lanes, 0.0f, y);
		if (r.first + s.lane + i * s.lanes < r.stop)
			add_dot(dot, x, y);
	}
	join_sum(dot, s.lanes);
	if (part.split >= 0 && s.lane == 0 && r.first < r.stop)
		stage(p, item.slot(part), 0, item.slice, dot);
#pragma unroll
	for (int i = 0; i < KEPT<T, H>; i++) {
		const int q = r.first + s.lane + i * s.lanes;
		if (part.split >= 0 || q >= r.stop)
			continue;
		unpack(a[i], x);
		unpack(b[i], y);
		put_gradient<T>(p, item, r, q, x, y, dot);
	}
}

template <typename T, int H>
static __device__ inline void
put_gradients(const struct softmax_problem &p, const struct softmax_item<H> &item,
              const struct sub_warp &s, const struct pack_range<H> &r, const float (&dot)[H])
{
	each_pair<T>(p, item, s, r, [&](int q, float(&x)[8], const float(&y)[8]) {
		put_gradient<T>(p, item, r, q, x, y, dot);
	});
}

template <typename T, int H>
static __device__ inline void back_long(const struct softmax_problem &p,
                                        const struct softmax_item<H> &item,
                                        const struct sub_warp &s, const struct edge_part &part)
{
	const struct pack_range<H> r(item.packs, part);
	float dot[H];
	fill_heads(dot, 0.0f);
	each_pair<T>(p, item, s, r,
	             [&](int, const float(&x)[8], const float(&y)[8]) { add_dot(dot, x, y); });
	join_sum(dot, s.lanes);
	if (part.split < 0)
		put_gradients<T>(p, item, s, r, dot);
	else if (s.lane == 0 && r.first < r.stop)
		stage(p, item.slot(part), 0, item.slice, dot);
}

/* Pass 1: whole rows completely; of split rows only the sum of each part. */
template <typename T, int H>
static __global__ void __launch_bounds__(BLOCK, 3)
    softmax_back_items(const struct softmax_problem p)
{
	after_previous();
	if (!has_item(p))
		return;
	const struct softmax_item<H> item(p);
	each_part<T, H>(
	    p, item,
	    [&](const struct sub_warp &s, const struct edge_part &part) {
		    back_short<T>(p, item, s, part);
	    },
	    [&](const struct sub_warp &s, const struct edge_part &part) {
		    back_long<T>(p, item, s, part);
	    });
}

/* Pass 3: dE of split rows. */
template <typename T, int H>
static __global__ void __launch_bounds__(BLOCK)
    softmax_back_put_parts(const struct softmax_problem p)
{
	after_previous();
	if (!has_item(p))
		return;
	const struct softmax_item<H> item(p);
	each_split(p, item.it, [&](const struct sub_warp &s, const struct edge_part &part) {
		float dot[H];
		unstage(p, item.slot(part), 0, item.slice, dot);
		put_gradients<T>(p, item, s, pack_range<H>(item.packs, part), dot);
	});
}

/* Pass 2: adds the sums of the parts of split row s, head k, in slot order, and writes the result
 * into every slot of the row. */
static __global__ void __launch_bounds__(BLOCK) softmax_back_fold(const struct softmax_problem p)
{
	after_previous();
	const int64_t s = own_piece(), k = own_unit();
	if (s >= p.plan.splits || k >= p.heads)
		return;
	const int64_t first = p.plan.split_first[s], last = p.plan.split_last[s];
	float sum = 0.0f;
	each_slot(p.plan, s, p.staging, p.lead, k, [&](float part) { sum += part; });
	for (int64_t i = first; i <= last; i++)
		staged(p, slot_of(i, last), 0, static_cast<int>(k)) = sum;
}

/* ---- launch ---- */

size_t hg__cuda_edge_softmax_back_workspace(const hg_context *,
                                            const struct hg__edge_softmax_back_args *a)
{
	return hg__softmax_bytes(&a->csr, a->p.cols);
}

hg_status hg__cuda_edge_softmax_back(hg_context *ctx, const struct hg__edge_softmax_back_args *a)
{
	if (a->p.rows == 0 || a->p.cols == 0)
		return HG_OK;
	struct softmax_problem p;
	HG__TRY(prepare(ctx, "edge_softmax_back", a->csr, a->p, a->de, 1, &p));
	p.p = a->p.data;
	p.dp = a->dp.data;
	p.out = a->de.data;
	if (a->dp.dtype != a->p.dtype || a->dp.ld != a->p.ld)
		return misfit(ctx, "edge_softmax_back", HG__ONE_FLOAT, a->p, a->dp);
	return with_packs(ctx, "edge_softmax_back", a->p, [&](auto zero, auto heads) {
		using T = decltype(zero);
		constexpr int H = decltype(heads)::value;
		HG__TRY(launch(ctx, "edge_softmax_back", softmax_back_items<T, H>, blocks_of(p), BLOCK, p));
		if (p.plan.splits == 0)
			return HG_OK;
		const struct edge_grid g = edge_grid_of(p.plan.splits, p.heads);
		HG__TRY(launch(ctx, "edge_softmax_back: fold", softmax_back_fold, g.grid, g.block, p));
		return launch(ctx, "edge_softmax_back: split rows", softmax_back_put_parts<T, H>,
		              blocks_of(p), BLOCK, p);
	});
}
