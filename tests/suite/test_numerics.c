#include <math.h>
#include <stdlib.h>

#include "graphs.h"
#include "halfgraph/ops_graph.h"
#include "harness.h"
#include "oracle/num.h"

/* The sums that separate designs: each runs through the public API under a policy, against f64. */

static hg_policy policy_named(const char *name)
{
	hg_policy policy;
	CHECK_OK(hg_policy_parse(name, &policy));
	return policy;
}

/* One aggregation of x [n, d] on a star: the hub's row in y [d], and how many narrowings were
 * proved. */
struct hub {
	float y[8];
	int proved;
};

static struct hub aggregate(const char *policy_name, int64_t leaves, int64_t d,
                            double (*value)(int64_t), hg_norm norm, double amax)
{
	hg_context *ctx = test_context();
	const hg_policy policy = policy_named(policy_name);
	hg_graph *graph = coo_graph(ctx, coo_star(leaves));
	const int64_t n = leaves + 1;
	float *x = calloc((size_t)(n * d), sizeof *x);
	for (int64_t i = 0; i < n * d; i++)
		x[i] = (float)value(i / d);
	hg_tensor *tensor = NULL;
	hg_params *params = NULL;
	hg_tape *tape = NULL;
	CHECK_OK(hg_tensor_create(ctx, policy.state, n, d, &tensor));
	CHECK_OK(hg_tensor_upload(tensor, x, HG_F32));
	CHECK_OK(hg_params_create(ctx, &policy, &params));
	CHECK_OK(hg_tape_create(params, HG_EVAL, &tape));
	const hg_var y =
	    hg_spmm(tape, graph, hg_tape_input(tape, tensor, "x", amax), HG_NONE, norm, 1.0f);
	CHECK_OK(hg_tape_compile(tape, y));
	CHECK_OK(hg_tape_forward(tape));
	CHECK_OK(hg_tensor_download(hg_tape_value(tape, y), x, HG_F32));
	hg_plan_info info = HG_PLAN_INFO_INIT;
	CHECK_OK(hg_tape_plan(tape, &info));
	struct hub hub = {.proved = info.proved};
	for (int64_t k = 0; k < d && k < 8; k++)
		hub.y[k] = x[k];
	hg_tape_free(tape);
	hg_params_free(params);
	hg_tensor_free(tensor);
	hg_graph_free(graph);
	hg_context_free(ctx);
	free(x);
	return hub;
}

enum { LEAVES = 13000, WIDTH = 5 };

/* In (0, 1), exact in fp16, the same for every run. */
static double fraction(int64_t i)
{
	return (double)(1 + (i * 2654435761) % 1023) / 1024.0;
}

static double fraction_sum(void)
{
	double sum = 0;
	for (int64_t i = 1; i <= LEAVES; i++)
		sum += fraction(i);
	return sum;
}

/* A sum of `depth` terms of magnitude `sum`, narrowed once: DESIGN's B. */
static double bound(double u, double depth, double sum)
{
	const double e = depth * u / (1 - depth * u) * sum;
	return e + ORACLE_U16 * (sum + e) + 0x1p-25;
}

static void star_sum_is_right_in_fp16(void)
{
	const struct hub hub = aggregate("fp16", LEAVES, WIDTH, fraction, HG_NORM_NONE, 1.0);
	for (int k = 0; k < WIDTH; k++)
		CHECK_WITHIN(hub.y[k], fraction_sum(), bound(ORACLE_U32, LEAVES, fraction_sum()));
	CHECK_EQ_I(hub.proved, 1); /* 13,000 x 1 < 65520 */
}

static void star_mean_is_right_in_every_safe_mode(void)
{
	const double mean = fraction_sum() / (double)LEAVES;
	CHECK_WITHIN(aggregate("fp16", LEAVES, WIDTH, fraction, HG_NORM_RIGHT, 1.0).y[0], mean,
	             bound(ORACLE_U32, LEAVES + 3, mean));
	/* discretized: 64 terms a batch, one scaling, then one addition a batch, all in fp16; each
	 * scaled batch may lose half a subnormal spacing */
	const double batches = ceil((double)LEAVES / 64.0) + 64, depth = 64 + 1 + batches;
	CHECK_WITHIN(aggregate("fp16-discretized", LEAVES, WIDTH, fraction, HG_NORM_RIGHT, 1.0).y[0],
	             mean, bound(ORACLE_U16, depth, mean) + batches * 0x1p-25);
}

/* The mistake this library exists for: an fp16 sum of numbers below 1 stops growing where the
 * spacing of halves exceeds them, without an INF or a NaN. */
static void star_sum_sticks_in_naive_fp16(void)
{
	const struct hub hub = aggregate("fp16-naive", LEAVES, WIDTH, fraction, HG_NORM_NONE, 1.0);
	test_note("exact sum %.1f, naive fp16 %.1f", fraction_sum(), (double)hub.y[0]);
	CHECK(hub.y[0] <= 2048.0f && fraction_sum() > 6000.0);
}

static double one(int64_t i)
{
	(void)i;
	return 1.0;
}

static void seventy_thousand_ones(void)
{
	const struct hub sum = aggregate("fp16", 70000, 1, one, HG_NORM_NONE, 1.0);
	CHECK(isinf(sum.y[0])); /* 70,000 is no fp16 number, however it is summed */
	CHECK_EQ_I(sum.proved, 0);
	const struct hub mean = aggregate("fp16", 70000, 1, one, HG_NORM_RIGHT, 1.0);
	CHECK_WITHIN(mean.y[0], 1.0, bound(ORACLE_U32, 70003, 1.0));
	CHECK_EQ_I(mean.proved, 1);
	CHECK(isinf(aggregate("fp16-naive", 70000, 1, one, HG_NORM_RIGHT, 1.0).y[0]) ||
	      aggregate("fp16-naive", 70000, 1, one, HG_NORM_RIGHT, 1.0).y[0] < 0.9f);
}

/* +-60,000 in turn and a 1 every tenth: the large terms cancel, the small ones are the answer. */
static double cancelling(int64_t i)
{
	return i % 10 == 0 ? 1.0 : i % 2 ? 60000.0 : -60000.0;
}

static void cancellation_keeps_the_small_terms(void)
{
	double sum = 0, magnitude = 0;
	for (int64_t i = 1; i <= 1000; i++) {
		sum += cancelling(i);
		magnitude += fabs(cancelling(i));
	}
	const double e = 1000 * ORACLE_U32 * magnitude;
	const struct hub hub = aggregate("fp16", 1000, 3, cancelling, HG_NORM_RIGHT, 60000.0);
	CHECK_WITHIN(hub.y[0], sum / 1000, e / 1000 + ORACLE_U16 * (fabs(sum) + e) / 1000 + 0x1p-25);
}

/* A softmax over 20,000 edges: each weight is 5e-5, a subnormal half; weighting ones with them must
 * give one again. */
static void softmax_over_twenty_thousand_edges(void)
{
	enum { EDGES = 20000 };
	hg_context *ctx = test_context();
	const hg_policy policy = policy_named("fp16");
	hg_graph *graph = coo_graph(ctx, coo_star(EDGES));
	hg_params *params = NULL;
	hg_tape *tape = NULL;
	hg_tensor *logits = NULL, *ones = NULL;
	float *x = calloc(EDGES + 1, sizeof *x);
	for (int64_t i = 0; i <= EDGES; i++)
		x[i] = 1.0f;
	CHECK_OK(hg_tensor_create(ctx, HG_F16, EDGES, 1, &logits));
	CHECK_OK(hg_tensor_create(ctx, HG_F16, EDGES + 1, 1, &ones));
	CHECK_OK(hg_tensor_upload(logits, x, HG_F32));
	CHECK_OK(hg_tensor_upload(ones, x, HG_F32));
	CHECK_OK(hg_params_create(ctx, &policy, &params));
	CHECK_OK(hg_tape_create(params, HG_EVAL, &tape));
	const hg_var p = hg_edge_softmax(tape, graph, hg_tape_input(tape, logits, "logits", -1.0));
	const hg_var y =
	    hg_spmm(tape, graph, hg_tape_input(tape, ones, "ones", 1.0), p, HG_NORM_NONE, 1.0f);
	hg_tape_keep(tape, p);
	CHECK_OK(hg_tape_compile(tape, y));
	CHECK_OK(hg_tape_forward(tape));
	CHECK_OK(hg_tensor_download(hg_tape_value(tape, p), x, HG_F32));
	for (int64_t e = 0; e < EDGES; e++)
		CHECK_WITHIN(x[e], 1.0 / (double)EDGES,
		             0x1p-25 + (EDGES + 16) * ORACLE_U32 / (double)EDGES);
	CHECK_OK(hg_tensor_download(hg_tape_value(tape, y), x, HG_F32));
	/* every weight may be off by half the spacing of subnormal halves */
	CHECK_WITHIN(x[0], 1.0, (double)EDGES * 0x1p-25 + 3 * EDGES * ORACLE_U32 + ORACLE_U16);
	hg_tape_free(tape);
	hg_params_free(params);
	hg_tensor_free(logits);
	hg_tensor_free(ones);
	hg_graph_free(graph);
	hg_context_free(ctx);
	free(x);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(star_sum_is_right_in_fp16),          TEST(star_mean_is_right_in_every_safe_mode),
	    TEST(star_sum_sticks_in_naive_fp16),      TEST(seventy_thousand_ones),
	    TEST(cancellation_keeps_the_small_terms), TEST(softmax_over_twenty_thousand_edges),
	};
	return RUN_TESTS(argc, argv, cases);
}
