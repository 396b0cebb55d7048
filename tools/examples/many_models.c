/* Several models that train together: a GCN with four learning rates and two seeds each, on one
 * graph. */
#include "planted.h"

#include <stdio.h>

enum { RATES = 4, SEEDS = 2, MODELS = RATES * SEEDS, STEPS = 60 };

struct member {
	hg_params *params;
	hg_model *model;
	hg_tape *tape;
	hg_optim *optim;
	hg_step *step;
};

static int member_make(hg_context *ctx, const struct planted *data, const hg_tensor *labels,
                       float rate, uint64_t seed, struct member *m)
{
	hg_model_config config = hg_model_config_default("gcn");
	hg_model_input input = HG_MODEL_INPUT_INIT;
	hg_optim_config adam = HG_OPTIM_CONFIG_INIT;
	config.in_features = FEATURES;
	config.out_features = CLASSES;
	input.graph = data->graph;
	input.x = data->features;
	adam.lr = rate;
	if (hg_params_create(ctx, NULL, &m->params) < 0 || hg_params_set_seed(m->params, seed) < 0 ||
	    hg_model_create(m->params, &config, &m->model) < 0 ||
	    hg_tape_create(m->params, HG_TRAIN, &m->tape) < 0)
		return 0;
	const hg_var loss = hg_softmax_xent(m->tape, hg_model_record(m->model, m->tape, &input),
	                                    hg_tape_input(m->tape, labels, "labels", -1.0), HG_NONE);
	return hg_tape_compile(m->tape, loss) >= 0 &&
	       hg_optim_create(m->params, &adam, &m->optim) >= 0 &&
	       hg_step_create(m->tape, m->optim, NULL, &m->step) >= 0;
}

static void member_free(struct member *m)
{
	hg_step_free(m->step), hg_optim_free(m->optim), hg_tape_free(m->tape), hg_model_free(m->model),
	    hg_params_free(m->params);
}

int main(void)
{
	static const float rate[RATES] = {0.001f, 0.01f, 0.1f, 1000.0f};
	hg_context *ctx = NULL;
	struct planted data = {0};
	struct member member[MODELS] = {{0}};
	hg_step *step[MODELS];
	hg_tensor *labels = NULL;
	hg_group *group = NULL;
	int ok = hg_context_create(NULL, &ctx) >= 0 && planted_make(ctx, &data) &&
	         hg_tensor_create(ctx, HG_I32, NODES, 1, &labels) >= 0 &&
	         hg_tensor_upload(labels, data.label, HG_I32) >= 0;
	for (int i = 0; i < MODELS && ok; i++) {
		ok =
		    member_make(ctx, &data, labels, rate[i / SEEDS], 1 + (uint64_t)(i % SEEDS), &member[i]);
		step[i] = member[i].step;
	}
	/* one call: 60 steps of every model, each with the bits that it has alone */
	ok = ok && hg_group_create(ctx, step, MODELS, NULL, &group) >= 0 &&
	     hg_group_run(group, STEPS) >= 0;
	for (int i = 0; i < MODELS && ok; i++) {
		hg_step_info info = HG_STEP_INFO_INIT;
		double loss = 0.0;
		ok = hg_step_read(step[i], 0, &loss, &info) >= 0;
		printf("learning rate %g, seed %d: loss %.3f, %lld of %d steps skipped\n",
		       (double)rate[i / SEEDS], 1 + i % SEEDS, loss, (long long)info.skipped, STEPS);
	}
	if (!ok)
		fprintf(stderr, "%s\n", hg_context_error(ctx));
	hg_group_free(group);
	for (int i = 0; i < MODELS; i++)
		member_free(&member[i]);
	hg_tensor_free(labels);
	planted_free(&data);
	hg_context_free(ctx);
	return !ok;
}
