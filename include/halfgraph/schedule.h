/** @file
 * Schedules of the learning rate: a factor on the rates of all groups of an optimiser, which
 * depends on the number of the step.
 *
 *     hg_schedule_config schedule = HG_SCHEDULE_CONFIG_INIT;
 *     schedule.kind = HG_SCHEDULE_COSINE;
 *     schedule.total = 300;
 *     hg_optim_set_schedule(optim, &schedule);      of an own loop
 *     config.schedule = schedule;                   of an hg_train, where a step is an epoch
 *
 * t is the number of the step, from 0 on: what hg_state.step counts, skipped steps included. The
 * warm-up has W steps, s is what follows it, and T = total - W:
 *
 *     factor(t)  =  (start + (1 - start) t / W) s(0)                       for t < W
 *                   s(t - W)                                               from then on
 *     constant      s(t) = 1
 *     step          s(t) = max(least, factor^floor(t / every))
 *     cosine        s(t) = least + (1 - least) w(t / T),                 w(x) = (1 + cos(pi x)) / 2
 *     one-cycle     s(t) = 1 + (start - 1) w(t / p)                        for t < p = rise T - 1
 *                   s(t) = least + (1 - least) w((t - p) / (T - 1 - p))    from then on
 *     plateau       s(t) = max(least, factor^k), after k drops
 *
 * From the end on, x = 1, cosine and one-cycle stay at least. A plateau drops the rate when the
 * criterion of the validation has not improved in more than `patience` evaluations in a row; then
 * it counts again. An improvement is a criterion above best (1 + threshold), or below best
 * (1 - threshold) where a smaller one is better. Evaluations within the warm-up do not count.
 *
 * The factor is computed in f64 from products and sums that are rounded alike everywhere, and a
 * rate lr * factor is rounded to f32 once: every device and every machine has the same bits. The
 * device computes it at the beginning of each step, so that steps are queued without the host.
 *
 * Source    PyTorch's StepLR, CosineAnnealingLR (eta_min = least lr), OneCycleLR (max_lr = lr,
 *           pct_start = rise, div_factor = 1 / start, final_div_factor = start / least, no cycle of
 *           momentum), ReduceLROnPlateau (min_lr = least lr, eps 0) and, for the warm-up, LinearLR
 *           in a SequentialLR; Loshchilov, Hutter 2017 (cosine); Smith, Topin 2018 (one-cycle). */
#ifndef HALFGRAPH_SCHEDULE_H
#define HALFGRAPH_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/export.h"

HG_EXTERN_C_BEGIN

/** Which schedule. */
typedef enum hg_schedule_kind {
	HG_SCHEDULE_CONSTANT = 0,  /**< the rate stays, after the warm-up */
	HG_SCHEDULE_STEP = 1,      /**< the rate drops every so many steps */
	HG_SCHEDULE_COSINE = 2,    /**< half a period of a cosine */
	HG_SCHEDULE_ONE_CYCLE = 3, /**< up by half a cosine, and down by another */
	HG_SCHEDULE_PLATEAU = 4    /**< the rate drops when the validation no longer improves */
} hg_schedule_kind;

/** A schedule. Start from HG_SCHEDULE_CONFIG_INIT. Inside an hg_train_config its size must be
 * exact. */
typedef struct hg_schedule_config {
	size_t size;
	hg_schedule_kind kind; /**< default HG_SCHEDULE_CONSTANT */
	/** plateau: evaluations without improvement that are tolerated, at least 0; default 10 */
	int patience;
	/** steps of a linear warm-up in front of the schedule, at least 0; default 0 */
	int64_t warmup;
	int64_t every; /**< step: steps from one drop to the next, at least 1; default 50 */
	/** cosine and one-cycle: steps of the schedule with its warm-up, above warmup. 0 (default): an
	 * hg_train takes the steps before its run and the epochs of the run; elsewhere refused */
	int64_t total;
	double factor;    /**< step and plateau: of each drop, above 0 and at most 1; default 0.5 */
	double least;     /**< the rate never drops below least lr; in [0, 1]; default 0 */
	double start;     /**< what warm-up and one-cycle begin with, in [0, 1]; default 0.04 */
	double rise;      /**< one-cycle: the share of total in which the rate rises, in (0, 1); 0.3 */
	double threshold; /**< plateau: the least relative improvement, in [0, 1); default 1e-4 */
} hg_schedule_config;
/** A constant rate, and the defaults of the fields. */
#define HG_SCHEDULE_CONFIG_INIT                                                                 \
	HG__INIT(hg_schedule_config,                                                                \
	         HG__SET(patience, 10) HG__SET(every, 50) HG__SET(factor, 0.5) HG__SET(start, 0.04) \
	             HG__SET(rise, 0.3) HG__SET(threshold, 1e-4))

/** What a plateau has counted so far; all 0 before the first evaluation. */
typedef struct hg_plateau {
	int64_t evaluations; /**< evaluations that counted */
	int64_t waited; /**< evaluations without improvement, since the last one or the last drop */
	int64_t drops;  /**< how often the rate has dropped */
	double best;    /**< the best criterion; NaN if none was a number */
} hg_plateau;

/** The name of a schedule, as hg-train has it: "constant", "step", "cosine", "one-cycle",
 * "plateau".
 * @param kind  the kind.
 * @return the name; NULL for another number. */
HG_API const char *hg_schedule_name(hg_schedule_kind kind);

/** What is wrong with a schedule.
 * @param config  a schedule, or NULL.
 * @return the field and what it must be, as a constant text; NULL if nothing is wrong. */
HG_API const char *hg_schedule_fault(const hg_schedule_config *config);

/** The factor of a step on the learning rate. A pure function: it needs no optimiser.
 * @param config  a schedule without a fault.
 * @param step    the number of the step, from 0 on.
 * @return the factor, in [0, 1]; that of a plateau before its first drop; NaN if the schedule has a
 *         fault or step is below 0. */
HG_API double hg_schedule_factor(const hg_schedule_config *config, int64_t step);

HG_EXTERN_C_END
#endif
