/* Schedules of the learning rate (halfgraph/schedule.h has the equations), compiled both for the
 * host and for CUDA. They use f64 products, sums and quotients alone, which both round alike, and
 * no function of a mathematics library, which may differ from machine to machine. */
#ifndef HG_PRECISION_SCHEDULE_H
#define HG_PRECISION_SCHEDULE_H

#include "halfgraph/schedule.h"
#include "precision/hostdevice.h"
#include "precision/power.h"

HG_EXTERN_C_BEGIN

/* Does the schedule need hg_schedule_config.total? */
int hg__schedule_ends(const hg_schedule_config *config);

/* sin(pi x / 2)^2 for 0 <= x <= 1/2, by the series of the sine up to y^15 / 15!. What is left out
 * is below y^17 / 17! with y <= pi / 4, which is 6e-17 of the sine. */
HG_HD static inline double hg__half_turn(double x)
{
	const double y = 1.57079632679489661923 * x, square = y * y;
	double sum = 1.0;
	for (int k = 15; k > 1; k -= 2)
		sum = 1.0 - square * sum / (double)(k * (k - 1));
	return y * sum * (y * sum);
}

/* w(x) = (1 + cos(pi x)) / 2, which is 1 at 0 and 0 at 1. */
HG_HD static inline double hg__anneal(double x)
{
	if (x <= 0.5)
		return x > 0.0 ? 1.0 - hg__half_turn(x) : 1.0;
	return x < 1.0 ? hg__half_turn(1.0 - x) : 0.0;
}

HG_HD static inline double hg__one_cycle(const hg_schedule_config *c, double t, double total)
{
	const double peak = c->rise * total - 1.0;
	if (t < peak)
		return 1.0 + (c->start - 1.0) * hg__anneal(t / peak);
	return c->least + (1.0 - c->least) * hg__anneal((t - peak) / (total - 1.0 - peak));
}

HG_HD static inline double hg__dropped(const hg_schedule_config *c, int64_t drops)
{
	const double factor = hg__power(c->factor, drops);
	return factor > c->least ? factor : c->least;
}

/* The schedule t steps after its warm-up. */
HG_HD static inline double hg__schedule_after(const hg_schedule_config *c, int64_t t, int64_t drops)
{
	const double total = (double)(c->total - c->warmup);
	if (c->kind == HG_SCHEDULE_STEP)
		return hg__dropped(c, t / c->every);
	if (c->kind == HG_SCHEDULE_COSINE)
		return c->least + (1.0 - c->least) * hg__anneal((double)t / total);
	if (c->kind == HG_SCHEDULE_ONE_CYCLE)
		return hg__one_cycle(c, (double)t, total);
	return c->kind == HG_SCHEDULE_PLATEAU ? hg__dropped(c, drops) : 1.0;
}

/* The factor of a step, after so many drops of a plateau. The schedule has no fault. */
HG_HD static inline double hg__schedule_factor(const hg_schedule_config *c, int64_t step,
                                               int64_t drops)
{
	if (step >= c->warmup)
		return hg__schedule_after(c, step - c->warmup, drops);
	const double part = (double)step / (double)c->warmup;
	return (c->start + (1.0 - c->start) * part) * hg__schedule_after(c, 0, drops);
}

/* One evaluation of a plateau. A criterion that is not a number is never an improvement. */
HG_HD static inline void hg__plateau_note(hg_plateau *p, const hg_schedule_config *c,
                                          double criterion, int falls)
{
	const int first = !p->evaluations || p->best != p->best,
	          better = first   ? criterion == criterion
	                   : falls ? criterion < p->best * (1.0 - c->threshold)
	                           : criterion > p->best * (1.0 + c->threshold);
	if (first || better)
		p->best = criterion;
	p->evaluations++;
	p->waited = better ? 0 : p->waited + 1;
	if (p->waited <= c->patience)
		return;
	p->waited = 0;
	p->drops++;
}

HG_EXTERN_C_END
#endif
