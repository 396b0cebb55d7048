#include <math.h>
#include <stdio.h>
#include <string.h>

#include "doctor/exam.h"

/* A node has run: did it make something bad of good operands? */

struct hg__mat hg__value_mat(const hg_tape *tape, int32_t value)
{
	const struct hg__value *v = &tape->value[value];
	return v->node < 0 ? v->tensor->mat : v->view.mat;
}

/* Backward reads what its call has; all else is no operand of it. */
int hg__operands_good(const struct hg__exam *exam, const struct hg__launch *launch, int backward)
{
	const struct hg__node *node = launch->call.node;
	if (node->graph && node->graph == exam->bad_graph)
		return 0;
	for (int i = 0; i < node->n_in; i++)
		if (node->in[i] >= 0 && launch->call.in[i].data && exam->value[node->in[i]].bad)
			return 0;
	for (int i = 0; i < node->n_in && backward; i++) /* what it is added to */
		if (launch->call.adds >> i & 1u && exam->grad[exam->tape->value[node->in[i]].root].bad)
			return 0;
	return !backward ||
	       !(exam->grad[node->out].bad || (launch->call.out.data && exam->value[node->out].bad));
}

static int operands_faint(const struct hg__exam *exam, const struct hg__launch *launch,
                          int backward)
{
	const struct hg__node *node = launch->call.node;
	for (int i = 0; i < node->n_in; i++)
		if (node->in[i] >= 0 && launch->call.in[i].data && exam->value[node->in[i]].faint)
			return 1;
	return backward && exam->grad[node->out].faint;
}

/* ---- names ---- */

static hg_status name_of(struct hg__exam *exam, const struct hg__result *r, const char **name)
{
	char text[160];
	const struct hg__value *value = &exam->tape->value[r->value];
	const char *prefix = r->operand == HG__OUTPUT    ? ""
	                     : r->operand == HG__BETWEEN ? "gradient inside "
	                                                 : "gradient of ";
	const char *own = value->kind == HG__PARAM
	                      ? value->param->name
	                      : hg__value_name(exam->tape, value, text, sizeof text);
	return hg__page_text(exam->ctx, exam->pages, name, "%s%s", prefix, own);
}

static hg_status describe(struct hg__exam *exam, const struct hg__result *r, hg_doctor_tensor *t)
{
	const struct hg__node *node = r->launch->call.node;
	const struct hg__line *line = hg__line_of(exam, r->launch);
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
	HG__TRY(name_of(exam, r, &t->name));
	HG__TRY(hg__page_text(exam->ctx, exam->pages, &t->op, "%s",
	                      line->title ? line->title : node->op->name));
	return hg__page_text(exam->ctx, exam->pages, &t->layer, "%s", node->scope);
}

/* ---- what is told of a finding ---- */

static void list_top(hg_finding *f, const struct hg__sum *sum)
{
	int64_t gathered = 0;
	f->along_columns = 1;
	for (int64_t k = 0; k < sum->count; k++) {
		const struct hg__addend *a = &sum->addend[k];
		const hg_term term = {a->row, a->col, a->factor, a->operand, a->factor * a->operand, a->is};
		int at = f->tops;
		f->along_columns &= a->row == sum->addend[0].row || a->is != HG_TERM_ADDEND;
		gathered += a->is == HG_TERM_ADDEND;
		while (at > 0 && fabs(f->top[at - 1].value) < fabs(term.value))
			at--;
		if (at == HG_DOCTOR_TOP)
			continue;
		f->tops += f->tops < HG_DOCTOR_TOP;
		for (int i = f->tops - 1; i > at; i--)
			f->top[i] = f->top[i - 1];
		f->top[at] = term;
	}
	f->along_columns &= gathered > 1;
}

/* The curve of a sum that went wrong on its way, or at its end. */
static hg_status keep_running(struct hg__exam *exam, hg_finding *f, const struct hg__sum *sum,
                              const struct hg__half_sum *half, hg_running **running)
{
	void *memory = NULL;
	if (sum->count < 2 || f->cause == HG_CAUSE_UNDERFLOW)
		return HG_OK;
	HG__TRY(hg__page_take(exam->ctx, exam->pages, HG__RUNNING, sizeof(hg_running), &memory));
	f->runnings = hg__sum_running(sum, half->at, memory);
	f->running = *running = memory;
	return HG_OK;
}

static hg_status name_guilty(struct hg__exam *exam, const struct hg__result *r,
                             const struct hg__sum *sum, struct hg__found *found)
{
	hg_finding *f = &found->finding;
	const struct hg__blame blame = {r->launch, r->backward, r->operand < 0 ? -1 : r->operand,
	                                f->row,    f->col,      sum->alone,
	                                f->wide};
	struct hg__part part;
	HG__TRY(hg__blame(exam, &blame, &part));
	found->op = part.op;
	f->op = part.op->name;
	f->op_words = part.op->words;
	f->layer = part.layer;
	return name_of(exam, r, &f->tensor);
}

/* What was found in a result that is stored x 2^-shift, as numbers of the result itself. */
static void tell_unscaled(hg_finding *f, hg_running *running, int shift)
{
	double *const number[] = {&f->got, &f->wide, &f->largest, &f->limit, &f->partial};
	f->shift = shift;
	for (int k = 0; k < f->runnings; k++) {
		running[k].half = ldexp(running[k].half, shift);
		running[k].wide = ldexp(running[k].wide, shift);
	}
	for (size_t i = 0; i < sizeof number / sizeof number[0]; i++)
		*number[i] = ldexp(*number[i], shift);
	for (int k = 0; k < f->tops; k++) {
		f->top[k].factor = ldexp(f->top[k].factor, shift);
		f->top[k].value = ldexp(f->top[k].value, shift);
	}
}

/* Addends of the op at fault: of an aggregation those that it gathers, whatever a fused node
 * adds to them. */
static void count_terms(struct hg__found *found, const struct hg__sum *sum)
{
	hg_finding *f = &found->finding;
	f->terms = sum->count;
	for (int64_t k = 0; k < sum->count && found->op == &hg__op_spmm; k++)
		f->terms -= sum->addend[k].is == HG_TERM_OWN || sum->addend[k].is == HG_TERM_BIAS;
}

hg_status hg__found_in(struct hg__exam *exam, struct hg__found *found, const struct hg__result *r,
                       int64_t row, int64_t col, const struct hg__sum *sum,
                       const struct hg__half_sum *half)
{
	hg_finding *f = &found->finding;
	found->stop = r->stop;
	found->line = hg__line_of(exam, r->launch);
	found->value = r->value;
	f->node = r->launch->line;
	f->backward = r->backward;
	f->limit = hg_dtype_get(r->got.dtype)->overflow;
	f->count = r->got.rows * r->got.cols;
	if (sum->accumulate != HG_ACC_F32 && f->cause != HG_CAUSE_UNDERFLOW) {
		f->partial_at = half->at;
		f->partial = half->partial;
		f->partial_factor = half->after;
	}
	list_top(f, sum);
	hg_running *running = NULL;
	HG__TRY(keep_running(exam, f, sum, half, &running));
	HG__TRY(hg__found_at(exam, found, &exam->rows[r->value], row, col));
	hg__name_head(exam, r->value, f);
	HG__TRY(name_guilty(exam, r, sum, found));
	count_terms(found, sum);
	HG__TRY(hg__tell_operands(exam, r, f));
	if (r->operand == HG__OUTPUT)
		tell_unscaled(f, running, exam->tape->value[r->value].shift);
	return HG_OK;
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

static struct hg__stop *next_stop(struct hg__exam *exam, const struct hg__launch *launch,
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

hg_status hg__judge_forward(struct hg__exam *exam, const struct hg__launch *launch)
{
	struct hg__stop *stop = next_stop(exam, launch, 0);
	struct hg__wide wide = {0};
	struct hg__result result = {
	    launch, exam->stops, 0, HG__OUTPUT, launch->call.node->out, launch->call.out, {0}};
	const int good = hg__operands_good(exam, launch, 0);
	int bad_statistics = 0;
	HG__TRY(hg__judge_statistics(exam, launch, &bad_statistics));
	hg_status status = hg__wide_open(&launch->call, hg__line_of(exam, launch)->saves, 0, &wide);
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

static hg_status judge_between(struct hg__exam *exam, const struct hg__launch *launch,
                               const struct hg__wide *wide, int good, struct hg__stop *stop)
{
	struct hg__sight sight = {0};
	for (int i = 0; i < HG__MAX_AUX; i++) {
		const struct hg__mat *aux = &launch->call.aux[i];
		if (!(hg__line_of(exam, launch)->saves & HG__BACK_AUX(i)) || !is_float_result(aux) ||
		    aux->dtype != HG_F16 || sight.bad)
			continue;
		const struct hg__result r = {
		    launch, exam->stops, 1, HG__BETWEEN, launch->call.node->out, *aux, wide->call.aux[i]};
		HG__TRY(judge(exam, &r, &sight, stop, good));
	}
	exam->between_bad = sight.bad != 0;
	return HG_OK;
}

hg_status hg__judge_backward(struct hg__exam *exam, const struct hg__launch *launch,
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
		exam->grad[root].from[1] = launch->line;
		exam->grad[root].parts++;
	}
	exam->stops++;
	return HG_OK;
}

/* The launch is the one that has just been judged. */
hg_status hg__judge_added(struct hg__exam *exam, const struct hg__launch *launch, int operand,
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
