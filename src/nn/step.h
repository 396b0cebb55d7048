#ifndef HG_NN_STEP_H
#define HG_NN_STEP_H

#include "core/capture.h"
#include "halfgraph/step.h"
#include "kernels/kernels.h"

HG_EXTERN_C_BEGIN

/* Captured steps that are ready to launch. */
struct hg__captured_steps {
	struct hg__capture capture;
	int64_t steps; /* 0: none */
};

/* From now on work is queued on this context, a branch of the context before it, or that again. */
typedef void (*hg__move_fn)(void *user, hg_context *ctx);

struct hg_step {
	hg_context *ctx;
	hg_tape *tape;
	hg_optim *optim;
	hg_step_config config;
	const float *loss;           /* device: the tape's output */
	struct hg__step_notes *kept; /* device: the records that steps leave */
	struct hg__step_notes *read; /* host: a copy of `kept` */
	int fresh;                   /* `read` is up to date */
	int warm;                    /* a step has been queued call by call */
	int refused;                 /* capturing failed and is not tried again */
	int launched;                /* the last step was launched as captured work */
	/* a set of HG__STOP_...: such a step stops the steps queued after it */
	unsigned stops;
	/* queues what belongs to a step and comes after it; NULL: nothing */
	hg__queue_fn behind;
	hg__move_fn behind_move;
	void *behind_user;
	int64_t most;                        /* the most steps in one launch */
	double bytes;                        /* memory traffic of a step, estimated */
	struct hg__captured_steps one, many; /* a single step; a full launch */
	struct hg__watch *watch;             /* NULL: steps are not observed */
	int seen;                            /* the host's copy of the watch is up to date */
	/* the optimiser's group table when the work was captured; it may move */
	const void *groups;
};

/* Sets the most steps in one launch, at least 1, for callers that always queue something else or
 * wait after so many steps. */
void hg__step_limit(hg_step *step, int64_t most);
/* From now on `behind` is queued after each step and captured with it; NULL: nothing. move: as
 * hg__step_move, of what `behind` queues. */
void hg__step_behind(hg_step *step, hg__queue_fn behind, hg__move_fn move, void *user);
/* How many of the next `most` steps to queue without a wait, at least 1. All capturing for them is
 * done when this function returns, so that running them can be timed. */
int64_t hg__step_ready(hg_step *step, int64_t most);

/* Queues steps, and other work between them, without a wait: call hg__step_begin_group, then
 * hg__step_queue any number of times, then wait for the device, then hg__step_taken.
 *
 * stops: a set of HG__STOP_... (kernels/optim.h). A step in this set is the last one of the group:
 * the steps queued after it change nothing and leave no record. hg__step_end_group lets later steps
 * run again. A step of another tape with the same parameters joins the group before its first step
 * is queued. */
HG_NODISCARD hg_status hg__step_begin_group(hg_step *step, unsigned stops);
void hg__step_join_group(hg_step *step, unsigned stops);
HG_NODISCARD hg_status hg__step_queue(hg_step *step, int64_t count);
HG_NODISCARD hg_status hg__step_end_group(hg_step *step);
/* The number of steps of this object that have left a record. Waits for the device, unless no step
 * was queued since it was last asked for or steps were read. */
HG_NODISCARD hg_status hg__step_taken(hg_step *step, int64_t *taken);
/* Has a step of this group stopped those after it? Only a backend that runs each call before it
 * returns can say; the others return 0 instead of waiting. */
int hg__step_stopped(const hg_step *step);

/* For a group of models (group.c). From now on the step queues on `ctx`: a branch of its own
 * context, or that again. */
void hg__step_move(hg_step *step, hg_context *ctx);
/* Queues the calls of one step, in a group of steps that has begun. */
HG_NODISCARD hg_status hg__step_queue_calls(hg_step *step);
/* Steps have been queued otherwise than by hg__step_queue. */
void hg__step_note(hg_step *step, int captured);
/* Does a step by itself use all of a GPU, roughly? */
int hg__step_fills_device(const hg_step *step);
/* The microseconds that a step takes on a GPU, roughly, and how many such steps a launch may hold,
 * at least 1. */
double hg__step_microseconds(const hg_step *step);
int64_t hg__steps_without_wait(double microseconds);

HG_EXTERN_C_END
#endif
