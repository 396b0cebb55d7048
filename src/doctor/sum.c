#include "doctor/sum_terms.h"

/* The exact sum is the f64 sum of factor * operand: 53 bits hold the product of two floats exactly,
 * and the sum of a million such products with an error below 2^-33 of abs_sum. The op says which
 * terms are summed (autograd/about.h). */

hg_status hg__terms_of(const struct hg__call *call, const struct hg__element *e,
                       struct hg__terms *terms)
{
	const struct hg__about *about = hg__about(call->node->op);
	*terms = (struct hg__terms){.over = HG__OVER_NOTHING};
	return about->sum ? about->sum(call, e, terms) : HG_OK;
}

hg_status hg__added_value(hg_context *ctx, const struct hg__added *added, double *factor,
                          double *operand)
{
	double eps = 0.0;
	*factor = *operand = 0.0;
	if (!added->x.data)
		return HG_OK;
	if (added->eps.data)
		HG__TRY(hg__fetch_element(ctx, &added->eps, 0, 0, &eps));
	*factor = added->factor * (1.0 + eps);
	return hg__fetch_element(ctx, &added->x, added->row, added->col, operand);
}

static hg_status append_added(const struct hg__added *added, hg_term_kind is, struct hg__sum *sum)
{
	struct hg__addend a = {.row = added->row, .col = added->col, .f = 1.0f, .is = is};
	HG__TRY(hg__added_value(sum->ctx, added, &a.factor, &a.operand));
	return a.operand != 0.0 ? hg__sum_append(sum, &a) : HG_OK;
}

static hg_status enumerate(const struct hg__call *call, const struct hg__terms *t,
                           struct hg__sum *sum)
{
	switch (t->over) {
	case HG__OVER_COLUMNS:
		return hg__sum_over_columns(t, sum);
	case HG__OVER_ROWS:
		return hg__sum_over_rows(t, sum);
	case HG__OVER_ENDS:
		return hg__sum_over_ends(t, sum);
	case HG__OVER_SLOPES:
		return hg__sum_over_slopes(t, sum);
	case HG__OVER_ATTENTION:
		HG__TRY(hg__sum_over_attention(t, sum));
		return append_added(&t->bias, HG_TERM_BIAS, sum);
	case HG__OVER_EDGES:
		HG__TRY(hg__sum_over_edges(t, call->node->accumulate, sum));
		HG__TRY(append_added(&t->self, HG_TERM_OWN, sum));
		return append_added(&t->bias, HG_TERM_BIAS, sum);
	case HG__OVER_NOTHING:
		break;
	}
	return HG_OK;
}

hg_status hg__sum_open(const struct hg__call *call, int operand, int64_t row, int64_t col,
                       struct hg__sum *sum)
{
	const struct hg__element element = {operand, row, col};
	struct hg__terms terms;
	*sum = (struct hg__sum){.ctx = call->ctx, .accumulate = HG_ACC_F32, .last_factor = 1.0f};
	HG__TRY(hg__terms_of(call, &element, &terms));
	const hg_status status = enumerate(call, &terms, sum);
	if (status < 0) {
		hg__sum_close(sum);
		return status;
	}
	hg__sum_total(sum);
	return HG_OK;
}
