/* A training loop of your own: a learning rate that falls, an evaluation tape beside the training
 * tape, and new tapes after an overflow. The model is one GCN layer of public ops. */
#include "planted.h"

#include <stdio.h>

struct loop {
	hg_params *params;
	hg_optim *optim;
	hg_tape *train, *eval;
	hg_step *step;
	hg_var logits; /* on eval */
};

static hg_var model_record(hg_params *params, hg_tape *tape, const struct planted *data)
{
	const hg_var x = hg_tape_input(tape, data->features, "x", -1.0);
	const hg_var w = hg_tape_param(tape, hg_params_find(params, "w"));
	const hg_var b = hg_tape_param(tape, hg_params_find(params, "b"));
	return hg_bias_add(
	    tape, hg_spmm(tape, data->graph, hg_linear(tape, x, w, HG_NONE), HG_NONE, HG_NORM_BOTH, 1),
	    b);
}

/* Creates both tapes and the step. It is called again after an overflow; the parameters stay. */
static int loop_record(struct loop *l, const struct planted *data, const hg_tensor *labels)
{
	hg_step_free(l->step), hg_tape_free(l->eval), hg_tape_free(l->train);
	l->step = NULL, l->eval = NULL, l->train = NULL;
	if (hg_tape_create(l->params, HG_TRAIN, &l->train) < 0 ||
	    hg_tape_create(l->params, HG_EVAL, &l->eval) < 0)
		return 0;
	const hg_var loss = hg_softmax_xent(l->train, model_record(l->params, l->train, data),
	                                    hg_tape_input(l->train, labels, "labels", -1.0), HG_NONE);
	l->logits = model_record(l->params, l->eval, data);
	return hg_tape_compile(l->train, loss) >= 0 && hg_tape_compile(l->eval, l->logits) >= 0 &&
	       hg_step_create(l->train, l->optim, NULL, &l->step) >= 0;
}

static double accuracy(const struct loop *l, const struct planted *data)
{
	static float logits[NODES][CLASSES];
	int right = 0;
	if (hg_tape_forward(l->eval) < 0 ||
	    hg_tensor_download(hg_tape_value(l->eval, l->logits), logits, HG_F32) < 0)
		return -1.0;
	for (int i = 0; i < NODES; i++) {
		int best = 0;
		for (int c = 1; c < CLASSES; c++)
			best = logits[i][c] > logits[i][best] ? c : best;
		right += best == data->label[i];
	}
	return (double)right / NODES;
}

int main(void)
{
	hg_context *ctx = NULL;
	struct planted data = {0};
	struct loop l = {0};
	hg_tensor *labels = NULL;
	hg_step_info info = HG_STEP_INFO_INIT;
	const hg_optim_config adam = HG_OPTIM_CONFIG_INIT;
	double loss = 0.0, right = 0.0;
	int ok =
	    hg_context_create(NULL, &ctx) >= 0 && planted_make(ctx, &data) &&
	    hg_tensor_create(ctx, HG_I32, NODES, 1, &labels) >= 0 &&
	    hg_tensor_upload(labels, data.label, HG_I32) >= 0 &&
	    hg_params_create(ctx, NULL, &l.params) >= 0 &&
	    hg_params_add(l.params, "w", FEATURES, CLASSES, HG_INIT_GLOROT_UNIFORM, 0, NULL) >= 0 &&
	    hg_params_add(l.params, "b", 1, CLASSES, HG_INIT_ZEROS, 0, NULL) >= 0 &&
	    hg_optim_create(l.params, &adam, &l.optim) >= 0 && loop_record(&l, &data, labels);
	for (int epoch = 1; ok && epoch <= 120; epoch++) {
		/* the learning rate is in device memory, so a captured step uses the new one */
		ok = hg_optim_set_lr(l.optim, 0, epoch <= 60 ? 0.05f : 0.005f) >= 0 &&
		     hg_step_run(l.step, 1) >= 0 && hg_step_read(l.step, 0, &loss, &info) >= 0;
		/* a result overflowed and this step was skipped: store that result differently */
		if (ok && info.overflow_node >= 0)
			ok = hg_tape_replan(l.train, info.overflow_node, NULL) >= 0 &&
			     loop_record(&l, &data, labels);
		if (ok && epoch % 40 == 0) {
			right = accuracy(&l, &data);
			printf("epoch %3d  loss %.4f  accuracy %.3f  %s\n", epoch, loss, right,
			       hg_step_reason_text(info.reason));
		}
	}
	if (!ok)
		fprintf(stderr, "%s\n", hg_context_error(ctx));
	hg_step_free(l.step), hg_tape_free(l.eval), hg_tape_free(l.train), hg_optim_free(l.optim),
	    hg_params_free(l.params), hg_tensor_free(labels), planted_free(&data), hg_context_free(ctx);
	return !ok || !(right > 0.8);
}
