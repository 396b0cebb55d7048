#include <math.h>
#include <stdio.h>

#include "graphs.h"
#include "nn/train.h"
#include "unit/tape.h"

/* hg_tape_explain and hg_tape_narrowing: for every narrowing of a step, the bound, the rule it
 * comes from, the verdict and the guard; as numbers, as text, and for whole models. */

struct lines {
	char text[64 * 400];
	size_t length;
	int count;
};

static void collect(void *user, const char *line)
{
	struct lines *l = user;
	l->length += (size_t)snprintf(l->text + l->length, sizeof l->text - l->length, "%s\n", line);
	l->count++;
	CHECK(l->length < sizeof l->text);
}

/* The mean of X (|X| at most 3) on a ring, then X W, then relu. Checks the numbers and the rule of
 * each narrowing. */
static void every_narrowing_has_its_rule(void)
{
	struct bench b;
	const float x[] = {3, -1, 2, 0.5f, 1, -3, 0, 0, 1, 2};
	bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
	b.graph = ring(b.ctx, 5);
	hg_var h = hg_tape_input(b.tape, tensor_of(&b, HG_F16, 5, 2, x, HG_F32), "x", -1.0);
	const hg_var mean = hg_spmm_mean(b.tape, b.graph, h);
	hg_tape_keep(b.tape, mean);
	hg_tape_scope(b.tape, "fc");
	h = hg_relu(b.tape,
	            hg_linear(b.tape, mean, hg_tape_param(b.tape, param(&b, "w", 2, 4)), HG_NONE));
	CHECK_OK(hg_tape_compile(
	    b.tape,
	    hg_softmax_xent(b.tape, h, hg_tape_input(b.tape, label_tensor(&b, 5, 4), "labels", -1.0),
	                    HG_NONE)));
	hg_narrowing n = HG_NARROWING_INIT;
	const int64_t rows = hg_tape_narrowings(b.tape);
	/* those of x and w, of mean, linear and relu, and of the gradients of linear and relu */
	CHECK_EQ_I(rows, 2 + 3 + 2);
	CHECK_OK(hg_tape_narrowing(b.tape, 0, &n));
	CHECK_STR(n.op, "input");
	CHECK_STR(n.layer, "x");
	CHECK(n.evidence == HG_EVIDENCE_EXACT && n.verdict == HG_PROVED && n.bound == 3.0);
	CHECK_WITHIN(n.headroom, log2(65520 / 3.0), 1e-9);
	CHECK_OK(hg_tape_narrowing(b.tape, 1, &n));
	CHECK_STR(n.op, "weight");
	CHECK(n.evidence == HG_EVIDENCE_MEASURED && n.verdict == HG_GUARDED && n.sure == 65504.0);
	const double w = n.bound;
	/* The weights are drawn from (-1, 1). The assumed bound is four times the largest, and at least
	 * 1. */
	CHECK(w >= 1.0 && w <= 4.01);
	CHECK_OK(hg_tape_narrowing(b.tape, 2, &n));
	CHECK_STR(n.op, "spmm");
	CHECK_CONTAINS(n.because, "row sums 1 x |X| 3");
	CHECK(n.evidence == HG_EVIDENCE_PROVED && n.verdict == HG_PROVED && n.bound >= 3.0 &&
	      n.bound < 3.01);
	CHECK_OK(hg_tape_narrowing(b.tape, 3, &n));
	CHECK_STR(n.layer, "fc");
	CHECK_CONTAINS(n.because, "2 columns x |X| 3");
	CHECK(n.evidence == HG_EVIDENCE_MEASURED && n.verdict == HG_GUARDED && n.bound >= 6.0 * w &&
	      n.bound < 6.1 * w);
	CHECK_OK(hg_tape_narrowing(b.tape, 4, &n));
	CHECK_STR(n.op, "relu");
	CHECK_EQ_I(n.verdict, HG_PROVED); /* relu of any halves fits in halves */
	CHECK_OK(hg_tape_narrowing(b.tape, rows - 1, &n));
	CHECK(n.backward && n.evidence <= HG_EVIDENCE_MEASURED);
	CHECK_STATUS(hg_tape_narrowing(b.tape, rows, &n), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(b.ctx), "there are 7");
	CHECK_STATUS(hg_tape_narrowing(b.tape, 0, NULL), HG_ERR_ARG);
	bench_close(&b);
}

/* The weights of a softmax are at most 1 and add up to 1 in each row. So the aggregation is at most
 * as large as its operand. Dropout keeps this knowledge, with its factor. */
static void softmax_weights_keep_the_bound(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
	b.graph = ring(b.ctx, 40);
	const hg_var e = hg_tape_input(b.tape, random_tensor(&b, HG_F16, 120, 2, 10.0), "e", -1.0);
	const hg_var x = hg_tape_input(b.tape, random_tensor(&b, HG_F16, 40, 6, 1.0), "x", 4.0);
	const hg_var p = hg_edge_softmax(b.tape, b.graph, e);
	const hg_var y = hg_spmm(b.tape, b.graph, x, p, HG_NORM_NONE, 1.0f),
	             z = hg_spmm(b.tape, b.graph, x, hg_dropout(b.tape, p, 0.5f), HG_NORM_NONE, 1.0f);
	hg_tape_keep(b.tape, y);
	CHECK_OK(hg_tape_compile(b.tape, z));
	const struct hg__value *plain = &b.tape->recording.value[hg__tape_index(b.tape, y)],
	                       *dropped = &b.tape->recording.value[hg__tape_index(b.tape, z)];
	CHECK(plain->known[HG__UNCONDITIONAL].largest >= 4.0 &&
	      plain->known[HG__UNCONDITIONAL].largest < 4.01);
	CHECK(dropped->known[HG__UNCONDITIONAL].largest >= 8.0 &&
	      dropped->known[HG__UNCONDITIONAL].largest < 12.1);
	bench_close(&b);
}

/* The weights add up to 1 in the rows of the graph of the softmax. In another graph with as many
 * edges, a row may have many of them, and the knowledge does not hold. */
static void row_sums_hold_in_one_graph_only(void)
{
	enum { M = 120 };
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
	b.graph = ring(b.ctx, M / 3);
	struct coo edges = coo_fan_in(M / 3, M / 3);
	coo_repeat(&edges, 3);
	hg_graph *star = coo_graph(b.ctx, edges);
	const hg_var e = hg_tape_input(b.tape, random_tensor(&b, HG_F16, M, 1, 10.0), "e", -1.0);
	const hg_var x = hg_tape_input(b.tape, random_tensor(&b, HG_F16, M / 3, 6, 1.0), "x", 4.0);
	const hg_var y =
	    hg_spmm(b.tape, star, x, hg_dropout(b.tape, hg_edge_softmax(b.tape, b.graph, e), 0.0f),
	            HG_NORM_NONE, 1.0f);
	CHECK_OK(hg_tape_compile(b.tape, y));
	CHECK(b.tape->recording.value[hg__tape_index(b.tape, y)].known[HG__UNCONDITIONAL].largest >=
	      4.0 * (double)M);
	hg_tape_free(b.tape);
	b.tape = NULL;
	hg_graph_free(star);
	bench_close(&b);
}

static void explanation_names_rules_and_guards(void)
{
	struct bench b;
	struct lines out = {.count = 0};
	bench_open(&b, test_context(), hg_policy_fp16_discretized(), HG_TRAIN);
	b.graph = ring(b.ctx, 40);
	const hg_tensor *x = random_tensor(&b, HG_F16, 40, 6, 1.0), *labels = label_tensor(&b, 40, 7);
	CHECK_STATUS(hg_tape_explain(b.tape, collect, &out), HG_ERR_STATE);
	CHECK_OK(hg_tape_compile(b.tape, gcn(&b, b.tape, x, labels, NULL)));
	CHECK_STATUS(hg_tape_explain(b.tape, NULL, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_tape_explain(NULL, collect, &out), HG_ERR_ARG);
	CHECK_OK(hg_tape_explain(b.tape, collect, &out));
	CHECK_CONTAINS(out.text, "policy fp16-discretized");
	CHECK_CONTAINS(out.text, "f16 batch");
	CHECK_CONTAINS(out.text, "before they are scaled");
	CHECK_CONTAINS(out.text, "gradient of");
	CHECK_CONTAINS(out.text, "guard: the weights, in every step");
	CHECK_CONTAINS(out.text, "casts in a step: 0 forward, 0 backward");
	CHECK_EQ_I(out.count, hg_tape_narrowings(b.tape) + 4);
	bench_close(&b);
}

/* In every model each narrowing of the forward pass is proved or guarded, and there is no
 * cast. Every narrowing has a rule and a name of its own. */
static void models_are_proved_or_guarded(void)
{
	for (const char *const *name = hg_model_names(); *name; name++) {
		struct bench b;
		hg_model *model = NULL;
		hg_plan_info info = HG_PLAN_INFO_INIT;
		hg_model_input input = HG_MODEL_INPUT_INIT;
		hg_model_config config = hg_model_config_default(*name);
		bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
		b.graph = ring(b.ctx, 40);
		config.in_features = 12;
		config.out_features = 7;
		config.hidden = 8;
		input.graph = b.graph;
		input.x = random_tensor(&b, HG_F16, 40, 12, 1.0);
		CHECK_OK(hg_model_create(b.params, &config, &model));
		const hg_var logits = hg_model_record(model, b.tape, &input);
		CHECK_OK(hg_tape_compile(
		    b.tape, hg_softmax_xent(b.tape, logits,
		                            hg_tape_input(b.tape, label_tensor(&b, 40, 7), "labels", -1.0),
		                            HG_NONE)));
		int64_t forward = 0;
		for (int64_t k = 0; k < hg_tape_narrowings(b.tape); k++) {
			hg_narrowing n = HG_NARROWING_INIT;
			CHECK_OK(hg_tape_narrowing(b.tape, k, &n));
			CHECK(n.because[0] != 0);
			CHECK_EQ_I(n.guard != HG_GUARD_NONE, n.verdict == HG_GUARDED);
			for (int64_t l = 0; l < k; l++) {
				hg_narrowing other = HG_NARROWING_INIT;
				CHECK_OK(hg_tape_narrowing(b.tape, l, &other));
				CHECK_MSG(strcmp(n.name, other.name) != 0, "two are called %s", n.name);
			}
			if (n.backward || n.state != HG_F16)
				continue;
			CHECK_MSG(n.verdict == HG_PROVED || n.verdict == HG_GUARDED, "%s: %s %s is %s", *name,
			          n.layer, n.op, hg_verdict_name(n.verdict));
			forward++;
		}
		CHECK(forward >= 6);
		CHECK_OK(hg_tape_plan(b.tape, &info));
		CHECK_EQ_I(info.casts, 0);
		hg_tape_free(b.tape);
		b.tape = NULL;
		hg_model_free(model);
		bench_close(&b);
	}
}

/* ---- headroom: results that have some are finite ---- */

/* One node has edges into FAN_OUT others, with norm left. Its gradient is the mean of theirs, but
 * in f16 they are added up before they are divided. Sets *is_finite to 1 if the stored gradient is.
 * Returns its narrowing, which is the last one of the table. */
enum { FAN_OUT = 256 };
static hg_narrowing mean_of_gradients(hg_policy policy, float scale, int *is_finite)
{
	static const int32_t label[FAN_OUT];
	static const float x[4];
	struct bench b;
	hg_narrowing n = HG_NARROWING_INIT;
	policy.loss_scale.init_scale = scale;
	bench_open(&b, test_context(), policy, HG_TRAIN);
	b.graph = coo_graph(b.ctx, coo_fan_out(FAN_OUT));
	const hg_var of = hg_tape_variable(b.tape, tensor_of(&b, HG_F16, 1, 4, x, HG_F32), "x");
	const hg_var y =
	    hg_spmm(b.tape, b.graph, hg_scale(b.tape, of, 1.0f), HG_NONE, HG_NORM_LEFT, 1.0f);
	const hg_var labels =
	    hg_tape_input(b.tape, tensor_of(&b, HG_I32, FAN_OUT, 1, label, HG_I32), "labels", -1.0);
	CHECK_OK(hg_tape_compile(b.tape, hg_softmax_xent(b.tape, y, labels, HG_NONE)));
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	float *gradient = download(hg_tape_grad(b.tape, of));
	*is_finite = isfinite(gradient[0]) != 0;
	free(gradient);
	CHECK_OK(hg_tape_narrowing(b.tape, hg_tape_narrowings(b.tape) - 1, &n));
	CHECK(n.backward && n.state == HG_F16);
	CHECK_STR(n.op, "scale");
	bench_close(&b);
	return n;
}

/* The headroom of a gradient says up to which loss scale it is finite. It allows for a sum in f16
 * that is scaled only when it is complete. */
static void headroom_of_a_gradient_allows_for_its_sum(void)
{
	const hg_policy policy[] = {hg_policy_fp16(), hg_policy_fp16_discretized(),
	                            hg_policy_fp16_naive()};
	for (int p = 0; p < 3; p++) {
		int overflowed = 0;
		for (int k = 0; k <= 24; k++) {
			int is_finite = 0;
			const hg_narrowing n = mean_of_gradients(policy[p], ldexpf(1.0f, k), &is_finite);
			overflowed += !is_finite;
			CHECK_MSG(is_finite || k >= n.headroom,
			          "%s: infinite at scale 2^%d, with headroom for 2^%.2f: %s", policy[p].name, k,
			          n.headroom, n.because);
			CHECK_MSG(is_finite || !(ldexp(n.bound, k) < 65520.0),
			          "%s: infinite at scale 2^%d, bound %g", policy[p].name, k, ldexp(n.bound, k));
		}
		test_note("%s: infinite at %d of 25 scales", policy[p].name, overflowed);
		CHECK((overflowed > 0) == (p > 0));
	}
}

/* The result of a guarded sum is at most the largest half. An op that does not make it larger is
 * proved, and its headroom is not negative. */
static void proved_results_have_headroom(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
	b.graph = ring(b.ctx, 40);
	const hg_var x = hg_tape_input(b.tape, random_tensor(&b, HG_F16, 40, 6, 1.0), "x", 60000.0);
	const hg_var sum = hg_spmm(b.tape, b.graph, x, HG_NONE, HG_NORM_NONE, 1.0f);
	const hg_var y = hg_relu(b.tape, hg_row_mean(b.tape, hg_leaky_relu(b.tape, sum, 0.5f)));
	CHECK_OK(hg_tape_compile(b.tape, y));
	int proved = 0;
	for (int64_t k = 0; k < hg_tape_narrowings(b.tape); k++) {
		hg_narrowing n = HG_NARROWING_INIT;
		CHECK_OK(hg_tape_narrowing(b.tape, k, &n));
		proved += n.verdict == HG_PROVED;
		CHECK_MSG(n.verdict != HG_PROVED || n.headroom >= 0.0,
		          "%s is proved, with headroom %g and bound %.9g", n.op, n.headroom, n.bound);
	}
	CHECK(proved >= 3);
	bench_close(&b);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(every_narrowing_has_its_rule),    TEST(softmax_weights_keep_the_bound),
	    TEST(row_sums_hold_in_one_graph_only), TEST(explanation_names_rules_and_guards),
	    TEST(models_are_proved_or_guarded),    TEST(headroom_of_a_gradient_allows_for_its_sum),
	    TEST(proved_results_have_headroom),
	};
	return RUN_TESTS(argc, argv, cases);
}
