/* Evaluation, for each split: accuracy = rows whose first largest logit is at their label /
 * labelled rows; and the mean cross-entropy of the validation split (of the training split if there
 * is no validation split). */
#include "nn/evaluate.h"

#include "autograd/tape.h"
#include "halfgraph/ops_norm.h"

hg_var hg__targets_loss(const struct hg__targets *targets, enum hg__split split, hg_tape *tape,
                        hg_var logits)
{
	const hg_var label = hg_tape_input(tape, targets->label, "labels", -1.0);
	const hg_tensor *mask = targets->mask[split];
	return hg_softmax_xent(tape, logits, label,
	                       mask ? hg_tape_input(tape, mask, "mask", 1.0) : HG_NONE);
}

hg_status hg__evaluator_init(struct hg__evaluator *e, hg_tape *training, hg_model *model,
                             const hg_model_input *input, const struct hg__targets *targets)
{
	e->ctx = training->ctx;
	e->targets = targets;
	HG__TRY(hg_tape_create(training->params, HG_EVAL, &e->tape));
	hg__tape_borrow(e->tape, training);
	e->logits = hg_model_record(model, e->tape, input);
	return hg_tape_compile(e->tape, e->logits);
}

void hg__evaluator_fini(struct hg__evaluator *e)
{
	if (e->ctx)
		hg__capture_drop(e->ctx, &e->capture);
	hg_tape_free(e->tape);
	*e = (struct hg__evaluator){0};
}

hg_status hg__evaluate_queue(void *user)
{
	const struct hg__evaluator *e = user;
	struct hg__scores_args args = {.x = hg_tape_value(e->tape, e->logits)->mat,
	                               .label = e->targets->label->mat,
	                               .loss_split = e->targets->mask[HG__SPLIT_VAL] ? HG__SPLIT_VAL
	                                                                             : HG__SPLIT_TRAIN,
	                               .board = e->board,
	                               .step = e->tape->params->step};
	for (int split = 0; split < HG__SPLITS; split++)
		if (e->targets->mask[split])
			args.mask[split] = e->targets->mask[split]->mat;
	HG__TRY(hg_tape_forward(e->tape));
	HG__TRY(e->ctx->backend->kernels->scores.run(e->ctx, &args));
	e->tape->params->overflow_pending = 0; /* the scores kernel has cleared the flag */
	return hg__best_save_if(e->best, &e->board->keep);
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
