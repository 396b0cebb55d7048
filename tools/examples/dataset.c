/* Datasets in C: make one, write it, read it, move it to a device and train. */
#include <halfgraph/data.h>
#include <halfgraph/halfgraph.h>
#include <stdio.h>

/* graph and features on the context's device; features that f16 cannot hold are an error */
static int upload(hg_context *ctx, const hg_dataset *d, hg_graph **graph, hg_tensor **x)
{
	return hg_graph_from_csr(ctx, d->nodes, d->nodes, d->edges, d->rowptr, d->col, d->weight,
	                         graph) >= 0 &&
	       hg_tensor_create(ctx, HG_F16, d->nodes, d->features, x) >= 0 &&
	       hg_tensor_upload(*x, d->feat, d->feat_dtype) >= 0;
}

int main(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_planted_config planted = HG_PLANTED_CONFIG_INIT;
	hg_dataset *d = NULL;
	hg_context *ctx = NULL;
	hg_graph *graph = NULL;
	hg_tensor *x = NULL;
	hg_train *run = NULL;
	hg_train_config config = hg_train_config_default("gcn");
	hg_train_data data = HG_TRAIN_DATA_INIT;
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	planted.nodes = 2000;
	planted.hubs = 2;
	planted.hub_degree = 300;
	config.epochs = 60;

	if (hg_dataset_planted(&planted, &d, message) < 0 || hg_dataset_self_loops(d, message) < 0 ||
	    hg_dataset_write(d, "example.h5", message) < 0)
		return fprintf(stderr, "%s\n", message), hg_dataset_free(d), 1;
	hg_dataset_free(d);
	if (hg_dataset_read("example.h5", &d, message) < 0) /* checked: ids, splits, ranges */
		return fprintf(stderr, "%s\n", message), 1;
	remove("example.h5");

	int ok = hg_context_create(NULL, &ctx) >= 0 && upload(ctx, d, &graph, &x);
	if (ok) {
		data.input.graph = graph;
		data.input.x = x;
		data.input.x_amax = d->feat_amax; /* known from the file, so not measured */
		data.labels = d->label;
		data.train_mask = d->train_mask;
		data.val_mask = d->val_mask;
		data.test_mask = d->test_mask;
		ok = hg_train_create(ctx, &config, &data, &run) >= 0 && hg_train_run(run, &report) >= 0;
	}
	if (ok)
		printf("%s: %lld nodes, %lld edges, test accuracy %.3f\n", d->name, (long long)d->nodes,
		       (long long)d->edges, report.test_accuracy);
	else
		fprintf(stderr, "%s\n", hg_context_error(ctx));
	hg_train_free(run);
	hg_tensor_free(x);
	hg_graph_free(graph);
	hg_context_free(ctx);
	hg_dataset_free(d);
	return !ok || report.test_accuracy < 0.5;
}
