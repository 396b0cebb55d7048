/* The training loop.
 *
 *     every epoch: forward, backward, step; evaluate; keep the weights if they are the best so far
 *
 * Epochs, with their evaluations, are queued in groups, and the host does not wait within a group:
 * the device keeps the scores and the best weights (kernels/scores.h). When the host has to
 * decide something, the device stops the rest of the group (hg__step_begin_group). It does so when
 * the tapes must be recorded again, because the forward pass overflowed or a weight outgrew what
 * the tapes assume, and when patience ends. So the result of a run does not depend on the length
 * of its groups.
 *
 * The host reads the results of a group when all of its epochs are over. If the caller stops at one
 * of these epochs, the run returns to the start of the group and repeats the epochs up to that one:
 * a step from the same state gives the same bits.
 *
 * A skipped step or a loss that is a NaN does not end a run. Both are reported. */
#include "nn/train.h"

#include <math.h>
#include <string.h>

#include "core/clock.h"
#include "core/versioned.h"
#include "nn/predict.h"

/* The state of a run. */
struct progress {
	struct hg__train_sums sums; /* for the report */
	int64_t longest;            /* the most epochs that the next group may have */
};

/* ---- a group of epochs ---- */

/* A group: epochs first .. first + count - 1, as queued. */
struct group {
	int64_t first, count;
	int64_t ran;   /* epochs that ran; fewer than count if one of them stopped the others */
	int64_t taken; /* evaluations on the board before the group */
	double ms;     /* the time of one epoch */
	struct hg__epoch batches; /* what the epoch of a run in batches did */
};

static int is_evaluated(const hg_train *t, int64_t epoch)
{
	return epoch % t->config.eval_every == 0 || epoch == t->config.epochs;
}

/* If every epoch is evaluated, the evaluation is part of the step and one launch holds several of
 * both. Otherwise an evaluation is a launch of its own, after the steps between two evaluations,
 * and also where the host computes the metric. */
static void step_prepare(hg_train *t)
{
	if (t->batches.all)
		return;
	const int every = t->config.eval_every, alone = every > 1 || hg__truth_on_host(&t->truth);
	hg__step_limit(t->step, alone ? every : HG_STEP_REMEMBERED);
	hg__step_behind(t->step, alone ? NULL : hg__evaluate_queue, hg__evaluate_move, &t->evaluator);
}

/* The epoch up to which steps are queued at once: the next evaluation, or the end of the group. */
static int64_t until_evaluation(const hg_train *t, int64_t epoch, int64_t last)
{
	const int64_t every = t->config.eval_every, next = epoch + every - epoch % every;
	return next < last && !t->step->behind ? next : last;
}

/* The host waits here if it computes the metric. */
static hg_status epoch_evaluate(hg_train *t)
{
	return hg__truth_on_host(&t->truth) ? hg__train_score(t) : hg__evaluate(&t->evaluator);
}

static hg_status epochs_queue(hg_train *t, int64_t before, int64_t count)
{
	const int64_t last = before + count;
	for (int64_t epoch = before; epoch < last && !hg__step_stopped(t->step);) {
		const int64_t next = until_evaluation(t, epoch, last);
		HG__TRY(hg__step_queue(t->step, next - epoch));
		epoch = next;
		if (is_evaluated(t, epoch) && !t->step->behind)
			HG__TRY(epoch_evaluate(t));
	}
	return HG_OK;
}

/* Saves the state before a group that the caller may stop in the middle. */
static hg_status begin_save(hg_train *t, int64_t count)
{
	if (count == 1 || !t->config.progress)
		return HG_OK;
	if (!t->begin.use)
		HG__TRY(hg__train_begin_init(t));
	return hg__saved_take(&t->begin);
}

static hg_status board_read(hg_train *t)
{
	return t->ctx->backend->copy_out(t->ctx, &t->seen, t->board, sizeof t->seen);
}

/* The time is measured from an idle device to an idle device. */
static hg_status group_run(hg_train *t, struct group *g)
{
	int64_t before, after;
	g->taken = t->seen.taken; /* evaluations on the host renew `seen` */
	HG__TRY(hg__step_taken(t->step, &before));
	HG__TRY(hg__train_group_begin(t));
	HG__TRY(begin_save(t, g->count));
	if (!t->step->behind && !hg__truth_on_host(&t->truth))
		hg__evaluate_ready(&t->evaluator);
	HG__TRY(hg_context_synchronize(t->ctx));
	const double begin = hg__seconds();
	HG__TRY(epochs_queue(t, g->first - 1, g->count));
	HG__TRY(hg_context_synchronize(t->ctx));
	const double seconds = hg__seconds() - begin;
	HG__TRY(hg__step_end_group(t->step));
	HG__TRY(hg__step_taken(t->step, &after));
	const int64_t best = t->seen.best.epoch;
	HG__TRY(board_read(t));
	if (t->seen.best.epoch != best)
		t->best_recording = t->recordings;
	g->ran = after - before;
	g->ms = 1e3 * seconds / (double)g->ran;
	return HG_OK;
}

/* The board counts epochs by steps, one for each. Before an evaluation of a run in batches its
 * first step is moved, so that this many epochs have passed since then. */
static hg_status board_align(hg_train *t, int64_t epoch)
{
	t->seen.first_step = hg__train_steps_after(t, epoch) - epoch;
	return t->ctx->backend->copy_in(t->ctx, &t->board->first_step, &t->seen.first_step,
	                                sizeof t->seen.first_step);
}

/* A run in batches has groups of one epoch. Its number since the weights were made decides the
 * order of the graphs, so a run that goes on from a state has the orders of one that never
 * stopped. */
static hg_status epoch_run(hg_train *t, struct group *g)
{
	const int64_t before = t->first_step / hg__train_steps(t);
	const int64_t best = t->seen.best.epoch;
	g->taken = t->seen.taken;
	g->ran = 1;
	HG__TRY(hg_context_synchronize(t->ctx));
	const double begin = hg__seconds();
	HG__TRY(hg__train_epoch(t, before + g->first - 1, &g->batches));
	if (is_evaluated(t, g->first)) {
		HG__TRY(board_align(t, g->first));
		HG__TRY(hg__train_evaluation_renew(t));
		HG__TRY(epoch_evaluate(t));
		t->params->may_stop = 1; /* where patience ends */
		HG__TRY(hg__step_end_group(t->step));
	}
	HG__TRY(hg_context_synchronize(t->ctx));
	g->ms = 1e3 * (hg__seconds() - begin);
	HG__TRY(board_read(t));
	if (t->seen.best.epoch != best)
		t->best_recording = t->recordings;
	return HG_OK;
}

/* Repeats the group with only its first `wanted` epochs. */
static hg_status group_undo(hg_train *t, const struct group *g, int64_t wanted)
{
	if (wanted == g->ran)
		return HG_OK;
	HG__TRY(hg__saved_restore(&t->begin));
	HG__TRY(hg__train_group_begin(t));
	HG__TRY(epochs_queue(t, g->first - 1, wanted));
	HG__TRY(hg__step_end_group(t->step));
	return board_read(t);
}

/* ---- reporting ---- */

/* 2 KiB hold the epochs of a usual run (200); then twice as many, and so on. */
#define FIRST_ROOM 256

static hg_status epoch_note(hg_train *t, int epoch, double ms)
{
	if (epoch > t->epoch_room) {
		const int64_t room = t->epoch_room ? 2 * t->epoch_room : FIRST_ROOM;
		void *memory = NULL;
		HG__TRY(hg__host_alloc(t->ctx, (size_t)room, sizeof *t->epoch_ms, "train: epoch times",
		                       &memory));
		if (t->epoch_room)
			memcpy(memory, t->epoch_ms, (size_t)t->epoch_room * sizeof *t->epoch_ms);
		hg__host_free(t->ctx, t->epoch_ms, (size_t)t->epoch_room * sizeof *t->epoch_ms);
		t->epoch_ms = memory;
		t->epoch_room = room;
	}
	t->epoch_ms[epoch - 1] = ms;
	return HG_OK;
}

/* The evaluation of this epoch, if the board still holds it; else NULL. */
static const struct hg__score_note *note_of(const hg_train *t, const struct group *g, int64_t epoch)
{
	for (int64_t k = g->taken; k < t->seen.taken; k++)
		if (t->seen.note[k % HG__NOTES].epoch == epoch)
			return &t->seen.note[k % HG__NOTES];
	return NULL;
}

/* What the steps of an epoch did. */
static hg_status steps_report(hg_train *t, const struct group *g, int64_t epoch,
                              hg_train_event *event)
{
	const struct hg__epoch *e = &g->batches;
	event->steps = hg__train_steps(t);
	if (t->batches.all) {
		event->loss = e->loss;
		event->step = e->step;
		event->skipped = e->skipped;
		event->overflowed = e->overflowed;
		event->prepare_ms = 1e3 * e->prepare_seconds;
		return HG_OK;
	}
	HG__TRY(hg_step_read(t->step, g->first + g->ran - 1 - epoch, &event->loss, &event->step));
	event->skipped = !event->step.applied;
	event->overflowed = event->step.reason == HG_STEP_SKIPPED_FORWARD;
	return HG_OK;
}

/* Reports one epoch of a group. HG_INFO_STOPPED: the caller's function asks to stop. */
static hg_status epoch_report(hg_train *t, const struct group *g, int64_t epoch,
                              hg_train_event *event)
{
	const hg_train_config *c = &t->config;
	const hg_step_info info = HG_STEP_INFO_INIT;
	const struct hg__score_note *note = note_of(t, g, epoch);
	*event = (hg_train_event){.size = sizeof *event,
	                          .epoch = (int)epoch,
	                          .epochs = c->epochs,
	                          .epoch_ms = g->ms,
	                          .step = info};
	event->train_accuracy = note ? hg__accuracy_of(&note->counts, HG__SPLIT_TRAIN) : (double)NAN;
	event->val_accuracy = note ? hg__accuracy_of(&note->counts, HG__SPLIT_VAL) : (double)NAN;
	event->test_accuracy = note ? hg__accuracy_of(&note->counts, HG__SPLIT_TEST) : (double)NAN;
	event->train_metric = note ? note->metric[HG__SPLIT_TRAIN] : (double)NAN;
	event->val_metric = note ? note->metric[HG__SPLIT_VAL] : (double)NAN;
	event->test_metric = note ? note->metric[HG__SPLIT_TEST] : (double)NAN;
	event->nonfinite_logits = note ? note->counts.nonfinite : 0;
	HG__TRY(epoch_note(t, event->epoch, g->ms));
	HG__TRY(steps_report(t, g, epoch, event));
	HG__TRY(hg__train_note_epoch(t, event));
	t->in_progress = 1;
	const int stop = c->progress && c->progress(c->user, event);
	t->in_progress = 0;
	return stop ? HG_INFO_STOPPED : HG_OK;
}

/* Changes the tapes if the last epoch requires it; one in batches has done that after each step. It
 * does so also where the caller stops, so that a later run starts with tapes that fit. */
static hg_status replan_if_needed(hg_train *t, const hg_train_event *event)
{
	const int overflowed = event->step.reason == HG_STEP_SKIPPED_FORWARD;
	int replanned = 0;
	if (!t->batches.all && (overflowed || event->step.outgrown))
		HG__TRY(hg__train_replan(t, event->step.outgrown, overflowed ? &event->step : NULL,
		                         &replanned));
	if (replanned)
		step_prepare(t);
	return HG_OK;
}

/* The next group may be twice as long as this one. If this one was stopped the next has a single
 * epoch: where epoch after epoch stops, little is then queued for nothing. */
static void length_note(const hg_train *t, struct progress *p, const struct group *g)
{
	const int64_t every = t->config.eval_every,
	              most = hg__truth_on_host(&t->truth) && every < g->ran ? every : g->ran;
	p->sums.together = most > p->sums.together ? most : p->sums.together;
	p->longest = g->ran < g->count ? 1 : 2 * g->count > p->longest ? 2 * g->count : p->longest;
}

static void sums_add(struct hg__train_sums *sums, const hg_train_event *event)
{
	sums->steps += event->steps;
	sums->ms += event->epoch_ms;
	sums->prepare_ms += event->prepare_ms;
}

/* event: the last epoch that was reported. HG_INFO_STOPPED: the caller's function asked to stop. */
static hg_status epochs_run(hg_train *t, struct progress *p, hg_train_event *event)
{
	for (int64_t done = 0; done < t->config.epochs && !t->seen.out_of_patience;) {
		const int64_t left = t->config.epochs - done;
		const int64_t most = left < p->longest ? left : p->longest;
		struct group g = {.first = done + 1, .count = 1};
		if (!t->batches.all)
			g.count = hg__step_ready(t->step, most);
		HG__TRY(t->batches.all ? epoch_run(t, &g) : group_run(t, &g));
		length_note(t, p, &g);
		hg_status status = HG_OK;
		for (int64_t i = 1; status == HG_OK && i <= g.ran; i++) {
			status = epoch_report(t, &g, ++done, event);
			sums_add(&p->sums, event);
			if (status == HG_INFO_STOPPED)
				HG__TRY(group_undo(t, &g, i));
		}
		HG__TRY(status);
		HG__TRY(replan_if_needed(t, event));
		if (status != HG_OK)
			return status;
	}
	return HG_OK;
}

/* ---- a run ---- */

/* Moves the weights of the best epoch to the masters. Those of the last step stay available for
 * hg_train_get_state. If the tapes were recorded again since that epoch, they round elsewhere, so
 * these weights are evaluated once more: what is reported is what they and the final tapes give.
 * The board keeps what was found first, with which later epochs are compared, so that a run does
 * the same with and without a stop in between. */
static hg_status best_take(hg_train *t, struct hg__score_note *best)
{
	*best = t->seen.best;
	HG__TRY(hg__best_swap(&t->best));
	t->swapped = 1;
	if (t->best_recording == t->recordings)
		return HG_OK;
	return hg__truth_on_host(&t->truth) ? hg__train_score_again(t, best)
	                                    : hg__evaluate_again(&t->evaluator, &t->seen, best);
}

/* Starts a new run on the board. */
static hg_status board_begin(hg_train *t)
{
	const struct hg__board fresh = {.epochs = t->config.epochs,
	                                .every = t->config.eval_every,
	                                .patience = t->config.patience,
	                                .validates = t->truth.has[HG__SPLIT_VAL],
	                                .falls = !hg_metric_rises(t->truth.metric),
	                                .top_metric = -INFINITY,
	                                .low_loss = INFINITY};
	t->seen = fresh;
	/* only the first run after hg_train_set_state goes on; a later one looks for its own best */
	if (t->own_best)
		t->best_before = (hg_state_best){.step = 0};
	t->own_best = 1;
	t->seen.best = hg__train_best_before(t);
	HG__TRY(t->ctx->backend->copy_out(t->ctx, &t->seen.first_step, &t->params->step->step,
	                                  sizeof t->seen.first_step));
	t->first_step = t->seen.first_step;
	HG__TRY(hg__train_schedule(t, t->seen.first_step));
	return t->ctx->backend->copy_in(t->ctx, t->board, &t->seen, sizeof t->seen);
}

/* If the caller stopped before the first evaluation, the last epoch is evaluated here. */
static hg_status evaluate_once(hg_train *t, hg_train_event *last)
{
	if (t->seen.best.epoch)
		return HG_OK;
	t->seen.every = t->seen.unseen = 1;
	t->seen.first_step = hg__train_steps_after(t, last->epoch) - last->epoch;
	HG__TRY(t->ctx->backend->copy_in(t->ctx, t->board, &t->seen, sizeof t->seen));
	HG__TRY(epoch_evaluate(t));
	t->params->may_stop = 1; /* where patience ends; later runs must not find it so */
	HG__TRY(hg__step_end_group(t->step));
	HG__TRY(board_read(t));
	t->best_recording = t->recordings;
	last->nonfinite_logits = t->seen.best.counts.nonfinite;
	return HG_OK;
}

hg_status hg_train_run(hg_train *train, hg_train_report *report)
{
	if (!train)
		return HG_ERR_ARG;
	if (!report || report->size < sizeof report->size)
		return hg__fail(
		    train->ctx, HG_ERR_ARG,
		    "train_run: report is NULL or its size is not set: start from HG_TRAIN_REPORT_INIT");
	if (train->in_progress)
		return hg__fail(train->ctx, HG_ERR_STATE,
		                "train_run: the run is in its progress function: it cannot begin another");
	if (!train->step)
		return hg__fail(train->ctx, HG_ERR_STATE,
		                "train_run: an earlier run failed while its tapes were recorded again: "
		                "make a new hg_train");
	struct progress progress = {.longest = HG_STEP_REMEMBERED};
	hg_train_event last;
	struct hg__score_note best;
	hg_step_info before = HG_STEP_INFO_INIT;
	HG__TRY(hg_optim_info(train->optim, &before));
	progress.sums.skipped_before = before.skipped;
	train->swapped = 0;
	HG__TRY(board_begin(train));
	step_prepare(train);
	hg__train_buckets_begin(train);
	const hg_status status = epochs_run(train, &progress, &last);
	hg__train_buckets_end(train);
	if (train->step) { /* steps queued outside a run are not evaluated */
		hg__step_limit(train->step, HG_STEP_REMEMBERED);
		hg__step_behind(train->step, NULL, NULL, NULL);
	}
	HG__TRY(status);
	HG__TRY(evaluate_once(train, &last));
	HG__TRY(best_take(train, &best));
	HG__TRY(hg__train_report(train, &progress.sums, &last, &best, report));
	return status;
}

hg_status hg_train_predict(hg_train *train, int32_t *prediction, float *logits)
{
	if (!train)
		return HG_ERR_ARG;
	if (!prediction && !(logits && train->truth.target))
		return hg__fail(train->ctx, HG_ERR_ARG, "train_predict: %s is NULL",
		                train->truth.target && !logits ? "logits" : "prediction");
	const hg_tensor *found = NULL;
	const hg_status status = hg__evaluator_forward(&train->evaluator, &found);
	if (status == HG_ERR_STATE)
		return hg__fail(train->ctx, status, "train_predict: recording the evaluation has failed");
	HG__TRY(status);
	HG__TRY(hg__predict(train->ctx, found, prediction, logits));
	if (logits)
		hg__truth_undo(&train->truth, logits);
	return HG_OK;
}
