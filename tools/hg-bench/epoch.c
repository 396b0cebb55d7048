#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/tape.h"
#include "halfgraph/step.h"
#include "inputs.h"
#include "memory.h"
#include "nn/train.h"
#include "passes.h"
#include "repeat.h"

/* hg-bench epoch, step: whole training epochs (forward, loss, backward, Adam) as hg_train runs
 * them, on the tapes that it has after every result that overflowed was replanned. Then its passes
 * are measured apart, and one more epoch runs with a time stamp after every op node, for the time
 * of each op. The peak of device memory is reported beside the tape's plan. */

#define WARM_UPS 3

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
	HG__TRY(repeat_measure(b, repeat_steps, train->step, ms));
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

static hg_status model_run(struct bench *b, const char *model)
{
	const int64_t width = input_width(b);
	hg_train_config config = train_config_of(b, model, width);
	struct inputs in = {.x = NULL};
	hg_train *train = NULL;
	b->ctx->peak_bytes = b->ctx->current_bytes; /* the peak of training, not of making the graph */
	hg_status status = inputs_make(b, width, &in);
	const hg_train_data data = train_data_of(b, &in);
	config.epochs = config.eval_every = WARM_UPS;
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

hg_status bench_epoch(struct bench *b)
{
	reorder_free(b); /* the peak is that of training alone */
	return models_run(b, model_run);
}
