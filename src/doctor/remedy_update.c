#include <math.h>
#include <stdio.h>

#include "core/typed.h"
#include "doctor/remedy.h"

/* Options of the optimiser: rates, decay, clipping. */

static double rate(const struct hg__patient *p)
{
	return p->replay->optim && p->replay->optim->groups ? (double)p->replay->optim->group[0].lr
	                                                    : 0.0;
}

int hg__fit_lower_rate(const struct hg__patient *p, char option[HG__OPTION])
{
	return rate(p) > 0.0 &&
	       hg__write_number(option, "--lr", hg__typed_value((float)rate(p)) / 10.0);
}

/* What has been learnt so far may have made the weights what they are, if there are any above. */
static int is_learnt(const struct hg__patient *p)
{
	return p->f->step > 0 && (p->f->backward || hg__reads_weights(p->replay, p->found->line));
}

int hg__fit_lower_rate_later(const struct hg__patient *p, char option[HG__OPTION])
{
	return is_learnt(p) && hg__fit_lower_rate(p, option);
}

static int clip(const struct hg__patient *p, char option[HG__OPTION])
{
	return p->replay->optim && !(p->replay->optim->config.clip_norm > 0.0f) &&
	       hg__write_option(option, "--clip 1");
}

int hg__fit_clip_later(const struct hg__patient *p, char option[HG__OPTION])
{
	return is_learnt(p) && clip(p, option);
}

/* A rate at which weights do not become `by` times what they were in so many steps. A step of Adam
 * moves them by about the rate: it shall be a quarter of what they were. SGD that diverges
 * multiplies by rate * curvature - 1 in every step: that shall be below 0, twice over. */
static double calmer_rate(const struct hg__patient *p, double by, double steps)
{
	if (p->replay->optim->config.kind == HG_SGD)
		return rate(p) / (2.0 * (pow(by, 1.0 / steps) + 1.0));
	return rate(p) * steps / (4.0 * (by - 1.0));
}

static int write_rate(char option[HG__OPTION], double lr)
{
	return lr > 0.0 && hg__write_number(option, "--lr", pow(10.0, floor(log10(lr))));
}

int hg__fit_grown_rate(const struct hg__patient *p, char option[HG__OPTION])
{
	const double steps = (double)(p->f->step - p->replay->growth->step);
	return *p->f->grown && write_rate(option, calmer_rate(p, p->f->grown_by, steps));
}

/* The decay alone makes more of a weight than the weight: of L2 in an Adam it is a direction, and
 * no size. */
static int decays(const struct hg__patient *p)
{
	const struct hg_optim *optim = p->replay->optim;
	return optim && optim->groups && optim->config.kind != HG_ADAM &&
	       rate(p) * (double)optim->group[0].weight_decay >= 1.0;
}

/* Such that a step takes 10^-4 of each weight: the usual 0.01 with the usual rate of 0.01. */
int hg__fit_lower_decay(const struct hg__patient *p, char option[HG__OPTION])
{
	return !*p->f->grown && !p->found->moment && decays(p) &&
	       hg__write_number(option, "--weight-decay", pow(10.0, floor(log10(1.001e-4 / rate(p)))));
}

/* The smallest that the weights were when the doctor was made; 0: all of them were 0. */
static double smallest_size(const struct hg__patient *p)
{
	const struct hg__growth *growth = p->replay->growth;
	const double *size = growth->size.data;
	double least = INFINITY;
	for (int64_t i = 0; i < growth->count; i++)
		if (size[i] > 0.0 && !(p->replay->params->item[i]->flags & HG_PARAM_BUFFER))
			least = fmin(least, size[i]);
	return isfinite(least) ? least : 0.0;
}

/* A step of Adam moves no weight by more than (1 - beta1) / sqrt(1 - beta2) of its rate, 3.2 by
 * default, unless its moments are not what its gradients have made (growth.c says more); a first
 * step of SGD by the rate times its gradient, unless its momentum is not. */
#define ADAM_MOVES 4.0

/* How far the gradients of `steps` steps may have moved the element. */
static double may_move(const struct hg__patient *p, double steps)
{
	const hg_optim_config *c = &p->replay->optim->config;
	if (c->kind != HG_SGD)
		return ADAM_MOVES * rate(p) * steps;
	return c->momentum > 0.0f && steps == 1.0 ? rate(p) * fabs(p->found->gradient)
	                                          : (double)INFINITY;
}

static int is_restored(const struct hg__patient *p)
{
	const double steps = (double)(p->f->step - p->replay->growth->step + 1);
	return p->replay->optim && !*p->f->grown && !p->found->moment && !decays(p) &&
	       isfinite(p->f->wide) &&
	       fabs(p->f->wide) > may_move(p, steps) + 2.0 * hg_dtype_get(HG_F16)->overflow;
}

int hg__fit_restored_moment(const struct hg__patient *p, char option[HG__OPTION])
{
	return is_restored(p) && hg__write_option(option, "");
}

/* The updates up to this one, counted in, have made the weight what it is. */
int hg__fit_ungrown_rate(const struct hg__patient *p, char option[HG__OPTION])
{
	const double most = isfinite(p->f->wide) ? fabs(p->f->wide) : hg_dtype_get(HG_F32)->overflow;
	const double size = smallest_size(p);
	const double steps = (double)(p->f->step - p->replay->growth->step + 1);
	if (*p->f->grown || p->found->moment || isnan(p->f->wide) || decays(p) || is_restored(p) ||
	    !(rate(p) > 0.0))
		return 0;
	if (!(size > 0.0) || !(most > size))
		return hg__fit_lower_rate(p, option);
	return write_rate(option, calmer_rate(p, most / size, steps));
}

/* An Adam's step is as long whatever the gradient's size is. */
int hg__fit_clip_update(const struct hg__patient *p, char option[HG__OPTION])
{
	return p->replay->optim && p->replay->optim->config.kind == HG_SGD && rate(p) < 1.0 &&
	       !decays(p) && !is_restored(p) && clip(p, option);
}

/* A gradient that is clipped has a square. */
int hg__fit_clip_moment(const struct hg__patient *p, char option[HG__OPTION])
{
	return p->found->moment && clip(p, option);
}

int hg__fit_no_eps(const struct hg__patient *p, char option[HG__OPTION])
{
	return p->replay->optim && p->replay->optim->config.kind != HG_SGD &&
	       !(p->replay->optim->config.eps > 0.0f) && hg__write_option(option, "");
}

/* The master holds what the working copy does not. */
int hg__fit_wider_copy(const struct hg__patient *p, char option[HG__OPTION])
{
	return isfinite(p->f->wide) && !*p->f->grown && !is_restored(p) &&
	       p->replay->params->policy.state == HG_F16 &&
	       p->f->limit == hg_dtype_get(HG_F16)->overflow &&
	       hg__write_option(option, "--precision fp32");
}
