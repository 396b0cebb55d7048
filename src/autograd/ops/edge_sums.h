/* Sums over edges, of values of neighbours (spmm) or of the edges themselves (gather, scatter). */
#ifndef HG_AUTOGRAD_OPS_EDGE_SUMS_H
#define HG_AUTOGRAD_OPS_EDGE_SUMS_H

#include "autograd/about.h"

/* Facts about the sums alpha r_i * sum of w s_j x over the rows of the CSR or of its transpose. */
struct hg__edge_sums {
	double alpha;     /* |alpha| */
	double terms;     /* the number of edges in the longest sum */
	double mass;      /* the largest sum of the |weights| of one row */
	double entry;     /* largest |weight| */
	double norm;      /* the largest sum of |r_i w s_j| of one row */
	double factor;    /* the largest r_i or s_j; any number up to 1 where all are at most 1 */
	hg_dtype of;      /* the type of x */
	int rounds_first; /* s_j x is rounded to f16 before it is multiplied by w */
};
/* Returns the bound on the sums where |x| is at most `x`, and sets those on the values on the way
 * to it. */
double hg__bound_edge_sums(const struct hg__edge_sums *s, double x, struct hg__rounding *rounding);

/* Of an op whose rows are the edges at one of their ends, source or destination: the orientation
 * of the graph whose rows are the nodes at this end. */
const struct hg__csr *hg__csr_of_end(const struct hg__call *c, hg_end end);
/* The number of nodes at this end, and of the edges of the one that has most. */
int64_t hg__nodes_of_end(const hg_graph *graph, hg_end end);
double hg__degree_of_end(const struct hg__range *r, hg_end end);
/* The sum or mean (1/degree) over the edges at this end, Y = alpha r_k * sum of z[e, :]. */
HG_NODISCARD hg_status hg__edges_summed(const struct hg__call *c, hg_end end, int mean,
                                        struct hg__mat z, struct hg__mat y, float alpha,
                                        struct hg__aggregate *a);
/* 1 / degree of the nodes at this end. */
HG_NODISCARD hg_status hg__inverse_degrees(const struct hg__call *c, hg_end end,
                                           const float **inverse);
/* The arguments of the probe of such a sum (hg__op.probe). Leaves *p alone if it is summed in
 * f32. */
HG_NODISCARD hg_status hg__probe_edges(const struct hg__call *c, const struct hg__aggregate *a,
                                       struct hg__probe *p);
/* Whether such a sum may run in f16. */
int hg__sums_halves(const struct hg__call *c, const struct hg__aggregate *a);

#endif
