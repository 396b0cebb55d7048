#include "faults/setup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

struct range only(int64_t i)
{
	return (struct range){i, i};
}

struct range any(void)
{
	return (struct range){0, INT64_MAX};
}

void setup_open(struct setup *s, hg_context *ctx, int planted)
{
	const hg_optim_config rates = HG_OPTIM_CONFIG_INIT;
	const hg_model_input input = HG_MODEL_INPUT_INIT;
	*s = (struct setup){
	    .planted = planted, .ctx = ctx, .policy = hg_policy_fp16(), .rates = rates, .input = input};
	s->policy.loss_scale.init_scale = 1024.0f;
	s->expected = (struct expected){.row = any(),
	                                .col = any(),
	                                .edge_row = -1,
	                                .edge_col = -1,
	                                .top_row = -1,
	                                .wide = (double)NAN};
}

void setup_close(struct setup *s)
{
	hg_train_free(s->train);
	hg_optim_free(s->optim);
	hg_model_free(s->model);
	if (!s->train)
		hg_params_free(s->params);
	for (int i = 0; i < s->tensors; i++)
		hg_tensor_free(s->tensor[i]);
	for (int i = 0; i < s->graphs; i++)
		hg_graph_free(s->graph[i]);
	free(s->x);
	free(s->label);
}

/* ---- parts ---- */

static void *zeros(int64_t count, size_t size)
{
	void *memory = calloc((size_t)(count > 0 ? count : 1), size);
	CHECK(memory != NULL);
	return memory;
}

hg_tensor *setup_tensor(struct setup *s, hg_dtype dtype, int64_t rows, int64_t cols,
                        const float *values)
{
	CHECK(s->tensors < SETUP_TENSORS);
	hg_tensor **tensor = &s->tensor[s->tensors++];
	CHECK_OK(hg_tensor_create(s->ctx, dtype, rows, cols, tensor));
	if (values)
		CHECK_OK(hg_tensor_upload(*tensor, values, HG_F32));
	return *tensor;
}

hg_tensor *setup_labels(struct setup *s, int64_t rows, const int32_t *label)
{
	hg_tensor *tensor = setup_tensor(s, HG_I32, rows, 1, NULL);
	CHECK_OK(hg_tensor_upload(tensor, label, HG_I32));
	return tensor;
}

hg_graph *setup_graph(struct setup *s, struct coo list)
{
	CHECK(s->graphs < SETUP_GRAPHS);
	return s->graph[s->graphs++] = coo_graph(s->ctx, list);
}

hg_graph *setup_star(struct setup *s, int64_t leaves)
{
	struct coo list = coo_star(leaves);
	coo_add_transpose(&list);
	return setup_graph(s, list);
}

hg_graph *setup_fan(struct setup *s, int64_t leaves)
{
	struct coo list = coo_empty(leaves + 1, leaves + 1);
	for (int64_t i = 1; i <= leaves; i++)
		coo_add(&list, i, 0);
	return setup_graph(s, list);
}

hg_graph *setup_ring(struct setup *s, int64_t n)
{
	struct coo list = coo_ring(n - 1);
	list.rows = list.cols = n;
	coo_add(&list, n - 1, n - 1);
	return setup_graph(s, list);
}

hg_graph *setup_batch(struct setup *s, int count, const int64_t *sizes)
{
	int64_t ptr[8] = {0};
	CHECK(count < 8);
	for (int g = 0; g < count; g++)
		ptr[g + 1] = ptr[g] + sizes[g];
	struct coo list = coo_empty(ptr[count], ptr[count]);
	for (int g = 0; g < count; g++)
		for (int64_t i = ptr[g]; i < ptr[g + 1]; i++)
			for (int64_t j = i - 1; j <= i + 1; j++)
				if (j >= ptr[g] && j < ptr[g + 1])
					coo_add(&list, i, j);
	hg_graph *graph = setup_graph(s, list);
	CHECK_OK(hg_graph_set_batch(graph, count, ptr));
	return graph;
}

hg_graph *setup_full(struct setup *s, int64_t rows, int64_t cols)
{
	struct coo list = coo_empty(rows, cols);
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++)
			coo_add(&list, i, j);
	return setup_graph(s, list);
}

static void apply_remedy(struct setup *s)
{
	const hg_loss_scale_config scale = s->policy.loss_scale;
	if (*s->remedy.precision) {
		CHECK_OK(hg_policy_parse(s->remedy.precision, &s->policy));
		if (s->policy.loss_scale.enabled)
			s->policy.loss_scale = scale;
	}
	if (s->remedy.scale > 0.0f && s->policy.loss_scale.enabled)
		s->policy.loss_scale.init_scale = s->remedy.scale;
}

hg_params *setup_params(struct setup *s)
{
	if (!s->params) {
		apply_remedy(s);
		CHECK_OK(hg_params_create(s->ctx, &s->policy, &s->params));
	}
	return s->params;
}

hg_param *setup_param(struct setup *s, const char *name, int64_t rows, int64_t cols, unsigned flags,
                      float value)
{
	hg_param *param = NULL;
	CHECK_OK(hg_params_add(setup_params(s), name, rows, cols, HG_INIT_ZEROS, flags, &param));
	setup_set(s, name, -1, -1, value);
	return param;
}

void setup_identity(struct setup *s, const char *name, int64_t n)
{
	setup_param(s, name, n, n, 0, 0.0f);
	for (int64_t i = 0; i < n; i++)
		setup_set(s, name, i, i, 1.0f);
}

void setup_layer_norm(struct setup *s, int64_t cols)
{
	setup_param(s, "gamma", 1, cols, HG_PARAM_F32, 1.0f);
	setup_param(s, "beta", 1, cols, HG_PARAM_F32, 0.0f);
}

void setup_batch_norm(struct setup *s, int64_t cols)
{
	setup_layer_norm(s, cols);
	setup_param(s, "mean", 1, cols, HG_PARAM_F32 | HG_PARAM_BUFFER, 0.0f);
	setup_param(s, "var", 1, cols, HG_PARAM_F32 | HG_PARAM_BUFFER, 1.0f);
}

/* values[row, col] = value; a negative row or column stands for all of them. */
static void put(float *values, int64_t rows, int64_t cols, int64_t row, int64_t col, float value)
{
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c++)
			if ((row < 0 || r == row) && (col < 0 || c == col))
				values[r * cols + c] = value;
}

void setup_set(struct setup *s, const char *name, int64_t row, int64_t col, float value)
{
	hg_param *param = hg_params_find(s->params, name);
	CHECK_MSG(param, "there is no parameter %s", name);
	const hg_tensor *master = hg_param_master(param);
	const int64_t rows = hg_tensor_rows(master), cols = hg_tensor_cols(master);
	float *values = zeros(rows * cols, sizeof *values);
	CHECK_OK(hg_tensor_download(master, values, HG_F32));
	put(values, rows, cols, row, col, value);
	const hg_status status = hg_param_set(param, values);
	free(values);
	CHECK_STATUS(status, HG_OK);
}

static void write_label(hg_tensor *tensor, int64_t row, int32_t value)
{
	int32_t *label = zeros(hg_tensor_rows(tensor), sizeof *label);
	CHECK_OK(hg_tensor_download(tensor, label, HG_I32));
	label[row] = value;
	CHECK_OK(hg_tensor_upload(tensor, label, HG_I32));
	free(label);
}

void setup_write(hg_tensor *tensor, int64_t row, int64_t col, float value)
{
	const int64_t rows = hg_tensor_rows(tensor), cols = hg_tensor_cols(tensor);
	if (hg_tensor_dtype(tensor) == HG_I32) {
		write_label(tensor, row, (int32_t)value);
		return;
	}
	float *values = zeros(rows * cols, sizeof *values);
	CHECK_OK(hg_tensor_download(tensor, values, HG_F32));
	put(values, rows, cols, row, col, value);
	CHECK_OK(hg_tensor_upload(tensor, values, HG_F32));
	free(values);
}

void setup_write_later(struct setup *s, hg_tensor *tensor, int64_t row, int64_t col, float value)
{
	s->later.tensor = tensor;
	s->later.row = row;
	s->later.col = col;
	s->later.value = value;
}

/* ---- a model ---- */

static hg_var record_model(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var logits = hg_model_record(s->model, tape, &s->input);
	return hg_softmax_xent(tape, logits, hg_tape_input(tape, s->labels, "labels", -1.0), HG_NONE);
}

void setup_model(struct setup *s, const char *name, int layers, hg_graph *graph)
{
	s->config = hg_model_config_default(name);
	s->config.in_features = IN;
	s->config.out_features = CLASSES;
	s->config.layers = layers;
	s->config.heads = 2;
	s->config.hidden =
	    name[1] == 'a' ? HIDDEN / 2 : HIDDEN; /* gat has two heads, each of this width */
	s->config.dropout = s->config.attention_dropout = 0.0f;
	s->config.norm = s->config.aggregate = HG_NORM_RIGHT;
	s->input.graph = graph;
	s->nodes = hg_graph_rows(graph);
	s->targets = s->nodes;
	s->x = zeros(s->nodes * IN, sizeof *s->x);
	s->label = zeros(s->nodes, sizeof *s->label);
	for (int64_t i = 0; i < s->nodes; i++)
		s->label[i] = (int32_t)(i % CLASSES);
	s->record = record_model;
}

void setup_build(struct setup *s)
{
	apply_remedy(s);
	if (!s->input.x_sparse)
		s->input.x = setup_tensor(s, s->policy.state, s->nodes, IN, s->x);
	s->labels = setup_labels(s, s->targets, s->label);
	CHECK_OK(hg_model_create(setup_params(s), &s->config, &s->model));
}

void setup_build_train(struct setup *s)
{
	hg_train_config config = hg_train_config_default(s->config.name);
	hg_train_data data = HG_TRAIN_DATA_INIT;
	apply_remedy(s);
	s->input.x = setup_tensor(s, s->policy.state, s->nodes, IN, s->x);
	config.model = s->config;
	config.policy = s->policy;
	config.optim = s->rates;
	data.input = s->input;
	data.labels = s->label;
	CHECK_OK(hg_train_create(s->ctx, &config, &data, &s->train));
	s->params = hg_train_params(s->train);
}

void setup_sparse(struct setup *s, int64_t features, struct coo list)
{
	s->input.x_sparse = setup_graph(s, list);
	s->config.in_features = features;
}

void setup_constant(struct setup *s)
{
	for (int64_t i = 0; i < s->nodes; i++)
		s->x[i * IN] = 1.0f;
}

void setup_varied(struct setup *s)
{
	for (int64_t i = 0; i < s->nodes * IN; i++)
		s->x[i] = (float)(0.1 + test_uniform());
}

void setup_label_only(struct setup *s, int64_t row, int32_t label)
{
	for (int64_t i = 0; i < s->targets; i++)
		s->label[i] = i == row ? label : -1;
}

void setup_ones_below(struct setup *s, int layer)
{
	for (int l = 0; l < layer; l++) {
		char name[32];
		snprintf(name, sizeof name, "conv%d.weight", l);
		setup_set(s, name, -1, -1, 0.0f);
		snprintf(name, sizeof name, "conv%d.bias", l);
		setup_set(s, name, -1, -1, 1.0f);
	}
}

void setup_policy(struct setup *s, hg_policy policy, float scale)
{
	s->policy = policy;
	s->policy.loss_scale.init_scale = scale;
}

int64_t setup_half_sum_stop(int64_t n, const double *term)
{
	double sum = 0.0;
	int64_t stop = 0;
	for (int64_t k = 0; k < n; k++) {
		const double next = setup_half(sum + term[k]);
		if (!isfinite(next))
			return k + 1;
		stop = next != sum ? k + 1 : stop;
		sum = next;
	}
	return stop;
}

double setup_half(double x)
{
	int exponent = 0;
	if (x == 0.0 || !isfinite(x))
		return x;
	/* |x| = f 2^exponent with f in [0.5, 1), so the last of 11 bits is 2^(exponent - 11). */
	(void)frexp(x, &exponent);
	const double unit = ldexp(1.0, (exponent > -13 ? exponent : -13) - 11),
	             rounded = nearbyint(x / unit) * unit;
	return fabs(rounded) >= 65520.0 ? copysign((double)INFINITY, x) : rounded;
}
