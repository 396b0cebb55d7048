/* Does a remedy work? A run of its own with the option in force, from the beginning; then its next step is examined. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/versioned.h"
#include "halfgraph/doctor.h"

/* ---- options ---- */

/* Types and sums as named; the loss scale stays as it was set, where there is one before and after. */
static int set_precision(hg_train_config *c, const char *value)
{
	hg_policy policy;
	if (hg_policy_parse(value, &policy) < 0)
		return 0;
	if (policy.loss_scale.enabled && c->policy.loss_scale.enabled)
		policy.loss_scale = c->policy.loss_scale;
	c->policy = policy;
	return 1;
}

static int set_norm(hg_train_config *c, const char *value)
{
	static const char *const name[] = {[HG_NORM_NONE] = "none", [HG_NORM_LEFT] = "left", [HG_NORM_RIGHT] = "right", [HG_NORM_BOTH] = "both"};
	for (int i = 0; i <= HG_NORM_BOTH; i++)
		if (strcmp(name[i], value) == 0) {
			c->model.norm = (hg_norm)i;
			return 1;
		}
	return 0;
}

static int set_aggregate(hg_train_config *c, const char *value)
{
	c->model.aggregate = strcmp(value, "mean") == 0 ? HG_NORM_RIGHT : HG_NORM_NONE;
	return 1;
}

static int set_lambda(hg_train_config *c, const char *value)
{
	c->model.lambda = strtof(value, NULL);
	return 1;
}

static int set_loss_scale(hg_train_config *c, const char *value)
{
	c->policy.loss_scale.init_scale = strtof(value, NULL);
	return 1;
}

static int set_lr(hg_train_config *c, const char *value)
{
	c->optim.lr = strtof(value, NULL);
	return 1;
}

static int set_clip(hg_train_config *c, const char *value)
{
	c->optim.clip_norm = strtof(value, NULL);
	return 1;
}

static const struct {
	const char *name;
	int (*set)(hg_train_config *config, const char *value);
} options[] = {
    {"--precision", set_precision},   {"--norm", set_norm}, {"--aggregate", set_aggregate}, {"--lambda", set_lambda},
    {"--loss-scale", set_loss_scale}, {"--lr", set_lr},     {"--clip", set_clip},
};
#define OPTIONS (sizeof options / sizeof *options)

/* Can a config say it? "--name value". */
static int apply(hg_train_config *config, const char *option)
{
	for (size_t i = 0; i < OPTIONS; i++) {
		const size_t length = strlen(options[i].name);
		if (strncmp(option, options[i].name, length) == 0 && option[length] == ' ')
			return options[i].set(config, option + length + 1);
	}
	return 0;
}

/* ---- the run ---- */

struct trial {
	double first, last;
	int applied, any, stopped;
	hg_train_fn progress; /* the caller's, who may stop it */
	void *user;
};

static int watch(void *user, const hg_train_event *event)
{
	struct trial *trial = user;
	if (!trial->any++)
		trial->first = event->loss;
	trial->last = event->loss;
	trial->applied = event->step.applied;
	trial->stopped = trial->progress && trial->progress(trial->user, event);
	return trial->stopped;
}

static hg_status judge(hg_train *train, struct trial *trial, hg_remedy *remedy)
{
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	const hg_doctor_report *seen = NULL;
	hg_doctor *doctor = NULL;
	HG__TRY(hg_train_run(train, &report));
	remedy->loss_first = trial->first;
	remedy->loss_last = trial->last;
	if (trial->stopped || !trial->applied || !isfinite(trial->last) || trial->last > trial->first) /* a first loss that is no number is larger than none */
		return HG_OK;
	HG__TRY(hg_doctor_create_train(train, NULL, &doctor));
	const hg_status status = hg_doctor_examine(doctor, 0, &seen);
	remedy->worked = status >= 0 && seen->findings == 0;
	hg_doctor_free(doctor);
	return status;
}

/* A config that is refused has been tried, too: it does not work. */
static int is_refusal(hg_status status)
{
	return status == HG_ERR_ARG || status == HG_ERR_RANGE || status == HG_ERR_UNSUPPORTED;
}

static hg_status try_one(hg_context *ctx, const hg_train_config *config, const hg_train_data *data, int epochs, hg_remedy *remedy)
{
	hg_train_config c = *config;
	struct trial trial = {NAN, NAN, 0, 0, 0, config->progress, config->user};
	hg_train *train = NULL;
	if (!apply(&c, remedy->option))
		return HG_OK;
	c.epochs = c.eval_every = epochs;
	c.patience = 0;
	c.progress = watch;
	c.user = &trial;
	remedy->worked = 0;
	hg_status status = hg_train_create(ctx, &c, data, &train);
	if (status >= 0)
		status = judge(train, &trial, remedy);
	hg_train_free(train);
	if (trial.stopped)
		return HG_INFO_STOPPED;
	remedy->tried = status >= 0 || is_refusal(status);
	return remedy->tried ? HG_OK : status;
}

hg_status hg_doctor_try(hg_context *ctx, const hg_train_config *config, const hg_train_data *data, int64_t steps, const hg_finding *finding)
{
	if (!ctx)
		return HG_ERR_ARG;
	if (!config || !data || !finding)
		return hg__fail(ctx, HG_ERR_ARG, "doctor_try: %s is NULL", !config ? "config" : !data ? "data" : "finding");
	if (steps < 1 || steps > INT32_MAX)
		return hg__fail(ctx, HG_ERR_ARG, "doctor_try: steps is %lld, expected 1 to %d", (long long)steps, INT32_MAX);
	hg_train_config ours = hg_train_config_default(NULL);
	if (!hg__struct_read(&ours, sizeof ours, config))
		return hg__fail(ctx, HG_ERR_ARG, "doctor_try: config.size is not set (start from hg_train_config_default), or a field unknown to this version is used");
	hg_status status = HG_OK;
	for (int i = 0; i < finding->remedies && status == HG_OK; i++)
		status = try_one(ctx, &ours, data, (int)steps, &finding->remedy[i]);
	return status;
}
