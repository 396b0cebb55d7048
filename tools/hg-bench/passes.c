/* The passes of a training step apart. Where steps are captured,
 *
 *     forward   = t(forward)
 *     backward  = t(forward, backward) - t(forward)
 *     optimiser = t(step) - t(forward, backward)
 *
 * and each t is the time of one in a row of many, captured and launched as the steps are: nothing
 * lies between two passes that does not lie there in a step. Else a mark lies between the passes of
 * one step after another. The optimiser is the rest of a step: finite check, update, loss scale,
 * and where steps are captured what is observed in one of 16. The loss is part of the forward
 * pass. */
#include "passes.h"

#include <stdio.h>
#include <stdlib.h>

#include "autograd/tape.h"
#include "core/capture.h"
#include "repeat.h"

/* ---- captured passes ---- */

struct pass {
	hg_tape *tape;
	int backward;                 /* 1: with the backward pass */
	int64_t each;                 /* passes of a full launch */
	struct hg__capture one, full; /* `full` is empty where `each` is 1 */
};

static hg_status queue(const struct pass *p, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		HG__TRY(hg_tape_forward(p->tape));
		if (p->backward)
			HG__TRY(hg_tape_backward(p->tape));
	}
	return HG_OK;
}

static hg_status queue_one(void *user)
{
	return queue(user, 1);
}

static hg_status queue_full(void *user)
{
	const struct pass *p = user;
	return queue(p, p->each);
}

/* For repeat_measure. */
static hg_status pass_run(void *what, int64_t count)
{
	struct pass *p = what;
	hg_context *ctx = p->tape->params->ctx;
	for (int64_t done = 0; done < count;) {
		const int full = hg__captured(ctx, &p->full) && count - done >= p->each;
		HG__TRY(ctx->backend->work_launch(ctx, full ? p->full.work : p->one.work));
		done += full ? p->each : 1;
	}
	return HG_OK;
}

/* What is captured has not run, so the tape is as before a forward pass. */
static hg_status capture(struct pass *p)
{
	hg_context *ctx = p->tape->params->ctx;
	hg_status status = hg__capture(ctx, queue_one, p, &p->one);
	if (status >= 0 && p->each > 1)
		status = hg__capture(ctx, queue_full, p, &p->full);
	p->tape->stage = HG__COMPILED;
	return status;
}

static hg_status pass_measure(struct bench *b, const hg_train *train, int backward, int per_launch,
                              struct timing *ms)
{
	struct pass p = {.tape = train->tape, .backward = backward, .each = per_launch};
	hg_status status = queue(&p, 1);
	if (status >= 0)
		status = capture(&p);
	if (status >= 0)
		status = repeat_measure(b, pass_run, &p, ms);
	hg__capture_drop(b->ctx, &p.one);
	hg__capture_drop(b->ctx, &p.full);
	return status;
}

/* ---- passes in turn ---- */

enum { PASSES = 3 };
static const char *const pass_names[PASSES] = {"forward", "backward", "optimiser"};

static hg_status in_turn(struct bench *b, hg_train *train, struct marks *marks, double ms[PASSES])
{
	HG__TRY(hg_context_synchronize(b->ctx));
	HG__TRY(b->device->mark(b->ctx, marks, 0));
	HG__TRY(hg_tape_forward(train->tape));
	HG__TRY(b->device->mark(b->ctx, marks, 1));
	HG__TRY(hg_tape_backward(train->tape));
	HG__TRY(b->device->mark(b->ctx, marks, 2));
	HG__TRY(hg_optim_step(train->optim));
	HG__TRY(b->device->mark(b->ctx, marks, PASSES));
	for (int k = 0; k < PASSES; k++)
		HG__TRY(b->device->elapsed(b->ctx, marks, k, k + 1, &ms[k]));
	return HG_OK;
}

/* The first run is not measured: it makes the choices that are made at a first run. ms: [PASSES] of
 * `repeat` each. */
static hg_status samples_take(struct bench *b, hg_train *train, struct marks *marks, double *ms)
{
	const int64_t repeat = b->options.repeat;
	double one[PASSES];
	HG__TRY(in_turn(b, train, marks, one));
	for (int64_t i = 0; i < repeat; i++) {
		HG__TRY(in_turn(b, train, marks, one));
		for (int k = 0; k < PASSES; k++)
			ms[k * repeat + i] = one[k];
	}
	return HG_OK;
}

static hg_status turns_measure(struct bench *b, hg_train *train, struct timing passes[PASSES])
{
	const int64_t repeat = b->options.repeat;
	struct marks *marks = NULL;
	double *ms = calloc((size_t)(PASSES * repeat), sizeof *ms);
	hg_status status = ms ? b->device->marks_create(b->ctx, PASSES + 1, &marks)
	                      : hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for the passes");
	if (status == HG_OK)
		status = samples_take(b, train, marks, ms);
	for (int k = 0; status == HG_OK && k < PASSES; k++)
		passes[k] = timing_of(ms + k * repeat, (int)repeat);
	b->device->marks_free(marks);
	free(ms);
	return status;
}

/* ---- differences ---- */

/* Of the least times, which other work on the machine disturbs least. */
static struct timing difference(const struct timing *all, const struct timing *without)
{
	const double ms = all->least - without->least;
	return (struct timing){ms, ms, ms, 1};
}

static hg_status differences_measure(struct bench *b, const hg_train *train,
                                     const struct timing *step, int per_launch,
                                     struct timing passes[PASSES])
{
	struct timing both;
	HG__TRY(pass_measure(b, train, 0, per_launch, &passes[0]));
	HG__TRY(pass_measure(b, train, 1, per_launch, &both));
	passes[1] = difference(&both, &passes[0]);
	passes[2] = difference(step, &both);
	return HG_OK;
}

/* ---- the report ---- */

static void pass_report(struct bench *b, const char *name, const struct timing *ms, double step_ms)
{
	char note[48];
	struct result r = result_new("pass", name, b->policy->name);
	snprintf(note, sizeof note, "%.1f %% of the step", 100 * ms->median / step_ms);
	r.ms = *ms;
	r.features = b->options.hidden;
	r.note = note;
	r.more_name[0] = "hidden";
	r.more[0] = (double)b->options.hidden;
	r.more_name[1] = "layers";
	r.more[1] = (double)b->options.layers;
	r.more_name[2] = "of_step";
	r.more[2] = ms->median / step_ms;
	report_result(b, &r);
}

hg_status passes_report(struct bench *b, const char *model, hg_train *train,
                        const struct timing *step, int per_launch)
{
	struct timing passes[PASSES];
	HG__TRY(per_launch ? differences_measure(b, train, step, per_launch, passes)
	                   : turns_measure(b, train, passes));
	for (int k = 0; k < PASSES; k++) {
		char name[96];
		snprintf(name, sizeof name, "%.40s %s", model, pass_names[k]);
		if (passes[k].median > 0)
			pass_report(b, name, &passes[k], step->median);
		else
			report_absent(b, "pass", name, "less than what the measurement varies by");
	}
	return HG_OK;
}
