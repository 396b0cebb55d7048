#include <math.h>

#include "doctor/replay.h"

/* Why an element is not finite although all that it was made of is. S: the loss scale in force, 1
 * forward; |wide| / S is what it would be without it.
 *
 *     ZERO          the op divides by it, or takes its root or log, and it is (nearly) zero; and
 *                   |wide| / S is beyond the type, or it is a norm of what is constant
 *     ACCUMULATION  a sum in f16 that fits as it is, though its partial sums do not; or backward
 *                   one that fits without S, though its partial sums, divided by S, do not
 *     STORE         forward, all else
 *     EXPLOSION     backward, |wide| / S is beyond the type
 *     LOSS_SCALE    backward, all else */

/* Below this a half has lost its precision, and its reciprocal is within 2^2 of overflow. */
static double nearly_zero(void)
{
	return hg_dtype_get(HG_F16)->min_normal;
}

/* Element of an operand, which may be one for a row, for a column, or for all. */
static hg_status operand_at(const struct hg__replay *replay, const struct hg__fault *f, int operand,
                            double *x)
{
	const struct hg__mat mat =
	    hg__value_mat(replay->tape, f->result->launch->call.node->in[operand]);
	return hg__fetch_element(replay->ctx, &mat, mat.rows == 1 ? 0 : f->row,
	                         mat.cols == 1 ? 0 : f->col, x);
}

/* A logarithm and a root have no value below 0, either. */
static hg_status reads_zero(const struct hg__replay *replay, const struct hg__fault *f,
                            const struct hg__about *about, int *zero)
{
	double x = 1.0;
	HG__TRY(operand_at(replay, f, about->critical_operand, &x));
	*zero = (about->critical == HG__DIVISOR ? fabs(x) : x) < nearly_zero();
	return HG_OK;
}

/* A variance beside which eps is not small: var <= 1024 eps, so that 1 / rstd^2 = var + eps <= 1025
 * eps. By choice: the norm then multiplies by 1/32 of 1 / sqrt(eps) or more, which eps, not the
 * data, has made. */
static int vanishes(double rstd, double eps)
{
	return rstd * rstd * 1025.0 * eps >= 1.0;
}

/* And one that is nothing beside eps, var <= eps / 499: of what is constant. Whatever the loss
 * scale is, its gradient is multiplied by 1 / sqrt(eps) for nothing. */
static int is_constant(double rstd, double eps)
{
	return rstd * rstd * eps >= 0.998;
}

static hg_status norm_vanishes(const struct hg__replay *replay, const struct hg__fault *f,
                               const struct hg__about *about, int *zero)
{
	const struct hg__call *c = &f->result->launch->call;
	const struct hg__element e = {f->result->operand, f->row, f->col};
	const struct hg__mat statistics = hg__value_mat(replay->tape, c->node->aux[0]);
	struct hg__norm_at at;
	double rstd = 0.0;
	if (!about->norm(c, &e, &at))
		return HG_OK;
	HG__TRY(hg__fetch_element(replay->ctx, &statistics, at.row, at.col, &rstd));
	rstd = ldexp(rstd, -at.shift);
	*zero = vanishes(rstd, at.eps) + is_constant(rstd, at.eps);
	return HG_OK;
}

/* constant: it is a norm of what is constant. */
static hg_status divides_by_zero(const struct hg__replay *replay, const struct hg__fault *f,
                                 hg_zero *of, int *constant)
{
	static const hg_zero zero_of[] = {[HG__NOT_CRITICAL] = HG_ZERO_NONE,
	                                  [HG__DIVISOR] = HG_ZERO_QUOTIENT,
	                                  [HG__LOGARITHM] = HG_ZERO_LOGARITHM,
	                                  [HG__ROOT] = HG_ZERO_ROOT,
	                                  [HG__VARIANCE] = HG_ZERO_VARIANCE};
	const struct hg__about *about = hg__about(f->result->launch->call.node->op);
	int zero = 0;
	*constant = 0;
	*of = HG_ZERO_NONE;
	if (about->critical == HG__VARIANCE)
		HG__TRY(norm_vanishes(replay, f, about, &zero));
	else if (about->critical)
		HG__TRY(reads_zero(replay, f, about, &zero));
	*of = zero ? zero_of[about->critical] : HG_ZERO_NONE;
	*constant = zero > 1;
	return HG_OK;
}

/* It is the way of adding, not the loss scale, that a sum is lost for: where it fits at the scale
 * in force, and where no scale makes its partial sums fit. */
static int lost_on_its_way(const struct hg__fault *f, double scale)
{
	const double limit = hg_dtype_get(HG_F16)->overflow;
	return f->sum->accumulate != HG_ACC_F32 &&
	       (fabs(f->wide) < limit || hg__sum_most(f->sum) / scale >= limit);
}

/* A feature that the file holds in f32 and that a half cannot: the cast is the tape's, the fault is
 * the file's. */
static int narrows_input(const struct hg__replay *replay, const struct hg__fault *f)
{
	const struct hg__task *launch = f->result->launch;
	return !f->result->backward && hg__is_own_cast(replay->tape, launch->entry) &&
	       replay->tape->value[launch->call.node->in[0]].kind == HG__INPUT;
}

hg_status hg__cause_of(const struct hg__replay *replay, const struct hg__fault *f,
                       struct hg__why *why)
{
	const int backward = f->result->backward;
	const double scale = backward ? (double)replay->step.scale.scale : 1.0,
	             limit = hg_dtype_get(f->result->got.dtype)->overflow;
	const int beyond = !(fabs(f->wide) / scale < limit);
	hg_zero zero = HG_ZERO_NONE;
	int constant = 0;
	HG__TRY(divides_by_zero(replay, f, &zero, &constant));
	*why = (struct hg__why){.zero = beyond || (backward && constant) ? zero : HG_ZERO_NONE};
	if (why->zero)
		why->cause = HG_CAUSE_ZERO;
	else if (!beyond && lost_on_its_way(f, scale))
		why->cause = HG_CAUSE_ACCUMULATION;
	else if (backward)
		why->cause = beyond ? HG_CAUSE_EXPLOSION : HG_CAUSE_LOSS_SCALE;
	else
		why->cause = narrows_input(replay, f) ? HG_CAUSE_INPUT : HG_CAUSE_STORE;
	return HG_OK;
}
