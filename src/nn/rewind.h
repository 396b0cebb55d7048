#ifndef HG_NN_REWIND_H
#define HG_NN_REWIND_H

#include "autograd/observe.h"
#include "halfgraph/optim.h"
#include "nn/snapshot.h"

HG_EXTERN_C_BEGIN

/* A point to which training can return: masters, running statistics, moments, loss scale, step counter and what was observed, on the device. Steps from here give the same bits as
 * they did before. All zero: none yet. */
struct hg__rewind {
	hg_optim *optim;
	struct hg__snapshot weights;
	struct hg__watch *watch; /* NULL: nobody observes */
	void *moments, *step, *seen;
};
HG_NODISCARD hg_status hg__rewind_init(struct hg__rewind *rewind, hg_optim *optim, struct hg__watch *watch);
void hg__rewind_fini(struct hg__rewind *rewind);
HG_NODISCARD hg_status hg__rewind_save(struct hg__rewind *rewind);
HG_NODISCARD hg_status hg__rewind_restore(const struct hg__rewind *rewind);

HG_EXTERN_C_END
#endif
