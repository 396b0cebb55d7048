/* Scores of edges as sums.
 *
 *     E[e, k] = f(A[i, k] + B[j, k])        for edge e = (i, j)
 *     f(x) = x, or if leaky: x where x > 0, else slope x,  0 <= slope <= 1
 *
 * Shapes    G: [rows, cols], m edges.  A: [rows, h].  B: [cols, h].  E: [m, h], created.  If B
 *           is absent, A is [rows, 2 h], rows = cols, and its last h columns are B.
 * Dtypes    A, B, E: state.  The sum is f32 and is narrowed once.
 * Range     max|E| <= max|A| + max|B|.
 * Error     one rounding.
 * Gradient  dA[i, k] = sum over the edges of row i of f'(A[i, k] + B[j, k]) dE[e, k],  dB[j, k]
 *           = the same sum over the edges of column j;  f'(0) = slope. f' is recomputed from A
 *           and B, so nothing is saved for an edge.
 *           max|dA| <= D max|dE|, where D is the largest row degree; max|dB| likewise with the
 *           largest column degree.
 * Cost      3 m h elements of state, the CSR;  2 m h flops.
 * Errors    HG_ERR_SHAPE rows(A) != rows(G), rows(B) != cols(G), cols(A) != cols(B), B absent
 *           and cols(A) odd or G not square;  HG_ERR_DTYPE;  HG_ERR_ARG no graph.
 * Source    Velickovic et al. 2018: the attention score of GAT, including its leaky_relu if
 *           leaky. */
#include "autograd/about.h"
#include "autograd/opkit.h"
#include "halfgraph/ops_graph.h"

enum { A, B };

/* A and B, or their gradients. If B is absent it is the second half of A. */
static void sides(const struct hg__call *c, const struct hg__mat of[HG__MAX_IN], int64_t h,
                  struct hg__mat side[2])
{
	const int together = c->node->in[B] < 0;
	side[A] = together ? hg__mat_cols(of[A], 0, h) : of[A];
	side[B] = together ? hg__mat_cols(of[A], h, h) : of[B];
}

static struct hg__sddmm_add_attr attr_of(const struct hg__node *node)
{
	struct hg__sddmm_add_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr;
}

static hg_status infer(struct hg__infer *s)
{
	const int64_t m = hg_graph_edges(s->node->graph);
	const struct hg__sddmm_add_attr attr = attr_of(s->node);
	HG__TRY(hg__want_attr(s, !attr.leaky || (attr.slope >= 0.0f && attr.slope <= 1.0f), "slope",
	                      (double)attr.slope, "0 <= slope <= 1"));
	HG__TRY(hg__want_state(s, A, "a"));
	HG__TRY(hg__want_equal(s, "a", "rows", s->in[A].rows, "graph", "rows",
	                       hg_graph_rows(s->node->graph)));
	s->grads = 1u << A;
	s->saves = HG__SAVE_IN(A);
	if (!s->in[B].present) {
		HG__TRY(hg__want_equal(s, "a", "rows", s->in[A].rows, "graph", "columns",
		                       hg_graph_cols(s->node->graph)));
		if (s->in[A].cols % 2)
			return hg__infer_fail(
			    s, HG_ERR_SHAPE,
			    "a has %lld columns and b is missing, expected twice as many as the edges get",
			    (long long)s->in[A].cols);
		s->out = hg__shape_of(m, s->in[A].cols / 2, s->state);
		return HG_OK;
	}
	HG__TRY(hg__want_state(s, B, "b"));
	HG__TRY(hg__want_equal(s, "b", "rows", s->in[B].rows, "graph", "columns",
	                       hg_graph_cols(s->node->graph)));
	HG__TRY(hg__want_equal(s, "b", "columns", s->in[B].cols, "a", "columns", s->in[A].cols));
	s->out = hg__shape_of(m, s->in[A].cols, s->state);
	s->grads |= 1u << B;
	s->saves |= HG__SAVE_IN(B);
	return HG_OK;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out =
	    hg__at_most(r->in[A].largest + (r->shape[B].present ? r->in[B].largest : r->in[A].largest));
	hg__because(how, "|a_dst| %.3g + |a_src| %.3g", r->in[A].largest,
	            r->shape[B].present ? r->in[B].largest : r->in[A].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	const double rows = (double)r->facts.max_row_degree, cols = (double)r->facts.max_col_degree;
	grad->largest[A] = hg__bound_mul(r->shape[B].present ? rows : fmax(rows, cols), r->dout);
	grad->largest[B] = hg__bound_mul(cols, r->dout);
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__sddmm_add_attr attr = attr_of(c->node);
	struct hg__mat side[2];
	sides(c, c->in, c->out.cols, side);
	const struct hg__sddmm_add_args args = {.csr = c->csr,
	                                        .a = side[A],
	                                        .b = side[B],
	                                        .e = c->out,
	                                        .leaky = attr.leaky,
	                                        .slope = attr.slope};
	return HG__RUN(c, sddmm_add, &args);
}

static hg_status backward(const struct hg__call *c)
{
	const struct hg__sddmm_add_attr attr = attr_of(c->node);
	struct hg__mat side[2], gradient[2];
	sides(c, c->in, c->dout.cols, side);
	sides(c, c->din, c->dout.cols, gradient);
	const struct hg__sddmm_add_back_args args = {.csr = c->csr,
	                                             .csr_t = c->csr_t,
	                                             .a = side[A],
	                                             .b = side[B],
	                                             .de = c->dout,
	                                             .da = gradient[A],
	                                             .db = gradient[B],
	                                             .leaky = attr.leaky,
	                                             .slope = attr.slope};
	return HG__RUN(c, sddmm_add_back, &args);
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		int64_t wider;
		int64_t a_rows, b_rows, b_cols; /* rows or columns too many */
		int integer, no_graph;
		int together;   /* b is absent */
		int64_t a_cols; /* columns too many */
		struct hg__sddmm_add_attr attr;
	} rows[] = {
	    {"a column a head", HG_OK, 0, 0, 0, 0, 0, 0, 0, 0, {0, 0.0f}},
	    {"one column more", HG_OK, 1, 0, 0, 0, 0, 0, 0, 0, {0, 0.0f}},
	    {"three columns more", HG_OK, 3, 0, 0, 0, 0, 0, 0, 0, {0, 0.0f}},
	    {"eight columns more", HG_OK, 8, 0, 0, 0, 0, 0, 0, 0, {0, 0.0f}},
	    {"a and b in one", HG_OK, 0, 0, 0, 0, 0, 0, 1, 0, {0, 0.0f}},
	    {"a and b in one, one column more", HG_OK, 1, 0, 0, 0, 0, 0, 1, 0, {0, 0.0f}},
	    {"a and b in one, eight columns more", HG_OK, 8, 0, 0, 0, 0, 0, 1, 0, {0, 0.0f}},
	    {"leaky", HG_OK, 1, 0, 0, 0, 0, 0, 0, 0, {1, 0.2f}},
	    {"leaky, a and b in one", HG_OK, 0, 0, 0, 0, 0, 0, 1, 0, {1, 0.01f}},
	    {"leaky of slope 0, eight columns more", HG_OK, 8, 0, 0, 0, 0, 0, 0, 0, {1, 0.0f}},
	    {"slope 2", HG_ERR_ARG, 0, 0, 0, 0, 0, 0, 0, 0, {1, 2.0f}},
	    {"a has a row too many", HG_ERR_SHAPE, 0, 1, 0, 0, 0, 0, 0, 0, {0, 0.0f}},
	    {"b has a row too many", HG_ERR_SHAPE, 0, 0, 1, 0, 0, 0, 0, 0, {0, 0.0f}},
	    {"b has a column too many", HG_ERR_SHAPE, 0, 0, 0, 1, 0, 0, 0, 0, {0, 0.0f}},
	    {"a and b in one, an odd number of columns",
	     HG_ERR_SHAPE,
	     0,
	     0,
	     0,
	     0,
	     0,
	     0,
	     1,
	     1,
	     {0, 0.0f}},
	    {"a of integers", HG_ERR_DTYPE, 0, 0, 0, 0, 1, 0, 0, 0, {0, 0.0f}},
	    {"no graph", HG_ERR_ARG, 0, 0, 0, 0, 0, 1, 0, 0, {0, 0.0f}},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	const int64_t h = x->heads + rows[i].wider;
	hg__sample_begin(s, rows[i].what, rows[i].expect, !rows[i].no_graph);
	hg__sample_attr(s, &rows[i].attr, sizeof rows[i].attr);
	if (rows[i].integer)
		hg__sample_integer(s, x->n, h);
	else
		hg__sample_normal(s, x->n + rows[i].a_rows, (rows[i].together ? 2 : 1) * h + rows[i].a_cols,
		                  x->state);
	if (!rows[i].together)
		hg__sample_normal(s, x->n + rows[i].b_rows, h + rows[i].b_cols, x->state);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	cost->bytes = 3.0 * hg__mat_bytes(&c->out) + hg__csr_bytes(&c->csr);
	cost->flops = 2.0 * (double)c->out.rows * (double)c->out.cols;
}

/* dA[i, k] = sum over the edges of row i of f'(A[i, k] + B[j, k]) dE[e, k], and dB is the same sum
 * on the transpose. */
static hg_status sum(const struct hg__call *c, const struct hg__element *e, struct hg__terms *t)
{
	const struct hg__sddmm_add_attr attr = attr_of(c->node);
	const int64_t h = c->dout.cols;
	const int together = c->node->in[B] < 0, of_b = e->operand == B || e->col >= h;
	if (e->operand < 0)
		return HG_OK;
	*t = (struct hg__terms){.over = HG__OVER_SLOPES,
	                        .edges = {.csr = of_b ? &c->csr_t : &c->csr},
	                        .a = c->dout,
	                        .own = c->in[e->operand],
	                        .b = c->in[together || of_b ? A : B],
	                        .i = e->row,
	                        .j = together && of_b ? e->col - h : e->col,
	                        .own_j = e->col,
	                        .slope = attr.leaky ? attr.slope : 1.0f};
	t->other_j = together && !of_b ? e->col + h : t->j;
	return HG_OK;
}

static int heads_in(const struct hg__node *node, int operand, int64_t cols, struct hg__heads_in *in)
{
	const int together = node->in[B] < 0;
	in->heads = together ? cols / 2 : cols;
	in->of = together ? HG__OF_BOTH : operand == A ? HG__OF_DESTINATION : HG__OF_SOURCE;
	return operand >= 0;
}

static const struct hg__about about = {
    .traits = HG__JOINS_ENDS,
    .operand = {"score of the destination", "score of the source"},
    .rows = HG__ROWS_EDGES,
    .sum = sum,
    .heads = heads_in};

const struct hg__op hg__op_sddmm_add = {
    .name = "sddmm_add",
    .words = "sum of an edge's two ends",
    .traits = HG__RECOMPUTE | HG__GRAPH | HG__TRANSPOSE,
    .min_in = 1,
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

hg_var hg_sddmm_add(hg_tape *tape, hg_graph *graph, hg_var a, hg_var b)
{
	const hg_var in[] = {a, b};
	return hg__record(tape, &hg__op_sddmm_add, graph, in, 2, NULL, NULL, 0);
}

hg_var hg_sddmm_add_leaky(hg_tape *tape, hg_graph *graph, hg_var a, hg_var b, float slope)
{
	const hg_var in[] = {a, b};
	const struct hg__sddmm_add_attr attr = {1, slope};
	return hg__record(tape, &hg__op_sddmm_add, graph, in, 2, NULL, &attr, sizeof attr);
}
