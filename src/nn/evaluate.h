#ifndef HG_NN_EVALUATE_H
#define HG_NN_EVALUATE_H

#include "core/capture.h"
#include "halfgraph/model.h"
#include "kernels/kernels.h"
#include "nn/best.h"
#include "nn/evaluate_batches.h"
#include "nn/truth.h"

HG_EXTERN_C_BEGIN

/* Forward-only tapes on the parameters of the training tape: one on all rows, or those of batches
 * of graphs. The device writes the scores to the board (kernels/scores.h) and the weights to `best`
 * if they are the best so far, so the host does not have to wait for an evaluation. Where the host
 * computes the metric (hg__truth_on_host), it runs the tapes by itself (train_score.c), and
 * hg__evaluate is not called. */
struct hg__evaluator {
	hg_context *ctx;
	hg_params *params;
	hg_tape *tape; /* on all rows; NULL: there are batches */
	hg_var logits;
	struct hg__evaluation_batches batches;
	const struct hg__truth *truth;
	struct hg__board *board; /* device */
	struct hg__best *best;
	struct hg__capture capture; /* of one evaluation */
	int warm;                   /* an evaluation has been queued call by call */
	int eager;                  /* all evaluations are queued call by call */
};

/* training: the evaluator runs in the arena of the training tape, which is free between steps;
 * NULL: in one of its own. */
HG_NODISCARD hg_status hg__evaluator_init(struct hg__evaluator *e, hg_params *params,
                                          hg_tape *training, hg_model *model,
                                          const hg_model_input *input,
                                          const struct hg__truth *truth);
/* The same in batches of so many graphs (evaluate_batches.h). */
HG_NODISCARD hg_status hg__evaluator_init_batches(struct hg__evaluator *e, hg_params *params,
                                                  hg_model *model, const struct hg__padded *padded,
                                                  int64_t graphs, const struct hg__truth *truth);
void hg__evaluator_fini(struct hg__evaluator *e);
/* Queues the forward pass, or those of all batches, and gives the logits of all rows. HG_ERR_STATE:
 * there is no evaluator, because making it has failed. */
HG_NODISCARD hg_status hg__evaluator_forward(const struct hg__evaluator *e,
                                             const hg_tensor **logits);
/* Queues an evaluation, captured on its own. The device skips it if the board says that it is not
 * due. */
HG_NODISCARD hg_status hg__evaluate(struct hg__evaluator *e);
/* Queues the same calls one by one, for code that captures them with other work. user: the
 * evaluator. */
HG_NODISCARD hg_status hg__evaluate_queue(void *user);
/* From now on it queues them on `ctx`, a branch of its own context, or on that again. Not for an
 * evaluation in batches. */
void hg__evaluate_move(void *user, hg_context *ctx);
/* Evaluates the weights in place once more, call by call. seen: the host's copy of the board, which
 * is good for nothing then but another run. */
HG_NODISCARD hg_status hg__evaluate_again(const struct hg__evaluator *e,
                                          const struct hg__board *seen,
                                          struct hg__score_note *note);
/* All capturing for an evaluation is done when this function returns, so that running it can be
 * timed. */
void hg__evaluate_ready(struct hg__evaluator *e);

/* Records the loss of the logits, averaged over what counts in the training split. */
hg_var hg__truth_loss(const struct hg__truth *truth, hg_tape *tape, hg_var logits);

HG_EXTERN_C_END
#endif
