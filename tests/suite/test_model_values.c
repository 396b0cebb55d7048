/* Models with attention: logits and the gradient of every parameter, compared with a composition of
 * the oracle's ops that is written from the papers' equations. Each model has weights on its edges,
 * an isolated node, and no dropout.
 *
 * How far may a correct implementation be from the exact result? The errors of an op are bounded by
 * the oracle, and how they spread is measured: RUNS times each number of each result is moved by
 * its whole bound, in a random direction (chain.h). A rounding is seldom as large as its bound, and
 * those of a sum are less than its bound by about the root of its length. The threshold is four
 * times the largest distance of a tensor in the runs. */
#include <math.h>
#include <stdio.h>

#include "graphs.h"
#include "halfgraph/model.h"
#include "halfgraph/ops_attention.h"
#include "halfgraph/ops_norm.h"
#include "suite/chain.h"

enum { N = 14, M = 40, F = 5, C = 3, HIDDEN = 4, HEADS = 2, OUT_HEADS = 3, RUNS = 8 };
enum { PARAMS = 64, MOST = 1024 };

struct subject {
	const char *model, *policy;
	int layers, sparse;
	hg_feature_norm norm;
	/* the largest threshold that still tells something, as a share of the tensor's largest
	 * element */
	double loose;
};

struct task {
	hg_context *ctx;
	hg_params *params;
	hg_model *model;
	hg_graph *graph, *x_sparse;
	hg_tensor *x, *label;
	struct host_csr csr;
	int is_half;
	double weight[M + 2 * N];
	float features[N * F];
	int32_t labels[N];
	float param[PARAMS][MOST];
	struct chain exact, noisy, *chain; /* chain: the one that is built */
	int first_param;                   /* parameter p is the chain's value first_param + p */
	int logits;
	double value_spread[CHAIN_VALUES], grad_spread[CHAIN_VALUES];
};

/* ---- the models, in the oracle's ops ---- */

static int param(struct task *t, const char *owner, const char *name)
{
	char full[64];
	snprintf(full, sizeof full, "%s%s%s", owner, *owner ? "." : "", name);
	for (int64_t p = 0; p < hg_params_count(t->params); p++)
		if (strcmp(hg_param_name(hg_params_at(t->params, p)), full) == 0)
			return t->first_param + (int)p;
	test_fail(__FILE__, __LINE__, "the model has no parameter %s", full);
}

static int64_t cols_of(const struct task *t, int value)
{
	return t->chain->value[value].cols;
}

static int op(struct task *t, const char *name, const struct oracle_call *options, int64_t cols,
              int a, int b, int c)
{
	const int in[ORACLE_MAX_IN] = {a, b, c, -1, -1};
	return chain_op(t->chain, name, options, N, cols, in);
}

static int linear(struct task *t, const char *owner, const char *name, int x)
{
	char weight[32], bias[32];
	snprintf(weight, sizeof weight, "%s%sweight", name, *name ? "." : "");
	snprintf(bias, sizeof bias, "%s%sbias", name, *name ? "." : "");
	const int w = param(t, owner, weight);
	return op(t, "linear", NULL, cols_of(t, w), x, w, param(t, owner, bias));
}

static int normalise(struct task *t, const struct subject *s, const char *owner, const char *name,
                     int x)
{
	char gamma[32], beta[32];
	const struct oracle_call options = {.eps = (double)1e-5f};
	snprintf(gamma, sizeof gamma, "%s.gamma", name);
	snprintf(beta, sizeof beta, "%s.beta", name);
	return op(t, s->norm == HG_LAYER_NORM ? "layer_norm" : "batch_norm", &options, cols_of(t, x), x,
	          param(t, owner, gamma), param(t, owner, beta));
}

static int attention(struct task *t, const struct oracle_call *options, int64_t cols, int q, int c)
{
	const int in[ORACLE_MAX_IN] = {q, -1, -1, c, -1};
	return chain_op(t->chain, "attention", options, N, cols, in);
}

static int gatv2_layer(struct task *t, const struct subject *s, const char *name, int x, int last)
{
	const int heads = last ? OUT_HEADS : HEADS, width = heads * (last ? C : HIDDEN);
	const struct oracle_call v2 = {.score = HG_SCORE_ADD_V2, .heads = heads, .slope = (double)0.2f},
	                         mean = {.heads = heads}, elu = {.alpha = 1.0};
	(void)s;
	int y = attention(t, &v2, width, linear(t, name, "ends", x), param(t, name, "att"));
	if (last)
		y = op(t, "head_mean", &mean, C, y, -1, -1);
	y = op(t, "bias_add", NULL, cols_of(t, y), y, param(t, name, "bias"), -1);
	return last ? y : op(t, "elu", &elu, width, y, -1, -1);
}

static int agnn_layer(struct task *t, const struct subject *s, const char *name, int x, int last)
{
	const struct oracle_call cosine = {.score = HG_SCORE_COSINE, .heads = 1};
	(void)s, (void)last;
	return attention(t, &cosine, HIDDEN, x, param(t, name, "beta"));
}

static int gt_layer(struct task *t, const struct subject *s, const char *name, int x, int last)
{
	const int width = HEADS * HIDDEN;
	const struct oracle_call dot = {
	    .score = HG_SCORE_DOT, .heads = HEADS, .alpha = (double)(1.0f / sqrtf((float)HIDDEN))};
	(void)last;
	int y = attention(t, &dot, width, linear(t, name, "qkv", x), -1);
	y = op(t, "add", NULL, width, x, linear(t, name, "proj", y), -1);
	const int r = normalise(t, s, name, "norm1", y);
	y = op(t, "relu", NULL, 2 * width, linear(t, name, "ff1", r), -1, -1);
	y = op(t, "add", NULL, width, r, linear(t, name, "ff2", y), -1);
	return normalise(t, s, name, "norm2", y);
}

static void model_in_oracle(struct task *t, const struct subject *s, int x)
{
	static int (*const layers[])(struct task *, const struct subject *, const char *, int,
	                             int) = {gatv2_layer, agnn_layer, gt_layer};
	const int kind = strcmp(s->model, "gatv2") == 0 ? 0 : strcmp(s->model, "agnn") == 0 ? 1 : 2;
	float label[N];
	if (kind > 0)
		x = linear(t, "embed", "", x);
	if (kind == 1)
		x = op(t, "relu", NULL, HIDDEN, x, -1, -1);
	for (int l = 0; l < s->layers; l++) {
		char name[16];
		snprintf(name, sizeof name, "conv%d", l);
		x = layers[kind](t, s, name, x, l + 1 == s->layers);
	}
	t->logits = kind > 0 ? linear(t, "head", "", x) : x;
	for (int i = 0; i < N; i++)
		label[i] = (float)t->labels[i];
	const int in[ORACLE_MAX_IN] = {t->logits, chain_leaf(t->chain, N, 1, label), -1, -1, -1};
	(void)chain_op(t->chain, "softmax_xent", NULL, 1, 1, in);
}

/* ---- the task ---- */

static void make_graph(struct task *t)
{
	/* node 0 is isolated */
	struct coo list = coo_empty(N, N);
	for (int e = 0; e < M; e++)
		coo_add_weighted(&list, 1 + test_below(e % 5 ? N - 1 : 2), 1 + test_below(N - 1),
		                 0.25f * (float)(1 + test_below(8)));
	for (int i = 1; i < N; i++)
		coo_add_weighted(&list, i, i, 1.0f);
	t->graph = coo_to_graph(t->ctx, &list);
	t->csr = host_csr_sort(list);
	for (int64_t e = 0; e < t->csr.m; e++)
		t->weight[e] = (double)t->csr.weight[e];
}

/* A number that f16 holds exactly, so that both sides begin with the same. */
static float half_number(double x)
{
	return hg_half_to_float(hg_half_from_float((float)x));
}

static void make_features(struct task *t, hg_dtype state)
{
	struct coo sparse = coo_empty(N, F);
	for (int i = 0; i < N * F; i++) {
		t->features[i] = i % 3 == 0 ? 0.0f : half_number(0.7 * test_normal());
		if (i % 3)
			coo_add_weighted(&sparse, i / F, i % F, t->features[i]);
	}
	for (int i = 0; i < N; i++)
		t->labels[i] = i % C;
	t->x_sparse = coo_graph(t->ctx, sparse);
	CHECK_OK(hg_tensor_create(t->ctx, state, N, F, &t->x));
	CHECK_OK(hg_tensor_upload(t->x, t->features, HG_F32));
	CHECK_OK(hg_tensor_create(t->ctx, HG_I32, N, 1, &t->label));
	CHECK_OK(hg_tensor_upload(t->label, t->labels, HG_I32));
}

/* Random weights. The gains of norms are about 1, and so are the biases of the embedding, which
 * leave no row of zeros: a cosine has no derivative there. */
static void make_params(struct task *t)
{
	CHECK(hg_params_count(t->params) <= PARAMS);
	for (int64_t p = 0; p < hg_params_count(t->params); p++) {
		hg_param *param = hg_params_at(t->params, p);
		const int64_t count =
		    hg_tensor_rows(hg_param_master(param)) * hg_tensor_cols(hg_param_master(param));
		const int is_one = strstr(hg_param_name(param), "gamma") != NULL ||
		                   strcmp(hg_param_name(param), "embed.bias") == 0;
		CHECK(count <= MOST);
		for (int64_t i = 0; i < count; i++)
			t->param[p][i] = half_number((is_one ? 1.0 : 0.0) + 0.4 * test_normal());
		if (!(hg_param_flags(param) & HG_PARAM_BUFFER))
			CHECK_OK(hg_param_set(param, t->param[p]));
	}
}

/* The whole computation in the oracle's numbers. */
static void chain_make(struct task *t, const struct subject *s, struct chain *chain, int noise)
{
	memset(chain, 0, sizeof *chain);
	t->chain = chain;
	chain->is_half = t->is_half;
	chain->noise = noise;
	chain->graph = (struct oracle_graph){.rows = N,
	                                     .cols = N,
	                                     .m = t->csr.m,
	                                     .rowptr = t->csr.rowptr,
	                                     .dst = t->csr.row,
	                                     .src = t->csr.col,
	                                     .weight = t->weight};
	const int x = chain_leaf(chain, N, F, t->features);
	t->first_param = chain->values;
	for (int64_t p = 0; p < hg_params_count(t->params); p++) {
		const hg_tensor *master = hg_param_master(hg_params_at(t->params, p));
		(void)chain_leaf(chain, hg_tensor_rows(master), hg_tensor_cols(master), t->param[p]);
	}
	model_in_oracle(t, s, x);
	chain_back(chain);
}

static void measure_spread(struct task *t, const struct subject *s)
{
	for (int run = 0; run < RUNS; run++) {
		chain_make(t, s, &t->noisy, 1);
		for (int i = 0; i < t->exact.values; i++) {
			const double value = chain_distance(&t->exact.value[i], &t->noisy.value[i]),
			             grad = chain_distance(&t->exact.grad[i], &t->noisy.grad[i]);
			t->value_spread[i] = fmax(t->value_spread[i], value);
			t->grad_spread[i] = fmax(t->grad_spread[i], grad);
		}
		chain_free(&t->noisy);
	}
}

static void task_open(struct task *t, const struct subject *s)
{
	hg_policy policy;
	CHECK_OK(hg_policy_parse(s->policy, &policy));
	policy.loss_scale.enabled = 0; /* gradients are compared as they are */
	memset(t, 0, sizeof *t);
	test_reseed(19);
	t->ctx = test_context();
	t->is_half = policy.state == HG_F16;
	make_graph(t);
	make_features(t, policy.state);
	hg_model_config config = hg_model_config_default(s->model);
	config.in_features = F;
	config.out_features = C;
	config.layers = s->layers;
	config.hidden = HIDDEN;
	config.heads = HEADS;
	config.out_heads = OUT_HEADS;
	config.dropout = config.attention_dropout = 0.0f;
	config.feature_norm = s->norm;
	CHECK_OK(hg_params_create(t->ctx, &policy, &t->params));
	CHECK_MSG(hg_model_create(t->params, &config, &t->model) == HG_OK, "%s",
	          hg_context_error(t->ctx));
	make_params(t);
	chain_make(t, s, &t->exact, 0);
	measure_spread(t, s);
}

static void task_close(struct task *t)
{
	chain_free(&t->exact);
	host_csr_free(&t->csr);
	hg_model_free(t->model);
	hg_params_free(t->params);
	hg_tensor_free(t->x);
	hg_tensor_free(t->label);
	hg_graph_free(t->x_sparse);
	hg_graph_free(t->graph);
	hg_context_free(t->ctx);
}

/* ---- the comparison ---- */

/* The largest error as a share of the threshold. */
static double compare(const struct subject *s, const char *name, const hg_tensor *tensor,
                      const struct oracle_matrix *exact, double spread)
{
	float values[MOST];
	double worst = 0, amax = 0;
	const double bound = 4 * spread;
	const int64_t count = exact->rows * exact->cols;
	CHECK(tensor && count <= MOST);
	CHECK_EQ_I(hg_tensor_rows(tensor), exact->rows);
	CHECK_EQ_I(hg_tensor_cols(tensor), exact->cols);
	CHECK_OK(hg_tensor_download(tensor, values, HG_F32));
	for (int64_t i = 0; i < count; i++) {
		const double x = (double)values[i], v = exact->at[i].v;
		CHECK_MSG(fabs(x - v) <= bound, "%s %s, %s[%d] is %.9g, expected %.9g, threshold %.3g",
		          s->model, s->policy, name, (int)i, x, v, bound);
		worst = fmax(worst, fabs(x - v));
		amax = fmax(amax, fabs(v));
	}
	/* A gradient that is 0 up to rounding has no size to compare with. */
	CHECK_MSG(bound <= s->loose * fmax(amax, 0.01), "%s %s, %s: the threshold is %g of %g",
	          s->model, s->policy, name, bound, amax);
	return worst / bound;
}

static void model_is_that_of_its_paper(const void *item)
{
	const struct subject *s = item;
	static struct task t;
	hg_tape *tape = NULL;
	hg_model_input in = HG_MODEL_INPUT_INIT;
	task_open(&t, s);
	in.graph = t.graph;
	in.x = s->sparse ? NULL : t.x;
	in.x_sparse = s->sparse ? t.x_sparse : NULL;
	CHECK_OK(hg_tape_create(t.params, HG_TRAIN, &tape));
	const hg_var logits = hg_model_record(t.model, tape, &in),
	             loss = hg_softmax_xent(tape, logits, hg_tape_input(tape, t.label, "labels", -1.0),
	                                    HG_NONE);
	hg_tape_keep(tape, logits);
	CHECK_MSG(hg_tape_compile(tape, loss) == HG_OK, "%s", hg_context_error(t.ctx));
	CHECK_OK(hg_tape_forward(tape));
	double worst[2] = {compare(s, "logits", hg_tape_value(tape, logits), &t.exact.value[t.logits],
	                           t.value_spread[t.logits]),
	                   0};
	CHECK_OK(hg_tape_backward(tape));
	for (int64_t p = 0; p < hg_params_count(t.params); p++) {
		hg_param *param = hg_params_at(t.params, p);
		if (hg_param_flags(param) & HG_PARAM_BUFFER)
			continue;
		worst[1] = fmax(worst[1], compare(s, hg_param_name(param), hg_param_grad(param),
		                                  &t.exact.grad[t.first_param + p],
		                                  t.grad_spread[t.first_param + p]));
	}
	test_note("%s %s: worst error / bound %.3f (logits), %.3f (gradients)", s->model, s->policy,
	          worst[0], worst[1]);
	hg_tape_free(tape);
	task_close(&t);
}

int main(int argc, char **argv)
{
	static const struct subject gatv2 = {"gatv2", "fp32", 2, 0, HG_BATCH_NORM, 0x1p-5},
	                            gatv2_half = {"gatv2", "fp16", 2, 0, HG_BATCH_NORM, 1.0},
	                            gatv2_sparse = {"gatv2", "fp32", 1, 1, HG_BATCH_NORM, 0x1p-5},
	                            agnn = {"agnn", "fp32", 2, 0, HG_BATCH_NORM, 0x1p-5},
	                            agnn_half = {"agnn", "fp16", 2, 0, HG_BATCH_NORM, 1.0},
	                            agnn_sparse = {"agnn", "fp32", 2, 1, HG_BATCH_NORM, 0x1p-5},
	                            gt = {"gt", "fp32", 1, 0, HG_BATCH_NORM, 0x1p-5},
	                            gt_layer_norm = {"gt", "fp32", 1, 0, HG_LAYER_NORM, 0x1p-5},
	                            gt_half = {"gt", "fp16", 1, 0, HG_BATCH_NORM, 2.0},
	                            gt_layer_norm_half = {"gt", "fp16", 1, 0, HG_LAYER_NORM, 1.0},
	                            gt_sparse = {"gt", "fp32", 1, 1, HG_BATCH_NORM, 0x1p-5};
	static const struct test_case cases[] = {
	    {"gatv2", 0, model_is_that_of_its_paper, &gatv2},
	    {"gatv2_fp16", 0, model_is_that_of_its_paper, &gatv2_half},
	    {"gatv2_sparse", 0, model_is_that_of_its_paper, &gatv2_sparse},
	    {"agnn", 0, model_is_that_of_its_paper, &agnn},
	    {"agnn_fp16", 0, model_is_that_of_its_paper, &agnn_half},
	    {"agnn_sparse", 0, model_is_that_of_its_paper, &agnn_sparse},
	    {"gt", 0, model_is_that_of_its_paper, &gt},
	    {"gt_layer_norm", 0, model_is_that_of_its_paper, &gt_layer_norm},
	    {"gt_fp16", 0, model_is_that_of_its_paper, &gt_half},
	    {"gt_layer_norm_fp16", 0, model_is_that_of_its_paper, &gt_layer_norm_half},
	    {"gt_sparse", 0, model_is_that_of_its_paper, &gt_sparse},
	};
	return RUN_TESTS(argc, argv, cases);
}
