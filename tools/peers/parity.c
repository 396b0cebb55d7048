/* hg-parity MODEL POLICY [cpu|cuda [batch|layer]]: one forward and backward pass of a model on a
 * random graph. Prints the graph, the features, every parameter with its gradient, the logits and
 * the loss as JSON lines, for parity.py. All numbers that go in are halves, so that every policy
 * begins with the same. */
#include <halfgraph/halfgraph.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	N = 200,
	EDGES = 1200,
	F = 24,
	C = 5,
	K = 3,
	LAYERS = 2,
	HIDDEN = 8,
	HEADS = 4,
	OUT_HEADS = 2
};

static void need(hg_status status, const char *what, hg_context *ctx)
{
	if (status >= 0)
		return;
	fprintf(stderr, "hg-parity: %s: %s\n", what, hg_context_error(ctx));
	exit(1);
}

/* ---- random numbers ---- */

static uint64_t state = 1;

/* xorshift64* (Vigna 2016). */
static uint32_t draw(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (uint32_t)((state * UINT64_C(2685821657736338717)) >> 32);
}

/* A half in about [-scale, scale]. */
static float number(double scale)
{
	const double x = ((double)draw() * 0x1p-31 - 1.0) * scale;
	return hg_half_to_float(hg_half_from_float((float)x));
}

/* ---- what goes in ---- */

/* One self loop for every node, and random edges without duplicates: row i has columns that
 * ascend. */
static hg_graph *make_graph(hg_context *ctx)
{
	static char edge[N][N];
	static int64_t rowptr[N + 1];
	static int32_t col[N + EDGES];
	hg_graph *graph = NULL;
	int64_t m = 0;
	for (int e = 0; e < EDGES; e++)
		edge[draw() % (e % 4 ? N : 10)][draw() % N] = 1;
	for (int i = 0; i < N; i++) {
		rowptr[i] = m;
		for (int j = 0; j < N; j++)
			if (edge[i][j] || i == j) {
				printf("%s%d,%d", m ? "," : "{\"edges\":[", i, j);
				col[m++] = j;
			}
	}
	puts("]}");
	rowptr[N] = m;
	need(hg_graph_from_csr(ctx, N, N, m, rowptr, col, NULL, &graph), "graph", ctx);
	return graph;
}

static void print_values(const char *key, const float *x, int64_t count)
{
	printf(",\"%s\":[", key);
	for (int64_t k = 0; k < count; k++)
		printf("%s%.9g", k ? "," : "", (double)x[k]);
	putchar(']');
}

static void print_tensor(hg_context *ctx, const char *name, const hg_tensor *value,
                         const hg_tensor *gradient)
{
	const hg_tensor *const tensor[] = {value, gradient};
	static const char *const key[] = {"value", "gradient"};
	const int64_t count = hg_tensor_rows(value) * hg_tensor_cols(value);
	float *x = malloc((size_t)count * sizeof *x);
	if (!x)
		exit(1);
	printf("{\"name\":\"%s\",\"shape\":[%lld,%lld]", name, (long long)hg_tensor_rows(value),
	       (long long)hg_tensor_cols(value));
	for (int k = 0; k < 2; k++) {
		if (!tensor[k])
			continue;
		need(hg_tensor_download(tensor[k], x, HG_F32), name, ctx);
		print_values(key[k], x, count);
	}
	puts("}");
	free(x);
}

static void make_params(hg_params *params, hg_context *ctx)
{
	for (int64_t p = 0; p < hg_params_count(params); p++) {
		hg_param *param = hg_params_at(params, p);
		const int64_t count =
		    hg_tensor_rows(hg_param_master(param)) * hg_tensor_cols(hg_param_master(param));
		const int gain = strstr(hg_param_name(param), "gamma") != NULL;
		float *x = malloc((size_t)count * sizeof *x);
		if (!x)
			exit(1);
		for (int64_t k = 0; k < count; k++)
			x[k] = number(0.4) + (gain ? 1.0f : 0.0f);
		for (int64_t k = 0; k < count; k++)
			x[k] = hg_half_to_float(hg_half_from_float(x[k]));
		if (!(hg_param_flags(param) & HG_PARAM_BUFFER))
			need(hg_param_set(param, x), "parameter", ctx);
		free(x);
	}
}

/* Of the nodes, or of the edges, of which there are at most N + EDGES. */
static hg_tensor *make_features(hg_context *ctx, hg_dtype dtype, int64_t rows, int64_t cols)
{
	static float x[N * F + (N + EDGES) * K];
	hg_tensor *tensor = NULL;
	for (int64_t k = 0; k < rows * cols; k++)
		x[k] = number(1.0);
	need(hg_tensor_create(ctx, dtype, rows, cols, &tensor), "features", ctx);
	need(hg_tensor_upload(tensor, x, HG_F32), "features", ctx);
	return tensor;
}

static hg_tensor *make_labels(hg_context *ctx)
{
	static int32_t label[N];
	hg_tensor *tensor = NULL;
	for (int i = 0; i < N; i++)
		label[i] = i % C;
	need(hg_tensor_create(ctx, HG_I32, N, 1, &tensor), "labels", ctx);
	need(hg_tensor_upload(tensor, label, HG_I32), "labels", ctx);
	return tensor;
}

static hg_model_config config_of(int argc, char **argv)
{
	hg_model_config config = hg_model_config_default(argv[1]);
	config.in_features = F;
	config.out_features = C;
	config.layers = LAYERS;
	config.hidden = HIDDEN;
	config.heads = HEADS;
	config.out_heads = OUT_HEADS;
	config.norm = HG_NORM_IN; /* that of PyTorch Geometric, since the graph is directed */
	config.edge_features = hg_model_get_info(argv[1])->edge_features ? K : 0;
	config.dropout = config.attention_dropout = 0.0f;
	config.feature_norm = argc > 4 && strcmp(argv[4], "layer") == 0 ? HG_LAYER_NORM : HG_BATCH_NORM;
	return config;
}

/* ---- the pass ---- */

static void run(hg_context *ctx, hg_params *params, hg_model *model, const hg_policy *policy)
{
	hg_tape *tape = NULL;
	hg_model_input input = HG_MODEL_INPUT_INIT;
	hg_graph *graph = make_graph(ctx);
	hg_tensor *x = make_features(ctx, policy->state, N, F), *z = NULL, *label = make_labels(ctx);
	if (hg_model_get_config(model)->edge_features)
		z = make_features(ctx, policy->state, hg_graph_edges(graph), K);
	make_params(params, ctx);
	input.graph = graph;
	input.x = x;
	input.edge_x = z;
	need(hg_tape_create(params, HG_TRAIN, &tape), "tape", ctx);
	const hg_var logits = hg_model_record(model, tape, &input),
	             loss = hg_softmax_xent(tape, logits, hg_tape_input(tape, label, "labels", -1.0),
	                                    HG_NONE);
	hg_tape_keep(tape, logits);
	need(hg_tape_compile(tape, loss), "tape", ctx);
	need(hg_tape_forward(tape), "forward", ctx);
	print_tensor(ctx, "features", x, NULL);
	if (z)
		print_tensor(ctx, "edge_features", z, NULL);
	print_tensor(ctx, "logits", hg_tape_value(tape, logits), NULL);
	print_tensor(ctx, "loss", hg_tape_value(tape, loss), NULL);
	need(hg_tape_backward(tape), "backward", ctx);
	for (int64_t p = 0; p < hg_params_count(params); p++) {
		hg_param *param = hg_params_at(params, p);
		if (!(hg_param_flags(param) & HG_PARAM_BUFFER))
			print_tensor(ctx, hg_param_name(param), hg_param_master(param), hg_param_grad(param));
	}
	hg_tape_free(tape);
	hg_tensor_free(x);
	hg_tensor_free(z);
	hg_tensor_free(label);
	hg_graph_free(graph);
}

int main(int argc, char **argv)
{
	hg_context *ctx = NULL;
	hg_params *params = NULL;
	hg_model *model = NULL;
	hg_policy policy;
	if (argc < 3) {
		fputs("usage: hg-parity MODEL POLICY [cpu|cuda [batch|layer]]\n", stderr);
		return 2;
	}
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	config.device = argc > 3 && strcmp(argv[3], "cuda") == 0 ? HG_DEVICE_CUDA : HG_DEVICE_CPU;
	need(hg_context_create(&config, &ctx), "device", NULL);
	need(hg_policy_parse(argv[2], &policy), "policy", ctx);
	policy.loss_scale.enabled = 0; /* gradients are printed as they are */
	const hg_model_config model_config = config_of(argc, argv);
	need(hg_params_create(ctx, &policy, &params), "parameters", ctx);
	need(hg_model_create(params, &model_config, &model), "model", ctx);
	printf("{\"layers\":%d,\"hidden\":%d,\"heads\":%d,\"out_heads\":%d", LAYERS, HIDDEN, HEADS,
	       OUT_HEADS);
	printf(",\"hops\":%d,\"teleport\":%.9g}\n", model_config.hops, (double)model_config.teleport);
	run(ctx, params, model, &policy);
	hg_model_free(model);
	hg_params_free(params);
	hg_context_free(ctx);
	return 0;
}
