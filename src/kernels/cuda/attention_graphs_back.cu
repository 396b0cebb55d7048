/* The gradients of attention over batches of small graphs by tensor cores. With p as the forward
 * pass had it, G = dY and D_i = <G_i, Y_i>:
 *
 *     ds[i, j] = p[i, j] (mask <G_i, V_j> - D_i)
 *     dV_j = sum of mask p[i, j] G_i
 *     DOT    dQ_i = scale sum of ds[i, j] K_j,  dK_j = scale sum of ds[i, j] Q_i
 *     ADD    dq_i = (1 - slope) (<G_i, plus_i> - D_i softmax[i, h + k]),
 *            dk_j = sum of f' ds[i, j]
 *
 * All operands of a graph are in shared memory. A warp first owns 16 rows of the scores, for dQ,
 * and then 16 columns, for dK and dV: it computes the scores a second time, transposed, tile by
 * tile, so that no weights are exchanged between warps and no sum is shared. Both products of
 * scores add the same products in the same order, so their bits are the same.
 *
 * To be split into two halves, ds is multiplied by a power of two, the same for the whole graph:
 *
 *     |ds| <= |G_i| (kept |V_j| + |Y_i|) <= limit,   2^15 / limit in (1/2, 1] of that power */

#include "kernels/cuda/attention_graphs.cuh"

namespace
{

struct backward_problem {
	struct graph_operands of;
	const uint32_t *count, *count_t; /* of rows; of columns */
	const __half *y, *plus, *dy;
	const float *softmax;
	__half *dq, *dk, *dv; /* NULL: absent */
	int64_t ldy, ldplus, lddy, ld_softmax, lddq, lddk, lddv;
	int heads;
	unsigned ahead; /* how many blocks later the operands of a block are prefetched; 0: not */
};

/* p <= 1. 2^15 is a half. */
constexpr float P_SCALE = 32768.0f;

/* The block's shared memory. q, k, g, v: rows of D halves. */
struct backward_memory {
	__half *q, *k, *g, *v; /* q and k only with DOT */
	float *own;            /* DOT: results, rows of D + 8 floats, so that no banks collide */
	float *softmax, *d;    /* of each node */
	float *add_q, *add_k;  /* ADD: q and k of each node */
	float *add_dq;         /* ADD: dq of each node */
	float *most;           /* [3 * GRAPH_WARPS] */
};
template <int D> constexpr int OWN_PITCH = D + 8;

template <bool DOT, int D> size_t backward_bytes(int rows)
{
	const size_t vectors = DOT ? OWN_PITCH<D> + 2 : 5;
	return (DOT ? 4 : 2) * graph_rows_bytes<D>(rows) +
	       (vectors * static_cast<size_t>(rows) + 3 * GRAPH_WARPS) * sizeof(float);
}
template <bool DOT, int D> __device__ struct backward_memory memory_of(void *shared, int rows)
{
	struct backward_memory m = {};
	__half *const halves = static_cast<__half *>(shared);
	const int matrix = rows * GRAPH_PITCH<D>;
	m.g = halves, m.v = halves + matrix;
	if (DOT)
		m.q = halves + 2 * matrix, m.k = halves + 3 * matrix;
	float *next = reinterpret_cast<float *>(halves + (DOT ? 4 : 2) * matrix);
	if (DOT) {
		m.own = next;
		next += rows * OWN_PITCH<D>;
	} else {
		m.add_q = next, m.add_k = next + rows, m.add_dq = next + 2 * rows;
		next += 3 * rows;
	}
	m.softmax = next, m.d = next + rows, m.most = next + 2 * rows;
	return m;
}

/* ---- operands ---- */

/* The sum of the products of two packs of 8 halves. */
__device__ float dot_packs(const uint4 &a, const uint4 &b)
{
	__half2 x[4], y[4];
	memcpy(static_cast<void *>(x), &a, sizeof x);
	memcpy(static_cast<void *>(y), &b, sizeof y);
	float sum = 0.0f;
#pragma unroll
	for (int i = 0; i < 4; i++) {
		const float2 u = __half22float2(x[i]), v = __half22float2(y[i]);
		sum = fmaf(u.x, v.x, sum);
		sum = fmaf(u.y, v.y, sum);
	}
	return sum;
}

/* The pack of node `row` from column col of the head on; zeros where there is none. */
__device__ uint4 pack_at(const struct backward_problem &p, const struct graph_block &b,
                         const __half *from, int64_t ld, int row, int col)
{
	if (row >= b.nodes || col >= p.of.d)
		return make_uint4(0, 0, 0, 0);
	return *reinterpret_cast<const uint4 *>(from + (b.first + row) * ld + b.head * p.of.d + col);
}

/* Squares of the largest norms of the rows of G, Y and V. Rows that are not finite do not count,
 * because what they contribute to is not finite, whatever the scale. */
struct squares {
	float g, y, v;
};
__device__ float larger_finite(float most, float square)
{
	return square - square == 0.0f ? fmaxf(most, square) : most;
}

/* Copies G, and with DOT also V, to shared memory. Computes D, and with ADD dq, of each node; with
 * DOT the largest norms of the rows that the thread has seen. */
template <bool DOT, int D>
__device__ struct squares fetch_gradient(const struct backward_problem &p,
                                         const struct backward_memory &m,
                                         const struct graph_block &b)
{
	constexpr int PACKS = D / 8;
	const struct thread_packs<D> packs(b);
	const int col = packs.col;
	struct squares most = {};
#pragma unroll 4
	for (int row = packs.row; row < packs.end; row += packs.step) {
		const uint4 g = pack_at(p, b, p.dy, p.lddy, row, col),
		            y = pack_at(p, b, p.y, p.ldy, row, col);
		*reinterpret_cast<uint4 *>(m.g + row * GRAPH_PITCH<D> + col) = g;
		const float d = lanes_sum<PACKS>(dot_packs(g, y));
		if (col == 0)
			m.d[row] = d;
		if constexpr (DOT) {
			const uint4 v = pack_at(p, b, p.of.v, p.of.ldv, row, col);
			*reinterpret_cast<uint4 *>(m.v + row * GRAPH_PITCH<D> + col) = v;
			most.g = larger_finite(most.g, lanes_sum<PACKS>(dot_packs(g, g)));
			most.y = larger_finite(most.y, lanes_sum<PACKS>(dot_packs(y, y)));
			most.v = larger_finite(most.v, lanes_sum<PACKS>(dot_packs(v, v)));
		} else if (p.dq) {
			const float plus =
			    lanes_sum<PACKS>(dot_packs(g, pack_at(p, b, p.plus, p.ldplus, row, col)));
			if (col == 0 && row < b.nodes)
				m.add_dq[row] =
				    (1.0f - p.of.slope) *
				    (plus - d * p.softmax[(b.first + row) * p.ld_softmax + p.heads + b.head]);
		}
	}
	return most;
}
static_assert(HG__DENSE_TILE * 32 / 8 % 32 == 0, "whole warps take part in the sums over a row");

/* Copies to shared memory what is one number a node. */
template <bool DOT>
__device__ void fetch_numbers(const struct backward_problem &p, const struct backward_memory &m,
                              const struct graph_block &b)
{
	for (int i = static_cast<int>(threadIdx.x); i < b.side * HG__DENSE_TILE;
	     i += static_cast<int>(blockDim.x)) {
		const bool exists = i < b.nodes;
		const int64_t node = b.first + i;
		m.softmax[i] = exists ? p.softmax[node * p.ld_softmax + b.head] : 0.0f;
		if constexpr (!DOT) {
			m.add_q[i] = exists ? widen(p.of.q[node * p.of.ldq + b.head]) : 0.0f;
			m.add_k[i] = exists ? widen(p.of.k[node * p.of.ldk + b.head]) : 0.0f;
		}
	}
}

/* ---- the scale of ds ---- */

__device__ void put_most(const struct backward_memory &m, const struct squares &of)
{
	float most[3] = {of.g, of.y, of.v};
#pragma unroll
	for (int k = 0; k < 3; k++) {
#pragma unroll
		for (int step = 16; step > 0; step /= 2)
			most[k] = fmaxf(most[k], __shfl_xor_sync(0xffffffffu, most[k], step));
		if (threadIdx.x % 32 == 0)
			m.most[k * GRAPH_WARPS + threadIdx.x / 32] = most[k];
	}
}

/* The power of two that brings the limit of |ds| into (2^14, 2^15]. Its exponent is kept in +-100,
 * so that its inverse exists also where the limit is 0. */
__device__ float scale_of_ds(const struct backward_problem &p, const struct backward_memory &m)
{
	float most[3] = {};
	for (unsigned warp = 0; warp < blockDim.x / 32; warp++)
#pragma unroll
		for (int k = 0; k < 3; k++)
			most[k] = fmaxf(most[k], m.most[k * GRAPH_WARPS + warp]);
	const float kept = p.of.mask.step ? p.of.mask.kept : 1.0f,
	            limit = sqrtf(most[0]) * (kept * sqrtf(most[2]) + sqrtf(most[1]));
	/* limit < 2^(exponent - 126) */
	const int exponent = static_cast<int>(__float_as_uint(limit) >> 23 & 255u),
	          wanted = 15 + 126 - exponent,
	          kept_in = wanted > 100    ? 100
	                    : wanted < -100 ? -100
	                                    : wanted;
	return __uint_as_float(static_cast<unsigned>(kept_in + 127) << 23);
}

/* ---- a tile of scores ---- */

/* Of the 16 x 16 edges of a tile: mask p, without the factor of kept edges; and ds. */
struct edge_tile {
	float p[2][4], ds[2][4];
};

/* COLUMNS: the warp's rows are columns of the scores, which are transposed. */
template <bool COLUMNS> __device__ int node_i(const struct graph_block &b, int tile, int h, int e)
{
	return COLUMNS ? column_at(b, tile, h, e) : row_at(b, e);
}
template <bool COLUMNS> __device__ int node_j(const struct graph_block &b, int tile, int h, int e)
{
	return COLUMNS ? row_at(b, e) : column_at(b, tile, h, e);
}

/* The weights of a tile from the scores (ADD computes them here, and multiplies ds by f') and from
 * dp = <G_i, V_j>. */
template <bool DOT, bool COLUMNS>
__device__ struct edge_tile weigh_tile(const struct backward_problem &p,
                                       const struct backward_memory &m, const struct graph_block &b,
                                       int tile, uint32_t counts, const float (&sum)[2][4],
                                       const float (&dp)[2][4])
{
	struct edge_tile of;
	const auto i_of = [&](int n) { return node_i<COLUMNS>(b, tile, n / 4, n % 4); };
	const auto j_of = [&](int n) { return node_j<COLUMNS>(b, tile, n / 4, n % 4); };
	unsigned kept = 255;
	if (p.of.mask.step)
		kept = kept_of(p.of.mask, b, counts, i_of, j_of);
	const float factor = p.of.mask.step ? p.of.mask.kept : 1.0f;
#pragma unroll
	for (int n = 0; n < 8; n++) {
		const int h = n / 4, e = n % 4, i = i_of(n);
		const unsigned count = count_at(counts, n);
		float score, slope = 1.0f;
		if constexpr (DOT) {
			score = score_of(p.of.scale, sum[h][e], 0.0f);
		} else {
			const float x = additive(m.add_q[i], m.add_k[j_of(n)], 0.0f);
			score = leaky(x, p.of.slope), slope = leaky_slope(x, p.of.slope);
		}
		const float w = counted_exp(score, m.softmax[i], count), weight = w > 1.0f ? 1.0f : w;
		const bool keeps = kept >> n & 1u;
		const float masked = keeps ? factor * dp[h][e] : 0.0f;
		const float ds = slope * (weight * (masked - m.d[i]));
		of.p[h][e] = keeps ? weight : 0.0f;
		of.ds[h][e] = count != 0 ? ds : 0.0f;
	}
	return of;
}

__device__ struct split_weights split_scaled(const float (&w)[2][4], float scale)
{
	float scaled[2][4];
#pragma unroll
	for (int n = 0; n < 8; n++)
		scaled[n / 4][n % 4] = w[n / 4][n % 4] * scale;
	return split_of(scaled);
}

/* Rows of tile `tile` of a matrix in shared memory. */
template <int D> __device__ const __half *tile_rows(const __half *x, int tile)
{
	return x + tile * HG__DENSE_TILE * GRAPH_PITCH<D>;
}

/* ---- DOT ---- */

/* Sums of ds K_j over the columns, for the warp's rows. */
template <int D>
__device__ void sum_rows(const struct backward_problem &p, const struct backward_memory &m,
                         const struct graph_block &b, float scale, bool clean,
                         float (&dq)[D / 8][4])
{
	clear(dq);
#pragma unroll 1
	for (int tile = 0; tile < b.side; tile++) {
		const uint32_t counts = counts_of(p.count, b, tile);
		float sums[2][2][4] = {};
		const __half *const own[2] = {m.q + b.own * GRAPH_PITCH<D>, m.g + b.own * GRAPH_PITCH<D>},
		                    *const other[2] = {tile_rows<D>(m.k, tile), tile_rows<D>(m.v, tile)};
		multiply_rows<D>(own, other, b.lane, sums);
		const struct edge_tile of =
		    weigh_tile<true, false>(p, m, b, tile, counts, sums[0], sums[1]);
		add_product<D>(dq, split_scaled(of.ds, scale), tile_rows<D>(m.k, tile), b.lane, clean);
	}
}

/* Sums of ds Q_i and of mask p G_i over the rows, for the warp's columns. */
template <int D>
__device__ void sum_columns(const struct backward_problem &p, const struct backward_memory &m,
                            const struct graph_block &b, float scale, bool clean,
                            float (&dk)[D / 8][4], float (&dv)[D / 8][4])
{
	clear(dk);
	clear(dv);
#pragma unroll 1
	for (int tile = 0; tile < b.side; tile++) {
		const uint32_t counts = counts_of(p.count_t, b, tile);
		float sums[2][2][4] = {};
		const __half *const own[2] = {m.k + b.own * GRAPH_PITCH<D>, m.v + b.own * GRAPH_PITCH<D>},
		                    *const other[2] = {tile_rows<D>(m.q, tile), tile_rows<D>(m.g, tile)};
		multiply_rows<D>(own, other, b.lane, sums);
		const struct edge_tile of = weigh_tile<true, true>(p, m, b, tile, counts, sums[0], sums[1]);
		add_product<D>(dv, split_scaled(of.p, P_SCALE), tile_rows<D>(m.g, tile), b.lane, clean);
		add_product<D>(dk, split_scaled(of.ds, scale), tile_rows<D>(m.q, tile), b.lane, clean);
	}
}

/* Puts sums into the warp's rows of results, or adds them to what is there. */
template <int D>
__device__ void put_sums(float *own, const float (&sums)[D / 8][4], float factor, bool add,
                         const struct graph_block &b)
{
#pragma unroll
	for (int n = 0; n < D / 8; n++)
#pragma unroll
		for (int high = 0; high < 2; high++) {
			float2 &at = *reinterpret_cast<float2 *>(own + (b.g + 8 * high) * OWN_PITCH<D> + 8 * n +
			                                         2 * b.t);
			float2 v = make_float2(sums[n][2 * high] * factor, sums[n][2 * high + 1] * factor);
			if (add)
				v.x += at.x, v.y += at.y;
			at = v;
		}
}

/* Stores the warp's rows of results. */
template <int D>
__device__ void store_sums(__half *to, int64_t ld, int d, const float *own,
                           const struct graph_block &b)
{
	__syncwarp();
	store_rows<D>(to, ld, d, b, [&](int row, int col) {
		float x[8];
		load<8>(own + row * OWN_PITCH<D> + col, x);
		__half h[8];
		store<8>(h, x);
		uint4 bits;
		memcpy(&bits, h, sizeof bits);
		return bits;
	});
	__syncwarp();
}

/* Stores dK and dV of the warp's nodes. If dQ is one matrix with one of them, or both, it lies in
 * the rows of results already, and they are added to it there, in f32. */
template <int D>
__device__ void store_columns(const struct backward_problem &p, const float (&dk)[D / 8][4],
                              const float (&dv)[D / 8][4], float dk_factor, float dv_factor,
                              float *own, const struct graph_block &b)
{
	const bool dv_first = p.dv && p.dv == p.dq && p.dv != p.dk;
	if (dv_first) {
		put_sums<D>(own, dv, dv_factor, true, b);
		store_sums<D>(p.dv, p.lddv, p.of.d, own, b);
	}
	if (p.dk) {
		put_sums<D>(own, dk, dk_factor, p.dk == p.dq, b);
		if (p.dk != p.dv)
			store_sums<D>(p.dk, p.lddk, p.of.d, own, b);
	}
	if (p.dv && !dv_first) {
		put_sums<D>(own, dv, dv_factor, p.dv == p.dk, b);
		store_sums<D>(p.dv, p.lddv, p.of.d, own, b);
	}
}

/* The gradients of Q, K and V of the warp's nodes. */
template <int D>
__device__ void dot_gradients(const struct backward_problem &p, const struct backward_memory &m,
                              const struct graph_block &b)
{
	const float scale = scale_of_ds(p, m), factor = p.of.scale / scale,
	            kept = p.of.mask.step ? p.of.mask.kept : 1.0f;
	float *const own = m.own + b.own * OWN_PITCH<D>;
	float first[D / 8][4];
	if (p.dq) {
		sum_rows<D>(p, m, b, scale, false, first);
		if (any_spoiled(first)) {
			sum_rows<D>(p, m, b, scale, true, first);
			add_spoiled<D>(first, m.k, p.count, b);
		}
		put_sums<D>(own, first, factor, false, b);
		if (p.dq != p.dk && p.dq != p.dv)
			store_sums<D>(p.dq, p.lddq, p.of.d, own, b);
	}
	if (!p.dk && !p.dv)
		return;
	float second[D / 8][4];
	sum_columns<D>(p, m, b, scale, false, first, second);
	if (any_spoiled(first) || any_spoiled(second)) {
		sum_columns<D>(p, m, b, scale, true, first, second);
		add_spoiled<D>(first, m.q, p.count_t, b);
		add_spoiled<D>(second, m.g, p.count_t, b);
	}
	store_columns<D>(p, first, second, factor, kept / P_SCALE, own, b);
}

/* ---- ADD ---- */

/* Sums of mask p G_i and of f' ds over the rows, for the warp's columns. */
template <int D>
__device__ void sum_add_columns(const struct backward_problem &p, const struct backward_memory &m,
                                const struct graph_block &b, bool clean, float (&dv)[D / 8][4],
                                float (&dk)[2])
{
	clear(dv);
	dk[0] = dk[1] = 0.0f;
#pragma unroll 1
	for (int tile = 0; tile < b.side; tile++) {
		const uint32_t counts = counts_of(p.count_t, b, tile);
		const float none[2][4] = {};
		float dp[2][4] = {};
		multiply_rows<D>(m.v + b.own * GRAPH_PITCH<D>, tile_rows<D>(m.g, tile), b.lane, dp);
		const struct edge_tile of = weigh_tile<false, true>(p, m, b, tile, counts, none, dp);
#pragma unroll
		for (int n = 0; n < 8; n++)
			dk[n % 4 / 2] += of.ds[n / 4][n % 4];
		add_product<D>(dv, split_scaled(of.p, P_SCALE), tile_rows<D>(m.g, tile), b.lane, clean);
	}
	dk[0] = lanes_sum<4>(dk[0]);
	dk[1] = lanes_sum<4>(dk[1]);
}

/* Stores dq and dk of the warp's nodes: their sum, if they are one matrix. */
__device__ void store_add_numbers(const struct backward_problem &p, const struct backward_memory &m,
                                  const struct graph_block &b, const float (&dk)[2])
{
#pragma unroll
	for (int high = 0; high < 2; high++) {
		const int row = row_at(b, 2 * high);
		const int64_t node = b.first + row;
		if (b.t != 0 || row >= b.nodes)
			continue;
		const float dq = p.dq ? m.add_dq[row] : 0.0f;
		if (p.dq && p.dq != p.dk)
			p.dq[node * p.lddq + b.head] = narrow<__half>(dq);
		if (p.dk)
			p.dk[node * p.lddk + b.head] = narrow<__half>(p.dq == p.dk ? dq + dk[high] : dk[high]);
	}
}

/* The gradients of q, k and V of the warp's nodes. The warp alone reads its rows of V, so it puts
 * dV in their place. */
template <int D>
__device__ void add_gradients(const struct backward_problem &p, const struct backward_memory &m,
                              const struct graph_block &b)
{
	float dv[D / 8][4], dk[2] = {};
	if (p.dk || p.dv) {
		sum_add_columns<D>(p, m, b, false, dv, dk);
		if (any_spoiled(dv)) {
			sum_add_columns<D>(p, m, b, true, dv, dk);
			add_spoiled<D>(dv, m.g, p.count_t, b);
		}
	}
	store_add_numbers(p, m, b, dk);
	if (!p.dv)
		return;
	const float kept = p.of.mask.step ? p.of.mask.kept : 1.0f,
	            factor[2] = {kept / P_SCALE, kept / P_SCALE};
	__half *const own = m.v + b.own * GRAPH_PITCH<D>;
	__syncwarp(); /* all lanes have read V */
	stage_halves<D>(own, 0, dv, factor, b);
	__syncwarp();
	store_halves<D>(p.dv, p.lddv, p.of.d, own, b);
}

/* ---- the kernel ---- */

/* Where only one block fits on a multiprocessor, no other block fetches operands while it computes.
 * So it asks the cache for those of the block that will probably follow it. */
template <bool DOT> __device__ void prefetch_next(const struct backward_problem &p)
{
	const unsigned next = blockIdx.y * gridDim.x + blockIdx.x + p.ahead;
	if (p.ahead == 0 || next >= gridDim.x * gridDim.y)
		return;
	const struct graph_block b = graph_block_of(p.of, next % gridDim.x, next / gridDim.x);
	prefetch_rows(p.dy, p.lddy, p.of.d, b);
	prefetch_rows(p.y, p.ldy, p.of.d, b);
	prefetch_rows(p.of.v, p.of.ldv, p.of.d, b);
	if constexpr (DOT) {
		prefetch_rows(p.of.q, p.of.ldq, p.of.d, b);
		prefetch_rows(p.of.k, p.of.ldk, p.of.d, b);
	}
}

/* DOT with D = 128 has 128 sums a lane and takes nearly all registers, and all shared memory. The
 * others have two blocks on a multiprocessor. */
template <bool DOT, int D> constexpr int BACK_RESIDENT = DOT &&D == 128 ? 1 : 2;

template <bool DOT, int D>
__global__ void __launch_bounds__(32 * GRAPH_WARPS, (BACK_RESIDENT<DOT, D>))
    attend_graphs_back(const __grid_constant__ struct backward_problem p)
{
	after_previous();
	extern __shared__ uint4 shared[];
	const struct graph_block b = graph_block_of(p.of, blockIdx.x, blockIdx.y);
	const struct backward_memory m = memory_of<DOT, D>(shared, p.of.rows);
	if constexpr (DOT) {
		fetch_rows<D>(m.q, p.of.q, p.of.ldq, p.of.d, b);
		fetch_rows<D>(m.k, p.of.k, p.of.ldk, p.of.d, b);
	} else {
		fetch_rows<D>(m.v, p.of.v, p.of.ldv, p.of.d, b);
	}
	fetch_numbers<DOT>(p, m, b);
	const struct squares most = fetch_gradient<DOT, D>(p, m, b);
	if constexpr (DOT)
		put_most(m, most);
	await_rows();
	__syncthreads();
	prefetch_next<DOT>(p);
	if (b.own >= b.nodes)
		return;
	if constexpr (DOT)
		dot_gradients<D>(p, m, b);
	else
		add_gradients<D>(p, m, b);
}

/* Sets p.ahead. Derived: with F = 128 and 119 nodes a block fetches 150 kB, 8,500 cycles at its
 * share of the memory's bandwidth, and computes for 20,000 or more. */
hg_status set_ahead(hg_context *ctx, const void *kernel, size_t bytes, struct backward_problem *p)
{
	const int device = static_cast<const hg__cuda_state *>(ctx->state)->device,
	          threads = 2 * p->of.rows;
	int resident = 0, processors = 0;
	HG__CUDA(ctx, "attention: multiprocessors",
	         cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
	HG__CUDA(ctx, "attention: resident blocks",
	         cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, bytes));
	p->ahead = resident == 1 ? static_cast<unsigned>(processors) : 0;
	return HG_OK;
}

template <bool DOT, int D>
hg_status run_backward(hg_context *ctx, const struct hg__dense &dense, struct backward_problem p)
{
	const auto kernel = attend_graphs_back<DOT, D>;
	const size_t bytes = backward_bytes<DOT, D>(p.of.rows);
	HG__TRY(allow_shared(ctx, reinterpret_cast<const void *>(kernel), bytes));
	HG__TRY(set_ahead(ctx, reinterpret_cast<const void *>(kernel), bytes, &p));
	return launch_graphs(ctx, "attention: gradients of graphs", kernel, dense, p.heads, bytes, p);
}

bool is_half_or_absent(const struct hg__mat &m)
{
	return !m.data || m.dtype == HG_F16;
}

} // namespace

bool hg__cuda_attention_graphs_back_fits(const struct hg__csr &csr, const struct hg__attention &of)
{
	const int rows = HG__DENSE_TILE * hg__dense_side(csr.plan->dense->most_nodes);
	return with_graph_width(of.v.cols / of.heads, [&](auto width) {
		constexpr int D = decltype(width)::value;
		return (of.score == HG_SCORE_ADD ? backward_bytes<false, D>(rows)
		                                 : backward_bytes<true, D>(rows)) <= graph_shared_limit();
	});
}

bool hg__cuda_attention_back_graphs_takes(const struct hg__attention_back_args *a)
{
	const bool add = a->of.score == HG_SCORE_ADD,
	           halves = is_half(a->y) && is_half(a->dy) && is_half_or_absent(a->dq) &&
	                    is_half_or_absent(a->dk) && is_half_or_absent(a->dv);
	if (!graph_operands_fit(a->csr, a->of) || !a->csr_t.plan || !a->csr_t.plan->dense || !halves ||
	    a->dbias.data || a->dc.data || (add && a->dq.data && !(a->plus.data && is_half(a->plus))))
		return false;
	return hg__cuda_attention_graphs_back_fits(a->csr, a->of);
}

size_t hg__cuda_attention_back_graphs_workspace(const hg_context *,
                                                const struct hg__attention_back_args *)
{
	return 0;
}

hg_status hg__cuda_attention_back_graphs(hg_context *ctx, const struct hg__attention_back_args *a)
{
	const struct hg__dense &dense = *a->csr.plan->dense;
	struct backward_problem p = {};
	p.of = graph_operands_of(a->csr, a->of);
	p.count = dense.count, p.count_t = a->csr_t.plan->dense->count;
	p.y = data_of<const __half>(a->y), p.plus = data_of<const __half>(a->plus);
	p.dy = data_of<const __half>(a->dy), p.softmax = data_of<const float>(a->softmax);
	p.dq = data_of<__half>(a->dq), p.dk = data_of<__half>(a->dk), p.dv = data_of<__half>(a->dv);
	p.ldy = a->y.ld, p.ldplus = a->plus.ld, p.lddy = a->dy.ld, p.ld_softmax = a->softmax.ld;
	p.lddq = a->dq.ld, p.lddk = a->dk.ld, p.lddv = a->dv.ld;
	p.heads = a->of.heads;
	return with_graph_width(p.of.d, [&](auto width) {
		constexpr int D = decltype(width)::value;
		return a->of.score == HG_SCORE_DOT ? run_backward<true, D>(ctx, dense, p)
		                                   : run_backward<false, D>(ctx, dense, p);
	});
}
