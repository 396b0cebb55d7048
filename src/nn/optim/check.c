/* Checks the configuration of an optimiser. */
#include "nn/optim/optim.h"

#include <math.h>

/* An error unless the value is in [low, high). high INFINITY: any finite value from low on. A NaN
 * is never in range. */
static hg_status in_range(hg_context *ctx, const char *field, float value, float low, float high)
{
	if (value >= low && value < high)
		return HG_OK;
	return hg__fail(ctx, HG_ERR_ARG, "optim: %s is %g, expected at least %g and less than %g",
	                field, (double)value, (double)low, (double)high);
}

hg_status hg__optim_check(hg_context *ctx, const hg_optim_config *c)
{
	if (c->kind < HG_SGD || c->kind > HG_ADAMW)
		return hg__fail(ctx, HG_ERR_ARG,
		                "optim: kind is %d, expected one of hg_optim_kind (0 to 2)", (int)c->kind);
	HG__TRY(in_range(ctx, "lr", c->lr, 0.0f, INFINITY));
	HG__TRY(in_range(ctx, "weight_decay", c->weight_decay, 0.0f, INFINITY));
	HG__TRY(in_range(ctx, "momentum", c->momentum, 0.0f, 1.0f));
	HG__TRY(in_range(ctx, "beta1", c->beta1, 0.0f, 1.0f));
	HG__TRY(in_range(ctx, "beta2", c->beta2, 0.0f, 1.0f));
	HG__TRY(in_range(ctx, "eps", c->eps, 0.0f, INFINITY));
	HG__TRY(in_range(ctx, "clip_norm", c->clip_norm, 0.0f, INFINITY));
	if (c->nesterov && !(c->momentum > 0.0f))
		return hg__fail(ctx, HG_ERR_ARG, "optim: nesterov needs momentum > 0, found %g",
		                (double)c->momentum);
	return HG_OK;
}
