#ifndef HG_NN_TRUTH_H
#define HG_NN_TRUTH_H

#include "core/buffer.h"
#include "halfgraph/train.h"
#include "kernels/scores.h"

HG_EXTERN_C_BEGIN

/* What a run learns and is judged by: classes, or real targets.
 *
 * On the device are labels or targets with the masks of the rows that count. A missing target is 0
 * there and has mask 0. Targets of MSE and MAE are standardised, (t - mean) / deviation of each
 * column over the targets of the training split, so that a model whose weights are of order 1
 * reaches them.
 *
 * The device counts right predictions of classes by itself (kernels/scores.h). For every other
 * metric the host needs labels, targets and masks as well. */
struct hg__truth {
	hg_loss loss;
	hg_metric metric;        /* decides which epoch is the best */
	int64_t rows, cols;      /* nodes or graphs; classes or columns of targets */
	int32_t has[HG__SPLITS]; /* 1: some row of the mask of the split has a label or target */
	/* On the device. mask NULL: for the training split all labelled rows, for the others none. */
	hg_tensor *label;            /* i32 [rows, 1]; NULL with targets */
	hg_tensor *target;           /* f32 [rows, cols]; NULL with labels */
	hg_tensor *mask[HG__SPLITS]; /* u8 [rows, 1]; with targets only of training, [rows, cols] */
	hg_tensor *weight;           /* f32 [1, cols]: of classes, or of ones; NULL: all 1 */
	float smoothing;             /* of labels */
	/* On the host; empty where the device counts. The masks of absent splits are empty, too. */
	struct hg__buffer labels, targets, masks[HG__SPLITS], logits;
	struct hg__buffer mean, deviation; /* double [cols]; empty: not standardised */
};

/* Checks what a run learns from, sets the model's out_features if it is 0, uploads the rest. After
 * a failure, too, hg__truth_fini frees everything. */
HG_NODISCARD hg_status hg__truth_init(struct hg__truth *truth, hg_context *ctx,
                                      hg_train_config *config, const hg_train_data *data,
                                      int64_t rows);
void hg__truth_fini(struct hg__truth *truth, hg_context *ctx);

/* chosen [rows]: 1 for the rows from which the run learns. */
void hg__truth_choose(const struct hg__truth *truth, const hg_train_data *data, uint8_t *chosen);
/* class_weights.c: the weights and the smoothing of a run's configuration. */
HG_NODISCARD hg_status hg__class_weights_check(hg_context *ctx, const hg_train_config *config,
                                               const hg_train_data *data, int64_t rows,
                                               int64_t cols);
HG_NODISCARD hg_status hg__class_weights_upload(struct hg__truth *truth, hg_context *ctx,
                                                const hg_train_config *config);

/* Is the metric computed by the host? */
int hg__truth_on_host(const struct hg__truth *truth);

/* Predictions of targets, in place: X * deviation + mean. Logits of classes stay. */
void hg__truth_undo(const struct hg__truth *truth, float *x);

/* One evaluation on the host. */
struct hg__judgement {
	struct hg__counts counts; /* right and counted of classes only */
	double metric[HG__SPLITS];
	float loss; /* of the validation split, or of the training split if there is none */
};
/* value: the logits on the device. */
HG_NODISCARD hg_status hg__judge(const struct hg__truth *truth, hg_context *ctx,
                                 const hg_tensor *value, struct hg__judgement *judgement);

HG_EXTERN_C_END
#endif
