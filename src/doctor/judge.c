#include <math.h>
#include <stdio.h>
#include <string.h>

#include "doctor/replay.h"

/* A node has run: did it make something bad of good operands? */

static int operands_underflowed(const struct hg__replay *replay, const struct hg__task *launch,
                                int backward)
{
	const struct hg__node *node = launch->call.node;
	for (int i = 0; i < node->n_in; i++)
		if (node->in[i] >= 0 && launch->call.in[i].data && replay->value[node->in[i]].underflowed)
			return 1;
	return backward && replay->grad[node->out].underflowed;
}

/* ---- names ---- */

static hg_status describe(struct hg__replay *replay, const struct hg__result *r,
                          hg_doctor_tensor *t)
{
	const struct hg__node *node = r->launch->call.node;
	const struct hg__entry *line = hg__entry_of(replay, r->launch);
	const struct hg__value *value = &replay->tape->value[r->value];
	const double scale = (double)replay->step.scale.scale;
	*t = (hg_doctor_tensor){.node = value->node,
	                        .backward = r->backward,
	                        .dtype = r->got.dtype,
	                        .rows = r->got.rows,
	                        .cols = r->got.cols};
	t->bound =
	    r->backward ? hg__bound_of_gradient(value, scale) : value->known[HG__ASSUMED].largest;
	t->shift = r->operand == HG__OUTPUT ? value->shift : 0;
	t->verdict = r->backward ? hg__gradient_verdict(replay->tape, value) : node->verdict;
	for (int i = 0; i < 8; i++) {
		const int32_t in = i < node->n_in ? node->in[i] : -1;
		t->in[i] = in >= 0 ? replay->tape->value[in].node : -1;
	}
	HG__TRY(hg__result_name(replay, r, &t->name));
	HG__TRY(hg__page_text(replay->ctx, replay->pages, &t->op, "%s",
	                      line->title ? line->title : node->op->name));
	return hg__page_text(replay->ctx, replay->pages, &t->layer, "%s", node->scope);
}

/* ---- one result ---- */

/* wide.data NULL: nobody knows what it should be. good 0: some operands were bad, and of the
 * result only what is finite in the wide run, on the same operands, is this node's doing. */
static hg_status judge(struct hg__replay *replay, const struct hg__result *r,
                       struct hg__value_info *info, struct hg__event *event, int good)
{
	const int underflowed = operands_underflowed(replay, r->launch, r->backward),
	          noted = r->operand != HG__BETWEEN;
	struct hg__look look;
	hg_doctor_tensor tensor;
	int underflows = 0;
	HG__TRY(hg__look_for(replay->ctx, &r->got, r->wide.data ? &r->wide : NULL, good, &look));
	if (noted) {
		HG__TRY(describe(replay, r, &tensor));
		HG__TRY(hg__note_tensor(replay, &tensor, &look, &info->tensor));
	}
	if (r->wide.data && look.own)
		HG__TRY(hg__judge_nonfinite(replay, r, &look, good));
	if (r->wide.data && replay->silent && good)
		HG__TRY(hg__judge_silent(replay, r, &look, underflowed, &underflows));
	if (r->wide.data && replay->silent && good && !underflows)
		HG__TRY(hg__judge_scaled(replay, r, &look, &underflows));
	info->bad = look.nonfinite;
	info->count = r->got.rows * r->got.cols;
	info->underflowed |= underflowed | underflows;
	event->bad += look.nonfinite;
	event->count += info->count;
	return HG_OK;
}

static struct hg__event *next_event(struct hg__replay *replay, const struct hg__task *launch,
                                    int backward)
{
	struct hg__event *event = &replay->event[replay->events];
	*event = (struct hg__event){launch, backward, 0, 0};
	return event;
}

static int is_float_result(const struct hg__mat *mat)
{
	return mat->data && hg__is_float(mat->dtype);
}

hg_status hg__judge_forward(struct hg__replay *replay, const struct hg__task *launch)
{
	struct hg__event *event = next_event(replay, launch, 0);
	struct hg__wide wide = {0};
	struct hg__result result = {
	    launch, replay->events, 0, HG__OUTPUT, launch->call.node->out, launch->call.out, {0}};
	const int good = hg__operands_good(replay, launch, 0);
	int bad_statistics = 0;
	HG__TRY(hg__judge_statistics(replay, launch, &bad_statistics));
	hg_status status = hg__wide_open(&launch->call, hg__entry_of(replay, launch)->saves, 0, &wide);
	if (status >= 0)
		status = hg__wide_run(&wide, 0);
	if (!bad_statistics)
		result.wide = wide.call.out;
	if (status >= 0 && is_float_result(&result.got))
		status = judge(replay, &result, &replay->value[result.value], event, good);
	hg__wide_close(&wide);
	replay->events++;
	return status;
}

static hg_status judge_between(struct hg__replay *replay, const struct hg__task *launch,
                               const struct hg__wide *wide, int good, struct hg__event *event)
{
	struct hg__value_info info = {0};
	for (int i = 0; i < HG__MAX_AUX; i++) {
		const struct hg__mat *aux = &launch->call.aux[i];
		if (!(hg__entry_of(replay, launch)->saves & HG__BACK_AUX(i)) || !is_float_result(aux) ||
		    aux->dtype != HG_F16 || info.bad)
			continue;
		const struct hg__result r = {launch,           replay->events,         1,
		                             HG__BETWEEN,      launch->call.node->out, *aux,
		                             wide->call.aux[i]};
		HG__TRY(judge(replay, &r, &info, event, good));
	}
	replay->between_bad = info.bad != 0;
	return HG_OK;
}

hg_status hg__judge_backward(struct hg__replay *replay, const struct hg__task *launch,
                             struct hg__wide *wide, int good)
{
	const struct hg__node *node = launch->call.node;
	struct hg__event *event = next_event(replay, launch, 1);
	HG__TRY(hg__wide_run(wide, 1));
	HG__TRY(judge_between(replay, launch, wide, good, event));
	for (int i = 0; i < node->n_in; i++) {
		const struct hg__mat *din = &launch->call.din[i];
		if (!is_float_result(din))
			continue;
		const int32_t root = replay->tape->value[node->in[i]].root;
		const struct hg__result r = {launch, replay->events, 1, i, root, *din, wide->call.din[i]};
		HG__TRY(judge(replay, &r, &replay->grad[root], event, good && !replay->between_bad));
		replay->grad[root].from[0] = replay->grad[root].parts ? replay->grad[root].from[1] : -1;
		replay->grad[root].from[1] = launch->entry;
		replay->grad[root].parts++;
	}
	replay->events++;
	return HG_OK;
}

/* The launch is the one that has just been judged. */
hg_status hg__judge_added(struct hg__replay *replay, const struct hg__task *launch, int operand,
                          const struct hg__mat *old)
{
	const int32_t root = replay->tape->value[launch->call.node->in[operand]].root;
	struct hg__value_info *info = &replay->grad[root];
	const struct hg__result r = {launch, replay->events - 1,   1,  operand,
	                             root,   launch->add[operand], {0}};
	struct hg__parts parts = {.from = {info->from[0], info->from[1]}, .count = info->parts};
	struct hg__look look;
	hg_doctor_tensor tensor;
	HG__TRY(hg__look_for(replay->ctx, &r.got, NULL, 1, &look));
	HG__TRY(describe(replay, &r, &tensor));
	HG__TRY(hg__note_tensor(replay, &tensor, &look, &info->tensor));
	if (look.nonfinite && old->data)
		HG__TRY(hg__judge_parts(replay, &r, &look, old, &parts));
	info->bad = look.nonfinite;
	return HG_OK;
}
