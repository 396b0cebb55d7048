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

enum { X = SPMM_X, W = SPMM_W };

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
	const struct hg__spmm_attr attr = hg__spmm_attr_of(s->node);
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
	return hg__graph_norm(c->node->graph, hg__spmm_attr_of(c->node).norm, &row_scale, &col_scale);
}

/* Runs the aggregation for the result, or for the gradient of X from dy. */
static hg_status aggregate_of(const struct hg__call *c, int backward, struct hg__mat dy,
                              struct hg__aggregate *a)
{
	const struct hg__spmm_attr attr = hg__spmm_attr_of(c->node);
	const float *row_scale = NULL, *col_scale = NULL;
	HG__TRY(hg__graph_norm(c->node->graph, attr.norm, &row_scale, &col_scale));
	*a = (struct hg__aggregate){
	    .csr = backward ? &c->csr_t : &c->csr,
	    .x = backward ? dy : c->in[X],
	    .y = backward ? c->din[X] : c->out,
	    .row_scale = backward ? col_scale : row_scale,
	    .col_scale = backward ? row_scale : col_scale,
	    .scale_first = hg__spmm_scales_first(c->node->graph, attr.norm, c->in[X].dtype),
	    .alpha = backward ? attr.alpha : hg__rescaled(c, X, attr.alpha)};
	HG__TRY(weights(c, &a->w));
	a->heads = (int)a->w.cols;
	return HG_OK;
}

static hg_status sum_edges(const struct hg__call *c, int backward, const struct hg__aggregate *a)
{
	return hg__graph_scatters(c->node->graph) ? hg__spmm_scatter_sum(c, backward, a)
	                                          : hg__aggregate(c, a);
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
	const struct hg__spmm_attr attr = hg__spmm_attr_of(c->node);
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
	return hg__spmm_scatter_dot(c, &args);
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
	const struct hg__spmm_attr attr = hg__spmm_attr_of(c->node);
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
	return hg__spmm_attr_of(node).norm == HG_NORM_NONE ? "spmm_mean(tape, graph, x)" : NULL;
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
    .range = hg__spmm_range,
    .range_back = hg__spmm_range_back,
    .forward = forward,
    .backward = backward,
    .prepare = hg__spmm_prepare,
    .sample = hg__spmm_sample,
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
