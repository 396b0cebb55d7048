#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "doctor/finding.h"
#include "doctor/words.h"

/* A finding as a headline: what happened, for a reader who has never heard of this library, and
 * what to do. */

enum { NAME = 160 };
struct headline {
	struct hg__words words;
	const hg_finding *f;
	char where[NAME]; /* the name of the row: "node 777" */
};
#define SAY(h, ...) hg__say(&(h)->words, __VA_ARGS__)

/* ---- what happened ---- */

/* What a sum adds up: products along a row, rows of neighbours, of edges or of a graph's nodes,
 * or any other rows. */
static const char *name_of_terms(const hg_finding *f)
{
	if (f->along_columns)
		return "products";
	if (f->over_edges)
		return "edges";
	return f->row_is == HG_ROW_NODE ? "neighbours" : f->row_is == HG_ROW_GRAPH ? "nodes" : "terms";
}

/* "3007 neighbours of node 777", "64 products for gradient of conv1/linear". */
static void say_terms(struct headline *h)
{
	const hg_finding *f = h->f;
	const int of_row = !f->along_columns && (f->row_is == HG_ROW_NODE || f->row_is == HG_ROW_GRAPH);
	SAY(h, "%" PRId64 " %s %s %s", f->terms, name_of_terms(f), of_row ? "of" : "for",
	    of_row ? h->where : f->tensor);
}

static const char *bad_value(const hg_finding *f)
{
	return isnan(f->got)   ? "NaN"
	       : isinf(f->got) ? "infinite"
	                       : "negative, which a mean of squares cannot be";
}

static void say_input(struct headline *h)
{
	const hg_finding *f = h->f;
	const char *what = f->row_is == HG_ROW_WEIGHT ? "Weight" : "Input";
	if (hg__is_label_finding(f)) {
		SAY(h, "Label out of range: %s has %.0f, and there are %.0f classes", h->where, f->got,
		    f->limit);
	} else if (hg__is_running_statistic_finding(f)) {
		SAY(h, "Evaluations are wrong: %s has %.6g in column %" PRId64, f->tensor,
		    isnan(f->got) ? fabs(f->got) : f->got, f->col);
		if (isfinite(f->wide))
			SAY(h, ", while the batch has %.6g", f->wide);
	} else if (isfinite(f->wide)) {
		SAY(h, "%s beyond fp16: %.6g in %s of %s, and fp16 holds 65504 at most", what, f->wide,
		    h->where, f->tensor);
	} else {
		SAY(h, "%s bad before the step: %s of %s is %s", *f->op ? "Optimiser's state" : what,
		    h->where, f->tensor, bad_value(f));
	}
}

static void say_accumulation(struct headline *h)
{
	SAY(h, "%s overflow %swhile summing ", hg__limit_type(h->f),
	    h->f->backward ? "in the backward pass " : "");
	say_terms(h);
}

static void say_store(struct headline *h)
{
	const hg_finding *f = h->f;
	SAY(h, "%s overflow: ", hg__limit_type(f));
	if (f->terms > 1) {
		say_terms(h);
		SAY(h, " add up to %.6g", f->wide);
	} else {
		SAY(h, "%s at %s is %.6g", f->tensor, h->where, f->wide);
	}
}

static void say_loss_scale(struct headline *h)
{
	SAY(h, "%s overflow in %s: loss scale %.8g is too high", hg__limit_type(h->f), h->f->tensor,
	    h->f->scale);
}

static void say_explosion(struct headline *h)
{
	const hg_finding *f = h->f;
	SAY(h, "Exploding gradient: %s reaches %.3g without any loss scale, which %s cannot hold",
	    f->tensor, f->wide / f->scale, hg__limit_type(f));
}

static void say_underflow(struct headline *h)
{
	const hg_finding *f = h->f;
	SAY(h, "fp16 underflow: %" PRId64 " of %" PRId64 " elements of %s are rounded to 0", f->bad,
	    f->count, f->tensor);
	if (f->shift)
		SAY(h, ", because it is stored x 2^-%d to make room for larger ones", (int)f->shift);
}

static void say_swamping(struct headline *h)
{
	const hg_finding *f = h->f;
	SAY(h, "fp16 sum of ");
	say_terms(h);
	SAY(h, " is %.6g, not %.6g: %" PRId64 " terms lost", f->got, f->wide, f->ignored);
}

static void say_zero(struct headline *h)
{
	static const char *const what[] = {
	    [HG_ZERO_NONE] = "Division by zero",       [HG_ZERO_QUOTIENT] = "Division by zero",
	    [HG_ZERO_LOGARITHM] = "Logarithm of zero", [HG_ZERO_ROOT] = "Root of zero",
	    [HG_ZERO_VARIANCE] = "Norm of a constant",
	};
	const hg_finding *f = h->f;
	const double *x = hg__negative_operand(f);
	if (x)
		SAY(h, "%s of a negative number, %.6g", f->zero == HG_ZERO_ROOT ? "Root" : "Logarithm", *x);
	else
		SAY(h, "%s", what[f->zero]);
	SAY(h, ": %s at %s", f->tensor, h->where);
}

static void say_optimiser(struct headline *h)
{
	const hg_finding *f = h->f;
	if (*f->grown) {
		SAY(h, "Learning rate too high: %s has grown to %.3g times its size, and %s overflows",
		    f->grown, f->grown_by, f->tensor);
		return;
	}
	SAY(h, "%s makes %s %s", f->op, f->tensor, isnan(f->got) ? "NaN" : "infinite");
	if (isfinite(f->wide))
		SAY(h, ": %.6g is beyond %s", f->wide, hg__limit_type(f));
}

static void (*const say_what[HG_CAUSE_COUNT])(struct headline *h) = {
    [HG_CAUSE_INPUT] = say_input,         [HG_CAUSE_ACCUMULATION] = say_accumulation,
    [HG_CAUSE_STORE] = say_store,         [HG_CAUSE_LOSS_SCALE] = say_loss_scale,
    [HG_CAUSE_EXPLOSION] = say_explosion, [HG_CAUSE_UNDERFLOW] = say_underflow,
    [HG_CAUSE_SWAMPING] = say_swamping,   [HG_CAUSE_ZERO] = say_zero,
    [HG_CAUSE_OPTIMISER] = say_optimiser,
};

/* ---- what to do ---- */

/* An option or a call; "" if the remedy is neither. */
static const char *what_to_type(const hg_remedy *r)
{
	return *r->option ? r->option : r->call;
}

/* The first remedy that worked; else the first one that was not tried; else what is to be done by
 * hand. */
static const hg_remedy *best_remedy(const hg_finding *f)
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

static void say_remedy(struct headline *h)
{
	const hg_remedy *r = best_remedy(h->f);
	if (!r && h->f->remedies)
		SAY(h, ". None of the %d options tried helps", h->f->remedies);
	else if (r && r->tried)
		SAY(h, ". Fix: %s", what_to_type(r));
	else if (r && *what_to_type(r))
		SAY(h, ". Try: %s", what_to_type(r));
	else if (r)
		SAY(h, ". By hand: %s", r->why);
}

int hg_finding_headline(const hg_finding *f, hg_place_fn place, void *user, char *text, size_t size)
{
	struct headline h = {.words = {text, size, 0}, .f = f};
	if (size)
		*text = 0;
	if (!f || (unsigned)f->cause >= HG_CAUSE_COUNT)
		return 0;
	if (place)
		place(user, f, h.where, sizeof h.where);
	else
		hg__name_row(f, h.where, sizeof h.where);
	if (f->evaluation && f->cause != HG_CAUSE_INPUT)
		SAY(&h, "In evaluation: ");
	say_what[f->cause](&h);
	say_remedy(&h);
	return (int)h.words.length;
}
