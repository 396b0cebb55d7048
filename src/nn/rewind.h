#ifndef HG_NN_REWIND_H
#define HG_NN_REWIND_H

#include "autograd/observe.h"
#include "halfgraph/optim.h"
#include "nn/snapshot.h"

HG_EXTERN_C_BEGIN

/* Device memory and a copy of it to return to. */
struct hg__rewind_piece {
	void *live, *kept;
	size_t bytes;
};

/* A point to which training can return: masters, running statistics, moments, loss scale, step
 * counter,
 * what was observed, and where the evaluations stand, on the device. Steps from here give the same
 * bits
 * as they did before. All zero: none yet. */
struct hg__rewind {
	hg_optim *optim;
	struct hg__snapshot weights;
	struct hg__rewind_piece piece[5];
	int pieces;
};
/* watch NULL: nobody observes. best, board: of the evaluations. */
HG_NODISCARD hg_status hg__rewind_init(struct hg__rewind *rewind, hg_optim *optim,
                                       const struct hg__watch *watch,
                                       const struct hg__snapshot *best, struct hg__board *board);
void hg__rewind_fini(struct hg__rewind *rewind);
HG_NODISCARD hg_status hg__rewind_save(struct hg__rewind *rewind);
HG_NODISCARD hg_status hg__rewind_restore(const struct hg__rewind *rewind);

HG_EXTERN_C_END
#endif
