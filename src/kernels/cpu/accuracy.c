#include "kernels/cpu/softmax.h"
#include "kernels/cpu/totals.h"

/* A row is right if its first largest logit stands at the label and no logit is NaN. sum counts these rows: exact. */
static void judge(const void *env, int64_t row, struct hg__totals *totals)
{
	const struct hg__accuracy_args *a = env;
	if (!hg__counts(&a->label, &a->mask, row))
		return;
	float best = -INFINITY;
	int64_t place = 0;
	int nan = 0;
	for (int64_t c = 0; c < a->x.cols; c += HG__WIDTH) {
		float scratch[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, a->x.cols - c);
		const float *x = hg__row(&a->x, row, c, n, scratch);
		for (int64_t i = 0; i < n; i++) {
			nan |= x[i] != x[i];
			place = x[i] > best ? c + i : place;
			best = x[i] > best ? x[i] : best;
		}
	}
	totals->count++;
	if (!nan && a->x.cols > 0 && place == ((const int32_t *)a->label.data)[row])
		totals->sum += 1.0;
}

hg_status HG__CPU(accuracy)(hg_context *ctx, const struct hg__accuracy_args *a)
{
	HG__TRY(hg__need(ctx, hg__is_state(&a->x) && a->label.dtype == HG_I32 && a->label.rows == a->x.rows, "accuracy: operands do not fit"));
	struct hg__totals t;
	HG__TRY(HG__CPU(totals)(ctx, a->x.rows, a->x.rows * a->x.cols, judge, a, &t));
	((float *)a->out.data)[0] = (float)t.sum;
	((float *)a->out.data)[1] = (float)t.count;
	return HG_OK;
}
