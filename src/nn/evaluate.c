/* Evaluation, for each split: accuracy = rows whose first largest logit is at their label /
 * labelled rows; and the mean cross-entropy of the validation split (of the training split if there
 * is no validation split). */
#include "nn/evaluate.h"

#include "autograd/tape.h"
#include "halfgraph/ops_norm.h"

hg_var hg__truth_loss(const struct hg__truth *truth, hg_tape *tape, hg_var logits)
{
	const hg_var weight =
	    truth->weight ? hg_tape_input(tape, truth->weight, "class weights", -1.0) : HG_NONE;
	hg_var (*const pointwise[])(hg_tape *, hg_var, hg_var, hg_var) = {
	    [HG_LOSS_BCE] = hg_bce_logits, [HG_LOSS_MSE] = hg_mse, [HG_LOSS_MAE] = hg_mae};
	const hg_tensor *is = truth->label ? truth->label : truth->target,
	                *counts = truth->mask[HG__SPLIT_TRAIN];
	const hg_var of = hg_tape_input(tape, is, truth->label ? "labels" : "targets", -1.0),
	             mask = counts ? hg_tape_input(tape, counts, "mask", 1.0) : HG_NONE;
	if (truth->label && (truth->weight || truth->smoothing > 0.0f))
		return hg_softmax_xent_weighted(tape, logits, of, mask, weight, truth->smoothing);
	if (truth->label)
		return hg_softmax_xent(tape, logits, of, mask);
	return truth->weight ? hg_bce_logits_weighted(tape, logits, of, mask, weight)
	                     : pointwise[truth->loss](tape, logits, of, mask);
}

hg_status hg__evaluator_init(struct hg__evaluator *e, hg_params *params, hg_tape *training,
                             hg_model *model, const hg_model_input *input,
                             const struct hg__truth *truth)
{
	e->ctx = params->ctx;
	e->params = params;
	e->truth = truth;
	HG__TRY(hg_tape_create(params, HG_EVAL, &e->tape));
	if (training)
		hg__tape_borrow(e->tape, training);
	e->logits = hg_model_record(model, e->tape, input);
	return hg_tape_compile(e->tape, e->logits);
}

/* More batches are queued call by call: a captured one has some 20 to 100 kernels. */
enum { MOST_CAPTURED = 64 };

hg_status hg__evaluator_init_batches(struct hg__evaluator *e, hg_params *params, hg_model *model,
                                     const struct hg__padded *padded, int64_t graphs,
                                     const struct hg__truth *truth)
{
	e->ctx = params->ctx;
	e->params = params;
	e->truth = truth;
	HG__TRY(hg__evaluation_batches_init(&e->batches, params, model, padded, graphs));
	e->eager = e->batches.schedule.batches > MOST_CAPTURED;
	return HG_OK;
}

void hg__evaluator_fini(struct hg__evaluator *e)
{
	if (e->ctx)
		hg__capture_drop(e->ctx, &e->capture);
	hg_tape_free(e->tape);
	hg__evaluation_batches_fini(&e->batches);
	*e = (struct hg__evaluator){0};
}

hg_status hg__evaluator_forward(const struct hg__evaluator *e, const hg_tensor **logits)
{
	if (!e->tape && !e->batches.logits)
		return HG_ERR_STATE;
	*logits = e->tape ? hg_tape_value(e->tape, e->logits) : e->batches.logits;
	return e->tape ? hg_tape_forward(e->tape) : hg__evaluation_batches_forward(&e->batches);
}

/* A forward pass, and its scores on the board. */
static hg_status scores_queue(const struct hg__evaluator *e)
{
	const hg_tensor *logits = NULL;
	HG__TRY(hg__evaluator_forward(e, &logits));
	struct hg__scores_args args = {.x = logits->mat,
	                               .label = e->truth->label->mat,
	                               .loss_split = e->truth->mask[HG__SPLIT_VAL] ? HG__SPLIT_VAL
	                                                                           : HG__SPLIT_TRAIN,
	                               .board = e->board,
	                               .step = e->params->step};
	for (int split = 0; split < HG__SPLITS; split++)
		if (e->truth->mask[split])
			args.mask[split] = e->truth->mask[split]->mat;
	HG__TRY(e->ctx->backend->kernels->scores.run(e->ctx, &args));
	e->params->overflow_pending = 0; /* the scores kernel has cleared the flag */
	return HG_OK;
}

hg_status hg__evaluate_queue(void *user)
{
	const struct hg__evaluator *e = user;
	HG__TRY(scores_queue(e));
	return hg__best_save_if(e->best, &e->board->keep);
}

void hg__evaluate_move(void *user, hg_context *ctx)
{
	struct hg__evaluator *e = user;
	e->ctx = ctx;
	if (e->tape)
		hg__tape_move(e->tape, ctx);
}

/* On this board the last epoch is due again, and alone, so it is the best whatever its scores. */
hg_status hg__evaluate_again(const struct hg__evaluator *e, const struct hg__board *seen,
                             struct hg__score_note *note)
{
	struct hg__board board = *seen;
	board.every = board.unseen = 1;
	board.patience = board.evaluated = board.taken = 0;
	board.best = (struct hg__score_note){.epoch = 0};
	HG__TRY(e->ctx->backend->copy_in(e->ctx, e->board, &board, sizeof board));
	HG__TRY(scores_queue(e));
	HG__TRY(e->ctx->backend->copy_out(e->ctx, &board, e->board, sizeof board));
	*note = board.best;
	return HG_OK;
}

void hg__evaluate_ready(struct hg__evaluator *e)
{
	if (!e->warm || e->eager || !e->ctx->backend->capture_begin ||
	    hg__captured(e->ctx, &e->capture))
		return;
	if (hg__capture(e->ctx, hg__evaluate_queue, e, &e->capture) >= 0)
		return;
	hg__log(e->ctx, HG_LOG_WARN,
	        "train: evaluations could not be captured and will be queued call by call: %s",
	        e->ctx->message);
	hg__capture_drop(e->ctx, &e->capture);
	e->eager = 1;
}

/* Like a training step (step.c): call by call the first time, then captured. */
hg_status hg__evaluate(struct hg__evaluator *e)
{
	hg__evaluate_ready(e);
	e->warm = 1;
	return e->capture.work ? e->ctx->backend->work_launch(e->ctx, e->capture.work)
	                       : hg__evaluate_queue(e);
}
