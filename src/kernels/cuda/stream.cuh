#ifndef HG_KERNELS_CUDA_STREAM_CUH
#define HG_KERNELS_CUDA_STREAM_CUH

/* A walk over the entries of one item that never stops at a row's end: U gathers are always under way together, whatever rows they belong to, and the rows are
 * told apart when the sums are made. Short rows and hubs keep the memory equally busy.
 *
 * A sub-warp (threadIdx.x of blockDim.x lanes, a power of two) takes the item. Steps begin at entry numbers divisible by U, so that column ids and weights are read
 * in whole vectors; what lies before the item in its first step, and behind it in its last, is not touched. Empty rows are passed over: who calls fills them. */

#include "kernels/cuda/parts.cuh"

/* Entries a step. H200, f16, unit weights, F = 64, one run, with as many blocks as registers allow: 4 entries and 4 blocks against 8 and 3: reddit-like 1.74 and 1.72 ms,
 * products-like 3.81 and 3.80, Kron-21 1.40 and 1.49, whose short rows leave more of a longer step unused. */
constexpr int STEP = 4;

struct sub_warp {
	int lane, lanes;
	unsigned mask; /* its lanes within the warp */
};

static __device__ inline struct sub_warp own_sub_warp()
{
	const int lanes = static_cast<int>(blockDim.x), first = static_cast<int>(threadIdx.y) * lanes % 32;
	return {static_cast<int>(threadIdx.x), lanes, (lanes == 32 ? 0xffffffffu : (1u << lanes) - 1u) << first};
}

/* Row ends of an item, a window of `lanes` rows at a time: lane k holds the end of row first + k as an offset from `origin`; rows that the item does not
 * finish end nowhere. */
struct end_window {
	const int64_t *rowptr;
	int64_t origin;
	int32_t last; /* the row that the item does not finish */
	int32_t first;
	int end;

	__device__ int end_of(int32_t row) const
	{
		return row < last ? static_cast<int>(rowptr[row + 1] - origin) : INT32_MAX;
	}
	__device__ void open(const struct sub_warp &me, int32_t row)
	{
		first = row;
		end = end_of(row + me.lane);
	}
	/* The first row of the window or behind it that ends after entry e; its end. Rows in between are empty. */
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

/* What the walk asks of its caller, all with entry numbers:
 *
 *     ahead(entry, live)    the next step begins at `entry`, its first `live` entries are inside the item: start loads that its own loads depend on
 *     step(entry, live)     that step begins: start loads that its lanes share
 *     load(u, entry, id)    start the loads of the step's entry u
 *     add(u)                add it to the sum
 *     batch(row)            an entry number divisible by HG_BATCH_EDGES has been reached inside the row
 *     put(row, slot)        the part is complete: its sum goes to the row, or to a staging slot (>= 0); start again from 0 */
template <typename Ahead, typename Step, typename Load, typename Add, typename Batch, typename Put>
static __device__ inline void stream_item(const struct item_plan &p, const int32_t *cols, int64_t item, const struct sub_warp &me, Ahead ahead, Step step,
                                          Load load, Add add, Batch batch, Put put)
{
	const int64_t base = p.item_edge[item], origin = base / STEP * STEP;
	const int begin = static_cast<int>(base - origin), stop = static_cast<int>(p.item_edge[item + 1] - origin);
	const int32_t *col = cols + origin;
	int32_t row = p.item_row ? p.item_row[item] : static_cast<int32_t>(item);
	struct end_window rows = {p.rowptr, origin, p.item_row ? p.item_row[item + 1] : row + 1, 0, 0};
	bool head = row < rows.last && p.rowptr[row] < base;
	rows.open(me, row);
	int from = begin, end = rows.seek(me, begin, &row);
	int id[STEP];
	load_ids(col, 0, stop, id);
	if (stop > 0)
		ahead(origin, stop < STEP ? stop : STEP);
	for (int e = 0; e < stop; e += STEP) {
		__syncwarp(); /* the sub-warps of a warp take each step together */
		step(origin + e, stop - e < STEP ? stop - e : STEP);
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
		if (__all_sync(__activemask(), plain)) { /* no row ends here: nearly always where rows are long */
#pragma unroll
			for (int u = 0; u < STEP; u++)
				add(u);
		} else { /* entry by entry, so that sub-warps with a row end and those without go through the same sums */
#pragma unroll
			for (int u = 0; u < STEP; u++) {
				if (e + u >= begin && e + u < stop)
					add(u);
				if (e + u + 1 == end) {
					put(row, head ? 2 * item : -1);
					head = false;
					from = end;
					end = rows.seek(me, end, &row);
				}
			}
		}
		if ((origin + next) % HG_BATCH_EDGES == 0)
			batch(row);
	}
	if (from < stop)
		put(rows.last, 2 * item + 1);
}

#endif
