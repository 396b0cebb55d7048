/* The newer models: logits and the gradient of every parameter, compared with a composition of
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
enum { HOPS = 3 }; /* of sgc and appnp */
enum { E = 3 };    /* of gine */
enum { PARAMS = 64, MOST = 1024 };
/* of graph tasks: two graphs, the nodes before SPLIT and the others */
enum { GRAPHS = 2, SPLIT = 6 };

struct subject {
	const char *model, *policy;
	int layers, sparse;
	hg_feature_norm norm;
	/* the largest threshold that still tells something, as a share of the tensor's largest
	 * element */
	double loose;
	int graphs; /* 1: a graph task, which reads out by `reduce` from `depths` */
	hg_reduce reduce;
	hg_readout_layers depths;
	hg_norm scaled; /* of sgc; the others take HG_NORM_BOTH */
};

struct task {
	hg_context *ctx;
	hg_params *params;
	hg_model *model;
	hg_graph *graph, *x_sparse;
	hg_tensor *x, *edge_x, *label;
	struct host_csr csr;
	int is_half;
	double weight[M + 2 * N];
	float features[N * F], edge_features[(M + 2 * N) * E];
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
	const int in[ORACLE_MAX_IN] = {a, b, c, -1, -1, -1};
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
	const int in[ORACLE_MAX_IN] = {q, -1, -1, c, -1, -1};
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

static int propagate(struct task *t, int norm, double alpha, int x)
{
	const struct oracle_call options = {.norm = norm, .alpha = alpha, .heads = 1};
	return op(t, "spmm", &options, cols_of(t, x), x, -1, -1);
}

/* X W, of which the next line adds the bias */
static int product(struct task *t, const char *owner, const char *name, int x)
{
	const int w = param(t, owner, name);
	return op(t, "linear", NULL, cols_of(t, w), x, w, -1);
}

static int relu_unless(struct task *t, int last, int x)
{
	return last ? x : op(t, "relu", NULL, cols_of(t, x), x, -1, -1);
}

static int sage_layer(struct task *t, const struct subject *s, const char *name, int x, int last)
{
	(void)s;
	const int mean = propagate(t, HG_NORM_RIGHT, 1.0, product(t, name, "neighbors.weight", x));
	return relu_unless(t, last,
	                   op(t, "add", NULL, cols_of(t, mean), mean, linear(t, name, "root", x), -1));
}

static int sgc_layer(struct task *t, const struct subject *s, const char *name, int x, int last)
{
	int y = product(t, name, "weight", x);
	for (int k = 0; k < HOPS; k++)
		y = propagate(t, (int)s->scaled, 1.0, y);
	return relu_unless(t, last,
	                   op(t, "bias_add", NULL, cols_of(t, y), y, param(t, name, "bias"), -1));
}

static int appnp_layer(struct task *t, const struct subject *s, const char *name, int x, int last)
{
	const double teleport = (double)0.1f, rest = (double)(1.0f - 0.1f);
	const struct oracle_call share = {.alpha = teleport};
	const int z0 = linear(t, name, "", x);
	int z = z0;
	(void)s;
	if (!last)
		return relu_unless(t, 0, z0);
	const int restart = op(t, "scale", &share, cols_of(t, z0), z0, -1, -1);
	for (int k = 0; k < HOPS; k++)
		z = op(t, "add", NULL, cols_of(t, z), propagate(t, HG_NORM_BOTH, rest, z), restart, -1);
	return z;
}

/* relu(BN2(relu(BN1(z)) W2)) of z = H W1. */
static int gin_mlp(struct task *t, const struct subject *s, const char *name, int z)
{
	z = op(t, "relu", NULL, HIDDEN, normalise(t, s, name, "bn1", z), -1, -1);
	z = normalise(t, s, name, "bn2", product(t, name, "mlp2.weight", z));
	return op(t, "relu", NULL, HIDDEN, z, -1, -1);
}

static int gin_layer(struct task *t, const struct subject *s, const char *name, int x, int last)
{
	const int sum = propagate(t, HG_NORM_NONE, 1.0, x);
	(void)last;
	x = op(t, "combine", NULL, cols_of(t, x), x, sum, param(t, name, "eps"));
	return gin_mlp(t, s, name, product(t, name, "mlp1.weight", x));
}

/* Messages relu(x_j + z_e W + b), added up; z are the attributes of the edges. */
static int gine_layer(struct task *t, const struct subject *s, const char *name, int x, int last)
{
	const int64_t m = t->csr.m, cols = cols_of(t, x);
	const struct oracle_call source = {.at_source = 1}, sum = {.reduce = HG_REDUCE_SUM};
	const int leaf = chain_leaf(t->chain, m, E, t->edge_features);
	const int edge[ORACLE_MAX_IN] =
	    {leaf, param(t, name, "edge.weight"), param(t, name, "edge.bias"), -1, -1, -1},
	          from[ORACLE_MAX_IN] = {x, -1, -1, -1, -1, -1};
	const int z = chain_op(t->chain, "linear", NULL, m, cols, edge),
	          y = chain_op(t->chain, "gather", &source, m, cols, from);
	const int both[ORACLE_MAX_IN] = {y, z, -1, -1, -1, -1};
	const int added[ORACLE_MAX_IN] = {
	    chain_op(t->chain, "add", NULL, m, cols, both), -1, -1, -1, -1, -1};
	const int message[ORACLE_MAX_IN] = {
	    chain_op(t->chain, "relu", NULL, m, cols, added), -1, -1, -1, -1, -1};
	(void)last;
	x = op(t, "combine", NULL, cols, x, chain_op(t->chain, "scatter", &sum, N, cols, message),
	       param(t, name, "eps"));
	return gin_mlp(t, s, name, product(t, name, "mlp1.weight", x));
}

struct layers {
	const char *model;
	int (*layer)(struct task *, const struct subject *, const char *, int, int);
	/* a linear map before the layers; its activation; in a node task a head behind them */
	int embeds, relu, head;
};
static const struct layers models[] = {
    {"gatv2", gatv2_layer, 0, 0, 0}, {"agnn", agnn_layer, 1, 1, 1}, {"gt", gt_layer, 1, 0, 1},
    {"sage", sage_layer, 0, 0, 0},   {"sgc", sgc_layer, 0, 0, 0},   {"appnp", appnp_layer, 0, 0, 0},
    {"gin", gin_layer, 0, 0, 1},     {"gine", gine_layer, 1, 0, 1}};

/* readout(x) W + b, added to the scores of the depths before; below 0: there are none. */
static int add_scores(struct task *t, const struct subject *s, const char *owner, const char *name,
                      int x, int scores)
{
	const struct oracle_call options = {.reduce = (int)s->reduce};
	char weight[32], bias[32];
	snprintf(weight, sizeof weight, "%s%sweight", name, *name ? "." : "");
	snprintf(bias, sizeof bias, "%s%sbias", name, *name ? "." : "");
	const int read[ORACLE_MAX_IN] = {x, -1, -1, -1, -1, -1};
	const int pooled = chain_op(t->chain, "readout", &options, GRAPHS, cols_of(t, x), read);
	const int in[ORACLE_MAX_IN] = {pooled, param(t, owner, weight), param(t, owner, bias), -1, -1,
	                               -1};
	const int own = chain_op(t->chain, "linear", NULL, GRAPHS, C, in);
	const int both[ORACLE_MAX_IN] = {scores, own, -1, -1, -1, -1};
	return scores < 0 ? own : chain_op(t->chain, "add", NULL, GRAPHS, C, both);
}

static void model_in_oracle(struct task *t, const struct subject *s, int x)
{
	const struct layers *model = models;
	float label[N];
	while (strcmp(model->model, s->model) != 0)
		model++;
	if (model->embeds)
		x = linear(t, "embed", "", x);
	if (model->relu)
		x = op(t, "relu", NULL, HIDDEN, x, -1, -1);
	int scores = s->depths == HG_READOUT_ALL ? add_scores(t, s, "input", "head", x, -1) : -1;
	for (int l = 0; l < s->layers; l++) {
		char name[16];
		snprintf(name, sizeof name, "conv%d", l);
		x = model->layer(t, s, name, x, !s->graphs && l + 1 == s->layers);
		if (s->graphs && s->depths != HG_READOUT_LAST)
			scores = add_scores(t, s, name, "head", x, scores);
	}
	if (s->graphs)
		t->logits = s->depths == HG_READOUT_LAST ? add_scores(t, s, "head", "", x, -1) : scores;
	else
		t->logits = model->head ? linear(t, "head", "", x) : x;
	for (int i = 0; i < N; i++)
		label[i] = (float)t->labels[i];
	const int in[ORACLE_MAX_IN] = {
	    t->logits, chain_leaf(t->chain, s->graphs ? GRAPHS : N, 1, label), -1, -1, -1, -1};
	(void)chain_op(t->chain, "softmax_xent", NULL, 1, 1, in);
}

/* ---- the task ---- */

static void make_graph(struct task *t, int graphs)
{
	static const int64_t ptr[GRAPHS + 1] = {0, SPLIT, N};
	/* node 0 is isolated */
	struct coo list = coo_empty(N, N);
	for (int e = 0; e < M; e++) {
		const int second = graphs && e % 2;
		const int64_t first = second ? SPLIT : 1, nodes = (graphs && !second ? SPLIT : N) - first;
		coo_add_weighted(&list, first + test_below(e % 5 ? nodes : 2), first + test_below(nodes),
		                 0.25f * (float)(1 + test_below(8)));
	}
	for (int i = 1; i < N; i++)
		coo_add_weighted(&list, i, i, 1.0f);
	t->graph = coo_to_graph(t->ctx, &list);
	if (graphs)
		CHECK_OK(hg_graph_set_batch(t->graph, GRAPHS, ptr));
	t->csr = host_csr_sort(list);
	for (int64_t e = 0; e < t->csr.m; e++)
		t->weight[e] = (double)t->csr.weight[e];
}

/* A number that f16 holds exactly, so that both sides begin with the same. */
static float half_number(double x)
{
	return hg_half_to_float(hg_half_from_float((float)x));
}

static void make_features(struct task *t, hg_dtype state, int64_t rows)
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
	for (int64_t i = 0; i < t->csr.m * E; i++)
		t->edge_features[i] = half_number(0.7 * test_normal());
	CHECK_OK(hg_tensor_create(t->ctx, state, t->csr.m, E, &t->edge_x));
	CHECK_OK(hg_tensor_upload(t->edge_x, t->edge_features, HG_F32));
	CHECK_OK(hg_tensor_create(t->ctx, HG_I32, rows, 1, &t->label));
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
	static const int64_t ptr[GRAPHS + 1] = {0, SPLIT, N};
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
	                                     .weight = t->weight,
	                                     .batch = GRAPHS,
	                                     .ptr = ptr};
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
	make_graph(t, s->graphs);
	make_features(t, policy.state, s->graphs ? GRAPHS : N);
	hg_model_config config = hg_model_config_default(s->model);
	config.in_features = F;
	config.out_features = C;
	config.layers = s->layers;
	config.hidden = HIDDEN;
	config.heads = HEADS;
	config.out_heads = OUT_HEADS;
	config.dropout = config.attention_dropout = 0.0f;
	config.feature_norm = s->norm;
	config.norm = s->scaled;
	config.hops = HOPS;
	config.readout = s->graphs ? (int)s->reduce : -1;
	config.readout_layers = s->depths;
	config.edge_features = E;
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
	hg_tensor_free(t->edge_x);
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
	in.edge_x = t.edge_x;
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

#define SCALED_TASK(model, policy, layers, sparse, norm, loose, scaled)                         \
	{                                                                                           \
		model, policy, layers, sparse, norm, loose, 0, HG_REDUCE_SUM, HG_READOUT_LAYERS, scaled \
	}
#define NODE_TASK(model, policy, layers, sparse, norm, loose) \
	SCALED_TASK(model, policy, layers, sparse, norm, loose, HG_NORM_BOTH)
#define GRAPH_TASK(model, policy, layers, sparse, reduce, depths)                 \
	{                                                                             \
		model, policy, layers, sparse, HG_BATCH_NORM, 1.0, 1, HG_REDUCE_##reduce, \
		    HG_READOUT_##depths, HG_NORM_BOTH                                     \
	}

int main(int argc, char **argv)
{
	static const struct subject
	    gatv2 = NODE_TASK("gatv2", "fp32", 2, 0, HG_BATCH_NORM, 0x1p-5),
	    gatv2_half = NODE_TASK("gatv2", "fp16", 2, 0, HG_BATCH_NORM, 1.0),
	    gatv2_sparse = NODE_TASK("gatv2", "fp32", 1, 1, HG_BATCH_NORM, 0x1p-5),
	    agnn = NODE_TASK("agnn", "fp32", 2, 0, HG_BATCH_NORM, 0x1p-5),
	    agnn_half = NODE_TASK("agnn", "fp16", 2, 0, HG_BATCH_NORM, 1.0),
	    agnn_sparse = NODE_TASK("agnn", "fp32", 2, 1, HG_BATCH_NORM, 0x1p-5),
	    gt = NODE_TASK("gt", "fp32", 1, 0, HG_BATCH_NORM, 0x1p-5),
	    gt_layer_norm = NODE_TASK("gt", "fp32", 1, 0, HG_LAYER_NORM, 0x1p-5),
	    gt_half = NODE_TASK("gt", "fp16", 1, 0, HG_BATCH_NORM, 2.0),
	    gt_layer_norm_half = NODE_TASK("gt", "fp16", 1, 0, HG_LAYER_NORM, 1.0),
	    gt_sparse = NODE_TASK("gt", "fp32", 1, 1, HG_BATCH_NORM, 0x1p-5),
	    sage = NODE_TASK("sage", "fp32", 2, 0, HG_BATCH_NORM, 0x1p-5),
	    sage_half = NODE_TASK("sage", "fp16", 2, 0, HG_BATCH_NORM, 1.0),
	    sage_sparse = NODE_TASK("sage", "fp32", 2, 1, HG_BATCH_NORM, 0x1p-5),
	    sgc = NODE_TASK("sgc", "fp32", 2, 0, HG_BATCH_NORM, 0x1p-5),
	    sgc_half = NODE_TASK("sgc", "fp16", 1, 0, HG_BATCH_NORM, 1.0),
	    sgc_sparse = NODE_TASK("sgc", "fp32", 1, 1, HG_BATCH_NORM, 0x1p-5),
	    sgc_weighted = SCALED_TASK("sgc", "fp32", 2, 0, HG_BATCH_NORM, 0x1p-5, HG_NORM_WEIGHTED),
	    sgc_weighted_half = SCALED_TASK("sgc", "fp16", 1, 0, HG_BATCH_NORM, 1.0, HG_NORM_WEIGHTED),
	    sgc_mean = SCALED_TASK("sgc", "fp32", 2, 0, HG_BATCH_NORM, 0x1p-5, HG_NORM_WEIGHTED_MEAN),
	    appnp = NODE_TASK("appnp", "fp32", 2, 0, HG_BATCH_NORM, 0x1p-5),
	    appnp_half = NODE_TASK("appnp", "fp16", 2, 0, HG_BATCH_NORM, 1.0),
	    appnp_sparse = NODE_TASK("appnp", "fp32", 2, 1, HG_BATCH_NORM, 0x1p-5),
	    gin = NODE_TASK("gin", "fp32", 1, 0, HG_BATCH_NORM, 0x1p-5),
	    gine = NODE_TASK("gine", "fp32", 2, 0, HG_BATCH_NORM, 0x1p-5),
	    gine_half = NODE_TASK("gine", "fp16", 1, 0, HG_BATCH_NORM, 2.0),
	    gine_sparse = NODE_TASK("gine", "fp32", 1, 1, HG_BATCH_NORM, 0x1p-5),
	    gine_all = GRAPH_TASK("gine", "fp32", 1, 0, SUM, ALL),
	    gin_depths = GRAPH_TASK("gin", "fp32", 2, 0, SUM, LAYERS),
	    gin_last = GRAPH_TASK("gin", "fp32", 2, 0, MEAN, LAST),
	    gin_all = GRAPH_TASK("gin", "fp32", 2, 0, SUM, ALL),
	    gin_all_max = GRAPH_TASK("gin", "fp32", 1, 0, MAX, ALL),
	    gin_all_sparse = GRAPH_TASK("gin", "fp32", 1, 1, SUM, ALL),
	    gin_all_sparse_mean = GRAPH_TASK("gin", "fp32", 1, 1, MEAN, ALL),
	    gt_all = GRAPH_TASK("gt", "fp32", 1, 0, SUM, ALL),
	    sage_all_half = GRAPH_TASK("sage", "fp16", 1, 0, SUM, ALL);
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
	    {"sage", 0, model_is_that_of_its_paper, &sage},
	    {"sage_fp16", 0, model_is_that_of_its_paper, &sage_half},
	    {"sage_sparse", 0, model_is_that_of_its_paper, &sage_sparse},
	    {"sgc", 0, model_is_that_of_its_paper, &sgc},
	    {"sgc_fp16", 0, model_is_that_of_its_paper, &sgc_half},
	    {"sgc_sparse", 0, model_is_that_of_its_paper, &sgc_sparse},
	    {"sgc_weighted", 0, model_is_that_of_its_paper, &sgc_weighted},
	    {"sgc_weighted_fp16", 0, model_is_that_of_its_paper, &sgc_weighted_half},
	    {"sgc_weighted_mean", 0, model_is_that_of_its_paper, &sgc_mean},
	    {"appnp", 0, model_is_that_of_its_paper, &appnp},
	    {"appnp_fp16", 0, model_is_that_of_its_paper, &appnp_half},
	    {"appnp_sparse", 0, model_is_that_of_its_paper, &appnp_sparse},
	    {"gin", 0, model_is_that_of_its_paper, &gin},
	    {"gine", 0, model_is_that_of_its_paper, &gine},
	    {"gine_fp16", 0, model_is_that_of_its_paper, &gine_half},
	    {"gine_sparse", 0, model_is_that_of_its_paper, &gine_sparse},
	    {"gine_of_graphs_all", 0, model_is_that_of_its_paper, &gine_all},
	    {"gin_of_graphs", 0, model_is_that_of_its_paper, &gin_depths},
	    {"gin_of_graphs_last", 0, model_is_that_of_its_paper, &gin_last},
	    {"gin_of_graphs_all", 0, model_is_that_of_its_paper, &gin_all},
	    {"gin_of_graphs_all_max", 0, model_is_that_of_its_paper, &gin_all_max},
	    {"gin_of_graphs_all_sparse", 0, model_is_that_of_its_paper, &gin_all_sparse},
	    {"gin_of_graphs_all_sparse_mean", 0, model_is_that_of_its_paper, &gin_all_sparse_mean},
	    {"gt_of_graphs_all", 0, model_is_that_of_its_paper, &gt_all},
	    {"sage_of_graphs_all_fp16", 0, model_is_that_of_its_paper, &sage_all_half},
	};
	return RUN_TESTS(argc, argv, cases);
}
