/* The gradients of attention over batches of small graphs by tensor cores. With p as the forward
 * pass had it, G = dY and D_i = <G_i, Y_i>:
 *
 *     ds[i, j] = p[i, j] (mask <G_i, V_j> - D_i)
 *     dV_j = sum of mask p[i, j] G_i
 *     DOT    dQ_i = scale sum of ds[i, j] K_j,  dK_j = scale sum of ds[i, j] Q_i
 *     ADD    dq_i = (1 - slope) sum of ds[i, j] where q_i + k_j > 0,
 *            dk_j = sum of f' ds[i, j]
 *
 * (The sum of all ds of a row is 0, so that of f' ds is (1 - slope) times that of some. `plus`,
 * from which other kernels compute it, is not read.)
 *
 * All operands of a graph are in shared memory. The warps of its block first compute all p and ds,
 * which they put into shared memory as halves; then each computes pieces of the gradients, so that
 * no sum is shared. The scores add the same products in the same order as in the forward pass, so
 * their bits are the same.
 *
 * One half of each weight is enough here: as gradients are sums of many terms that are halves
 * times weights, and are narrowed themselves, an error of 2^-11 of each weight, rounded to nearest,
 * is of the size of that of their operands. To be a half, ds is multiplied by a power of two, the
 * same for the whole graph:
 *
 *     |ds| <= |G_i| (kept |V_j| + |Y_i|) <= limit,   limit x power in [2^14, 2^15)
 *
 * where |Y_i| <= kept max |V_j|, because p sums to 1. */

#include "kernels/cuda/attention_graphs_weights.cuh"

namespace
{

/* ---- weights ---- */

/* ADD: adds f' ds of a tile to the lane's sums of its columns, of which columns 8 n + 2 t and 8 n +
 * 2 t + 1 of the tile are numbers 2 n and 2 n + 1, and ds where x > 0 to those of its two rows. x:
 * scores before f. */
__device__ void add_derivatives(const struct backward_problem &p, uint32_t counts,
                                const float (&x)[8], const float (&ds)[8], float *columns,
                                float *rows)
{
#pragma unroll
	for (int n = 0; n < 8; n++) {
		/* ds is not 0 where there is no edge */
		const float own = is_counted(counts, n) ? ds[n] : 0.0f;
		columns[2 * (n / 4) + n % 2] += leaky_slope(x[n], p.of.slope) * own;
		rows[n % 4 / 2] += x[n] > 0.0f ? own : 0.0f;
	}
}

/* Puts the sums of four rows over the columns of tiles j and j + 1 into shared memory: of rows g
 * and g + 8 of tile i, and of tile i + 1. Of the four lanes that have a row, lane t puts the sum of
 * number t. */
__device__ void put_row_sums(const struct backward_memory &m, const struct graph_block &b, int i,
                             int j, float (&sums)[4])
{
#pragma unroll
	for (int k = 0; k < 4; k++)
		sums[k] = lanes_sum<4>(sums[k]);
	const float own = b.t & 2 ? (b.t & 1 ? sums[3] : sums[2]) : (b.t & 1 ? sums[1] : sums[0]);
	m.row_sums(score_row(b, i + b.t / 2, 2 * (b.t % 2)))[j / 2] = own;
}
/* The sum of a row, from those of its columns. */
__device__ float row_sum(const struct backward_memory &m, const struct graph_block &b, int row)
{
	float sum = 0.0f;
	for (int part = 0; part < b.rows / BACK_ROWS; part++)
		sum += m.row_sums(row)[part];
	return sum;
}

/* Adds the sums of eight lanes with one t, of which lane 4 g + t receives number g. */
__device__ float sum_over_rows(float (&sums)[8], const struct graph_block &b)
{
#pragma unroll
	for (int half = 4; half >= 1; half /= 2)
#pragma unroll
		for (int n = 0; n < half; n++) {
			const bool upper = b.g & half;
			const float given = upper ? sums[n] : sums[n + half],
			            own = upper ? sums[n + half] : sums[n];
			sums[n] = own + __shfl_xor_sync(0xffffffffu, given, 4 * half);
		}
	return sums[0];
}

/* The weights of tiles (i, j) to (i + 1, j + 1), from scores (DOT) and dp = <G_i, V_j>. */
template <bool DOT>
__device__ void put_edges(const struct backward_problem &p, const struct backward_memory &m,
                          const struct graph_block &b, const struct edge_factors &factor, int i,
                          int j, const uint32_t (&counts)[2][2], unsigned kept,
                          const float (&score)[2][4][4], const float (&dp)[2][4][4])
{
	float sums[8] = {}, row_sums[4] = {}; /* ADD: of f' ds, and of ds where x > 0 */
#pragma unroll
	for (int of = 0; of < 4; of++) {
		const int down = of / 2, right = of % 2, row = score_row(b, i + down, 0);
		const float2 x0 = m.node[row], x1 = m.node[row + 8],
		             node[2] = {{x0.x, x0.y * factor.d}, {x1.x, x1.y * factor.d}};
		const uint32_t entries = counts[down][right];
		float x[8], w[8], ds[8];
#pragma unroll
		for (int n = 0; n < 8; n++) {
			const int h = 2 * right + n / 4;
			ds[n] = dp[down][h][n % 4];
			if constexpr (DOT) {
				w[n] = score[down][h][n % 4];
			} else {
				x[n] = additive(m.add_q[row + 8 * (n % 4 / 2)],
				                m.add_k[score_column(b, j + right, n)], 0.0f);
				w[n] = leaky(x[n], p.of.slope);
			}
		}
		weigh_edges(entries, factor, node, w, ds);
		if (p.of.mask.step)
			drop_edges(kept >> 8 * of, node, w, ds);
		const struct count_masks masks = masks_of(entries);
		const int at = HG__DENSE_TILE * ((i + down) * m.pitch + j + right);
		put_weights(m.p + at, m.pitch, b, masks, w);
		if constexpr (DOT)
			put_weights(m.ds + at, m.pitch, b, masks, ds);
		else
			add_derivatives(p, entries, x, ds, sums + 4 * right, row_sums + 2 * down);
	}
	if constexpr (!DOT) {
		m.add_dk[i / 2 * m.rows + HG__DENSE_TILE * j + 8 * (b.g / 2) + 2 * b.t + b.g % 2] =
		    sum_over_rows(sums, b);
		put_row_sums(m, b, i, j, row_sums);
	}
}

/* Computes all p and ds, 32 x 32 of them in a warp at once. A barrier must follow. */
template <bool DOT, int D>
__device__ void put_all_edges(const struct backward_problem &p, const struct backward_memory &m,
                              const struct graph_block &b, float scale)
{
	const struct edge_factors factor = edge_factors_of<DOT>(p, scale);
	const int warp = static_cast<int>(threadIdx.x / 32), warps = static_cast<int>(blockDim.x / 32),
	          side = b.rows / BACK_ROWS;
#pragma unroll 1
	for (int at = warp; at < side * side; at += warps) {
		const int i = 2 * (at / side), j = 2 * (at % side), row = HG__DENSE_TILE * i,
		          column = HG__DENSE_TILE * j;
		uint32_t counts[2][2];
#pragma unroll
		for (int of = 0; of < 4; of++)
			counts[of / 2][of % 2] = counts_at(p.count, b, i + of / 2, j + of % 2);
		/* before the products, because it takes many registers */
		const unsigned kept = p.of.mask.step ? kept_edges(p, b, i, j) : 0;
		float score[2][4][4], dp[2][4][4];
		if constexpr (DOT)
			multiply_square<D>(m.q + row * GRAPH_PITCH<D>, m.k + column * GRAPH_PITCH<D>, b.lane,
			                   score);
		multiply_square<D>(m.g + row * GRAPH_PITCH<D>, m.v + column * GRAPH_PITCH<D>, b.lane, dp);
		put_edges<DOT>(p, m, b, factor, i, j, counts, kept, score, dp);
	}
}

/* ---- gradients ---- */

/* One of the products that become gradients. */
struct product {
	const __half *weight, *x;
	const uint32_t *count; /* of the nodes that receive the sums */
	float factor;
};
template <bool DOT>
__device__ struct product product_of(const struct backward_problem &p,
                                     const struct backward_memory &m, int which, float scale)
{
	const float kept = p.of.mask.step ? p.of.mask.kept : 1.0f;
	if (!DOT || which == OF_DV)
		return {m.p, m.g, p.count_t, kept / P_SCALE};
	if (which == OF_DQ)
		return {m.ds, m.k, p.count, p.of.scale / scale};
	return {m.ds, m.q, p.count_t, p.of.scale / scale};
}

/* sums = W X, or with ACROSS W^T X, for M tiles of rows from `tile` on and columns from c on. Where
 * values of X spoil sums, they are computed again without these, and those of neighbours are
 * added. */
template <int D, bool ACROSS, int M, int N>
__device__ void sum_product(const struct product &of, int pitch, const struct graph_block &b,
                            int tile, int c, float (&sums)[M][N][4])
{
	const int at = HG__DENSE_TILE * tile;
	const struct weighted_rows rows = {of.weight + (ACROSS ? at : at * pitch), pitch, of.x + c,
	                                   b.rows / HG__DENSE_TILE};
	sum_rows<D, ACROSS, false>(rows, b.lane, sums);
	bool spoiled = false;
#pragma unroll
	for (int m = 0; m < M; m++)
		spoiled |= any_spoiled(sums[m]);
	if (!spoiled)
		return;
	sum_rows<D, ACROSS, true>(rows, b.lane, sums);
	struct graph_block own = b;
#pragma unroll
	for (int m = 0; m < M; m++) {
		own.own = at + HG__DENSE_TILE * m;
		if (own.own < b.nodes)
			add_spoiled<D>(sums[m], of.x + c, of.count, own);
	}
}

/* The part of a result in M tiles of rows from `tile` on, and columns from c on. Where gradients
 * are one matrix, their sum is narrowed once. */
template <bool DOT, int D>
__device__ void put_result(const struct backward_problem &p, const struct backward_memory &m,
                           const struct graph_block &b, float scale,
                           const struct graph_result &result, int tile, int c)
{
	constexpr int M = back_shape<DOT, D>::M, N = back_shape<DOT, D>::N;
	float total[M][N][4];
	bool first = true;
#pragma unroll 1
	for (int which = DOT ? 0 : OF_DV; which < GRAPH_PRODUCTS; which++) {
		if (!(result.products >> which & 1u))
			continue;
		const struct product of = product_of<DOT>(p, m, which, scale);
		float sums[M][N][4];
		if (DOT && which == OF_DQ)
			sum_product<D, false>(of, m.pitch, b, tile, c, sums);
		else
			sum_product<D, true>(of, m.pitch, b, tile, c, sums);
#pragma unroll
		for (int i = 0; i < M * N * 4; i++) {
			const float sum = sums[i / 4 / N][i / 4 % N][i % 4] * of.factor;
			float &to = total[i / 4 / N][i / 4 % N][i % 4];
			to = first ? sum : to + sum;
		}
		first = false;
	}
	__half *const to = result.to + b.first * result.ld + b.head * p.of.d + c;
#pragma unroll
	for (int k = 0; k < M; k++)
		store_sums(to, result.ld, p.of.d - c, tile + k, total[k], b);
}

/* The gradients that are products, in pieces that the warps take in turn. */
template <bool DOT, int D>
__device__ void put_results(const struct backward_problem &p, const struct backward_memory &m,
                            const struct graph_block &b, float scale)
{
	constexpr int M = back_shape<DOT, D>::M, COLUMNS = 8 * back_shape<DOT, D>::N;
	const int warp = static_cast<int>(threadIdx.x / 32), warps = static_cast<int>(blockDim.x / 32),
	          pieces = (p.of.d + COLUMNS - 1) / COLUMNS, groups = (b.side + M - 1) / M;
#pragma unroll 1
	for (int at = warp; at < p.results * groups * pieces; at += warps) {
		const int group = at / pieces;
		put_result<DOT, D>(p, m, b, scale, p.result[group / groups], M * (group % groups),
		                   COLUMNS * (at % pieces));
	}
}

/* ADD: stores dq and dk: their sum, if they are one matrix. */
__device__ void store_add_numbers(const struct backward_problem &p, const struct backward_memory &m,
                                  const struct graph_block &b)
{
	for (int i = static_cast<int>(threadIdx.x); i < b.nodes; i += static_cast<int>(blockDim.x)) {
		const int64_t node = b.first + i;
		const float dq = (1.0f - p.of.slope) * (row_sum(m, b, i) / P_SCALE);
		float dk = 0.0f;
		for (int part = 0; part < b.rows / BACK_ROWS; part++)
			dk += m.add_dk[part * m.rows + i];
		dk /= P_SCALE;
		if (p.dq && p.dq != p.dk)
			p.dq[node * p.lddq + b.head] = narrow<__half>(dq);
		if (p.dk)
			p.dk[node * p.lddk + b.head] = narrow<__half>(p.dq == p.dk ? dq + dk : dk);
	}
}

/* ---- the kernel ---- */

/* Asks the cache for the operands of the block that will probably follow this one. On 1,024 graphs
 * of 119 nodes with 128 columns this takes DOT from 0.172 to 0.168 ms on an H200. Gradients of ADD
 * took 0.090 ms instead of 0.085, and the forward passes were slower, too. */
template <int D> __device__ void prefetch_next(const struct backward_problem &p)
{
	const unsigned next = blockIdx.x + p.of.ahead;
	if (p.of.ahead == 0 || next >= gridDim.x)
		return;
	const struct graph_block b = graph_block_of(p.of, next);
	prefetch_counts(p.count, b);
	prefetch_rows<D>(p.dy, p.lddy, p.of.d, b);
	prefetch_rows<D>(p.y, p.ldy, p.of.d, b);
	prefetch_rows<D>(p.of.v, p.of.ldv, p.of.d, b);
	prefetch_rows<D>(p.of.q, p.of.ldq, p.of.d, b);
	prefetch_rows<D>(p.of.k, p.of.ldk, p.of.d, b);
}

template <bool DOT, int D>
__global__ void __launch_bounds__(32 * back_shape<DOT, D>::WARPS, (back_shape<DOT, D>::RESIDENT))
    attend_graphs_back(const __grid_constant__ struct backward_problem p)
{
	after_previous();
	extern __shared__ uint4 shared[];
	struct graph_block b = graph_block_of(p.of, blockIdx.x);
	b.rows = backward_rows(b.nodes);
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
		put_most<D>(m, most);
	await_rows();
	__syncthreads();
	if constexpr (DOT)
		prefetch_next<D>(p);
	float scale = 0.0f;
	if constexpr (DOT)
		scale = scale_of_ds<D>(p, m);
	put_all_edges<DOT, D>(p, m, b, scale);
	__syncthreads();
	if constexpr (!DOT)
		store_add_numbers(p, m, b);
	put_results<DOT, D>(p, m, b, scale);
}

/* The threads of a block: two warps for each tile of rows, if the kernel has as many. */
template <bool DOT, int D> int threads_of(const struct backward_problem &p)
{
	constexpr int MOST = back_shape<DOT, D>::WARPS;
	const int wanted = 2 * (backward_rows(p.of.rows) / HG__DENSE_TILE);
	return 32 * (wanted < MOST ? wanted : MOST);
}

template <bool DOT, int D>
hg_status run_backward(hg_context *ctx, const struct hg__dense &dense, struct backward_problem p)
{
	const auto kernel = attend_graphs_back<DOT, D>;
	const size_t bytes = backward_bytes<DOT, D>(p.of.rows);
	const int threads = threads_of<DOT, D>(p);
	HG__TRY(allow_shared(ctx, reinterpret_cast<const void *>(kernel), bytes));
	if (DOT)
		HG__TRY(set_ahead(ctx, reinterpret_cast<const void *>(kernel), threads, bytes, &p.of));
	return launch_graphs(ctx, "attention: gradients of graphs", kernel, dense, p.of.heads,
	                     static_cast<unsigned>(threads), bytes, p);
}

/* Lists the gradient of a product, or adds it to the matrix that it shares with others. */
void add_result(struct backward_problem *p, const struct hg__mat &to, enum graph_product product)
{
	int k = 0;
	if (!to.data)
		return;
	while (k < p->results && p->result[k].to != to.data)
		k++;
	if (k == p->results)
		p->result[p->results++] = {data_of<__half>(to), to.ld, 0};
	p->result[k].products |= 1u << product;
}

/* store_sums writes 4 or 8 halves at once. Of ADD, dq and dk have one number a node and head. */
bool holds_products(const struct hg__mat &m)
{
	return !m.data || is_half(m);
}
bool holds_numbers(const struct hg__mat &m)
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
	           results = add ? holds_numbers(a->dq) && holds_numbers(a->dk)
	                         : holds_products(a->dq) && holds_products(a->dk),
	           halves = is_half(a->y) && is_half(a->dy) && holds_products(a->dv) && results;
	if (!graph_operands_fit(a->csr, a->of) || !a->csr_t.plan || !a->csr_t.plan->dense || !halves ||
	    a->dbias.data || a->dc.data)
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
	p.y = data_of<const __half>(a->y);
	p.dy = data_of<const __half>(a->dy), p.log_sum = data_of<const float>(a->log_sum);
	p.ldy = a->y.ld, p.lddy = a->dy.ld, p.ld_log_sum = a->log_sum.ld;
	if (a->of.score == HG_SCORE_DOT) {
		add_result(&p, a->dq, OF_DQ);
		add_result(&p, a->dk, OF_DK);
	} else {
		p.dq = data_of<__half>(a->dq), p.dk = data_of<__half>(a->dk);
		p.lddq = a->dq.ld, p.lddk = a->dk.ld;
	}
	add_result(&p, a->dv, OF_DV);
	return with_graph_width(p.of.d, [&](auto width) {
		constexpr int D = decltype(width)::value;
		return a->of.score == HG_SCORE_DOT ? run_backward<true, D>(ctx, dense, p)
		                                   : run_backward<false, D>(ctx, dense, p);
	});
}
