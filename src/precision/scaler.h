/* The loss scale: one transition for each step, compiled both for the host and for CUDA kernels so
 * that both make the same decision. */
#ifndef HG_PRECISION_SCALER_H
#define HG_PRECISION_SCALER_H

#include "halfgraph/policy.h"
#include "precision/hostdevice.h"

HG_EXTERN_C_BEGIN

/* Returns what is wrong with a configuration, as a phrase for an error message ("growth_factor must
 * be > 1"), or NULL if it is valid. */
const char *hg__loss_scale_fault(const hg_loss_scale_config *config);

/* A step with a gradient that is not finite. Counting towards growth starts over. The tolerance
 * begins at hysteresis, so hysteresis - 1 such steps leave the scale unchanged and later ones lower
 * it, until hg__loss_scale_good restores the tolerance:
 *
 *     tolerance <- max(tolerance - 1, 0)
 *     scale     <- max(scale * backoff_factor, min_scale)    if tolerance = 0 */
HG_HD static inline hg_step_reason hg__loss_scale_bad(hg_loss_scale *state,
                                                      const hg_loss_scale_config *config)
{
	state->growth_tracker = 0;
	if (state->tolerance > 0)
		state->tolerance--;
	if (!config->enabled || state->scale <= config->min_scale)
		return HG_STEP_SKIPPED_AT_FLOOR;
	if (state->tolerance > 0)
		return HG_STEP_SKIPPED_TOLERATED;
	const float lower = state->scale * config->backoff_factor;
	state->scale = lower > config->min_scale ? lower : config->min_scale;
	return HG_STEP_SKIPPED_BACKOFF;
}

/* A step whose gradients are all finite. After growth_interval of them in a row:
 *
 *     scale     <- min(scale * growth_factor, max_scale)
 *     tolerance <- hysteresis */
HG_HD static inline hg_step_reason hg__loss_scale_good(hg_loss_scale *state,
                                                       const hg_loss_scale_config *config)
{
	if (!config->enabled || ++state->growth_tracker < config->growth_interval)
		return HG_STEP_APPLIED;
	state->growth_tracker = 0;
	state->tolerance = config->hysteresis;
	if (state->scale >= config->max_scale)
		return HG_STEP_APPLIED;
	const float higher = state->scale * config->growth_factor;
	state->scale = higher < config->max_scale ? higher : config->max_scale;
	return HG_STEP_APPLIED_GREW;
}

/* The outcome of a step. FORWARD: a guard fired, or the loss is not finite. No loss scale can
 * repair that, so the scale stays, and only counting towards growth starts over. */
enum hg__outcome { HG__STEP_GOOD = 0, HG__STEP_BAD = 1, HG__STEP_FORWARD = 2 };

/* One transition of the loss scale, after a step with this outcome. */
HG_HD static inline hg_step_reason hg__loss_scale_step(hg_loss_scale *state,
                                                       const hg_loss_scale_config *config,
                                                       enum hg__outcome outcome)
{
	const float scale_used = state->scale;
	const int found_nonfinite = outcome != HG__STEP_GOOD;
	hg_step_reason reason = HG_STEP_SKIPPED_FORWARD;
	if (outcome == HG__STEP_GOOD)
		reason = hg__loss_scale_good(state, config);
	else if (outcome == HG__STEP_BAD)
		reason = hg__loss_scale_bad(state, config);
	else
		state->growth_tracker = 0;
	const int64_t index = state->steps % HG_LOSS_SCALE_HISTORY;
	state->history[index].scale = scale_used;
	state->history[index].reason = (int32_t)reason;
	state->steps++;
	if (found_nonfinite)
		state->skipped++;
	else
		state->applied++;
	return reason;
}

HG_EXTERN_C_END
#endif
