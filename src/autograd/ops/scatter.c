/* Values of nodes from those of their edges.
 *
 *     Y[k, c] = sum, mean or maximum of Z[e, c] over the edges e with this end k
 *
 * Y is 0 if a node has no edge. A NaN counts as the largest. Weights of the graph are not applied.
 *
 * Shapes    G: [rows, cols], m edges.  Z: [m, d].  Y: [rows, d] for destinations, [cols, d] for
 *           sources, created.  MAX saves for the backward pass: arg i32 of Y's shape, the index
 *           among the edges of k of the first one that attains the maximum, or -1.
 * Dtypes    Z, Y: state. Sums are f32, scaled when the row is complete, and narrowed once. If the
 *           policy asks for f16 arithmetic they are f16, and a mean is scaled batch by batch, or
 *           naively after the row.
 * Range     SUM max|Y| <= D max|Z|, where D is the largest number of edges of a node.
 *           MEAN, MAX max|Y| <= max|Z|: proved for every graph.
 * Error     "sum narrowed once" with depth D, and one scaling for MEAN. MAX 0.
 * Gradient  dZ[e, c] = dY[k, c] (SUM), dY[k, c] / degree of k (MEAN), or dY[k, c] where e attains
 *           the maximum of column c, else 0 (MAX): the kernel of gather. max|dZ| <= max|dY|.
 * Cost      m d + n d elements of state, rowptr and 4 m bytes;  m d flops.
 * Errors    HG_ERR_SHAPE rows(Z) != m;  HG_ERR_DTYPE;  HG_ERR_ARG no graph, no such end or
 *           reduction;  HG_ERR_UNSUPPORTED more than INT32_MAX edges.
 * Source    Gilmer et al. 2017. */
#include "autograd/ops/edge_sums.h"
#include "halfgraph/ops_graph.h"

static struct hg__scatter_attr attr_of(const struct hg__node *node)
{
	struct hg__scatter_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr;
}

static hg_status infer(struct hg__infer *s)
{
	const struct hg__scatter_attr attr = attr_of(s->node);
	HG__TRY(hg__want_attr(s, attr.end == HG_END_SOURCE || attr.end == HG_END_DESTINATION, "end",
	                      (double)attr.end, "one of hg_end"));
	HG__TRY(hg__want_attr(s, (int)attr.reduce >= HG_REDUCE_SUM && (int)attr.reduce <= HG_REDUCE_MAX,
	                      "reduce", (double)attr.reduce, "one of hg_reduce"));
	HG__TRY(hg__want_state(s, 0, "Z"));
	HG__TRY(hg__want_equal(s, "Z", "rows", s->in[0].rows, "graph", "edges",
	                       hg_graph_edges(s->node->graph)));
	const int64_t nodes = hg__nodes_of_end(s->node->graph, attr.end);
	s->out = hg__shape_of(nodes, s->in[0].cols, s->state);
	s->grads = 1u;
	if (attr.reduce == HG_REDUCE_MAX) {
		s->aux[0] = hg__shape_of(nodes, s->in[0].cols, HG_I32);
		s->saves = HG__SAVE_AUX(0);
	}
	return HG_OK;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const struct hg__scatter_attr attr = attr_of(r->node);
	const double degree = hg__degree_of_end(r, attr.end), z = r->in[0].largest;
	if (attr.reduce == HG_REDUCE_MAX) {
		hg__because(how, "a maximum: |Z| %.3g", z);
		return hg__at_most(z);
	}
	const struct hg__edge_sums s = {.alpha = 1.0,
	                                .terms = degree,
	                                .mass = degree,
	                                .entry = 1.0,
	                                .norm =
	                                    attr.reduce == HG_REDUCE_MEAN ? fmin(degree, 1.0) : degree,
	                                .of = r->shape[0].dtype};
	const struct hg__known out = hg__at_most(hg__bound_edge_sums(&s, z, &how->rounding));
	how->rounding.depth = degree + 8.0;
	hg__because(how,
	            attr.reduce == HG_REDUCE_MEAN ? "a mean of %.0f edges at most x |Z| %.3g"
	                                          : "sum of at most %.0f edges x |Z| %.3g",
	            degree, z);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	/* 1/d <= 1 */
	grad->largest[0] = r->dout;
}

/* The kernels read the edges of sources in both directions. */
static int transpose(const struct hg__node *node, int back)
{
	(void)back;
	return attr_of(node).end == HG_END_SOURCE;
}

static hg_status sums_of(const struct hg__call *c, struct hg__aggregate *a)
{
	const struct hg__scatter_attr attr = attr_of(c->node);
	return hg__edges_summed(c, attr.end, attr.reduce == HG_REDUCE_MEAN, c->in[0], c->out,
	                        hg__rescaled(c, 0, 1.0f), a);
}

/* A maximum is computed from the numbers as they are stored, and multiplied afterwards. */
static int rescales(const struct hg__node *node)
{
	return attr_of(node).reduce != HG_REDUCE_MAX;
}

static hg_status forward(const struct hg__call *c)
{
	struct hg__aggregate a;
	HG__TRY(sums_of(c, &a));
	if (attr_of(c->node).reduce != HG_REDUCE_MAX)
		return hg__aggregate(c, &a);
	const struct hg__spmm_max_args max = {
	    .csr = *a.csr, .x = c->in[0], .y = c->out, .arg = c->aux[0]};
	HG__TRY(HG__RUN(c, spmm_max, &max));
	HG__TRY(hg__restore(c, 0, c->out));
	const struct hg__guard_args guard = {.x = c->out, .overflow = c->overflow};
	return c->overflow.word ? HG__RUN(c, guard, &guard) : HG_OK;
}

static hg_status backward(const struct hg__call *c)
{
	const struct hg__scatter_attr attr = attr_of(c->node);
	if (!c->din[0].data)
		return HG_OK;
	struct hg__gather_args args = {
	    .csr = *hg__csr_of_end(c, attr.end), .x = c->dout, .z = c->din[0], .alpha = 1.0f};
	if (attr.reduce == HG_REDUCE_MAX)
		args.arg = c->aux[0];
	if (attr.reduce == HG_REDUCE_MEAN)
		HG__TRY(hg__inverse_degrees(c, attr.end, &args.scale));
	return HG__RUN(c, gather, &args);
}

static hg_status probe(const struct hg__call *c, int backward, struct hg__probe *p)
{
	struct hg__aggregate a;
	if (backward || attr_of(c->node).reduce == HG_REDUCE_MAX)
		return HG_OK;
	HG__TRY(sums_of(c, &a));
	return hg__probe_edges(c, &a, p);
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		struct hg__scatter_attr attr;
		int64_t wider, rows; /* the last: rows too many */
		int integer, no_graph;
	} rows[] = {
	    {"sum", HG_OK, {HG_END_DESTINATION, HG_REDUCE_SUM}, 0, 0, 0, 0},
	    {"mean", HG_OK, {HG_END_DESTINATION, HG_REDUCE_MEAN}, 0, 0, 0, 0},
	    {"max", HG_OK, {HG_END_DESTINATION, HG_REDUCE_MAX}, 0, 0, 0, 0},
	    {"sum, one column more", HG_OK, {HG_END_DESTINATION, HG_REDUCE_SUM}, 1, 0, 0, 0},
	    {"sum at sources", HG_OK, {HG_END_SOURCE, HG_REDUCE_SUM}, 0, 0, 0, 0},
	    {"mean at sources, three columns more", HG_OK, {HG_END_SOURCE, HG_REDUCE_MEAN}, 3, 0, 0, 0},
	    {"max at sources, eight columns more", HG_OK, {HG_END_SOURCE, HG_REDUCE_MAX}, 8, 0, 0, 0},
	    {"Z has a row too many", HG_ERR_SHAPE, {HG_END_DESTINATION, HG_REDUCE_SUM}, 0, 1, 0, 0},
	    {"Z of integers", HG_ERR_DTYPE, {HG_END_DESTINATION, HG_REDUCE_SUM}, 0, 0, 1, 0},
	    {"no such end", HG_ERR_ARG, {(hg_end)2, HG_REDUCE_SUM}, 0, 0, 0, 0},
	    {"no such reduction", HG_ERR_ARG, {HG_END_DESTINATION, (hg_reduce)3}, 0, 0, 0, 0},
	    {"no graph", HG_ERR_ARG, {HG_END_DESTINATION, HG_REDUCE_SUM}, 0, 0, 0, 1},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	hg__sample_begin(s, rows[i].what, rows[i].expect, !rows[i].no_graph);
	hg__sample_attr(s, &rows[i].attr, sizeof rows[i].attr);
	if (rows[i].integer)
		hg__sample_integer(s, x->m, x->d);
	else
		hg__sample_normal(s, x->m + rows[i].rows, x->d + rows[i].wider, x->state);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	cost->bytes = hg__mat_bytes(&c->in[0]) + hg__mat_bytes(&c->out) + hg__mat_bytes(&c->aux[0]) +
	              (double)(c->out.rows + 1) * (double)sizeof(int64_t) +
	              (double)c->in[0].rows * (double)sizeof(int32_t);
	cost->flops = (double)c->in[0].rows * (double)c->in[0].cols;
}

/* A maximum is not a sum. */
static hg_status sum(const struct hg__call *c, const struct hg__element *e, struct hg__terms *t)
{
	if (e->operand >= 0 || attr_of(c->node).reduce == HG_REDUCE_MAX)
		return HG_OK;
	t->over = HG__OVER_EDGES;
	t->i = e->row;
	t->j = e->col;
	HG__TRY(sums_of(c, &t->edges));
	t->halves = hg__sums_halves(c, &t->edges);
	return HG_OK;
}

static const char *mean(const struct hg__node *node)
{
	const struct hg__scatter_attr attr = attr_of(node);
	if (attr.reduce != HG_REDUCE_SUM)
		return NULL;
	return attr.end == HG_END_SOURCE
	           ? "hg_scatter(tape, graph, z, HG_END_SOURCE, HG_REDUCE_MEAN)"
	           : "hg_scatter(tape, graph, z, HG_END_DESTINATION, HG_REDUCE_MEAN)";
}

static const struct hg__about about = {.traits = HG__PROPORTIONAL | HG__NEIGHBOURS | HG__SUMS_EDGES,
                                       .rows = HG__ROWS_NODES,
                                       .sum = sum,
                                       .mean = mean};

const struct hg__op hg__op_scatter = {
    .name = "scatter",
    .words = "sum over the edges of a node",
    .traits = HG__GRAPH | HG__TRANSPOSE | HG__GUARDS_STORE,
    .min_in = 1,
    .max_in = 1,
    .same = 1u,
    .edges = 1u,
    .rescaled = 1u,
    .rescales = rescales,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .transpose = transpose,
    .sample = sample,
    .cost = cost,
    .probe = probe,
    .about = &about,
};

hg_var hg_scatter(hg_tape *tape, hg_graph *graph, hg_var z, hg_end end, hg_reduce reduce)
{
	const struct hg__scatter_attr attr = {end, reduce};
	return hg__record(tape, &hg__op_scatter, graph, &z, 1, NULL, &attr, sizeof attr);
}
