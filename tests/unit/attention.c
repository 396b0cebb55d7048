/* hg_attention: what it refuses and what it says, that it needs no map of edges unless edges have
 * values, and that it computes what the ops of GAT compute one by one. */
#include <math.h>

#include "autograd/attr.h"
#include "autograd/op.h"
#include "core/graph.h"
#include "precision/bound.h"
#include "unit/tape.h"

enum { NODES = 40, HEADS = 3, WIDTH = 5, EDGES = 120 };

/* Node 0 has many edges, the last nodes have none; some edges are duplicates. */
static struct coo edges(void)
{
	struct coo list = coo_empty(NODES, NODES);
	for (int k = 0; k < EDGES; k++)
		coo_add(&list, k % 3 ? test_below(NODES - 4) : 0, test_below(NODES - 4));
	return list;
}

static hg_attention_operands no_operands(void)
{
	const hg_attention_operands none = {HG_NONE, HG_NONE, HG_NONE, HG_NONE, HG_NONE};
	return none;
}

static hg_var input(struct bench *b, hg_dtype dtype, int64_t rows, int64_t cols)
{
	return hg_tape_input(b->tape, random_tensor(b, dtype, rows, cols, 0.5), "operand", 8.0);
}

/* ---- mistakes ---- */

/* The columns of the operands, 0: none; and a part of the message. */
struct mistake {
	hg_score score;
	int heads, q, k, v, c, bias;
	float slope, scale, dropout;
	hg_status status;
	const char *says;
};

static void refuse(const struct mistake *m)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
	b.graph = coo_graph(b.ctx, edges());
	hg_attention_config config = HG_ATTENTION_CONFIG_INIT;
	hg_attention_operands in = no_operands();
	config.score = m->score;
	config.heads = m->heads;
	config.slope = m->slope;
	config.scale = m->scale;
	config.dropout = m->dropout;
	in.q = m->q ? input(&b, HG_F16, NODES, m->q) : HG_NONE;
	in.k = m->k ? input(&b, HG_F16, NODES, m->k) : HG_NONE;
	in.v = m->v ? input(&b, HG_F16, NODES, m->v) : HG_NONE;
	in.c = m->c ? input(&b, HG_F32, 1, m->c) : HG_NONE;
	in.bias = m->bias ? input(&b, HG_F16, EDGES, m->bias) : HG_NONE;
	CHECK(hg_attention(b.tape, b.graph, &in, &config).id < 0);
	CHECK_STATUS(hg_tape_status(b.tape), m->status);
	CHECK_CONTAINS(hg_context_error(b.ctx), m->says);
	CHECK_CONTAINS(hg_context_error(b.ctx), "attention: ");
	bench_close(&b);
}

static void mistakes_are_refused_with_what_was_found(void)
{
	static const struct mistake mistakes[] = {
	    {(hg_score)7, 1, 1, 1, 4, 0, 0, 0.2f, 1, 0, HG_ERR_ARG, "score is 7, expected one of"},
	    {HG_SCORE_ADD, 0, 1, 1, 4, 0, 0, 0.2f, 1, 0, HG_ERR_ARG, "heads is 0, expected 1 <= heads"},
	    {HG_SCORE_ADD, 17, 17, 17, 34, 0, 0, 0.2f, 1, 0, HG_ERR_ARG, "heads is 17"},
	    {HG_SCORE_ADD, 2, 2, 2, 4, 0, 0, -0.1f, 1, 0, HG_ERR_ARG, "slope is -0.1, expected 0 <="},
	    {HG_SCORE_ADD, 2, 2, 2, 4, 0, 0, 1.5f, 1, 0, HG_ERR_ARG, "slope is 1.5"},
	    {HG_SCORE_DOT, 2, 4, 4, 4, 0, 0, 0.2f, NAN, 0, HG_ERR_ARG, "scale is"},
	    {HG_SCORE_ADD, 2, 2, 2, 4, 0, 0, 0.2f, 1, 1.0f, HG_ERR_ARG, "dropout is 1, expected"},
	    {HG_SCORE_ADD, 2, 2, 2, 4, 0, 0, 0.2f, 1, -0.5f, HG_ERR_ARG, "dropout is -0.5"},
	    {HG_SCORE_ADD, 2, 0, 2, 4, 0, 0, 0.2f, 1, 0, HG_ERR_ARG, "q is missing"},
	    {HG_SCORE_ADD, 2, 2, 2, 0, 0, 0, 0.2f, 1, 0, HG_ERR_ARG, "v is missing"},
	    {HG_SCORE_ADD, 2, 3, 2, 4, 0, 0, 0.2f, 1, 0, HG_ERR_SHAPE, "q has 3 columns, expected 2"},
	    {HG_SCORE_ADD, 2, 2, 0, 4, 0, 0, 0.2f, 1, 0, HG_ERR_SHAPE, "expected 4 for Q and K side"},
	    {HG_SCORE_ADD, 2, 2, 3, 4, 0, 0, 0.2f, 1, 0, HG_ERR_SHAPE, "k has 3 columns, Q has 2"},
	    {HG_SCORE_ADD, 2, 2, 2, 5, 0, 0, 0.2f, 1, 0, HG_ERR_SHAPE, "v has 5 columns, expected a"},
	    {HG_SCORE_DOT, 2, 5, 5, 4, 0, 0, 0.2f, 1, 0, HG_ERR_SHAPE, "q has 5 columns, expected a"},
	    {HG_SCORE_DOT, 2, 8, 0, 0, 0, 0, 0.2f, 1, 0, HG_ERR_SHAPE, "Q, K and V side by side"},
	    {HG_SCORE_DOT, 2, 4, 4, 4, 2, 0, 0.2f, 1, 0, HG_ERR_ARG, "scores DOT have no c"},
	    {HG_SCORE_ADD_V2, 2, 4, 4, 4, 0, 0, 0.2f, 1, 0, HG_ERR_ARG, "c is missing"},
	    {HG_SCORE_ADD_V2, 2, 4, 4, 4, 3, 0, 0.2f, 1, 0, HG_ERR_SHAPE,
	     "c is [1, 3], expected [1, 4]"},
	    {HG_SCORE_COSINE, 2, 4, 4, 4, 3, 0, 0.2f, 1, 0, HG_ERR_SHAPE,
	     "c is [1, 3], expected [1, 2]"},
	    {HG_SCORE_ADD, 2, 2, 2, 4, 0, 3, 0.2f, 1, 0, HG_ERR_SHAPE, "bias is [120, 3], expected"},
	    {HG_SCORE_ADD, -1, 2, 2, 4, 0, 0, 0.2f, 1, 0, HG_ERR_ARG, "heads is -1, expected 1 <="},
	    {HG_SCORE_ADD, 2, 2, 2, 4, 0, 0, NAN, 1, 0, HG_ERR_ARG, "slope is nan, expected 0 <="},
	    {HG_SCORE_ADD_V2, 2, 4, 4, 4, 4, 0, INFINITY, 1, 0, HG_ERR_ARG, "slope is inf"},
	    {HG_SCORE_DOT, 2, 4, 4, 4, 0, 0, 0.2f, INFINITY, 0, HG_ERR_ARG, "scale is inf"},
	    {HG_SCORE_DOT, 2, 4, 4, 4, 0, 0, 0.2f, 1, NAN, HG_ERR_ARG, "dropout is nan, expected 0"},
	    {HG_SCORE_DOT, 2, 4, 4, 4, 0, 0, 0.2f, 1, 2.0f, HG_ERR_ARG, "dropout is 2, expected 0"},
	    {HG_SCORE_DOT, 3, 6, 6, 4, 0, 0, 0.2f, 1, 0, HG_ERR_SHAPE, "v has 4 columns, expected a"},
	    {HG_SCORE_DOT, 2, 4, 6, 4, 0, 0, 0.2f, 1, 0, HG_ERR_SHAPE, "k has 6 columns"},
	    {HG_SCORE_COSINE, 2, 4, 4, 4, 0, 0, 0.2f, 1, 0, HG_ERR_ARG, "c is missing"},
	};
	for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
		refuse(&mistakes[i]);
}

/* A fresh tape for each mistake, because a tape keeps its first one. */
static void refuse_call(hg_graph *graph, struct bench *b, const hg_attention_operands *in,
                        const hg_attention_config *config, const char *says)
{
	hg_tape *tape = b->tape;
	CHECK(hg_attention(tape, graph, in, config).id < 0);
	CHECK_STATUS(hg_tape_status(tape), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(b->ctx), says);
	hg_tape_free(tape);
	CHECK_OK(hg_tape_create(b->params, HG_TRAIN, &b->tape));
}

static void mistakes_of_the_call_are_refused(void)
{
	struct bench b;
	struct coo list = edges();
	hg_attention_config config = HG_ATTENTION_CONFIG_INIT;
	hg_attention_operands in = no_operands();
	bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
	b.graph = coo_to_graph(b.ctx, &list);
	refuse_call(b.graph, &b, NULL, NULL, "operands is NULL");
	config.size = 3;
	refuse_call(b.graph, &b, &in, &config, "config->size is 3, expected");
	in.q = in.k = in.v = input(&b, HG_F16, NODES, 1);
	refuse_call(NULL, &b, &in, NULL, "graph is missing");
	coo_free(&list);
	bench_close(&b);
}

/* Operands of other types, with other rows, and of another tape. */
static void operands_that_do_not_fit_are_refused(void)
{
	static const struct {
		hg_dtype k, bias;
		int64_t q_rows, k_rows, v_rows, bias_rows;
		int other_tape;
		hg_status status;
		const char *says;
	} rows[] = {
	    {HG_F16, HG_F16, 0, 0, 0, 0, 0, HG_OK, ""},
	    {HG_I32, HG_F16, 0, 0, 0, 0, 0, HG_ERR_DTYPE, "attention: k has type i32"},
	    {HG_F16, HG_I32, 0, 0, 0, 0, 0, HG_ERR_DTYPE, "attention: bias has type i32"},
	    {HG_F16, HG_F16, 1, 0, 0, 0, 0, HG_ERR_SHAPE, "attention: q has 41 rows"},
	    {HG_F16, HG_F16, 0, -1, 0, 0, 0, HG_ERR_SHAPE, "attention: k has 39 rows"},
	    {HG_F16, HG_F16, 0, 0, -1, 0, 0, HG_ERR_SHAPE, "attention: v has 39 rows"},
	    {HG_F16, HG_F16, 0, 0, 0, 1, 0, HG_ERR_SHAPE, "attention: bias is [121, 3], expected"},
	    {HG_F16, HG_F16, 0, 0, 0, 0, 1, HG_ERR_ARG, "attention: "},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct bench b;
		hg_tape *other = NULL;
		hg_attention_config config = HG_ATTENTION_CONFIG_INIT;
		hg_attention_operands in = no_operands();
		bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
		b.graph = coo_graph(b.ctx, edges());
		CHECK_OK(hg_tape_create(b.params, HG_TRAIN, &other));
		config.heads = HEADS;
		in.q = input(&b, HG_F16, NODES + rows[i].q_rows, HEADS);
		in.k = hg_tape_input(rows[i].other_tape ? other : b.tape,
		                     tensor_of(&b, rows[i].k, NODES + rows[i].k_rows, HEADS, NULL, HG_F32),
		                     "k", 8.0);
		in.v = input(&b, HG_F16, NODES + rows[i].v_rows, HEADS * WIDTH);
		in.bias = hg_tape_input(
		    b.tape, tensor_of(&b, rows[i].bias, EDGES + rows[i].bias_rows, HEADS, NULL, HG_F32),
		    "bias", 8.0);
		CHECK((hg_attention(b.tape, b.graph, &in, &config).id < 0) == (rows[i].status < 0));
		CHECK_STATUS(hg_tape_status(b.tape), rows[i].status);
		if (rows[i].status < 0)
			CHECK_CONTAINS(hg_context_error(b.ctx), rows[i].says);
		hg_tape_free(other);
		bench_close(&b);
	}
}

/* A weight says how often an edge counts. 0 is a number of times, -1 is none. */
static void negative_weights_are_refused(void)
{
	for (int negative = 0; negative < 2; negative++) {
		struct bench b;
		struct coo list = coo_empty(3, 3);
		hg_attention_operands in = no_operands();
		hg_attention_config config = HG_ATTENTION_CONFIG_INIT;
		coo_add_weighted(&list, 0, 1, 2.0f);
		coo_add_weighted(&list, 0, 2, negative ? -0.25f : 0.0f);
		bench_open(&b, test_context(), hg_policy_fp32(), HG_TRAIN);
		b.graph = coo_graph(b.ctx, list);
		in.q = in.k = in.v = input(&b, HG_F32, 3, 1);
		CHECK(hg_attention(b.tape, b.graph, &in, NULL).id >= 0);
		config.weighted = 1;
		CHECK((hg_attention(b.tape, b.graph, &in, &config).id < 0) == negative);
		if (negative)
			CHECK_CONTAINS(hg_context_error(b.ctx), "a weight of the graph is -0.25");
		else
			CHECK_OK(hg_tape_status(b.tape));
		bench_close(&b);
	}
}

/* ---- what the tape keeps ---- */

/* Records attention over a graph that is not symmetric, from one matrix, with a bias or without,
 * and a loss. */
static hg_var record(struct bench *b, int bias)
{
	hg_attention_config config = HG_ATTENTION_CONFIG_INIT;
	hg_attention_operands in = no_operands();
	config.score = HG_SCORE_DOT;
	config.heads = HEADS;
	in.q = hg_tape_variable(b->tape, random_tensor(b, HG_F16, NODES, 3 * HEADS * WIDTH, 0.5), "q");
	in.bias = bias ? input(b, HG_F16, EDGES, HEADS) : HG_NONE;
	const hg_var y = hg_attention(b->tape, b->graph, &in, &config);
	const hg_var target = input(b, HG_F16, NODES, HEADS * WIDTH);
	return hg_mse(b->tape, y, target, HG_NONE);
}

static void the_map_of_edges_is_built_for_a_bias_alone(void)
{
	for (int bias = 0; bias < 2; bias++) {
		struct bench b;
		bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
		b.graph = coo_graph(b.ctx, edges());
		const hg_var loss = record(&b, bias);
		CHECK_OK(hg_tape_compile(b.tape, loss));
		CHECK(b.graph->col_t.bytes > 0);
		CHECK_MSG((b.graph->edge_t.bytes > 0) == bias, "%zu bytes of the map of edges, bias %d",
		          b.graph->edge_t.bytes, bias);
		bench_close(&b);
	}
}

/* ---- the same numbers as the ops of GAT ---- */

struct operands {
	hg_tensor *q, *k, *v, *target, *zeros;
};

struct numbers {
	float *y, *dy, *dq, *dk, *dv;
};

static hg_var as_one(hg_tape *tape, hg_graph *graph, hg_var q, hg_var k, hg_var v)
{
	const hg_attention_operands in = {q, k, v, HG_NONE, HG_NONE};
	hg_attention_config config = HG_ATTENTION_CONFIG_INIT;
	config.heads = HEADS;
	return hg_attention(tape, graph, &in, &config);
}

static hg_var one_by_one(hg_tape *tape, hg_graph *graph, hg_var q, hg_var k, hg_var v)
{
	const hg_var e = hg_sddmm_add_leaky(tape, graph, q, k, 0.2f);
	return hg_spmm(tape, graph, v, hg_edge_softmax(tape, graph, e), HG_NORM_NONE, 1.0f);
}

/* The gradient of Y is that of the zeros that are added to it. */
static struct numbers run(struct bench *b, const struct operands *of, int together)
{
	struct numbers n;
	hg_tape *tape = NULL;
	CHECK_OK(hg_tape_create(b->params, HG_TRAIN, &tape));
	const hg_var q = hg_tape_variable(tape, of->q, "q"), k = hg_tape_variable(tape, of->k, "k"),
	             v = hg_tape_variable(tape, of->v, "v"),
	             zeros = hg_tape_variable(tape, of->zeros, "zeros"),
	             y = (together ? as_one : one_by_one)(tape, b->graph, q, k, v),
	             same = hg_add(tape, y, zeros), t = hg_tape_input(tape, of->target, "t", -1.0);
	hg_tape_keep(tape, y);
	CHECK_OK(hg_tape_compile(tape, hg_mse(tape, same, t, HG_NONE)));
	CHECK_OK(hg_tape_forward(tape));
	CHECK_OK(hg_tape_backward(tape));
	n.y = download(hg_tape_value(tape, y));
	n.dy = download(hg_tape_grad(tape, zeros));
	n.dq = download(hg_tape_grad(tape, q));
	n.dk = download(hg_tape_grad(tape, k));
	n.dv = download(hg_tape_grad(tape, v));
	hg_tape_free(tape);
	return n;
}

static void numbers_free(struct numbers *n)
{
	float *const all[] = {n->y, n->dy, n->dq, n->dk, n->dv};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

static double largest_of(const float *x, int64_t count)
{
	double most = 0.0;
	for (int64_t i = 0; i < count; i++)
		most = fmax(most, fabs((double)x[i]));
	return most;
}

static double largest_in(const hg_tensor *tensor)
{
	float *host = download(tensor);
	const double most = largest_of(host, hg_tensor_rows(tensor) * hg_tensor_cols(tensor));
	free(host);
	return most;
}

static double difference(const float *x, const float *y, int64_t count)
{
	double most = 0.0;
	for (int64_t i = 0; i < count; i++)
		most = fmax(most, fabs((double)x[i] - (double)y[i]));
	return most;
}

static void check_difference(const float *one, const float *several, int64_t count, double bound,
                             const char *policy, const char *what)
{
	const double found = difference(one, several, count);
	test_note("%s: %s differs by %.3g, at most %.3g, largest %.3g", policy, what, found, bound,
	          largest_of(one, count));
	CHECK(bound < largest_of(one, count));
	CHECK_MSG(found <= bound, "%s: %s differs by %.9g, at most %.9g", policy, what, found, bound);
}

/* The largest sum of the weights p of a column and a head, in exact arithmetic up to one hundredth:
 * they are computed from operands of at most 4, and rounded. */
static double largest_share(struct bench *b, const struct operands *of)
{
	struct host_csr csr = host_csr_download(b->ctx, b->graph);
	double share[NODES][HEADS] = {{0.0}}, most = 0.0;
	hg_attention_config config = HG_ATTENTION_CONFIG_INIT;
	hg_attention_operands in = no_operands();
	hg_tape *tape = NULL;
	CHECK_OK(hg_tape_create(b->params, HG_EVAL, &tape));
	config.heads = HEADS;
	in.q = hg_tape_input(tape, of->q, "q", -1.0);
	in.k = hg_tape_input(tape, of->k, "k", -1.0);
	const hg_var weights = hg_attention_weights(tape, b->graph, &in, &config);
	CHECK_OK(hg_tape_compile(tape, weights));
	CHECK_OK(hg_tape_forward(tape));
	float *p = download(hg_tape_value(tape, weights));
	for (int64_t i = 0; i < (int64_t)EDGES * HEADS; i++)
		share[csr.col[i / HEADS]][i % HEADS] += (double)p[i];
	for (int64_t i = 0; i < (int64_t)NODES * HEADS; i++)
		most = fmax(most, share[i / HEADS][i % HEADS]);
	free(p);
	host_csr_free(&csr);
	hg_tape_free(tape);
	return 1.01 * most;
}

/* The bounds on the differences, with u of the state type and M = d max|dY| max|v|. One by one,
 * scores of up to S are rounded to the state type, and so are p (by up to 2^-25 near 0), <dY, V>
 * and ds; in one op, Y and the terms of Y with positive scores.
 *
 *     p      a = exp(2 u S + 16 u32 (2 S + 10)) - 1 + u + gamma_{2 D + 32}(u32), relative
 *     Y      (a + D 2^-25) |v|, and two stores
 *     dv     D' (a + 2^-25) |dY|, the difference of dY in D' terms, and two stores
 *     ds     p times e = (3 a + 8 u) M + 2 d |v| (difference of dY), and 2^-24 (1 + 2 M)
 *     dq     the sum of ds over a row, where the p add up to 1, two stores, and 8 u M for what
 *            <dY, Y+> - D p+ is computed from
 *     dk     the sum of ds over a column, where they add up to `shares` at most, and two stores */
static void one_op_computes_what_several_do(const char *policy)
{
	struct bench b;
	hg_graph_facts facts = HG_GRAPH_FACTS_INIT;
	bench_open(&b, test_context(), policy_named(policy), HG_TRAIN);
	b.graph = coo_graph(b.ctx, edges());
	CHECK_OK(hg_graph_facts_get(b.graph, &facts));
	const hg_dtype state = policy_named(policy).state;
	const int64_t small = NODES * HEADS, large = small * WIDTH;
	const struct operands of = {random_tensor(&b, state, NODES, HEADS, 0.25),
	                            random_tensor(&b, state, NODES, HEADS, 0.25),
	                            random_tensor(&b, state, NODES, HEADS * WIDTH, 1.0),
	                            random_tensor(&b, state, NODES, HEADS * WIDTH, 1.0),
	                            random_tensor(&b, state, NODES, HEADS * WIDTH, 0.0)};
	struct numbers one = run(&b, &of, 1), several = run(&b, &of, 0);
	const double u = hg_dtype_get(state)->u, u32 = hg_dtype_get(HG_F32)->u,
	             near_zero = state == HG_F16 ? 0x1p-25 : 0.0, D = (double)facts.max_row_degree,
	             D_t = (double)facts.max_col_degree, s = largest_in(of.q) + largest_in(of.k),
	             v = largest_in(of.v),
	             a = expm1(2.0 * u * s + 16.0 * u32 * (2.0 * s + 10.0)) + u +
	                 hg__gamma(2.0 * D + 32.0, u32),
	             g = largest_of(several.dy, large), dg = difference(one.dy, several.dy, large),
	             m = WIDTH * g * v, e = (3.0 * a + 8.0 * u) * m + 2.0 * WIDTH * v * dg,
	             each = 2.0 * near_zero * (1.0 + 2.0 * m), shares = largest_share(&b, &of);
	check_difference(one.y, several.y, large, (a + D * near_zero) * v + 2.0 * (u * v + near_zero),
	                 policy, "Y");
	check_difference(one.dv, several.dv, large,
	                 D_t * ((a + near_zero) * g + dg) + 2.0 * (u * D_t * g + near_zero), policy,
	                 "dv");
	check_difference(one.dk, several.dk, small,
	                 shares * e + D_t * each + 2.0 * (u * shares * 2.0 * m + near_zero), policy,
	                 "dk");
	check_difference(one.dq, several.dq, small,
	                 e + D * each + 8.0 * u * m + 2.0 * (u * m + near_zero), policy, "dq");
	numbers_free(&one);
	numbers_free(&several);
	bench_close(&b);
}

static void one_op_computes_what_several_do_in_f32(void)
{
	one_op_computes_what_several_do("fp32");
}

static void one_op_computes_what_several_do_in_f16(void)
{
	one_op_computes_what_several_do("fp16");
}

/* The kernels write gradients in the type of the values, and that of a parameter is f32: it has the
 * numbers of a variable's gradient. */
static void a_parameter_may_hold_the_values(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
	b.graph = coo_graph(b.ctx, edges());
	const struct operands of = {random_tensor(&b, HG_F16, NODES, HEADS, 1.0),
	                            random_tensor(&b, HG_F16, NODES, HEADS, 1.0),
	                            random_tensor(&b, HG_F16, NODES, HEADS * WIDTH, 1.0),
	                            random_tensor(&b, HG_F16, NODES, HEADS * WIDTH, 1.0),
	                            random_tensor(&b, HG_F16, NODES, HEADS * WIDTH, 0.0)};
	hg_param *values = param(&b, "values", NODES, HEADS * WIDTH);
	float *host = download(of.v);
	CHECK_OK(hg_param_set(values, host));
	struct numbers variable = run(&b, &of, 1);
	const hg_var y = as_one(b.tape, b.graph, hg_tape_input(b.tape, of.q, "q", -1.0),
	                        hg_tape_input(b.tape, of.k, "k", -1.0), hg_tape_param(b.tape, values)),
	             t = hg_tape_input(b.tape, of.target, "t", -1.0);
	CHECK_OK(hg_tape_compile(b.tape, hg_mse(b.tape, y, t, HG_NONE)));
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	float *gradient = download(hg_param_grad(values));
	CHECK(largest_of(gradient, (int64_t)NODES * HEADS * WIDTH) > 0.0);
	CHECK(difference(gradient, variable.dv, (int64_t)NODES * HEADS * WIDTH) == 0.0);
	free(gradient);
	free(host);
	numbers_free(&variable);
	bench_close(&b);
}

/* The weights are those of the softmax, without dropout on any tape. Both have an error of a few
 * u32 in the exponents, which are at most 8 + 8, and in sums of the edges of a row. */
static void the_weights_are_the_softmax_of_the_scores(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp32(), HG_TRAIN);
	b.graph = coo_graph(b.ctx, edges());
	hg_attention_config config = HG_ATTENTION_CONFIG_INIT;
	hg_attention_operands in = no_operands();
	config.heads = HEADS;
	config.dropout = 0.5f;
	in.q = input(&b, HG_F32, NODES, 2 * HEADS);
	in.v = input(&b, HG_F32, NODES, HEADS);
	const hg_var p = hg_attention_weights(b.tape, b.graph, &in, &config),
	             e = hg_sddmm_add_leaky(b.tape, b.graph, in.q, HG_NONE, config.slope),
	             rest = hg_sub(b.tape, p, hg_edge_softmax(b.tape, b.graph, e));
	hg_tape_keep(b.tape, p);
	CHECK_OK(hg_tape_compile(b.tape, rest));
	CHECK_OK(hg_tape_forward(b.tape));
	float *weights = download(hg_tape_value(b.tape, p)),
	      *differences = download(hg_tape_value(b.tape, rest));
	CHECK(largest_of(weights, (int64_t)EDGES * HEADS) > 0.5);
	CHECK(largest_of(differences, (int64_t)EDGES * HEADS) <=
	      hg__gamma(2.0 * EDGES + 16.0 * 26.0, hg_dtype_get(HG_F32)->u));
	free(weights);
	free(differences);
	bench_close(&b);
}

/* Tiles are for scores ADD without dropout, which an EVAL tape has in any case. They stage two sums
 * of each column and three numbers of each head. */
static void tiles_are_for_nodes_that_use_them(void)
{
	static const struct hg__op *const ops[] = {&hg__op_attention, &hg__op_attention_epilogue};
	static const struct {
		hg_score score;
		float dropout;
		hg_mode mode;
		int64_t staged;
	} nodes[] = {
	    {HG_SCORE_ADD, 0.0f, HG_TRAIN, 2 * 64 + 3 * HEADS},
	    {HG_SCORE_ADD, 0.5f, HG_TRAIN, 0},
	    {HG_SCORE_ADD, 0.5f, HG_EVAL, 2 * 64 + 3 * HEADS},
	    {HG_SCORE_DOT, 0.0f, HG_TRAIN, 0},
	    {HG_SCORE_COSINE, 0.0f, HG_EVAL, 0},
	    {HG_SCORE_ADD_V2, 0.0f, HG_EVAL, 0},
	};
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
			const struct hg__attention_attr attr = {
			    .score = nodes[i].score, .heads = HEADS, .dropout = nodes[i].dropout};
			struct hg__node node = {.op = ops[k]};
			memcpy(node.attr, &attr, sizeof attr);
			CHECK(ops[k]->traits & HG__TILES);
			CHECK_EQ_I(ops[k]->staged(&node, nodes[i].mode, 64), nodes[i].staged);
		}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(mistakes_are_refused_with_what_was_found),
	    TEST(mistakes_of_the_call_are_refused),
	    TEST(operands_that_do_not_fit_are_refused),
	    TEST(negative_weights_are_refused),
	    TEST(the_map_of_edges_is_built_for_a_bias_alone),
	    TEST(tiles_are_for_nodes_that_use_them),
	    TEST(one_op_computes_what_several_do_in_f32),
	    TEST(one_op_computes_what_several_do_in_f16),
	    TEST(a_parameter_may_hold_the_values),
	    TEST(the_weights_are_the_softmax_of_the_scores),
	};
	return RUN_TESTS(argc, argv, cases);
}
