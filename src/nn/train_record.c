/* The tape of a training step, the step on it, and the tape of the evaluation: recording them, and
 * freeing the first two. */
#include "autograd/tape.h"
#include "nn/layers/layers.h"
#include "nn/model.h"
#include "nn/train.h"

hg_status hg__train_record_tape(hg_train *t)
{
	struct hg__train_batches *b = &t->batches;
	const struct hg__truth *truth = b->all ? &b->truth : &t->truth;
	const hg_model_input *input = b->all ? &b->batch.input : &t->input;
	HG__TRY(hg_tape_create(t->params, HG_TRAIN, &t->tape));
	if (b->all)
		hg__tape_lend(t->tape, &b->arena);
	if (b->buckets.current) {
		const struct hg__padded_batch *padded = &b->buckets.current->batch;
		t->tape->recording.counted = padded->shape.graphs * b->buckets.padded.least_counted;
	}
	if (t->config.step.observe_every < 0)
		hg_tape_observe(t->tape, 0);
	t->loss = hg__truth_loss(truth, t->tape, hg_model_record(t->model, t->tape, input));
	return hg_tape_compile(t->tape, t->loss);
}

/* The tape of a batch without padding serves one step, which is not worth capturing. */
hg_status hg__train_record_step(hg_train *t)
{
	hg_step_config config = t->config.step;
	config.eager |= t->batches.all && !t->batches.buckets.current;
	return hg_step_create(t->tape, t->optim, &config, &t->step);
}

int64_t hg__train_evaluation_graphs(const hg_train *t)
{
	const hg_batches *all = t->batches.all;
	if (!all)
		return 0;
	const int64_t graphs =
	    t->config.eval_graphs ? t->config.eval_graphs : hg__evaluation_graphs(all);
	return graphs < all->graphs ? graphs : 0;
}

/* A run in batches replaces its training tape often, so its evaluation has an arena of its own. */
hg_status hg__train_record_evaluation(hg_train *t)
{
	const int64_t graphs = hg__train_evaluation_graphs(t);
	const struct hg__padded *padded = &t->batches.buckets.padded;
	const hg_status status =
	    graphs && padded->all
	        ? hg__evaluator_init_batches(&t->evaluator, t->params, t->model, padded, graphs,
	                                     &t->truth)
	        : hg__evaluator_init(&t->evaluator, t->params, t->batches.all ? NULL : t->tape,
	                             t->model, &t->input, &t->truth);
	if (status < 0)
		hg__evaluator_fini(&t->evaluator);
	HG__TRY(status);
	t->evaluator.eager |= t->config.step.eager;
	t->evaluator.board = t->board;
	t->evaluator.best = &t->best;
	t->batches.reaches = t->params->reaches;
	return HG_OK;
}

hg_status hg__train_begin_init(hg_train *t)
{
	const struct hg__live live = {.params = t->params,
	                              .optim = t->optim,
	                              .best = &t->best.weights,
	                              .board = t->board,
	                              .watch = t->step->watch};
	return hg__saved_init(&t->begin, &live, HG__SAVED_GROUP, 0, "train: a state to return to");
}

/* Allocates the state to which a run returns if the caller stops it in the middle of a group
 * (train_run.c). It is made before the first group, so that the plan of the tape counts its
 * memory. */
static hg_status begin_init(hg_train *t)
{
	const hg_step_config *c = &t->config.step;
	const int groups =
	    c->per_launch ? c->per_launch > 1 : !c->eager && t->ctx->backend->capture_begin;
	if (!groups || !t->config.progress || t->batches.all)
		return HG_OK;
	return hg__train_begin_init(t);
}

hg_status hg__train_record_rest(hg_train *t)
{
	HG__TRY(hg__train_record_evaluation(t));
	HG__TRY(hg__train_record_step(t));
	return begin_init(t);
}

/* After a failure between two batches none is in place. */
hg_status hg__train_record(hg_train *t)
{
	if (t->batches.all && !t->batches.batch.input.graph)
		HG__TRY(hg__train_batches_load(t, 0, 0));
	HG__TRY(hg__train_record_tape(t));
	return hg__train_record_rest(t);
}

void hg__train_tape_free(hg_train *t)
{
	hg_step_free(t->step);
	t->step = NULL;
	hg_tape_free(t->tape);
	t->tape = NULL;
	hg__feature_values_free(t->ctx, t->model->values);
	t->model->values = NULL;
}
