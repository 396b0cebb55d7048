#include <math.h>

#include "doctor/exam.h"

/* Finite and wrong all the same.
 *
 *     UNDERFLOW  more than half of a tensor's mass, sum of |wide|, lies in elements that were stored as zero
 *     SWAMPING   a sum in f16 lost more than 5 % of the mass of its addends to a running sum that they could not change (a batch of 64 addends loses 3 % at most:
 *                halves.c), and is off by more than 2^-5 of what it is: what is lost of a sum of both signs may cancel */
#define SHARE_LOST 0.5
#define SHARE_IGNORED 0.05
#define SHARE_OFF 0x1p-5

/* Where numbers of the size of the operand cancel each other, what is left may be nothing but their rounding: rstd * 2^-24 of it for a norm with eps 1e-5, 2^-22 for a
 * softmax of a few terms. That it vanishes is no loss. */
static const struct {
	const struct hg__op *op;
	double noise;
} cancelling[] = {
    {&hg__op_batch_norm, 0x1p-14}, {&hg__op_layer_norm, 0x1p-14}, {&hg__op_edge_softmax, 0x1p-20}, {&hg__op_softmax, 0x1p-20}, {&hg__op_log_softmax, 0x1p-20},
};
#define CANCELLING (sizeof cancelling / sizeof *cancelling)

int hg__fades(const struct hg__look *look)
{
	return look->lost > SHARE_LOST * look->mass;
}

static int is_noise(const struct hg__exam *exam, const struct hg__result *r, double size)
{
	const struct hg__node *node = r->launch->call.node;
	const int place = exam->grad[node->out].tensor;
	for (size_t i = 0; i < CANCELLING; i++)
		if (r->backward && place && cancelling[i].op == node->op)
			return size < cancelling[i].noise * exam->tensor[place - 1].amax;
	return 0;
}

static hg_status underflow(struct hg__exam *exam, const struct hg__result *r, const struct hg__look *look)
{
	const struct hg__off *most = &look->faded;
	struct hg__sum sum = {0};
	const struct hg__half_sum half = {0};
	struct hg__found *found = hg__found_new(exam, 1, HG_CAUSE_UNDERFLOW);
	if (!found)
		return HG_OK;
	found->finding.got = most->got;
	found->finding.wide = most->wide;
	found->finding.bad = look->gone;
	if (r->operand != HG__BETWEEN)
		HG__TRY(hg__sum_open(&r->launch->call, r->operand, most->row, most->col, &sum));
	const hg_status status = hg__found_in(exam, found, r, most->row, most->col, &sum, &half);
	found->finding.limit = ldexp(hg_dtype_get(HG_F16)->min_subnormal, found->finding.shift);
	hg__sum_close(&sum);
	return status;
}

/* ---- swamping ---- */

struct worst {
	struct hg__off off;
	double share; /* of the mass, that was ignored */
	int64_t bad;
};

/* Was this one far off already? */
static int seen(const struct hg__look *look, const struct hg__off *off)
{
	for (int i = 0; i < HG__OFFS; i++)
		if (off != &look->far[i] && look->far[i].by > 0.0 && look->far[i].row == off->row && look->far[i].col == off->col)
			return 1;
	return 0;
}

static hg_status weigh(const struct hg__result *r, const struct hg__off *off, struct worst *worst)
{
	struct hg__sum sum = {0};
	struct hg__half_sum half;
	if (!(fabs(off->got - off->wide) > SHARE_OFF * fabs(off->wide)))
		return HG_OK;
	HG__TRY(hg__sum_open(&r->launch->call, r->operand, off->row, off->col, &sum));
	hg__sum_in_halves(&sum, &half);
	if (sum.accumulate != HG_ACC_F32 && half.share > SHARE_IGNORED) {
		worst->bad++;
		if (half.share > worst->share) {
			worst->share = half.share;
			worst->off = *off;
		}
	}
	hg__sum_close(&sum);
	return HG_OK;
}

/* Half a unit in the last place of a half of this size: what an addend must exceed. */
static double half_unit(double x)
{
	int exponent = 0;
	(void)frexp(x, &exponent);
	return ldexp(1.0, (exponent - 11 < -24 ? -24 : exponent - 11) - 1);
}

static hg_status swamped(struct hg__exam *exam, const struct hg__result *r, const struct worst *worst)
{
	struct hg__sum sum = {0};
	struct hg__half_sum half;
	struct hg__found *found = hg__found_new(exam, 1, HG_CAUSE_SWAMPING);
	if (!found)
		return HG_OK;
	HG__TRY(hg__sum_open(&r->launch->call, r->operand, worst->off.row, worst->off.col, &sum));
	hg__sum_in_halves(&sum, &half);
	found->finding.got = worst->off.got;
	found->finding.wide = sum.exact;
	found->finding.bad = worst->bad;
	const hg_status status = hg__found_in(exam, found, r, worst->off.row, worst->off.col, &sum, &half);
	found->finding.limit = half_unit(half.partial);
	found->finding.ignored = half.ignored;
	found->finding.ignored_share = half.share;
	hg__sum_close(&sum);
	return status;
}

/* Sums that stopped growing are the farthest off, absolutely or relatively: those are looked at addend by addend. */
static hg_status swamping(struct hg__exam *exam, const struct hg__result *r, const struct hg__look *look)
{
	struct worst worst = {.share = SHARE_IGNORED};
	for (int i = 0; i < HG__OFFS; i++) {
		HG__TRY(weigh(r, &look->far[i], &worst));
		if (!seen(look, &look->rel[i]))
			HG__TRY(weigh(r, &look->rel[i], &worst));
	}
	return worst.bad ? swamped(exam, r, &worst) : HG_OK;
}

hg_status hg__judge_silent(struct hg__exam *exam, const struct hg__result *r, const struct hg__look *look, int faint, int *fades)
{
	if (r->got.dtype != HG_F16)
		return HG_OK;
	*fades = hg__fades(look) && !is_noise(exam, r, look->faded.by);
	if (*fades && !faint)
		HG__TRY(underflow(exam, r, look));
	return r->launch->call.node->accumulate != HG_ACC_F32 && r->operand != HG__BETWEEN ? swamping(exam, r, look) : HG_OK;
}
