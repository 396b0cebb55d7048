#include "doctor/finding.h"

#include <math.h>

/* ---- a new finding ---- */

struct hg__finding *hg__finding_new(struct hg__replay *replay, enum hg__finding_kind kind,
                                    hg_cause cause)
{
	if (replay->findings[kind] == replay->most_findings)
		return NULL;
	struct hg__finding *finding = &replay->finding[kind][replay->findings[kind]++];
	*finding = (struct hg__finding){.value = -1};
	finding->reported = (hg_finding){.size = sizeof finding->reported,
	                                 .cause = cause,
	                                 .step = replay->step.step,
	                                 .node = -1,
	                                 .op = "",
	                                 .layer = "",
	                                 .tensor = "",
	                                 .row_is = HG_ROW_NODE,
	                                 .edge_row = -1,
	                                 .edge_col = -1,
	                                 .evaluation = replay->evaluation,
	                                 .head = -1,
	                                 .head_of = "",
	                                 .grown = "",
	                                 .got = NAN,
	                                 .wide = NAN,
	                                 .largest = NAN,
	                                 .limit = hg_dtype_get(HG_F16)->overflow,
	                                 .bad = 1,
	                                 .count = 1,
	                                 .partial_factor = 1.0,
	                                 .scale = (double)replay->step.scale.scale,
	                                 .sentence = "",
	                                 .op_words = ""};
	return finding;
}

hg_status hg__finding_set_element(struct hg__replay *replay, struct hg__finding *finding,
                                  const struct hg__rows *rows, int64_t row, int64_t col)
{
	hg_finding *f = &finding->reported;
	f->row_is = rows->kind;
	f->row = row;
	f->col = col;
	return rows->kind == HG_ROW_EDGE && rows->graph
	           ? hg__edge_ends(replay->ctx, rows->graph, row, &f->edge_row, &f->edge_col)
	           : HG_OK;
}

/* ---- the sum behind the element ---- */

/* NaN is as bad as infinity. */
static double size_of(const hg_term *term)
{
	return isnan(term->value) ? (double)INFINITY : fabs(term->value);
}

/* Inserts the term and its edge into the list of the largest ones, in falling order. */
static void insert_term(hg_finding *f, const hg_term *term, const hg_attended_edge *edge)
{
	int at = f->tops;
	while (at > 0 && size_of(&f->top[at - 1]) < size_of(term))
		at--;
	if (at == HG_DOCTOR_TOP)
		return;
	f->tops += f->tops < HG_DOCTOR_TOP;
	for (int i = f->tops - 1; i > at; i--) {
		f->top[i] = f->top[i - 1];
		f->edge[i] = f->edge[i - 1];
	}
	f->top[at] = *term;
	f->edge[at] = *edge;
}

static void list_largest_terms(hg_finding *f, const struct hg__sum *sum)
{
	const hg_attended_edge none = {-1, -1, -1, NAN, NAN};
	int64_t addends = 0;
	f->along_columns = 1;
	f->attended = sum->attended;
	f->has_bad_score = sum->has_bad_score;
	f->bad_score = sum->bad_score;
	for (int64_t k = 0; k < sum->count; k++) {
		const struct hg__addend *a = &sum->addend[k];
		const hg_term term = {a->row, a->col, a->factor, a->operand, a->factor * a->operand, a->is};
		f->along_columns &= a->row == sum->addend[0].row || a->is != HG_TERM_ADDEND;
		addends += a->is == HG_TERM_ADDEND;
		insert_term(f, &term, sum->attended && a->is == HG_TERM_ADDEND ? &a->edge : &none);
	}
	f->along_columns &= addends > 1;
}

/* Terms of the op at fault alone: of an aggregation, without what a fused chain adds to it. */
static void count_terms(struct hg__finding *finding, const struct hg__sum *sum)
{
	hg_finding *f = &finding->reported;
	f->terms = sum->count;
	for (int64_t k = 0; k < sum->count && finding->op->traits & HG__GRAPH; k++)
		f->terms -= sum->addend[k].is == HG_TERM_OWN || sum->addend[k].is == HG_TERM_BIAS;
}

/* The curve of the running sum, unless the fault is not in the sum. */
static hg_status keep_curve(struct hg__replay *replay, hg_finding *f, const struct hg__sum *sum,
                            const struct hg__f16_sum *f16, hg_running **running)
{
	void *memory = NULL;
	if (sum->count < 2 || f->cause == HG_CAUSE_UNDERFLOW)
		return HG_OK;
	HG__TRY(hg__report_alloc(replay->ctx, replay->memory, HG__CURVE_POINTS, sizeof(hg_running),
	                         &memory));
	f->runnings = hg__sum_curve(sum, f16->partial_at, memory);
	f->running = *running = memory;
	return HG_OK;
}

/* ---- the whole description ---- */

static hg_status name_op_at_fault(struct hg__replay *replay, const struct hg__result *r,
                                  const struct hg__sum *sum, struct hg__finding *finding)
{
	hg_finding *f = &finding->reported;
	const struct hg__fault fault = {.task = r->task,
	                                .backward = r->backward,
	                                .operand = r->operand < 0 ? -1 : r->operand,
	                                .row = f->row,
	                                .col = f->col,
	                                .before_epilogue = sum->before_epilogue,
	                                .limit = f->limit};
	struct hg__origin origin;
	HG__TRY(hg__attribute(replay, &fault, &origin));
	finding->op = origin.op;
	f->op = origin.op->name;
	f->op_words = origin.op->words;
	f->over_edges = (hg__about(origin.op)->traits & HG__SUMS_EDGES) != 0;
	f->layer = origin.layer;
	return hg__result_name(replay, r, &f->tensor);
}

/* Of a result that is stored x 2^-shift, all numbers become those of the result itself. */
static void undo_shift(hg_finding *f, hg_running *running, int shift)
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

hg_status hg__finding_describe(struct hg__replay *replay, struct hg__finding *finding,
                               const struct hg__result *r, int64_t row, int64_t col,
                               const struct hg__sum *sum, const struct hg__f16_sum *f16)
{
	hg_finding *f = &finding->reported;
	hg_running *running = NULL;
	finding->position = r->position;
	finding->entry = hg__entry_of(replay, r->task);
	finding->value = r->value;
	f->node = r->task->entry;
	f->backward = r->backward;
	f->limit = hg_dtype_get(r->stored.dtype)->overflow;
	f->count = r->stored.rows * r->stored.cols;
	if (sum->accumulate != HG_ACC_F32 && f->cause != HG_CAUSE_UNDERFLOW) {
		f->partial_at = f16->partial_at;
		f->partial = f16->partial;
		f->partial_factor = f16->partial_factor;
	}
	list_largest_terms(f, sum);
	HG__TRY(keep_curve(replay, f, sum, f16, &running));
	HG__TRY(hg__finding_set_element(replay, finding, &replay->rows[r->value], row, col));
	hg__set_head(replay, r->value, f);
	HG__TRY(name_op_at_fault(replay, r, sum, finding));
	count_terms(finding, sum);
	HG__TRY(hg__list_operands(replay, r, f));
	if (r->operand == HG__OUTPUT)
		undo_shift(f, running, replay->tape->recording.value[r->value].shift);
	return HG_OK;
}
