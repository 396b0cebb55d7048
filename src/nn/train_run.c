/* The loop.
 *
 *     every epoch: forward, backward, step; look at all splits; keep the weights if they are the best so far
 *
 * Epochs between two looks may run together, without a word from the host: it learns of them afterwards, and a caller who stops at one of them gets the run
 * that ended there, since a step from the same state gives the same bits.
 *
 * Best: higher validation accuracy, or the same and a lower validation loss; without a validation set, later. A skipped step or a loss that is not a
 * number ends nothing: both are reported. */
#include "nn/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/versioned.h"

/* Where the run stands. */
struct progress {
	struct hg__scores best;        /* at best_epoch */
	int best_epoch;                /* 0: none yet */
	double top_accuracy, low_loss; /* seen on the validation set, each for itself */
	int improved_epoch;            /* last epoch that moved one of the two */
	int64_t together;              /* most epochs that ran without a wait */
	int64_t skipped_before;        /* steps, by earlier runs */
};

/* Where the caller may stop a launch in the middle, remember where it began. */
static hg_status begin_note(hg_train *t, int64_t count)
{
	if (count == 1 || !t->config.progress)
		return HG_OK;
	if (!t->begin.optim)
		HG__TRY(hg__rewind_init(&t->begin, t->optim, t->step->watch));
	return hg__rewind_save(&t->begin);
}

/* Steps that run together, timed from an idle device to an idle device; ms: of one of them. */
static hg_status steps_run(hg_train *t, int64_t count, double *ms)
{
	HG__TRY(begin_note(t, count));
	HG__TRY(hg_context_synchronize(t->ctx));
	const double begin = hg__seconds();
	HG__TRY(hg_step_run(t->step, count));
	HG__TRY(hg_context_synchronize(t->ctx));
	*ms = 1e3 * (hg__seconds() - begin) / (double)count;
	return HG_OK;
}

/* Only the first `wanted` of the steps that ran together. */
static hg_status steps_undo(hg_train *t, int64_t count, int64_t wanted)
{
	if (wanted == count)
		return HG_OK;
	HG__TRY(hg__rewind_restore(&t->begin));
	return hg_step_run(t->step, wanted);
}

/* 2 KiB hold the epochs of a usual run (200); then twice as many, and so on. */
#define FIRST_ROOM 256

static hg_status epoch_note(hg_train *t, int epoch, double ms)
{
	if (epoch > t->epoch_room) {
		const int64_t room = t->epoch_room ? 2 * t->epoch_room : FIRST_ROOM;
		void *memory = NULL;
		HG__TRY(hg__host_alloc(t->ctx, (size_t)room, sizeof *t->epoch_ms, "train: epoch times", &memory));
		if (t->epoch_room)
			memcpy(memory, t->epoch_ms, (size_t)t->epoch_room * sizeof *t->epoch_ms);
		hg__host_free(t->ctx, t->epoch_ms, (size_t)t->epoch_room * sizeof *t->epoch_ms);
		t->epoch_ms = memory;
		t->epoch_room = room;
	}
	t->epoch_ms[epoch - 1] = ms;
	return HG_OK;
}

static int is_better(const hg_train *t, const struct progress *p, const struct hg__scores *s)
{
	if (!p->best_epoch || !t->targets.mask[HG__SPLIT_VAL])
		return 1;
	const double old = p->best.accuracy[HG__SPLIT_VAL], new = s->accuracy[HG__SPLIT_VAL];
	return new > old || (new == old && s->loss < p->best.loss);
}

/* Patience counts epochs in which neither the accuracy nor the loss of the validation set has reached a new best (Velickovic et al. 2018). */
static void improvement_note(struct progress *p, const struct hg__scores *s, int epoch)
{
	const double accuracy = s->accuracy[HG__SPLIT_VAL];
	if (accuracy > p->top_accuracy || s->loss < p->low_loss)
		p->improved_epoch = epoch;
	p->top_accuracy = fmax(p->top_accuracy, accuracy);
	p->low_loss = fmin(p->low_loss, s->loss);
}

static hg_status epoch_look(hg_train *t, struct progress *p, hg_train_event *event)
{
	struct hg__scores scores;
	HG__TRY(hg__evaluate(&t->evaluator, &scores));
	event->train_accuracy = scores.accuracy[HG__SPLIT_TRAIN];
	event->val_accuracy = scores.accuracy[HG__SPLIT_VAL];
	event->test_accuracy = scores.accuracy[HG__SPLIT_TEST];
	event->nonfinite_logits = scores.nonfinite;
	improvement_note(p, &scores, event->epoch);
	if (!is_better(t, p, &scores))
		return HG_OK;
	p->best = scores;
	p->best_epoch = event->epoch;
	return hg__snapshot_save(&t->best);
}

static int out_of_patience(const hg_train *t, const struct progress *p, int epoch)
{
	return t->config.patience > 0 && t->targets.mask[HG__SPLIT_VAL] && epoch - p->improved_epoch >= t->config.patience;
}

/* Epochs after `epoch` until there is something to look at or to decide. */
static int64_t until_look(const hg_train *t, const struct progress *p, int64_t epoch)
{
	const hg_train_config *c = &t->config;
	const int64_t look = c->eval_every - epoch % c->eval_every, end = c->epochs - epoch, patience = p->improved_epoch + (int64_t)c->patience - epoch;
	const int64_t most = look < end ? look : end;
	return c->patience > 0 && t->targets.mask[HG__SPLIT_VAL] && patience < most ? patience : most;
}

/* One epoch of those that ran together: `back` steps before the last of them. HG_INFO_STOPPED if the caller wants no more. */
static hg_status epoch_tell(hg_train *t, struct progress *p, int epoch, int64_t back, double ms, hg_train_event *event)
{
	const hg_train_config *c = &t->config;
	const hg_step_info info = HG_STEP_INFO_INIT;
	*event = (hg_train_event){sizeof *event, epoch, c->epochs, (double)NAN, (double)NAN, (double)NAN, (double)NAN, ms, info, 0};
	HG__TRY(epoch_note(t, epoch, ms));
	HG__TRY(hg_step_read(t->step, back, &event->loss, &event->step));
	if (epoch % c->eval_every == 0 || epoch == c->epochs)
		HG__TRY(epoch_look(t, p, event));
	t->telling = 1;
	const int stop = c->progress && c->progress(c->user, event);
	t->telling = 0;
	return stop ? HG_INFO_STOPPED : HG_OK;
}

/* Epochs first to last; event holds the last one afterwards. HG_INFO_STOPPED if the caller's function asked for it. */
static hg_status epochs_run(hg_train *t, struct progress *p, hg_train_event *event)
{
	for (int epoch = 0; epoch < t->config.epochs && !out_of_patience(t, p, epoch);) {
		const int64_t count = hg__step_ready(t->step, until_look(t, p, epoch));
		double ms;
		HG__TRY(steps_run(t, count, &ms));
		p->together = count > p->together ? count : p->together;
		hg_status status = HG_OK;
		hg_step_info bad = HG_STEP_INFO_INIT; /* the first that overflowed */
		int replanned = 0;
		for (int64_t i = 1; status == HG_OK && i <= count; i++) {
			status = epoch_tell(t, p, ++epoch, count - i, ms, event);
			if (event->step.reason == HG_STEP_SKIPPED_FORWARD && bad.reason != HG_STEP_SKIPPED_FORWARD)
				bad = event->step;
			if (status == HG_INFO_STOPPED)
				HG__TRY(steps_undo(t, count, i));
		}
		HG__TRY(status);
		/* also where the caller stops: who goes on from here goes on from tapes that fit */
		if (bad.reason == HG_STEP_SKIPPED_FORWARD || event->step.outgrown)
			HG__TRY(hg__train_replan(t, event->step.outgrown, bad.reason == HG_STEP_SKIPPED_FORWARD ? &bad : NULL, &replanned));
		if (replanned)
			hg__step_limit(t->step, t->config.eval_every);
		if (status != HG_OK)
			return status;
	}
	return HG_OK;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Lower median; sorts. */
static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof *values, by_value);
	return values[(count - 1) / 2];
}

static hg_status report_fill(hg_train *t, const struct progress *p, const hg_train_event *last, hg_train_report *report)
{
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
	                              .best_epoch = p->best_epoch,
	                              .best_val_accuracy = p->best.accuracy[HG__SPLIT_VAL],
	                              .test_accuracy = p->best.accuracy[HG__SPLIT_TEST],
	                              .final_loss = last->loss,
	                              .epoch_ms_median = median(t->epoch_ms, last->epoch),
	                              .peak_bytes = memory.peak_bytes,
	                              .state_bytes = plan.state_bytes,
	                              .arena_bytes = plan.arena_bytes,
	                              .steps_skipped = last->step.skipped - p->skipped_before,
	                              .loss_scale_final = last->step.loss_scale,
	                              .loss_finite = isfinite(last->loss) != 0,
	                              .nonfinite_logits = p->best.nonfinite,
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

/* The best epoch's weights into the masters; those of the last step stay at hand, for hg_train_get_state. */
static hg_status best_take(hg_train *t)
{
	HG__TRY(hg__snapshot_swap(&t->best));
	t->swapped = 1;
	return HG_OK;
}

hg_status hg_train_run(hg_train *train, hg_train_report *report)
{
	if (!train)
		return HG_ERR_ARG;
	if (!report || report->size < sizeof report->size)
		return hg__fail(train->ctx, HG_ERR_ARG, "train_run: report is NULL or its size is not set: start from HG_TRAIN_REPORT_INIT");
	if (train->telling)
		return hg__fail(train->ctx, HG_ERR_STATE,
		                "train_run: the run is in its progress function: it cannot begin another");
	if (!train->step)
		return hg__fail(train->ctx, HG_ERR_STATE, "train_run: an earlier run failed while its tapes were recorded again: make a new hg_train");
	struct progress progress = {.top_accuracy = -INFINITY, .low_loss = INFINITY};
	hg_train_event last;
	hg_step_info before = HG_STEP_INFO_INIT;
	HG__TRY(hg_optim_info(train->optim, &before));
	progress.skipped_before = before.skipped;
	train->swapped = 0;
	hg__step_limit(train->step, train->config.eval_every);
	const hg_status status = epochs_run(train, &progress, &last);
	HG__TRY(status);
	hg__step_limit(train->step, HG_STEP_REMEMBERED);
	if (!progress.best_epoch) /* stopped before the first look */
		HG__TRY(epoch_look(train, &progress, &last));
	HG__TRY(best_take(train));
	HG__TRY(report_fill(train, &progress, &last, report));
	return status;
}

/* First largest logit that is a number; -1 where none is. */
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
	HG__TRY(hg__host_alloc(train->ctx, (size_t)(rows * cols), sizeof(float), "train: logits", &host));
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
