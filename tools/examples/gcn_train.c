/* Train a GCN in fp16 on four planted communities: class of node i = i mod 4, three of four edges
 * stay in their class. */
#include <halfgraph/halfgraph.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 400, M = 4000, D = 8 };
static int32_t dst[M], src[M], label[N];
static float x[N][D];
static uint8_t train_mask[N], test_mask[N];

int main(void)
{
	for (int e = 0; e < M; e++) {
		dst[e] = rand() % N;
		src[e] = e % 4 ? (dst[e] + 4 * (rand() % N)) % N : rand() % N;
	}
	for (int i = 0; i < N; i++) {
		label[i] = i % 4;
		test_mask[i] = !(train_mask[i] = i < 40);
		for (int c = 0; c < D; c++)
			x[i][c] = (float)(c == label[i]) + 2.0f * (float)rand() / (float)RAND_MAX;
	}
	hg_context *ctx;
	hg_graph *graph;
	hg_tensor *features;
	hg_train *run;
	hg_train_config config = hg_train_config_default("gcn"); /* 2 layers, hidden 64, Adam, fp16 */
	hg_train_data data = HG_TRAIN_DATA_INIT;
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	hg_status s = hg_context_create(NULL, &ctx); /* a GPU if one answers, else the CPU */
	if (s < 0 || hg_graph_from_coo(ctx, N, N, M, dst, src, NULL, NULL, &graph) < 0 ||
	    hg_tensor_create(ctx, HG_F16, N, D, &features) < 0 ||
	    hg_tensor_upload(features, x, HG_F32) < 0)
		return fprintf(stderr, "%s\n", hg_context_error(s < 0 ? NULL : ctx)), 1;
	data.input.graph = graph;
	data.input.x = features;
	data.labels = label;
	data.train_mask = train_mask;
	data.test_mask = test_mask;
	if (hg_train_create(ctx, &config, &data, &run) < 0 || hg_train_run(run, &report) < 0)
		return fprintf(stderr, "%s\n", hg_context_error(ctx)), 1;
	printf("%s: test accuracy %.1f %%, %.2f ms an epoch\n", hg_context_device_name(ctx),
	       100 * report.test_accuracy, report.epoch_ms_median);
	hg_train_free(run);
	hg_tensor_free(features);
	hg_graph_free(graph);
	hg_context_free(ctx);
	return report.test_accuracy < 0.9;
}
