#include "autograd/tape.h"

/* From the plan to tasks: calls that run without any further decision. Buffers get their addresses,
 * graphs build what they cache, and the workspace is reserved, so that a run allocates nothing. */

void hg__tape_borrow(hg_tape *tape, hg_tape *arena_owner)
{
	tape->program.arena_owner = arena_owner;
}

void hg__tape_lend(hg_tape *tape, struct hg__buffer *arena)
{
	tape->program.lent = arena;
}

/* Makes lent memory as large as this tape needs it, with an eighth to spare for the next one. */
static hg_status grow_lent(hg_tape *tape, struct hg__buffer *lent)
{
	const size_t needed = tape->plan.arena_bytes;
	if (lent->bytes >= needed)
		return HG_OK;
	hg__buffer_free(tape->ctx, lent);
	if (hg__buffer_device(tape->ctx, (int64_t)(needed + needed / 8), 1, "the tapes' arena", lent) <
	    0)
		return hg__tape_no_memory(tape, needed, SIZE_MAX);
	return tape->ctx->backend->fill(tape->ctx, lent->data, 0, lent->bytes);
}

/* The arena starts as zeros, because kernels read the padding of rows and it must hold numbers. */
static hg_status allocate_arena(hg_tape *tape)
{
	const hg_tape *owner = tape->program.arena_owner;
	struct hg__buffer *arena = &tape->program.arena;
	if (tape->plan.arena_bytes == 0)
		tape->plan.arena_bytes = HG__ALIGN;
	if (owner) {
		*arena = owner->program.arena;
		return HG_OK;
	}
	if (tape->program.lent) {
		HG__TRY(grow_lent(tape, tape->program.lent));
		*arena = *tape->program.lent;
		return HG_OK;
	}
	if (hg__buffer_device(tape->ctx, (int64_t)tape->plan.arena_bytes, 1, "the tape's arena",
	                      arena) < 0)
		return hg__tape_no_memory(tape, tape->plan.arena_bytes, SIZE_MAX);
	return tape->ctx->backend->fill(tape->ctx, arena->data, 0, arena->bytes);
}

static hg_status build_views(hg_tape *tape)
{
	const struct hg__recording *recording = &tape->recording;
	struct hg__program *program = &tape->program;
	void *memory = NULL;
	HG__TRY(hg__host_alloc(tape->ctx, (size_t)recording->values, sizeof *program->view,
	                       "the tape's tensors", &memory));
	program->view = memory;
	program->views = recording->values;
	for (int32_t v = 0; v < (int32_t)recording->values; v++) {
		if (tape->plan.value[v].span >= 0)
			program->view[v].value = hg__tensor_view(tape->ctx, hg__mat_of(tape, v));
		if (tape->plan.value[v].grad_span >= 0)
			program->view[v].grad = hg__tensor_view(tape->ctx, hg__grad_of(tape, v));
	}
	return HG_OK;
}

/* The call of a node that reads its operands as they are. */
static hg_status plain_call(const hg_tape *tape, int64_t k, struct hg__call *call)
{
	const struct hg__recording *recording = &tape->recording;
	const struct hg__node *node = &recording->entry[k].node;
	*call = (struct hg__call){.ctx = tape->ctx,
	                          .k = tape->ctx->backend->kernels,
	                          .node = node,
	                          .mode = tape->mode,
	                          .step = &tape->params->step->step,
	                          .stop = &tape->params->step->stop};
	for (int i = 0; i < HG__MAX_IN; i++)
		call->in[i] = hg__mat_of(tape, i < node->n_in ? node->in[i] : -1);
	for (int i = 0; i < HG__MAX_AUX; i++)
		call->aux[i] = hg__mat_of(tape, node->aux[i]);
	call->out = hg__mat_of(tape, node->out);
	for (int i = 0; i < 2; i++)
		if (node->buffer[i])
			call->buffer[i] = node->buffer[i]->master->mat;
	if (node->n_in > 0 && node->in[0] >= 0)
		call->live = recording->value[node->in[0]].live;
	call->overflow = hg__store_guard(tape, k);
	for (int i = 0; i < node->n_in; i++)
		call->shift[i] = node->in[i] < 0 ? 0 : recording->value[node->in[i]].shift;
	call->shift_out = node->shift;
	return hg__set_graph(&tape->recording, &tape->plan, k, call);
}

/* The forward call, with what it computes of the batch norms before and behind the node
 * (norms.c). */
static hg_status forward_call(const hg_tape *tape, int64_t k, struct hg__call *call)
{
	const struct hg__planned_entry *planned = &tape->plan.entry[k];
	struct hg__call norm;
	HG__TRY(plain_call(tape, k, call));
	const int32_t x = call->node->n_in > 0 ? call->node->in[0] : -1;
	call->has_statistics = planned->has_statistics;
	if (planned->statistics >= 0) {
		HG__TRY(plain_call(tape, planned->statistics, &norm));
		call->statistics = norm.node->op->as_statistics(&norm);
		call->statistics.y.data = NULL;
	}
	if (x < 0 || tape->plan.value[x].normalised < 0)
		return HG_OK;
	HG__TRY(plain_call(tape, tape->recording.value[x].node, &norm));
	call->in[0] = norm.in[0];
	norm.node->op->as_normalised(&norm, &call->normalise);
	return HG_OK;
}

/* Turns the call of a node into its backward call. Of the forward operands only those in `saves`
 * keep their addresses, since the memory of the others may be in use again. */
static void plain_backward(const hg_tape *tape, struct hg__task *task)
{
	const struct hg__recording *recording = &tape->recording;
	const struct hg__entry *entry = &recording->entry[task->entry];
	const struct hg__planned_entry *planned = &tape->plan.entry[task->entry];
	const struct hg__node *node = &entry->node;
	struct hg__call *call = &task->call;
	call->overflow.word = NULL;
	for (int i = 0; i < HG__MAX_IN; i++)
		if (!(entry->saves & HG__SAVE_IN(i)))
			call->in[i].data = NULL;
	for (int i = 0; i < HG__MAX_AUX; i++)
		if (!(entry->saves & (HG__SAVE_AUX(i) | HG__BACK_AUX(i))))
			call->aux[i].data = NULL;
	if (!(entry->saves & HG__SAVE_OUT))
		call->out.data = NULL;
	for (int i = 0; i < node->n_in; i++)
		if (planned->recompute[i] >= 0)
			call->in[i] = hg__in_arena(tape, &recording->value[node->in[i]],
			                           recording->value[node->in[i]].dtype, planned->recompute[i]);
	call->adds = planned->adds;
	call->dout = hg__grad_of(tape, node->out);
	for (int i = 0; i < node->n_in; i++) {
		if (node->in[i] < 0 || !(entry->grads >> i & 1u) || !tape->plan.value[node->in[i]].grad)
			continue;
		const struct hg__value *operand = &recording->value[node->in[i]];
		call->din[i] = hg__grad_of(tape, operand->root);
		if (planned->part_span[i] < 0)
			continue;
		task->add[i] = call->din[i];
		task->is_first[i] = planned->is_first[i];
		call->din[i] =
		    hg__in_arena(tape, operand, hg__part_dtype(node, i, operand), planned->part_span[i]);
	}
}

static hg_status norm_gradients(const hg_tape *tape, int32_t norm,
                                struct hg__batch_norm_back_args *args)
{
	struct hg__task task = {.entry = norm};
	HG__TRY(plain_call(tape, norm, &task.call));
	plain_backward(tape, &task);
	*args = task.call.node->op->as_gradients(&task.call);
	return HG_OK;
}

/* The backward call, with what it computes of the batch norms before and behind the node
 * (norms.c). */
static hg_status backward_call(const hg_tape *tape, struct hg__task *task)
{
	const struct hg__tape_plan *plan = &tape->plan;
	struct hg__call *call = &task->call;
	const struct hg__node *node = call->node;
	const int32_t x = node->n_in > 0 ? node->in[0] : -1, through = plan->value[node->out].through,
	              norm =
	                  x >= 0 && plan->value[x].normalised >= 0 ? tape->recording.value[x].node : -1;
	plain_backward(tape, task);
	call->has_sums = plan->entry[task->entry].has_sums;
	if (norm >= 0 && plan->entry[norm].has_sums) {
		struct hg__batch_norm_back_args args;
		HG__TRY(norm_gradients(tape, norm, &args));
		call->norm_sums[0] = args.dgamma;
		call->norm_sums[1] = args.dbeta;
	}
	if (through >= 0) {
		HG__TRY(norm_gradients(tape, through, &call->through));
		call->dout = call->through.dy;
	}
	return HG_OK;
}

/* Do other nodes compute all of this batch norm, forward or backward? */
static int is_idle_norm(const struct hg__tape_plan *plan, int32_t entry,
                        const struct hg__node *node, int backward)
{
	const struct hg__planned_entry *planned = &plan->entry[entry];
	return backward ? planned->has_sums && plan->value[node->in[0]].through == entry
	                : planned->has_statistics && plan->value[node->out].normalised >= 0;
}

/* Builds the caches of the graph that a call reads. */
static hg_status prepare_call(const struct hg__call *call)
{
	const struct hg__op *op = call->node->op;
	return op->prepare ? op->prepare(call) : HG_OK;
}

/* Measures the workspace of a call, so that its run allocates nothing. */
static hg_status plan_call(hg_tape *tape, const struct hg__call *call, int backward)
{
	const struct hg__op *op = call->node->op;
	struct hg__program *program = &tape->program;
	struct hg__planned planned = {0};
	struct hg__call dry = *call;
	dry.planned = &planned;
	HG__TRY(backward ? op->backward(&dry) : op->forward(&dry));
	program->workspace_bytes = hg__larger(program->workspace_bytes, planned.workspace);
	return HG_OK;
}

/* The arguments of all regions, and the workspace of their kernels. */
static hg_status build_regions(hg_tape *tape)
{
	struct hg__program *program = &tape->program;
	const struct hg__kernels *kernels = tape->ctx->backend->kernels;
	for (int64_t r = 0; r < tape->plan.regions; r++) {
		const struct hg__region *region = &tape->plan.region[r];
		struct hg__region_call *call = &program->region[r];
		struct hg__task first = {.entry = hg__region_first(region)};
		HG__TRY(forward_call(tape, first.entry, &first.call));
		HG__TRY(backward_call(tape, &first));
		HG__TRY(hg__region_arguments(tape, region, &first.call, call));
		program->workspace_bytes = hg__larger(
		    program->workspace_bytes,
		    hg__larger(kernels->small_layers.workspace(tape->ctx, &call->forward),
		               kernels->small_layers_back.workspace(tape->ctx, &call->backward)));
	}
	return HG_OK;
}

/* Comes before the arena is allocated: building a graph's caches needs memory beside the result,
 * and sets the size of the workspace. */
static hg_status prepare_graphs(hg_tape *tape)
{
	const struct hg__recording *recording = &tape->recording;
	const struct hg__tape_plan *plan = &tape->plan;
	size_t missing = 0;
	HG__TRY(hg__graphs_missing(recording, plan, &missing));
	HG__TRY(hg__tape_room(tape, missing));
	HG__TRY(build_regions(tape)); /* for the size of the workspace: the arena is not there yet */
	for (int64_t k = 0; k < recording->entries; k++) {
		if (!plan->entry[k].alive)
			continue;
		struct hg__task task = {.entry = (int32_t)k};
		HG__TRY(forward_call(tape, k, &task.call));
		HG__TRY(prepare_call(&task.call));
		if (plan->entry[k].region >= 0)
			continue;
		HG__TRY(plan_call(tape, &task.call, 0));
		if (!plan->entry[k].back)
			continue;
		HG__TRY(backward_call(tape, &task));
		HG__TRY(plan_call(tape, &task.call, 1));
	}
	HG__TRY(hg__tape_room(tape, 0));
	/* a copy must not change shared graphs */
	return plan->keeps ? HG_OK : hg__graphs_tile(recording, plan, tape->mode, hg__tape_needs(tape));
}

/* Attaches a region to the task of the node with which it runs, and makes the others idle. */
static void join_region(const hg_tape *tape, struct hg__task *task, int backward)
{
	const struct hg__region *region = hg__region_of(&tape->plan, task->entry);
	if (!region)
		return;
	const int32_t runs = backward ? hg__region_back(region) : hg__region_first(region);
	task->idle = task->entry != runs;
	task->region = task->idle ? NULL : &tape->program.region[tape->plan.entry[task->entry].region];
}

/* The results of a task that are compared as they are stored. */
static int64_t guards_of(const struct hg__task *task)
{
	int64_t guards = 0;
	if (!task->region)
		return !task->idle && task->call.overflow.word;
	for (int l = 0; l < task->region->forward.layers; l++)
		guards += (task->region->layer[l].inner.word != NULL) +
		          (task->region->layer[l].result.word != NULL);
	return guards + (task->region->forward.readout.result.word != NULL);
}

static hg_status build_forward(hg_tape *tape)
{
	struct hg__program *program = &tape->program;
	for (int64_t k = 0; k < tape->recording.entries; k++) {
		if (!tape->plan.entry[k].alive)
			continue;
		struct hg__task *task = &program->forward[program->forwards++];
		task->entry = (int32_t)k;
		HG__TRY(forward_call(tape, k, &task->call));
		join_region(tape, task, 0);
		task->idle |= is_idle_norm(&tape->plan, (int32_t)k, task->call.node, 0);
		program->store_guards += guards_of(task);
		HG__TRY(prepare_call(&task->call));
		if (tape->plan.entry[k].region < 0)
			HG__TRY(plan_call(tape, &task->call, 0));
	}
	return HG_OK;
}

/* Runs the forward of the node that makes operand i once more, into the buffer in which the
 * backward of entry k will read it. */
static void build_recompute(hg_tape *tape, int32_t k, int i)
{
	const struct hg__recording *recording = &tape->recording;
	struct hg__program *program = &tape->program;
	const struct hg__value *value = &recording->value[recording->entry[k].node.in[i]];
	struct hg__task *task = &program->backward[program->backwards++];
	for (int64_t f = 0; f < program->forwards; f++)
		if (program->forward[f].entry == value->node)
			*task = program->forward[f];
	task->call.out = hg__in_arena(tape, value, value->dtype, tape->plan.entry[k].recompute[i]);
	task->call.overflow.word = NULL;
	task->recompute = 1;
}

static hg_status build_backward(hg_tape *tape)
{
	const struct hg__recording *recording = &tape->recording;
	struct hg__program *program = &tape->program;
	for (int64_t f = program->forwards - 1; f >= 0; f--) {
		const int32_t k = program->forward[f].entry;
		if (!tape->plan.entry[k].back)
			continue;
		for (int i = 0; i < recording->entry[k].node.n_in; i++)
			if (tape->plan.entry[k].recompute[i] >= 0)
				build_recompute(tape, k, i);
		struct hg__task *task = &program->backward[program->backwards++];
		*task = program->forward[f];
		task->idle = 0;
		HG__TRY(backward_call(tape, task));
		join_region(tape, task, 1);
		task->idle |= is_idle_norm(&tape->plan, k, task->call.node, 1);
		if (tape->plan.entry[k].region < 0)
			HG__TRY(plan_call(tape, &task->call, 1));
	}
	return HG_OK;
}

static hg_status allocate_regions(hg_tape *tape)
{
	void *memory = NULL;
	if (!tape->plan.regions)
		return HG_OK;
	HG__TRY(hg__host_alloc(tape->ctx, (size_t)tape->plan.regions, sizeof(struct hg__region_call),
	                       "the tape's regions", &memory));
	tape->program.region = memory;
	tape->program.regions = tape->plan.regions;
	return HG_OK;
}

static hg_status allocate_tasks(hg_context *ctx, int64_t count, struct hg__task **tasks,
                                int64_t *capacity)
{
	void *memory = NULL;
	HG__TRY(hg__host_alloc(ctx, (size_t)count, sizeof **tasks, "the tape's calls", &memory));
	*tasks = memory;
	*capacity = count;
	return HG_OK;
}

hg_status hg__tape_tasks(hg_tape *tape)
{
	struct hg__program *program = &tape->program;
	void *workspace = NULL;
	if (program->arena_owner && tape->plan.arena_bytes > program->arena_owner->plan.arena_bytes)
		program->arena_owner = NULL;
	HG__TRY(allocate_regions(tape));
	HG__TRY(prepare_graphs(tape));
	HG__TRY(allocate_arena(tape));
	HG__TRY(build_regions(tape));
	HG__TRY(build_views(tape));
	HG__TRY(allocate_tasks(tape->ctx, tape->plan.running, &program->forward,
	                       &program->forward_capacity));
	HG__TRY(allocate_tasks(tape->ctx, tape->plan.running + tape->plan.recomputes,
	                       &program->backward, &program->backward_capacity));
	HG__TRY(build_forward(tape));
	HG__TRY(build_backward(tape));
	if (tape->mode == HG_TRAIN)
		HG__TRY(hg__graphs_promise(tape->ctx, program));
	return hg__workspace(tape->ctx, program->workspace_bytes, &workspace);
}

void hg__program_free(hg_context *ctx, struct hg__program *program)
{
	if (!program->arena_owner && !program->lent)
		hg__buffer_free(ctx, &program->arena);
	hg__host_free(ctx, program->region, (size_t)program->regions * sizeof *program->region);
	hg__host_free(ctx, program->view, (size_t)program->views * sizeof *program->view);
	hg__host_free(ctx, program->promise,
	              (size_t)program->promise_capacity * sizeof *program->promise);
	hg__host_free(ctx, program->forward,
	              (size_t)program->forward_capacity * sizeof *program->forward);
	hg__host_free(ctx, program->backward,
	              (size_t)program->backward_capacity * sizeof *program->backward);
}
