/* Datasets in C: make one, give it splits and a better order, write it, read it, and take graph and
 * features to a device, for a model of your own. (train_file.c trains on a file.) */
#include <halfgraph/data.h>
#include <halfgraph/halfgraph.h>
#include <stdio.h>

/* Writes the example's file. */
static hg_status make_file(const char *path, char *message)
{
	hg_planted_config planted = HG_PLANTED_CONFIG_INIT;
	hg_order_report order = HG_ORDER_REPORT_INIT;
	hg_dataset *d = NULL;
	planted.nodes = 2000;
	planted.hubs = 2;
	planted.hub_degree = 300;
	hg_status status = hg_dataset_planted(&planted, &d, message);
	if (status >= 0)
		status = hg_dataset_fold(d, 0, 10, message); /* 8 of 10 folds are for training */
	if (status >= 0)
		status = hg_dataset_reorder(d, "auto", NULL, &order, message);
	if (status >= 0)
		status = hg_dataset_write(d, path, message); /* complete or not at all */
	if (status >= 0)
		printf("%s: order %s\n", path, order.method);
	hg_dataset_free(d);
	return status;
}

int main(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = NULL;
	hg_context *ctx = NULL;
	hg_device_data *device = NULL;
	hg_upload_config config = HG_UPLOAD_CONFIG_INIT; /* features become f16 */
	config.self_loops = 1;
	int ok = make_file("example.h5", message) >= 0 &&
	         hg_dataset_read("example.h5", &d, message) >= 0; /* checked: ids, splits, ranges */
	remove("example.h5");
	if (ok && hg_context_create(NULL, &ctx) < 0)
		return fprintf(stderr, "%s\n", hg_context_error(NULL)), hg_dataset_free(d), 1;
	ok = ok && hg_dataset_upload(d, ctx, &config, &device, message) >= 0;
	if (ok) /* hg_tape_input takes device->x, and the ops of ops_graph.h device->graph */
		printf("%s: %lld nodes, %lld edges and self loops, %lld features\n", d->name,
		       (long long)d->nodes, (long long)hg_graph_edges(device->graph),
		       (long long)hg_tensor_cols(device->x));
	else
		fprintf(stderr, "%s\n", message);
	hg_device_data_free(device);
	hg_context_free(ctx);
	hg_dataset_free(d);
	return !ok;
}
