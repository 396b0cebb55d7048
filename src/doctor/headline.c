#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "doctor/replay.h"

/* A finding as a headline: what happened, for who has never heard of this library, and what to
 * do. */

enum { NAME = 160 };
struct line {
	char *text;
	size_t size, length; /* length: of all, also what does not fit */
	const hg_finding *f;
	char where[NAME]; /* the reader's name of the row: "node 777" */
};

static void say(struct line *l, const char *format, ...) HG_PRINTF(2, 3);
static void say(struct line *l, const char *format, ...)
{
	const size_t at = l->length < l->size ? l->length : l->size;
	va_list args;
	va_start(args, format);
	const int more = hg__vprint(l->text + at, l->size - at, format, args);
	va_end(args);
	l->length += more > 0 ? (size_t)more : 0;
}

/* ---- what happened ---- */

static const char *type_name(const hg_finding *f)
{
	return f->limit > 0x1p127 ? "fp32" : "fp16";
}

/* What a sum adds up: rows of other nodes, rows of a graph's nodes, products along a row, or
 * rows of anything. */
static const char *terms_name(const hg_finding *f)
{
	if (f->along_columns)
		return "products";
	return f->row_is == HG_ROW_NODE ? "neighbours" : f->row_is == HG_ROW_GRAPH ? "nodes" : "terms";
}

/* "3007 neighbours of node 777", "64 products of gradient of conv1/linear". */
static void say_terms(struct line *l)
{
	const hg_finding *f = l->f;
	const int in_rows =
	    !f->along_columns && (f->row_is == HG_ROW_NODE || f->row_is == HG_ROW_GRAPH);
	say(l, "%" PRId64 " %s %s %s", f->terms, terms_name(f), in_rows ? "of" : "for",
	    in_rows ? l->where : f->tensor);
}

static void say_statistics(struct line *l)
{
	const hg_finding *f = l->f;
	say(l, "Evaluations are wrong: %s has %.6g in column %" PRId64, f->tensor,
	    isnan(f->got) ? fabs(f->got) : f->got, f->col);
	if (isfinite(f->wide))
		say(l, ", where the batch has %.6g", f->wide);
}

static void say_input(struct line *l)
{
	const hg_finding *f = l->f;
	if (f->limit < hg_dtype_get(HG_F16)->overflow)
		say(l, "Label out of range: %s has %.0f, and there are %.0f classes", l->where, f->got,
		    f->limit);
	else if (hg__is_of_statistics(f))
		say_statistics(l);
	else if (isfinite(f->wide))
		say(l, "%s beyond fp16: %.6g in %s of %s, and fp16 ends at 65504",
		    f->row_is == HG_ROW_WEIGHT ? "Weight" : "Input", f->wide, l->where, f->tensor);
	else
		say(l, "%s bad before the step: %s of %s is %s",
		    *f->op                       ? "Optimiser's state"
		    : f->row_is == HG_ROW_WEIGHT ? "Weight"
		                                 : "Input",
		    l->where, f->tensor,
		    isnan(f->got)   ? "NaN"
		    : isinf(f->got) ? "infinite"
		                    : "below 0, which no mean of squares is");
}

static void say_accumulation(struct line *l)
{
	say(l, "%s overflow %swhile summing ", type_name(l->f),
	    l->f->backward ? "in the backward pass " : "");
	say_terms(l);
}

static void say_store(struct line *l)
{
	const hg_finding *f = l->f;
	say(l, "%s overflow: ", type_name(f));
	if (f->terms > 1) {
		say_terms(l);
		say(l, " add up to %.6g", f->wide);
	} else {
		say(l, "%s at %s is %.6g", f->tensor, l->where, f->wide);
	}
}

static void say_loss_scale(struct line *l)
{
	say(l, "%s overflow in %s: loss scale %.8g is too high", type_name(l->f), l->f->tensor,
	    l->f->scale);
}

static void say_explosion(struct line *l)
{
	say(l, "Exploding gradient: %s reaches %.3g without any loss scale, beyond %s", l->f->tensor,
	    l->f->wide / l->f->scale, type_name(l->f));
}

static void say_underflow(struct line *l)
{
	say(l, "fp16 underflow: %" PRId64 " of %" PRId64 " elements of %s are rounded to 0", l->f->bad,
	    l->f->count, l->f->tensor);
	if (l->f->shift)
		say(l, ": it is stored x 2^-%d, since it has larger ones", (int)l->f->shift);
}

static void say_swamping(struct line *l)
{
	say(l, "fp16 sum of ");
	say_terms(l);
	say(l, " is %.6g, not %.6g: %" PRId64 " terms lost", l->f->got, l->f->wide, l->f->ignored);
}

static void say_zero(struct line *l)
{
	static const char *const what[] = {
	    [HG_ZERO_NONE] = "Division by zero",
	    [HG_ZERO_QUOTIENT] = "Division by zero",
	    [HG_ZERO_LOGARITHM] = "Logarithm of zero",
	    [HG_ZERO_ROOT] = "Root of zero",
	    [HG_ZERO_VARIANCE] = "Norm of what is constant",
	};
	const double *x = hg__negative_operand(l->f);
	if (x)
		say(l, "%s of a negative number, %.6g", l->f->zero == HG_ZERO_ROOT ? "Root" : "Logarithm",
		    *x);
	else
		say(l, "%s", what[l->f->zero]);
	say(l, ": %s at %s", l->f->tensor, l->where);
}

static void say_optimiser(struct line *l)
{
	if (*l->f->grown) {
		say(l, "Learning rate too high: %s has grown to %.3g times its size, and %s overflows",
		    l->f->grown, l->f->grown_by, l->f->tensor);
		return;
	}
	say(l, "%s makes %s %s", l->f->op, l->f->tensor, isnan(l->f->got) ? "NaN" : "infinite");
	if (isfinite(l->f->wide))
		say(l, ": %.6g is beyond %s", l->f->wide, type_name(l->f));
}

static void (*const say_what[HG_CAUSE_COUNT])(struct line *l) = {
    [HG_CAUSE_INPUT] = say_input,         [HG_CAUSE_ACCUMULATION] = say_accumulation,
    [HG_CAUSE_STORE] = say_store,         [HG_CAUSE_LOSS_SCALE] = say_loss_scale,
    [HG_CAUSE_EXPLOSION] = say_explosion, [HG_CAUSE_UNDERFLOW] = say_underflow,
    [HG_CAUSE_SWAMPING] = say_swamping,   [HG_CAUSE_ZERO] = say_zero,
    [HG_CAUSE_OPTIMISER] = say_optimiser,
};

/* ---- what to do ---- */

/* As it is typed, or called; "" where it is neither. */
static const char *what_to_type(const hg_remedy *r)
{
	return *r->option ? r->option : r->call;
}

/* The first that is known to help; else the first that nobody has tried; else what is to be done
 * by hand. */
static const hg_remedy *best(const hg_finding *f)
{
	const hg_remedy *untried = NULL, *by_hand = NULL;
	for (int i = 0; i < f->remedies; i++) {
		const hg_remedy *r = &f->remedy[i];
		if (r->tried && r->worked)
			return r;
		if (!*what_to_type(r))
			by_hand = by_hand ? by_hand : r;
		else if (!r->tried)
			untried = untried ? untried : r;
	}
	return untried ? untried : by_hand;
}

static void say_remedy(struct line *l)
{
	const hg_remedy *r = best(l->f);
	if (!r && l->f->remedies)
		say(l, ". None of the %d options tried helps", l->f->remedies);
	else if (r && r->tried)
		say(l, ". Fix: %s", what_to_type(r));
	else if (r && *what_to_type(r))
		say(l, ". Try: %s", what_to_type(r));
	else if (r)
		say(l, ". By hand: %s", r->why);
}

/* A row without the reader's name for it. */
static void name_row(const hg_finding *f, char *name, size_t size)
{
	static const char *const row[] = {[HG_ROW_NODE] = "node",
	                                  [HG_ROW_EDGE] = "edge",
	                                  [HG_ROW_GRAPH] = "graph",
	                                  [HG_ROW_WEIGHT] = "row",
	                                  [HG_ROW_SCALAR] = "row"};
	(void)snprintf(name, size, "%s %" PRId64, row[f->row_is], f->row);
}

int hg_finding_headline(const hg_finding *f, hg_place_fn place, void *user, char *text, size_t size)
{
	struct line l = {.text = text, .size = size, .f = f};
	if (size)
		*text = 0;
	if (!f || (unsigned)f->cause >= HG_CAUSE_COUNT)
		return 0;
	if (place)
		place(user, f, l.where, sizeof l.where);
	else
		name_row(f, l.where, sizeof l.where);
	if (f->evaluation && f->cause != HG_CAUSE_INPUT)
		say(&l, "In evaluation: ");
	say_what[f->cause](&l);
	say_remedy(&l);
	return (int)l.length;
}
