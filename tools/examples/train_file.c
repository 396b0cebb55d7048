/* Train a GCN in fp16 on a dataset: train_file FILE.h5 */
#include <halfgraph/data.h>
#include <halfgraph/halfgraph.h>
#include <stdio.h>

static int fail(const char *why)
{
	fprintf(stderr, "%s\n", why);
	return 1;
}

int main(int argc, char **argv)
{
	char why[HG_DATA_MESSAGE] = "";
	hg_dataset *dataset;
	hg_context *ctx;
	hg_device_data *device;
	hg_train *run;
	hg_train_config config = hg_train_config_default("gcn"); /* "gin", "gat" */
	hg_train_data data = HG_TRAIN_DATA_INIT;
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	if (argc != 2)
		return fail("usage: train_file FILE.h5");
	if (hg_dataset_read(argv[1], &dataset, why) < 0 ||
	    hg_dataset_configure(dataset, &config.model, why) < 0)
		return fail(why);
	if (hg_context_create(NULL, &ctx) < 0)
		return fail(hg_context_error(NULL));
	const hg_upload_config wanted = hg_upload_config_for(&config); /* fp16, with self loops */
	if (hg_dataset_upload(dataset, ctx, &wanted, &device, why) < 0 ||
	    hg_dataset_train_data(dataset, device, &data, why) < 0)
		return fail(why);
	if (hg_train_create(ctx, &config, &data, &run) < 0 || hg_train_run(run, &report) < 0)
		return fail(hg_context_error(ctx));
	printf("test accuracy %.1f %%, best epoch %d\n", 100 * report.test_accuracy, report.best_epoch);
	hg_train_free(run);
	hg_device_data_free(device);
	hg_context_free(ctx);
	hg_dataset_free(dataset);
	return 0;
}
