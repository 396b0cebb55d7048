#include "doctor/remedy.h"

/* Remedies that change the precision of a run, or its loss scale. */

/* ---- sums ---- */

int hg__fit_f32_sums(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return q->replay->params->policy.accumulate != HG_ACC_F32 &&
	       hg__write_option(option, "--precision fp16");
}

/* A result that overflows with f32 sums as well is then rescaled or promoted by a training run. A
 * loop of the user's own does that only if it calls hg_tape_replan. */
int hg__fit_f32_sums_of_run(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return q->replay->config && hg__fit_f32_sums(q, option);
}

int hg__fit_batched_sums(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return q->replay->params->policy.accumulate == HG_ACC_F16_NAIVE &&
	       hg__write_option(option, "--precision fp16-discretized");
}

/* ---- types ---- */

int hg__fit_fp32(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return hg__state_is_f16(q) && hg__write_option(option, "--precision fp32");
}

/* A cast stays as the user wrote it, whatever the policy. An element that f32 cannot hold, or that
 * is in f32 already, gains nothing. */
int hg__fit_fp32_range(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	const double f32_limit = hg_dtype_get(HG_F32)->overflow;
	return !(q->finding->op && q->finding->op->traits & HG__CASTS) && q->f->limit < f32_limit &&
	       fabs(q->f->wide) < f32_limit && hg__fit_fp32(q, option);
}

/* Either the f32 quotient of the same operands is a number, or they were rounded to 0 before. */
int hg__fit_fp32_division(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return (q->finding->operand_rounded || isfinite(q->f->wide)) && hg__fit_fp32(q, option);
}

int hg__fit_fp32_input(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return hg__is_too_large_input(q->f) && hg__fit_fp32(q, option);
}

/* Only a result with a guard of its own can be promoted; a guard of the weights means that another
 * type is not needed. An exp is not promoted, because its gradient is as large as its result, and
 * gradients are not promoted. */
int hg__fit_promotion(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	if (q->finding->op && hg__about(q->finding->op)->traits & HG__EXPONENTIAL)
		return 0;
	const int sums_are_f32 = q->replay->params->policy.accumulate == HG_ACC_F32;
	return hg__state_is_f16(q) && (sums_are_f32 || !q->replay->config) &&
	       q->replay->params->policy.unproved == HG_UNPROVED_GUARD &&
	       q->finding->entry->node.verdict == HG_GUARDED &&
	       !(q->finding->op && q->finding->op->traits & HG__CASTS) &&
	       hg__write_option(option, "--unproved promote");
}

int hg__fit_promotion_of_rescaled(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return q->f->shift > 0 && q->replay->params->policy.unproved == HG_UNPROVED_GUARD &&
	       hg__write_option(option, "--unproved promote");
}

/* ---- loss scale ---- */

static const hg_loss_scale_config *loss_scale(const struct hg__remedy_query *q)
{
	return &q->replay->params->policy.loss_scale;
}

/* The largest power of two at which the largest element with this fault is at most half of what the
 * type holds. */
int hg__fit_lower_scale(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	const double largest = fmax(fabs(q->f->wide), q->f->largest),
	             scale = exp2(floor(log2(q->f->scale * q->f->limit / (2.0 * largest))));
	return q->f->backward && loss_scale(q)->enabled && scale >= 1.0 && scale < q->f->scale &&
	       hg__write_number(option, "--loss-scale", scale);
}

/* The gradient of a norm of a constant, if it fits at loss scale 1. */
int hg__fit_lower_scale_of_constant(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return isfinite(q->f->wide) && hg__fit_lower_scale(q, option);
}

/* The smallest power of two at which the element is a normal half. */
static int fit_raised_scale(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	const double scale =
	    exp2(ceil(log2(q->f->scale * hg_dtype_get(HG_F16)->min_normal / fabs(q->f->wide))));
	return q->f->backward && scale <= (double)loss_scale(q)->max_scale && scale > q->f->scale &&
	       hg__write_number(option, "--loss-scale", scale);
}

int hg__fit_higher_scale(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return loss_scale(q)->enabled && fit_raised_scale(q, option);
}

int hg__fit_first_scale(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return !loss_scale(q)->enabled && fit_raised_scale(q, option);
}
