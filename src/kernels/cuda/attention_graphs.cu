/* Attention over batches of small graphs by tensor cores. With counts c[i, j] of the entries:
 *
 *     m_i = max of s[i, j] where c > 0,   w[i, j] = c exp(s[i, j] - m_i),   l_i = sum of w[i, j]
 *     Y_i = sum of mask w[i, j] V_j / l_i,   softmax_i = m_i + log l_i
 *
 * A warp has all scores of its 16 rows in registers, so the maximum and the sum are those of whole
 * rows. It computes Y in pieces of columns, so that fewer sums are in registers at once. */

#include "kernels/cuda/attention_graphs.cuh"

#include "kernels/cuda/guard.cuh"

namespace
{

struct forward_problem {
	struct graph_operands of;
	const uint32_t *count;
	__half *y, *plus; /* plus NULL: absent */
	float *softmax;
	int64_t ldy, ldplus, ld_softmax;
	int heads;
	struct guard guard;
};

/* The scores of a lane: [tile][product][element]. */
template <int TILES> using tile_scores = float[TILES][2][4];

/* Largest weight: 15 entries, exp(0) each. 15 * 2^11 is a half. */
constexpr float WEIGHT_SCALE = 2048.0f;

/* Columns of a piece. ADD has two sums for each column. */
template <bool DOT, int D> constexpr int PIECE = DOT ? (D < 64 ? D : 64) : 32;

/* ---- scores ---- */

template <int D, int TILES>
__device__ void dot_scores(const struct forward_problem &p, const __half *q, const __half *k,
                           const struct graph_block &b, float (&s)[TILES][2][4])
{
	const unsigned left = left_address<D>(q + b.own * GRAPH_PITCH<D>, b.lane),
	               right = right_address<D>(k, b.lane);
#pragma unroll
	for (int c = 0; c < D / 16; c++) {
		const uint4 x = load_matrices(left + STEP_BYTES * c);
#pragma unroll
		for (int j = 0; j < TILES; j++) {
			if (j >= b.side)
				break;
			const uint4 y = load_matrices(
			    right + STEP_BYTES * c +
			    static_cast<unsigned>(j * HG__DENSE_TILE * GRAPH_PITCH<D> * sizeof(__half)));
			multiply(s[j][0], x, y.x, y.y);
			multiply(s[j][1], x, y.z, y.w);
		}
	}
#pragma unroll
	for (int j = 0; j < TILES; j++)
#pragma unroll
		for (int i = 0; i < 8; i++)
			s[j][i / 4][i % 4] = score_of(p.of.scale, s[j][i / 4][i % 4], 0.0f);
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

/* The maximum and the sums of a lane's two rows. */
struct row_pair_sums {
	struct running_sum of[2];
};

template <int TILES>
__device__ void find_maximum(const float (&s)[TILES][2][4], const uint32_t (&counts)[TILES],
                             struct row_pair_sums &rows)
{
#pragma unroll
	for (int j = 0; j < TILES; j++)
#pragma unroll
		for (int i = 0; i < 8; i++)
			if (count_at(counts[j], i) != 0)
				rows.of[i % 4 / 2].most = fmaxf(rows.of[i % 4 / 2].most, s[j][i / 4][i % 4]);
#pragma unroll
	for (int high = 0; high < 2; high++)
#pragma unroll
		for (int step = 1; step < 4; step *= 2)
			rows.of[high].most =
			    fmaxf(rows.of[high].most, __shfl_xor_sync(0xffffffffu, rows.of[high].most, step));
}

/* Makes weights of the scores, and sums of them. The weight of an edge whose score is not positive
 * gets a sign, which tells the terms of `plus` from the others. */
template <bool DOT, int TILES>
__device__ void weigh(float (&s)[TILES][2][4], const uint32_t (&counts)[TILES],
                      struct row_pair_sums &rows)
{
#pragma unroll
	for (int j = 0; j < TILES; j++)
#pragma unroll
		for (int i = 0; i < 8; i++) {
			float &score = s[j][i / 4][i % 4];
			struct running_sum &row = rows.of[i % 4 / 2];
			const bool positive = DOT || score > 0.0f;
			const float w = counted_exp(score, row.most, count_at(counts[j], i));
			row.sum += w;
			row.plus += positive ? w : 0.0f;
			score = positive ? w : -w;
		}
#pragma unroll
	for (int high = 0; high < 2; high++) {
		rows.of[high].sum = lanes_sum<4>(rows.of[high].sum);
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

/* The weights of a tile without their signs, scaled. */
__device__ struct split_weights all_of(const float (&w)[2][4])
{
	float scaled[2][4];
#pragma unroll
	for (int i = 0; i < 8; i++)
		scaled[i / 4][i % 4] = fabsf(w[i / 4][i % 4]) * WEIGHT_SCALE;
	return split_of(scaled);
}

/* Of a pair of halves, those whose weight has no sign. */
__device__ unsigned unsigned_of(unsigned pair, float x, float y)
{
	const unsigned low = signbit(x) ? 0u : 0xFFFFu, high = signbit(y) ? 0u : 0xFFFF0000u;
	return pair & (low | high);
}
/* The terms of `plus`. */
__device__ struct split_weights plus_of(const struct split_weights &all, const float (&w)[2][4])
{
	struct split_weights s;
	s.high.x = unsigned_of(all.high.x, w[0][0], w[0][1]);
	s.high.y = unsigned_of(all.high.y, w[0][2], w[0][3]);
	s.high.z = unsigned_of(all.high.z, w[1][0], w[1][1]);
	s.high.w = unsigned_of(all.high.w, w[1][2], w[1][3]);
	s.low.x = unsigned_of(all.low.x, w[0][0], w[0][1]);
	s.low.y = unsigned_of(all.low.y, w[0][2], w[0][3]);
	s.low.z = unsigned_of(all.low.z, w[1][0], w[1][1]);
	s.low.w = unsigned_of(all.low.w, w[1][2], w[1][3]);
	return s;
}

/* Sums of a piece of columns: of all terms, and with ADD of the terms of `plus`. v: the piece's
 * first column of the graph's first row. */
template <bool DOT, int D, int TILES, int N>
__device__ void sum_piece(const struct forward_problem &p, const float (&w)[TILES][2][4],
                          const __half *v, const struct graph_block &b, bool clean,
                          float (&all)[N][4], float (&plus)[N][4])
{
	clear(all);
	clear(plus);
#pragma unroll
	for (int j = 0; j < TILES; j++) {
		if (j >= b.side)
			break;
		const struct split_weights weights = all_of(w[j]);
		const __half *const rows = v + j * HG__DENSE_TILE * GRAPH_PITCH<D>;
		add_product<D>(all, weights, rows, b.lane, clean);
		if constexpr (!DOT)
			if (p.plus)
				add_product<D>(plus, plus_of(weights, w[j]), rows, b.lane, clean);
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

/* The neighbours of `plus` are those with a positive score, which the counts do not tell. So where
 * values are not finite, all of them spoil `plus`: it is used only to multiply a gradient that such
 * values have spoiled before. */
template <bool DOT, int D, int TILES>
__device__ void store_results(const struct forward_problem &p, const float (&w)[TILES][2][4],
                              const __half *v, __half *own, const float (&factor)[2],
                              const struct graph_block &b)
{
	constexpr int N = PIECE<DOT, D> / 8;
	__half *const plus_own = own + p.of.rows * GRAPH_PITCH<D>;
#pragma unroll 1
	for (int c = 0; c < D; c += PIECE<DOT, D>) {
		float all[N][4], plus[N][4];
		sum_piece<DOT, D>(p, w, v + c, b, false, all, plus);
		if (any_spoiled(all)) {
			sum_piece<DOT, D>(p, w, v + c, b, true, all, plus);
			add_spoiled<D>(all, v + c, p.count, b);
			if constexpr (!DOT)
				add_spoiled<D>(plus, v + c, p.count, b);
		}
		stage_piece<D>(p, all, factor, own, c, b);
		if constexpr (!DOT)
			if (p.plus)
				stage_piece<D>(p, plus, factor, plus_own, c, b);
	}
	__syncwarp();
	store_halves<D>(p.y, p.ldy, p.of.d, own, b);
	if constexpr (!DOT)
		if (p.plus)
			store_halves<D>(p.plus, p.ldplus, p.of.d, plus_own, b);
}

/* Of the four lanes that have a row, the one with t = 0 stores its softmax. */
template <bool DOT>
__device__ void store_softmax(const struct forward_problem &p, const struct row_pair_sums &rows,
                              const struct graph_block &b)
{
#pragma unroll
	for (int high = 0; high < 2; high++) {
		const int row = row_at(b, 2 * high);
		const struct running_sum &of = rows.of[high];
		if (b.t != 0 || row >= b.nodes)
			continue;
		float *const softmax = p.softmax + (b.first + row) * p.ld_softmax;
		softmax[b.head] = softmax_of(of);
		if constexpr (!DOT)
			softmax[p.heads + b.head] = shared_out(of.plus, of.sum);
	}
}

/* ---- the kernel ---- */

/* Shared memory, in rows of D: the warps' own rows (Q, later Y; with ADD one matrix each for Y and
 * plus), V, and K; ADD has one number a node in place of K. */
template <bool DOT, int D> size_t forward_bytes(int rows)
{
	return 3 * graph_rows_bytes<D>(rows) + (DOT ? 0 : static_cast<size_t>(rows) * sizeof(float));
}

/* 128 registers: two blocks of eight warps, or four of four, on a multiprocessor. */
template <bool DOT, int D, int TILES>
__global__ void __launch_bounds__(32 * TILES, 16 / TILES)
    attend_graphs(const __grid_constant__ struct forward_problem p)
{
	after_previous();
	extern __shared__ uint4 memory[];
	const struct graph_block b = graph_block_of(p.of, blockIdx.x, blockIdx.y);
	__half *const own = reinterpret_cast<__half *>(memory),
	              *const k = own + p.of.rows * GRAPH_PITCH<D>,
	              *const v = k + p.of.rows * GRAPH_PITCH<D>;
	float *const key = reinterpret_cast<float *>(v + p.of.rows * GRAPH_PITCH<D>);
	if constexpr (DOT) {
		fetch_rows<D>(own, p.of.q, p.of.ldq, p.of.d, b);
		fetch_rows<D>(k, p.of.k, p.of.ldk, p.of.d, b);
	} else {
		for (int i = static_cast<int>(threadIdx.x); i < b.side * HG__DENSE_TILE;
		     i += static_cast<int>(blockDim.x))
			key[i] = i < b.nodes ? widen(p.of.k[(b.first + i) * p.of.ldk + b.head]) : 0.0f;
	}
	fetch_rows<D>(v, p.of.v, p.of.ldv, p.of.d, b);
	uint32_t counts[TILES];
#pragma unroll
	for (int j = 0; j < TILES; j++)
		counts[j] = b.own < b.nodes && j < b.side ? counts_of(p.count, b, j) : 0;
	await_rows();
	__syncthreads();
	if (b.own >= b.nodes)
		return;

	tile_scores<TILES> s = {};
	struct row_pair_sums rows = {{empty_sum(), empty_sum()}};
	if constexpr (DOT)
		dot_scores<D>(p, own, k, b, s);
	else
		add_scores(p, key, b, s);
	find_maximum(s, counts, rows);
	weigh<DOT>(s, counts, rows);
	store_softmax<DOT>(p, rows, b);
	if (p.of.mask.step)
		drop(s, kept_bits(p, b));
	const float kept = p.of.mask.step ? p.of.mask.kept : 1.0f;
	const float factor[2] = {shared_out(kept / WEIGHT_SCALE, rows.of[0].sum),
	                         shared_out(kept / WEIGHT_SCALE, rows.of[1].sum)};
	__syncwarp(); /* all lanes have read Q */
	store_results<DOT, D>(p, s, v, own + b.own * GRAPH_PITCH<D>, factor, b);
}

template <bool DOT, int D, int TILES>
hg_status queue_forward(hg_context *ctx, const struct hg__dense &dense,
                        const struct forward_problem &p)
{
	const auto kernel = attend_graphs<DOT, D, TILES>;
	const size_t bytes = forward_bytes<DOT, D>(p.of.rows);
	HG__TRY(allow_shared(ctx, reinterpret_cast<const void *>(kernel), bytes));
	return launch_graphs(ctx, "attention: graphs", kernel, dense, p.heads, bytes, p);
}
template <bool DOT, int D>
hg_status run_forward(hg_context *ctx, const struct hg__dense &dense,
                      const struct forward_problem &p)
{
	return p.of.rows <= 64 ? queue_forward<DOT, D, 4>(ctx, dense, p)
	                       : queue_forward<DOT, D, 8>(ctx, dense, p);
}

} // namespace

bool hg__cuda_attention_graphs_takes(const struct hg__attention_args *a)
{
	if (!graph_operands_fit(a->csr, a->of) || !is_half(a->y) || (a->plus.data && !is_half(a->plus)))
		return false;
	const int rows = HG__DENSE_TILE * hg__dense_side(a->csr.plan->dense->most_nodes);
	return hg__cuda_attention_graphs_back_fits(a->csr, a->of) &&
	       with_graph_width(a->of.v.cols / a->of.heads, [&](auto width) {
		       return forward_bytes<false, decltype(width)::value>(rows) <= graph_shared_limit();
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
	p.softmax = data_of<float>(a->softmax);
	p.ldy = a->y.ld, p.ldplus = a->plus.ld, p.ld_softmax = a->softmax.ld;
	p.heads = a->of.heads;
	p.guard = guard_of(a->overflow, a->y.cols);
	return with_graph_width(p.of.d, [&](auto width) {
		constexpr int D = decltype(width)::value;
		return a->of.score == HG_SCORE_DOT ? run_forward<true, D>(ctx, dense, p)
		                                   : run_forward<false, D>(ctx, dense, p);
	});
}
