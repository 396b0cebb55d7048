#ifndef HG_NN_OPTIM_OPTIM_H
#define HG_NN_OPTIM_OPTIM_H

#include "autograd/param.h"
#include "halfgraph/optim.h"

HG_EXTERN_C_BEGIN

/* The inside of an optimiser: the tables that its kernels read, on the host and on the device, and
 * the moments that they update. */
struct hg_optim {
	hg_params *params;
	hg_optim_config config;
	int64_t params_seen;             /* number of parameters when the optimiser was made */
	int64_t reaches_seen;            /* params->reaches when the table was uploaded */
	int64_t count;                   /* parameters that are trained */
	hg_param **param;                /* [count] */
	struct hg__optim_tensor *tensor; /* [count] */
	void *tensor_device;
	int groups;
	struct hg__optim_group *group; /* [groups] */
	void *group_device;
	void *moments; /* device: m and v of every tensor, each in its master's layout */
	size_t moments_bytes;
	hg_schedule_config schedule; /* the copy that steps read is in params->step */
};

/* The two halves of hg_optim_step. The first checks the gradients. The second applies or skips the
 * step and, if `notes` is not NULL, stores a record of it there, with the loss. loss, notes: device
 * memory. stops: kernels/optim.h. */
HG_NODISCARD hg_status hg__optim_check_grads(hg_optim *optim);
HG_NODISCARD hg_status hg__optim_apply(hg_optim *optim, const float *loss,
                                       struct hg__step_notes *notes, unsigned stops);
/* HG_ERR_STATE if parameters were added after the optimiser was made. If a tape was recorded in
 * between, the reaches in the device table are brought up to date. hg_optim_step calls this
 * first. */
HG_NODISCARD hg_status hg__optim_ready(hg_optim *optim);
/* Fills info from the record of a step. HG_ERR_ARG if info is NULL or has no size. `who`: the
 * calling function, for the message. */
HG_NODISCARD hg_status hg__optim_report(const hg_optim *optim, const struct hg__step_note *note,
                                        const char *who, hg_step_info *info);

/* Brings the rates on the device up to date with `group`. */
HG_NODISCARD hg_status hg__optim_groups_upload(hg_optim *optim);

/* Puts a schedule without a fault in place, from the next step on. */
HG_NODISCARD hg_status hg__optim_schedule(hg_optim *optim, const hg_schedule_config *schedule);

/* HG_OK, or HG_ERR_ARG with the name of the bad field. */
HG_NODISCARD hg_status hg__optim_check(hg_context *ctx, const hg_optim_config *config);

HG_EXTERN_C_END
#endif
