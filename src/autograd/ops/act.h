#ifndef HG_AUTOGRAD_OPS_ACT_H
#define HG_AUTOGRAD_OPS_ACT_H

#include "autograd/opkit.h"

/* What the functions of one operand share: Y = f(X) element by element, f and f' by op->act of the
 * list (kernels/functions.def). An op is its equation, its words, what it knows of its range beyond
 * the list's bounds, and samples of its own where it has a constant or takes no number at all. */

/* The constant of a node: 0 where its op has none. */
float hg__act_p(const struct hg__node *node);

HG_NODISCARD hg_status hg__act_infer(struct hg__infer *s);
/* max|Y| <= most(max|X|), max|dX| <= steepest(max|X|) max|dY|. */
void hg__act_range(struct hg__range *r);
void hg__act_range_back(struct hg__range *r);
HG_NODISCARD hg_status hg__act_forward(const struct hg__call *c);
HG_NODISCARD hg_status hg__act_backward(const struct hg__call *c);
/* Of a function that takes every number and has no constant. */
int hg__act_sample_any(int i, const struct hg__extent *x, struct hg__sample *s);

/* One sample of a function: its width beyond d, the spread of its input, its constant. ALIKE: all
 * elements are the spread, with or without a gradient. */
struct act_sample {
	const char *what;
	hg_status expect;
	int64_t wider;
	double sigma;
	float p;
	enum {
		ACT_FLOATS,
		ACT_POSITIVES,
		ACT_ALIKE,
		ACT_ALIKE_FORWARD,
		ACT_INTEGERS,
		ACT_BYTES,
		ACT_MISSING
	} of;
};
void hg__act_sample(const struct act_sample *row, const struct hg__extent *x, struct hg__sample *s);

#endif
