#ifndef HG_NN_EVALUATE_H
#define HG_NN_EVALUATE_H

#include "core/capture.h"
#include "halfgraph/model.h"
#include "kernels/kernels.h"
#include "nn/snapshot.h"

HG_EXTERN_C_BEGIN

/* What there is to learn from: on the device. mask NULL: for the training split every labelled row,
 * for the others none. */
struct hg__targets {
	hg_tensor *label;            /* i32 [rows, 1] */
	hg_tensor *mask[HG__SPLITS]; /* u8 [rows, 1] */
};

/* A forward-only tape on the same parameters. What it finds goes to the board (kernels/scores.h),
 * and
 * the weights to `best` where they are the best so far: an evaluation needs no word from the
 * host. */
struct hg__evaluator {
	hg_context *ctx;
	hg_tape *tape;
	hg_var logits;
	const struct hg__targets *targets;
	struct hg__board *board; /* device */
	struct hg__snapshot *best;
	struct hg__capture capture; /* of all that an evaluation queues */
	int warm;                   /* an evaluation has run call by call */
	int eager;                  /* as all of them shall */
};

/* Between steps the arena of the training tape is free: the evaluator runs there. */
HG_NODISCARD hg_status hg__evaluator_init(struct hg__evaluator *e, hg_tape *training,
                                          hg_model *model, const hg_model_input *input,
                                          const struct hg__targets *targets);
void hg__evaluator_fini(struct hg__evaluator *e);
/* Queue an evaluation, captured on its own. The device skips it where the board says that it is not
 * due. */
HG_NODISCARD hg_status hg__evaluate(struct hg__evaluator *e);
/* The same call by call, for a caller who captures it with something else. user: the evaluator. */
HG_NODISCARD hg_status hg__evaluate_queue(void *user);
/* What it takes to capture an evaluation is done when this returns, so that running it can be
 * timed. */
void hg__evaluate_ready(struct hg__evaluator *e);

/* loss = masked cross-entropy of logits against the targets of a split, recorded on a tape. */
hg_var hg__targets_loss(const struct hg__targets *targets, enum hg__split split, hg_tape *tape,
                        hg_var logits);

HG_EXTERN_C_END
#endif
