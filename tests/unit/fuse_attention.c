/* Attention fused with the ops that follow it. It gives the same numbers as the ops apart, and no
 * value that the user asked for is lost. */
#include <math.h>
#include <stdio.h>

#include "halfgraph/ops_attention.h"
#include "unit/tape.h"

enum { NODES = 90, EDGES = 300, HEADS = 3, WIDTH = 7, COLS = HEADS * WIDTH };

/* What follows attention: bias or none, the number of an activation (0: none), dropout with
 * probability p (0: none), before all of them the mean over the heads or none. weights_p: dropout
 * of the weights. */
struct ending {
	const char *title;
	hg_score score;
	float weights_p;
	int edge_bias, bias, act;
	float p;
	int mean;
};
static const struct ending endings[] = {
    {"attention+bias_add", HG_SCORE_ADD, 0.0f, 0, 1, 0, 0.0f, 0},
    {"attention+bias_add+elu", HG_SCORE_ADD, 0.6f, 0, 1, 3, 0.0f, 0},
    {"attention+bias_add+elu+dropout", HG_SCORE_ADD, 0.6f, 0, 1, 3, 0.6f, 0},
    {"attention+bias_add+relu+dropout", HG_SCORE_ADD, 0.3f, 1, 1, 1, 0.5f, 0},
    {"attention+relu", HG_SCORE_DOT, 0.0f, 0, 0, 1, 0.0f, 0},
    {"attention+bias_add+dropout", HG_SCORE_DOT, 0.5f, 1, 1, 0, 0.25f, 0},
    {"attention+dropout", HG_SCORE_COSINE, 0.5f, 0, 0, 0, 0.5f, 0},
    {"attention+bias_add+leaky_relu", HG_SCORE_COSINE, 0.0f, 1, 1, 2, 0.0f, 0},
    {"attention+leaky_relu+dropout", HG_SCORE_ADD_V2, 0.0f, 0, 0, 2, 0.4f, 0},
    {"attention+bias_add+elu", HG_SCORE_ADD_V2, 0.4f, 1, 1, 3, 0.0f, 0},
    {"attention+head_mean", HG_SCORE_ADD, 0.0f, 0, 0, 0, 0.0f, 1},
    {"attention+head_mean+bias_add", HG_SCORE_ADD, 0.6f, 0, 1, 0, 0.0f, 1},
    {"attention+head_mean+bias_add+elu+dropout", HG_SCORE_ADD, 0.3f, 1, 1, 3, 0.6f, 1},
    {"attention+head_mean+relu", HG_SCORE_DOT, 0.0f, 0, 0, 1, 0.0f, 1},
    {"attention+head_mean+bias_add+dropout", HG_SCORE_COSINE, 0.5f, 0, 1, 0, 0.5f, 1},
    {"attention+head_mean+bias_add+leaky_relu", HG_SCORE_ADD_V2, 0.0f, 1, 1, 2, 0.0f, 1},
};
enum { ENDINGS = (int)(sizeof endings / sizeof endings[0]), OPERANDS = 6, GOT = 1 + OPERANDS };

/* The last nodes have no edges, most nodes have one from node 3, and some edges are duplicates. */
static hg_graph *uneven_graph(hg_context *ctx)
{
	struct coo edges = coo_empty(NODES, NODES);
	for (int k = 0; k < EDGES; k++)
		coo_add(&edges, test_below(NODES - 9), k % 4 ? test_below(NODES) : 3);
	return coo_graph(ctx, edges);
}

static int64_t columns_of(const struct ending *e)
{
	return e->mean ? WIDTH : COLS;
}

static hg_var act_of(hg_tape *tape, hg_var x, int act)
{
	return act == 1   ? hg_relu(tape, x)
	       : act == 2 ? hg_leaky_relu(tape, x, 0.2f)
	       : act == 3 ? hg_elu(tape, x, 1.0f)
	       : act == 4 ? hg_sigmoid(tape, x)
	                  : x;
}

/* The operands q, k, v, c, bias and b of an ending. */
static void make_operands(struct bench *b, const struct ending *e, hg_dtype state,
                          const hg_tensor *in[OPERANDS])
{
	const int64_t q = e->score == HG_SCORE_ADD ? HEADS : COLS,
	              c = e->score == HG_SCORE_COSINE ? HEADS : COLS;
	const int has_c = e->score == HG_SCORE_COSINE || e->score == HG_SCORE_ADD_V2;
	in[0] = random_tensor(b, state, NODES, q, 0.5);
	in[1] = random_tensor(b, state, NODES, q, 0.5);
	in[2] = random_tensor(b, state, NODES, COLS, 1.0);
	in[3] = has_c ? random_tensor(b, HG_F32, 1, c, 0.5) : NULL;
	in[4] = e->edge_bias ? random_tensor(b, state, EDGES, HEADS, 0.5) : NULL;
	in[5] = e->bias ? random_tensor(b, state, 1, columns_of(e), 1.0) : NULL;
}

/* Attention, and after it the chain of e. *attended: the result of attention. */
static hg_var record(struct bench *b, const struct ending *e, const hg_var var[OPERANDS],
                     hg_var *attended)
{
	hg_attention_config config = HG_ATTENTION_CONFIG_INIT;
	const hg_attention_operands operands = {var[0], var[1], var[2], var[3], var[4]};
	config.score = e->score;
	config.heads = HEADS;
	config.dropout = e->weights_p;
	*attended = hg_attention(b->tape, b->graph, &operands, &config);
	hg_var y = e->mean ? hg_head_mean(b->tape, *attended, HEADS) : *attended;
	y = e->bias ? hg_bias_add(b->tape, y, var[5]) : y;
	y = act_of(b->tape, y, e->act);
	return e->p > 0.0f ? hg_dropout(b->tape, y, e->p) : y;
}

static void check_title(const struct bench *b, const struct ending *e, hg_var y, int separate)
{
	const struct hg__recording *recording = &b->tape->recording;
	const char *title = recording->entry[recording->value[hg__tape_index(b->tape, y)].node].title;
	CHECK_MSG(separate ? !title : title && strcmp(title, e->title) == 0, "%s: is %s", e->title,
	          title ? title : "apart");
}

/* Downloads Y and the gradients of the operands into `got`. NULL: there is no such result. */
static void run_ending(struct bench *b, const struct ending *e, const hg_tensor *const in[OPERANDS],
                       const hg_tensor *target, int separate, float *got[GOT])
{
	hg_var var[OPERANDS], attended;
	b->ctx->separate_ops = separate;
	CHECK_OK(hg_tape_create(b->params, HG_TRAIN, &b->tape));
	for (int i = 0; i < OPERANDS; i++)
		var[i] = in[i] ? hg_tape_variable(b->tape, in[i], "operand") : HG_NONE;
	const hg_var y = record(b, e, var, &attended);
	hg_tape_keep(b->tape, y);
	CHECK_OK(hg_tape_compile(
	    b->tape, hg_mse(b->tape, y, hg_tape_input(b->tape, target, "target", -1.0), HG_NONE)));
	CHECK_OK(hg_tape_forward(b->tape));
	CHECK_OK(hg_tape_backward(b->tape));
	check_title(b, e, y, separate);
	CHECK_EQ_I(b->tape->plan.running,
	           separate ? 2 + e->mean + e->bias + (e->act > 0) + (e->p > 0.0f) : 2);
	got[0] = download(hg_tape_value(b->tape, y));
	for (int i = 0; i < OPERANDS; i++)
		got[1 + i] = in[i] ? download(hg_tape_grad(b->tape, var[i])) : NULL;
	hg_tape_free(b->tape);
	b->tape = NULL;
}

static void compare(const struct ending *e, int half, int k, const float *one, const float *apart,
                    int64_t count)
{
	static const char *const what[GOT] = {"Y", "dq", "dk", "dv", "dc", "dbias", "db"};
	const double slack = half ? 12 * 0x1p-11 : e->act == 3 && e->p > 0.0f && k ? 0x1p-18 : 0.0;
	double most = 0.0, worst = 0.0;
	for (int64_t i = 0; i < count; i++) {
		most = fmax(most, fabs((double)apart[i]));
		worst = fmax(worst, fabs((double)one[i] - (double)apart[i]));
	}
	CHECK_MSG(most > 0.0 && worst <= slack * most, "%s, %s: %s differs by %.3g of %.3g", e->title,
	          half ? "f16" : "f32", what[k], worst, most);
}

/* In f32 the bits are the same, except for the gradient of elu before dropout, whose backward pass
 * computes f = Y (1 - p) with two roundings. In f16 the difference is the roundings between the
 * ops, relative to the largest number. With an activation, gradients in f16 are not compared: the
 * branch of f depends on the sign of a sum, and near 0 the sign depends on the roundings. The
 * gradient of the mean square depends on Y; the target is far from Y, so that the difference does
 * not cancel. */
static void attention_is_fused_with_its_epilogue(void)
{
	for (int half = 0; half < 2; half++)
		for (int i = 0; i < ENDINGS; i++) {
			const struct ending *e = &endings[i];
			const hg_dtype state = half ? HG_F16 : HG_F32;
			const hg_tensor *in[OPERANDS];
			float far[NODES * COLS], *one[GOT], *apart[GOT];
			struct bench b;
			test_reseed(9);
			bench_open(&b, test_context(), half ? hg_policy_fp16() : hg_policy_fp32(), HG_TRAIN);
			hg_tape_free(b.tape);
			b.graph = uneven_graph(b.ctx);
			for (int k = 0; k < NODES * COLS; k++)
				far[k] = k % 2 ? 64.0f : -64.0f;
			make_operands(&b, e, state, in);
			const hg_tensor *target = tensor_of(&b, state, NODES, columns_of(e), far, HG_F32);
			run_ending(&b, e, in, target, 0, one);
			run_ending(&b, e, in, target, 1, apart);
			for (int k = 0; k < GOT; k++) {
				const int64_t count = k && in[k - 1]
				                          ? hg_tensor_rows(in[k - 1]) * hg_tensor_cols(in[k - 1])
				                          : NODES * columns_of(e);
				if (one[k] && (!half || k == 0 || !e->act))
					compare(e, half, k, one[k], apart[k], count);
				free(one[k]);
				free(apart[k]);
			}
			bench_close(&b);
		}
}

/* On an EVAL tape nothing is dropped, and the value between attention and the rest has no
 * memory, except below a mean over the heads. */
static void evaluation_stores_one_value(const void *ending)
{
	const struct ending *e = ending;
	float *got[2];
	int64_t arena[2];
	for (int separate = 0; separate < 2; separate++) {
		struct bench b;
		const hg_tensor *in[OPERANDS];
		hg_var var[OPERANDS], attended;
		test_reseed(10);
		bench_open(&b, test_context(), hg_policy_fp32(), HG_EVAL);
		b.graph = uneven_graph(b.ctx);
		b.ctx->separate_ops = separate;
		make_operands(&b, e, HG_F32, in);
		for (int i = 0; i < OPERANDS; i++)
			var[i] = in[i] ? hg_tape_input(b.tape, in[i], "operand", -1.0) : HG_NONE;
		const hg_var y = record(&b, e, var, &attended);
		CHECK_OK(hg_tape_compile(b.tape, y));
		CHECK_OK(hg_tape_forward(b.tape));
		arena[separate] = (int64_t)b.tape->plan.arena_bytes;
		got[separate] = download(hg_tape_value(b.tape, y));
		bench_close(&b);
	}
	CHECK(memcmp(got[0], got[1], sizeof(float) * NODES * (size_t)columns_of(e)) == 0);
	/* Apart, the result of attention is beside that of the rest, which may lie where the softmax
	 * was. */
	CHECK_MSG(e->mean || arena[1] - arena[0] >= (int64_t)sizeof(float) * NODES * (COLS - 2 * HEADS),
	          "%lld bytes as one, %lld apart", (long long)arena[0], (long long)arena[1]);
	free(got[0]);
	free(got[1]);
}

/* The result of attention is not fused away if the user keeps it or uses it twice, with a mean over
 * other heads than its own, behind a mean that is kept, and with an activation that the kernels of
 * attention do not know. */
static void other_attention_is_not_fused(void)
{
	enum { KEPT, USED_TWICE, OTHER_HEADS, MEAN_KEPT, SIGMOID, CASES };
	static const int alive[CASES] = {
	    [KEPT] = 2, [USED_TWICE] = 3, [OTHER_HEADS] = 3, [MEAN_KEPT] = 2, [SIGMOID] = 2};
	static const struct ending bias = {"", HG_SCORE_ADD, 0.0f, 0, 1, 0, 0.0f, 0},
	                           sigmoid = {"", HG_SCORE_ADD, 0.0f, 0, 1, 4, 0.0f, 0},
	                           nothing = {"", HG_SCORE_ADD, 0.0f, 0, 0, 0, 0.0f, 0};
	for (int why = 0; why < CASES; why++) {
		struct bench b;
		const hg_tensor *in[OPERANDS];
		hg_var var[OPERANDS], attended;
		bench_open(&b, test_context(), hg_policy_fp16(), HG_EVAL);
		b.graph = uneven_graph(b.ctx);
		make_operands(&b, &bias, HG_F16, in);
		for (int i = 0; i < OPERANDS; i++)
			var[i] = in[i] ? hg_tape_input(b.tape, in[i], "operand", -1.0) : HG_NONE;
		const int means = why == OTHER_HEADS || why == MEAN_KEPT;
		hg_var y = record(&b, why == SIGMOID ? &sigmoid : means ? &nothing : &bias, var, &attended);
		if (why == KEPT)
			hg_tape_keep(b.tape, attended);
		if (why == USED_TWICE)
			y = hg_add(b.tape, y, attended);
		if (means)
			y = hg_head_mean(b.tape, attended, why == OTHER_HEADS ? WIDTH : HEADS);
		if (why == MEAN_KEPT)
			hg_tape_keep(b.tape, y);
		if (means)
			y = hg_relu(b.tape, y);
		CHECK_OK(hg_tape_compile(b.tape, y));
		CHECK_MSG(b.tape->plan.running == alive[why], "case %d: %d nodes alive, expected %d", why,
		          (int)b.tape->plan.running, alive[why]);
		CHECK_OK(hg_tape_forward(b.tape));
		bench_close(&b);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(attention_is_fused_with_its_epilogue),
	    {"evaluation_stores_one_value", 0, evaluation_stores_one_value, &endings[2]},
	    {"evaluation_of_a_mean_has_the_same_bits", 0, evaluation_stores_one_value, &endings[12]},
	    TEST(other_attention_is_not_fused),
	};
	return RUN_TESTS(argc, argv, cases);
}
