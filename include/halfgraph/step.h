#ifndef HALFGRAPH_STEP_H
#define HALFGRAPH_STEP_H

#include "halfgraph/optim.h"
#include "halfgraph/tape.h"

HG_EXTERN_C_BEGIN

/* One training step as an object, for a training loop of your own.
 *
 *     hg_step_run(step, k)  =  k times: hg_tape_forward, hg_tape_backward, hg_optim_step;  bit for
 *                           bit
 *
 * A GPU runs the kernels of a small graph faster than a host can queue them. So the calls of a step
 * are captured once (as a CUDA graph) and launched as a whole, and of short steps several in one
 * launch; losses and outcomes stay on the device until somebody reads them. The first step of all
 * runs call by call: kernels are loaded in it, and libraries choose their algorithms.
 *
 * Captured are addresses and constants. What changes from step to step lives on the device: loss
 * scale, step counter, moments, learning rates. What changes seldom is noticed, and the step is
 * captured again: another group of the optimiser, scratch memory that grew because another tape was
 * compiled. The contents of inputs and variables may change between runs as always. Where nothing
 * can be captured, on a CPU or on a stream that is captured already, the same calls are queued one
 * by one; on a GPU one line of the log says why.
 *
 * Contract  tape: compiled, TRAIN, its output a loss; optim: of the same params. Both are borrowed:
 * free the step before them.
 * Cost
 * one launch for per_launch steps; 4 kB of device memory, the observer's (observe.h), and what the
 * driver keeps of the captured operations. Errors
 * HG_ERR_ARG a pointer is NULL, params differ, a wrong config;  HG_ERR_STATE the tape has no loss
 * or is not compiled;  those of the three calls. Threads
 * as everything on a context: one thread at a time. run is asynchronous on a GPU; read waits. */
typedef struct hg_step hg_step;

/* Results of so many last steps can be read. */
#define HG_STEP_REMEMBERED 64

/* Inside an hg_train_config its size must be exact. */
typedef struct hg_step_config {
	size_t size;
	int eager; /* 1: capture nothing */
	/* steps in one launch, 1 to HG_STEP_REMEMBERED; 0: about a millisecond's worth on a GPU, 1
	 * elsewhere */
	int per_launch;
	/* Every so many steps the observer looks (observe.h); 0: 16, negative: never. A look reads each
	 * tensor once, on one core in 0.14 to 0.38 of a step: 16 makes 1 to 2.4 %. */
	int observe_every;
} hg_step_config;
#define HG_STEP_CONFIG_INIT             \
	{                                   \
		sizeof(hg_step_config), 0, 0, 0 \
	}

/* config NULL: HG_STEP_CONFIG_INIT. */
HG_API HG_NODISCARD hg_status hg_step_create(hg_tape *tape, hg_optim *optim,
                                             const hg_step_config *config, hg_step **step);
HG_API void hg_step_free(hg_step *step);

/* Queue `count` steps. */
HG_API HG_NODISCARD hg_status hg_step_run(hg_step *step, int64_t count);

/* Loss and outcome of one of the last HG_STEP_REMEMBERED steps of this object: back = 0 is the last
 * one, 1 the one before it. Either result may be NULL. The first read after a run waits for the
 * device; all further ones are free. HG_ERR_STATE if so many steps have not been run. */
HG_API HG_NODISCARD hg_status hg_step_read(hg_step *step, int64_t back, double *loss,
                                           hg_step_info *info);

/* How steps are launched. */
typedef struct hg_step_launch {
	size_t size;
	int captured; /* the last step ran as captured work */
	/* steps in a full launch; 0 as long as nothing was captured and nothing configured */
	int per_launch;
	int64_t operations; /* kernels, copies and fills of one captured step; 0: none was captured */
} hg_step_launch;
#define HG_STEP_LAUNCH_INIT             \
	{                                   \
		sizeof(hg_step_launch), 0, 0, 0 \
	}
HG_API HG_NODISCARD hg_status hg_step_get_launch(const hg_step *step, hg_step_launch *launch);

HG_EXTERN_C_END
#endif
