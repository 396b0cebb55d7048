#include "doctor/replay.h"

/* Of a division by zero, a root or a logarithm of it: was it zero before it was stored? Then a
 * wider
 * type mends it; else nothing but another number does. */

/* The operand that must not be 0; -1: none. */
static int critical_operand(const struct hg__op *op)
{
	const struct hg__about *about = hg__about(op);
	const int reads = about->critical && about->critical != HG__VARIANCE;
	return reads ? about->critical_operand : -1;
}

/* Behind a cast that was made for the types' sake stands what it was made of. */
static int32_t behind_casts(const hg_tape *tape, int32_t value)
{
	while (tape->value[value].node >= 0 && hg__is_own_cast(tape, tape->value[value].node))
		value = tape->entry[tape->value[value].node].node.in[0];
	return value;
}

static const struct hg__task *launch_of(const hg_tape *tape, int32_t line)
{
	for (int64_t i = 0; i < tape->program.forwards; i++)
		if (tape->program.forward[i].entry == line)
			return &tape->program.forward[i];
	return NULL;
}

/* A row as it is before it is narrowed, beside what is stored of it: its column col, or all (-1).
 * How many are 0 that were not? wide: the last that was asked. */
static hg_status count_vanished(const struct hg__replay *replay, const struct hg__task *launch,
                                int64_t row, int64_t col, int64_t *count, double *wide)
{
	struct hg__wide run = {0};
	const struct hg__mat *stored = &launch->call.out;
	const int64_t first = col < 0 ? 0 : col, end = col < 0 ? stored->cols : col + 1;
	HG__TRY(hg__wide_open(&launch->call, replay->tape->entry[launch->entry].saves, 0, &run));
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

/* A sum of a row, say, is 0 of elements that were rounded before: the rows that a result is made
 * of, by way of first operands, as far as the rows are the same. */
static hg_status vanished_above(const struct hg__replay *replay, int32_t value, int64_t row,
                                int64_t col, int64_t *count)
{
	const hg_tape *tape = replay->tape;
	while (!*count && tape->value[value].node >= 0) {
		const struct hg__node *node = &tape->entry[tape->value[value].node].node;
		const struct hg__value *x = &tape->value[node->in[0]];
		const struct hg__task *maker = x->node >= 0 ? launch_of(tape, x->node) : NULL;
		double wide = 0.0;
		if (!maker || node->graph || x->rows != tape->value[value].rows)
			return HG_OK;
		col = x->cols == tape->value[value].cols ? col : -1;
		HG__TRY(count_vanished(replay, maker, row, col, count, &wide));
		value = node->in[0];
	}
	return HG_OK;
}

/* A root and a logarithm want more than another number than 0. */
static int is_good(const struct hg__op *op, double x)
{
	return hg__about(op)->critical == HG__DIVISOR ? x != 0.0 : x > 0.0;
}

hg_status hg__operand_vanished(const struct hg__replay *replay, const struct hg__result *r,
                               int64_t row, int64_t col, int *vanished)
{
	const hg_tape *tape = replay->tape;
	const struct hg__node *node = r->launch->call.node;
	const int operand = critical_operand(node->op);
	double stored = 1.0, wide = 0.0;
	int64_t above = 0;
	*vanished = 0;
	if (operand < 0)
		return HG_OK;
	const int32_t value = behind_casts(tape, node->in[operand]);
	const struct hg__value *v = &tape->value[value];
	const struct hg__mat mat = hg__value_mat(tape, value);
	const int64_t i = mat.rows == 1 ? 0 : row, c = mat.cols == 1 ? 0 : col;
	const struct hg__task *maker = v->node >= 0 ? launch_of(tape, v->node) : NULL;
	HG__TRY(hg__fetch_element(replay->ctx, &mat, i, c, &stored));
	if (stored != 0.0)
		return HG_OK;
	if (v->kind == HG__PARAM)
		HG__TRY(hg__fetch_element(replay->ctx, &v->param->master->mat, i, c, &wide));
	else if (maker)
		HG__TRY(count_vanished(replay, maker, i, c, &above, &wide));
	if (wide == 0.0)
		HG__TRY(vanished_above(replay, value, i, c, &above));
	*vanished =
	    replay->value[value].underflowed || is_good(node->op, wide) || (wide == 0.0 && above);
	return HG_OK;
}
