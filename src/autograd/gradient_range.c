/* What is known of the gradients: the backward rules of the ops, from the loss back, at loss scale
 * 1 and with every rounding.
 *
 * These bounds are for the tables of explain.c and for the observer. No decision depends on them:
 * if a gradient overflows all the same, the step's finite check finds it and the loss scale
 * shrinks. */
#include "autograd/result_range.h"
#include "precision/bound.h"

/* Roundings on the longest path to the gradient of an operand: any sum that backward can make, and
 * 8 more. Only gradients of parameters are sums over all rows. */
static double preset_depth(const struct hg__recording *recording, const struct hg__range *r,
                           const struct hg__value *operand)
{
	const struct hg__value *out = &recording->value[r->node->out];
	int64_t longest = out->cols;
	const int64_t degrees[] = {r->facts.max_row_degree, r->facts.max_col_degree, r->batch_max};
	for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++)
		longest = degrees[i] > longest ? degrees[i] : longest;
	for (int i = 0; i < r->node->n_in; i++)
		longest = r->shape[i].cols > longest ? r->shape[i].cols : longest;
	if (operand->rows < out->rows)
		longest = out->rows > longest ? out->rows : longest;
	return 8.0 + (double)longest;
}

/* The bound on the gradient of operand i as it is stored in `dtype`. If a partial sum in f16
 * arithmetic may overflow, the result counts as one that may overflow, too. */
static double bound_stored(const struct hg__recording *recording, const struct hg__range *r,
                           const struct hg__gradients *grad, int i, hg_dtype dtype)
{
	struct hg__narrowing n = {.bound =
	                              isnan(grad->largest[i]) ? (double)INFINITY : grad->largest[i],
	                          .rounding = grad->rounding,
	                          .state = dtype,
	                          .accumulate = i == 0 ? r->node->accumulate : HG_ACC_F32,
	                          .unproved = HG_UNPROVED_PROMOTE};
	n.rounding.depth =
	    fmax(grad->depth[i], preset_depth(recording, r, &recording->value[r->node->in[i]]));
	const struct hg__resolved resolved = hg__resolve(&n);
	return resolved.verdict == HG_PROMOTED ? fmax(resolved.bound, hg_dtype_get(HG_F16)->overflow)
	                                       : resolved.bound;
}

/* Bound on the partial sums in f16 arithmetic before they are scaled, for the gradient of operand
 * 0: over a batch, or over a whole row if that is less. hg__partial rounds a term to a half at this
 * magnitude. Here the bound must also hold, times k, for gradients k times as large, k >= 1. So it
 * counts six roundings relative to a term, and four near 0 (bound.h) that a larger loss scale does
 * not increase. */
static double bound_partial_sums(const struct hg__range *r, const struct hg__sums *sums)
{
	const double u = hg_dtype_get(HG_F16)->u,
	             near_zero = 0x1p-25 * (1.0 + 2.0 * r->dout + sums->term);
	if (r->node->accumulate == HG_ACC_F32 || sums->terms == 0)
		return 0.0;
	const int64_t batch = r->node->accumulate == HG_ACC_F16_NAIVE ? sums->terms : HG_BATCH_EDGES;
	const double terms = (double)(sums->terms < batch ? sums->terms : batch);
	const double counted =
	    terms * (sums->term + near_zero) * (1.0 + hg__gamma(6.0, u)) * hg__growth_f16(terms);
	return r->dout == 0.0 ? 0.0 : fmin(counted, sums->whole);
}

hg_status hg__tape_range_back(const hg_tape *tape, const struct hg__node *node,
                              enum hg__assumption assumption, double dout, const hg_dtype *part,
                              struct hg__known_gradient *grad)
{
	struct hg__gradients rule = {.rounding.sums.whole = INFINITY};
	struct hg__range r;
	HG__TRY(hg__tape_range(tape, node, assumption, &r));
	r.out = tape->recording.value[node->out].known[assumption];
	r.dout = dout;
	node->op->range_back(&r, &rule);
	for (int i = 0; i < node->n_in; i++) {
		grad[i] = (struct hg__known_gradient){0.0, 0.0};
		if (node->in[i] < 0)
			continue;
		grad[i].largest = bound_stored(&tape->recording, &r, &rule, i, part[i]);
		if (part[i] == HG_F16)
			grad[i].largest_half =
			    fmax(grad[i].largest, i == 0 ? bound_partial_sums(&r, &rule.rounding.sums) : 0.0);
		grad[i].largest_half = fmax(grad[i].largest_half, rule.half);
	}
	return HG_OK;
}

/* Bounds the gradients of an entry's operands and adds the bounds to those of earlier
 * contributions. Each addition is stored, so each is rounded. */
static hg_status bound_operands(hg_tape *tape, const struct hg__entry *entry,
                                enum hg__assumption assumption)
{
	const struct hg__recording *recording = &tape->recording;
	struct hg__planned_value *planned = tape->plan.value;
	const struct hg__node *node = &entry->node;
	hg_dtype part[HG__MAX_IN];
	struct hg__known_gradient grad[HG__MAX_IN];
	for (int i = 0; i < node->n_in; i++)
		part[i] =
		    node->in[i] < 0 ? HG_F32 : hg__part_dtype(node, i, &recording->value[node->in[i]]);
	HG__TRY(hg__tape_range_back(tape, node, assumption,
	                            planned[node->out].gradient[assumption].largest, part, grad));
	for (int i = 0; i < node->n_in; i++) {
		if (node->in[i] < 0 || !(entry->grads >> i & 1u))
			continue;
		const int32_t root = recording->value[node->in[i]].root;
		struct hg__known_gradient *sum = &planned[root].gradient[assumption];
		const int half = hg__grad_dtype(&recording->value[root]) == HG_F16;
		const double narrowed = half ? 1.0 + 0x1p-11 : 1.0 + 0x1p-24;
		sum->largest = sum->largest > 0.0 ? (sum->largest + grad[i].largest) * narrowed + 0x1p-25
		                                  : grad[i].largest;
		sum->largest_half =
		    fmax(sum->largest_half, fmax(half ? sum->largest : 0.0, grad[i].largest_half));
	}
	return HG_OK;
}

hg_status hg__bound_gradients(hg_tape *tape)
{
	const struct hg__recording *recording = &tape->recording;
	for (int a = HG__UNCONDITIONAL; a <= HG__ASSUMED; a++) {
		if (tape->plan.value[tape->plan.output].grad)
			tape->plan.value[tape->plan.output].gradient[a].largest = 1.0;
		for (int64_t k = recording->entries - 1; k >= 0; k--)
			if (tape->plan.entry[k].back)
				HG__TRY(bound_operands(tape, &recording->entry[k], (enum hg__assumption)a));
	}
	return HG_OK;
}
