#ifndef HG_KERNELS_OPTIM_H
#define HG_KERNELS_OPTIM_H

#include <math.h>

#include "kernels/kernels.h"
#include "precision/scaler.h"

HG_EXTERN_C_BEGIN

/* What an optimiser step decides between its kernels: the same text, and the same bits, on the host and in a kernel. */

/* x^n by squaring, n >= 0; |x| <= 1. Each squaring doubles a relative error and adds one: at most n roundings of f64 in all. */
HG_HD static inline double hg__power(double x, int64_t n)
{
	double result = 1.0;
	for (double square = x; n > 0; n /= 2, square *= square)
		if (n % 2)
			result *= square;
	return result;
}

/* What follows from the steps applied so far: the loss scale in force and the bias corrections of step t = applied + 1,
 *
 *     bias1 = 1 - beta1^t,   root2 = sqrt(1 - beta2^t) */
HG_HD static inline void hg__step_begin(struct hg__step *step, const hg_optim_config *config)
{
	const int64_t t = step->scale.applied + 1;
	step->in_force = step->scale.scale;
	step->outgrown_before = step->outgrown;
	step->bias1 = 1.0 - hg__power((double)config->beta1, t);
	step->root2 = (float)sqrt(1.0 - hg__power((double)config->beta2, t));
}

/* After the check, from grad_sq: the factor of clipping, min(1, clip_norm / |g|). */
HG_HD static inline void hg__step_decide(struct hg__step *step, const hg_optim_config *config)
{
	const double most = (double)config->clip_norm;
	const double norm = most > 0.0 ? sqrt(step->grad_sq) : 0.0;
	step->clip = norm > most ? (float)(most / norm) : 1.0f;
}

/* After the check: the loss scale's transition, the step counted, a note of it all. The update reads nothing that this changes. */
HG_HD static inline void hg__step_close(struct hg__step *step, const float *loss, struct hg__step_notes *notes)
{
	const int forward = step->nonfinite && loss && !(fabsf(*loss) < INFINITY);
	step->reason = (int32_t)hg__loss_scale_step(&step->scale, &step->config, forward ? HG__STEP_FORWARD : step->nonfinite ? HG__STEP_BAD : HG__STEP_GOOD);
	step->step++;
	if (notes)
		notes->note[notes->taken++ % HG__NOTES] = hg__step_note_of(step, *loss);
}

/* The numbers of one step of one group: rest = 1 - beta, size = lr / bias1. */
struct hg__rates {
	float scale, clip, lr, decay, momentum, beta2, rest1, rest2, eps, root2, size;
	int nesterov;
};
HG_HD static inline struct hg__rates hg__rates_of(const hg_optim_config *c, const struct hg__optim_group *group, const struct hg__step *step)
{
	struct hg__rates r;
	r.scale = step->in_force;
	r.clip = step->clip;
	r.lr = group->lr;
	r.decay = group->weight_decay;
	r.momentum = c->momentum;
	r.beta2 = c->beta2;
	r.rest1 = (float)(1.0 - (double)c->beta1);
	r.rest2 = (float)(1.0 - (double)c->beta2);
	r.eps = c->eps;
	r.root2 = step->root2;
	r.size = (float)((double)group->lr / step->bias1);
	r.nesterov = c->nesterov;
	return r;
}

HG_EXTERN_C_END
#endif
