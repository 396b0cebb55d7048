/* The state that a training run keeps on the device between steps, and the record that each step
 * leaves for the host. With these, steps can be queued ahead without waiting for the host. */
#ifndef HG_KERNELS_STEP_H
#define HG_KERNELS_STEP_H

#include "halfgraph/optim.h"
#include "precision/schedule.h"

HG_EXTERN_C_BEGIN

struct hg__step {
	hg_loss_scale scale;
	hg_loss_scale_config config;
	int64_t step;            /* steps taken, including skipped ones; dropout's counter */
	int64_t nonfinite;       /* elements of this step's gradients that are not finite */
	int64_t first_nonfinite; /* index of the first tensor with such an element; -1: none */
	double grad_sq;          /* sum of squares of the unscaled gradients */
	/* bias1, root2, clip: grad_check decides them for optim_update (optim.h) */
	double bias1;
	float root2, clip;
	/* The first tensor known to have an element beyond its reach (optim.h), after this step's
	 * update and before it; HG__NONE_OUTGROWN: none. */
	int32_t outgrown, outgrown_before;
	/* The loss scale of this step. The update reads this copy, so that the scale's transition need
	 * not wait for the update. */
	float in_force;
	int32_t reason;
	/* The overflow flag (kernels/overflow.h): guards of the forward pass write `overflow`. The
	 * gradient check moves it to `overflow_found`; the step is bad where that is not 0. */
	uint64_t overflow, overflow_found;
	/* stop is set by the last kernel of a step after which the host must decide something. Steps
	 * that are already queued behind it then change nothing, until the host clears it. Forward and
	 * backward passes and the gradient check read `stop`. The update reads `stopped`, the copy that
	 * the check made, because the update is the kernel that sets `stop`. */
	int32_t stop, stopped;
	/* The schedule of the learning rate, what its plateau has counted, and its factor in this step.
	 * They are here so that a captured step reads what the host or an evaluation changes. */
	hg_schedule_config schedule;
	hg_plateau plateau;
	double rate;
};

#define HG__NONE_OUTGROWN INT32_MAX

/* What each step records for a host that reads later. The last HG__NOTES records are kept: step
 * number `taken` is in note[taken % HG__NOTES]. */
#define HG__NOTES 64
struct hg__step_note {
	double grad_sq, rate;
	int64_t nonfinite, first_nonfinite, steps, skipped;
	float loss, scale;
	int32_t reason, outgrown; /* outgrown: of the weights before this step's update */
	uint64_t overflow_found;
};
struct hg__step_notes {
	int64_t taken;
	struct hg__step_note note[HG__NOTES];
};

/* An evaluation for the plateau of the schedule. Those within the warm-up do not count. */
HG_HD static inline void hg__step_plateau(struct hg__step *step, double criterion, int falls)
{
	if (step->schedule.kind == HG_SCHEDULE_PLATEAU && step->step >= step->schedule.warmup)
		hg__plateau_note(&step->plateau, &step->schedule, criterion, falls);
}

HG_HD static inline struct hg__step_note hg__step_note_of(const struct hg__step *step, float loss)
{
	struct hg__step_note note;
	note.grad_sq = step->grad_sq;
	note.rate = step->rate;
	note.nonfinite = step->nonfinite;
	note.first_nonfinite = step->first_nonfinite;
	note.steps = step->scale.steps;
	note.skipped = step->scale.skipped;
	note.loss = loss;
	note.scale = step->scale.scale;
	note.reason = step->reason;
	note.outgrown = step->outgrown_before;
	note.overflow_found = step->overflow_found;
	return note;
}

HG_EXTERN_C_END
#endif
