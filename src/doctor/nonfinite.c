#include <math.h>

#include "doctor/check.h"

/* Results that are not finite although the operands are. Elements of one result may have different
 * causes (a constant column and a hub, say). So the cause of every sample is determined, and each
 * cause becomes a finding. */

/* The samples with one cause. */
struct group {
	struct hg__reason reason;
	const struct hg__nonfinite *first;
	double wide;    /* of the first */
	double largest; /* the largest |.| that the type would have to hold */
	int64_t count;
};

/* One group for each cause, and one for each kind of zero. */
enum { GROUPS = HG_CAUSE_COUNT + 4 };
struct groups {
	struct group group[GROUPS];
	int count;
};

/* The wide value of an element. The f64 sum replaces the result of the f32 run if the two agree, or
 * if f32 could not hold the result either. */
static double widest(double wide, const struct hg__sum *sum)
{
	const int is_sum = !isfinite(wide) || fabs(sum->exact - wide) <= 1e-4 * sum->abs_sum;
	return sum->enumerated && is_sum ? sum->exact : wide;
}

/* ---- samples into groups ---- */

static void add_to_group(struct groups *g, const struct hg__reason *reason,
                         const struct hg__nonfinite *sample, double wide, double largest_partial)
{
	int i = 0;
	while (i < g->count &&
	       (g->group[i].reason.cause != reason->cause || g->group[i].reason.zero != reason->zero))
		i++;
	if (i == g->count)
		g->group[g->count++] = (struct group){*reason, sample, wide, 0.0, 0};
	g->group[i].largest = fmax(g->group[i].largest, fmax(fabs(wide), largest_partial));
	g->group[i].count++;
}

static hg_status group_sample(struct hg__replay *replay, const struct hg__result *r,
                              const struct hg__nonfinite *sample, struct groups *groups)
{
	struct hg__sum sum;
	struct hg__reason reason = {HG_CAUSE_STORE, HG_ZERO_NONE};
	struct hg__bad_element e = {.result = r, .row = sample->row, .col = sample->col, .sum = &sum};
	HG__TRY(hg__fetch_element(replay->ctx, &r->wide, sample->row, sample->col, &e.wide));
	HG__TRY(hg__sum_of_result(replay, r, sample->row, sample->col, &sum));
	e.wide = widest(e.wide, &sum);
	const hg_status status = hg__cause_of(replay, &e, &reason);
	const double largest_partial = hg__sum_largest_partial(&sum);
	hg__sum_close(&sum);
	if (status >= 0)
		add_to_group(groups, &reason, sample, e.wide, largest_partial);
	return status;
}

static struct group *group_of(struct groups *g, hg_cause cause)
{
	for (int i = 0; i < g->count; i++)
		if (g->group[i].reason.cause == cause)
			return &g->group[i];
	return NULL;
}

/* If some elements of a gradient overflow at loss scale 1, another loss scale does not help the
 * others either: all are one explosion. */
static void merge_loss_scale_into_explosion(struct groups *g)
{
	struct group *scale = group_of(g, HG_CAUSE_LOSS_SCALE),
	             *explosion = group_of(g, HG_CAUSE_EXPLOSION);
	if (!scale || !explosion)
		return;
	explosion->count += scale->count;
	explosion->largest = fmax(explosion->largest, scale->largest);
	*scale = g->group[--g->count];
}

/* ---- groups into findings ---- */

/* With operands that are not finite, a gradient is a finding of its own only if no earlier finding
 * explains it: one about another gradient, because all gradients share the loss scale, or one with
 * the same cause. */
static int is_explained(const struct hg__replay *replay, const struct hg__result *r,
                        const struct group *g, int operands_finite)
{
	for (int i = 0; i < replay->findings[HG__NONFINITE] && !operands_finite && r->backward; i++) {
		const hg_finding *f = &replay->finding[HG__NONFINITE][i].reported;
		if (f->cause != HG_CAUSE_UNDERFLOW && (f->backward || f->cause == g->reason.cause))
			return 1;
	}
	return 0;
}

static hg_status report_group(struct hg__replay *replay, const struct hg__result *r,
                              const struct group *g, int64_t bad)
{
	struct hg__sum sum;
	struct hg__f16_sum f16 = {0};
	const int64_t row = g->first->row, col = g->first->col;
	struct hg__finding *finding = hg__finding_new(replay, HG__NONFINITE, g->reason.cause);
	if (!finding)
		return HG_OK;
	if (g->reason.zero)
		HG__TRY(hg__operand_was_rounded(replay, r, row, col, &finding->operand_rounded));
	HG__TRY(hg__sum_of_result(replay, r, row, col, &sum));
	hg__sum_in_f16(&sum, &f16);
	finding->reported.zero = g->reason.zero;
	finding->reported.got = g->first->stored;
	finding->reported.wide = g->wide;
	finding->reported.largest = g->largest;
	finding->reported.bad = bad;
	const hg_status status = hg__finding_describe(replay, finding, r, row, col, &sum, &f16);
	hg__sum_close(&sum);
	return status;
}

/* The elements that were not sampled are counted with the first group. If it is the only one, the
 * largest of all of them belongs to it as well. */
hg_status hg__find_nonfinite(struct hg__replay *replay, const struct hg__result *r,
                             const struct hg__scan *seen, int operands_finite)
{
	struct groups groups = {.count = 0};
	int64_t others = 0;
	for (int i = 0; i < seen->samples; i++)
		HG__TRY(group_sample(replay, r, &seen->sample[i], &groups));
	merge_loss_scale_into_explosion(&groups);
	if (groups.count == 1)
		groups.group[0].largest = fmax(groups.group[0].largest, seen->introduced_amax);
	for (int i = 1; i < groups.count; i++)
		others += groups.group[i].count;
	for (int i = 0; i < groups.count; i++) {
		const struct group *g = &groups.group[i];
		if (!is_explained(replay, r, g, operands_finite))
			HG__TRY(report_group(replay, r, g, i ? g->count : seen->introduced - others));
	}
	return HG_OK;
}
