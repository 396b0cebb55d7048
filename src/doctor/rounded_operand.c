#include "doctor/check.h"

/* After a division by zero, or a logarithm or root of it: was the operand 0 already before it was
 * stored? If not, a wider type helps; if it was, only another operand does. */

/* The operand that must not be 0; -1: there is none. */
static int critical_operand(const struct hg__op *op)
{
	const struct hg__about *about = hg__about(op);
	const int reads = about->critical && about->critical != HG__VARIANCE;
	return reads ? about->critical_operand : -1;
}

static const struct hg__task *forward_task_of(const hg_tape *tape, int32_t entry)
{
	for (int64_t i = 0; i < tape->program.forwards; i++)
		if (tape->program.forward[i].entry == entry)
			return &tape->program.forward[i];
	return NULL;
}

/* Compares a row of a task's result with a wide run: column col, or all columns (-1). *count grows
 * by the elements that are stored as 0 although wide is not 0. *wide: the last one that was
 * compared. */
static hg_status count_rounded(const struct hg__replay *replay, const struct hg__task *task,
                               int64_t row, int64_t col, int64_t *count, double *wide)
{
	struct hg__wide run = {0};
	const struct hg__mat *stored = &task->call.out;
	const int64_t first = col < 0 ? 0 : col, end = col < 0 ? stored->cols : col + 1;
	HG__TRY(hg__wide_open(&task->call, hg__entry_of(replay, task)->saves, 0, &run));
	hg_status status = hg__wide_run(&run, 0);
	for (int64_t c = first; c < end && status >= 0; c++) {
		double x = 0.0;
		status = hg__fetch_element(replay->ctx, &run.call.out, row, c, wide);
		if (status >= 0)
			status = hg__fetch_element(replay->ctx, stored, row, c, &x);
		*count += x == 0.0 && *wide != 0.0;
	}
	hg__wide_close(&run);
	return status;
}

/* The same for the values that this one is made of. The sum of a row, for example, may be 0 because
 * its elements were rounded to 0 before. First operands are followed for as long as the rows are
 * the same, or until a rounded element is found. */
static hg_status count_rounded_before(const struct hg__replay *replay, int32_t value, int64_t row,
                                      int64_t col, int64_t *count)
{
	const hg_tape *tape = replay->tape;
	while (!*count && tape->recording.value[value].node >= 0) {
		const struct hg__node *node =
		    &tape->recording.entry[tape->recording.value[value].node].node;
		const struct hg__value *x = &tape->recording.value[node->in[0]];
		const struct hg__task *maker = x->node >= 0 ? forward_task_of(tape, x->node) : NULL;
		double wide = 0.0;
		if (!maker || node->graph || x->rows != tape->recording.value[value].rows)
			return HG_OK;
		col = x->cols == tape->recording.value[value].cols ? col : -1;
		HG__TRY(count_rounded(replay, maker, row, col, count, &wide));
		value = node->in[0];
	}
	return HG_OK;
}

/* Would the op be defined for this operand? A logarithm and a root need more than a number that is
 * not 0. */
static int is_valid(const struct hg__op *op, double x)
{
	return hg__about(op)->critical == HG__DIVISOR ? x != 0.0 : x > 0.0;
}

hg_status hg__operand_was_rounded(const struct hg__replay *replay, const struct hg__result *r,
                                  int64_t row, int64_t col, int *rounded)
{
	const hg_tape *tape = replay->tape;
	const struct hg__node *node = r->task->call.node;
	const int operand = critical_operand(node->op);
	double stored = 1.0, wide = 0.0;
	int64_t count = 0;
	*rounded = 0;
	if (operand < 0)
		return HG_OK;
	const int32_t value = hg__before_casts(tape, node->in[operand]);
	const struct hg__value *v = &tape->recording.value[value];
	const struct hg__mat mat = hg__value_mat(tape, value);
	const int64_t i = mat.rows == 1 ? 0 : row, c = mat.cols == 1 ? 0 : col;
	const struct hg__task *maker = v->node >= 0 ? forward_task_of(tape, v->node) : NULL;
	HG__TRY(hg__fetch_element(replay->ctx, &mat, i, c, &stored));
	if (stored != 0.0)
		return HG_OK;
	if (v->kind == HG__PARAM)
		HG__TRY(hg__fetch_element(replay->ctx, &v->param->master->mat, i, c, &wide));
	else if (maker)
		HG__TRY(count_rounded(replay, maker, i, c, &count, &wide));
	if (wide == 0.0)
		HG__TRY(count_rounded_before(replay, value, i, c, &count));
	*rounded =
	    replay->value[value].underflowed || is_valid(node->op, wide) || (wide == 0.0 && count);
	return HG_OK;
}
