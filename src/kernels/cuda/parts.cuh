/* What edge-parallel kernels share: the plan as they read it, grids, the iteration over an item of
 * the plan (core/csr.h), the fold and gathers. Kernels that take parts by length are in
 * by_length.cuh.
 *
 * A sub-warp (threadIdx.x is the lane, threadIdx.y the sub-warp) takes one item and goes through
 * its edges in CSR order, part by part. A part is the edges of one row in one item. If the item has
 * the whole row, the result is written at once. The results of the parts of a split row go to
 * staging slots, and a second, small kernel, the fold, combines them in slot order. There are no
 * atomics. */
#ifndef HG_KERNELS_CUDA_PARTS_CUH
#define HG_KERNELS_CUDA_PARTS_CUH

#include "kernels/cuda/launch.cuh"

/* ---- the plan ---- */

/* What kernels read of struct hg__plan (core/csr.h), with the rows that it divides. */
struct item_plan {
	int64_t rows, items, splits;
	const int64_t *item_edge, *rowptr, *split_first, *split_last;
	const int32_t *item_row, *split_row;
};

static inline struct item_plan plan_of(const struct hg__csr &csr)
{
	const struct hg__plan &p = *csr.plan;
	return {csr.rows,      p.items,      p.splits,   p.item_edge, csr.rowptr,
	        p.split_first, p.split_last, p.item_row, p.split_row};
}

/* A grid for pieces (items or split rows) of `units` each (columns, heads, or packs of 8 columns),
 * with one thread for each unit. A piece has a power of two of lanes, at least `units`, but no more
 * than `most`. A block of BLOCK threads takes several pieces, and grid.y covers the units for which
 * there are no lanes. */
struct edge_grid {
	dim3 grid, block;
};
static inline struct edge_grid edge_grid_of(int64_t pieces, int64_t units, unsigned most = 32)
{
	unsigned lanes = 1;
	while (lanes < most && lanes < units)
		lanes *= 2;
	return {dim3(grid_for(pieces, BLOCK / lanes), grid_for(units, lanes)),
	        dim3(lanes, BLOCK / lanes)};
}

/* A grid has at most 65,535 blocks in y. In each of them a piece has 32 columns or more: 32 lanes,
 * or at least 4 lanes with packs of 8, which all rows of more than 4 columns have (hg__leading). */
constexpr int64_t MOST_EDGE_COLUMNS = 65535LL * 32;
HG_NODISCARD static inline hg_status edge_columns_fit(hg_context *ctx, const char *kernel,
                                                      int64_t cols)
{
	return cols <= MOST_EDGE_COLUMNS
	           ? HG_OK
	           : hg__fail(ctx, HG_ERR_UNSUPPORTED,
	                      "%s: %lld columns, a grid of the GPU holds at most %lld", kernel,
	                      static_cast<long long>(cols), static_cast<long long>(MOST_EDGE_COLUMNS));
}

/* The piece and the unit of this thread in a grid of edge_grid_of. */
static __device__ inline int64_t own_piece()
{
	return static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
}
static __device__ inline int64_t own_unit()
{
	return static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
}

/* ---- iteration over one item ---- */

/* A position within an item, and the part that it lies in. e, begin, end and stop count edges from
 * the first edge of the item, so that they fit in 32 bits; base and ahead are edge numbers. */
struct cursor {
	int64_t item, base; /* base: number of the item's first edge */
	/* End of the next row's part. It is loaded one row early, so that its latency is hidden. */
	int64_t ahead;
	int e, begin, end; /* e: the next edge; begin, end: the current part */
	int stop;          /* number of edges of the item */
	/* row: that of the part; tail: the row after those that the item finishes, of which it may have
	 * some edges, but not the last one */
	int32_t row, tail;
	bool head; /* the row of the part began in an earlier item */

	/* Moves to the first part of item i. Returns false if the item is empty (csr.h rules
	 * that out). */
	__device__ bool open(const struct item_plan &p, int64_t i)
	{
		item = i;
		base = p.item_edge[i];
		stop = static_cast<int>(p.item_edge[i + 1] - base);
		row = p.item_row ? p.item_row[i] : static_cast<int32_t>(i);
		tail = p.item_row ? p.item_row[i + 1] : row + 1;
		e = begin = 0;
		end = row < tail ? static_cast<int>(p.rowptr[row + 1] - base) : stop;
		look_ahead(p);
		head = row < tail && p.rowptr[row] < base;
		return row < tail || stop > 0;
	}
	/* Number of edges in the next step, at most `most`; 0 if the part has none. */
	__device__ int step(int most) const
	{
		return end - e < most ? end - e : most;
	}
	/* Where the result of this part goes: the tail slot or the head slot of the item (core/csr.h),
	 * or -1 if the item has the whole row. */
	__device__ int64_t slot() const
	{
		return row == tail ? 2 * item + 1 : head ? 2 * item : -1;
	}
	/* Moves to the next part. Returns false at the end of the item. */
	__device__ bool next(const struct item_plan &p)
	{
		if (row == tail) /* the part of the tail is the last one of the item */
			return false;
		row++;
		head = false;
		begin = e = end;
		end = static_cast<int>(ahead - base);
		look_ahead(p);
		return row < tail || e < stop;
	}
	__device__ void look_ahead(const struct item_plan &p)
	{
		ahead = row + 1 < tail ? p.rowptr[row + 2] : base + stop;
	}
};

/* ---- the fold of split rows ---- */

/* The slot of `item` in a split row that item `last` finishes: the tail slot of every earlier item,
 * the head slot of `last`. */
static __device__ inline int64_t slot_of(int64_t item, int64_t last)
{
	return 2 * item + (item < last ? 1 : 0);
}

/* Number of staging slots that are read together. Their addresses do not depend on each other, so a
 * row of hundreds of slots takes the time to move its bytes, not hundreds of latencies. */
constexpr int FOLD_UNROLL = 16;

/* Calls f(value) for column c of each slot of split row s, in slot order. staging is [2 * items,
 * lead]. */
template <typename V, typename F>
static __device__ inline void each_slot(const struct item_plan &p, int64_t s, const V *staging,
                                        int64_t lead, int64_t c, F f)
{
	const int64_t first = p.split_first[s], last = p.split_last[s];
	for (int64_t item = first; item <= last; item += FOLD_UNROLL) {
		V v[FOLD_UNROLL];
#pragma unroll
		for (int u = 0; u < FOLD_UNROLL; u++)
			v[u] = item + u <= last ? staging[slot_of(item + u, last) * lead + c] : V(0);
#pragma unroll
		for (int u = 0; u < FOLD_UNROLL; u++)
			if (item + u <= last)
				f(v[u]);
	}
}

/* ---- gathers ---- */

/* W elements of a neighbour's row as they lie in memory; W is 1 or 8. A lane unpacks them only when
 * it uses them, so that several loads are in flight. */
template <typename T, int W> struct raw {
	T v;
};
template <> struct raw<__half, 8> {
	uint4 q[1];
};
template <> struct raw<float, 8> {
	uint4 q[2];
};

/* Loads W elements, which the kernel must not write. For W = 8, p is a multiple of 16 bytes. */
template <int W, typename T> static __device__ inline raw<T, W> fetch(const T *p)
{
	raw<T, W> r;
	if constexpr (W == 1) {
		r.v = __ldg(p);
	} else {
#pragma unroll
		for (size_t i = 0; i < sizeof r.q / sizeof r.q[0]; i++)
			r.q[i] = __ldg(reinterpret_cast<const uint4 *>(p) + i);
	}
	return r;
}

static __device__ inline __half2 half2_of(unsigned bits)
{
	return *reinterpret_cast<const __half2 *>(&bits);
}

/* N: the type in which the kernel computes, float or half. */
template <typename T, typename N>
static __device__ inline void unpack(const raw<T, 1> &r, N (&x)[1])
{
	x[0] = N(widen(r.v));
}
static __device__ inline void unpack(const raw<__half, 8> &r, float (&x)[8])
{
	const unsigned bits[4] = {r.q[0].x, r.q[0].y, r.q[0].z, r.q[0].w};
#pragma unroll
	for (int i = 0; i < 4; i++) {
		const float2 f = __half22float2(half2_of(bits[i]));
		x[2 * i] = f.x;
		x[2 * i + 1] = f.y;
	}
}
static __device__ inline void unpack(const raw<__half, 8> &r, __half (&x)[8])
{
	const unsigned bits[4] = {r.q[0].x, r.q[0].y, r.q[0].z, r.q[0].w};
#pragma unroll
	for (int i = 0; i < 4; i++) {
		x[2 * i] = __low2half(half2_of(bits[i]));
		x[2 * i + 1] = __high2half(half2_of(bits[i]));
	}
}
static __device__ inline void unpack(const raw<float, 8> &r, float (&x)[8])
{
#pragma unroll
	for (int i = 0; i < 2; i++) {
		x[4 * i] = __uint_as_float(r.q[i].x);
		x[4 * i + 1] = __uint_as_float(r.q[i].y);
		x[4 * i + 2] = __uint_as_float(r.q[i].z);
		x[4 * i + 3] = __uint_as_float(r.q[i].w);
	}
}

/* Edges whose gathers are in flight together. With W = 8 these are eight 16-byte loads a lane,
 * which hide the latency of device memory. By Little's law an H200 needs 4.8 TB/s * 1 us / 132 SMs
 * = 36 kB in flight per SM, which 285 lanes of 8 * 16 bytes reach. */
template <typename T, int W> constexpr int GATHERS = sizeof(T) * W > 16 ? 4 : 8;

/* Iterates over one item in steps of at most U edges of one part. A step calls
 *
 *     bits = load(edge, j)      for each of its edges: the number of the edge, and its neighbour j
 *     add(bits, live, index)    U times, in order. live: this is an edge of the step, number
 *                               `index` of its part, from 0; otherwise its bits are zero
 *     after(done)               once. done: the part is complete
 *
 * The neighbours of the next step are loaded while the gathers of this step are in flight. */
template <int U, typename Load, typename Add, typename After>
static __device__ inline void walk_item(const struct item_plan &p, const int32_t *col,
                                        struct cursor &at, Load load, Add add, After after)
{
	using bits = decltype(load(int64_t(0), int32_t(0)));
	const int32_t *own_col = col + at.base; /* of the edges of the item */
	int32_t id[U];
#pragma unroll
	for (int u = 0; u < U; u++)
		id[u] = u < at.stop ? __ldg(own_col + u) : 0;
	for (bool more = true; more;) {
		/* The sub-warps of a warp take each step together. A lane that is done must leave the
		 * kernel: this barrier waits for all lanes that have not, so a barrier in code after
		 * walk_item would meet this one. */
		__syncwarp();
		const int n = at.step(U), index = at.e - at.begin;
		bits g[U];
#pragma unroll
		for (int u = 0; u < U; u++) {
			g[u] = {};
			if (u < n)
				g[u] = load(at.base + at.e + u, id[u]);
		}
		at.e += n;
#pragma unroll
		for (int u = 0; u < U; u++)
			id[u] = at.e + u < at.stop ? __ldg(own_col + at.e + u) : 0;
#pragma unroll
		for (int u = 0; u < U; u++)
			add(g[u], u < n, index + u);
		const bool done = at.e == at.end;
		after(done);
		if (done)
			more = at.next(p);
	}
}

#endif
