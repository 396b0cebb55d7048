/* Recording the tapes again in the middle of a run. There are two reasons. A weight has outgrown
 * the bound that the tapes assume: then the bounds are computed again. Or the forward pass of a
 * step overflowed: the step was skipped, so the weights are those before it, and from now on the
 * node that overflowed first is stored x 2^-k or runs in f32.
 *
 * The overflow flag names this node. If the node has no guard of its own, or its guard saw a NaN,
 * the forward pass of the skipped step runs once more and every node is checked. Weights and step
 * counter are the same, so dropout draws the same numbers. */
#include <math.h>
#include <stdio.h>

#include "autograd/tape.h"
#include "core/text.h"
#include "nn/train.h"

/* Moves the step counter back to the skipped step (by -1) and forward again. The overflow flag is
 * cleared: what the repeated pass sets must not reach the next step. */
static hg_status counter_move(hg_train *t, int64_t by)
{
	const struct hg__backend *backend = t->ctx->backend;
	struct hg__step step;
	HG__TRY(backend->copy_out(t->ctx, &step, t->params->step, sizeof step));
	step.step += by;
	step.overflow = 0;
	return backend->copy_in(t->ctx, t->params->step, &step, sizeof step);
}

/* Runs the forward pass of the skipped step again, up to the first bad entry. */
static hg_status forward_again(hg_train *t, int32_t *entry)
{
	HG__TRY(counter_move(t, -1));
	const hg_status status = hg__tape_first_bad(t->tape, entry), back = counter_move(t, 1);
	return status < 0 ? status : back;
}

/* A batch norm moves its running statistics in every forward pass, but this repeated pass must not
 * change anything. So what it changes is saved, on the host, because a run takes no more device
 * memory than its plan says. */
static hg_status find_overflow(hg_train *t, int32_t *entry)
{
	const struct hg__live live = {.params = t->params};
	struct hg__saved before = {0};
	hg_status status =
	    hg__saved_init(&before, &live, HG__SAVED_FORWARD, 1, "train: weights to return to");
	if (status >= 0)
		status = hg__saved_take(&before);
	if (status >= 0) {
		status = forward_again(t, entry);
		const hg_status restored = hg__saved_restore(&before);
		status = status < 0 ? status : restored;
	}
	hg__saved_fini(&before);
	return status;
}

/* Frees tapes and step and records them again. Recording raises the reach of a weight that is
 * beyond it; `reaches++` makes the optimiser forget one that was and has shrunk. */
hg_status hg__train_record_again(hg_train *t)
{
	hg__saved_fini(&t->begin); /* with the counts of the step's observer */
	hg__train_buckets_forget(t);
	hg__watch_past_fini(t->ctx, &t->batches.past); /* other tensors may be in memory now */
	hg_step_free(t->step);
	t->step = NULL;
	hg__evaluator_fini(&t->evaluator);
	hg_tape_free(t->tape);
	t->tape = NULL;
	t->params->reaches++; /* the optimiser then forgets which weight had outgrown its reach */
	t->recordings++;
	return hg__train_record(t);
}

/* Lets the node that overflowed first be stored x 2^-k, or run in f32, on later tapes. */
static hg_status promote_overflowed(hg_train *t, const hg_step_info *bad, int *changed)
{
	char name[80], reached[48] = "overflowed in f16", how[32] = "runs in f32";
	int32_t entry = isnan(bad->overflow_amax) ? -1 : bad->overflow_node;
	if (!t->params->policy.replan)
		return HG_OK;
	if (entry < 0)
		HG__TRY(find_overflow(t, &entry));
	if (entry < 0 ||
	    t->tape->recording.value[t->tape->recording.entry[entry].node.out].dtype != HG_F16)
		return HG_OK;
	hg__value_name(t->tape, &t->tape->recording.value[t->tape->recording.entry[entry].node.out],
	               name, sizeof name);
	const int before = t->tape->recording.entry[entry].node.shift;
	int shift = 0;
	HG__TRY(hg__tape_promote(t->tape, entry, &shift, changed));
	if (!*changed)
		return HG_OK;
	if (bad->overflow_node == entry && isfinite(bad->overflow_amax))
		(void)hg__print(reached, sizeof reached, "reached %.6g, more than f16 holds",
		                ldexp((double)bad->overflow_amax, before));
	if (shift)
		(void)snprintf(how, sizeof how, "is stored x 2^-%d", shift);
	hg__log(t->ctx, HG_LOG_WARN, "train: %s %s; the step was skipped, and it %s from now on", name,
	        reached, how);
	t->replans++;
	return HG_OK;
}

hg_status hg__train_replan(hg_train *t, const char *outgrown, const hg_step_info *overflowed,
                           int *changed)
{
	*changed = 0;
	if (outgrown)
		hg__log(t->ctx, HG_LOG_INFO,
		        "train: %s has grown beyond its assumed bound; all bounds are computed again",
		        outgrown);
	else if (overflowed)
		HG__TRY(promote_overflowed(t, overflowed, changed));
	*changed |= outgrown != NULL;
	return *changed ? hg__train_record_again(t) : HG_OK;
}
