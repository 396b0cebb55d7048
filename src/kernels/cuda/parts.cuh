/* How the edge-parallel kernels iterate over a graph. A sub-warp (threadIdx.x is the lane,
 * threadIdx.y the sub-warp) takes one item of the plan (core/csr.h) and goes through its edges in
 * CSR order, part by part. A part is the edges of one row in one item. If the item has the whole
 * row, the result is written at once. Parts of a split row go to staging slots, and a second, small
 * kernel adds them in slot order. There are no atomics. */
#ifndef HG_KERNELS_CUDA_PARTS_CUH
#define HG_KERNELS_CUDA_PARTS_CUH

#include "kernels/cuda/launch.cuh"

/* ---- the plan ---- */

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

/* A grid with one thread for each of `units` lanes of work per item: a power of two of lanes, at
 * most a warp. The rest of a block covers further items or split rows, and grid.y covers the units
 * above 32. */
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

/* A grid has at most 65,535 blocks in y, each of at least 32 columns. */
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

static __device__ inline int64_t own_piece()
{
	return static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
}
static __device__ inline int64_t own_unit()
{
	return static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
}

/* ---- iteration over one item ---- */

/* A position within an item. Offsets count edges from the first edge of the item, so that they fit
 * in 32 bits. */
struct cursor {
	int64_t item, base; /* base: number of the item's first edge */
	/* End of the next row's part, as an edge number. It is loaded one row early, so that its
	 * latency is hidden. */
	int64_t ahead;
	int e, begin, end; /* e: the next edge; begin, end: the current part */
	int stop;          /* end of the item */
	int32_t row, last; /* row: that of the part; last: the row that the item does not finish */
	bool head;         /* the row of the part began in an earlier item */

	/* Moves to the first part of item i. Returns false if the item is empty. */
	__device__ bool open(const struct item_plan &p, int64_t i)
	{
		item = i;
		base = p.item_edge[i];
		stop = static_cast<int>(p.item_edge[i + 1] - base);
		row = p.item_row ? p.item_row[i] : static_cast<int32_t>(i);
		last = p.item_row ? p.item_row[i + 1] : row + 1;
		e = begin = 0;
		end = row < last ? static_cast<int>(p.rowptr[row + 1] - base) : stop;
		look_ahead(p);
		head = row < last && p.rowptr[row] < base;
		return row < last || stop > 0;
	}
	/* Number of edges in the next step, at most `most`; 0 for an empty row. */
	__device__ int step(int most) const
	{
		return end - e < most ? end - e : most;
	}
	/* Where the result of this part goes: a staging slot, or -1 if the item has the whole row. */
	__device__ int64_t slot() const
	{
		return row == last ? 2 * item + 1 : head ? 2 * item : -1;
	}
	/* Moves to the next part. Returns false at the end of the item. */
	__device__ bool next(const struct item_plan &p)
	{
		if (row == last)
			return false;
		row++;
		head = false;
		begin = e = end;
		end = static_cast<int>(ahead - base);
		look_ahead(p);
		return row < last || e < stop;
	}
	__device__ void look_ahead(const struct item_plan &p)
	{
		ahead = row + 1 < last ? p.rowptr[row + 2] : base + stop;
	}
};

/* ---- the fold: split row s has the slots slot_of(first, last) .. slot_of(last, last), added in
 * this order ---- */

static __device__ inline int64_t slot_of(int64_t item, int64_t last)
{
	return 2 * item + (item < last ? 1 : 0);
}

/* Staging slots that are read together. Their addresses do not depend on each other, so hundreds of
 * slots of a hub cost bandwidth and not latency. */
constexpr int FOLD_UNROLL = 16;

/* Calls f(value) for each slot of split row s in column c, in slot order. */
template <typename V, typename F>
static __device__ inline void each_slot(const struct item_plan &p, int64_t s, const V *staging,
                                        int64_t lead, int64_t c, F f)
{
	const int64_t first = p.split_first[s], last = p.split_last[s];
	for (int64_t k = first; k <= last; k += FOLD_UNROLL) {
		V v[FOLD_UNROLL];
#pragma unroll
		for (int u = 0; u < FOLD_UNROLL; u++)
			v[u] = k + u <= last ? staging[slot_of(k + u, last) * lead + c] : V(0);
#pragma unroll
		for (int u = 0; u < FOLD_UNROLL; u++)
			if (k + u <= last)
				f(v[u]);
	}
}

/* ---- gathers: a lane loads bits of a neighbour's row and unpacks them only when they are used, so
 * that several loads are in flight ---- */

template <typename T, int W> struct raw {
	T v;
};
template <> struct raw<__half, 8> {
	uint4 q[1];
};
template <> struct raw<float, 8> {
	uint4 q[2];
};

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

/* Edges whose gathers are in flight together, for packs of W elements of T. Eight 16-byte loads a
 * lane hide the latency of device memory. By Little's law an H200 needs 4.8 TB/s * 1 us / 132 SMs =
 * 36 kB in flight per SM, which 290 lanes of 8 * 16 bytes reach. The number divides HG_BATCH_EDGES.
 */
template <typename T, int W> constexpr int gathers = sizeof(T) * W > 16 ? 4 : 8;

/* Iterates over one item in steps of at most U edges of one part. A step calls
 *
 *     bits = load(edge number, column id)   for each of its edges
 *     add(bits, live, index)                for each of U slots, in order. index: edges of the part
 *                                           before this one. If not live, the slot is unused and
 *                                           its bits are zero
 *     after(done, index)                    once. done: the part is complete; index: its edges so
 *                                           far
 *
 * The column ids of the next step are loaded while the gathers of this step are in flight. */
template <int U, typename Load, typename Add, typename After>
static __device__ inline void walk_item(const struct item_plan &p, const int32_t *cols,
                                        struct cursor &at, Load load, Add add, After after)
{
	using bits = decltype(load(int64_t(0), int32_t(0)));
	const int32_t *col = cols + at.base;
	int32_t id[U];
#pragma unroll
	for (int u = 0; u < U; u++)
		id[u] = u < at.stop ? __ldg(col + u) : 0;
	for (bool more = true; more;) {
		__syncwarp(); /* the sub-warps of a warp take each step together */
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
			id[u] = at.e + u < at.stop ? __ldg(col + at.e + u) : 0;
#pragma unroll
		for (int u = 0; u < U; u++)
			add(g[u], u < n, index + u);
		const bool done = at.e == at.end;
		after(done, index + n);
		if (done)
			more = at.next(p);
	}
}

#endif
