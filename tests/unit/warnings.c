#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graphs.h"
#include "halfgraph/ops_graph.h"
#include "small_run.h"

/* What would change a run in silence is said: in the log, by a status, in what a state says. */

struct heard {
	int warnings;
	char text[2048];
};

static void listen(void *user, hg_log_level level, const char *message)
{
	struct heard *h = user;
	const size_t used = strlen(h->text);
	h->warnings += level == HG_LOG_WARN;
	if (level <= HG_LOG_WARN)
		snprintf(h->text + used, sizeof h->text - used, "%s\n", message);
}

static hg_context *loud_context(struct heard *h)
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	*h = (struct heard){0};
	config.log = listen;
	config.log_user = h;
	return test_context_with(config);
}

/* ---- directed graphs ---- */

enum { N = 60, M = 400, D = 5 };
static int32_t dst[2 * M], src[2 * M], label[N];
static float x[N * D];

static hg_graph *graph_of(hg_context *ctx, int both_ways)
{
	hg_graph *graph = NULL;
	test_reseed(9);
	struct coo edges = coo_hub(N, M, 5, 3);
	if (both_ways)
		coo_add_transpose(&edges);
	coo_move(edges, dst, src);
	CHECK_OK(hg_graph_from_coo(ctx, N, N, both_ways ? 2 * M : M, dst, src, NULL, NULL, &graph));
	return graph;
}

static hg_train *train_on(hg_context *ctx, hg_graph *graph, hg_norm norm, hg_tensor **features)
{
	hg_train_config c = hg_train_config_default("gcn");
	hg_train_data data = HG_TRAIN_DATA_INIT;
	hg_train *train = NULL;
	c.policy = hg_policy_fp32();
	c.model.norm = norm;
	c.model.hidden = 6;
	c.epochs = 3;
	for (int i = 0; i < N; i++) {
		label[i] = i % 3;
		for (int k = 0; k < D; k++)
			x[i * D + k] = (float)test_normal();
	}
	CHECK_OK(hg_tensor_create(ctx, HG_F32, N, D, features));
	CHECK_OK(hg_tensor_upload(*features, x, HG_F32));
	data.input.graph = graph;
	data.input.x = *features;
	data.labels = label;
	CHECK_MSG(hg_train_create(ctx, &c, &data, &train) == HG_OK, "%s", hg_context_error(ctx));
	return train;
}

static void a_directed_graph_is_said(void)
{
	static const struct {
		hg_norm norm;
		int both_ways, warnings;
	} cases[] = {
	    {HG_NORM_BOTH, 0, 1}, {HG_NORM_BOTH, 1, 0}, {HG_NORM_IN, 0, 0}, {HG_NORM_RIGHT, 0, 0}};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct heard h;
		hg_context *ctx = loud_context(&h);
		hg_graph *graph = graph_of(ctx, cases[k].both_ways);
		hg_tensor *features = NULL;
		hg_train_report report = HG_TRAIN_REPORT_INIT;
		hg_train *train = train_on(ctx, graph, cases[k].norm, &features);
		CHECK_OK(hg_train_run(train, &report));
		CHECK_MSG(h.warnings == cases[k].warnings, "case %d: %d warnings: %s", (int)k, h.warnings,
		          h.text);
		if (h.warnings) {
			CHECK_CONTAINS(h.text, "gcn: the graph is directed");
			CHECK_CONTAINS(h.text, "norm in");
		}
		hg_train_free(train);
		hg_tensor_free(features);
		hg_graph_free(graph);
		hg_context_free(ctx);
	}
}

/* One layer of a GCN with norm IN against PyTorch Geometric's gcn_norm, written out: deg[i] counts
 * the edges into i, norm[e] = deg[dst]^-1/2 deg[src]^-1/2, and Y[dst] += norm[e] X[src]. */
static void in_is_the_other_gcn(void)
{
	struct heard h;
	hg_context *ctx = loud_context(&h);
	hg_graph *graph = graph_of(ctx, 0);
	hg_params *params = NULL;
	hg_tape *tape = NULL;
	hg_tensor *features = NULL;
	static float y[N * D];
	static double expected[N * D], size[N * D];
	double deg[N] = {0};
	const hg_policy policy = hg_policy_fp32();
	for (int i = 0; i < N * D; i++)
		x[i] = (float)test_normal();
	CHECK_OK(hg_tensor_create(ctx, HG_F32, N, D, &features));
	CHECK_OK(hg_tensor_upload(features, x, HG_F32));
	CHECK_OK(hg_params_create(ctx, &policy, &params));
	CHECK_OK(hg_tape_create(params, HG_EVAL, &tape));
	const hg_var in = hg_tape_input(tape, features, "x", -1.0);
	const hg_var out = hg_spmm(tape, graph, in, HG_NONE, HG_NORM_IN, 1.0f);
	CHECK_MSG(hg_tape_compile(tape, out) == HG_OK, "%s", hg_context_error(ctx));
	CHECK_OK(hg_tape_forward(tape));
	CHECK_OK(hg_tensor_download(hg_tape_value(tape, out), y, HG_F32));
	for (int e = 0; e < M; e++)
		deg[dst[e]]++;
	memset(expected, 0, sizeof expected);
	memset(size, 0, sizeof size);
	for (int e = 0; e < M; e++) {
		const double d =
		    deg[src[e]] > 0 ? deg[src[e]] : 1; /* pyg: deg 0 gives factor 0, but only of sources */
		for (int k = 0; k < D; k++) {
			const double term = (double)x[src[e] * D + k] / sqrt(deg[dst[e]] * d);
			expected[dst[e] * D + k] += term;
			size[dst[e] * D + k] += fabs(term);
		}
	}
	/* a sum of at most M terms and 4 roundings in f32: gamma_(M+4) of the terms' sizes */
	for (int i = 0; i < N * D; i++)
		CHECK_WITHIN(y[i], expected[i], size[i] * (M + 4) * 0x1p-23);
	hg_tape_free(tape);
	hg_params_free(params);
	hg_tensor_free(features);
	hg_graph_free(graph);
	hg_context_free(ctx);
}

static void in_is_for_square_graphs(void)
{
	struct heard h;
	hg_context *ctx = loud_context(&h);
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

static void adam_without_eps_is_said(void)
{
	for (int k = 0; k < 4; k++) {
		struct heard h;
		struct small_run r;
		hg_train_config c = small_config("gcn", k == 1 ? "fp32" : "fp16");
		c.optim.eps = k == 2 ? 1e-8f : 0.0f;
		c.optim.kind = k == 3 ? HG_SGD : HG_ADAM;
		c.model.norm = HG_NORM_RIGHT; /* its graph is directed */
		small_open(&r, loud_context(&h), c);
		CHECK_MSG(h.warnings == (k == 0), "case %d: %d warnings: %s", k, h.warnings, h.text);
		if (k == 0)
			CHECK_CONTAINS(h.text, "optim: eps is 0");
		small_close(&r);
	}
}

/* ---- in a progress function ---- */

struct inside {
	hg_train **train;
	hg_state *state;
	hg_status run, set, get, predict;
	int calls;
};

static int reach_in(void *user, const hg_train_event *event)
{
	struct inside *in = user;
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

/* Refused, and the run goes on as if nobody had tried. */
static void a_run_in_a_run_is_refused(void)
{
	struct small_run plain, r;
	struct inside in = {.calls = 0};
	hg_train_config c = small_config("gcn", "fp16");
	c.epochs = 4;
	c.eval_every = 1;
	small_open(&plain, test_context(), c);
	in.state = small_state(&plain);
	small_go(&plain);
	small_open(&r, test_context(), c);
	hg_state *begin = small_state(&r);
	small_close(&r);
	in.train = &r.train;
	small_reach = reach_in;
	small_reach_user = &in;
	small_open(&r, test_context(), c);
	CHECK_EQ_I(hg_train_run(r.train, &r.report), HG_INFO_STOPPED);
	small_reach = NULL;
	CHECK_EQ_I(in.calls, 4);
	CHECK_EQ_I(in.run, HG_ERR_STATE);
	CHECK_EQ_I(in.set, HG_ERR_STATE);
	CHECK_OK(in.get);
	CHECK_OK(in.predict);
	hg_state *a = small_state(&plain), *b = small_state(&r);
	check_same_state(a, b, 1);
	CHECK_OK(hg_train_set_state(r.train, begin)); /* and afterwards it may */
	CHECK_OK(hg_train_run(r.train, &r.report));
	hg_state_free(a);
	hg_state_free(b);
	hg_state_free(begin);
	hg_state_free(in.state);
	small_close(&r);
	small_close(&plain);
}

/* ---- features made ready in another way ---- */

static void other_features_are_said(void)
{
	struct small_run a, b;
	const hg_train_config c = small_config("gcn", "fp16");
	small_note_text = "rows divided by their sums";
	small_open(&a, test_context(), c);
	hg_state *state = small_state(&a);
	small_close(&a);
	small_open(&a, test_context(), c);
	CHECK_OK(hg_train_set_state(a.train, state));
	small_note_text = "rows as stored";
	small_open(&b, test_context(), c);
	CHECK_EQ_I(hg_train_set_state(b.train, state), HG_INFO_DIFFERS);
	CHECK_CONTAINS(hg_context_error(b.ctx), "data.features_note is rows divided by their sums in "
	                                        "the state, the run has rows as stored");
	small_note_text = NULL;
	const hg_setting *sparse = hg_state_find_setting(state, "data.features_sparse");
	CHECK(sparse && sparse->kind == HG_SETTING_INTEGER && sparse->integer == 0);
	hg_state_free(state);
	small_close(&a);
	small_close(&b);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(a_directed_graph_is_said),  TEST(in_is_the_other_gcn),
	    TEST(in_is_for_square_graphs),   TEST(adam_without_eps_is_said),
	    TEST(a_run_in_a_run_is_refused), TEST(other_features_are_said),
	};
	return RUN_TESTS(argc, argv, cases);
}
