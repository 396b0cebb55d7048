/* An epoch in batches.
 *
 *     for every batch of the epoch: put it in place, with a tape; forward, backward, step
 *
 * The host reads the outcome of every step, so it can record the next tape otherwise where a step
 * overflowed. A new tape bounds the weights as they are now, so one that outgrows its bound is
 * noticed before a step goes wrong.
 *
 * The loss of the epoch is the mean over all that is learnt: that of a batch counts as often as the
 * batch has rows, or elements of targets, that are learnt. */
#include "autograd/tape.h"
#include "core/clock.h"
#include "nn/layers/layers.h"
#include "nn/model.h"
#include "nn/train.h"

hg_status hg__train_group_begin(hg_train *t)
{
	const unsigned forward = t->params->policy.replan ? (unsigned)HG__STOP_FORWARD : 0u;
	return hg__step_begin_group(t->step, HG__STOP_OUTGROWN | forward);
}

static hg_status batch_begin(hg_train *t, int64_t epoch, int64_t k)
{
	if (t->batches.buckets.padded.all)
		return hg__train_bucket_begin(t, epoch, k);
	if (t->step && t->step->watch)
		hg__watch_leave(t->step->watch, &t->batches.past);
	hg__train_tape_free(t);
	HG__TRY(hg__train_batches_load(t, epoch, k));
	HG__TRY(hg__train_record_tape(t));
	HG__TRY(hg__train_record_step(t));
	if (t->step->watch)
		hg__watch_follow(t->step->watch, &t->batches.past);
	return HG_OK;
}

/* Rows or elements over which the loss of the batch in place is a mean. */
static int64_t counted(const hg_train *t)
{
	const struct hg__recording *recording = &t->tape->recording;
	if (t->batches.buckets.padded.all)
		return t->batches.buckets.counted;
	const int32_t entry = recording->value[hg__tape_index(t->tape, t->loss)].node;
	return recording->entry[entry].node.counted;
}

static hg_status step_run(hg_train *t, double *loss, hg_step_info *info)
{
	HG__TRY(hg__train_group_begin(t));
	HG__TRY(hg__step_queue(t->step, 1));
	HG__TRY(hg_step_read(t->step, 0, loss, info));
	return hg__step_end_group(t->step);
}

/* Changes what later tapes assume if this step requires it. */
static hg_status step_judge(hg_train *t, const hg_step_info *info, struct hg__epoch *e)
{
	const int overflowed = info->reason == HG_STEP_SKIPPED_FORWARD;
	int replanned = 0;
	e->steps++;
	e->skipped += !info->applied;
	e->overflowed += overflowed;
	return overflowed || info->outgrown
	           ? hg__train_replan(t, info->outgrown, overflowed ? info : NULL, &replanned)
	           : HG_OK;
}

/* An epoch is told by its last step that was applied, if there is one, with the counts and the loss
 * scale after its last step. */
static void step_note(const hg_step_info *info, struct hg__epoch *e)
{
	hg_step_info *of = &e->step;
	if (info->applied || !of->applied)
		*of = *info;
	of->loss_scale = info->loss_scale;
	of->steps = info->steps;
	of->skipped = info->skipped;
}

static hg_status epoch_run(hg_train *t, int64_t epoch, struct hg__epoch *e)
{
	hg_step_info info = HG_STEP_INFO_INIT;
	double sum = 0.0, loss = 0.0;
	int64_t rows = 0;
	*e = (struct hg__epoch){.step = info};
	for (int64_t k = 0; k < hg__train_steps(t); k++) {
		const double begin = hg__seconds();
		HG__TRY(batch_begin(t, epoch, k));
		e->prepare_seconds += hg__seconds() - begin;
		HG__TRY(step_run(t, &loss, &info));
		sum += loss * (double)counted(t);
		rows += counted(t);
		step_note(&info, e);
		HG__TRY(step_judge(t, &info, e));
	}
	e->loss = sum / (double)rows;
	return HG_OK;
}

hg_status hg__train_epoch(hg_train *t, int64_t epoch, struct hg__epoch *e)
{
	hg__train_buckets_begin(t);
	const hg_status status = epoch_run(t, epoch, e);
	hg__train_buckets_end(t);
	return status;
}

hg_status hg__train_evaluation_renew(hg_train *t)
{
	if (t->batches.reaches == t->params->reaches)
		return HG_OK;
	hg__evaluator_fini(&t->evaluator);
	t->recordings++;
	return hg__train_record_evaluation(t);
}
