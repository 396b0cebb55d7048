/* Dot products on edges for rows of halves, by tensor cores:
 *
 *     E[edge p, k] = scale * r_i * s_j * sum over c in head k of A[i, c] * B[j, c]
 *
 * A matrix product computes the dot products of eight rows of A with eight rows of B, and each edge
 * needs one of eight. Seven are thrown away. It is still a gain: one instruction makes the sums of
 * eight edges over 16 columns, for which a lane's own arithmetic takes 16 instructions, and then
 * the sum over lanes. So loads alone determine the time of this kernel.
 *
 * A warp takes a batch of 32 neighbouring edges, with L lanes per edge: 4 for up to 32 columns,
 * otherwise 8 for chunks of 64 columns. A lane loads 16 bytes of B, and they are already where the
 * instruction needs them. The operands of lane 4 g + q (the order of columns within a sum is free,
 * as long as A and B agree):
 *
 *     A, rows g and g + 8 of the left operand: row first + g, 8 columns from 8 q on (L = 4), or
 *        from 8 q and from 32 + 8 q on (L = 8)
 *     B, column g of the right operand: 8 columns of an edge. L = 4: edge g, from 8 q on.
 *        L = 8: edge g / 2, from 8 q (g even) or from 32 + 8 q (g odd) on
 *     C, c0 = [g, 2 q], c1 = [g, 2 q + 1], c3 = [g + 8, 2 q + 1]
 *        L = 4: c0 and c1 are row first + g by edges 2 q and 2 q + 1
 *        L = 8: c0 is the lower half of row first + g by edge q, c3 the upper half
 *
 * Most batches have edges of at most eight rows, first .. first + 7. For a batch with more rows the
 * product is computed again for the next eight. */

#include "kernels/cuda/sddmm.cuh"
#include "kernels/cuda/tensor_core.cuh"

/* ---- operands ---- */

/* The 8 columns from `at` on of the rows of a matrix; `left` of them are before `end`. EXACT: all
 * of them are. Otherwise a lane behind the end reads the first columns instead, and everything that
 * is not a column is replaced by 0, because it may hold anything, NaNs included. */
template <bool EXACT> struct tile_columns {
	const char *data;
	uint32_t pitch;
	int left;

	__device__ tile_columns(const void *matrix, uint32_t pitch, int at, int end)
	    : data(reinterpret_cast<const char *>(static_cast<const __half *>(matrix) +
	                                          (EXACT || at < end ? at : 0))),
	      pitch(pitch), left(end - at)
	{
	}
	__device__ uint4 row(int32_t i) const
	{
		uint64_t offset; /* left to itself, the compiler multiplies two 64-bit numbers */
		asm("mul.wide.u32 %0, %1, %2;" : "=l"(offset) : "r"(i), "r"(pitch));
		return __ldg(reinterpret_cast<const uint4 *>(data + offset));
	}
	__device__ unsigned mask(unsigned pair, int i) const
	{
		/* the lower half is the first */
		return pair & (left > 2 * i + 1 ? 0xffffffffu : left > 2 * i ? 0xffffu : 0u);
	}
	__device__ uint4 masked(uint4 r) const
	{
		return EXACT ? r : make_uint4(mask(r.x, 0), mask(r.y, 1), mask(r.z, 2), mask(r.w, 3));
	}
};

/* Rows first .. last of A, at most eight, in registers: C chunks of 8 L columns, as the left
 * operands of two products. */
template <int L, int C> struct tile_rows {
	int32_t first, last; /* first < 0: none */
	uint4 left[C][2];

	/* Loads the rows. Rows after the last are zeros. (The selection in each register also makes the
	 * compiler put the two operands where they are used, once. With plain copies it would copy them
	 * again at each use.) */
	template <bool EXACT>
	__device__ void take(const struct sddmm_problem &p, int32_t from, int32_t to, int start,
	                     int end)
	{
		const int g = own_lane() / 4, at = start + own_lane() % 4 * 8;
		const bool live = g <= to - from;
		const int32_t i = live ? from + g : to;
		first = from;
		last = to;
#pragma unroll
		for (int c = 0; c < C; c++) {
			const tile_columns<EXACT> lower(p.a, p.pitch_a, at + c * 8 * L, end),
			    upper(p.a, p.pitch_a, at + c * 8 * L + 32, end);
			const uint4 x = lower.masked(lower.row(i)),
			            y = L == 8 ? upper.masked(upper.row(i)) : make_uint4(0, 0, 0, 0);
			left[c][0] = make_uint4(live ? x.x : 0, live ? y.x : 0, live ? x.y : 0, live ? y.y : 0);
			left[c][1] = make_uint4(live ? x.z : 0, live ? y.z : 0, live ? x.w : 0, live ? y.w : 0);
		}
	}
	/* sum += chunk c of these rows times that of 32 / L edges */
	__device__ void multiply_by(int c, const uint4 &y, float (&sum)[4]) const
	{
		multiply(sum, left[c][0], y.x, y.y);
		multiply(sum, left[c][1], y.z, y.w);
	}
};

/* ---- a batch ---- */

/* Takes the results of step s, which has the edges from s * 32 / L on. A lane whose edge is among
 * them gets its total from the lanes that hold the row. `row` counts from the first row. */
template <int L>
static __device__ inline void pick(const float (&sum)[4], int s, int row, float &mine)
{
	const int lane = own_lane();
	if constexpr (L == 8) {
		const float total = __shfl_sync(ALL_LANES, sum[0] + sum[3], 4 * row + lane % 4);
		mine = lane / 4 == s ? total : mine;
	} else {
		const int from = 4 * row + lane % 8 / 2;
		const float even = __shfl_sync(ALL_LANES, sum[0], from),
		            odd = __shfl_sync(ALL_LANES, sum[1], from);
		mine = lane / 8 == s ? lane % 2 ? odd : even : mine;
	}
}

/* Loads the chunks from `start` on for steps s .. s + V - 1. The V C gathers are in flight
 * together. */
template <int L, int C, bool EXACT, int V>
static __device__ inline void gather(const struct sddmm_problem &p, const struct edge_batch &batch,
                                     int s, int start, int end, uint4 (&y)[V][C])
{
#pragma unroll
	for (int v = 0; v < V; v++) {
		const int32_t j = __shfl_sync(ALL_LANES, batch.id, (s + v) * (32 / L) + own_lane() / L);
#pragma unroll
		for (int c = 0; c < C; c++)
			y[v][c] =
			    tile_columns<EXACT>(p.b, p.pitch_b, start + c * 8 * L + 8 * (own_lane() % L), end)
			        .row(j);
	}
}

/* Steps whose gathers are in flight together: 4 gathers, or 8 where a row is two chunks. With the
 * warps that fit a multiprocessor this is 64 kB or more, and 36 kB hide the latency of device
 * memory (parts.cuh). Derived, not measured. */
constexpr int TILE_STEPS = 4;

/* The products of rows first .. last with all edges of a batch, for one head of at most C chunks
 * (EXACT: exactly C). A lane returns the total of its own edge if the edge's row is one of these.
 * The rows stay in registers. */
template <int L, int C, bool EXACT>
static __device__ inline float
kept_totals(const struct sddmm_problem &p, const struct edge_batch &batch,
            struct tile_rows<L, C> &rows, int32_t first, int32_t last)
{
	constexpr int V = TILE_STEPS;
	const int end = static_cast<int>(p.cols);
	float mine = 0.0f;
#pragma unroll 1
	for (int s = 0; s < L; s += V) {
		uint4 y[V][C];
		gather<L, C, EXACT>(p, batch, s, 0, end, y);
		if (s == 0 && (rows.first != first || rows.last != last))
			rows.template take<EXACT>(p, first, last, 0, end);
#pragma unroll
		for (int v = 0; v < V; v++) {
			float sum[4] = {};
#pragma unroll
			for (int c = 0; c < C; c++)
				rows.multiply_by(
				    c,
				    tile_columns<EXACT>(p.b, p.pitch_b, c * 8 * L + 8 * (own_lane() % L), end)
				        .masked(y[v][c]),
				    sum);
			pick<L>(sum, s + v, batch.row - first, mine);
		}
	}
	return mine;
}

/* The same for columns begin .. end-1, C chunks at a time. */
template <int L, int C>
static __device__ inline float any_totals(const struct sddmm_problem &p,
                                          const struct edge_batch &batch, int32_t first,
                                          int32_t last, int begin, int end)
{
	constexpr int V = TILE_STEPS;
	float mine = 0.0f;
	for (int s = 0; s < L; s += V) {
		float sum[V][4] = {};
		for (int start = begin; start < end; start += C * 8 * L) {
			uint4 y[V][C];
			struct tile_rows<L, C> rows;
			gather<L, C, false>(p, batch, s, start, end, y);
			rows.template take<false>(p, first, last, start, end);
#pragma unroll
			for (int v = 0; v < V; v++)
#pragma unroll
				for (int c = 0; c < C; c++)
					rows.multiply_by(c,
					                 tile_columns<false>(p.b, p.pitch_b,
					                                     start + c * 8 * L + 8 * (own_lane() % L),
					                                     end)
					                     .masked(y[v][c]),
					                 sum[v]);
		}
#pragma unroll
		for (int v = 0; v < V; v++)
			pick<L>(sum[v], s + v, batch.row - first, mine);
	}
	return mine;
}

/* One head of all edges of a batch. Calls totals(first, last) for each group of eight rows. */
template <typename F>
static __device__ inline void tile_batch(const struct sddmm_problem &p,
                                         const struct edge_batch &batch, int head, F totals)
{
	unsigned left = ALL_LANES >> (32 - batch.n); /* lanes whose edges have no value yet */
	float value = 0.0f;
	do {
		const int32_t first = __shfl_sync(ALL_LANES, batch.row, __ffs(static_cast<int>(left)) - 1);
		const unsigned here = __ballot_sync(ALL_LANES, batch.row - first < 8) & left;
		const int32_t last = __shfl_sync(ALL_LANES, batch.row, 31 - __clz(static_cast<int>(here)));
		const float mine = totals(first, last);
		value = here >> own_lane() & 1 ? mine : value;
		left &= ~here;
	} while (left);
	if (own_lane() < batch.n)
		put_dot(p, batch.first + own_lane(), batch.row, batch.id, head, value);
}

/* Blocks of eight warps that a multiprocessor should hold, out of its 65,536 registers. The gathers
 * of a step take 16 or 32 registers a lane, the rows of A 8 or 16, and masks 4 per chunk and
 * operand. Derived, not measured. */
template <int C, bool EXACT> constexpr int TILE_BLOCKS = C == 1 ? 4 : EXACT ? 3 : 2;

/* One head of C chunks. */
template <int L, int C, bool EXACT>
static __global__ void __launch_bounds__(BLOCK, TILE_BLOCKS<C, EXACT>)
    dot_tiles(const __grid_constant__ struct sddmm_problem p)
{
	after_previous();
	struct tile_rows<L, C> rows;
	rows.first = -1;
	each_batch(p, [&](const struct edge_batch &batch) {
		tile_batch(p, batch, 0, [&](int32_t first, int32_t last) {
			return kept_totals<L, C, EXACT>(p, batch, rows, first, last);
		});
	});
}

/* Any width, head by head. */
template <int L, int C>
static __global__ void __launch_bounds__(BLOCK, 3)
    dot_tiles_any(const __grid_constant__ struct sddmm_problem p)
{
	after_previous();
	const int width = static_cast<int>(p.head_cols);
	each_batch(p, [&](const struct edge_batch &batch) {
		for (int head = 0; head < p.heads; head++)
			tile_batch(p, batch, head, [&](int32_t first, int32_t last) {
				return any_totals<L, C>(p, batch, first, last, head * width, (head + 1) * width);
			});
	});
}

/* ---- launch ---- */

/* The kernels need rows of halves in whole vectors, and one head, or heads whose columns fill the
 * four lanes of an edge. */
bool hg__sddmm_tiles_fit(const struct hg__sddmm_dot_args *a)
{
	constexpr int64_t MOST = INT32_MAX / 2;
	return a->a.dtype == HG_F16 && a->a.cols > 0 && wide(a->a) && wide(a->b) && a->a.ld <= MOST &&
	       a->b.ld <= MOST && (a->heads == 1 || a->a.cols / a->heads % 32 == 0);
}

hg_status hg__sddmm_tiles(hg_context *ctx, const struct sddmm_problem &p)
{
	const unsigned blocks = grid_for(p.plan.items, WARPS);
	void (*kernel)(const struct sddmm_problem) = nullptr;
	if (p.heads == 1 && p.cols <= 32)
		kernel = p.cols == 32 ? dot_tiles<4, 1, true> : dot_tiles<4, 1, false>;
	else if (p.heads == 1 && p.cols <= 64)
		kernel = p.cols == 64 ? dot_tiles<8, 1, true> : dot_tiles<8, 1, false>;
	else if (p.heads == 1 && p.cols <= 128)
		kernel = p.cols == 128 ? dot_tiles<8, 2, true> : dot_tiles<8, 2, false>;
	else
		kernel = p.head_cols <= 32 ? dot_tiles_any<4, 1> : dot_tiles_any<8, 2>;
	return launch(ctx, "sddmm_dot", kernel, blocks, BLOCK, p);
}
