#include <math.h>

#include "doctor/replay.h"

/* A result that overflowed once is stored x 2^-k (hg_policy.replan), so that its largest elements
 * fit; the smallest pay for it. Of all its mass they are nothing, so that silent.c sees no loss;
 * but
 * they are the run's own doing, and f32 would have kept them.
 *
 *     UNDERFLOW  more than half of the elements that f16 would hold are 0 for the scale alone */
#define SHARE_ERASED 0.5

struct erased {
	double least;        /* what a half holds at least, in the measure of what is stored */
	int64_t held, count; /* elements that a half would hold; of those, that are stored as 0 */
	struct hg__off most; /* the largest of them */
};

static void count_rows(const struct hg__fetched *got, const struct hg__fetched *wide, int64_t first,
                       struct erased *e)
{
	for (int64_t r = 0; r < got->mat.rows; r++)
		for (int64_t c = 0; c < got->mat.cols; c++) {
			const double x = hg__fetched_at(wide, r, c), size = fabs(x);
			if (!(size > e->least))
				continue;
			e->held++;
			if (hg__fetched_at(got, r, c) != 0.0)
				continue;
			e->count++;
			if (size > e->most.by)
				e->most = (struct hg__off){first + r, c, 0.0, x, size};
		}
}

/* Some megabytes at a time. */
static hg_status count_erased(struct hg__replay *replay, const struct hg__result *r,
                              struct erased *e)
{
	const int64_t fit = HG__STAGING_BYTES / (r->wide.ld * (int64_t)sizeof(float));
	const int64_t rows = fit > 1 ? fit : 1;
	hg_status status = HG_OK;
	for (int64_t first = 0; first < r->got.rows && status >= 0; first += rows) {
		struct hg__fetched got = {0}, wide = {0};
		const int64_t n = r->got.rows - first < rows ? r->got.rows - first : rows;
		status = hg__fetch_rows(replay->ctx, &r->got, first, n, &got);
		if (status >= 0)
			status = hg__fetch_rows(replay->ctx, &r->wide, first, n, &wide);
		if (status >= 0)
			count_rows(&got, &wide, first, e);
		hg__fetched_free(replay->ctx, &wide);
		hg__fetched_free(replay->ctx, &got);
	}
	return status;
}

static hg_status scale_found(struct hg__replay *replay, const struct hg__result *r,
                             const struct erased *e)
{
	struct hg__sum sum;
	const struct hg__half_sum half = {.after = 1.0};
	struct hg__found *found = hg__found_new(replay, 1, HG_CAUSE_UNDERFLOW);
	if (!found)
		return HG_OK;
	found->finding.got = e->most.got;
	found->finding.wide = e->most.wide;
	found->finding.bad = e->count;
	HG__TRY(hg__sum_of_result(replay, r, e->most.row, e->most.col, &sum));
	const hg_status status = hg__found_in(replay, found, r, e->most.row, e->most.col, &sum, &half);
	found->finding.limit = ldexp(hg_dtype_get(HG_F16)->min_subnormal, found->finding.shift);
	hg__sum_close(&sum);
	return status;
}

hg_status hg__judge_scaled(struct hg__replay *replay, const struct hg__result *r,
                           const struct hg__look *look, int *underflows)
{
	const int shift = r->operand == HG__OUTPUT ? replay->tape->value[r->value].shift : 0;
	struct erased e = {.least = ldexp(hg_dtype_get(HG_F16)->min_subnormal, -1 - shift)};
	if (shift <= 0 || r->got.dtype != HG_F16 || look->nonfinite || !look->gone)
		return HG_OK;
	HG__TRY(count_erased(replay, r, &e));
	*underflows = (double)e.count > SHARE_ERASED * (double)e.held;
	return *underflows ? scale_found(replay, r, &e) : HG_OK;
}
