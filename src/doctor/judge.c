#include <math.h>
#include <stdio.h>
#include <string.h>

#include "doctor/exam.h"

/* A node has run: did it make something bad of good operands? */

static int operands_faint(const struct hg__exam *exam, const struct hg__task *launch, int backward)
{
	const struct hg__node *node = launch->call.node;
	for (int i = 0; i < node->n_in; i++)
		if (node->in[i] >= 0 && launch->call.in[i].data && exam->value[node->in[i]].faint)
			return 1;
	return backward && exam->grad[node->out].faint;
}

/* ---- names ---- */

static hg_status describe(struct hg__exam *exam, const struct hg__result *r, hg_doctor_tensor *t)
{
	const struct hg__node *node = r->launch->call.node;
	const struct hg__entry *line = hg__entry_of(exam, r->launch);
	const struct hg__value *value = &exam->tape->value[r->value];
	const double scale = (double)exam->step.scale.scale;
	*t = (hg_doctor_tensor){.node = value->node,
	                        .backward = r->backward,
	                        .dtype = r->got.dtype,
	                        .rows = r->got.rows,
	                        .cols = r->got.cols};
	t->bound = r->backward ? hg__bound_of_gradient(value, scale) : value->bound;
	t->shift = r->operand == HG__OUTPUT ? value->shift : 0;
	t->verdict = r->backward ? hg__gradient_verdict(exam->tape, value) : node->verdict;
	for (int i = 0; i < 8; i++) {
		const int32_t in = i < node->n_in ? node->in[i] : -1;
		t->in[i] = in >= 0 ? exam->tape->value[in].node : -1;
	}
	HG__TRY(hg__result_name(exam, r, &t->name));
	HG__TRY(hg__page_text(exam->ctx, exam->pages, &t->op, "%s",
	                      line->title ? line->title : node->op->name));
	return hg__page_text(exam->ctx, exam->pages, &t->layer, "%s", node->scope);
}

/* ---- one result ---- */

/* wide.data NULL: nobody knows what it should be. good 0: some operands were bad, and of the
 * result only what is finite in the wide run, on the same operands, is this node's doing. */
static hg_status judge(struct hg__exam *exam, const struct hg__result *r, struct hg__sight *sight,
                       struct hg__stop *stop, int good)
{
	const int faint = operands_faint(exam, r->launch, r->backward),
	          noted = r->operand != HG__BETWEEN;
	struct hg__look look;
	hg_doctor_tensor tensor;
	int fades = 0;
	HG__TRY(hg__look_for(exam->ctx, &r->got, r->wide.data ? &r->wide : NULL, good, &look));
	if (noted) {
		HG__TRY(describe(exam, r, &tensor));
		HG__TRY(hg__note_tensor(exam, &tensor, &look, &sight->tensor));
	}
	if (r->wide.data && look.own)
		HG__TRY(hg__judge_loud(exam, r, &look, good));
	if (r->wide.data && exam->silent && good)
		HG__TRY(hg__judge_silent(exam, r, &look, faint, &fades));
	if (r->wide.data && exam->silent && good && !fades)
		HG__TRY(hg__judge_scaled(exam, r, &look, &fades));
	sight->bad = look.nonfinite;
	sight->count = r->got.rows * r->got.cols;
	sight->faint |= faint | fades;
	stop->bad += look.nonfinite;
	stop->count += sight->count;
	return HG_OK;
}

static struct hg__stop *next_stop(struct hg__exam *exam, const struct hg__task *launch,
                                  int backward)
{
	struct hg__stop *stop = &exam->stop[exam->stops];
	*stop = (struct hg__stop){launch, backward, 0, 0};
	return stop;
}

static int is_float_result(const struct hg__mat *mat)
{
	return mat->data && hg__is_float(mat->dtype);
}

hg_status hg__judge_forward(struct hg__exam *exam, const struct hg__task *launch)
{
	struct hg__stop *stop = next_stop(exam, launch, 0);
	struct hg__wide wide = {0};
	struct hg__result result = {
	    launch, exam->stops, 0, HG__OUTPUT, launch->call.node->out, launch->call.out, {0}};
	const int good = hg__operands_good(exam, launch, 0);
	int bad_statistics = 0;
	HG__TRY(hg__judge_statistics(exam, launch, &bad_statistics));
	hg_status status = hg__wide_open(&launch->call, hg__entry_of(exam, launch)->saves, 0, &wide);
	if (status >= 0)
		status = hg__wide_run(&wide, 0);
	if (!bad_statistics)
		result.wide = wide.call.out;
	if (status >= 0 && is_float_result(&result.got))
		status = judge(exam, &result, &exam->value[result.value], stop, good);
	hg__wide_close(&wide);
	exam->stops++;
	return status;
}

static hg_status judge_between(struct hg__exam *exam, const struct hg__task *launch,
                               const struct hg__wide *wide, int good, struct hg__stop *stop)
{
	struct hg__sight sight = {0};
	for (int i = 0; i < HG__MAX_AUX; i++) {
		const struct hg__mat *aux = &launch->call.aux[i];
		if (!(hg__entry_of(exam, launch)->saves & HG__BACK_AUX(i)) || !is_float_result(aux) ||
		    aux->dtype != HG_F16 || sight.bad)
			continue;
		const struct hg__result r = {
		    launch, exam->stops, 1, HG__BETWEEN, launch->call.node->out, *aux, wide->call.aux[i]};
		HG__TRY(judge(exam, &r, &sight, stop, good));
	}
	exam->between_bad = sight.bad != 0;
	return HG_OK;
}

hg_status hg__judge_backward(struct hg__exam *exam, const struct hg__task *launch,
                             struct hg__wide *wide, int good)
{
	const struct hg__node *node = launch->call.node;
	struct hg__stop *stop = next_stop(exam, launch, 1);
	HG__TRY(hg__wide_run(wide, 1));
	HG__TRY(judge_between(exam, launch, wide, good, stop));
	for (int i = 0; i < node->n_in; i++) {
		const struct hg__mat *din = &launch->call.din[i];
		if (!is_float_result(din))
			continue;
		const int32_t root = exam->tape->value[node->in[i]].root;
		const struct hg__result r = {launch, exam->stops, 1, i, root, *din, wide->call.din[i]};
		HG__TRY(judge(exam, &r, &exam->grad[root], stop, good && !exam->between_bad));
		exam->grad[root].from[0] = exam->grad[root].parts ? exam->grad[root].from[1] : -1;
		exam->grad[root].from[1] = launch->entry;
		exam->grad[root].parts++;
	}
	exam->stops++;
	return HG_OK;
}

/* The launch is the one that has just been judged. */
hg_status hg__judge_added(struct hg__exam *exam, const struct hg__task *launch, int operand,
                          const struct hg__mat *old)
{
	const int32_t root = exam->tape->value[launch->call.node->in[operand]].root;
	struct hg__sight *sight = &exam->grad[root];
	const struct hg__result r = {launch, exam->stops - 1,      1,  operand,
	                             root,   launch->add[operand], {0}};
	struct hg__parts parts = {.from = {sight->from[0], sight->from[1]}, .count = sight->parts};
	struct hg__look look;
	hg_doctor_tensor tensor;
	HG__TRY(hg__look_for(exam->ctx, &r.got, NULL, 1, &look));
	HG__TRY(describe(exam, &r, &tensor));
	HG__TRY(hg__note_tensor(exam, &tensor, &look, &sight->tensor));
	if (look.nonfinite && old->data)
		HG__TRY(hg__judge_parts(exam, &r, &look, old, &parts));
	sight->bad = look.nonfinite;
	return HG_OK;
}
