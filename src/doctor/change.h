#ifndef HG_DOCTOR_CHANGE_H
#define HG_DOCTOR_CHANGE_H

#include "core/buffer.h"
#include "halfgraph/doctor.h"

HG_EXTERN_C_BEGIN

/* A run as one option makes it of another. */
struct hg__change {
	hg_train_config config;
	int row_normalize; /* the features' rows are divided by their sums */
};
/* "--name value", as a remedy says it. 0: nothing here can. */
int hg__change_read(struct hg__change *change, const char *option);

/* Features of a run of its own. */
struct hg__changed_data {
	hg_train_data data;
	hg_tensor *x;           /* NULL: those of the data are taken */
	hg_graph *x_sparse;     /* likewise */
	struct hg__buffer host; /* what x was uploaded from; data NULL: the trial's */
	hg_dtype host_dtype;
};
HG_NODISCARD hg_status hg__changed_data_make(hg_context *ctx, const hg_doctor_trial *trial,
                                             const struct hg__change *change,
                                             struct hg__changed_data *made);
void hg__changed_data_free(hg_context *ctx, struct hg__changed_data *made);

HG_EXTERN_C_END
#endif
