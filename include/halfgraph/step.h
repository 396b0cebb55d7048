/** @file
 * One training step as an object, for a training loop of your own.
 *
 *     hg_step_run(step, k)  =  k times: hg_tape_forward, hg_tape_backward, hg_optim_step
 *
 * with the same bits. A GPU runs the kernels of a small graph faster than a host can queue them. So
 * the calls of a step are captured once (as a CUDA graph) and launched as a whole, several short
 * steps in one launch; losses and outcomes stay on the device until they are read. The first step
 * runs call by call, because kernels are loaded and libraries choose their algorithms in it.
 *
 * Addresses and constants are captured. What changes from step to step lives on the device: loss
 * scale, step counter, moments, learning rates. The step is captured once more when something else
 * changes: a group was added to the optimiser, or the workspace grew because another tape was
 * compiled. The contents of inputs and variables may change between runs. Where nothing can be
 * captured (on a CPU, or on a stream that is being captured already) the same calls are queued one
 * by one; on a GPU the log says why.
 *
 * Cost      One launch for per_launch steps. Device memory: 4 kB, the observer's (observe.h), and
 *           what the driver keeps of the captured operations.
 * Owner     A step borrows its tape and optimiser; free it before them.
 * Threads   One thread at a time per context. */
#ifndef HALFGRAPH_STEP_H
#define HALFGRAPH_STEP_H

#include "halfgraph/optim.h"
#include "halfgraph/tape.h"

HG_EXTERN_C_BEGIN

/** A training step. */
typedef struct hg_step hg_step;

/** Number of last steps whose results can be read. */
#define HG_STEP_REMEMBERED 64

/** How steps run. Inside an hg_train_config its size must be exact. */
typedef struct hg_step_config {
	size_t size;
	int eager; /**< 1: capture nothing; default 0 */
	/** steps in one launch, 1 to HG_STEP_REMEMBERED; 0 (default): about a millisecond of work on a
	 * GPU, 1 elsewhere */
	int per_launch;
	/** the observer (observe.h) inspects every so many steps; 0 (default): 16; negative: never. An
	 * inspection reads each tensor once, which takes 0.14 to 0.38 of a step on one core: with 16
	 * that is 1 to 2.4 % */
	int observe_every;
} hg_step_config;
/** The defaults of the fields. */
#define HG_STEP_CONFIG_INIT HG__INIT_ZERO(hg_step_config)

/** Creates a step.
 * @param tape    a compiled HG_TRAIN tape whose output is a loss, borrowed.
 * @param optim   an optimiser of the same params, borrowed.
 * @param config  copied; NULL: HG_STEP_CONFIG_INIT.
 * @param step    receives the step, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, the optimiser belongs to other params, config's
 *         size is not set or per_launch is out of range); HG_ERR_STATE (the tape is not compiled or
 *         has no loss); the first error of the tape's recording; HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_step_create(hg_tape *tape, hg_optim *optim,
                                             const hg_step_config *config, hg_step **step);

/** Frees a step. Its tape and optimiser stay.
 * @param step  a step or NULL. */
HG_API void hg_step_free(hg_step *step);

/** Queues steps. Asynchronous on a GPU.
 * @param step   the step.
 * @param count  number of steps, at least 0.
 * @return HG_OK, also where steps are skipped; HG_ERR_ARG (step is NULL, count below 0);
 *         HG_ERR_STATE (parameters were added after hg_optim_create); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_step_run(hg_step *step, int64_t count);

/** Reads the loss and the outcome of one of the last HG_STEP_REMEMBERED steps of this object. The
 * first read after a run waits for the device; later ones cost nothing.
 * @param step  the step.
 * @param back  0: the last step, 1: the one before it, and so on.
 * @param loss  receives the loss (before loss scaling); may be NULL.
 * @param info  receives the outcome, start from HG_STEP_INFO_INIT; may be NULL.
 * @return HG_OK; HG_ERR_ARG (step is NULL, or info's size is not set); HG_ERR_STATE (back is
 *         negative, or that step is not remembered); HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_step_read(hg_step *step, int64_t back, double *loss,
                                           hg_step_info *info);

/** How steps are launched. */
typedef struct hg_step_launch {
	size_t size;
	int captured;       /**< 1: the last step ran as captured work */
	int per_launch;     /**< steps in a full launch; 0: nothing captured and nothing configured */
	int64_t operations; /**< kernels, copies and fills of one captured step; 0: none is captured */
} hg_step_launch;
/** An empty hg_step_launch with its size set. */
#define HG_STEP_LAUNCH_INIT HG__INIT_ZERO(hg_step_launch)

/** Reads how steps are launched.
 * @param step    the step.
 * @param launch  receives it; start from HG_STEP_LAUNCH_INIT.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or launch's size is not set). */
HG_API HG_NODISCARD hg_status hg_step_get_launch(const hg_step *step, hg_step_launch *launch);

HG_EXTERN_C_END
#endif
