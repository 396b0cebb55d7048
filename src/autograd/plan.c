#include "autograd/plan.h"

/* Lifetimes: which nodes run, which values get a gradient, and at which positions each buffer is in
 * use (plan.h counts time in positions). This stretch of time is the span of the buffer. Everything
 * here follows from the recording and from what the plan is asked for: output, trains and keeps.
 * place.c and arena.c then place the spans. */

/* Dead code: a node runs only if a kept value needs it. The output is one: compile.c marks it as
 * kept. */
static void find_alive(const struct hg__recording *recording, struct hg__tape_plan *plan)
{
	for (int64_t v = 0; v < recording->values; v++)
		plan->value[v].alive = recording->value[v].keep;
	for (int64_t k = recording->entries - 1; k >= 0; k--) {
		const struct hg__node *node = &recording->entry[k].node;
		plan->entry[k].alive = plan->value[node->out].alive;
		for (int i = 0; i < node->n_in && plan->entry[k].alive; i++)
			if (node->in[i] >= 0)
				plan->value[node->in[i]].alive = 1;
	}
	for (int64_t k = 0; k < recording->entries; k++)
		if (plan->entry[k].alive)
			plan->entry[k].position = plan->running++;
	for (int64_t k = 0; k < recording->entries; k++)
		plan->entry[k].position_back = 2 * plan->running - plan->entry[k].position;
}

/* Can the gradient pass through operand i of node k? The node must run, and the op must have a
 * gradient for that operand. */
static int is_differentiable(const struct hg__recording *recording,
                             const struct hg__tape_plan *plan, int64_t k, int i)
{
	const struct hg__entry *entry = &recording->entry[k];
	return plan->entry[k].alive && entry->node.in[i] >= 0 && entry->grads >> i & 1u;
}

/* Is this a leaf that can get a gradient: a variable, or a parameter that is no buffer (a running
 * statistic)? */
static int is_source(const struct hg__value *value)
{
	return value->kind == HG__VARIABLE ||
	       (value->kind == HG__PARAM && !(value->param->flags & HG_PARAM_BUFFER));
}

/* A value gets a gradient if it depends on a parameter or variable (first loop over the entries)
 * and the loss depends on it (second loop). A parameter may be on the tape as two values, its
 * working copy and its f32 view: both are sources here, and they have one gradient (hg__root_of).
 */
static void find_grads(const struct hg__recording *recording, struct hg__tape_plan *plan)
{
	for (int64_t v = 0; v < recording->values; v++)
		plan->value[v].depends = is_source(&recording->value[v]);
	for (int64_t k = 0; k < recording->entries; k++) {
		const struct hg__node *node = &recording->entry[k].node;
		for (int i = 0; i < node->n_in; i++)
			if (is_differentiable(recording, plan, k, i) && plan->value[node->in[i]].depends)
				plan->value[node->out].depends = 1;
	}
	plan->value[plan->output].reaches = plan->trains;
	for (int64_t k = recording->entries - 1; k >= 0; k--) {
		const struct hg__node *node = &recording->entry[k].node;
		for (int i = 0; i < node->n_in; i++)
			if (is_differentiable(recording, plan, k, i) && plan->value[node->out].reaches)
				plan->value[node->in[i]].reaches = 1;
	}
	for (int64_t v = 0; v < recording->values; v++)
		plan->value[v].grad = plan->value[v].depends && plan->value[v].reaches;
	for (int64_t k = 0; k < recording->entries; k++)
		plan->entry[k].back =
		    plan->entry[k].alive && plan->value[recording->entry[k].node.out].grad;
}

/* Adds a span of one position to the list, which is long enough (most_spans), and returns its
 * index. The caller extends it. */
static int32_t add_span(const struct hg__recording *recording, struct hg__tape_plan *plan,
                        enum hg__use use, int32_t value, int32_t position, hg_dtype dtype)
{
	const size_t bytes = hg__value_bytes(&recording->value[value], dtype);
	/* At least HG__ALIGN bytes, so that an empty matrix has an address: for kernels NULL is an
	 * absent operand. */
	plan->span[plan->spans] = (struct hg__span){.use = use,
	                                            .value = value,
	                                            .first = position,
	                                            .last = position,
	                                            .replaces = -1,
	                                            .dtype = dtype,
	                                            .bytes = bytes ? hg__aligned(bytes) : HG__ALIGN};
	return (int32_t)plan->spans++;
}

/* The buffer stays in use up to this position at least. span -1: it is not in the arena, so nothing
 * is to be done. */
static void extend_span(struct hg__tape_plan *plan, int32_t span, int32_t position)
{
	if (span >= 0 && plan->span[span].last < position)
		plan->span[span].last = position;
}

/* A value below this size is not worth a kernel launch to recompute. A launch takes 2 us, in which
 * a GPU moves some MiB, and tapes with small tensors have memory to spare. */
#define LEAST_RECOMPUTED_BYTES ((size_t)1 << 20)

/* Is this value recomputed in the backward pass instead of kept? The op must allow it
 * (HG__RECOMPUTE). The value must also be at least twice as large as all its operands together,
 * because these then have to stay until the backward pass. */
static int is_recomputed(const struct hg__recording *recording, const struct hg__value *value)
{
	if (value->keep || value->kind != HG__RESULT ||
	    !(recording->entry[value->node].node.op->traits & HG__RECOMPUTE))
		return 0;
	const struct hg__node *node = &recording->entry[value->node].node;
	size_t read = 0;
	for (int i = 0; i < node->n_in; i++)
		if (node->in[i] >= 0)
			read += hg__value_bytes(&recording->value[node->in[i]],
			                        recording->value[node->in[i]].dtype);
	const size_t bytes = hg__value_bytes(value, value->dtype);
	return bytes >= LEAST_RECOMPUTED_BYTES && bytes / 2 >= read;
}

/* Node k reads operand i now, and its backward reads it at position back_at. Either the operand
 * stays until then, or it is recomputed there, into a span of that one position. In the second case
 * the operands of the node that makes it stay instead, even those that could be recomputed
 * themselves. */
static void save_operand(const struct hg__recording *recording, struct hg__tape_plan *plan,
                         int64_t k, int i, int32_t back_at)
{
	const int32_t operand = recording->entry[k].node.in[i];
	const struct hg__value *value = &recording->value[operand];
	if (plan->keeps || !is_recomputed(recording, value)) {
		extend_span(plan, plan->value[operand].span, back_at);
		return;
	}
	const struct hg__node *maker = &recording->entry[value->node].node;
	extend_span(plan, plan->value[operand].span, plan->entry[k].position);
	for (int j = 0; j < maker->n_in; j++)
		if (maker->in[j] >= 0)
			extend_span(plan, plan->value[maker->in[j]].span, back_at);
	plan->recomputes++;
	plan->entry[k].recompute[i] =
	    add_span(recording, plan, HG__USE_VALUE, operand, back_at, value->dtype);
}

/* The spans of what node k makes: its result and its aux values. What backward reads stays until
 * then, but in a region, which computes it again; and what the caller keeps stays to the end. An
 * aux value that only backward uses (HG__BACK_AUX) has a span at that position alone, and none if
 * the node has no backward. */
static void result_spans(const struct hg__recording *recording, struct hg__tape_plan *plan,
                         int64_t k)
{
	const struct hg__entry *entry = &recording->entry[k];
	const struct hg__planned_entry *planned = &plan->entry[k];
	const int32_t at = planned->position, back_at = hg__position_back(plan, k);
	for (int i = -1; i < HG__MAX_AUX; i++) {
		const int32_t made = i < 0 ? entry->node.out : entry->node.aux[i];
		const unsigned saved = entry->saves & (i < 0 ? HG__SAVE_OUT : HG__SAVE_AUX(i)),
		               only_back = i < 0 ? 0 : entry->saves & HG__BACK_AUX(i);
		if (made < 0 || (only_back && !planned->back) || plan->value[made].inside ||
		    plan->value[made].normalised >= 0 || (i >= 0 && planned->region >= 0))
			continue;
		const struct hg__value *value = &recording->value[made];
		const int32_t span =
		    add_span(recording, plan, HG__USE_VALUE, made, only_back ? back_at : at, value->dtype);
		plan->value[made].span = span;
		if (value->keep)
			extend_span(plan, span, hg__position_end(plan));
		if (planned->back && saved && planned->region < 0)
			extend_span(plan, span, back_at);
	}
}

/* A node computes its operand 0, `value`, from all that the batch norm that makes it reads, and
 * from what that has saved, up to this position. */
static void extend_normalised(const struct hg__recording *recording, struct hg__tape_plan *plan,
                              const struct hg__value *value, int32_t position)
{
	const struct hg__node *norm = &recording->entry[value->node].node;
	for (int i = 0; i < norm->n_in; i++)
		if (norm->in[i] >= 0)
			extend_span(plan, plan->value[norm->in[i]].span, position);
	for (int i = 0; i < HG__MAX_AUX; i++)
		if (norm->aux[i] >= 0 && !(recording->entry[value->node].saves & HG__BACK_AUX(i)))
			extend_span(plan, plan->value[norm->aux[i]].span, position);
}

/* The spans of what node k makes, and how long what it reads must stay. The nodes that make its
 * operands come earlier in the recording, so those spans exist already. */
static void value_spans(const struct hg__recording *recording, struct hg__tape_plan *plan,
                        int64_t k)
{
	const struct hg__entry *entry = &recording->entry[k];
	const struct hg__node *node = &entry->node;
	const int32_t at = plan->entry[k].position, back_at = hg__position_back(plan, k);
	result_spans(recording, plan, k);
	for (int i = 0; i < node->n_in; i++) {
		const int saved =
		    plan->entry[k].back && plan->entry[k].region < 0 && entry->saves & HG__SAVE_IN(i);
		if (node->in[i] < 0)
			continue;
		if (plan->value[node->in[i]].normalised >= 0)
			extend_normalised(recording, plan, &recording->value[node->in[i]],
			                  saved ? back_at : at);
		else if (saved)
			save_operand(recording, plan, k, i, back_at);
		else
			extend_span(plan, plan->value[node->in[i]].span, at);
	}
}

/* The spans of a region: its kernels read X both times, and `kept` is written by the first for the
 * second. */
static void region_spans(const struct hg__recording *recording, struct hg__tape_plan *plan,
                         const struct hg__region *region)
{
	const struct hg__planned_entry *first = &plan->entry[hg__region_first(region)];
	extend_span(plan, plan->value[region->x].span, first->position_back);
	if (region->kept < 0)
		return;
	const int32_t span =
	    add_span(recording, plan, HG__USE_VALUE, region->kept, first->position, HG_I32);
	plan->value[region->kept].span = span;
	extend_span(plan, span, first->position_back);
}

/* Do the gradients of operand i and of the result share one buffer? They can if the op passes the
 * gradient on unchanged, both have one type, both are in the arena, and nothing else reads the
 * operand, so that nothing is added to its gradient. That of the result is complete: all nodes that
 * add to it come earlier in the backward pass. Where chains are not fused, uses is 0 and nothing is
 * shared. */
static int shares_gradient(const struct hg__recording *recording, const struct hg__tape_plan *plan,
                           const struct hg__node *node, int i)
{
	const struct hg__value *value = &recording->value[node->in[i]],
	                       *out = &recording->value[node->out];
	return !plan->keeps && node->op->passes >> i & 1u && value->uses == 1 &&
	       value->kind != HG__PARAM && plan->value[node->out].grad_span >= 0 &&
	       value->dtype == out->dtype;
}

/* The values that the backward of a node can read, by their bits. */
static int32_t saved_value(const struct hg__node *node, unsigned bit)
{
	for (int i = 0; i < node->n_in; i++)
		if (bit == HG__SAVE_IN(i))
			return node->in[i];
	for (int i = 0; i < HG__MAX_AUX; i++)
		if (bit == HG__SAVE_AUX(i))
			return node->aux[i];
	return bit == HG__SAVE_OUT ? node->out : -1;
}

/* Lets the gradient of operand i, which node k begins in this span, take the place of what the op
 * names, if the backward of k is the last to read that, and it has the same size. What is replaced
 * is then gone after that backward, so its span ends one position earlier: up to there an observer
 * can read it. */
static void replace_saved(const struct hg__recording *recording, struct hg__tape_plan *plan,
                          int64_t k, int i, int32_t span)
{
	const struct hg__node *node = &recording->entry[k].node;
	const unsigned bit = node->op->replaces ? node->op->replaces(node, i) : 0;
	const int32_t saved = bit ? saved_value(node, bit) : -1,
	              place = saved >= 0 ? plan->value[saved].span : -1;
	if (place < 0 || plan->keeps || plan->span[place].last != plan->span[span].first ||
	    plan->span[place].first == plan->span[place].last ||
	    plan->span[place].bytes != plan->span[span].bytes)
		return;
	plan->span[place].last--;
	plan->span[span].replaces = place;
}

/* The first contribution to the gradient of operand i, from node k, begins the gradient's span. It
 * ends with the backward of the node that made the operand, or, for a leaf, after the run, when the
 * caller reads it. The gradient of a parameter is not in the arena. whole: the op writes it, and
 * not a part of another type. */
static void begin_gradient(const struct hg__recording *recording, struct hg__tape_plan *plan,
                           int64_t k, int i, int whole)
{
	const struct hg__node *node = &recording->entry[k].node;
	const int32_t root = hg__root_of(recording, k, i);
	const struct hg__value *value = &recording->value[root];
	if (value->kind == HG__PARAM)
		return;
	const int shares = shares_gradient(recording, plan, node, i);
	const int32_t span = shares ? plan->value[node->out].grad_span
	                            : add_span(recording, plan, HG__USE_GRAD, root,
	                                       hg__position_back(plan, k), hg__grad_dtype(value));
	plan->value[root].grad_span = span;
	if (whole && !shares)
		replace_saved(recording, plan, k, i, span);
	extend_span(plan, span,
	            value->node < 0 ? hg__position_end(plan) : hg__position_back(plan, value->node));
}

/* Plans the contribution of node k to the gradient of operand i. The first one is written straight
 * into the gradient if it has its type. A later one of that type is added by the op, if the op can
 * do that. Any other goes into a buffer of its own; the tape adds it to the gradient, or copies it
 * there if it is the first. */
static void contribute(const struct hg__recording *recording, struct hg__tape_plan *plan, int64_t k,
                       int i)
{
	const struct hg__node *node = &recording->entry[k].node;
	struct hg__planned_entry *planned = &plan->entry[k];
	const int32_t operand = node->in[i], root = hg__root_of(recording, k, i);
	const hg_dtype own_type = hg__part_dtype(node, i, &recording->value[operand]);
	const int same_type = own_type == hg__grad_dtype(&recording->value[root]);
	planned->is_first[i] = plan->value[root].parts++ == 0;
	if (planned->is_first[i])
		begin_gradient(recording, plan, k, i, same_type);
	else if (same_type)
		planned->adds |= node->op->adds & 1u << i;
	if (!same_type || (!planned->is_first[i] && !(planned->adds >> i & 1u)))
		planned->part_span[i] =
		    add_span(recording, plan, HG__USE_PART, operand, hg__position_back(plan, k), own_type);
}

/* Does the contribution of node k to the gradient of operand i stay within a region? The gradient
 * of a region's X has one contribution from the region. It is counted as that of the first node,
 * and other nodes of the region that read X have none of their own. */
static int stays_inside(const struct hg__recording *recording, const struct hg__tape_plan *plan,
                        int64_t k, int i)
{
	const struct hg__region *region = hg__region_of(plan, k);
	const int32_t operand = recording->entry[k].node.in[i], maker = recording->value[operand].node;
	if (!region)
		return 0;
	return operand == region->x ? hg__region_first(region) != k
	                            : maker >= 0 && plan->entry[maker].region == plan->entry[k].region;
}

/* The spans of all gradients, in the order of the backward pass. The gradient of the loss needs no
 * buffer: it is the loss scale, which is read from the optimiser's state (tasks.c). */
static void grad_spans(const struct hg__recording *recording, struct hg__tape_plan *plan)
{
	for (int64_t k = recording->entries - 1; k >= 0; k--) {
		const struct hg__node *node = &recording->entry[k].node;
		for (int i = 0; i < node->n_in && plan->entry[k].back; i++)
			if (is_differentiable(recording, plan, k, i) && plan->value[node->in[i]].grad &&
			    plan->value[node->in[i]].through < 0 && !stays_inside(recording, plan, k, i))
				contribute(recording, plan, k, i);
	}
}

/* The aux values of a batch norm, those that only backward uses or the others, are in use from
 * `first` to `last` at least. */
static void widen_aux(const struct hg__recording *recording, struct hg__tape_plan *plan,
                      int32_t norm, int only_back, int32_t first, int32_t last)
{
	const struct hg__entry *entry = &recording->entry[norm];
	for (int i = 0; i < HG__MAX_AUX; i++) {
		const int32_t span = entry->node.aux[i] < 0 ? -1 : plan->value[entry->node.aux[i]].span;
		if (span < 0 || !(entry->saves & HG__BACK_AUX(i)) != !only_back)
			continue;
		if (plan->span[span].first > first)
			plan->span[span].first = first;
		extend_span(plan, span, last);
	}
}

/* The buffers of batch norms, parts of which other nodes compute (norms.c): the node that makes
 * what a norm reads, and the one that reads its result. */
static void norm_spans(const struct hg__recording *recording, struct hg__tape_plan *plan)
{
	for (int32_t k = 0; k < (int32_t)plan->entries; k++) {
		const struct hg__planned_entry *planned = &plan->entry[k];
		const int32_t out = recording->entry[k].node.out, norm = plan->value[out].through,
		              at = planned->position_back;
		if (planned->statistics >= 0)
			widen_aux(recording, plan, planned->statistics, 0, planned->position,
			          planned->position);
		if (planned->has_sums)
			widen_aux(recording, plan, k, 1, plan->entry[plan->value[out].normalised].position_back,
			          at);
		if (norm < 0)
			continue;
		widen_aux(recording, plan, norm, 0, plan->entry[norm].position, at);
		widen_aux(recording, plan, norm, 1, plan->entry[norm].position_back, at);
		const struct hg__node *node = &recording->entry[norm].node;
		for (int i = 0; i < node->n_in; i++)
			if (node->in[i] >= 0)
				extend_span(plan, plan->value[node->in[i]].span, at);
		extend_span(plan, plan->value[node->out].grad_span, at);
	}
}

/* How many spans there can be: a node has its result and what it keeps; an operand may be
 * recomputed, and have a gradient and a contribution to it; a region keeps a value. */
static int64_t most_spans(const struct hg__recording *recording, const struct hg__tape_plan *plan)
{
	int64_t spans = plan->regions;
	for (int64_t k = 0; k < recording->entries; k++)
		spans += 1 + HG__MAX_AUX + 3 * recording->entry[k].node.n_in;
	return spans;
}

/* Allocates the plan: one zeroed element for each value and entry of the recording. None has a
 * span yet. */
static hg_status begin_plan(hg_context *ctx, const struct hg__recording *recording,
                            struct hg__tape_plan *plan)
{
	void *memory = NULL;
	HG__TRY(hg__host_alloc(ctx, (size_t)recording->values, sizeof *plan->value, "the memory plan",
	                       &memory));
	plan->value = memory;
	plan->values = recording->values;
	plan->span_capacity = most_spans(recording, plan);
	HG__TRY(hg__host_alloc(ctx, (size_t)plan->span_capacity, sizeof *plan->span, "the memory plan",
	                       &memory));
	plan->span = memory;
	HG__TRY(hg__host_alloc(ctx, (size_t)recording->entries, sizeof *plan->entry, "the memory plan",
	                       &memory));
	plan->entry = memory;
	plan->entries = recording->entries;
	for (int64_t v = 0; v < plan->values; v++)
		plan->value[v].span = plan->value[v].grad_span = plan->value[v].normalised =
		    plan->value[v].through = -1;
	for (int64_t k = 0; k < plan->entries; k++) {
		plan->entry[k].region = plan->entry[k].statistics = -1;
		for (int i = 0; i < HG__MAX_IN; i++)
			plan->entry[k].recompute[i] = plan->entry[k].part_span[i] = -1;
	}
	return HG_OK;
}

hg_status hg__plan_lifetimes(hg_context *ctx, const struct hg__recording *recording,
                             struct hg__tape_plan *plan)
{
	HG__TRY(begin_plan(ctx, recording, plan));
	find_alive(recording, plan);
	hg__place_regions(recording, plan);
	find_grads(recording, plan);
	hg__place_norms(ctx, recording, plan);
	for (int64_t k = 0; k < recording->entries; k++)
		if (plan->entry[k].alive)
			value_spans(recording, plan, k);
	for (int64_t r = 0; r < plan->regions; r++)
		region_spans(recording, plan, &plan->region[r]);
	grad_spans(recording, plan);
	norm_spans(recording, plan);
	/* A tape that keeps everything (keep.c): all spans last to the end, so no memory is used
	 * twice. */
	if (plan->keeps)
		for (int64_t i = 0; i < plan->spans; i++)
			extend_span(plan, (int32_t)i, hg__position_end(plan));
	return HG_OK;
}

void hg__tape_plan_free(hg_context *ctx, struct hg__tape_plan *plan)
{
	hg__host_free(ctx, plan->region, (size_t)plan->region_capacity * sizeof *plan->region);
	hg__host_free(ctx, plan->span, (size_t)plan->span_capacity * sizeof *plan->span);
	hg__host_free(ctx, plan->entry, (size_t)plan->entries * sizeof *plan->entry);
	hg__host_free(ctx, plan->value, (size_t)plan->values * sizeof *plan->value);
}
