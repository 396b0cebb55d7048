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
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/versioned.h"

/* The state of a run. */
struct progress {
	int64_t together;       /* the most epochs that ran without a wait */
	int64_t skipped_before; /* steps that earlier runs had skipped */
	int64_t longest;        /* the most epochs that the next group may have */
};

/* ---- a group of epochs ---- */

/* A group: epochs first .. first + count - 1, as queued. */
struct group {
	int64_t first, count;
	int64_t ran;   /* epochs that ran; fewer than count if one of them stopped the others */
	int64_t taken; /* evaluations on the board before the group */
	double ms;     /* the time of one epoch */
};

static int is_evaluated(const hg_train *t, int64_t epoch)
{
	return epoch % t->config.eval_every == 0 || epoch == t->config.epochs;
}

/* If every epoch is evaluated, the evaluation is part of the step and one launch holds several of
 * both. Otherwise an evaluation is a launch of its own, after the steps between two evaluations. */
static void step_prepare(hg_train *t)
{
	const int every = t->config.eval_every;
	hg__step_limit(t->step, every > 1 ? every : HG_STEP_REMEMBERED);
	hg__step_behind(t->step, every > 1 ? NULL : hg__evaluate_queue, &t->evaluator);
}

/* The epoch up to which steps are queued at once: the next evaluation, or the end of the group. */
static int64_t until_evaluation(const hg_train *t, int64_t epoch, int64_t last)
{
	const int64_t every = t->config.eval_every, next = epoch + every - epoch % every;
	return next < last && !t->step->behind ? next : last;
}

static hg_status epochs_queue(hg_train *t, int64_t before, int64_t count)
{
	const int64_t last = before + count;
	for (int64_t epoch = before; epoch < last && !hg__step_stopped(t->step);) {
		const int64_t next = until_evaluation(t, epoch, last);
		HG__TRY(hg__step_queue(t->step, next - epoch));
		epoch = next;
		if (is_evaluated(t, epoch) && !t->step->behind)
			HG__TRY(hg__evaluate(&t->evaluator));
	}
	return HG_OK;
}

static hg_status group_begin(hg_train *t)
{
	const unsigned forward = t->params->policy.replan ? (unsigned)HG__STOP_FORWARD : 0u;
	return hg__step_begin_group(t->step, HG__STOP_OUTGROWN | forward);
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
	HG__TRY(hg__step_taken(t->step, &before));
	HG__TRY(group_begin(t));
	HG__TRY(begin_save(t, g->count));
	if (!t->step->behind)
		hg__evaluate_ready(&t->evaluator);
	HG__TRY(hg_context_synchronize(t->ctx));
	const double begin = hg__seconds();
	HG__TRY(epochs_queue(t, g->first - 1, g->count));
	HG__TRY(hg_context_synchronize(t->ctx));
	const double seconds = hg__seconds() - begin;
	HG__TRY(hg__step_end_group(t->step));
	HG__TRY(hg__step_taken(t->step, &after));
	g->taken = t->seen.taken;
	HG__TRY(board_read(t));
	g->ran = after - before;
	g->ms = 1e3 * seconds / (double)g->ran;
	return HG_OK;
}

/* Repeats the group with only its first `wanted` epochs. */
static hg_status group_undo(hg_train *t, const struct group *g, int64_t wanted)
{
	if (wanted == g->ran)
		return HG_OK;
	HG__TRY(hg__saved_restore(&t->begin));
	HG__TRY(group_begin(t));
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
	event->nonfinite_logits = note ? note->counts.nonfinite : 0;
	HG__TRY(epoch_note(t, event->epoch, g->ms));
	HG__TRY(hg_step_read(t->step, g->first + g->ran - 1 - epoch, &event->loss, &event->step));
	t->in_progress = 1;
	const int stop = c->progress && c->progress(c->user, event);
	t->in_progress = 0;
	return stop ? HG_INFO_STOPPED : HG_OK;
}

/* Changes the tapes if the last epoch requires it. It does so also where the caller stops, so that
 * a later run starts with tapes that fit. */
static hg_status replan_if_needed(hg_train *t, const hg_train_event *event)
{
	const int overflowed = event->step.reason == HG_STEP_SKIPPED_FORWARD;
	int replanned = 0;
	if (overflowed || event->step.outgrown)
		HG__TRY(hg__train_replan(t, event->step.outgrown, overflowed ? &event->step : NULL,
		                         &replanned));
	if (replanned)
		step_prepare(t);
	return HG_OK;
}

/* The next group may be twice as long as this one. If this one was stopped the next has a single
 * epoch: where epoch after epoch stops, little is then queued for nothing. */
static void length_note(struct progress *p, const struct group *g)
{
	p->together = g->ran > p->together ? g->ran : p->together;
	p->longest = g->ran < g->count ? 1 : 2 * g->count > p->longest ? 2 * g->count : p->longest;
}

/* event: the last epoch that was reported. HG_INFO_STOPPED: the caller's function asked to stop. */
static hg_status epochs_run(hg_train *t, struct progress *p, hg_train_event *event)
{
	for (int64_t done = 0; done < t->config.epochs && !t->seen.out_of_patience;) {
		const int64_t left = t->config.epochs - done;
		const int64_t most = left < p->longest ? left : p->longest;
		struct group g = {.first = done + 1, .count = hg__step_ready(t->step, most)};
		HG__TRY(group_run(t, &g));
		length_note(p, &g);
		hg_status status = HG_OK;
		for (int64_t i = 1; status == HG_OK && i <= g.ran; i++) {
			status = epoch_report(t, &g, ++done, event);
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

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The lower median. Sorts the values. */
static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof *values, by_value);
	return values[(count - 1) / 2];
}

static hg_status report_fill(hg_train *t, const struct progress *p, const hg_train_event *last,
                             hg_train_report *report)
{
	const struct hg__score_note *best = &t->seen.best;
	hg_memory_info memory = HG_MEMORY_INFO_INIT;
	hg_plan_info plan = HG_PLAN_INFO_INIT;
	hg_step_launch launch = HG_STEP_LAUNCH_INIT;
	hg_observer observer = HG_OBSERVER_INIT;
	HG__TRY(hg_context_memory(t->ctx, &memory));
	HG__TRY(hg_tape_plan(t->tape, &plan));
	HG__TRY(hg_step_get_launch(t->step, &launch));
	HG__TRY(hg_step_observer(t->step, &observer));
	const hg_train_report ours = {.size = sizeof ours,
	                              .epochs_run = last->epoch,
	                              .best_epoch = (int)best->epoch,
	                              .best_val_accuracy =
	                                  hg__accuracy_of(&best->counts, HG__SPLIT_VAL),
	                              .test_accuracy = hg__accuracy_of(&best->counts, HG__SPLIT_TEST),
	                              .final_loss = last->loss,
	                              .epoch_ms_median = median(t->epoch_ms, last->epoch),
	                              .peak_bytes = memory.peak_bytes,
	                              .state_bytes = plan.state_bytes,
	                              .arena_bytes = plan.arena_bytes,
	                              .steps_skipped = last->step.skipped - p->skipped_before,
	                              .loss_scale_final = last->step.loss_scale,
	                              .loss_finite = isfinite(last->loss) != 0,
	                              .nonfinite_logits = best->counts.nonfinite,
	                              .captured = launch.captured,
	                              .epochs_together = (int)p->together,
	                              .replans = t->replans,
	                              .casts = plan.casts,
	                              .headroom = observer.headroom,
	                              .headroom_name = observer.headroom_name,
	                              .rescaled = plan.rescaled,
	                              .promoted = plan.promoted};
	return hg__struct_write(report, &ours, sizeof ours) ? HG_OK : HG_ERR_ARG;
}

/* Moves the weights of the best epoch to the masters. Those of the last step stay available for
 * hg_train_get_state. */
static hg_status best_take(hg_train *t)
{
	HG__TRY(hg__best_swap(&t->best));
	t->swapped = 1;
	return HG_OK;
}

/* Starts a new run on the board. */
static hg_status board_begin(hg_train *t)
{
	const struct hg__board fresh = {.epochs = t->config.epochs,
	                                .every = t->config.eval_every,
	                                .patience = t->config.patience,
	                                .validates = t->targets.mask[HG__SPLIT_VAL] != NULL,
	                                .top_accuracy = -INFINITY,
	                                .low_loss = INFINITY};
	t->seen = fresh;
	HG__TRY(t->ctx->backend->copy_out(t->ctx, &t->seen.first_step, &t->params->step->step,
	                                  sizeof t->seen.first_step));
	return t->ctx->backend->copy_in(t->ctx, t->board, &t->seen, sizeof t->seen);
}

/* If the caller stopped before the first evaluation, the last epoch is evaluated here. */
static hg_status evaluate_once(hg_train *t, hg_train_event *last)
{
	if (t->seen.best.epoch)
		return HG_OK;
	t->seen.every = 1;
	HG__TRY(t->ctx->backend->copy_in(t->ctx, t->board, &t->seen, sizeof t->seen));
	HG__TRY(hg__evaluate(&t->evaluator));
	HG__TRY(board_read(t));
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
	hg_step_info before = HG_STEP_INFO_INIT;
	HG__TRY(hg_optim_info(train->optim, &before));
	progress.skipped_before = before.skipped;
	train->swapped = 0;
	HG__TRY(board_begin(train));
	step_prepare(train);
	const hg_status status = epochs_run(train, &progress, &last);
	if (train->step) { /* steps queued outside a run are not evaluated */
		hg__step_limit(train->step, HG_STEP_REMEMBERED);
		hg__step_behind(train->step, NULL, NULL);
	}
	HG__TRY(status);
	HG__TRY(evaluate_once(train, &last));
	HG__TRY(best_take(train));
	HG__TRY(report_fill(train, &progress, &last, report));
	return status;
}

/* The column of the first largest logit that is not a NaN; -1 if there is none. */
static int32_t argmax(const float *logits, int64_t cols)
{
	int32_t best = -1;
	for (int32_t c = 0; c < cols; c++)
		if (!isnan(logits[c]) && (best < 0 || logits[c] > logits[best]))
			best = c;
	return best;
}

hg_status hg_train_predict(hg_train *train, int32_t *prediction, float *logits)
{
	if (!train)
		return HG_ERR_ARG;
	if (!prediction)
		return hg__fail(train->ctx, HG_ERR_ARG, "train_predict: prediction is NULL");
	HG__TRY(hg_tape_forward(train->evaluator.tape));
	const hg_tensor *value = hg_tape_value(train->evaluator.tape, train->evaluator.logits);
	const int64_t rows = hg_tensor_rows(value), cols = hg_tensor_cols(value);
	void *host = NULL;
	HG__TRY(
	    hg__host_alloc(train->ctx, (size_t)(rows * cols), sizeof(float), "train: logits", &host));
	const float *scores = host;
	const hg_status status = hg_tensor_download(value, host, HG_F32);
	for (int64_t i = 0; status >= 0 && i < rows; i++) {
		prediction[i] = argmax(scores + i * cols, cols);
		for (int64_t c = 0; logits && c < cols; c++)
			logits[i * cols + c] = scores[i * cols + c];
	}
	hg__host_free(train->ctx, host, (size_t)(rows * cols) * sizeof(float));
	return status;
}
