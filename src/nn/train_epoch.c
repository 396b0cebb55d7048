/* An epoch in batches.
 *
 *     for every batch of the epoch: put it in place, with a tape; forward, backward, step
 *
 * The batches of a group are queued one behind the other, each with its step, and the host waits
 * for the last. It reads the outcome of every step, so it can record the next tape otherwise where
 * a step overflowed: such a step stops those queued behind it (step.h), which are queued again. A
 * new tape bounds the weights as they are now, so one that outgrows its bound is noticed before a
 * step goes wrong. A group ends before a batch whose tape has to be recorded.
 *
 * The loss of the epoch is the mean over all that is learnt: that of a batch counts as often as the
 * batch has rows, or elements of targets, that are learnt. */
#include "autograd/tape.h"
#include "core/clock.h"
#include "nn/layers/layers.h"
#include "nn/model.h"
#include "nn/train.h"

/* The host needs some 20 us after the last step of a group, in which a GPU has nothing to do
 * (step.c). 32 steps of 12 layers on 4,096 molecules, 32 columns, take 4.4 ms on an H200. */
#define MOST_QUEUED 32

/* A batch of a group that was queued. */
struct queued {
	hg_step *step;
	int64_t place; /* of its record among those of `step`: so many are before it */
};

/* Batches first .. first + count - 1 of an epoch, queued without a wait. */
struct group {
	int64_t first, count;
	struct queued batch[MOST_QUEUED];
	double prepare_seconds; /* in which the device had nothing to do */
};

static unsigned stops_of(const hg_train *t)
{
	const unsigned forward = t->params->policy.replan ? (unsigned)HG__STOP_FORWARD : 0u;
	return HG__STOP_OUTGROWN | forward;
}

hg_status hg__train_group_begin(hg_train *t)
{
	return hg__step_begin_group(t->step, stops_of(t));
}

static int is_padded(const hg_train *t)
{
	return t->batches.buckets.padded.all != NULL;
}

static hg_status batch_begin(hg_train *t, int64_t epoch, int64_t k)
{
	if (is_padded(t))
		return hg__train_bucket_begin(t, k);
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

/* Rows or elements over which the loss of a batch is a mean. A batch that is not padded must be in
 * place. */
static int64_t counted(const hg_train *t, int64_t k)
{
	const struct hg__recording *recording = &t->tape->recording;
	if (is_padded(t))
		return hg__train_bucket_counted(t, k);
	const int32_t entry = recording->value[hg__tape_index(t->tape, t->loss)].node;
	return recording->entry[entry].node.counted;
}

/* Queues the step on the batch in place. The records that its object has are counted before its
 * first step in the group. That does not wait: they were read after the group in which it took its
 * last step, unless that one failed, or somebody else has queued steps since. */
static hg_status step_queue(hg_train *t, struct group *g)
{
	struct queued *of = &g->batch[g->count];
	*of = (struct queued){t->step, -1};
	for (int64_t j = 0; j < g->count; j++)
		if (g->batch[j].step == t->step)
			of->place = g->batch[j].place + 1;
	if (of->place < 0)
		HG__TRY(hg__step_taken(t->step, &of->place));
	g->count++;
	return hg__step_queue(t->step, 1);
}

/* How many batches may be queued without a wait. A device that runs each call before it returns
 * gains nothing from it. */
static int64_t most_queued(const hg_train *t)
{
	const int most = t->config.step.per_launch;
	if (!is_padded(t) || !t->ctx->backend->capture_begin)
		return 1;
	return most > 0 && most < MOST_QUEUED ? most : MOST_QUEUED;
}

static hg_status group_queue(hg_train *t, int64_t epoch, struct group *g)
{
	const double begin = hg__seconds();
	const int64_t left = hg__train_steps(t) - g->first,
	              most = most_queued(t) < left ? most_queued(t) : left;
	g->count = 0;
	HG__TRY(batch_begin(t, epoch, g->first));
	g->prepare_seconds = hg__seconds() - begin;
	HG__TRY(hg__train_group_begin(t));
	HG__TRY(step_queue(t, g));
	while (g->count < most && hg__train_bucket_ready(t, g->first + g->count)) {
		HG__TRY(batch_begin(t, epoch, g->first + g->count));
		hg__step_join_group(t->step, stops_of(t));
		HG__TRY(step_queue(t, g));
	}
	return HG_OK;
}

/* Changes what later tapes assume if the last step requires it. */
static hg_status step_judge(hg_train *t, const hg_step_info *info)
{
	const int overflowed = info->reason == HG_STEP_SKIPPED_FORWARD;
	int replanned = 0;
	return overflowed || info->outgrown
	           ? hg__train_replan(t, info->outgrown, overflowed ? info : NULL, &replanned)
	           : HG_OK;
}

/* An epoch is told by its last step that was applied, if there is one, with the counts and the loss
 * scale after its last step. */
static void step_note(const hg_step_info *info, struct hg__epoch *e)
{
	hg_step_info *of = &e->step;
	e->steps++;
	e->skipped += !info->applied;
	e->overflowed += info->reason == HG_STEP_SKIPPED_FORWARD;
	if (info->applied || !of->applied)
		*of = *info;
	of->loss_scale = info->loss_scale;
	of->steps = info->steps;
	of->skipped = info->skipped;
}

/* Of the epoch: losses times what counts in them, and what counts. */
struct sums {
	double loss;
	int64_t rows;
};

/* Reads the records of a group, and counts in *ran how many of its steps were not stopped. The host
 * may have to decide something after the last of these alone. */
static hg_status group_read(hg_train *t, const struct group *g, struct hg__epoch *e,
                            struct sums *sums, hg_step_info *info, int64_t *ran)
{
	for (*ran = 0; *ran < g->count; ++*ran) {
		const struct queued *of = &g->batch[*ran];
		double loss = 0.0;
		int64_t taken;
		HG__TRY(hg__step_taken(of->step, &taken));
		if (of->place >= taken)
			return HG_OK;
		HG__TRY(hg_step_read(of->step, taken - 1 - of->place, &loss, info));
		const int64_t rows = counted(t, g->first + *ran);
		sums->loss += loss * (double)rows;
		sums->rows += rows;
		step_note(info, e);
	}
	return HG_OK;
}

static hg_status group_run(hg_train *t, int64_t epoch, struct group *g, struct hg__epoch *e,
                           struct sums *sums)
{
	hg_step_info info = HG_STEP_INFO_INIT;
	int64_t ran;
	HG__TRY(group_queue(t, epoch, g));
	e->prepare_seconds += g->prepare_seconds;
	HG__TRY(group_read(t, g, e, sums, &info, &ran));
	HG__TRY(hg__step_end_group(t->step));
	if (!ran)
		return hg__fail(t->ctx, HG_ERR_INTERNAL, "train: the first step of a group did not run");
	if (ran < g->count) /* the batch that the host looks at is in place again */
		HG__TRY(batch_begin(t, epoch, g->first + ran - 1));
	g->first += ran;
	return step_judge(t, &info);
}

static hg_status epoch_run(hg_train *t, int64_t epoch, struct hg__epoch *e)
{
	const hg_step_info info = HG_STEP_INFO_INIT;
	struct group g = {.first = 0};
	struct sums sums = {0.0, 0};
	*e = (struct hg__epoch){.step = info};
	while (g.first < hg__train_steps(t))
		HG__TRY(group_run(t, epoch, &g, e, &sums));
	e->loss = sums.loss / (double)sums.rows;
	return HG_OK;
}

hg_status hg__train_epoch(hg_train *t, int64_t epoch, struct hg__epoch *e)
{
	const double begin = hg__seconds();
	if (is_padded(t))
		HG__TRY(hg__train_buckets_epoch(t, epoch));
	const double prepared = hg__seconds() - begin;
	HG__TRY(epoch_run(t, epoch, e));
	e->prepare_seconds += prepared;
	return HG_OK;
}

hg_status hg__train_evaluation_renew(hg_train *t)
{
	if (t->batches.reaches == t->params->reaches)
		return HG_OK;
	hg__evaluator_fini(&t->evaluator);
	t->recordings++;
	return hg__train_record_evaluation(t);
}
