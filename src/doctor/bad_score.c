#include "doctor/check.h"

/* Attention that reads a vector c, a beta, scores or features that are not finite makes scores that
 * are no numbers, and then whole rows. The input is at fault; its finding also names the score. */

/* Is it the leaf that operand `value` of a task is, or a copy of it? A parameter has several
 * values. */
static int is_leaf(const hg_tape *tape, const struct hg__finding *finding, int32_t value)
{
	const struct hg__value *v = &tape->recording.value[hg__before_casts(tape, value)];
	const struct hg__value *leaf =
	    finding->value >= 0 ? &tape->recording.value[finding->value] : NULL;
	return leaf && (leaf == v ||
	                (leaf->kind == HG__PARAM && v->kind == HG__PARAM && leaf->param == v->param));
}

/* The finding about a bad operand of the node; NULL: there is none. */
static hg_finding *finding_of_operand(struct hg__replay *replay, const struct hg__node *node)
{
	for (int n = 0; n < replay->findings[HG__NONFINITE]; n++) {
		struct hg__finding *finding = &replay->finding[HG__NONFINITE][n];
		for (int i = 0; i < node->n_in; i++)
			if (finding->reported.cause == HG_CAUSE_INPUT && node->in[i] >= 0 &&
			    is_leaf(replay->tape, finding, node->in[i]))
				return &finding->reported;
	}
	return NULL;
}

hg_status hg__note_bad_score(struct hg__replay *replay, const struct hg__result *r,
                             const struct hg__scan *seen)
{
	hg_finding *f = finding_of_operand(replay, r->task->call.node);
	struct hg__sum sum;
	if (!f || f->has_bad_score)
		return HG_OK;
	HG__TRY(hg__sum_of_result(replay, r, seen->first.row, seen->first.col, &sum));
	f->has_bad_score = sum.has_bad_score;
	f->bad_score = sum.bad_score;
	hg__sum_close(&sum);
	return HG_OK;
}
