/* What attention and attention_weights have in common: where Q, K and V are, what the constants and
 * the operands must be, and what the kernels read. */
#include "autograd/ops/attention.h"

#include "autograd/recording.h"
#include "core/versioned.h"

enum { Q = ATTENTION_Q, K = ATTENTION_K, V = ATTENTION_V, C = ATTENTION_C, BIAS = ATTENTION_BIAS };

/* ---- where Q, K and V are ---- */

struct hg__attention_layout hg__attention_layout(hg_score score, int has_k, int has_v)
{
	struct hg__attention_layout layout = {.side = {{Q, 0}, {K, 0}, {V, 0}}, .parts = 1};
	if (!has_k && score == HG_SCORE_COSINE)
		layout.side[SIDE_K] = layout.side[SIDE_Q];
	else if (!has_k) {
		layout.side[SIDE_K] = (struct hg__attention_place){Q, 1};
		layout.parts = 2;
	}
	if (!has_v && !has_k && score == HG_SCORE_DOT) {
		layout.side[SIDE_V] = (struct hg__attention_place){Q, 2};
		layout.parts = 3;
	} else if (!has_v)
		layout.side[SIDE_V] = layout.side[SIDE_K];
	return layout;
}

void hg__attention_sides(const struct hg__attention_layout *layout,
                         const struct hg__mat of[HG__MAX_IN], struct hg__mat side[SIDES])
{
	for (int i = 0; i < SIDES; i++) {
		const struct hg__attention_place *at = &layout->side[i];
		const int64_t cols = of[at->operand].cols / (at->operand == Q ? layout->parts : 1);
		side[i] = hg__mat_cols(of[at->operand], at->part * cols, cols);
	}
}

struct hg__attention_layout hg__attention_layout_of(const struct hg__node *node)
{
	return hg__attention_layout(hg__attention_attr(node).score, node->in[K] >= 0, node->in[V] >= 0);
}

/* ---- checks ---- */

static const char *const score_name[HG_SCORE_COUNT] = {
    [HG_SCORE_ADD] = "ADD",
    [HG_SCORE_DOT] = "DOT",
    [HG_SCORE_COSINE] = "COSINE",
    [HG_SCORE_ADD_V2] = "ADD_V2",
};

static hg_status want_constants(const struct hg__infer *s, const struct hg__attention_attr *a)
{
	HG__TRY(hg__want_attr(s, (int)a->score >= 0 && a->score < HG_SCORE_COUNT, "score",
	                      (double)a->score, "one of hg_score"));
	HG__TRY(hg__want_attr(s, a->heads >= 1 && a->heads <= HG_ATTENTION_HEADS, "heads",
	                      (double)a->heads, "1 <= heads <= 16"));
	HG__TRY(hg__want_attr(s, a->slope >= 0.0f && a->slope <= 1.0f, "slope", (double)a->slope,
	                      "0 <= slope <= 1"));
	HG__TRY(hg__want_attr(s, isfinite(a->scale), "scale", (double)a->scale, "a finite number"));
	return hg__want_attr(s, hg__attention_drops(a->dropout), "dropout", (double)a->dropout,
	                     "0 <= dropout < 1 - 2^-17");
}

/* The columns of operand i are a multiple of `parts` times heads. */
static hg_status want_parts(const struct hg__infer *s, int i, const char *name, int parts,
                            const char *what, int heads)
{
	const int64_t cols = s->in[i].cols;
	return cols % ((int64_t)parts * heads) == 0
	           ? HG_OK
	           : hg__infer_fail(s, HG_ERR_SHAPE,
	                            "%s has %lld columns, expected a multiple of %d x heads = %d, for "
	                            "%s",
	                            name, (long long)cols, parts, parts * heads, what);
}

static hg_status infer_q(struct hg__infer *s, const struct hg__attention_attr *a,
                         const struct hg__attention_layout *layout)
{
	static const char *const what[] = {"", "Q", "Q and K side by side", "Q, K and V side by side"};
	const hg_graph *graph = s->node->graph;
	HG__TRY(hg__want_state(s, Q, "q"));
	HG__TRY(hg__want_equal(s, "q", "rows", s->in[Q].rows, "graph", "rows", hg_graph_rows(graph)));
	if (layout->side[SIDE_K].operand == Q)
		HG__TRY(hg__want_equal(s, "q, which holds K,", "rows", s->in[Q].rows, "graph", "columns",
		                       hg_graph_cols(graph)));
	if (s->in[Q].cols == 0)
		return hg__infer_fail(s, HG_ERR_SHAPE, "q has no columns, expected %d or more",
		                      layout->parts * a->heads);
	if (a->score == HG_SCORE_ADD && s->in[Q].cols != (int64_t)layout->parts * a->heads)
		return hg__infer_fail(s, HG_ERR_SHAPE, "q has %lld columns, expected %d for %s",
		                      (long long)s->in[Q].cols, layout->parts * a->heads,
		                      what[layout->parts]);
	return want_parts(s, Q, "q", layout->parts, what[layout->parts], a->heads);
}

static hg_status infer_k(struct hg__infer *s, const struct hg__attention_layout *layout)
{
	if (!s->in[K].present)
		return HG_OK;
	HG__TRY(hg__want_state(s, K, "k"));
	HG__TRY(hg__want_equal(s, "k", "rows", s->in[K].rows, "graph", "columns",
	                       hg_graph_cols(s->node->graph)));
	return hg__want_equal(s, "k", "columns", s->in[K].cols, "Q", "columns",
	                      s->in[Q].cols / layout->parts);
}

static hg_status infer_c(struct hg__infer *s, const struct hg__attention_attr *a, int64_t width)
{
	if (!hg__attention_reads_c(a->score))
		return s->in[C].present
		           ? hg__infer_fail(s, HG_ERR_ARG, "c is given, and scores %s have no c",
		                            score_name[a->score])
		           : HG_OK;
	HG__TRY(hg__want_dtype(s, C, "c", HG_F32));
	if (a->score == HG_SCORE_ADD_V2)
		return hg__want_shape(s, C, "c", 1, width);
	return s->in[C].cols == 1 ? hg__want_shape(s, C, "c", 1, 1)
	                          : hg__want_shape(s, C, "c", 1, a->heads);
}

static hg_status want_counts(const struct hg__infer *s, const struct hg__attention_attr *a)
{
	float least = 0.0f, positive = 0.0f;
	if (a->weighted)
		HG__TRY(hg__graph_least_weight(s->node->graph, &least, &positive));
	return least >= 0.0f ? HG_OK
	                     : hg__infer_fail(s, HG_ERR_ARG,
	                                      "a weight of the graph is %g, expected weights >= 0, "
	                                      "which say how often an edge counts",
	                                      (double)least);
}

static hg_status infer_bias(struct hg__infer *s, int heads)
{
	if (!s->in[BIAS].present)
		return HG_OK;
	HG__TRY(hg__want_state(s, BIAS, "bias"));
	return hg__want_shape(s, BIAS, "bias", hg_graph_edges(s->node->graph), heads);
}

hg_status hg__attention_infer(struct hg__infer *s)
{
	const struct hg__attention_attr a = hg__attention_attr(s->node);
	HG__TRY(want_constants(s, &a));
	HG__TRY(want_counts(s, &a));
	const struct hg__attention_layout layout =
	    hg__attention_layout(a.score, s->in[K].present, s->in[V].present);
	HG__TRY(infer_q(s, &a, &layout));
	HG__TRY(infer_k(s, &layout));
	HG__TRY(infer_c(s, &a, s->in[Q].cols / layout.parts));
	HG__TRY(infer_bias(s, a.heads));
	s->aux[ATTENTION_LOG_SUM] =
	    hg__shape_of(s->in[Q].rows, (a.score == HG_SCORE_ADD ? 2 : 1) * a.heads, HG_F32);
	return HG_OK;
}

/* ---- what the kernels read ---- */

/* How often each edge counts; NULL: once. */
static hg_status weight_of(const struct hg__call *c, const void **weight)
{
	*weight = NULL;
	return hg__attention_attr(c->node).weighted ? hg__graph_weight(c->node->graph, HG_F32, weight)
	                                            : HG_OK;
}

hg_status hg__attention_prepare(const struct hg__call *c)
{
	const void *weight = NULL;
	return weight_of(c, &weight);
}

hg_status hg__attention_of(const struct hg__call *c, struct hg__attention *of)
{
	const struct hg__attention_attr a = hg__attention_attr(c->node);
	const struct hg__attention_layout layout = hg__attention_layout_of(c->node);
	const void *weight = NULL;
	struct hg__mat side[SIDES];
	HG__TRY(weight_of(c, &weight));
	hg__attention_sides(&layout, c->in, side);
	*of = (struct hg__attention){.score = a.score,
	                             .heads = a.heads,
	                             .slope = a.slope,
	                             .scale = a.scale,
	                             .q = side[SIDE_Q],
	                             .k = side[SIDE_K],
	                             .v = side[SIDE_V],
	                             .c = c->in[C],
	                             .bias = c->in[BIAS],
	                             .weight = weight,
	                             .dropout = {.p = c->mode == HG_TRAIN ? a.dropout : 0.0f,
	                                         .key = c->node->rng_key,
	                                         .step = c->step}};
	return HG_OK;
}

/* ---- constants ---- */

int hg__attention_constants(const struct hg__node *node, struct hg__named *named)
{
	const struct hg__attention_attr a = hg__attention_attr(node);
	int count = 0;
	if (hg__attention_is_leaky(a.score))
		named[count++] = (struct hg__named){"slope", (double)a.slope};
	if (a.score == HG_SCORE_DOT)
		named[count++] = (struct hg__named){"scale", (double)a.scale};
	if (a.dropout > 0.0f)
		named[count++] = (struct hg__named){"dropout", (double)a.dropout};
	return count;
}

hg_status hg__attention_config(hg_tape *tape, const char *op, const hg_attention_operands *operands,
                               const hg_attention_config *config, struct hg__attention_attr *attr)
{
	hg_attention_config own = HG_ATTENTION_CONFIG_INIT;
	if (!operands)
		return hg__tape_fail(tape, HG_ERR_ARG, "%s: operands is NULL", op);
	if (config && !hg__struct_read(&own, sizeof own, config))
		return hg__tape_fail(tape, HG_ERR_ARG,
		                     "%s: config->size is %zu, expected sizeof(hg_attention_config) = %zu "
		                     "(start from HG_ATTENTION_CONFIG_INIT), or a field unknown to this "
		                     "version is used",
		                     op, config->size, sizeof own);
	*attr = (struct hg__attention_attr){.score = own.score,
	                                    .heads = own.heads,
	                                    .weighted = own.weighted != 0,
	                                    .slope = own.slope,
	                                    .scale = own.scale,
	                                    .dropout = own.dropout};
	return HG_OK;
}
