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
	int fresh;                   /* `read` is what `kept` is */
	int warm;                    /* a step has run call by call */
	int refused;                 /* capturing failed: never again */
	int launched;                /* the last step was captured work */
	unsigned stops;              /* HG__STOP_...: which steps stop those queued behind them */
	hg__queue_fn behind;         /* what belongs to a step and is queued behind it; NULL: nothing */
	void *behind_user;
	int64_t most;                /* steps in one launch at most */
	double bytes;                /* that a step moves, about */
	struct hg__caught one, many; /* a single step; a full launch */
	struct hg__watch *watch;     /* NULL: nobody observes */
	int seen;                    /* the watch's copy is fresh */
	/* of the optimiser: an address that both remember and that may change */
	const void *groups;
};

/* From now on at most so many steps in a launch, at least 1: for a caller who never runs more
 * without a look. */
void hg__step_limit(hg_step *step, int64_t most);
/* From now on `behind` is queued behind each step, and captured with it; NULL: nothing is. */
void hg__step_behind(hg_step *step, hg__queue_fn behind, void *user);
/* How many of the next `most` steps to queue without a wait, at least 1; what it takes to capture
 * them is
 * done when this returns, so that running them can be timed. */
int64_t hg__step_ready(hg_step *step, int64_t most);

/* For a caller who queues steps, and other things between them, without a wait:
 *
 *     hg__step_begin_group, then hg__step_queue as often as it likes, and behind the wait
 *     hg__step_taken
 *
 * stops: a step that is in this set of HG__STOP_... (kernels/optim.h) is the last of the group:
 * those
 * queued behind it change nothing, and leave nothing to read.
 * hg__step_end_group makes sure that steps run again, whoever queues them. */
HG_NODISCARD hg_status hg__step_begin_group(hg_step *step, unsigned stops);
HG_NODISCARD hg_status hg__step_queue(hg_step *step, int64_t count);
HG_NODISCARD hg_status hg__step_end_group(hg_step *step);
/* Steps of this object that have left something to read; waits for the device. */
HG_NODISCARD hg_status hg__step_taken(hg_step *step, int64_t *taken);
/* Has a step of this group stopped those behind it? Asked only of a device that runs each call
 * before it
 * returns; 0 where the host would have to wait for the answer. */
int hg__step_stopped(const hg_step *step);

HG_EXTERN_C_END
#endif
