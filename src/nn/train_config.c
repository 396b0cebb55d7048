/* Defaults of a training run: Adam, and the rates of each model (models/NAME.c), so that a run
 * without options reaches the published figures. */
#include "halfgraph/train.h"
#include "nn/model.h"

hg_train_config hg_train_config_default(const char *model)
{
	const hg_optim_config optim = HG_OPTIM_CONFIG_INIT;
	const hg_step_config step = HG_STEP_CONFIG_INIT;
	hg_train_config config = {.size = sizeof config,
	                          .model = hg_model_config_default(model),
	                          .optim = optim,
	                          .policy = hg_policy_fp16(),
	                          .epochs = 200,
	                          .eval_every = 1,
	                          .step = step,
	                          .schedule = HG_SCHEDULE_CONFIG_INIT};
	const struct hg__model_kind *kind = hg__model_find(model);
	if (kind) {
		config.optim.lr = kind->training.lr;
		config.optim.weight_decay = kind->training.weight_decay;
		config.first_layer_decay_only = kind->training.first_layer_decay_only;
		config.epochs = kind->training.epochs;
	}
	return config;
}
