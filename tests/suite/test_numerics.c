/* Sums that tell right designs from wrong ones. Each is computed through the public API under a
 * policy, and compared with f64. */
#include <math.h>
#include <stdlib.h>

#include "oracle/num.h"
#include "unit/tape.h"

/* One aggregation on a star: the hub's row of the result, and how many narrowings are proved. */
struct hub {
	float y[8];
	int proved;
};

/* Aggregates x [leaves + 1, d], whose row i is value(i). amax: the bound that the tape is told. */
static struct hub aggregate(const char *policy_name, int64_t leaves, int64_t d,
                            double (*value)(int64_t), hg_norm norm, double amax)
{
	const hg_policy policy = policy_named(policy_name);
	const int64_t n = leaves + 1;
	struct bench b;
	bench_open(&b, test_context(), policy, HG_EVAL);
	b.graph = coo_graph(b.ctx, coo_star(leaves));
	float *x = calloc((size_t)(n * d), sizeof *x);
	CHECK(x != NULL);
	for (int64_t i = 0; i < n * d; i++)
		x[i] = (float)value(i / d);
	const hg_tensor *tensor = tensor_of(&b, policy.state, n, d, x, HG_F32);
	const hg_var y =
	    hg_spmm(b.tape, b.graph, hg_tape_input(b.tape, tensor, "x", amax), HG_NONE, norm, 1.0f);
	CHECK_OK(hg_tape_compile(b.tape, y));
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tensor_download(hg_tape_value(b.tape, y), x, HG_F32));
	hg_plan_info info = HG_PLAN_INFO_INIT;
	CHECK_OK(hg_tape_plan(b.tape, &info));
	struct hub hub = {.proved = info.proved};
	for (int64_t k = 0; k < d && k < 8; k++)
		hub.y[k] = x[k];
	bench_close(&b);
	free(x);
	return hub;
}

enum { LEAVES = 13000, WIDTH = 5 };

/* Numbers in (0, 1) that are exact in fp16, the same in every run. */
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

/* The error bound of a sum of `depth` terms, whose magnitudes add up to `sum`, narrowed once. */
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
	/* Discretized: 64 terms in each batch, one scaling, then one addition for each batch, all in
	 * fp16. Each scaled batch may be off by half the spacing of subnormal halves. */
	const double batches = ceil((double)LEAVES / 64.0) + 64, depth = 64 + 1 + batches;
	CHECK_WITHIN(aggregate("fp16-discretized", LEAVES, WIDTH, fraction, HG_NORM_RIGHT, 1.0).y[0],
	             mean, bound(ORACLE_U16, depth, mean) + batches * 0x1p-25);
}

/* The mistake that this library prevents: a naive sum of numbers below 1 in fp16 stops growing
 * where the spacing of halves exceeds them, without an infinity or NaN. */
static void star_sum_is_swamped_in_naive_fp16(void)
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

static void mean_of_seventy_thousand_ones_is_one(void)
{
	const struct hub sum = aggregate("fp16", 70000, 1, one, HG_NORM_NONE, 1.0);
	CHECK(isinf(sum.y[0])); /* 70,000 does not fit in fp16, however it is summed */
	CHECK_EQ_I(sum.proved, 0);
	const struct hub mean = aggregate("fp16", 70000, 1, one, HG_NORM_RIGHT, 1.0);
	CHECK_WITHIN(mean.y[0], 1.0, bound(ORACLE_U32, 70003, 1.0));
	CHECK_EQ_I(mean.proved, 1);
	CHECK(isinf(aggregate("fp16-naive", 70000, 1, one, HG_NORM_RIGHT, 1.0).y[0]) ||
	      aggregate("fp16-naive", 70000, 1, one, HG_NORM_RIGHT, 1.0).y[0] < 0.9f);
}

/* 60,000 and -60,000 in turn, and 1 at every tenth place. The large terms cancel each other, so the
 * small ones are the result. */
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

/* A softmax over 20,000 edges. Each weight is 5e-5, a subnormal half, and the weighted sum of ones
 * must be one again. */
static void softmax_over_twenty_thousand_edges_adds_up_to_one(void)
{
	enum { EDGES = 20000 };
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp16(), HG_EVAL);
	b.graph = coo_graph(b.ctx, coo_star(EDGES));
	float *x = calloc(EDGES + 1, sizeof *x);
	CHECK(x != NULL);
	for (int64_t i = 0; i <= EDGES; i++)
		x[i] = 1.0f;
	const hg_tensor *logits = tensor_of(&b, HG_F16, EDGES, 1, x, HG_F32),
	                *ones = tensor_of(&b, HG_F16, EDGES + 1, 1, x, HG_F32);
	const hg_var p =
	    hg_edge_softmax(b.tape, b.graph, hg_tape_input(b.tape, logits, "logits", -1.0));
	const hg_var y =
	    hg_spmm(b.tape, b.graph, hg_tape_input(b.tape, ones, "ones", 1.0), p, HG_NORM_NONE, 1.0f);
	hg_tape_keep(b.tape, p);
	CHECK_OK(hg_tape_compile(b.tape, y));
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tensor_download(hg_tape_value(b.tape, p), x, HG_F32));
	for (int64_t e = 0; e < EDGES; e++)
		CHECK_WITHIN(x[e], 1.0 / (double)EDGES,
		             0x1p-25 + (EDGES + 16) * ORACLE_U32 / (double)EDGES);
	CHECK_OK(hg_tensor_download(hg_tape_value(b.tape, y), x, HG_F32));
	/* Every weight may be off by half the spacing of subnormal halves. */
	CHECK_WITHIN(x[0], 1.0, (double)EDGES * 0x1p-25 + 3 * EDGES * ORACLE_U32 + ORACLE_U16);
	bench_close(&b);
	free(x);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(star_sum_is_right_in_fp16),
	    TEST(star_mean_is_right_in_every_safe_mode),
	    TEST(star_sum_is_swamped_in_naive_fp16),
	    TEST(mean_of_seventy_thousand_ones_is_one),
	    TEST(cancellation_keeps_the_small_terms),
	    TEST(softmax_over_twenty_thousand_edges_adds_up_to_one),
	};
	return RUN_TESTS(argc, argv, cases);
}
