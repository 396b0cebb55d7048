/* How the kernels that compute a value per edge iterate over a graph. A warp takes one item of the
 * plan (core/csr.h) in batches of 32 neighbouring edges, lane l the l-th of them. So column ids are
 * read, and the results of one head written, as whole lines of memory. A batch may contain edges of
 * several rows. */
#ifndef HG_KERNELS_CUDA_EDGES_CUH
#define HG_KERNELS_CUDA_EDGES_CUH

#include <climits>

#include "kernels/cuda/parts.cuh"

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int WARPS = BLOCK / 32;

/* The number of the warp in the grid; blocks have BLOCK threads in x. The shuffle from lane 0 shows
 * the compiler that the value is the same in all lanes, so it keeps it once per warp and does not
 * guard later shuffles. All lanes must call it. */
static __device__ inline int64_t own_warp()
{
	return static_cast<int64_t>(blockIdx.x) * WARPS + __shfl_sync(ALL_LANES, threadIdx.x / 32, 0);
}
static __device__ inline int own_lane()
{
	return static_cast<int>(threadIdx.x % 32);
}

/* ---- an item ---- */

struct warp_item {
	int64_t item, base; /* base: number of its first edge */
	int stop;           /* number of its edges */
	int32_t row, last;  /* row of its first edge; the row that it does not finish (core/csr.h) */

	__device__ warp_item(const struct item_plan &p, int64_t i) : item(i), base(p.item_edge[i])
	{
		stop = static_cast<int>(p.item_edge[i + 1] - base);
		row = p.item_row ? p.item_row[i] : static_cast<int32_t>(i);
		last = p.item_row ? p.item_row[i + 1] : row + 1;
	}
};

/* ---- finding the row of an edge ---- */

/* The ends of 32 neighbouring rows: lane l has the end of row first + l, as an offset from the
 * item's first edge. Rows that the item does not finish have the end INT_MAX. The ends ascend, so
 * the row of an edge follows from the number of ends at or before it. Most items have fewer rows
 * than the window, and their ends are read only once. The ends of the next 32 rows are loaded one
 * window ahead, so that a sequence of short rows does not wait for them. */
struct row_window {
	int32_t first;
	int end;
	uint32_t later; /* the lower half as loaded: arithmetic on it here would wait for the load */

	static __device__ uint32_t load_ends(const struct item_plan &p, const struct warp_item &it,
	                                     int32_t from)
	{
		const int64_t r = static_cast<int64_t>(from) + own_lane();
		return r < it.last ? static_cast<uint32_t>(p.rowptr[r + 1]) : 0;
	}
	__device__ void settle(const struct warp_item &it, uint32_t loaded)
	{
		end = static_cast<int64_t>(first) + own_lane() < it.last
		          ? static_cast<int>(loaded - static_cast<uint32_t>(it.base))
		          : INT_MAX;
	}
	__device__ void open(const struct item_plan &p, const struct warp_item &it)
	{
		first = it.row;
		const uint32_t now = load_ends(p, it, first);
		later = load_ends(p, it, first + 32);
		settle(it, now);
	}
	__device__ void forward(const struct item_plan &p, const struct warp_item &it)
	{
		first += 32;
		settle(it, later);
		later = load_ends(p, it, first + 32);
	}
	__device__ int reach() const
	{
		return __shfl_sync(ALL_LANES, end, 31);
	}
	/* The number of rows among the first 31 that end at or before `edge`, which may differ between
	 * lanes, by bisection. */
	__device__ int count(int edge) const
	{
		int below = 0;
#pragma unroll
		for (int step = 16; step > 0; step /= 2)
			below += __shfl_sync(ALL_LANES, end, below + step - 1) <= edge ? step : 0;
		return below;
	}
	/* The row of edge e + lane, for lanes below n. *one is set if all n edges belong to one row. e
	 * must not decrease from call to call. */
	__device__ int32_t rows_of(const struct item_plan &p, const struct warp_item &it, int e, int n,
	                           bool *one)
	{
		int far = reach();
		while (far <= e) {
			forward(p, it);
			far = reach();
		}
		const int at = __popc(__ballot_sync(ALL_LANES, end <= e));
		*one = __shfl_sync(ALL_LANES, end, at) >= e + n;
		if (*one)
			return first + at;
		const int edge = e + own_lane();
		int32_t row = first + count(edge);
		while (far < e + n) { /* many short or empty rows: move to the next window */
			forward(p, it);
			const int32_t later = first + count(edge);
			row = edge < far ? row : later;
			far = reach();
		}
		return row;
	}
};

/* ---- parts of rows ---- */

/* The edges of a row that lie in an item: begin .. end-1, counted from the item's first edge. */
struct edge_part {
	int begin, end;
	/* -1: the item has the whole row; otherwise the part's staging slot is 2 * item + split */
	int split;
};

/* The part of `row` in an item; a row after the item's last one has no edges. */
static __device__ inline struct edge_part part_of(const struct item_plan &p,
                                                  const struct warp_item &it, int32_t row)
{
	if (row > it.last)
		return {0, 0, -1};
	const int64_t begin = p.rowptr[row] - it.base;
	const int end = row < it.last ? static_cast<int>(p.rowptr[row + 1] - it.base) : it.stop;
	return {begin > 0 ? static_cast<int>(begin) : 0, end, row == it.last ? 1 : begin < 0 ? 0 : -1};
}

#endif
