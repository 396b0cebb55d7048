#ifndef HG_DOCTOR_SAVED_STATE_H
#define HG_DOCTOR_SAVED_STATE_H

#include "halfgraph/optim.h"
#include "nn/optim/optim.h"

HG_EXTERN_C_BEGIN

/* A copy, bit for bit, of everything that a step writes outside of its tape's arena: master weights
 * and running statistics, working copies, gradients, moments, and what the optimiser keeps from
 * step to step. All zero: nothing is saved. */
struct hg__saved_state {
	hg_params *params;
	hg_optim *optim; /* NULL: there are no moments */
	void *memory;
	size_t bytes;
};
HG_NODISCARD hg_status hg__saved_state_open(struct hg__saved_state *saved, hg_params *params,
                                            hg_optim *optim);
/* Writes everything back and frees the copy; does nothing if nothing is saved. */
HG_NODISCARD hg_status hg__saved_state_close(struct hg__saved_state *saved);

HG_EXTERN_C_END
#endif
