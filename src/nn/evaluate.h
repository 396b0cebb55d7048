#ifndef HG_NN_EVALUATE_H
#define HG_NN_EVALUATE_H

#include "core/capture.h"
#include "halfgraph/model.h"
#include "kernels/kernels.h"
#include "nn/best.h"

HG_EXTERN_C_BEGIN

/* Labels and masks on the device. mask NULL: all labelled rows for the training split, no rows for
 * the others. */
struct hg__targets {
	hg_tensor *label;            /* i32 [rows, 1] */
	hg_tensor *mask[HG__SPLITS]; /* u8 [rows, 1] */
};

/* A forward-only tape on the parameters of the training tape. The device writes the scores to the
 * board (kernels/scores.h) and the weights to `best` if they are the best so far, so the host does
 * not have to wait for an evaluation. */
struct hg__evaluator {
	hg_context *ctx;
	hg_tape *tape;
	hg_var logits;
	const struct hg__targets *targets;
	struct hg__board *board; /* device */
	struct hg__best *best;
	struct hg__capture capture; /* of one evaluation */
	int warm;                   /* an evaluation has been queued call by call */
	int eager;                  /* all evaluations are queued call by call */
};

/* The evaluator runs in the arena of the training tape, which is free between steps. */
HG_NODISCARD hg_status hg__evaluator_init(struct hg__evaluator *e, hg_tape *training,
                                          hg_model *model, const hg_model_input *input,
                                          const struct hg__targets *targets);
void hg__evaluator_fini(struct hg__evaluator *e);
/* Queues an evaluation, captured on its own. The device skips it if the board says that it is not
 * due. */
HG_NODISCARD hg_status hg__evaluate(struct hg__evaluator *e);
/* Queues the same calls one by one, for code that captures them with other work. user: the
 * evaluator. */
HG_NODISCARD hg_status hg__evaluate_queue(void *user);
/* All capturing for an evaluation is done when this function returns, so that running it can be
 * timed. */
void hg__evaluate_ready(struct hg__evaluator *e);

/* Records the cross-entropy of the logits, averaged over the rows of a split. */
hg_var hg__targets_loss(const struct hg__targets *targets, enum hg__split split, hg_tape *tape,
                        hg_var logits);

HG_EXTERN_C_END
#endif
