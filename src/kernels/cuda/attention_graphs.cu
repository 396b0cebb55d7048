/* Attention over batches of small graphs by tensor cores. With counts c[i, j] of the entries:
 *
 *     m_i = max of s[i, j] where c > 0,   w[i, j] = c exp(s[i, j] - m_i),   l_i = sum of w[i, j]
 *     w'[i, j] = w[i, j] as a half,   Y_i = sum of mask w'[i, j] V_j / sum of w'[i, j]
 *     log_sum_i = m_i + log l_i
 *
 * Y is divided by the sum of the weights as they are multiplied, so that it is a mean whatever
 * their rounding is, and no larger than V (times the factor of kept edges). One half of each weight
 * takes half the products that two halves take. On 1,024 graphs of 119 nodes with 128 columns
 * (H200) ADD and DOT took 0.079 and 0.068 ms with two halves, and take 0.070 and 0.063 with one.
 *
 * A warp has all scores of its 16 rows in registers, so the maximum and the sum are those of whole
 * rows. It computes Y in pieces of columns, so that fewer sums are in registers at once. */

#include "kernels/cuda/attention_graphs.cuh"

#include "kernels/cuda/attention_epilogue.cuh"

namespace
{

struct forward_problem {
	struct graph_operands of;
	const uint32_t *count;
	__half *y, *plus; /* plus NULL: absent */
	float *log_sum;
	int64_t ldy, ldplus, ld_log_sum;
	struct guard guard;
	struct attention_epilogue epilogue;
};

/* The scores of a lane: [tile][product][element]. */
template <int TILES> using tile_scores = float[TILES][2][4];

/* Weights are multiplied by 2^WEIGHT_BITS. The largest is that of 15 entries, exp(0) each, and
 * 15 * 2^11 is a half. */
constexpr float WEIGHT_BITS = 11.0f;

/* The rows of a graph with four tiles. */
constexpr int FEW_ROWS = 4 * HG__DENSE_TILE;

/* Tiles of columns whose scores are computed without a test between them. */
template <int TILES> constexpr int TOGETHER = TILES == 8 ? 4 : 1;
/* The rows of matrices in shared memory, for graphs of `rows`. */
int rows_in_memory(int rows)
{
	return rows <= FEW_ROWS ? rows : HG__DENSE_NODES;
}

/* Columns of a piece. ADD needs more registers for other things. */
template <bool DOT, int D> constexpr int PIECE = DOT &&D >= 64 ? 64 : D < 32 ? D : 32;

/* ---- scores ---- */

/* Of large graphs, tiles of columns come in fours, between which nothing is tested, so that
 * operands are loaded ahead of products. Rows of K behind the last tile are undefined, and so are
 * their scores, which do not count. */
template <int D, int TILES>
__device__ void dot_scores(const __half *q, const __half *k, const struct graph_block &b,
                           float (&s)[TILES][2][4])
{
	constexpr unsigned TILE_BYTES = HG__DENSE_TILE * GRAPH_PITCH<D> * sizeof(__half);
	const unsigned left = left_address<D>(q + b.own * GRAPH_PITCH<D>, b.lane),
	               right = right_address<D>(k, b.lane);
#pragma unroll
	for (int c = 0; c < D / 16; c++) {
		const uint4 x = load_matrices(left + STEP_BYTES * c);
#pragma unroll
		for (int j = 0; j < TILES; j++) {
			if (j % TOGETHER<TILES> == 0 && j >= b.side)
				break;
			const uint4 y = load_matrices(right + STEP_BYTES * c + TILE_BYTES * j);
			multiply(s[j][0], x, y.x, y.y);
			multiply(s[j][1], x, y.z, y.w);
		}
	}
}

/* key: k of each node of the graph. */
template <int TILES>
__device__ void add_scores(const struct forward_problem &p, const float *key,
                           const struct graph_block &b, float (&s)[TILES][2][4])
{
	float q[2];
#pragma unroll
	for (int high = 0; high < 2; high++) {
		const int row = row_at(b, 2 * high);
		q[high] = row < b.nodes ? widen(p.of.q[(b.first + row) * p.of.ldq + b.head]) : 0.0f;
	}
#pragma unroll
	for (int j = 0; j < TILES; j++) {
		if (j >= b.side)
			break;
#pragma unroll
		for (int i = 0; i < 8; i++)
			s[j][i / 4][i % 4] =
			    leaky(additive(q[i % 4 / 2], key[column_at(b, j, i / 4, i)], 0.0f), p.of.slope);
	}
}

/* ---- weights ---- */

/* The maximum and the sums of a lane's two rows: the maximum in units of log 2, the sums times
 * 2^WEIGHT_BITS. halves: the sum of the weights as halves. */
struct row_pair_sums {
	struct running_sum of[2];
	float halves[2];
};

/* Brings scores to units of log 2, -inf where there is no edge, and finds their maximum. factor:
 * log2 e, times the scale of the scores. */
template <int TILES>
__device__ void find_maximum(float (&s)[TILES][2][4], const uint32_t (&counts)[TILES], float factor,
                             struct row_pair_sums &rows)
{
#pragma unroll
	for (int j = 0; j < TILES; j++)
#pragma unroll
		for (int i = 0; i < 8; i++) {
			float &score = s[j][i / 4][i % 4], &most = rows.of[i % 4 / 2].most;
			score = is_counted(counts[j], i) ? score * factor : -INFINITY;
			most = fmaxf(most, score);
		}
#pragma unroll
	for (int high = 0; high < 2; high++)
#pragma unroll
		for (int step = 1; step < 4; step *= 2)
			rows.of[high].most =
			    fmaxf(rows.of[high].most, __shfl_xor_sync(0xffffffffu, rows.of[high].most, step));
}

/* Multiplies weights by their counts, which it reads again: few graphs have a count above 1. */
template <int TILES>
__device__ void multiply_counts(const struct forward_problem &p, const struct graph_block &b,
                                float (&w)[TILES][2][4])
{
#pragma unroll
	for (int j = 0; j < TILES; j++) {
		if (j >= b.side)
			break;
		const uint32_t counts = counts_of(p.count, b, j);
#pragma unroll
		for (int i = 0; i < 8; i++)
			if (is_counted(counts, i))
				w[j][i / 4][i % 4] *= static_cast<float>(count_at(counts, i));
	}
}

/* Rounds a pair of weights to halves, and adds their sizes to a sum. */
__device__ void round_pair(float &x, float &y, float &sum)
{
	const float2 rounded = __half22float2(__floats2half2_rn(x, y));
	x = rounded.x, y = rounded.y;
	sum += fabsf(x) + fabsf(y);
}

/* Makes weights of the scores, times 2^WEIGHT_BITS, and sums of them, and rounds the weights to
 * halves. The weight of an edge whose score is not positive gets a sign, which tells the terms of
 * `plus` from the others. */
template <bool DOT, int TILES>
__device__ void weigh(const struct forward_problem &p, const struct graph_block &b, bool multiples,
                      float (&s)[TILES][2][4], struct row_pair_sums &rows)
{
	float offset[2];
#pragma unroll
	for (int high = 0; high < 2; high++)
		/* without edges all scores are -inf, and so are their differences from 0 */
		offset[high] = rows.of[high].most == -INFINITY ? 0.0f : rows.of[high].most - WEIGHT_BITS;
#pragma unroll
	for (int j = 0; j < TILES; j++)
#pragma unroll
		for (int i = 0; i < 8; i++) {
			float &score = s[j][i / 4][i % 4];
			const bool positive = DOT || score > 0.0f;
			const float w = power_of_two(score - offset[i % 4 / 2]);
			score = positive ? w : -w;
		}
	if (multiples)
		multiply_counts(p, b, s);
#pragma unroll
	for (int j = 0; j < TILES; j++)
#pragma unroll
		for (int i = 0; i < 8; i++) {
			const float w = s[j][i / 4][i % 4];
			struct running_sum &row = rows.of[i % 4 / 2];
			row.sum += fabsf(w);
			if constexpr (!DOT)
				row.plus += signbit(w) ? 0.0f : w;
		}
#pragma unroll
	for (int j = 0; j < TILES; j++)
#pragma unroll
		for (int i = 0; i < 8; i += 2)
			round_pair(s[j][i / 4][i % 4], s[j][i / 4][i % 4 + 1], rows.halves[i % 4 / 2]);
#pragma unroll
	for (int high = 0; high < 2; high++) {
		rows.of[high].sum = lanes_sum<4>(rows.of[high].sum);
		rows.halves[high] = lanes_sum<4>(rows.halves[high]);
		if constexpr (!DOT)
			rows.of[high].plus = lanes_sum<4>(rows.of[high].plus);
	}
}

/* Bit 8 j + i: whether dropout keeps element i of tile j. One copy of the code serves all tiles. */
__device__ uint64_t kept_bits(const struct forward_problem &p, const struct graph_block &b)
{
	uint64_t kept = 0;
#pragma unroll 1
	for (int j = 0; j < b.side; j++) {
		const unsigned bits = kept_of(
		    p.of.mask, b, counts_of(p.count, b, j), [&](int n) { return row_at(b, n % 4); },
		    [&](int n) { return column_at(b, j, n / 4, n); });
		kept |= static_cast<uint64_t>(bits) << 8 * j;
	}
	return kept;
}
static_assert(GRAPH_WARPS * 8 <= 64, "a bit for each element of a lane");

template <int TILES> __device__ void drop(float (&w)[TILES][2][4], uint64_t kept)
{
#pragma unroll
	for (int j = 0; j < TILES; j++)
#pragma unroll
		for (int i = 0; i < 8; i++)
			if (!(kept >> (8 * j + i) & 1u))
				w[j][i / 4][i % 4] = 0.0f;
}

/* ---- results ---- */

/* The signs of a pair of halves, and all bits of those that have one. */
constexpr unsigned SIGNS = 0x80008000u;
__device__ unsigned negative_of(unsigned pair)
{
	unsigned all;
	asm("prmt.b32 %0, %1, 0, 0xBB99;" : "=r"(all) : "r"(pair));
	return all;
}

__device__ uint4 all_of(const uint4 &w)
{
	return make_uint4(w.x & ~SIGNS, w.y & ~SIGNS, w.z & ~SIGNS, w.w & ~SIGNS);
}
/* The terms of `plus`. */
__device__ uint4 plus_of(const uint4 &w)
{
	return make_uint4(w.x & ~negative_of(w.x), w.y & ~negative_of(w.y), w.z & ~negative_of(w.z),
	                  w.w & ~negative_of(w.w));
}

/* Sums of a piece of columns. SIGNED: some weights have signs, which are ignored. ALL: the graph
 * has TILES tiles of rows. v: the piece's first column of the graph's first row. */
template <bool SIGNED, bool ALL, int D, int TILES, int N>
__device__ void sum_piece(const uint4 (&w)[TILES], const __half *v, const struct graph_block &b,
                          bool clean, float (&sums)[N][4])
{
	clear(sums);
#pragma unroll
	for (int j = 0; j < TILES; j++) {
		if (!ALL && j >= b.side)
			break;
		add_product<D>(sums, SIGNED ? all_of(w[j]) : w[j], v + j * HG__DENSE_TILE * GRAPH_PITCH<D>,
		               b.lane, clean);
	}
}

/* Scales a piece of a result, checks it, and writes it to the warp's rows in shared memory. */
template <int D, int N>
__device__ void stage_piece(const struct forward_problem &p, float (&sums)[N][4],
                            const float (&factor)[2], __half *own, int c,
                            const struct graph_block &b)
{
#pragma unroll
	for (int n = 0; n < N; n++)
#pragma unroll
		for (int high = 0; high < 2; high++) {
			const float pair[2] = {sums[n][2 * high] * factor[high],
			                       sums[n][2 * high + 1] * factor[high]};
			p.guard.check(b.head * p.of.d + c + 8 * n + 2 * b.t, pair);
		}
	stage_halves<D>(own, c, sums, factor, b);
}

/* Computes Y, or with other weights `plus`, of the warp's rows in shared memory, and stores it if
 * it is wanted. */
template <bool SIGNED, int D, int COLUMNS, int TILES>
__device__ void store_result(const struct forward_problem &p, const uint4 (&w)[TILES],
                             const __half *v, __half *own, const float (&factor)[2],
                             const struct graph_block &b, __half *to, int64_t ld)
{
#pragma unroll 1
	for (int c = 0; c < D; c += COLUMNS) {
		float sums[COLUMNS / 8][4];
		/* more columns leave no registers for operands that are loaded ahead */
		if (COLUMNS <= 32 && b.side == TILES)
			sum_piece<SIGNED, true, D>(w, v + c, b, false, sums);
		else
			sum_piece<SIGNED, false, D>(w, v + c, b, false, sums);
		if (any_spoiled(sums)) {
			sum_piece<SIGNED, false, D>(w, v + c, b, true, sums);
			add_spoiled<D>(sums, v + c, p.count, b);
		}
		stage_piece<D>(p, sums, factor, own, c, b);
	}
	__syncwarp();
	if (to)
		store_halves<D>(to, ld, p.of.d, own, b);
}

/* Applies the epilogue to the warp's rows of Y in shared memory, which are narrowed already, in the
 * packs in which store_halves stores them. */
template <int D>
__device__ void store_ended(const struct forward_problem &p, const __half *own,
                            const struct graph_block &b)
{
	constexpr int PACKS = D / 8;
#pragma unroll 1
	for (int i = b.lane; i < HG__DENSE_TILE * PACKS; i += 32) {
		const int row = i / PACKS, col = i % PACKS * 8;
		float y[8];
		if (b.own + row >= b.nodes || col >= p.of.d)
			continue;
		load<8>(own + row * GRAPH_PITCH<D> + col, y);
		p.epilogue.put<__half>(static_cast<int32_t>(b.first) + b.own + row,
		                       b.head * static_cast<int>(p.of.d) + col, y, p.guard);
	}
}

/* The neighbours of `plus` are those with a positive score, which the counts do not tell. So where
 * values are not finite, all of them spoil `plus`: it is used only to multiply a gradient that such
 * values have spoiled before. */
template <bool DOT, int D, int TILES>
__device__ void store_results(const struct forward_problem &p, uint4 (&w)[TILES], const __half *v,
                              __half *own, const float (&factor)[2], const struct graph_block &b)
{
	store_result<!DOT, D, PIECE<DOT, D>>(p, w, v, own, factor, b, p.y, p.ldy);
	if (p.epilogue.to)
		store_ended<D>(p, own, b);
	if constexpr (!DOT)
		if (p.plus) {
#pragma unroll
			for (int j = 0; j < TILES; j++)
				w[j] = plus_of(w[j]);
			__syncwarp(); /* all lanes have stored Y */
			store_result<false, D, PIECE<DOT, D>>(p, w, v, own, factor, b, p.plus, p.ldplus);
		}
}

/* Of the four lanes that have a row, the one with t = 0 stores its log sum. */
template <bool DOT>
__device__ void store_log_sum(const struct forward_problem &p, const struct row_pair_sums &rows,
                              const struct graph_block &b)
{
#pragma unroll
	for (int high = 0; high < 2; high++) {
		const int row = row_at(b, 2 * high);
		const struct running_sum &of = rows.of[high];
		if (b.t != 0 || row >= b.nodes)
			continue;
		float *const log_sum = p.log_sum + (b.first + row) * p.ld_log_sum;
		log_sum[b.head] =
		    of.sum == 0.0f ? -INFINITY : LN_2 * (of.most + (log2f(of.sum) - WEIGHT_BITS));
		if constexpr (!DOT)
			log_sum[p.of.heads + b.head] = shared_out(of.plus, of.sum);
	}
}

/* ---- the kernel ---- */

/* Shared memory, in rows of D: the warps' own rows (Q, later results), V, and K; ADD has one number
 * a node in place of K. */
template <bool DOT, int D> size_t forward_bytes(int rows)
{
	return (DOT ? 3 : 2) * graph_rows_bytes<D>(rows) +
	       (DOT ? 0 : static_cast<size_t>(rows) * sizeof(float));
}

/* 128 registers: two blocks of eight warps, or four of four, on a multiprocessor. */
template <bool DOT, int D, int TILES>
__global__ void __launch_bounds__(32 * TILES, 16 / TILES)
    attend_graphs(const __grid_constant__ struct forward_problem p)
{
	after_previous();
	extern __shared__ uint4 memory[];
	const struct graph_block b = graph_block_of(p.of, blockIdx.x);
	__half *const own = reinterpret_cast<__half *>(memory),
	              *const v = own + p.of.rows * GRAPH_PITCH<D>,
	              *const k = v + p.of.rows * GRAPH_PITCH<D>;
	float *const key = reinterpret_cast<float *>(k);
	if constexpr (DOT) {
		fetch_rows<D>(own, p.of.q, p.of.ldq, p.of.d, b);
		fetch_rows<D>(k, p.of.k, p.of.ldk, p.of.d, b);
	} else {
		for (int i = static_cast<int>(threadIdx.x); i < b.side * HG__DENSE_TILE;
		     i += static_cast<int>(blockDim.x))
			key[i] = i < b.nodes ? widen(p.of.k[(b.first + i) * p.of.ldk + b.head]) : 0.0f;
	}
	fetch_rows<D>(v, p.of.v, p.of.ldv, p.of.d, b);
	uint32_t counts[TILES], all_counts = 0;
#pragma unroll
	for (int j = 0; j < TILES; j++) {
		counts[j] = b.own < b.nodes && j < b.side ? counts_of(p.count, b, j) : 0;
		all_counts |= counts[j];
	}
	const bool multiples = has_multiples(all_counts);
	await_rows();
	__syncthreads();
	if (b.own >= b.nodes)
		return;

	/* before the scores, because it takes many registers */
	const uint64_t kept = p.of.mask.step ? kept_bits(p, b) : 0;
	tile_scores<TILES> s = {};
	struct row_pair_sums rows = {{empty_sum(), empty_sum()}, {}};
	if constexpr (DOT)
		dot_scores<D>(own, k, b, s);
	else
		add_scores(p, key, b, s);
	find_maximum(s, counts, DOT ? p.of.scale * LOG2_E : LOG2_E, rows);
	weigh<DOT>(p, b, multiples, s, rows);
	store_log_sum<DOT>(p, rows, b);
	if (p.of.mask.step)
		drop(s, kept);
	const float share = p.of.mask.step ? p.of.mask.kept : 1.0f;
	const float factor[2] = {shared_out(share, rows.halves[0]), shared_out(share, rows.halves[1])};
	uint4 w[TILES];
#pragma unroll
	for (int j = 0; j < TILES; j++)
		w[j] = left_of(s[j]);
	__syncwarp(); /* all lanes have read Q */
	store_results<DOT, D>(p, w, v, own + b.own * GRAPH_PITCH<D>, factor, b);
}

template <bool DOT, int D, int TILES>
hg_status queue_forward(hg_context *ctx, const struct hg__dense &dense, struct forward_problem p)
{
	const auto kernel = attend_graphs<DOT, D, TILES>;
	p.of.rows = rows_in_memory(p.of.rows);
	const size_t bytes = forward_bytes<DOT, D>(p.of.rows);
	HG__TRY(allow_shared(ctx, reinterpret_cast<const void *>(kernel), bytes));
	const int threads = 32 * hg__dense_side(dense.most_nodes);
	return launch_graphs(ctx, "attention: graphs", kernel, dense, p.of.heads,
	                     static_cast<unsigned>(threads), bytes, p);
}
template <bool DOT, int D>
hg_status run_forward(hg_context *ctx, const struct hg__dense &dense,
                      const struct forward_problem &p)
{
	return p.of.rows <= FEW_ROWS ? queue_forward<DOT, D, 4>(ctx, dense, p)
	                             : queue_forward<DOT, D, 8>(ctx, dense, p);
}

} // namespace

bool hg__cuda_attention_graphs_takes(const struct hg__attention_args *a)
{
	if (!graph_operands_fit(a->csr, a->of) || !is_half(a->y) || (a->plus.data && !is_half(a->plus)))
		return false;
	const int rows =
	    rows_in_memory(HG__DENSE_TILE * hg__dense_side(a->csr.plan->dense->most_nodes));
	return hg__cuda_attention_graphs_back_fits(a->csr, a->of) &&
	       with_graph_width(a->of.v.cols / a->of.heads, [&](auto width) {
		       return forward_bytes<true, decltype(width)::value>(rows) <= graph_shared_limit();
	       });
}

size_t hg__cuda_attention_graphs_workspace(const hg_context *, const struct hg__attention_args *)
{
	return 0;
}

hg_status hg__cuda_attention_graphs(hg_context *ctx, const struct hg__attention_args *a)
{
	const struct hg__dense &dense = *a->csr.plan->dense;
	struct forward_problem p = {};
	p.of = graph_operands_of(a->csr, a->of);
	p.count = dense.count;
	p.y = data_of<__half>(a->y), p.plus = data_of<__half>(a->plus);
	p.log_sum = data_of<float>(a->log_sum);
	p.ldy = a->y.ld, p.ldplus = a->plus.ld, p.ld_log_sum = a->log_sum.ld;
	p.guard = guard_of(a->overflow, a->y.cols);
	p.epilogue = attention_epilogue_of(*a);
	return with_graph_width(p.of.d, [&](auto width) {
		constexpr int D = decltype(width)::value;
		return a->of.score == HG_SCORE_DOT ? run_forward<true, D>(ctx, dense, p)
		                                   : run_forward<false, D>(ctx, dense, p);
	});
}
