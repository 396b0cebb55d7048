/* What models with attention have in common: their width, and checks of their configuration; and
 * what GAT and GATv2 have in common, which differ in their scores alone. */
#include "kernels/attention.h"
#include "core/context.h"
#include "halfgraph/ops.h"
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
	return hg__attention_drops(config->attention_dropout)
	           ? HG_OK
	           : hg__fail(
	                 ctx, HG_ERR_ARG,
	                 "%s: attention_dropout is %g, expected 0 <= attention_dropout < 1 - 2^-17",
	                 config->name, (double)config->attention_dropout);
}

/* ---- GAT and GATv2 ---- */

/* As in Velickovic et al. 2018, for Cora and Citeseer. */
void hg__gat_defaults(hg_model_config *config)
{
	config->hidden = 8;
	config->dropout = 0.6f;
	config->attention_dropout = 0.6f;
}

int hg__gat_heads(const hg_model_config *config, int final)
{
	return final ? config->out_heads : config->heads;
}

int64_t hg__gat_columns(const hg_model_config *config, int64_t out, int final)
{
	return final ? out * config->out_heads : out;
}

hg_var hg__gat_end(const hg_model_config *config, int final, hg_tape *tape, hg_var y,
                   hg_param *bias)
{
	if (final && config->out_heads > 1)
		y = hg_head_mean(tape, y, config->out_heads);
	y = hg_bias_add(tape, y, hg_tape_param(tape, bias));
	return final ? y : hg_elu(tape, y, 1.0f);
}
