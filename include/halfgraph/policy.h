/** @file
 * What a run asks of its precision: the policy, the loss scale, and the words of a verdict. Plain
 * data and pure functions: no context, no allocation, safe from any thread. */
#ifndef HALFGRAPH_POLICY_H
#define HALFGRAPH_POLICY_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/dtype.h"
#include "halfgraph/export.h"
#include "halfgraph/status.h"

HG_EXTERN_C_BEGIN

/** Dynamic loss scaling, with PyTorch's names and defaults and four fields more.
 *
 *     step not finite:  scale <- max(scale * backoff_factor, min_scale)   once `hysteresis` bad
 *                       steps have used up the tolerance
 *     growth_interval finite steps in a row:  scale <- min(scale * growth_factor, max_scale),
 *                                             and the tolerance is refilled
 *
 * It is part of hg_policy by value, so its size must be exact. */
typedef struct hg_loss_scale_config {
	size_t size;
	int enabled;             /**< 0: the scale stays 1 and bad steps are still skipped; default 1 */
	float init_scale;        /**< in [min_scale, max_scale]; default 65536 */
	float growth_factor;     /**< above 1; default 2 */
	float backoff_factor;    /**< between 0 and 1; default 0.5 */
	int32_t growth_interval; /**< at least 1; default 2000 */
	float min_scale;         /**< above 0; default 1 */
	float max_scale;         /**< finite; default 2^24 */
	int32_t hysteresis;      /**< at least 1; 1 (default) backs off at the first bad step */
} hg_loss_scale_config;
/** The defaults of the fields. */
#define HG_LOSS_SCALE_CONFIG_INIT                                                           \
	HG__INIT(hg_loss_scale_config,                                                          \
	         HG__SET(enabled, 1) HG__SET(init_scale, 65536.0f) HG__SET(growth_factor, 2.0f) \
	             HG__SET(backoff_factor, 0.5f) HG__SET(growth_interval, 2000)               \
	                 HG__SET(min_scale, 1.0f) HG__SET(max_scale, 16777216.0f)               \
	                     HG__SET(hysteresis, 1))

/** Why a step did what it did. */
typedef enum hg_step_reason {
	HG_STEP_APPLIED = 0,           /**< gradients finite, weights updated */
	HG_STEP_APPLIED_GREW = 1,      /**< the same, and the scale grew */
	HG_STEP_SKIPPED_BACKOFF = 2,   /**< a gradient was not finite; the scale was lowered */
	HG_STEP_SKIPPED_TOLERATED = 3, /**< a gradient was not finite; hysteresis kept the scale */
	/** a gradient was not finite although the scale is at min_scale or loss scaling is off: the
	 * scale is not the cause */
	HG_STEP_SKIPPED_AT_FLOOR = 4,
	/** the forward pass overflowed: a guard found it, or the loss is not finite. The scale stays */
	HG_STEP_SKIPPED_FORWARD = 5
} hg_step_reason;

/** A reason as text, for people.
 * @param reason  a reason.
 * @return a constant text, never NULL. */
HG_API const char *hg_step_reason_text(hg_step_reason reason);

/** Number of steps in hg_loss_scale.history. */
#define HG_LOSS_SCALE_HISTORY 32

/** The state of the loss scaler: plain data, so that it can live on a device. */
typedef struct hg_loss_scale {
	float scale;            /**< in force for the next step */
	int32_t growth_tracker; /**< finite steps in a row */
	int32_t tolerance;      /**< bad steps until the scale is lowered */
	int64_t steps;          /**< all steps so far */
	int64_t applied;        /**< of them, those that updated the weights */
	int64_t skipped;        /**< of them, those that did not */
	/** the last steps, a ring: the k-th newest is at (steps - 1 - k) mod HG_LOSS_SCALE_HISTORY */
	struct {
		float scale;    /**< in force during that step */
		int32_t reason; /**< an hg_step_reason */
	} history[HG_LOSS_SCALE_HISTORY];
} hg_loss_scale;

/** Sets the state to the start of a run.
 * @param state   receives the state.
 * @param config  the configuration.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or factors, scales or interval are out of range;
 *         state is unchanged). */
HG_API HG_NODISCARD hg_status hg_loss_scale_init(hg_loss_scale *state,
                                                 const hg_loss_scale_config *config);

/** One step of the state machine above; the same on host and device.
 * @param state            the state, changed in place.
 * @param config           the configuration given to hg_loss_scale_init.
 * @param found_nonfinite  not 0: a gradient of the step was not finite.
 * @return why the step is applied or skipped; HG_STEP_SKIPPED_AT_FLOOR for a NULL, without a
 *         change. */
HG_API hg_step_reason hg_loss_scale_update(hg_loss_scale *state, const hg_loss_scale_config *config,
                                           int found_nonfinite);

/** How a sum over neighbours is accumulated. */
typedef enum hg_accumulate {
	/** in f32 registers, scaled by the degree when the row is complete, narrowed once */
	HG_ACC_F32 = 0,
	/** in f16 over batches of at most 64 edges, each scaled before it joins the sum */
	HG_ACC_F16_DISCRETIZED = 1,
	/** in f16 over the whole neighbourhood, scaled after the sum. It overflows at hubs and exists
	 * for comparison only */
	HG_ACC_F16_NAIVE = 2,
	HG_ACC_COUNT = 3 /**< number of the above */
} hg_accumulate;

/** What to do with a narrowing to f16 that is proved neither for all weights nor for weights as
 * large as the tape assumes (hg_evidence). */
typedef enum hg_unproved {
	/** narrow. On an HG_TRAIN tape with hg_policy.replan, every element is checked when it is
	 * stored. If one does not fit, the step is skipped (HG_STEP_SKIPPED_FORWARD,
	 * hg_step_info.overflow_node), whether or not the loss is affected. Without replan only the
	 * finite check on the gradients finds overflows, those that reach the gradients. On an HG_EVAL
	 * tape nothing is skipped; hg_train reports how many logits are not finite */
	HG_UNPROVED_GUARD = 0,
	HG_UNPROVED_PROMOTE = 1, /**< keep that result in f32 */
	HG_UNPROVED_REFUSE = 2   /**< HG_ERR_RANGE when the op is recorded */
} hg_unproved;

/** What a run asks of its precision. A policy never names an op, and an op never reads a policy.
 * Start from one of the functions below. It is part of hg_train_config by value, so its size must
 * be exact.
 *
 * With replan, an op node whose result overflowed (hg_step_info.overflow_node) is stored
 * differently once the tapes are recorded again: hg_train does so by itself, a loop of your own
 * calls hg_tape_replan; a loop that does neither should set replan to 0, since the same step would
 * be skipped for ever.
 *
 *     stored x 2^-k, the least k that makes its bound fit;
 *     where k > HG_SHIFT_MOST: x 2^-HG_SHIFT_MOST behind its guard; if that overflows too, in f32;
 *     in f32 at once where the op cannot make such a result or one of its readers cannot read it.
 *
 * hg_spmm, hg_add, hg_combine, hg_scale and hg_linear without a bias can make such a result; these,
 * hg_linear with a bias, hg_batch_norm and hg_cast can read it. (The sums of a GIN before its norms
 * are of this kind, the biased result of a GCN layer is not.) Without underflow the bits are the
 * same. Elements below 2^(k-14) keep fewer than eleven bits and those below 2^(k-25) become 0. */
typedef struct hg_policy {
	size_t size;
	const char *name; /**< for messages; where a policy is kept, 63 bytes of it are copied */
	/** HG_F16 or HG_F32: activations, their gradients, working copies of the weights */
	hg_dtype state;
	hg_accumulate accumulate; /**< sums of hg_spmm; other than HG_ACC_F32 only with f16 state */
	hg_unproved unproved;     /**< what to do where no proof holds */
	/** 1: guarded results are checked when they are stored; 0: they are not, and a run in which one
	 * overflows fails */
	int replan;
	hg_loss_scale_config loss_scale; /**< dynamic loss scaling */
} hg_policy;

/** The largest k of a result stored x 2^-k. With k = 14 an element of 1 keeps all its bits in a
 * tensor that has elements above 65504. k follows from a bound, which may be much larger than the
 * numbers, so k may be larger than they need. */
#define HG_SHIFT_MOST 14

/** Everything in f32, without loss scaling: the reference.
 * @return the policy "fp32". */
HG_API hg_policy hg_policy_fp32(void);
/** f16 state, f32 sums, dynamic loss scale, guards with replan: the default.
 * @return the policy "fp16". */
HG_API hg_policy hg_policy_fp16(void);
/** f16 state and f16 sums over batches of 64 edges (HG_ACC_F16_DISCRETIZED).
 * @return the policy "fp16-discretized". */
HG_API hg_policy hg_policy_fp16_discretized(void);
/** f16 state and f16 sums scaled at the end (HG_ACC_F16_NAIVE), without replan: what overflows.
 * @return the policy "fp16-naive". */
HG_API hg_policy hg_policy_fp16_naive(void);

/** A policy by its name.
 * @param name    "fp32", "fp16", "fp16-discretized" or "fp16-naive".
 * @param policy  receives the policy; unchanged on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or another name). */
HG_API HG_NODISCARD hg_status hg_policy_parse(const char *name, hg_policy *policy);

/** Checks a policy, as hg_params_create does.
 * @param policy  a policy.
 * @return HG_OK; HG_ERR_ARG (NULL, a wrong size, or fields that are out of range or contradict). */
HG_API HG_NODISCARD hg_status hg_policy_check(const hg_policy *policy);

/** Verdict on one narrowing to f16, the strongest first. */
typedef enum hg_verdict {
	HG_PROVED = 0,   /**< it cannot overflow, whatever the weights become */
	HG_GUARDED = 1,  /**< it cannot overflow while a condition holds that every step checks */
	HG_PROMOTED = 2, /**< the result is kept in f32 */
	HG_REFUSED = 3,  /**< the op is an error */
	HG_EXACT = 4     /**< nothing is narrowed */
} hg_verdict;

/** A verdict as one word: "proved", "guarded", "promoted", "refused", "exact".
 * @param verdict  a verdict.
 * @return a constant text, never NULL. */
HG_API const char *hg_verdict_name(hg_verdict verdict);

/** Where a bound on |x| comes from, the strongest first. */
typedef enum hg_evidence {
	HG_EVIDENCE_EXACT = 0, /**< attained: the largest element of a constant input */
	/** follows for all weights from exact bounds, from the graph and from what an op is */
	HG_EVIDENCE_PROVED = 1,
	/** follows while no weight outgrows what was assumed when the tape was recorded
	 * (HG_WEIGHT_ROOM); the optimiser compares the weights in every step */
	HG_EVIDENCE_MEASURED = 2,
	HG_EVIDENCE_UNKNOWN = 3 /**< there is no bound */
} hg_evidence;

/** An evidence as one word: "exact", "proved", "measured", "unknown".
 * @param evidence  an evidence.
 * @return a constant text, never NULL. */
HG_API const char *hg_evidence_name(hg_evidence evidence);

/** A tape assumes that no weight grows beyond max(HG_WEIGHT_ROOM * the parameter's largest weight
 * when the tape was recorded, HG_WEIGHT_LEAST). With a smaller factor tapes would have to be
 * recorded again more often; with a larger one fewer narrowings would be proved. In 200 epochs on
 * Cora a GCN outgrows this once for each matrix, a GAT for one, a GIN never; on Amazon Computers a
 * GCN once for each matrix. */
#define HG_WEIGHT_ROOM 4.0
/** The least size assumed for a weight; see HG_WEIGHT_ROOM. */
#define HG_WEIGHT_LEAST 1.0

HG_EXTERN_C_END
#endif
