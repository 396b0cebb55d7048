#include <math.h>

#include "doctor/replay.h"

/* A finding at an element of a result: the op at fault, the sum on its way, its largest addends and
 * the operands. All numbers are in the measure of the result, whatever power of two it is stored
 * with. */

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
static hg_status keep_running(struct hg__replay *replay, hg_finding *f, const struct hg__sum *sum,
                              const struct hg__half_sum *half, hg_running **running)
{
	void *memory = NULL;
	if (sum->count < 2 || f->cause == HG_CAUSE_UNDERFLOW)
		return HG_OK;
	HG__TRY(hg__page_take(replay->ctx, replay->pages, HG__RUNNING, sizeof(hg_running), &memory));
	f->runnings = hg__sum_running(sum, half->at, memory);
	f->running = *running = memory;
	return HG_OK;
}

static hg_status name_guilty(struct hg__replay *replay, const struct hg__result *r,
                             const struct hg__sum *sum, struct hg__found *found)
{
	hg_finding *f = &found->finding;
	const struct hg__attribution fault = {r->launch, r->backward, r->operand < 0 ? -1 : r->operand,
	                                      f->row,    f->col,      sum->alone,
	                                      f->wide};
	struct hg__part part;
	HG__TRY(hg__attribute(replay, &fault, &part));
	found->op = part.op;
	f->op = part.op->name;
	f->op_words = part.op->words;
	f->layer = part.layer;
	return hg__result_name(replay, r, &f->tensor);
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
	for (int64_t k = 0; k < sum->count && found->op->traits & HG__GRAPH; k++)
		f->terms -= sum->addend[k].is == HG_TERM_OWN || sum->addend[k].is == HG_TERM_BIAS;
}

hg_status hg__found_in(struct hg__replay *replay, struct hg__found *found,
                       const struct hg__result *r, int64_t row, int64_t col,
                       const struct hg__sum *sum, const struct hg__half_sum *half)
{
	hg_finding *f = &found->finding;
	found->event = r->event;
	found->line = hg__entry_of(replay, r->launch);
	found->value = r->value;
	f->node = r->launch->entry;
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
	HG__TRY(keep_running(replay, f, sum, half, &running));
	HG__TRY(hg__found_at(replay, found, &replay->rows[r->value], row, col));
	hg__name_head(replay, r->value, f);
	HG__TRY(name_guilty(replay, r, sum, found));
	count_terms(found, sum);
	HG__TRY(hg__tell_operands(replay, r, f));
	if (r->operand == HG__OUTPUT)
		tell_unscaled(f, running, replay->tape->value[r->value].shift);
	return HG_OK;
}
