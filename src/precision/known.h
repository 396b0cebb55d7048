/* What is known of the elements of a tensor before any of them is computed. Range rules carry it
 * from the operands of an op to its result (autograd/range_rule.h), and range.h decides with it
 * whether the result fits in f16. */
#ifndef HG_PRECISION_KNOWN_H
#define HG_PRECISION_KNOWN_H

#include <math.h>

#include "halfgraph/status.h"

HG_EXTERN_C_BEGIN

struct hg_graph;

/* Everything is held twice, in arrays of two: what holds for all weights, and what holds while the
 * weights stay as small as the tape assumes (halfgraph/policy.h). */
enum hg__assumption { HG__UNCONDITIONAL = 0, HG__ASSUMED = 1 };
#define HG__ASSUMPTIONS 2

/* Facts about the elements x of one tensor, with all roundings up to the store. A NaN or an
 * infinity that comes with the data contradicts them, and is found by other means. */
struct hg__known {
	double largest; /* |x| <= largest; INFINITY: nothing is known */
	double least;   /* |x| >= least; 0: nothing is known */
	/* Of a tensor with one number for each edge (and head): the sum of |x| over the edges of a row
	 * of row_graph is at most row_sum. INFINITY: nothing is known. */
	double row_sum;
	const struct hg_graph *row_graph;
	int sign; /* 1: x >= 0 for all x; -1: x <= 0 for all x; 0: nothing is known */
};

/* A tensor of which only the largest magnitude is known. */
static inline struct hg__known hg__at_most(double largest)
{
	const struct hg__known known = {largest, 0.0, (double)INFINITY, NULL, 0};
	return known;
}

/* What is known of a gradient, divided by the loss scale. */
struct hg__known_gradient {
	double largest;
	/* Bound on the halves that are stored on the way to the gradient, itself included where it is
	 * f16. It may exceed `largest`: sums in f16 are large before they are scaled. */
	double largest_half;
};

HG_EXTERN_C_END
#endif
