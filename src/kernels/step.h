#ifndef HG_KERNELS_STEP_H
#define HG_KERNELS_STEP_H

#include "halfgraph/optim.h"
#include "precision/hostdevice.h"

HG_EXTERN_C_BEGIN

/* What one training run keeps on the device between steps. */
struct hg__step {
	hg_loss_scale scale;
	hg_loss_scale_config config;
	int64_t step;            /* steps begun, skipped ones included: dropout's counter */
	int64_t nonfinite;       /* of the current step's gradients */
	int64_t first_nonfinite; /* index of the first tensor with one; -1 if none */
	double grad_sq;          /* sum of squares of the unscaled gradients */
	double bias1;            /* what the check decides for the update: kernels/optim.h */
	float root2, clip;
	int32_t outgrown,
	    /* first tensor, as far as is known, with an element beyond its reach: after this step's
	     * update, and before it; HG__NONE_OUTGROWN: none */
	    outgrown_before;
	/* the step's loss scale: the update reads this one, so the transition need not wait for it */
	float in_force;
	int32_t reason;
	uint64_t trip,
	    /* kernels/trip.h: what guards have found since the last check, where they write; and what
	     * they had found by then: the step is bad */
	    tripped;
	/* Set by the last kernel of a step behind which the host has to decide something: the steps
	 * that
	 * are queued behind it change nothing, until the host has cleared it. Forward and backward
	 * passes
	 * and the gradient check read `stop`; the update reads `stopped`, the check's copy of it,
	 * because
	 * the update is the kernel that sets `stop`. */
	int32_t stop, stopped;
};

#define HG__NONE_OUTGROWN INT32_MAX

/* What each step leaves for a host that reads later: the last HG__NOTES of them, step number
 * `taken` in note[taken % HG__NOTES]. */
#define HG__NOTES 64
struct hg__step_note {
	double grad_sq;
	int64_t nonfinite, first_nonfinite, steps, skipped;
	float loss, scale;
	int32_t reason, outgrown; /* outgrown: of the weights that the step ran with */
	uint64_t tripped;
};
struct hg__step_notes {
	int64_t taken;
	struct hg__step_note note[HG__NOTES];
};

HG_HD static inline struct hg__step_note hg__step_note_of(const struct hg__step *step, float loss)
{
	struct hg__step_note note;
	note.grad_sq = step->grad_sq;
	note.nonfinite = step->nonfinite;
	note.first_nonfinite = step->first_nonfinite;
	note.steps = step->scale.steps;
	note.skipped = step->scale.skipped;
	note.loss = loss;
	note.scale = step->scale.scale;
	note.reason = step->reason;
	note.outgrown = step->outgrown_before;
	note.tripped = step->tripped;
	return note;
}

HG_EXTERN_C_END
#endif
