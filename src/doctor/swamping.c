#include <math.h>

#include "doctor/check.h"

/* SWAMPING: a sum in f16 is wrong by more than 2^-5 of its value because it ignored addends, and
 *
 *     either the ignored addends are more than 5 % of the sum of all |addends|. (A batch of 64
 *            alone ignores at most 3 %: f16_sum.c.)
 *     or     large addends cancelled each other, and the ignored addends are what the sum is wrong
 *            by: there are at least 16 of them, their own sum is at least half of the error, and
 *            it is more than 4 times the noise of all other roundings. Ignored addends of similar
 *            sizes and either sign do not fulfil this, because they cancel each other. */
#define SHARE_WRONG 0x1p-5
#define SHARE_IGNORED 0.05
#define LEAST_IGNORED 16
#define TIMES_NOISE 4.0

/* The swamped element with the largest share of ignored addends, and how many elements are
 * swamped. */
struct worst {
	struct hg__deviation deviation;
	double share;
	int64_t count;
};

static int explains_error(const struct hg__f16_sum *f16, double error)
{
	const double ignored = fabs(f16->ignored_sum);
	return f16->ignored >= LEAST_IGNORED && 2.0 * ignored > error &&
	       ignored > TIMES_NOISE * f16->rounding_noise;
}

static hg_status check_sum(const struct hg__result *r, const struct hg__deviation *d,
                           struct worst *worst)
{
	struct hg__sum sum = {0};
	struct hg__f16_sum f16;
	const double error = fabs(d->stored - d->wide);
	if (!(error > SHARE_WRONG * fabs(d->wide)))
		return HG_OK;
	HG__TRY(hg__sum_open(&r->task->call, r->operand, d->row, d->col, &sum));
	hg__sum_in_f16(&sum, &f16);
	if (sum.accumulate != HG_ACC_F32 &&
	    (f16.ignored_share > SHARE_IGNORED || explains_error(&f16, error))) {
		worst->count++;
		if (f16.ignored_share > worst->share || worst->count == 1) {
			worst->share = f16.ignored_share;
			worst->deviation = *d;
		}
	}
	hg__sum_close(&sum);
	return HG_OK;
}

hg_status hg__is_swamped(const struct hg__result *r, const struct hg__deviation *deviation,
                         int *swamped)
{
	struct worst worst = {.share = 0.0};
	if (r->operand != HG__INTERMEDIATE)
		HG__TRY(check_sum(r, deviation, &worst));
	*swamped = worst.count != 0;
	return HG_OK;
}

/* ---- a whole result ---- */

/* Is this element also in the list of the largest absolute deviations? */
static int is_among_farthest(const struct hg__scan *seen, const struct hg__deviation *d)
{
	for (int i = 0; i < HG__DEVIATIONS; i++)
		if (seen->farthest[i].by > 0.0 && seen->farthest[i].row == d->row &&
		    seen->farthest[i].col == d->col)
			return 1;
	return 0;
}

/* Swamped sums deviate most, absolutely or relatively, or have ended at 0. So only these elements
 * are written out as sums. */
static hg_status find_worst(const struct hg__result *r, const struct hg__scan *seen,
                            struct worst *worst)
{
	*worst = (struct worst){.share = 0.0};
	if (r->task->call.node->accumulate == HG_ACC_F32 || r->operand == HG__INTERMEDIATE)
		return HG_OK;
	for (int i = 0; i < HG__DEVIATIONS; i++) {
		HG__TRY(check_sum(r, &seen->farthest[i], worst));
		if (!is_among_farthest(seen, &seen->farthest_relative[i]))
			HG__TRY(check_sum(r, &seen->farthest_relative[i], worst));
	}
	if (seen->zeroed && !is_among_farthest(seen, &seen->largest_zeroed))
		HG__TRY(check_sum(r, &seen->largest_zeroed, worst));
	return HG_OK;
}

/* Half a unit in the last place of a half of this size: an addend must exceed it to count. */
static double half_unit(double x)
{
	int exponent = 0;
	(void)frexp(x, &exponent);
	return ldexp(1.0, (exponent - 11 < -24 ? -24 : exponent - 11) - 1);
}

static hg_status report_swamping(struct hg__replay *replay, const struct hg__result *r,
                                 const struct worst *worst)
{
	const int64_t row = worst->deviation.row, col = worst->deviation.col;
	struct hg__sum sum = {0};
	struct hg__f16_sum f16;
	struct hg__finding *finding = hg__finding_new(replay, HG__SILENT, HG_CAUSE_SWAMPING);
	if (!finding)
		return HG_OK;
	HG__TRY(hg__sum_open(&r->task->call, r->operand, row, col, &sum));
	hg__sum_in_f16(&sum, &f16);
	finding->reported.got = worst->deviation.stored;
	finding->reported.wide = sum.exact;
	finding->reported.bad = worst->count;
	const hg_status status = hg__finding_describe(replay, finding, r, row, col, &sum, &f16);
	finding->reported.limit = half_unit(f16.partial);
	finding->reported.ignored = f16.ignored;
	finding->reported.ignored_share = f16.ignored_share;
	hg__sum_close(&sum);
	return status;
}

hg_status hg__find_swamping(struct hg__replay *replay, const struct hg__result *r,
                            const struct hg__scan *seen)
{
	struct worst worst;
	if (r->stored.dtype != HG_F16)
		return HG_OK;
	HG__TRY(find_worst(r, seen, &worst));
	return worst.count ? report_swamping(replay, r, &worst) : HG_OK;
}
