#ifndef HG_DOCTOR_DOCTOR_H
#define HG_DOCTOR_DOCTOR_H

#include "doctor/replay.h"
#include "doctor/saved_state.h"
#include "nn/train.h"

HG_EXTERN_C_BEGIN

struct hg_doctor {
	hg_context *ctx;
	hg_params *params;
	hg_optim *optim;
	hg_train *train; /* NULL: the tape is the doctor's own */
	hg_tape *tape;   /* kept (autograd/keep.c); of a training run only while a step is examined */
	hg_doctor_config config;
	/* the loss's own gradient, the largest that an examination has seen, at loss scale 1 */
	struct hg__growth growth;
	double steepest;
	struct hg__page *pages; /* of the report */
	hg_doctor_report report;
};

HG_EXTERN_C_END
#endif
