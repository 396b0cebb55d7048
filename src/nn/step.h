#ifndef HG_NN_STEP_H
#define HG_NN_STEP_H

#include "core/capture.h"
#include "halfgraph/step.h"
#include "kernels/kernels.h"

HG_EXTERN_C_BEGIN

/* Captured steps, ready to launch. */
struct hg__caught {
	struct hg__capture capture;
	int64_t steps; /* 0: none */
};

struct hg_step {
	hg_context *ctx;
	hg_tape *tape;
	hg_optim *optim;
	hg_step_config config;
	const float *loss;           /* device: the tape's output */
	struct hg__step_notes *kept; /* device: what the steps leave */
	struct hg__step_notes *read; /* host: a copy, where `fresh` */
	int fresh;
	int warm;                    /* a step has run call by call */
	int refused;                 /* capturing failed: never again */
	int launched;                /* the last step was captured work */
	int64_t most;                /* steps in one launch at most */
	double bytes;                /* that a step moves, about */
	struct hg__caught one, many; /* a single step; a full launch */
	struct hg__watch *watch;     /* NULL: nobody observes */
	int seen;                    /* the watch's copy is fresh */
	const void *groups;          /* of the optimiser: an address that both remember and that may change */
};

/* From now on at most so many steps in a launch, at least 1: for a caller who never runs more without a look. */
void hg__step_limit(hg_step *step, int64_t most);
/* How many of the next `most` steps to run together, at least 1; what it takes to capture them is done when this returns, so that running them can be timed. */
int64_t hg__step_ready(hg_step *step, int64_t most);

HG_EXTERN_C_END
#endif
