#include "autograd/ops/edge_sums.h"

#include "precision/bound.h"

/* In f16 arithmetic every rounding near 0 adds 2^-25 (hg__bound_sum_f16): to a weight, a factor
 * s_j, their product, and that times x, which together is at most 1 + 2 |x| + |w x| times 2^-25; to
 * a scaled batch; and to alpha r_i if it is small. Where s_j x is rounded first, the error is
 * relative to the sum, and absolute for each term where s_j x is small.
 *
 * With factors above 1, of which the largest is `over`, nothing is proved of f16 arithmetic: they
 * may overflow, and they enlarge the errors above. In f32 they make s_j x, the sum of w s_j x and
 * alpha r_i up to `over` times as large. And r_i multiplies what underflow adds, 2^-150 at most
 * each time: to w s_j, which x then multiplies, to s_j x, which w then multiplies, and to the sum.
 *
 * norm may be 0 where mass is not: where weights cancel, the factor is 0. */
double hg__bound_edge_sums(const struct hg__edge_sums *s, double x, struct hg__rounding *rounding)
{
	const double half = 0x1p-25, over = fmax(s->factor, 1.0),
	             near_zero = half * (s->terms * (1.0 + 2.0 * x) + hg__bound_mul(s->mass, x));
	const double first = over > 1.0        ? over * 0x1p-149 * (s->terms * (1.0 + x) + s->mass)
	                     : s->rounds_first ? half * s->mass
	                                       : hg__underflow(s->of, fmax(s->terms, s->mass), 1.0);
	rounding->sums.terms = (int64_t)s->terms;
	/* f16 sums are scaled by alpha r_i in f16, where r_i <= 1 */
	if (s->alpha >= hg_dtype_get(HG_F16)->overflow || over > 1.0)
		rounding->sums.term = INFINITY;
	else {
		/* Even with every product and factor rounded, (w s_j) x is at most x times w rounded,
		 * because s_j <= 1. */
		rounding->sums.term =
		    hg__bound_mul((double)hg_half_to_float(hg_half_from_double(s->entry)), x);
		rounding->sums.whole = (hg__bound_mul(s->mass, x) + near_zero) *
		                       (1.0 + hg__gamma(6.0, 0x1p-11)) * hg__growth_f16(s->terms);
	}
	hg__on_the_way(rounding, hg__bound_mul(s->mass * over, x));
	if (over > 1.0) { /* s_j x, which a weight below 1 multiplies later, and alpha r_i */
		hg__on_the_way(rounding, hg__bound_mul(over, x));
		hg__on_the_way(rounding, s->alpha * over);
	}
	if (x == 0.0 || s->mass == 0.0)
		return 0.0;
	rounding->sums.tiny =
	    s->alpha * near_zero + half * (hg__bound_mul(s->mass, x) + near_zero + s->terms + 8.0);
	return hg__bound_mul(
	    s->alpha, hg__bound_mul(s->norm, x) * (s->rounds_first ? 1.0 + 0x1p-11 : 1.0) + first);
}

const struct hg__csr *hg__csr_of_end(const struct hg__call *c, hg_end end)
{
	return end == HG_END_SOURCE ? &c->csr_t : &c->csr;
}

int64_t hg__nodes_of_end(const hg_graph *graph, hg_end end)
{
	return end == HG_END_SOURCE ? hg_graph_cols(graph) : hg_graph_rows(graph);
}

double hg__degree_of_end(const struct hg__range *r, hg_end end)
{
	return (double)(end == HG_END_SOURCE ? r->facts.max_col_degree : r->facts.max_row_degree);
}

hg_status hg__inverse_degrees(const struct hg__call *c, hg_end end, const float **inverse)
{
	const float *row = NULL, *col = NULL;
	HG__TRY(hg__graph_norm(c->node->graph, end == HG_END_SOURCE ? HG_NORM_LEFT : HG_NORM_RIGHT,
	                       &row, &col));
	*inverse = end == HG_END_SOURCE ? col : row;
	return HG_OK;
}

hg_status hg__edges_summed(const struct hg__call *c, hg_end end, int mean, struct hg__mat z,
                           struct hg__mat y, float alpha, struct hg__aggregate *a)
{
	*a = (struct hg__aggregate){.x = z, .y = y, .heads = 1, .alpha = alpha};
	HG__TRY(hg__graph_by_edge(c->node->graph, end == HG_END_SOURCE, &a->csr));
	return mean ? hg__inverse_degrees(c, end, &a->row_scale) : HG_OK;
}

int hg__sums_halves(const struct hg__call *c, const struct hg__aggregate *a)
{
	return c->node->accumulate != HG_ACC_F32 && a->x.dtype == HG_F16 && a->y.dtype == HG_F16;
}

hg_status hg__probe_edges(const struct hg__call *c, const struct hg__aggregate *a,
                          struct hg__probe *p)
{
	if (hg__sums_halves(c, a))
		*p = (struct hg__probe){.rowptr = a->csr->rowptr,
		                        .col = a->csr->col,
		                        .x = a->x,
		                        .y = a->y,
		                        .row_scale = a->row_scale,
		                        .alpha = a->alpha,
		                        .heads = 1};
	return HG_OK;
}
