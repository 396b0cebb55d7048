/* Models: their parameters, shapes and error messages, and the same logits with sparse and with
 * dense features. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "graphs.h"
#include "halfgraph/ops_attention.h"
#include "nn/layers/layers.h"
#include "unit/faulty.h"

enum { N = 30, M = 150, D = 11, C = 3 };

struct fixture {
	hg_context *ctx;
	hg_params *params;
	hg_graph *graph, *x_sparse;
	hg_tensor *x;
	float dense[N][D];
};

static void fixture_open(struct fixture *f, const hg_policy *policy)
{
	memset(f, 0, sizeof *f);
	test_reseed(3);
	/* Two communities, so that the nodes can be a batch of several graphs. */
	struct coo edges = coo_two_communities(N, M, 10), features = coo_empty(N, D);
	for (int32_t i = 0; i < N; i++) {
		for (int32_t c = 0; c < D; c++) {
			if (test_uniform() < 0.7)
				continue;
			f->dense[i][c] = (float)test_normal();
			coo_add_weighted(&features, i, c, f->dense[i][c]);
		}
	}
	f->ctx = test_context();
	CHECK_OK(hg_params_create(f->ctx, policy, &f->params));
	f->graph = coo_graph(f->ctx, edges);
	f->x_sparse = coo_graph(f->ctx, features);
	CHECK_OK(hg_tensor_create(f->ctx, policy->state, N, D, &f->x));
	CHECK_OK(hg_tensor_upload(f->x, f->dense, HG_F32));
}

static void fixture_close(struct fixture *f)
{
	hg_params_free(f->params);
	hg_tensor_free(f->x);
	hg_graph_free(f->x_sparse);
	hg_graph_free(f->graph);
	hg_context_free(f->ctx);
}

static hg_model_config config_of(const char *name)
{
	hg_model_config c = hg_model_config_default(name);
	c.in_features = D;
	c.out_features = C;
	return c;
}

static int64_t elements(hg_params *params, int buffers)
{
	int64_t sum = 0;
	for (int64_t i = 0; i < hg_params_count(params); i++) {
		hg_param *p = hg_params_at(params, i);
		if (!(hg_param_flags(p) & HG_PARAM_BUFFER) == !buffers)
			sum += hg_tensor_rows(hg_param_master(p)) * hg_tensor_cols(hg_param_master(p));
	}
	return sum;
}

/* The same for the models whose layers all have the width w behind an embedding. */
static int64_t embedded_elements(const hg_model_config *c)
{
	const int gt = strcmp(c->name, "gt") == 0, gine = strcmp(c->name, "gine") == 0;
	const int64_t w = gt ? c->heads * c->hidden : c->hidden;
	/* eps, W_e and b_e, two matrices, gamma and beta of two norms */
	const int64_t own = (c->eps_learnable ? 1 : 0) +
	                    (c->edge_features ? (c->edge_features + 1) * w : 0) + 2 * w * w + 4 * w;
	/* Q, K, V; projection; both halves of the feed-forward; gamma and beta of two norms */
	const int64_t layer =
	    gt     ? (w * 3 * w + 3 * w) + (w * w + w) + (w * 2 * w + 2 * w) + (2 * w * w + w) + 4 * w
	    : gine ? own
	           : 1;
	return (D * w + w) + c->layers * layer + (w * C + C);
}

/* The number of weights that the equations of the model ask for. */
static int64_t expected_elements(const hg_model_config *c)
{
	const int64_t h = c->hidden, hh = c->heads * h, hidden = c->layers - 1;
	if (strcmp(c->name, "gcn") == 0 || strcmp(c->name, "sgc") == 0 || strcmp(c->name, "appnp") == 0)
		return hidden ? (D * h + h) + (hidden - 1) * (h * h + h) + (h * C + C) : D * C + C;
	if (strcmp(c->name, "gin") == 0) {
		/* eps, the second matrix, gamma and beta of two norms */
		const int64_t rest = (c->eps_learnable ? 1 : 0) + h * h + 4 * h;
		return (D * h + rest) + hidden * (h * h + rest) + (h * C + C);
	}
	if (strcmp(c->name, "agnn") == 0 || strcmp(c->name, "gt") == 0 || strcmp(c->name, "gine") == 0)
		return embedded_elements(c);
	if (strcmp(c->name, "sage") == 0) /* a second matrix */
		return hidden ? (2 * D * h + h) + (hidden - 1) * (2 * h * h + h) + (2 * h * C + C)
		              : 2 * D * C + C;
	const int64_t last = c->out_heads * C;
	if (strcmp(c->name, "gatv2") == 0) /* R and L with their biases, a, b */
		return hidden ? (D * 2 * hh + 4 * hh) + (hidden - 1) * (hh * 2 * hh + 4 * hh) +
		                    (hh * 2 * last + 3 * last + C)
		              : D * 2 * last + 3 * last + C;
	return hidden
	           ? (D * hh + 3 * hh) + (hidden - 1) * (hh * hh + 3 * hh) + (hh * last + 2 * last + C)
	           : D * last + 2 * last + C;
}

static void parameters_are_counted(void)
{
	for (const char *const *name = hg_model_names(); *name; name++) {
		for (int layers = 1; layers <= 4; layers++) {
			const hg_policy policy = hg_policy_fp16();
			struct fixture f;
			hg_model *model = NULL;
			hg_model_config c = config_of(*name);
			c.layers = layers;
			c.hidden = 6;
			c.heads = 3;
			c.out_heads = 2;
			c.eps_learnable = layers % 2;
			fixture_open(&f, &policy);
			CHECK_OK(hg_model_create(f.params, &c, &model));
			CHECK_MSG(elements(f.params, 0) == expected_elements(&c),
			          "%s, %d layers: %lld elements, expected %lld", *name, layers,
			          (long long)elements(f.params, 0), (long long)expected_elements(&c));
			const int norms = strncmp(*name, "gin", 3) == 0 ? 1
			                  : strcmp(*name, "gt") == 0    ? c.heads
			                                                : 0;
			CHECK_EQ_I(elements(f.params, 1), layers * 4 * 6 * norms);
			CHECK_EQ_I(hg_model_get_config(model)->layers, layers);
			hg_model_free(model);
			fixture_close(&f);
		}
	}
}

static void every_model_has_its_info(void)
{
	for (const char *const *name = hg_model_names(); *name; name++) {
		const hg_model_info *info = hg_model_get_info(*name);
		CHECK(info != NULL);
		CHECK_STR(info->name, *name);
		CHECK_EQ_I(info->edge_features, strcmp(*name, "gine") == 0);
		CHECK_EQ_I(info->self_loops, strncmp(*name, "gin", 3) != 0 && strcmp(*name, "gt") != 0 &&
		                                 strcmp(*name, "sage") != 0);
		CHECK_EQ_I(info->heads, strncmp(*name, "gat", 3) == 0 || strcmp(*name, "gt") == 0);
	}
	CHECK(!hg_model_get_info("mlp") && !hg_model_get_info(NULL));
}

/* The parameters of the embedding come first and count as the first layer's. */
static void embedding_belongs_to_the_first_layer(void)
{
	const hg_policy policy = hg_policy_fp32();
	struct fixture f;
	hg_model *model = NULL;
	const hg_model_config c = config_of("gt");
	fixture_open(&f, &policy);
	CHECK_OK(hg_model_create(f.params, &c, &model));
	CHECK_EQ_I(hg_model_param_layer(model, hg_params_find(f.params, "embed.weight")), 0);
	CHECK_EQ_I(hg_model_param_layer(model, hg_params_find(f.params, "conv0.qkv.weight")), 0);
	CHECK_EQ_I(hg_model_param_layer(model, hg_params_find(f.params, "conv1.qkv.weight")), 1);
	CHECK_EQ_I(hg_model_param_layer(model, hg_params_find(f.params, "head.weight")), 2);
	hg_model_free(model);
	fixture_close(&f);
}

/* A layer normalisation has no running statistics. */
static void layer_norm_has_no_buffers(void)
{
	const hg_policy policy = hg_policy_fp16();
	struct fixture f;
	hg_model *model = NULL;
	hg_model_config c = config_of("gt");
	c.feature_norm = HG_LAYER_NORM;
	fixture_open(&f, &policy);
	CHECK_OK(hg_model_create(f.params, &c, &model));
	CHECK_EQ_I(elements(f.params, 0), expected_elements(&c));
	CHECK_EQ_I(elements(f.params, 1), 0);
	hg_model_free(model);
	fixture_close(&f);
}

static void parameters_belong_to_their_layer(void)
{
	const hg_policy policy = hg_policy_fp32();
	struct fixture f;
	hg_model *model = NULL, *second = NULL;
	const hg_model_config c = config_of("gin");
	fixture_open(&f, &policy);
	hg_param *before = NULL;
	CHECK_OK(hg_params_add(f.params, "before", 1, 1, HG_INIT_ZEROS, 0, &before));
	CHECK_OK(hg_model_create(f.params, &c, &model));
	const int64_t mine = hg_params_count(f.params);
	CHECK_EQ_I(hg_model_param_layer(model, before), -1);
	CHECK_EQ_I(hg_model_param_layer(model, hg_params_find(f.params, "conv0.mlp1.weight")), 0);
	CHECK_EQ_I(hg_model_param_layer(model, hg_params_find(f.params, "conv0.bn2.running_var")), 0);
	CHECK_EQ_I(hg_model_param_layer(model, hg_params_find(f.params, "conv1.eps")), 1);
	CHECK_EQ_I(hg_model_param_layer(model, hg_params_find(f.params, "head.bias")), 2);
	hg_model_free(model);
	hg_params *others = NULL;
	CHECK_OK(hg_params_create(f.ctx, &policy, &others));
	CHECK_OK(hg_model_create(others, &c, &second));
	CHECK_EQ_I(hg_params_count(others), mine - 1);
	CHECK_EQ_I(hg_model_param_layer(second, before), -1);
	hg_model_free(second);
	hg_params_free(others);
	fixture_close(&f);
}

/* Computes the logits on an EVAL tape. */
static void logits_of(struct fixture *f, hg_model *model, int sparse, float *out, int64_t rows)
{
	hg_tape *tape = NULL;
	hg_model_input in = HG_MODEL_INPUT_INIT;
	in.graph = f->graph;
	in.x = sparse ? NULL : f->x;
	in.x_sparse = sparse ? f->x_sparse : NULL;
	CHECK_OK(hg_tape_create(f->params, HG_EVAL, &tape));
	const hg_var y = hg_model_record(model, tape, &in);
	CHECK_MSG(hg_tape_compile(tape, y) == HG_OK, "%s", hg_context_error(f->ctx));
	CHECK_OK(hg_tape_forward(tape));
	CHECK_EQ_I(hg_tensor_rows(hg_tape_value(tape, y)), rows);
	CHECK_EQ_I(hg_tensor_cols(hg_tape_value(tape, y)), C);
	CHECK_OK(hg_tensor_download(hg_tape_value(tape, y), out, HG_F32));
	hg_tape_free(tape);
}

/* Narrow and wide layers, which aggregate before or after the product. In f32, sparse and dense
 * features give logits that differ only by rounding. 2^-12 of the largest logit is far above the
 * rounding of sums of 30 terms through two layers (about 2^-17). */
static void sparse_and_dense_features_agree(void)
{
	for (const char *const *name = hg_model_names(); *name; name++) {
		for (int hidden = 4; hidden <= 20; hidden += 16) {
			const hg_policy policy = hg_policy_fp32();
			struct fixture f;
			hg_model *model = NULL;
			hg_model_config c = config_of(*name);
			float a[N][C], b[N][C];
			double largest = 0;
			c.hidden = hidden;
			fixture_open(&f, &policy);
			CHECK_OK(hg_model_create(f.params, &c, &model));
			logits_of(&f, model, 0, &a[0][0], N);
			logits_of(&f, model, 1, &b[0][0], N);
			for (int i = 0; i < N * C; i++)
				largest = fmax(largest, fabs((double)a[i / C][i % C]));
			CHECK(largest > 0);
			for (int i = 0; i < N * C; i++)
				CHECK_WITHIN(a[i / C][i % C], b[i / C][i % C], largest * 0x1p-12);
			hg_model_free(model);
			fixture_close(&f);
		}
	}
}

static void graph_tasks_give_a_row_per_graph(void)
{
	const int64_t ptr[] = {0, 10, 10, 30};
	for (const char *const *name = hg_model_names(); *name; name++) {
		for (int readout = HG_REDUCE_SUM; readout <= HG_REDUCE_MAX; readout++) {
			const hg_policy policy = hg_policy_fp16();
			struct fixture f;
			hg_model *model = NULL;
			hg_model_config c = config_of(*name);
			float out[3][C];
			c.readout = readout;
			fixture_open(&f, &policy);
			CHECK_OK(hg_graph_set_batch(f.graph, 3, ptr));
			CHECK_OK(hg_model_create(f.params, &c, &model));
			logits_of(&f, model, 0, &out[0][0], 3);
			for (int k = 0; k < C; k++)
				CHECK(out[1][k] == 0.0f); /* the graph is empty, and biases start at 0 */
			hg_model_free(model);
			fixture_close(&f);
		}
	}
}

/* The largest attention dropout that a model takes is one with which it can be recorded. The next
 * number rounds to a threshold with which nothing is kept. */
static void largest_attention_dropout_is_recorded(void)
{
	static const char *const attentive[] = {"gat", "gatv2", "gt"};
	const hg_policy policy = hg_policy_fp16();
	for (int k = 0; k < 3; k++) {
		struct fixture f;
		hg_model *model = NULL;
		hg_tape *tape = NULL;
		hg_model_config c = config_of(attentive[k]);
		hg_model_input in = HG_MODEL_INPUT_INIT;
		fixture_open(&f, &policy);
		c.attention_dropout = 1.0f - 0x1p-17f;
		CHECK_STATUS(hg_model_create(f.params, &c, &model), HG_ERR_ARG);
		CHECK_CONTAINS(
		    hg_context_error(f.ctx),
		    "attention_dropout is 0.999992, expected 0 <= attention_dropout < 1 - 2^-17");
		c.attention_dropout = nextafterf(c.attention_dropout, 0.0f);
		CHECK_OK(hg_model_create(f.params, &c, &model));
		in.graph = f.graph;
		in.x = f.x;
		CHECK_OK(hg_tape_create(f.params, HG_TRAIN, &tape));
		const hg_var y = hg_model_record(model, tape, &in);
		CHECK_MSG(hg_tape_compile(tape, y) == HG_OK, "%s", hg_context_error(f.ctx));
		CHECK_OK(hg_tape_forward(tape));
		hg_tape_free(tape);
		hg_model_free(model);
		fixture_close(&f);
	}
}

static void refuse(struct fixture *f, hg_model_config c, const char *field)
{
	hg_model *model = NULL;
	CHECK_STATUS(hg_model_create(f->params, &c, &model), HG_ERR_ARG);
	CHECK(!model);
	CHECK_CONTAINS(hg_context_error(f->ctx), field);
}

static void mistakes_are_refused_by_name(void)
{
	const hg_policy policy = hg_policy_fp16();
	struct fixture f;
	hg_model_config c;
	fixture_open(&f, &policy);
	refuse(&f, hg_model_config_default("gcn"), "in_features");
	refuse(&f, config_of("transformer"), "transformer");
	refuse(&f, hg_model_config_default(NULL), "name is NULL");
	c = config_of("gat");
	c.out_features = (int64_t)1 << 31;
	refuse(&f, c, "out_features 2147483648, expected 1 to 2147483647");
	c = config_of("gcn");
	c.in_features = INT64_MAX;
	refuse(&f, c, "in_features 9223372036854775807");
	c = config_of("gcn");
	c.layers = 0;
	refuse(&f, c, "layers");
	c = config_of("gin");
	c.hidden = 0;
	refuse(&f, c, "hidden");
	c = config_of("gin");
	c.aggregate = HG_NORM_BOTH;
	refuse(&f, c, "aggregate");
	c = config_of("gat");
	c.dropout = 1.0f;
	refuse(&f, c, "dropout");
	c = config_of("gat");
	c.heads = 0;
	refuse(&f, c, "heads");
	c = config_of("gat");
	c.attention_dropout = NAN;
	refuse(&f, c, "attention_dropout");
	static const char *const attentive[] = {"gatv2", "gt"};
	for (int k = 0; k < 2; k++) {
		c = config_of(attentive[k]);
		c.heads = 17;
		refuse(&f, c, "heads is 17, expected 1 to 16");
		c = config_of(attentive[k]);
		c.attention_dropout = 1.0f;
		refuse(&f, c, "attention_dropout");
	}
	c = config_of("gatv2");
	c.out_heads = 0;
	refuse(&f, c, "out_heads");
	c = config_of("gatv2");
	c.negative_slope = 1.5f;
	refuse(&f, c, "negative_slope");
	c = config_of("gt");
	c.feature_norm = (hg_feature_norm)2;
	refuse(&f, c, "feature_norm");
	static const char *const scaled[] = {"gcn", "sgc", "appnp"};
	for (int k = 0; k < 3; k++) {
		c = config_of(scaled[k]);
		c.norm = (hg_norm)7;
		refuse(&f, c, "norm is 7, expected one of hg_norm (0 to 6)");
		c = config_of(scaled[k]);
		c.hops = 1001;
		if (k > 0)
			refuse(&f, c, "hops is 1001, expected 1 to 1000");
	}
	c = config_of("gine");
	c.edge_features = -1;
	refuse(&f, c, "gine: edge_features is -1, expected 0 to 2147483647");
	c = config_of("gine");
	c.aggregate = HG_NORM_BOTH;
	refuse(&f, c, "gine: aggregate is 3, expected HG_NORM_NONE (sum) or HG_NORM_RIGHT (mean)");
	c = config_of("appnp");
	c.teleport = 1.5f;
	refuse(&f, c, "teleport is 1.5, expected 0 to 1");
	c = config_of("gcn");
	c.readout = 3;
	refuse(&f, c, "readout");
	c = config_of("gin");
	c.readout = HG_REDUCE_SUM;
	c.readout_layers = (hg_readout_layers)3;
	refuse(&f, c, "readout_layers is 3, expected one of hg_readout_layers (0 to 2)");
	c = config_of("gin");
	c.readout_layers = HG_READOUT_ALL;
	refuse(&f, c, "readout_layers is 2, but a node task (readout -1) reads nothing out");
	fixture_close(&f);
}

/* If memory runs out while a model is created, it leaves no parameter behind. Otherwise the next
 * attempt would find the names taken. */
static void failed_model_leaves_no_parameters(void)
{
	for (const char *const *name = hg_model_names(); *name; name++) {
		struct faulty memory;
		hg_params *params;
		hg_model *model = NULL;
		const hg_model_config c = config_of(*name);
		hg_context *ctx = faulty_context(&memory);
		CHECK_OK(hg_params_create(ctx, NULL, &params));
		hg_status status = HG_ERR_NOMEM;
		for (int64_t k = 0; status < 0; k++) {
			memory.calls = 0;
			memory.fail_at = k;
			CHECK_EQ_I(hg_params_count(params), 0);
			status = hg_model_create(params, &c, &model);
			CHECK_MSG(status == HG_OK || status == HG_ERR_NOMEM, "%s, allocation %lld: %s", *name,
			          (long long)k, hg_context_error(ctx));
		}
		CHECK(hg_params_count(params) > 0);
		hg_model_free(model);
		hg_params_free(params);
		faulty_close(&memory, ctx);
	}
}

static void inputs_that_do_not_fit_are_refused_by_name(void)
{
	const hg_policy policy = hg_policy_fp16();
	struct fixture f;
	hg_model *model = NULL;
	hg_model_config c = config_of("gcn");
	c.in_features = D + 1;
	fixture_open(&f, &policy);
	CHECK_OK(hg_model_create(f.params, &c, &model));
	for (int k = 0; k < 3; k++) {
		hg_tape *tape = NULL;
		hg_model_input in = HG_MODEL_INPUT_INIT;
		in.graph = k == 0 ? f.x_sparse : f.graph;
		in.x = k == 2 ? NULL : f.x;
		CHECK_OK(hg_tape_create(f.params, HG_TRAIN, &tape));
		const hg_var y = hg_model_record(model, tape, &in);
		CHECK(hg_tape_compile(tape, y) == (k == 2 ? HG_ERR_ARG : HG_ERR_SHAPE));
		CHECK_CONTAINS(hg_context_error(f.ctx), k == 0 ? "square" : k == 1 ? "12" : "neither");
		hg_tape_free(tape);
	}
	hg_model_free(model);
	fixture_close(&f);
}

/* A GINE that reads attributes of edges needs those of its graph's edges. */
static void edge_features_that_do_not_fit_are_refused_by_name(void)
{
	const hg_policy policy = hg_policy_fp16();
	struct fixture f;
	hg_model *model = NULL;
	hg_model_config c = config_of("gine");
	c.edge_features = 3;
	fixture_open(&f, &policy);
	const int64_t m = hg_graph_edges(f.graph), rows[] = {1, m + 1, m}, cols[] = {3, 3, 4};
	CHECK_OK(hg_model_create(f.params, &c, &model));
	for (int k = 0; k < 3; k++) {
		hg_tape *tape = NULL;
		hg_tensor *edge_x = NULL;
		hg_model_input in = HG_MODEL_INPUT_INIT;
		in.graph = f.graph;
		in.x = f.x;
		CHECK_OK(hg_tensor_create(f.ctx, HG_F16, rows[k], cols[k], &edge_x));
		in.edge_x = k ? edge_x : NULL;
		CHECK_OK(hg_tape_create(f.params, HG_EVAL, &tape));
		CHECK_STATUS(hg_tape_compile(tape, hg_model_record(model, tape, &in)),
		             k ? HG_ERR_SHAPE : HG_ERR_ARG);
		CHECK_CONTAINS(hg_context_error(f.ctx),
		               k ? "edge_features 3"
		                 : "gine: input.edge_x is NULL, the model has edge_features 3");
		hg_tape_free(tape);
		hg_tensor_free(edge_x);
	}
	hg_model_free(model);
	fixture_close(&f);
}

/* A maximum over rows of a sparse matrix has no op. */
static void input_that_is_sparse_has_no_maximum(void)
{
	const hg_policy policy = hg_policy_fp16();
	struct fixture f;
	hg_model *model = NULL;
	hg_tape *tape = NULL;
	hg_model_input in = HG_MODEL_INPUT_INIT;
	hg_model_config c = config_of("gin");
	c.readout = HG_REDUCE_MAX;
	c.readout_layers = HG_READOUT_ALL;
	fixture_open(&f, &policy);
	CHECK_OK(hg_model_create(f.params, &c, &model));
	CHECK_OK(hg_tape_create(f.params, HG_EVAL, &tape));
	in.graph = f.graph;
	in.x_sparse = f.x_sparse;
	CHECK_STATUS(hg_tape_compile(tape, hg_model_record(model, tape, &in)), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(f.ctx), "give dense ones (HG_UPLOAD_DENSE)");
	hg_tape_free(tape);
	hg_model_free(model);
	fixture_close(&f);
}

/* More heads than the op of attention has: then GAT records separate ops. */
static void gat_may_have_many_heads(void)
{
	struct fixture f;
	const hg_policy policy = hg_policy_fp32();
	hg_model *model = NULL;
	hg_tape *tape = NULL;
	hg_model_input in = HG_MODEL_INPUT_INIT;
	fixture_open(&f, &policy);
	hg_model_config config = config_of("gat");
	config.heads = HG_ATTENTION_HEADS + 1;
	CHECK_OK(hg_model_create(f.params, &config, &model));
	CHECK_OK(hg_tape_create(f.params, HG_EVAL, &tape));
	in.graph = f.graph;
	in.x = f.x;
	CHECK_OK(hg_tape_compile(tape, hg_model_record(model, tape, &in)));
	CHECK_OK(hg_tape_forward(tape));
	hg_tape_free(tape);
	hg_model_free(model);
	fixture_close(&f);
}

/* Where hg_model_record fails, its result is invalid. It is not HG_NONE, which an op would take for
 * an absent optional operand. The tape keeps the reason. */
static void recording_mistakes_are_kept_by_the_tape(void)
{
	const hg_policy policy = hg_policy_fp16();
	struct fixture f, other;
	hg_model *model = NULL;
	const hg_model_config c = config_of("gcn");
	fixture_open(&f, &policy);
	fixture_open(&other, &policy);
	CHECK_OK(hg_model_create(f.params, &c, &model));
	const hg_model_input init = HG_MODEL_INPUT_INIT;
	hg_model_input in[4] = {init, init, init, init};
	for (int i = 0; i < 4; i++) {
		in[i].graph = f.graph;
		in[i].x = f.x;
	}
	in[0].size = 0;
	in[1].graph = other.graph;
	in[2].x = other.x;
	in[3].x = NULL;
	in[3].x_sparse = other.x_sparse;
	static const char *const parts[] = {"HG_MODEL_INPUT_INIT", "another context", "another context",
	                                    "another context"};
	for (int i = -2; i < 4; i++) {
		hg_tape *tape = NULL;
		CHECK_OK(hg_tape_create(f.params, HG_TRAIN, &tape));
		const hg_var y = hg_model_record(i == -2 ? NULL : model, tape, i < 0 ? NULL : &in[i]);
		CHECK(y.id < 0 && y.id != HG_NONE.id);
		CHECK_STATUS(hg_tape_status(tape), HG_ERR_ARG);
		CHECK_CONTAINS(hg_context_error(f.ctx), i == -2   ? "model is NULL"
		                                        : i == -1 ? "input is NULL"
		                                                  : parts[i]);
		hg_tape_free(tape);
	}
	hg_tape *tape = NULL;
	CHECK_OK(hg_tape_create(other.params, HG_TRAIN, &tape));
	CHECK(hg_model_record(model, tape, &in[3]).id < 0);
	CHECK_CONTAINS(hg_context_error(other.ctx), "other parameters");
	hg_tape_free(tape);
	CHECK(hg_model_record(model, NULL, &in[0]).id < 0);
	hg_model_free(model);
	fixture_close(&other);
	fixture_close(&f);
}

/* A configuration of older headers lacks the last fields, which get the defaults of the model. */
static void shorter_config_is_completed(void)
{
	const hg_policy policy = hg_policy_fp16();
	struct fixture f;
	hg_model *model = NULL;
	hg_model_config c = config_of("gat");
	fixture_open(&f, &policy);
	c.size = offsetof(hg_model_config, negative_slope);
	c.negative_slope = 7.0f; /* not part of the older struct: must not be read */
	CHECK_OK(hg_model_create(f.params, &c, &model));
	CHECK(hg_model_get_config(model)->negative_slope == 0.2f &&
	      hg_model_get_config(model)->attention_dropout == 0.6f);
	hg_model_free(model);
	c.size = 0;
	CHECK_STATUS(hg_model_create(f.params, &c, &model), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(f.ctx), "config.size is not set");
	fixture_close(&f);
}

/* Which rows are cheaper to gather: of a small graph the narrower ones, of a large graph those that
 * fill cache lines of 128 bytes. */
static void aggregation_is_where_rows_are_cheaper(void)
{
	static const struct {
		int64_t nodes, in, out;
		hg_dtype state;
		int first;
	} rows[] = {
	    {2708, 64, 47, HG_F16, 0},     {2708, 47, 64, HG_F16, 1},    {2708, 64, 64, HG_F16, 0},
	    {2708, 41, 48, HG_F16, 1},     {2449029, 64, 47, HG_F16, 1}, {2449029, 47, 64, HG_F16, 0},
	    {2449029, 100, 64, HG_F16, 0}, {2449029, 64, 64, HG_F16, 0}, {2449029, 64, 7, HG_F16, 0},
	    {2449029, 64, 47, HG_F32, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		CHECK_EQ_I(hg__aggregate_first(rows[i].nodes, rows[i].in, rows[i].out, rows[i].state),
		           rows[i].first);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(parameters_are_counted),
	    TEST(every_model_has_its_info),
	    TEST(parameters_belong_to_their_layer),
	    TEST(embedding_belongs_to_the_first_layer),
	    TEST(layer_norm_has_no_buffers),
	    TEST(sparse_and_dense_features_agree),
	    TEST(graph_tasks_give_a_row_per_graph),
	    TEST(edge_features_that_do_not_fit_are_refused_by_name),
	    TEST(input_that_is_sparse_has_no_maximum),
	    TEST(gat_may_have_many_heads),
	    TEST(largest_attention_dropout_is_recorded),
	    TEST(mistakes_are_refused_by_name),
	    TEST(failed_model_leaves_no_parameters),
	    TEST(inputs_that_do_not_fit_are_refused_by_name),
	    TEST(recording_mistakes_are_kept_by_the_tape),
	    TEST(shorter_config_is_completed),
	    TEST(aggregation_is_where_rows_are_cheaper)};
	return RUN_TESTS(argc, argv, cases);
}
