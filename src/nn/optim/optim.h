#ifndef HG_NN_OPTIM_OPTIM_H
#define HG_NN_OPTIM_OPTIM_H

#include "autograd/param.h"
#include "halfgraph/optim.h"

HG_EXTERN_C_BEGIN

/* The tables that the optimiser kernels read, on the host and on the device, and the moments they update. */
struct hg_optim {
	hg_params *params;
	hg_optim_config config;
	int64_t params_seen;             /* count of params at creation */
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

/* HG_OK, or HG_ERR_ARG with the field's name. */
HG_NODISCARD hg_status hg__optim_check(hg_context *ctx, const hg_optim_config *config);

HG_EXTERN_C_END
#endif
