#include <math.h>

#include "doctor/lines.h"
#include "doctor/replay.h"

/* Finite and wrong all the same.
 *
 *     UNDERFLOW  more than half of a tensor's mass, sum of |wide|, lies in elements that were
 *                stored as zero, and not because a sum in f16 stood still; or whole rows or
 *                columns do (below)
 *     SWAMPING   a sum in f16 is off by more than 2^-5 of what it is, and what changed nothing in
 *                it is either more than 5 % of the mass of its addends (a batch of 64 loses 3 % at
 *                most: halves.c), or, where large addends have cancelled each other, what the sum
 *                is off by: many addends that add up to half of that or more, and to 4 times what
 *                rounding did to the others. Of both signs, and of like sizes, they do not. */
#define SHARE_LOST 0.5
#define SHARE_IGNORED 0.05
#define SHARE_OFF 0x1p-5
#define MANY_IGNORED 16
#define BEYOND_NOISE 4.0

int hg__underflows(const struct hg__look *look)
{
	return look->lost > SHARE_LOST * look->mass;
}

/* Where numbers of the size of the operand cancel each other, what is left may be nothing but their
 * rounding: rstd * 2^-24 of it for a norm with eps 1e-5, 2^-22 for a softmax of a few terms. That
 * it vanishes is no loss. */
static int is_noise(const struct hg__replay *replay, const struct hg__result *r, double size)
{
	const struct hg__node *node = r->launch->call.node;
	const int place = replay->grad[node->out].tensor;
	return r->backward && place &&
	       size < hg__about(node->op)->noise * replay->tensor[place - 1].amax;
}

/* ---- rows and columns of which most is lost ---- */

/* Forward, rows: more than half of them, of an op that makes all its numbers smaller by a factor
 * of its own, of rows that are halves with all their bits. What gates, exponentials and softmax
 * make 0 beside 1 is meant to be 0, so they are not asked. */
static int shrinks_rows(const struct hg__result *r)
{
	return !r->backward && hg__about(r->launch->call.node->op)->traits & HG__RESCALES &&
	       r->operand == HG__OUTPUT;
}

/* Backward, columns: one of 8 units of a linear layer, which its weights, and not the loss, make
 * small. An Adam moves each weight by its rate, however small its gradients are beside others,
 * unless they are below its eps; SGD moves such weights as little in fp32. The unit has an output,
 * unlike a relu's that is dead; and there is a scale at which both the unit's gradient and the
 * largest of all are halves, so that nothing but the scale is to blame. */
#define UNITS_LOST 8

static int moves_units(const struct hg__replay *replay, const struct hg__result *r)
{
	return r->backward && r->operand == 0 &&
	       hg__about(r->launch->call.node->op)->traits & HG__UNITS && replay->optim &&
	       replay->optim->config.kind != HG_SGD && !(r->launch->call.adds & 1u);
}

static double largest_gradient(const struct hg__replay *replay)
{
	double most = 0.0;
	for (int i = 0; i < replay->tensors; i++)
		if (replay->tensor[i].backward)
			most = fmax(most, replay->tensor[i].amax);
	return most;
}

static hg_status find_lines(const struct hg__replay *replay, const struct hg__result *r,
                            int columns, struct hg__lines *lines)
{
	const int32_t in = r->launch->call.node->in[0];
	const struct hg__mat beside = hg__value_mat(replay->tape, in);
	const hg_dtype_facts *half = hg_dtype_get(HG_F16);
	const double scale = (double)replay->step.scale.scale;
	struct hg__lines_ask ask = {.got = &r->got, .wide = &r->wide, .beside = &beside};
	ask.columns = columns;
	if (columns) {
		ask.operand = half->min_subnormal;
		ask.mass = scale * (double)replay->optim->config.eps;
		ask.size = largest_gradient(replay) * half->min_subnormal / half->overflow;
	} else {
		ask.operand = half->min_normal;
	}
	return hg__lines_lost(replay->ctx, &ask, lines);
}

/* Their elements take the place of what a look has seen. */
static hg_status lines_underflow(const struct hg__replay *replay, const struct hg__result *r,
                                 struct hg__look *look, int *underflows)
{
	const int rows = shrinks_rows(r), columns = moves_units(replay, r);
	struct hg__lines lines = {0};
	if (!look->gone || look->nonfinite || !(rows || columns))
		return HG_OK;
	HG__TRY(find_lines(replay, r, columns, &lines));
	*underflows = lines.lost > 0 && lines.lost * (columns ? UNITS_LOST : 2) >= lines.lines + rows;
	if (*underflows) {
		look->gone = lines.gone;
		look->largest_lost = lines.largest_lost;
	}
	return HG_OK;
}

static hg_status underflow(struct hg__replay *replay, const struct hg__result *r,
                           const struct hg__look *look)
{
	const struct hg__off *most = &look->largest_lost;
	struct hg__sum sum = {0};
	const struct hg__half_sum half = {0};
	struct hg__found *found = hg__found_new(replay, 1, HG_CAUSE_UNDERFLOW);
	if (!found)
		return HG_OK;
	found->finding.got = most->got;
	found->finding.wide = most->wide;
	found->finding.bad = look->gone;
	HG__TRY(hg__sum_of_result(replay, r, most->row, most->col, &sum));
	const hg_status status = hg__found_in(replay, found, r, most->row, most->col, &sum, &half);
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
		if (off != &look->far[i] && look->far[i].by > 0.0 && look->far[i].row == off->row &&
		    look->far[i].col == off->col)
			return 1;
	return 0;
}

/* What changed nothing is what the sum is off by. */
static int is_missing(const struct hg__half_sum *half, double off)
{
	const double missing = fabs(half->missing);
	return half->ignored >= MANY_IGNORED && 2.0 * missing > off &&
	       missing > BEYOND_NOISE * half->noise;
}

static hg_status weigh(const struct hg__result *r, const struct hg__off *off, struct worst *worst)
{
	struct hg__sum sum = {0};
	struct hg__half_sum half;
	const double by = fabs(off->got - off->wide);
	if (!(by > SHARE_OFF * fabs(off->wide)))
		return HG_OK;
	HG__TRY(hg__sum_open(&r->launch->call, r->operand, off->row, off->col, &sum));
	hg__sum_in_halves(&sum, &half);
	if (sum.accumulate != HG_ACC_F32 && (half.share > SHARE_IGNORED || is_missing(&half, by))) {
		worst->bad++;
		if (half.share > worst->share || worst->bad == 1) {
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

static hg_status swamped(struct hg__replay *replay, const struct hg__result *r,
                         const struct worst *worst)
{
	struct hg__sum sum = {0};
	struct hg__half_sum half;
	struct hg__found *found = hg__found_new(replay, 1, HG_CAUSE_SWAMPING);
	if (!found)
		return HG_OK;
	HG__TRY(hg__sum_open(&r->launch->call, r->operand, worst->off.row, worst->off.col, &sum));
	hg__sum_in_halves(&sum, &half);
	found->finding.got = worst->off.got;
	found->finding.wide = sum.exact;
	found->finding.bad = worst->bad;
	const hg_status status =
	    hg__found_in(replay, found, r, worst->off.row, worst->off.col, &sum, &half);
	found->finding.limit = half_unit(half.partial);
	found->finding.ignored = half.ignored;
	found->finding.ignored_share = half.share;
	hg__sum_close(&sum);
	return status;
}

/* Sums that stopped growing are the farthest off, absolutely or relatively: those are looked at
 * addend by addend, and the largest of those that ended at zero. */
static hg_status find_swamped(const struct hg__result *r, const struct hg__look *look,
                              struct worst *worst)
{
	*worst = (struct worst){.share = 0.0};
	if (r->launch->call.node->accumulate == HG_ACC_F32 || r->operand == HG__BETWEEN)
		return HG_OK;
	for (int i = 0; i < HG__OFFS; i++) {
		HG__TRY(weigh(r, &look->far[i], worst));
		if (!seen(look, &look->rel[i]))
			HG__TRY(weigh(r, &look->rel[i], worst));
	}
	if (look->gone && !seen(look, &look->largest_lost))
		HG__TRY(weigh(r, &look->largest_lost, worst));
	return HG_OK;
}

/* Does what was stored as zero come from sums that stood still? Asked of the largest. */
static hg_status stood_still(const struct hg__result *r, const struct hg__look *look, int *stood)
{
	struct worst worst = {.share = 0.0};
	if (r->operand != HG__BETWEEN)
		HG__TRY(weigh(r, &look->largest_lost, &worst));
	*stood = worst.bad != 0;
	return HG_OK;
}

/* What the loss asks for, all together: sizes of its own gradient, at the loss scale. */
static void note_pull(struct hg__replay *replay, const struct hg__result *r,
                      const struct hg__look *look)
{
	if (r->backward && r->launch->call.node->op->traits & HG__LOSS)
		replay->pull += look->mass;
}

hg_status hg__judge_silent(struct hg__replay *replay, const struct hg__result *r,
                           const struct hg__look *look, int underflowed, int *underflows)
{
	struct worst worst;
	struct hg__look lost = *look;
	int stood = 0;
	note_pull(replay, r, look);
	if (r->got.dtype != HG_F16)
		return HG_OK;
	/* where some of it is infinite, what is left is no measure */
	*underflows = !look->nonfinite && hg__underflows(look) &&
	              !is_noise(replay, r, look->largest_lost.by) &&
	              !(r->backward && hg__is_learnt(replay, look->largest_lost.by));
	if (!*underflows)
		HG__TRY(lines_underflow(replay, r, &lost, underflows));
	if (*underflows)
		HG__TRY(stood_still(r, &lost, &stood));
	if (*underflows && !underflowed && !stood)
		HG__TRY(underflow(replay, r, &lost));
	HG__TRY(find_swamped(r, look, &worst));
	return worst.bad ? swamped(replay, r, &worst) : HG_OK;
}
