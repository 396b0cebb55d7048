#include "kernels/cuda/parts.cuh"

/* P[e, k] = exp(E[e, k] - max over the row) / sum over the row,   dE = P * (dP - sum over the row of P * dP).
 *
 * A warp walks an item. Its lanes are a rectangle of neighbouring heads and neighbouring edges, so that it reads whole lines; each statistic is kept by lane and
 * joined over the lanes of a head. A row that the item has alone is finished at once. The parts of a split row stage their maximum, a fold gives the row's
 * maximum back to every part, then the same with the sums, then P is written: a hub is shared by as many warps as it has items. */

struct softmax_problem {
	struct item_plan plan;
	const void *e, *p, *dp; /* forward: e; backward: p, dp */
	void *out;              /* forward: P; backward: dE */
	int64_t ld;             /* of all of them */
	int heads, head_lanes;  /* head_lanes: a power of two, at most 32 */
	float *staging;         /* [2 * items, lead]: a row's values of statistic s at columns s * heads + k */
	int64_t lead;
};

/* Which head and which edges a lane has: head `head`, edges begin + first, begin + first + stride, ... of a part. */
struct seat {
	int head, first, stride;
	bool live;
};

static __device__ inline struct seat own_seat(const struct softmax_problem &p)
{
	struct seat s;
	const int lane = static_cast<int>(threadIdx.x);
	s.head = static_cast<int>(blockIdx.y) * p.head_lanes + (lane & (p.head_lanes - 1));
	s.first = lane / p.head_lanes;
	s.stride = 32 / p.head_lanes;
	s.live = s.head < p.heads;
	return s;
}

/* Join over the lanes of a head: the same bits in each. */
static __device__ inline float head_sum(float x, int head_lanes)
{
	for (int step = 16; step >= head_lanes; step /= 2)
		x += __shfl_xor_sync(0xffffffffu, x, step);
	return x;
}
static __device__ inline float head_max(float x, int head_lanes)
{
	for (int step = 16; step >= head_lanes; step /= 2)
		x = max_nan(x, __shfl_xor_sync(0xffffffffu, x, step));
	return x;
}

/* f(i) for the places i in an edge tensor that this lane has of edges base + begin .. base + end - 1. */
template <typename F> static __device__ inline void each_place(const struct softmax_problem &p, const struct seat &s, int64_t base, int begin, int end, F f)
{
	const int64_t origin = base * p.ld + s.head;
#pragma unroll 4
	for (int t = begin + s.first; t < end; t += s.stride)
		if (s.live)
			f(origin + t * p.ld);
}

template <typename T> static __device__ inline float at(const void *data, int64_t i)
{
	return widen(__ldg(static_cast<const T *>(data) + i));
}

static __device__ inline float &staged(const struct softmax_problem &p, const struct seat &s, int64_t slot, int statistic)
{
	return p.staging[slot * p.lead + statistic * p.heads + s.head];
}

/* A lane of a head that does not exist, or not the first of its head, has nothing to stage. */
static __device__ inline void stage(const struct softmax_problem &p, const struct seat &s, int64_t slot, int statistic, float value)
{
	if (s.live && s.first == 0)
		staged(p, s, slot, statistic) = value;
}

/* ---- forward ---- */

enum { MAX = 0, SUM = 1 };

template <typename T> static __device__ inline float part_max(const struct softmax_problem &p, const struct seat &s, int64_t base, int begin, int end)
{
	float max = -INFINITY;
	each_place(p, s, base, begin, end, [&](int64_t i) { max = max_nan(max, at<T>(p.e, i)); });
	return head_max(max, p.head_lanes);
}

template <typename T>
static __device__ inline float part_sum(const struct softmax_problem &p, const struct seat &s, int64_t base, int begin, int end, float max)
{
	float sum = 0.0f;
	each_place(p, s, base, begin, end, [&](int64_t i) { sum += expf(at<T>(p.e, i) - max); });
	return head_sum(sum, p.head_lanes);
}

template <typename T>
static __device__ inline void put_softmax(const struct softmax_problem &p, const struct seat &s, int64_t base, int begin, int end, float max, float sum)
{
	each_place(p, s, base, begin, end, [&](int64_t i) { static_cast<T *>(p.out)[i] = narrow<T>(expf(at<T>(p.e, i) - max) / sum); });
}

/* Pass 1: whole rows entirely; of split rows the maximum of each part. */
template <typename T> static __global__ void __launch_bounds__(BLOCK) softmax_items(const struct softmax_problem p)
{
	const struct seat s = own_seat(p);
	struct cursor c;
	if (own_piece() >= p.plan.items || !c.open(p.plan, own_piece()))
		return;
	do {
		const float max = part_max<T>(p, s, c.base, c.begin, c.end);
		if (c.slot() >= 0)
			stage(p, s, c.slot(), MAX, max);
		else
			put_softmax<T>(p, s, c.base, c.begin, c.end, max, part_sum<T>(p, s, c.base, c.begin, c.end, max));
		c.e = c.end;
	} while (c.next(p.plan));
}

/* Pass 3: the sum of each part of a split row, by the row's maximum. */
template <typename T> static __global__ void __launch_bounds__(BLOCK) softmax_part_sums(const struct softmax_problem p)
{
	const struct seat s = own_seat(p);
	if (own_piece() >= p.plan.items)
		return;
	each_split_part(p.plan, own_piece(), [&](int64_t slot, int64_t base, int begin, int end) {
		const float max = s.live ? staged(p, s, slot, MAX) : 0.0f;
		stage(p, s, slot, SUM, part_sum<T>(p, s, base, begin, end, max));
	});
}

/* Pass 5: P of split rows. */
template <typename T> static __global__ void __launch_bounds__(BLOCK) softmax_put_parts(const struct softmax_problem p)
{
	const struct seat s = own_seat(p);
	if (own_piece() >= p.plan.items || !s.live)
		return;
	each_split_part(p.plan, own_piece(), [&](int64_t slot, int64_t base, int begin, int end) {
		put_softmax<T>(p, s, base, begin, end, staged(p, s, slot, MAX), staged(p, s, slot, SUM));
	});
}

/* ---- backward ---- */

template <typename T> static __device__ inline float part_dot(const struct softmax_problem &p, const struct seat &s, int64_t base, int begin, int end)
{
	float sum = 0.0f;
	each_place(p, s, base, begin, end, [&](int64_t i) { sum += at<T>(p.p, i) * at<T>(p.dp, i); });
	return head_sum(sum, p.head_lanes);
}

template <typename T>
static __device__ inline void put_gradient(const struct softmax_problem &p, const struct seat &s, int64_t base, int begin, int end, float dot)
{
	each_place(p, s, base, begin, end, [&](int64_t i) { static_cast<T *>(p.out)[i] = narrow<T>(at<T>(p.p, i) * (at<T>(p.dp, i) - dot)); });
}

template <typename T> static __global__ void __launch_bounds__(BLOCK) softmax_back_items(const struct softmax_problem p)
{
	const struct seat s = own_seat(p);
	struct cursor c;
	if (own_piece() >= p.plan.items || !c.open(p.plan, own_piece()))
		return;
	do {
		const float dot = part_dot<T>(p, s, c.base, c.begin, c.end);
		if (c.slot() >= 0)
			stage(p, s, c.slot(), 0, dot);
		else
			put_gradient<T>(p, s, c.base, c.begin, c.end, dot);
		c.e = c.end;
	} while (c.next(p.plan));
}

template <typename T> static __global__ void __launch_bounds__(BLOCK) softmax_back_put_parts(const struct softmax_problem p)
{
	const struct seat s = own_seat(p);
	if (own_piece() >= p.plan.items || !s.live)
		return;
	each_split_part(p.plan, own_piece(),
	                [&](int64_t slot, int64_t base, int begin, int end) { put_gradient<T>(p, s, base, begin, end, staged(p, s, slot, 0)); });
}

/* ---- folds: the parts' values of a split row meet in slot order, and every slot receives the row's ---- */

template <bool IS_MAX> static __global__ void __launch_bounds__(BLOCK) softmax_share(const struct softmax_problem p, int statistic)
{
	const int64_t s = own_piece(), k = own_unit();
	if (s >= p.plan.splits || k >= p.heads)
		return;
	const int64_t first = p.plan.split_first[s], last = p.plan.split_last[s], c = statistic * p.heads + k;
	float all = IS_MAX ? -INFINITY : 0.0f;
	each_slot(p.plan, s, p.staging, p.lead, c, [&](float part) { all = IS_MAX ? max_nan(all, part) : all + part; });
	for (int64_t i = first; i <= last; i++)
		p.staging[slot_of(i, last) * p.lead + c] = all;
}

template <bool IS_MAX> static hg_status share(hg_context *ctx, const struct softmax_problem &p, int statistic)
{
	const struct edge_grid g = edge_grid_of(p.plan.splits, p.heads);
	softmax_share<IS_MAX><<<g.grid, g.block, 0, stream_of(ctx)>>>(p, statistic);
	return launched(ctx, "edge_softmax: fold");
}

/* ---- launch ---- */

static hg_status prepare(hg_context *ctx, const char *kernel, const struct hg__csr &csr, const struct hg__mat &a, const struct hg__mat &b, int statistics,
                         struct softmax_problem *p)
{
	if (!csr.plan || csr.edge || a.dtype != b.dtype || a.ld != b.ld || a.rows != csr.m || a.cols != b.cols)
		return hg__fail(ctx, HG_ERR_INTERNAL, "%s: operands [%lld, %lld] type %d and [%lld, %lld] type %d, graph with %lld edges", kernel,
		                static_cast<long long>(a.rows), static_cast<long long>(a.cols), static_cast<int>(a.dtype), static_cast<long long>(b.rows),
		                static_cast<long long>(b.cols), static_cast<int>(b.dtype), static_cast<long long>(csr.m));
	HG__TRY(edge_columns_fit(ctx, kernel, a.cols));
	void *staging = nullptr;
	HG__TRY(hg__workspace(ctx, hg__softmax_bytes(&csr, a.cols), &staging));
	*p = {};
	p->plan = plan_of(csr);
	p->ld = a.ld;
	p->heads = static_cast<int>(a.cols);
	p->head_lanes = static_cast<int>(edge_grid_of(1, a.cols).block.x);
	p->staging = static_cast<float *>(staging);
	p->lead = hg__leading(statistics * a.cols);
	return HG_OK;
}

/* A warp an item; grid.y where there are more heads than lanes. */
static struct edge_grid warps_of(const struct softmax_problem &p)
{
	struct edge_grid g = edge_grid_of(p.plan.items, 32);
	g.grid.y = grid_for(p.heads, p.head_lanes);
	return g;
}

hg_status hg__cuda_edge_softmax(hg_context *ctx, const struct hg__edge_softmax_args *a)
{
	if (a->e.rows == 0 || a->e.cols == 0)
		return HG_OK;
	struct softmax_problem p;
	HG__TRY(prepare(ctx, "edge_softmax", a->csr, a->e, a->p, 2, &p));
	p.e = a->e.data;
	p.out = a->p.data;
	const struct edge_grid g = warps_of(p);
	return with_float(ctx, "edge_softmax", a->e.dtype, [&](auto zero) {
		using T = decltype(zero);
		softmax_items<T><<<g.grid, g.block, 0, stream_of(ctx)>>>(p);
		HG__TRY(launched(ctx, "edge_softmax"));
		if (p.plan.splits == 0)
			return HG_OK;
		HG__TRY(share<true>(ctx, p, MAX));
		softmax_part_sums<T><<<g.grid, g.block, 0, stream_of(ctx)>>>(p);
		HG__TRY(launched(ctx, "edge_softmax: sums"));
		HG__TRY(share<false>(ctx, p, SUM));
		softmax_put_parts<T><<<g.grid, g.block, 0, stream_of(ctx)>>>(p);
		return launched(ctx, "edge_softmax: split rows");
	});
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
		return hg__fail(ctx, HG_ERR_INTERNAL, "edge_softmax_back: dP has type %d, P has type %d", static_cast<int>(a->dp.dtype), static_cast<int>(a->p.dtype));
	const struct edge_grid g = warps_of(p);
	return with_float(ctx, "edge_softmax_back", a->p.dtype, [&](auto zero) {
		using T = decltype(zero);
		softmax_back_items<T><<<g.grid, g.block, 0, stream_of(ctx)>>>(p);
		HG__TRY(launched(ctx, "edge_softmax_back"));
		if (p.plan.splits == 0)
			return HG_OK;
		HG__TRY(share<false>(ctx, p, 0));
		softmax_back_put_parts<T><<<g.grid, g.block, 0, stream_of(ctx)>>>(p);
		return launched(ctx, "edge_softmax_back: split rows");
	});
}
