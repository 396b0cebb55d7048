/* One tape and one step for graphs that change: each step trains on a sample of the nodes and the
 * edges between them. */
#include <halfgraph/halfgraph.h>
#include <stdio.h>
#include <stdlib.h>

enum { NODES = 64, EDGES = 256, WIDTH = 8, CLASSES = 2, STEPS = 200 };

/* A sample: the class of a node is what most of its features say, and edges stay within a class. */
static int64_t sample(int32_t *dst, int32_t *src, float *x, int32_t *label)
{
	const int64_t nodes = NODES / 2 + rand() % (NODES / 2);
	int64_t m = 0;
	for (int64_t i = 0; i < nodes; i++) {
		label[i] = rand() % CLASSES;
		for (int64_t k = 0; k < WIDTH; k++)
			x[i * WIDTH + k] = (float)(label[i] ? 1 : -1) + (float)(rand() % 9 - 4);
	}
	while (m < EDGES - 1) {
		const int32_t i = rand() % (int32_t)nodes, j = rand() % (int32_t)nodes;
		if (label[i] == label[j])
			dst[m] = i, src[m++] = j;
	}
	return nodes;
}

int main(void)
{
	static int32_t dst[EDGES], src[EDGES];
	hg_context *ctx = NULL;
	hg_graph_stream *stream = NULL;
	hg_params *params = NULL;
	hg_model *model = NULL;
	hg_tape *tape = NULL;
	hg_optim *optim = NULL;
	hg_step *step = NULL;
	hg_tensor *features = NULL, *labels = NULL;
	hg_graph_stream_config room = HG_GRAPH_STREAM_CONFIG_INIT;
	hg_model_config config = hg_model_config_default("gcn");
	hg_model_input input = HG_MODEL_INPUT_INIT;
	hg_optim_config adam = HG_OPTIM_CONFIG_INIT;
	const hg_policy policy = hg_policy_fp16();
	double loss = 0.0;
	room.nodes = NODES;
	room.edges = EDGES;
	room.max_degree = 64;
	room.self_loops = 1;
	config.in_features = WIDTH;
	config.out_features = CLASSES;
	adam.lr = 0.05f;
	int ok = hg_context_create(NULL, &ctx) >= 0 && hg_graph_stream_create(ctx, &room, &stream) >= 0;
	/* features and labels have a row for each row of the graph: those behind the last node are 0,
	 * and have no label */
	const int64_t rows = hg_graph_rows(hg_graph_stream_graph(stream));
	float *x = calloc((size_t)rows * WIDTH + 1, sizeof *x);
	int32_t *label = calloc((size_t)rows + 1, sizeof *label);
	ok = ok && x && label && hg_tensor_create(ctx, HG_F16, rows, WIDTH, &features) >= 0 &&
	     hg_tensor_create(ctx, HG_I32, rows, 1, &labels) >= 0 &&
	     hg_params_create(ctx, &policy, &params) >= 0 &&
	     hg_model_create(params, &config, &model) >= 0 &&
	     hg_tape_create(params, HG_TRAIN, &tape) >= 0 &&
	     hg_optim_create(params, &adam, &optim) >= 0;
	input.graph = hg_graph_stream_graph(stream);
	input.x = features;
	input.x_amax = 5.0; /* what no feature exceeds, whatever the sample */
	if (ok) {
		const hg_var mean = hg_softmax_xent(tape, hg_model_record(model, tape, &input),
		                                    hg_tape_input(tape, labels, "labels", -1.0), HG_NONE);
		ok = hg_tape_compile(tape, mean) >= 0 && hg_step_create(tape, optim, NULL, &step) >= 0;
	}
	for (int k = 0; ok && k < STEPS; k++) {
		const int64_t nodes = sample(dst, src, x, label);
		for (int64_t i = nodes; i < rows; i++) {
			label[i] = -1;
			for (int64_t c = 0; c < WIDTH; c++)
				x[i * WIDTH + c] = 0.0f;
		}
		ok = hg_graph_stream_refill(stream, nodes, EDGES - 1, dst, src, NULL) >= 0 &&
		     hg_tensor_upload(features, x, HG_F32) >= 0 &&
		     hg_tensor_upload(labels, label, HG_I32) >= 0 && hg_step_run(step, 1) >= 0 &&
		     hg_step_read(step, 0, &loss, NULL) >= 0;
	}
	ok = ok && hg_graph_stream_check(stream) >= 0; /* did the last sample keep the promises? */
	if (ok)
		printf("loss of the last sample: %.3f\n", loss);
	else
		fprintf(stderr, "error: %s\n", hg_context_error(ctx));
	hg_step_free(step);
	hg_optim_free(optim);
	hg_tape_free(tape);
	hg_model_free(model);
	hg_params_free(params);
	hg_tensor_free(labels);
	hg_tensor_free(features);
	hg_graph_stream_free(stream);
	hg_context_free(ctx);
	free(label);
	free(x);
	return ok && loss < 0.3 ? 0 : 1;
}
