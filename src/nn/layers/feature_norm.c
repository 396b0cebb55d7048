/* Batch or layer normalisation, as the configuration says:
 *
 *     Y = gamma (X - mean) / sqrt(var + eps) + beta, mean and var per column (batch) or per row
 *
 * A layer normalisation has no running statistics. */
#include "core/context.h"
#include "halfgraph/ops_norm.h"
#include "nn/layers/layers.h"

#include <stdio.h>

/* The usual value, and that of batch_norm.c. */
static const float eps = 1e-5f;

static hg_status gain_build(hg_params *params, const char *owner, const char *name,
                            const char *what, int64_t cols, hg_init init, hg_param **param)
{
	char full[32];
	(void)snprintf(full, sizeof full, "%s.%s", name, what);
	return hg__param_build(params, owner, full, 1, cols, init, HG_PARAM_F32, param);
}

hg_status hg__feature_norm_build(hg_params *params, const char *owner, const char *name,
                                 int64_t cols, hg_feature_norm kind, struct hg__feature_norm *norm)
{
	norm->kind = kind;
	if (kind == HG_BATCH_NORM)
		return hg__batch_norm_build(params, owner, name, cols, &norm->batch);
	HG__TRY(gain_build(params, owner, name, "gamma", cols, HG_INIT_ONES, &norm->batch.gamma));
	return gain_build(params, owner, name, "beta", cols, HG_INIT_ZEROS, &norm->batch.beta);
}

hg_var hg__feature_norm_record(const struct hg__feature_norm *norm, hg_tape *tape, hg_var x)
{
	return norm->kind == HG_BATCH_NORM
	           ? hg__batch_norm_record(&norm->batch, tape, x)
	           : hg_layer_norm(tape, x, hg_tape_param(tape, norm->batch.gamma),
	                           hg_tape_param(tape, norm->batch.beta), eps);
}
