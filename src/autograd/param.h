#ifndef HG_AUTOGRAD_PARAM_H
#define HG_AUTOGRAD_PARAM_H

#include "halfgraph/param.h"
#include "kernels/kernels.h"

HG_EXTERN_C_BEGIN

/* The inside of hg_params, for the tape (src/autograd/param.c) and the optimiser. */
struct hg_param {
	hg_params *params;
	char *name;
	unsigned flags;
	int64_t index;
	/* the bound on |master| that tapes assume (policy.h); INFINITY: no tape has read the
	 * parameter */
	double reach;
	/* working == master if their types are the same; grad NULL for buffers */
	hg_tensor *master, *working, *grad;
};

/* A node that overflowed behind its guard. From then on it runs in f32 (shift 0) or is stored x
 * 2^-shift (promote.c). It is node number nth of its op in its layer. */
struct hg__op;
struct hg__promotion {
	const struct hg__op *op;
	int64_t nth;
	int32_t shift;
	char scope[48];
};

struct hg_params {
	hg_context *ctx;
	uint64_t seed;
	hg_policy policy; /* its name is policy_name */
	char policy_name[64];
	hg_param **item;
	int64_t count, capacity;
	struct hg__step *step; /* device memory */
	int may_stop;          /* 1: a queued step may set step->stop */
	/* a guarded forward pass has run, and no step has read its overflow flag yet (run.c) */
	int overflow_pending;
	struct hg__promotion *promotion;
	int64_t promotions, promotion_capacity;
	/* counts changes of any reach, so that holders of a copy can tell when it is out of date */
	int64_t reaches;
	uint32_t tapes; /* tapes made so far; gives each tape its tag */
};

/* Removes the last parameters, down to `count`. For parameters that were added for an object that
 * could then not be made; nothing may refer to them. */
void hg__params_cut(hg_params *params, int64_t count);

HG_EXTERN_C_END
#endif
