/* Trains a GCN on a dataset and prints its result to the last digit: train FILE.h5. train.cpp and
 * train.py do the same. */
#include <halfgraph/data.h>
#include <halfgraph/halfgraph.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	char why[HG_DATA_MESSAGE] = "";
	hg_dataset *dataset;
	hg_device_data *device;
	hg_context *ctx;
	hg_train *run;
	hg_context_config here = HG_CONTEXT_CONFIG_INIT;
	hg_train_config config = hg_train_config_default("gcn");
	hg_train_data data = HG_TRAIN_DATA_INIT;
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	here.device = HG_DEVICE_CPU;
	here.seed = 7;
	config.epochs = 30;
	if (argc != 2 || hg_context_create(&here, &ctx) < 0)
		return 1;
	const hg_upload_config upload = hg_upload_config_for(&config);
	if (hg_dataset_read(argv[1], &dataset, why) < 0 ||
	    hg_dataset_configure(dataset, &config.model, why) < 0 ||
	    hg_dataset_upload(dataset, ctx, &upload, &device, why) < 0 ||
	    hg_dataset_train_data(dataset, device, &data, why) < 0)
		return fprintf(stderr, "%s\n", why), 1;
	if (hg_train_create(ctx, &config, &data, &run) < 0 || hg_train_run(run, &report) < 0)
		return fprintf(stderr, "%s\n", hg_context_error(ctx)), 1;
	printf("%.17g %.17g %d\n", report.test_accuracy, report.final_loss, report.best_epoch);
	hg_train_free(run);
	hg_device_data_free(device);
	hg_dataset_free(dataset);
	hg_context_free(ctx);
	return 0;
}
