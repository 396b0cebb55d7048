#include <stdio.h>
#include <stdlib.h>

#include "halfgraph/batches.h"
#include "inputs.h"
#include "nn/train.h"
#include "repeat.h"

/* hg-bench batches: shuffled epochs of batches of graphs, as hg_train runs them, beside its steps
 * alone: those on a batch that stays in place, without padding, queued without a wait. */

/* Epochs before the samples: they record the tapes of most shapes of batches, and capture. */
#define WARM_UPS 3

struct epochs {
	const struct bench *b;
	double *whole, *waits; /* [repeat] ms of an epoch, and of those in which the device waited */
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
	e->waits[e->count++] = event->prepare_ms;
	return 0;
}

static void report_times(struct bench *b, const char *variant, const struct timing *ms,
                         int64_t batches, const char *note)
{
	struct result r = result_new("batches", variant, b->policy->name);
	r.ms = *ms;
	r.features = b->options.hidden;
	r.note = note;
	r.more_name[0] = "layers";
	r.more[0] = (double)b->options.layers;
	r.more_name[1] = "batch_graphs";
	r.more[1] = (double)b->options.batch;
	r.more_name[2] = "batches";
	r.more[2] = (double)batches;
	report_result(b, &r);
}

/* step: the time of a step on a whole batch. */
static void report_epochs(struct bench *b, const char *model, struct epochs *e,
                          const struct timing *step)
{
	const double whole_batches = (double)hg_graph_batch(b->graph) / (double)(b->options.batch);
	const struct timing whole = timing_of(e->whole, (int)e->count),
	                    waits = timing_of(e->waits, (int)e->count),
	                    steps = {step->median * whole_batches, step->least * whole_batches,
	                             step->most * whole_batches, step->samples};
	char name[64], note[128];
	snprintf(name, sizeof name, "%s epoch", model);
	snprintf(note, sizeof note,
	         "%lld steps of up to %lld graphs, loss %.4g, %lld skipped; %.2f ms waiting",
	         (long long)e->batches, (long long)b->options.batch, e->loss, (long long)e->skipped,
	         waits.median);
	report_times(b, name, &whole, e->batches, note);
	snprintf(name, sizeof name, "%s steps alone", model);
	snprintf(note, sizeof note, "%.4f ms a step; the epoch takes %.3f of this", step->median,
	         whole.median / steps.median);
	report_times(b, name, &steps, e->batches, note);
}

/* ---- a batch that stays in place ---- */

static hg_status train_batch(struct bench *b, hg_train_config config, const hg_batch *batch,
                             const struct inputs *in, struct timing *ms)
{
	hg_train_data data = HG_TRAIN_DATA_INIT;
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	hg_train *train = NULL;
	int32_t *label = calloc((size_t)batch->graphs, sizeof *label);
	uint8_t *mask = calloc((size_t)batch->graphs, 1);
	hg_status status =
	    label && mask ? HG_OK : hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for labels");
	for (int64_t k = 0; status == HG_OK && k < batch->graphs; k++) {
		label[k] = in->label[batch->graph[k]];
		mask[k] = 1;
	}
	data.input = batch->input;
	data.labels = label;
	data.train_mask = mask;
	config.epochs = config.eval_every = WARM_UPS;
	if (status == HG_OK)
		status = hg_train_create(b->ctx, &config, &data, &train);
	if (status >= 0)
		status = hg_train_run(train, &report);
	if (status >= 0)
		status = repeat_measure(b, repeat_steps, train->step, ms);
	hg_train_free(train);
	free(label);
	free(mask);
	return status < 0 ? status : HG_OK;
}

static hg_status measure_step(struct bench *b, const char *model, const struct inputs *in,
                              struct timing *ms)
{
	hg_batches_config c = HG_BATCHES_CONFIG_INIT;
	hg_batch batch = HG_BATCH_INIT;
	hg_batches *batches = NULL;
	c.input = train_data_of(b, in).input;
	c.graphs = b->options.batch;
	hg_status status = hg_batches_create(b->ctx, &c, &batches);
	if (status == HG_OK)
		status = hg_batches_load(batches, 0, 0, &batch);
	if (status == HG_OK)
		status = train_batch(b, train_config_of(b, model, input_width(b)), &batch, in, ms);
	hg_batches_free(batches);
	return status;
}

/* ---- epochs ---- */

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
	struct timing step;
	struct epochs e = {
	    .b = b, .whole = calloc(repeat, sizeof *e.whole), .waits = calloc(repeat, sizeof *e.waits)};
	hg_status status = e.whole && e.waits
	                       ? inputs_make(b, input_width(b), &in)
	                       : hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for %zu times", repeat);
	if (status == HG_OK)
		status = run_epochs(b, model, &in, &e);
	if (status == HG_OK && e.count)
		status = measure_step(b, model, &in, &step);
	if (status == HG_OK && e.count)
		report_epochs(b, model, &e, &step);
	inputs_free(&in);
	free(e.whole);
	free(e.waits);
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
	return models_run(b, run_model);
}
