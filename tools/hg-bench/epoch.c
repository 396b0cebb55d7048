#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/tape.h"
#include "halfgraph/step.h"
#include "memory.h"
#include "nn/train.h"
#include "passes.h"
#include "repeat.h"

/* hg-bench epoch, step: whole training epochs (forward, loss, backward, Adam) as hg_train runs
 * them, on the tapes that it has after every result that overflowed was replanned. Then its passes
 * are measured apart, and one more epoch runs with a time stamp after every op node, for the time
 * of each op. The peak of device memory is reported beside the tape's plan. */

#define WARM_UPS 3

struct inputs {
	hg_tensor *x;
	hg_graph *x_sparse;
	int32_t *label;
	uint8_t *mask;
};

static void inputs_free(struct inputs *in)
{
	hg_tensor_free(in->x);
	hg_graph_free(in->x_sparse);
	free(in->label);
	free(in->mask);
}

static uint64_t stream_of_seed(const struct bench *b, uint64_t k)
{
	return (uint64_t)b->options.seed + k;
}

/* `stored` features of each node, all with the same value, so that rows sum up to 1. */
static hg_status sparse_make(struct bench *b, int64_t width, hg_graph **graph)
{
	const int64_t n = b->csr.rows, m = n * b->stored;
	int64_t *ptr = calloc((size_t)n + 1, sizeof *ptr);
	int32_t *col = calloc((size_t)m, sizeof *col);
	float *value = calloc((size_t)m, sizeof *value);
	hg_status status = ptr && col && value ? HG_OK
	                                       : hg__fail(b->ctx, HG_ERR_NOMEM,
	                                                  "no memory for %lld features", (long long)m);
	for (int64_t i = 0; status == HG_OK && i <= n; i++)
		ptr[i] = i * b->stored;
	for (int64_t e = 0; status == HG_OK && e < m; e++) {
		col[e] =
		    (int32_t)edge_below((uint64_t)width, edge_uniform(stream_of_seed(b, 4), (uint64_t)e));
		value[e] = 1.0f / (float)b->stored;
	}
	if (status == HG_OK)
		status = hg_graph_from_csr(b->ctx, n, width, m, ptr, col, value, graph);
	free(ptr);
	free(col);
	free(value);
	return status;
}

static hg_status dense_make(struct bench *b, int64_t width, hg_tensor **x)
{
	static const struct fill_rule rule = {-1.0, 1.0, 0};
	HG__TRY(hg_tensor_create(b->ctx, b->policy->state, b->csr.rows, width, x));
	return b->device->fill(b->ctx, (*x)->mat, stream_of_seed(b, 2), &rule);
}

static hg_status inputs_make(struct bench *b, int64_t width, int64_t targets, struct inputs *in)
{
	in->label = calloc((size_t)targets, sizeof *in->label);
	in->mask = malloc((size_t)targets);
	if (!in->label || !in->mask)
		return hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for %lld labels", (long long)targets);
	memset(in->mask, 1, (size_t)targets);
	for (int64_t i = 0; i < targets; i++)
		in->label[i] = (int32_t)edge_below((uint64_t)b->classes,
		                                   edge_uniform(stream_of_seed(b, 3), (uint64_t)i));
	return b->stored && !b->options.dense && !b->options.widths
	           ? sparse_make(b, width, &in->x_sparse)
	           : dense_make(b, width, &in->x);
}

/* For repeat_measure. */
static hg_status steps_run(void *step, int64_t count)
{
	return hg_step_run(step, count);
}

/* ---- the time of each op ---- */

struct profile {
	struct bench *b;
	struct marks *marks;
	int count, capacity;
	struct {
		int32_t line;
		int backward;
	} * at; /* the tape line that ran before mark k + 1 */
};

static hg_status profile_note(void *user, const hg_tape *tape, int32_t line, int backward,
                              const struct hg__call *call)
{
	struct profile *p = user;
	(void)tape;
	(void)call;
	if (p->count + 2 >= p->capacity)
		return hg__fail(p->b->ctx, HG_ERR_INTERNAL, "profile: more than %d nodes ran", p->capacity);
	p->at[p->count].line = line;
	p->at[p->count].backward = backward;
	return p->b->device->mark(p->b->ctx, p->marks, ++p->count);
}

static hg_status profile_run(struct profile *p, hg_train *train)
{
	const struct hg__hook hook = {profile_note, p};
	HG__TRY(hg_context_synchronize(p->b->ctx));
	hg__tape_hook(train->tape, &hook);
	p->count = 0;
	hg_status status = p->b->device->mark(p->b->ctx, p->marks, 0);
	if (status == HG_OK)
		status = hg_tape_forward(train->tape);
	if (status == HG_OK)
		status = hg_tape_backward(train->tape);
	hg__tape_hook(train->tape, NULL);
	HG__TRY(status);
	HG__TRY(hg_optim_step(train->optim));
	return p->b->device->mark(p->b->ctx, p->marks, p->count + 1);
}

/* Report one part of the epoch as a line of its own. */
static hg_status part_report(struct profile *p, const hg_tape *tape, int k, double epoch_ms,
                             double *sum)
{
	char name[96] = "";
	double ms;
	struct result r = result_new("part", name, p->b->policy->name);
	HG__TRY(p->b->device->elapsed(p->b->ctx, p->marks, k, k + 1, &ms));
	if (k < p->count) {
		const struct hg__node *node = &tape->recording.entry[p->at[k].line].node;
		snprintf(name, sizeof name, "%.40s%s%.40s%s", node->scope, *node->scope ? "/" : "",
		         node->op->name, p->at[k].backward ? " back" : "");
	} else {
		snprintf(name, sizeof name, "optimiser");
	}
	char note[32];
	snprintf(note, sizeof note, "%.1f %% of the epoch", 100 * ms / epoch_ms);
	r.ms = (struct timing){ms, ms, ms, 1};
	r.note = note;
	*sum += ms;
	report_result(p->b, &r);
	return HG_OK;
}

static hg_status profile_parts(struct profile *p, hg_train *train, double epoch_ms)
{
	double sum = 0;
	char note[64];
	struct result r = result_new("parts", "sum", p->b->policy->name);
	/* the first run is not reported: it makes the choices that are made at a first run */
	HG__TRY(profile_run(p, train));
	HG__TRY(profile_run(p, train));
	for (int k = 0; k <= p->count; k++)
		HG__TRY(part_report(p, train->tape, k, epoch_ms, &sum));
	snprintf(note, sizeof note, "the epoch takes %.4f ms: %.2f of the sum", epoch_ms,
	         epoch_ms / sum);
	r.ms = (struct timing){sum, sum, sum, 1};
	r.note = note;
	report_result(p->b, &r);
	return HG_OK;
}

static hg_status profile(struct bench *b, hg_train *train, double epoch_ms)
{
	struct profile p = {.b = b, .capacity = 2 * (int)train->tape->recording.entries + 4};
	p.at = calloc((size_t)p.capacity, sizeof *p.at);
	hg_status status = p.at ? b->device->marks_create(b->ctx, p.capacity, &p.marks)
	                        : hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for a profile");
	if (status == HG_OK)
		status = profile_parts(&p, train, epoch_ms);
	b->device->marks_free(p.marks);
	free(p.at);
	return status;
}

/* ---- one model ---- */

static hg_train_config config_of(const struct bench *b, const char *model, int heads, int64_t width)
{
	hg_train_config c = hg_train_config_default(model);
	c.model.in_features = width;
	c.model.out_features = b->classes;
	c.model.layers = (int)b->options.layers;
	c.model.heads = heads;
	c.model.hidden = (int)b->options.hidden / (hg_model_get_info(model)->heads ? heads : 1);
	c.model.dropout = c.model.attention_dropout = (float)b->options.dropout;
	c.model.readout = b->options.readout - 1;
	if (b->options.readout)
		c.model.readout_layers = HG_READOUT_LAST;
	c.model.aggregate = b->options.aggregate ? HG_NORM_RIGHT : HG_NORM_NONE;
	c.model.lambda = (float)b->options.lambda;
	c.policy = *b->policy;
	c.epochs = c.eval_every = WARM_UPS;
	c.patience = 0;
	c.step.observe_every = (const int[]){0, -1, 1}[b->options.observe];
	return c;
}

/* The results of a run besides its time. */
struct outcome {
	size_t peak;
	double loss;
	int64_t lost;   /* steps that changed no weight */
	int64_t rounds; /* calls of hg_train_run, each followed by a measurement */
	hg_train_report report;
	hg_step_launch launch;
	struct memory_plan plan;
};

static hg_status outcome_get(struct bench *b, const hg_train *train, const struct inputs *in,
                             struct outcome *o)
{
	HG__TRY(hg_step_get_launch(train->step, &o->launch));
	o->plan = memory_plan_of(b, train, in->x, in->x_sparse);
	o->peak = b->ctx->peak_bytes;
	return HG_OK;
}

static void outcome_note(const struct outcome *o, int sparse, char *note, size_t size)
{
	const double mib = 1.0 / 1048576;
	int used =
	    snprintf(note, size, "peak %.1f MiB, planned %.1f; loss %.4g%s", (double)o->peak * mib,
	             (double)o->plan.total * mib, o->loss, sparse ? "; sparse features" : "");
	if (o->launch.captured)
		used += snprintf(note + used, size - (size_t)used,
		                 "; %lld operations captured, %d steps a launch",
		                 (long long)o->launch.operations, o->launch.per_launch);
	if (o->lost)
		used += snprintf(note + used, size - (size_t)used, "; %lld steps LOST", (long long)o->lost);
	if (o->report.rescaled || o->report.promoted)
		snprintf(note + used, size - (size_t)used, "; %d results stored x 2^-k, %d in f32",
		         o->report.rescaled, o->report.promoted);
}

static void outcome_report(struct bench *b, const char *model, const struct timing *ms,
                           const struct outcome *o, int sparse)
{
	char note[256];
	struct result r = result_new("epoch", model, b->policy->name);
	outcome_note(o, sparse, note, sizeof note);
	r.ms = *ms;
	r.features = b->options.hidden;
	r.note = note;
	const char *const names[] = {"hidden",     "layers",   "peak_bytes", "planned_bytes", "loss",
	                             "steps_lost", "captured", "per_launch", "rescaled",      "in_f32"};
	const double figures[] = {(double)b->options.hidden,
	                          (double)b->options.layers,
	                          (double)o->peak,
	                          (double)o->plan.total,
	                          o->loss,
	                          (double)o->lost,
	                          (double)o->launch.captured,
	                          (double)o->launch.per_launch,
	                          (double)o->report.rescaled,
	                          (double)o->report.promoted};
	for (int i = 0; i < RESULT_MORE; i++) {
		r.more_name[i] = names[i];
		r.more[i] = figures[i];
	}
	report_result(b, &r);
}

/* hg_train_run comes first, because that is what users call: it evaluates, captures, and replans
 * its tapes if a result does not fit in f16 or the weights outgrow their bounds. Then its step is
 * measured alone, which does none of this: once it overflows, every later step does so as well. In
 * that case hg_train_run continues, and the measurement is repeated. The steps that were skipped in
 * the discarded measurement are not counted, because a user of hg_train_run would not lose them.
 *
 * A round without a new tape changes nothing, and a result is replanned at most twice: rescaled,
 * then in f32. So there are at most two rounds per tape line. */
static int ends_well(const struct bench *b, const hg_step_info *last)
{
	return !(b->policy->replan && last->reason == HG_STEP_SKIPPED_FORWARD) && !last->outgrown;
}

static hg_status round_measure(struct bench *b, hg_train *train, struct outcome *o,
                               struct timing *ms, int *settled)
{
	hg_step_info before = HG_STEP_INFO_INIT, after = HG_STEP_INFO_INIT;
	HG__TRY(hg_train_run(train, &o->report));
	o->lost += o->report.steps_skipped;
	HG__TRY(hg_optim_info(train->optim, &before));
	HG__TRY(repeat_measure(b, steps_run, train->step, ms));
	HG__TRY(hg_step_read(train->step, 0, &o->loss, &after));
	*settled = ends_well(b, &after) || ++o->rounds > 2 * (int64_t)train->tape->recording.entries;
	o->lost += *settled ? after.skipped - before.skipped : 0;
	return HG_OK;
}

static hg_status train_measure(struct bench *b, const char *model, hg_train *train,
                               const struct inputs *in)
{
	struct outcome outcome = {.report = HG_TRAIN_REPORT_INIT, .launch = HG_STEP_LAUNCH_INIT};
	struct timing ms;
	for (int settled = 0; !settled;)
		HG__TRY(round_measure(b, train, &outcome, &ms, &settled));
	HG__TRY(outcome_get(b, train, in, &outcome));
	outcome_report(b, model, &ms, &outcome, in->x_sparse != NULL);
	memory_report(b, model, &outcome.plan, outcome.peak);
	HG__TRY(passes_report(b, model, train, &ms,
	                      outcome.launch.captured ? outcome.launch.per_launch : 0));
	return profile(b, train, ms.median);
}

static hg_status model_run(struct bench *b, const char *model, int heads, int64_t width)
{
	const hg_train_config config = config_of(b, model, heads, width);
	struct inputs in = {.x = NULL};
	hg_train *train = NULL;
	b->ctx->peak_bytes = b->ctx->current_bytes; /* the peak of training, not of making the graph */
	const int64_t targets = b->options.readout ? hg_graph_batch(b->graph) : b->csr.rows;
	hg_status status = inputs_make(b, width, targets, &in);
	hg_train_data data = HG_TRAIN_DATA_INIT;
	data.input.graph = b->graph;
	data.input.x = in.x;
	data.input.x_sparse = in.x_sparse;
	data.input.x_amax = 1.0;
	data.labels = in.label;
	data.train_mask = in.mask;
	if (status == HG_OK)
		status = hg_train_create(b->ctx, &config, &data, &train);
	if (status >= 0)
		status = train_measure(b, model, train, &in);
	hg_train_free(train);
	inputs_free(&in);
	if (status != HG_ERR_NOMEM)
		return status;
	report_absent(b, "epoch", model, hg_context_error(b->ctx)); /* a result, too */
	return HG_OK;
}

static hg_status policies_run(struct bench *b, const char *model)
{
	const int heads = b->options.head_counts ? (int)b->options.heads[0] : 1;
	for (int p = 0; p < b->options.policies; p++) {
		b->policy = &b->options.policy[p];
		HG__TRY(
		    model_run(b, model, heads, b->options.widths ? b->options.features[0] : b->features));
	}
	return HG_OK;
}

hg_status bench_epoch(struct bench *b)
{
	const char *wanted = b->options.model;
	reorder_free(b); /* the peak is that of training alone */
	if (b->classes < 2 || b->features < 1)
		return hg__fail(b->ctx, HG_ERR_ARG, "%s has %lld features and %d classes: nothing to train",
		                b->graph_name, (long long)b->features, b->classes);
	for (const char *const *name = hg_model_names(); *name; name++)
		if (strcmp(wanted, "all") == 0 || strcmp(wanted, *name) == 0)
			HG__TRY(policies_run(b, *name));
	return HG_OK;
}
