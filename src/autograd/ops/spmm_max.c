/* Neighbourhood maximum.
 *
 *     Y[i, c] = max over edges (i, j) of X[j, c]
 *
 * Y is 0 if row i has no edge. A NaN counts as the largest.
 *
 * Shapes    G: A [rows, cols].  X: [cols, d].  Y: [rows, d], created.  Saved for the backward
 *           pass: arg i32 [rows, d], the index in row i of the first edge that attains the
 *           maximum, or -1 if the row has no edge.
 * Dtypes    X, Y: state.  Nothing is rounded.
 * Range     max|Y| <= max|X|: proved for every graph.
 * Error     0.
 * Gradient  dX[j, c] = sum of dY[i, c] over the rows i whose maximum of column c is X[j, c], in
 *           f32.  max|dX| <= D' max|dY|, where D' is the largest column degree.
 * Cost      m d + rows d elements of state, 4 rows d bytes of arg, the CSR;  m d flops.
 * Errors    HG_ERR_SHAPE rows(X) != cols(A);  HG_ERR_DTYPE;  HG_ERR_ARG no graph.
 * Source    Hamilton, Ying, Leskovec 2017, pooling aggregator. */
#include "autograd/about.h"
#include "autograd/opkit.h"
#include "halfgraph/ops_graph.h"

static hg_status infer(struct hg__infer *s)
{
	HG__TRY(hg__want_state(s, 0, "X"));
	HG__TRY(hg__want_equal(s, "X", "rows", s->in[0].rows, "graph", "columns",
	                       hg_graph_cols(s->node->graph)));
	const int64_t rows = hg_graph_rows(s->node->graph);
	s->out = hg__shape_of(rows, s->in[0].cols, s->state);
	s->aux[0] = hg__shape_of(rows, s->in[0].cols, HG_I32);
	s->grads = 1u;
	s->saves = HG__SAVE_AUX(0);
	return HG_OK;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__at_most(r->in[0].largest);
	hg__because(how, "a maximum: |X| %.3g", r->in[0].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[0] = hg__bound_mul((double)r->facts.max_col_degree, r->dout);
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__spmm_max_args args = {
	    .csr = c->csr, .x = c->in[0], .y = c->out, .arg = c->aux[0]};
	return HG__RUN(c, spmm_max, &args);
}

static hg_status backward(const struct hg__call *c)
{
	if (!c->din[0].data)
		return HG_OK;
	const struct hg__spmm_max_back_args args = {
	    .csr = c->csr, .csr_t = c->csr_t, .dy = c->dout, .arg = c->aux[0], .dx = c->din[0]};
	return HG__RUN(c, spmm_max_back, &args);
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		int64_t rows, cols; /* rows too many; columns more */
		int integer, no_graph;
	} rows[] = {
	    {"plain", HG_OK, 0, 0, 0, 0},
	    {"one column more", HG_OK, 0, 1, 0, 0},
	    {"three columns more", HG_OK, 0, 3, 0, 0},
	    {"eight columns more", HG_OK, 0, 8, 0, 0},
	    {"X has a row too many", HG_ERR_SHAPE, 1, 0, 0, 0},
	    {"X of integers", HG_ERR_DTYPE, 0, 0, 1, 0},
	    {"no graph", HG_ERR_ARG, 0, 0, 0, 1},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	hg__sample_begin(s, rows[i].what, rows[i].expect, !rows[i].no_graph);
	if (rows[i].integer)
		hg__sample_integer(s, x->n, x->d);
	else
		hg__sample_normal(s, x->n + rows[i].rows, x->d + rows[i].cols, x->state);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	const double gathered = (double)c->csr.m * (double)c->in[0].cols;
	cost->bytes = gathered * (double)hg_dtype_size(c->in[0].dtype) + hg__mat_bytes(&c->out) +
	              hg__mat_bytes(&c->aux[0]) + hg__csr_bytes(&c->csr);
	cost->flops = gathered;
}

static const struct hg__about about = {.rows = HG__ROWS_NODES};

const struct hg__op hg__op_spmm_max = {
    .name = "spmm_max",
    .words = "maximum over neighbours",
    .traits = HG__GRAPH | HG__TRANSPOSE,
    .min_in = 1,
    .max_in = 1,
    .same = 1u,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = sample,
    .cost = cost,
    .about = &about,
};

hg_var hg_spmm_max(hg_tape *tape, hg_graph *graph, hg_var x)
{
	return hg__record(tape, &hg__op_spmm_max, graph, &x, 1, NULL, NULL, 0);
}
