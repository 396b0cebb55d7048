#include "doctor/exam.h"

/* Of a division by zero, a root or a logarithm of it: was it zero before it was stored? Then a wider
 * type mends it; else nothing but another number does. */

/* The operand that must not be 0, of an op of cause.c's table that reads one; -1: none. */
static int critical_operand(const struct hg__op *op)
{
	if (op == &hg__op_div)
		return 1;
	return op == &hg__op_log || op == &hg__op_sqrt ? 0 : -1;
}

/* Behind a cast that was made for the types' sake stands what it was made of. */
static int32_t behind_casts(const hg_tape *tape, int32_t value)
{
	while (tape->value[value].node >= 0 && hg__is_own_cast(tape, tape->value[value].node))
		value = tape->line[tape->value[value].node].node.in[0];
	return value;
}

static const struct hg__launch *launch_of(const hg_tape *tape, int32_t line)
{
	for (int64_t i = 0; i < tape->forwards; i++)
		if (tape->forward[i].line == line)
			return &tape->forward[i];
	return NULL;
}

/* An element as it is before it is narrowed. */
static hg_status element_made_wide(const struct hg__exam *exam, const struct hg__launch *launch,
                                   int64_t row, int64_t col, double *x)
{
	struct hg__wide wide = {0};
	HG__TRY(hg__wide_open(&launch->call, exam->tape->line[launch->line].saves, 0, &wide));
	hg_status status = hg__wide_run(&wide, 0);
	if (status >= 0)
		status = hg__fetch_element(exam->ctx, &wide.call.out, row, col, x);
	hg__wide_close(&wide);
	return status;
}

/* A root and a logarithm want more than another number than 0. */
static int is_good(const struct hg__op *op, double x)
{
	return op == &hg__op_div ? x != 0.0 : x > 0.0;
}

hg_status hg__operand_vanished(const struct hg__exam *exam, const struct hg__result *r, int64_t row,
                               int64_t col, int *vanished)
{
	const hg_tape *tape = exam->tape;
	const struct hg__node *node = r->launch->call.node;
	const int operand = critical_operand(node->op);
	double stored = 1.0, wide = 0.0;
	*vanished = 0;
	if (operand < 0)
		return HG_OK;
	const int32_t value = behind_casts(tape, node->in[operand]);
	const struct hg__value *v = &tape->value[value];
	const struct hg__mat mat = hg__value_mat(tape, value);
	const int64_t i = mat.rows == 1 ? 0 : row, c = mat.cols == 1 ? 0 : col;
	const struct hg__launch *maker = v->node >= 0 ? launch_of(tape, v->node) : NULL;
	HG__TRY(hg__fetch_element(exam->ctx, &mat, i, c, &stored));
	if (stored != 0.0)
		return HG_OK;
	if (v->kind == HG__PARAM)
		HG__TRY(hg__fetch_element(exam->ctx, &v->param->master->mat, i, c, &wide));
	else if (maker)
		HG__TRY(element_made_wide(exam, maker, i, c, &wide));
	*vanished = exam->value[value].faint || is_good(node->op, wide);
	return HG_OK;
}
