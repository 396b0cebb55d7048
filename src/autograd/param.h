#ifndef HG_AUTOGRAD_PARAM_H
#define HG_AUTOGRAD_PARAM_H

#include "halfgraph/param.h"
#include "kernels/kernels.h"

HG_EXTERN_C_BEGIN

/* The inside of hg_params, for the tape and the optimiser (src/autograd/param.c). */
struct hg_param {
	hg_params *params;
	char *name;
	unsigned flags;
	int64_t index;
	/* |master| that tapes rest on (policy.h); INFINITY: none does */
	double reach;
	/* working == master where the types agree; grad NULL for buffers */
	hg_tensor *master, *working, *grad;
};

/* A node that overflowed behind its guard and from then on runs in f32 (shift 0), or is stored x
 * 2^-shift (promote.c): the nth of its op in its layer. */
struct hg__op;
struct hg__promotion {
	const struct hg__op *op;
	int64_t nth;
	int32_t shift;
	char scope[48];
};

struct hg_params {
	hg_context *ctx;
	hg_policy policy; /* its name is policy_name */
	char policy_name[64];
	hg_param **item;
	int64_t count, capacity;
	struct hg__step *step; /* device memory */
	int may_stop;          /* a queued step may set step->stop */
	/* a guarded forward pass has run, and no step has read its overflow flag yet (run.c) */
	int overflow_pending;
	struct hg__promotion *promotion;
	int64_t promotions, promotion_capacity;
	/* times that a reach was set: who has a copy of them knows by it that it is old */
	int64_t reaches;
	uint32_t tapes; /* made so far: a variable carries its tape's number */
};

/* Take the last ones off again, down to `count`: what was added for something that then failed, and
 * that nothing refers to. */
void hg__params_cut(hg_params *params, int64_t count);

HG_EXTERN_C_END
#endif
