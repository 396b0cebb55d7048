#include <math.h>
#include <stdio.h>

#include "autograd/observe.h"
#include "precision/bound.h"

/* hg_tape_compile: everything between the last recorded node and the first run. */

/* Class numbers are data, so they are looked at once, here: the largest one must be a column of the logits. Negative ones mean "unlabelled". */
static hg_status check_labels(hg_tape *tape, const struct hg__line *line, const struct hg__value *labels)
{
	hg_context *ctx = tape->ctx;
	const int64_t classes = tape->value[line->node.in[0]].cols;
	const size_t count = (size_t)(labels->rows * labels->cols);
	void *memory = NULL;
	HG__TRY(hg__host_alloc(ctx, count, sizeof(int32_t), "labels", &memory));
	const int32_t *label = memory;
	hg_status status = count ? hg_tensor_download(labels->tensor, memory, HG_I32) : HG_OK;
	for (size_t i = 0; i < count && status >= 0; i++)
		if (label[i] >= classes)
			status = hg__fail(ctx, HG_ERR_RANGE, "%s: label %d in row %zu of %s, the logits have %lld columns%s%.40s%s", line->node.op->name, label[i],
			                  i / (size_t)labels->cols, *labels->name ? labels->name : "the labels", (long long)classes, *line->node.scope ? " (layer " : "",
			                  line->node.scope, *line->node.scope ? ")" : "");
	hg__host_free(ctx, memory, count * sizeof(int32_t));
	return status;
}

static hg_status check_all_labels(hg_tape *tape)
{
	for (int64_t k = 0; k < tape->lines; k++) {
		const struct hg__line *line = &tape->line[k];
		if (!line->alive || !(line->node.op->traits & HG__LOSS))
			continue;
		for (int i = 0; i < line->node.n_in; i++)
			if (line->node.in[i] >= 0 && tape->value[line->node.in[i]].dtype == HG_I32 && tape->value[line->node.in[i]].kind == HG__INPUT)
				HG__TRY(check_labels(tape, line, &tape->value[line->node.in[i]]));
	}
	return HG_OK;
}

static double *bound_of(struct hg__value *value, enum hg__belief belief)
{
	return belief == HG__SURE ? &value->sure_grad : &value->bound_grad;
}

/* Roundings on the longest way to a gradient: any sum that backward makes, and a few factors. Only those of parameters are sums over all rows. */
static double depth_back(const hg_tape *tape, const struct hg__range *r, const struct hg__value *operand)
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

/* The bound on a gradient as it is stored: at any loss scale of 1 or more, divided by it. */
static double stored(const hg_tape *tape, const struct hg__range *r, int i)
{
	const struct hg__value *operand = &tape->value[r->node->in[i]];
	if (!(r->din[i] < (double)INFINITY))
		return INFINITY;
	const double sum = r->din[i] * (1.0 + hg__gamma(depth_back(tape, r, operand), hg_dtype_get(HG_F32)->u));
	return hg__part_dtype(r->node, i, operand) == HG_F16 ? sum * (1.0 + hg_dtype_get(HG_F16)->u) + 0x1p-25 : sum;
}

/* Bounds on gradients at loss scale 1, by the ops' backward rules and with every rounding: for the reader of the tables. What overflows in f16 nevertheless is found by the
 * finite check of the step and answered with a smaller loss scale. */
static hg_status bound_gradients(hg_tape *tape, enum hg__belief belief)
{
	if (tape->value[tape->output].grad)
		*bound_of(&tape->value[tape->output], belief) = 1.0;
	for (int64_t k = tape->lines - 1; k >= 0; k--) {
		struct hg__line *line = &tape->line[k];
		struct hg__range r;
		if (!line->back)
			continue;
		HG__TRY(hg__tape_range(tape, &line->node, belief, &r));
		r.out = belief == HG__SURE ? line->node.sure : line->node.bound;
		r.dout = *bound_of(&tape->value[line->node.out], belief);
		*(belief == HG__SURE ? &line->node.sure_dy : &line->node.bound_dy) = r.dout;
		line->node.op->range_back(&r);
		for (int i = 0; i < line->node.n_in; i++)
			if (line->node.in[i] >= 0 && line->grads >> i & 1u)
				*bound_of(&tape->value[tape->value[line->node.in[i]].root], belief) += stored(tape, &r, i);
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
		return hg__tape_fail(tape, HG_ERR_ARG, "hg_tape_compile: output is not a variable of this tape");
	struct hg__value *value = &tape->value[tape->output];
	value->keep = 1;
	tape->trains = tape->mode == HG_TRAIN && value->kind == HG__RESULT && value->dtype == HG_F32 && value->rows == 1 && value->cols == 1;
	return HG_OK;
}

static hg_status compile(hg_tape *tape, hg_var output)
{
	HG__TRY(check_output(tape, output));
	HG__TRY(hg__tape_fuse(tape));
	HG__TRY(hg__tape_lives(tape));
	HG__TRY(check_all_labels(tape));
	HG__TRY(bound_gradients(tape, HG__SURE));
	HG__TRY(bound_gradients(tape, HG__ASSUMED));
	HG__TRY(find_largest(tape));
	HG__TRY(hg__tape_place(tape));
	return hg__tape_launches(tape);
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
	HG__TRY(hg__tape_stick(tape, compile(tape, output)));
	tape->stage = HG__COMPILED;
	return HG_OK;
}
