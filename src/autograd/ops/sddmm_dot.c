/* Scores of edges as inner products.
 *
 *     E[e, k] = scale * sum over c in head k of A[i, c] B[j, c]        for edge e = (i, j)
 *
 * Shapes    G: [rows, cols], m edges.  A: [rows, d].  B: [cols, d].  heads divides d.  E: [m,
 *           heads], created.
 * Dtypes    A, B, E: state.  Products and sums are f32 and are narrowed once.
 * Range     max|E| <= |scale| (d/heads) max|A| max|B|.
 * Error     "sum narrowed once", depth hg__depth_dot(d/heads) + 1.
 * Gradient  dA[i, c] = scale * sum over e = (i, j) of dE[e, head] B[j, c], and dB the same on
 *           the transpose: spmm with dE as weights.
 *           max|dA| <= |scale| D max|dE| max|B|, where D is the largest row degree; max|dB|
 *           likewise with A and the largest column degree.
 * Cost      2 m d elements of state, m heads results, the CSR;  2 m d flops.
 * Errors    HG_ERR_SHAPE rows(A) != rows(G), rows(B) != cols(G), cols(A) != cols(B), heads does
 *           not divide d; HG_ERR_DTYPE; HG_ERR_ARG no graph, heads < 1, scale not finite.
 * Source    Vaswani et al. 2017, on the edges of a graph. */
#include "autograd/about.h"
#include "autograd/opkit.h"
#include "halfgraph/ops_graph.h"
#include "precision/bound.h"

enum { A, B };

static struct hg__sddmm_dot_attr attr_of(const struct hg__node *node)
{
	struct hg__sddmm_dot_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr;
}

static hg_status infer(struct hg__infer *s)
{
	const struct hg__sddmm_dot_attr attr = attr_of(s->node);
	HG__TRY(hg__want_attr(s, isfinite(attr.scale), "scale", (double)attr.scale, "a finite number"));
	HG__TRY(hg__want_state(s, A, "A"));
	HG__TRY(hg__want_state(s, B, "B"));
	HG__TRY(hg__want_equal(s, "A", "rows", s->in[A].rows, "graph", "rows",
	                       hg_graph_rows(s->node->graph)));
	HG__TRY(hg__want_equal(s, "B", "rows", s->in[B].rows, "graph", "columns",
	                       hg_graph_cols(s->node->graph)));
	HG__TRY(hg__want_equal(s, "B", "columns", s->in[B].cols, "A", "columns", s->in[A].cols));
	HG__TRY(hg__want_heads(s, attr.heads, A, "A"));
	s->out = hg__shape_of(hg_graph_edges(s->node->graph), attr.heads, s->state);
	s->grads = 1u << A | 1u << B;
	s->saves = HG__SAVE_IN(A) | HG__SAVE_IN(B);
	return HG_OK;
}

/* The bound on scale times a sum of `terms` products a b. */
static double scaled(const struct hg__range *r, struct hg__rounding *rounding, double terms,
                     double a, double b)
{
	const double scale = fabs((double)attr_of(r->node).scale),
	             sum = hg__bound_mul(terms, hg__bound_mul(a, b));
	hg__on_the_way(rounding, sum);
	return sum > 0.0 ? scale * (sum + hg__underflow(r->shape[A].dtype, terms, 1.0)) : 0.0;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const struct hg__sddmm_dot_attr attr = attr_of(r->node);
	const double columns = (double)(r->shape[A].cols / attr.heads);
	struct hg__known out =
	    hg__at_most(scaled(r, &how->rounding, columns, r->in[A].largest, r->in[B].largest));
	how->rounding.depth = hg__depth_dot(r->shape[A].dtype, columns) + 8.0;
	hg__because(how, "|scale| %.3g x %.0f columns a head x |A| %.3g x |B| %.3g",
	            fabs((double)attr.scale), columns, r->in[A].largest, r->in[B].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[A] =
	    scaled(r, &grad->rounding, (double)r->facts.max_row_degree, r->dout, r->in[B].largest);
	grad->largest[B] =
	    scaled(r, &grad->rounding, (double)r->facts.max_col_degree, r->dout, r->in[A].largest);
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__sddmm_dot_attr attr = attr_of(c->node);
	const struct hg__sddmm_dot_args args = {.csr = c->csr,
	                                        .a = c->in[A],
	                                        .b = c->in[B],
	                                        .e = c->out,
	                                        .heads = attr.heads,
	                                        .scale = attr.scale};
	return HG__RUN(c, sddmm_dot, &args);
}

static hg_status backward(const struct hg__call *c)
{
	const struct hg__sddmm_dot_attr attr = attr_of(c->node);
	struct hg__aggregate a = {.w = c->dout, .heads = attr.heads, .alpha = attr.scale};
	if (c->din[A].data) {
		a.csr = &c->csr;
		a.x = c->in[B];
		a.y = c->din[A];
		HG__TRY(hg__aggregate(c, &a));
	}
	if (c->din[B].data) {
		a.csr = &c->csr_t;
		a.x = c->in[A];
		a.y = c->din[B];
		HG__TRY(hg__aggregate(c, &a));
	}
	return HG_OK;
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		int many_heads;
		float scale;
		int64_t a_rows, b_rows, b_cols; /* rows or columns too many */
		int integer, no_heads, no_graph;
	} rows[] = {
	    {"one head", HG_OK, 0, 1.0f, 0, 0, 0, 0, 0, 0},
	    {"heads", HG_OK, 1, 1.0f, 0, 0, 0, 0, 0, 0},
	    {"one head, scale 0.5", HG_OK, 0, 0.5f, 0, 0, 0, 0, 0, 0},
	    {"heads, scale -0.25", HG_OK, 1, -0.25f, 0, 0, 0, 0, 0, 0},
	    {"A has a row too many", HG_ERR_SHAPE, 0, 1.0f, 1, 0, 0, 0, 0, 0},
	    {"B has a row too many", HG_ERR_SHAPE, 0, 1.0f, 0, 1, 0, 0, 0, 0},
	    {"B has a column too many", HG_ERR_SHAPE, 0, 1.0f, 0, 0, 1, 0, 0, 0},
	    {"A of integers", HG_ERR_DTYPE, 0, 1.0f, 0, 0, 0, 1, 0, 0},
	    {"no head", HG_ERR_ARG, 0, 1.0f, 0, 0, 0, 0, 1, 0},
	    {"no graph", HG_ERR_ARG, 0, 1.0f, 0, 0, 0, 0, 0, 1},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	const int heads = rows[i].many_heads ? x->heads : 1;
	const struct hg__sddmm_dot_attr attr = {rows[i].no_heads ? 0 : heads, rows[i].scale};
	hg__sample_begin(s, rows[i].what, rows[i].expect, !rows[i].no_graph);
	hg__sample_attr(s, &attr, sizeof attr);
	if (rows[i].integer)
		hg__sample_integer(s, x->n, heads * x->d);
	else
		hg__sample_normal(s, x->n + rows[i].a_rows, heads * x->d, x->state);
	hg__sample_normal(s, x->n + rows[i].b_rows, heads * x->d + rows[i].b_cols, x->state);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	const double gathered = (double)c->csr.m * (double)c->in[A].cols;
	cost->bytes = 2.0 * gathered * (double)hg_dtype_size(c->in[A].dtype) + hg__mat_bytes(&c->out) +
	              hg__csr_bytes(&c->csr);
	cost->flops = 2.0 * gathered;
}

/* E[e, k] = scale sum over c in head k of A[i, c] B[j, c]. dA[i, c] = scale sum over the edges of
 * row i of dE[e, head] B[j, c], and dB is the same sum on the transpose. Both gradients are f32. */
static hg_status sum(const struct hg__call *c, const struct hg__element *e, struct hg__terms *t)
{
	const struct hg__sddmm_dot_attr attr = attr_of(c->node);
	const int64_t width = c->in[A].cols / attr.heads;
	if (e->operand < 0)
		*t = (struct hg__terms){.over = HG__OVER_ENDS,
		                        .edges = {.csr = &c->csr},
		                        .a = c->in[A],
		                        .b = c->in[B],
		                        .i = e->row,
		                        .first = e->col * width,
		                        .count = width,
		                        .factor = (double)attr.scale};
	else
		*t = (struct hg__terms){.over = HG__OVER_EDGES,
		                        .edges = {.csr = e->operand == A ? &c->csr : &c->csr_t,
		                                  .x = c->in[e->operand == A ? B : A],
		                                  .w = c->dout,
		                                  .heads = attr.heads,
		                                  .alpha = attr.scale},
		                        .i = e->row,
		                        .j = e->col};
	return HG_OK;
}

static const struct hg__about about = {.rows = HG__ROWS_EDGES, .sum = sum};

const struct hg__op hg__op_sddmm_dot = {
    .name = "sddmm_dot",
    .words = "dot product of an edge's two ends",
    .traits = HG__LINEAR | HG__GRAPH | HG__TRANSPOSE,
    .min_in = 2,
    .max_in = 2,
    .same = 1u << A | 1u << B,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = sample,
    .cost = cost,
    .about = &about,
};

hg_var hg_sddmm_dot(hg_tape *tape, hg_graph *graph, hg_var a, hg_var b, int heads, float scale)
{
	const hg_var in[] = {a, b};
	const struct hg__sddmm_dot_attr attr = {heads, scale};
	return hg__record(tape, &hg__op_sddmm_dot, graph, in, 2, NULL, &attr, sizeof attr);
}
