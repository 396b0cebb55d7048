#include "doctor/trial.h"

#include <string.h>

#include "core/text.h"

/* The loss scale stays as it was set if there is one before and after; so does what is done with
 * unproved results. */
static int set_precision(struct hg__trial_change *change, const char *value)
{
	hg_policy policy;
	if (hg_policy_parse(value, &policy) < 0)
		return 0;
	if (policy.loss_scale.enabled && change->config.policy.loss_scale.enabled)
		policy.loss_scale = change->config.policy.loss_scale;
	policy.unproved = change->config.policy.unproved;
	change->config.policy = policy;
	return 1;
}

static int set_norm(struct hg__trial_change *change, const char *value)
{
	static const char *const name[] = {[HG_NORM_NONE] = "none",
	                                   [HG_NORM_LEFT] = "left",
	                                   [HG_NORM_RIGHT] = "right",
	                                   [HG_NORM_BOTH] = "both",
	                                   [HG_NORM_IN] = "in",
	                                   [HG_NORM_WEIGHTED] = "weighted",
	                                   [HG_NORM_WEIGHTED_MEAN] = "weighted-mean"};
	for (int i = 0; i < HG_NORM_VALUES; i++)
		if (strcmp(name[i], value) == 0) {
			change->config.model.norm = (hg_norm)i;
			return 1;
		}
	return 0;
}

static int set_aggregate(struct hg__trial_change *change, const char *value)
{
	change->config.model.aggregate = strcmp(value, "mean") == 0 ? HG_NORM_RIGHT : HG_NORM_NONE;
	return 1;
}

static int set_lambda(struct hg__trial_change *change, const char *value)
{
	change->config.model.lambda = (float)hg__number(value);
	return 1;
}

static int set_loss_scale(struct hg__trial_change *change, const char *value)
{
	change->config.policy.loss_scale.enabled = 1;
	change->config.policy.loss_scale.init_scale = (float)hg__number(value);
	return 1;
}

static int set_lr(struct hg__trial_change *change, const char *value)
{
	change->config.optim.lr = (float)hg__number(value);
	return 1;
}

static int set_clip(struct hg__trial_change *change, const char *value)
{
	change->config.optim.clip_norm = (float)hg__number(value);
	return 1;
}

static int set_weight_decay(struct hg__trial_change *change, const char *value)
{
	change->config.optim.weight_decay = (float)hg__number(value);
	return 1;
}

static int set_unproved(struct hg__trial_change *change, const char *value)
{
	if (strcmp(value, "promote") != 0)
		return 0;
	change->config.policy.unproved = HG_UNPROVED_PROMOTE;
	return 1;
}

static int set_row_normalize(struct hg__trial_change *change, const char *value)
{
	change->row_normalize = strcmp(value, "on") == 0;
	return 1;
}

static const struct {
	const char *name;
	int (*set)(struct hg__trial_change *change, const char *value);
} options[] = {
    {"--precision", set_precision},
    {"--norm", set_norm},
    {"--aggregate", set_aggregate},
    {"--lambda", set_lambda},
    {"--loss-scale", set_loss_scale},
    {"--lr", set_lr},
    {"--clip", set_clip},
    {"--row-normalize", set_row_normalize},
    {"--weight-decay", set_weight_decay},
    {"--unproved", set_unproved},
};
#define OPTIONS (sizeof options / sizeof *options)

int hg__apply_option(struct hg__trial_change *change, const char *option)
{
	for (size_t i = 0; i < OPTIONS; i++) {
		const size_t length = strlen(options[i].name);
		if (strncmp(option, options[i].name, length) == 0 && option[length] == ' ')
			return options[i].set(change, option + length + 1);
	}
	return 0;
}
