#include <stdio.h>
#include <stdlib.h>

#include "halfgraph/train.h"
#include "inputs.h"

/* hg-bench batches: shuffled epochs of batches of graphs, as hg_train runs them, beside the same
 * without the time in which the device waited for a batch or for the recording of its tape. */

/* Epochs before the samples: they record the tapes of most shapes of batches, and capture. */
#define WARM_UPS 3

struct epochs {
	const struct bench *b;
	double *whole, *steps; /* ms of an epoch, and of its steps alone [repeat] */
	int64_t count, batches, skipped;
	double loss;
};

static int epoch_note(void *user, const hg_train_event *event)
{
	struct epochs *e = user;
	e->loss = event->loss;
	e->batches = event->steps;
	if (event->epoch <= WARM_UPS || e->count >= e->b->options.repeat)
		return 0;
	e->skipped += event->skipped;
	e->whole[e->count] = event->epoch_ms;
	e->steps[e->count++] = event->epoch_ms - event->prepare_ms;
	return 0;
}

static void report_times(struct bench *b, const char *variant, double *ms, const struct epochs *e,
                         const char *note)
{
	struct result r = result_new("batches", variant, b->policy->name);
	r.ms = timing_of(ms, (int)e->count);
	r.features = b->options.hidden;
	r.note = note;
	r.more_name[0] = "layers";
	r.more[0] = (double)b->options.layers;
	r.more_name[1] = "batch_graphs";
	r.more[1] = (double)b->options.batch;
	r.more_name[2] = "batches";
	r.more[2] = (double)e->batches;
	report_result(b, &r);
}

static void report_epochs(struct bench *b, const char *model, struct epochs *e)
{
	char name[64], note[128];
	snprintf(name, sizeof name, "%s epoch", model);
	snprintf(note, sizeof note, "%lld steps of up to %lld graphs, loss %.4g, %lld skipped",
	         (long long)e->batches, (long long)b->options.batch, e->loss, (long long)e->skipped);
	report_times(b, name, e->whole, e, note);
	const double whole = timing_of(e->whole, (int)e->count).median,
	             steps = timing_of(e->steps, (int)e->count).median;
	snprintf(name, sizeof name, "%s steps alone", model);
	snprintf(note, sizeof note, "%.4f ms a step; the epoch takes %.3f of this",
	         steps / (double)e->batches, whole / steps);
	report_times(b, name, e->steps, e, note);
}

static hg_status run_epochs(struct bench *b, const char *model, const struct inputs *in,
                            struct epochs *e)
{
	hg_train_config config = train_config_of(b, model, input_width(b));
	const hg_train_data data = train_data_of(b, in);
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	hg_train *train = NULL;
	/* the one epoch with an evaluation comes last, and is no sample */
	config.epochs = config.eval_every = WARM_UPS + (int)b->options.repeat + 1;
	config.batch_graphs = b->options.batch;
	config.progress = epoch_note;
	config.user = e;
	hg_status status = hg_train_create(b->ctx, &config, &data, &train);
	if (status >= 0)
		status = hg_train_run(train, &report);
	hg_train_free(train);
	return status < 0 ? status : HG_OK;
}

static hg_status run_model(struct bench *b, const char *model)
{
	const size_t repeat = (size_t)b->options.repeat;
	struct inputs in = {.x = NULL};
	struct epochs e = {
	    .b = b, .whole = calloc(repeat, sizeof *e.whole), .steps = calloc(repeat, sizeof *e.steps)};
	hg_status status = e.whole && e.steps
	                       ? inputs_make(b, input_width(b), &in)
	                       : hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for %zu times", repeat);
	if (status == HG_OK)
		status = run_epochs(b, model, &in, &e);
	if (status == HG_OK && e.count)
		report_epochs(b, model, &e);
	inputs_free(&in);
	free(e.whole);
	free(e.steps);
	if (status != HG_ERR_NOMEM)
		return status;
	report_absent(b, "batches", model, hg_context_error(b->ctx)); /* a result, too */
	return HG_OK;
}

hg_status bench_batches(struct bench *b)
{
	if (hg_graph_batch(b->graph) < 2)
		return hg__fail(b->ctx, HG_ERR_ARG, "%s is one graph: there are no batches of graphs",
		                b->graph_name);
	if (b->classes < 2 || b->features < 1)
		return hg__fail(b->ctx, HG_ERR_ARG, "%s has %lld features and %d classes: nothing to train",
		                b->graph_name, (long long)b->features, b->classes);
	for (const char *const *name = hg_model_names(); *name; name++)
		for (int p = 0; p < b->options.policies && options_have_model(&b->options, *name); p++) {
			b->policy = &b->options.policy[p];
			HG__TRY(run_model(b, *name));
		}
	return HG_OK;
}
