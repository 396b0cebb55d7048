/* The checks and the public functions of the loss scale; its transitions are in scaler.h. */
#include "precision/scaler.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static int is_positive_finite(float x)
{
	return isfinite(x) && x > 0;
}

const char *hg__loss_scale_fault(const hg_loss_scale_config *c)
{
	/* The struct is embedded by value in hg_policy, so the sizes of caller and library must agree
	 * exactly. */
	if (!c || c->size != sizeof *c)
		return "loss_scale.size is not that of hg_loss_scale_config: start from "
		       "HG_LOSS_SCALE_CONFIG_INIT";
	if (!c->enabled)
		return NULL;
	if (!is_positive_finite(c->min_scale) || !is_positive_finite(c->max_scale) ||
	    !(c->min_scale <= c->init_scale && c->init_scale <= c->max_scale))
		return "loss_scale needs 0 < min_scale <= init_scale <= max_scale, all finite";
	if (!isfinite(c->growth_factor) || !(c->growth_factor > 1))
		return "loss_scale.growth_factor must be > 1 and finite";
	if (!(c->backoff_factor > 0 && c->backoff_factor < 1))
		return "loss_scale.backoff_factor must lie between 0 and 1";
	if (c->growth_interval < 1)
		return "loss_scale.growth_interval must be >= 1";
	if (c->hysteresis < 1)
		return "loss_scale.hysteresis must be >= 1";
	return NULL;
}

hg_status hg_loss_scale_init(hg_loss_scale *state, const hg_loss_scale_config *config)
{
	if (!state || hg__loss_scale_fault(config))
		return HG_ERR_ARG;
	memset(state, 0, sizeof *state);
	state->scale = config->enabled ? config->init_scale : 1.0f;
	state->tolerance = config->enabled ? config->hysteresis : 0;
	return HG_OK;
}

hg_step_reason hg_loss_scale_update(hg_loss_scale *state, const hg_loss_scale_config *config,
                                    int found_nonfinite)
{
	return state && config
	           ? hg__loss_scale_step(state, config, found_nonfinite ? HG__STEP_BAD : HG__STEP_GOOD)
	           : HG_STEP_SKIPPED_AT_FLOOR;
}

const char *hg_step_reason_text(hg_step_reason reason)
{
	static const char *const text[] = {
	    [HG_STEP_APPLIED] = "applied",
	    [HG_STEP_APPLIED_GREW] = "applied; the loss scale grew",
	    [HG_STEP_SKIPPED_BACKOFF] =
	        "skipped: a gradient was not finite; the loss scale was lowered",
	    [HG_STEP_SKIPPED_TOLERATED] =
	        "skipped: a gradient was not finite; hysteresis kept the loss scale",
	    [HG_STEP_SKIPPED_AT_FLOOR] =
	        "skipped: a gradient was not finite although the loss scale is at its minimum",
	    [HG_STEP_SKIPPED_FORWARD] =
	        "skipped: the forward pass overflowed; the loss scale is not to blame",
	};
	return (size_t)reason < sizeof text / sizeof text[0] ? text[reason] : "unknown reason";
}
