#include "core/typed.h"
#include "doctor/remedy.h"

/* Remedies that change the optimiser: learning rate, weight decay, clipping. */

static double rate(const struct hg__remedy_query *q)
{
	return q->replay->optim && q->replay->optim->groups ? (double)q->replay->optim->group[0].lr
	                                                    : 0.0;
}

/* ---- a lower rate, or clipping, for overflows of what reads weights ---- */

int hg__fit_lower_rate(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return rate(q) > 0.0 &&
	       hg__write_number(option, "--lr", hg__typed_value((float)rate(q)) / 10.0);
}

/* Have earlier steps trained a weight that the op at fault depends on? */
static int depends_on_training(const struct hg__remedy_query *q)
{
	return q->f->step > 0 && (q->f->backward || hg__reads_weights(q->replay, q->finding->entry));
}

int hg__fit_lower_rate_later(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return depends_on_training(q) && hg__fit_lower_rate(q, option);
}

/* For a weight that f16 cannot hold. */
int hg__fit_lower_rate_of_weight(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return q->f->row_is == HG_ROW_WEIGHT && hg__is_too_large_input(q->f) && q->f->step > 0 &&
	       hg__fit_lower_rate(q, option);
}

static int fit_clip(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return q->replay->optim && !(q->replay->optim->config.clip_norm > 0.0f) &&
	       hg__write_option(option, "--clip 1");
}

int hg__fit_clip_later(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return depends_on_training(q) && fit_clip(q, option);
}

/* ---- weight decay ---- */

/* Does decay alone change a weight by more than its size in one step? In Adam the L2 penalty is a
 * part of the gradient, of which only the direction counts. */
static int decays_too_fast(const struct hg__remedy_query *q)
{
	const struct hg_optim *optim = q->replay->optim;
	return optim && optim->groups && optim->config.kind != HG_ADAM &&
	       rate(q) * (double)optim->group[0].weight_decay >= 1.0;
}

/* A decay by about 10^-4 of each weight in a step: that is the usual 0.01 with the usual rate of
 * 0.01. */
int hg__fit_lower_decay(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return !*q->f->grown && !q->finding->is_moment && decays_too_fast(q) &&
	       hg__write_number(option, "--weight-decay", pow(10.0, floor(log10(1.001e-4 / rate(q)))));
}

/* ---- weights that the update has made too large ---- */

/* A rate at which weights do not become `by` times as large in so many steps. Adam moves them by
 * about the rate in a step; that shall be a quarter of their size. Where SGD diverges, each step
 * multiplies them by (rate * curvature - 1); that shall be 0 at most, with a factor of 2 to
 * spare. */
static double slower_rate(const struct hg__remedy_query *q, double by, double steps)
{
	if (q->replay->optim->config.kind == HG_SGD)
		return rate(q) / (2.0 * (pow(by, 1.0 / steps) + 1.0));
	return rate(q) * steps / (4.0 * (by - 1.0));
}

static int write_rate(char option[HG__OPTION], double lr)
{
	return lr > 0.0 && hg__write_number(option, "--lr", pow(10.0, floor(log10(lr))));
}

int hg__fit_grown_rate(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	const double steps = (double)(q->f->step - q->replay->initial_weights->step);
	return *q->f->grown && write_rate(option, slower_rate(q, q->f->grown_by, steps));
}

/* The smallest size of a trained parameter when the doctor was created; 0: all were 0. */
static double smallest_initial_size(const struct hg__remedy_query *q)
{
	const struct hg__weight_sizes *initial = q->replay->initial_weights;
	double least = INFINITY;
	for (int64_t i = 0; i < initial->count; i++) {
		const double size = hg__weight_size(initial, i);
		if (size > 0.0 && !(q->replay->params->item[i]->flags & HG_PARAM_BUFFER))
			least = fmin(least, size);
	}
	return isfinite(least) ? least : 0.0;
}

/* The steps since the doctor was created, the examined one included. */
static double steps_so_far(const struct hg__remedy_query *q)
{
	return (double)(q->f->step - q->replay->initial_weights->step + 1);
}

/* How far the gradients of `steps` steps can have moved the element: the first step of SGD by the
 * rate times the gradient; further steps of SGD by any distance. */
static double largest_move(const struct hg__remedy_query *q, double steps)
{
	const hg_optim_config *c = &q->replay->optim->config;
	if (c->kind != HG_SGD)
		return HG__ADAM_MOVES * rate(q) * steps;
	return c->momentum > 0.0f && steps == 1.0 ? rate(q) * fabs(q->finding->gradient)
	                                          : (double)INFINITY;
}

/* Do the moments that made the weight come from elsewhere, from a checkpoint for example? */
static int has_restored_moments(const struct hg__remedy_query *q)
{
	return q->replay->optim && !*q->f->grown && !q->finding->is_moment && !decays_too_fast(q) &&
	       isfinite(q->f->wide) &&
	       fabs(q->f->wide) >
	           largest_move(q, steps_so_far(q)) + 2.0 * hg_dtype_get(HG_F16)->overflow;
}

int hg__fit_restored_moment(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return has_restored_moments(q) && hg__write_option(option, "");
}

/* The updates up to the examined one have made the weight what it is, but no parameter has grown as
 * a whole. */
int hg__fit_ungrown_rate(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	const double size = smallest_initial_size(q),
	             now = isfinite(q->f->wide) ? fabs(q->f->wide) : hg_dtype_get(HG_F32)->overflow;
	if (*q->f->grown || q->finding->is_moment || isnan(q->f->wide) || decays_too_fast(q) ||
	    has_restored_moments(q) || !(rate(q) > 0.0))
		return 0;
	if (!(size > 0.0) || !(now > size))
		return hg__fit_lower_rate(q, option);
	return write_rate(option, slower_rate(q, now / size, steps_so_far(q)));
}

/* Clipping does not help Adam, whose steps have the same length whatever the gradient's size. */
int hg__fit_clip_update(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return q->replay->optim && q->replay->optim->config.kind == HG_SGD && rate(q) < 1.0 &&
	       !decays_too_fast(q) && !has_restored_moments(q) && fit_clip(q, option);
}

int hg__fit_clip_moment(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return q->finding->is_moment && fit_clip(q, option);
}

/* ---- other remedies ---- */

int hg__fit_no_eps(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return q->replay->optim && q->replay->optim->config.kind != HG_SGD &&
	       !(q->replay->optim->config.eps > 0.0f) && hg__write_option(option, "");
}

/* The master weight is finite; only the f16 working copy cannot hold it. */
int hg__fit_fp32_weight(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return isfinite(q->f->wide) && !*q->f->grown && !has_restored_moments(q) &&
	       hg__state_is_f16(q) && q->f->limit == hg_dtype_get(HG_F16)->overflow &&
	       hg__write_option(option, "--precision fp32");
}
