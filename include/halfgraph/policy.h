#ifndef HALFGRAPH_POLICY_H
#define HALFGRAPH_POLICY_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/dtype.h"
#include "halfgraph/export.h"
#include "halfgraph/status.h"

HG_EXTERN_C_BEGIN

/* Dynamic loss scaling: PyTorch's names and defaults, and four more.
 *
 *     step not finite:  scale <- max(scale * backoff_factor, min_scale)   once `hysteresis` bad
 *                       steps have used up the tolerance
 *     growth_interval finite steps in a row:  scale <- min(scale * growth_factor, max_scale),
 *                                             tolerance refilled
 *
 * hysteresis = 1 backs off at the first bad step (PyTorch). enabled = 0 keeps the scale at 1 and
 * still skips bad steps.
 * The struct is part of hg_policy by value, so its size must be exact. */
typedef struct hg_loss_scale_config {
	size_t size;
	int enabled;
	float init_scale, growth_factor, backoff_factor;
	int32_t growth_interval;
	float min_scale, max_scale;
	int32_t hysteresis;
} hg_loss_scale_config;
#define HG_LOSS_SCALE_CONFIG_INIT                                                         \
	{                                                                                     \
		sizeof(hg_loss_scale_config), 1, 65536.0f, 2.0f, 0.5f, 2000, 1.0f, 16777216.0f, 1 \
	}

/* Why a step did what it did. */
typedef enum hg_step_reason {
	HG_STEP_APPLIED = 0,           /* gradients finite, weights updated */
	HG_STEP_APPLIED_GREW = 1,      /* the same, and the scale grew */
	HG_STEP_SKIPPED_BACKOFF = 2,   /* a gradient was not finite; the scale was lowered */
	HG_STEP_SKIPPED_TOLERATED = 3, /* not finite; hysteresis kept the scale */
	/* not finite although the scale is at min_scale (or disabled): the scale is not to blame */
	HG_STEP_SKIPPED_AT_FLOOR = 4,
	/* the forward pass overflowed: a guard tripped, or the loss itself is not finite. The scale
	 * stays as it is */
	HG_STEP_SKIPPED_FORWARD = 5
} hg_step_reason;
HG_API const char *hg_step_reason_text(hg_step_reason reason);

#define HG_LOSS_SCALE_HISTORY 32

/* The loss scaler's state: plain data, so that it can live on a device. history is a ring: entry k
 * of the newest is at
 * (steps - 1 - k) mod HG_LOSS_SCALE_HISTORY. */
typedef struct hg_loss_scale {
	float scale;
	int32_t growth_tracker, tolerance;
	int64_t steps, applied, skipped;
	struct {
		float scale; /* in force during that step */
		int32_t reason;
	} history[HG_LOSS_SCALE_HISTORY];
} hg_loss_scale;

/* HG_ERR_ARG and nothing changed if the configuration is inconsistent (factors, scales or interval
 * out of range). */
HG_API HG_NODISCARD hg_status hg_loss_scale_init(hg_loss_scale *state,
                                                 const hg_loss_scale_config *config);
/* One transition. Pure: no allocation, no I/O, the same on host and device. A NULL changes nothing
 * and gives HG_STEP_SKIPPED_AT_FLOOR. */
HG_API hg_step_reason hg_loss_scale_update(hg_loss_scale *state, const hg_loss_scale_config *config,
                                           int found_nonfinite);

/* How a neighbourhood sum is accumulated. */
typedef enum hg_accumulate {
	/* f32 registers, scaled by the degree when the row is complete, narrowed once */
	HG_ACC_F32 = 0,
	/* f16 arithmetic over batches of at most 64 edges, each scaled before it joins the sum */
	HG_ACC_F16_DISCRETIZED = 1,
	/* f16 arithmetic over the whole neighbourhood, scaled after the sum: what overflows
	 * elsewhere */
	HG_ACC_F16_NAIVE = 2,
	HG_ACC_COUNT = 3
} hg_accumulate;

/* What to do with a narrowing to f16 that is proved neither for all weights nor for those that the
 * tape assumes (hg_evidence).
 *
 *     GUARD    narrow all the same. On a TRAIN tape the kernel that stores the result compares
 *              every element (or, where it cannot, a pass behind it does): one that does not fit
 *              trips the guard, and the step is skipped (HG_STEP_SKIPPED_FORWARD,
 *              hg_step_info.tripped), whether the loss would have felt it or not. Without
 *              hg_policy.replan nothing compares: what overflows reaches the gradients as infinity
 *              or NaN or it does not, and the optimiser's finite check finds what does. On an EVAL
 *              tape nothing is skipped or changed; hg_train reports how many logits were not finite
 *     PROMOTE  keep that result in f32
 *     REFUSE   HG_ERR_RANGE when it is recorded */
typedef enum hg_unproved {
	HG_UNPROVED_GUARD = 0,
	HG_UNPROVED_PROMOTE = 1,
	HG_UNPROVED_REFUSE = 2
} hg_unproved;

/* What this run wants. A policy never names an op; an op never reads a policy. Part of
 * hg_train_config by value, so its size must be exact: start from one of the functions below. name
 * is copied (63 bytes of it) where a policy is kept. */
typedef struct hg_policy {
	size_t size;
	const char *name;
	/* HG_F16 or HG_F32: activations, their gradients, working copies of the weights */
	hg_dtype state;
	hg_accumulate accumulate;
	hg_unproved unproved;
	/* 1: results behind a guard are looked at as they are stored; 0: they are not, and a run in
	 * which one overflows is left to fail. See below */
	int replan;
	hg_loss_scale_config loss_scale;
} hg_policy;

/* A guard that trips names a node (hg_step_info.tripped) and the step is skipped. The next one
 * would be as well: the tapes have to be recorded again. hg_train does so by itself, a loop of
 * one's own by hg_tape_replan; one that does neither wants replan 0. That node's result is
 * then stored x 2^-k, with the least k that makes its bound fit; where that is more than
 * HG_SHIFT_MOST, with HG_SHIFT_MOST and behind its guard, and if that trips, too, in f32. It is f32
 * at
 * once where the op cannot make such a result or one of its readers cannot read it. hg_spmm,
 * hg_add,
 * hg_combine, hg_scale and hg_linear without a bias make it; these, hg_linear with a bias,
 * hg_batch_norm and hg_cast read it. (What a GIN sums and multiplies before its norms is of that
 * kind,
 * what a GCN ends with a bias is not.)
 *
 * But for underflow the bits are the same. The price: elements below 2^(k-14) keep less than eleven
 * bits, those below 2^(k-25) vanish. With k = 14 an element of 1 keeps them all, in a tensor that
 * has
 * some beyond 65504; a bound says k, and may ask for more than the numbers would. */
#define HG_SHIFT_MOST 14

HG_API hg_policy hg_policy_fp32(void);
HG_API hg_policy hg_policy_fp16(void);
HG_API hg_policy hg_policy_fp16_discretized(void);
HG_API hg_policy hg_policy_fp16_naive(void);
/* By name: "fp32", "fp16", "fp16-discretized", "fp16-naive". HG_ERR_ARG for another name; *policy
 * is then untouched. */
HG_API HG_NODISCARD hg_status hg_policy_parse(const char *name, hg_policy *policy);
HG_API HG_NODISCARD hg_status hg_policy_check(const hg_policy *policy);

/* Verdict on one narrowing to f16, the strongest first. */
typedef enum hg_verdict {
	HG_PROVED = 0,
	HG_GUARDED = 1,
	HG_PROMOTED = 2,
	HG_REFUSED = 3,
	HG_EXACT = 4 /* nothing is narrowed */
} hg_verdict;
HG_API const char *hg_verdict_name(hg_verdict verdict);

/* Where a bound on |x| comes from, the strongest first. */
typedef enum hg_evidence {
	HG_EVIDENCE_EXACT = 0, /* attained: the largest element of a constant input */
	/* follows from exact bounds, from the graph and from what an op is, for all weights */
	HG_EVIDENCE_PROVED = 1,
	/* follows while the weights stay as small as was assumed when the tape was made
	 * (HG_WEIGHT_ROOM); the optimiser watches them */
	HG_EVIDENCE_MEASURED = 2,
	HG_EVIDENCE_UNKNOWN = 3 /* there is none */
} hg_evidence;
HG_API const char *hg_evidence_name(hg_evidence evidence);

/* A tape assumes that no weight will be larger than max(HG_WEIGHT_ROOM * its parameter's largest
 * one when the tape was made, HG_WEIGHT_LEAST). Too little, and the table has to be made again; too
 * much, and less is proved. In 200 epochs on Cora GCN outgrows this once for each matrix, GAT for
 * one, GIN never; on Amazon Computers GCN once for each matrix. */
#define HG_WEIGHT_ROOM 4.0
#define HG_WEIGHT_LEAST 1.0

HG_EXTERN_C_END
#endif
