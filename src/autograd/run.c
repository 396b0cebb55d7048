#include "autograd/tape.h"

/* Replays a compiled tape. Nothing here allocates, waits or reads data, so a training step can be
 * captured. */

void hg__tape_hook(hg_tape *tape, const struct hg__hook *hook)
{
	tape->program.hook = hook;
}

void hg__tape_move(hg_tape *tape, hg_context *ctx)
{
	struct hg__program *program = &tape->program;
	tape->ctx = ctx;
	for (int64_t i = 0; i < program->forwards; i++)
		program->forward[i].call.ctx = ctx;
	for (int64_t i = 0; i < program->backwards; i++)
		program->backward[i].call.ctx = ctx;
}

static hg_status call_hook(const hg_tape *tape, const struct hg__task *task, int backward)
{
	const struct hg__hook *hook = tape->program.hook;
	return hook ? hook->after(hook->user, tape, task->entry, backward, &task->call) : HG_OK;
}

static hg_status call_laps(const hg_tape *tape, int64_t k)
{
	const struct hg__laps *laps = tape->program.laps;
	return laps ? laps->at(laps->user, k) : HG_OK;
}

/* The guard of a result whose own kernel does not compare what it stores. */
static hg_status guard_stored(const struct hg__call *call)
{
	const struct hg__guard_args args = {call->out, call->overflow};
	return call->overflow.word && !(call->node->op->traits & HG__GUARDS_STORE)
	           ? call->k->guard.run(call->ctx, &args)
	           : HG_OK;
}

static hg_status run_forward(const struct hg__task *task)
{
	const struct hg__call *call = &task->call;
	if (task->idle)
		return HG_OK;
	if (task->region)
		return call->k->small_layers.run(call->ctx, &task->region->forward);
	HG__TRY(call->node->op->forward(call));
	return guard_stored(call);
}

static hg_status run_backward(const struct hg__task *task)
{
	const struct hg__call *call = &task->call;
	if (task->idle)
		return HG_OK;
	return task->region ? call->k->small_layers_back.run(call->ctx, &task->region->backward)
	                    : call->node->op->backward(call);
}

hg_status hg__overflow_clear(hg_params *params)
{
	if (!params->overflow_pending)
		return HG_OK;
	params->overflow_pending = 0;
	return params->ctx->backend->fill(params->ctx, &params->step->overflow, 0,
	                                  sizeof params->step->overflow);
}

/* A step consumes the overflow flag. So there is something to clear only if a guarded forward pass
 * was not followed by a step. */
static hg_status begin_overflow_flag(const hg_tape *tape)
{
	if (!tape->program.store_guards)
		return HG_OK;
	HG__TRY(hg__overflow_clear(tape->params));
	tape->params->overflow_pending = 1;
	return HG_OK;
}

/* Steps on graphs that break a promise are skipped, because proofs rest on what is promised. The
 * flag then names the first op on such a graph. */
static hg_status check_promises(const hg_tape *tape)
{
	const struct hg__program *program = &tape->program;
	if (!program->promises)
		return HG_OK;
	if (!program->store_guards) /* otherwise it is clear already */
		HG__TRY(hg__overflow_clear(tape->params));
	for (int64_t k = 0; k < program->promises; k++) {
		tape->params->overflow_pending = 1;
		HG__TRY(tape->ctx->backend->raise(tape->ctx, program->promise[k].broken,
		                                  program->promise[k].entry,
		                                  &tape->params->step->overflow));
	}
	return HG_OK;
}

hg_status hg_tape_forward(hg_tape *tape)
{
	if (!tape)
		return HG_ERR_ARG;
	HG__TRY(hg__tape_mistake(tape));
	if (tape->stage == HG__RECORDING)
		return hg__fail(tape->ctx, HG_ERR_STATE, "hg_tape_forward: the tape is not compiled");
	tape->stage = HG__COMPILED;
	if (tape->program.arena_owner)
		tape->program.arena_owner->stage = HG__COMPILED; /* its values are overwritten */
	hg__watch_begin(tape->observing.watch);
	HG__TRY(begin_overflow_flag(tape));
	HG__TRY(check_promises(tape));
	for (int64_t i = 0; i < tape->program.forwards; i++) {
		const struct hg__task *task = &tape->program.forward[i];
		HG__TRY(call_laps(tape, i));
		HG__TRY(run_forward(task));
		HG__TRY(call_hook(tape, task, 0));
		HG__TRY(hg__watch_after(tape->observing.watch, i));
	}
	HG__TRY(call_laps(tape, tape->program.forwards));
	tape->stage = HG__FORWARDED;
	return HG_OK;
}

static hg_status check_backward(const hg_tape *tape)
{
	hg_context *ctx = tape->ctx;
	HG__TRY(hg__tape_mistake(tape));
	if (tape->mode != HG_TRAIN)
		return hg__fail(ctx, HG_ERR_STATE, "hg_tape_backward: this is an EVAL tape");
	if (tape->stage == HG__RECORDING)
		return hg__fail(ctx, HG_ERR_STATE, "hg_tape_backward: the tape is not compiled");
	const struct hg__value *out = &tape->recording.value[tape->plan.output];
	if (!tape->plan.trains)
		return hg__fail(
		    ctx, HG_ERR_STATE,
		    "hg_tape_backward: the output is %s [%lld, %lld], expected a loss, f32 [1, 1]",
		    hg_dtype_name(out->dtype), (long long)out->rows, (long long)out->cols);
	if (tape->stage != HG__FORWARDED)
		return hg__fail(ctx, HG_ERR_STATE,
		                "hg_tape_backward: run hg_tape_forward first; each forward serves one "
		                "backward, which reuses its memory");
	return HG_OK;
}

/* A parameter of this tape that the loss does not depend on gets gradient 0. */
hg_status hg__tape_back_begin(const hg_tape *tape)
{
	const struct hg__backend *backend = tape->ctx->backend;
	for (int64_t v = 0; v < tape->recording.values; v++) {
		const struct hg__value *value = &tape->recording.value[v];
		if (value->kind == HG__PARAM && value->root == (int32_t)v && value->param->grad &&
		    !tape->plan.value[v].parts)
			HG__TRY(backend->fill(tape->ctx, value->param->grad->mat.data, 0,
			                      value->param->grad->bytes));
	}
	return HG_OK;
}

/* gradient = part for the first contribution, gradient += part for the others, always in the order
 * of the backward pass. */
hg_status hg__add_parts(hg_context *ctx, const struct hg__task *task)
{
	for (int i = 0; i < HG__MAX_IN; i++) {
		if (!task->add[i].data)
			continue;
		const struct hg__mat part = task->call.din[i], sum = task->add[i];
		const struct hg__axpby_args first = {.x = part, .y = sum, .alpha = 1.0f},
		                            further = {
		                                .x = sum, .z = part, .y = sum, .alpha = 1.0f, .beta = 1.0f};
		HG__TRY(ctx->backend->kernels->axpby.run(ctx, task->is_first[i] ? &first : &further));
	}
	return HG_OK;
}

hg_status hg_tape_backward(hg_tape *tape)
{
	if (!tape)
		return HG_ERR_ARG;
	HG__TRY(check_backward(tape));
	tape->stage = HG__COMPILED;
	HG__TRY(hg__tape_back_begin(tape));
	for (int64_t i = 0; i < tape->program.backwards; i++) {
		const struct hg__task *task = &tape->program.backward[i];
		HG__TRY(call_laps(tape, tape->program.forwards + 1 + i));
		/* recomputes an operand of the next task: the pass has no node here */
		if (task->recompute) {
			HG__TRY(task->call.node->op->forward(&task->call));
		} else {
			HG__TRY(run_backward(task));
			HG__TRY(hg__add_parts(tape->ctx, task));
			HG__TRY(call_hook(tape, task, 1));
		}
		HG__TRY(hg__watch_after(tape->observing.watch, tape->program.forwards + i));
	}
	return call_laps(tape, tape->program.forwards + 1 + tape->program.backwards);
}
