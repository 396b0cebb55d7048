/* Batch norms that the products around them compute (autograd/norms.c): results and gradients
 * differ from those op by op by the order of sums alone. */
#include <math.h>
#include <stdio.h>

#include "halfgraph/observe.h"
#include "halfgraph/ops_norm.h"
#include "unit/tape.h"

enum { ROWS = 700, FEATURES = 21, HIDDEN = 40, CLASSES = 5, NORMS = 2, MOST = 1 << 16 };

/* A model: products with a norm behind all but the last. */
struct row {
	const char *what, *policy;
	hg_mode mode;
	int relu;    /* behind each norm */
	int kept;    /* the caller keeps the result of norm 0 */
	int twice;   /* something else reads that result, too */
	int before;  /* something else reads what norm 0 reads, too */
	int dropout; /* behind norm 1 */
	int large;   /* gamma of norm 0 has no useful bound */
	/* on a backend whose products compute with norms: how many results, and how many gradients of
	 * what a norm reads, are not stored; and how many norms do nothing forward, and backward */
	int normalised, through, idle, idle_back;
};

/* What a run gives: the output and the running statistics, then all gradients. */
struct numbers {
	int64_t results, count;
	size_t arena;
	float value[MOST];
};

static hg_var vector(struct bench *b, hg_tape *tape, const char *name, int k, hg_init init)
{
	char full[32];
	hg_param *made = NULL;
	snprintf(full, sizeof full, "%s%d", name, k);
	CHECK_OK(hg_params_add(b->params, full, 1, HIDDEN, init, HG_PARAM_F32, &made));
	return hg_tape_param(tape, made);
}

static hg_param *statistics(struct bench *b, const char *name, int k, hg_init init)
{
	char full[32];
	hg_param *made = NULL;
	snprintf(full, sizeof full, "%s%d", name, k);
	CHECK_OK(
	    hg_params_add(b->params, full, 1, HIDDEN, init, HG_PARAM_F32 | HG_PARAM_BUFFER, &made));
	return made;
}

static hg_var record_norm(struct bench *b, hg_tape *tape, const struct row *row, int k, hg_var x)
{
	const hg_tensor *large = random_tensor(b, HG_F32, 1, HIDDEN, 1.0);
	const hg_var gamma = row->large && k == 0 ? hg_tape_input(tape, large, "gamma", 1e4)
	                                          : vector(b, tape, "gamma", k, HG_INIT_ONES),
	             norm = hg_batch_norm(tape, x, gamma, vector(b, tape, "beta", k, HG_INIT_ZEROS),
	                                  statistics(b, "running_mean", k, HG_INIT_ZEROS),
	                                  statistics(b, "running_var", k, HG_INIT_ONES), 0.1f, 1e-5f),
	             active = row->relu ? hg_relu(tape, norm) : norm;
	return row->dropout && k == 1 ? hg_dropout(tape, active, 0.5f) : active;
}

/* stored: the caller keeps the results of all norms, so that they are in memory. */
static hg_var record(struct bench *b, hg_tape *tape, const struct row *row, hg_var x, int stored)
{
	hg_var before = x, first = x;
	for (int k = 0; k <= NORMS; k++) {
		char w[16], c[16];
		const int64_t from = k ? HIDDEN : FEATURES, to = k < NORMS ? HIDDEN : CLASSES;
		snprintf(w, sizeof w, "w%d", k);
		snprintf(c, sizeof c, "b%d", k);
		const hg_var bias = k == 1 ? HG_NONE : hg_tape_param(tape, param(b, c, 1, to)),
		             product = hg_linear(tape, x, hg_tape_param(tape, param(b, w, from, to)), bias);
		first = k == 0 ? product : first;
		x = k == 1 && (row->twice || row->before)
		        ? hg_add(tape, product, row->twice ? before : first)
		        : product;
		if (k < NORMS)
			before = x = record_norm(b, tape, row, k, x);
		if (k < NORMS && (stored || (row->kept && k == 0)))
			hg_tape_keep(tape, x);
	}
	return x;
}

static void append(const hg_tensor *tensor, struct numbers *to)
{
	const int64_t n = hg_tensor_rows(tensor) * hg_tensor_cols(tensor);
	CHECK(to->count + n <= MOST);
	CHECK_OK(hg_tensor_download(tensor, to->value + to->count, HG_F32));
	to->count += n;
}

static void run(struct bench *b, hg_var output, hg_var x, struct numbers *to)
{
	CHECK_OK(hg_tape_forward(b->tape));
	append(hg_tape_value(b->tape, output), to);
	for (int64_t p = 0; p < hg_params_count(b->params); p++)
		if (hg_params_at(b->params, p)->flags & HG_PARAM_BUFFER)
			append(hg_params_at(b->params, p)->master, to);
	to->results = to->count;
	if (!b->tape->plan.trains)
		return;
	CHECK_OK(hg_tape_backward(b->tape));
	append(hg_tape_grad(b->tape, x), to);
	for (int64_t p = 0; p < hg_params_count(b->params); p++)
		if (hg_param_grad(hg_params_at(b->params, p)))
			append(hg_param_grad(hg_params_at(b->params, p)), to);
}

/* What of the norms is not stored or not run, as in struct row. */
static void count_norms(const hg_tape *tape, int counts[4])
{
	const struct hg__program *program = &tape->program;
	memset(counts, 0, 4 * sizeof *counts);
	for (int64_t v = 0; v < tape->plan.values; v++) {
		const struct hg__planned_value *of = &tape->plan.value[v];
		CHECK(of->normalised < 0 || (of->span < 0 && of->grad == (of->grad_span >= 0)));
		CHECK(of->through < 0 || (of->span >= 0 && of->grad && of->grad_span < 0));
		counts[0] += of->normalised >= 0;
		counts[1] += of->through >= 0;
	}
	for (int64_t k = 0; k < program->forwards; k++)
		counts[2] += program->forward[k].idle;
	for (int64_t k = 0; k < program->backwards; k++)
		counts[3] += program->backward[k].idle;
}

/* How the tape runs. */
enum how { AS_IT_IS, WITH_RESULTS_KEPT, OP_BY_OP, HOWS };

static void run_row(const struct row *row, enum how how, struct numbers *to)
{
	static int32_t label[ROWS];
	struct bench b;
	test_reseed(7);
	bench_open(&b, test_context(), policy_named(row->policy), row->mode);
	b.ctx->separate_ops = how == OP_BY_OP;
	hg_tape_observe(b.tape, 0); /* buffers stay no longer than the plan says */
	for (int i = 0; i < ROWS; i++)
		label[i] = (int32_t)test_below(CLASSES);
	const hg_var x = hg_tape_variable(
	    b.tape, random_tensor(&b, b.params->policy.state, ROWS, FEATURES, 1.0), "x");
	hg_var output = record(&b, b.tape, row, x, how == WITH_RESULTS_KEPT);
	if (row->mode == HG_TRAIN)
		output = hg_softmax_xent(
		    b.tape, output,
		    hg_tape_input(b.tape, tensor_of(&b, HG_I32, ROWS, 1, label, HG_I32), "labels", -1.0),
		    HG_NONE);
	CHECK_MSG(hg_tape_compile(b.tape, output) == HG_OK, "%s: %s", row->what,
	          hg_context_error(b.ctx));
	const struct hg__backend *backend = b.ctx->backend;
	const int can = how == AS_IT_IS && backend->takes_norms &&
	                backend->takes_norms(b.ctx, b.params->policy.state, ROWS, HIDDEN, HIDDEN),
	          expected[] = {row->normalised, row->through, row->idle, row->idle_back};
	int counts[4];
	count_norms(b.tape, counts);
	for (int i = 0; i < 4; i++)
		CHECK_MSG(
		    how == WITH_RESULTS_KEPT ? i == 1 || counts[i] == 0 : counts[i] == can * expected[i],
		    "%s: %d results and %d gradients are not stored, %d norms idle forward and %d back",
		    row->what, counts[0], counts[1], counts[2], counts[3]);
	*to = (struct numbers){.arena = b.tape->plan.arena_bytes};
	run(&b, output, x, to);
	bench_close(&b);
}

/* The order of a sum changes it by a rounding or so, and so it does all that is computed from it,
 * through all layers and back. */
static double tolerance(const char *policy)
{
	return 2.0 * 2.0 * 4.0 * (NORMS + 1) * (strcmp(policy, "fp32") == 0 ? 0x1p-24 : 0x1p-11);
}

static double distance(const struct numbers *a, const struct numbers *b, int64_t first, int64_t end)
{
	double apart = 0.0, length = 0.0;
	for (int64_t i = first; i < end; i++) {
		apart += pow((double)a->value[i] - (double)b->value[i], 2.0);
		length += pow((double)b->value[i], 2.0);
	}
	CHECK(isfinite(length) && (first == end || length > 0.0));
	return first == end ? 0.0 : sqrt(apart / length);
}

static void compare(const struct row *row)
{
	static struct numbers of[HOWS];
	const struct numbers *ops = &of[OP_BY_OP];
	for (int how = 0; how < HOWS; how++)
		run_row(row, (enum how)how, &of[how]);
	for (int how = 0; how < OP_BY_OP; how++) {
		CHECK(of[how].count == ops->count && of[how].results == ops->results);
		const double results = distance(&of[how], ops, 0, ops->results),
		             gradients = distance(&of[how], ops, ops->results, ops->count);
		test_note("%s%s: results %.2g apart, gradients %.2g; arena %zu bytes", row->what,
		          how == WITH_RESULTS_KEPT ? ", results kept" : "", results, gradients,
		          of[how].arena);
		CHECK_MSG(results <= tolerance(row->policy) && gradients <= tolerance(row->policy),
		          "%s: results %.3g apart, gradients %.3g", row->what, results, gradients);
	}
	CHECK(of[AS_IT_IS].arena <= of[WITH_RESULTS_KEPT].arena);
}

static void products_compute_the_norms_around_them(void)
{
	static const struct row rows[] = {
	    {"fp16, relu", "fp16", HG_TRAIN, 1, 0, 0, 0, 0, 0, 2, 2, 2, 2},
	    {"fp16, no relu", "fp16", HG_TRAIN, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2},
	    {"fp32, relu", "fp32", HG_TRAIN, 1, 0, 0, 0, 0, 0, 2, 2, 2, 2},
	    {"fp32, evaluation", "fp32", HG_EVAL, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0},
	    {"fp16, evaluation: no bound", "fp16", HG_EVAL, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	    {"the caller keeps one", "fp16", HG_TRAIN, 1, 1, 0, 0, 0, 0, 1, 2, 1, 1},
	    {"one is read twice", "fp16", HG_TRAIN, 1, 0, 1, 0, 0, 0, 1, 1, 0, 0},
	    {"what one reads is read twice", "fp32", HG_TRAIN, 1, 0, 0, 1, 0, 0, 2, 0, 1, 0},
	    {"dropout before the product", "fp16", HG_TRAIN, 1, 0, 0, 0, 1, 0, 1, 2, 1, 1},
	    {"one may overflow", "fp16", HG_TRAIN, 1, 0, 0, 0, 0, 1, 1, 2, 1, 1},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		compare(&rows[i]);
}

/* ---- which node a search for numbers that are not finite names ---- */

/* Runs norm 0 with an element of gamma that is this number. Returns the entry that is found. */
static int32_t first_bad(enum how how, float element, struct bench *b)
{
	static const struct row row = {.what = "bad", .policy = "fp16", .mode = HG_TRAIN};
	float values[HIDDEN];
	int32_t found = -2;
	test_reseed(7);
	bench_open(b, test_context(), policy_named(row.policy), HG_TRAIN);
	b->ctx->separate_ops = how == OP_BY_OP;
	const hg_var x = hg_tape_input(
	    b->tape, random_tensor(b, b->params->policy.state, ROWS, FEATURES, 1.0), "x", -1.0);
	static int32_t label[ROWS];
	const hg_var logits = record(b, b->tape, &row, x, 0),
	             labels = hg_tape_input(b->tape, tensor_of(b, HG_I32, ROWS, 1, label, HG_I32),
	                                    "labels", -1.0);
	CHECK_OK(hg_tape_compile(b->tape, hg_softmax_xent(b->tape, logits, labels, HG_NONE)));
	for (int i = 0; i < HIDDEN; i++)
		values[i] = i == 3 ? element : 1.0f;
	CHECK_OK(hg_tensor_upload(hg_params_find(b->params, "gamma0")->master, values, HG_F32));
	CHECK_OK(hg__tape_first_bad(b->tape, &found));
	return found;
}

static void a_bad_norm_is_named_as_op_by_op(void)
{
	static const float elements[] = {NAN, 6e4f};
	for (int i = 0; i < 2; i++) {
		int32_t found[2];
		for (int how = 0; how < 2; how++) {
			struct bench b;
			found[how] = first_bad(how ? OP_BY_OP : AS_IT_IS, elements[i], &b);
			CHECK(found[how] < 0 || b.tape->recording.entry[found[how]].node.op->as_normalised);
			bench_close(&b);
		}
		CHECK_MSG(found[0] == found[1] && (found[0] < 0) == (i == 0),
		          "gamma %g: entry %d, op by op %d", (double)elements[i], (int)found[0],
		          (int)found[1]);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(products_compute_the_norms_around_them),
	                                         TEST(a_bad_norm_is_named_as_op_by_op)};
	return RUN_TESTS(argc, argv, cases);
}
