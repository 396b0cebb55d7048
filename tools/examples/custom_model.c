/* A model built from public ops, with an explicit training loop: GraphSAGE, H = relu(X W + mean(X)
 * U + b), logits = H V. */
#include "planted.h"

#include <stdio.h>

struct sage {
	hg_param *w, *u, *b, *v;
};

static int sage_build(hg_params *params, struct sage *m)
{
	enum { HIDDEN = 32 };
	return hg_params_add(params, "w", FEATURES, HIDDEN, HG_INIT_GLOROT_UNIFORM, 0, &m->w) >= 0 &&
	       hg_params_add(params, "u", FEATURES, HIDDEN, HG_INIT_GLOROT_UNIFORM, 0, &m->u) >= 0 &&
	       hg_params_add(params, "b", 1, HIDDEN, HG_INIT_ZEROS, 0, &m->b) >= 0 &&
	       hg_params_add(params, "v", HIDDEN, CLASSES, HG_INIT_GLOROT_UNIFORM, 0, &m->v) >= 0;
}

static hg_var sage_record(const struct sage *m, hg_tape *t, hg_graph *graph, hg_var x)
{
	const hg_var own = hg_linear(t, x, hg_tape_param(t, m->w), hg_tape_param(t, m->b));
	const hg_var near = hg_linear(t, hg_spmm_mean(t, graph, x), hg_tape_param(t, m->u), HG_NONE);
	return hg_linear(t, hg_relu(t, hg_add(t, own, near)), hg_tape_param(t, m->v), HG_NONE);
}

int main(void)
{
	hg_context *ctx = NULL;
	struct planted data = {0};
	struct sage model = {0};
	hg_tensor *labels = NULL;
	/* f32 master weights with f16 working copies: fp16 is the default policy */
	hg_params *params = NULL;
	hg_tape *tape = NULL;
	hg_optim *optim = NULL;
	const hg_optim_config adam = HG_OPTIM_CONFIG_INIT;
	/* forward, backward and update as one unit: on a GPU a captured graph */
	hg_step *step = NULL;
	hg_step_info info = HG_STEP_INFO_INIT;
	double value = 1.0;

	int ok = hg_context_create(NULL, &ctx) >= 0 && planted_make(ctx, &data) &&
	         hg_tensor_create(ctx, HG_I32, NODES, 1, &labels) >= 0 &&
	         hg_tensor_upload(labels, data.label, HG_I32) >= 0 &&
	         hg_params_create(ctx, NULL, &params) >= 0 && sage_build(params, &model) &&
	         hg_optim_create(params, &adam, &optim) >= 0 &&
	         hg_tape_create(params, HG_TRAIN, &tape) >= 0;
	if (ok) {
		const hg_var logits =
		    sage_record(&model, tape, data.graph, hg_tape_input(tape, data.features, "x", -1.0));
		const hg_var loss =
		    hg_softmax_xent(tape, logits, hg_tape_input(tape, labels, "labels", -1.0), HG_NONE);
		ok = hg_tape_compile(tape, loss) >= 0; /* every mistake in the recording is reported here */
	}
	ok = ok && hg_step_create(tape, optim, NULL, &step) >= 0;
	for (int epoch = 20; ok && epoch <= 100; epoch += 20) {
		/* reading waits for the device */
		ok = hg_step_run(step, 20) >= 0 && hg_step_read(step, 0, &value, &info) >= 0;
		printf("epoch %3d  loss %.4f  loss scale %g  %s\n", epoch, value, (double)info.loss_scale,
		       hg_step_reason_text(info.reason));
	}
	if (!ok)
		fprintf(stderr, "%s\n", hg_context_error(ctx));
	hg_step_free(step), hg_tape_free(tape), hg_optim_free(optim), hg_params_free(params),
	    hg_tensor_free(labels), planted_free(&data), hg_context_free(ctx);
	return !ok || !(value < 0.5);
}
