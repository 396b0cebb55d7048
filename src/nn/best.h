#ifndef HG_NN_BEST_H
#define HG_NN_BEST_H

#include "nn/saved.h"

HG_EXTERN_C_BEGIN

/* The weights of the best epoch: a copy of all masters and running statistics on the device, which
 * the device itself renews. */
struct hg__best {
	struct hg__saved weights;
	struct hg__buffer host_pieces, pieces; /* struct hg__piece: from each master into the copy */
};
/* The weights are zeros until they are saved. */
HG_NODISCARD hg_status hg__best_init(struct hg__best *best, hg_params *params);
void hg__best_fini(struct hg__best *best);
/* Saves only if *flag is not 0 when the device runs it. flag: device memory. */
HG_NODISCARD hg_status hg__best_save_if(const struct hg__best *best, const int32_t *flag);
/* Exchanges the masters and the copy. */
HG_NODISCARD hg_status hg__best_swap(const struct hg__best *best);

HG_EXTERN_C_END
#endif
