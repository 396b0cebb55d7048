/* The memory plan of a tape, failed allocations, and what the tape prints and reports about
 * itself. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "halfgraph/observe.h"
#include "halfgraph/ops_attention.h"
#include "halfgraph/ops_graph.h"
#include "halfgraph/ops_norm.h"
#include "unit/faulty.h"
#include "unit/tape.h"

static void check_plan(const struct hg__tape_plan *plan)
{
	const struct hg__span *span = plan->span;
	size_t most = 0;
	for (int64_t i = 0; i < plan->spans; i++) {
		size_t alive = 0;
		CHECK(span[i].offset % HG__ALIGN == 0 && span[i].bytes > 0 &&
		      span[i].offset + span[i].bytes <= plan->arena_bytes && span[i].first <= span[i].last);
		for (int64_t j = 0; j < plan->spans; j++) {
			if (span[j].first <= span[i].first && span[i].first <= span[j].last)
				alive += span[j].bytes;
			if (i == j || span[i].last < span[j].first || span[j].last < span[i].first)
				continue;
			CHECK_MSG(span[i].offset + span[i].bytes <= span[j].offset ||
			              span[j].offset + span[j].bytes <= span[i].offset,
			          "buffers %lld and %lld are alive together and overlap", (long long)i,
			          (long long)j);
		}
		most = alive > most ? alive : most;
	}
	CHECK(plan->arena_bytes >= most); /* everything that is alive at one time needs a place */
}

static void random_lifetimes_never_overlap(void)
{
	hg_context *ctx = test_context();
	for (int round = 0; round < 200; round++) {
		struct hg__span span[64];
		struct hg__tape_plan plan = {.span = span, .spans = test_below(65)};
		size_t sum = 0;
		for (int64_t i = 0; i < plan.spans; i++) {
			const int32_t first = (int32_t)test_below(40);
			span[i] = (struct hg__span){.first = first,
			                            .last = first + (int32_t)test_below(12),
			                            .replaces = -1,
			                            .bytes = (size_t)(1 + test_below(20)) * HG__ALIGN};
		}
		/* every third span takes the place of the one before, unless that stays too long */
		for (int64_t i = 2; i < plan.spans; i += 3) {
			span[i].first = span[i - 1].last + (test_below(4) != 0);
			span[i].last = span[i].first + (int32_t)test_below(12);
			span[i].bytes = span[i - 1].bytes;
			span[i].replaces = (int32_t)i - 1;
		}
		for (int64_t i = 0; i < plan.spans; i++)
			sum += span[i].bytes;
		CHECK_OK(hg__arena_place(ctx, &plan));
		check_plan(&plan);
		for (int64_t i = 2; i < plan.spans; i += 3)
			CHECK(span[i].first == span[i - 1].last || span[i].offset == span[i - 1].offset);
		CHECK(plan.arena_bytes <= sum);
	}
	hg_context_free(ctx);
}

/* Buffers of a training step of GAT with two layers, in units of 16 columns. Largest first, they
 * would need 34 units, but no more than 31 are in use at any time. */
static void fullest_time_has_no_gaps(void)
{
	enum { BUFFERS = 13, MOST = 31 };
	static const int32_t buffers[BUFFERS][3] = {
	    {4, 0, 13}, {4, 2, 12}, {4, 2, 12}, {4, 2, 12}, {4, 12, 12}, {3, 3, 10}, {3, 5, 8},
	    {3, 5, 9},  {3, 5, 9},  {3, 8, 9},  {3, 9, 11}, {4, 11, 12}, {4, 12, 13}};
	hg_context *ctx = test_context();
	struct hg__span span[BUFFERS];
	struct hg__tape_plan plan = {.span = span, .spans = BUFFERS};
	for (int i = 0; i < BUFFERS; i++)
		span[i] = (struct hg__span){.first = buffers[i][1],
		                            .last = buffers[i][2],
		                            .replaces = -1,
		                            .bytes = (size_t)buffers[i][0] * HG__ALIGN};
	CHECK_OK(hg__arena_place(ctx, &plan));
	check_plan(&plan);
	CHECK_EQ_I((int64_t)plan.arena_bytes, (int64_t)MOST * HG__ALIGN);
	hg_context_free(ctx);
}

static void plan_of_a_model_never_overlaps(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
	b.graph = ring(b.ctx, 40);
	hg_var logits;
	const hg_var loss =
	    gcn(&b, b.tape, random_tensor(&b, HG_F16, 40, 33, 1.0), label_tensor(&b, 40, 7), &logits);
	CHECK_OK(hg_tape_compile(b.tape, loss));
	check_plan(&b.tape->plan);
	size_t sum = 0;
	for (int64_t i = 0; i < b.tape->plan.spans; i++)
		sum += b.tape->plan.span[i].bytes;
	CHECK(b.tape->plan.arena_bytes < sum); /* some tensors share memory */
	bench_close(&b);
}

/* A layer of attention and a linear one, and a loss whose labels have `classes` classes. */
static hg_var attentive_net(struct bench *b, int64_t nodes, int32_t classes, int weighted)
{
	enum { COLS = 16, HEADS = 2 };
	hg_tape *tape = b->tape;
	hg_attention_config config = HG_ATTENTION_CONFIG_INIT;
	config.heads = HEADS;
	const hg_var x = hg_tape_input(tape, random_tensor(b, HG_F16, nodes, COLS, 1.0), "x", -1.0),
	             u = hg_linear(tape, x, hg_tape_param(tape, param(b, "w", COLS, COLS)), HG_NONE),
	             q = hg_head_dot_pair(tape, u, hg_tape_param(tape, param(b, "dst", 1, COLS)),
	                                  hg_tape_param(tape, param(b, "src", 1, COLS)), HEADS);
	const hg_attention_operands operands = {q, HG_NONE, u, HG_NONE, HG_NONE};
	hg_var y = hg_attention(tape, b->graph, &operands, &config);
	y = hg_elu(tape, hg_bias_add(tape, y, hg_tape_param(tape, param(b, "b", 1, COLS))), 1.0f);
	y = hg_linear(tape, y, hg_tape_param(tape, param(b, "w2", COLS, classes)), HG_NONE);
	const hg_var labels = hg_tape_input(tape, label_tensor(b, nodes, classes), "labels", -1.0);
	return weighted ? hg_softmax_xent_weighted(tape, y, labels, HG_NONE, HG_NONE, 0.1f)
	                : hg_softmax_xent(tape, y, labels, HG_NONE);
}

/* The gradient of a loss's operand takes its place, and that of V the place of the result of
 * attention. A copy of the tape in which no memory is shared has the same bits. */
static void gradients_take_the_place_of_values(void)
{
	static const struct {
		int32_t classes;
		int weighted;
	} cases[] = {{7, 0}, {1100, 0}, {8, 1}};
	static const char *const params[] = {"w", "dst", "src", "b", "w2"};
	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		struct bench b;
		hg_tape *copy = NULL;
		int replaced = 0;
		bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
		b.graph = ring(b.ctx, 50);
		hg_tape_observe(b.tape, 0);
		CHECK_OK(
		    hg_tape_compile(b.tape, attentive_net(&b, 50, cases[k].classes, cases[k].weighted)));
		check_plan(&b.tape->plan);
		for (int64_t i = 0; i < b.tape->plan.spans; i++) {
			const struct hg__span *span = &b.tape->plan.span[i];
			if (span->replaces < 0)
				continue;
			CHECK(span->offset == b.tape->plan.span[span->replaces].offset);
			replaced++;
		}
		CHECK_EQ_I(replaced, 2);
		CHECK_OK(hg__tape_copy_kept(b.tape, &copy));
		for (size_t p = 0; p < sizeof params / sizeof params[0]; p++) {
			const hg_tensor *grad = hg_param_grad(hg_params_find(b.params, params[p]));
			CHECK_OK(hg_tape_forward(b.tape));
			CHECK_OK(hg_tape_backward(b.tape));
			float *shared = download(grad);
			CHECK_OK(hg_tape_forward(copy));
			CHECK_OK(hg_tape_backward(copy));
			float *apart = download(grad);
			const size_t bytes = (size_t)(grad->mat.rows * grad->mat.cols) * sizeof *apart;
			CHECK_MSG(memcmp(shared, apart, bytes) == 0, "gradient of %s", params[p]);
			free(shared);
			free(apart);
		}
		hg_tape_free(copy);
		bench_close(&b);
	}
}

/* A random expression. With every value kept no memory is shared. So a comparison of the two tapes
 * shows that sharing memory changes no bit of any gradient. A tape that keeps every value fuses no
 * ops. Fusion may change bits: it saves roundings in f16, and in f32 it changes the order in which
 * a gradient with three contributions is added. So fusion is off in both tapes, except for some
 * cases in f32, where the difference may be a few roundings of the largest number. */
static hg_var random_net(struct bench *b, hg_tape *tape, const hg_tensor *x, const hg_tensor *t,
                         uint64_t salt, int keep)
{
	hg_var v[24];
	test_reseed(salt);
	v[0] = hg_tape_variable(tape, x, "x");
	v[1] = hg_linear(tape, v[0], hg_tape_param(tape, param(b, "w", 9, 9)),
	                 hg_tape_param(tape, param(b, "c", 1, 9)));
	for (int i = 2; i < 24; i++) {
		const hg_var one = v[i - 1 - (int)test_below(i < 4 ? i : 4)], two = v[test_below(i)];
		const int64_t kind = test_below(6);
		v[i] = kind == 0   ? hg_add(tape, one, two)
		       : kind == 1 ? hg_relu(tape, one)
		       : kind == 2 ? hg_scale(tape, one, 0.5f)
		       : kind == 3 ? hg_linear(tape, one, hg_tape_param(tape, param(b, "w", 9, 9)), HG_NONE)
		       : kind == 4 ? hg_spmm_mean(tape, b->graph, one)
		                   : hg_dropout(tape, hg_elu(tape, one, 1.0f), 0.25f);
	}
	for (int i = 1; i < 24 && keep; i++)
		hg_tape_keep(tape, v[i]);
	return hg_mse(tape, hg_add(tape, v[23], v[22]), hg_tape_input(tape, t, "t", -1.0), HG_NONE);
}

static int nearly_equal(const float *a, const float *b, int count, double slack)
{
	double most = 0.0, worst = 0.0;
	for (int i = 0; i < count; i++) {
		most = fmax(most, fabs((double)a[i]));
		worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
	}
	return slack == 0.0 ? memcmp(a, b, (size_t)count * sizeof *a) == 0 : worst <= slack * most;
}

static void sharing_memory_changes_no_bit(void)
{
	for (uint64_t salt = 1; salt <= 20; salt++) {
		struct bench b;
		bench_open(&b, test_context(), salt % 2 ? hg_policy_fp16() : hg_policy_fp32(), HG_TRAIN);
		b.graph = ring(b.ctx, 11);
		b.ctx->separate_ops = salt % 4 != 2;
		const hg_dtype state = b.params->policy.state;
		const hg_tensor *x = random_tensor(&b, state, 11, 9, 0.5),
		                *t = random_tensor(&b, state, 11, 9, 0.5);
		hg_tape *roomy = NULL;
		CHECK_OK(hg_tape_create(b.params, HG_TRAIN, &roomy));
		hg_tape *const tapes[] = {b.tape, roomy, b.tape};
		float *dw[3], *dx[3];
		const hg_var loss[] = {random_net(&b, b.tape, x, t, salt, 0),
		                       random_net(&b, roomy, x, t, salt, 1)};
		CHECK_OK(hg_tape_compile(b.tape, loss[0]));
		CHECK_OK(hg_tape_compile(roomy, loss[1]));
		CHECK(b.tape->plan.arena_bytes < roomy->plan.arena_bytes);
		check_plan(&b.tape->plan);
		for (int i = 0; i < 3; i++) { /* the last one repeats the first */
			CHECK_OK(hg_tape_forward(tapes[i]));
			CHECK_OK(hg_tape_backward(tapes[i]));
			dw[i] = download(hg_param_grad(param(&b, "w", 9, 9)));
			dx[i] = download(hg_tape_grad(tapes[i], hg__tape_var(tapes[i], 0)));
		}
		for (int i = 1; i < 3; i++) {
			const double slack = i == 1 && !b.ctx->separate_ops ? 24 * 0x1p-24 : 0.0;
			CHECK(nearly_equal(dw[0], dw[i], 81, slack));
			CHECK(nearly_equal(dx[0], dx[i], 99, slack));
		}
		for (int i = 0; i < 3; i++) {
			free(dw[i]);
			free(dx[i]);
		}
		hg_tape_free(roomy);
		bench_close(&b);
	}
}

/* Everything from parameters to a backward pass, until the first call that fails. */
static hg_status make_and_run(hg_context *ctx)
{
	struct bench b = {.ctx = ctx};
	const int32_t label[] = {0, 1, 2};
	const float x[] = {1, 2, 3, 4, 5, 6};
	hg_param *w = NULL;
	hg_tensor *tx = NULL, *ty = NULL;
	hg_status s = hg_params_create(ctx, NULL, &b.params);
	if (s >= 0)
		s = hg_tensor_create(ctx, HG_F32, 3, 2, &tx);
	if (s >= 0)
		s = hg_tensor_upload(tx, x, HG_F32);
	if (s >= 0)
		s = hg_tensor_create(ctx, HG_I32, 3, 1, &ty);
	if (s >= 0)
		s = hg_tensor_upload(ty, label, HG_I32);
	if (s >= 0) {
		struct coo edges = coo_cycle(3);
		coo_add(&edges, 0, 2);
		s = coo_build(ctx, &edges, &b.graph);
		coo_free(&edges);
	}
	if (s >= 0)
		s = hg_params_add(b.params, "w", 2, 3, HG_INIT_GLOROT_UNIFORM, 0, &w);
	if (s >= 0)
		s = hg_tape_create(b.params, HG_TRAIN, &b.tape);
	if (s >= 0) {
		hg_tape_scope(b.tape, "conv");
		const hg_var h = hg_linear(b.tape, hg_tape_input(b.tape, tx, "x", -1.0),
		                           hg_tape_param(b.tape, w), HG_NONE);
		const hg_var loss =
		    hg_softmax_xent(b.tape, hg_spmm(b.tape, b.graph, h, HG_NONE, HG_NORM_BOTH, 1.0f),
		                    hg_tape_input(b.tape, ty, "y", -1.0), HG_NONE);
		s = hg_tape_compile(b.tape, loss);
	}
	if (s >= 0)
		s = hg_tape_forward(b.tape);
	if (s >= 0)
		s = hg_tape_backward(b.tape);
	hg_tape_free(b.tape);
	hg_graph_free(b.graph);
	hg_tensor_free(tx);
	hg_tensor_free(ty);
	hg_params_free(b.params);
	return s;
}

static void failed_allocations_are_reported(void)
{
	const char *device = getenv("HG_TEST_DEVICE");
	if (device && strcmp(device, "cuda") == 0)
		SKIP("the memory hooks of this test are host memory");
	int64_t failures = 0;
	for (int64_t k = 0;; k++) {
		struct faulty f = {.fail_at = k};
		hg_context_config config = HG_CONTEXT_CONFIG_INIT;
		config.device = HG_DEVICE_CPU;
		config.allocator = faulty_hooks(&f);
		hg_context *ctx = NULL;
		hg_status status = hg_context_create(&config, &ctx);
		if (status == HG_OK)
			status = make_and_run(ctx);
		if (status != HG_OK) {
			CHECK_STATUS(status, HG_ERR_NOMEM);
			CHECK_MSG(!ctx || *hg_context_error(ctx), "allocation %lld failed without a message",
			          (long long)k);
			failures++;
		}
		hg_context_free(ctx);
		CHECK_MSG(f.out == 0 && f.bytes == 0,
		          "allocation %lld failed: %lld pieces, %zu bytes of memory are lost", (long long)k,
		          (long long)f.out, f.bytes);
		if (f.calls <= k)
			break;
		CHECK_MSG(status != HG_OK, "allocation %lld failed, but no call did", (long long)k);
	}
	test_note("%lld allocations", (long long)failures);
	CHECK(failures > 20);
}

/* The error of an arena that there is no memory for names the largest tensors. */
static void missing_memory_names_the_largest_tensors(void)
{
	struct bench b;
	struct faulty f;
	bench_open(&b, faulty_cpu_context(&f, 100000, 1), hg_policy_fp32(), HG_EVAL);
	const hg_var x = hg_tape_input(b.tape, random_tensor(&b, HG_F32, 100, 8, 1.0), "x", -1.0);
	hg_tape_scope(b.tape, "wide");
	const hg_var y = hg_linear(b.tape, x, hg_tape_param(b.tape, param(&b, "w", 8, 512)), HG_NONE);
	CHECK_STATUS(hg_tape_compile(b.tape, y), HG_ERR_NOMEM);
	CHECK_CONTAINS(
	    hg_context_error(b.ctx),
	    "no memory for an arena of 204800 bytes; largest: wide/linear f32 [100, 512] 204800");
	bench_close(&b);
}

static void append_line(void *user, const char *line)
{
	char *text = user;
	strncat(text, line, 16000 - strlen(text) - 2);
	strcat(text, "\n");
}

static void print_shows_nodes_verdicts_and_memory(void)
{
	struct bench b;
	char text[16000] = "";
	bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
	b.graph = ring(b.ctx, 20);
	hg_var logits;
	const hg_var loss =
	    gcn(&b, b.tape, random_tensor(&b, HG_F16, 20, 9, 1.0), label_tensor(&b, 20, 7), &logits);
	/* before the tape is compiled it has no plan */
	CHECK_OK(hg_tape_print(b.tape, append_line, text));
	CHECK_CONTAINS(text, "policy fp16");
	text[0] = 0;
	(void)hg_relu(b.tape, logits);
	CHECK_OK(hg_tape_compile(b.tape, loss));
	CHECK_OK(hg_tape_print(b.tape, append_line, text));
	if (getenv("HG_TEST_SHOW"))
		fputs(text, stdout);
	static const char *const wanted[] = {"conv1",
	                                     "conv2",
	                                     "linear",
	                                     "x, w1, b1",
	                                     "A[20x20], #0",
	                                     "f16 [20, 16]",
	                                     "guarded",
	                                     "proved",
	                                     "saved",
	                                     "backward",
	                                     "gradient",
	                                     "softmax_xent",
	                                     "f32 [1, 1]",
	                                     "labels",
	                                     "exact",
	                                     "arena",
	                                     "0..4 forward",
	                                     "largest",
	                                     "spmm+relu+dropout",
	                                     " (in #3)",
	                                     " (not needed)"};
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
		CHECK_CONTAINS(text, wanted[i]);
	CHECK_STATUS(hg_tape_print(b.tape, NULL, NULL), HG_ERR_ARG);
	bench_close(&b);
}

/* A program that was compiled with older headers gets the fields that its struct has. */
static void plan_fills_the_fields_of_the_caller(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp32(), HG_EVAL);
	CHECK_OK(hg_tape_compile(
	    b.tape,
	    hg_relu(b.tape, hg_tape_input(b.tape, random_tensor(&b, HG_F32, 4, 8, 1.0), "x", -1.0))));
	hg_plan_info info = HG_PLAN_INFO_INIT;
	info.size = offsetof(hg_plan_info, input_bytes);
	info.input_bytes = 77;
	CHECK_OK(hg_tape_plan(b.tape, &info));
	CHECK(info.size == offsetof(hg_plan_info, input_bytes) && info.input_bytes == 77 &&
	      info.state_bytes == 4 * 8 * 4);
	info.size = 0;
	CHECK_STATUS(hg_tape_plan(b.tape, &info), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(b.ctx), "HG_PLAN_INFO_INIT");
	bench_close(&b);
}

/* Tensors of the state take at most 0.55 times as many bytes in fp16 as in fp32: half, and
 * padding. */
static void fp16_state_has_half_the_bytes(void)
{
	size_t bytes[2] = {0, 0};
	for (int half = 0; half < 2; half++) {
		struct bench b;
		hg_plan_info info = HG_PLAN_INFO_INIT;
		bench_open(&b, test_context(), half ? hg_policy_fp16() : hg_policy_fp32(), HG_TRAIN);
		b.graph = ring(b.ctx, 100);
		hg_var logits;
		const hg_var loss = gcn(&b, b.tape, random_tensor(&b, half ? HG_F16 : HG_F32, 100, 33, 1.0),
		                        label_tensor(&b, 100, 7), &logits);
		CHECK_STATUS(hg_tape_plan(b.tape, &info), HG_ERR_STATE);
		CHECK_OK(hg_tape_compile(b.tape, loss));
		CHECK_OK(hg_tape_plan(b.tape, &info));
		bytes[half] = info.state_bytes;
		CHECK_EQ_I(info.nodes, 5); /* spmm, relu and dropout are one node */
		CHECK_EQ_I(info.proved + info.guarded + info.promoted + info.exact, info.nodes);
		CHECK(half ? info.guarded > 0 : info.exact == info.nodes);
		CHECK(info.largest_bytes > 0 && *info.largest_name);
		bench_close(&b);
	}
	CHECK((double)bytes[1] <= 0.55 * (double)bytes[0]);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(random_lifetimes_never_overlap),
	    TEST(fullest_time_has_no_gaps),
	    TEST(plan_of_a_model_never_overlaps),
	    TEST(gradients_take_the_place_of_values),
	    TEST(sharing_memory_changes_no_bit),
	    TEST(failed_allocations_are_reported),
	    TEST(missing_memory_names_the_largest_tensors),
	    TEST(print_shows_nodes_verdicts_and_memory),
	    TEST(plan_fills_the_fields_of_the_caller),
	    TEST(fp16_state_has_half_the_bytes),
	};
	return RUN_TESTS(argc, argv, cases);
}
