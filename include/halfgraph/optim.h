#ifndef HALFGRAPH_OPTIM_H
#define HALFGRAPH_OPTIM_H

#include "halfgraph/param.h"
#include "halfgraph/policy.h"

HG_EXTERN_C_BEGIN

/* SGD, Adam, AdamW on f32 masters. One call unscales the gradients, looks for a non-finite one,
 * updates or skips, refreshes the working copies and moves the loss scale: all on the device,
 * without a word from the host. */
typedef enum hg_optim_kind { HG_SGD = 0, HG_ADAM = 1, HG_ADAMW = 2 } hg_optim_kind;

/* Inside an hg_train_config its size must be exact. */
typedef struct hg_optim_config {
	size_t size;
	hg_optim_kind kind;
	float lr, weight_decay; /* SGD, Adam: L2, added to the gradient. AdamW: decoupled */
	float momentum;         /* SGD */
	int nesterov;           /* SGD, needs momentum > 0 */
	float beta1, beta2,
	    eps; /* Adam, AdamW: PyTorch's definition and bias correction. eps 0 with state
	          * f16 is logged as a warning: a gradient that vanished is 0 / 0 */
	/* > 0: all gradients together are scaled down to this norm where theirs is larger; 0: never */
	float clip_norm;
} hg_optim_config;
#define HG_OPTIM_CONFIG_INIT                                                              \
	{                                                                                     \
		sizeof(hg_optim_config), HG_ADAM, 0.01f, 0.0f, 0.0f, 0, 0.9f, 0.999f, 1e-8f, 0.0f \
	}

typedef struct hg_optim hg_optim;

/* All parameters (not the buffers) start in group 0 with `config`'s values. */
HG_API HG_NODISCARD hg_status hg_optim_create(hg_params *params, const hg_optim_config *config,
                                              hg_optim **optim);
HG_API void hg_optim_free(hg_optim *optim);
/* A new group with its own lr and weight decay, and moving a parameter into it. */
HG_API HG_NODISCARD hg_status hg_optim_add_group(hg_optim *optim, float lr, float weight_decay,
                                                 int *group);
HG_API HG_NODISCARD hg_status hg_optim_assign(hg_optim *optim, const hg_param *param, int group);
HG_API HG_NODISCARD hg_status hg_optim_set_lr(hg_optim *optim, int group, float lr);

/* Updates every parameter, also one that is on no tape that ran: that one with the gradient it has
 * kept. Asynchronous on a GPU. */
HG_API HG_NODISCARD hg_status hg_optim_step(hg_optim *optim);

/* What the last step did; reading it synchronises. A skipped step is not an error. */
typedef struct hg_step_info {
	size_t size;
	int applied;
	hg_step_reason reason;
	float loss_scale;  /* in force for the next step */
	double grad_norm;  /* of the unscaled gradients; not finite if the step was skipped */
	int64_t nonfinite; /* gradients that were not finite */
	int64_t steps, skipped;
	const char *first_nonfinite; /* name of the first parameter with one, or NULL */
	const char *
	    /* name of the first parameter with an element larger than the tapes assume (hg_evidence),
	     * so that their table has to be made again; or NULL */
	    outgrown;
	/* first node of the tape (hg_narrowing.node) whose result did not fit in f16, behind a guard of
	 * its own (hg_policy.replan); -1: none */
	int32_t tripped;
	/* the largest |x| that it was about to store; INFINITY where only what it stored was seen, or
	 * its sums ran in f16; NaN: not a number */
	float tripped_amax;
} hg_step_info;
#define HG_STEP_INFO_INIT                                                            \
	{                                                                                \
		sizeof(hg_step_info), 0, HG_STEP_APPLIED, 0.0f, 0.0, 0, 0, 0, 0, 0, -1, 0.0f \
	}
HG_API HG_NODISCARD hg_status hg_optim_info(hg_optim *optim, hg_step_info *info);

HG_EXTERN_C_END
#endif
