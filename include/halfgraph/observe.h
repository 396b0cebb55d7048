#ifndef HALFGRAPH_OBSERVE_H
#define HALFGRAPH_OBSERVE_H

#include "halfgraph/step.h"

HG_EXTERN_C_BEGIN

/* The observer: what a training step leaves in half precision, counted on the device while training
 * goes on. It is on by default; hg_step_config.observe_every says how often it looks.
 *
 * Seen is the result of every node that runs (of a chain that one kernel does: of its last op), the
 * gradient of each, and the gradients of parameters and variables, which all are loss_scale times
 * what they would be. Of each: exponents in 32 bins, largest magnitude, zeros, subnormals, what is
 * not finite and the first such place. Nothing of the step is changed, bit for bit, and nothing
 * waits: the counts stay on the device until somebody reads them, those of the last
 * HG_STEP_OBSERVED steps that were looked at.
 *
 * When
 * a step whose number (hg_step_info.steps, counted from 0) is a multiple of observe_every.
 *           Where all tensors stay to the end of a step (hg_tape_observe), also every step that is
 *           skipped because a gradient is not finite: then what went wrong first can be read off.
 * Memory    tensors stay longer than the step needs them, so that fewer looks see them all, as far
 *           as the arena grows by a 20th at most. 2.7 kB of device memory a tensor beside it
 *           (hg_plan_info.observer_bytes).
 * Cost      2 to 4 launches a step that find nothing to do, with all tensors kept one; in a step
 *           that is looked at, one reading of all tensors.
 * Sums
 * An f32 sum of k terms is within k 2^-24 of the sum of their magnitudes: there is nothing to
 * sample. Of sums in f16 (policies fp16-discretized, fp16-naive) 32 rows
 *           are summed again in f64, the 16 longest among them: `swamping`. A gradient that is a
 *           sum of several is not sampled.
 * Errors
 * HG_ERR_ARG a pointer is NULL, a size not set;  HG_ERR_STATE nobody observes, or there is no such
 * step;  HG_ERR_RANGE no such tensor. */

/* Before a tape is compiled; without it the arena grows by a 20th at most. on: all values and
 * gradients stay to the end of a step where the device has room, which about doubles the arena; 0:
 * none stays longer than the step needs it, and more looks see them. All are seen in any case. */
HG_API void hg_tape_observe(hg_tape *tape, int on);

/* So many of the last steps that were looked at can be read. */
#define HG_STEP_OBSERVED 8
#define HG_OBSERVED_BINS 32

typedef struct hg_observation {
	size_t size;
	int64_t step;      /* its number, from 0 */
	double loss_scale; /* in force */
	int32_t node;      /* as in hg_tape_print; -1: a parameter or variable */
	int backward;      /* 0: a value, 1: a gradient */
	/* "conv2/spmm", "spmm", "conv2"; a parameter's own name, "", "". They live as long as the step
	 * object */
	const char *name, *op, *layer;
	hg_dtype dtype;
	int64_t rows, cols;
	/* 0: 0 < |x| < 2^-14, what are f16's subnormals;  e = 1 to 30: 2^(e-15) <= |x| < 2^(e-14), and
	 * |x| <= 65504;  31: |x| > 65504, or not finite. For f32 tensors as well. */
	uint64_t bin[HG_OBSERVED_BINS];
	uint64_t zeros, subnormals, nonfinite; /* subnormals: bin 0 */
	/* of the first element that is not finite; -1: there is none */
	int64_t first_row, first_col;
	double amax; /* of the finite elements */
	/* On |x|, from the range rules; of a gradient at loss_scale, and of a half also on halves on
	 * the way to it (tape.h). 65520 or more: a half may be infinite. INFINITY: unknown. */
	double bound;
	/* bits until it is rounded to infinity: log2(65520 / amax), f32: 2^128; INFINITY where amax is
	 * 0, 0 where an element is not finite */
	double headroom;
	/* largest |y - sum of terms| / sum of |terms| of the rows that were summed again; -1: none
	 * were */
	double swamping;
	int64_t swamping_row; /* the row; -1 */
	/* stored x 2^-shift (hg_policy.replan): bins and headroom are those of what is stored, amax and
	 * bound those of the value */
	int32_t shift;
} hg_observation;
#define HG_OBSERVATION_INIT                                                                        \
	{                                                                                              \
		sizeof(hg_observation), 0, 0, 0, 0, 0, 0, 0, HG_F16, 0, 0, {0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
		    0, 0                                                                                   \
	}

typedef struct hg_observer {
	size_t size;
	int every;       /* 0: nobody observes */
	int whole;       /* everything is seen at the end of a step, bad steps too */
	int64_t tensors; /* that are seen */
	int64_t looks;   /* calls in each step */
	int64_t steps;   /* that can be read now; asking waits for the device */
	double
	    /* the least that a value in f16 (a gradient follows the loss scale) has had since the step
	     * object was made; 0: one was not finite; INFINITY: none was seen */
	    headroom;
	const char *headroom_name; /* its tensor; NULL: none */
} hg_observer;
#define HG_OBSERVER_INIT                         \
	{                                            \
		sizeof(hg_observer), 0, 0, 0, 0, 0, 0, 0 \
	}
HG_API HG_NODISCARD hg_status hg_step_observer(hg_step *step, hg_observer *observer);

/* Tensor `index` (values in the order of their nodes, then gradients in the order of the backward)
 * in one of the last steps that were looked at: back = 0 is the last of them. The first read after
 * a run waits for the device; all further ones are free. */
HG_API HG_NODISCARD hg_status hg_step_observed(hg_step *step, int64_t back, int64_t index,
                                               hg_observation *observation);

HG_EXTERN_C_END
#endif
