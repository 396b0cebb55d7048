#ifndef HG_NN_REWIND_H
#define HG_NN_REWIND_H

#include "autograd/observe.h"
#include "halfgraph/optim.h"
#include "nn/snapshot.h"

HG_EXTERN_C_BEGIN

/* A piece of device memory and its saved copy. */
struct hg__rewind_piece {
	void *live, *kept;
	size_t bytes;
};

/* A point to which training can return. It holds, on the device: masters, running statistics,
 * moments, loss scale, step counter, the observer's counts, the best weights and the scores. Steps
 * from here give the same bits as before. All zero: not made yet. */
struct hg__rewind {
	hg_optim *optim;
	struct hg__snapshot weights;
	struct hg__rewind_piece piece[5];
	int pieces;
};
/* watch NULL: steps are not observed. best, board: of the evaluations. */
HG_NODISCARD hg_status hg__rewind_init(struct hg__rewind *rewind, hg_optim *optim,
                                       const struct hg__watch *watch,
                                       const struct hg__snapshot *best, struct hg__board *board);
void hg__rewind_fini(struct hg__rewind *rewind);
HG_NODISCARD hg_status hg__rewind_save(struct hg__rewind *rewind);
HG_NODISCARD hg_status hg__rewind_restore(const struct hg__rewind *rewind);

HG_EXTERN_C_END
#endif
