/* The loop of the variants that share edges equally (spmm.cu). It goes over the entries of
 * one item without stopping at the ends of rows: STEP gathers are always in flight together,
 * whatever rows they belong to, and rows are separated when the sums are made. So short rows and
 * hubs keep the memory equally busy.
 *
 * A sub-warp (threadIdx.x of blockDim.x lanes, a power of two) takes the item. Steps begin at entry
 * numbers divisible by STEP, so that column ids and weights are read in whole vectors. Entries
 * before the item in its first step, and after it in its last, are not used. */
#ifndef HG_BENCH_SPMM_WALK_CUH
#define HG_BENCH_SPMM_WALK_CUH

#include "kernels/cuda/parts.cuh"

/* Entries per step. Measured when training used this loop as well, on an H200, f16, unit weights, F
 * = 64, in one run, with as many blocks as registers allow. 4 entries and 4 blocks against 8 and 3:
 * reddit-like 1.74 and 1.72 ms, products-like 3.81 and 3.80, Kron-21 1.40 and 1.49, because its
 * short rows leave more of a longer step unused. */
constexpr int STEP = 4;

struct sub_warp {
	int lane, lanes;
	unsigned mask; /* its lanes within the warp */
};

static __device__ inline struct sub_warp own_sub_warp()
{
	const int lanes = static_cast<int>(blockDim.x),
	          first = static_cast<int>(threadIdx.y) * lanes % 32;
	return {static_cast<int>(threadIdx.x), lanes,
	        (lanes == 32 ? 0xffffffffu : (1u << lanes) - 1u) << first};
}

/* The rows of an item, in a window of `lanes` rows: lane k holds the end of row first + k as an
 * offset from `origin`, and its scale. Rows that the item does not finish have the end INT32_MAX.
 */
struct end_window {
	const int64_t *rowptr;
	const float *row_scale; /* NULL: all 1 */
	int64_t origin, rows;
	int32_t last; /* the row that the item does not finish */
	int32_t first;
	int end;
	float scale;

	__device__ int end_of(int32_t row) const
	{
		return row < last ? static_cast<int>(rowptr[row + 1] - origin) : INT32_MAX;
	}
	__device__ void open(const struct sub_warp &me, int32_t row)
	{
		first = row;
		end = end_of(row + me.lane);
		scale = row_scale && row + me.lane < rows ? row_scale[row + me.lane] : 1.0f;
	}
	/* The scale of a row in the window. */
	__device__ float scale_of(const struct sub_warp &me, int32_t row) const
	{
		return row_scale ? __shfl_sync(me.mask, scale, row - first, me.lanes) : 1.0f;
	}
	/* Finds the first row, in the window or after it, that ends after entry e, and returns its end.
	 * Rows in between are empty. */
	__device__ int seek(const struct sub_warp &me, int e, int32_t *row)
	{
		for (;;) {
			const unsigned later = __ballot_sync(me.mask, end > e);
			if (later) {
				const int lane = (__ffs(static_cast<int>(later)) - 1) & (me.lanes - 1);
				*row = first + lane;
				return __shfl_sync(me.mask, end, lane, me.lanes);
			}
			open(me, first + me.lanes);
		}
	}
};

/* Column ids of the step that begins at offset e. */
static __device__ inline void load_ids(const int32_t *col, int e, int stop, int (&id)[STEP])
{
	static_assert(STEP == 4, "one int4");
	if (e + STEP <= stop) {
		const int4 four = __ldg(reinterpret_cast<const int4 *>(col + e));
		id[0] = four.x, id[1] = four.y, id[2] = four.z, id[3] = four.w;
		return;
	}
#pragma unroll
	for (int u = 0; u < STEP; u++)
		if (e + u < stop)
			id[u] = __ldg(col + e + u);
}

/* The loop, and the functions that it calls, all with entry numbers:
 *
 *     ahead(entry, live)    the next step begins at `entry`, and its first `live` entries are in
 *                           the item: start loads on which the other loads of that step depend
 *     step()                that step begins: start loads that its lanes share
 *     load(u, entry, id)    start the loads of entry u of the step
 *     add(u)                add it to the sum
 *     batch(scale)          an entry number divisible by HG_BATCH_EDGES was reached inside a row
 *                           with this scale
 *     zero(row)             the row is empty
 *     put(row, slot, scale) the part is complete: store its sum in the row, or in staging slot
 *                           `slot` if that is >= 0, and restart from 0 */
template <typename Ahead, typename Step, typename Load, typename Add, typename Batch, typename Zero,
          typename Put>
static __device__ inline void stream_item(const struct item_plan &p, const int32_t *cols,
                                          const float *row_scale, int64_t item,
                                          const struct sub_warp &me, Ahead ahead, Step step,
                                          Load load, Add add, Batch batch, Zero zero, Put put)
{
	const int64_t base = p.item_edge[item], origin = base / STEP * STEP;
	const int begin = static_cast<int>(base - origin),
	          stop = static_cast<int>(p.item_edge[item + 1] - origin);
	const int32_t *col = cols + origin;
	int32_t row = p.item_row ? p.item_row[item] : static_cast<int32_t>(item);
	struct end_window rows = {
	    p.rowptr, row_scale, origin, p.rows, p.item_row ? p.item_row[item + 1] : row + 1,
	    0,        0,         1.0f};
	bool head = row < rows.last && p.rowptr[row] < base;
	rows.open(me, row);
	/* moves to the first row from `next` on that has entries after e */
	const auto seek = [&](int e, int32_t next) {
		const int end = rows.seek(me, e, &row);
		for (; next < row; next++)
			zero(next);
		return end;
	};
	int from = begin, end = seek(begin, row);
	int id[STEP];
	load_ids(col, 0, stop, id);
	if (stop > 0)
		ahead(origin, stop < STEP ? stop : STEP);
	for (int e = 0; e < stop; e += STEP) {
		__syncwarp(); /* the sub-warps of a warp take each step together */
		step();
		const int next = e + STEP;
		if (e >= begin && next <= stop) {
#pragma unroll
			for (int u = 0; u < STEP; u++)
				load(u, origin + e + u, id[u]);
		} else {
#pragma unroll
			for (int u = 0; u < STEP; u++)
				if (e + u >= begin && e + u < stop)
					load(u, origin + e + u, id[u]);
		}
		if (next < stop) {
			load_ids(col, next, stop, id);
			ahead(origin + next, stop - next < STEP ? stop - next : STEP);
		}
		const bool plain = e >= begin && end > next && next <= stop;
		/* no row ends here, which is the common case where rows are long */
		if (__all_sync(__activemask(), plain)) {
#pragma unroll
			for (int u = 0; u < STEP; u++)
				add(u);
		} else {
			/* Entry by entry, so that sub-warps with and without a row end execute the same
			 * additions. */
#pragma unroll
			for (int u = 0; u < STEP; u++) {
				if (e + u >= begin && e + u < stop)
					add(u);
				if (e + u + 1 == end) {
					put(row, head ? 2 * item : -1, rows.scale_of(me, row));
					head = false;
					from = end;
					end = seek(end, row + 1);
				}
			}
		}
		if ((origin + next) % HG_BATCH_EDGES == 0)
			batch(rows.scale_of(me, row));
	}
	if (from < stop)
		put(rows.last, 2 * item + 1, rows.scale_of(me, row));
}

#endif
