#ifndef HG_TRAIN_OBSERVED_H
#define HG_TRAIN_OBSERVED_H

#include "halfgraph/doctor.h"

/* The tensors of the last step that the observer inspected, with names of their own. */
struct observed {
	hg_doctor_tensor *tensor; /* [count] */
	int count;
	int64_t step;
	double loss_scale;
};

/* Nothing is read where nothing was observed. */
hg_status observed_take(struct observed *o, hg_train *train);
void observed_free(struct observed *o);

#endif
