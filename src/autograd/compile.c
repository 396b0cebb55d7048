#include <math.h>
#include <stdio.h>

#include "autograd/tape.h"
#include "precision/bound.h"
#include "precision/range.h"

/* hg_tape_compile: everything between the last recorded node and the first run. This file calls the
 * planning steps in order, checks labels and bounds the gradients. */

/* Class numbers are data that the kernels trust, so they are read once, here: each must be a column
 * of the logits. Negative ones mean "unlabelled". */
static hg_status check_labels(hg_tape *tape, const struct hg__entry *entry,
                              const struct hg__value *labels)
{
	hg_context *ctx = tape->ctx;
	const int64_t classes = tape->value[entry->node.in[0]].cols;
	const size_t count = (size_t)(labels->rows * labels->cols);
	void *memory = NULL;
	HG__TRY(hg__host_alloc(ctx, count, sizeof(int32_t), "labels", &memory));
	const int32_t *label = memory;
	hg_status status = count ? hg_tensor_download(labels->tensor, memory, HG_I32) : HG_OK;
	for (size_t i = 0; i < count && status >= 0; i++)
		if (label[i] >= classes)
			status =
			    hg__fail(ctx, HG_ERR_RANGE,
			             "%s: label %d in row %zu of %s, the logits have %lld columns%s%.40s%s",
			             entry->node.op->name, label[i], i / (size_t)labels->cols,
			             *labels->name ? labels->name : "the labels", (long long)classes,
			             *entry->node.scope ? " (layer " : "", entry->node.scope,
			             *entry->node.scope ? ")" : "");
	hg__host_free(ctx, memory, count * sizeof(int32_t));
	return status;
}

/* Sets counts[r] = 0 for the rows that a loss leaves out: those with a negative class number or a
 * mask of 0. */
static hg_status clear_masked_rows(hg_tape *tape, const struct hg__value *operand, uint8_t *counts)
{
	void *memory = NULL;
	const size_t size = hg_dtype_size(operand->dtype),
	             count = (size_t)(operand->rows * operand->cols);
	HG__TRY(hg__host_alloc(tape->ctx, count, size, "labels and masks", &memory));
	const hg_status status =
	    count ? hg_tensor_download(operand->tensor, memory, operand->dtype) : HG_OK;
	for (size_t i = 0; i < count && status >= 0; i++)
		counts[i] &= operand->dtype == HG_I32 ? ((const int32_t *)memory)[i] >= 0
		                                      : ((const uint8_t *)memory)[i] != 0;
	hg__host_free(tape->ctx, memory, count * size);
	return status;
}

/* The gradient of a mean is divided by the number of rows that count, so the bound needs it. Where
 * a label or mask may change between runs the number stays 0 (unknown): the op then assumes one
 * row. */
hg_status hg__tape_count_rows(hg_tape *tape, struct hg__node *node)
{
	const size_t rows = (size_t)tape->value[node->in[0]].rows;
	void *memory = NULL;
	HG__TRY(hg__host_alloc(tape->ctx, rows, 1, "rows that count", &memory));
	uint8_t *counts = memory;
	hg_status status = HG_OK;
	int constant = 1;
	for (size_t r = 0; r < rows; r++)
		counts[r] = 1;
	for (int i = 1; i < node->n_in && status >= 0; i++) {
		const struct hg__value *operand = node->in[i] < 0 ? NULL : &tape->value[node->in[i]];
		if (!operand || hg__is_float(operand->dtype))
			continue;
		constant &= operand->kind == HG__INPUT;
		status = constant ? clear_masked_rows(tape, operand, counts) : HG_OK;
	}
	node->counted = 0;
	for (size_t r = 0; r < rows && constant; r++)
		node->counted += counts[r];
	hg__host_free(tape->ctx, memory, rows);
	return status;
}

static hg_status check_losses(hg_tape *tape)
{
	for (int64_t k = 0; k < tape->entries; k++) {
		struct hg__entry *entry = &tape->entry[k];
		if (!entry->alive || !(entry->node.op->traits & HG__LOSS))
			continue;
		for (int i = 0; i < entry->node.n_in; i++)
			if (entry->node.in[i] >= 0 && tape->value[entry->node.in[i]].dtype == HG_I32 &&
			    tape->value[entry->node.in[i]].kind == HG__INPUT)
				HG__TRY(check_labels(tape, entry, &tape->value[entry->node.in[i]]));
		HG__TRY(hg__tape_count_rows(tape, &entry->node));
	}
	return HG_OK;
}

static double *bound_of(struct hg__value *value, enum hg__assumption assumption)
{
	return assumption == HG__UNCONDITIONAL ? &value->unconditional_grad : &value->bound_grad;
}

static double *reach_of(struct hg__value *value, enum hg__assumption assumption)
{
	return assumption == HG__UNCONDITIONAL ? &value->unconditional_reach_grad : &value->reach_grad;
}

/* Roundings on the longest path to a gradient: any sum that backward can make, and 8 more. Only
 * gradients of parameters are sums over all rows. */
static double depth_back(const hg_tape *tape, const struct hg__range *r,
                         const struct hg__value *operand)
{
	const struct hg__value *out = &tape->value[r->node->out];
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

/* The bound on a gradient as it is stored in `dtype`, divided by the loss scale; it holds at any
 * scale of 1 or more. If a partial sum in f16 arithmetic may overflow, the result counts as one
 * that may overflow, too. */
static double bound_stored_gradient(const hg_tape *tape, const struct hg__range *r, int i,
                                    hg_dtype dtype)
{
	const hg_accumulate accumulate = i == 0 ? r->node->accumulate : HG_ACC_F32;
	const struct hg__narrowing n = {
	    .bound = isnan(r->din[i]) ? (double)INFINITY : r->din[i],
	    .depth = fmax(r->depth_in[i], depth_back(tape, r, &tape->value[r->node->in[i]])),
	    .inner = r->inner,
	    .partial = fmin(hg__partial(accumulate, r->terms, HG_BATCH_EDGES, r->term), r->whole),
	    .tiny = r->tiny,
	    .terms = r->terms,
	    .batch = HG_BATCH_EDGES,
	    .state = dtype,
	    .accumulate = accumulate,
	    .unproved = HG_UNPROVED_PROMOTE};
	const struct hg__resolved resolved = hg__resolve(&n);
	return resolved.verdict == HG_PROMOTED ? fmax(resolved.bound, hg_dtype_get(HG_F16)->overflow)
	                                       : resolved.bound;
}

/* Bound on the partial sums in f16 arithmetic before they are scaled, for the gradient of operand
 * 0: over a batch, or over a whole row if that is less. hg__partial rounds a term to a half at this
 * magnitude. Here the bound must also hold, times k, for gradients k times as large, k >= 1. So it
 * counts six roundings relative to a term, and four near 0 (bound.h) that a larger loss scale does
 * not increase. */
static double bound_partial_sums(const struct hg__range *r)
{
	const double u = hg_dtype_get(HG_F16)->u, near_zero = 0x1p-25 * (1.0 + 2.0 * r->dout + r->term);
	if (r->node->accumulate == HG_ACC_F32 || r->terms == 0)
		return 0.0;
	const int64_t batch = r->node->accumulate == HG_ACC_F16_NAIVE ? r->terms : HG_BATCH_EDGES;
	const double terms = (double)(r->terms < batch ? r->terms : batch);
	const double counted =
	    terms * (r->term + near_zero) * (1.0 + hg__gamma(6.0, u)) * hg__growth_f16(terms);
	return r->dout == 0.0 ? 0.0 : fmin(counted, r->whole);
}

hg_status hg__tape_range_back(const hg_tape *tape, const struct hg__node *node,
                              enum hg__assumption assumption, double dout, const hg_dtype *part,
                              struct hg__range *r)
{
	HG__TRY(hg__tape_range(tape, node, assumption, r));
	r->out = assumption == HG__UNCONDITIONAL ? node->unconditional : node->bound;
	r->dout = dout;
	node->op->range_back(r);
	for (int i = 0; i < node->n_in; i++) {
		if (node->in[i] < 0)
			continue;
		r->din[i] = bound_stored_gradient(tape, r, i, part[i]);
		r->reach[i] =
		    part[i] == HG_F16 ? fmax(r->din[i], i == 0 ? bound_partial_sums(r) : 0.0) : 0.0;
		r->reach[i] = fmax(r->reach[i], r->held);
	}
	return HG_OK;
}

/* Bounds the gradients of an entry's operands and adds the bounds to those of earlier
 * contributions. Each addition is stored, so each is rounded. */
static hg_status bound_operands(hg_tape *tape, const struct hg__entry *entry,
                                enum hg__assumption assumption)
{
	const struct hg__node *node = &entry->node;
	hg_dtype part[HG__MAX_IN];
	struct hg__range r;
	for (int i = 0; i < node->n_in; i++)
		part[i] = node->in[i] < 0 ? HG_F32 : hg__part_dtype(node, i, &tape->value[node->in[i]]);
	HG__TRY(hg__tape_range_back(tape, node, assumption,
	                            *bound_of(&tape->value[node->out], assumption), part, &r));
	for (int i = 0; i < node->n_in; i++) {
		if (node->in[i] < 0 || !(entry->grads >> i & 1u))
			continue;
		struct hg__value *root = &tape->value[tape->value[node->in[i]].root];
		double *bound = bound_of(root, assumption), *reach = reach_of(root, assumption);
		const int half = hg__grad_dtype(root) == HG_F16;
		const double narrowed = half ? 1.0 + 0x1p-11 : 1.0 + 0x1p-24;
		*bound = *bound > 0.0 ? (*bound + r.din[i]) * narrowed + 0x1p-25 : r.din[i];
		*reach = fmax(*reach, fmax(half ? *bound : 0.0, r.reach[i]));
	}
	return HG_OK;
}

/* Bounds the gradients at loss scale 1 by the backward rules of the ops, with every rounding. The
 * bounds are for the tables of explain.c only: if a gradient overflows all the same, the step's
 * finite check finds it and the loss scale shrinks. */
static hg_status bound_gradients(hg_tape *tape, enum hg__assumption assumption)
{
	if (tape->value[tape->output].grad)
		*bound_of(&tape->value[tape->output], assumption) = 1.0;
	for (int64_t k = tape->entries - 1; k >= 0; k--) {
		struct hg__entry *entry = &tape->entry[k];
		if (!entry->back)
			continue;
		*(assumption == HG__UNCONDITIONAL ? &entry->node.unconditional_dy : &entry->node.bound_dy) =
		    *bound_of(&tape->value[entry->node.out], assumption);
		HG__TRY(bound_operands(tape, entry, assumption));
	}
	return HG_OK;
}

static hg_status find_largest(hg_tape *tape)
{
	char text[96], name[80];
	const struct hg__span *largest = NULL;
	for (int64_t i = 0; i < tape->spans; i++)
		if (!largest || tape->span[i].bytes > largest->bytes)
			largest = &tape->span[i];
	tape->largest_name = "";
	if (!largest)
		return HG_OK;
	tape->largest_bytes = largest->bytes;
	snprintf(text, sizeof text, "%s%s", largest->use == HG__USE_VALUE ? "" : "gradient of ",
	         hg__value_name(tape, &tape->value[largest->value], name, sizeof name));
	return hg__tape_text(tape, text, &tape->largest_name);
}

static hg_status check_output(hg_tape *tape, hg_var output)
{
	tape->output = hg__tape_index(tape, output);
	if (tape->output < 0)
		return hg__tape_fail(tape, HG_ERR_ARG,
		                     "hg_tape_compile: output is not a variable of this tape");
	struct hg__value *value = &tape->value[tape->output];
	if (value->shift)
		return hg__tape_fail(tape, HG_ERR_STATE,
		                     "hg_tape_compile: the output is stored x 2^-%d, since it overflowed "
		                     "in an earlier step (hg_policy.replan): give its hg_cast to f32",
		                     value->shift);
	value->keep = 1;
	tape->trains = tape->mode == HG_TRAIN && value->kind == HG__RESULT && value->dtype == HG_F32 &&
	               value->rows == 1 && value->cols == 1;
	return HG_OK;
}

static hg_status compile_recorded(hg_tape *tape, hg_var output)
{
	HG__TRY(check_output(tape, output));
	HG__TRY(hg__tape_fuse(tape));
	HG__TRY(hg__tape_lives(tape));
	HG__TRY(check_losses(tape));
	HG__TRY(bound_gradients(tape, HG__UNCONDITIONAL));
	HG__TRY(bound_gradients(tape, HG__ASSUMED));
	HG__TRY(find_largest(tape));
	HG__TRY(hg__tape_place(tape));
	return hg__tape_tasks(tape);
}

hg_status hg_tape_compile(hg_tape *tape, hg_var output)
{
	if (!tape)
		return HG_ERR_ARG;
	if (tape->status < 0)
		return hg__fail(tape->ctx, tape->status, "%s", tape->message);
	if (tape->stage != HG__RECORDING)
		return hg__fail(tape->ctx, HG_ERR_STATE, "hg_tape_compile: the tape is compiled already");
	tape->scope = "";
	HG__TRY(hg__tape_stick(tape, compile_recorded(tape, output)));
	tape->stage = HG__COMPILED;
	return HG_OK;
}
