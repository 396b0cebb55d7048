#ifndef HG_DOCTOR_REMEDY_H
#define HG_DOCTOR_REMEDY_H

#include <math.h>

#include "doctor/finding.h"

HG_EXTERN_C_BEGIN

/* Enough for the longest call in remedy_calls.c with a number. */
#define HG__CALL 96
/* Enough for the longest option with a number. */
#define HG__OPTION 48

/* remedy_calls.c: writes the C code that does the same as an option of hg-train; "" if there is
 * none. policy: the one in force. train: the run is one of train.h; else the tape is the user's
 * own. */
void hg__remedy_call(const char *option, const hg_policy *policy, int train, char call[HG__CALL]);
/* remedy_calls.c: write an option, and return 1. x is written as a person types it: "0.001", not
 * the 0.00100000005 of a float. */
int hg__write_option(char option[HG__OPTION], const char *text);
int hg__write_number(char option[HG__OPTION], const char *name, double x);

/* remedy_ops.c: on a tape of the user's own, the call of a better op than the one at fault. *why
 * NULL: there is none. */
void hg__remedy_op(const struct hg__replay *replay, const struct hg__finding *finding,
                   const char **call, const char **why);
/* remedy_ops.c: does the result of this entry depend on a parameter? */
int hg__reads_weights(const struct hg__replay *replay, const struct hg__entry *entry);

/* ---- fits: does a remedy fit the finding? If so, its option is written ("": there is none) and 1
 * is returned; else 0. ---- */

struct hg__remedy_query {
	const struct hg__replay *replay;
	const struct hg__finding *finding;
	const hg_finding *f;
};
typedef int (*hg__fit_fn)(const struct hg__remedy_query *q, char option[HG__OPTION]);

/* ---- remedy_precision.c: another precision or loss scale ---- */

/* Sums in f32; and the same in a training run, which also rescales results that still overflow. */
int hg__fit_f32_sums(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_f32_sums_of_run(const struct hg__remedy_query *q, char option[HG__OPTION]);
/* f16 sums in batches. */
int hg__fit_batched_sums(const struct hg__remedy_query *q, char option[HG__OPTION]);
/* Everything in fp32; also if fp32 holds the element, if its quotient is a number in fp32, or if
 * fp32 holds the number that was given. */
int hg__fit_fp32(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_fp32_range(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_fp32_division(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_fp32_input(const struct hg__remedy_query *q, char option[HG__OPTION]);
/* Results without a proof in f32; and the same for a rescaled result. */
int hg__fit_promotion(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_promotion_of_rescaled(const struct hg__remedy_query *q, char option[HG__OPTION]);
/* A loss scale at which the largest gradient fits; and the same for a norm of a constant. */
int hg__fit_lower_scale(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_lower_scale_of_constant(const struct hg__remedy_query *q, char option[HG__OPTION]);
/* A loss scale at which the gradient keeps its bits: a higher one; or one where none is in
 * force. */
int hg__fit_higher_scale(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_first_scale(const struct hg__remedy_query *q, char option[HG__OPTION]);

/* ---- remedy_model.c: another aggregation, other features ---- */

int hg__fit_norm_both(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_norm_right(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_mean(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_mean_of_rescaled(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_lambda(const struct hg__remedy_query *q, char option[HG__OPTION]);
/* For a result that is linear in the features, for a feature that f16 cannot hold, and for features
 * or results that are too small. */
int hg__fit_row_normalize(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_row_normalize_input(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_row_normalize_vanished(const struct hg__remedy_query *q, char option[HG__OPTION]);

/* ---- remedy_by_hand.c: what no option can change ---- */

int hg__fit_bad_data(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_bad_weight(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_bad_statistic(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_divisor(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_log_of_zero(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_log_of_negative(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_root_of_zero(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_root_of_negative(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_constant(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_small_operands(const struct hg__remedy_query *q, char option[HG__OPTION]);

/* ---- remedy_ops.c ---- */

/* A mean in place of a sum, on a tape of the user's own. */
int hg__fit_own_mean(const struct hg__remedy_query *q, char option[HG__OPTION]);

/* ---- remedy_update.c: learning rate, weight decay, clipping ---- */

/* A lower rate; also if earlier steps have trained the weights, or for a weight that f16 cannot
 * hold. */
int hg__fit_lower_rate(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_lower_rate_later(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_lower_rate_of_weight(const struct hg__remedy_query *q, char option[HG__OPTION]);
/* A rate at which the weight would not have grown: it has grown as a whole, or in some elements. */
int hg__fit_grown_rate(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_ungrown_rate(const struct hg__remedy_query *q, char option[HG__OPTION]);
/* The moments do not come from gradients of this run. */
int hg__fit_restored_moment(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_lower_decay(const struct hg__remedy_query *q, char option[HG__OPTION]);
/* Clipping: if earlier steps have trained the weights, for an update, or for a moment. */
int hg__fit_clip_later(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_clip_update(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_clip_moment(const struct hg__remedy_query *q, char option[HG__OPTION]);
/* fp32 for the working copy; an eps. */
int hg__fit_fp32_weight(const struct hg__remedy_query *q, char option[HG__OPTION]);
int hg__fit_no_eps(const struct hg__remedy_query *q, char option[HG__OPTION]);

/* ---- what several of them ask ---- */

/* Is it about a number that f16 cannot hold, and not about one that is no number at all? */
static inline int hg__is_too_large_input(const hg_finding *f)
{
	return isfinite(f->wide) && !hg__is_running_statistic_finding(f);
}
static inline int hg__state_is_f16(const struct hg__remedy_query *q)
{
	return q->replay->params->policy.state == HG_F16;
}

/* Rows that have been divided by their sum add up to 1, each element rounded by 2^-11 of itself at
 * most. */
#define HG__ROW_SUM_ROUNDING 0x1p-10

HG_EXTERN_C_END
#endif
