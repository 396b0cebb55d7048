#include <math.h>

#include "doctor/replay.h"

/* What is not finite, of numbers that are. Elements of one result may have gone bad for
 * different reasons, a column that is constant and a hub: of each row and column that has any,
 * one is asked for its cause, and each cause is a finding. */

/* Elements of one cause. */
struct group {
	struct hg__why why;
	const struct hg__bad *first;
	double wide;
	double largest; /* size that the type would have to hold */
	int64_t count;  /* of those that were asked */
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

/* ---- why? ---- */

static void join(struct groups *g, const struct hg__why *why, const struct hg__bad *bad,
                 double wide, double most)
{
	int i = 0;
	while (i < g->count &&
	       (g->group[i].why.cause != why->cause || g->group[i].why.zero != why->zero))
		i++;
	if (i == g->count)
		g->group[g->count++] = (struct group){*why, bad, wide, 0.0, 0};
	g->group[i].largest = fmax(g->group[i].largest, fmax(fabs(wide), most));
	g->group[i].count++;
}

static hg_status ask(struct hg__replay *replay, const struct hg__result *r,
                     const struct hg__bad *bad, struct groups *groups)
{
	struct hg__sum sum;
	struct hg__why why = {HG_CAUSE_STORE, HG_ZERO_NONE};
	struct hg__fault fault = {.result = r, .row = bad->row, .col = bad->col, .sum = &sum};
	HG__TRY(hg__fetch_element(replay->ctx, &r->wide, bad->row, bad->col, &fault.wide));
	HG__TRY(hg__sum_of_result(replay, r, bad->row, bad->col, &sum));
	fault.wide = widest(fault.wide, &sum);
	const hg_status status = hg__cause_of(replay, &fault, &why);
	const double most = hg__sum_most(&sum);
	hg__sum_close(&sum);
	if (status >= 0)
		join(groups, &why, bad, fault.wide, most);
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
	real->largest = fmax(real->largest, scale->largest);
	*scale = g->group[--g->count];
}

/* ---- findings ---- */

/* What bad operands have brought on is no news: of gradients, whose loss scale is all of theirs,
 * the first. */
static int is_news(const struct hg__replay *replay, const struct hg__result *r,
                   const struct group *g, int good)
{
	for (int i = 0; i < replay->founds[0] && !good && r->backward; i++) {
		const hg_finding *f = &replay->found[0][i].finding;
		if (f->cause != HG_CAUSE_UNDERFLOW && (f->backward || f->cause == g->why.cause))
			return 0;
	}
	return 1;
}

static hg_status tell(struct hg__replay *replay, const struct hg__result *r, const struct group *g,
                      int64_t bad)
{
	struct hg__sum sum;
	struct hg__half_sum half = {0};
	struct hg__found *found = hg__found_new(replay, 0, g->why.cause);
	if (!found)
		return HG_OK;
	if (g->why.zero)
		HG__TRY(hg__operand_vanished(replay, r, g->first->row, g->first->col, &found->vanished));
	HG__TRY(hg__sum_of_result(replay, r, g->first->row, g->first->col, &sum));
	hg__sum_in_halves(&sum, &half);
	found->finding.zero = g->why.zero;
	found->finding.got = g->first->got;
	found->finding.wide = g->wide;
	found->finding.largest = g->largest;
	found->finding.bad = bad;
	const hg_status status =
	    hg__found_in(replay, found, r, g->first->row, g->first->col, &sum, &half);
	hg__sum_close(&sum);
	return status;
}

/* Those of the first cause are all that were not asked, too. Where there is no other, the largest
 * of all is one of them. */
hg_status hg__judge_nonfinite(struct hg__replay *replay, const struct hg__result *r,
                              const struct hg__look *look, int good)
{
	struct groups groups = {.count = 0};
	int64_t others = 0;
	for (int i = 0; i < look->bads; i++)
		HG__TRY(ask(replay, r, &look->bad[i], &groups));
	merge(&groups);
	if (groups.count == 1)
		groups.group[0].largest = fmax(groups.group[0].largest, look->largest);
	for (int i = 1; i < groups.count; i++)
		others += groups.group[i].count;
	for (int i = 0; i < groups.count; i++)
		if (is_news(replay, r, &groups.group[i], good))
			HG__TRY(
			    tell(replay, r, &groups.group[i], i ? groups.group[i].count : look->own - others));
	return HG_OK;
}

/* ---- a gradient that is added to another ---- */

/* The largest size of a sum of two finite elements, of some rows. */
static hg_status largest_of_rows(hg_context *ctx, const struct hg__mat *one,
                                 const struct hg__mat *other, int64_t first, int64_t rows,
                                 double *largest)
{
	struct hg__fetched a = {0}, b = {0};
	hg_status status = hg__fetch_rows(ctx, one, first, rows, &a);
	if (status >= 0)
		status = hg__fetch_rows(ctx, other, first, rows, &b);
	for (int64_t i = 0; status >= 0 && i < rows; i++)
		for (int64_t c = 0; c < one->cols; c++) {
			const double sum = fabs(hg__fetched_at(&a, i, c) + hg__fetched_at(&b, i, c));
			*largest = isfinite(sum) ? fmax(*largest, sum) : *largest;
		}
	hg__fetched_free(ctx, &b);
	hg__fetched_free(ctx, &a);
	return status;
}

/* Of all of them, a few megabytes at a time. */
static hg_status largest_sum(hg_context *ctx, const struct hg__mat *one,
                             const struct hg__mat *other, double *largest)
{
	const int64_t most = HG__STAGING_BYTES / ((one->ld + 1) * (int64_t)sizeof(float));
	for (int64_t first = 0; first < one->rows;) {
		const int64_t left = one->rows - first, fit = most > 1 ? most : 1;
		const int64_t rows = left < fit ? left : fit;
		HG__TRY(largest_of_rows(ctx, one, other, first, rows, largest));
		first += rows;
	}
	return HG_OK;
}

/* Two finite numbers, and their sum is not. */
static hg_status added_found(struct hg__replay *replay, const struct hg__result *r,
                             const struct hg__bad *bad, const struct hg__look *look,
                             const struct hg__parts *parts)
{
	struct hg__addend pair[2] = {
	    {bad->row, bad->col, 1.0, parts->value[0], 1.0f, 0.0f, HG_TERM_BEFORE, 0},
	    {bad->row, bad->col, 1.0, parts->value[1], 1.0f, 0.0f, HG_TERM_ADDEND, 0}};
	const double sum = parts->value[0] + parts->value[1];
	const struct hg__sum both = {.ctx = replay->ctx,
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
	HG__TRY(hg__cause_of(replay, &fault, &why));
	struct hg__found *found = hg__found_new(replay, 0, why.cause);
	if (!found)
		return HG_OK;
	found->finding.got = bad->got;
	found->finding.wide = sum;
	found->finding.largest = look->largest;
	found->finding.bad = look->own;
	HG__TRY(hg__found_in(replay, found, r, bad->row, bad->col, &both, &half));
	return hg__tell_gradients(replay, &found->finding, parts);
}

hg_status hg__judge_parts(struct hg__replay *replay, const struct hg__result *r,
                          struct hg__look *look, const struct hg__mat *old, struct hg__parts *parts)
{
	const struct hg__mat *part = &r->launch->call.din[r->operand];
	for (int i = 0; i < look->bads; i++) {
		const struct hg__bad *bad = &look->bad[i];
		HG__TRY(hg__fetch_element(replay->ctx, old, bad->row, bad->col, &parts->value[0]));
		HG__TRY(hg__fetch_element(replay->ctx, part, bad->row, bad->col, &parts->value[1]));
		if (!isfinite(parts->value[0]) || !isfinite(parts->value[1]))
			continue;
		HG__TRY(largest_sum(replay->ctx, old, part, &look->largest));
		return added_found(replay, r, bad, look, parts);
	}
	return HG_OK;
}
