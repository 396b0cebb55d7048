/* What a finding says of attention: the edges of a sum with their scores and weights, and a score
 * that is no number. */
#include <string.h>

#include "unit/doctor_subject.h"

/* The attention of a case, in layer "conv0": tensor 0 is q, tensor 1 has the targets, tensors 2 and
 * 3 are k and v, where the case has them. */
struct attends {
	hg_attention_config config;
	int has_k, has_v, has_c, mean;
	float loss; /* the result is multiplied by it */
};
static struct attends attends;

static hg_var record_attention(struct bench *b, hg_tape *tape)
{
	const int v = attends.has_k ? 3 : 2;
	hg_attention_operands in = {
	    .q = x_of(b, tape), .k = HG_NONE, .v = HG_NONE, .c = HG_NONE, .bias = HG_NONE};
	if (attends.has_k)
		in.k = hg_tape_variable(tape, b->tensor[2], "k");
	if (attends.has_v)
		in.v = hg_tape_variable(tape, b->tensor[v], "v");
	if (attends.has_c)
		in.c = hg_tape_param(tape, hg_params_find(b->params, "c"));
	hg_tape_scope(tape, "conv0");
	hg_var y = hg_attention(tape, b->graph, &in, &attends.config);
	if (attends.mean)
		y = hg_head_mean(tape, y, attends.config.heads);
	if (hg_params_find(b->params, "b"))
		y = hg_bias_add(tape, y, hg_tape_param(tape, hg_params_find(b->params, "b")));
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, hg_scale(tape, y, attends.loss), targets_of(b, tape), HG_NONE);
}

static void attends_with(hg_score score, int heads, int has_k, int has_v)
{
	const hg_attention_config config = HG_ATTENTION_CONFIG_INIT;
	attends = (struct attends){.config = config, .has_k = has_k, .has_v = has_v, .loss = 0x1p-12f};
	attends.config.score = score;
	attends.config.heads = heads;
	attends.has_c = score == HG_SCORE_COSINE || score == HG_SCORE_ADD_V2;
}

static void make_c(struct subject *s, const float *values, int64_t cols)
{
	hg_param *c = NULL;
	CHECK_OK(hg_params_add(s->bench.params, "c", 1, cols, HG_INIT_ZEROS, HG_PARAM_F32, &c));
	CHECK_OK(hg_param_set(c, values));
}

/* ---- the result ---- */

/* Node 0 has the neighbours 1, ..., 20 with equal scores of -3 in head 1 and weights of 1/20: their
 * 60000 add up to 60000, and the bias makes it 120000. */
static void edges_of_a_sum_have_scores_and_weights(void)
{
	enum { N = 21 };
	float q[N][2], k[N][2], v[N][4];
	const float bias[4] = {0.0f, 0.0f, 0.0f, 60000.0f};
	struct subject s;
	hg_param *b = NULL;
	attends_with(HG_SCORE_DOT, 2, 1, 1);
	subject_open(&s, hg_policy_fp16(), record_attention);
	s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(N));
	for (int i = 0; i < N; i++) {
		q[i][0] = q[i][1] = 1.0f;
		k[i][0] = 2.0f;
		k[i][1] = -3.0f;
		v[i][0] = v[i][1] = v[i][2] = 1.0f;
		v[i][3] = i ? 60000.0f : 0.0f;
	}
	tensor_of(&s.bench, HG_F16, N, 2, q, HG_F32);
	constant_tensor(&s.bench, N, 4, 0.0f);
	tensor_of(&s.bench, HG_F16, N, 2, k, HG_F32);
	tensor_of(&s.bench, HG_F16, N, 4, v, HG_F32);
	CHECK_OK(hg_params_add(s.bench.params, "b", 1, 4, HG_INIT_ZEROS, 0, &b));
	CHECK_OK(hg_param_set(b, bias));
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_STORE, 0, "bias_add", "conv0", 0, 3);
	CHECK(f->attended && !f->has_bad_score && f->head == 1 && f->terms == 21);
	CHECK(f->top[0].is == HG_TERM_BIAS && f->edge[0].row == -1 && f->tops == HG_DOCTOR_TOP);
	for (int i = 1; i < f->tops; i++) {
		CHECK(f->top[i].is == HG_TERM_ADDEND && fabs(f->top[i].value - 3000.0) < 1e-2);
		CHECK(f->edge[i].row == 0 && f->edge[i].col == f->top[i].row && f->edge[i].head == 1);
		CHECK(f->edge[i].score == -3.0 && fabs(f->edge[i].weight - 0.05) < 1e-7);
	}
	CHECK_CONTAINS(f->sentence, "at node 0, head 1, feature 3 is inf");
	CHECK_CONTAINS(f->sentence,
	               "it is a sum of 21 terms, the largest of which is 60000 = 1 * 60000");
	CHECK_CONTAINS(f->sentence, "; the largest along an edge is that from node 1 to node 0, with "
	                            "score -3 and weight 0.05;");
	subject_close(&s);
}

/* Node 0 has the neighbours 1, ..., 4 in both heads, and its value is the mean over the heads: of 8
 * addends, 40000 / 8 in head 0 and 60000 / 8 in head 1. The bias of 30000 makes 80000 of 50000. */
static void mean_of_heads_has_the_edges_of_all(void)
{
	enum { N = 5 };
	float v[N][2];
	const float bias[1] = {30000.0f};
	struct subject s;
	hg_param *b = NULL;
	attends_with(HG_SCORE_DOT, 2, 1, 1);
	attends.mean = 1;
	subject_open(&s, hg_policy_fp16(), record_attention);
	s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(N));
	for (int i = 0; i < N; i++) {
		v[i][0] = i ? 40000.0f : 0.0f;
		v[i][1] = i ? 60000.0f : 0.0f;
	}
	constant_tensor(&s.bench, N, 2, 1.0f);
	constant_tensor(&s.bench, N, 1, 0.0f);
	constant_tensor(&s.bench, N, 2, 2.0f);
	tensor_of(&s.bench, HG_F16, N, 2, v, HG_F32);
	CHECK_OK(hg_params_add(s.bench.params, "b", 1, 1, HG_INIT_ZEROS, 0, &b));
	CHECK_OK(hg_param_set(b, bias));
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_STORE, 0, "bias_add", "conv0", 0, 0);
	CHECK_STR(f->tensor, "conv0/attention+head_mean+bias_add");
	CHECK(f->attended && f->head == -1 && f->terms == 9 && fabs(f->wide - 80000.0) < 1.0);
	CHECK(f->top[0].is == HG_TERM_BIAS);
	for (int i = 1; i < f->tops; i++) {
		const int head = f->edge[i].head;
		CHECK(head == (i <= 4) && fabs(f->edge[i].weight - 0.25) < 1e-6);
		CHECK(f->edge[i].score == 2.0 && fabs(f->top[i].value - (head ? 7500.0 : 5000.0)) < 1e-2);
	}
	subject_close(&s);
}

/* Each node has one neighbour, whose weight is 1; dropout makes it 0 or 10. */
static void weights_have_the_mask(void)
{
	enum { N = 64 };
	struct subject s;
	attends_with(HG_SCORE_DOT, 1, 0, 1);
	attends.config.dropout = 0.9f;
	subject_open(&s, hg_policy_fp16(), record_attention);
	s.bench.graph = coo_graph(s.bench.ctx, coo_cycle(N));
	constant_tensor(&s.bench, N, 2, 0.5f);
	constant_tensor(&s.bench, N, 1, 0.0f);
	constant_tensor(&s.bench, N, 1, 10000.0f);
	subject_compile(&s);
	const hg_finding *f = subject_examine(&s);
	CHECK(f && f->cause == HG_CAUSE_STORE && f->attended && f->terms == 1 && f->tops == 1);
	CHECK(f->edge[0].row == f->row && f->edge[0].col == f->top[0].row && f->edge[0].score == 0.25);
	CHECK(fabs(f->edge[0].weight - 10.0) < 1e-3 && f->edge[0].weight == f->top[0].factor);
	subject_close(&s);
}

/* ---- gradients ---- */

/* Node 0 is the neighbour of all others, each of which has only this one: all weights are 1. */
static void gradient_of_v_names_destinations(void)
{
	enum { LEAVES = 100 };
	hg_policy policy = hg_policy_fp16();
	struct subject s;
	policy.loss_scale.init_scale = 1024.0f * (LEAVES + 1) / 2.0f;
	attends_with(HG_SCORE_ADD, 1, 0, 1);
	attends.loss = 1.0f;
	subject_open(&s, policy, record_attention);
	struct coo edges = coo_empty(LEAVES + 1, LEAVES + 1);
	for (int64_t i = 1; i <= LEAVES; i++)
		coo_add(&edges, i, 0);
	s.bench.graph = coo_graph(s.bench.ctx, edges);
	constant_tensor(&s.bench, LEAVES + 1, 2, 0.0f);
	constant_tensor(&s.bench, LEAVES + 1, 1, 0.0f);
	constant_tensor(&s.bench, LEAVES + 1, 1, 1.0f);
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_LOSS_SCALE, 1, "attention", "conv0", 0, 0);
	CHECK(f->attended && f->head == 0 && f->terms == LEAVES && f->wide == 1024.0 * LEAVES);
	for (int i = 0; i < f->tops; i++)
		CHECK(f->edge[i].row == f->top[i].row && f->edge[i].col == 0 && f->edge[i].weight == 1.0);
	CHECK_CONTAINS(f->sentence, "it is a sum of 100 terms");
	CHECK_CONTAINS(f->sentence, "; the largest along an edge is that from node 0 to node 1, with "
	                            "score 0 and weight 1");
	subject_close(&s);
}

/* The addends of a gradient of scores add up to it: a finding has the f64 sum in place of the f32
 * run if both agree. With ADD they may differ: the kernels compute the gradient of q from Y and Y+,
 * which are rounded to f16. Each of 2 nodes has both as neighbours, so an element has 2 edges in
 * each of its uses, of which there are 3 at most. */
static void check_gradient_sum(const hg_finding *f, int64_t width)
{
	const double tolerance = attends.config.score == HG_SCORE_ADD ? 0x1p-10 : 1e-12;
	double sum = 0.0, abs_sum = 0.0;
	for (int i = 0; i < f->tops; i++) {
		const hg_attended_edge *edge = &f->edge[i];
		sum += f->top[i].value;
		abs_sum += fabs(f->top[i].value);
		CHECK(edge->row == f->row || edge->col == f->row);
		CHECK(edge->weight >= 0.0 && edge->weight < 1.0 + 1e-5 &&
		      edge->head == f->col % width / (width / 2));
	}
	CHECK(f->attended && f->terms == f->tops && f->terms <= 6 && f->terms % 2 == 0);
	CHECK_MSG(fabs(sum - f->wide) <= tolerance * abs_sum, "%s: the addends make %.17g, not %.17g",
	          f->tensor, sum, f->wide);
}

/* Numbers at random, with which the gradients of the result are just below 65504. Returns how many
 * gradients of scores are then beyond it. */
static int check_overflowed_gradients(hg_score score, int has_k, int has_v)
{
	enum { N = 2, HEADS = 2, VALUES = 6 };
	/* columns of a side; those of q hold k, and with DOT v, where these are absent */
	const int64_t width = score == HG_SCORE_ADD ? HEADS : VALUES;
	const int64_t parts = has_k || score == HG_SCORE_COSINE ? 1
	                      : score == HG_SCORE_DOT && !has_v ? 3
	                                                        : 2;
	const float c[VALUES] = {0.5f, -0.25f, 0.75f, -0.5f, 0.375f, 0.25f},
	            beta[HEADS] = {3.0f, -3.0f};
	hg_policy policy = hg_policy_fp16();
	struct subject s;
	int found = 0;
	policy.loss_scale.init_scale = 0x1p+11f;
	attends_with(score, HEADS, has_k, has_v);
	attends.loss = 1.0f;
	attends.config.scale = 0.125f;
	subject_open(&s, policy, record_attention);
	struct coo edges = coo_empty(N, N);
	for (int64_t i = 0; i < N * N; i++)
		coo_add(&edges, i / N, i % N);
	s.bench.graph = coo_graph(s.bench.ctx, edges);
	random_tensor(&s.bench, HG_F16, N, parts * width, has_v ? 1.0 : 6.0);
	random_tensor(&s.bench, HG_F16, N, VALUES, 80.0);
	if (has_k)
		random_tensor(&s.bench, HG_F16, N, width, has_v ? 1.0 : 6.0);
	if (has_v)
		random_tensor(&s.bench, HG_F16, N, VALUES, 30.0);
	if (attends.has_c)
		make_c(&s, score == HG_SCORE_COSINE ? beta : c, score == HG_SCORE_COSINE ? HEADS : VALUES);
	subject_compile(&s);
	(void)subject_examine(&s);
	for (int i = 0; i < s.report->findings; i++) {
		const hg_finding *f = &s.report->finding[i];
		const int of_scores = f->backward && f->cause != HG_CAUSE_UNDERFLOW &&
		                      strcmp(f->op, "attention") == 0 &&
		                      strcmp(f->tensor, "gradient of v") != 0;
		if (of_scores)
			check_gradient_sum(f, width);
		found += of_scores;
	}
	subject_close(&s);
	return found;
}

static void check_gradients_of_scores(hg_score score, int has_k, int has_v)
{
	int found = 0;
	test_note("score %d, k %d, v %d", (int)score, has_k, has_v);
	for (int draw = 0; draw < 20 && !found; draw++)
		found = check_overflowed_gradients(score, has_k, has_v);
	CHECK_MSG(found, "no gradient of a score overflows");
}

static void gradients_of_all_scores_are_sums(void)
{
	for (int score = HG_SCORE_ADD; score < HG_SCORE_COUNT; score++)
		for (int has_k = 0; has_k < 2; has_k++)
			for (int has_v = score == HG_SCORE_ADD; has_v < 2; has_v++)
				check_gradients_of_scores((hg_score)score, has_k, has_v);
}

/* ---- scores that are no numbers ---- */

/* In f32. Node 1 has a q of 1e20 in head 1, node 2 such a k; only the edge from 2 to 1 has both. */
static void score_beyond_f32_is_named(void)
{
	enum { N = 4 };
	float q[N][4] = {{0}}, k[N][4] = {{0}};
	struct subject s;
	attends_with(HG_SCORE_DOT, 2, 1, 0);
	subject_open(&s, hg_policy_fp32(), record_attention);
	s.bench.graph = ring(s.bench.ctx, N);
	q[1][2] = 1e20f;
	k[2][2] = 1e20f;
	tensor_of(&s.bench, HG_F32, N, 4, q, HG_F32);
	constant_tensor(&s.bench, N, 4, 0.0f);
	tensor_of(&s.bench, HG_F32, N, 4, k, HG_F32);
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_STORE, 0, "attention", "conv0", 1, 2);
	CHECK(f->attended && f->has_bad_score && f->bad_score.row == 1 && f->bad_score.col == 2);
	CHECK(f->bad_score.head == 1 && fabs(f->bad_score.score * 1e-40 - 1.0) < 1e-6);
	CHECK_CONTAINS(f->sentence, "is nan: the score of the edge from node 2 to node 1 in head 1 is "
	                            "1e+40, and fp32 cannot hold it");
	subject_close(&s);
}

/* A score of -inf is none: that edge has no weight. */
static void score_of_minus_infinity_is_no_fault(void)
{
	enum { N = 4 };
	float q[N][4] = {{0}}, k[N][4] = {{0}};
	struct subject s;
	attends_with(HG_SCORE_DOT, 2, 1, 0);
	subject_open(&s, hg_policy_fp32(), record_attention);
	s.bench.graph = ring(s.bench.ctx, N);
	q[1][2] = 1e20f;
	k[2][2] = -1e20f;
	tensor_of(&s.bench, HG_F32, N, 4, q, HG_F32);
	constant_tensor(&s.bench, N, 4, 0.0f);
	tensor_of(&s.bench, HG_F32, N, 4, k, HG_F32);
	subject_compile(&s);
	(void)subject_examine(&s);
	for (int i = 0; i < s.report->findings; i++)
		CHECK(!s.report->finding[i].has_bad_score);
	subject_close(&s);
}

/* c and beta are at fault, and the score says what that does. The first head has good ones. */
static void bad_constant_names_a_score(void)
{
	for (int cosine = 0; cosine < 2; cosine++) {
		enum { N = 4 };
		const float beta[2] = {1.0f, NAN}, c[4] = {1.0f, 1.0f, 1.0f, NAN};
		struct subject s;
		attends_with(cosine ? HG_SCORE_COSINE : HG_SCORE_ADD_V2, 2, 1, 1);
		subject_open(&s, hg_policy_fp16(), record_attention);
		s.bench.graph = ring(s.bench.ctx, N);
		constant_tensor(&s.bench, N, 4, 1.0f);
		constant_tensor(&s.bench, N, 2, 0.0f);
		constant_tensor(&s.bench, N, 4, 1.0f);
		constant_tensor(&s.bench, N, 2, 1.0f);
		make_c(&s, cosine ? beta : c, cosine ? 2 : 4);
		subject_compile(&s);
		const hg_finding *f = subject_examine(&s);
		CHECK(f && f->cause == HG_CAUSE_INPUT && f->has_bad_score && !f->attended);
		CHECK_STR(f->tensor, "c");
		CHECK(f->bad_score.row == 0 && f->bad_score.head == 1 && isnan(f->bad_score.score));
		CHECK_CONTAINS(f->sentence, "is nan already before the step begins; because of it, the "
		                            "score of the edge from node ");
		CHECK_CONTAINS(f->sentence, " to node 0 in head 1 is nan");
		subject_close(&s);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(edges_of_a_sum_have_scores_and_weights),
	    TEST(mean_of_heads_has_the_edges_of_all),
	    TEST(weights_have_the_mask),
	    TEST(gradient_of_v_names_destinations),
	    TEST(gradients_of_all_scores_are_sums),
	    TEST(score_beyond_f32_is_named),
	    TEST(score_of_minus_infinity_is_no_fault),
	    TEST(bad_constant_names_a_score),
	};
	return RUN_TESTS(argc, argv, cases);
}
