/* Findings as sentences, each with what to do. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fitness/report.h"

const char *hg_severity_name(hg_severity severity)
{
	static const char *const names[HG_SEVERITIES] = {"note", "loss", "refused"};
	return (unsigned)severity < HG_SEVERITIES ? names[severity] : "unknown";
}

static void say(char *line, const char *format, ...) HG_PRINTF(2, 3);
static void say(char *line, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	hg__data_say(line, format, args);
	va_end(args);
}

/* "column 3", or "the weights of the edges". */
struct subject {
	char text[48];
};

static struct subject subject_of(const hg_fitness_finding *f)
{
	struct subject s = {"the weights of the edges"};
	if (!f->weights)
		snprintf(s.text, sizeof s.text, "column %" PRId64, f->at);
	return s;
}

static const hg_fitness_column *facts_of(const hg_fitness *r, const hg_fitness_finding *f)
{
	return f->weights ? &r->weight : &r->column[f->at];
}

/* What to do about a column, or about weights, which only sums in fp16 narrow. */
static const char *remedy_of(const hg_fitness_finding *f)
{
	return f->weights                                  ? "--precision fp16 keeps them in f32"
	       : strcmp(f->option, "--row-normalize") == 0 ? "--row-normalize, or --clip"
	       : strcmp(f->option, "--clip") == 0          ? "--clip"
	       : f->kind == HG_FITNESS_OVERFLOW            ? "--standardize, or --clip"
	                                                   : "--standardize";
}

static double percent(const hg_fitness_finding *f)
{
	return f->of > 0 ? 100.0 * (double)f->count / (double)f->of : 0.0;
}

static const char *row_name(const hg_fitness *r)
{
	return r->batch ? "graph" : "node";
}

/* The distance of halves at x. */
static double half_step(double x)
{
	int exponent = 0;
	(void)frexp(fabs(x), &exponent); /* |x| = m * 2^exponent, m in [0.5, 1) */
	return x == 0.0 || exponent < -13 ? 0x1p-24 : ldexp(1.0, exponent - 11);
}

static void say_refusal(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	(void)r;
	say(line, "%s", f->refusal);
}

static void say_nonfinite(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	(void)r;
	say(line,
	    "%s: %" PRId64 " of %" PRId64 " values are NaN or infinite: replace them at the source",
	    subject_of(f).text, f->count, f->of);
}

static void say_overflow(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	(void)r;
	say(line,
	    "%s: largest %.3g overflows fp16 (%" PRId64 " of %" PRId64 " values become infinite): %s",
	    subject_of(f).text, f->value, f->count, f->of, remedy_of(f));
}

static void say_spread(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	const hg_fitness_column *c = facts_of(r, f);
	const double bits = f->count > 1 ? fmax(0.0, -log2(f->value)) : 0.0;
	const int by_quartiles = c->low < c->high;
	const double from = by_quartiles ? c->low : c->mean - c->deviation,
	             to = by_quartiles ? c->high : c->mean + c->deviation;
	char remedy[HG_DATA_MESSAGE];
	if (f->option[0])
		say(remedy, "%s", remedy_of(f));
	else
		say(remedy,
		    "replace values far from these at the source (it has %.6g to %.6g), then --standardize",
		    c->least, c->most);
	say(line,
	    "%s keeps %.1f of 11 bits for its spread: %s of its values lie between %.6g and %.6g, "
	    "where "
	    "fp16 steps by %.3g, and of %" PRId64 " different values %" PRId64 " remain: %s",
	    subject_of(f).text, bits, by_quartiles ? "half" : "most", from, to,
	    half_step(fmax(fabs(from), fabs(to))), f->of, f->count, remedy);
}

static void say_vanish(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	(void)r;
	if (f->count == f->of)
		say(line,
		    "%s vanishes: all %" PRId64
		    " values that are not 0 become 0 in fp16 (largest %.3g): %s",
		    subject_of(f).text, f->of, f->value, remedy_of(f));
	else
		say(line,
		    "%s: %.3g %% of its values vanish (%" PRId64 " of %" PRId64
		    " that are not 0 become 0 in fp16): %s",
		    subject_of(f).text, percent(f), f->count, f->of, remedy_of(f));
}

static void say_subnormal(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	(void)r;
	say(line,
	    "%s: %.3g %% of its values are below 6.1e-05 and keep fewer than 11 bits (%" PRId64
	    " of %" PRId64 " that are not 0): %s",
	    subject_of(f).text, percent(f), f->count, f->of, remedy_of(f));
}

static void say_untrained(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	say(line, "class %" PRId64 " has %" PRId64 " labelled %s%s, but none in the training set: %s",
	    f->at, f->count, row_name(r), f->count == 1 ? "" : "s", f->option);
}

static void say_no_split(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	(void)r;
	say(line, "the %s set is empty: %s: %s", f->at == 1 ? "validation" : "test",
	    f->at == 1 ? "no best epoch can be chosen" : "no accuracy can be measured", f->option);
}

static void say_unlabelled(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	say(line,
	    "the training set has %ss without a label, which are not trained on: %" PRId64
	    " of %" PRId64 "; add --labels, or leave them out of the set",
	    row_name(r), f->count, f->of);
}

static void say_empty_class(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	say(line,
	    "classes that label no %s: %" PRId64 " of %" PRId64 ", the first is %" PRId64
	    "; the model has outputs for them: number the labels without gaps",
	    row_name(r), f->count, f->of, f->at);
}

static void say_hub(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	(void)r;
	say(line,
	    "node %" PRId64 " has %.0f neighbours, and a sum in fp16 ignores equal addends after 2048 "
	    "(nodes with more: %" PRId64 "): %s sums in f32",
	    f->at, f->value, f->count, f->option);
}

static void say_sum(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	(void)r;
	say(line,
	    "a sum of features over neighbours may reach %.3g at node %" PRId64
	    ", and fp16 ends at 65504: --precision fp16 rescales what overflows, or %s",
	    f->value, f->at, f->option);
}

static void say_isolated(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	(void)r;
	say(line, "nodes without a neighbour: %" PRId64 " of %" PRId64 "; %s", f->count, f->of,
	    strcmp(f->option, "--self-loops") == 0
	        ? "--self-loops lets them see themselves"
	        : "--largest-component removes them, --self-loops lets them see themselves");
}

static void say_leak(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	(void)r;
	say(line,
	    "nodes of the test set with exactly the features of a training node: %" PRId64
	    " of %" PRId64 "; if they are copies, the accuracy is too good: remove them at the source",
	    f->count, f->of);
}

static void say_zero_rows(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	(void)r;
	say(line,
	    "nodes with nothing but zeros as features: %" PRId64 " of %" PRId64
	    "; only their neighbours tell them apart: --positional adds columns",
	    f->count, f->of);
}

static void say_constant(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	(void)r;
	say(line,
	    "columns with the same value everywhere: %" PRId64 " of %" PRId64 ", the first is %" PRId64
	    " (%.6g); they tell nothing: leave them out at the source",
	    f->count, f->of, f->at, f->value);
}

static void say_unseen(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	(void)r;
	say(line,
	    "columns that were not checked: %" PRId64 " of %" PRId64 ", from column %" PRId64
	    " on; nothing is known of what fp16 does to them",
	    f->count, f->of, f->at);
}

static void say_one_class(char *line, const hg_fitness *r, const hg_fitness_finding *f)
{
	say(line,
	    "all %" PRId64 " labelled %ss are of class %" PRId64
	    ": there is nothing to tell apart; add the labels of other classes",
	    f->of, row_name(r), f->at);
}

static const struct {
	const char *name;
	void (*say)(char *line, const hg_fitness *r, const hg_fitness_finding *f);
} kinds[HG_FITNESS_KINDS] = {
    [HG_FITNESS_REFUSED] = {"refused", say_refusal},
    [HG_FITNESS_NONFINITE] = {"nonfinite", say_nonfinite},
    [HG_FITNESS_OVERFLOW] = {"overflow", say_overflow},
    [HG_FITNESS_SPREAD] = {"spread", say_spread},
    [HG_FITNESS_VANISH] = {"vanish", say_vanish},
    [HG_FITNESS_SUBNORMAL] = {"subnormal", say_subnormal},
    [HG_FITNESS_UNTRAINED] = {"untrained", say_untrained},
    [HG_FITNESS_UNREADY] = {"unready", say_refusal},
    [HG_FITNESS_NO_SPLIT] = {"no-split", say_no_split},
    [HG_FITNESS_UNLABELLED] = {"unlabelled", say_unlabelled},
    [HG_FITNESS_EMPTY_CLASS] = {"empty-class", say_empty_class},
    [HG_FITNESS_HUB] = {"hub", say_hub},
    [HG_FITNESS_SUM] = {"sum", say_sum},
    [HG_FITNESS_ISOLATED] = {"isolated", say_isolated},
    [HG_FITNESS_LEAK] = {"leak", say_leak},
    [HG_FITNESS_ZERO_ROWS] = {"zero-rows", say_zero_rows},
    [HG_FITNESS_CONSTANT] = {"constant", say_constant},
    [HG_FITNESS_UNSEEN] = {"unseen", say_unseen},
    [HG_FITNESS_ONE_CLASS] = {"one-class", say_one_class},
};

const char *hg_fitness_kind_name(hg_fitness_kind kind)
{
	return (unsigned)kind < HG_FITNESS_KINDS ? kinds[kind].name : "unknown";
}

hg_status hg_fitness_sentence(const hg_fitness *report, int64_t finding, char *sentence)
{
	if (!report || !sentence || finding < 0 || finding >= report->findings)
		return HG_ERR_ARG;
	const hg_fitness_finding *f = &report->finding[finding];
	kinds[f->kind].say(sentence, report, f);
	return HG_OK;
}
