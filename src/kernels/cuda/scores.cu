/* The scores of one evaluation. For each split it counts the rows that count and those of them
 * whose first largest logit is at the label; over all rows it counts logits that are not finite;
 * and it computes the cross-entropy of one split, as softmax_xent.cu does. The last thread to
 * finish enters the results on the board (kernels/scores.h). A row with a NaN logit is wrong. */

#include "kernels/cuda/softmax.cuh"

namespace
{

/* Counts of rows fit 32 bits; counts of elements do not. */
struct score_total {
	unsigned right[HG__SPLITS], counted[HG__SPLITS];
	uint64_t nonfinite;
	double loss; /* sum over the rows that count in the split of the loss */

	__device__ void add(const score_total &o)
	{
#pragma unroll
		for (int s = 0; s < HG__SPLITS; s++) {
			right[s] += o.right[s];
			counted[s] += o.counted[s];
		}
		nonfinite += o.nonfinite;
		loss += o.loss;
	}
};

/* The first largest of the values seen, and its column. A NaN is larger than all numbers, so a row
 * that contains one ends with the value NaN. */
struct first_largest {
	float value;
	long long col; /* -1: no value seen */

	__device__ void see(float v, long long c)
	{
		const bool nan = v != v, mine = value != value;
		if (c >= 0 &&
		    (col < 0 || (nan && !mine) || (!mine && (v > value || (v == value && c < col))))) {
			value = v;
			col = c;
		}
	}
};

template <typename T> struct scores {
	const T *x;
	int64_t ld, cols;
	struct counted_rows rows[HG__SPLITS];
	unsigned splits; /* bit s: split s exists */
	int loss_split;
	struct hg__board *board;
	struct hg__step *step;

	template <int W> __device__ void row(int64_t row, bool live, score_total &mine) const
	{
		const int64_t end = live ? cols : 0;
		struct first_largest best = {0.0f, -1};
		for (int64_t col = static_cast<int64_t>(threadIdx.x) * W; col < end;
		     col += static_cast<int64_t>(blockDim.x) * W) {
			float v[W];
			load<W>(x + row * ld + col, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				if (col + i < end) {
					best.see(v[i], col + i);
					mine.nonfinite += !(fabsf(v[i]) < INFINITY);
				}
		}
		for (int step = static_cast<int>(blockDim.x) / 2; step > 0; step /= 2) {
			const float v = __shfl_xor_sync(0xffffffffu, best.value, step);
			const long long c = __shfl_xor_sync(0xffffffffu, best.col, step);
			best.see(v, c);
		}
		int64_t label[HG__SPLITS], judged = -1;
#pragma unroll
		for (int s = 0; s < HG__SPLITS; s++) {
			label[s] = live && splits >> s & 1u ? rows[s].label_of(row) : -1;
			judged = s == loss_split ? label[s] : judged;
		}
		const struct softmax_row of = softmax_of<W>(x + row * ld, judged >= 0 ? cols : 0);
		if (!live || threadIdx.x != 0)
			return;
#pragma unroll
		for (int s = 0; s < HG__SPLITS; s++) {
			mine.counted[s] += label[s] >= 0;
			mine.right[s] += label[s] >= 0 && best.col == label[s] && best.value == best.value;
		}
		if (judged < 0)
			return;
		const float at_label = judged < cols ? static_cast<float>(x[row * ld + judged]) : -INFINITY;
		mine.loss += static_cast<double>(logf(of.sum) - (at_label - of.max));
	}
	__device__ void finish(const score_total &total) const
	{
		struct hg__counts counts;
#pragma unroll
		for (int s = 0; s < HG__SPLITS; s++) {
			counts.right[s] = total.right[s];
			counts.counted[s] = total.counted[s];
		}
		counts.nonfinite = static_cast<int64_t>(total.nonfinite);
		const int64_t n = counts.counted[loss_split];
		hg__board_close(board, step, &counts,
		                n > 0 ? static_cast<float>(total.loss / static_cast<double>(n)) : 0.0f);
	}
};

template <typename T> scores<T> scores_of(const struct hg__scores_args *a)
{
	scores<T> f = {data_of<const T>(a->x), a->x.ld,       a->x.cols, {},
	               1u << HG__SPLIT_TRAIN,  a->loss_split, a->board,  a->step};
	for (int s = 0; s < HG__SPLITS; s++) {
		f.rows[s] = counted_of(a->label, a->mask[s], nullptr);
		f.splits |= a->mask[s].data ? 1u << s : 0u;
	}
	return f;
}

} // namespace

size_t hg__cuda_scores_workspace(const hg_context *, const struct hg__scores_args *)
{
	return totals_bytes<score_total>();
}

extern "C" hg_status hg__cuda_scores(hg_context *ctx, const struct hg__scores_args *a)
{
	HG__TRY(hg__has_type(ctx, "scores", "labels", a->label.dtype, HG_I32));
	if (a->label.rows != a->x.rows)
		return rows_differ(ctx, "scores", a->x, a->label);
	for (int s = 0; s < HG__SPLITS; s++)
		if (a->mask[s].data && a->mask[s].rows != a->x.rows)
			return rows_differ(ctx, "scores", a->x, a->mask[s]);
	return with_float(ctx, "scores", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return row_totals<score_total>(ctx, "scores", a->x.rows, a->x.cols, wide(a->x),
		                               scores_of<T>(a));
	});
}
