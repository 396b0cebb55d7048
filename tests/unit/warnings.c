/* What could change the results of a run without the user noticing is reported: as a warning of the
 * log, as a status, or as a setting that differs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "halfgraph/ops_graph.h"
#include "small_run.h"
#include "unit/log_record.h"

/* ---- directed graphs ---- */

enum { N = 60, M = 400, D = 5 };

/* Random edges, in one direction or in both. */
static struct planted make_task(int both_ways)
{
	test_reseed(9);
	struct coo edges = coo_hub(N, M, 5, 3);
	if (both_ways)
		coo_add_transpose(&edges);
	const struct planted_features features = {.noise = 1.0};
	return planted_make(edges, D, 3, features);
}

static void directed_graph_warns(void)
{
	static const struct {
		hg_norm norm;
		int both_ways, warnings;
	} cases[] = {
	    {HG_NORM_BOTH, 0, 1}, {HG_NORM_BOTH, 1, 0}, {HG_NORM_IN, 0, 0}, {HG_NORM_RIGHT, 0, 0}};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct log_record log;
		struct planted_run run;
		struct planted task = make_task(cases[k].both_ways);
		hg_train_config c = hg_train_config_default("gcn");
		c.policy = hg_policy_fp32();
		c.model.norm = cases[k].norm;
		c.model.hidden = 6;
		c.epochs = 3;
		planted_train(&run, log_record_context(&log, HG_LOG_WARN), &task, &c, 0);
		CHECK_MSG(log.warnings == cases[k].warnings, "case %d: %d warnings: %s", (int)k,
		          log.warnings, log.line[0]);
		if (log.warnings) {
			CHECK_CONTAINS(log.line[0], "gcn: the graph is directed");
			CHECK_CONTAINS(log.line[0], "norm in");
		}
		planted_close(&run);
		planted_free(&task);
	}
}

/* Aggregates [n, d] values of a task with norm IN on an f32 tape. */
static void aggregate_with_norm_in(const struct planted *task, float *y)
{
	hg_context *ctx = test_context();
	hg_graph *graph = coo_to_graph(ctx, &task->edges);
	hg_params *params = NULL;
	hg_tape *tape = NULL;
	hg_tensor *features = NULL;
	const hg_policy policy = hg_policy_fp32();
	CHECK_OK(hg_tensor_create(ctx, HG_F32, N, D, &features));
	CHECK_OK(hg_tensor_upload(features, task->x, HG_F32));
	CHECK_OK(hg_params_create(ctx, &policy, &params));
	CHECK_OK(hg_tape_create(params, HG_EVAL, &tape));
	const hg_var in = hg_tape_input(tape, features, "x", -1.0);
	const hg_var out = hg_spmm(tape, graph, in, HG_NONE, HG_NORM_IN, 1.0f);
	CHECK_MSG(hg_tape_compile(tape, out) == HG_OK, "%s", hg_context_error(ctx));
	CHECK_OK(hg_tape_forward(tape));
	CHECK_OK(hg_tensor_download(hg_tape_value(tape, out), y, HG_F32));
	hg_tape_free(tape);
	hg_params_free(params);
	hg_tensor_free(features);
	hg_graph_free(graph);
	hg_context_free(ctx);
}

/* The aggregation with norm IN is PyTorch Geometric's gcn_norm: deg[i] counts the edges into i, and
 * Y[dst] += deg[dst]^-1/2 deg[src]^-1/2 X[src]. */
static void norm_in_is_that_of_pytorch_geometric(void)
{
	struct planted task = make_task(0);
	const int32_t *dst = task.edges.dst, *src = task.edges.src;
	float y[N * D];
	double expected[N * D] = {0}, size[N * D] = {0}, deg[N] = {0};
	aggregate_with_norm_in(&task, y);
	for (int e = 0; e < M; e++)
		deg[dst[e]]++;
	for (int e = 0; e < M; e++) {
		/* PyTorch Geometric makes the factor of a node without edges into it 0. Here it is 1, which
		 * differs only for sources, since such a node is no destination. */
		const double d = deg[src[e]] > 0 ? deg[src[e]] : 1;
		for (int k = 0; k < D; k++) {
			const double term = (double)task.x[src[e] * D + k] / sqrt(deg[dst[e]] * d);
			expected[dst[e] * D + k] += term;
			size[dst[e] * D + k] += fabs(term);
		}
	}
	/* A sum of at most M terms, each with 4 roundings in f32: gamma_(M+4) times the sum of
	 * |terms|. */
	for (int i = 0; i < N * D; i++)
		CHECK_WITHIN(y[i], expected[i], size[i] * (M + 4) * 0x1p-23);
	planted_free(&task);
}

static void norm_in_needs_a_square_graph(void)
{
	hg_context *ctx = test_context();
	struct coo edge = coo_empty(2, 3);
	coo_add(&edge, 0, 0);
	hg_graph *wide = coo_graph(ctx, edge);
	hg_params *params = NULL;
	hg_tape *tape = NULL;
	hg_tensor *features = NULL;
	const hg_policy policy = hg_policy_fp32();
	CHECK_OK(hg_tensor_create(ctx, HG_F32, 3, 1, &features));
	CHECK_OK(hg_params_create(ctx, &policy, &params));
	CHECK_OK(hg_tape_create(params, HG_EVAL, &tape));
	const hg_var out =
	    hg_spmm(tape, wide, hg_tape_input(tape, features, "x", 1.0), HG_NONE, HG_NORM_IN, 1.0f);
	CHECK_STATUS(hg_tape_compile(tape, out), HG_ERR_SHAPE);
	hg_tape_free(tape);
	hg_params_free(params);
	hg_tensor_free(features);
	hg_graph_free(wide);
	hg_context_free(ctx);
}

/* ---- Adam without eps ---- */

static void adam_without_eps_warns(void)
{
	for (int k = 0; k < 4; k++) {
		struct log_record log;
		struct small_run r;
		hg_train_config c = small_config("gcn", k == 1 ? "fp32" : "fp16");
		c.optim.eps = k == 2 ? 1e-8f : 0.0f;
		c.optim.kind = k == 3 ? HG_SGD : HG_ADAM;
		c.model.norm = HG_NORM_RIGHT; /* other norms warn that the graph is directed */
		small_open(&r, log_record_context(&log, HG_LOG_WARN), c);
		CHECK_MSG(log.warnings == (k == 0), "case %d: %d warnings: %s", k, log.warnings,
		          log.line[0]);
		if (k == 0)
			CHECK_CONTAINS(log.line[0], "optim: eps is 0");
		small_close(&r);
	}
}

/* ---- calls from a progress function ---- */

struct nested {
	hg_train **train;
	hg_state *state;
	hg_status run, set, get, predict;
	int calls;
};

static int call_nested(void *user, const hg_train_event *event)
{
	struct nested *in = user;
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	hg_state *now = NULL;
	static int32_t prediction[SMALL_N];
	(void)event;
	in->calls++;
	in->run = hg_train_run(*in->train, &report);
	in->set = hg_train_set_state(*in->train, in->state);
	in->get = hg_train_get_state(*in->train, &now);
	in->predict = hg_train_predict(*in->train, prediction, NULL);
	hg_state_free(now);
	return in->calls == 4;
}

/* A progress function must not train or change its own run: the calls are refused, and the run
 * gives the same state as without them. */
static void run_refuses_calls_from_its_progress_function(void)
{
	struct small_run plain, r;
	struct nested in = {.calls = 0};
	const struct small_options options = {.progress = call_nested, .user = &in};
	hg_train_config c = small_config("gcn", "fp16");
	c.epochs = 4;
	c.eval_every = 1;
	small_open(&plain, test_context(), c);
	in.state = small_state(&plain);
	small_train(&plain);
	small_open(&r, test_context(), c);
	hg_state *begin = small_state(&r);
	small_close(&r);
	in.train = &r.train;
	small_open_with(&r, test_context(), c, &options);
	CHECK_EQ_I(hg_train_run(r.train, &r.report), HG_INFO_STOPPED);
	CHECK_EQ_I(in.calls, 4);
	CHECK_EQ_I(in.run, HG_ERR_STATE);
	CHECK_EQ_I(in.set, HG_ERR_STATE);
	CHECK_OK(in.get);
	CHECK_OK(in.predict);
	hg_state *a = small_state(&plain), *b = small_state(&r);
	check_same_state(a, b, 1);
	CHECK_OK(hg_train_set_state(r.train, begin)); /* after the run the same calls are allowed */
	CHECK_OK(hg_train_run(r.train, &r.report));
	hg_state_free(a);
	hg_state_free(b);
	hg_state_free(begin);
	hg_state_free(in.state);
	small_close(&r);
	small_close(&plain);
}

/* ---- features that were prepared in another way ---- */

static void other_features_are_reported(void)
{
	struct small_run a, b;
	const hg_train_config c = small_config("gcn", "fp16");
	const struct small_options divided = {.features_note = "rows divided by their sums"},
	                           stored = {.features_note = "rows as stored"};
	small_open_with(&a, test_context(), c, &divided);
	hg_state *state = small_state(&a);
	small_close(&a);
	small_open_with(&a, test_context(), c, &divided);
	CHECK_OK(hg_train_set_state(a.train, state));
	small_open_with(&b, test_context(), c, &stored);
	CHECK_EQ_I(hg_train_set_state(b.train, state), HG_INFO_DIFFERS);
	CHECK_CONTAINS(hg_context_error(b.ctx), "data.features_note is rows divided by their sums in "
	                                        "the state, the run has rows as stored");
	const hg_setting *sparse = hg_state_find_setting(state, "data.features_sparse");
	CHECK(sparse && sparse->kind == HG_SETTING_INTEGER && sparse->integer == 0);
	hg_state_free(state);
	small_close(&a);
	small_close(&b);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(directed_graph_warns),
	    TEST(norm_in_is_that_of_pytorch_geometric),
	    TEST(norm_in_needs_a_square_graph),
	    TEST(adam_without_eps_warns),
	    TEST(run_refuses_calls_from_its_progress_function),
	    TEST(other_features_are_reported),
	};
	return RUN_TESTS(argc, argv, cases);
}
