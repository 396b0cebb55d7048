#ifndef HG_DOCTOR_TRIAL_H
#define HG_DOCTOR_TRIAL_H

#include "core/buffer.h"
#include "halfgraph/doctor.h"

HG_EXTERN_C_BEGIN

/* hg_doctor_try: trial.c decides which remedies are tried, trial_run.c trains with one of them,
 * trial_option.c applies its option, trial_features.c makes the features that it asks for. */

/* A run that differs from another one by one option. */
struct hg__trial_change {
	hg_train_config config;
	int row_normalize; /* divide the rows of the features by their sums */
};

/* trial_run.c: trains with the change, examines the next step, and writes the outcome into the
 * remedy. HG_INFO_STOPPED: the user stopped the run. */
HG_NODISCARD hg_status hg__trial_run(hg_context *ctx, const hg_doctor_trial *trial,
                                     struct hg__trial_change *change, hg_remedy *remedy);
/* trial_run.c: writes why a remedy does not work, or was not tried. */
void hg__say_failure(hg_remedy *remedy, const char *format, ...) HG_PRINTF(2, 3);

/* trial_option.c: applies "--name value". Returns 0 if the option is none of those that a trial can
 * change. */
int hg__apply_option(struct hg__trial_change *change, const char *option);

/* The data of a trial, with features of its own if the change asks for them. */
struct hg__trial_data {
	hg_train_data data;
	hg_tensor *x;           /* NULL: those of the original run */
	hg_graph *x_sparse;     /* likewise */
	struct hg__buffer host; /* what x was uploaded from; data NULL: the features of the trial */
	hg_dtype host_dtype;
};
HG_NODISCARD hg_status hg__trial_data_open(hg_context *ctx, const hg_doctor_trial *trial,
                                           const struct hg__trial_change *change,
                                           struct hg__trial_data *made);
void hg__trial_data_close(hg_context *ctx, struct hg__trial_data *made);

HG_EXTERN_C_END
#endif
