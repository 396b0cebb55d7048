#ifndef HG_KERNELS_OPTIM_H
#define HG_KERNELS_OPTIM_H

#include <math.h>

#include "kernels/step.h"
#include "precision/scaler.h"

HG_EXTERN_C_BEGIN

/* One parameter as the optimiser kernels see it; all storage has the master's ld. */
struct hg__optim_tensor {
	/* m: momentum or first moment; v: second moment; NULL where the method has none */
	float *master, *grad, *m, *v;
	void *working; /* NULL: the master is used itself */
	int64_t rows, cols, ld;
	hg_dtype working_dtype;
	int32_t group;
	float reach; /* tapes rest on |master| <= reach */
};
struct hg__optim_group {
	float lr, weight_decay;
};
/* tensors, groups: device arrays; host: the same tensors on the host, for sizing. */
struct hg__optim_args {
	hg_optim_config config;
	const struct hg__optim_tensor *tensors, *host;
	int64_t count;
	const struct hg__optim_group *groups;
	struct hg__step *step;
	/* device memory; NULL: nobody knows it, and a step is blamed on the forward pass only where a
	 * guard tripped */
	const float *loss;
	struct hg__step_notes *notes; /* device memory; NULL: none are taken. Else there is a loss */
	unsigned stops; /* a set of HG__STOP_...: such a step stops those behind it (kernels/step.h) */
};
/* Its forward pass overflowed; it ran with weights beyond the bounds that its tape rests on. */
enum { HG__STOP_FORWARD = 1, HG__STOP_OUTGROWN = 2 };

/* Elements of storage that one block of the CUDA kernels takes: a chunk belongs to one tensor. */
#define HG__OPTIM_CHUNK 1024

HG_HD static inline int64_t hg__optim_chunks(const struct hg__optim_tensor *t)
{
	return (t->rows * t->ld + HG__OPTIM_CHUNK - 1) / HG__OPTIM_CHUNK;
}

/* grad_check: a sum of squares, a count and a place for each chunk, and one more. */
static inline size_t hg__optim_bytes(const struct hg__optim_tensor *host, int64_t count)
{
	int64_t chunks = 1;
	for (int64_t i = 0; i < count; i++)
		chunks += hg__optim_chunks(&host[i]);
	return (size_t)chunks * (sizeof(double) + 2 * sizeof(int64_t));
}

/* The two kernels of a step, in this order; the decisions between them are below:
 *   grad_check    tripped; nonfinite, first_nonfinite, grad_sq of grad / scale (fixed order, f64);
 *                 bias corrections and clip
 *   optim_update  if nonfinite == 0 and nothing tripped: g = grad / scale * clip, update master, m,
 *                 v; working = narrow(master); outgrown. Then, in any case, the loss scale's
 *                 transition; step += 1; a note of it all */

/* What an optimiser step decides between its kernels: the same text, and the same bits, on the host
 * and in a kernel. */

/* x^n by squaring, n >= 0; |x| <= 1. Each squaring doubles a relative error and adds one: at most n
 * roundings of f64 in all. */
HG_HD static inline double hg__power(double x, int64_t n)
{
	double result = 1.0;
	for (double square = x; n > 0; n /= 2, square *= square)
		if (n % 2)
			result *= square;
	return result;
}

/* What follows from the steps applied so far: the loss scale in force and the bias corrections of
 * step t = applied + 1,
 *
 *     bias1 = 1 - beta1^t,   root2 = sqrt(1 - beta2^t) */
HG_HD static inline void hg__step_begin(struct hg__step *step, const hg_optim_config *config)
{
	const int64_t t = step->scale.applied + 1;
	step->stopped = step->stop;
	if (step->stopped) {
		step->trip = 0;
		return;
	}
	step->in_force = step->scale.scale;
	step->tripped = step->trip;
	step->trip = 0;
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

/* After the check: no weight may take in what this step has made. */
HG_HD static inline int hg__step_is_bad(const struct hg__step *step)
{
	return step->nonfinite || step->tripped || step->stopped;
}

/* After the check: the loss scale's transition, the step counted, a note of it all. The update
 * reads
 * nothing that this changes. A step that does nothing leaves no note. */
HG_HD static inline void hg__step_close(struct hg__step *step, const float *loss,
                                        struct hg__step_notes *notes, unsigned stops)
{
	if (step->stopped)
		return;
	const int forward = step->tripped || (step->nonfinite && loss && !(fabsf(*loss) < INFINITY));
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

/* The numbers of one step of one group: rest = 1 - beta, size = lr / bias1. */
struct hg__rates {
	float scale, clip, lr, decay, momentum, beta2, rest1, rest2, eps, root2, size;
	int nesterov;
};
HG_HD static inline struct hg__rates hg__rates_of(const hg_optim_config *c,
                                                  const struct hg__optim_group *group,
                                                  const struct hg__step *step)
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
