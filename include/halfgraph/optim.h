/** @file
 * Optimisers on f32 master weights: SGD, Adam and AdamW. One call unscales the gradients, checks
 * that they are finite, updates the masters or skips the step, refreshes the working copies and
 * adjusts the loss scale, all on the device and without the host.
 *
 * With g the unscaled and clipped gradient, w the master weight, wd the weight decay and t the
 * number of applied steps, this one included:
 *
 *     SGD     g += wd w;  m = mu m + g (m = g at first);  w -= lr (nesterov ? g + mu m : m)
 *     Adam    g += wd w;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
 *             w -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
 *     AdamW   w -= lr wd w, then Adam without wd
 *
 * Owner     An optimiser borrows its params; free it before them.
 * Threads   One thread at a time per context.
 * Source    Kingma, Ba 2015 (Adam); Loshchilov, Hutter 2019 (AdamW); both as PyTorch defines
 *           them. */
#ifndef HALFGRAPH_OPTIM_H
#define HALFGRAPH_OPTIM_H

#include "halfgraph/param.h"
#include "halfgraph/policy.h"
#include "halfgraph/schedule.h"

HG_EXTERN_C_BEGIN

/** Which optimiser. */
typedef enum hg_optim_kind {
	HG_SGD = 0,  /**< stochastic gradient descent, optionally with momentum */
	HG_ADAM = 1, /**< Adam, weight decay as L2 term of the gradient */
	HG_ADAMW = 2 /**< Adam with decoupled weight decay */
} hg_optim_kind;

/** What an optimiser does. Inside an hg_train_config its size must be exact. */
typedef struct hg_optim_config {
	size_t size;
	hg_optim_kind kind; /**< default HG_ADAM */
	float lr;           /**< learning rate, finite and at least 0; default 0.01 */
	float weight_decay; /**< finite and at least 0; default 0 */
	float momentum;     /**< SGD: mu, in [0, 1); default 0 */
	int nesterov;       /**< SGD: 1 for Nesterov momentum, which needs momentum > 0; default 0 */
	float beta1;        /**< Adam, AdamW: b1, in [0, 1); default 0.9 */
	float beta2;        /**< Adam, AdamW: b2, in [0, 1); default 0.999 */
	/** Adam, AdamW: at least 0; default 1e-8. 0 with f16 state is logged as a warning, because a
	 * gradient that underflowed then gives 0 / 0 */
	float eps;
	/** > 0: where the norm of all gradients together is larger, they are scaled down to it; 0:
	 * never (default) */
	float clip_norm;
} hg_optim_config;
/** Adam with learning rate 0.01 and the defaults of the fields. */
#define HG_OPTIM_CONFIG_INIT                                                                 \
	HG__INIT(hg_optim_config, HG__SET(kind, HG_ADAM) HG__SET(lr, 0.01f) HG__SET(beta1, 0.9f) \
	                              HG__SET(beta2, 0.999f) HG__SET(eps, 1e-8f))

/** An optimiser with its moments. */
typedef struct hg_optim hg_optim;

/** Creates an optimiser for all parameters that are not buffers. They start in group 0, which has
 * the config's learning rate and weight decay.
 *
 * Cost      Device memory for f32 moments: 2 copies of the parameters (Adam, AdamW), 1 (SGD with
 *           momentum) or none.
 * @param params  the parameters, borrowed. None may be added afterwards.
 * @param config  copied.
 * @param optim   receives the optimiser, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, config's size is not set, or a field is out of its
 *         range: the message names it); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_optim_create(hg_params *params, const hg_optim_config *config,
                                              hg_optim **optim);

/** Frees an optimiser. Its params stay as they are.
 * @param optim  an optimiser or NULL. */
HG_API void hg_optim_free(hg_optim *optim);

/** Adds a group with its own learning rate and weight decay.
 * @param optim         the optimiser.
 * @param lr            learning rate, finite and at least 0.
 * @param weight_decay  finite and at least 0.
 * @param group         receives the group's number.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or a rate out of its range); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_optim_add_group(hg_optim *optim, float lr, float weight_decay,
                                                 int *group);

/** Moves a parameter into a group. Its moments stay.
 * @param optim  the optimiser.
 * @param param  a parameter that the optimiser updates.
 * @param group  0 or a number from hg_optim_add_group.
 * @return HG_OK; HG_ERR_ARG (optim is NULL, no such group, or the optimiser does not update param);
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_optim_assign(hg_optim *optim, const hg_param *param, int group);

/** Changes the learning rate of a group, from the next step on. A captured step (step.h) stays
 * captured, because the rates live on the device.
 * @param optim  the optimiser.
 * @param group  0 or a number from hg_optim_add_group.
 * @param lr     learning rate, finite and at least 0.
 * @return HG_OK; HG_ERR_ARG (optim is NULL, no such group, or lr out of its range);
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_optim_set_lr(hg_optim *optim, int group, float lr);

/** Gives all groups a schedule, from the next step on: the rate of a step is the group's times the
 * factor of the schedule, which the device computes. A captured step (step.h) stays captured. The
 * number of the step is that of hg_optim_get_state, and what a plateau has counted stays.
 * @param optim   the optimiser.
 * @param config  copied; HG_SCHEDULE_CONFIG_INIT: constant rates again.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, config's size is not set, or hg_schedule_fault;
 *         cosine and one-cycle need their total); HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_optim_set_schedule(hg_optim *optim,
                                                    const hg_schedule_config *config);

/** Tells a schedule of kind HG_SCHEDULE_PLATEAU one evaluation; it may then lower the rates. An
 * hg_train does so by itself. Without such a schedule, and within a warm-up, nothing happens.
 *
 * Cost      Waits for the device.
 * @param optim      the optimiser.
 * @param criterion  a loss or a metric of the validation; NaN is no improvement.
 * @param rises      1: a larger one is better; 0: a smaller one.
 * @return HG_OK; HG_ERR_ARG (NULL); HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_optim_plateau(hg_optim *optim, double criterion, int rises);

/** One optimiser step. It updates every parameter, also one that is on no tape that ran: that one
 * with the gradient it still has. A step whose gradients are not finite, or in which a guard found
 * an overflow, is skipped and changes nothing but the loss scale and the counters; hg_optim_info
 * reports it.
 *
 * Cost      Two kernel launches, no host synchronisation. Asynchronous on a GPU.
 * @param optim  the optimiser.
 * @return HG_OK, also for a skipped step; HG_ERR_ARG (NULL); HG_ERR_STATE (parameters were added
 *         after hg_optim_create); HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_optim_step(hg_optim *optim);

/** What a step did. */
typedef struct hg_step_info {
	size_t size;
	int applied;           /**< 1: the weights were updated */
	hg_step_reason reason; /**< why the step did what it did */
	float loss_scale;      /**< in force for the next step */
	double grad_norm;      /**< of the unscaled gradients; not finite if one of them is not */
	int64_t nonfinite;     /**< gradient elements that are not finite */
	int64_t steps;         /**< steps so far, this one and skipped ones included */
	int64_t skipped;       /**< skipped ones among them */
	/** name of the first parameter whose gradient is not finite, owned by the params; or NULL */
	const char *first_nonfinite;
	/** name of the first parameter with an element larger than the tapes assume (HG_WEIGHT_ROOM),
	 * so that tapes have to be recorded again for their bounds to hold; or NULL */
	const char *outgrown;
	/** first op node whose result overflowed f16 behind its own guard (hg_narrowing.node,
	 * hg_policy.replan); -1: none */
	int32_t overflow_node;
	/** the largest |x| it was about to store; INFINITY where only the stored value was seen or the
	 * sums ran in f16; NaN: not a number */
	float overflow_amax;
	double lr_factor; /**< of the schedule, on the learning rates of this step; 1 without one */
} hg_step_info;
/** An empty hg_step_info with its size set. */
#define HG_STEP_INFO_INIT  \
	HG__INIT(hg_step_info, \
	         HG__SET(reason, HG_STEP_APPLIED) HG__SET(overflow_node, -1) HG__SET(lr_factor, 1.0))

/** Reads what the last step did. Waits for the device. A skipped step is not an error.
 * @param optim  the optimiser.
 * @param info   receives it; start from HG_STEP_INFO_INIT.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or info's size is not set); HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_optim_info(hg_optim *optim, hg_step_info *info);

HG_EXTERN_C_END
#endif
