#include <math.h>
#include <stdio.h>
#include <string.h>

#include "doctor/check.h"

/* Checks what a task has made as soon as it has run, while its operands are still there: did it
 * make something bad of good operands? */

static int operand_underflowed(const struct hg__replay *replay, const struct hg__task *task,
                               int backward)
{
	const struct hg__node *node = task->call.node;
	for (int i = 0; i < node->n_in; i++)
		if (node->in[i] >= 0 && task->call.in[i].data && replay->value[node->in[i]].underflowed)
			return 1;
	return backward && replay->grad[node->out].underflowed;
}

static hg_status describe_tensor(struct hg__replay *replay, const struct hg__result *r,
                                 hg_doctor_tensor *t)
{
	const struct hg__node *node = r->task->call.node;
	const struct hg__entry *entry = hg__entry_of(replay, r->task);
	const struct hg__value *value = &replay->tape->recording.value[r->value];
	const double scale = (double)replay->step.scale.scale;
	*t = (hg_doctor_tensor){.node = value->node,
	                        .backward = r->backward,
	                        .dtype = r->stored.dtype,
	                        .rows = r->stored.rows,
	                        .cols = r->stored.cols};
	t->bound = r->backward ? hg__bound_of_gradient(replay->tape, r->value, scale)
	                       : value->known[HG__ASSUMED].largest;
	t->shift = r->operand == HG__OUTPUT ? value->shift : 0;
	t->verdict = r->backward ? hg__gradient_verdict(replay->tape, r->value) : node->verdict;
	for (int i = 0; i < 8; i++) {
		const int32_t in = i < node->n_in ? node->in[i] : -1;
		t->in[i] = in >= 0 ? replay->tape->recording.value[in].node : -1;
	}
	HG__TRY(hg__result_name(replay, r, &t->name));
	HG__TRY(hg__report_text(replay->ctx, replay->memory, &t->op, "%s",
	                        entry->title ? entry->title : node->op->name));
	return hg__report_text(replay->ctx, replay->memory, &t->layer, "%s", node->scope);
}

/* ---- one result ---- */

static hg_status find_silent(struct hg__replay *replay, const struct hg__result *r,
                             const struct hg__scan *seen, int operand_underflows, int *underflows)
{
	HG__TRY(hg__find_underflow(replay, r, seen, operand_underflows, underflows));
	HG__TRY(hg__find_swamping(replay, r, seen));
	return *underflows ? HG_OK : hg__find_rescaled_underflow(replay, r, seen, underflows);
}

/* info: of the value, or of its gradient. operands_finite 0: only elements that are finite in the
 * wide run can be this op's fault. */
static hg_status check_result(struct hg__replay *replay, const struct hg__result *r,
                              struct hg__value_info *info, struct hg__replayed *replayed,
                              int operands_finite)
{
	const int operand_underflows = operand_underflowed(replay, r->task, r->backward);
	struct hg__scan seen;
	hg_doctor_tensor tensor;
	int underflows = 0;
	HG__TRY(hg__scan_result(replay->ctx, &r->stored, r->wide.data ? &r->wide : NULL,
	                        operands_finite, &seen));
	if (r->operand != HG__INTERMEDIATE) {
		HG__TRY(describe_tensor(replay, r, &tensor));
		HG__TRY(hg__list_tensor(replay, &tensor, &seen, &info->tensor));
	}
	if (!operands_finite && !r->backward && seen.nonfinite)
		HG__TRY(hg__note_bad_score(replay, r, &seen));
	if (r->wide.data && seen.introduced)
		HG__TRY(hg__find_nonfinite(replay, r, &seen, operands_finite));
	if (r->wide.data && replay->wants_silent && operands_finite)
		HG__TRY(find_silent(replay, r, &seen, operand_underflows, &underflows));
	info->bad = seen.nonfinite;
	info->count = r->stored.rows * r->stored.cols;
	info->underflowed |= operand_underflows | underflows;
	replayed->bad += seen.nonfinite;
	replayed->count += info->count;
	return HG_OK;
}

static struct hg__replayed *next_replayed(struct hg__replay *replay, const struct hg__task *task,
                                          int backward)
{
	struct hg__replayed *replayed = &replay->replayed[replay->replayed_count];
	*replayed = (struct hg__replayed){task, backward, 0, 0};
	return replayed;
}

static int is_float_result(const struct hg__mat *mat)
{
	return mat->data && hg__is_float(mat->dtype);
}

/* ---- forward ---- */

hg_status hg__check_forward(struct hg__replay *replay, const struct hg__task *task)
{
	struct hg__replayed *replayed = next_replayed(replay, task, 0);
	struct hg__wide wide = {0};
	struct hg__result result = {.task = task,
	                            .position = replay->replayed_count,
	                            .operand = HG__OUTPUT,
	                            .value = task->call.node->out,
	                            .stored = task->call.out};
	const int operands_finite = hg__operands_finite(replay, task, 0);
	int bad_statistics = 0;
	HG__TRY(hg__check_norm(replay, task, &bad_statistics));
	hg_status status = hg__wide_open(&task->call, hg__entry_of(replay, task)->saves, 0, &wide);
	if (status >= 0)
		status = hg__wide_run(&wide, 0);
	if (!bad_statistics)
		result.wide = wide.call.out;
	if (status >= 0 && is_float_result(&result.stored))
		status =
		    check_result(replay, &result, &replay->value[result.value], replayed, operands_finite);
	hg__wide_close(&wide);
	replay->replayed_count++;
	return status;
}

/* ---- backward ---- */

/* The f16 tensors that the backward pass makes on the way to the gradients. Once one of them is
 * bad, the gradients cannot be good. */
static hg_status check_intermediates(struct hg__replay *replay, const struct hg__task *task,
                                     const struct hg__wide *wide, int operands_finite,
                                     struct hg__replayed *replayed)
{
	struct hg__value_info info = {0};
	for (int i = 0; i < HG__MAX_AUX; i++) {
		const struct hg__mat *aux = &task->call.aux[i];
		if (!(hg__entry_of(replay, task)->saves & HG__BACK_AUX(i)) || !is_float_result(aux) ||
		    aux->dtype != HG_F16 || info.bad)
			continue;
		const struct hg__result r = {
		    task, replay->replayed_count, 1, HG__INTERMEDIATE, task->call.node->out,
		    *aux, wide->call.aux[i]};
		HG__TRY(check_result(replay, &r, &info, replayed, operands_finite));
	}
	replay->intermediate_bad = info.bad != 0;
	return HG_OK;
}

static void note_contribution(struct hg__value_info *gradient, int32_t entry)
{
	gradient->contribution[0] = gradient->contributions ? gradient->contribution[1] : -1;
	gradient->contribution[1] = entry;
	gradient->contributions++;
}

hg_status hg__check_backward(struct hg__replay *replay, const struct hg__task *task,
                             struct hg__wide *wide, int operands_finite)
{
	const struct hg__node *node = task->call.node;
	struct hg__replayed *replayed = next_replayed(replay, task, 1);
	HG__TRY(hg__wide_run(wide, 1));
	HG__TRY(check_intermediates(replay, task, wide, operands_finite, replayed));
	for (int i = 0; i < node->n_in; i++) {
		const struct hg__mat *din = &task->call.din[i];
		if (!is_float_result(din))
			continue;
		const int32_t root = replay->tape->recording.value[node->in[i]].root;
		const struct hg__result r = {task, replay->replayed_count, 1, i, root,
		                             *din, wide->call.din[i]};
		HG__TRY(check_result(replay, &r, &replay->grad[root], replayed,
		                     operands_finite && !replay->intermediate_bad));
		note_contribution(&replay->grad[root], task->entry);
	}
	replay->replayed_count++;
	return HG_OK;
}

/* The task is the one that hg__check_backward has just checked. */
hg_status hg__check_addition(struct hg__replay *replay, const struct hg__task *task, int operand,
                             const struct hg__mat *before)
{
	const int32_t root = replay->tape->recording.value[task->call.node->in[operand]].root;
	struct hg__value_info *info = &replay->grad[root];
	const struct hg__result r = {.task = task,
	                             .position = replay->replayed_count - 1,
	                             .backward = 1,
	                             .operand = operand,
	                             .value = root,
	                             .stored = task->add[operand]};
	struct hg__gradient_pair pair = {.entry = {info->contribution[0], info->contribution[1]},
	                                 .contributions = info->contributions};
	struct hg__scan seen;
	hg_doctor_tensor tensor;
	HG__TRY(hg__scan_tensor(replay->ctx, &r.stored, NULL, &seen));
	HG__TRY(describe_tensor(replay, &r, &tensor));
	HG__TRY(hg__list_tensor(replay, &tensor, &seen, &info->tensor));
	if (seen.nonfinite && before->data)
		HG__TRY(hg__find_overflowed_addition(replay, &r, &seen, before, &pair));
	info->bad = seen.nonfinite;
	return HG_OK;
}
