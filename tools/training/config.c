/* Turn the options into the library's configuration structures. */
#include <math.h>
#include <string.h>

#include "optimizer.h"
#include "schedule.h"
#include "task.h"
#include "training.h"

static int index_of_choice(const char *text, const char *const *names, int count)
{
	int i = 0;
	while (i < count && strcmp(text, names[i]) != 0)
		i++;
	return i;
}

void training_set_int(int *field, int64_t value)
{
	if (value >= 0)
		*field = (int)value;
}

void training_set_float(float *field, double value)
{
	if (!isnan(value))
		*field = (float)value;
}

static hg_status policy_make(const struct training *t, hg_policy *policy)
{
	static const char *const unproved[] = {"guard", "promote", "refuse"};
	const hg_status status = hg_policy_parse(t->precision, policy);
	if (t->unproved)
		policy->unproved = (hg_unproved)index_of_choice(t->unproved, unproved, 3);
	training_set_float(&policy->loss_scale.init_scale, t->loss_scale);
	return status;
}

static void model_make(const struct training *t, hg_model_config *model)
{
	static const char *const
	    norms[] = {"none", "left", "right", "both", "in", "weighted", "weighted-mean"},
	    *const reductions[] = {"sum", "mean", "max"}, *const depths[] = {"layers", "last", "all"};
	training_set_int(&model->layers, t->layers);
	training_set_int(&model->hidden, t->hidden);
	training_set_int(&model->heads, t->heads);
	training_set_int(&model->out_heads, t->out_heads);
	training_set_int(&model->hops, t->hops);
	training_set_float(&model->dropout, t->dropout);
	training_set_float(&model->attention_dropout, t->attention_dropout);
	training_set_float(&model->lambda, t->lambda);
	training_set_float(&model->teleport, t->teleport);
	if (t->norm)
		model->norm = (hg_norm)index_of_choice(t->norm, norms, HG_NORM_VALUES);
	if (t->aggregate)
		model->aggregate = strcmp(t->aggregate, "mean") == 0 ? HG_NORM_RIGHT : HG_NORM_NONE;
	if (t->feature_norm)
		model->feature_norm = strcmp(t->feature_norm, "layer") == 0 ? HG_LAYER_NORM : HG_BATCH_NORM;
	if (t->readout)
		model->readout = index_of_choice(t->readout, reductions, 3);
	if (t->readout_layers)
		model->readout_layers = (hg_readout_layers)index_of_choice(t->readout_layers, depths, 3);
}

hg_status training_config(const struct training *t, const hg_dataset *d, hg_train_config *config,
                          char *message)
{
	*config = hg_train_config_default(t->model);
	model_make(t, &config->model);
	training_set_int(&config->epochs, t->epochs);
	optimizer_make(t, &config->optim);
	schedule_make(t, &config->schedule);
	config->step.eager = t->eager;
	char why[HG_DATA_MESSAGE] = "";
	const hg_status status = hg_dataset_configure(d, &config->model, why);
	task_configure(t, d, config);
	if (status < 0) {
		(void)dataset_refuse(t, why, message);
		return status;
	}
	return policy_make(t, &config->policy);
}

hg_status training_context(const struct training *t, uint64_t seed, hg_log_fn log, void *user,
                           hg_context **ctx)
{
	static const char *const devices[] = {"auto", "cpu", "cuda"};
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	config.log = log; /* warnings and errors */
	config.log_user = user;
	config.device = (hg_device)index_of_choice(t->device, devices, 3);
	config.threads = (int)t->threads;
	config.seed = seed;
	return hg_context_create(&config, ctx);
}
