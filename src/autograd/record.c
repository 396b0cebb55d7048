#include <string.h>

#include "autograd/result_range.h"
#include "core/rng.h"

/* Recording one op node: check the arguments, bring the operands to one float type, infer the
 * shapes, decide the precision, append.
 *
 * The precision is decided here, before any data is seen: the op's range rule bounds the result,
 * and the policy turns the bound into a verdict and a type. */

/* Shapes and bounds of this node depend on the graph's batch, so hg__graph_batch fixes it:
 * hg_graph_set_batch fails afterwards. */
static hg_status check_graph(hg_tape *tape, const struct hg__op *op, hg_graph *graph)
{
	const int64_t *ptr;
	const int32_t *id;
	if (!(op->traits & HG__GRAPH))
		return HG_OK;
	if (!graph)
		return hg__tape_fail(tape, HG_ERR_ARG, "%s: graph is missing", op->name);
	if (hg_graph_context(graph) != tape->ctx)
		return hg__tape_fail(tape, HG_ERR_ARG,
		                     "%s: the graph belongs to another context than the tape", op->name);
	if (hg__graph_scatters(graph) && !(op->traits & HG__SCATTERS))
		return hg__tape_fail(tape, HG_ERR_UNSUPPORTED,
		                     "%s: needs the edges of a row beside each other, and this graph "
		                     "scatters them; choose HG_AGGREGATION_GATHER for its stream",
		                     op->name);
	return op->traits & HG__BATCH ? hg__graph_batch(graph, &ptr, &id) : HG_OK;
}

static hg_status check_operands(hg_tape *tape, struct hg__node *node, const hg_var *in, int n_in)
{
	const struct hg__op *op = node->op;
	if (n_in < op->min_in || n_in > op->max_in)
		return hg__tape_fail(tape, HG_ERR_ARG, "%s: %d operands, expected %d to %d", op->name, n_in,
		                     op->min_in, op->max_in);
	node->n_in = n_in;
	for (int i = 0; i < HG__MAX_IN; i++)
		node->in[i] = -1;
	for (int i = 0; i < n_in; i++) {
		node->in[i] = hg__tape_index(tape, in[i]);
		if (node->in[i] < 0 && in[i].id != hg_none().id)
			return hg__tape_fail(tape, HG_ERR_ARG, "%s: operand %d is not a variable of this tape",
			                     op->name, i);
	}
	return HG_OK;
}

static hg_status check_buffers(hg_tape *tape, struct hg__node *node, hg_param *const *buffers)
{
	for (int i = 0; i < 2 && buffers; i++) {
		node->buffer[i] = buffers[i];
		if (buffers[i] &&
		    (buffers[i]->params != tape->params || !(buffers[i]->flags & HG_PARAM_BUFFER)))
			return hg__tape_fail(tape, HG_ERR_ARG,
			                     "%s: \"%s\" is not a buffer of the tape's parameters",
			                     node->op->name, buffers[i]->name);
	}
	return HG_OK;
}

/* A shadow op must read halves and store a half. Only its result may be narrowed. */
static hg_status check_shadow(hg_tape *tape, const struct hg__node *node)
{
	char name[96];
	if (tape->params->policy.state != HG_F16)
		return hg__tape_fail(tape, HG_ERR_DTYPE,
		                     "%s: policy \"%s\" keeps results in f32, a shadow op is a half",
		                     node->op->name, tape->params->policy.name);
	if (hg__promotion_of(tape, node))
		return hg__tape_fail(tape, HG_ERR_RANGE,
		                     "%s: it overflowed in an earlier step, whatever its bound, and a "
		                     "shadow op is a half or an error",
		                     node->op->name);
	for (int i = 0; i < node->n_in; i++) {
		const struct hg__value *x = hg__operand(&tape->recording, node, i);
		const int promoted =
		    x && x->node >= 0 && tape->recording.entry[x->node].node.verdict == HG_PROMOTED;
		if (x && hg__cannot_read(tape, node, i))
			return hg__tape_fail(tape, HG_ERR_DTYPE,
			                     "%s: operand %d, %s, is stored x 2^-%d, since it overflowed in an "
			                     "earlier step, and a shadow op reads halves",
			                     node->op->name, i, hg__value_name(tape, x, name, sizeof name),
			                     x->shift);
		if (x && node->op->same >> i & 1u && x->dtype == HG_F32)
			return hg__tape_fail(tape, HG_ERR_DTYPE,
			                     "%s: operand %d, %s, is f32%s, and a shadow op reads halves",
			                     node->op->name, i, hg__value_name(tape, x, name, sizeof name),
			                     promoted ? " (promoted)" : "");
	}
	return HG_OK;
}

static hg_status infer_shapes(hg_tape *tape, const struct hg__node *node, hg_dtype state,
                              struct hg__infer *s)
{
	memset(s, 0, sizeof *s);
	s->tape = tape;
	s->node = node;
	s->mode = tape->mode;
	s->state = state;
	for (int i = 0; i < node->n_in; i++)
		s->in[i] = hg__value_shape(hg__operand(&tape->recording, node, i));
	HG__TRY(node->op->infer(s)); /* first: its messages name the operands */
	for (int i = 0; i < node->op->min_in; i++)
		if (node->in[i] < 0)
			return hg__infer_fail(s, HG_ERR_ARG, "operand %d is missing", i);
	if (!s->out.present || s->out.rows < 0 || s->out.cols < 0)
		return hg__infer_fail(s, HG_ERR_INTERNAL, "infer gave no output");
	return HG_OK;
}

/* The outcome of an attempt to record a node in one type, apart from its verdict. */
struct attempt {
	struct hg__infer s;
	struct hg__result result;
};

/* Operands, shapes and verdict for a node that runs in `state`. */
static hg_status attempt_type(hg_tape *tape, struct hg__node *node, hg_dtype state,
                              struct attempt *a)
{
	HG__TRY(hg__unify_operands(tape, node, state));
	HG__TRY(infer_shapes(tape, node, state, &a->s));
	node->shift = a->s.out.dtype == HG_F16 ? node->shift : 0;
	return hg__bound_result(tape, node, a->s.out.dtype, &a->result);
}

/* Behind a guard a half counts as at most 65504, because an overflow never goes unnoticed. Either
 * the guard compares the result as it is stored (tasks.c), or the infinity or NaN reaches the
 * gradients and the step's finite check finds it. Only relu, max and exp can hide a -infinity, and
 * they return what they would have returned for the exact number.
 *
 * An unproved result that the policy promotes is attempted again in f32. If it is still a half, the
 * user asked for the narrowing by name (a cast); it is guarded instead. */
static hg_status decide_verdict(hg_tape *tape, struct hg__node *node, struct attempt *a)
{
	const struct hg__promotion *listed = hg__promotion_of(tape, node);
	node->shift = listed && hg__may_rescale(tape, node) ? listed->shift : 0;
	const int promoted = listed && !node->shift;
	const hg_dtype state = promoted ? HG_F32 : hg__node_type(tape, node);
	HG__TRY(attempt_type(tape, node, state, a));
	if (promoted && node->verdict == HG_EXACT)
		node->verdict = HG_PROMOTED;
	if (node->verdict == HG_REFUSED && node->shadow)
		return hg__infer_fail(
		    &a->s, HG_ERR_RANGE,
		    "|out| may reach %.3g (%s), f16 holds 65504, and a shadow op is a half or an error",
		    a->result.exact, a->result.because);
	if (node->verdict == HG_REFUSED)
		return hg__infer_fail(&a->s, HG_ERR_RANGE,
		                      "|out| may reach %.3g (%s), f16 holds 65504, and policy \"%s\" "
		                      "refuses what is not proved",
		                      a->result.exact, a->result.because, tape->params->policy.name);
	if (node->verdict != HG_PROMOTED || promoted)
		return HG_OK;
	if (state == HG_F16)
		HG__TRY(attempt_type(tape, node, HG_F32, a));
	const int narrow = a->s.out.dtype == HG_F16;
	node->verdict = narrow ? HG_GUARDED : HG_PROMOTED;
	for (int i = HG__UNCONDITIONAL; narrow && i <= HG__ASSUMED; i++)
		a->result.known[i].largest = hg_dtype_get(HG_F16)->max;
	return HG_OK;
}

/* The largest number of elements of a value. 8 bytes each fill the 2^47 bytes that a process can
 * address, so sizes and their sums never overflow. */
#define MAX_ELEMENTS 0x1p44

/* The result of the entry that is recorded next, or what it keeps for backward. result: what is
 * known of it; NULL: nothing. */
static hg_status append_value(hg_tape *tape, enum hg__kind kind, const struct hg__shape *shape,
                              const struct hg__result *result, int shift, int32_t *index)
{
	*index = -1;
	if (!shape->present)
		return HG_OK;
	if ((double)shape->rows * (double)hg__leading(shape->cols) > MAX_ELEMENTS)
		return hg__tape_fail(tape, HG_ERR_NOMEM,
		                     "a result of shape [%lld, %lld] is more than memory can hold",
		                     (long long)shape->rows, (long long)shape->cols);
	struct hg__value value = {.kind = kind,
	                          .dtype = shape->dtype,
	                          .rows = shape->rows,
	                          .cols = shape->cols,
	                          .node = (int32_t)tape->recording.entries,
	                          .shift = shift};
	for (int a = HG__UNCONDITIONAL; a <= HG__ASSUMED; a++)
		value.known[a] = result ? result->known[a] : hg__at_most((double)INFINITY);
	return hg__tape_value(tape, &value, index);
}

hg_status hg__tape_refit(hg_tape *tape, struct hg__entry *entry, int *fits)
{
	struct hg__recording *recording = &tape->recording;
	const hg_verdict before = entry->node.verdict;
	struct attempt a;
	HG__TRY(attempt_type(tape, &entry->node, recording->value[entry->node.out].dtype, &a));
	*fits = entry->node.verdict != HG_REFUSED && entry->node.verdict != HG_PROMOTED &&
	        (!entry->node.shift || hg__may_rescale(tape, &entry->node));
	for (int i = 0; i < entry->node.n_in; i++)
		*fits &= !hg__cannot_read(tape, &entry->node, i);
	if (entry->node.verdict == HG_EXACT)
		entry->node.verdict = before;
	entry->grads = a.s.grads;
	entry->saves = a.s.saves;
	for (int i = 0; i < HG__MAX_AUX && *fits; i++)
		if (entry->node.aux[i] < 0)
			HG__TRY(append_value(tape, HG__AUX, &a.s.aux[i], NULL, 0, &entry->node.aux[i]));
	if (!*fits)
		return HG_OK;
	memcpy(recording->value[entry->node.out].known, a.result.known, sizeof a.result.known);
	return hg__tape_text(tape, a.result.because, &entry->because);
}

static hg_status append_entry(hg_tape *tape, struct hg__entry *entry, const struct attempt *a)
{
	struct hg__recording *recording = &tape->recording;
	const struct hg__infer *s = &a->s;
	struct hg__node *node = &entry->node;
	HG__TRY(hg__tape_text(tape, a->result.because, &entry->because));
	entry->grads = s->grads;
	entry->saves = s->saves;
	entry->fused_into = -1;
	if (node->op->traits & HG__RANDOM)
		node->rng_key = hg__rng_key(tape->params->seed, (uint64_t)recording->random++);
	void *list = recording->entry;
	const hg_status grown =
	    hg__host_grow(tape->ctx, &list, sizeof *recording->entry, recording->entries,
	                  &recording->entry_capacity, "the tape");
	recording->entry = list;
	HG__TRY(grown);
	for (int i = 0; i < HG__MAX_AUX; i++)
		HG__TRY(append_value(tape, HG__AUX, &s->aux[i], NULL, 0, &node->aux[i]));
	HG__TRY(append_value(tape, HG__RESULT, &s->out, &a->result, node->shift, &node->out));
	entry->op = node->op;
	entry->scope = node->scope;
	recording->value[node->out].f32_reasons = hg__f32_reasons_of(recording, node, s->out.dtype);
	recording->entry[recording->entries++] = *entry;
	return HG_OK;
}

static hg_status record_entry(hg_tape *tape, struct hg__entry *entry, const hg_var *in, int n_in,
                              hg_param *const *buffers)
{
	struct attempt a;
	HG__TRY(check_graph(tape, entry->node.op, entry->node.graph));
	HG__TRY(check_operands(tape, &entry->node, in, n_in));
	HG__TRY(check_buffers(tape, &entry->node, buffers));
	if (entry->node.shadow)
		HG__TRY(check_shadow(tape, &entry->node));
	if (entry->node.op->traits & HG__DIVIDES && n_in > 0 && entry->node.in[n_in - 1] >= 0)
		HG__TRY(hg__tape_least(tape, entry->node.in[n_in - 1]));
	HG__TRY(decide_verdict(tape, &entry->node, &a));
	return append_entry(tape, entry, &a);
}

static hg_var record_op(hg_tape *tape, struct hg__entry *entry, const hg_var *in, int n_in,
                        hg_param *const *buffers)
{
	return hg__tape_stick(tape, record_entry(tape, entry, in, n_in, buffers)) < 0
	           ? hg__tape_var(tape, -1)
	           : hg__tape_var(tape, entry->node.out);
}

hg_var hg__record(hg_tape *tape, const struct hg__op *op, hg_graph *graph, const hg_var *in,
                  int n_in, hg_param *const *buffers, const void *attr, size_t attr_bytes)
{
	if (!hg__tape_open(tape, op->name))
		return hg__tape_var(tape, -1);
	struct hg__entry entry = {.node = {.op = op, .graph = graph, .scope = tape->recording.scope}};
	if (attr_bytes > HG__ATTR_BYTES) {
		(void)hg__tape_fail(tape, HG_ERR_INTERNAL, "%s: %zu bytes of attributes", op->name,
		                    attr_bytes);
		return hg__tape_var(tape, -1);
	}
	if (attr)
		memcpy(entry.node.attr, attr, attr_bytes);
	return record_op(tape, &entry, in, n_in, buffers);
}

hg_var hg__record_shadow(hg_tape *tape, const struct hg__op *op, hg_graph *graph, const hg_var *in,
                         int n_in)
{
	if (!hg__tape_open(tape, op->name))
		return hg__tape_var(tape, -1);
	struct hg__entry entry = {
	    .node = {.op = op, .graph = graph, .scope = tape->recording.scope, .shadow = 1}};
	return record_op(tape, &entry, in, n_in, NULL);
}
