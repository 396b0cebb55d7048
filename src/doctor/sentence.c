#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "doctor/replay.h"

/* A finding as one sentence: where, what, why. */

enum { NAME = 160, LENGTH = 1024 };
struct text {
	char *line;
	size_t size, length; /* length: of all, also what does not fit */
	int named;           /* the reader has names of the rows */
};

static void say(struct text *t, const char *format, ...) HG_PRINTF(2, 3);
static void say(struct text *t, const char *format, ...)
{
	const size_t at = t->length < t->size ? t->length : t->size;
	va_list args;
	va_start(args, format);
	const int more = hg__vprint(t->line + at, t->size - at, format, args);
	va_end(args);
	t->length += more > 0 ? (size_t)more : 0;
}

/* ---- where ---- */

static void name_row(const hg_finding *f, char *name, size_t room)
{
	static const char *const row[] = {[HG_ROW_NODE] = "node",
	                                  [HG_ROW_EDGE] = "edge",
	                                  [HG_ROW_GRAPH] = "graph",
	                                  [HG_ROW_WEIGHT] = "row",
	                                  [HG_ROW_SCALAR] = "row"};
	if (f->row_is == HG_ROW_EDGE && f->edge_row >= 0)
		(void)snprintf(name, room, "edge %" PRId64 " (%" PRId64 " <- %" PRId64 ")", f->row,
		               f->edge_row, f->edge_col);
	else
		(void)snprintf(name, room, "%s %" PRId64, row[f->row_is], f->row);
}

/* A label beyond the classes: it has a row and no column. */
static int is_label(const hg_finding *f)
{
	return f->cause == HG_CAUSE_INPUT && f->limit < hg_dtype_get(HG_F16)->overflow;
}

/* A column by what it is: an attention head, and of which end of the edge, or a feature. */
static void say_column(struct text *t, const hg_finding *f)
{
	static const char *const col[] = {[HG_ROW_NODE] = "feature",
	                                  [HG_ROW_EDGE] = "head",
	                                  [HG_ROW_GRAPH] = "feature",
	                                  [HG_ROW_WEIGHT] = "column",
	                                  [HG_ROW_SCALAR] = "column"};
	if (f->head >= 0)
		say(t, ", %s%shead %d", f->head_of, *f->head_of ? " " : "", (int)f->head);
	else
		say(t, ", %s %" PRId64, col[f->row_is], f->col);
}

static void say_place(struct text *t, const hg_finding *f, hg_place_fn place, void *user)
{
	char name[NAME] = "";
	if (f->row_is == HG_ROW_SCALAR)
		return;
	if (place)
		place(user, f, name, sizeof name);
	else
		name_row(f, name, sizeof name);
	say(t, " at %s", name);
	if (!is_label(f))
		say_column(t, f);
}

/* NaN and 0 have no sign that means anything. */
static double plain(double x)
{
	return isnan(x) || x == 0.0 ? fabs(x) : x;
}

/* "fp16", and where it ends; of f32 the same. */
static const char *type_name(const hg_finding *f)
{
	return f->limit > 0x1p127 ? "fp32" : "fp16";
}

static double type_end(const hg_finding *f)
{
	return f->limit > 0x1p127 ? 0x1.fffffep127 : ldexp(65504.0, f->shift);
}

/* "dropout, dropout" tells nobody more. */
static int is_glossed(const hg_finding *f)
{
	return *f->op_words && strcmp(f->op, f->op_words) != 0;
}

static void say_who(struct text *t, const hg_finding *f, hg_place_fn place, void *user)
{
	say(t, "step %" PRId64 ": %s", f->step, f->tensor);
	if (f->node >= 0)
		say(t, " (%s of %s%s%s%s%s)", f->backward ? "backward" : "result", f->op,
		    is_glossed(f) ? ": " : "", is_glossed(f) ? f->op_words : "", *f->layer ? " in " : "",
		    f->layer);
	say_place(t, f, place, user);
	say(t, " is %.7g", plain(f->got));
}

/* ---- why ---- */

static void say_statistics(struct text *t, const hg_finding *f)
{
	if (isfinite(f->wide))
		say(t, ", where the batch has %.7g", f->wide);
	say(t, ": evaluations read it, and training does not");
}

static void say_input(struct text *t, const hg_finding *f)
{
	if (is_label(f))
		say(t, ": there are %.0f classes, so the largest label is %.0f", f->limit, f->limit - 1.0);
	else if (hg__is_of_statistics(f))
		say_statistics(t, f);
	else if (isfinite(f->wide))
		say(t, " in fp16, %.7g %s: fp16 holds 65504 at most", f->wide,
		    f->row_is == HG_ROW_WEIGHT ? "in the fp32 copy of the weights" : "as it was given");
	else
		say(t, " before the step begins");
}

/* Who has names of the nodes lists the terms by them. */
static void say_sum(struct text *t, const hg_finding *f)
{
	if (f->terms)
		say(t, "; a sum of %" PRId64 " terms", f->terms);
	if (f->tops && !t->named)
		say(t, ", the largest %.6g = %.6g * %.6g from row %" PRId64 ", column %" PRId64,
		    f->top[0].value, f->top[0].factor, f->top[0].operand, f->top[0].row, f->top[0].col);
}

/* Before the factor of the row the running sum is another number than in the result's measure. */
static void say_factor(struct text *t, const hg_finding *f)
{
	if (f->partial_factor != 1.0)
		say(t, " (before its factor %.6g)", f->partial_factor);
}

static void say_accumulation(struct text *t, const hg_finding *f)
{
	say(t, ": the running sum in fp16 stood at %.7g", f->partial);
	say_factor(t, f);
	say(t, " and overflowed with term %" PRId64 " of %" PRId64 "; the sum itself is %.7g",
	    f->partial_at, f->terms, f->wide);
}

static void say_store(struct text *t, const hg_finding *f)
{
	say(t, ": the result is %.7g, and %s ends at %.7g", f->wide, type_name(f), type_end(f));
	if (f->shift)
		say(t, ", stored x 2^-%d", (int)f->shift);
	say_sum(t, f);
}

static void say_loss_scale(struct text *t, const hg_finding *f)
{
	say(t, ": %.7g at loss scale %.7g, which is %.7g without it", f->wide, f->scale,
	    f->wide / f->scale);
	say_sum(t, f);
}

static void say_underflow(struct text *t, const hg_finding *f)
{
	say(t,
	    ", and so are %" PRId64 " of %" PRId64
	    " elements that should be others: this one %.7g, below half of the "
	    "smallest number in fp16, 2^%d",
	    f->bad, f->count, f->wide, f->shift - 24);
	if (f->shift)
		say(t, ", stored x 2^-%d", (int)f->shift);
	if (f->backward)
		say(t, ", at loss scale %.7g", f->scale);
}

static void say_swamping(struct text *t, const hg_finding *f)
{
	say(t,
	    ", the true sum is %.7g: %" PRId64 " of its %" PRId64
	    " terms, with %.3g %% of the size of all, changed nothing "
	    "in fp16; after term %" PRId64 " it stood at %.7g",
	    f->wide, f->ignored, f->terms, 100.0 * f->ignored_share, f->partial_at, f->partial);
	say_factor(t, f);
	say(t, ", where only a term of %.7g or more counts", f->limit);
}

static void say_zero(struct text *t, const hg_finding *f)
{
	static const char *const of[] = {
	    [HG_ZERO_NONE] = "a quotient of what is zero or nearly zero",
	    [HG_ZERO_QUOTIENT] = "a quotient of what is zero or nearly zero",
	    [HG_ZERO_LOGARITHM] = "the logarithm of what is zero or nearly zero",
	    [HG_ZERO_ROOT] = "the root of what is zero or nearly zero",
	    [HG_ZERO_VARIANCE] = "a quotient of what is zero or nearly zero, a variance beside eps",
	};
	if (hg__negative_operand(f))
		say(t, ": the %s of a negative number", f->zero == HG_ZERO_ROOT ? "root" : "logarithm");
	else
		say(t, ": %s", of[f->zero]);
}

static void say_optimiser(struct text *t, const hg_finding *f)
{
	if (*f->grown) {
		say(t, ": %s is %.3g times as large as it was, so the learning rate is too high", f->grown,
		    f->grown_by);
		return;
	}
	say(t, " after the update by %s of finite gradients; the fp32 copy of the weight is %.7g",
	    f->op, plain(f->wide));
}

static void (*const say_why[HG_CAUSE_COUNT])(struct text *t, const hg_finding *f) = {
    [HG_CAUSE_INPUT] = say_input,          [HG_CAUSE_ACCUMULATION] = say_accumulation,
    [HG_CAUSE_STORE] = say_store,          [HG_CAUSE_LOSS_SCALE] = say_loss_scale,
    [HG_CAUSE_EXPLOSION] = say_loss_scale, [HG_CAUSE_UNDERFLOW] = say_underflow,
    [HG_CAUSE_SWAMPING] = say_swamping,    [HG_CAUSE_ZERO] = say_zero,
    [HG_CAUSE_OPTIMISER] = say_optimiser,
};

int hg_finding_sentence(const hg_finding *f, hg_place_fn place, void *user, char *text, size_t size)
{
	struct text t = {text, size, 0, place != NULL};
	if (size)
		*text = 0;
	if (!f || (unsigned)f->cause >= HG_CAUSE_COUNT)
		return 0;
	say_who(&t, f, place, user);
	say_why[f->cause](&t, f);
	if (f->bad > 1 && f->cause != HG_CAUSE_UNDERFLOW)
		say(&t, "; %" PRId64 " of %" PRId64 " elements", f->bad, f->count);
	return (int)t.length;
}

hg_status hg__write_sentence(struct hg__replay *replay, struct hg__found *found)
{
	hg_finding *f = &found->finding;
	char line[LENGTH];
	(void)hg_finding_sentence(f, NULL, NULL, line, sizeof line);
	return hg__page_text(replay->ctx, replay->pages, &f->sentence, "%s. %s.", line,
	                     hg_cause_text(f->cause));
}
