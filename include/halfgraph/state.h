#ifndef HALFGRAPH_STATE_H
#define HALFGRAPH_STATE_H

#include "halfgraph/optim.h"

HG_EXTERN_C_BEGIN

/* What training has made so far, in host memory: from it a run goes on bit for bit, in this process
 * or another (data.h keeps it in a file).
 *
 *     tensor             of every parameter the f32 master and the moments that the optimiser keeps
 *                        of it; of a buffer (running statistics) the master alone
 *     promotion          nodes that run in f32, or are stored x 2^-k, because they overflowed
 *                        behind a guard (hg_policy.replan)
 *     loss_scale, step   the scaler with its counters and history; steps begun, skipped ones
 *                        included: what dropout counts by
 *     setting            what the run was set up with: library, device, seed, policy, optimiser
 *                        and, of an hg_train, model and size of the data
 *
 * Settings are there to be compared and are never put back: a run has its own, and where they are
 * the same and the data are, it goes on bit for bit. Not part of a state: gradients, which the next
 * backward makes; learning rates that hg_optim_set_lr has changed; the weights of the best epoch;
 * the data.
 *
 * Needs no context and no device. All of it is owned by the state, allocated with malloc. */
#define HG_STATE_MOMENTS 2
typedef struct hg_state_tensor {
	char *name;
	int64_t rows, cols;
	float *master; /* [rows, cols]; may hold what is no number */
	/* tapes rest on |master| <= reach (policy.h); INFINITY: none does */
	double reach;
	/* 0: buffers, plain SGD; 1: SGD with momentum; 2: Adam, AdamW */
	int moments;
	float *moment[HG_STATE_MOMENTS]; /* [rows, cols] each; first (or the momentum) and second */
} hg_state_tensor;

typedef enum hg_setting_kind {
	HG_SETTING_INTEGER = 0,
	HG_SETTING_REAL = 1,
	HG_SETTING_TEXT = 2
} hg_setting_kind;
typedef struct hg_setting {
	char name[48]; /* "model.dropout" */
	hg_setting_kind kind;
	int64_t integer; /* an enumerator counts as one; a seed keeps its 64 bits */
	double real;
	char text[64];
} hg_setting;

/* A node by what it keeps when it is recorded again: the nth of its op (from 0) in its layer. */
typedef struct hg_promotion {
	char op[32], layer[48]; /* "spmm", "conv0" */
	int64_t nth;
	int32_t shift; /* its result is stored x 2^-shift, 1 to HG_SHIFT_MOST; 0: in f32 */
} hg_promotion;

typedef struct hg_state {
	char *origin; /* what messages call it, such as the file it is from; NULL: "the state" */
	int64_t tensors, settings, promotions;
	hg_state_tensor *tensor;
	hg_setting *setting;
	hg_promotion *promotion;
	hg_loss_scale loss_scale;
	int64_t step;
} hg_state;

/* An empty one. */
HG_API HG_NODISCARD hg_status hg_state_create(hg_state **state);
HG_API void hg_state_free(hg_state *state);
/* One more tensor, all zero and without a reach, or setting or promotion, copied. *tensor, if
 * wanted, holds until the next is added. HG_ERR_ARG: no name, one that is there already, shape
 * below [1, 1], moments, nth or shift out of range; HG_ERR_NOMEM. The state is unchanged then. */
HG_API HG_NODISCARD hg_status hg_state_add_tensor(hg_state *state, const char *name, int64_t rows,
                                                  int64_t cols, int moments,
                                                  hg_state_tensor **tensor);
HG_API HG_NODISCARD hg_status hg_state_add_setting(hg_state *state, const hg_setting *setting);
HG_API HG_NODISCARD hg_status hg_state_add_promotion(hg_state *state,
                                                     const hg_promotion *promotion);
/* By name; NULL if there is none. */
HG_API const hg_state_tensor *hg_state_find_tensor(const hg_state *state, const char *name);
HG_API const hg_setting *hg_state_find_setting(const hg_state *state, const char *name);
/* What is wrong with the loss scale, a counter or a reach, as a sentence ("the loss scale is -1,
 * ..."); NULL if nothing is. Weights may be anything. */
HG_API const char *hg_state_fault(const hg_state *state);

/* The state of an optimiser and its parameters now. Waits for the device. */
HG_API HG_NODISCARD hg_status hg_optim_get_state(hg_optim *optim, hg_state **state);
/* Go on from there. All is looked at, and all memory taken, before anything changes.
 *
 * HG_OK           the settings are the same
 * HG_INFO_DIFFERS the state is in place and another run begins from it: hg_context_error names the
 * first setting that differs, with both values. Where one of the
 *                 loss scale differs, the scale begins anew as this run's policy says; its counters
 *                 go on
 * HG_ERR_SHAPE
 * parameters do not fit: another shape (both are named), missing ones, more than there are, other
 * moments;  HG_ERR_ARG hg_state_fault;  HG_ERR_UNSUPPORTED
 *                 a promoted op that this library has not
 *
 * What is promoted is so on tapes that are recorded afterwards; an hg_train records its own again,
 * also where they rest on other reaches. Working copies are narrowed from the masters as a step
 * does it: what f16 cannot hold becomes infinite in them, and is no error. */
HG_API HG_NODISCARD hg_status hg_optim_set_state(hg_optim *optim, const hg_state *state);

HG_EXTERN_C_END
#endif
