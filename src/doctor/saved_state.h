#ifndef HG_DOCTOR_SAVED_STATE_H
#define HG_DOCTOR_SAVED_STATE_H

#include "halfgraph/optim.h"
#include "nn/optim/optim.h"

HG_EXTERN_C_BEGIN

/* Everything that a step writes outside of its tape's arena, saved bit for bit: masters (running
 * statistics among them), working copies, gradients, moments, and what the optimiser keeps between
 * steps. All zero: nothing is saved. */
struct hg__saved_state {
	hg_params *params;
	hg_optim *optim; /* NULL: no moments */
	void *memory;
	size_t bytes;
};
HG_NODISCARD hg_status hg__saved_state_open(struct hg__saved_state *saved, hg_params *params,
                                            hg_optim *optim);
/* Everything as it was; then the copy is given back. Also where it was never opened. */
HG_NODISCARD hg_status hg__saved_state_close(struct hg__saved_state *saved);

HG_EXTERN_C_END
#endif
