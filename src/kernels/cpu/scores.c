/* Loss and accuracy of an epoch: the correct predictions in every split, and the cross-entropy loss
 * of one split, which go to the score board (kernels.h). */
#include "kernels/cpu/softmax.h"

/* Returns the column of a row's first largest logit, or -1 if a logit is NaN or there is none. Adds
 * the number of logits that are not finite to *nonfinite_logits. */
static int64_t first_largest(const struct hg__mat *x, int64_t row, int64_t *nonfinite_logits)
{
	float best = -INFINITY;
	int64_t argmax = 0;
	int nan = 0;
	for (int64_t c = 0; c < x->cols; c += HG__WIDTH) {
		float scratch[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, x->cols - c);
		const float *v = hg__row(x, row, c, n, scratch);
		for (int64_t i = 0; i < n; i++) {
			nan |= v[i] != v[i];
			*nonfinite_logits += !(fabsf(v[i]) <= 0x1.fffffep127f);
			argmax = v[i] > best ? c + i : argmax;
			best = v[i] > best ? v[i] : best;
		}
	}
	return nan || x->cols == 0 ? -1 : argmax;
}

static int counts_in(const struct hg__scores_args *a, int split, int64_t row)
{
	return (a->mask[split].data || split == HG__SPLIT_TRAIN) &&
	       hg__counts(&a->label, &a->mask[split], row);
}

size_t HG__CPU(scores_workspace)(const hg_context *ctx, const struct hg__scores_args *a)
{
	(void)ctx;
	return hg__reduction_bytes(a->x.rows, a->x.cols);
}

hg_status HG__CPU(scores)(hg_context *ctx, const struct hg__scores_args *a)
{
	HG__TRY(hg__has_type(ctx, "scores", "labels", a->label.dtype, HG_I32));
	HG__TRY(HG__FIT(ctx,
	                hg__is_state(&a->x) && a->label.dtype == HG_I32 && a->label.rows == a->x.rows,
	                "scores", &a->x));
	const int32_t *label = a->label.data;
	float loss = 0.0f, rows = 0.0f;
	const struct hg__softmax_xent_args xent = {.x = a->x,
	                                           .label = a->label,
	                                           .mask = a->mask[a->loss_split],
	                                           .loss = {&loss, 1, 1, 1, HG_F32},
	                                           .count = {&rows, 1, 1, 1, HG_F32}};
	HG__TRY(HG__CPU(softmax_xent)(ctx, &xent));
	int64_t right[HG__SPLITS] = {0}, counted[HG__SPLITS] = {0}, nonfinite = 0;
	/* Counts do not depend on the order of the rows. */
#pragma omp parallel for num_threads(hg__team(ctx, a->x.rows * a->x.cols)) \
    schedule(static) reduction(+ : right, counted, nonfinite)
	for (int64_t r = 0; r < a->x.rows; r++) {
		const int64_t argmax = first_largest(&a->x, r, &nonfinite);
		for (int s = 0; s < HG__SPLITS; s++)
			if (counts_in(a, s, r)) {
				counted[s]++;
				right[s] += argmax == label[r];
			}
	}
	struct hg__counts counts = {.nonfinite = nonfinite};
	memcpy(counts.right, right, sizeof right);
	memcpy(counts.counted, counted, sizeof counted);
	hg__board_close(a->board, a->step, &counts, loss);
	return HG_OK;
}
