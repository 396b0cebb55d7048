/* Y = X W + b, X dense or sparse.
 *
 * A sparse X [n, k] is the adjacency matrix of a bipartite graph between nodes and features, so X W
 * is an aggregation of the rows of W. */
#include "core/context.h"
#include "halfgraph/ops.h"
#include "halfgraph/ops_graph.h"
#include "nn/layers/layers.h"

#include <stdio.h>
#include <string.h>

hg_status hg__param_build(hg_params *params, const char *owner, const char *name, int64_t rows,
                          int64_t cols, hg_init init, unsigned flags, hg_param **param)
{
	char full[64];
	(void)snprintf(full, sizeof full, "%s.%s", owner, name);
	const hg_status status = hg_params_add(params, full, rows, cols, init, flags, param);
	const char *said = hg_context_error(hg_params_context(params));
	return status != HG_ERR_NOMEM || strstr(said, full)
	           ? status
	           : hg__fail(hg_params_context(params), status, "%s: %s", full, said);
}

hg_status hg__linear_build(hg_params *params, const char *owner, const char *name, int64_t in,
                           int64_t out, hg_init init, int bias, struct hg__linear *linear)
{
	char full[32];
	(void)snprintf(full, sizeof full, "%s%sweight", name, *name ? "." : "");
	HG__TRY(hg__param_build(params, owner, full, in, out, init, 0, &linear->w));
	if (!bias)
		return HG_OK;
	(void)snprintf(full, sizeof full, "%s%sbias", name, *name ? "." : "");
	return hg__param_build(params, owner, full, 1, out, HG_INIT_ZEROS, 0, &linear->b);
}

hg_var hg__linear_record(const struct hg__linear *linear, hg_tape *tape, struct hg__features x)
{
	const hg_var w = hg_tape_param(tape, linear->w);
	const hg_var b = linear->b ? hg_tape_param(tape, linear->b) : HG_NONE;
	if (!x.sparse)
		return hg_linear(tape, x.x, w, b);
	const hg_var y = hg_spmm(tape, x.sparse, w, x.value, HG_NORM_NONE, 1.0f);
	return linear->b ? hg_bias_add(tape, y, b) : y;
}
