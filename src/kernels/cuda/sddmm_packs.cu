/* Dot products on edges in packs: a lane has 8 columns of A and B, L lanes take one edge at a time,
 * and `group` of them share a head. */

#include "kernels/cuda/sddmm.cuh"

/* Clears padding after the last column, bit by bit, because padding may hold anything, NaNs
 * included. `left`: columns before the end. */
template <typename T> static __device__ inline void mask_padding(raw<T, 8> &r, int64_t left)
{
	constexpr int elements = 4 / sizeof(T);
#pragma unroll
	for (size_t q = 0; q < sizeof r.q / sizeof r.q[0]; q++) {
		unsigned *word = reinterpret_cast<unsigned *>(&r.q[q]);
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const int64_t first = (static_cast<int64_t>(q) * 4 + i) * elements;
			if (first >= left)
				word[i] = 0;
			else if (elements == 2 && first + 1 >= left)
				word[i] &= 0xffffu; /* the lower half is the first */
		}
	}
}

/* The columns of one lane: 8 columns of A and B from column c on, of which `left` exist. */
template <typename T> struct dot_columns {
	const char *a, *b;
	uint32_t pitch_a, pitch_b; /* bytes from row to row */
	int left;

	__device__ dot_columns(const struct sddmm_problem &p, int c)
	    : a(reinterpret_cast<const char *>(static_cast<const T *>(p.a) + c)),
	      b(reinterpret_cast<const char *>(static_cast<const T *>(p.b) + c)), pitch_a(p.pitch_a),
	      pitch_b(p.pitch_b), left(static_cast<int>(p.cols) - c)
	{
	}
	static __device__ raw<T, 8> row(const char *data, int32_t i, unsigned pitch, bool live)
	{
		raw<T, 8> r = {};
		if (live)
			r = fetch<8>(reinterpret_cast<const T *>(data + static_cast<int64_t>(i) * pitch));
		return r;
	}
	__device__ raw<T, 8> row_a(int32_t i, bool live) const
	{
		return row(a, i, pitch_a, live && left > 0);
	}
	__device__ raw<T, 8> row_b(int32_t j, bool live) const
	{
		return row(b, j, pitch_b, live && left > 0);
	}
	/* Clears padding. Only the last lane has some, and only if 8 does not divide the width. */
	template <int V> __device__ void mask(raw<T, 8> (&r)[V], bool ragged) const
	{
		if (ragged && left < 8)
#pragma unroll
			for (int v = 0; v < V; v++)
				mask_padding(r[v], left);
	}
};

template <typename T>
static __device__ inline void add_products(float &dot, const float (&x)[8], const raw<T, 8> &bits)
{
	float y[8];
	unpack(bits, y);
#pragma unroll
	for (int i = 0; i < 8; i++)
		/* a product of halves is exact in f32, so this rounds once, as separate operations would */
		dot = fmaf(x[i], y[i], dot);
}

/* Sums of V values over sub-warps of L lanes, one value for each of V edges. Lane l ends with the
 * sum of edge l % V. Each step halves the number of edges that a lane still has, so V - 1 shuffles
 * (and log2(L / V) more) replace V butterflies of log2(L) shuffles. */
template <int L, int V> static __device__ inline float lanes_transposed(float (&x)[V])
{
	const int lane = own_lane();
#pragma unroll
	for (int half = V / 2; half > 0; half /= 2) {
		const bool high = lane & half;
#pragma unroll
		for (int i = 0; i < half; i++) {
			const float keep = high ? x[i + half] : x[i], give = high ? x[i] : x[i + half];
			x[i] = keep + __shfl_xor_sync(ALL_LANES, give, half);
		}
	}
#pragma unroll
	for (int step = V; step < L; step *= 2)
		x[0] += __shfl_xor_sync(ALL_LANES, x[0], step);
	return x[0];
}

/* A row of A, kept in registers between batches; i < 0: none. */
struct dot_row {
	int32_t i;
	float x[8];
};

/* dot[v] += the lane's part of the product of edge k + v of the batch. The V gathers of B are in
 * flight together. While all edges of a batch are in one row, that row of A stays in registers.
 * Otherwise each edge loads its own row, which is mostly in the first-level cache. */
template <typename T, int V>
static __device__ inline void dot_step(const struct dot_columns<T> &lane,
                                       const struct edge_batch &batch, int k, bool ragged,
                                       struct dot_row &held, float (&dot)[V])
{
	raw<T, 8> y[V], r[1];
#pragma unroll
	for (int v = 0; v < V; v++)
		y[v] = lane.row_b(__shfl_sync(ALL_LANES, batch.id, k + v), k + v < batch.n);
	if (batch.one) {
		const int32_t i = __shfl_sync(ALL_LANES, batch.row, 0);
		if (i != held.i) {
			r[0] = lane.row_a(i, true);
			lane.mask(r, ragged);
			unpack(r[0], held.x);
			held.i = i;
		}
		lane.mask(y, ragged);
#pragma unroll
		for (int v = 0; v < V; v++)
			add_products(dot[v], held.x, y[v]);
	} else {
		held.i = -1;
		lane.mask(y, ragged);
#pragma unroll
		for (int v = 0; v < V; v++) {
			r[0] = lane.row_a(__shfl_sync(ALL_LANES, batch.row, k + v), k + v < batch.n);
			lane.mask(r, ragged);
			unpack(r[0], held.x);
			add_products(dot[v], held.x, y[v]);
		}
	}
}

/* Stores the heads of edges k .. k + V - 1. Each head is summed over its `group` lanes, which share
 * the stores. */
template <int V>
static __device__ inline void put_heads(const struct sddmm_problem &p,
                                        const struct edge_batch &batch, int k, int seat, int c,
                                        int group, float (&dot)[V])
{
	const int head = c / static_cast<int>(p.head_cols);
	const bool scaled = p.row_scale || p.col_scale;
	lanes_total(dot, group);
#pragma unroll
	for (int v = 0; v < V; v++) {
		const int32_t i = scaled ? __shfl_sync(ALL_LANES, batch.row, k + v) : 0,
		              j = scaled ? __shfl_sync(ALL_LANES, batch.id, k + v) : 0;
		if (k + v < batch.n && ((seat ^ v) & (group - 1)) == 0 && head < p.heads)
			put_dot(p, batch.first + k + v, i, j, head, dot[v]);
		dot[v] = 0.0f;
	}
}

/* Gathers that a lane has in flight: 128 bytes, of which 285 lanes hide the latency of device
 * memory (parts.cuh). With 32 lanes it is half of that, because the loop over columns needs the
 * registers. */
template <typename T, int L> constexpr int DOT_GATHERS = sizeof(T) == 2 && L < 32 ? 8 : 4;

/* All edges of a batch. Sub-warp s of L lanes takes edges s * L .. s * L + L - 1, V at a time. */
template <typename T, int L, bool ONE>
static __device__ inline void dot_edges(const struct sddmm_problem &p,
                                        const struct edge_batch &batch, int group,
                                        struct dot_row &held)
{
	constexpr int V = L < DOT_GATHERS<T, L> ? L : DOT_GATHERS<T, L>;
	const int seat = own_lane() % L, sub = own_lane() - seat;
	const bool ragged = p.cols % 8 != 0;
	float mine = 0.0f;
#pragma unroll 1
	/* when the first sub-warp has no edge left, no sub-warp has one */
	for (int t = 0; t < L && t < batch.n; t += V) {
		float dot[V] = {};
		/* rows of more than 256 columns take several passes of 32 lanes */
		for (int start = 0; start == 0 || (L == 32 && start < p.cols); start += 8 * L) {
			if (L == 32 && p.cols > 8 * L)
				held.i = -1;
			const int c = start + 8 * seat;
			dot_step<T, V>(dot_columns<T>(p, c), batch, sub + t, ragged, held, dot);
			if (!ONE)
				put_heads(p, batch, sub + t, seat, c, group, dot);
		}
		if (ONE) {
			const float sum = lanes_transposed<L>(dot);
			mine = seat / V * V == t ? sum : mine;
		}
	}
	if (ONE && own_lane() < batch.n)
		put_dot(p, batch.first + own_lane(), batch.row, batch.id, 0, mine);
}

/* Three blocks of eight warps per multiprocessor leave 80 registers a lane, of which 8 packs in
 * flight take 32. */
template <typename T, int L, bool ONE>
static __global__ void __launch_bounds__(BLOCK, 3)
    dot_packs(const struct sddmm_problem p, int group)
{
	after_previous();
	struct dot_row held = {-1, {}};
	each_batch(
	    p, [&](const struct edge_batch &batch) { dot_edges<T, L, ONE>(p, batch, group, held); });
}

/* ---- launch ---- */

static bool is_power_of_two(int64_t x)
{
	return x > 0 && (x & (x - 1)) == 0;
}

/* Calls f(L), where the integral constant L is the smallest power of two that is at least `units`,
 * and at most 32. */
template <int L = 1, typename F> static hg_status with_lanes(int64_t units, F f)
{
	if constexpr (L < 32)
		if (units > L)
			return with_lanes<2 * L>(units, f);
	return f(int_constant<L>{});
}

/* The kernel takes heads of 8 to 256 columns, a power of two, or one head of any width. The length
 * of a row in bytes must fit 32 bits. Without columns there are no packs, and the empty sums are
 * stored by sddmm_elements.cu. */
bool hg__sddmm_packs_fit(const struct hg__sddmm_dot_args *a)
{
	constexpr int64_t MOST = UINT32_MAX / sizeof(float) / 2;
	const int64_t lanes_a_head = a->a.cols / a->heads / 8;
	if (a->a.cols == 0 || !wide(a->a) || !wide(a->b) || a->a.ld > MOST || a->b.ld > MOST)
		return false;
	return a->heads == 1 ||
	       (a->a.cols / a->heads % 8 == 0 && is_power_of_two(lanes_a_head) && lanes_a_head <= 32);
}

/* One head of halves is never computed here, because sddmm_tiles.cu takes it. */
template <typename T, int L>
static hg_status launch_packs(hg_context *ctx, const struct sddmm_problem &p)
{
	const unsigned blocks = grid_for(p.plan.items, WARPS);
	if constexpr (sizeof(T) == sizeof(float))
		if (p.heads == 1)
			return launch(ctx, "sddmm_dot", dot_packs<T, L, true>, blocks, BLOCK, p, L);
	return launch(ctx, "sddmm_dot", dot_packs<T, L, false>, blocks, BLOCK, p,
	              static_cast<int>(p.head_cols / 8));
}

hg_status hg__sddmm_packs(hg_context *ctx, const struct sddmm_problem &p, hg_dtype dtype)
{
	return with_float(ctx, "sddmm_dot", dtype, [&](auto zero) {
		return with_lanes((p.cols + 7) / 8, [&](auto lanes) {
			return launch_packs<decltype(zero), decltype(lanes)::value>(ctx, p);
		});
	});
}
