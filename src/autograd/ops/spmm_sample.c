/* Test inputs of spmm. */
#include "autograd/ops/spmm.h"

int hg__spmm_sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		struct hg__spmm_attr attr;
		int weight;             /* 0: none, 1: [m, 1], 2: [m, heads] */
		int64_t x_rows, w_rows; /* rows or columns too many */
		int integer, no_graph;
	} rows[] = {
	    {"sum", HG_OK, {HG_NORM_NONE, 1.0f}, 0, 0, 0, 0, 0},
	    {"norm left", HG_OK, {HG_NORM_LEFT, 1.0f}, 0, 0, 0, 0, 0},
	    {"mean", HG_OK, {HG_NORM_RIGHT, 1.0f}, 0, 0, 0, 0, 0},
	    {"norm both, alpha -0.5", HG_OK, {HG_NORM_BOTH, -0.5f}, 0, 0, 0, 0, 0},
	    {"norm in", HG_OK, {HG_NORM_IN, 1.0f}, 0, 0, 0, 0, 0},
	    {"norm weighted", HG_OK, {HG_NORM_WEIGHTED, 1.0f}, 0, 0, 0, 0, 0},
	    {"norm weighted, alpha -0.5", HG_OK, {HG_NORM_WEIGHTED, -0.5f}, 0, 0, 0, 0, 0},
	    {"mean by weight", HG_OK, {HG_NORM_WEIGHTED_MEAN, 1.0f}, 0, 0, 0, 0, 0},
	    {"edge weights, norm in, alpha 2", HG_OK, {HG_NORM_IN, 2.0f}, 1, 0, 0, 0, 0},
	    {"edge weights", HG_OK, {HG_NORM_NONE, 1.0f}, 1, 0, 0, 0, 0},
	    {"edge weights, norm both", HG_OK, {HG_NORM_BOTH, 1.0f}, 1, 0, 0, 0, 0},
	    {"edge weights by head", HG_OK, {HG_NORM_NONE, 1.0f}, 2, 0, 0, 0, 0},
	    {"edge weights by head, norm right, alpha 0.25",
	     HG_OK,
	     {HG_NORM_RIGHT, 0.25f},
	     2,
	     0,
	     0,
	     0,
	     0},
	    {"X has a row too many", HG_ERR_SHAPE, {HG_NORM_NONE, 1.0f}, 0, 1, 0, 0, 0},
	    {"edge_weight has a row too many", HG_ERR_SHAPE, {HG_NORM_NONE, 1.0f}, 1, 0, 1, 0, 0},
	    {"X of integers", HG_ERR_DTYPE, {HG_NORM_NONE, 1.0f}, 0, 0, 0, 1, 0},
	    {"edge weights, norm weighted", HG_ERR_ARG, {HG_NORM_WEIGHTED, 1.0f}, 1, 0, 0, 0, 0},
	    {"edge weights, mean by weight", HG_ERR_ARG, {HG_NORM_WEIGHTED_MEAN, 1.0f}, 1, 0, 0, 0, 0},
	    {"no such norm", HG_ERR_ARG, {(hg_norm)HG_NORM_VALUES, 1.0f}, 0, 0, 0, 0, 0},
	    {"alpha infinite", HG_ERR_ARG, {HG_NORM_NONE, INFINITY}, 0, 0, 0, 0, 0},
	    {"no graph", HG_ERR_ARG, {HG_NORM_NONE, 1.0f}, 0, 0, 0, 0, 1},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	const int64_t heads = rows[i].weight == 2 ? x->heads : 1;
	hg__sample_begin(s, rows[i].what, rows[i].expect, !rows[i].no_graph);
	hg__sample_attr(s, &rows[i].attr, sizeof rows[i].attr);
	if (rows[i].integer)
		hg__sample_integer(s, x->n, x->d);
	else
		hg__sample_normal(s, x->n + rows[i].x_rows, heads * x->d, x->state);
	if (rows[i].weight)
		hg__sample_normal(s, x->m + rows[i].w_rows, heads, x->state);
	return 1;
}
