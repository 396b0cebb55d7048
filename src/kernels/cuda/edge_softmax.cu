/* Softmax over the edges of each row, for each head k:
 *
 *     P[e, k] = exp(E[e, k] - max over the row) / sum over the row */

#include "kernels/cuda/edge_softmax.cuh"

enum { MAX = 0, SUM = 1 };

/* The maximum over a sub-warp, in the same way as join_sum. */
template <int H> static __device__ inline void join_max(float (&x)[H], int lanes)
{
	for (int step = lanes / 2; step > 0; step /= 2)
#pragma unroll
		for (int h = 0; h < H; h++)
			x[h] = fmaxf(x[h], __shfl_xor_sync(ALL_LANES, x[h], step));
}

/* Calls f(q, x) for the packs q of one lane in a part. KEPT loads are in flight. */
template <typename T, int H, typename F>
static __device__ inline void each_pack(const void *data, const struct softmax_item<H> &item,
                                        const struct sub_warp &s, const struct pack_range<H> &r,
                                        float fill, F f)
{
	for (int q = r.first + s.lane; q < r.stop; q += KEPT<T, H> * s.lanes) {
		raw<T, 8> bits[KEPT<T, H>];
#pragma unroll
		for (int i = 0; i < KEPT<T, H>; i++)
			bits[i] = load_pack<T>(data, item.packs, r, q + i * s.lanes);
#pragma unroll
		for (int i = 0; i < KEPT<T, H>; i++) {
			float x[8];
			unpack_part(bits[i], r, q + i * s.lanes, fill, x);
			if (q + i * s.lanes < r.stop)
				f(q + i * s.lanes, x);
		}
	}
}

/* fmaxf ignores a NaN, which is harmless: the NaN makes the sum NaN, and so the whole row, as
 * required. */
template <int H> static __device__ inline void add_max(float (&max)[H], const float (&x)[8])
{
#pragma unroll
	for (int j = 0; j < 8; j++)
		max[j % H] = fmaxf(max[j % H], x[j]);
}

/* x = exp(x - max), sum += x. A part that contains only -inf has the sum 0, because other parts of
 * its row may have larger values. If the whole row is -inf, the result is 0 / 0. */
template <int H>
static __device__ inline void add_exp(float (&sum)[H], float (&x)[8], const float (&max)[H])
{
#pragma unroll
	for (int j = 0; j < 8; j++) {
		x[j] = expf(x[j] - (max[j % H] == -INFINITY ? 0.0f : max[j % H]));
		sum[j % H] += x[j];
	}
}

template <int H> static __device__ inline void scale(float (&x)[8], const float (&by)[H])
{
#pragma unroll
	for (int j = 0; j < 8; j++)
		x[j] *= by[j % H];
}

template <int H> static __device__ inline void invert(float (&x)[H])
{
#pragma unroll
	for (int h = 0; h < H; h++)
		x[h] = 1.0f / x[h];
}

/* A part whose packs fit the registers of its sub-warp. */
template <typename T, int H>
static __device__ inline void softmax_short(const struct softmax_problem &p,
                                            const struct softmax_item<H> &item,
                                            const struct sub_warp &s, const struct edge_part &part)
{
	const struct pack_range<H> r(item.packs, part);
	raw<T, 8> bits[KEPT<T, H>];
	float x[KEPT<T, H>][8], max[H], sum[H];
	fill_heads(max, -INFINITY);
	fill_heads(sum, 0.0f);
#pragma unroll
	for (int i = 0; i < KEPT<T, H>; i++)
		bits[i] = load_pack<T>(p.e, item.packs, r, r.first + s.lane + i * s.lanes);
#pragma unroll
	for (int i = 0; i < KEPT<T, H>; i++) {
		const int q = r.first + s.lane + i * s.lanes;
		unpack_part(bits[i], r, q, -INFINITY, x[i]);
		if (q < r.stop)
			add_max(max, x[i]);
	}
	join_max(max, s.lanes);
#pragma unroll
	for (int i = 0; i < KEPT<T, H>; i++)
		if (r.first + s.lane + i * s.lanes < r.stop)
			add_exp(sum, x[i], max);
	join_sum(sum, s.lanes);
	if (part.split >= 0 && s.lane == 0 && r.first < r.stop) {
		stage(p, item.slot(part), MAX, item.slice, max);
		stage(p, item.slot(part), SUM, item.slice, sum);
	}
	invert(sum);
#pragma unroll
	for (int i = 0; i < KEPT<T, H>; i++) {
		const int q = r.first + s.lane + i * s.lanes;
		scale(x[i], sum);
		if (part.split < 0 && q < r.stop)
			put<T>(p.out, item.packs, r, q, x[i]);
	}
}

/* Stores P of a part, from the maximum and the inverse sum of its row. */
template <typename T, int H>
static __device__ inline void put_softmax(const struct softmax_problem &p,
                                          const struct softmax_item<H> &item,
                                          const struct sub_warp &s, const struct pack_range<H> &r,
                                          const float (&max)[H], const float (&factor)[H])
{
	each_pack<T>(p.e, item, s, r, 0.0f, [&](int q, float(&x)[8]) {
#pragma unroll
		for (int j = 0; j < 8; j++)
			x[j] = expf(x[j] - max[j % H]) * factor[j % H];
		put<T>(p.out, item.packs, r, q, x);
	});
}

/* A part of any length. It is read three times: for the maximum, for the sum, and for the output.
 */
template <typename T, int H>
static __device__ inline void softmax_long(const struct softmax_problem &p,
                                           const struct softmax_item<H> &item,
                                           const struct sub_warp &s, const struct edge_part &part)
{
	const struct pack_range<H> r(item.packs, part);
	float max[H], sum[H];
	fill_heads(max, -INFINITY);
	fill_heads(sum, 0.0f);
	each_pack<T>(p.e, item, s, r, -INFINITY, [&](int, float(&x)[8]) { add_max(max, x); });
	join_max(max, s.lanes);
	each_pack<T>(p.e, item, s, r, -INFINITY, [&](int, float(&x)[8]) { add_exp(sum, x, max); });
	join_sum(sum, s.lanes);
	if (part.split < 0) {
		invert(sum);
		put_softmax<T>(p, item, s, r, max, sum);
	} else if (s.lane == 0 && r.first < r.stop) {
		stage(p, item.slot(part), MAX, item.slice, max);
		stage(p, item.slot(part), SUM, item.slice, sum);
	}
}

/* Pass 1: whole rows completely; of split rows the maximum of each part, and its sum relative to
 * that maximum. */
template <typename T, int H>
static __global__ void __launch_bounds__(BLOCK, H == 1 ? 4 : 3)
    softmax_items(const struct softmax_problem p)
{
	after_previous();
	if (!has_item(p))
		return;
	const struct softmax_item<H> item(p);
	each_part<T, H>(
	    p, item,
	    [&](const struct sub_warp &s, const struct edge_part &part) {
		    softmax_short<T>(p, item, s, part);
	    },
	    [&](const struct sub_warp &s, const struct edge_part &part) {
		    softmax_long<T>(p, item, s, part);
	    });
}

/* Pass 3: P of split rows. */
template <typename T, int H>
static __global__ void __launch_bounds__(BLOCK) softmax_put_parts(const struct softmax_problem p)
{
	after_previous();
	if (!has_item(p))
		return;
	const struct softmax_item<H> item(p);
	each_split(p, item.it, [&](const struct sub_warp &s, const struct edge_part &part) {
		float max[H], factor[H];
		unstage(p, item.slot(part), MAX, item.slice, max);
		unstage(p, item.slot(part), SUM, item.slice, factor);
		put_softmax<T>(p, item, s, pack_range<H>(item.packs, part), max, factor);
	});
}

/* Pass 2, for split row s and head k: computes the row's maximum M and the inverse of its sum,
 * which is the sum over the parts of sum_part exp(max_part - M), and stores them for every part. */
static __global__ void __launch_bounds__(BLOCK) softmax_fold(const struct softmax_problem p)
{
	after_previous();
	const int64_t s = own_piece(), k = own_unit();
	if (s >= p.plan.splits || k >= p.heads)
		return;
	const int64_t first = p.plan.split_first[s], last = p.plan.split_last[s];
	const int head = static_cast<int>(k);
	float max = -INFINITY, sum = 0.0f;
	each_slot(p.plan, s, p.staging, p.lead, k, [&](float part) { max = fmaxf(max, part); });
	int64_t i = first;
	each_slot(p.plan, s, p.staging, p.lead, p.heads + k, [&](float part) {
		sum += part * expf(staged(p, slot_of(i, last), MAX, head) - max);
		i++;
	});
	const float factor = 1.0f / sum;
	for (i = first; i <= last; i++) {
		staged(p, slot_of(i, last), MAX, head) = max;
		staged(p, slot_of(i, last), SUM, head) = factor;
	}
}

/* ---- launch ---- */

size_t hg__cuda_edge_softmax_workspace(const hg_context *, const struct hg__edge_softmax_args *a)
{
	return hg__softmax_bytes(&a->csr, a->e.cols);
}

hg_status hg__cuda_edge_softmax(hg_context *ctx, const struct hg__edge_softmax_args *a)
{
	if (a->e.rows == 0 || a->e.cols == 0)
		return HG_OK;
	struct softmax_problem p;
	HG__TRY(prepare(ctx, "edge_softmax", a->csr, a->e, a->p, 2, &p));
	p.e = a->e.data;
	p.out = a->p.data;
	return with_packs(ctx, "edge_softmax", a->e, [&](auto zero, auto heads) {
		using T = decltype(zero);
		constexpr int H = decltype(heads)::value;
		HG__TRY(launch(ctx, "edge_softmax", softmax_items<T, H>, blocks_of(p), BLOCK, p));
		if (p.plan.splits == 0)
			return HG_OK;
		const struct edge_grid g = edge_grid_of(p.plan.splits, p.heads);
		HG__TRY(launch(ctx, "edge_softmax: fold", softmax_fold, g.grid, g.block, p));
		return launch(ctx, "edge_softmax: split rows", softmax_put_parts<T, H>, blocks_of(p), BLOCK,
		              p);
	});
}
