#ifndef HG_DOCTOR_EXAMINE_H
#define HG_DOCTOR_EXAMINE_H

#include "diagnosis.h"
#include "health.h"
#include "progress.h"
#include "stream.h"

/* A training run under examination. */
struct examination {
	struct diagnosis *diagnosis;
	struct progress progress;
	struct stream json;
	int trying;      /* remedies are being tried: log messages of their runs are not shown */
	int write_error; /* errno of the first line that could not be written; 0: none */
	/* of the run: */
	hg_context *ctx;
	struct {
		hg_train *train;
		hg_doctor *doctor;
	} run[2]; /* the second one repeats the run to find the step that spoilt a weight */
	hg_remedy feature_remedy[2]; /* of the finding that features are too large for fp16 */
	hg_state *state;             /* of the checkpoint that every run begins from; NULL: none */
	int current;                 /* index of the run that is being replayed */
	hg_doctor *evaluator;        /* for the final evaluation; NULL: it was not examined */
	int64_t last_clean;          /* the last step, from 0, whose replay showed nothing; -1: none */
	struct health health;
	hg_status status;              /* a failure inside the callback of the run */
	char message[HG_DATA_MESSAGE]; /* why checkpoint or features were refused; else empty */
	/* the differences between the run and the checkpoint's run; else empty */
	char notice[HG_DATA_MESSAGE];
};

/* Train until a step goes bad, replay it, and try the remedies; the diagnosis holds the results.
 * The report's texts live until examination_end. */
hg_status examination_run(struct examination *e, hg_context *ctx, const hg_device_data *data);
/* Are there features that fp16 cannot hold, so that no run can begin? Then they become the
 * finding. */
int examination_check_features(struct examination *e);
/* Try the remedies of that finding, with features in f32 on the device. */
hg_status examination_run_features(struct examination *e, hg_context *ctx,
                                   const hg_device_data *data);
void examination_end(struct examination *e);

#endif
