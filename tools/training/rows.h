#ifndef HG_TRAINING_ROWS_H
#define HG_TRAINING_ROWS_H

#include "halfgraph/data.h"

/* Whether to divide each node's features by their sum (--row-normalize), and why. */
struct feature_rows {
	int normalize;
	char why[160];
};

/* when: "on", "off", or "auto", which inspects the values. May return HG_ERR_NOMEM. */
hg_status rows_decide(const hg_dataset *d, const char *when, struct feature_rows *rows);
/* The text for hg_train_data.features_note. */
const char *rows_note(const struct feature_rows *rows);

#endif
