/* An evaluation whose metric the host computes. The host enters it on the board as the scores
 * kernel enters accuracies, so that a run goes on, stops and is repeated in the same way. */
#include <string.h>

#include "autograd/tape.h"
#include "nn/train.h"

/* The state that the board needs is small: the whole of it is copied. */
static hg_status board_read(hg_train *t, struct hg__step *step)
{
	HG__TRY(t->ctx->backend->copy_out(t->ctx, &t->seen, t->board, sizeof t->seen));
	return t->ctx->backend->copy_out(t->ctx, step, t->params->step, sizeof *step);
}

/* Of the step only `stop` and `plateau` have changed. */
static hg_status board_write(hg_train *t, const struct hg__step *step)
{
	HG__TRY(t->ctx->backend->copy_in(t->ctx, t->board, &t->seen, sizeof t->seen));
	HG__TRY(t->ctx->backend->copy_in(t->ctx, &t->params->step->plateau, &step->plateau,
	                                 sizeof step->plateau));
	return t->ctx->backend->copy_in(t->ctx, &t->params->step->stop, &step->stop, sizeof step->stop);
}

/* Runs the evaluation's tapes, and clears what its guards have found: an overflow there does not
 * skip the next step. */
static hg_status logits_judge(hg_train *t, struct hg__judgement *judgement)
{
	const hg_tensor *logits = NULL;
	HG__TRY(hg__evaluator_forward(&t->evaluator, &logits));
	HG__TRY(hg__judge(&t->truth, t->ctx, logits, judgement));
	return hg__overflow_clear(t->params);
}

hg_status hg__train_score_again(hg_train *t, struct hg__score_note *note)
{
	struct hg__judgement judgement;
	HG__TRY(logits_judge(t, &judgement));
	note->counts = judgement.counts;
	memcpy(note->metric, judgement.metric, sizeof note->metric);
	note->loss = judgement.loss;
	return HG_OK;
}

hg_status hg__train_score(hg_train *t)
{
	struct hg__step step;
	struct hg__judgement judgement;
	HG__TRY(board_read(t, &step));
	if (!hg__board_is_due(&t->seen, &step)) /* steps that an earlier one stopped */
		return HG_OK;
	HG__TRY(logits_judge(t, &judgement));
	hg__board_note(&t->seen, &step, &judgement.counts, judgement.metric, judgement.loss);
	HG__TRY(board_write(t, &step));
	return hg__best_save_if(&t->best, &t->board->keep);
}
