#ifndef HG_NN_OPTIM_OPTIM_H
#define HG_NN_OPTIM_OPTIM_H

#include "autograd/param.h"
#include "halfgraph/optim.h"

HG_EXTERN_C_BEGIN

/* The tables that the optimiser kernels read, on the host and on the device, and the moments they
 * update. */
struct hg_optim {
	hg_params *params;
	hg_optim_config config;
	int64_t params_seen;             /* count of params at creation */
	int64_t reaches_seen;            /* params->reaches when the table was written */
	int64_t count;                   /* trainable ones */
	hg_param **param;                /* [count] */
	struct hg__optim_tensor *tensor; /* [count] */
	void *tensor_device;
	int groups;
	struct hg__optim_group *group; /* [groups] */
	void *group_device;
	void *moments; /* device: m and v of every tensor, each in its master's layout */
	size_t moments_bytes;
};

/* The two halves of hg_optim_step: are all gradients finite? Then, for better or worse, the step,
 * and a note of it with the loss, if `notes` is not NULL. loss, notes: device memory. stops:
 * kernels/optim.h. */
HG_NODISCARD hg_status hg__optim_look(hg_optim *optim);
HG_NODISCARD hg_status hg__optim_apply(hg_optim *optim, const float *loss,
                                       struct hg__step_notes *notes, unsigned stops);
/* HG_ERR_STATE if params has changed since the optimiser was made: what hg_optim_step asks first.
 * Where a tape was recorded since, the table learns what it rests on. */
HG_NODISCARD hg_status hg__optim_ready(hg_optim *optim);
/* A note in the words of hg_step_info. HG_ERR_ARG where info is NULL or has no size; `who` asks. */
HG_NODISCARD hg_status hg__optim_tell(const hg_optim *optim, const struct hg__step_note *note,
                                      const char *who, hg_step_info *info);

/* HG_OK, or HG_ERR_ARG with the field's name. */
HG_NODISCARD hg_status hg__optim_check(hg_context *ctx, const hg_optim_config *config);

HG_EXTERN_C_END
#endif
