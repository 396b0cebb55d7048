#ifndef HG_DOCTOR_WIDEN_H
#define HG_DOCTOR_WIDEN_H

#include "autograd/op.h"

HG_EXTERN_C_BEGIN

/* The wide run of an op: a copy of its call with every float operand widened to f32, every float
 * result in f32 memory of its own, and sums in f32. Graph, random numbers and constants are those
 * of the call itself. All zero: no run is open. */
struct hg__wide {
	struct hg__call call;
	struct hg__node node;
	void *memory;
	size_t bytes;
};
/* Copies the operands as they are now, so it comes before the op itself where the op adds to a
 * gradient. saves: of the tape's entry. The struct must not move while it is open. */
HG_NODISCARD hg_status hg__wide_open(const struct hg__call *call, unsigned saves, int backward,
                                     struct hg__wide *wide);
HG_NODISCARD hg_status hg__wide_run(struct hg__wide *wide, int backward);
void hg__wide_close(struct hg__wide *wide);

HG_EXTERN_C_END
#endif
