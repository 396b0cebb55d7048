/* Attention with additive scores by tensor cores, on graphs with tiles (attention_tiles.cuh). Of a
 * window's row i, with counts c[i, j] of its entries:
 *
 *     s[i, j] = f(q_i + k_j),  w[i, j] = c exp(s[i, j] - m_i),  l_i = sum of w[i, j]
 *     Y_i = sum of w[i, j] V_j / l_i,  plus_i the same where q_i + k_j > 0
 *
 * m_i is near the maximum of the scores of an item so far: it is raised, and the sums are rescaled,
 * only where a score exceeds it by more than SLACK. It always was a score of the row, so l_i is at
 * least 1. The items of a window are brought to their common maximum when they are folded, in slot
 * order. Scores are in units of log 2 here. */

#include "kernels/cuda/attention_tiles.cuh"

#include "kernels/cuda/attention_epilogue.cuh"

namespace
{

/* A weight is at most HG__TILE_MOST 2^SLACK, and is scaled by 2^SCALE: 49152, which is a half. So
 * the error of a weight is at most 2^-22 of it and 2^-37 of the largest. Sums fit in f32: 49152
 * times the largest half times 2^40 entries is 4e21. */
constexpr float SLACK = 2.0f, SCALE = 12.0f;
static_assert(HG__TILE_MOST * (1 << 14) <= 65504, "a weight is a half");

/* The numbers of a head in a staging slot. */
enum { MOST = 0, SUM = 1, SUM_PLUS = 2, NUMBERS = 3 };
static_assert(int{NUMBERS} <= int{HG__ATTENTION_STAGED}, "graphs leave memory for so many");

struct forward {
	struct tile_edges e;
	const __half *q;
	const char *k;
	int64_t ldq;
	uint32_t k_pitch;
	__half *y, *plus;
	int64_t ldy, ldplus;
	float *log_sum;
	int64_t ld_log_sum;
	struct guard guard;
};

/* ---- weights ---- */

/* What a lane has of its two rows, and the numbers k of columns. */
template <int D, bool PLUS> struct forward_own {
	using record = float;
	using loaded = __half;
	const struct forward &p;
	const struct tile_place &at;
	float q[2], most[2], sum[2], sum_plus[2];

	__device__ forward_own(const struct forward &problem, const struct tile_place &place)
	    : p(problem), at(place)
	{
#pragma unroll
		for (int high = 0; high < 2; high++)
			q[high] =
			    at.row(high) < p.e.rows ? widen(__ldg(p.q + at.row(high) * p.ldq + at.head)) : 0.0f;
	}
	__device__ void restart()
	{
#pragma unroll
		for (int high = 0; high < 2; high++) {
			most[high] = LOWEST;
			sum[high] = sum_plus[high] = 0.0f;
		}
	}
	__device__ __half look_up(int32_t j, unsigned) const
	{
		return __ldg(reinterpret_cast<const __half *>(row_of(p.k, j, p.k_pitch)) + at.head);
	}
	__device__ void turn(__half k, unsigned to) const
	{
		store_shared(to, widen(k));
	}
	/* Raises the maxima to those of a group where a score exceeds them by more than SLACK. Each row
	 * decides for itself; the vote only saves the work where no row of the warp has to rescale. */
	__device__ void follow(float (&of_group)[2], struct tile_sums<D, PLUS> &sums)
	{
		if (!__any_sync(0xffffffffu,
		                of_group[0] > most[0] + SLACK || of_group[1] > most[1] + SLACK))
			return;
		float by[2];
#pragma unroll
		for (int high = 0; high < 2; high++) {
#pragma unroll
			for (int step = 1; step < 4; step *= 2)
				of_group[high] =
				    fmaxf(of_group[high], __shfl_xor_sync(0xffffffffu, of_group[high], step));
			const float to = of_group[high] > most[high] + SLACK ? of_group[high] : most[high];
			by[high] = power_of_2(most[high] - to);
			most[high] = to;
			sum[high] *= by[high];
			sum_plus[high] *= by[high];
		}
		sums.rescale(by);
	}
	/* f is a maximum, which it is for 0 <= slope <= 1: it is -inf for -inf, whatever the slope. A
	 * score has the sign of q + k. */
	__device__ void weigh(const struct tile_counts &counts, unsigned records,
	                      struct tile_sums<D, PLUS> &sums, struct tile_weights &out)
	{
		float(&w)[2][4] = out.w, s[2][4], of_group[2] = {-INFINITY, -INFINITY};
		const unsigned own = records + static_cast<unsigned>(8 * at.t);
		const float2 key[2] = {load_pair(own), load_pair(own + 32)};
#pragma unroll
		for (int i = 0; i < 8; i++) {
			const int h = i / 4, e = i % 4;
			const float x = q[e / 2] + (e % 2 ? key[h].y : key[h].x);
			const float score = TILE_LOG2E * fmaxf(x, p.e.slope * x);
			s[h][e] = counts.at(h, e, at.g) ? score : -INFINITY;
			of_group[e / 2] = fmaxf(of_group[e / 2], s[h][e]);
		}
		follow(of_group, sums);
		const float offset[2] = {most[0] - SCALE, most[1] - SCALE};
#pragma unroll
		for (int i = 0; i < 8; i++)
			w[i / 4][i % 4] = power_of_2(s[i / 4][i % 4] - offset[i % 4 / 2]);
		if (counts.repeat()) {
#pragma unroll
			for (int i = 0; i < 8; i++)
				w[i / 4][i % 4] *= number_of(counts.at(i / 4, i % 4, at.g));
		}
#pragma unroll
		for (int i = 0; i < 8; i++) {
			const int h = i / 4, e = i % 4;
			sum[e / 2] += w[h][e];
			if (s[h][e] > 0.0f)
				sum_plus[e / 2] += w[h][e];
		}
#pragma unroll
		for (int i = 0; i < 4; i++)
			out.plus[i] =
			    tile_weights::bits_of(s[i / 2][i % 2 * 2] > 0.0f, s[i / 2][i % 2 * 2 + 1] > 0.0f);
	}
	/* The sums of both rows, which the four lanes of a row have apart. */
	__device__ void finish()
	{
#pragma unroll
		for (int high = 0; high < 2; high++) {
			sum[high] = lanes_sum<4>(sum[high]);
			sum_plus[high] = lanes_sum<4>(sum_plus[high]);
		}
	}
};

/* ---- the end of a row ---- */

/* The sums of a row become results by this factor; 0 if no edge of the row counts. */
__device__ float factor_of(float sum)
{
	return shared_out(1.0f, sum);
}
__device__ void put_numbers(const struct forward &p, int64_t row, int head, float most, float sum,
                            float sum_plus)
{
	float *const to = p.log_sum + row * p.ld_log_sum + head;
	to[0] = sum == 0.0f ? -INFINITY : most * TILE_LN2 + logf(sum * (1.0f / (1 << 12)));
	to[p.e.heads] = shared_out(sum_plus, sum);
}
static_assert(SCALE == 12.0f, "the factor above");

template <int D, int N>
__device__ void put_sums(const struct forward &p, const struct tile_place &at, unsigned memory,
                         float (&sums)[N][4], const float (&by)[2], __half *to, int64_t ld)
{
#pragma unroll
	for (int n = 0; n < N; n++)
#pragma unroll
		for (int high = 0; high < 2; high++) {
			float pair[2];
#pragma unroll
			for (int odd = 0; odd < 2; odd++) {
				float &x = sums[n][2 * high + odd];
				x = pair[odd] = by[high] == 0.0f ? 0.0f : x * by[high];
			}
			p.guard.check(at.c + 8 * n + 2 * at.t, pair);
		}
	put_tile<D>(p.e, at, memory, sums, to, ld);
}

/* ---- pass 1: items ---- */

template <int D, bool PLUS>
__global__ void __launch_bounds__(BLOCK, 2) forward_tiles(const __grid_constant__ struct forward p)
{
	after_previous();
	const unsigned memory = own_memory<D, float>();
	if (own_tile_item() >= p.e.items)
		return;
	const struct tile_place begin = tile_place_of<D>(p.e, own_tile_item());
	struct forward_own<D, PLUS> own(p, begin);
	struct tile_sums<D, PLUS> sums;
	add_item(p.e, begin, memory, own, sums);
	const struct tile_place at = tile_place_of<D>(p.e, own_tile_item());
	own.finish();
	const bool has_numbers = at.chunk == 0 && at.t == 0;
	if (at.item.slot >= 0) {
		stage_tile<D>(p.e, at, 0, sums.all);
		if constexpr (PLUS)
			stage_tile<D>(p.e, at, p.e.cols, sums.plus);
#pragma unroll
		for (int high = 0; high < 2 && has_numbers; high++) {
			const int row = at.g + 8 * high;
			*tile_number(p.e, at.item.slot, row, MOST, at.head) = own.most[high];
			*tile_number(p.e, at.item.slot, row, SUM, at.head) = own.sum[high];
			*tile_number(p.e, at.item.slot, row, SUM_PLUS, at.head) = own.sum_plus[high];
		}
		return;
	}
	const float by[2] = {factor_of(own.sum[0]), factor_of(own.sum[1])};
#pragma unroll
	for (int high = 0; high < 2; high++)
		if (has_numbers && at.row(high) < p.e.rows)
			put_numbers(p, at.row(high), at.head, own.most[high], own.sum[high],
			            own.sum_plus[high]);
	put_sums<D>(p, at, memory, sums.all, by, p.y, p.ldy);
	if constexpr (PLUS)
		put_sums<D>(p, at, memory, sums.plus, by, p.plus, p.ldplus);
}

/* ---- pass 2: windows of several items. A thread adds one column of one row ---- */

template <bool PLUS>
__global__ void __launch_bounds__(BLOCK) forward_fold(const __grid_constant__ struct forward p)
{
	after_previous();
	const struct tile_edges &e = p.e;
	const int64_t s = own_piece() / HG__TILE_ROWS;
	const int index = static_cast<int>(own_piece() % HG__TILE_ROWS),
	          c = static_cast<int>(own_unit());
	if (s >= e.splits || c >= e.cols)
		return;
	const struct hg__tile_split split = e.split[s];
	const int64_t row = static_cast<int64_t>(split.window) * HG__TILE_ROWS + index;
	if (row >= e.rows)
		return;
	const int head = c / e.head_cols;
	float most = LOWEST, sum = 0.0f, sum_plus = 0.0f, all = 0.0f, plus = 0.0f;
	for (int64_t slot = split.first; slot < split.last; slot++)
		most = fmaxf(most, *tile_number(e, slot, index, MOST, head));
	for (int64_t slot = split.first; slot < split.last; slot++) {
		const float *const sums = e.staging + (slot * HG__TILE_ROWS + index) * e.lead + c;
		const float by = power_of_2(*tile_number(e, slot, index, MOST, head) - most);
		sum = __fmaf_rn(by, *tile_number(e, slot, index, SUM, head), sum);
		sum_plus = __fmaf_rn(by, *tile_number(e, slot, index, SUM_PLUS, head), sum_plus);
		all = __fmaf_rn(by, sums[0], all);
		if (PLUS)
			plus = __fmaf_rn(by, sums[e.cols], plus);
	}
	if (c % e.head_cols == 0)
		put_numbers(p, row, head, most, sum, sum_plus);
	const float by = factor_of(sum);
	float out[1] = {by == 0.0f ? 0.0f : all * by};
	p.guard.check(c, out);
	p.y[row * p.ldy + c] = narrow<__half>(out[0]);
	if constexpr (PLUS) {
		out[0] = by == 0.0f ? 0.0f : plus * by;
		p.guard.check(c, out);
		p.plus[row * p.ldplus + c] = narrow<__half>(out[0]);
	}
}

/* ---- launch ---- */

struct forward forward_of(const struct hg__attention_args *a)
{
	struct forward p = {};
	p.e = tile_edges_of(a->csr, a->of, a->of.v, NUMBERS);
	p.q = data_of<const __half>(a->of.q), p.ldq = a->of.q.ld;
	p.k = data_of<const char>(a->of.k), p.k_pitch = tile_pitch(a->of.k.ld, sizeof(__half));
	p.y = data_of<__half>(a->y), p.ldy = a->y.ld;
	p.plus = data_of<__half>(a->plus), p.ldplus = a->plus.ld;
	p.log_sum = data_of<float>(a->log_sum), p.ld_log_sum = a->log_sum.ld;
	p.guard = guard_of(a->overflow, a->y.cols);
	return p;
}

template <int D, bool PLUS> hg_status queue_forward(hg_context *ctx, struct forward &p)
{
	p.e.chunks = (p.e.head_cols + D - 1) / D;
	HG__TRY((launch_tiles<D, float>(ctx, "attention: tiles", forward_tiles<D, PLUS>, p.e, p)));
	if (p.e.splits == 0)
		return HG_OK;
	const struct edge_grid splits = edge_grid_of(p.e.splits * HG__TILE_ROWS, p.e.cols);
	return launch(ctx, "attention: fold of tiles", forward_fold<PLUS>, splits.grid, splits.block,
	              p);
}

} // namespace

bool hg__cuda_attention_tiles_takes(const struct hg__attention_args *a)
{
	return tiles_take(a->of, a->csr, a->of.v) && is_half(a->y) &&
	       (!a->plus.data || is_half(a->plus));
}

size_t hg__cuda_attention_tiles_workspace(const hg_context *, const struct hg__attention_args *a)
{
	return tile_staging(a->csr, tile_lead(a->of.v.cols, a->of.heads, NUMBERS));
}

hg_status hg__cuda_attention_tiles(hg_context *ctx, const struct hg__attention_args *a)
{
	if (a->ended.data)
		return epilogue_apart(ctx, *a, [&](const struct hg__attention_args &first) {
			return hg__cuda_attention_tiles(ctx, &first);
		});
	void *memory = nullptr;
	HG__TRY(hg__workspace(ctx, hg__cuda_attention_tiles_workspace(ctx, a), &memory));
	struct forward p = forward_of(a);
	p.e.staging = static_cast<float *>(memory);
	const bool narrow_heads = p.e.head_cols <= 32;
	if (p.plus)
		return narrow_heads ? queue_forward<32, true>(ctx, p) : queue_forward<64, true>(ctx, p);
	return narrow_heads ? queue_forward<32, false>(ctx, p) : queue_forward<64, false>(ctx, p);
}
