#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "doctor/finding.h"
#include "doctor/words.h"

/* A finding as one sentence: where, what, why. */

enum { NAME = 160, LENGTH = 1024 };
struct sentence {
	struct hg__words words;
	const hg_finding *f;
	hg_place_fn place; /* NULL: rows have numbers */
	void *user;
};
#define SAY(s, ...) hg__say(&(s)->words, __VA_ARGS__)

/* ---- where ---- */

/* An attention head, and of which end of the edge it has the scores; or a column by what it is. The
 * values of a node have several columns for each head, so both are said. */
static void say_column(struct sentence *s)
{
	static const char *const kind[] = {[HG_ROW_NODE] = "feature",
	                                   [HG_ROW_EDGE] = "head",
	                                   [HG_ROW_GRAPH] = "feature",
	                                   [HG_ROW_WEIGHT] = "column",
	                                   [HG_ROW_SCALAR] = "column"};
	const hg_finding *f = s->f;
	if (f->head >= 0)
		SAY(s, ", %s%shead %d", f->head_of, *f->head_of ? " " : "", (int)f->head);
	if (f->head < 0 || (f->row_is == HG_ROW_NODE && !*f->head_of))
		SAY(s, ", %s %" PRId64, kind[f->row_is], f->col);
}

static void say_place(struct sentence *s)
{
	const hg_finding *f = s->f;
	char name[NAME] = "";
	if (f->row_is == HG_ROW_SCALAR)
		return;
	if (s->place)
		s->place(s->user, f, name, sizeof name);
	else if (f->row_is == HG_ROW_EDGE && f->edge_row >= 0)
		(void)snprintf(name, sizeof name, "edge %" PRId64 " (%" PRId64 " <- %" PRId64 ")", f->row,
		               f->edge_row, f->edge_col);
	else
		hg__name_row(f, name, sizeof name);
	SAY(s, " at %s", name);
	if (!hg__is_label_finding(f))
		say_column(s);
}

/* The signs of NaN and 0 mean nothing. */
static double without_sign(double x)
{
	return isnan(x) || x == 0.0 ? fabs(x) : x;
}

/* "dropout: dropout" would explain nothing. */
static int needs_words(const hg_finding *f)
{
	return *f->op_words && strcmp(f->op, f->op_words) != 0;
}

static void say_what(struct sentence *s)
{
	const hg_finding *f = s->f;
	SAY(s, "step %" PRId64 ": %s", f->step, f->tensor);
	if (f->node >= 0)
		SAY(s, " (%s of %s%s%s%s%s)", f->backward ? "backward" : "result", f->op,
		    needs_words(f) ? ": " : "", needs_words(f) ? f->op_words : "", *f->layer ? " in " : "",
		    f->layer);
	say_place(s);
	SAY(s, " is %.7g", without_sign(f->got));
}

/* ---- edges of attention ---- */

/* The name of another node than the one at fault. */
static void say_node(struct sentence *s, int64_t row)
{
	hg_finding at = *s->f;
	char name[NAME] = "";
	at.row_is = HG_ROW_NODE;
	at.row = row;
	if (s->place)
		s->place(s->user, &at, name, sizeof name);
	else
		hg__name_row(&at, name, sizeof name);
	SAY(s, "%s", name);
}

static void say_ends(struct sentence *s, const hg_attended_edge *edge)
{
	SAY(s, "from ");
	say_node(s, edge->col);
	SAY(s, " to ");
	say_node(s, edge->row);
}

static void say_bad_score(struct sentence *s)
{
	const hg_attended_edge *edge = &s->f->bad_score;
	SAY(s, "the score of the edge ");
	say_ends(s, edge);
	SAY(s, " in head %d is %.7g%s", (int)edge->head, without_sign(edge->score),
	    isfinite(edge->score) ? ", and fp32 cannot hold it or what it is made of" : "");
}

/* The largest addend that comes along an edge. Only overflows have said that it is a sum. */
static void say_largest_edge(struct sentence *s)
{
	const hg_finding *f = s->f;
	int k = 0;
	while (k < f->tops && f->edge[k].row < 0)
		k++;
	if (!f->attended || f->has_bad_score || k == f->tops)
		return;
	if (f->cause == HG_CAUSE_UNDERFLOW || f->cause == HG_CAUSE_OPTIMISER)
		SAY(s, "; it is a sum of %" PRId64 " terms", f->terms);
	SAY(s, "; the largest along an edge is that ");
	say_ends(s, &f->edge[k]);
	SAY(s, ", with score %.6g and weight %.6g", f->edge[k].score, f->edge[k].weight);
}

/* ---- why ---- */

static void say_input(struct sentence *s)
{
	const hg_finding *f = s->f;
	if (hg__is_label_finding(f)) {
		SAY(s, ": there are %.0f classes, so the largest label is %.0f", f->limit, f->limit - 1.0);
	} else if (hg__is_running_statistic_finding(f)) {
		if (isfinite(f->wide))
			SAY(s, ", while the batch has %.7g", f->wide);
		SAY(s, ": evaluations read it, and training does not");
	} else if (isfinite(f->wide)) {
		SAY(s, " in fp16: %s %.7g, and fp16 holds 65504 at most",
		    f->row_is == HG_ROW_WEIGHT ? "the fp32 copy of the weights has" : "it was given as",
		    f->wide);
	} else {
		SAY(s, " already before the step begins");
	}
	if (f->has_bad_score) {
		SAY(s, "; because of it, ");
		say_bad_score(s);
	}
}

/* A reader with names of its own for the nodes lists the terms by these names. */
static void say_sum(struct sentence *s)
{
	const hg_finding *f = s->f;
	if (f->terms)
		SAY(s, "; it is a sum of %" PRId64 " terms", f->terms);
	if (f->tops && !s->place)
		SAY(s, ", the largest of which is %.6g = %.6g * %.6g from row %" PRId64 ", column %" PRId64,
		    without_sign(f->top[0].value), without_sign(f->top[0].factor),
		    without_sign(f->top[0].operand), f->top[0].row, f->top[0].col);
}

/* The running sum may still have to be multiplied by the factor of the row. */
static void say_factor(struct sentence *s)
{
	if (s->f->partial_factor != 1.0)
		SAY(s, " (not yet multiplied by %.6g)", s->f->partial_factor);
}

static void say_accumulation(struct sentence *s)
{
	const hg_finding *f = s->f;
	SAY(s, ": the running sum in fp16 was %.7g", f->partial);
	say_factor(s);
	SAY(s, " and overflowed with term %" PRId64 " of %" PRId64 "; the sum itself is %.7g",
	    f->partial_at, f->terms, f->wide);
}

/* What a type holds on the scale of the result, which is stored x 2^-shift. */
static double largest_held(const hg_finding *f)
{
	return f->limit > 0x1p127 ? 0x1.fffffep127 : ldexp(65504.0, f->shift);
}

static void say_store(struct sentence *s)
{
	const hg_finding *f = s->f;
	if (f->has_bad_score) {
		SAY(s, ": ");
		say_bad_score(s);
		return;
	}
	SAY(s, ": the result is %.7g, and %s holds %.7g at most", without_sign(f->wide),
	    hg__limit_type(f), largest_held(f));
	if (f->shift)
		SAY(s, ", stored x 2^-%d", (int)f->shift);
	say_sum(s);
}

static void say_loss_scale(struct sentence *s)
{
	const hg_finding *f = s->f;
	SAY(s, ": it would be %.7g at loss scale %.7g, and %.7g without it", f->wide, f->scale,
	    f->wide / f->scale);
	say_sum(s);
}

static void say_underflow(struct sentence *s)
{
	const hg_finding *f = s->f;
	SAY(s, " instead of %.7g, which is below half of the smallest number in fp16, 2^%d", f->wide,
	    f->shift - 24);
	if (f->shift)
		SAY(s, " (stored x 2^-%d)", (int)f->shift);
	if (f->backward)
		SAY(s, ", at loss scale %.7g", f->scale);
	SAY(s, "; %" PRId64 " of %" PRId64 " elements were rounded to 0", f->bad, f->count);
}

static void say_swamping(struct sentence *s)
{
	const hg_finding *f = s->f;
	SAY(s,
	    ", but the true sum is %.7g: %" PRId64 " of its %" PRId64
	    " terms, %.3g %% of the sum of their sizes, were ignored in fp16; after term %" PRId64
	    " the running sum was %.7g",
	    f->wide, f->ignored, f->terms, 100.0 * f->ignored_share, f->partial_at, f->partial);
	say_factor(s);
	SAY(s, ", which no term below %.7g changes", f->limit);
}

static void say_zero(struct sentence *s)
{
	static const char *const what[] = {
	    [HG_ZERO_NONE] = "a division by zero, or nearly zero",
	    [HG_ZERO_QUOTIENT] = "a division by zero, or nearly zero",
	    [HG_ZERO_LOGARITHM] = "the logarithm of zero, or nearly zero",
	    [HG_ZERO_ROOT] = "the root of zero, or nearly zero",
	    [HG_ZERO_VARIANCE] = "a division by the root of a variance that is nearly zero beside eps",
	};
	const hg_finding *f = s->f;
	if (hg__negative_operand(f))
		SAY(s, ": the %s of a negative number", f->zero == HG_ZERO_ROOT ? "root" : "logarithm");
	else
		SAY(s, ": %s", what[f->zero]);
}

static void say_optimiser(struct sentence *s)
{
	const hg_finding *f = s->f;
	if (*f->grown)
		SAY(s, ": %s is %.3g times as large as at the beginning, so the learning rate is too high",
		    f->grown, f->grown_by);
	else
		SAY(s,
		    " after the update by %s, although all gradients are finite; the fp32 copy of the "
		    "weight is %.7g",
		    f->op, without_sign(f->wide));
}

static void (*const say_why[HG_CAUSE_COUNT])(struct sentence *s) = {
    [HG_CAUSE_INPUT] = say_input,          [HG_CAUSE_ACCUMULATION] = say_accumulation,
    [HG_CAUSE_STORE] = say_store,          [HG_CAUSE_LOSS_SCALE] = say_loss_scale,
    [HG_CAUSE_EXPLOSION] = say_loss_scale, [HG_CAUSE_UNDERFLOW] = say_underflow,
    [HG_CAUSE_SWAMPING] = say_swamping,    [HG_CAUSE_ZERO] = say_zero,
    [HG_CAUSE_OPTIMISER] = say_optimiser,
};

int hg_finding_sentence(const hg_finding *f, hg_place_fn place, void *user, char *text, size_t size)
{
	struct sentence s = {{text, size, 0}, f, place, user};
	if (size)
		*text = 0;
	if (!f || (unsigned)f->cause >= HG_CAUSE_COUNT)
		return 0;
	say_what(&s);
	say_why[f->cause](&s);
	say_largest_edge(&s);
	if (f->bad > 1 && f->cause != HG_CAUSE_UNDERFLOW)
		SAY(&s, "; %" PRId64 " of %" PRId64 " elements have this fault", f->bad, f->count);
	return (int)s.words.length;
}

hg_status hg__write_sentence(struct hg__replay *replay, struct hg__finding *finding)
{
	hg_finding *f = &finding->reported;
	char text[LENGTH];
	(void)hg_finding_sentence(f, NULL, NULL, text, sizeof text);
	return hg__report_text(replay->ctx, replay->memory, &f->sentence, "%s. %s.", text,
	                       hg_cause_text(f->cause));
}
