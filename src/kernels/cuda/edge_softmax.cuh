/* How edge_softmax and its gradient iterate over a graph.
 *
 * A warp takes an item, and sub-warps, whose size depends on the item's rows, take its parts.
 * Memory is accessed in packs of 8 elements, whatever the number of heads H. With 1, 2 or 4 heads a
 * pack has 8 / H edges, and the elements at its ends may belong to other rows. With more heads it
 * is 8 heads of one edge. A part that fits the registers of its sub-warp is read once. Rows that
 * lie in one item are finished at once. For a split row, pass 1 stages the statistics of its parts,
 * pass 2 combines them and gives the result to every part, and pass 3 reads the parts again and
 * writes the output. So as many warps work on a hub as it has items. */
#ifndef HG_KERNELS_CUDA_EDGE_SOFTMAX_CUH
#define HG_KERNELS_CUDA_EDGE_SOFTMAX_CUH

#include "kernels/cuda/edges.cuh"

struct softmax_problem {
	struct item_plan plan;
	const void *e, *p, *dp; /* forward: e; backward: p, dp */
	void *out;              /* forward: P; backward: dE */
	int64_t ld, limit;      /* ld: of all operands; limit: elements of storage */
	int heads, slices;      /* slices of 8 heads; neighbouring warps take the slices of an item */
	/* [2 * items, lead]: statistic s of a row is in columns s * heads + k */
	float *staging;
	int64_t lead;
};

/* ---- packs ---- */

/* The packs of an item, numbered from the pack that contains its first edge. H: heads of a pack. */
template <int H> struct item_packs {
	int64_t origin; /* element at which pack 0 begins */
	int64_t pitch;  /* elements from pack to pack */
	int shift;      /* elements of pack 0 before the item's first edge */
	int room;       /* elements of storage from pack 0 on, at most INT_MAX */

	__device__ item_packs(const struct softmax_problem &p, const struct warp_item &it, int slice)
	    : origin(H == 8 ? it.base * p.ld + 8 * slice : it.base * H / 8 * 8),
	      pitch(H == 8 ? p.ld : 8), shift(H == 8 ? 0 : static_cast<int>(it.base * H % 8))
	{
		const int64_t left = p.limit - origin;
		room = left < INT_MAX ? static_cast<int>(left) : INT_MAX;
	}
};

/* The packs first .. stop-1 that contain edges of a part, and the elements low .. high-1 of the
 * part, counted from pack 0. */
template <int H> struct pack_range {
	int first, stop, low, high;

	__device__ pack_range(const struct item_packs<H> &packs, const struct edge_part &part)
	    : low(packs.shift + part.begin * H), high(packs.shift + part.end * H)
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

/* The bits of pack q, or zeros after the end of the range. The bits are not used here, so that the
 * loads of several packs are in flight together. */
template <typename T, int H>
static __device__ inline raw<T, 8> load_pack(const void *data, const struct item_packs<H> &packs,
                                             const struct pack_range<H> &r, int q)
{
	const T *from = static_cast<const T *>(data) + packs.origin + q * packs.pitch;
	raw<T, 8> bits = {};
	if (q >= r.stop)
		return bits;
	if constexpr (H < 8)
		if (8 * q + 8 > packs.room) { /* the last pack of the storage, which may be incomplete */
			T x[8];
#pragma unroll
			for (int j = 0; j < 8; j++)
				x[j] = 8 * q + j < packs.room ? from[j] : T(0.0f);
			memcpy(bits.q, static_cast<const void *>(x), sizeof x);
			return bits;
		}
	return fetch<8>(from);
}

/* Pack q as numbers. Elements outside the part become `fill`. */
template <typename T, int H>
static __device__ inline void unpack_part(const raw<T, 8> &bits, const struct pack_range<H> &r,
                                          int q, float fill, float (&x)[8])
{
	unpack(bits, x);
	if (!r.whole(q))
#pragma unroll
		for (int j = 0; j < 8; j++)
			x[j] = r.has(q, j) ? x[j] : fill;
}

template <typename T, int H>
static __device__ inline void put(void *data, const struct item_packs<H> &packs,
                                  const struct pack_range<H> &r, int q, const float (&x)[8])
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

/* `lanes` neighbouring lanes (a power of two) that take a part. A warp has 32 / lanes sub-warps. */
struct sub_warp {
	int lanes, lane, number;

	__device__ explicit sub_warp(int size)
	    : lanes(size), lane(own_lane() & (size - 1)), number(own_lane() / size)
	{
	}
	__device__ int count() const
	{
		return 32 / lanes;
	}
};

/* As many lanes as the rows of the item have packs on average. */
template <int H> static __device__ inline int lanes_for(const struct warp_item &it)
{
	const int rows = it.last - it.row + 1, packs = (it.stop * H + 7) / 8;
	int lanes = 1;
	while (lanes < 32 && lanes * rows < packs)
		lanes *= 2;
	return lanes;
}

/* Sums over a sub-warp, with the same bits in each lane. The whole warp must take part. */
template <int H> static __device__ inline void join_sum(float (&x)[H], int lanes)
{
	for (int step = lanes / 2; step > 0; step /= 2)
#pragma unroll
		for (int h = 0; h < H; h++)
			x[h] += __shfl_xor_sync(ALL_LANES, x[h], step);
}
template <int H> static __device__ inline void fill_heads(float (&x)[H], float value)
{
#pragma unroll
	for (int h = 0; h < H; h++)
		x[h] = value;
}

/* Whether this warp has an item and a slice of its heads. */
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
	    : it(p.plan, p.slices == 1 ? own_warp() : own_warp() / p.slices),
	      slice(static_cast<int>(own_warp() - it.item * p.slices)), packs(p, it, slice)
	{
	}
	__device__ int64_t slot(const struct edge_part &part) const
	{
		return 2 * it.item + part.split;
	}
};

/* ---- staging ---- */

static __device__ inline float &staged(const struct softmax_problem &p, int64_t slot, int statistic,
                                       int head)
{
	return p.staging[slot * p.lead + statistic * p.heads + head];
}
template <int H>
static __device__ inline void stage(const struct softmax_problem &p, int64_t slot, int statistic,
                                    int slice, const float (&x)[H])
{
#pragma unroll
	for (int h = 0; h < H; h++)
		if (8 * slice + h < p.heads)
			staged(p, slot, statistic, 8 * slice + h) = x[h];
}
template <int H>
static __device__ inline void unstage(const struct softmax_problem &p, int64_t slot, int statistic,
                                      int slice, float (&x)[H])
{
#pragma unroll
	for (int h = 0; h < H; h++)
		x[h] = 8 * slice + h < p.heads ? staged(p, slot, statistic, 8 * slice + h) : 0.0f;
}

/* Packs of each operand that a lane keeps in registers. With one head of halves, three packs in 32
 * lanes hold a row of 760 edges, which is about the size of an item on large graphs. With more
 * heads, two packs leave registers for the statistics of each head. */
template <typename T, int H> constexpr int KEPT = H == 1 && sizeof(T) == 2 ? 3 : 2;

/* ---- parts ---- */

/* Calls short_part for those parts of an item whose packs fit the registers of their sub-warps (all
 * sub-warps of the warp decide together), and long_part for the others. */
template <typename T, int H, typename Short, typename Long>
static __device__ inline void each_part(const struct softmax_problem &p,
                                        const struct softmax_item<H> &item, Short short_part,
                                        Long long_part)
{
	const struct warp_item &it = item.it;
	const struct sub_warp s(lanes_for<H>(it));
	struct edge_part next = part_of(p.plan, it, it.row + s.number);
	for (int32_t row = it.row; row <= it.last; row += s.count()) {
		const struct edge_part part = next;
		next = part_of(p.plan, it, row + s.count() + s.number); /* loaded ahead */
		const struct pack_range<H> r(item.packs, part);
		if (__all_sync(ALL_LANES, r.stop - r.first <= KEPT<T, H> * s.lanes))
			short_part(s, part);
		else
			long_part(s, part);
	}
}

/* Calls f(s, part) for the parts of split rows in an item. There are at most two, the head and the
 * tail of the item, and each is taken by half a warp. */
template <typename F>
static __device__ inline void each_split(const struct softmax_problem &p,
                                         const struct warp_item &it, F f)
{
	const struct sub_warp s(16);
	if (s.number == 0 && it.row == it.last)
		return;
	const struct edge_part part = part_of(p.plan, it, s.number == 1 ? it.last : it.row);
	if (part.split >= 0 && part.begin < part.end)
		f(s, part);
}

/* ---- launch ---- */

HG_NODISCARD static inline hg_status prepare(hg_context *ctx, const char *kernel,
                                             const struct hg__csr &csr, const struct hg__mat &a,
                                             const struct hg__mat &b, int statistics,
                                             struct softmax_problem *p)
{
	if (!is_float(a) || a.dtype != b.dtype || a.ld != b.ld || a.rows != csr.m || a.cols != b.cols)
		return misfit(ctx, kernel, HG__ONE_FLOAT, a, b);
	if (!csr.plan || csr.edge)
		return hg__fail(ctx, HG_ERR_INTERNAL,
		                "%s: the graph has no plan, or edges in another order than its entries",
		                kernel);
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

/* Calls f(T{}, H) with the element type and the heads of a pack: 1, 2 or 4 if a row has exactly
 * that many elements, otherwise 8. */
template <typename F>
static inline hg_status with_packs(hg_context *ctx, const char *kernel, const struct hg__mat &m,
                                   F f)
{
	return with_float(ctx, kernel, m.dtype, [&](auto zero) {
		return m.ld == 1   ? f(zero, int_constant<1>{})
		       : m.ld == 2 ? f(zero, int_constant<2>{})
		       : m.ld == 4 ? f(zero, int_constant<4>{})
		                   : f(zero, int_constant<8>{});
	});
}

static inline unsigned blocks_of(const struct softmax_problem &p)
{
	return grid_for(p.plan.items * p.slices, WARPS);
}

#endif
