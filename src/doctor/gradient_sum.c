#include <math.h>

#include "doctor/check.h"

/* Two contributions to a gradient, both finite, and their sum is not. */

/* Updates the largest |sum| of two finite elements with some rows. */
static hg_status add_rows(hg_context *ctx, const struct hg__mat *a, const struct hg__mat *b,
                          int64_t first, int64_t rows, double *largest)
{
	struct hg__fetched x = {0}, y = {0};
	hg_status status = hg__fetch_rows(ctx, a, first, rows, &x);
	if (status >= 0)
		status = hg__fetch_rows(ctx, b, first, rows, &y);
	for (int64_t i = 0; status >= 0 && i < rows; i++)
		for (int64_t c = 0; c < a->cols; c++) {
			const double sum = fabs(hg__fetched_at(&x, i, c) + hg__fetched_at(&y, i, c));
			*largest = isfinite(sum) ? fmax(*largest, sum) : *largest;
		}
	hg__fetched_free(ctx, &y);
	hg__fetched_free(ctx, &x);
	return status;
}

static hg_status largest_sum(hg_context *ctx, const struct hg__mat *a, const struct hg__mat *b,
                             double *largest)
{
	for (int64_t first = 0; first < a->rows;) {
		const int64_t rows = hg__rows_to_fetch(a, first);
		HG__TRY(add_rows(ctx, a, b, first, rows, largest));
		first += rows;
	}
	return HG_OK;
}

static hg_status report_addition(struct hg__replay *replay, const struct hg__result *r,
                                 const struct hg__nonfinite *element, const struct hg__scan *seen,
                                 const struct hg__gradient_pair *pair)
{
	const int64_t row = element->row, col = element->col;
	const struct hg__addend one = {.row = row, .col = col, .factor = 1.0, .f = 1.0f};
	struct hg__addend addend[2] = {one, one};
	addend[0].operand = pair->value[0];
	addend[0].is = HG_TERM_BEFORE;
	addend[1].operand = pair->value[1];
	const struct hg__sum sum = {.ctx = replay->ctx,
	                            .addend = addend,
	                            .count = 2,
	                            .accumulate = HG_ACC_F32,
	                            .last_factor = 1.0f,
	                            .exact = pair->value[0] + pair->value[1],
	                            .before_epilogue = pair->value[1],
	                            .abs_sum = fabs(pair->value[0]) + fabs(pair->value[1]),
	                            .enumerated = 1};
	const struct hg__f16_sum f16 = {.partial_factor = 1.0};
	const struct hg__bad_element e = {r, row, col, sum.exact, &sum};
	struct hg__reason reason;
	HG__TRY(hg__cause_of(replay, &e, &reason));
	struct hg__finding *finding = hg__finding_new(replay, HG__NONFINITE, reason.cause);
	if (!finding)
		return HG_OK;
	finding->reported.got = element->stored;
	finding->reported.wide = sum.exact;
	finding->reported.largest = seen->introduced_amax;
	finding->reported.bad = seen->introduced;
	HG__TRY(hg__finding_describe(replay, finding, r, row, col, &sum, &f16));
	return hg__list_gradients(replay, &finding->reported, pair);
}

/* The first sample of which both contributions are finite is reported. */
hg_status hg__find_overflowed_addition(struct hg__replay *replay, const struct hg__result *r,
                                       struct hg__scan *seen, const struct hg__mat *before,
                                       struct hg__gradient_pair *pair)
{
	const struct hg__mat *contribution = &r->task->call.din[r->operand];
	for (int i = 0; i < seen->samples; i++) {
		const struct hg__nonfinite *x = &seen->sample[i];
		HG__TRY(hg__fetch_element(replay->ctx, before, x->row, x->col, &pair->value[0]));
		HG__TRY(hg__fetch_element(replay->ctx, contribution, x->row, x->col, &pair->value[1]));
		if (!isfinite(pair->value[0]) || !isfinite(pair->value[1]))
			continue;
		HG__TRY(largest_sum(replay->ctx, before, contribution, &seen->introduced_amax));
		return report_addition(replay, r, x, seen, pair);
	}
	return HG_OK;
}
