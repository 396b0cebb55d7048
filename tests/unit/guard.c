/* Guards: which numbers trip one, where results are compared, and what a step does when a guard
 * trips. */
#include <math.h>
#include <stdio.h>

#include "core/buffer.h"
#include "graphs.h"
#include "halfgraph/step.h"
#include "kernels/kernels.h"
#include "precision/half.h"
#include "unit/tape.h"

/* ---- the overflow flag: one word, in which the first entry and its largest number win ---- */

static void first_entry_and_its_largest_number_win(void)
{
	CHECK(!hg__overflows_half(65519.996f) && !hg__overflows_half(-65519.996f) &&
	      !hg__overflows_half(0.0f));
	CHECK(hg__overflows_half(65520.0f) && hg__overflows_half(-65520.0f) &&
	      hg__overflows_half(INFINITY) && hg__overflows_half(-INFINITY) && hg__overflows_half(NAN));
	CHECK_EQ_I(hg__overflow_node(0), -1);
	const uint64_t early = hg__overflow_word(3, -70000.0f), larger = hg__overflow_word(3, 80000.0f),
	               infinite = hg__overflow_word(3, -INFINITY), late = hg__overflow_word(4, NAN);
	CHECK_EQ_I(hg__overflow_node(early), 3);
	CHECK(hg__overflow_amax(early) == 70000.0f && hg__overflow_amax(larger) == 80000.0f &&
	      isinf(hg__overflow_amax(infinite)) && isnan(hg__overflow_amax(late)));
	CHECK(late < early && early < larger && larger < infinite &&
	      infinite < hg__overflow_word(3, NAN));
	CHECK_EQ_I(hg__overflow_node(hg__overflow_word(0, 65520.0f)), 0);
}

/* ---- kernels ---- */

struct scene {
	hg_context *ctx;
	hg_graph *graph;
	struct hg__buffer word, data[4];
	int buffers;
	struct hg__spmm_args args;
};

static struct hg__overflow_flag scene_open(struct scene *s, hg_context *ctx, int32_t line)
{
	memset(s, 0, sizeof *s);
	s->ctx = ctx;
	CHECK_OK(hg__buffer_device(ctx, 1, sizeof(uint64_t), "test", &s->word));
	CHECK_OK(ctx->backend->fill(ctx, s->word.data, 0, sizeof(uint64_t)));
	return (struct hg__overflow_flag){s->word.data, line};
}

static uint64_t scene_close(struct scene *s)
{
	uint64_t word = 0;
	CHECK_OK(s->ctx->backend->copy_out(s->ctx, &word, s->word.data, sizeof word));
	hg__buffer_free(s->ctx, &s->word);
	for (int i = 0; i < s->buffers; i++)
		hg__buffer_free(s->ctx, &s->data[i]);
	hg_graph_free(s->graph);
	hg_context_free(s->ctx);
	return word;
}

/* A matrix of value(row, col). Its padding is infinity, which must not be compared. */
static struct hg__mat matrix(struct scene *s, hg_dtype dtype, int64_t rows, int64_t cols,
                             float (*value)(const void *, int64_t, int64_t), const void *env)
{
	struct hg__mat m = {NULL, rows, cols, hg__leading(cols), dtype};
	float *wide = calloc((size_t)(rows * m.ld) + 1, sizeof *wide);
	hg_half *half = calloc((size_t)(rows * m.ld) + 1, sizeof *half);
	CHECK(wide && half);
	for (int64_t i = 0; i < rows * m.ld; i++) {
		wide[i] = i % m.ld < cols ? value(env, i / m.ld, i % m.ld) : INFINITY;
		half[i] = hg_half_from_float(wide[i]);
	}
	CHECK_OK(hg__buffer_upload(s->ctx, rows * m.ld, hg_dtype_size(dtype),
	                           dtype == HG_F16 ? (void *)half : (void *)wide, "test",
	                           &s->data[s->buffers]));
	m.data = s->data[s->buffers++].data;
	free(wide);
	free(half);
	return m;
}

struct spot {
	int64_t row, col;
	float value, others;
};

static float spotted(const void *env, int64_t row, int64_t col)
{
	const struct spot *s = env;
	return row == s->row && col == s->col ? s->value : s->others;
}

/* The guard kernel finds one element of a matrix, wherever it is. */
static void guard_compares_every_element(void)
{
	static const struct {
		hg_dtype dtype;
		float value;
		int trips;
	} kinds[] = {{HG_F16, INFINITY, 1}, {HG_F16, -INFINITY, 1},  {HG_F16, NAN, 1},
	             {HG_F16, 65504.0f, 0}, {HG_F32, 65519.996f, 0}, {HG_F32, 65520.0f, 1},
	             {HG_F32, -1e30f, 1},   {HG_F32, NAN, 1}};
	static const int64_t shapes[][2] = {{1, 1}, {7, 3}, {300, 4}, {33, 41}, {5, 1000}, {2000, 64}};
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
		for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
			for (int end = 0; end < 2; end++) {
				const int64_t rows = shapes[i][0], cols = shapes[i][1];
				const struct spot spot = {end ? rows - 1 : rows / 3, end ? cols - 1 : cols / 2,
				                          kinds[k].value, -3.0f};
				struct scene s;
				const struct hg__overflow_flag flag = scene_open(&s, test_context(), 11);
				const struct hg__guard_args args = {
				    matrix(&s, kinds[k].dtype, rows, cols, spotted, &spot), flag};
				CHECK_OK(s.ctx->backend->kernels->guard.run(s.ctx, &args));
				const uint64_t word = scene_close(&s),
				               expected =
				                   kinds[k].trips ? hg__overflow_word(11, kinds[k].value) : 0;
				CHECK_MSG(isnan(kinds[k].value)
				              ? hg__overflow_node(word) == 11 && isnan(hg__overflow_amax(word))
				              : word == expected,
				          "[%lld, %lld], %s %g: word %llx, expected %llx", (long long)rows,
				          (long long)cols, hg_dtype_name(kinds[k].dtype), (double)kinds[k].value,
				          (unsigned long long)word, (unsigned long long)expected);
			}
}

/* ---- aggregations ---- */

/* Row 0 has `degree` neighbours, the other rows have one. All elements of a column are the same:
 * `large` in column `col`, 1 in the others. */
struct hub {
	int64_t degree, cols, col;
	float large;
};

static float hub_value(const void *env, int64_t row, int64_t col)
{
	const struct hub *h = env;
	(void)row;
	return col == h->col ? h->large : 1.0f;
}

static float hub_bias(const void *env, int64_t row, int64_t col)
{
	(void)env, (void)row, (void)col;
	return 7.0f;
}

static void hub_open(struct scene *s, const struct hub *h)
{
	s->graph = coo_graph(s->ctx, coo_star_loops(h->degree + 1));
	CHECK_OK(hg__graph_csr(s->graph, &s->args.csr));
}

static void sums_are_compared_before_they_are_stored(void)
{
	enum { RELU = 1 + HG__ACT_relu, LEAKY = 1 + HG__ACT_leaky_relu, EDGES = -1 };
	static const struct {
		const char *what;
		float alpha;
		hg_accumulate accumulate;
		int act, bias; /* act EDGES: there is no X, and edge values are summed */
		/* The expected largest |Y|, divided by degree * large. 0: Y fits in halves. INFINITY: the
		 * flag gets infinity, since only the stored number is compared. */
		float expected;
	} ways[] = {
	    {"sum", 1.0f, HG_ACC_F32, 0, 0, 1.0f},
	    {"minus the sum", -1.0f, HG_ACC_F32, 0, 0, 1.0f},
	    {"a quarter of it", 0.25f, HG_ACC_F32, 0, 0, 0.0f},
	    {"bias", 1.0f, HG_ACC_F32, 0, 1, 1.0f},
	    {"relu", 1.0f, HG_ACC_F32, RELU, 1, 1.0f},
	    {"relu of minus the sum", -1.0f, HG_ACC_F32, RELU, 0, 0.0f},
	    {"leaky relu of minus the sum", -1.0f, HG_ACC_F32, LEAKY, 0, 0.0f},
	    {"discretized", 1.0f, HG_ACC_F16_DISCRETIZED, 0, 0, INFINITY},
	    {"minus, discretized", -1.0f, HG_ACC_F16_DISCRETIZED, 0, 0, INFINITY},
	    {"naive", 1.0f, HG_ACC_F16_NAIVE, 0, 0, INFINITY},
	    {"edges", 1.0f, HG_ACC_F32, EDGES, 0, INFINITY},
	};
	static const struct {
		int64_t degree;
		float large;
		/* a row that is summed as a whole; one that is cut into parts */
	} hubs[] = {{200, 512.0f}, {6500, 16.0f}};
	static const int64_t widths[] = {1, 4, 5, 8, 16, 41, 130};
	for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
		for (size_t k = 0; k < 2 * sizeof widths / sizeof widths[0]; k++)
			for (int i = 0; i < 2; i++) {
				const int64_t cols = widths[k / 2];
				const struct hub h = {hubs[i].degree, cols, k % 2 ? cols - 1 : 0, hubs[i].large};
				struct scene s;
				const struct hg__overflow_flag flag = scene_open(&s, test_context(), 2);
				hub_open(&s, &h);
				struct hg__spmm_args *a = &s.args;
				a->heads = 1;
				a->alpha = ways[w].alpha;
				a->accumulate = ways[w].accumulate;
				a->overflow = flag;
				a->y = matrix(&s, HG_F16, h.degree + 1, cols, hub_bias, NULL);
				if (ways[w].act == EDGES) {
					a->heads = (int)cols;
					a->w = matrix(&s, HG_F16, 2 * h.degree, cols, hub_value, &h);
				} else {
					a->x = matrix(&s, HG_F16, h.degree + 1, cols, hub_value, &h);
					a->epilogue.act_drop.act = ways[w].act;
					a->epilogue.act_drop.act_p = 0.5f;
				}
				if (ways[w].bias)
					a->epilogue.b = matrix(&s, HG_F16, 1, cols, hub_bias, NULL);
				CHECK_OK(s.ctx->backend->kernels->spmm.run(s.ctx, a));
				const float most =
				    (float)h.degree * h.large * ways[w].expected + (ways[w].bias ? 7.0f : 0.0f);
				const int stored =
				    /* The CPU compares sums of edge values as it compares all others. */
				    ways[w].act == EDGES ? s.ctx->backend->kind == HG_DEVICE_CUDA : isinf(most);
				const float exact = stored        ? INFINITY
				                    : isinf(most) ? (float)h.degree * h.large
				                                  : most;
				/* The naive sum of numbers of 16 stops growing at 32768, which fits. */
				const int sticks = a->accumulate == HG_ACC_F16_NAIVE && h.large < 32.0f;
				const uint64_t word = scene_close(&s), expected = ways[w].expected == 0.0f || sticks
				                                                      ? 0
				                                                      : hg__overflow_word(2, exact);
				CHECK_MSG(word == expected,
				          "%s, %lld neighbours, column %lld of %lld: line %d, %g; expected %g",
				          ways[w].what, (long long)h.degree, (long long)h.col, (long long)cols,
				          hg__overflow_node(word), (double)hg__overflow_amax(word),
				          (double)hg__overflow_amax(expected));
			}
}

/* ---- steps ---- */

/* Row 0 sums `count` values of x. Only row 1 counts in the loss. With relu nonzero, a relu
 * follows. */
static void record_on(struct bench *b, hg_tape *t, float alpha, int relu)
{
	const hg_var in = hg_tape_variable(t, b->tensor[0], "x");
	hg_var y = hg_spmm(t, b->graph, in, hg_none(), HG_NORM_NONE, alpha);
	y = relu ? hg_relu(t, y) : y;
	const hg_var logits = hg_concat(
	    t, y, hg_linear(t, y, hg_tape_param(t, hg_params_find(b->params, "w")), hg_none()));
	const hg_var label = hg_tape_input(t, b->tensor[1], "labels", 0);
	CHECK_OK(hg_tape_compile(t, t->mode == HG_TRAIN ? hg_softmax_xent(t, logits, label, hg_none())
	                                                : logits));
}

static void fill_x(struct bench *b, int64_t count, float x)
{
	float *values = calloc((size_t)count, sizeof *values);
	CHECK(values != NULL);
	for (int64_t i = 0; i < count; i++)
		values[i] = x;
	CHECK_OK(hg_tensor_upload(b->tensor[0], values, HG_F32));
	free(values);
}

static void record(struct bench *b, hg_policy policy, hg_mode mode, int64_t count, float x,
                   float alpha, int relu)
{
	bench_open(b, test_context(), policy, mode);
	const float weight = 1.0f;
	const int32_t labels[2] = {-1, 0};
	struct coo edges = coo_fan_in(2, count);
	coo_add(&edges, 1, 0);
	b->graph = coo_graph(b->ctx, edges);
	tensor_of(b, HG_F16, count, 1, NULL, HG_F32);
	tensor_of(b, HG_I32, 2, 1, labels, HG_I32);
	fill_x(b, count, x);
	hg_param *w = NULL;
	CHECK_OK(hg_params_add(b->params, "w", 1, 1, HG_INIT_ZEROS, 0, &w));
	CHECK_OK(hg_param_set(w, &weight));
	record_on(b, b->tape, alpha, relu);
}

static void rows_that_the_loss_does_not_read_trip_the_guard(void)
{
	hg_policy guard = hg_policy_fp16(), alone = hg_policy_fp16(),
	          batches = hg_policy_fp16_discretized();
	alone.replan = 0;
	const struct {
		const char *what;
		hg_policy policy;
		float x, alpha;
		int relu, trips;
		float amax;
	} rows[] = {
	    {"fits", guard, 300.0f, 1.0f, 0, 0, 0.0f},
	    {"does not fit", guard, 400.0f, 1.0f, 0, 1, 80000.0f},
	    {"below 0, behind relu in the same kernel", guard, 400.0f, -1.0f, 1, 0, 0.0f},
	    {"below 0, behind relu, the sum stored before", batches, 400.0f, -1.0f, 1, 1, INFINITY},
	    {"no replanning, so no guard", alone, 400.0f, 1.0f, 0, 0, 0.0f},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct bench b;
		hg_optim *optim = NULL;
		hg_step *step = NULL;
		hg_step_info info = HG_STEP_INFO_INIT;
		const hg_optim_config config = HG_OPTIM_CONFIG_INIT;
		double loss;
		record(&b, rows[i].policy, HG_TRAIN, 200, rows[i].x, rows[i].alpha, rows[i].relu);
		CHECK_OK(hg_optim_create(b.params, &config, &optim));
		CHECK_OK(hg_step_create(b.tape, optim, NULL, &step));
		/* the first call by call, the others captured if the device can capture */
		for (int k = 0; k < 3; k++) {
			CHECK_OK(hg_step_run(step, 1));
			CHECK_OK(hg_step_read(step, 0, &loss, &info));
			CHECK_MSG((info.overflow_node >= 0) == rows[i].trips, "%s: step %d overflowed at %d",
			          rows[i].what, k, info.overflow_node);
			if (rows[i].trips) {
				CHECK(!info.applied && info.reason == HG_STEP_SKIPPED_FORWARD &&
				      info.loss_scale == 65536.0f);
				CHECK(strncmp(hg__entry_title(&b.tape->recording.entry[info.overflow_node]), "spmm",
				              4) == 0);
				CHECK_MSG(info.overflow_amax == rows[i].amax, "%s: %g", rows[i].what,
				          (double)info.overflow_amax);
			}
		}
		hg_step_free(step);
		hg_optim_free(optim);
		bench_close(&b);
	}
}

/* A forward pass that no step follows sets the flag for no step: it does not make a later step
 * skip. */
static void forward_pass_without_a_step_is_forgotten(void)
{
	for (int three_calls = 0; three_calls < 2; three_calls++) {
		struct bench b;
		hg_optim *optim = NULL;
		hg_step *step = NULL;
		hg_step_info info = HG_STEP_INFO_INIT;
		const hg_optim_config config = HG_OPTIM_CONFIG_INIT;
		record(&b, hg_policy_fp16(), HG_TRAIN, 200, 400.0f, 1.0f, 0);
		CHECK_OK(hg_optim_create(b.params, &config, &optim));
		CHECK_OK(hg_step_create(b.tape, optim, NULL, &step));
		for (int k = 0; k < 3; k++) {
			fill_x(&b, 200, 400.0f);
			CHECK_OK(hg_tape_forward(b.tape));
			fill_x(&b, 200, 1.0f);
			if (three_calls) {
				CHECK_OK(hg_tape_forward(b.tape));
				CHECK_OK(hg_tape_backward(b.tape));
				CHECK_OK(hg_optim_step(optim));
				CHECK_OK(hg_optim_info(optim, &info));
			} else {
				CHECK_OK(hg_step_run(step, 1));
				CHECK_OK(hg_step_read(step, 0, NULL, &info));
			}
			CHECK_MSG(info.applied && info.overflow_node == -1, "three calls %d, step %d: %s",
			          three_calls, k, hg_step_reason_text(info.reason));
		}
		hg_step_free(step);
		hg_optim_free(optim);
		bench_close(&b);
	}
}

/* A training loop of the user: the step names the node that overflowed, hg_tape_replan rescales or
 * promotes it, the tape is recorded again, and the next step is applied. */
static void training_loop_of_the_user_can_replan(void)
{
	struct bench b;
	hg_optim *optim = NULL;
	hg_tape *again = NULL;
	hg_step_info info = HG_STEP_INFO_INIT;
	const hg_optim_config config = HG_OPTIM_CONFIG_INIT;
	int shift = -1;
	record(&b, hg_policy_fp16(), HG_TRAIN, 200, 400.0f, 1.0f, 0);
	CHECK_OK(hg_optim_create(b.params, &config, &optim));
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	CHECK_OK(hg_optim_step(optim));
	CHECK_OK(hg_optim_info(optim, &info));
	CHECK(!info.applied && info.reason == HG_STEP_SKIPPED_FORWARD &&
	      info.overflow_amax == 80000.0f);
	CHECK_STATUS(hg_tape_replan(b.tape, -1, &shift), HG_ERR_ARG);
	CHECK_STATUS(hg_tape_replan(b.tape, (int32_t)b.tape->recording.entries, &shift), HG_ERR_ARG);
	CHECK_OK(hg_tape_replan(b.tape, info.overflow_node, &shift));
	CHECK_EQ_I(shift, 0); /* concat reads no rescaled operand, so it is f32 */
	CHECK_OK(hg_tape_create(b.params, HG_TRAIN, &again));
	CHECK_STATUS(hg_tape_replan(again, 0, &shift), HG_ERR_STATE);
	record_on(&b, again, 1.0f, 0);
	for (int k = 0; !info.applied && k < 5; k++) { /* the results after it may overflow, too */
		CHECK_OK(hg_tape_forward(again));
		CHECK_OK(hg_tape_backward(again));
		CHECK_OK(hg_optim_step(optim));
		CHECK_OK(hg_optim_info(optim, &info));
		if (info.applied)
			break;
		CHECK_OK(hg_tape_replan(again, info.overflow_node, NULL));
		hg_tape_free(again);
		CHECK_OK(hg_tape_create(b.params, HG_TRAIN, &again));
		record_on(&b, again, 1.0f, 0);
	}
	CHECK(info.applied && info.overflow_node == -1);
	hg_tape_free(again);
	hg_optim_free(optim);
	bench_close(&b);
}

static void keep_guards(void *user, const char *line)
{
	char(*text)[4096] = user;
	const size_t length = strlen(*text);
	snprintf(*text + length, sizeof *text - length, "%s\n", line);
}

/* hg_tape_explain says which guard there is. */
static void explanation_names_the_guard(void)
{
	hg_policy alone = hg_policy_fp16();
	alone.replan = 0;
	const struct {
		hg_policy policy;
		hg_mode mode;
		const char *says;
	} rows[] = {{hg_policy_fp16(), HG_TRAIN, "guard: compared when it is stored"},
	            {alone, HG_TRAIN, "guard: the step's finite check"},
	            {hg_policy_fp16(), HG_EVAL, "no guard"}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct bench b;
		char text[4096] = "";
		record(&b, rows[i].policy, rows[i].mode, 200, 1.0f, 1.0f, 0);
		CHECK_OK(hg_tape_explain(b.tape, keep_guards, &text));
		CHECK_CONTAINS(text, rows[i].says);
		bench_close(&b);
	}
}

/* A result is compared only if its guard is its own. One that is proved or guarded by the weights
 * is not, and on an EVAL tape none is. */
static void only_results_with_their_own_guard_are_compared(void)
{
	for (int mode = 0; mode < 2; mode++) {
		struct bench b;
		int compared = 0;
		record(&b, hg_policy_fp16(), mode ? HG_EVAL : HG_TRAIN, 200, 400.0f, 1.0f, 0);
		for (int64_t i = 0; i < b.tape->program.forwards; i++) {
			const struct hg__node *node = b.tape->program.forward[i].call.node;
			const int own = node->verdict == HG_GUARDED && !node->by_weights;
			CHECK_EQ_I(b.tape->program.forward[i].call.overflow.word != NULL, own && mode == 0);
			compared += own;
		}
		CHECK(compared > 0);
		for (int64_t i = 0; i < b.tape->program.backwards; i++)
			CHECK(b.tape->program.backward[i].call.overflow.word == NULL);
		bench_close(&b);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(first_entry_and_its_largest_number_win),
	    TEST(guard_compares_every_element),
	    TEST(sums_are_compared_before_they_are_stored),
	    TEST(rows_that_the_loss_does_not_read_trip_the_guard),
	    TEST(only_results_with_their_own_guard_are_compared),
	    TEST(forward_pass_without_a_step_is_forgotten),
	    TEST(training_loop_of_the_user_can_replan),
	    TEST(explanation_names_the_guard),
	};
	return RUN_TESTS(argc, argv, cases);
}
