/* What is known of the result of a node, and whether it is stored in f16: the op's range rule, the
 * roundings of its kernel, and the policy, in this order. */
#include "autograd/result_range.h"

#include <stdarg.h>
#include <string.h>

#include "core/text.h"
#include "precision/bound.h"

static struct hg__known operand_known(const struct hg__value *operand, const hg_graph *graph,
                                      enum hg__assumption assumption)
{
	if (!operand)
		return hg__at_most(0.0);
	struct hg__known known = operand->known[assumption];
	if (graph && known.row_graph != graph) /* its rows are not those of this node's sums */
		known.row_sum = INFINITY;
	return known;
}

hg_status hg__tape_range(const hg_tape *tape, const struct hg__node *node,
                         enum hg__assumption assumption, struct hg__range *r)
{
	const hg_graph_facts none = HG_GRAPH_FACTS_INIT;
	*r = (struct hg__range){.node = node, .mode = tape->mode, .facts = none};
	for (int i = 0; i < HG__MAX_IN; i++) {
		const struct hg__value *operand = hg__operand(&tape->recording, node, i);
		r->shape[i] = hg__value_shape(operand);
		r->in[i] = operand_known(operand, node->graph, assumption);
	}
	if (!node->graph)
		return HG_OK;
	r->batch_max = hg__graph_batch_max(node->graph);
	r->batch_min = hg__graph_batch_min(node->graph);
	return hg_graph_facts_get(node->graph, &r->facts);
}

/* The lower bound on |out| after it is rounded and stored x 2^-shift. Each rounding on the way
 * changes it by at most a share u of itself. */
static double stored_least(double least, double depth, hg_dtype dtype, int shift)
{
	const double rounded = ldexp(least * (1.0 - hg__gamma(depth, hg_dtype_get(HG_F32)->u)), -shift),
	             stored = rounded - hg__bound_narrow(dtype, rounded);
	return stored > 0.0 && stored < (double)INFINITY ? ldexp(stored, shift) : 0.0;
}

static void add_words(struct hg__result *result, const char *format, ...) HG_PRINTF(2, 3);
static void add_words(struct hg__result *result, const char *format, ...)
{
	const size_t length = strlen(result->because);
	va_list args;
	va_start(args, format);
	(void)hg__vprint(result->because + length, sizeof result->because - length, format, args);
	va_end(args);
}

/* Runs the rule with the facts under one assumption. Returns the result as it is narrowed; what is
 * known of it besides its largest element goes to result->known. */
static hg_status apply_rule(const hg_tape *tape, const struct hg__node *node, hg_dtype dtype,
                            enum hg__assumption assumption, struct hg__result *result,
                            struct hg__narrowing *n)
{
	const hg_policy *policy = &tape->params->policy;
	struct hg__range r;
	HG__TRY(hg__tape_range(tape, node, assumption, &r));
	struct hg__derivation how = {.rounding = hg__preset_rounding(&r)};
	struct hg__known *out = &result->known[assumption];
	*out = node->op->range(&r, &how);
	*n = (struct hg__narrowing){.bound = isnan(out->largest) ? (double)INFINITY : out->largest,
	                            .rounding = how.rounding,
	                            .shift = node->shift,
	                            .state = dtype,
	                            .accumulate = dtype == HG_F16 && how.rounding.sums.terms > 0
	                                              ? policy->accumulate
	                                              : HG_ACC_F32,
	                            .unproved = node->shadow ? HG_UNPROVED_REFUSE : policy->unproved};
	out->least = stored_least(out->least, how.rounding.depth, dtype, node->shift);
	/* A node without a graph passes on the rows of operand 0. */
	out->row_graph = node->graph ? node->graph : r.in[0].row_graph;
	memcpy(result->because, how.because, sizeof result->because);
	return HG_OK;
}

hg_status hg__bound_result(const hg_tape *tape, struct hg__node *node, hg_dtype dtype,
                           struct hg__result *result)
{
	struct hg__narrowing n[HG__ASSUMPTIONS];
	for (int a = HG__UNCONDITIONAL; a <= HG__ASSUMED; a++)
		HG__TRY(apply_rule(tape, node, dtype, (enum hg__assumption)a, result, &n[a]));
	const struct hg__decision decision = hg__decide(n);
	node->accumulate = n[HG__ASSUMED].accumulate;
	node->verdict = decision.verdict;
	node->by_weights = decision.by_weights;
	for (int a = HG__UNCONDITIONAL; a <= HG__ASSUMED; a++) {
		node->rule_bound[a] = decision.rule_bound[a];
		result->known[a].largest = decision.bound[a];
	}
	result->exact = n[HG__ASSUMED].bound;
	if (node->accumulate != HG_ACC_F32)
		add_words(result, "; sums of at most %.3g before they are scaled",
		          hg__partial(node->accumulate, &n[HG__ASSUMED].rounding.sums));
	if (node->shift)
		add_words(result, "; stored x 2^-%d", node->shift);
	return HG_OK;
}
