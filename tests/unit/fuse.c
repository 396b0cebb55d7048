/* Chains of ops that become one node when the tape compiles. They give the same numbers as the ops
 * apart, and no value that the user asked for is lost. */
#include <math.h>
#include <stdio.h>

#include "unit/tape.h"

enum { ROWS = 150, COLS = 21 };

/* A chain: bias or none, the number of an activation (0: none), dropout with probability p (0:
 * none). */
struct recipe {
	const char *title;
	int bias, act;
	float p;
};
static const struct recipe recipes[] = {
    {"bias_add+relu", 1, 1, 0.0f},
    {"bias_add+leaky_relu", 1, 2, 0.0f},
    {"bias_add+elu", 1, 3, 0.0f},
    {"bias_add+dropout", 1, 0, 0.5f},
    {"relu+dropout", 0, 1, 0.3f},
    {"leaky_relu+dropout", 0, 2, 0.5f},
    {"elu+dropout", 0, 3, 0.5f},
    {"bias_add+relu+dropout", 1, 1, 0.5f},
    {"bias_add+leaky_relu+dropout", 1, 2, 0.6f},
    {"bias_add+elu+dropout", 1, 3, 0.25f},
    {"bias_add+sigmoid", 1, 4, 0.0f},
    {"bias_add+sigmoid+dropout", 1, 4, 0.5f},
    {"tanh+dropout", 0, 5, 0.3f},
    {"bias_add+tanh+dropout", 1, 5, 0.5f},
};
enum { RECIPES = (int)(sizeof recipes / sizeof recipes[0]) };

static hg_var act_of(hg_tape *tape, hg_var x, int act)
{
	return act == 1   ? hg_relu(tape, x)
	       : act == 2 ? hg_leaky_relu(tape, x, 0.2f)
	       : act == 3 ? hg_elu(tape, x, 1.0f)
	       : act == 4 ? hg_sigmoid(tape, x)
	       : act == 5 ? hg_tanh(tape, x)
	                  : x;
}

static hg_var chain_of(hg_tape *tape, const struct recipe *r, hg_var x, hg_var b)
{
	hg_tape_scope(tape, "first");
	x = r->bias ? hg_bias_add(tape, x, b) : x;
	hg_tape_scope(tape, "second");
	x = act_of(tape, x, r->act);
	return r->p > 0.0f ? hg_dropout(tape, x, r->p) : x;
}

/* The results of a chain between a variable and a loss. */
struct result {
	float *y, *dx, *db;
	int32_t alive;
	const char *title;
};

static struct result run_chain(struct bench *b, const struct recipe *r, const hg_tensor *x,
                               const hg_tensor *t, int separate)
{
	struct result result = {0};
	b->ctx->separate_ops = separate;
	CHECK_OK(hg_tape_create(b->params, HG_TRAIN, &b->tape));
	const hg_var in = hg_tape_variable(b->tape, x, "x"),
	             bias = hg_tape_param(b->tape, param(b, "b", 1, COLS));
	const hg_var y = chain_of(b->tape, r, in, bias);
	hg_tape_keep(b->tape, y);
	CHECK_OK(hg_tape_compile(b->tape,
	                         hg_mse(b->tape, y, hg_tape_input(b->tape, t, "t", -1.0), HG_NONE)));
	CHECK_OK(hg_tape_forward(b->tape));
	CHECK_OK(hg_tape_backward(b->tape));
	result.alive = b->tape->plan.running;
	result.y = download(hg_tape_value(b->tape, y));
	result.dx = download(hg_tape_grad(b->tape, in));
	result.db = download(hg_param_grad(param(b, "b", 1, COLS)));
	const char *title =
	    b->tape->recording.entry[b->tape->recording.value[hg__tape_index(b->tape, y)].node].title;
	CHECK(separate ? !title : title && strcmp(title, r->title) == 0);
	hg_tape_free(b->tape);
	b->tape = NULL;
	return result;
}

static void result_free(struct result *r)
{
	free(r->y);
	free(r->dx);
	free(r->db);
}

/* slack: the allowed error, relative to the largest number of the array. 0: the bits must be the
 * same. */
static void same_or_close(const float *fused, const float *apart, int64_t count, double slack,
                          const struct recipe *r, const char *what)
{
	double most = 0.0;
	for (int64_t i = 0; i < count; i++)
		most = fmax(most, fabs((double)apart[i]));
	for (int64_t i = 0; i < count; i++) {
		const double a = (double)fused[i], b = (double)apart[i];
		CHECK_MSG(fabs(a - b) <= slack * most, "%s: %s[%lld] is %.9g as one, %.9g apart", r->title,
		          what, (long long)i, a, b);
		CHECK_MSG(r->act >= 3 || (a == 0.0) == (b == 0.0),
		          "%s: %s[%lld] is %.9g as one, %.9g apart", r->title, what, (long long)i, a, b);
	}
}

/* In f32 the bits are the same, except for elu, sigmoid and tanh before dropout: their backward
 * computes f = Y (1 - p), with two roundings. In f16 the difference is the roundings of the results
 * between the ops: at most three narrowings of u16 forward and three backward. 1 + f of elu may
 * cancel, so its error is relative to the largest number. The gradient of the mean square depends
 * on Y; T is far from Y, so that Y - T does not cancel. */
static void fused_chains_give_the_same_numbers(void)
{
	for (int half = 0; half < 2; half++)
		for (int i = 0; i < RECIPES; i++) {
			const struct recipe *r = &recipes[i];
			const hg_dtype state = half ? HG_F16 : HG_F32;
			const double apart_f32 = r->act >= 3 && r->p > 0.0f ? 4 * 0x1p-24 : 0.0;
			const double forth = half ? 3 * 0x1p-11 : 0.0, back = half ? 6 * 0x1p-11 : apart_f32;
			struct bench b;
			float far[ROWS * COLS];
			test_reseed(5);
			bench_open(&b, test_context(), half ? hg_policy_fp16() : hg_policy_fp32(), HG_TRAIN);
			hg_tape_free(b.tape);
			for (int k = 0; k < ROWS * COLS; k++)
				far[k] = 64.0f;
			const hg_tensor *x = random_tensor(&b, state, ROWS, COLS, 1.0),
			                *t = tensor_of(&b, state, ROWS, COLS, far, HG_F32);
			struct result one = run_chain(&b, r, x, t, 0), apart = run_chain(&b, r, x, t, 1);
			CHECK_EQ_I(one.alive, 2);
			CHECK_EQ_I(apart.alive, 1 + r->bias + (r->act > 0) + (r->p > 0.0f));
			same_or_close(one.y, apart.y, ROWS * COLS, forth, r, "Y");
			same_or_close(one.dx, apart.dx, ROWS * COLS, back, r, "dX");
			same_or_close(one.db, apart.db, r->bias ? COLS : 0, back, r, "db");
			result_free(&one);
			result_free(&apart);
			bench_close(&b);
		}
}

/* ---- aggregations fused with the ops that follow them ---- */

enum own {
	NO_OWN,
	ADD_SELF,
	ADD_OTHER,
	ADD_FIRST /* as ADD_OTHER, with the aggregation as the first operand */,
	COMBINE_SELF,
	COMBINE_OTHER
};
struct ending {
	const char *title;
	int weights;
	hg_norm norm;
	float alpha;
	enum own own;
	struct recipe recipe;
};
static const struct ending endings[] = {
    {"spmm+bias_add", 0, HG_NORM_BOTH, 1.0f, NO_OWN, {"", 1, 0, 0.0f}},
    {"spmm+bias_add+relu+dropout", 0, HG_NORM_BOTH, 1.0f, NO_OWN, {"", 1, 1, 0.5f}},
    {"spmm+relu", 0, HG_NORM_RIGHT, 1.0f, NO_OWN, {"", 0, 1, 0.0f}},
    {"spmm+dropout", 0, HG_NORM_LEFT, 0.5f, NO_OWN, {"", 0, 0, 0.3f}},
    {"spmm+add", 0, HG_NORM_NONE, 1.0f, ADD_SELF, {"", 0, 0, 0.0f}},
    {"spmm+add", 0, HG_NORM_RIGHT, -2.0f, ADD_OTHER, {"", 0, 0, 0.0f}},
    {"spmm+add+bias_add+leaky_relu", 0, HG_NORM_NONE, 1.0f, ADD_FIRST, {"", 1, 2, 0.0f}},
    {"spmm+combine", 0, HG_NORM_NONE, 0.5f, COMBINE_SELF, {"", 0, 0, 0.0f}},
    {"spmm+combine+bias_add+relu+dropout", 0, HG_NORM_RIGHT, 1.0f, COMBINE_SELF, {"", 1, 1, 0.5f}},
    {"spmm+combine+bias_add", 0, HG_NORM_NONE, 1.0f, COMBINE_OTHER, {"", 1, 0, 0.0f}},
    {"spmm+bias_add+elu", 1, HG_NORM_NONE, 1.0f, NO_OWN, {"", 1, 3, 0.0f}},
    {"spmm+add+bias_add+dropout", 1, HG_NORM_NONE, 1.0f, ADD_SELF, {"", 1, 0, 0.25f}},
};
enum { ENDINGS = (int)(sizeof endings / sizeof endings[0]), GOT = 6 };

/* Every fifth row is empty, and most rows have an edge from node 3. */
static hg_graph *uneven_graph(hg_context *ctx)
{
	struct coo edges = coo_empty(ROWS, ROWS);
	for (int i = 0; i < ROWS; i++)
		for (int k = 0; k < i % 5; k++)
			coo_add(&edges, i, k ? (i * i + 31 * k) % ROWS : 3);
	return coo_graph(ctx, edges);
}

static hg_param *eps_of(struct bench *b)
{
	hg_param *made = hg_params_find(b->params, "eps");
	if (!made)
		CHECK_OK(
		    hg_params_add(b->params, "eps", 1, 1, HG_INIT_GLOROT_UNIFORM, HG_PARAM_F32, &made));
	return made;
}

static hg_var own_sum(struct bench *b, const struct ending *e, hg_var x, hg_var other, hg_var y)
{
	const hg_var own = e->own == ADD_SELF || e->own == COMBINE_SELF ? x : other;
	if (e->own == NO_OWN)
		return y;
	if (e->own == COMBINE_SELF || e->own == COMBINE_OTHER)
		return hg_combine(b->tape, own, y, hg_tape_param(b->tape, eps_of(b)));
	return e->own == ADD_FIRST ? hg_add(b->tape, y, own) : hg_add(b->tape, own, y);
}

/* Downloads Y, dX, dZ, dw, db and deps into `got`. NULL: there is no such result. */
static void run_ending(struct bench *b, const struct ending *e, const hg_tensor *const in[4],
                       int separate, float *got[GOT])
{
	b->ctx->separate_ops = separate;
	CHECK_OK(hg_tape_create(b->params, HG_TRAIN, &b->tape));
	const hg_var x = hg_tape_variable(b->tape, in[0], "x"),
	             other = hg_tape_variable(b->tape, in[1], "z"),
	             w = hg_tape_variable(b->tape, in[2], "w");
	const hg_var sum = hg_spmm(b->tape, b->graph, x, e->weights ? w : HG_NONE, e->norm, e->alpha);
	const hg_var y = chain_of(b->tape, &e->recipe, own_sum(b, e, x, other, sum),
	                          hg_tape_param(b->tape, param(b, "b", 1, COLS)));
	hg_tape_keep(b->tape, y);
	CHECK_OK(hg_tape_compile(
	    b->tape, hg_mse(b->tape, y, hg_tape_input(b->tape, in[3], "t", -1.0), HG_NONE)));
	CHECK_OK(hg_tape_forward(b->tape));
	CHECK_OK(hg_tape_backward(b->tape));
	const int parts =
	    1 + (e->own != NO_OWN) + e->recipe.bias + (e->recipe.act > 0) + (e->recipe.p > 0.0f);
	const char *title =
	    b->tape->recording.entry[b->tape->recording.value[hg__tape_index(b->tape, y)].node].title;
	CHECK_MSG(separate ? !title : title && strcmp(title, e->title) == 0, "%s: is %s", e->title,
	          title ? title : "apart");
	CHECK_EQ_I(b->tape->plan.running, separate ? 1 + parts : 2);
	const int with_z = e->own == ADD_OTHER || e->own == ADD_FIRST || e->own == COMBINE_OTHER;
	const hg_tensor *const results[GOT] = {
	    hg_tape_value(b->tape, y),
	    hg_tape_grad(b->tape, x),
	    with_z ? hg_tape_grad(b->tape, other) : NULL,
	    e->weights ? hg_tape_grad(b->tape, w) : NULL,
	    e->recipe.bias ? hg_param_grad(param(b, "b", 1, COLS)) : NULL,
	    e->own >= COMBINE_SELF ? hg_param_grad(eps_of(b)) : NULL};
	for (int i = 0; i < GOT; i++)
		got[i] = results[i] ? download(results[i]) : NULL;
	hg_tape_free(b->tape);
	b->tape = NULL;
}

/* In f32 the bits are the same. In f16 the difference is the roundings between the ops, at most
 * four forward, relative to the largest number, which dropout may make a third larger. Backward it
 * is the same without an activation. With one it is not compared: the branch of f depends on the
 * sign of a sum, and near 0 the sign depends on the roundings. */
static void aggregations_are_fused_with_their_epilogue(void)
{
	static const char *const what[GOT] = {"Y", "dX", "dZ", "dw", "db", "deps"};
	for (int half = 0; half < 2; half++)
		for (int i = 0; i < ENDINGS; i++) {
			const struct ending *e = &endings[i];
			const hg_dtype state = half ? HG_F16 : HG_F32;
			float far[ROWS * COLS], *one[GOT], *apart[GOT];
			struct bench b;
			test_reseed(7);
			bench_open(&b, test_context(), half ? hg_policy_fp16() : hg_policy_fp32(), HG_TRAIN);
			hg_tape_free(b.tape);
			b.graph = uneven_graph(b.ctx);
			for (int k = 0; k < ROWS * COLS; k++)
				far[k] = 64.0f;
			const int64_t m = hg_graph_edges(b.graph),
			              count[GOT] = {ROWS * COLS, ROWS * COLS, ROWS * COLS, m, COLS, 1};
			const hg_tensor *const in[4] = {random_tensor(&b, state, ROWS, COLS, 1.0),
			                                random_tensor(&b, state, ROWS, COLS, 1.0),
			                                random_tensor(&b, state, m, 1, 1.0),
			                                tensor_of(&b, state, ROWS, COLS, far, HG_F32)};
			run_ending(&b, e, in, 0, one);
			run_ending(&b, e, in, 1, apart);
			for (int k = 0; k < GOT; k++) {
				double most = 0.0, worst = 0.0;
				for (int64_t c = 0; one[k] && c < count[k]; c++) {
					most = fmax(most, fabs((double)apart[k][c]));
					worst = fmax(worst, fabs((double)one[k][c] - (double)apart[k][c]));
				}
				if (!half || k == 0 || !e->recipe.act)
					CHECK_MSG(worst <= (half ? 6 * 0x1p-11 * most : 0.0),
					          "%s, %s: %s differs by %.3g of %.3g", e->title, half ? "f16" : "f32",
					          what[k], worst, most);
				free(one[k]);
				free(apart[k]);
			}
			bench_close(&b);
		}
}

/* An aggregation is not fused if it sums in halves, since the fused kernel continues with its f32
 * sum. Nor is it if its sum is kept, is used twice, or is not the operand that the fused kernel
 * adds to. */
static void other_aggregations_are_not_fused(void)
{
	enum { F16_SUMS, SUM_KEPT, SUM_USED_TWICE, EPS_ON_THE_SUM, BOTH_AGGREGATED, CASES };
	static const int alive[CASES] = {[F16_SUMS] = 2,
	                                 [SUM_KEPT] = 2,
	                                 [SUM_USED_TWICE] = 2,
	                                 [EPS_ON_THE_SUM] = 2,
	                                 [BOTH_AGGREGATED] = 2};
	for (int why = 0; why < CASES; why++) {
		struct bench b;
		hg_policy policy = hg_policy_fp16();
		policy.accumulate = why == F16_SUMS ? HG_ACC_F16_DISCRETIZED : HG_ACC_F32;
		bench_open(&b, test_context(), policy, HG_EVAL);
		b.graph = uneven_graph(b.ctx);
		const hg_var x = hg_tape_input(b.tape, random_tensor(&b, HG_F16, ROWS, COLS, 1.0), "x",
		                               -1.0),
		             p = hg_tape_param(b.tape, param(&b, "b", 1, COLS));
		const hg_var sum = hg_spmm(b.tape, b.graph, x, HG_NONE, HG_NORM_BOTH, 1.0f),
		             eps = hg_tape_param(b.tape, eps_of(&b));
		hg_var y = why == SUM_USED_TWICE   ? hg_add(b.tape, sum, sum)
		           : why == EPS_ON_THE_SUM ? hg_combine(b.tape, sum, x, eps)
		                                   : hg_bias_add(b.tape, sum, p);
		if (why == BOTH_AGGREGATED) /* only one of the two aggregations can add the other */
			y = hg_add(b.tape, sum, hg_spmm(b.tape, b.graph, x, HG_NONE, HG_NORM_NONE, 1.0f));
		if (why == SUM_KEPT)
			hg_tape_keep(b.tape, sum);
		CHECK_OK(hg_tape_compile(b.tape, y));
		CHECK_MSG(b.tape->plan.running == alive[why], "case %d: %d nodes alive, expected %d", why,
		          (int)b.tape->plan.running, alive[why]);
		CHECK_OK(hg_tape_forward(b.tape));
		bench_close(&b);
	}
}

/* relu rounds nothing. So a batch norm that is fused with it gives the same bits in either type, in
 * its running statistics too. */
static void batch_norm_is_fused_with_relu(void)
{
	for (int half = 0; half < 2; half++) {
		float *got[2][5];
		struct bench b;
		test_reseed(6);
		bench_open(&b, test_context(), half ? hg_policy_fp16() : hg_policy_fp32(), HG_TRAIN);
		hg_tape_free(b.tape);
		const hg_dtype state = half ? HG_F16 : HG_F32;
		const hg_tensor *x = random_tensor(&b, state, ROWS, COLS, 3.0),
		                *t = random_tensor(&b, state, ROWS, COLS, 1.0);
		hg_param *gain[2], *running[2];
		CHECK_OK(hg_params_add(b.params, "gamma", 1, COLS, HG_INIT_GLOROT_UNIFORM, HG_PARAM_F32,
		                       &gain[0]));
		CHECK_OK(hg_params_add(b.params, "beta", 1, COLS, HG_INIT_GLOROT_UNIFORM, HG_PARAM_F32,
		                       &gain[1]));
		CHECK_OK(hg_params_add(b.params, "mean", 1, COLS, HG_INIT_ZEROS,
		                       HG_PARAM_F32 | HG_PARAM_BUFFER, &running[0]));
		CHECK_OK(hg_params_add(b.params, "var", 1, COLS, HG_INIT_ONES,
		                       HG_PARAM_F32 | HG_PARAM_BUFFER, &running[1]));
		for (int separate = 0; separate < 2; separate++) {
			b.ctx->separate_ops = separate;
			CHECK_OK(hg_tape_create(b.params, HG_TRAIN, &b.tape));
			const hg_var in = hg_tape_variable(b.tape, x, "x");
			const hg_var y =
			    hg_relu(b.tape, hg_batch_norm(b.tape, in, hg_tape_param(b.tape, gain[0]),
			                                  hg_tape_param(b.tape, gain[1]), running[0],
			                                  running[1], 1.0f, 1e-5f));
			hg_tape_keep(b.tape, y);
			CHECK_OK(hg_tape_compile(
			    b.tape, hg_mse(b.tape, y, hg_tape_input(b.tape, t, "t", -1.0), HG_NONE)));
			CHECK_EQ_I(b.tape->plan.running, separate ? 3 : 2);
			CHECK_OK(hg_tape_forward(b.tape));
			CHECK_OK(hg_tape_backward(b.tape));
			const hg_tensor *const results[] = {hg_tape_value(b.tape, y), hg_tape_grad(b.tape, in),
			                                    hg_param_grad(gain[0]), hg_param_grad(gain[1]),
			                                    hg_param_master(running[1])};
			for (int i = 0; i < 5; i++)
				got[separate][i] = download(results[i]);
			hg_tape_free(b.tape);
			b.tape = NULL;
		}
		for (int i = 0; i < 5; i++) {
			CHECK_MSG(memcmp(got[0][i], got[1][i], sizeof(float) * (i < 2 ? ROWS * COLS : COLS)) ==
			              0,
			          "result %d differs in %s", i, half ? "f16" : "f32");
			free(got[0][i]);
			free(got[1][i]);
		}
		bench_close(&b);
	}
}

/* On an EVAL tape dropout is the identity, fused or not. */
static void dropout_does_nothing_in_evaluation(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp16(), HG_EVAL);
	const hg_tensor *x = random_tensor(&b, HG_F16, ROWS, COLS, 1.0);
	const hg_var y = hg_dropout(b.tape, hg_relu(b.tape, hg_tape_input(b.tape, x, "x", -1.0)), 0.5f);
	CHECK_OK(hg_tape_compile(b.tape, y));
	CHECK_EQ_I(b.tape->plan.running, 1);
	CHECK_OK(hg_tape_forward(b.tape));
	float *in = download(x), *out = download(hg_tape_value(b.tape, y));
	for (int i = 0; i < ROWS * COLS; i++)
		CHECK(out[i] == fmaxf(in[i], 0.0f));
	free(in);
	free(out);
	bench_close(&b);
}

/* spmm, bias_add and f are one node where f is marked as an epilogue in the list of functions.
 * Otherwise bias_add and f are one node, without the aggregation. */
static void only_epilogues_are_fused_with_an_aggregation(void)
{
	static const int act[] = {3, 4, 5}, alive[] = {2, 3, 3};
	for (int i = 0; i < 3; i++) {
		struct bench b;
		bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
		b.graph = uneven_graph(b.ctx);
		const hg_tensor *x = random_tensor(&b, HG_F16, ROWS, COLS, 1.0),
		                *t = random_tensor(&b, HG_F16, ROWS, COLS, 1.0);
		const hg_var sum = hg_spmm(b.tape, b.graph, hg_tape_variable(b.tape, x, "x"), HG_NONE,
		                           HG_NORM_RIGHT, 1.0f);
		const struct recipe r = {"", 1, act[i], 0.0f};
		const hg_var y = chain_of(b.tape, &r, sum, hg_tape_param(b.tape, param(&b, "b", 1, COLS)));
		CHECK_OK(hg_tape_compile(b.tape,
		                         hg_mse(b.tape, y, hg_tape_input(b.tape, t, "t", -1.0), HG_NONE)));
		CHECK_EQ_I(b.tape->plan.running, alive[i]);
		CHECK_OK(hg_tape_forward(b.tape));
		CHECK_OK(hg_tape_backward(b.tape));
		bench_close(&b);
	}
}

/* ---- values that the user asked for are not lost ---- */

enum reason { NOTHING, KEPT, USED_TWICE, OUTPUT, ASKED, ORDER, DEAD_USER, CAST, REASONS };
static const int nodes_alive[REASONS] = {[NOTHING] = 1, [KEPT] = 2,  [USED_TWICE] = 3, [OUTPUT] = 1,
                                         [ASKED] = 2,   [ORDER] = 2, [DEAD_USER] = 1,  [CAST] = 3};

static void values_that_the_user_needs_are_not_fused(void)
{
	for (int why = 0; why < REASONS; why++) {
		struct bench b;
		bench_open(&b, test_context(), hg_policy_fp16(), HG_EVAL);
		b.ctx->separate_ops = why == ASKED;
		const hg_var x = hg_tape_input(b.tape, random_tensor(&b, HG_F16, ROWS, COLS, 1.0), "x",
		                               -1.0),
		             p = hg_tape_param(b.tape, param(&b, "b", 1, COLS));
		const hg_var first = why == ORDER ? hg_relu(b.tape, x) : hg_bias_add(b.tape, x, p);
		const hg_var between = why == CAST ? hg_cast(b.tape, first, HG_F32) : first;
		hg_var y = why == ORDER ? hg_bias_add(b.tape, between, p) : hg_relu(b.tape, between);
		if (why == KEPT)
			hg_tape_keep(b.tape, first);
		if (why == USED_TWICE)
			y = hg_add(b.tape, y, first);
		if (why == DEAD_USER)
			(void)hg_scale(b.tape, first, 2.0f);
		CHECK_OK(hg_tape_compile(b.tape, why == OUTPUT ? first : y));
		CHECK_MSG(b.tape->plan.running == nodes_alive[why],
		          "reason %d: %d nodes alive, expected %d", why, (int)b.tape->plan.running,
		          nodes_alive[why]);
		CHECK_OK(hg_tape_forward(b.tape));
		const hg_tensor *value = hg_tape_value(b.tape, first);
		CHECK((value != NULL) == (why == KEPT || why == OUTPUT));
		bench_close(&b);
	}
}

/* ---- verdicts ---- */

/* The sum of two values of at most 10000 is proved, the sum of two of at most 40000 is not. The
 * fused node has one narrowing with one verdict. Where the sum alone is refused, so is the fused
 * node. */
static void fused_node_has_one_verdict(void)
{
	static const hg_unproved choices[] = {HG_UNPROVED_GUARD, HG_UNPROVED_PROMOTE,
	                                      HG_UNPROVED_REFUSE};
	for (int i = 0; i < 3; i++)
		for (int large = 0; large < 2; large++) {
			struct bench b;
			hg_policy policy = hg_policy_fp16();
			policy.unproved = choices[i];
			bench_open(&b, test_context(), policy, HG_TRAIN);
			const hg_tensor *x = random_tensor(&b, HG_F16, ROWS, COLS, 1.0),
			                *bias = random_tensor(&b, HG_F16, 1, COLS, 1.0);
			const double bound = large ? 40000.0 : 10000.0;
			const hg_var sum = hg_bias_add(b.tape, hg_tape_input(b.tape, x, "x", bound),
			                               hg_tape_input(b.tape, bias, "b", bound));
			const hg_var y = hg_dropout(b.tape, hg_relu(b.tape, sum), 0.5f);
			if (large && choices[i] == HG_UNPROVED_REFUSE) {
				CHECK_STATUS(hg_tape_compile(b.tape, y), HG_ERR_RANGE);
				CHECK_CONTAINS(hg_context_error(b.ctx), "bias_add: |out| may reach 8e+04");
				bench_close(&b);
				continue;
			}
			CHECK_OK(hg_tape_compile(b.tape, y));
			const struct hg__entry *line =
			    &b.tape->recording.entry[b.tape->recording.value[hg__tape_index(b.tape, y)].node];
			/* If it is promoted, x and b are cast to f32. */
			CHECK(line->node.op == &hg__op_epilogue &&
			      b.tape->plan.running == (line->node.verdict == HG_PROMOTED ? 3 : 1));
			CHECK_EQ_I(line->node.verdict, !large                            ? HG_PROVED
			                               : choices[i] == HG_UNPROVED_GUARD ? HG_GUARDED
			                                                                 : HG_PROMOTED);
			const double stored =
			    b.tape->recording.value[line->node.out].known[HG__ASSUMED].largest;
			CHECK(stored >= (large ? 65504.0 : 40000.0) && stored <= (large ? 160001.0 : 40100.0));
			bench_close(&b);
		}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(fused_chains_give_the_same_numbers),
	    TEST(aggregations_are_fused_with_their_epilogue),
	    TEST(other_aggregations_are_not_fused),
	    TEST(batch_norm_is_fused_with_relu),
	    TEST(dropout_does_nothing_in_evaluation),
	    TEST(only_epilogues_are_fused_with_an_aggregation),
	    TEST(values_that_the_user_needs_are_not_fused),
	    TEST(fused_node_has_one_verdict),
	};
	return RUN_TESTS(argc, argv, cases);
}
