/* Reduction over the nodes of each graph of a batch.
 *
 *     Y[g, c] = sum, mean or maximum over the nodes i of graph g of X[i, c]
 *
 * Y is 0 if graph g has no node.
 *
 * Shapes    G: n nodes in b graphs.  X: [n, d].  Y: [b, d], created.  Saved for the backward
 *           pass of the maximum: arg i32 [b, d], the index of its row within the graph, or -1 if
 *           the graph has no node.
 * Dtypes    X, Y: state.  Sums and the division are f32; Y is narrowed once.
 * Range     max|Y| <= s max|X| for the sum, where the largest graph has s nodes; max|Y| <=
 *           max|X| for the mean and the maximum: proved for every batch.
 * Error     "sum narrowed once", depth s (+ 1 for the mean); 0 for the maximum.
 * Gradient  dX[i, c] = dY[g, c] for the sum; dY[g, c] / size of g for the mean; for the maximum
 *           dY[g, c] where i is the first row that attains it, else 0.  max|dX| <= max|dY|, for
 *           the mean divided by the size of the smallest graph that has nodes.
 * Cost      n d + b d elements;  n d flops.
 * Errors    HG_ERR_SHAPE rows(X) != n;  HG_ERR_DTYPE;  HG_ERR_ARG no graph, unknown reduction.
 * Source    Xu, Hu, Leskovec, Jegelka 2019. */
#include "autograd/about.h"
#include "autograd/opkit.h"
#include "halfgraph/ops_graph.h"

static hg_reduce reduce_of(const struct hg__node *node)
{
	struct hg__readout_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr.reduce;
}

static hg_status infer(struct hg__infer *s)
{
	const hg_reduce reduce = reduce_of(s->node);
	HG__TRY(hg__want_attr(s, (int)reduce >= HG_REDUCE_SUM && (int)reduce <= HG_REDUCE_MAX, "reduce",
	                      (double)reduce, "one of hg_reduce"));
	HG__TRY(hg__want_state(s, 0, "X"));
	HG__TRY(hg__want_equal(s, "X", "rows", s->in[0].rows, "graph", "rows",
	                       hg_graph_rows(s->node->graph)));
	const int64_t graphs = hg_graph_batch(s->node->graph);
	s->out = hg__shape_of(graphs, s->in[0].cols, s->state);
	s->grads = 1u;
	if (reduce == HG_REDUCE_MAX) {
		s->aux[0] = hg__shape_of(graphs, s->in[0].cols, HG_I32);
		s->saves = HG__SAVE_AUX(0);
	}
	return HG_OK;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const double gain = reduce_of(r->node) == HG_REDUCE_SUM ? (double)r->batch_max : 1.0;
	struct hg__known out = hg__at_most(hg__bound_mul(gain, r->in[0].largest));
	hg__on_the_way(&how->rounding, hg__bound_mul((double)r->batch_max, r->in[0].largest));
	hg__because(how,
	            gain > 1.0 ? "sum of at most %.0f nodes x |X| %.3g"
	                       : "%.0f x |X| %.3g: no larger than its largest term",
	            gain, r->in[0].largest);
	how->rounding.depth = (double)r->batch_max + 8.0;
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[0] = reduce_of(r->node) == HG_REDUCE_MEAN && r->batch_min > 0
	                       ? r->dout / (double)r->batch_min
	                       : r->dout;
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__readout_args args = {.ptr = c->batch_ptr,
	                                      .x = c->in[0],
	                                      .y = c->out,
	                                      .arg = c->aux[0],
	                                      .reduce = reduce_of(c->node)};
	return HG__RUN(c, readout, &args);
}

static hg_status backward(const struct hg__call *c)
{
	if (!c->din[0].data)
		return HG_OK;
	const struct hg__readout_back_args args = {.ptr = c->batch_ptr,
	                                           .id = c->batch_id,
	                                           .dy = c->dout,
	                                           .arg = c->aux[0],
	                                           .dx = c->din[0],
	                                           .reduce = reduce_of(c->node)};
	return HG__RUN(c, readout_back, &args);
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		struct hg__readout_attr attr;
		int64_t wider, rows; /* the last: rows too many */
		int integer, no_graph;
	} rows[] = {
	    {"sum", HG_OK, {HG_REDUCE_SUM}, 0, 0, 0, 0},
	    {"mean", HG_OK, {HG_REDUCE_MEAN}, 0, 0, 0, 0},
	    {"max", HG_OK, {HG_REDUCE_MAX}, 0, 0, 0, 0},
	    {"sum, one column more", HG_OK, {HG_REDUCE_SUM}, 1, 0, 0, 0},
	    {"max, three columns more", HG_OK, {HG_REDUCE_MAX}, 3, 0, 0, 0},
	    {"X has a row too many", HG_ERR_SHAPE, {HG_REDUCE_SUM}, 0, 1, 0, 0},
	    {"X of integers", HG_ERR_DTYPE, {HG_REDUCE_SUM}, 0, 0, 1, 0},
	    {"no such reduction", HG_ERR_ARG, {(hg_reduce)3}, 0, 0, 0, 0},
	    {"no graph", HG_ERR_ARG, {HG_REDUCE_MEAN}, 0, 0, 0, 1},
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
	cost->bytes = hg__mat_bytes(&c->in[0]) + hg__mat_bytes(&c->out) + hg__mat_bytes(&c->aux[0]);
	cost->flops = (double)c->in[0].rows * (double)c->in[0].cols;
}

/* Rows first .. first + count - 1 are the nodes of a graph. A maximum is not a sum. */
static hg_status sum(const struct hg__call *c, const struct hg__element *e, struct hg__terms *t)
{
	const hg_reduce reduce = reduce_of(c->node);
	int64_t ptr[2];
	if (e->operand >= 0 || reduce == HG_REDUCE_MAX)
		return HG_OK;
	HG__TRY(c->ctx->backend->copy_out(c->ctx, ptr, c->batch_ptr + e->row, sizeof ptr));
	const int64_t n = ptr[1] - ptr[0];
	*t = (struct hg__terms){.over = HG__OVER_ROWS,
	                        .a = c->in[0],
	                        .i = e->col,
	                        .first = ptr[0],
	                        .count = n,
	                        .factor = reduce == HG_REDUCE_MEAN ? 1.0 / (double)n : 1.0};
	return HG_OK;
}

static const struct hg__about about = {.rows = HG__ROWS_GRAPHS, .sum = sum};

const struct hg__op hg__op_readout = {
    .name = "readout",
    .words = "sum or mean over the nodes of a graph",
    .traits = HG__GRAPH | HG__BATCH | HG__SCATTERS,
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

hg_var hg_readout(hg_tape *tape, hg_graph *graph, hg_var x, hg_reduce reduce)
{
	const struct hg__readout_attr attr = {reduce};
	return hg__record(tape, &hg__op_readout, graph, &x, 1, NULL, &attr, sizeof attr);
}
