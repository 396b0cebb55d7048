/* The range rules of spmm (spmm.c), which spmm_epilogue builds on. */
#include "autograd/ops/edge_sums.h"
#include "autograd/ops/spmm.h"
#include "precision/bound.h"
#include "precision/integer_sum.h"

enum { X = SPMM_X, W = SPMM_W };

/* The largest sum of |r_i s_j| over the edges of a row (or column) whose degree is at most D, which
 * is D^p with p by norm. For BOTH it is D(i) * 1/sqrt(D(i)), because s_j <= 1. */
static const double row_power[HG_NORMS] = {1.0, 1.0, 0.0, 0.5, 0.5};
/* IN scales a column by the degree of the row with the same number, which says nothing about the
 * column's own degree. */
static const double col_power[HG_NORMS] = {1.0, 0.0, 1.0, 0.5, 1.0};

/* The largest factor of a normalisation by weights; all others have none above 1. */
static double factor_of(const hg_graph *graph, hg_norm norm)
{
	return hg__norm_is_weighted(norm) ? hg__graph_weighed(graph, norm).factor : 1.0;
}

/* N of the rows and of the columns: measured on the entries of the graph, or derived from degrees
 * if an operand replaces the entries. */
static double row_norm(const struct hg__range *r)
{
	const hg_norm norm = hg__spmm_attr_of(r->node).norm;
	if (hg__norm_is_weighted(norm))
		return hg__graph_weighed(r->node->graph, norm).row_sum;
	if (r->shape[W].present && hg_graph_is_weighted(r->node->graph))
		return pow((double)r->facts.max_row_degree, row_power[norm]);
	return norm == HG_NORM_NONE ? r->facts.max_row_sum : r->facts.norm_row_sum[norm];
}

static double col_norm(const struct hg__range *r)
{
	const hg_norm norm = hg__spmm_attr_of(r->node).norm;
	if (hg__norm_is_weighted(norm))
		return hg__graph_weighed(r->node->graph, norm).col_sum;
	if (r->shape[W].present && hg_graph_is_weighted(r->node->graph))
		return pow((double)r->facts.max_col_degree, col_power[norm]);
	return norm == HG_NORM_NONE ? r->facts.max_col_sum : r->facts.norm_col_sum[norm];
}

/* Scaling the features of each column once, instead of on every edge, is exact except for one
 * rounding. In f16 this rounding has an absolute error where s X < 2^-14. With s = 1/sqrt(d) this
 * needs a feature below 2^-14 sqrt(d). With s = 1/d it happens often, and terms that would vanish
 * one by one matter in a sum. And with s > 1 the scaled feature may not fit f16. */
int hg__spmm_scales_first(const hg_graph *graph, hg_norm norm, hg_dtype dtype)
{
	if (hg__graph_scatters(graph))
		return 0;
	return dtype == HG_F32 ? norm != HG_NORM_NONE
	                       : hg__norm_is_root(norm) && factor_of(graph, norm) <= 1.0;
}

/* Whether s_j X is rounded to f16 first. The error is relative to the sum, and absolute for each
 * term where s_j X is small. */
static int rounds_first(const struct hg__range *r)
{
	const hg_dtype dtype = r->shape[X].dtype;
	return dtype == HG_F16 &&
	       hg__spmm_scales_first(r->node->graph, hg__spmm_attr_of(r->node).norm, dtype);
}

/* The largest |weight| of a graph that scatters, which its stream promises. */
double hg__spmm_own_weight(hg_graph *graph)
{
	float least = 1.0f, positive = 1.0f;
	return hg__graph_scatters(graph) && hg__graph_least_weight(graph, &least, &positive) == HG_OK
	           ? fabs((double)least)
	           : 1.0;
}

/* The depth of the sums. Tensor cores may compute those with unit weights. */
static double depth_of(const struct hg__range *r, double terms)
{
	if (hg__graph_scatters(r->node->graph))
		return 8.0;
	const int unit = r->shape[X].dtype == HG_F16 && !r->shape[W].present &&
	                 !hg_graph_is_weighted(r->node->graph);
	return (unit ? hg__depth_tiles(terms) : terms) + 8.0;
}

/* A weight of the graph is at most the sum of its row or column. */
static double entry_of(const struct hg__range *r, double w, double sum)
{
	return !r->shape[W].present && hg_graph_is_weighted(r->node->graph) ? sum : w;
}

/* On a graph that scatters: sums in integers do not run in f16, and their terms are rounded. x and
 * w: the bounds on |X| and |w|. The kernel measures what is f32, or multiplied by an operand: the
 * error is the largest where these attain their bounds. */
static void sum_in_integers(const struct hg__range *r, double degree, double x, double w,
                            double *largest, struct hg__rounding *rounding)
{
	const double most = r->shape[X].dtype == HG_F16 ? hg_dtype_get(HG_F16)->max : x,
	             all = degree * hg__bound_mul(most, w);
	if (!hg__graph_scatters(r->node->graph))
		return;
	rounding->sums.terms = 0;
	if (*largest > 0.0)
		*largest += hg__bound_mul(fabs((double)hg__spmm_attr_of(r->node).alpha),
		                          hg__bound_integer_sum(degree, all));
}

struct hg__known hg__spmm_range(const struct hg__range *r, struct hg__derivation *how)
{
	const int operand = r->shape[W].present;
	const double w = operand ? r->in[W].largest : 1.0, degree = (double)r->facts.max_row_degree;
	const struct hg__edge_sums s = {
	    .alpha = fabs((double)hg__spmm_attr_of(r->node).alpha),
	    .of = r->shape[X].dtype,
	    .rounds_first = rounds_first(r),
	    .terms = degree,
	    .mass = operand ? fmin(hg__bound_mul(degree, w), r->in[W].row_sum) : r->facts.max_row_sum,
	    .entry = entry_of(r, w, r->facts.max_row_sum),
	    .factor = factor_of(r->node->graph, hg__spmm_attr_of(r->node).norm),
	    /* r_i, s_j <= 1 if there is an operand */
	    .norm = operand ? fmin(hg__bound_mul(row_norm(r), w), r->in[W].row_sum) : row_norm(r)};
	struct hg__known out = hg__at_most(hg__bound_edge_sums(&s, r->in[X].largest, &how->rounding));
	sum_in_integers(r, degree, r->in[X].largest, operand ? w : hg__spmm_own_weight(r->node->graph),
	                &out.largest, &how->rounding);
	how->rounding.depth = depth_of(r, degree);
	hg__because(how,
	            operand ? "|alpha| %.3g x row sums of |w| %.3g x |X| %.3g"
	                    : "|alpha| %.3g x row sums %.3g x |X| %.3g",
	            fabs((double)hg__spmm_attr_of(r->node).alpha), s.norm, r->in[X].largest);
	return out;
}

void hg__spmm_range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	const int operand = r->shape[W].present;
	const double w = operand ? r->in[W].largest : 1.0, degree = (double)r->facts.max_col_degree;
	const struct hg__edge_sums s = {
	    .alpha = fabs((double)hg__spmm_attr_of(r->node).alpha),
	    .of = r->shape[X].dtype,
	    .rounds_first = rounds_first(r),
	    .terms = degree,
	    .mass = operand ? hg__bound_mul(degree, w) : r->facts.max_col_sum,
	    .entry = entry_of(r, w, r->facts.max_col_sum),
	    .factor = factor_of(r->node->graph, hg__spmm_attr_of(r->node).norm),
	    .norm = hg__bound_mul(col_norm(r), w)};
	grad->largest[X] = hg__bound_edge_sums(&s, r->dout, &grad->rounding);
	sum_in_integers(r, degree, r->dout, operand ? w : hg__spmm_own_weight(r->node->graph),
	                &grad->largest[X], &grad->rounding);
	grad->depth[X] = depth_of(r, degree);
	if (!operand || r->shape[W].cols == 0)
		return;
	const double columns = (double)(r->shape[X].cols / r->shape[W].cols),
	             dot = hg__bound_mul(columns, hg__bound_mul(r->in[X].largest, r->dout));
	hg__on_the_way(&grad->rounding, dot);
	grad->largest[W] =
	    hg__bound_mul(fabs((double)hg__spmm_attr_of(r->node).alpha),
	                  dot > 0.0 ? dot + hg__underflow(r->shape[X].dtype, columns, 1.0) : 0.0);
	grad->depth[W] = hg__depth_dot(r->shape[X].dtype, columns) + 8.0;
}
