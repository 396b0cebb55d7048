/* Sums in f16 that the doctor examines: they overflow on the way, or ignore their addends. */
#include <string.h>

#include "unit/doctor_subject.h"

/* ---- sums that ignore addends ---- */

static void naive_sum_of_ones_stops_at_2048(void)
{
	struct subject s;
	subject_star(&s, hg_policy_fp16_naive(), 13001, 1.0f);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_SWAMPING, 0, "spmm", "conv1", 0, 0);
	CHECK_EQ_I(f->partial_at, 2048);
	CHECK_EQ_I(f->terms, 13000);
	CHECK(f->partial == 2048.0 && f->got == 2048.0 && f->wide == 13000.0 && f->limit == 1.0);
	CHECK(f->tops == HG_DOCTOR_TOP && f->top[0].row == 1 && f->top[0].value == 1.0);
	CHECK_STR(f->tensor, "conv1/spmm");
	CHECK_STR(f->remedy[0].call, "policy = hg_policy_fp16()");
	subject_close(&s);
}

/* 13000 of the 65520 at which f16 overflows leave 2.3 bits of headroom. */
static void f32_sum_of_the_same_star_is_healthy(void)
{
	struct subject s;
	subject_star(&s, hg_policy_fp16(), 13001, 1.0f);
	expect_healthy(&s);
	CHECK(s.report->headroom > 0.0 && s.report->headroom < 3.0);
	CHECK(*s.report->headroom_at);
	subject_close(&s);
}

/* 30000, then 1500 fives that are less than half a unit of it, then -30000 and 1500 fives that
 * count. */
static void sum_of_both_signs_ignores_small_addends(void)
{
	enum { FIVES = 1500, N = 2 * FIVES + 3 };
	static float x[N][3];
	struct subject s;
	subject_open(&s, hg_policy_fp16_naive(), record_sum);
	s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(N));
	for (int i = 1; i < N; i++)
		x[i][1] = i == 1 ? 30000.0f : i == FIVES + 2 ? -30000.0f : 5.0f;
	tensor_of(&s.bench, HG_F16, N, 3, x, HG_F32);
	constant_tensor(&s.bench, N, 2, 0.0f);
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_SWAMPING, 0, "spmm", "conv1", 0, 1);
	CHECK(f->got < 0.6 * f->wide && f->wide == 10.0 * (double)FIVES);
	CHECK(f->partial == 30000.0 && f->partial_at == 1 && f->partial_factor == 1.0 &&
	      f->limit == 8.0);
	CHECK_EQ_I(f->terms, 2 * FIVES + 2);
	/* on the way to 7500 some of the last fives are ignored, too */
	CHECK(f->ignored >= FIVES && f->ignored < FIVES + FIVES / 2);
	CHECK(f->ignored_share >= 5.0 * (double)FIVES / (60000.0 + 10.0 * (double)FIVES));
	subject_close(&s);
}

static hg_var record_mean(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "conv1");
	const hg_var h =
	    hg_spmm_mean(tape, b->graph, hg_tape_input(tape, b->tensor[0], "features", -1.0));
	hg_tape_scope(tape, NULL);
	const hg_var y = hg_linear(
	    tape, h, hg_tape_param(tape, param(b, "w", hg_tensor_cols(b->tensor[0]), 2)), HG_NONE);
	return hg_mse(tape, hg_scale(tape, y, 0x1p-12f), targets_of(b, tape), HG_NONE);
}

/* A mean is a sum that is multiplied by the factor of its row at the end. The running sum is
 * reported before that, and the sentence says so. */
static void swamped_mean_reports_the_sum_before_its_factor(void)
{
	struct subject s;
	subject_open(&s, hg_policy_fp16_naive(), record_mean);
	s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(4097));
	constant_tensor(&s.bench, 4097, 3, 1.0f);
	constant_tensor(&s.bench, 4097, 2, 0.0f);
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_SWAMPING, 0, "spmm", "conv1", 0, 0);
	CHECK(f->partial == 2048.0 && f->partial_at == 2048 && f->partial_factor == 1.0 / 4096.0 &&
	      f->wide == 1.0 && f->got == 0.5);
	CHECK(f->ignored == 2048 && f->ignored_share == 0.5);
	CHECK(strstr(f->sentence, "(not yet multiplied by 0.000244141), which") != NULL);
	subject_close(&s);
}

/* The edges of the hub are gathered from its neighbours and added, or averaged. */
static hg_var record_scatter(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_tape_input(tape, b->tensor[0], "features", -1.0);
	hg_tape_scope(tape, "conv1");
	const hg_var z = hg_gather(tape, b->graph, x, HG_END_SOURCE),
	             h = hg_scatter(tape, b->graph, z, HG_END_DESTINATION, HG_REDUCE_SUM);
	hg_tape_scope(tape, NULL);
	const hg_var y = hg_linear(
	    tape, h, hg_tape_param(tape, param(b, "w", hg_tensor_cols(b->tensor[0]), 2)), HG_NONE);
	return hg_mse(tape, hg_scale(tape, y, 0x1p-12f), targets_of(b, tape), HG_NONE);
}

static void swamped_sum_of_edges_is_named(void)
{
	char headline[256];
	struct subject s;
	subject_open(&s, hg_policy_fp16_naive(), record_scatter);
	s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(4097));
	constant_tensor(&s.bench, 4097, 3, 1.0f);
	constant_tensor(&s.bench, 4097, 2, 0.0f);
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_SWAMPING, 0, "scatter", "conv1", 0, 0);
	CHECK(f->partial == 2048.0 && f->partial_at == 2048 && f->wide == 4096.0 && f->got == 2048.0);
	CHECK(f->terms == 4096 && f->over_edges && f->row_is == HG_ROW_NODE);
	(void)hg_finding_headline(f, NULL, NULL, headline, sizeof headline);
	CHECK_CONTAINS(headline, "4096 edges of node 0");
	subject_close(&s);
}

/* 40000 + 40000 - 40000 - 40000 at the edges of node 0. */
static void partial_sum_of_edges_overflows(void)
{
	const float features[5][3] = {
	    {0}, {0, 40000.0f}, {0, 40000.0f}, {0, -40000.0f}, {0, -40000.0f}};
	struct subject s;
	subject_open(&s, hg_policy_fp16_naive(), record_scatter);
	s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(5));
	tensor_of(&s.bench, HG_F16, 5, 3, features, HG_F32);
	constant_tensor(&s.bench, 5, 2, 0.0f);
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_ACCUMULATION, 0, "scatter", "conv1", 0, 1);
	CHECK(f->wide == 0.0 && f->partial_at == 2 && f->over_edges);
	subject_close(&s);
}

/* Every leaf copies the hub, so the gradient of the hub is the sum of the gradients of all
 * leaves. */
static hg_var record_copies(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "conv1");
	const hg_var h = hg_spmm(tape, b->graph, x_of(b, tape), HG_NONE, HG_NORM_NONE, 1.0f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, h, targets_of(b, tape), HG_NONE);
}

/* The loss scale makes each of the 4096 gradients 1: 2 (x - target) scale / n. */
static void swamped_sum_of_gradients_is_found(void)
{
	enum { LEAVES = 4096 };
	hg_policy policy = hg_policy_fp16_naive();
	struct subject s;
	policy.loss_scale.init_scale = (LEAVES + 1) / 2.0f;
	subject_open(&s, policy, record_copies);
	struct coo edges = coo_empty(LEAVES + 1, LEAVES + 1);
	for (int64_t i = 1; i <= LEAVES; i++)
		coo_add(&edges, i, 0);
	s.bench.graph = coo_graph(s.bench.ctx, edges);
	constant_tensor(&s.bench, LEAVES + 1, 1, 1.0f);
	constant_tensor(&s.bench, LEAVES + 1, 1, 0.0f);
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_SWAMPING, 1, "spmm", "conv1", 0, 0);
	CHECK(f->partial == 2048.0 && f->partial_at == 2048 && f->wide == 4096.0);
	subject_close(&s);
}

/* ---- sums that overflow ---- */

/* No way of summing makes 80000 fit. */
static void sum_that_does_not_fit_is_a_store_overflow(void)
{
	struct subject s;
	subject_star(&s, hg_policy_fp16_naive(), 2001, 40.0f);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_STORE, 0, "spmm", "conv1", 0, 0);
	CHECK(f->wide == 80000.0 && isinf(f->got) && f->terms == 2000 && f->bad == 3);
	CHECK(f->row_is == HG_ROW_NODE);
	subject_close(&s);
}

/* 40000 + 40000 - 40000 - 40000 is 0, but the second addend overflows. */
static void partial_sum_overflows(void)
{
	const float features[5][3] = {
	    {0}, {0, 40000.0f}, {0, 40000.0f}, {0, -40000.0f}, {0, -40000.0f}};
	struct subject s;
	subject_open(&s, hg_policy_fp16_naive(), record_sum);
	s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(5));
	tensor_of(&s.bench, HG_F16, 5, 3, features, HG_F32);
	constant_tensor(&s.bench, 5, 2, 0.0f);
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_ACCUMULATION, 0, "spmm", "conv1", 0, 1);
	CHECK_EQ_I(f->partial_at, 2);
	CHECK(f->partial == 40000.0 && f->wide == 0.0 && f->terms == 4);
	subject_close(&s);
}

/* The mean is 20000, but four addends make 80000 before the batch is divided by the degree. */
static void batch_overflows_before_its_factor(void)
{
	struct subject s;
	subject_open(&s, hg_policy_fp16_discretized(), record_mean);
	s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(201));
	constant_tensor(&s.bench, 201, 3, 20000.0f);
	constant_tensor(&s.bench, 201, 2, 0.0f);
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_ACCUMULATION, 0, "spmm", "conv1", 0, 0);
	CHECK_EQ_I(f->partial_at, 4);
	CHECK(f->partial == 60000.0 && fabs(f->wide - 20000.0) < 1e-2);
	subject_close(&s);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(naive_sum_of_ones_stops_at_2048),
	    TEST(f32_sum_of_the_same_star_is_healthy),
	    TEST(sum_of_both_signs_ignores_small_addends),
	    TEST(swamped_mean_reports_the_sum_before_its_factor),
	    TEST(swamped_sum_of_gradients_is_found),
	    TEST(swamped_sum_of_edges_is_named),
	    TEST(partial_sum_of_edges_overflows),
	    TEST(sum_that_does_not_fit_is_a_store_overflow),
	    TEST(partial_sum_overflows),
	    TEST(batch_overflows_before_its_factor),
	};
	return RUN_TESTS(argc, argv, cases);
}
