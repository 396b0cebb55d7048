#include <math.h>

#include "doctor/check.h"

/* Why an element is not finite although everything that it was made of is finite. S is the loss
 * scale in force (1 in the forward pass), so |wide| / S is what the element would be without it.
 *
 *     ZERO          the op divides by an operand, or takes its root or logarithm, and the operand
 *                   is zero or nearly zero. Also, |wide| / S is beyond the type, or the op is a
 *                   norm of a constant.
 *     ACCUMULATION  an f16 sum fits, but its partial sums do not. Backward also an f16 sum that
 *                   fits at loss scale 1, although its partial sums, divided by S, do not.
 *     STORE         any other element of the forward pass
 *     EXPLOSION     backward, |wide| / S is beyond the type
 *     LOSS_SCALE    any other element of the backward pass */

/* A half below this has lost some of its bits, and its reciprocal is within a factor of 4 of
 * overflow. */
static double nearly_zero(void)
{
	return hg_dtype_get(HG_F16)->min_normal;
}

/* The element of an operand, which may have one row, or one column. */
static hg_status operand_at(const struct hg__replay *replay, const struct hg__bad_element *e,
                            int operand, double *x)
{
	const struct hg__mat mat = hg__value_mat(replay->tape, e->result->task->call.node->in[operand]);
	return hg__fetch_element(replay->ctx, &mat, mat.rows == 1 ? 0 : e->row,
	                         mat.cols == 1 ? 0 : e->col, x);
}

/* Logarithms and roots do not exist for negative numbers either. */
static hg_status reads_zero(const struct hg__replay *replay, const struct hg__bad_element *e,
                            const struct hg__about *about, int *zero)
{
	double x = 1.0;
	HG__TRY(operand_at(replay, e, about->critical_operand, &x));
	*zero = (about->critical == HG__DIVISOR ? fabs(x) : x) < nearly_zero();
	return HG_OK;
}

/* ---- norms ---- */

/* rstd is 1 / sqrt(var + eps). The variance is small beside eps if var <= 1024 eps, that is
 * 1 / rstd^2 <= 1025 eps. The factor is a choice: the norm then multiplies by at least 1/32 of
 * 1 / sqrt(eps), which comes from eps and not from the data. */
static int is_small_variance(double rstd, double eps)
{
	return rstd * rstd * 1025.0 * eps >= 1.0;
}

/* The variance is nothing beside eps, var <= eps / 499: the norm reads a constant. At any loss
 * scale, its gradient is multiplied by 1 / sqrt(eps) for no use. */
static int is_constant(double rstd, double eps)
{
	return rstd * rstd * eps >= 0.998;
}

static hg_status check_variance(const struct hg__replay *replay, const struct hg__bad_element *e,
                                const struct hg__about *about, int *small, int *constant)
{
	const struct hg__call *c = &e->result->task->call;
	const struct hg__element element = {e->result->operand, e->row, e->col};
	const struct hg__mat statistics = hg__value_mat(replay->tape, c->node->aux[0]);
	struct hg__norm_at at;
	double rstd = 0.0;
	if (!about->norm(c, &element, &at))
		return HG_OK;
	HG__TRY(hg__fetch_element(replay->ctx, &statistics, at.row, at.col, &rstd));
	rstd = ldexp(rstd, -at.shift);
	*small = is_small_variance(rstd, at.eps);
	*constant = is_constant(rstd, at.eps);
	return HG_OK;
}

/* constant: the op is a norm of a constant. */
static hg_status divides_by_zero(const struct hg__replay *replay, const struct hg__bad_element *e,
                                 hg_zero *kind, int *constant)
{
	static const hg_zero kind_of[] = {[HG__NOT_CRITICAL] = HG_ZERO_NONE,
	                                  [HG__DIVISOR] = HG_ZERO_QUOTIENT,
	                                  [HG__LOGARITHM] = HG_ZERO_LOGARITHM,
	                                  [HG__ROOT] = HG_ZERO_ROOT,
	                                  [HG__VARIANCE] = HG_ZERO_VARIANCE};
	const struct hg__about *about = hg__about(e->result->task->call.node->op);
	int zero = 0;
	*constant = 0;
	if (about->critical == HG__VARIANCE)
		HG__TRY(check_variance(replay, e, about, &zero, constant));
	else if (about->critical)
		HG__TRY(reads_zero(replay, e, about, &zero));
	*kind = zero ? kind_of[about->critical] : HG_ZERO_NONE;
	return HG_OK;
}

/* ---- the cause ---- */

/* The partial sums are to blame, and not the loss scale, if the sum itself fits, or if the partial
 * sums fit at no loss scale. */
static int partial_sums_overflow(const struct hg__bad_element *e, double scale)
{
	const double limit = hg_dtype_get(HG_F16)->overflow;
	return e->sum->accumulate != HG_ACC_F32 &&
	       (fabs(e->wide) < limit || hg__sum_largest_partial(e->sum) / scale >= limit);
}

/* A feature in f32 that f16 cannot hold: the tape has narrowed it, but the data are at fault. */
static int narrows_input(const struct hg__replay *replay, const struct hg__bad_element *e)
{
	const struct hg__task *task = e->result->task;
	return !e->result->backward && hg__is_implicit_cast(replay->tape, task->entry) &&
	       replay->tape->recording.value[task->call.node->in[0]].kind == HG__INPUT;
}

hg_status hg__cause_of(const struct hg__replay *replay, const struct hg__bad_element *e,
                       struct hg__reason *reason)
{
	const int backward = e->result->backward;
	const double scale = backward ? (double)replay->step.scale.scale : 1.0,
	             limit = hg_dtype_get(e->result->stored.dtype)->overflow;
	const int overflows_unscaled = !(fabs(e->wide) / scale < limit);
	hg_zero zero = HG_ZERO_NONE;
	int constant = 0;
	HG__TRY(divides_by_zero(replay, e, &zero, &constant));
	*reason = (struct hg__reason){
	    .zero = overflows_unscaled || (backward && constant) ? zero : HG_ZERO_NONE};
	if (reason->zero)
		reason->cause = HG_CAUSE_ZERO;
	else if (!overflows_unscaled && partial_sums_overflow(e, scale))
		reason->cause = HG_CAUSE_ACCUMULATION;
	else if (backward)
		reason->cause = overflows_unscaled ? HG_CAUSE_EXPLOSION : HG_CAUSE_LOSS_SCALE;
	else
		reason->cause = narrows_input(replay, e) ? HG_CAUSE_INPUT : HG_CAUSE_STORE;
	return HG_OK;
}
