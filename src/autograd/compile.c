#include <math.h>
#include <stdio.h>

#include "autograd/result_range.h"

/* hg_tape_compile: everything between the last recorded node and the first run. This file calls the
 * planning steps in order, checks labels and has the gradients bounded. */

/* Class numbers are data that the kernels trust, so they are read once, here: each must be a column
 * of the logits. Negative ones mean "unlabelled". */
static hg_status check_labels(hg_tape *tape, const struct hg__entry *entry,
                              const struct hg__value *labels)
{
	hg_context *ctx = tape->ctx;
	const int64_t classes = tape->recording.value[entry->node.in[0]].cols;
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

/* Sets counts[i] = 0 for the rows or elements that a loss leaves out: those with a negative class
 * number or a mask of 0. */
static hg_status clear_masked(hg_tape *tape, const struct hg__value *operand, uint8_t *counts)
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

/* Rows of a loss, or its elements if their mask has several columns. Labels have one column, and
 * with them so has the mask. */
static size_t count_of(const hg_tape *tape, const struct hg__node *node)
{
	const struct hg__value *x = hg__operand(&tape->recording, node, 0),
	                       *mask = node->n_in > 2 ? hg__operand(&tape->recording, node, 2) : NULL;
	return (size_t)(x->rows * (mask ? mask->cols : 1));
}

/* The gradient of a mean is divided by the number of rows or elements that count, so the bound
 * needs it. Where a label, a mask or the number of nodes may change between runs the number stays 0
 * (unknown): the op then assumes one. */
hg_status hg__tape_count(hg_tape *tape, struct hg__node *node)
{
	const size_t all = count_of(tape, node);
	void *memory = NULL;
	node->counted = tape->recording.counted;
	if (node->counted)
		return HG_OK;
	HG__TRY(hg__host_alloc(tape->ctx, all, 1, "what counts in a loss", &memory));
	uint8_t *counts = memory;
	hg_status status = HG_OK;
	int constant = !hg__operand(&tape->recording, node, 0)->live;
	for (size_t i = 0; i < all; i++)
		counts[i] = 1;
	for (int i = 1; i < node->n_in && status >= 0; i++) {
		const struct hg__value *operand = hg__operand(&tape->recording, node, i);
		if (!operand || hg__is_float(operand->dtype))
			continue;
		constant &= operand->kind == HG__INPUT;
		status = constant ? clear_masked(tape, operand, counts) : HG_OK;
	}
	for (size_t i = 0; i < all && constant; i++)
		node->counted += counts[i];
	hg__host_free(tape->ctx, memory, all);
	return status;
}

static hg_status check_losses(hg_tape *tape)
{
	struct hg__recording *recording = &tape->recording;
	for (int64_t k = 0; k < recording->entries; k++) {
		struct hg__entry *entry = &recording->entry[k];
		if (!tape->plan.entry[k].alive || !(entry->node.op->traits & HG__LOSS))
			continue;
		for (int i = 0; i < entry->node.n_in; i++) {
			const struct hg__value *operand = hg__operand(recording, &entry->node, i);
			if (operand && operand->dtype == HG_I32 && operand->kind == HG__INPUT)
				HG__TRY(check_labels(tape, entry, operand));
		}
		HG__TRY(hg__tape_count(tape, &entry->node));
	}
	return HG_OK;
}

static hg_status find_largest(hg_tape *tape)
{
	char text[96], name[80];
	struct hg__tape_plan *plan = &tape->plan;
	const struct hg__span *largest = NULL;
	for (int64_t i = 0; i < plan->spans; i++)
		if (!largest || plan->span[i].bytes > largest->bytes)
			largest = &plan->span[i];
	plan->largest_name = "";
	if (!largest)
		return HG_OK;
	plan->largest_bytes = largest->bytes;
	snprintf(text, sizeof text, "%s%s", largest->use == HG__USE_VALUE ? "" : "gradient of ",
	         hg__value_name(tape, &tape->recording.value[largest->value], name, sizeof name));
	return hg__tape_text(tape, text, &plan->largest_name);
}

static hg_status check_output(hg_tape *tape, hg_var output)
{
	tape->plan.output = hg__tape_index(tape, output);
	if (tape->plan.output < 0)
		return hg__tape_fail(tape, HG_ERR_ARG,
		                     "hg_tape_compile: output is not a variable of this tape");
	struct hg__value *value = &tape->recording.value[tape->plan.output];
	if (value->shift)
		return hg__tape_fail(tape, HG_ERR_STATE,
		                     "hg_tape_compile: the output is stored x 2^-%d, since it overflowed "
		                     "in an earlier step (hg_policy.replan): give its hg_cast to f32",
		                     value->shift);
	value->keep = 1;
	tape->plan.trains = tape->mode == HG_TRAIN && value->kind == HG__RESULT &&
	                    value->dtype == HG_F32 && value->rows == 1 && value->cols == 1;
	return HG_OK;
}

static hg_status compile_recorded(hg_tape *tape, hg_var output)
{
	HG__TRY(check_output(tape, output));
	HG__TRY(hg__tape_fuse(tape));
	hg__tape_live(&tape->recording);
	HG__TRY(hg__tape_regions(tape));
	HG__TRY(hg__plan_lifetimes(tape->ctx, &tape->recording, &tape->plan));
	HG__TRY(check_losses(tape));
	HG__TRY(hg__bound_gradients(tape));
	HG__TRY(find_largest(tape));
	HG__TRY(hg__tape_place(tape));
	return hg__tape_tasks(tape);
}

hg_status hg_tape_compile(hg_tape *tape, hg_var output)
{
	if (!tape)
		return HG_ERR_ARG;
	HG__TRY(hg__tape_mistake(tape));
	if (tape->stage != HG__RECORDING)
		return hg__fail(tape->ctx, HG_ERR_STATE, "hg_tape_compile: the tape is compiled already");
	tape->recording.scope = "";
	HG__TRY(hg__tape_stick(tape, compile_recorded(tape, output)));
	tape->stage = HG__COMPILED;
	return HG_OK;
}
