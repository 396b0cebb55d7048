/* Features that fp16 cannot hold stop a run before its first step. They are a finding about the
 * file, not about an op; its remedies are tried like those of any other finding. */
#include <math.h>
#include <stdlib.h>

#include "examine.h"

/* From here on rounding to f16 gives infinity. */
#define F16_INFINITE 65520.0

struct large_features {
	int64_t row, col, count;
	double x;
};

static void note_feature(struct large_features *b, int64_t row, int64_t col, double x)
{
	if (!(fabs(x) >= F16_INFINITE) || !isfinite(x))
		return;
	if (b->count++ == 0) {
		b->row = row;
		b->col = col;
		b->x = x;
	}
}

static struct large_features find_features(const hg_dataset *d)
{
	struct large_features b = {0};
	const float *dense = d->feat_dtype == HG_F32 ? d->feat : NULL;
	for (int64_t i = 0; dense && i < d->nodes; i++)
		for (int64_t c = 0; c < d->features; c++)
			note_feature(&b, i, c, (double)dense[i * d->features + c]);
	for (int64_t i = 0; d->feat_value && i < d->nodes; i++)
		for (int64_t e = d->feat_rowptr[i]; e < d->feat_rowptr[i + 1]; e++)
			note_feature(&b, i, d->feat_col[e], (double)d->feat_value[e]);
	return b;
}

int examination_check_features(struct examination *e)
{
	struct diagnosis *d = e->diagnosis;
	const struct large_features b = find_features(d->dataset);
	static const char *const option[2] = {"--row-normalize on", "--precision fp32"};
	static const char *const call[2] = {"hg_dataset_row_normalize(dataset)",
	                                    "config.policy = hg_policy_fp32()"};
	static const char *const why[2] = {"features divided by the sum of their row are at most 1",
	                                   "fp32 can hold the number"};
	if (!b.count || d->config.policy.state != HG_F16)
		return 0;
	d->finding = malloc(sizeof *d->finding);
	if (!d->finding)
		return 0;
	for (int i = 0; i < 2; i++)
		e->feature_remedy[i] = (hg_remedy){.option = option[i],
		                                   .call = call[i],
		                                   .why = why[i],
		                                   .loss_first = (double)NAN,
		                                   .loss_last = (double)NAN};
	d->finding[0] = (hg_finding){.size = sizeof(hg_finding),
	                             .cause = HG_CAUSE_INPUT,
	                             .node = -1,
	                             .op = "",
	                             .op_words = "",
	                             .layer = "",
	                             .tensor = "features",
	                             .row_is = HG_ROW_NODE,
	                             .row = b.row,
	                             .col = b.col,
	                             .head = -1,
	                             .head_of = "",
	                             .edge_row = -1,
	                             .edge_col = -1,
	                             .got = copysign((double)INFINITY, b.x),
	                             .wide = b.x,
	                             .limit = F16_INFINITE,
	                             .bad = b.count,
	                             .count = d->dataset->nodes * d->dataset->features,
	                             .scale = (double)d->config.policy.loss_scale.init_scale,
	                             .partial_factor = 1.0,
	                             .grown = "",
	                             .remedy = e->feature_remedy,
	                             .remedies = 2,
	                             .sentence = "features beyond fp16"};
	d->findings = 1;
	return 1;
}
