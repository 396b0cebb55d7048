/* The common parts of the functions of one operand, Y = f(X) element by element. op->act selects f
 * and f' in the list of functions (kernels/functions.def). The file of such an op holds its
 * equation, its words, what is known of its range besides the bounds of the list, and samples of
 * its own if it has a constant or is not defined for every number. */
#ifndef HG_AUTOGRAD_OPS_ACT_H
#define HG_AUTOGRAD_OPS_ACT_H

#include "autograd/opkit.h"

/* The constant of a tape node, or 0 if its op has none. */
float hg__act_p(const struct hg__node *node);

HG_NODISCARD hg_status hg__act_infer(struct hg__infer *s);
/* max|Y| <= most(max|X|), max|dX| <= steepest(max|X|) max|dY|. */
struct hg__known hg__act_range(const struct hg__range *r, struct hg__derivation *how);
void hg__act_range_back(const struct hg__range *r, struct hg__gradients *grad);
HG_NODISCARD hg_status hg__act_forward(const struct hg__call *c);
HG_NODISCARD hg_status hg__act_backward(const struct hg__call *c);
/* Samples for a function that is defined for every number and has no constant. */
int hg__act_sample_any(int i, const struct hg__extent *x, struct hg__sample *s);

/* One sample of a function: the columns beyond d, the standard deviation `sigma` of its input, and
 * its constant. With ALIKE all elements equal sigma, and with ALIKE_FORWARD also the gradient is
 * not checked. */
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
/* Sets sample i of `rows`; returns 0 if there are fewer. */
int hg__act_sample(const struct act_sample *rows, size_t count, int i, const struct hg__extent *x,
                   struct hg__sample *s);

/* The fields that have the same value in the record of each such op. */
#define HG__ACT_FIELDS(function)                                                            \
	.name = #function, .act = 1 + HG__ACT_##function, .min_in = 1, .max_in = 1, .same = 1u, \
	.infer = hg__act_infer, .forward = hg__act_forward, .backward = hg__act_backward

#endif
