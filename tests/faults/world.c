#include "faults/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

struct among only(int64_t i)
{
	return (struct among){i, i};
}

struct among anywhere(void)
{
	return (struct among){0, INT64_MAX};
}

void world_open(struct world *w, hg_context *ctx, int sick)
{
	const hg_optim_config rates = HG_OPTIM_CONFIG_INIT;
	const hg_model_input input = HG_MODEL_INPUT_INIT;
	*w = (struct world){
	    .sick = sick, .ctx = ctx, .policy = hg_policy_fp16(), .rates = rates, .input = input};
	w->policy.loss_scale.init_scale = 1024.0f;
	w->answer = (struct answer){.row = anywhere(),
	                            .col = anywhere(),
	                            .edge_row = -1,
	                            .edge_col = -1,
	                            .top_row = -1,
	                            .wide = (double)NAN};
}

void world_close(struct world *w)
{
	hg_train_free(w->train);
	hg_optim_free(w->optim);
	hg_model_free(w->model);
	if (!w->train)
		hg_params_free(w->params);
	for (int i = 0; i < w->tensors; i++)
		hg_tensor_free(w->tensor[i]);
	for (int i = 0; i < w->graphs; i++)
		hg_graph_free(w->graph[i]);
	free(w->x);
	free(w->label);
}

/* ---- parts ---- */

static void *zeros(int64_t count, size_t size)
{
	void *memory = calloc((size_t)(count > 0 ? count : 1), size);
	CHECK(memory != NULL);
	return memory;
}

hg_tensor *world_tensor(struct world *w, hg_dtype dtype, int64_t rows, int64_t cols,
                        const float *values)
{
	CHECK(w->tensors < WORLD_TENSORS);
	hg_tensor **tensor = &w->tensor[w->tensors++];
	CHECK_OK(hg_tensor_create(w->ctx, dtype, rows, cols, tensor));
	if (values)
		CHECK_OK(hg_tensor_upload(*tensor, values, HG_F32));
	return *tensor;
}

hg_tensor *world_labels(struct world *w, int64_t rows, const int32_t *label)
{
	hg_tensor *tensor = world_tensor(w, HG_I32, rows, 1, NULL);
	CHECK_OK(hg_tensor_upload(tensor, label, HG_I32));
	return tensor;
}

hg_graph *world_graph(struct world *w, int64_t rows, int64_t cols, int64_t m, const int32_t *dst,
                      const int32_t *src, const float *weight)
{
	CHECK(w->graphs < WORLD_GRAPHS);
	hg_graph **graph = &w->graph[w->graphs++];
	CHECK_OK(hg_graph_from_coo(w->ctx, rows, cols, m, dst, src, weight, NULL, graph));
	return *graph;
}

struct edges {
	int64_t count;
	int32_t *dst, *src;
};

static struct edges edges_new(int64_t room)
{
	return (struct edges){0, zeros(room, sizeof(int32_t)), zeros(room, sizeof(int32_t))};
}

static void edge(struct edges *e, int64_t dst, int64_t src)
{
	e->dst[e->count] = (int32_t)dst;
	e->src[e->count++] = (int32_t)src;
}

static hg_graph *edges_graph(struct world *w, int64_t rows, int64_t cols, struct edges *e)
{
	hg_graph *graph = world_graph(w, rows, cols, e->count, e->dst, e->src, NULL);
	free(e->dst);
	free(e->src);
	return graph;
}

hg_graph *world_star(struct world *w, int64_t leaves)
{
	struct edges e = edges_new(2 * leaves);
	for (int64_t i = 1; i <= leaves; i++) {
		edge(&e, 0, i);
		edge(&e, i, 0);
	}
	return edges_graph(w, leaves + 1, leaves + 1, &e);
}

hg_graph *world_fan(struct world *w, int64_t leaves)
{
	struct edges e = edges_new(leaves);
	for (int64_t i = 1; i <= leaves; i++)
		edge(&e, i, 0);
	return edges_graph(w, leaves + 1, leaves + 1, &e);
}

hg_graph *world_ring(struct world *w, int64_t n)
{
	struct edges e = edges_new(3 * n);
	const int64_t ring = n - 1;
	for (int64_t i = 0; i < ring; i++) {
		edge(&e, i, (i + ring - 1) % ring);
		edge(&e, i, i);
		edge(&e, i, (i + 1) % ring);
	}
	edge(&e, ring, ring);
	return edges_graph(w, n, n, &e);
}

hg_graph *world_batch(struct world *w, int count, const int64_t *sizes)
{
	int64_t ptr[8] = {0};
	CHECK(count < 8);
	for (int g = 0; g < count; g++)
		ptr[g + 1] = ptr[g] + sizes[g];
	struct edges e = edges_new(3 * ptr[count]);
	for (int g = 0; g < count; g++)
		for (int64_t i = ptr[g]; i < ptr[g + 1]; i++)
			for (int64_t j = i - 1; j <= i + 1; j++)
				if (j >= ptr[g] && j < ptr[g + 1])
					edge(&e, i, j);
	hg_graph *graph = edges_graph(w, ptr[count], ptr[count], &e);
	CHECK_OK(hg_graph_set_batch(graph, count, ptr));
	return graph;
}

hg_graph *world_full(struct world *w, int64_t rows, int64_t cols)
{
	struct edges e = edges_new(rows * cols);
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++)
			edge(&e, i, j);
	return edges_graph(w, rows, cols, &e);
}

static void take_cure(struct world *w)
{
	const hg_loss_scale_config scale = w->policy.loss_scale;
	if (*w->cure.precision) {
		CHECK_OK(hg_policy_parse(w->cure.precision, &w->policy));
		if (w->policy.loss_scale.enabled)
			w->policy.loss_scale = scale;
	}
	if (w->cure.scale > 0.0f && w->policy.loss_scale.enabled)
		w->policy.loss_scale.init_scale = w->cure.scale;
}

hg_params *world_params(struct world *w)
{
	if (!w->params)
		take_cure(w);
	if (!w->params)
		CHECK_OK(hg_params_create(w->ctx, &w->policy, &w->params));
	return w->params;
}

hg_param *world_param(struct world *w, const char *name, int64_t rows, int64_t cols, unsigned flags,
                      float value)
{
	hg_param *param = NULL;
	CHECK_OK(hg_params_add(world_params(w), name, rows, cols, HG_INIT_ZEROS, flags, &param));
	world_set(w, name, -1, -1, value);
	return param;
}

/* values[row, col] = value, of all rows or columns where negative */
static void put(float *values, int64_t rows, int64_t cols, int64_t row, int64_t col, float value)
{
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c++)
			if ((row < 0 || r == row) && (col < 0 || c == col))
				values[r * cols + c] = value;
}

void world_set(struct world *w, const char *name, int64_t row, int64_t col, float value)
{
	hg_param *param = hg_params_find(w->params, name);
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

static void spoil_label(hg_tensor *tensor, int64_t row, int32_t value)
{
	int32_t *label = zeros(hg_tensor_rows(tensor), sizeof *label);
	CHECK_OK(hg_tensor_download(tensor, label, HG_I32));
	label[row] = value;
	CHECK_OK(hg_tensor_upload(tensor, label, HG_I32));
	free(label);
}

void world_spoil(hg_tensor *tensor, int64_t row, int64_t col, float value)
{
	const int64_t rows = hg_tensor_rows(tensor), cols = hg_tensor_cols(tensor);
	if (hg_tensor_dtype(tensor) == HG_I32) {
		spoil_label(tensor, row, (int32_t)value);
		return;
	}
	float *values = zeros(rows * cols, sizeof *values);
	CHECK_OK(hg_tensor_download(tensor, values, HG_F32));
	put(values, rows, cols, row, col, value);
	CHECK_OK(hg_tensor_upload(tensor, values, HG_F32));
	free(values);
}

void world_spoil_later(struct world *w, hg_tensor *tensor, int64_t row, int64_t col, float value)
{
	w->late.tensor = tensor;
	w->late.row = row;
	w->late.col = col;
	w->late.value = value;
}

/* ---- a model ---- */

static hg_var record_model(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var logits = hg_model_record(w->model, tape, &w->input);
	return hg_softmax_xent(tape, logits, hg_tape_input(tape, w->labels, "labels", -1.0), HG_NONE);
}

void world_model(struct world *w, const char *name, int layers, hg_graph *graph)
{
	w->config = hg_model_config_default(name);
	w->config.in_features = IN;
	w->config.out_features = CLASSES;
	w->config.layers = layers;
	w->config.heads = 2;
	w->config.hidden = name[1] == 'a' ? HIDDEN / 2 : HIDDEN; /* gat: of each of two heads */
	w->config.dropout = w->config.attention_dropout = 0.0f;
	w->config.norm = w->config.aggregate = HG_NORM_RIGHT;
	w->input.graph = graph;
	w->nodes = hg_graph_rows(graph);
	w->targets = w->nodes;
	w->x = zeros(w->nodes * IN, sizeof *w->x);
	w->label = zeros(w->nodes, sizeof *w->label);
	for (int64_t i = 0; i < w->nodes; i++)
		w->label[i] = (int32_t)(i % CLASSES);
	w->record = record_model;
}

void world_build(struct world *w)
{
	take_cure(w);
	if (!w->input.x_sparse)
		w->input.x = world_tensor(w, w->policy.state, w->nodes, IN, w->x);
	w->labels = world_labels(w, w->targets, w->label);
	CHECK_OK(hg_model_create(world_params(w), &w->config, &w->model));
}

void world_build_train(struct world *w)
{
	hg_train_config config = hg_train_config_default(w->config.name);
	hg_train_data data = HG_TRAIN_DATA_INIT;
	take_cure(w);
	w->input.x = world_tensor(w, w->policy.state, w->nodes, IN, w->x);
	config.model = w->config;
	config.policy = w->policy;
	config.optim = w->rates;
	data.input = w->input;
	data.labels = w->label;
	CHECK_OK(hg_train_create(w->ctx, &config, &data, &w->train));
	w->params = hg_train_params(w->train);
}

void world_sparse(struct world *w, int64_t features, int64_t m, const int32_t *row,
                  const int32_t *col, const float *value)
{
	w->input.x_sparse = world_graph(w, w->nodes, features, m, row, col, value);
	w->config.in_features = features;
}

void world_constant(struct world *w)
{
	for (int64_t i = 0; i < w->nodes; i++)
		w->x[i * IN] = 1.0f;
}

void world_varied(struct world *w)
{
	for (int64_t i = 0; i < w->nodes * IN; i++)
		w->x[i] = (float)(0.1 + test_uniform());
}

void world_label_only(struct world *w, int64_t row, int32_t label)
{
	for (int64_t i = 0; i < w->targets; i++)
		w->label[i] = i == row ? label : -1;
}

void world_ones_below(struct world *w, int layer)
{
	for (int l = 0; l < layer; l++) {
		char name[32];
		snprintf(name, sizeof name, "conv%d.weight", l);
		world_set(w, name, -1, -1, 0.0f);
		snprintf(name, sizeof name, "conv%d.bias", l);
		world_set(w, name, -1, -1, 1.0f);
	}
}

void world_policy(struct world *w, hg_policy policy, float scale)
{
	w->policy = policy;
	w->policy.loss_scale.init_scale = scale;
}

int64_t world_half_sum_ends(int64_t n, const double *term)
{
	double sum = 0.0;
	int64_t grew = 0;
	for (int64_t k = 0; k < n; k++) {
		const double next = world_half(sum + term[k]);
		if (!isfinite(next))
			return k + 1;
		grew = next != sum ? k + 1 : grew;
		sum = next;
	}
	return grew;
}

double world_half(double x)
{
	int exponent = 0;
	if (x == 0.0 || !isfinite(x))
		return x;
	/* |x| = f 2^exponent, f in [0.5, 1): the last of 11 bits counts 2^(exponent - 11) */
	(void)frexp(x, &exponent);
	const double unit = ldexp(1.0, (exponent > -13 ? exponent : -13) - 11),
	             rounded = nearbyint(x / unit) * unit;
	return fabs(rounded) >= 65520.0 ? copysign((double)INFINITY, x) : rounded;
}
