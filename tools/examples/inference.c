/* Inference: weights trained on one graph are used on another graph that training did not see. */
#include "planted.h"

#include <stdio.h>

/* The number of nodes that the model classifies correctly. An EVAL tape has no dropout, plans no
 * gradients, and can run again whenever the features change. */
static int count_right(hg_model *model, hg_params *params, const struct planted *data)
{
	static float logits[NODES][CLASSES];
	hg_model_input input = HG_MODEL_INPUT_INIT;
	hg_tape *tape = NULL;
	int right = -1;
	input.graph = data->graph;
	input.x = data->features;
	if (hg_tape_create(params, HG_EVAL, &tape) < 0)
		return -1;
	const hg_var out = hg_model_record(model, tape, &input);
	if (hg_tape_compile(tape, out) >= 0 && hg_tape_forward(tape) >= 0 &&
	    hg_tensor_download(hg_tape_value(tape, out), logits, HG_F32) >= 0) {
		right = 0;
		for (int i = 0; i < NODES; i++) {
			int best = 0;
			for (int c = 1; c < CLASSES; c++)
				best = logits[i][c] > logits[i][best] ? c : best;
			right += best == data->label[i];
		}
	}
	hg_tape_free(tape);
	return right;
}

int main(void)
{
	hg_context *ctx = NULL;
	hg_train *run = NULL;
	struct planted seen = {0}, unseen = {0};
	hg_train_config config = hg_train_config_default("gin");
	hg_train_data data = HG_TRAIN_DATA_INIT;
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	int right = -1;
	if (hg_context_create(NULL, &ctx) >= 0 && planted_make(ctx, &seen) &&
	    planted_make(ctx, &unseen)) {
		data.input.graph = seen.graph;
		data.input.x = seen.features;
		data.labels = seen.label;
		config.epochs = 100;
		if (hg_train_create(ctx, &config, &data, &run) >= 0 && hg_train_run(run, &report) >= 0)
			right = count_right(hg_train_model(run), hg_train_params(run), &unseen);
	}
	if (right < 0)
		fprintf(stderr, "%s\n", hg_context_error(ctx));
	else
		printf("%d of %d nodes of an unseen graph are classified correctly\n", right, NODES);
	hg_train_free(run), planted_free(&unseen), planted_free(&seen), hg_context_free(ctx);
	return right < NODES * 9 / 10;
}
