/* Values of edges: those of one of their two nodes.
 *
 *     Z[e, :] = X[j, :] (source) or X[i, :] (destination)        for edge e = (i, j)
 *
 * Shapes    G: [rows, cols], m edges.  X: [cols, d] for sources, [rows, d] for destinations.
 *           Z: [m, d], created.
 * Dtypes    X, Z: state. Nothing is rounded.
 * Range     max|Z| <= max|X|: proved for every graph.
 * Error     0.
 * Gradient  dX[k, :] = sum of dZ[e, :] over the edges with this end k, an aggregation with edges in
 *           place of neighbours (hg__graph_by_edge), in f32 and narrowed once.
 *           max|dX| <= D max|dZ|, where D is the largest number of edges of a node.
 * Cost      2 m d elements of state, the CSR;  no flops.
 * Errors    HG_ERR_SHAPE rows(X) != cols(G) or rows(G);  HG_ERR_DTYPE;  HG_ERR_ARG no graph, no
 *           such end;  HG_ERR_UNSUPPORTED more than INT32_MAX edges.
 * Source    Gilmer et al. 2017. */
#include "autograd/ops/edge_sums.h"
#include "halfgraph/ops_graph.h"

static hg_end end_of(const struct hg__node *node)
{
	struct hg__gather_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr.end;
}

static hg_status infer(struct hg__infer *s)
{
	const hg_end end = end_of(s->node);
	HG__TRY(hg__want_attr(s, end == HG_END_SOURCE || end == HG_END_DESTINATION, "end", (double)end,
	                      "one of hg_end"));
	HG__TRY(hg__want_state(s, 0, "X"));
	HG__TRY(hg__want_equal(s, "X", "rows", s->in[0].rows, "graph",
	                       end == HG_END_SOURCE ? "columns" : "rows",
	                       hg__nodes_of_end(s->node->graph, end)));
	s->out = hg__shape_of(hg_graph_edges(s->node->graph), s->in[0].cols, s->state);
	s->grads = 1u;
	return HG_OK;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__at_most(r->in[0].largest);
	out.sign = r->in[0].sign;
	how->rounding.depth = 0.0;
	hg__because(how, "a row of X: |X| %.3g", r->in[0].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	const double degree = hg__degree_of_end(r, end_of(r->node));
	grad->largest[0] = hg__bound_mul(degree, r->dout);
	grad->depth[0] = degree + 8.0;
}

static int transpose(const struct hg__node *node, int back)
{
	return back && end_of(node) == HG_END_SOURCE;
}

static hg_status sums_of(const struct hg__call *c, struct hg__aggregate *a)
{
	return hg__edges_summed(c, end_of(c->node), 0, c->dout, c->din[0], 1.0f, a);
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__gather_args args = {.csr = c->csr,
	                                     .x = c->in[0],
	                                     .z = c->out,
	                                     .alpha = hg__rescaled(c, 0, 1.0f),
	                                     .by_col = end_of(c->node) == HG_END_SOURCE};
	return HG__RUN(c, gather, &args);
}

static hg_status backward(const struct hg__call *c)
{
	struct hg__aggregate a;
	if (!c->din[0].data)
		return HG_OK;
	HG__TRY(sums_of(c, &a));
	return hg__aggregate(c, &a);
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		struct hg__gather_attr attr;
		int64_t wider, rows; /* the last: rows too many */
		int integer, no_graph;
	} rows[] = {
	    {"source", HG_OK, {HG_END_SOURCE}, 0, 0, 0, 0},
	    {"destination", HG_OK, {HG_END_DESTINATION}, 0, 0, 0, 0},
	    {"source, one column more", HG_OK, {HG_END_SOURCE}, 1, 0, 0, 0},
	    {"destination, three columns more", HG_OK, {HG_END_DESTINATION}, 3, 0, 0, 0},
	    {"X has a row too many", HG_ERR_SHAPE, {HG_END_SOURCE}, 0, 1, 0, 0},
	    {"X of integers", HG_ERR_DTYPE, {HG_END_SOURCE}, 0, 0, 1, 0},
	    {"no such end", HG_ERR_ARG, {(hg_end)2}, 0, 0, 0, 0},
	    {"no graph", HG_ERR_ARG, {HG_END_SOURCE}, 0, 0, 0, 1},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	hg__sample_begin(s, rows[i].what, rows[i].expect, !rows[i].no_graph);
	hg__sample_attr(s, &rows[i].attr, sizeof rows[i].attr);
	if (rows[i].integer)
		hg__sample_integer(s, x->n, x->d);
	else
		hg__sample_normal(s, x->n + rows[i].rows, x->d + rows[i].wider, x->state);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	cost->bytes = 2.0 * hg__mat_bytes(&c->out) + hg__csr_bytes(&c->csr);
	cost->flops = 0.0;
}

static hg_status sum(const struct hg__call *c, const struct hg__element *e, struct hg__terms *t)
{
	if (e->operand != 0)
		return HG_OK;
	t->over = HG__OVER_EDGES;
	t->i = e->row;
	t->j = e->col;
	return sums_of(c, &t->edges);
}

static const struct hg__about about = {
    .traits = HG__PROPORTIONAL | HG__SUMS_EDGES, .rows = HG__ROWS_EDGES, .sum = sum};

const struct hg__op hg__op_gather = {
    .name = "gather",
    .words = "value of an edge's node",
    .traits = HG__LINEAR | HG__RECOMPUTE | HG__GRAPH | HG__TRANSPOSE | HG__WIDE_SUMS,
    .min_in = 1,
    .max_in = 1,
    .same = 1u,
    .rescaled = 1u,
    .rescales = hg__always,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .transpose = transpose,
    .sample = sample,
    .cost = cost,
    .about = &about,
};

hg_var hg_gather(hg_tape *tape, hg_graph *graph, hg_var x, hg_end end)
{
	const struct hg__gather_attr attr = {end};
	return hg__record(tape, &hg__op_gather, graph, &x, 1, NULL, &attr, sizeof attr);
}
