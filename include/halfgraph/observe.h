/** @file
 * The observer: what a training step leaves in half precision, counted on the device while training
 * goes on. It is on by default (hg_step_config.observe_every).
 *
 * It inspects the result of every op node that runs (of a fused chain, and of layers of small
 * graphs that run as one kernel: of the last op), the gradient of each, and the gradients of
 * parameters and variables. All gradients are multiplied by
 * the loss scale. For each tensor it counts exponents in 32 bins, the largest magnitude, zeros,
 * subnormals, elements that are not finite and the first such position. It changes no bit of the
 * step and waits for nothing: the counts of the last HG_STEP_OBSERVED inspected steps stay on the
 * device until they are read.
 *
 * When      Every step whose number (hg_step_info.steps, from 0) is a multiple of observe_every.
 *           Where all tensors stay to the end of a step (hg_tape_observe), also every step that is
 *           skipped because a gradient is not finite: then what went wrong first can be read.
 * Memory    2.7 kB of device memory per tensor (hg_plan_info.observer_bytes). Tensors stay longer
 *           than the step needs them, so that fewer inspections see all of them, while the arena
 *           grows by at most a 20th, or by 512 kB if that is more.
 * Cost      1 to 4 launches per step that find nothing to do (1 where all tensors stay); in an
 *           inspected step, one pass over all tensors.
 * Sums      Sums in f16 (policies fp16-discretized and fp16-naive) may lose addends that are small
 *           against the sum (swamping): 32 rows are summed once more in f64, the 16 longest among
 *           them. A gradient that is a sum of several gradients is not sampled. An f32 sum of k
 *           terms is within k 2^-24 of the sum of their magnitudes, so it needs no sampling.
 * Threads   One thread at a time per context. */
#ifndef HALFGRAPH_OBSERVE_H
#define HALFGRAPH_OBSERVE_H

#include "halfgraph/step.h"

HG_EXTERN_C_BEGIN

/** Chooses how long tensors stay for the observer. Call it before hg_tape_compile; without it the
 * arena grows by at most a 20th, or by 512 kB if that is more. All tensors are inspected in any
 * case.
 * @param tape  the tape.
 * @param on    1: all values and gradients stay to the end of a step if the device has room, which
 *              about doubles the arena; 0: none stays longer than the step needs it, and more
 *              inspections are made. */
HG_API void hg_tape_observe(hg_tape *tape, int on);

/** Number of last inspected steps that can be read. */
#define HG_STEP_OBSERVED 8
/** Number of bins of exponents. */
#define HG_OBSERVED_BINS 32

/** One tensor in one inspected step. Texts live as long as the step object. */
typedef struct hg_observation {
	size_t size;
	int64_t step;      /**< number of the step, from 0 */
	double loss_scale; /**< in force in that step */
	int32_t node;      /**< op node as in hg_tape_print; -1: a parameter or variable */
	int backward;      /**< 0: a value, 1: a gradient */
	const char *name;  /**< "conv2/spmm", or the name of a parameter */
	const char *op;    /**< "spmm", or "" */
	const char *layer; /**< "conv2", or "" */
	hg_dtype dtype;    /**< HG_F16 or HG_F32 */
	int64_t rows;      /**< of the tensor */
	int64_t cols;      /**< of the tensor */
	/** elements by magnitude, for f32 tensors as well. 0: 0 < |x| < 2^-14, f16's subnormals; e = 1
	 * to 30: 2^(e-15) <= |x| < 2^(e-14) and |x| <= 65504; 31: |x| > 65504, or not finite */
	uint64_t bin[HG_OBSERVED_BINS];
	uint64_t zeros;      /**< elements that are 0 */
	uint64_t subnormals; /**< bin[0] */
	uint64_t nonfinite;  /**< elements that are not finite */
	int64_t first_row;   /**< row of the first element that is not finite; -1: none */
	int64_t first_col;   /**< column of that element; -1: none */
	double amax;         /**< max |x| of the finite elements */
	/** the tape's bound on |x|, of a gradient at this loss scale (tape.h: hg_narrowing). 65520 or
	 * more: a half may be infinite. INFINITY: unknown */
	double bound;
	/** bits until it is rounded to infinity: log2(65520 / amax), f32: log2(2^128 / amax). INFINITY
	 * where amax is 0, 0 where an element is not finite */
	double headroom;
	/** largest |y - sum of terms| / sum of |terms| of the rows that were summed once more; -1: none
	 * were */
	double swamping;
	int64_t swamping_row; /**< the row with it; -1 */
	/** stored x 2^-shift (hg_policy.replan): bins and headroom are those of the stored numbers,
	 * amax and bound those of the value */
	int32_t shift;
} hg_observation;
/** An empty hg_observation with its size set. */
#define HG_OBSERVATION_INIT HG__INIT(hg_observation, HG__SET(dtype, HG_F16))

/** What the observer of a step does, and the least headroom it has seen. */
typedef struct hg_observer {
	size_t size;
	int every;       /**< inspects every so many steps; 0: there is no observer */
	int whole;       /**< 1: everything is inspected at the end of a step, and in bad steps too */
	int64_t tensors; /**< number of tensors it inspects */
	int64_t inspections; /**< inspections in each step */
	int64_t steps;       /**< inspected steps that can be read now */
	/** least headroom of an f16 value (not of a gradient, which follows the loss scale) since the
	 * step object was made; 0: an element was not finite; INFINITY: none was seen */
	double headroom;
	const char *headroom_name; /**< its tensor, owned by the step; NULL: none */
} hg_observer;
/** An empty hg_observer with its size set. */
#define HG_OBSERVER_INIT HG__INIT_ZERO(hg_observer)

/** Reads what the observer of a step does. Waits for the device.
 * @param step      the step.
 * @param observer  receives it; start from HG_OBSERVER_INIT.
 * @return HG_OK, also where there is no observer; HG_ERR_ARG (a pointer is NULL, or observer's size
 *         is not set); HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_step_observer(hg_step *step, hg_observer *observer);

/** Reads one tensor of one inspected step. The first read after a run waits for the device; later
 * ones cost nothing.
 * @param step         the step.
 * @param back         0: the last inspected step, 1: the one before it, and so on.
 * @param index        0 to hg_observer.tensors - 1: values in the order of their op nodes, then
 *                     gradients in the order of the backward pass.
 * @param observation  receives it; start from HG_OBSERVATION_INIT.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or observation's size is not set); HG_ERR_STATE
 *         (there is no observer, or no such step); HG_ERR_RANGE (no such tensor); HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_step_observed(hg_step *step, int64_t back, int64_t index,
                                               hg_observation *observation);

HG_EXTERN_C_END
#endif
