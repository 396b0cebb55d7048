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
	int trying;      /* remedies: what is said of their runs is no news of this one */
	int write_error; /* errno of the first line that did not arrive; 0: all did */
	/* the run's own: */
	hg_context *ctx;
	struct {
		hg_train *train;
		hg_doctor *doctor;
	} run[2];             /* the second goes back to the step that spoilt a weight */
	hg_remedy beyond[2];  /* of features that fp16 cannot hold */
	hg_state *state;      /* of the checkpoint, where each run begins; NULL: there is none */
	int turn;             /* the run that is replayed */
	hg_doctor *evaluator; /* of what the run has learnt; NULL: it was not looked at */
	int64_t clean; /* the last step, from 0, whose replay showed nothing; -1: there is none */
	struct health health;
	hg_status status;              /* of what failed inside the run's callback */
	char message[HG_DATA_MESSAGE]; /* why the checkpoint was refused; else empty */
	/* in what the run is another one than the checkpoint's; else empty */
	char notice[HG_DATA_MESSAGE];
};

/* Train until a step goes bad, replay it, and try what helps; the diagnosis holds it all. The
 * report's texts live until examination_end. */
hg_status examination_run(struct examination *e, hg_context *ctx, const struct device_data *data);
/* Are there features that fp16 cannot hold, so that no run can begin? Then they are the finding. */
int examination_beyond(struct examination *e);
/* Its remedies, with features in f32 on the device. */
hg_status examination_run_beyond(struct examination *e, hg_context *ctx,
                                 const struct device_data *data);
void examination_end(struct examination *e);

#endif
