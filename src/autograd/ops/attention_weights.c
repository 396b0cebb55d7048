/* The weights of attention, one for each edge and head, for users who look at them.
 *
 *     P[e, k] = w_e exp(s[e, k]) / sum over the edges f of row i of w_f exp(s[f, k])
 *
 * for edge e = (i, j): p of attention.c, without dropout.
 *
 * Shapes    As in attention.c; v is not read.  P: [m, h], created.
 * Dtypes    q, k, bias, P: state.  c: f32.  P is narrowed once.
 * Range     P in [0, 1]: proved for all scores that are finite in f32.
 * Error     that of halfgraph/ops_attention.h.
 * Gradient  none.
 * Cost      2 m h q elements of state, m h results, the CSR twice;  4 m h q flops.
 * Errors    those of attention.c.
 * Source    as attention.c. */
#include "autograd/ops/attention.h"

#include "autograd/recording.h"
#include "halfgraph/ops_attention.h"
#include "precision/bound.h"

static hg_status infer(struct hg__infer *s)
{
	HG__TRY(hg__attention_infer(s));
	s->out =
	    hg__shape_of(hg_graph_edges(s->node->graph), hg__attention_attr(s->node).heads, s->state);
	return HG_OK;
}

/* The weights of a row add up to 1 but for the roundings of exp's argument and of the store. */
static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__at_most(1.0);
	const double degree = (double)r->facts.max_row_degree;
	hg__on_the_way(&how->rounding, hg__attention_score(r, &how->rounding));
	out.row_sum =
	    fmin((1.0 + hg__attention_weight_error(r)) * hg__shares_sum(degree), 1.001 * degree);
	out.sign = 1;
	hg__because(how, "a share of its row: at most 1");
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	for (int i = 0; i < r->node->n_in; i++)
		grad->largest[i] = 0.0;
}

/* The attention kernel computes the log-sum-exp of each row. It is given a V without columns, so it
 * has no values to add up. */
static hg_status forward(const struct hg__call *c)
{
	struct hg__attention_args sums = {.csr = c->csr, .log_sum = c->aux[ATTENTION_LOG_SUM]};
	HG__TRY(hg__attention_of(c, &sums.of));
	sums.of.dropout.p = 0.0f;
	sums.of.v = hg__mat_cols(sums.of.k, 0, 0);
	sums.y = hg__mat_cols(sums.of.q, 0, 0);
	HG__TRY(HG__RUN(c, attention, &sums));
	const struct hg__attention_weights_args args = {
	    .csr = c->csr, .of = sums.of, .log_sum = sums.log_sum, .p = c->out};
	return HG__RUN(c, attention_weights, &args);
}

static hg_status backward(const struct hg__call *c)
{
	(void)c;
	return HG_OK;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	const int parts = hg__attention_layout_of(c->node).parts;
	const double gathered = (double)c->csr.m * (double)(c->in[ATTENTION_Q].cols / parts);
	cost->bytes = 2.0 * gathered * (double)hg_dtype_size(c->out.dtype) + hg__mat_bytes(&c->out) +
	              2.0 * hg__csr_bytes(&c->csr);
	cost->flops = 4.0 * gathered;
}

static const struct hg__about about = {.rows = HG__ROWS_EDGES,
                                       .constants = hg__attention_constants};

const struct hg__op hg__op_attention_weights = {
    .name = "attention_weights",
    .words = "weights of attention",
    .traits = HG__GRAPH | HG__COUNTS_EDGES,
    .min_in = 1,
    .max_in = 5,
    .same = 1u << ATTENTION_Q | 1u << ATTENTION_K | 1u << ATTENTION_V | 1u << ATTENTION_BIAS,
    .edges = 1u << ATTENTION_BIAS,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .prepare = hg__attention_prepare,
    .sample = hg__attention_weights_sample,
    .cost = cost,
    .about = &about,
};

hg_var hg_attention_weights(hg_tape *tape, hg_graph *graph, const hg_attention_operands *operands,
                            const hg_attention_config *config)
{
	struct hg__attention_attr attr;
	if (!hg__tape_open(tape, "attention_weights") ||
	    hg__attention_config(tape, "attention_weights", operands, config, &attr) < 0)
		return hg__tape_var(tape, -1);
	const hg_var in[] = {operands->q, operands->k, operands->v, operands->c, operands->bias};
	return hg__record(tape, &hg__op_attention_weights, graph, in, 5, NULL, &attr, sizeof attr);
}
