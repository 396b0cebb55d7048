#include <stdio.h>
#include <stdlib.h>

#include "halfgraph/group.h"
#include "inputs.h"
#include "nn/train.h"
#include "repeat.h"

/* hg-bench group: epochs of several models of one kind that train together (a step and an
 * evaluation of each), beside those of one of them alone. */

#define WARM_UPS 3

struct models {
	hg_train *train[HG_GROUP_MOST];
	hg_step *step[HG_GROUP_MOST];
	int64_t count;
};

static void models_free(struct models *m)
{
	for (int64_t i = 0; i < m->count; i++)
		hg_train_free(m->train[i]);
	m->count = 0;
}

/* One more model. It has run, so its tapes fit its numbers, and evaluates behind each step. */
static hg_status model_add(struct bench *b, const char *model, const struct inputs *in,
                           struct models *m)
{
	hg_train_config config = train_config_of(b, model, input_width(b));
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	const hg_train_data data = train_data_of(b, in);
	hg_train **train = &m->train[m->count];
	config.epochs = config.eval_every = WARM_UPS;
	HG__TRY(hg_train_create(b->ctx, &config, &data, train));
	m->count++;
	HG__TRY(hg_train_run(*train, &report));
	m->step[m->count - 1] = (*train)->step;
	hg__step_behind((*train)->step, hg__evaluate_queue, hg__evaluate_move, &(*train)->evaluator);
	return HG_OK;
}

static hg_status group_repeat(void *group, int64_t count)
{
	return hg_group_run(group, count);
}

static void report_models(struct bench *b, const char *model, int64_t count,
                          const struct timing *ms, const char *note)
{
	char name[64] = "";
	const double share = 1.0 / (double)count;
	struct result r = result_new("group", name, b->policy->name);
	snprintf(name, sizeof name, count == 1 ? "%s" : "%s, %lld together", model, (long long)count);
	r.ms = (struct timing){ms->median * share, ms->least * share, ms->most * share, ms->samples};
	r.features = b->options.hidden;
	r.note = note;
	r.more_name[0] = "layers";
	r.more[0] = (double)b->options.layers;
	r.more_name[1] = "models";
	r.more[1] = (double)count;
	report_result(b, &r);
}

/* alone: ms of an epoch of one model; not a number until it is measured. */
static hg_status models_measure(struct bench *b, const char *model, const struct models *m,
                                int64_t count, double alone)
{
	hg_group_config config = HG_GROUP_CONFIG_INIT;
	hg_group_launch launch = HG_GROUP_LAUNCH_INIT;
	hg_group *group = NULL;
	struct timing ms;
	char note[160];
	config.branches = (int)b->options.branches;
	HG__TRY(hg_group_create(b->ctx, m->step, count, &config, &group));
	hg_status status = repeat_measure(b, group_repeat, group, &ms);
	if (status == HG_OK)
		status = hg_group_get_launch(group, &launch);
	hg_group_free(group);
	HG__TRY(status);
	int used = snprintf(note, sizeof note, "an epoch of each; %.2f times as fast; %d at once",
	                    alone * (double)count / ms.median, launch.branches);
	if (launch.captured)
		snprintf(note + used, sizeof note - (size_t)used,
		         "; %lld operations captured, %d steps a launch", (long long)launch.operations,
		         launch.per_launch);
	report_models(b, model, count, &ms, note);
	return HG_OK;
}

static hg_status alone_measure(struct bench *b, const char *model, hg_step *step, double *alone)
{
	struct timing ms;
	HG__TRY(repeat_measure(b, repeat_steps, step, &ms));
	*alone = ms.median;
	report_models(b, model, 1, &ms, "an epoch of one model alone");
	return HG_OK;
}

static hg_status counts_measure(struct bench *b, const char *model, const struct inputs *in,
                                struct models *m)
{
	double alone = 0.0;
	HG__TRY(model_add(b, model, in, m));
	HG__TRY(alone_measure(b, model, m->step[0], &alone));
	for (int k = 0; k < b->options.model_counts; k++) {
		while (m->count < b->options.models[k])
			HG__TRY(model_add(b, model, in, m));
		HG__TRY(models_measure(b, model, m, b->options.models[k], alone));
	}
	return HG_OK;
}

static hg_status run_model(struct bench *b, const char *model)
{
	struct inputs in = {.x = NULL};
	struct models *m = calloc(1, sizeof *m);
	hg_status status = m ? inputs_make(b, input_width(b), &in)
	                     : hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for a list of models");
	if (status == HG_OK)
		status = counts_measure(b, model, &in, m);
	if (m)
		models_free(m);
	free(m);
	inputs_free(&in);
	if (status != HG_ERR_NOMEM)
		return status;
	report_absent(b, "group", model, hg_context_error(b->ctx)); /* a result, too */
	return HG_OK;
}

hg_status bench_group(struct bench *b)
{
	return models_run(b, run_model);
}
