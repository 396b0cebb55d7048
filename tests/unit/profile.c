/* The times of a tape, line by line: every line is there once, its bytes are those of the shapes,
 * the times add up, and a profiled step computes the bits of a step. */
#include "halfgraph/profile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "autograd/tape.h"
#include "core/clock.h"
#include "halfgraph/halfgraph.h"
#include "small_run.h"
#include "unit/faulty.h"
#include "unit/tape.h"

enum { N = 120, D = 11, K = 24, CLASSES = 7 };

/* ---- a tape ---- */

struct rig {
	struct bench b;
	hg_var logits, loss;
};

static void rig_open(struct rig *r, hg_context *ctx, const char *policy, hg_mode mode)
{
	memset(r, 0, sizeof *r);
	test_reseed(7);
	bench_open(&r->b, ctx, policy_named(policy), mode);
	r->b.graph = ring(ctx, N);
	const hg_tensor *x = random_tensor(&r->b, policy_named(policy).state, N, D, 1.0),
	                *labels = label_tensor(&r->b, N, CLASSES);
	r->loss = gcn(&r->b, r->b.tape, x, mode == HG_TRAIN ? labels : NULL, &r->logits);
	hg_tape_keep(r->b.tape, r->logits);
	CHECK_MSG(hg_tape_compile(r->b.tape, r->loss) == HG_OK, "%s", hg_context_error(ctx));
}

static hg_profile_info info_of(const hg_profile *p)
{
	hg_profile_info info = HG_PROFILE_INFO_INIT;
	CHECK_OK(hg_profile_get_info(p, &info));
	return info;
}

static hg_profile_line line_of(const hg_profile *p, int64_t k)
{
	hg_profile_line line = HG_PROFILE_LINE_INIT;
	CHECK_OK(hg_profile_get_line(p, k, &line));
	return line;
}

/* A bandwidth that is given is not measured, which would take most of the time of a case. */
static hg_profile *profile_of(hg_tape *tape, int runs)
{
	hg_profile_config config = HG_PROFILE_CONFIG_INIT;
	hg_profile *p = NULL;
	config.runs = runs;
	config.bandwidth = 1e10;
	CHECK_OK(hg_tape_profile(tape, &config, &p));
	return p;
}

/* ---- the lines ---- */

/* Does line k of the profile belong to this task? */
static void check_line(const struct rig *r, const hg_profile *p, int64_t k,
                       const struct hg__task *task, hg_profile_phase phase)
{
	const hg_profile_line line = line_of(p, k);
	const struct hg__entry *entry = &r->b.tape->recording.entry[task->entry];
	CHECK_EQ_I(line.node, task->entry);
	CHECK_EQ_I(line.phase, phase);
	CHECK_STR(line.op, hg__entry_title(entry));
	CHECK_STR(line.layer, entry->node.scope);
	CHECK_EQ_I(line.rows, task->call.out.rows);
	CHECK_EQ_I(line.cols, task->call.out.cols);
	CHECK(line.us >= 0 && line.begin_us >= 0 && line.bytes_written >= 0);
	const double bytes = line.bytes_read + line.bytes_written;
	CHECK_WITHIN(line.roofline, line.us > 0 ? bytes / (1e-6 * line.us) / 1e10 : 0,
	             1e-12 * (line.roofline + 1));
}

static void check_lines(const struct rig *r, const hg_profile *p)
{
	const struct hg__program *program = &r->b.tape->program;
	const hg_profile_info info = info_of(p);
	double sum[2] = {0, 0};
	CHECK_EQ_I(info.forward_lines, program->forwards);
	CHECK_EQ_I(info.lines, program->forwards + (r->b.tape->plan.trains ? program->backwards : 0));
	for (int64_t k = 0; k < info.lines; k++) {
		const int backward = k >= program->forwards;
		const struct hg__task *task =
		    backward ? &program->backward[k - program->forwards] : &program->forward[k];
		check_line(r, p, k, task,
		           !backward         ? HG_PHASE_FORWARD
		           : task->recompute ? HG_PHASE_AGAIN
		                             : HG_PHASE_BACKWARD);
		sum[backward] += line_of(p, k).us;
		if (k && k != program->forwards)
			CHECK_WITHIN(line_of(p, k).begin_us, line_of(p, k - 1).begin_us + line_of(p, k - 1).us,
			             1e-6 * line_of(p, k).begin_us + 1e-6);
	}
	CHECK_WITHIN(info.forward_us, sum[0], 1e-9 * sum[0]);
	CHECK_WITHIN(info.backward_us, sum[1], 1e-9 * sum[1]);
}

static void every_line_is_there_once(void)
{
	static const char *const policies[] = {"fp16", "fp32", "fp16-naive"};
	for (size_t i = 0; i < 3; i++)
		for (int mode = HG_TRAIN; mode <= HG_EVAL; mode++) {
			struct rig r;
			rig_open(&r, test_context(), policies[i], (hg_mode)mode);
			hg_profile *p = profile_of(r.b.tape, 2);
			check_lines(&r, p);
			CHECK_EQ_I(info_of(p).runs, 2);
			hg_profile_free(p);
			bench_close(&r.b);
		}
}

static void lines_of_separate_and_fused_ops(void)
{
	int64_t lines[2];
	for (int separate = 0; separate < 2; separate++) {
		struct rig r;
		hg_context_config config = HG_CONTEXT_CONFIG_INIT;
		config.separate_ops = separate;
		rig_open(&r, test_context_with(config), "fp16", HG_TRAIN);
		hg_profile *p = profile_of(r.b.tape, 1);
		check_lines(&r, p);
		lines[separate] = info_of(p).lines;
		hg_profile_free(p);
		bench_close(&r.b);
	}
	CHECK_MSG(lines[0] < lines[1], "%lld lines fused, %lld separate", (long long)lines[0],
	          (long long)lines[1]);
}

/* Time passes in the lines and nowhere else; what they take cannot be more than has passed. */
static void times_add_up(void)
{
	struct rig r;
	rig_open(&r, test_context(), "fp16", HG_TRAIN);
	const double begin = hg__seconds();
	hg_profile *p = profile_of(r.b.tape, 3);
	const double wall_us = 1e6 * (hg__seconds() - begin);
	const hg_profile_info info = info_of(p);
	CHECK_MSG(info.forward_us > 0 && info.backward_us > 0, "%g us, %g us", info.forward_us,
	          info.backward_us);
	CHECK_MSG(info.forward_us + info.backward_us <= wall_us, "%g us of lines in %g us",
	          info.forward_us + info.backward_us, wall_us);
	hg_profile_free(p);
	bench_close(&r.b);
}

static void the_forward_pass_alone(void)
{
	struct rig r;
	hg_profile_config config = HG_PROFILE_CONFIG_INIT;
	hg_profile *p = NULL;
	rig_open(&r, test_context(), "fp16", HG_TRAIN);
	config.forward_only = 1;
	config.bandwidth = 1e9;
	CHECK_OK(hg_tape_profile(r.b.tape, &config, &p));
	CHECK_EQ_I(info_of(p).lines, r.b.tape->program.forwards);
	CHECK(info_of(p).backward_us <= 0);
	CHECK_OK(hg_tape_backward(r.b.tape)); /* which needs a forward pass that was not used yet */
	hg_profile_free(p);
	bench_close(&r.b);
}

static void the_bandwidth_is_measured(void)
{
	struct rig r;
	hg_profile *p = NULL;
	rig_open(&r, test_context(), "fp16", HG_EVAL);
	CHECK_OK(hg_tape_profile(r.b.tape, NULL, &p));
	const hg_profile_info info = info_of(p);
	test_note("%.3g GB/s", 1e-9 * info.bandwidth);
	CHECK(info.measured && info.bandwidth > 1e6 && info.bandwidth < 1e14);
	hg_profile_free(p);
	bench_close(&r.b);
}

/* ---- bytes ---- */

/* Y = X W: X [N, K], W [K, D], Y [N, D], dW and dX; and Y = A X on a ring of N nodes. */
struct expected {
	const char *op;
	hg_profile_phase phase;
	double read, written;
};

static void check_bytes(const hg_profile *p, const struct expected *e)
{
	int found = 0;
	for (int64_t k = 0; k < info_of(p).lines; k++) {
		const hg_profile_line line = line_of(p, k);
		if (line.phase != e->phase || strcmp(line.op, e->op) != 0)
			continue;
		found++;
		CHECK_MSG(fabs(line.bytes_read - e->read) < 0.5 &&
		              fabs(line.bytes_written - e->written) < 0.5,
		          "%s %s: %.0f and %.0f bytes, expected %.0f and %.0f", e->op,
		          hg_profile_phase_name(e->phase), line.bytes_read, line.bytes_written, e->read,
		          e->written);
	}
	CHECK_MSG(found == 1, "%s %s is there %d times", e->op, hg_profile_phase_name(e->phase), found);
}

static void bytes_of_products_and_sums(void)
{
	for (int half = 0; half < 2; half++) {
		struct bench b;
		const double s = half ? 2 : 4;
		const hg_dtype type = half ? HG_F16 : HG_F32;
		hg_context_config config = HG_CONTEXT_CONFIG_INIT;
		config.separate_ops = 1;
		hg_policy policy = policy_named(half ? "fp16" : "fp32");
		policy.replan = 0; /* a guard would read the results once more */
		bench_open(&b, test_context_with(config), policy, HG_TRAIN);
		b.graph = ring(b.ctx, N);
		const double m = (double)hg_graph_edges(b.graph), csr = 8.0 * (N + 1) + 4.0 * m;
		hg_var h = hg_tape_variable(b.tape, random_tensor(&b, type, N, K, 1.0), "x");
		h = hg_linear(b.tape, h, hg_tape_param(b.tape, param(&b, "w", K, D)), HG_NONE);
		h = hg_spmm(b.tape, b.graph, h, HG_NONE, HG_NORM_NONE, 1.0f);
		h = hg_softmax_xent(b.tape, h,
		                    hg_tape_input(b.tape, label_tensor(&b, N, CLASSES), "labels", -1.0),
		                    HG_NONE);
		CHECK_OK(hg_tape_compile(b.tape, h));
		hg_profile *p = profile_of(b.tape, 1);
		const struct expected expected[] = {
		    {"linear", HG_PHASE_FORWARD, s * (N * K + K * D), s * N * D},
		    /* X, W and dY; dX in the type of X, dW in f32 */
		    {"linear", HG_PHASE_BACKWARD, s * (N * K + K * D + N * D), s * N * K + 4.0 * K * D},
		    {"spmm", HG_PHASE_FORWARD, s * N * D + csr, s * N * D},
		    {"spmm", HG_PHASE_BACKWARD, s * N * D + csr, s * N * D},
		};
		for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
			check_bytes(p, &expected[i]);
		hg_profile_free(p);
		bench_close(&b);
	}
}

/* ---- nothing changes ---- */

/* Logits, loss and gradients of a step, one after the other. */
static float *results_of(struct rig *r, int64_t *count)
{
	const hg_tensor *tensor[8];
	int tensors = 0;
	tensor[tensors++] = hg_tape_value(r->b.tape, r->logits);
	tensor[tensors++] = hg_tape_value(r->b.tape, r->loss);
	for (int64_t i = 0; i < hg_params_count(r->b.params); i++)
		tensor[tensors++] = hg_param_grad(hg_params_at(r->b.params, i));
	float *all = NULL;
	*count = 0;
	for (int i = 0; i < tensors; i++) {
		const int64_t n = hg_tensor_rows(tensor[i]) * hg_tensor_cols(tensor[i]);
		float *one = download(tensor[i]), *more = realloc(all, sizeof *all * (size_t)(*count + n));
		CHECK(more != NULL);
		all = more;
		memcpy(all + *count, one, sizeof *one * (size_t)n);
		*count += n;
		free(one);
	}
	return all;
}

static void a_profiled_step_has_the_same_bits(void)
{
	struct rig r;
	int64_t counts[2];
	rig_open(&r, test_context(), "fp16", HG_TRAIN);
	CHECK_OK(hg_tape_forward(r.b.tape));
	CHECK_OK(hg_tape_backward(r.b.tape));
	float *before = results_of(&r, &counts[0]);
	hg_profile_free(profile_of(r.b.tape, 3));
	float *profiled = results_of(&r, &counts[1]);
	CHECK_EQ_I(counts[0], counts[1]);
	CHECK(memcmp(before, profiled, sizeof *before * (size_t)counts[0]) == 0);
	free(before);
	free(profiled);
	bench_close(&r.b);
}

/* Two halves of a training with a profile between them end as the training without one: also
 * with batch normalisation, whose running statistics a forward pass moves. */
static void a_profile_does_not_change_a_run(void)
{
	static const char *const models[] = {"gcn", "gin"};
	for (size_t i = 0; i < 2; i++) {
		hg_state *state[2];
		for (int profiled = 0; profiled < 2; profiled++) {
			struct small_run r;
			hg_train_config config = small_config(models[i], "fp16");
			config.epochs = 6;
			small_open(&r, test_context(), config);
			small_train(&r);
			hg_state *first = small_state(&r);
			hg_profile_config two = HG_PROFILE_CONFIG_INIT;
			hg_profile *p = NULL;
			two.runs = 2;
			two.bandwidth = 1e10;
			if (profiled)
				CHECK_MSG(hg_train_profile(r.train, &two, &p) == HG_OK, "%s",
				          hg_context_error(r.ctx));
			hg_profile_free(p);
			hg_state *same = small_state(&r);
			check_same_state(first, same, 1);
			hg_state_free(first);
			hg_state_free(same);
			small_train(&r);
			state[profiled] = small_state(&r);
			small_close(&r);
		}
		check_same_state(state[0], state[1], 1);
		check_same_history(state[0], state[1]);
		hg_state_free(state[0]);
		hg_state_free(state[1]);
	}
}

static int profile_in_progress(void *user, const hg_train_event *event)
{
	struct small_run *r = user;
	hg_profile *p = NULL;
	CHECK_EQ_I(event->epochs, 2);
	CHECK_STATUS(hg_train_profile(r->train, NULL, &p), HG_ERR_STATE);
	CHECK(p == NULL);
	return 0;
}

static void not_from_a_progress_function(void)
{
	struct small_run r;
	hg_train_config config = small_config("gcn", "fp16");
	config.epochs = 2;
	const struct small_options options = {.progress = profile_in_progress, .user = &r};
	small_open_with(&r, test_context(), config, &options);
	small_train(&r);
	CHECK_EQ_I(r.events, 2);
	small_close(&r);
}

/* ---- the trace ---- */

struct text {
	char *at;
	size_t length;
};

static void append(void *user, const char *line)
{
	struct text *text = user;
	const size_t more = strlen(line);
	char *longer = realloc(text->at, text->length + more + 1);
	CHECK(longer != NULL);
	text->at = longer;
	memcpy(text->at + text->length, line, more + 1);
	text->length += more;
}

/* Braces, brackets and quotes of JSON that was not cut, and no control character. */
static void check_json(const char *c)
{
	int depth = 0, in_text = 0;
	for (; *c; c++) {
		CHECK_MSG((unsigned char)*c >= 0x20, "control character %d", *c);
		if (in_text && *c == '\\') {
			CHECK(c[1] == '"' || c[1] == '\\');
			c++;
		} else if (*c == '"')
			in_text = !in_text;
		else if (!in_text)
			depth += (*c == '{' || *c == '[') - (*c == '}' || *c == ']');
		CHECK_MSG(depth > 0 || !c[1], "the text goes on after its end");
	}
	CHECK(depth == 0 && !in_text);
}

static int count_of(const char *text, const char *part)
{
	int count = 0;
	for (const char *c = text; (c = strstr(c, part)) != NULL; c++)
		count++;
	return count;
}

static void a_trace_has_every_line(void)
{
	struct bench b;
	struct text text = {0};
	bench_open(&b, test_context(), policy_named("fp16"), HG_TRAIN);
	b.graph = ring(b.ctx, N);
	hg_var h = hg_tape_input(b.tape, random_tensor(&b, HG_F16, N, D, 1.0), "x", -1.0);
	hg_tape_scope(b.tape, "a \"layer\"\\ \n \xff of 90 letters "
	                      "...............................................................");
	h = hg_linear(b.tape, h, hg_tape_param(b.tape, param(&b, "w", D, CLASSES)), HG_NONE);
	hg_tape_scope(b.tape, NULL);
	h = hg_softmax_xent(
	    b.tape, h, hg_tape_input(b.tape, label_tensor(&b, N, CLASSES), "labels", -1.0), HG_NONE);
	CHECK_OK(hg_tape_compile(b.tape, h));
	hg_profile *p = profile_of(b.tape, 1);
	CHECK_OK(hg_profile_trace(p, append, &text));
	check_json(text.at);
	CHECK_EQ_I(count_of(text.at, "\"tid\":1,\"ts\":"), info_of(p).lines);
	CHECK_EQ_I(count_of(text.at, "\"tid\":2,\"ts\":"), 2); /* the layer, forward and backward */
	CHECK_CONTAINS(text.at, "a \\\"layer\\\"\\\\ \\\\x0a \\\\xff of 90 letters");
	free(text.at);
	hg_profile_free(p);
	bench_close(&b);
}

/* ---- mistakes ---- */

static void bad_arguments_are_refused(void)
{
	struct rig r;
	hg_profile *p = (hg_profile *)&r;
	hg_profile_config config = HG_PROFILE_CONFIG_INIT;
	hg_profile_info info = HG_PROFILE_INFO_INIT;
	hg_profile_line line = HG_PROFILE_LINE_INIT;
	rig_open(&r, test_context(), "fp16", HG_TRAIN);
	CHECK_STATUS(hg_tape_profile(NULL, NULL, &p), HG_ERR_ARG);
	CHECK(p == NULL);
	CHECK_STATUS(hg_tape_profile(r.b.tape, NULL, NULL), HG_ERR_ARG);
	static const struct {
		int runs;
		double bandwidth;
		const char *says;
	} bad[] = {{-1, 0, "runs is -1"},
	           {1001, 0, "expected 0 to 1000"},
	           {0, -1, "bandwidth"},
	           {0, (double)NAN, "bandwidth"},
	           {0, HUGE_VAL, "bandwidth"}};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		config.runs = bad[i].runs;
		config.bandwidth = bad[i].bandwidth;
		CHECK_STATUS(hg_tape_profile(r.b.tape, &config, &p), HG_ERR_ARG);
		CHECK_CONTAINS(hg_context_error(r.b.ctx), bad[i].says);
	}
	config = (hg_profile_config){0};
	CHECK_STATUS(hg_tape_profile(r.b.tape, &config, &p), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(r.b.ctx), "HG_PROFILE_CONFIG_INIT");
	hg_tape *raw = NULL;
	CHECK_OK(hg_tape_create(r.b.params, HG_TRAIN, &raw));
	CHECK_STATUS(hg_tape_profile(raw, NULL, &p), HG_ERR_STATE);
	hg_tape_free(raw);
	p = profile_of(r.b.tape, 0);
	CHECK_EQ_I(info_of(p).runs, 1);
	CHECK_STATUS(hg_profile_get_info(NULL, &info), HG_ERR_ARG);
	CHECK_STATUS(hg_profile_get_info(p, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_profile_get_line(NULL, 0, &line), HG_ERR_ARG);
	CHECK_STATUS(hg_profile_get_line(p, 0, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_profile_get_line(p, -1, &line), HG_ERR_RANGE);
	CHECK_STATUS(hg_profile_get_line(p, info_of(p).lines, &line), HG_ERR_RANGE);
	info.size = line.size = 0;
	CHECK_STATUS(hg_profile_get_info(p, &info), HG_ERR_ARG);
	CHECK_STATUS(hg_profile_get_line(p, 0, &line), HG_ERR_ARG);
	CHECK_STATUS(hg_profile_trace(p, NULL, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_profile_trace(NULL, append, NULL), HG_ERR_ARG);
	CHECK_STR(hg_profile_phase_name(HG_PHASE_AGAIN), "again");
	CHECK(hg_profile_phase_name((hg_profile_phase)3) == NULL);
	hg_profile *none = p;
	CHECK_STATUS(hg_train_profile(NULL, NULL, &none), HG_ERR_ARG);
	CHECK(none == NULL);
	hg_profile_free(NULL);
	hg_tape_free(r.b.tape);
	r.b.tape = NULL;
	CHECK_STR(line_of(p, 0).layer, "conv1"); /* a profile outlives its tape */
	hg_profile_free(p);
	bench_close(&r.b);
}

/* copies: the bandwidth is measured. */
static hg_status profile_small(hg_context *ctx, int copies)
{
	hg_profile_config config = HG_PROFILE_CONFIG_INIT;
	config.bandwidth = 1e10;
	hg_policy policy = policy_named("fp16");
	hg_params *params = NULL;
	hg_param *w = NULL;
	hg_tensor *x = NULL;
	hg_tape *tape = NULL;
	hg_profile *p = NULL;
	hg_status status = hg_params_create(ctx, &policy, &params);
	if (status >= 0)
		status = hg_params_add(params, "w", D, CLASSES, HG_INIT_GLOROT_UNIFORM, 0, &w);
	if (status >= 0)
		status = hg_tensor_create(ctx, HG_F16, 8, D, &x);
	if (status >= 0)
		status = hg_tape_create(params, HG_EVAL, &tape);
	if (status >= 0)
		status = hg_tape_compile(tape, hg_linear(tape, hg_tape_input(tape, x, "x", 1.0),
		                                         hg_tape_param(tape, w), HG_NONE));
	if (status >= 0)
		status = hg_tape_profile(tape, copies ? NULL : &config, &p);
	CHECK((status >= 0) == (p != NULL));
	hg_profile_free(p);
	hg_tape_free(tape);
	hg_tensor_free(x);
	hg_params_free(params);
	return status;
}

static hg_status profiled(hg_context *ctx)
{
	return profile_small(ctx, 0);
}

static void no_memory_for_the_copy(void)
{
	struct faulty f;
	hg_context *ctx = faulty_cpu_context(&f, 1 << 20, 1);
	CHECK_STATUS(profile_small(ctx, 1), HG_ERR_NOMEM);
	CHECK_CONTAINS(hg_context_error(ctx), "profile: a copy");
	faulty_close(&f, ctx);
}

static void survives_failing_allocations(void)
{
	CHECK(faulty_sweep(profiled) > 12);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(every_line_is_there_once),
	    TEST(lines_of_separate_and_fused_ops),
	    TEST(times_add_up),
	    TEST(the_forward_pass_alone),
	    TEST(the_bandwidth_is_measured),
	    TEST(bytes_of_products_and_sums),
	    TEST(a_profiled_step_has_the_same_bits),
	    TEST(a_profile_does_not_change_a_run),
	    TEST(not_from_a_progress_function),
	    TEST(a_trace_has_every_line),
	    TEST(bad_arguments_are_refused),
	    TEST(no_memory_for_the_copy),
	    TEST(survives_failing_allocations),
	};
	return RUN_TESTS(argc, argv, cases);
}
