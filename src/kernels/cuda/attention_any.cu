/* Attention for any score and any shape:
 *
 *     Y[i, c] = sum over the edges e = (i, j) of row i of mask[e, k] p[e, k] V[j, c]
 *
 * Every score of a part is computed once. A sub-warp keeps their maximum so far, and sums relative
 * to it; where the maximum grows, the sums are rescaled to the new one. The parts of a split row go
 * to staging slots with their maxima, and the fold rescales them to the largest maximum and adds
 * them in slot order. */

#include "kernels/cuda/attention_any.cuh"
#include "kernels/cuda/attention_epilogue.cuh"

namespace
{

struct forward_problem {
	struct attention_operands of;
	void *y, *plus; /* plus: NULL if absent */
	float *log_sum;
	int64_t ldy, ld_plus, ld_log_sum;
	struct guard guard;
	struct attention_epilogue epilogue;
	/* [2 * items, lead]: maxima, sums, and sums of positive scores, of the heads; then the columns
	 * of Y, and those of plus */
	float *staging;
	int64_t lead;
};

/* The sums of a part, or of a row. */
struct part_sums {
	struct running_sum r = empty_sum();
	float acc[LANE_COLUMNS] = {}, plus[LANE_COLUMNS] = {};

	/* Rescales the sums to a maximum that is at least as large. */
	__device__ void move_to(float most)
	{
		const float factor = moved(r.most, most);
		r.most = most;
		r.sum *= factor;
		r.plus *= factor;
#pragma unroll
		for (int n = 0; n < LANE_COLUMNS; n++) {
			acc[n] *= factor;
			plus[n] *= factor;
		}
	}
};

/* Adds the edges of a step, whose scores have been computed. */
template <typename T, int SCORE>
__device__ inline void add_step(const struct forward_problem &p, const struct sub_warp &w,
                                const any_scores<T, SCORE, true> &scores, const struct any_step &e,
                                struct part_sums &sums)
{
	const head_columns<T> v(p.of.v, p.of.ldv, p.of.v_cols, w.head);
	float most = sums.r.most, part[STEP];
	bool positive[STEP];
#pragma unroll
	for (int u = 0; u < STEP; u++)
		most = e.weight[u] == 0.0f ? most : max_nan(most, scores.s[u]);
	if (!(most == sums.r.most))
		sums.move_to(most);
#pragma unroll
	for (int u = 0; u < STEP; u++) {
		part[u] = weighted_exp(scores.s[u], most, e.weight[u]);
		positive[u] = SCORE == HG_SCORE_ADD && scores.before[u] > 0.0f;
		sums.r.sum += part[u];
		sums.r.plus += positive[u] ? part[u] : 0.0f;
		part[u] *= u < e.n ? p.of.mask.of(scores.row, e.id[u], w.head) : 0.0f;
	}
#pragma unroll
	for (int n = 0; n < LANE_COLUMNS; n++) {
		const int64_t c = w.column(n);
#pragma unroll
		for (int u = 0; u < STEP; u++)
			if (c < v.cols && u < e.n) {
				const float x = v.at(e.id[u], c);
				sums.acc[n] = fmaf(part[u], x, sums.acc[n]);
				if (positive[u])
					sums.plus[n] = fmaf(part[u], x, sums.plus[n]);
			}
	}
}

template <typename T>
__device__ inline void put_element(void *to, int64_t ld, int32_t row, int64_t col, float x,
                                   const struct guard &guard)
{
	const float checked[1] = {x};
	guard.check(col, checked);
	static_cast<T *>(to)[row * ld + col] = narrow<T>(x);
}

/* Writes a complete row. */
template <typename T, int SCORE>
__device__ inline void put_row(const struct forward_problem &p, const struct sub_warp &w,
                               int32_t row, const struct part_sums &sums)
{
	if (w.first()) {
		float *log_sum = p.log_sum + row * p.ld_log_sum + w.head;
		log_sum[0] = log_sum_of(sums.r);
		if (SCORE == HG_SCORE_ADD)
			log_sum[p.of.heads] = shared_out(sums.r.plus, sums.r.sum);
	}
#pragma unroll
	for (int n = 0; n < LANE_COLUMNS; n++) {
		const int64_t c = w.column(n), at = w.head * p.of.v_cols + c;
		if (c >= p.of.v_cols)
			break;
		const float y = shared_out(sums.acc[n], sums.r.sum);
		if (p.y)
			put_element<T>(p.y, p.ldy, row, at, y, p.guard);
		if (p.epilogue.to)
			p.epilogue.put_one<T>(row, static_cast<int32_t>(at), y, p.guard);
		if (SCORE == HG_SCORE_ADD && p.plus)
			put_element<T>(p.plus, p.ld_plus, row, at, shared_out(sums.plus[n], sums.r.sum),
			               p.guard);
	}
}

/* Where a slot has the maximum of a head and the sums of its columns. */
struct staged_part {
	float *maxima, *columns;
	int64_t width; /* columns of Y */

	__device__ staged_part(const struct forward_problem &p, const struct sub_warp &w, int64_t slot)
	    : maxima(p.staging + slot * p.lead + w.head),
	      columns(p.staging + slot * p.lead + 3 * p.of.heads + w.head * p.of.v_cols),
	      width(p.of.heads * p.of.v_cols)
	{
	}
};
template <int SCORE>
__device__ inline void put_slot(const struct forward_problem &p, const struct sub_warp &w,
                                int64_t slot, const struct part_sums &sums)
{
	const struct staged_part to(p, w, slot);
	if (w.first()) {
		to.maxima[0] = sums.r.most;
		to.maxima[p.of.heads] = sums.r.sum;
		to.maxima[2 * p.of.heads] = sums.r.plus;
	}
#pragma unroll
	for (int n = 0; n < LANE_COLUMNS; n++) {
		const int64_t c = w.column(n);
		if (c >= p.of.v_cols)
			break;
		to.columns[c] = sums.acc[n];
		if (SCORE == HG_SCORE_ADD && p.plus)
			to.columns[to.width + c] = sums.plus[n];
	}
}

template <typename T, int SCORE>
__global__ void __launch_bounds__(BLOCK, 2)
    attention_items(const __grid_constant__ struct forward_problem p)
{
	after_previous();
	const struct sub_warp w(p.of.heads);
	struct cursor at;
	if (own_piece() >= p.of.plan.items || !at.open(p.of.plan, own_piece()))
		return;
	any_scores<T, SCORE, true> scores(p.of, w);
	do {
		struct part_sums sums;
		scores.open(at.row, at.e == at.end);
		for (; at.e < at.end; at.e += STEP) {
			const struct any_step e(p.of, at, w.head);
			scores.compute(e);
			add_step(p, w, scores, e, sums);
		}
		if (at.slot() < 0)
			put_row<T, SCORE>(p, w, at.row, sums);
		else
			put_slot<SCORE>(p, w, at.slot(), sums);
	} while (at.next(p.of.plan));
}

/* Adds one slot to the sums of a row, whose maximum is known. */
template <int SCORE>
__device__ inline void add_slot(const struct forward_problem &p, const struct sub_warp &w,
                                int64_t slot, struct part_sums &sums)
{
	const struct staged_part from(p, w, slot);
	const float factor = moved(from.maxima[0], sums.r.most);
	sums.r.sum += factor * from.maxima[p.of.heads];
	sums.r.plus += factor * from.maxima[2 * p.of.heads];
#pragma unroll
	for (int n = 0; n < LANE_COLUMNS; n++) {
		const int64_t c = w.column(n);
		if (c >= p.of.v_cols)
			break;
		sums.acc[n] += factor * from.columns[c];
		if (SCORE == HG_SCORE_ADD && p.plus)
			sums.plus[n] += factor * from.columns[from.width + c];
	}
}

template <typename T, int SCORE>
__global__ void __launch_bounds__(BLOCK)
    attention_fold(const __grid_constant__ struct forward_problem p)
{
	after_previous();
	const int64_t s = own_piece();
	if (s >= p.of.plan.splits)
		return;
	const struct sub_warp w(p.of.heads);
	const int64_t last = p.of.plan.split_last[s];
	struct part_sums sums;
	for (int64_t item = p.of.plan.split_first[s]; item <= last; item++)
		sums.r.most = max_nan(sums.r.most, *staged_part(p, w, slot_of(item, last)).maxima);
	for (int64_t item = p.of.plan.split_first[s]; item <= last; item++)
		add_slot<SCORE>(p, w, slot_of(item, last), sums);
	put_row<T, SCORE>(p, w, p.of.plan.split_row[s], sums);
}

int64_t staging_columns(const struct hg__attention_args *a)
{
	return 3 * a->of.heads + (a->plus.data ? 2 : 1) * a->y.cols;
}

struct forward_problem problem_of(const struct hg__attention_args *a, void *staging)
{
	struct forward_problem p = {};
	p.of = operands_of(a->csr, a->of);
	p.y = a->y.data, p.plus = a->plus.data;
	p.log_sum = data_of<float>(a->log_sum);
	p.ldy = a->y.ld, p.ld_plus = a->plus.ld, p.ld_log_sum = a->log_sum.ld;
	p.guard = guard_of(a->overflow, a->y.cols);
	p.epilogue = attention_epilogue_of(*a);
	p.staging = static_cast<float *>(staging);
	p.lead = hg__leading(staging_columns(a));
	return p;
}

} // namespace

bool hg__cuda_attention_any_takes(const struct hg__attention_args *)
{
	return true;
}

size_t hg__cuda_attention_any_workspace(const hg_context *, const struct hg__attention_args *a)
{
	return hg__staging_bytes(&a->csr, staging_columns(a));
}

hg_status hg__cuda_attention_any(hg_context *ctx, const struct hg__attention_args *a)
{
	void *staging = nullptr;
	HG__TRY(hg__workspace(ctx, hg__cuda_attention_any_workspace(ctx, a), &staging));
	const struct forward_problem p = problem_of(a, staging);
	const int64_t lanes = larger(p.of.q_cols, p.of.v_cols);
	return with_score(ctx, "attention", a->of, [&](auto zero, auto score) {
		using T = decltype(zero);
		constexpr int SCORE = decltype(score)::value;
		struct edge_grid g = any_grid(p.of.plan.items, p.of.heads, lanes, p.of.v_cols);
		HG__TRY(launch(ctx, "attention", attention_items<T, SCORE>, g.grid, g.block, p));
		if (p.of.plan.splits == 0)
			return HG_OK;
		g = any_grid(p.of.plan.splits, p.of.heads, lanes, p.of.v_cols);
		return launch(ctx, "attention: fold", attention_fold<T, SCORE>, g.grid, g.block, p);
	});
}
