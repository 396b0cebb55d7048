// The same as train.c, in C++: train FILE.h5.
#include <halfgraph/data.h>
#include <halfgraph/halfgraph.h>

#include <cstdio>
#include <memory>

template <typename T> using owned = std::unique_ptr<T, void (*)(T *)>;

int main(int argc, char **argv)
{
	char why[HG_DATA_MESSAGE] = "";
	hg_context_config here = HG_CONTEXT_CONFIG_INIT;
	hg_train_config config = hg_train_config_default("gcn");
	hg_train_data data = HG_TRAIN_DATA_INIT;
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	here.device = HG_DEVICE_CPU;
	here.seed = 7;
	config.epochs = 30;
	hg_context *c = nullptr;
	hg_dataset *d = nullptr;
	hg_device_data *x = nullptr;
	hg_train *r = nullptr;
	const hg_upload_config upload = hg_upload_config_for(&config);
	bool good = argc == 2 && hg_context_create(&here, &c) >= 0 &&
	            hg_dataset_read(argv[1], &d, why) >= 0 &&
	            hg_dataset_configure(d, &config.model, why) >= 0 &&
	            hg_dataset_upload(d, c, &upload, &x, why) >= 0 &&
	            hg_dataset_train_data(d, x, &data, why) >= 0;
	const owned<hg_context> context(c, hg_context_free);
	const owned<hg_dataset> dataset(d, hg_dataset_free);
	const owned<hg_device_data> device(x, hg_device_data_free);
	good = good && hg_train_create(c, &config, &data, &r) >= 0 && hg_train_run(r, &report) >= 0;
	const owned<hg_train> run(r, hg_train_free);
	std::printf("%.17g %.17g %d\n", report.test_accuracy, report.final_loss, report.best_epoch);
	return good ? 0 : (std::fprintf(stderr, "%s%s\n", why, hg_context_error(c)), 1);
}
