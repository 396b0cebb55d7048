/* What models with attention have in common: their width, and checks of their configuration. */
#include "core/context.h"
#include "halfgraph/ops_attention.h"
#include "nn/layers/layers.h"

int64_t hg__heads_width(const hg_model_config *config)
{
	return (int64_t)config->heads * config->hidden;
}

hg_status hg__heads_check(hg_context *ctx, const hg_model_config *config, const char *field,
                          int heads)
{
	return heads >= 1 && heads <= HG_ATTENTION_HEADS
	           ? HG_OK
	           : hg__fail(ctx, HG_ERR_ARG, "%s: %s is %d, expected 1 to %d", config->name, field,
	                      heads, HG_ATTENTION_HEADS);
}

hg_status hg__slope_check(hg_context *ctx, const hg_model_config *config)
{
	return config->negative_slope >= 0.0f && config->negative_slope <= 1.0f
	           ? HG_OK
	           : hg__fail(ctx, HG_ERR_ARG, "%s: negative_slope is %g, expected 0 to 1",
	                      config->name, (double)config->negative_slope);
}

hg_status hg__attention_dropout_check(hg_context *ctx, const hg_model_config *config)
{
	return config->attention_dropout >= 0.0f && config->attention_dropout < 1.0f
	           ? HG_OK
	           : hg__fail(ctx, HG_ERR_ARG,
	                      "%s: attention_dropout is %g, expected at least 0 and less than 1",
	                      config->name, (double)config->attention_dropout);
}
