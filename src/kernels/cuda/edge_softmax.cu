#include "kernels/cuda/edges.cuh"

/* P[e, k] = exp(E[e, k] - max over the row) / sum over the row,   dE = P * (dP - sum over the row of P * dP).
 *
 * A warp takes an item; sub-warps, sized by the item's rows, take its parts of rows. Memory is read and written in packs of 8 elements, whatever the number of
 * heads H: with 1, 2 or 4 heads a pack has 8 / H edges and its ends may belong to other rows, with more it is 8 heads of one edge. A part that fits the sub-warp's
 * registers is read once. Rows that an item has alone are finished at once; the parts of a split row stage their statistics, a fold gives the row's back to
 * every part, and a last pass reads them again and writes: a hub is shared by as many warps as it has items. */

struct softmax_problem {
	struct item_plan plan;
	const void *e, *p, *dp; /* forward: e; backward: p, dp */
	void *out;              /* forward: P; backward: dE */
	int64_t ld, limit;      /* of all of them; limit: elements of storage */
	int heads, slices;      /* slices of 8 heads; neighbouring warps take the slices of an item */
	float *staging;         /* [2 * items, lead]: a row's values of statistic s at columns s * heads + k */
	int64_t lead;
};

/* ---- packs ---- */

/* The packs of an item, numbered from the one that its first edge is in. H: heads of a pack. */
template <int H> struct item_packs {
	int64_t origin; /* where pack 0 lies, in elements */
	int64_t pitch;  /* from pack to pack */
	int shift;      /* elements of pack 0 before the item's first edge */
	int room;       /* elements of storage from pack 0 on, if they are few */

	__device__ item_packs(const struct softmax_problem &p, const struct warp_item &it, int slice)
	    : origin(H == 8 ? it.base * p.ld + 8 * slice : it.base * H / 8 * 8), pitch(H == 8 ? p.ld : 8), shift(H == 8 ? 0 : static_cast<int>(it.base * H % 8))
	{
		const int64_t left = p.limit - origin;
		room = left < INT_MAX ? static_cast<int>(left) : INT_MAX;
	}
};

/* The packs first .. stop-1 that hold edges of a part, and the part's elements low .. high-1 from pack 0 on. */
template <int H> struct pack_range {
	int first, stop, low, high;

	__device__ pack_range(const struct item_packs<H> &packs, const struct edge_part &part) : low(packs.shift + part.begin * H), high(packs.shift + part.end * H)
	{
		first = low / 8;
		stop = part.begin < part.end ? (high + 7) / 8 : first;
	}
	__device__ bool whole(int q) const
	{
		return H == 8 || (8 * q >= low && 8 * q + 8 <= high);
	}
	__device__ bool has(int q, int j) const
	{
		return H == 8 || (8 * q + j >= low && 8 * q + j < high);
	}
};

/* The bits of pack q, zeros where the range has ended. Nothing is done to them here, so that the loads of several packs are in flight together. */
template <typename T, int H> static __device__ inline raw<T, 8> look(const void *data, const struct item_packs<H> &packs, const struct pack_range<H> &r, int q)
{
	const T *from = static_cast<const T *>(data) + packs.origin + q * packs.pitch;
	raw<T, 8> bits = {};
	if (q >= r.stop)
		return bits;
	if constexpr (H < 8)
		if (8 * q + 8 > packs.room) { /* the storage's last pack, cut short */
			T x[8];
#pragma unroll
			for (int j = 0; j < 8; j++)
				x[j] = 8 * q + j < packs.room ? from[j] : T(0.0f);
			memcpy(bits.q, static_cast<const void *>(x), sizeof x);
			return bits;
		}
	return fetch<8>(from);
}

/* Pack q as numbers; what is not the part's is `fill`. */
template <typename T, int H> static __device__ inline void open(const raw<T, 8> &bits, const struct pack_range<H> &r, int q, float fill, float (&x)[8])
{
	unpack(bits, x);
	if (!r.whole(q))
#pragma unroll
		for (int j = 0; j < 8; j++)
			x[j] = r.has(q, j) ? x[j] : fill;
}

template <typename T, int H>
static __device__ inline void put(void *data, const struct item_packs<H> &packs, const struct pack_range<H> &r, int q, const float (&x)[8])
{
	T *to = static_cast<T *>(data) + packs.origin + q * packs.pitch;
	if (r.whole(q)) {
		store<8>(to, x);
	} else {
#pragma unroll
		for (int j = 0; j < 8; j++)
			if (r.has(q, j))
				to[j] = narrow<T>(x[j]);
	}
}

/* ---- sub-warps ---- */

/* `lanes` neighbouring lanes (a power of two) take a part; a warp has 32 / lanes sub-warps. */
struct sub_warp {
	int lanes, lane, number;

	__device__ explicit sub_warp(int size) : lanes(size), lane(own_lane() & (size - 1)), number(own_lane() / size)
	{
	}
	__device__ int count() const
	{
		return 32 / lanes;
	}
};

/* As many lanes as the item's rows have packs, on average. */
template <int H> static __device__ inline int lanes_for(const struct warp_item &it)
{
	const int rows = it.last - it.row + 1, packs = (it.stop * H + 7) / 8;
	int lanes = 1;
	while (lanes < 32 && lanes * rows < packs)
		lanes *= 2;
	return lanes;
}

/* Join over a sub-warp: the same bits in each lane. The whole warp takes part. */
template <int H> static __device__ inline void join_sum(float (&x)[H], int lanes)
{
	for (int step = lanes / 2; step > 0; step /= 2)
#pragma unroll
		for (int h = 0; h < H; h++)
			x[h] += __shfl_xor_sync(ALL_LANES, x[h], step);
}
template <int H> static __device__ inline void join_max(float (&x)[H], int lanes)
{
	for (int step = lanes / 2; step > 0; step /= 2)
#pragma unroll
		for (int h = 0; h < H; h++)
			x[h] = fmaxf(x[h], __shfl_xor_sync(ALL_LANES, x[h], step));
}

template <int H> static __device__ inline void fill_heads(float (&x)[H], float value)
{
#pragma unroll
	for (int h = 0; h < H; h++)
		x[h] = value;
}

/* Has a warp an item, and a slice of its heads? */
static __device__ inline bool has_item(const struct softmax_problem &p)
{
	return own_warp() < p.plan.items * p.slices;
}

/* What the parts of a warp's item share. */
template <int H> struct softmax_item {
	struct warp_item it;
	int slice;
	struct item_packs<H> packs;

	__device__ explicit softmax_item(const struct softmax_problem &p)
	    : it(p.plan, p.slices == 1 ? own_warp() : own_warp() / p.slices), slice(static_cast<int>(own_warp() - it.item * p.slices)), packs(p, it, slice)
	{
	}
	__device__ int64_t slot(const struct edge_part &part) const
	{
		return 2 * it.item + part.split;
	}
};

/* ---- staging ---- */

static __device__ inline float &staged(const struct softmax_problem &p, int64_t slot, int statistic, int head)
{
	return p.staging[slot * p.lead + statistic * p.heads + head];
}
template <int H> static __device__ inline void stage(const struct softmax_problem &p, int64_t slot, int statistic, int slice, const float (&x)[H])
{
#pragma unroll
	for (int h = 0; h < H; h++)
		if (8 * slice + h < p.heads)
			staged(p, slot, statistic, 8 * slice + h) = x[h];
}
template <int H> static __device__ inline void unstage(const struct softmax_problem &p, int64_t slot, int statistic, int slice, float (&x)[H])
{
#pragma unroll
	for (int h = 0; h < H; h++)
		x[h] = 8 * slice + h < p.heads ? staged(p, slot, statistic, 8 * slice + h) : 0.0f;
}

/* Packs that a lane keeps in registers, of each operand. With one head of halves three packs of 32 lanes hold a row of 760 edges, about as many as an item has on
 * large graphs; with more heads two leave registers for the statistics of each. */
template <typename T, int H> constexpr int KEPT = H == 1 && sizeof(T) == 2 ? 3 : 2;

/* f(q, x) for the packs q that a lane has of a part, KEPT loads in flight. */
template <typename T, int H, typename F>
static __device__ inline void each_pack(const void *data, const struct softmax_item<H> &item, const struct sub_warp &s, const struct pack_range<H> &r,
                                        float fill, F f)
{
	for (int q = r.first + s.lane; q < r.stop; q += KEPT<T, H> * s.lanes) {
		raw<T, 8> bits[KEPT<T, H>];
#pragma unroll
		for (int i = 0; i < KEPT<T, H>; i++)
			bits[i] = look<T>(data, item.packs, r, q + i * s.lanes);
#pragma unroll
		for (int i = 0; i < KEPT<T, H>; i++) {
			float x[8];
			open(bits[i], r, q + i * s.lanes, fill, x);
			if (q + i * s.lanes < r.stop)
				f(q + i * s.lanes, x);
		}
	}
}

/* ---- forward ---- */

enum { MAX = 0, SUM = 1 };

/* A NaN need not win: it makes the sum NaN, and with it the whole row, as it should. */
template <int H> static __device__ inline void add_max(float (&max)[H], const float (&x)[8])
{
#pragma unroll
	for (int j = 0; j < 8; j++)
		max[j % H] = fmaxf(max[j % H], x[j]);
}

/* x = exp(x - max), sum += x. A part of -inf alone has the sum 0, since other parts of its row may have more; a whole row of them is 0 / 0. */
template <int H> static __device__ inline void add_exp(float (&sum)[H], float (&x)[8], const float (&max)[H])
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
static __device__ inline void softmax_short(const struct softmax_problem &p, const struct softmax_item<H> &item, const struct sub_warp &s,
                                            const struct edge_part &part)
{
	const struct pack_range<H> r(item.packs, part);
	raw<T, 8> bits[KEPT<T, H>];
	float x[KEPT<T, H>][8], max[H], sum[H];
	fill_heads(max, -INFINITY);
	fill_heads(sum, 0.0f);
#pragma unroll
	for (int i = 0; i < KEPT<T, H>; i++)
		bits[i] = look<T>(p.e, item.packs, r, r.first + s.lane + i * s.lanes);
#pragma unroll
	for (int i = 0; i < KEPT<T, H>; i++) {
		const int q = r.first + s.lane + i * s.lanes;
		open(bits[i], r, q, -INFINITY, x[i]);
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

/* P of a part by its row's maximum and inverse sum. */
template <typename T, int H>
static __device__ inline void put_softmax(const struct softmax_problem &p, const struct softmax_item<H> &item, const struct sub_warp &s,
                                          const struct pack_range<H> &r, const float (&max)[H], const float (&factor)[H])
{
	each_pack<T>(p.e, item, s, r, 0.0f, [&](int q, float(&x)[8]) {
#pragma unroll
		for (int j = 0; j < 8; j++)
			x[j] = expf(x[j] - max[j % H]) * factor[j % H];
		put<T>(p.out, item.packs, r, q, x);
	});
}

/* A part of any length: read for the maximum, for the sum, and to write. */
template <typename T, int H>
static __device__ inline void softmax_long(const struct softmax_problem &p, const struct softmax_item<H> &item, const struct sub_warp &s,
                                           const struct edge_part &part)
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

/* short_part where the parts that the warp's sub-warps have fit their registers, long_part elsewhere: for all parts of an item. */
template <typename T, int H, typename Short, typename Long>
static __device__ inline void each_part(const struct softmax_problem &p, const struct softmax_item<H> &item, Short short_part, Long long_part)
{
	const struct warp_item &it = item.it;
	const struct sub_warp s(lanes_for<H>(it));
	struct edge_part next = part_of(p.plan, it, it.row + s.number);
	for (int32_t row = it.row; row <= it.last; row += s.count()) {
		const struct edge_part part = next;
		next = part_of(p.plan, it, row + s.count() + s.number); /* read ahead */
		const struct pack_range<H> r(item.packs, part);
		if (__all_sync(ALL_LANES, r.stop - r.first <= KEPT<T, H> * s.lanes))
			short_part(s, part);
		else
			long_part(s, part);
	}
}

/* Pass 1: whole rows entirely; of split rows the maximum of each part, and its sum by this maximum. */
template <typename T, int H> static __global__ void __launch_bounds__(BLOCK, H == 1 ? 4 : 3) softmax_items(const struct softmax_problem p)
{
	if (!has_item(p))
		return;
	const struct softmax_item<H> item(p);
	each_part<T, H>(
	    p, item, [&](const struct sub_warp &s, const struct edge_part &part) { softmax_short<T>(p, item, s, part); },
	    [&](const struct sub_warp &s, const struct edge_part &part) { softmax_long<T>(p, item, s, part); });
}

/* f(s, part) for the parts of split rows in an item, at most two, by a half-warp each: its head and its tail. */
template <typename F> static __device__ inline void each_split(const struct softmax_problem &p, const struct warp_item &it, F f)
{
	const struct sub_warp s(16);
	if (s.number == 0 && it.row == it.last)
		return;
	const struct edge_part part = part_of(p.plan, it, s.number == 1 ? it.last : it.row);
	if (part.split >= 0 && part.begin < part.end)
		f(s, part);
}

/* Pass 3: P of split rows. */
template <typename T, int H> static __global__ void __launch_bounds__(BLOCK) softmax_put_parts(const struct softmax_problem p)
{
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

/* Pass 2: the row's maximum M and the inverse of its sum, sum over the parts of sum_part exp(max_part - M), for every part of split row s, head k. */
static __global__ void __launch_bounds__(BLOCK) softmax_fold(const struct softmax_problem p)
{
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

/* ---- backward ---- */

template <int H> static __device__ inline void add_dot(float (&dot)[H], const float (&x)[8], const float (&y)[8])
{
#pragma unroll
	for (int j = 0; j < 8; j++)
		dot[j % H] = fmaf(x[j], y[j], dot[j % H]);
}

/* f(q, x, y) for the packs that a lane has of a part of P and dP. */
template <typename T, int H, typename F>
static __device__ inline void each_pair(const struct softmax_problem &p, const struct softmax_item<H> &item, const struct sub_warp &s,
                                        const struct pack_range<H> &r, F f)
{
	for (int q = r.first + s.lane; q < r.stop; q += 2 * s.lanes) {
		raw<T, 8> a[2], b[2];
#pragma unroll
		for (int i = 0; i < 2; i++) {
			a[i] = look<T>(p.p, item.packs, r, q + i * s.lanes);
			b[i] = look<T>(p.dp, item.packs, r, q + i * s.lanes);
		}
#pragma unroll
		for (int i = 0; i < 2; i++) {
			float x[8], y[8];
			open(a[i], r, q + i * s.lanes, 0.0f, x);
			open(b[i], r, q + i * s.lanes, 0.0f, y);
			if (q + i * s.lanes < r.stop)
				f(q + i * s.lanes, x, y);
		}
	}
}

/* dE of one pack, from P and dP. */
template <typename T, int H>
static __device__ inline void put_gradient(const struct softmax_problem &p, const struct softmax_item<H> &item, const struct pack_range<H> &r, int q,
                                           float (&x)[8], const float (&y)[8], const float (&dot)[H])
{
#pragma unroll
	for (int j = 0; j < 8; j++)
		x[j] *= y[j] - dot[j % H];
	put<T>(p.out, item.packs, r, q, x);
}

/* The bits stay in registers, and are unpacked once for the sum and once for the gradient. */
template <typename T, int H>
static __device__ inline void back_short(const struct softmax_problem &p, const struct softmax_item<H> &item, const struct sub_warp &s,
                                         const struct edge_part &part)
{
	const struct pack_range<H> r(item.packs, part);
	raw<T, 8> a[KEPT<T, H>], b[KEPT<T, H>];
	float x[8], y[8], dot[H];
	fill_heads(dot, 0.0f);
#pragma unroll
	for (int i = 0; i < KEPT<T, H>; i++) {
		a[i] = look<T>(p.p, item.packs, r, r.first + s.lane + i * s.lanes);
		b[i] = look<T>(p.dp, item.packs, r, r.first + s.lane + i * s.lanes);
	}
#pragma unroll
	for (int i = 0; i < KEPT<T, H>; i++) {
		open(a[i], r, r.first + s.lane + i * s.lanes, 0.0f, x);
		open(b[i], r, r.first + s.lane + i * s.lanes, 0.0f, y);
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
static __device__ inline void put_gradients(const struct softmax_problem &p, const struct softmax_item<H> &item, const struct sub_warp &s,
                                            const struct pack_range<H> &r, const float (&dot)[H])
{
	each_pair<T>(p, item, s, r, [&](int q, float(&x)[8], const float(&y)[8]) { put_gradient<T>(p, item, r, q, x, y, dot); });
}

template <typename T, int H>
static __device__ inline void back_long(const struct softmax_problem &p, const struct softmax_item<H> &item, const struct sub_warp &s,
                                        const struct edge_part &part)
{
	const struct pack_range<H> r(item.packs, part);
	float dot[H];
	fill_heads(dot, 0.0f);
	each_pair<T>(p, item, s, r, [&](int, const float(&x)[8], const float(&y)[8]) { add_dot(dot, x, y); });
	join_sum(dot, s.lanes);
	if (part.split < 0)
		put_gradients<T>(p, item, s, r, dot);
	else if (s.lane == 0 && r.first < r.stop)
		stage(p, item.slot(part), 0, item.slice, dot);
}

/* Pass 1: whole rows entirely, of split rows the sum of each part. */
template <typename T, int H> static __global__ void __launch_bounds__(BLOCK, 3) softmax_back_items(const struct softmax_problem p)
{
	if (!has_item(p))
		return;
	const struct softmax_item<H> item(p);
	each_part<T, H>(
	    p, item, [&](const struct sub_warp &s, const struct edge_part &part) { back_short<T>(p, item, s, part); },
	    [&](const struct sub_warp &s, const struct edge_part &part) { back_long<T>(p, item, s, part); });
}

/* Pass 3: dE of split rows. */
template <typename T, int H> static __global__ void __launch_bounds__(BLOCK) softmax_back_put_parts(const struct softmax_problem p)
{
	if (!has_item(p))
		return;
	const struct softmax_item<H> item(p);
	each_split(p, item.it, [&](const struct sub_warp &s, const struct edge_part &part) {
		float dot[H];
		unstage(p, item.slot(part), 0, item.slice, dot);
		put_gradients<T>(p, item, s, pack_range<H>(item.packs, part), dot);
	});
}

/* Pass 2: the parts' sums of split row s, head k, meet in slot order, and every slot receives the row's. */
static __global__ void __launch_bounds__(BLOCK) softmax_back_fold(const struct softmax_problem p)
{
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
	p->limit = a.rows * a.ld;
	p->heads = static_cast<int>(a.cols);
	p->slices = static_cast<int>((a.cols + 7) / 8);
	p->staging = static_cast<float *>(staging);
	p->lead = hg__leading(statistics * a.cols);
	return HG_OK;
}

/* Call f(T{}, H) with the element type and the heads of a pack: 1, 2 or 4 where they are the whole row, else 8. */
template <typename F> static hg_status with_packs(hg_context *ctx, const char *kernel, const struct hg__mat &m, F f)
{
	return with_float(ctx, kernel, m.dtype, [&](auto zero) {
		return m.ld == 1   ? f(zero, int_constant<1>{})
		       : m.ld == 2 ? f(zero, int_constant<2>{})
		       : m.ld == 4 ? f(zero, int_constant<4>{})
		                   : f(zero, int_constant<8>{});
	});
}

static unsigned blocks_of(const struct softmax_problem &p)
{
	return grid_for(p.plan.items * p.slices, WARPS);
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
		softmax_items<T, H><<<blocks_of(p), BLOCK, 0, stream_of(ctx)>>>(p);
		HG__TRY(launched(ctx, "edge_softmax"));
		if (p.plan.splits == 0)
			return HG_OK;
		const struct edge_grid g = edge_grid_of(p.plan.splits, p.heads);
		softmax_fold<<<g.grid, g.block, 0, stream_of(ctx)>>>(p);
		HG__TRY(launched(ctx, "edge_softmax: fold"));
		softmax_put_parts<T, H><<<blocks_of(p), BLOCK, 0, stream_of(ctx)>>>(p);
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
	return with_packs(ctx, "edge_softmax_back", a->p, [&](auto zero, auto heads) {
		using T = decltype(zero);
		constexpr int H = decltype(heads)::value;
		softmax_back_items<T, H><<<blocks_of(p), BLOCK, 0, stream_of(ctx)>>>(p);
		HG__TRY(launched(ctx, "edge_softmax_back"));
		if (p.plan.splits == 0)
			return HG_OK;
		const struct edge_grid g = edge_grid_of(p.plan.splits, p.heads);
		softmax_back_fold<<<g.grid, g.block, 0, stream_of(ctx)>>>(p);
		HG__TRY(launched(ctx, "edge_softmax_back: fold"));
		softmax_back_put_parts<T, H><<<blocks_of(p), BLOCK, 0, stream_of(ctx)>>>(p);
		return launched(ctx, "edge_softmax_back: split rows");
	});
}
