/* Neighbourhood aggregation.
 *
 *     Y[i, c] = alpha r_i * sum over edges e = (i, j) of w[e, head of c] s_j X[j, c]
 *
 * with r_i, s_j of the degree normalisation, where d is the row degree and d' the column degree:
 * NONE 1, 1;  LEFT 1, 1/d'(j);  RIGHT 1/d(i), 1 (the mean);  BOTH 1/sqrt(d(i)), 1/sqrt(d'(j));
 * IN 1/sqrt(d(i)), 1/sqrt(d(j)).  With the weighted degree D(i), the sum of the graph's weights in
 * row i:  WEIGHTED 1/sqrt(D(i)), 1/sqrt(D(j));  WEIGHTED_MEAN 1/D(i), 1;  0 where D is 0.
 *
 * Shapes    G: A [rows, cols], m edges.  X: [cols, d].  w: [m, h], h divides d, head of c = c /
 *           (d/h); absent: the graph's own weights.  Y: [rows, d], created.
 * Dtypes    X, w, Y: state.  Sums are f32, scaled when the row is complete, and narrowed once.
 *           If the policy asks for f16 arithmetic they are f16, scaled batch by batch, or
 *           naively after the row. On a graph that scatters (HG_AGGREGATION_SCATTER) they are
 *           64-bit integers, whatever the policy.
 * Range     max|Y| <= |alpha| N max|X| (max|w|), or |alpha| max|X| S where the sum of |w| over
 *           the edges of a row is at most S (softmax: 1). N = max over rows of the sum of |r_i
 *           a_ij s_j|, measured on the graph. With w, a_ij = 1, and then N <= D, D, 1, sqrt(D),
 *           sqrt(D) for NONE, LEFT, RIGHT, BOTH, IN, where D is the largest row degree.
 *           RIGHT: proved for every unweighted graph. WEIGHTED_MEAN: N is 1, up to the rounding of
 *           the factors, if no weight is negative. Why weights of any sign are covered:
 *           core/graph_weigh.c.
 * Error     "sum narrowed once" with depth row degree + 3 scalings. On a GPU, with f16 and unit
 *           weights, where rows share many neighbours: 4 row degree + 3.
 *           BOTH and IN in f16: s_j X is rounded as well, u16 |s_j X| + 2^-25 for each term; so it
 *           is for WEIGHTED where no factor is above 1.
 *           On a graph that scatters: "sum narrowed once" with depth 8, whatever the degree, and
 *           |alpha| r_i D 2^-(s+1) before it is narrowed, with 2^60 < 2^s D max|w| x <= 2^61, D
 *           the promised degree, x = 65504 in f16 and max|X| in f32 (precision/integer_sum.h); X
 *           is not rounded first.
 * Gradient  dX[j, c] = alpha s_j * sum over e = (i, j) of w[e, head] r_i dY[i, c]: the same
 *           kernel on the transpose, with r and s exchanged; the range uses column sums. If X is
 *           a parameter (a dense matrix under sparse features), dX stays f32.
 *           dw[e, k] = alpha r_i s_j * sum over c in head k of dY[i, c] X[j, c] (sddmm);  r, s
 *           <= 1, so max|dw| <= |alpha| (d/h) max|dY| max|X|. Not for WEIGHTED and WEIGHTED_MEAN:
 *           w would replace the weights that their factors are made of, so they take no w.
 * Cost      m d + rows d elements of state, m h weights, the CSR;  2 m d flops.
 * Errors    HG_ERR_SHAPE rows(X) != cols(A), rows(w) != m, IN or WEIGHTED and A is not square, h
 *           does not divide d;  HG_ERR_DTYPE;  HG_ERR_ARG no graph, no such norm, alpha not finite,
 *           w or a negative D(i) with WEIGHTED or WEIGHTED_MEAN;  HG_ERR_UNSUPPORTED these two and
 *           a graph whose arrays change.
 * Source    Kipf, Welling 2017 (BOTH); Hamilton, Ying, Leskovec 2017 (RIGHT); HalfGNN 2024
 *           (scaling a batch at a time). */
#include "autograd/ops/spmm.h"
#include "autograd/ops/edge_sums.h"
#include "halfgraph/ops_graph.h"
#include "precision/bound.h"
#include "precision/integer_sum.h"

enum { X = SPMM_X, W = SPMM_W };

static struct hg__spmm_attr attr_of(const struct hg__node *node)
{
	struct hg__spmm_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr;
}

static hg_status infer_norm(struct hg__infer *s, hg_norm norm)
{
	struct hg__weighed facts;
	HG__TRY(hg__want_attr(s, (int)norm >= HG_NORM_NONE && (int)norm < HG_NORM_VALUES, "norm",
	                      (double)norm, "one of hg_norm"));
	if (norm == HG_NORM_IN || norm == HG_NORM_WEIGHTED)
		HG__TRY(hg__want_equal(s, "graph", "rows", hg_graph_rows(s->node->graph), "graph",
		                       "columns", hg_graph_cols(s->node->graph)));
	if (!hg__norm_is_weighted(norm))
		return HG_OK;
	HG__TRY(hg__want_attr(s, !s->in[W].present, "norm", (double)norm,
	                      "one that counts edges, as edge_weight replaces the graph's weights"));
	return hg__graph_weigh(s->node->graph, norm, &facts);
}

static hg_status infer(struct hg__infer *s)
{
	const struct hg__spmm_attr attr = attr_of(s->node);
	HG__TRY(infer_norm(s, attr.norm));
	HG__TRY(hg__want_attr(s, isfinite(attr.alpha), "alpha", (double)attr.alpha, "a finite number"));
	HG__TRY(hg__want_state(s, X, "X"));
	HG__TRY(hg__want_equal(s, "X", "rows", s->in[X].rows, "graph", "columns",
	                       hg_graph_cols(s->node->graph)));
	if (s->in[W].present) {
		const int64_t heads = s->in[W].cols;
		HG__TRY(hg__want_state(s, W, "edge_weight"));
		HG__TRY(hg__want_equal(s, "edge_weight", "rows", s->in[W].rows, "graph", "edges",
		                       hg_graph_edges(s->node->graph)));
		HG__TRY(hg__want_heads(s, heads <= INT32_MAX ? (int)heads : 0, X, "X"));
	}
	s->out = hg__shape_of(hg_graph_rows(s->node->graph), s->in[X].cols, s->state);
	s->grads = 1u << X | (s->in[W].present ? 1u << W : 0);
	s->saves = s->in[W].present ? HG__SAVE_IN(X) | HG__SAVE_IN(W) : 0;
	return HG_OK;
}

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
	const hg_norm norm = attr_of(r->node).norm;
	if (hg__norm_is_weighted(norm))
		return hg__graph_weighed(r->node->graph, norm).row_sum;
	if (r->shape[W].present && hg_graph_is_weighted(r->node->graph))
		return pow((double)r->facts.max_row_degree, row_power[norm]);
	return norm == HG_NORM_NONE ? r->facts.max_row_sum : r->facts.norm_row_sum[norm];
}

static double col_norm(const struct hg__range *r)
{
	const hg_norm norm = attr_of(r->node).norm;
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
static int scale_first(const hg_graph *graph, hg_norm norm, hg_dtype dtype)
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
	return dtype == HG_F16 && scale_first(r->node->graph, attr_of(r->node).norm, dtype);
}

/* The largest |weight| of a graph that scatters, which its stream promises. */
static double own_weight(hg_graph *graph)
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
		*largest +=
		    hg__bound_mul(fabs((double)attr_of(r->node).alpha), hg__bound_integer_sum(degree, all));
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const int operand = r->shape[W].present;
	const double w = operand ? r->in[W].largest : 1.0, degree = (double)r->facts.max_row_degree;
	const struct hg__edge_sums s = {
	    .alpha = fabs((double)attr_of(r->node).alpha),
	    .of = r->shape[X].dtype,
	    .rounds_first = rounds_first(r),
	    .terms = degree,
	    .mass = operand ? fmin(hg__bound_mul(degree, w), r->in[W].row_sum) : r->facts.max_row_sum,
	    .entry = entry_of(r, w, r->facts.max_row_sum),
	    .factor = factor_of(r->node->graph, attr_of(r->node).norm),
	    /* r_i, s_j <= 1 if there is an operand */
	    .norm = operand ? fmin(hg__bound_mul(row_norm(r), w), r->in[W].row_sum) : row_norm(r)};
	struct hg__known out = hg__at_most(hg__bound_edge_sums(&s, r->in[X].largest, &how->rounding));
	sum_in_integers(r, degree, r->in[X].largest, operand ? w : own_weight(r->node->graph),
	                &out.largest, &how->rounding);
	how->rounding.depth = depth_of(r, degree);
	hg__because(how,
	            operand ? "|alpha| %.3g x row sums of |w| %.3g x |X| %.3g"
	                    : "|alpha| %.3g x row sums %.3g x |X| %.3g",
	            fabs((double)attr_of(r->node).alpha), s.norm, r->in[X].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	const int operand = r->shape[W].present;
	const double w = operand ? r->in[W].largest : 1.0, degree = (double)r->facts.max_col_degree;
	const struct hg__edge_sums s = {.alpha = fabs((double)attr_of(r->node).alpha),
	                                .of = r->shape[X].dtype,
	                                .rounds_first = rounds_first(r),
	                                .terms = degree,
	                                .mass =
	                                    operand ? hg__bound_mul(degree, w) : r->facts.max_col_sum,
	                                .entry = entry_of(r, w, r->facts.max_col_sum),
	                                .factor = factor_of(r->node->graph, attr_of(r->node).norm),
	                                .norm = hg__bound_mul(col_norm(r), w)};
	grad->largest[X] = hg__bound_edge_sums(&s, r->dout, &grad->rounding);
	sum_in_integers(r, degree, r->dout, operand ? w : own_weight(r->node->graph), &grad->largest[X],
	                &grad->rounding);
	grad->depth[X] = depth_of(r, degree);
	if (!operand || r->shape[W].cols == 0)
		return;
	const double columns = (double)(r->shape[X].cols / r->shape[W].cols),
	             dot = hg__bound_mul(columns, hg__bound_mul(r->in[X].largest, r->dout));
	hg__on_the_way(&grad->rounding, dot);
	grad->largest[W] =
	    hg__bound_mul(fabs((double)attr_of(r->node).alpha),
	                  dot > 0.0 ? dot + hg__underflow(r->shape[X].dtype, columns, 1.0) : 0.0);
	grad->depth[W] = hg__depth_dot(r->shape[X].dtype, columns) + 8.0;
}

/* The weights of the graph: f32 where sums are f32, so that they are not rounded, and f16 for f16
 * arithmetic. */
static hg_dtype weight_dtype(const struct hg__call *c)
{
	return c->node->accumulate == HG_ACC_F32 ? HG_F32 : c->in[X].dtype;
}

/* w as the kernel reads it: the operand, the weights of the graph, or absent (all weights are
 * one). */
static hg_status weights(const struct hg__call *c, struct hg__mat *w)
{
	if (c->node->in[W] >= 0) {
		*w = c->in[W];
		return HG_OK;
	}
	const hg_dtype dtype = weight_dtype(c);
	const void *own = NULL;
	HG__TRY(hg__graph_weight(c->node->graph, dtype, &own));
	*w = (struct hg__mat){(void *)(uintptr_t)own, c->csr.m, 1, 1, dtype};
	return HG_OK;
}

hg_status hg__spmm_prepare(const struct hg__call *c)
{
	const float *row_scale = NULL, *col_scale = NULL;
	struct hg__mat w;
	HG__TRY(weights(c, &w));
	return hg__graph_norm(c->node->graph, attr_of(c->node).norm, &row_scale, &col_scale);
}

/* Runs the aggregation for the result, or for the gradient of X from dy. */
static hg_status aggregate_of(const struct hg__call *c, int backward, struct hg__mat dy,
                              struct hg__aggregate *a)
{
	const struct hg__spmm_attr attr = attr_of(c->node);
	const float *row_scale = NULL, *col_scale = NULL;
	HG__TRY(hg__graph_norm(c->node->graph, attr.norm, &row_scale, &col_scale));
	*a = (struct hg__aggregate){.csr = backward ? &c->csr_t : &c->csr,
	                            .x = backward ? dy : c->in[X],
	                            .y = backward ? c->din[X] : c->out,
	                            .row_scale = backward ? col_scale : row_scale,
	                            .col_scale = backward ? row_scale : col_scale,
	                            .scale_first =
	                                scale_first(c->node->graph, attr.norm, c->in[X].dtype),
	                            .alpha = backward ? attr.alpha : hg__rescaled(c, X, attr.alpha)};
	HG__TRY(weights(c, &a->w));
	a->heads = (int)a->w.cols;
	return HG_OK;
}

static hg_status scatter_sum(const struct hg__call *c, int backward, const struct hg__aggregate *a)
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
	    .w_most = c->node->in[W] >= 0 ? 0.0f : (float)own_weight(c->node->graph),
	    .overflow = c->overflow};
	if (a->epilogue)
		args.epilogue = *a->epilogue;
	return HG__RUN(c, scatter_sum, &args);
}

static hg_status sum_edges(const struct hg__call *c, int backward, const struct hg__aggregate *a)
{
	return hg__graph_scatters(c->node->graph) ? scatter_sum(c, backward, a) : hg__aggregate(c, a);
}

hg_status hg__spmm_forward(const struct hg__call *c, const struct hg__sum_epilogue *epilogue)
{
	struct hg__aggregate a;
	HG__TRY(aggregate_of(c, 0, c->in[X], &a));
	a.epilogue = epilogue;
	return sum_edges(c, 0, &a);
}

/* The gradient of w: inner products of two rows at each edge. */
static hg_status dot_of(const struct hg__call *c, struct hg__mat dy,
                        struct hg__sddmm_dot_args *args)
{
	const struct hg__spmm_attr attr = attr_of(c->node);
	*args = (struct hg__sddmm_dot_args){.csr = c->csr,
	                                    .a = dy,
	                                    .b = c->in[X],
	                                    .e = c->din[W],
	                                    .heads = (int)c->din[W].cols,
	                                    .scale = ldexpf(attr.alpha, c->shift[X])};
	return hg__graph_norm(c->node->graph, attr.norm, &args->row_scale, &args->col_scale);
}

static hg_status weight_gradient(const struct hg__call *c, struct hg__mat dy)
{
	struct hg__sddmm_dot_args args;
	HG__TRY(dot_of(c, dy, &args));
	if (!hg__graph_scatters(c->node->graph))
		return HG__RUN(c, sddmm_dot, &args);
	const struct hg__scatter_dot_args list = {.coo = c->coo,
	                                          .a = args.a,
	                                          .b = args.b,
	                                          .e = args.e,
	                                          .heads = args.heads,
	                                          .scale = args.scale,
	                                          .row_scale = args.row_scale,
	                                          .col_scale = args.col_scale};
	return HG__RUN(c, scatter_dot, &list);
}

hg_status hg__spmm_backward(const struct hg__call *c, struct hg__mat dy,
                            const struct hg__sum_epilogue *epilogue)
{
	if (c->din[X].data) {
		struct hg__aggregate a;
		HG__TRY(aggregate_of(c, 1, dy, &a));
		a.epilogue = epilogue;
		HG__TRY(sum_edges(c, 1, &a));
	}
	return c->din[W].data ? weight_gradient(c, dy) : HG_OK;
}

hg_status hg__spmm_sum(const struct hg__call *c, const struct hg__element *e, struct hg__mat dy,
                       struct hg__terms *t)
{
	/* the doctor finds the terms of a sum in a CSR */
	if (hg__graph_scatters(c->node->graph))
		return HG_OK;
	if (e->operand != W) {
		t->over = HG__OVER_EDGES;
		t->i = e->row;
		t->j = e->col;
		return aggregate_of(c, e->operand == X, dy, &t->edges);
	}
	struct hg__sddmm_dot_args args;
	const int64_t width = c->in[X].cols / c->din[W].cols;
	HG__TRY(dot_of(c, dy, &args));
	*t = (struct hg__terms){
	    .over = HG__OVER_ENDS,
	    .edges = {.csr = &c->csr, .row_scale = args.row_scale, .col_scale = args.col_scale},
	    .a = dy,
	    .b = c->in[X],
	    .i = e->row,
	    .first = e->col * width,
	    .count = width,
	    .factor = (double)args.scale};
	return HG_OK;
}

static hg_status forward(const struct hg__call *c)
{
	return hg__spmm_forward(c, NULL);
}

static hg_status backward(const struct hg__call *c)
{
	return hg__spmm_backward(c, c->dout, NULL);
}

/* Scaling first and scaling at each edge differ only by roundings. */
static hg_status probe(const struct hg__call *c, int backward, struct hg__probe *p)
{
	const struct hg__spmm_attr attr = attr_of(c->node);
	const struct hg__csr *csr = backward ? &c->csr_t : &c->csr;
	const struct hg__mat x = backward ? c->dout : c->in[X], y = backward ? c->din[X] : c->out;
	const float *row_scale = NULL, *col_scale = NULL;
	struct hg__mat w;
	if (c->node->accumulate == HG_ACC_F32 || x.dtype != HG_F16 || y.dtype != HG_F16)
		return HG_OK;
	HG__TRY(weights(c, &w));
	HG__TRY(hg__graph_norm(c->node->graph, attr.norm, &row_scale, &col_scale));
	*p = (struct hg__probe){.rowptr = csr->rowptr,
	                        .col = csr->col,
	                        .edge = csr->edge,
	                        .x = x,
	                        .w = w,
	                        .y = y,
	                        .row_scale = backward ? col_scale : row_scale,
	                        .col_scale = backward ? row_scale : col_scale,
	                        .alpha = attr.alpha,
	                        .heads = (int32_t)w.cols};
	return HG_OK;
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
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

void hg__spmm_cost(const struct hg__call *c, struct hg__cost *cost)
{
	const double gathered = (double)c->csr.m * (double)c->in[X].cols;
	cost->bytes = gathered * (double)hg_dtype_size(c->in[X].dtype) + hg__mat_bytes(&c->out) +
	              hg__csr_bytes(&c->csr) + hg__mat_bytes(&c->in[W]);
	cost->flops = 2.0 * gathered;
	if (!hg__graph_scatters(c->node->graph))
		return;
	/* a destination and a source in the place of a column, and a sum of 8 bytes for each term */
	cost->bytes += (double)c->csr.m * (double)sizeof(int32_t) + 8.0 * gathered;
}

static hg_status sum(const struct hg__call *c, const struct hg__element *e, struct hg__terms *t)
{
	HG__TRY(hg__spmm_sum(c, e, c->dout, t));
	t->halves = t->over == HG__OVER_EDGES && c->node->accumulate != HG_ACC_F32 &&
	            t->edges.x.dtype == HG_F16 && t->edges.y.dtype == HG_F16;
	return HG_OK;
}

static const char *mean(const struct hg__node *node)
{
	return attr_of(node).norm == HG_NORM_NONE ? "spmm_mean(tape, graph, x)" : NULL;
}

static const struct hg__about about = {
    .traits = HG__PROPORTIONAL | HG__NEIGHBOURS, .rows = HG__ROWS_NODES, .sum = sum, .mean = mean};

const struct hg__op hg__op_spmm = {
    .name = "spmm",
    .words = "sum over neighbours",
    .traits = HG__LINEAR | HG__GRAPH | HG__TRANSPOSE | HG__UNIT_EDGES | HG__TILES | HG__WIDE_SUMS |
              HG__GUARDS_STORE | HG__SCATTERS,
    .min_in = 1,
    .max_in = 2,
    .rescaled = 1u << X,
    .rescales = hg__always,
    .same = 1u << X | 1u << W,
    .edges = 1u << W,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .prepare = hg__spmm_prepare,
    .sample = sample,
    .cost = hg__spmm_cost,
    .probe = probe,
    .about = &about,
};

hg_var hg_spmm(hg_tape *tape, hg_graph *graph, hg_var x, hg_var edge_weight, hg_norm norm,
               float alpha)
{
	const hg_var in[] = {x, edge_weight};
	const struct hg__spmm_attr attr = {norm, alpha};
	return hg__record(tape, &hg__op_spmm, graph, in, 2, NULL, &attr, sizeof attr);
}

hg_var hg_spmm_mean(hg_tape *tape, hg_graph *graph, hg_var x)
{
	return hg_spmm(tape, graph, x, HG_NONE, HG_NORM_RIGHT, 1.0f);
}
