/* Softmax over the edges of each row.
 *
 *     P[e, k] = exp(E[e, k] - M[i, k]) / sum over edges f of row i of exp(E[f, k] - M[i, k]),
 *     M[i, k] = max over the edges of row i of E
 *
 * Shapes    G: m edges.  E: [m, h].  P: [m, h], created.
 * Dtypes    E, P: state.  The maximum, exponentials and sums are f32; P is narrowed once.
 * Range     P in (0, 1]: proved for every input.
 * Error     relative gamma_{D + 4}(u32) before P is narrowed, where D is the row's degree (exp:
 *           2 ulp).
 * Gradient  dE = P (dP - sum over the row of P dP), with the saved P;  max|dE| <= max|dP| / 2,
 *           apart from the rounding of P (hg__shares_back).
 * Cost      3 m h elements of state (maximum, sum, result), rowptr;  5 m h flops.
 * Errors    HG_ERR_SHAPE rows(E) != m;  HG_ERR_DTYPE;  HG_ERR_ARG no graph.
 * Source    Velickovic et al. 2018. */
#include "autograd/about.h"
#include "autograd/opkit.h"
#include "halfgraph/ops_graph.h"

static hg_status infer(struct hg__infer *s)
{
	HG__TRY(hg__want_state(s, 0, "E"));
	HG__TRY(hg__want_equal(s, "E", "rows", s->in[0].rows, "graph", "edges",
	                       hg_graph_edges(s->node->graph)));
	s->out = hg__shape_of(s->in[0].rows, s->in[0].cols, s->state);
	s->grads = 1u;
	s->saves = HG__SAVE_OUT;
	return HG_OK;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__at_most(1.0);
	out.row_sum = hg__shares_sum((double)r->facts.max_row_degree);
	out.sign = 1;
	hg__because(how, "a share of its row: at most 1");
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	hg__shares_back(r, grad, (double)r->facts.max_row_degree);
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__edge_softmax_args args = {.csr = c->csr, .e = c->in[0], .p = c->out};
	return HG__RUN(c, edge_softmax, &args);
}

static hg_status backward(const struct hg__call *c)
{
	if (!c->din[0].data)
		return HG_OK;
	const struct hg__edge_softmax_back_args args = {
	    .csr = c->csr, .p = c->out, .dp = c->dout, .de = c->din[0]};
	return HG__RUN(c, edge_softmax_back, &args);
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		double sigma;
		int64_t wider, rows; /* rows too many */
		int integer, no_graph;
	} rows[] = {
	    {"a column a head", HG_OK, 1.0, 0, 0, 0, 0},
	    {"one column more", HG_OK, 1.0, 1, 0, 0, 0},
	    {"eight columns more", HG_OK, 1.0, 8, 0, 0, 0},
	    {"scores far apart", HG_OK, 20.0, 0, 0, 0, 0},
	    {"E has a row too many", HG_ERR_SHAPE, 1.0, 0, 1, 0, 0},
	    {"E of integers", HG_ERR_DTYPE, 1.0, 0, 0, 1, 0},
	    {"no graph", HG_ERR_ARG, 1.0, 0, 0, 0, 1},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	hg__sample_begin(s, rows[i].what, rows[i].expect, !rows[i].no_graph);
	if (rows[i].integer)
		hg__sample_integer(s, x->m, x->heads);
	else
		hg__sample_add(s, x->m + rows[i].rows, x->heads + rows[i].wider, x->state, HG__FILL_NORMAL,
		               rows[i].sigma, 1);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	cost->bytes = 3.0 * hg__mat_bytes(&c->in[0]) + hg__mat_bytes(&c->out) +
	              (double)(c->csr.rows + 1) * (double)sizeof(int64_t);
	cost->flops = 5.0 * (double)c->out.rows * (double)c->out.cols;
}

static const struct hg__about about = {
    .operand = {"score"}, .rows = HG__ROWS_EDGES, .noise = 0x1p-20};

const struct hg__op hg__op_edge_softmax = {
    .name = "edge_softmax",
    .words = "softmax over the edges of a node",
    .traits = HG__GRAPH,
    .min_in = 1,
    .max_in = 1,
    .same = 1u,
    .edges = 1u,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = sample,
    .cost = cost,
    .about = &about,
};

hg_var hg_edge_softmax(hg_tape *tape, hg_graph *graph, hg_var e)
{
	return hg__record(tape, &hg__op_edge_softmax, graph, &e, 1, NULL, NULL, 0);
}
