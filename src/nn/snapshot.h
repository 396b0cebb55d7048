#ifndef HG_NN_SNAPSHOT_H
#define HG_NN_SNAPSHOT_H

#include "autograd/param.h"
#include "core/buffer.h"

HG_EXTERN_C_BEGIN

/* A copy of all masters and running statistics on the device, in one block. */
struct hg__snapshot {
	hg_params *params;
	void *memory;
	size_t bytes;
	struct hg__buffer host_pieces, pieces; /* struct hg__piece: from each master into the copy */
};
HG_NODISCARD hg_status hg__snapshot_init(struct hg__snapshot *snapshot, hg_params *params);
void hg__snapshot_fini(struct hg__snapshot *snapshot);
HG_NODISCARD hg_status hg__snapshot_save(struct hg__snapshot *snapshot);
/* Saves only if *flag is not 0 when the device runs it. flag: device memory. */
HG_NODISCARD hg_status hg__snapshot_save_if(struct hg__snapshot *snapshot, const int32_t *flag);
/* Copies the masters back and narrows them to the working copies. */
HG_NODISCARD hg_status hg__snapshot_restore(const struct hg__snapshot *snapshot);
/* Exchanges the masters and the copy. */
HG_NODISCARD hg_status hg__snapshot_swap(struct hg__snapshot *snapshot);
/* The copy of master number `index`. */
struct hg__mat hg__snapshot_mat(const struct hg__snapshot *snapshot, int64_t index);
/* Makes a parameter's working copy from its master, rounded as a step rounds it. */
HG_NODISCARD hg_status hg__param_narrow(const hg_param *param);

HG_EXTERN_C_END
#endif
