#ifndef HG_TRAIN_JUDGED_H
#define HG_TRAIN_JUDGED_H

#include "halfgraph/data.h"

/* What a trained model predicts for one set of rows, beside the truth: the test set, or else the
 * validation set, or else the training set. */
struct judged {
	int known;       /* 1: there is something to compare */
	const char *set; /* "test", "validation" or "training" */
	hg_loss loss;
	int64_t counted; /* rows of the set with a label, or with a target */
	int64_t cols;    /* classes, or columns of targets */
	/* classes: [cols, cols] rows at class i that were predicted as class j; rows without a finite
	 * logit are of no column, and missed counts them */
	int64_t *confusion, missed;
	char *name; /* of the classes, as in hg_dataset; NULL: they have none */
	int64_t name_bytes;
	/* labels: of each column true and false positives, false and true negatives */
	int64_t (*counts)[4];
	double *area; /* [cols] ROC-AUC; NaN: not defined */
	/* real targets: [rows, cols] truth and prediction of the rows of the set; NaN: missing */
	float *truth, *prediction;
	int64_t rows;
};

/* Predict with the weights in place. On failure nothing is known, and the status says why. */
hg_status judged_take(struct judged *j, hg_train *train, const hg_dataset *d, hg_loss loss);
void judged_free(struct judged *j);

#endif
