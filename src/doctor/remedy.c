#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "core/typed.h"
#include "doctor/remedy.h"

/* What to change: a table of options by cause, the best first; each says when it fits and with what value. */

#define OPTION 48
struct patient {
	const struct hg__exam *exam;
	const struct hg__found *found;
	const hg_finding *f;
};
typedef int (*fit_fn)(const struct patient *p, char option[OPTION]); /* 0: it does not fit */

static int is_model(const struct patient *p, const char *name)
{
	return p->exam->config && strcmp(p->exam->config->model.name, name) == 0;
}

static int write_fixed(char option[OPTION], const char *text)
{
	(void)snprintf(option, OPTION, "%s", text);
	return 1;
}

/* x as a person types it: "0.001", not the 0.00100000005 that a float holds. */
static int write_number(char option[OPTION], const char *name, double x)
{
	char number[HG__TYPED];
	(void)snprintf(option, OPTION, "%s %s", name, hg__typed((float)x, number));
	return 1;
}

static int state_is_half(const struct patient *p)
{
	return p->exam->params->policy.state == HG_F16;
}

/* ---- precision ---- */

static int wide_sums(const struct patient *p, char option[OPTION])
{
	return p->exam->params->policy.accumulate != HG_ACC_F32 && write_fixed(option, "--precision fp16");
}

static int batched_sums(const struct patient *p, char option[OPTION])
{
	return p->exam->params->policy.accumulate == HG_ACC_F16_NAIVE && write_fixed(option, "--precision fp16-discretized");
}

static int full_precision(const struct patient *p, char option[OPTION])
{
	return state_is_half(p) && write_fixed(option, "--precision fp32");
}

/* ---- aggregation ---- */

static int is_aggregation(const struct patient *p)
{
	const struct hg__op *op = p->found->op;
	return op == &hg__op_spmm || op == &hg__op_add || op == &hg__op_combine;
}

static int unscaled(const struct patient *p)
{
	return is_model(p, "gcn") && is_aggregation(p) &&
	       !hg__norm_is_root(p->exam->config->model.norm) &&
	       p->exam->config->model.norm != HG_NORM_RIGHT;
}

static int norm_both(const struct patient *p, char option[OPTION])
{
	return unscaled(p) && write_fixed(option, "--norm both");
}

static int norm_right(const struct patient *p, char option[OPTION])
{
	return unscaled(p) && write_fixed(option, "--norm right");
}

static int mean(const struct patient *p, char option[OPTION])
{
	return is_model(p, "gin") && is_aggregation(p) && p->exam->config->model.aggregate != HG_NORM_RIGHT && write_fixed(option, "--aggregate mean");
}

/* A power of two that brings the element to an eighth of what the type holds. */
static int lambda(const struct patient *p, char option[OPTION])
{
	const double most = p->f->limit / 8.0, size = fabs(p->f->wide);
	return is_model(p, "gin") && is_aggregation(p) && isfinite(size) && size > most &&
	       write_number(option, "--lambda", (double)p->exam->config->model.lambda * exp2(-ceil(log2(size / most))));
}

/* ---- features, weights, updates ---- */

/* Ops whose result is as large as their first operand makes it. */
static int is_linear(const struct hg__op *op)
{
	return op == &hg__op_linear || op == &hg__op_spmm || op == &hg__op_dropout || op == &hg__op_cast;
}

/* The sizes of a row of the features, together, that the op at fault reads as they are or by way of linear ops; 0: it reads none. */
static double features_sum(const struct patient *p)
{
	const hg_tape *tape = p->exam->tape;
	const struct hg__line *line = p->f->backward ? NULL : p->found->line;
	while (line) {
		const struct hg__value *x = &tape->value[line->node.in[0]];
		if (line->node.graph && line->node.graph == p->exam->features)
			return p->exam->features_sum;
		if (x->node < 0)
			return x->kind == HG__INPUT ? p->exam->value[line->node.in[0]].row_sum : 0.0;
		line = is_linear(tape->line[x->node].node.op) ? &tape->line[x->node] : NULL;
	}
	return 0.0;
}

/* Rows that have been divided add up to 1, each element rounded by 2^-11 of itself at most. */
#define ROUNDED 0x1p-10

static int row_normalize(const struct patient *p, char option[OPTION])
{
	return features_sum(p) > 1.0 + ROUNDED && write_fixed(option, "--row-normalize on");
}

static double rate(const struct patient *p)
{
	return p->exam->optim && p->exam->optim->groups ? (double)p->exam->optim->group[0].lr : 0.0;
}

static int lower_rate(const struct patient *p, char option[OPTION])
{
	return rate(p) > 0.0 && write_number(option, "--lr", hg__typed_value((float)rate(p)) / 10.0);
}

/* What has been learnt so far may have made the weights what they are. */
static int lower_rate_later(const struct patient *p, char option[OPTION])
{
	return p->f->step > 0 && lower_rate(p, option);
}

static int clip(const struct patient *p, char option[OPTION])
{
	return p->exam->optim && !(p->exam->optim->config.clip_norm > 0.0f) && write_fixed(option, "--clip 1");
}

static int clip_later(const struct patient *p, char option[OPTION])
{
	return p->f->step > 0 && clip(p, option);
}

/* ---- loss scale ---- */

static int is_scaled(const struct patient *p)
{
	return p->f->backward && p->exam->params->policy.loss_scale.enabled;
}

/* The largest power of two at which the largest element with this fault is at most half of what
 * the type holds. */
static int lower_scale(const struct patient *p, char option[OPTION])
{
	const double largest = fmax(fabs(p->f->wide), p->f->largest);
	const double scale = exp2(floor(log2(p->f->scale * p->f->limit / (2.0 * largest))));
	return is_scaled(p) && scale >= 1.0 && scale < p->f->scale && write_number(option, "--loss-scale", scale);
}

/* The smallest power of two at which the element is a normal half. */
static int higher_scale(const struct patient *p, char option[OPTION])
{
	const double scale = exp2(ceil(log2(p->f->scale * hg_dtype_get(HG_F16)->min_normal / fabs(p->f->wide))));
	return is_scaled(p) && scale <= (double)p->exam->params->policy.loss_scale.max_scale && scale > p->f->scale && write_number(option, "--loss-scale", scale);
}

/* ---- nothing to type ---- */

static int no_option(const struct patient *p, char option[OPTION])
{
	(void)p;
	return write_fixed(option, "");
}

/* Of what is bad before the step: a number that a half cannot hold, or none at all. */
static int is_number(const struct patient *p)
{
	return isfinite(p->f->wide) && !p->f->evaluation;
}

static int statistic_is_bad(const struct patient *p, char option[OPTION])
{
	return p->f->evaluation && no_option(p, option);
}

static int weight_is_bad(const struct patient *p, char option[OPTION])
{
	return p->f->row_is == HG_ROW_WEIGHT && !is_number(p) && !p->f->evaluation &&
	       no_option(p, option);
}

static int data_is_bad(const struct patient *p, char option[OPTION])
{
	return p->f->row_is != HG_ROW_WEIGHT && !is_number(p) && no_option(p, option);
}

static int beyond_f16(const struct patient *p, char option[OPTION])
{
	return is_number(p) && row_normalize(p, option);
}

static int beyond_f16_too(const struct patient *p, char option[OPTION])
{
	return is_number(p) && full_precision(p, option);
}

/* After an update: the master holds it. */
static int working_copy_only(const struct patient *p, char option[OPTION])
{
	return is_number(p) && !*p->f->grown && p->f->limit == hg_dtype_get(HG_F16)->overflow &&
	       full_precision(p, option);
}

static int outgrown(const struct patient *p, char option[OPTION])
{
	return p->f->row_is == HG_ROW_WEIGHT && is_number(p) && lower_rate_later(p, option);
}

static int vanished(const struct patient *p, char option[OPTION])
{
	return p->f->node < 0 && fabs(p->exam->value[p->found->value].row_sum - 1.0) > ROUNDED && write_fixed(option, "--row-normalize on");
}

/* What a rate makes of weights in one step is about itself (Adam), or in proportion to it: a
 * quarter of what they were is moved in a step by the power of ten below rate * then / (4 * what
 * a step has added). */
static int grown_rate(const struct patient *p, char option[OPTION])
{
	const double steps = (double)(p->f->step - p->exam->growth->step);
	const double lr = rate(p) * steps / (4.0 * (p->f->grown_by - 1.0));
	return *p->f->grown && lr > 0.0 && write_number(option, "--lr", pow(10.0, floor(log10(lr))));
}

static int ungrown_rate(const struct patient *p, char option[OPTION])
{
	return !*p->f->grown && lower_rate(p, option);
}

/* The gradient of what is constant, where it fits at loss scale 1. */
static int fits_lower(const struct patient *p, char option[OPTION])
{
	return isfinite(p->f->wide) && lower_scale(p, option);
}

static int no_eps(const struct patient *p, char option[OPTION])
{
	return p->exam->optim && p->exam->optim->config.kind != HG_SGD && !(p->exam->optim->config.eps > 0.0f) && no_option(p, option);
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
    {HG_CAUSE_STORE, wide_sums,
     "sums in fp32; a result that overflows all the same is stored divided by a power of two, or "
     "in fp32, by "
     "the run itself"},
    {HG_CAUSE_STORE, norm_both, "a sum divided by the root of the degree"},
    {HG_CAUSE_STORE, norm_right, "a mean is no larger than its largest term"},
    {HG_CAUSE_STORE, mean, "a mean is no larger than its largest term"},
    {HG_CAUSE_STORE, lambda,
     "a smaller factor on the neighbours' sum; a batch norm behind it takes it off again"},
    {HG_CAUSE_STORE, row_normalize, "features divided by their row's sum are at most 1"},
    {HG_CAUSE_STORE, lower_rate_later, "the weights have grown too fast"},
    {HG_CAUSE_STORE, clip_later, "one large gradient moves the weights no further than others"},
    {HG_CAUSE_STORE, full_precision, "fp32 holds numbers up to 3.4e38"},
    {HG_CAUSE_LOSS_SCALE, lower_scale, "the largest scale at which this gradient has room"},
    {HG_CAUSE_LOSS_SCALE, full_precision, "fp32 gradients need no scale"},
    {HG_CAUSE_EXPLOSION, norm_both, "the gradient of a sum divided by the root of the degree"},
    {HG_CAUSE_EXPLOSION, mean, "the gradient of a mean is divided by the degree"},
    {HG_CAUSE_EXPLOSION, lambda, "a smaller factor on the neighbours' sum, and on its gradient"},
    {HG_CAUSE_EXPLOSION, lower_rate_later, "the weights have grown too fast"},
    {HG_CAUSE_EXPLOSION, clip_later, "one large gradient moves the weights no further than others"},
    {HG_CAUSE_EXPLOSION, full_precision, "fp32 holds numbers up to 3.4e38"},
    {HG_CAUSE_UNDERFLOW, higher_scale,
     "the smallest scale at which this gradient has all its bits"},
    {HG_CAUSE_UNDERFLOW, vanished, "features divided by their row's sum are shares of 1"},
    {HG_CAUSE_UNDERFLOW, full_precision, "fp32 holds numbers down to 1.4e-45"},
    {HG_CAUSE_SWAMPING, wide_sums, "sums in fp32 grow on where fp16 can add no more"},
    {HG_CAUSE_SWAMPING, batched_sums, "sums in fp16, but in batches of 64"},
    {HG_CAUSE_SWAMPING, full_precision, "nothing is fp16 then"},
    {HG_CAUSE_ZERO, fits_lower,
     "the largest scale at which this gradient has room, until what is constant has gone"},
    {HG_CAUSE_ZERO, full_precision, "fp32 holds quotients of smaller numbers"},
    {HG_CAUSE_ZERO, no_option,
     "add a small positive number to what is divided by, or taken the root or logarithm of; a "
     "larger eps in a norm"},
    {HG_CAUSE_OPTIMISER, no_eps,
     "the optimiser's eps is 0: a gradient that was always 0 is divided by 0"},
    {HG_CAUSE_OPTIMISER, grown_rate, "one step moves the weights by a part of their size"},
    {HG_CAUSE_OPTIMISER, ungrown_rate, "shorter steps"},
    {HG_CAUSE_OPTIMISER, clip, "one large gradient moves the weights no further than others"},
    {HG_CAUSE_OPTIMISER, working_copy_only, "fp32 holds the weight"},
};
#define TABLE (sizeof table / sizeof *table)

/* Who runs train.h types an option or sets a field; who writes tapes makes calls alone. */
static hg_status add_remedy(struct hg__exam *exam, hg_finding *f, const char *option,
                            const char *call, const char *why)
{
	hg_remedy *r = &f->remedy[f->remedies++];
	*r = (hg_remedy){.why = why, .loss_first = NAN, .loss_last = NAN};
	HG__TRY(hg__page_text(exam->ctx, exam->pages, &r->option, "%s", exam->config ? option : ""));
	return hg__page_text(exam->ctx, exam->pages, &r->call, "%s", call);
}

/* One line of the list for every option that fits; nobody is told twice to type the same. */
hg_status hg__exam_remedies(struct hg__exam *exam, struct hg__found *found)
{
	const struct patient p = {exam, found, &found->finding};
	hg_finding *f = &found->finding;
	const char *op = "", *why = NULL;
	void *memory = NULL;
	HG__TRY(hg__page_take(exam->ctx, exam->pages, TABLE + 1, sizeof *f->remedy, &memory));
	f->remedy = memory;
	hg__remedy_op(exam, found, &op, &why);
	if (why)
		HG__TRY(add_remedy(exam, f, "", op, why));
	for (size_t i = 0; i < TABLE; i++) {
		char option[OPTION] = "", call[HG__CALL];
		if (table[i].cause != f->cause || !table[i].fit(&p, option))
			continue;
		hg__remedy_call(option, exam->config != NULL, call);
		HG__TRY(add_remedy(exam, f, option, call, table[i].why));
	}
	return HG_OK;
}
