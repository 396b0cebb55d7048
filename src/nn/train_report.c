/* The report of a training run. */
#include <math.h>
#include <stdlib.h>

#include "core/versioned.h"
#include "nn/train.h"

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

hg_status hg__train_report(hg_train *t, const struct hg__train_sums *sums,
                           const hg_train_event *last, const struct hg__score_note *best,
                           hg_train_report *report)
{
	const int64_t epoch = t->seen.best.epoch;
	hg_memory_info memory = HG_MEMORY_INFO_INIT;
	hg_plan_info plan = HG_PLAN_INFO_INIT;
	hg_step_launch launch = HG_STEP_LAUNCH_INIT;
	hg_observer observer = HG_OBSERVER_INIT;
	HG__TRY(hg_context_memory(t->ctx, &memory));
	HG__TRY(hg_tape_plan(t->tape, &plan));
	HG__TRY(hg_step_get_launch(t->step, &launch));
	HG__TRY(hg_step_observer(t->step, &observer));
	HG__TRY(hg__train_buckets_headroom(t, &observer));
	const hg_train_report ours = {
	    .size = sizeof ours,
	    .epochs_run = last->epoch,
	    .best_epoch = epoch > 0 ? (int)epoch : 0,
	    .best_val_accuracy = hg__accuracy_of(&best->counts, HG__SPLIT_VAL),
	    .test_accuracy = hg__accuracy_of(&best->counts, HG__SPLIT_TEST),
	    .final_loss = last->loss,
	    .epoch_ms_median = median(t->epoch_ms, last->epoch),
	    .peak_bytes = memory.peak_bytes,
	    .state_bytes = plan.state_bytes,
	    .arena_bytes = plan.arena_bytes,
	    .steps_skipped = last->step.skipped - sums->skipped_before,
	    .loss_scale_final = last->step.loss_scale,
	    .loss_finite = isfinite(last->loss) != 0,
	    .nonfinite_logits = best->counts.nonfinite,
	    .captured = launch.captured,
	    .epochs_together = (int)sums->together,
	    .replans = t->replans,
	    .casts = plan.casts,
	    .headroom = observer.headroom,
	    .headroom_name = observer.headroom_name,
	    .rescaled = plan.rescaled,
	    .promoted = plan.promoted,
	    .metric = t->truth.metric,
	    .loss = t->truth.loss,
	    .best_val_metric = best->metric[HG__SPLIT_VAL],
	    .test_metric = best->metric[HG__SPLIT_TEST],
	    .steps_run = sums->steps,
	    .prepare_share = sums->prepare_ms > 0.0 ? sums->prepare_ms / sums->ms : 0.0};
	return hg__struct_write(report, &ours, sizeof ours) ? HG_OK : HG_ERR_ARG;
}
