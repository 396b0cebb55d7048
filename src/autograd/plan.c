#include "autograd/tape.h"

/* Lifetimes: which nodes run, which values get a gradient, and between which positions (tape.h)
 * each buffer is in use. Everything here follows from the recording alone; arena.c turns it into
 * offsets. */

/* Dead code: a node runs only if the output or a kept value needs it. */
static void find_alive(hg_tape *tape)
{
	for (int64_t v = 0; v < tape->values; v++)
		tape->value[v].alive = tape->value[v].keep;
	for (int64_t k = tape->entries - 1; k >= 0; k--) {
		struct hg__entry *entry = &tape->entry[k];
		entry->alive = tape->value[entry->node.out].alive;
		for (int i = 0; i < entry->node.n_in && entry->alive; i++)
			if (entry->node.in[i] >= 0)
				tape->value[entry->node.in[i]].alive = 1;
	}
	tape->alive = 0;
	for (int64_t k = 0; k < tape->entries; k++)
		if (tape->entry[k].alive)
			tape->entry[k].position = tape->alive++;
}

static int differentiable(const struct hg__entry *entry, int i)
{
	return entry->alive && entry->node.in[i] >= 0 && entry->grads >> i & 1u;
}

static int is_source(const struct hg__value *value)
{
	return value->kind == HG__VARIABLE ||
	       (value->kind == HG__PARAM && !(value->param->flags & HG_PARAM_BUFFER));
}

/* A value gets a gradient if it depends on a parameter or variable and the loss depends on it. A
 * parameter may be on the tape twice, as its working copy and as its f32 view: each stands for the
 * parameter. */
static void find_grads(hg_tape *tape)
{
	for (int64_t v = 0; v < tape->values; v++)
		tape->value[v].depends = is_source(&tape->value[v]);
	for (int64_t k = 0; k < tape->entries; k++)
		for (int i = 0; i < tape->entry[k].node.n_in; i++)
			if (differentiable(&tape->entry[k], i) &&
			    tape->value[tape->entry[k].node.in[i]].depends)
				tape->value[tape->entry[k].node.out].depends = 1;
	tape->value[tape->output].reaches = tape->trains;
	for (int64_t k = tape->entries - 1; k >= 0; k--)
		for (int i = 0; i < tape->entry[k].node.n_in; i++)
			if (differentiable(&tape->entry[k], i) && tape->value[tape->entry[k].node.out].reaches)
				tape->value[tape->entry[k].node.in[i]].reaches = 1;
	for (int64_t v = 0; v < tape->values; v++)
		tape->value[v].grad = tape->value[v].depends && tape->value[v].reaches;
	for (int64_t k = 0; k < tape->entries; k++)
		tape->entry[k].back = tape->entry[k].alive && tape->value[tape->entry[k].node.out].grad;
}

/* A new span of one position. The caller extends it. */
static hg_status add_span(hg_tape *tape, enum hg__use use, int32_t value, int32_t position,
                          hg_dtype dtype, int32_t *index)
{
	void *list = tape->span;
	const hg_status grown =
	    hg__tape_grow(tape, &list, sizeof *tape->span, tape->spans, &tape->span_capacity);
	tape->span = list;
	HG__TRY(grown);
	const size_t bytes = hg__value_bytes(&tape->value[value], dtype);
	*index = (int32_t)tape->spans++;
	/* At least one unit, so that an empty matrix has an address: NULL means absent. */
	tape->span[*index] = (struct hg__span){.use = use,
	                                       .value = value,
	                                       .first = position,
	                                       .last = position,
	                                       .dtype = dtype,
	                                       .bytes = bytes ? hg__aligned(bytes) : HG__ALIGN};
	return HG_OK;
}

static void extend_span(hg_tape *tape, int32_t span, int32_t position)
{
	if (span >= 0 && tape->span[span].last < position)
		tape->span[span].last = position;
}

/* A value below this size is not worth a kernel launch to recompute. A launch takes 2 us, in which
 * a GPU moves some MiB, and tapes with small tensors have memory to spare. */
#define WORTH_BYTES ((size_t)1 << 20)

/* Is this value recomputed in the backward pass instead of kept? The op must allow it
 * (HG__RECOMPUTE). The value must also be twice as large as its operands, because these may have to
 * be kept longer now. */
static int is_recomputed(const hg_tape *tape, const struct hg__value *value)
{
	if (value->keep || tape->keeps || value->kind != HG__RESULT ||
	    !(tape->entry[value->node].node.op->traits & HG__RECOMPUTE))
		return 0;
	const struct hg__node *node = &tape->entry[value->node].node;
	size_t read = 0;
	for (int i = 0; i < node->n_in; i++)
		if (node->in[i] >= 0)
			read += hg__value_bytes(&tape->value[node->in[i]], tape->value[node->in[i]].dtype);
	const size_t bytes = hg__value_bytes(value, value->dtype);
	return bytes >= WORTH_BYTES && bytes / 2 >= read;
}

/* The node reads operand i now, and its backward reads it at position `back`. */
static hg_status save_operand(hg_tape *tape, struct hg__entry *entry, int i, int32_t back)
{
	struct hg__value *value = &tape->value[entry->node.in[i]];
	if (!is_recomputed(tape, value)) {
		extend_span(tape, value->span, back);
		return HG_OK;
	}
	const struct hg__node *maker = &tape->entry[value->node].node;
	extend_span(tape, value->span, entry->position);
	for (int k = 0; k < maker->n_in; k++)
		if (maker->in[k] >= 0)
			extend_span(tape, tape->value[maker->in[k]].span, back);
	tape->recomputes++;
	return add_span(tape, HG__USE_VALUE, entry->node.in[i], back, value->dtype,
	                &entry->recompute[i]);
}

static hg_status value_spans(hg_tape *tape, struct hg__entry *entry)
{
	const struct hg__node *node = &entry->node;
	const int32_t made[1 + HG__MAX_AUX] = {node->out, node->aux[0], node->aux[1]};
	const int32_t now = entry->position, back = 2 * tape->alive - now;
	const unsigned saved[1 + HG__MAX_AUX] = {entry->saves & HG__SAVE_OUT,
	                                         entry->saves & HG__SAVE_AUX(0),
	                                         entry->saves & HG__SAVE_AUX(1)};
	const unsigned later[1 + HG__MAX_AUX] = {0, entry->saves & HG__BACK_AUX(0),
	                                         entry->saves & HG__BACK_AUX(1)};
	for (int i = 0; i < 1 + HG__MAX_AUX; i++) {
		if (made[i] < 0 || (later[i] && !entry->back))
			continue;
		struct hg__value *value = &tape->value[made[i]];
		HG__TRY(add_span(tape, HG__USE_VALUE, made[i], later[i] ? back : now, value->dtype,
		                 &value->span));
		if (value->keep)
			extend_span(tape, value->span, 2 * tape->alive + 1);
		if (entry->back && saved[i])
			extend_span(tape, value->span, back);
	}
	for (int i = 0; i < node->n_in; i++)
		if (node->in[i] >= 0 && entry->back && entry->saves & HG__SAVE_IN(i))
			HG__TRY(save_operand(tape, entry, i, back));
		else if (node->in[i] >= 0)
			extend_span(tape, tape->value[node->in[i]].span, now);
	return HG_OK;
}

/* Do the gradients of operand i and of the result share one buffer? They can if the op passes the
 * gradient on unchanged, nothing else is added to it, and nothing else writes the gradient of the
 * result after this node's backward. */
static int shares_gradient(const hg_tape *tape, const struct hg__entry *entry, int i)
{
	const struct hg__value *value = &tape->value[entry->node.in[i]],
	                       *out = &tape->value[entry->node.out];
	return !tape->keeps && entry->node.op->passes >> i & 1u && value->uses == 1 &&
	       value->kind != HG__PARAM && out->grad_span >= 0 && value->dtype == out->dtype;
}

/* One contribution to the gradient of operand i. The first one starts the gradient's life and is
 * written in place if the types agree. A later one is added by the op, if the op can do that. Any
 * other goes into a buffer of its own, which the tape adds to the gradient. */
static hg_status contribute(hg_tape *tape, struct hg__entry *entry, int i)
{
	const int32_t now = 2 * tape->alive - entry->position, operand = entry->node.in[i],
	              root = tape->value[operand].root;
	const hg_dtype part = hg__part_dtype(&entry->node, i, &tape->value[operand]);
	struct hg__value *value = &tape->value[root];
	entry->first[i] = value->parts++ == 0;
	if (entry->first[i] && value->kind != HG__PARAM) {
		if (shares_gradient(tape, entry, i))
			value->grad_span = tape->value[entry->node.out].grad_span;
		else
			HG__TRY(
			    add_span(tape, HG__USE_GRAD, root, now, hg__grad_dtype(value), &value->grad_span));
		extend_span(tape, value->grad_span,
		            value->node < 0 ? 2 * tape->alive + 1
		                            : 2 * tape->alive - tape->entry[value->node].position);
	}
	const int same = part == hg__grad_dtype(value);
	if (same && !entry->first[i])
		entry->adds |= entry->node.op->adds & 1u << i;
	return same && (entry->first[i] || entry->adds >> i & 1u)
	           ? HG_OK
	           : add_span(tape, HG__USE_PART, operand, now, part, &entry->part_span[i]);
}

/* The gradient of the loss needs no buffer: it is the loss scale, which is read from the
 * optimiser's state (tasks.c). */
static hg_status grad_spans(hg_tape *tape)
{
	for (int64_t k = tape->entries - 1; k >= 0; k--)
		for (int i = 0; i < tape->entry[k].node.n_in && tape->entry[k].back; i++)
			if (differentiable(&tape->entry[k], i) && tape->value[tape->entry[k].node.in[i]].grad)
				HG__TRY(contribute(tape, &tape->entry[k], i));
	return HG_OK;
}

hg_status hg__tape_lives(hg_tape *tape)
{
	find_alive(tape);
	find_grads(tape);
	for (int64_t k = 0; k < tape->entries; k++)
		if (tape->entry[k].alive)
			HG__TRY(value_spans(tape, &tape->entry[k]));
	HG__TRY(grad_spans(tape));
	for (int64_t i = 0; i < tape->spans && tape->keeps; i++)
		extend_span(tape, (int32_t)i, 2 * tape->alive + 1);
	return HG_OK;
}
