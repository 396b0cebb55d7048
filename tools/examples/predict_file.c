/* Predict with a trained model: predict_file MODEL.h5 DATASET.h5 OUT.csv */
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
	hg_context *ctx;
	hg_predictor *model;
	hg_dataset *dataset;
	hg_prediction *prediction;
	hg_evaluation found = HG_EVALUATION_INIT;
	if (argc != 4)
		return fail("usage: predict_file MODEL.h5 DATASET.h5 OUT.csv");
	if (hg_context_create(NULL, &ctx) < 0)
		return fail(hg_context_error(NULL));
	if (hg_model_load(ctx, argv[1], &model, why) < 0 ||
	    hg_dataset_read(argv[2], &dataset, why) < 0 ||
	    hg_predictor_prepare(model, dataset, why) < 0 || /* features as in the training */
	    hg_dataset_predict(dataset, model, &prediction, why) < 0 ||
	    hg_prediction_write(prediction, argv[3], why) < 0)
		return fail(why);
	if (dataset->label && hg_prediction_evaluate(prediction, dataset, 0, &found, why) >= 0)
		printf("test accuracy %.1f %%\n", 100 * found.value[2]);
	hg_prediction_free(prediction);
	hg_dataset_free(dataset);
	hg_predictor_free(model);
	hg_context_free(ctx);
	return 0;
}
