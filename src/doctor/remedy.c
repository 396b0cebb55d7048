#include <math.h>
#include <string.h>

#include "doctor/remedy.h"

/* What to change: a table of options by cause, the best first; each says when it fits and with what
 * value. */

/* 0: it does not fit */
typedef int (*fit_fn)(const struct hg__patient *p, char option[HG__OPTION]);

static int is_model(const struct hg__patient *p, const char *name)
{
	return p->replay->config && strcmp(p->replay->config->model.name, name) == 0;
}

static int state_is_half(const struct hg__patient *p)
{
	return p->replay->params->policy.state == HG_F16;
}

/* ---- precision ---- */

static int wide_sums(const struct hg__patient *p, char option[HG__OPTION])
{
	return p->replay->params->policy.accumulate != HG_ACC_F32 &&
	       hg__write_option(option, "--precision fp16");
}

/* Sums in f32 leave a result that does not fit where it was. hg_train then stores it divided by a
 * power of two, or in f32; a loop of one's own does not, unless it calls hg_tape_replan. */
static int wide_sums_of_run(const struct hg__patient *p, char option[HG__OPTION])
{
	return p->replay->config && wide_sums(p, option);
}

static int batched_sums(const struct hg__patient *p, char option[HG__OPTION])
{
	return p->replay->params->policy.accumulate == HG_ACC_F16_NAIVE &&
	       hg__write_option(option, "--precision fp16-discretized");
}

static int full_precision(const struct hg__patient *p, char option[HG__OPTION])
{
	return state_is_half(p) && hg__write_option(option, "--precision fp32");
}

/* A cast stays what its author made it, whatever the policy; and what is beyond f32, or is in f32
 * already, gains nothing. */
static int fp32_holds(const struct hg__patient *p, char option[HG__OPTION])
{
	const double f32_ends = hg_dtype_get(HG_F32)->overflow;
	return !(p->found->op && p->found->op->traits & HG__CASTS) && p->f->limit < f32_ends &&
	       fabs(p->f->wide) < f32_ends && full_precision(p, option);
}

/* The f32 quotient of the same operands is a number, or they were rounded to 0. */
static int fp32_divides(const struct hg__patient *p, char option[HG__OPTION])
{
	return (p->found->vanished || isfinite(p->f->wide)) && full_precision(p, option);
}

/* Only what is stored behind a guard of its own; the weights' needs no other type. The slope of an
 * exp is as large as the exp, and a gradient is promoted by nobody. */
static int promoted(const struct hg__patient *p, char option[HG__OPTION])
{
	if (p->found->op && hg__about(p->found->op)->traits & HG__EXPONENTIAL)
		return 0;
	const int sums_are_f32 = p->replay->params->policy.accumulate == HG_ACC_F32;
	return state_is_half(p) && (sums_are_f32 || !p->replay->config) &&
	       p->replay->params->policy.unproved == HG_UNPROVED_GUARD &&
	       p->found->line->node.verdict == HG_GUARDED &&
	       !(p->found->op && p->found->op->traits & HG__CASTS) &&
	       hg__write_option(option, "--unproved promote");
}

/* ---- aggregation ---- */

static int is_aggregation(const struct hg__patient *p)
{
	return p->found->op && hg__about(p->found->op)->traits & HG__NEIGHBOURS;
}

static int unscaled(const struct hg__patient *p)
{
	return is_model(p, "gcn") && is_aggregation(p) &&
	       !hg__norm_is_root(p->replay->config->model.norm) &&
	       p->replay->config->model.norm != HG_NORM_RIGHT;
}

static int norm_both(const struct hg__patient *p, char option[HG__OPTION])
{
	return unscaled(p) && hg__write_option(option, "--norm both");
}

static int norm_right(const struct hg__patient *p, char option[HG__OPTION])
{
	return unscaled(p) && hg__write_option(option, "--norm right");
}

static int mean(const struct hg__patient *p, char option[HG__OPTION])
{
	return is_model(p, "gin") && is_aggregation(p) &&
	       p->replay->config->model.aggregate != HG_NORM_RIGHT &&
	       hg__write_option(option, "--aggregate mean");
}

/* A power of two that brings the element to an eighth of what the type holds. */
static int lambda(const struct hg__patient *p, char option[HG__OPTION])
{
	const double most = p->f->limit / 8.0, size = fabs(p->f->wide);
	return is_model(p, "gin") && is_aggregation(p) && isfinite(size) && size > most &&
	       hg__write_number(option, "--lambda",
	                        (double)p->replay->config->model.lambda *
	                            exp2(-ceil(log2(size / most))));
}

/* ---- features, weights, updates ---- */

static int is_linear(const struct hg__op *op)
{
	return hg__about(op)->traits & HG__PROPORTIONAL;
}

/* The sizes of a row of the features, together, that the op at fault reads as they are or by way of
 * linear ops; 0: it reads none. */
static double features_sum(const struct hg__patient *p)
{
	const hg_tape *tape = p->replay->tape;
	const struct hg__entry *line = p->f->backward ? NULL : p->found->line;
	while (line) {
		const struct hg__value *x = &tape->value[line->node.in[0]];
		if (line->node.graph && line->node.graph == p->replay->features)
			return p->replay->features_sum;
		if (x->node < 0)
			return x->kind == HG__INPUT ? p->replay->value[line->node.in[0]].row_sum : 0.0;
		line = is_linear(tape->entry[x->node].node.op) ? &tape->entry[x->node] : NULL;
	}
	return 0.0;
}

/* Rows that have been divided add up to 1, each element rounded by 2^-11 of itself at most. */
#define ROUNDED 0x1p-10

/* What is linear in the features is divided as they are. */
static int row_normalize(const struct hg__patient *p, char option[HG__OPTION])
{
	const double sum = features_sum(p);
	return sum > 1.0 + ROUNDED && fabs(p->f->wide) / sum < p->f->limit &&
	       hg__write_option(option, "--row-normalize on");
}

/* ---- loss scale ---- */

static const hg_loss_scale_config *loss_scale(const struct hg__patient *p)
{
	return &p->replay->params->policy.loss_scale;
}

static int is_scaled(const struct hg__patient *p)
{
	return p->f->backward && loss_scale(p)->enabled;
}

/* The largest power of two at which the largest element with this fault is at most half of what
 * the type holds. */
static int lower_scale(const struct hg__patient *p, char option[HG__OPTION])
{
	const double largest = fmax(fabs(p->f->wide), p->f->largest);
	const double scale = exp2(floor(log2(p->f->scale * p->f->limit / (2.0 * largest))));
	return is_scaled(p) && scale >= 1.0 && scale < p->f->scale &&
	       hg__write_number(option, "--loss-scale", scale);
}

/* The smallest power of two at which the element is a normal half. */
static int raise_scale(const struct hg__patient *p, char option[HG__OPTION])
{
	const double scale =
	    exp2(ceil(log2(p->f->scale * hg_dtype_get(HG_F16)->min_normal / fabs(p->f->wide))));
	return p->f->backward && scale <= (double)loss_scale(p)->max_scale && scale > p->f->scale &&
	       hg__write_number(option, "--loss-scale", scale);
}

static int higher_scale(const struct hg__patient *p, char option[HG__OPTION])
{
	return loss_scale(p)->enabled && raise_scale(p, option);
}

static int first_scale(const struct hg__patient *p, char option[HG__OPTION])
{
	return !loss_scale(p)->enabled && raise_scale(p, option);
}

/* ---- nothing to type ---- */

static int no_option(const struct hg__patient *p, char option[HG__OPTION])
{
	(void)p;
	return hg__write_option(option, "");
}

/* Of what is bad before the step: a number that a half cannot hold, or none at all. */
static int is_number(const struct hg__patient *p)
{
	return isfinite(p->f->wide) && !hg__is_of_statistics(p->f);
}

static int statistic_is_bad(const struct hg__patient *p, char option[HG__OPTION])
{
	return hg__is_of_statistics(p->f) && no_option(p, option);
}

static int weight_is_bad(const struct hg__patient *p, char option[HG__OPTION])
{
	return p->f->row_is == HG_ROW_WEIGHT && !is_number(p) && !hg__is_of_statistics(p->f) &&
	       no_option(p, option);
}

static int takes(const struct hg__patient *p, hg_zero zero, int negative, char option[HG__OPTION])
{
	return p->f->zero == zero && (hg__negative_operand(p->f) != NULL) == negative &&
	       no_option(p, option);
}

static int divides(const struct hg__patient *p, char option[HG__OPTION])
{
	return p->f->zero == HG_ZERO_QUOTIENT && no_option(p, option);
}

static int takes_log(const struct hg__patient *p, char option[HG__OPTION])
{
	return takes(p, HG_ZERO_LOGARITHM, 0, option);
}

static int takes_negative_log(const struct hg__patient *p, char option[HG__OPTION])
{
	return takes(p, HG_ZERO_LOGARITHM, 1, option);
}

static int takes_root(const struct hg__patient *p, char option[HG__OPTION])
{
	return takes(p, HG_ZERO_ROOT, 0, option);
}

static int takes_negative_root(const struct hg__patient *p, char option[HG__OPTION])
{
	return takes(p, HG_ZERO_ROOT, 1, option);
}

static int divides_by_variance(const struct hg__patient *p, char option[HG__OPTION])
{
	return p->f->zero == HG_ZERO_VARIANCE && no_option(p, option);
}

static int is_small(const struct hg__patient *p, char option[HG__OPTION])
{
	return !p->f->backward && !p->f->shift && p->f->node >= 0 && no_option(p, option);
}

static int data_is_bad(const struct hg__patient *p, char option[HG__OPTION])
{
	return p->f->row_is != HG_ROW_WEIGHT && !is_number(p) && no_option(p, option);
}

static int beyond_f16(const struct hg__patient *p, char option[HG__OPTION])
{
	return is_number(p) && row_normalize(p, option);
}

static int beyond_f16_too(const struct hg__patient *p, char option[HG__OPTION])
{
	return is_number(p) && full_precision(p, option);
}

static int outgrown(const struct hg__patient *p, char option[HG__OPTION])
{
	return p->f->row_is == HG_ROW_WEIGHT && is_number(p) && p->f->step > 0 &&
	       hg__fit_lower_rate(p, option);
}

/* Features that vanish themselves; or what is linear in them, if it is a half once it is divided
 * as they are. */
static int vanished(const struct hg__patient *p, char option[HG__OPTION])
{
	const double sum = p->f->node < 0 ? p->replay->value[p->found->value].row_sum : features_sum(p);
	const int helps =
	    p->f->node < 0 ? fabs(sum - 1.0) > ROUNDED
	                   : sum > 0.0 && sum < 1.0 - ROUNDED && fabs(p->f->wide) / sum >= p->f->limit;
	return helps && p->f->row_is != HG_ROW_WEIGHT && hg__write_option(option, "--row-normalize on");
}

/* What is stored x 2^-k has to be, because it has some that are too large. */
static int scaled_sum(const struct hg__patient *p, char option[HG__OPTION])
{
	return p->f->shift > 0 && mean(p, option);
}

static int stored_scaled(const struct hg__patient *p, char option[HG__OPTION])
{
	return p->f->shift > 0 && p->replay->params->policy.unproved == HG_UNPROVED_GUARD &&
	       hg__write_option(option, "--unproved promote");
}

/* The gradient of what is constant, where it fits at loss scale 1. */
static int fits_lower(const struct hg__patient *p, char option[HG__OPTION])
{
	return isfinite(p->f->wide) && lower_scale(p, option);
}

static const struct {
	hg_cause cause;
	fit_fn fit;
	const char *why;
} table[] = {
    {HG_CAUSE_INPUT, data_is_bad, "the file holds it: correct the element there; no option can"},
    {HG_CAUSE_INPUT, statistic_is_bad,
     "a checkpoint or a program set it: set it to the mean or variance of the data, or train on "
     "from a state in which it is"},
    {HG_CAUSE_INPUT, weight_is_bad,
     "an earlier step or a checkpoint made it: go back to one before"},
    {HG_CAUSE_INPUT, beyond_f16, "features divided by their row's sum are at most 1"},
    {HG_CAUSE_INPUT, beyond_f16_too, "fp32 holds the number"},
    {HG_CAUSE_INPUT, outgrown, "the weights have grown too fast"},
    {HG_CAUSE_ACCUMULATION, wide_sums,
     "sums in fp32, rounded to fp16 once, when the row is complete"},
    {HG_CAUSE_ACCUMULATION, batched_sums,
     "sums in fp16, but in batches of 64 that are scaled before they join the sum"},
    {HG_CAUSE_ACCUMULATION, lower_scale,
     "the largest scale at which the sum of this gradient has room on its way"},
    {HG_CAUSE_ACCUMULATION, full_precision, "nothing is fp16 then"},
    {HG_CAUSE_STORE, wide_sums_of_run,
     "sums in fp32; a result that overflows all the same is stored divided by a power of two, or "
     "in fp32, by the run itself"},
    {HG_CAUSE_STORE, promoted,
     "results that nothing proves to fit are fp32, all others stay fp16: the same model"},
    {HG_CAUSE_STORE, norm_both, "a sum divided by the root of the degree"},
    {HG_CAUSE_STORE, norm_right, "a mean is no larger than its largest term"},
    {HG_CAUSE_STORE, mean, "a mean is no larger than its largest term"},
    {HG_CAUSE_STORE, lambda,
     "a smaller factor on the neighbours' sum; a batch norm behind it takes it off again"},
    {HG_CAUSE_STORE, hg__fit_own_mean, "a mean is no larger than its largest term"},
    {HG_CAUSE_STORE, row_normalize, "features divided by their row's sum are at most 1"},
    {HG_CAUSE_STORE, hg__fit_lower_rate_later, "the weights have grown too fast"},
    {HG_CAUSE_STORE, hg__fit_clip_later,
     "one large gradient moves the weights no further than others"},
    {HG_CAUSE_STORE, fp32_holds, "fp32 holds numbers up to 3.4e38"},
    {HG_CAUSE_LOSS_SCALE, lower_scale, "the largest scale at which this gradient has room"},
    {HG_CAUSE_LOSS_SCALE, full_precision, "fp32 gradients need no scale"},
    {HG_CAUSE_EXPLOSION, norm_both, "the gradient of a sum divided by the root of the degree"},
    {HG_CAUSE_EXPLOSION, mean, "the gradient of a mean is divided by the degree"},
    {HG_CAUSE_EXPLOSION, lambda, "a smaller factor on the neighbours' sum, and on its gradient"},
    {HG_CAUSE_EXPLOSION, hg__fit_lower_rate_later, "the weights have grown too fast"},
    {HG_CAUSE_EXPLOSION, hg__fit_clip_later,
     "one large gradient moves the weights no further than others"},
    {HG_CAUSE_EXPLOSION, fp32_holds, "fp32 holds numbers up to 3.4e38"},
    {HG_CAUSE_UNDERFLOW, higher_scale,
     "the smallest scale at which this gradient has all its bits"},
    {HG_CAUSE_UNDERFLOW, first_scale,
     "no loss scale is in force: the smallest at which this gradient has all its bits"},
    {HG_CAUSE_UNDERFLOW, vanished, "features divided by their row's sum are shares of 1"},
    {HG_CAUSE_UNDERFLOW, stored_scaled,
     "this result is fp32 then, and not fp16 divided by a power of two"},
    {HG_CAUSE_UNDERFLOW, scaled_sum, "a mean is no larger than its largest term"},
    {HG_CAUSE_UNDERFLOW, fp32_holds, "fp32 holds numbers down to 1.4e-45"},
    {HG_CAUSE_UNDERFLOW, is_small,
     "bring what it is made of nearer to 1: features or edge weights in another unit, a norm"},
    {HG_CAUSE_SWAMPING, wide_sums, "sums in fp32 grow on where fp16 can add no more"},
    {HG_CAUSE_SWAMPING, batched_sums, "sums in fp16, but in batches of 64"},
    {HG_CAUSE_SWAMPING, full_precision, "nothing is fp16 then"},
    {HG_CAUSE_ZERO, fits_lower,
     "the largest scale at which this gradient has room, until what is constant has gone"},
    {HG_CAUSE_ZERO, fp32_divides, "fp32 holds quotients of smaller numbers"},
    {HG_CAUSE_ZERO, divides,
     "add a small positive number to what is divided by, or leave out the rows in which it is 0"},
    {HG_CAUSE_ZERO, takes_log, "add a small positive number before the logarithm is taken"},
    {HG_CAUSE_ZERO, takes_negative_log,
     "a negative number has no logarithm: clamp it (a relu, then a small positive number)"},
    {HG_CAUSE_ZERO, takes_root,
     "add a small positive number below the root: at 0 its slope is infinite"},
    {HG_CAUSE_ZERO, takes_negative_root,
     "a negative number has no root: clamp it (a relu, then a small positive number)"},
    {HG_CAUSE_ZERO, divides_by_variance,
     "leave out what is constant, or give the norm a larger eps"},
    {HG_CAUSE_OPTIMISER, hg__fit_no_eps,
     "the optimiser's eps is 0: a gradient that was always 0 is divided by 0"},
    {HG_CAUSE_OPTIMISER, hg__fit_restored_moment,
     "no gradient of this run moves a weight so far, its moments do: go back to a checkpoint "
     "before, or begin with moments of 0"},
    {HG_CAUSE_OPTIMISER, hg__fit_lower_decay,
     "the weights decay by more than themselves in a step"},
    {HG_CAUSE_OPTIMISER, hg__fit_grown_rate, "one step moves the weights by a part of their size"},
    {HG_CAUSE_OPTIMISER, hg__fit_ungrown_rate,
     "one step moves the weights by a part of their size"},
    {HG_CAUSE_OPTIMISER, hg__fit_clip_update,
     "one large gradient moves the weights no further than others"},
    {HG_CAUSE_OPTIMISER, hg__fit_clip_moment, "the square of a clipped gradient is a number"},
    {HG_CAUSE_OPTIMISER, hg__fit_wider_copy, "fp32 holds the weight"},
};
#define TABLE (sizeof table / sizeof *table)

/* Who runs train.h types an option or sets a field; who writes tapes makes calls alone. */
static hg_status add_remedy(struct hg__replay *replay, hg_finding *f, const char *option,
                            const char *call, const char *why)
{
	hg_remedy *r = &f->remedy[f->remedies++];
	*r = (hg_remedy){.why = why, .loss_first = NAN, .loss_last = NAN};
	HG__TRY(
	    hg__page_text(replay->ctx, replay->pages, &r->option, "%s", replay->config ? option : ""));
	return hg__page_text(replay->ctx, replay->pages, &r->call, "%s", call);
}

/* One line of the list for every option that fits; nobody is told twice to type the same. */
hg_status hg__list_remedies(struct hg__replay *replay, struct hg__found *found)
{
	const struct hg__patient p = {replay, found, &found->finding};
	hg_finding *f = &found->finding;
	const char *op = "", *why = NULL;
	void *memory = NULL;
	HG__TRY(hg__page_take(replay->ctx, replay->pages, TABLE + 1, sizeof *f->remedy, &memory));
	f->remedy = memory;
	hg__remedy_op(replay, found, &op, &why);
	if (why)
		HG__TRY(add_remedy(replay, f, "", op, why));
	for (size_t i = 0; i < TABLE; i++) {
		char option[HG__OPTION] = "", call[HG__CALL];
		if (table[i].cause != f->cause || !table[i].fit(&p, option))
			continue;
		hg__remedy_call(option, &replay->params->policy, replay->config != NULL, call);
		HG__TRY(add_remedy(replay, f, option, call, table[i].why));
	}
	return HG_OK;
}
