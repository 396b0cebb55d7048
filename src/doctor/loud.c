#include <math.h>

#include "doctor/exam.h"

/* What is not finite, of numbers that are. Elements of one result may have gone bad for
 * different reasons, a column that is constant and a hub: of each row and column that has any,
 * one is asked for its cause, and each cause is a finding. */

/* Elements of one cause. */
struct group {
	struct hg__why why;
	const struct hg__bad *first;
	double wide;
	int64_t count; /* of those that were asked */
};

/* One for each cause, and zeros of each kind. */
enum { GROUPS = HG_CAUSE_COUNT + 4 };
struct groups {
	struct group group[GROUPS];
	int count;
};

/* The wide value of an element, from its sum in f64 where the f32 run is that sum, or could not
 * hold it. */
static double widest(double wide, const struct hg__sum *sum)
{
	const int is_sum = !isfinite(wide) || fabs(sum->exact - wide) <= 1e-4 * sum->mass;
	return sum->known && is_sum ? sum->exact : wide;
}

/* The gradient that was there before counts as an addend of what is added to it. */
static hg_status append_before(const struct hg__exam *exam, const struct hg__result *r, int64_t row,
                               int64_t col, struct hg__sum *sum)
{
	const struct hg__mat *before =
	    r->operand >= 0 && r->backward ? &exam->before[r->operand] : NULL;
	struct hg__addend a = {.row = row, .col = col, .factor = 1.0, .f = 1.0f, .is = HG_TERM_BEFORE};
	if (!before || !before->data || !sum->known || sum->accumulate != HG_ACC_F32)
		return HG_OK;
	HG__TRY(hg__fetch_element(exam->ctx, before, row, col, &a.operand));
	return a.operand != 0.0 ? hg__sum_append(sum, &a) : HG_OK;
}

hg_status hg__sum_of_result(const struct hg__exam *exam, const struct hg__result *r, int64_t row,
                            int64_t col, struct hg__sum *sum)
{
	*sum = (struct hg__sum){.accumulate = HG_ACC_F32};
	if (r->operand == HG__BETWEEN)
		return HG_OK;
	HG__TRY(hg__sum_open(&r->launch->call, r->operand, row, col, sum));
	const hg_status status = append_before(exam, r, row, col, sum);
	if (status < 0)
		hg__sum_close(sum);
	return status;
}

/* ---- why? ---- */

static void join(struct groups *g, const struct hg__why *why, const struct hg__bad *bad,
                 double wide)
{
	int i = 0;
	while (i < g->count &&
	       (g->group[i].why.cause != why->cause || g->group[i].why.zero != why->zero))
		i++;
	if (i == g->count)
		g->group[g->count++] = (struct group){*why, bad, wide, 0};
	g->group[i].count++;
}

static hg_status ask(struct hg__exam *exam, const struct hg__result *r, const struct hg__bad *bad,
                     struct groups *groups)
{
	struct hg__sum sum;
	struct hg__why why = {HG_CAUSE_STORE, HG_ZERO_NONE};
	struct hg__fault fault = {.result = r, .row = bad->row, .col = bad->col, .sum = &sum};
	HG__TRY(hg__fetch_element(exam->ctx, &r->wide, bad->row, bad->col, &fault.wide));
	HG__TRY(hg__sum_of_result(exam, r, bad->row, bad->col, &sum));
	fault.wide = widest(fault.wide, &sum);
	const hg_status status = hg__cause_of(exam, &fault, &why);
	hg__sum_close(&sum);
	if (status >= 0)
		join(groups, &why, bad, fault.wide);
	return status;
}

static struct group *group_of(struct groups *g, hg_cause cause)
{
	for (int i = 0; i < g->count; i++)
		if (g->group[i].why.cause == cause)
			return &g->group[i];
	return NULL;
}

/* Where some of a gradient is beyond its type at loss scale 1, no other scale helps the rest. */
static void merge(struct groups *g)
{
	struct group *scale = group_of(g, HG_CAUSE_LOSS_SCALE), *real = group_of(g, HG_CAUSE_EXPLOSION);
	if (!scale || !real)
		return;
	real->count += scale->count;
	*scale = g->group[--g->count];
}

/* ---- findings ---- */

/* What bad operands have brought on is no news: of gradients, whose loss scale is all of theirs,
 * the first. */
static int is_news(const struct hg__exam *exam, const struct hg__result *r, const struct group *g,
                   int good)
{
	for (int i = 0; i < exam->founds[0] && !good && r->backward; i++) {
		const hg_finding *f = &exam->found[0][i].finding;
		if (f->cause != HG_CAUSE_UNDERFLOW && (f->backward || f->cause == g->why.cause))
			return 0;
	}
	return 1;
}

static hg_status tell(struct hg__exam *exam, const struct hg__result *r, const struct group *g,
                      int64_t bad)
{
	struct hg__sum sum;
	struct hg__half_sum half = {0};
	struct hg__found *found = hg__found_new(exam, 0, g->why.cause);
	if (!found)
		return HG_OK;
	HG__TRY(hg__sum_of_result(exam, r, g->first->row, g->first->col, &sum));
	hg__sum_in_halves(&sum, &half);
	found->finding.zero = g->why.zero;
	found->finding.got = g->first->got;
	found->finding.wide = g->wide;
	found->finding.bad = bad;
	const hg_status status =
	    hg__found_in(exam, found, r, g->first->row, g->first->col, &sum, &half);
	hg__sum_close(&sum);
	return status;
}

/* Those of the first cause are all that were not asked, too. */
hg_status hg__judge_loud(struct hg__exam *exam, const struct hg__result *r,
                         const struct hg__look *look, int good)
{
	struct groups groups = {.count = 0};
	int64_t others = 0;
	for (int i = 0; i < look->bads; i++)
		HG__TRY(ask(exam, r, &look->bad[i], &groups));
	merge(&groups);
	for (int i = 1; i < groups.count; i++)
		others += groups.group[i].count;
	for (int i = 0; i < groups.count; i++)
		if (is_news(exam, r, &groups.group[i], good))
			HG__TRY(
			    tell(exam, r, &groups.group[i], i ? groups.group[i].count : look->own - others));
	return HG_OK;
}

/* ---- a gradient that is added to another ---- */

/* Two finite numbers, and their sum is not. */
static hg_status added_found(struct hg__exam *exam, const struct hg__result *r,
                             const struct hg__bad *bad, int64_t count,
                             const struct hg__parts *parts)
{
	struct hg__addend pair[2] = {
	    {bad->row, bad->col, 1.0, parts->value[0], 1.0f, 0.0f, HG_TERM_BEFORE, 0},
	    {bad->row, bad->col, 1.0, parts->value[1], 1.0f, 0.0f, HG_TERM_ADDEND, 0}};
	const double sum = parts->value[0] + parts->value[1];
	const struct hg__sum both = {.ctx = exam->ctx,
	                             .addend = pair,
	                             .count = 2,
	                             .accumulate = HG_ACC_F32,
	                             .after = 1.0f,
	                             .exact = sum,
	                             .alone = parts->value[1],
	                             .mass = fabs(parts->value[0]) + fabs(parts->value[1]),
	                             .known = 1};
	const struct hg__half_sum half = {.after = 1.0};
	const struct hg__fault fault = {r, bad->row, bad->col, sum, &both};
	struct hg__why why;
	HG__TRY(hg__cause_of(exam, &fault, &why));
	struct hg__found *found = hg__found_new(exam, 0, why.cause);
	if (!found)
		return HG_OK;
	found->finding.got = bad->got;
	found->finding.wide = sum;
	found->finding.bad = count;
	HG__TRY(hg__found_in(exam, found, r, bad->row, bad->col, &both, &half));
	return hg__tell_gradients(exam, &found->finding, parts);
}

hg_status hg__judge_parts(struct hg__exam *exam, const struct hg__result *r,
                          const struct hg__look *look, const struct hg__mat *old,
                          struct hg__parts *parts)
{
	const struct hg__mat *part = &r->launch->call.din[r->operand];
	for (int i = 0; i < look->bads; i++) {
		const struct hg__bad *bad = &look->bad[i];
		HG__TRY(hg__fetch_element(exam->ctx, old, bad->row, bad->col, &parts->value[0]));
		HG__TRY(hg__fetch_element(exam->ctx, part, bad->row, bad->col, &parts->value[1]));
		if (isfinite(parts->value[0]) && isfinite(parts->value[1]))
			return added_found(exam, r, bad, look->own, parts);
	}
	return HG_OK;
}
