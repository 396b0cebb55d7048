/* Evaluation: accuracy = rows whose first largest logit is at their label / rows that count, for each split. */
#include "nn/evaluate.h"

#include <math.h>

#include "autograd/tape.h"

#define COUNTS_BYTES ((HG__SPLITS + 1) * 2 * sizeof(float))

hg_var hg__targets_loss(const struct hg__targets *targets, enum hg__split split, hg_tape *tape, hg_var logits)
{
	const hg_var label = hg_tape_input(tape, targets->label, "labels", -1.0);
	const hg_tensor *mask = targets->mask[split];
	return hg_softmax_xent(tape, logits, label, mask ? hg_tape_input(tape, mask, "mask", 1.0) : HG_NONE);
}

hg_status hg__evaluator_init(struct hg__evaluator *e, hg_tape *training, hg_model *model, const hg_model_input *input, const struct hg__targets *targets)
{
	e->ctx = training->ctx;
	e->targets = targets;
	HG__TRY(hg__device_alloc(e->ctx, COUNTS_BYTES, "train: accuracy counters", &e->counts));
	HG__TRY(hg_tape_create(training->params, HG_EVAL, &e->tape));
	hg__tape_borrow(e->tape, training);
	e->logits = hg_model_record(model, e->tape, input);
	hg_tape_keep(e->tape, e->logits);
	e->loss = hg__targets_loss(targets, targets->mask[HG__SPLIT_VAL] ? HG__SPLIT_VAL : HG__SPLIT_TRAIN, e->tape, e->logits);
	return hg_tape_compile(e->tape, e->loss);
}

void hg__evaluator_fini(struct hg__evaluator *e)
{
	if (e->ctx) {
		hg__capture_drop(e->ctx, &e->capture);
		hg__device_free(e->ctx, e->counts, COUNTS_BYTES);
	}
	hg_tape_free(e->tape);
	*e = (struct hg__evaluator){0};
}

/* The counters of one split; left untouched where the split does not exist. */
static hg_status count(const struct hg__evaluator *e, int split)
{
	const hg_tensor *mask = e->targets->mask[split];
	if (!mask && split != HG__SPLIT_TRAIN)
		return HG_OK;
	const struct hg__accuracy_args args = {.x = hg_tape_value(e->tape, e->logits)->mat,
	                                       .label = e->targets->label->mat,
	                                       .mask = mask ? mask->mat : (struct hg__mat){0},
	                                       .out = {(float *)e->counts + 2 * split, 1, 2, 2, HG_F32}};
	return e->ctx->backend->kernels->accuracy(e->ctx, &args);
}

/* Rows are judged whatever their logits are; how many of these are not finite tells how far the accuracies can be trusted. */
static hg_status count_nonfinite(const struct hg__evaluator *e)
{
	const struct hg__amax_args args = {.x = hg_tape_value(e->tape, e->logits)->mat, .out = {(float *)e->counts + 2 * HG__SPLITS, 1, 2, 2, HG_F32}};
	return e->ctx->backend->kernels->amax(e->ctx, &args);
}

static hg_status queue(void *user)
{
	const struct hg__evaluator *e = user;
	HG__TRY(hg_tape_forward(e->tape));
	HG__TRY(e->ctx->backend->fill(e->ctx, e->counts, 0, COUNTS_BYTES));
	for (int split = 0; split < HG__SPLITS; split++)
		HG__TRY(count(e, split));
	return count_nonfinite(e);
}

/* As a training step (step.c): call by call the first time, then captured. */
static hg_status queue_or_launch(struct hg__evaluator *e)
{
	const struct hg__backend *device = e->ctx->backend;
	const int capturable = e->warm && !e->eager && device->capture_begin;
	e->warm = 1;
	if (capturable && !hg__captured(e->ctx, &e->capture) && hg__capture(e->ctx, queue, e, &e->capture) < 0) {
		hg__log(e->ctx, HG_LOG_WARN, "train: evaluations could not be captured and will be queued call by call: %s", e->ctx->message);
		hg__capture_drop(e->ctx, &e->capture);
		e->eager = 1;
	}
	return capturable && !e->eager ? device->work_launch(e->ctx, e->capture.work) : queue(e);
}

hg_status hg__evaluate(struct hg__evaluator *e, struct hg__scores *scores)
{
	float counts[HG__SPLITS + 1][2];
	HG__TRY(queue_or_launch(e));
	HG__TRY(e->ctx->backend->copy_out(e->ctx, counts, e->counts, COUNTS_BYTES));
	for (int split = 0; split < HG__SPLITS; split++)
		scores->accuracy[split] = counts[split][1] > 0.0f ? (double)counts[split][0] / (double)counts[split][1] : (double)NAN;
	scores->nonfinite = (int64_t)counts[HG__SPLITS][1];
	return hg_tape_scalar(e->tape, e->loss, &scores->loss);
}
