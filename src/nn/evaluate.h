#ifndef HG_NN_EVALUATE_H
#define HG_NN_EVALUATE_H

#include "core/capture.h"
#include "halfgraph/model.h"
#include "kernels/kernels.h"

HG_EXTERN_C_BEGIN

enum hg__split { HG__SPLIT_TRAIN = 0, HG__SPLIT_VAL = 1, HG__SPLIT_TEST = 2, HG__SPLITS = 3 };

/* What there is to learn from: on the device. mask NULL: for the training split every labelled row, for the others none. */
struct hg__targets {
	hg_tensor *label;            /* i32 [rows, 1] */
	hg_tensor *mask[HG__SPLITS]; /* u8 [rows, 1] */
};

/* A forward-only tape on the same parameters, and the counters of its accuracies. */
struct hg__evaluator {
	hg_context *ctx;
	hg_tape *tape;
	hg_var logits, loss;
	const struct hg__targets *targets;
	struct hg__capture capture; /* of all that an evaluation queues */
	int warm;                   /* an evaluation has run call by call */
	int eager;                  /* as all of them shall */
	void *counts;               /* f32 [splits + 1, 2] on the device: right, counted; of all logits the largest |x| and how many are not finite */
};
/* accuracies in [0, 1]; NaN for a split that does not exist. loss: of the validation split, of the training split where there is none. */
struct hg__scores {
	double accuracy[HG__SPLITS], loss;
	int64_t nonfinite; /* logits, of all rows */
};

/* Between steps the arena of the training tape is free: the evaluator runs there. */
HG_NODISCARD hg_status hg__evaluator_init(struct hg__evaluator *e, hg_tape *training, hg_model *model, const hg_model_input *input,
                                          const struct hg__targets *targets);
void hg__evaluator_fini(struct hg__evaluator *e);
HG_NODISCARD hg_status hg__evaluate(struct hg__evaluator *e, struct hg__scores *scores);

/* loss = masked cross-entropy of logits against the targets of a split, recorded on a tape. */
hg_var hg__targets_loss(const struct hg__targets *targets, enum hg__split split, hg_tape *tape, hg_var logits);

HG_EXTERN_C_END
#endif
