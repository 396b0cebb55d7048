#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "autograd/about.h"
#include "autograd/range_rule.h"
#include "core/text.h"

/* Checks the record of an op. An op that passes can be recorded, run both ways, bounded, costed and
 * tested from the tables alone. */

/* Tests and benchmarks come from the samples. With fewer, an attribute or an optional operand would
 * stay untested, or an error message untried. */
#define GOOD_SAMPLES 4
#define BAD_SAMPLES 3
/* More than any op has. A sampler that never returns 0 is found here. */
#define MOST_SAMPLES 1000

static hg_status hole(char *why, const struct hg__op *op, const char *format, ...) HG_PRINTF(3, 4);
static hg_status hole(char *why, const struct hg__op *op, const char *format, ...)
{
	char text[HG__MESSAGE / 2];
	va_list args;
	va_start(args, format);
	hg__vprint(text, sizeof text, format, args);
	va_end(args);
	snprintf(why, HG__MESSAGE, "op %.64s: %s", op->name && *op->name ? op->name : "(no name)",
	         text);
	return HG_ERR_INTERNAL;
}

static hg_status check_name(const struct hg__op *op, char *why)
{
	if (!op->name || !*op->name)
		return hole(why, op, "name is missing");
	for (const char *c = op->name; *c; c++)
		if (!(islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '_'))
			return hole(why, op, "name may hold a-z, 0-9 and _, found '%c'", *c);
	if (!op->words || !*op->words)
		return hole(why, op, "words are missing: what it does, in plain words");
	return HG_OK;
}

static hg_status check_functions(const struct hg__op *op, char *why)
{
	const struct {
		const char *name;
		int present;
	} functions[] = {
	    {"infer", op->infer != NULL},
	    {"range", op->range != NULL},
	    {"range_back", op->range_back != NULL},
	    {"forward", op->forward != NULL},
	    {"backward", op->backward != NULL},
	    {"sample", op->sample != NULL},
	    {"cost", op->cost != NULL},
	};
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
		if (!functions[i].present)
			return hole(why, op, "%s is missing", functions[i].name);
	return HG_OK;
}

static hg_status check_traits(const struct hg__op *op, char *why)
{
	if (op->min_in < 1 || op->min_in > op->max_in || op->max_in > HG__MAX_IN)
		return hole(why, op, "takes %d to %d operands, expected 1 <= min_in <= max_in <= %d",
		            op->min_in, op->max_in, HG__MAX_IN);
	if (op->same >> op->max_in)
		return hole(why, op, "same is 0x%x, which names operands beyond the %d it takes", op->same,
		            op->max_in);
	if (op->passes >> op->max_in)
		return hole(why, op, "passes is 0x%x, which names operands beyond the %d it takes",
		            op->passes, op->max_in);
	if (op->edges >> op->max_in)
		return hole(why, op, "edges is 0x%x, which names operands beyond the %d it takes",
		            op->edges, op->max_in);
	if (op->one_type >> op->max_in)
		return hole(why, op, "one_type is 0x%x, which names operands beyond the %d it takes",
		            op->one_type, op->max_in);
	if (op->edges && !(op->traits & HG__GRAPH))
		return hole(why, op, "operands with a row for each edge, without GRAPH");
	const struct {
		unsigned trait, needs;
		const char *sentence;
	} rules[] = {
	    {HG__TRANSPOSE, HG__GRAPH, "TRANSPOSE without GRAPH"},
	    {HG__BATCH, HG__GRAPH, "BATCH without GRAPH"},
	    {HG__UNIT_EDGES, HG__TRANSPOSE, "UNIT_EDGES without TRANSPOSE"},
	    {HG__TILES, HG__UNIT_EDGES, "TILES without UNIT_EDGES"},
	    {HG__SCATTERS, HG__GRAPH, "SCATTERS without GRAPH"},
	    {HG__COUNTS_EDGES, HG__GRAPH, "COUNTS_EDGES without GRAPH"},
	};
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
		if (op->traits & rules[i].trait && !(op->traits & rules[i].needs))
			return hole(why, op, "traits contradict: %s", rules[i].sentence);
	if (op->staged && !(op->traits & HG__TILES))
		return hole(why, op, "staged without TILES");
	if (op->transpose && !(op->traits & HG__TRANSPOSE))
		return hole(why, op, "transpose without TRANSPOSE");
	if (op->traits & HG__ELEMENTWISE && op->traits & (HG__GRAPH | HG__LOSS))
		return hole(why, op, "traits contradict: ELEMENTWISE with GRAPH or LOSS");
	return HG_OK;
}

/* What an op says of itself is of operands that it has. */
static hg_status check_about(const struct hg__op *op, char *why)
{
	const struct hg__about *about = hg__about(op);
	for (int i = op->max_in; i < HG__MAX_IN; i++)
		if (about->operand[i] || about->operand_brings[i])
			return hole(why, op, "about: operand %d is named, of %d", i, op->max_in);
	if (about->addends >> op->max_in || about->critical_operand >= op->max_in)
		return hole(why, op, "about names operands beyond the %d it takes", op->max_in);
	if ((about->critical == HG__VARIANCE) != (about->norm != NULL))
		return hole(why, op, "about: VARIANCE and norm go together");
	if (about->rows && !(op->traits & HG__GRAPH))
		return hole(why, op, "about: rows without GRAPH");
	if (about->traits & HG__JOINS_ENDS && !(about->operand[0] && about->operand[1]))
		return hole(why, op, "about: the scores of both ends have names");
	return HG_OK;
}

static int matches(const struct hg__op *op, const struct hg__sample *s)
{
	if (s->n_in < op->min_in || s->n_in > op->max_in || !s->use_graph != !(op->traits & HG__GRAPH))
		return 0;
	for (int i = 0; i < op->min_in; i++)
		if (!s->in[i].shape.present)
			return 0;
	return 1;
}

static hg_status check_samples(const struct hg__op *op, char *why)
{
	static const struct hg__extent extent = {
	    .n = 7, .m = 19, .graphs = 2, .d = 5, .heads = 2, .state = HG_F16};
	int good = 0, bad = 0;
	struct hg__sample s;
	for (int i = 0; op->sample(i, &extent, &s); i++) {
		if (i == MOST_SAMPLES)
			return hole(why, op, "sample never ends");
		if (!s.what || !*s.what)
			return hole(why, op, "sample %d does not say what it is", i);
		if (s.expect == HG_OK && !matches(op, &s))
			return hole(why, op, "sample \"%s\" is said to be good, but has %d operands%s", s.what,
			            s.n_in, s.use_graph ? " and a graph" : "");
		good += s.expect == HG_OK;
		bad += s.expect < 0;
	}
	return good >= GOOD_SAMPLES && bad >= BAD_SAMPLES
	           ? HG_OK
	           : hole(why, op, "%d good and %d bad samples, expected at least %d and %d", good, bad,
	                  GOOD_SAMPLES, BAD_SAMPLES);
}

/* Do the range rules set their bounds? All operands of the first sample get the bound 1 and the
 * results start as NaN, so a result that is still a NaN was not set. Rules that need a graph are
 * checked by the battery, on a tape. */
static hg_status check_range(const struct hg__op *op, char *why)
{
	static const struct hg__extent extent = {
	    .n = 7, .m = 19, .graphs = 2, .d = 4, .heads = 2, .state = HG_F16};
	struct hg__sample s;
	if (op->traits & HG__GRAPH || !op->sample(0, &extent, &s))
		return HG_OK;
	struct hg__node node = {.op = op, .n_in = s.n_in};
	memcpy(node.attr, s.attr, sizeof node.attr);
	struct hg__range r = {.node = &node, .mode = HG_TRAIN, .dout = 1.0};
	struct hg__derivation how = {.rounding.depth = 1.0};
	struct hg__gradients grad = {.rounding = how.rounding};
	for (int i = 0; i < HG__MAX_IN; i++) {
		r.shape[i] = s.in[i].shape;
		r.in[i] = hg__at_most(s.in[i].shape.present ? 1.0 : 0.0);
		grad.largest[i] = NAN;
	}
	r.out = op->range(&r, &how);
	if (!(r.out.largest >= 0.0))
		return hole(why, op, "range sets no bound");
	op->range_back(&r, &grad);
	return grad.largest[0] >= 0.0 ? HG_OK : hole(why, op, "range_back sets no bound for operand 0");
}

hg_status hg__op_check(const struct hg__op *op, char *why)
{
	static hg_status (*const checks[])(const struct hg__op *, char *) = {
	    check_name, check_functions, check_traits, check_about, check_samples, check_range};
	why[0] = '\0';
	for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
		HG__TRY(checks[i](op, why));
	return HG_OK;
}
