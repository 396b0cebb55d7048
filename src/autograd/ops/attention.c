/* Attention: aggregation whose weights are a softmax of scores over the edges of each row.
 *
 *     Y[i, c] = sum over edges e = (i, j) of mask[e, k] p[e, k] V[j, c],  k the head of column c
 *     p[e, k] = w_e exp(s[e, k]) / sum over the edges f of row i of w_f exp(s[f, k])
 *
 * The scores s, the masks and w are those of kernels/attention.h. Every pass computes them again
 * from both ends of an edge, so no number is kept for an edge.
 *
 * Shapes    G: [rows, cols], m edges.  q: [rows, h q].  k: [cols, h q].  v: [cols, h d].  c: ADD_V2
 *           [1, h q], COSINE [1, h] or [1, 1].  bias: [m, h].  Y: [rows, h d], created.
 *           What may be absent, and where it then is: halfgraph/ops_attention.h.
 *           Kept: Y;  f32 [rows, h], the log of the sum of w exp(s);  with ADD [rows, 2 h], where
 *           the last h columns hold the sum of p over the edges with q + k + bias > 0, and Y+
 *           [rows, h d], the terms of Y of these edges.
 * Dtypes    q, k, v, bias, Y: state.  c: f32.  Scores, weights and sums are f32; Y and Y+ are
 *           narrowed once.
 * Range     max|Y| <= kept max|V|, kept = 1 / (1 - dropout) while training: the weights of a row
 *           are divided by their own sum. Proved for all scores that are finite in f32.
 * Error     that of halfgraph/ops_attention.h.
 * Gradient  see kernels/attention.h. D[i, k] = <dY_i, Y_i> uses Y as stored, which adds
 *           u16 |dY||Y| to what is multiplied by p; with ADD the gradient of q is
 *           (1 - slope) (<dY, Y+> - D p+), because the derivatives of the scores of a row add up
 *           to 0. The bounds are in attention_range.c.
 * Cost      m (h q + h d) elements of state, one of the two if V is K, rows h (q + 2 d), the CSR;
 *           2 m h (q + d) flops.
 * Errors    HG_ERR_SHAPE lengths or widths do not fit, heads does not divide them;  HG_ERR_ARG no
 *           graph, a negative weight of the graph, q or a needed c or v is missing, c where the
 *           score has none, a constant out of its range;  HG_ERR_DTYPE.
 * Source    Velickovic et al. 2018 (ADD), Dwivedi, Bresson 2021 (DOT), Thekumparampil et al. 2018
 *           (COSINE), Brody, Alon, Yahav 2022 (ADD_V2). */
#include "autograd/ops/attention.h"

#include "autograd/recording.h"
#include "halfgraph/ops_attention.h"

enum {
	Q = ATTENTION_Q,
	K = ATTENTION_K,
	V = ATTENTION_V,
	C = ATTENTION_C,
	BIAS = ATTENTION_BIAS,
	LOG_SUM = ATTENTION_LOG_SUM,
	PLUS = ATTENTION_PLUS
};

/* ---- recording ---- */

static hg_status infer_v(struct hg__infer *s, const struct hg__attention_attr *a)
{
	if (!s->in[V].present)
		return a->score == HG_SCORE_ADD ? hg__want_present(s, V, "v") : HG_OK;
	HG__TRY(hg__want_state(s, V, "v"));
	HG__TRY(hg__want_equal(s, "v", "rows", s->in[V].rows, "graph", "columns",
	                       hg_graph_cols(s->node->graph)));
	return hg__want_heads(s, a->heads, V, "v");
}

static hg_status infer(struct hg__infer *s)
{
	const struct hg__attention_attr a = hg__attention_attr(s->node);
	HG__TRY(hg__attention_infer(s));
	HG__TRY(infer_v(s, &a));
	const struct hg__attention_layout layout =
	    hg__attention_layout(a.score, s->in[K].present, s->in[V].present);
	const struct hg__attention_place *v = &layout.side[SIDE_V];
	s->out = hg__shape_of(s->in[Q].rows,
	                      s->in[v->operand].cols / (v->operand == Q ? layout.parts : 1), s->state);
	for (int i = Q; i <= BIAS; i++)
		if (s->in[i].present) {
			s->grads |= 1u << i;
			s->saves |= HG__SAVE_IN(i);
		}
	s->saves |= HG__SAVE_OUT | HG__SAVE_AUX(LOG_SUM);
	if (a.score == HG_SCORE_ADD && s->mode == HG_TRAIN) {
		s->aux[PLUS] = s->out;
		s->saves |= HG__SAVE_AUX(PLUS);
	}
	return HG_OK;
}

/* ---- running ---- */

hg_status hg__attention_forward(const struct hg__call *c, struct hg__mat y, struct hg__mat ended,
                                const struct hg__sum_epilogue *epilogue)
{
	struct hg__attention_args args = {.csr = c->csr,
	                                  .y = y,
	                                  .log_sum = c->aux[LOG_SUM],
	                                  .plus = c->aux[PLUS],
	                                  .ended = ended,
	                                  .epilogue = *epilogue,
	                                  .overflow = c->overflow};
	HG__TRY(hg__attention_of(c, &args.of));
	return HG__RUN(c, attention, &args);
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__mat absent = {0};
	const struct hg__sum_epilogue nothing = {.beta = 0.0f};
	return hg__attention_forward(c, c->out, absent, &nothing);
}

hg_status hg__attention_backward(const struct hg__call *c, struct hg__mat y,
                                 const struct hg__epilogue_back_args *end)
{
	const struct hg__attention_layout layout = hg__attention_layout_of(c->node);
	struct hg__mat gradient[SIDES];
	hg__attention_sides(&layout, c->din, gradient);
	struct hg__attention_back_args args = {.csr = c->csr,
	                                       .csr_t = c->csr_t,
	                                       .y = y,
	                                       .log_sum = c->aux[LOG_SUM],
	                                       .plus = c->aux[PLUS],
	                                       .dy = c->dout,
	                                       .dq = gradient[SIDE_Q],
	                                       .dk = gradient[SIDE_K],
	                                       .dv = gradient[SIDE_V],
	                                       .dc = c->din[C],
	                                       .dbias = c->din[BIAS]};
	if (end)
		args.dy = end->dx.cols ? end->dx : end->dy;
	if (end && (end->dx.data || end->db.data)) {
		args.ended = end->y;
		args.dended = end->dy;
		args.db = end->db;
		args.act_drop = end->act_drop;
	}
	HG__TRY(hg__attention_of(c, &args.of));
	return HG__RUN(c, attention_back, &args);
}

static hg_status backward(const struct hg__call *c)
{
	return hg__attention_backward(c, c->out, NULL);
}

/* Kernels of ADD are done with Y when they write the gradient of V. */
unsigned hg__attention_replaces(const struct hg__node *node, int i, unsigned y)
{
	return i == V && hg__attention_attr(node).score == HG_SCORE_ADD ? y : 0u;
}

static unsigned replaces(const struct hg__node *node, int i)
{
	return hg__attention_replaces(node, i, HG__SAVE_OUT);
}

void hg__attention_cost(const struct hg__call *c, struct hg__cost *cost)
{
	const struct hg__attention_layout layout = hg__attention_layout_of(c->node);
	const double size = (double)hg_dtype_size(c->out.dtype), m = (double)c->csr.m;
	struct hg__mat side[SIDES];
	hg__attention_sides(&layout, c->in, side);
	const struct hg__attention_place *of_k = &layout.side[SIDE_K], *of_v = &layout.side[SIDE_V];
	const int same = of_k->operand == of_v->operand && of_k->part == of_v->part;
	const double k = (double)side[SIDE_K].cols, v = (double)side[SIDE_V].cols,
	             once = same ? k : k + v;
	cost->bytes = m * once * size + hg__mat_bytes(&side[SIDE_Q]) + hg__mat_bytes(&c->out) +
	              hg__mat_bytes(&c->aux[PLUS]) + hg__mat_bytes(&c->aux[LOG_SUM]) +
	              hg__mat_bytes(&c->in[BIAS]) + hg__csr_bytes(&c->csr);
	cost->flops = 2.0 * m * (k + v);
}

/* Only ADD without dropout uses tiles (cuda/attention_tiles.cuh). */
int64_t hg__attention_staged(const struct hg__node *node, hg_mode mode, int64_t cols)
{
	const struct hg__attention_attr a = hg__attention_attr(node);
	const int drops = mode == HG_TRAIN && a.dropout > 0.0f;
	return a.score == HG_SCORE_ADD && !drops ? hg__attention_staging(cols, a.heads) : 0;
}

/* ---- for the doctor ---- */

/* The probability that an edge's weight is kept. */
static double keep(const struct hg__node *node)
{
	return 1.0 / (double)hg__attention_kept(hg__attention_attr(node).dropout);
}

/* Each matrix has the columns of all heads, one behind the other. Those of q and k that a head has
 * several of belong to a head, but not to one end of edges alone. */
int hg__attention_heads(const struct hg__node *node, int operand, int64_t cols,
                        struct hg__heads_in *in)
{
	const struct hg__attention_attr a = hg__attention_attr(node);
	const int parts = operand == Q ? hg__attention_layout_of(node).parts : 1;
	in->heads = a.heads;
	in->each = cols / a.heads / parts;
	if (a.score == HG_SCORE_ADD && (operand == Q || operand == K))
		in->of = operand == K ? HG__OF_SOURCE : parts == 2 ? HG__OF_BOTH : HG__OF_DESTINATION;
	return in->each > 0 && operand < C;
}

/* What a column of an operand is used as; *j: its number among the columns of that. */
static unsigned uses_of(const struct hg__call *c, const struct hg__element *e, int64_t *j)
{
	static const enum hg__attended_as as[SIDES] = {
	    [SIDE_Q] = HG__AS_Q, [SIDE_K] = HG__AS_K, [SIDE_V] = HG__AS_V};
	const struct hg__attention_layout layout = hg__attention_layout_of(c->node);
	const int64_t width = c->in[e->operand].cols / (e->operand == Q ? layout.parts : 1);
	unsigned uses = 0;
	for (int side = 0; side < SIDES && width; side++)
		if (layout.side[side].operand == e->operand && layout.side[side].part == e->col / width)
			uses |= (unsigned)as[side];
	*j = width ? e->col % width : 0;
	return uses;
}

/* The gradients of c and bias are no sums over the edges of one node. */
hg_status hg__attention_sum(const struct hg__call *c, const struct hg__element *e, struct hg__mat y,
                            struct hg__mat dy, struct hg__terms *t)
{
	struct hg__attended attended = {.log_sum = c->aux[LOG_SUM],
	                                .y = y,
	                                .dy = dy,
	                                .csr = &c->csr,
	                                .csr_t = &c->csr_t,
	                                .as = HG__AS_RESULT};
	int64_t j = e->col;
	if (e->operand >= 0)
		attended.as = uses_of(c, e, &j);
	if (!attended.as)
		return HG_OK;
	HG__TRY(hg__attention_of(c, &attended.of));
	*t = (struct hg__terms){.over = HG__OVER_ATTENTION, .attention = attended, .i = e->row, .j = j};
	return HG_OK;
}

static hg_status sum(const struct hg__call *c, const struct hg__element *e, struct hg__terms *t)
{
	return hg__attention_sum(c, e, c->out, c->dout, t);
}

static const struct hg__about about = {.traits = HG__NEIGHBOURS,
                                       .rows = HG__ROWS_NODES,
                                       .noise = 0x1p-20, /* as in a softmax */
                                       .sum = sum,
                                       .constants = hg__attention_constants,
                                       .heads = hg__attention_heads,
                                       .kept = keep};

const struct hg__op hg__op_attention = {
    .name = "attention",
    .words = "weighted mean over neighbours, by attention",
    .traits = HG__GRAPH | HG__TRANSPOSE | HG__UNIT_EDGES | HG__RANDOM | HG__GUARDS_STORE |
              HG__COUNTS_EDGES | HG__DENSE | HG__TILES,
    .min_in = 1,
    .max_in = 5,
    .same = 1u << Q | 1u << K | 1u << V | 1u << BIAS,
    .edges = 1u << BIAS,
    .one_type = 1u << Q | 1u << K | 1u << V | 1u << BIAS,
    .infer = infer,
    .range = hg__attention_range,
    .range_back = hg__attention_range_back,
    .forward = forward,
    .backward = backward,
    .replaces = replaces,
    .prepare = hg__attention_prepare,
    .staged = hg__attention_staged,
    .sample = hg__attention_sample,
    .cost = hg__attention_cost,
    .about = &about,
};

/* ---- the public function ---- */

hg_var hg_attention(hg_tape *tape, hg_graph *graph, const hg_attention_operands *operands,
                    const hg_attention_config *config)
{
	struct hg__attention_attr attr;
	if (!hg__tape_open(tape, "attention") ||
	    hg__attention_config(tape, "attention", operands, config, &attr) < 0)
		return hg__tape_var(tape, -1);
	const hg_var in[] = {operands->q, operands->k, operands->v, operands->c, operands->bias};
	return hg__record(tape, &hg__op_attention, graph, in, 5, NULL, &attr, sizeof attr);
}
