/* spmm on a graph that scatters (core/csr.h): sums of integers over the list of its edges, which is
 * in no order, in place of sums over rows. */
#include "autograd/ops/spmm.h"

enum { W = SPMM_W };

hg_status hg__spmm_scatter_sum(const struct hg__call *c, int backward,
                               const struct hg__aggregate *a)
{
	hg_graph_facts facts = HG_GRAPH_FACTS_INIT;
	HG__TRY(hg_graph_facts_get(c->node->graph, &facts));
	struct hg__scatter_sum_args args = {
	    .coo = backward ? c->coo_t : c->coo,
	    .x = a->x,
	    .w = a->w,
	    .y = a->y,
	    .heads = a->heads,
	    .row_scale = a->row_scale,
	    .col_scale = a->col_scale,
	    .alpha = a->alpha,
	    .degree = (double)(backward ? facts.max_col_degree : facts.max_row_degree),
	    .x_most = a->x.dtype == HG_F16 ? (float)hg_dtype_get(HG_F16)->max : 0.0f,
	    .w_most = c->node->in[W] >= 0 ? 0.0f : (float)hg__spmm_own_weight(c->node->graph),
	    .overflow = c->overflow};
	if (a->epilogue)
		args.epilogue = *a->epilogue;
	return HG__RUN(c, scatter_sum, &args);
}

hg_status hg__spmm_scatter_dot(const struct hg__call *c, const struct hg__sddmm_dot_args *of)
{
	const struct hg__scatter_dot_args args = {.coo = c->coo,
	                                          .a = of->a,
	                                          .b = of->b,
	                                          .e = of->e,
	                                          .heads = of->heads,
	                                          .scale = of->scale,
	                                          .row_scale = of->row_scale,
	                                          .col_scale = of->col_scale};
	return HG__RUN(c, scatter_dot, &args);
}
