#ifndef HG_DOCTOR_DOCTOR_H
#define HG_DOCTOR_DOCTOR_H

#include "doctor/replay.h"
#include "nn/train.h"

HG_EXTERN_C_BEGIN

struct hg_doctor {
	hg_context *ctx;
	hg_params *params;
	hg_optim *optim;
	hg_train *train; /* NULL: the tape is the doctor's own */
	/* keeps all its tensors (autograd/keep.c); a copy of the training run's tape exists only while
	 * a step is examined */
	hg_tape *tape;
	hg_doctor_config config;
	struct hg__weight_sizes initial_weights;
	/* the largest element of the loss's own gradient in all examinations, at loss scale 1 */
	double largest_loss_gradient;
	struct hg__report_memory *memory;
	hg_doctor_report report;
};

/* examine.c: examines a step, or an evaluation, on the doctor's tape, and fills the report. back:
 * as in hg_doctor_examine. */
HG_NODISCARD hg_status hg__examine(hg_doctor *doctor, int back, int evaluation);

HG_EXTERN_C_END
#endif
