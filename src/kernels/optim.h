/* The optimiser step: its arguments, and the decisions between its two kernels. These decisions are
 * compiled both for the host and for CUDA, so both compute the same bits. */
#ifndef HG_KERNELS_OPTIM_H
#define HG_KERNELS_OPTIM_H

#include <math.h>

#include "kernels/step.h"
#include "precision/power.h"
#include "precision/scaler.h"
#include "precision/schedule.h"

HG_EXTERN_C_BEGIN

/* One parameter as the optimiser kernels see it. All its arrays have the ld of the master
 * weights. */
struct hg__optim_tensor {
	/* m: momentum or first moment; v: second moment; NULL if the method has none. */
	float *master, *grad, *m, *v;
	void *working; /* the working copy; NULL: the master weights are used directly */
	int64_t rows, cols, ld;
	hg_dtype working_dtype;
	int32_t group;
	float reach; /* the bounds of tapes assume |master| <= reach */
};
struct hg__optim_group {
	float lr, weight_decay;
};
/* tensors, groups: device arrays. host: the same tensors in host memory, for sizing. */
struct hg__optim_args {
	hg_optim_config config;
	const struct hg__optim_tensor *tensors, *host;
	int64_t count;
	const struct hg__optim_group *groups;
	struct hg__step *step;
	/* Device memory; NULL: unknown. A step is then attributed to the forward pass only if its
	 * overflow flag is set. */
	const float *loss;
	/* device memory; NULL: no records. With records, loss must be given */
	struct hg__step_notes *notes;
	/* a set of HG__STOP_...: such a step stops the queued steps behind it (kernels/step.h) */
	unsigned stops;
};
enum { HG__OPTIMISERS = HG_ADAMW + 1 };
/* FORWARD: the forward pass of the step overflowed. OUTGROWN: the step ran with weights beyond the
 * reach that the bounds of its tape assume. */
enum { HG__STOP_FORWARD = 1, HG__STOP_OUTGROWN = 2 };

/* Elements of storage that one block of the CUDA kernels processes. A chunk belongs to one
 * tensor. */
#define HG__OPTIM_CHUNK 1024

HG_HD static inline int64_t hg__optim_chunks(const struct hg__optim_tensor *t)
{
	return (t->rows * t->ld + HG__OPTIM_CHUNK - 1) / HG__OPTIM_CHUNK;
}

/* The two kernels of an optimiser step, in this order:
 *
 *     grad_check    overflow_found; nonfinite, first_nonfinite and grad_sq of grad / scale (fixed
 *                   order, f64); bias corrections and clip
 *     optim_update  if nonfinite == 0 and overflow_found == 0: g = grad / scale * clip; updates
 *                   master, m and v; working = narrow(master); outgrown.
 *                   Then, unless the step was stopped: the transition of the loss scale,
 *                   step += 1, and a record. */

/* Begins grad_check: takes over the overflow flag and the loss scale, the schedule's factor, and
 * the bias corrections of step t = applied + 1,
 *
 *     bias1 = 1 - beta1^t,   root2 = sqrt(1 - beta2^t) */
HG_HD static inline void hg__step_begin(struct hg__step *step, const hg_optim_config *config)
{
	const int64_t t = step->scale.applied + 1;
	step->stopped = step->stop;
	if (step->stopped) {
		step->overflow = 0;
		return;
	}
	step->in_force = step->scale.scale;
	step->overflow_found = step->overflow;
	step->overflow = 0;
	step->outgrown_before = step->outgrown;
	step->rate = hg__schedule_factor(&step->schedule, step->step, step->plateau.drops);
	step->bias1 = 1.0 - hg__power((double)config->beta1, t);
	step->root2 = (float)sqrt(1.0 - hg__power((double)config->beta2, t));
}

/* After the check: the clipping factor min(1, clip_norm / |g|), from grad_sq. */
HG_HD static inline void hg__step_decide(struct hg__step *step, const hg_optim_config *config)
{
	const double most = (double)config->clip_norm;
	const double norm = most > 0.0 ? sqrt(step->grad_sq) : 0.0;
	step->clip = norm > most ? (float)(most / norm) : 1.0f;
}

/* After the check: whether the weights must not be updated by this step. */
HG_HD static inline int hg__step_is_bad(const struct hg__step *step)
{
	return step->nonfinite || step->overflow_found || step->stopped;
}

/* After the check: the transition of the loss scale, the step counter, and the record. The update
 * reads nothing that this changes. A step that was stopped leaves no record. */
HG_HD static inline void hg__step_close(struct hg__step *step, const float *loss,
                                        struct hg__step_notes *notes, unsigned stops)
{
	if (step->stopped)
		return;
	const int forward =
	    step->overflow_found || (step->nonfinite && loss && !(fabsf(*loss) < INFINITY));
	step->reason = (int32_t)hg__loss_scale_step(&step->scale, &step->config,
	                                            forward           ? HG__STEP_FORWARD
	                                            : step->nonfinite ? HG__STEP_BAD
	                                                              : HG__STEP_GOOD);
	step->step++;
	const int outgrown = step->outgrown_before != HG__NONE_OUTGROWN;
	step->stop = (forward && stops & HG__STOP_FORWARD) || (outgrown && stops & HG__STOP_OUTGROWN);
	if (notes)
		notes->note[notes->taken++ % HG__NOTES] = hg__step_note_of(step, *loss);
}

/* The constants of one step for one group of parameters: lr = the group's times the factor of the
 * schedule, rest = 1 - beta, size = lr / bias1. */
struct hg__rates {
	float scale, clip, lr, decay, momentum, beta2, rest1, rest2, eps, root2, size;
	int nesterov;
};
HG_HD static inline struct hg__rates hg__rates_of(const hg_optim_config *c,
                                                  const struct hg__optim_group *group,
                                                  const struct hg__step *step)
{
	const float lr = (float)((double)group->lr * step->rate);
	struct hg__rates r;
	r.scale = step->in_force;
	r.clip = step->clip;
	r.lr = lr;
	r.decay = group->weight_decay;
	r.momentum = c->momentum;
	r.beta2 = c->beta2;
	r.rest1 = (float)(1.0 - (double)c->beta1);
	r.rest2 = (float)(1.0 - (double)c->beta2);
	r.eps = c->eps;
	r.root2 = step->root2;
	r.size = (float)((double)lr / step->bias1);
	r.nesterov = c->nesterov;
	return r;
}

HG_EXTERN_C_END
#endif
