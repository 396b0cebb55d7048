#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "doctor/exam.h"

/* A finding as one or two sentences: where, what, why. */

#define LENGTH 1024
struct text {
	char line[LENGTH];
	size_t length;
};

static void say(struct text *t, const char *format, ...) HG_PRINTF(2, 3);
static void say(struct text *t, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	const int more = vsnprintf(t->line + t->length, LENGTH - t->length, format, args);
	va_end(args);
	if (more > 0)
		t->length = t->length + (size_t)more < LENGTH ? t->length + (size_t)more : LENGTH - 1;
}

static void say_place(struct text *t, const hg_finding *f)
{
	static const char *const row[] = {
	    [HG_ROW_NODE] = "node", [HG_ROW_EDGE] = "edge", [HG_ROW_GRAPH] = "graph", [HG_ROW_WEIGHT] = "row", [HG_ROW_SCALAR] = "row"};
	static const char *const col[] = {
	    [HG_ROW_NODE] = "feature", [HG_ROW_EDGE] = "head", [HG_ROW_GRAPH] = "feature", [HG_ROW_WEIGHT] = "column", [HG_ROW_SCALAR] = "column"};
	if (f->row_is == HG_ROW_EDGE && f->edge_row >= 0)
		say(t, " at edge %" PRId64 " (%" PRId64 " <- %" PRId64 "), head %" PRId64, f->row, f->edge_row, f->edge_col, f->col);
	else if (f->cause == HG_CAUSE_INPUT && f->limit < hg_dtype_get(HG_F16)->overflow)
		say(t, " at %s %" PRId64, row[f->row_is], f->row);
	else if (f->row_is != HG_ROW_SCALAR)
		say(t, " at %s %" PRId64 ", %s %" PRId64, row[f->row_is], f->row, col[f->row_is], f->col);
}

static void say_who(struct text *t, const hg_finding *f)
{
	say(t, "step %" PRId64 ": %s%s", f->step, f->tensor, f->node >= 0 ? " (" : "");
	if (f->node >= 0)
		say(t, "%s of %s%s%s)", f->backward ? "backward" : "result", f->op, *f->layer ? " in " : "", f->layer);
	say_place(t, f);
	say(t, " is %.7g", f->got);
}

static void say_input(struct text *t, const hg_finding *f)
{
	if (f->limit < hg_dtype_get(HG_F16)->overflow)
		say(t, ": there are %.0f classes, so the largest label is %.0f", f->limit, f->limit - 1.0);
	else if (f->node >= 0)
		say(t, " in f16, %.7g as it was given: a half holds 65504 at most", f->wide);
	else
		say(t, " before the step begins");
}

static void say_sum(struct text *t, const hg_finding *f)
{
	if (f->terms)
		say(t, "; a sum of %" PRId64 " addends", f->terms);
	if (f->tops)
		say(t, ", the largest %.6g = %.6g * %.6g from row %" PRId64 ", column %" PRId64, f->top[0].value, f->top[0].factor, f->top[0].operand, f->top[0].row,
		    f->top[0].col);
}

static void say_accumulation(struct text *t, const hg_finding *f)
{
	say(t, ": the running sum in f16 stood at %.7g and overflowed with addend %" PRId64 " of %" PRId64 "; the sum is %.7g", f->partial, f->partial_at, f->terms,
	    f->wide);
}

static void say_store(struct text *t, const hg_finding *f)
{
	say(t, ": the result is %.7g and the type ends at %.7g", f->wide, f->limit);
	say_sum(t, f);
}

static void say_loss_scale(struct text *t, const hg_finding *f)
{
	say(t, ": %.7g at loss scale %.7g, which is %.7g without it", f->wide, f->scale, f->wide / f->scale);
	say_sum(t, f);
}

static void say_underflow(struct text *t, const hg_finding *f)
{
	say(t, ", and so are %" PRId64 " of %" PRId64 " elements that should be others: this one %.7g, below half of the smallest half, 2^-24", f->bad, f->count,
	    f->wide);
	if (f->backward)
		say(t, ", at loss scale %.7g", f->scale);
}

static void say_swamping(struct text *t, const hg_finding *f)
{
	say(t, ", the sum is %.7g: in f16 it last grew with addend %" PRId64 " of %" PRId64 ", to %.7g, where an addend counts from %.7g on", f->wide,
	    f->partial_at, f->terms, f->partial, f->limit);
}

static void say_zero(struct text *t, const hg_finding *f)
{
	say(t, ": %s of what is zero or nearly zero", strcmp(f->op, "log") == 0 ? "the logarithm" : strcmp(f->op, "sqrt") == 0 ? "the root" : "a quotient");
	if (strstr(f->op, "norm"))
		say(t, ", a variance beside eps");
}

static void say_optimiser(struct text *t, const hg_finding *f)
{
	say(t, " after the update by %s of finite gradients; the master weight is %.7g", f->op, f->wide);
}

static void (*const say_why[HG_CAUSE_COUNT])(struct text *t, const hg_finding *f) = {
    [HG_CAUSE_INPUT] = say_input,          [HG_CAUSE_ACCUMULATION] = say_accumulation,
    [HG_CAUSE_STORE] = say_store,          [HG_CAUSE_LOSS_SCALE] = say_loss_scale,
    [HG_CAUSE_EXPLOSION] = say_loss_scale, [HG_CAUSE_UNDERFLOW] = say_underflow,
    [HG_CAUSE_SWAMPING] = say_swamping,    [HG_CAUSE_ZERO] = say_zero,
    [HG_CAUSE_OPTIMISER] = say_optimiser,
};

hg_status hg__exam_sentence(struct hg__exam *exam, struct hg__found *found)
{
	hg_finding *f = &found->finding;
	struct text t = {.length = 0};
	say_who(&t, f);
	say_why[f->cause](&t, f);
	if (f->bad > 1 && f->cause != HG_CAUSE_UNDERFLOW)
		say(&t, "; %" PRId64 " of %" PRId64 " elements", f->bad, f->count);
	return hg__page_text(exam->ctx, exam->pages, &f->sentence, "%s. %s.", t.line, hg_cause_text(f->cause));
}
