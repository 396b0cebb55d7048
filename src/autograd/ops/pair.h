/* The common parts of ops with two operands of one shape, Z = f(X, Y) element by element. */
#ifndef HG_AUTOGRAD_OPS_PAIR_H
#define HG_AUTOGRAD_OPS_PAIR_H

#include "autograd/opkit.h"

/* X, Y and Z have the float type of the node and one shape. X and Y may have gradients. */
HG_NODISCARD hg_status hg__pair_infer(struct hg__infer *s);

/* Z = X + sign Y: forward, backward, and what bounds the gradients, each at most max|dZ|. */
HG_NODISCARD hg_status hg__pair_sum(const struct hg__call *c, float sign);
HG_NODISCARD hg_status hg__pair_sum_back(const struct hg__call *c, float sign);
void hg__pair_sum_range_back(const struct hg__range *r, struct hg__gradients *grad);

/* Samples for an op that is defined for all numbers: with two operands of one shape, or with one
 * row as the second operand. */
int hg__pair_sample(int i, const struct hg__extent *x, struct hg__sample *s);
int hg__pair_sample_row(int i, const struct hg__extent *x, struct hg__sample *s);

#endif
