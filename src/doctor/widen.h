#ifndef HG_DOCTOR_WIDEN_H
#define HG_DOCTOR_WIDEN_H

#include "autograd/op.h"

HG_EXTERN_C_BEGIN

/* The same op beside itself: every float operand that it had, widened to f32, every result f32 in
 * memory of its own, sums in f32. What the op reads of the graph, random numbers and constants are
 * its own. All zero: none. */
struct hg__wide {
	struct hg__call call;
	struct hg__node node;
	void *memory;
	size_t bytes;
};
/* Takes the operands as they are now: of a node that adds to a gradient, before it runs. saves: of
 * its line. The struct must not move while it is open. */
HG_NODISCARD hg_status hg__wide_open(const struct hg__call *call, unsigned saves, int backward,
                                     struct hg__wide *wide);
HG_NODISCARD hg_status hg__wide_run(struct hg__wide *wide, int backward);
void hg__wide_close(struct hg__wide *wide);

HG_EXTERN_C_END
#endif
